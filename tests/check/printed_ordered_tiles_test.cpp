#include <gtest/gtest.h>

#include "check/printed.h"
#include "codegen/print.h"
#include "common/ordered_tiles_kernel.h"
#include "compiler/compile_to_machine.h"
#include "compiler/compiled.h"
#include "runtime/nvrtc_available.h"

// Elements in an order of PTX as they are printed: one by one, and sums of 16 bits in pairs.
namespace tilewright::checks {
namespace {

TEST(PrintedOrderedTiles, DoTheSame) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const DType dtype : {i32, u32, i64, f32, f16, bf16}) {
    for (const int columns : {32, 1}) {
      const ir::Kernel machine =
          compiler::compile_to_machine(test::add_in_order(dtype, columns).finish(), "sm_90a")
              .kernel;
      const codegen::CudaSource source = codegen::print(machine);
      const std::string text = printed_ptx_text(machine, source);
      const ptx::Module ptx = ptx::parse(text, "printed.ptx");
      const bool pairs = size_of(dtype) == 2 && columns == 32;
      EXPECT_EQ(text.find("x2 ") != std::string::npos, pairs) << name_of(dtype);
      for (const test::OrderedPlace& place : test::ordered_places()) {
        if (place.columns != columns) continue;
        SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << columns << " columns of "
                                        << place.width << " from " << place.base);
        test::OrderedSums sums(dtype, place);
        const Arguments arguments =
            compiler::make_arguments(machine, {ref(sums.X), sums.Y(), ref(sums.before)}, {});
        const PrintedDifference difference =
            compare_printed(machine, source.parameters, ptx, arguments, {});
        EXPECT_EQ(difference.kind, "") << difference.message;
        EXPECT_EQ(sums.mistake(), "");
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::checks
