#pragma once

#include <vector>

#include "driver/device_tensors.h"
#include "tilewright/compile.h"

namespace tilewright::driver {

// Seconds of runs of one kernel, ascending.
struct Timing {
  std::vector<double> seconds;
  double median() const { return seconds[seconds.size() / 2]; }
};

// At least three runs, and more while they take less than a second together.
Timing time_on_host(const Executable& executable, std::vector<HostTensor>& tensors);

// By the GPU's own clock, each run with a cold L2 cache, after some that do not count.
Timing time_on_gpu(const Executable& executable, const DeviceTensors& tensors);

}  // namespace tilewright::driver
