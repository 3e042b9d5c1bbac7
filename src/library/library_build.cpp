#include "library/library_build.h"

namespace tilewright::library {

Kernel trace_entry(const LibraryKernel& kernel, const OptionValues& options,
                   const compiler::Target& target) {
  return build_choice(kernel, choose_schedule(kernel, options, target.scheduled_for()));
}

}  // namespace tilewright::library
