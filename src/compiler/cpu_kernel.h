#pragma once

#include <memory>

#include "compiler/compile_to_machine.h"
#include "cpu/compiled.h"
#include "passes/pipeline.h"

namespace tilewright::compiler {

struct CpuOptions {
  Numerics numerics = {};
  Schedule schedule = {};  // a field is an error: there is nothing that it could change
  const cpu::Kernels* kernels = nullptr;  // of an instruction set; null: this machine's
  passes::PassObserver observer = {};
  std::map<std::string, int>* applied = nullptr;  // how often each rewrite was, by the pass's name
};

// A traced kernel of the tile level for this processor. One of the explicit level is a usage error,
// and so is what the CPU does not know.
std::shared_ptr<const cpu::CompiledKernel> compile_for_cpu(const ir::Kernel& traced,
                                                           const CpuOptions& options = {});

// A usage error at the kernel's line for one that is written at the explicit level.
void require_tile_form(const ir::Kernel& kernel);

}  // namespace tilewright::compiler
