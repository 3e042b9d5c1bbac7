#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tilewright/topology.h"

namespace tilewright::runtime {

struct CpuInfo {
  std::string name;
  int threads = 0;
  std::vector<std::string> features;  // the vector extensions that the CPU target may use
};

struct CompilerInfo {
  std::string name;  // "g++"
  std::string path;
  std::string version;
};

struct NvrtcInfo {
  std::string path;
  std::string version;
};

struct MissingPart {
  std::string what;
  std::string needed_for;
  std::string how_to_get_it;
};

// What this machine has for Tilewright's targets, and what it lacks.
struct DoctorReport {
  CpuInfo cpu;
  std::vector<CompilerInfo> compilers;
  std::vector<DeviceInfo> gpus;
  Topology topology;  // of these
  std::optional<NvrtcInfo> nvrtc;
  std::optional<std::string> driver_version;       // of the kernel module: "580.65.06"
  std::optional<std::string> driver_cuda_version;  // the newest CUDA that the driver runs: "13.0"
  std::string cache_folder;                        // empty: there is none
  std::string cache_unusable;                      // why nothing is kept; empty: it is
  std::vector<MissingPart> missing;
};

// Never throws because something is missing.
DoctorReport examine_machine();

}  // namespace tilewright::runtime
