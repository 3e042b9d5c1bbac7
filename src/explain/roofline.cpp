#include "explain/roofline.h"

#include <algorithm>

#include "ir/ir.h"

namespace tilewright::explanations {

Work work_of(const LibraryKernel& kernel, const OptionValues& options) {
  Work work;
  work.flops = kernel.floating_operations(options, {});
  work.dtype = dtype_of(kernel.tensors.at(0), options);
  for (const LibraryTensor* tensor : tensors_of(kernel, options)) {
    double bytes = size_of(dtype_of(*tensor, options));
    for (const std::int64_t size : shape_of(*tensor, options)) bytes *= static_cast<double>(size);
    work.bytes += bytes;
  }
  return work;
}

std::vector<RooflinePoint> roofline(const Work& work, std::string_view target) {
  std::vector<const target::Device*> devices = target::devices_of(target);
  if (devices.empty()) devices = target::devices_of(ir::default_target());
  std::vector<RooflinePoint> points;
  for (const target::Device* device : devices) {
    const double peak = device->flops(work.dtype);
    RooflinePoint point;
    point.device = device;
    point.ridge = peak / device->memory_bytes;
    point.memory_bound = work.intensity() < point.ridge;
    point.flops_per_second = std::min(peak, work.intensity() * device->memory_bytes);
    point.seconds = std::max(work.flops / peak, work.bytes / device->memory_bytes);
    points.push_back(point);
  }
  return points;
}

}  // namespace tilewright::explanations
