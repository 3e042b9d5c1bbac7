#include "runtime/doctor.h"

#include <fmt/format.h>

#include <cstdlib>

#include "runtime/build_cache.h"
#include "runtime/cuda_api.h"
#include "runtime/nvml.h"
#include "runtime/nvrtc.h"
#include "runtime/process.h"
#include "runtime/topology.h"
#include "support/file.h"
#include "support/parallel.h"
#include "tilewright/error.h"

namespace tilewright::runtime {
namespace {

CpuInfo examine_cpu() {
  CpuInfo cpu;
  cpu.threads = static_cast<int>(thread_count(0));
  const std::string facts = try_read_text("/proc/cpuinfo").value_or("");
  for (const std::string_view line : lines_of(facts)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      cpu.name = line.substr(colon + 2);
      break;
    }
  }
  if (cpu.name.empty()) cpu.name = "unknown";
#if defined(__x86_64__)
  __builtin_cpu_init();
  const auto note = [&](bool present, const char* name) {
    if (present) cpu.features.emplace_back(name);
  };
  note(__builtin_cpu_supports("avx2"), "avx2");
  note(__builtin_cpu_supports("fma"), "fma");
  note(__builtin_cpu_supports("avx512f"), "avx512f");
  note(__builtin_cpu_supports("avx512bw"), "avx512bw");
  note(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
#elif defined(__aarch64__)
  cpu.features.emplace_back("neon");
#endif
  return cpu;
}

struct CompilerRequirement {
  const char* name;
  int major;
};
constexpr CompilerRequirement kCompilers[] = {{"g++", 12}, {"clang++", 14}};

// "12.2.0" of "g++ (Debian 12.2.0-14) 12.2.0" and of "Debian clang version 12.2.0".
std::string version_of(std::string_view line) {
  const std::string_view mark = "version ";
  const size_t at = line.find(mark);
  const size_t blank = line.rfind(' ');
  if (at != std::string_view::npos) {
    line.remove_prefix(at + mark.size());
  } else if (blank != std::string_view::npos) {
    line.remove_prefix(blank + 1);
  }
  return std::string(line.substr(0, line.find(' ')));
}

void examine_compilers(DoctorReport& report) {
  bool usable = false;
  std::string found;
  for (const CompilerRequirement& wanted : kCompilers) {
    const auto path = find_program(wanted.name);
    if (!path) continue;
    try {
      const ProcessResult answer = run_process({*path, "--version"}, std::chrono::seconds(10));
      if (answer.status != 0) continue;
      const std::string version = version_of(answer.output.substr(0, answer.output.find('\n')));
      report.compilers.push_back({wanted.name, *path, version});
      found += fmt::format("; {} is {} {}", *path, wanted.name, version);
      usable = usable || std::atoi(version.c_str()) >= wanted.major;
    } catch (const Error&) {
      // One that does not start is as good as none.
    }
  }
  if (!usable) {
    report.missing.push_back({"a C++20 compiler (g++ 12 or clang++ 14, or newer)" + found,
                              "writing kernels of your own", "apt install g++-12"});
  }
}

// An Error's message without its fix, and the fix alone.
MissingPart missing_part(const Error& error, std::string needed_for) {
  MissingPart part;
  part.what = error.message();
  part.needed_for = std::move(needed_for);
  const std::string text = error.what();
  const std::string_view mark = "fix: ";
  if (const size_t at = text.find(mark); at != std::string::npos) {
    part.how_to_get_it = text.substr(at + mark.size());
  }
  return part;
}

void examine_nvrtc(DoctorReport& report) {
  try {
    const Nvrtc& compiler = Nvrtc::get();
    report.nvrtc = NvrtcInfo{compiler.path(), compiler.version()};
    compiler.require_arch("sm_90a");
    compiler.require_arch("sm_100a");
  } catch (const Error& error) {
    report.missing.push_back(missing_part(error, "building kernels for NVIDIA GPUs"));
  }
}

std::optional<std::string> kernel_module_version() {
  const std::string module = try_read_text("/sys/module/nvidia/version").value_or("");
  const std::string version(module.substr(0, module.find_first_of(" \n")));
  if (!version.empty()) return version;
  // Containers often hide /sys/module: NVML asks the module itself.
  std::string why;
  const std::optional<Nvml> nvml = Nvml::open(&why);
  return nvml ? nvml->driver_version() : std::nullopt;
}

void examine_gpus(DoctorReport& report) {
  try {
    report.driver_version = kernel_module_version();
    report.driver_cuda_version = cuda_version_text(cuda_driver().version);
    const int count = Device::count();
    if (count == 0) Device::get(0);  // its error says what to do
    for (int i = 0; i < count; ++i) report.gpus.push_back(Device::get(i).info());
    report.topology = find_topology();
  } catch (const Error& error) {
    report.missing.push_back(missing_part(error, "running kernels on an NVIDIA GPU"));
  }
}

}  // namespace

DoctorReport examine_machine() {
  DoctorReport report;
  report.cpu = examine_cpu();
  examine_compilers(report);
  examine_nvrtc(report);
  examine_gpus(report);
  const BuildCache cache(BuildCache::default_folder());
  report.cache_folder = cache.folder().string();
  report.cache_unusable = cache.state().unusable;
  return report;
}

}  // namespace tilewright::runtime
