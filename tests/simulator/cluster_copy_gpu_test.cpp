#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/device_tensors.h"
#include "kernels/gpu.h"
#include "simulator/cluster_copy_kernel.h"
#include "tilewright/compile.h"

// Copies between the CTAs of a cluster on hardware.
namespace tilewright {
namespace {

class ClusterCopyOnTheGpu : public test::HopperTest {};

TEST_F(ClusterCopyOnTheGpu, BringsThePeersTiles) {
  const std::vector<std::int64_t> shape{kPairedCtas * kTurns * kExchangedRows, kExchangedColumns};
  const HostTensor X = HostTensor::random_normal(bf16, shape, 1);
  const Executable executable = compile(exchange(), "cuda");
  for (int launch = 0; launch < 20; ++launch) {
    HostTensor Y = HostTensor::poisoned(bf16, shape);
    std::vector<runtime::DeviceBuffer> buffers;
    std::vector<TensorRef> refs;
    for (const HostTensor* tensor : {&X, static_cast<const HostTensor*>(&Y)}) {
      const std::size_t bytes = static_cast<std::size_t>(tensor->elements() * size_of(bf16));
      buffers.emplace_back(device(), bytes, "tensor");
      buffers.back().upload(tensor->data(), bytes, stream());
      refs.push_back({buffers.back().data(), bf16, tensor->shape(), tensor->strides()});
    }
    executable.run(refs, {}, stream().handle());
    buffers[1].download(Y.data(), buffers[1].size(), stream());
    stream().synchronize();
    expect_exchanged(X, Y);
  }
}

}  // namespace
}  // namespace tilewright
