#include "driver/library_build.h"

namespace tilewright::driver {

Kernel trace_entry(const LibraryKernel& kernel, const OptionValues& options, const Target& target) {
  return build_choice(kernel, choose_schedule(kernel, options, target.arch));
}

}  // namespace tilewright::driver
