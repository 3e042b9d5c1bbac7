#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "check/printed.h"
#include "codegen/print.h"
#include "compiler/compile_to_machine.h"
#include "compiler/compiled.h"
#include "runtime/nvrtc_available.h"
#include "schedules/adding_kernels.h"

// Blocks that add in their order, as they are printed: who waits, and what is added.
namespace tilewright::checks {
namespace {

TEST(PrintedAdding, BlocksAddTheSameInTheSameOrder) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  int compared = 0;
  for (const test::AddingCase& each : test::adding_cases()) {
    if (each.name != "Again129x77" && each.name != "Products77x65x328by64") continue;
    SCOPED_TRACE(each.name);
    const ir::Kernel machine =
        compiler::machine_forms(each.kernel(Order::blocks).finish(), "sm_90a").back().kernel;
    const codegen::CudaSource source = codegen::print(machine);
    const ptx::Module module = printed_ptx(machine, source);
    std::vector<HostTensor> tensors = each.tensors();
    const std::vector<double> wanted = each.wanted(tensors);
    std::vector<TensorRef> refs;
    for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
    // One CTA, which has all turns: CTAs of PTX follow each other.
    const PrintedDifference difference = compare_printed(
        machine, source.parameters, module, compiler::make_arguments(machine, refs, {}), {});
    EXPECT_EQ(difference.kind, "") << difference.message;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(tensors.back().flat(static_cast<std::int64_t>(i)), wanted[i], 1e-3) << i;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

}  // namespace
}  // namespace tilewright::checks
