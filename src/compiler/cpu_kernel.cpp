#include "compiler/cpu_kernel.h"

#include "ir/schedule.h"
#include "support/diagnostic.h"

namespace tilewright::compiler {

void require_tile_form(const ir::Kernel& kernel) {
  if (kernel.form == ir::Form::tile) return;
  Diagnostic(kernel.where, "kernel " + kernel.name +
                               " is written at the explicit level, and the interpreter and the "
                               "target cpu run the tile level")
      .fix("run the tile-level kernel that it implements, or simulate this one")
      .raise();
}

std::shared_ptr<const cpu::CompiledKernel> compile_for_cpu(const ir::Kernel& traced,
                                                           const CpuOptions& options) {
  require_tile_form(traced);
  for (const ir::StatedField& field : ir::stated_fields(options.schedule)) {
    Diagnostic(field.where, "schedule: " + field.name + " = " + field.value +
                                ": the target cpu has no fields of a schedule")
        .token(field.name)
        .fix(
            "leave it out here, or state it with the kernel (Kernel::schedule), for the targets "
            "that have it")
        .raise();
  }
  ir::Kernel kernel = traced;
  passes::Rewrites rewrites;
  rewrites.allowed = options.numerics;
  passes::prepare_for_schedule(kernel, "cpu", options.observer, rewrites);
  if (options.applied) *options.applied = std::move(rewrites.applied);
  return std::make_shared<const cpu::CompiledKernel>(kernel, options.numerics, options.kernels);
}

}  // namespace tilewright::compiler
