#include "driver/library_build.h"

#include <fmt/format.h>

#include "support/diagnostic.h"

namespace tilewright::driver {

Kernel trace_entry(const LibraryKernel& kernel, const OptionValues& options, const Target& target) {
  const std::string& arch = target.arch;
  const LibrarySchedule* schedule = select_schedule(kernel, options, arch);
  // On a GPU the tile-level definition gets the automatic schedule.
  if (schedule == nullptr) return kernel.build(options);
  if (schedule->target == arch) return schedule->build(options);

  std::string fit = "tile";
  for (const LibrarySchedule& other : kernel.schedules) {
    if (other.target == arch) fit += ", " + other.name;
  }
  Diagnostic({}, fmt::format("{}: schedule {} is for {}, and the target is {}", kernel.name,
                             schedule->name, schedule->target, target.name))
      .fix(fmt::format("set schedule to one of: {}", fit))
      .raise();
}

Executable compile_entry(const LibraryKernel& entry, const OptionValues& options,
                         std::string_view target, const CompileOptions& how) {
  return compile(trace_entry(entry, options, parse_target(target, how.device)), target, how);
}

}  // namespace tilewright::driver
