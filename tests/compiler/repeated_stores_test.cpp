#include <gmock/gmock.h>

#include <cstdint>
#include <string>

#include "common/error_text.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/launch_plan.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

namespace tilewright::compiler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What all blocks along an axis store is refused on the CPU too, and where a GPU is launched.
TEST(RepeatedStoresTest, AreRefusedOnTheCpuAndWhereAGpuIsLaunched) {
  Kernel kernel("copies_twice");
  const Dim rows = kernel.dim("rows"), times = kernel.dim("times");
  const Tensor X = kernel.in("X", f32, {rows, 32}), T = kernel.in("T", f32, {times});
  const Tensor Y = kernel.out("Y", f32, {rows, 32});
  const auto [i, j] = kernel.grid(ceil_div(rows, 16), times);
  store(Y(rows.block(i, 16), all), load(X(rows.block(i, 16), all)) + load(T(j)).reshape({1, 1}));
  const Executable executable = compile(kernel, "cpu");
  const GpuProgram program = translate(kernel.finish(), "sm_90a");
  const auto launch = [&](bool on_gpu, std::int64_t count, std::int64_t blocks) {
    HostTensor x = HostTensor::random_normal(f32, {count, 32}, 1);
    HostTensor t = HostTensor::zeros(f32, {blocks}), y = HostTensor::poisoned(f32, {count, 32});
    if (!on_gpu) return executable.run({ref(x), ref(t), ref(y)}, {});
    const Arguments arguments = make_arguments(program.machine, {ref(x), ref(t), ref(y)}, {});
    plan_launch(program.machine, program.source.parameters, arguments, 132,
                program.repeated_stores);
  };
  for (const bool on_gpu : {false, true}) {
    EXPECT_NO_THROW(launch(on_gpu, 40, 1));
    EXPECT_NO_THROW(launch(on_gpu, 0, 2));
    EXPECT_THAT(test::whole_usage_error_of([&] { launch(on_gpu, 40, 2); }),
                AllOf(HasSubstr("store: all 2 blocks along axis 1 of the grid store the same "
                                "elements of Y"),
                      HasSubstr("store(Y(rows.block(i, 16), all)"), HasSubstr("when(index == 0")));
  }
}

}  // namespace
}  // namespace tilewright::compiler
