#pragma once

#include <string>

#include "tilewright/topology.h"

namespace tilewright::runtime {

// What topology() finds and keeps. Never throws because NVML is missing.
Topology find_topology();

// "by NVLink, 18 links", "by PCIe across CPUs (SYS)".
std::string path_text(const GpuLink& link);

}  // namespace tilewright::runtime
