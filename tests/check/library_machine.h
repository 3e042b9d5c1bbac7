#pragma once

#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "library/library_build.h"

namespace tilewright::test {

// A kernel of the library as sm_90a gets it.
inline ir::Kernel machine_of(const LibraryKernel& entry, const std::vector<std::string>& settings) {
  const compiler::Target target = compiler::parse_target("sm_90a");
  return compiler::compile_to_machine(
             library::trace_entry(entry, resolve_options(entry, settings), target).finish(),
             ir::default_target())
      .kernel;
}

}  // namespace tilewright::test
