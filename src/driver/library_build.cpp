#include "driver/library_build.h"

#include <fmt/format.h>

#include "support/diagnostic.h"

namespace tilewright::driver {

Kernel trace_entry(const LibraryKernel& kernel, const OptionValues& options, const Target& target) {
  const std::string& arch = target.arch;
  const LibrarySchedule* schedule = select_schedule(kernel, options, arch);
  const bool is_compiled = !arch.empty();
  if (schedule == nullptr && !is_compiled) return kernel.build(options);
  if (schedule != nullptr && schedule->target == arch) return schedule->build(options);

  std::string fit = is_compiled ? "" : "tile";
  for (const LibrarySchedule& other : kernel.schedules) {
    if (other.target == arch) fit += (fit.empty() ? "" : ", ") + other.name;
  }
  if (schedule == nullptr) {
    Diagnostic({},
               fmt::format("{}: the tile-level definition is not compiled for {} in this version",
                           kernel.name, target.name))
        .fix(fit.empty() ? "use --target interpreter"
                         : fmt::format("leave schedule out, or set it to one of: {}", fit))
        .raise();
  }
  Diagnostic({}, fmt::format("{}: schedule {} is for {}, and the target is {}", kernel.name,
                             schedule->name, schedule->target, target.name))
      .fix(fmt::format("set schedule to one of: {}", fit))
      .raise();
}

Executable compile_entry(const LibraryKernel& entry, const OptionValues& options,
                         std::string_view target, int device) {
  CompileOptions how;
  how.device = device;
  return compile(trace_entry(entry, options, parse_target(target, device)), target, how);
}

}  // namespace tilewright::driver
