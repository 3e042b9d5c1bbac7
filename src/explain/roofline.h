#pragma once

#include <string_view>
#include <vector>

#include "target/devices.h"
#include "tilewright/dtype.h"
#include "tilewright/library.h"

// Where a problem stands between what a GPU can compute and what its memory can bring.
namespace tilewright::explanations {

// What one launch has to do at least: its arithmetic, and each tensor through memory once.
struct Work {
  double flops = 0;
  double bytes = 0;
  DType dtype = DType::bf16;  // of the products

  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};
Work work_of(const LibraryKernel& kernel, const OptionValues& options);

struct RooflinePoint {
  const target::Device* device = nullptr;
  double ridge = 0;  // FLOPs a byte, from which arithmetic is the limit
  bool memory_bound = false;
  double flops_per_second = 0;  // the most that the device allows at this intensity
  double seconds = 0;           // the least that it needs
};
// On the devices of the target; on those of the default one where the target is no GPU.
std::vector<RooflinePoint> roofline(const Work& work, std::string_view target);

}  // namespace tilewright::explanations
