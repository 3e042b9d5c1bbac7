#include "target/cpu.h"

namespace tilewright::target {

Target cpu() {
  Target t;
  t.name = "cpu";
  t.chips = "the processor";
  t.spaces = {{ir::Memory::global, "memory", "the process", 0}};
  t.product_dtypes = {DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::i32, DType::i64};
  t.preparation = {"fold_accumulators", "eliminate_folded", "skip_identities",
                   "peel_masks",        "simplify_loops",   "eliminate_common_loops",
                   "hoist_loops",       "eliminate_loops",  "contract_fma",
                   "eliminate_products"};
  return t;
}

}  // namespace tilewright::target
