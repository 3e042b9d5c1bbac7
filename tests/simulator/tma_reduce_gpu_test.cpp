#include <limits>

#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/device_tensors.h"
#include "kernels/gpu.h"
#include "simulator/tma_reduce_kernel.h"
#include "tilewright/compile.h"

// TMA's reductions on hardware give what the simulated GPU gives, NaN included.
namespace tilewright {
namespace {

class TmaReduceOnTheGpu : public test::HopperTest {
 protected:
  // Y after a launch.
  HostTensor reduced(const ReductionCase& each, HostTensor X, HostTensor Y) {
    const Executable executable = compile(accumulate(each.dtype, each.how, each.columns), "cuda");
    HostTensor D = HostTensor::poisoned(each.dtype, X.shape());
    std::vector<runtime::DeviceBuffer> buffers;
    std::vector<TensorRef> refs;
    for (HostTensor* tensor : {&X, &Y, &D}) {
      const std::size_t bytes = static_cast<std::size_t>(tensor->elements() * size_of(each.dtype));
      buffers.emplace_back(device(), bytes, "tensor");
      buffers.back().upload(tensor->data(), bytes, stream());
      refs.push_back({buffers.back().data(), each.dtype, tensor->shape(), tensor->strides()});
    }
    executable.run(refs, {}, stream().handle());
    buffers[1].download(Y.data(), buffers[1].size(), stream());
    stream().synchronize();
    return Y;
  }
};

TEST_F(TmaReduceOnTheGpu, CombinesWhatAllCtasBring) {
  for (const ReductionCase& each : reduction_cases()) {
    SCOPED_TRACE(std::string(name_of(each.dtype)) + " " + std::to_string(each.columns));
    const HostTensor X = numbers(each.dtype, {kCtas * kRows, each.columns}, 1);
    const HostTensor before = numbers(each.dtype, {kRows, each.columns}, 2);
    for (int launch = 0; launch < 5; ++launch)
      expect_reduced(X, before, reduced(each, X, before), each);
  }
}

TEST_F(TmaReduceOnTheGpu, PassesNaNOver) {
  const ReductionCase each{bf16, Reduction::max, kColumns, 0};
  HostTensor X = numbers(bf16, {kCtas * kRows, kColumns}, 1),
             before = numbers(bf16, {kRows, kColumns}, 2);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  X.set({kRows + 3, 5}, kNaN);
  before.set({7, 9}, kNaN);
  const HostTensor Y = reduced(each, X, before);
  expect_reduced(X, before, Y, each);
  EXPECT_FALSE(std::isnan(Y.at({3, 5})));
  EXPECT_FALSE(std::isnan(Y.at({7, 9})));
}

}  // namespace
}  // namespace tilewright
