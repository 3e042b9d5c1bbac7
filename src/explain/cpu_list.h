#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/compiled.h"
#include "cpu/listing.h"
#include "cpu/peaks.h"
#include "explain/roofline.h"

// What a kernel becomes on the target cpu: its list of operations on whole tiles.
namespace tilewright::explanations {

struct CpuList {
  std::shared_ptr<const cpu::CompiledKernel> compiled;
  std::vector<cpu::ListedOperation> operations;
  // Of some blocks of a launch on one thread; none: nothing was run.
  std::optional<cpu::Measurement> measurement;
  std::optional<cpu::Peaks> peaks;  // of this machine
};
CpuList list_for_cpu(std::shared_ptr<const cpu::CompiledKernel> compiled);

// Runs blocks of the launch, and what this machine reaches, for some tenth of a second. The tensors
// that the kernel writes then hold anything.
void measure(CpuList& list, const Arguments& arguments);

// Seconds of all operations together, without what loops and conditions take themselves; 0: nothing
// was run.
double seconds_of(const CpuList& list);

// What is slow and why, with lines and, where it was measured, its share of the time.
std::vector<std::string> slow_parts(const CpuList& list);

// The least that this machine needs for such work.
struct CpuRoofline {
  double ridge = 0;  // FLOPs a byte, from which arithmetic is the limit
  bool memory_bound = false;
  double flops_per_second = 0, seconds = 0;
};
CpuRoofline roofline(const cpu::Peaks& peaks, const Work& work);

// The list, a line for each operation, and what else is above.
std::string text_of(const CpuList& list, const std::optional<Work>& work);

}  // namespace tilewright::explanations
