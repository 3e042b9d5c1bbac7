#pragma once

#include <functional>
#include <vector>

#include "driver/device_tensors.h"
#include "tilewright/compile.h"

namespace tilewright::driver {

// Queues one launch on the tensors' stream; on the host it is done at return.
using Launch = std::function<void(const std::vector<TensorRef>&)>;

// Seconds of runs of one kernel, ascending.
struct Timing {
  std::vector<double> seconds;
  double median() const { return seconds[seconds.size() / 2]; }
};

// At least three runs, and more while they take less than a second together.
Timing time_on_host(const Launch& launch, std::vector<HostTensor>& tensors);

// By the GPU's own clock, each run with a cold L2 cache, after some that do not count.
Timing time_on_gpu(const Launch& launch, const DeviceTensors& tensors);

}  // namespace tilewright::driver
