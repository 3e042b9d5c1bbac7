#include <gtest/gtest.h>

#include "check/printed.h"
#include "codegen/print.h"
#include "compiler/compile_to_machine.h"
#include "compiler/compiled.h"
#include "runtime/nvrtc_available.h"
#include "simulator/red_tiles_kernel.h"

// Additions from registers as they are printed: in vectors where these lie, and by elements.
namespace tilewright::checks {
namespace {

TEST(PrintedRedTiles, AddTheSameWhereverTheTensorLies) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const test::SumPlace& place : test::sum_places()) {
    SCOPED_TRACE(testing::Message()
                 << place.columns << " columns, Y {" << place.rows << ", " << place.width
                 << "} from " << place.base << " by " << place.stride);
    const ir::Kernel machine =
        compiler::machine_forms(test::add_tiles(place).finish(), "sm_90a").back().kernel;
    const codegen::CudaSource source = codegen::print(machine);
    test::SumData data(place);
    HostTensor D = HostTensor::zeros(f32, {test::kAddedRows, place.columns});
    const Arguments arguments =
        compiler::make_arguments(machine, {ref(data.X), data.Y(place), ref(D)}, {});
    const PrintedDifference difference =
        compare_printed(machine, source.parameters, printed_ptx(machine, source), arguments, {});
    EXPECT_EQ(difference.kind, "") << difference.message;
    for (std::int64_t i = 0; i < data.wanted.elements(); ++i) {
      ASSERT_EQ(data.memory.flat(i), data.wanted.flat(i)) << i;
    }
  }
}

}  // namespace
}  // namespace tilewright::checks
