#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/device_tensors.h"
#include "tilewright/tensor_ref.h"

namespace tilewright::library {

// Queues one launch on the tensors' stream; on the host it is done at return.
using Launch = std::function<void(const std::vector<TensorRef>&)>;

// Seconds of runs of one kernel, ascending.
struct Timing {
  std::vector<double> seconds;
  double median() const { return seconds[seconds.size() / 2]; }
};

// At least three runs, and more while they take less than a second together. They work on copies of
// the tensors, which begin with a line of the caches.
Timing time_on_host(const Launch& launch, std::vector<HostTensor>& tensors);

// The same for several kernels of one problem, which take turns: what changes the GPU's clock meets
// them all. Each is measured `rounds` times.
std::vector<Timing> time_in_turn(const std::vector<Launch>& launches,
                                 const compiler::DeviceTensors& tensors, std::int64_t rounds);

// By the GPU's own clock, each run with a cold L2 cache, after some that do not count.
Timing time_on_gpu(const Launch& launch, const compiler::DeviceTensors& tensors);

}  // namespace tilewright::library
