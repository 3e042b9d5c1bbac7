#include "passes/pipeline.h"

#include <chrono>

#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/allocate_shared.h"
#include "passes/assign_layouts.h"
#include "passes/bufferise.h"
#include "passes/check_divergence.h"
#include "passes/check_starts.h"
#include "passes/contract_fma.h"
#include "passes/convert_layouts.h"
#include "passes/count_waits.h"
#include "passes/drop_selects.h"
#include "passes/eliminate_common.h"
#include "passes/eliminate_dead.h"
#include "passes/fold_accumulators.h"
#include "passes/hoist.h"
#include "passes/materialise_extents.h"
#include "passes/overlap_products.h"
#include "passes/peel_masks.h"
#include "passes/separate_columns.h"
#include "passes/share_reductions.h"
#include "passes/simplify.h"
#include "passes/sink_partial_maxima.h"
#include "passes/sink_partial_sums.h"
#include "passes/skip_hidden.h"
#include "passes/skip_identities.h"

namespace tilewright::passes {
namespace {

struct Pass {
  constexpr Pass(const char* name, void (*run)(ir::Kernel&)) : name(name), run(run) {}
  // One that changes rounding: it returns how often it did, and may be switched off.
  constexpr Pass(const char* name, int (*rewrite)(ir::Kernel&), bool Numerics::*allowed)
      : name(name), rewrite(rewrite), allowed(allowed) {}
  // One that a schedule may do without.
  constexpr Pass(const char* name, int (*rewrite)(ir::Kernel&), bool Rewrites::*chosen)
      : name(name), rewrite(rewrite), chosen(chosen) {}
  const char* name;
  void (*run)(ir::Kernel&) = nullptr;
  int (*rewrite)(ir::Kernel&) = nullptr;
  bool Numerics::*allowed = nullptr;
  bool Rewrites::*chosen = nullptr;
};

// What both forms of SSA tiles take.
constexpr Pass kSimplify[] = {
    {"simplify", simplify},
    {"eliminate_common", eliminate_common},
    {"hoist", hoist},
    {"eliminate_common_hoisted", eliminate_common},
    {"eliminate_dead", eliminate_dead},
};

// What an automatic schedule begins with.
constexpr Pass kPrepare[] = {
    // Of the kernel's own starts: later passes shift them.
    {"check_starts", check_starts},
    {"materialise_extents", materialise_extents},
    {"drop_selects", drop_selects},
    {"fold_accumulators", fold_accumulators, &Numerics::fold_accumulators},
    // The passes behind it count who reads a value.
    {"eliminate_folded", eliminate_dead},
    {"skip_hidden", skip_hidden, &Numerics::skip_hidden},
    {"skip_identities", skip_identities},
    {"overlap_products", overlap_products, &Rewrites::overlap_products},
    {"peel_masks", peel_masks},
    {"simplify_loops", simplify},
    {"eliminate_common_loops", eliminate_common},
    {"hoist_loops", hoist},
    {"eliminate_loops", eliminate_dead},
    // Nothing may merge again what it makes twice.
    {"separate_columns", separate_columns},
};

constexpr Pass kLower[] = {
    {"contract_fma", contract_fma, &Numerics::contract_fma},
    {"eliminate_products", eliminate_dead},
    {"sink_partial_sums", sink_partial_sums, &Numerics::sink_partial_sums},
    {"sink_partial_maxima", sink_partial_maxima, &Numerics::sink_partial_maxima},
    {"eliminate_common_sums", eliminate_common},
    {"convert_layouts", convert_layouts, &Rewrites::convert_layouts},
    {"assign_layouts", assign_layouts},
    {"share_reductions", share_reductions},
    {"check_divergence", check_divergence},
    {"count_waits", count_waits},
    {"bufferise", bufferise},
    {"allocate_shared", allocate_shared},
    // Addresses are scalars now.
    {"simplify_addresses", simplify},
    {"eliminate_common_addresses", eliminate_common},
    {"hoist_addresses", hoist},
    {"eliminate_common_hoisted_addresses", eliminate_common},
    {"eliminate_dead_addresses", eliminate_dead},
};

template <std::size_t N>
void run(const Pass (&passes)[N], ir::Kernel& kernel, const PassObserver& observer,
         Rewrites& rewrites) {
  for (const Pass& pass : passes) {
    if (pass.allowed && !(rewrites.allowed.*pass.allowed)) continue;
    if (pass.chosen && !(rewrites.*pass.chosen)) continue;
    const ir::Kernel before = observer ? kernel : ir::Kernel();
    const auto start = std::chrono::steady_clock::now();
    if (pass.rewrite) {
      rewrites.applied[pass.name] += pass.rewrite(kernel);
    } else {
      pass.run(kernel);
    }
    ir::canonicalise(kernel);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    ir::verify(kernel);
    if (observer) observer(pass.name, kernel, time.count(), !ir::equal(before, kernel));
  }
}

}  // namespace

void simplify_kernel(ir::Kernel& kernel, const PassObserver& observer) {
  ir::verify(kernel);
  Rewrites none;
  run(kSimplify, kernel, observer, none);
}

void prepare_for_schedule(ir::Kernel& kernel, const PassObserver& observer, Rewrites& rewrites) {
  simplify_kernel(kernel, observer);
  if (kernel.target.empty()) kernel.target = ir::kDefaultTarget;
  run(kPrepare, kernel, observer, rewrites);
}

void lower_to_machine(ir::Kernel& kernel, const PassObserver& observer, Rewrites& rewrites) {
  simplify_kernel(kernel, observer);
  run(kLower, kernel, observer, rewrites);
}

void lower_to_machine(ir::Kernel& kernel, const PassObserver& observer) {
  Rewrites rewrites;
  lower_to_machine(kernel, observer, rewrites);
}

}  // namespace tilewright::passes
