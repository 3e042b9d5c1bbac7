#include "explain/roofline.h"

#include <algorithm>

namespace tilewright::explanations {

const std::vector<DeviceModel>& device_models() {
  static const std::vector<DeviceModel> models = {
      {"H200 SXM", 4.8e12, 989.4e12, 1978.9e12, 66.9e12, "NVIDIA H200 data sheet"},
      {"H100 SXM", 3.35e12, 989.4e12, 1978.9e12, 66.9e12, "NVIDIA H100 data sheet"},
  };
  return models;
}

double DeviceModel::flops(DType dtype) const {
  switch (size_of(dtype)) {
    case 1:
      return quarter_flops;
    case 2:
      return half_flops;
    default:
      return single_flops;
  }
}

Work work_of(const LibraryKernel& kernel, const OptionValues& options) {
  Work work;
  work.flops = kernel.floating_operations(options, {});
  work.dtype = dtype_of(kernel.tensors.at(0), options);
  for (std::size_t i = 0; i < tensor_count(kernel, options); ++i) {
    const LibraryTensor& tensor = kernel.tensors[i];
    double bytes = size_of(dtype_of(tensor, options));
    for (const std::int64_t size : shape_of(tensor, options)) bytes *= static_cast<double>(size);
    work.bytes += bytes;
  }
  return work;
}

std::vector<RooflinePoint> roofline(const Work& work) {
  std::vector<RooflinePoint> points;
  for (const DeviceModel& device : device_models()) {
    const double peak = device.flops(work.dtype);
    RooflinePoint point;
    point.device = &device;
    point.ridge = peak / device.bytes_per_second;
    point.memory_bound = work.intensity() < point.ridge;
    point.flops_per_second = std::min(peak, work.intensity() * device.bytes_per_second);
    point.seconds = std::max(work.flops / peak, work.bytes / device.bytes_per_second);
    points.push_back(point);
  }
  return points;
}

}  // namespace tilewright::explanations
