#pragma once

#include <string>
#include <vector>

#include "tilewright/error.h"

// How the GPUs that this process sees reach each other, and how fast. Their numbers are those of
// the process, whatever CUDA_VISIBLE_DEVICES is.
namespace tilewright {

// From one GPU to another.
struct GpuLink {
  enum class Path { same, nvlink, pcie, unknown };
  Path path = Path::unknown;
  // As `nvidia-smi topo` has it: "X" the same GPU, "NV18" so many links of NVLink, "NV" NVLink of
  // which nothing more is known; PCIe by way of one switch "PIX", of several "PXB", of a CPU "PHB",
  // of several bridges of one "NODE", of several CPUs "SYS"; "?" for what nobody says.
  std::string name = "?";
  int nvlinks = 0;  // that carry it; 0 also where that is not known
  // Kernels and copies of the one GPU reach the other's memory; and its atomics do.
  bool reaches = false, has_atomics = false;
  // Of data each way, by what the links are built for; 0 where nobody says. Copies reach less.
  double bytes_per_second = 0;
};

struct GpuPlace {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-5c4b1d9e-..."
  std::string pci;   // "00000000:1b:00.0"
};

// What can be asked of all of them.
class Topology {
 public:
  // "NVML 580.65.06", or "the driver's peer attributes" where NVML does not say: `why_not_nvml`
  // then has the reason. NVLink is then taken for what has atomics, and no rate is known.
  std::string source, why_not_nvml;
  std::vector<GpuPlace> gpus;
  std::vector<std::vector<GpuLink>> links;  // from each GPU to each

  // Error(usage) for a number that no GPU has.
  const GpuLink& link(int from, int to) const;
  // The other GPUs, those first to which this one is faster; equal ones from the next number on, so
  // that GPUs that all follow their orders do not meet at one.
  std::vector<int> nearest(int from) const;
  // All GPUs, from 0 on, so that the slowest step from one to the next, and from the last back to
  // the first, is as fast as it can be. Of equal rings the one whose numbers come first.
  std::vector<int> ring() const;
};

// Found at the first call and kept until the process ends. Safe from any thread. No context is
// made on any GPU. Error(unavailable) without a driver; nothing is in it without a GPU.
const Topology& topology();

}  // namespace tilewright
