#include "compiler/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "compiler/claims.h"
#include "passes/allocate_shared.h"
#include "schedules/schedule.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::compiler {
namespace {

class Stopwatch {
 public:
  double milliseconds() const {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    return std::chrono::duration<double, std::milli>(elapsed).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

std::int64_t bytes_of(const ir::Kernel& kernel, const ir::Operation& operation) {
  if (operation.op == ir::Op::mbarriers) {
    return target::target_of(kernel).limits.barrier_bytes *
           kernel.type(operation.results[0]).elements();
  }
  return operation.attributes.shared_layout().size_bytes() *
         operation.attributes.integer(ir::Key::stages);
}

std::vector<SharedUse> shared_use(const ir::Kernel& kernel) {
  std::vector<SharedUse> uses;
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    const bool is_tile = operation.op == ir::Op::shared;
    if (!is_tile && operation.op != ir::Op::mbarriers) return;
    if (operation.attributes.has(ir::Key::scratch)) return;
    uses.push_back(
        {operation.attributes.text(ir::Key::name), bytes_of(kernel, operation), operation.where});
  });
  // Those of a role lie in one place.
  std::map<std::int64_t, SharedUse> conversions;
  for (const Converted& conversion : conversions_in(kernel)) {
    SharedUse& use = conversions[conversion.place];
    if (conversion.bytes > use.bytes) use = {"conversions", conversion.bytes, conversion.where};
  }
  for (const auto& [place, use] : conversions) uses.push_back(use);
  return uses;
}

std::vector<Converted> conversions_in(const ir::Kernel& kernel) {
  std::vector<Converted> found;
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    if (operation.op != ir::Op::shared || !operation.attributes.has(ir::Key::scratch)) return;
    found.push_back({operation.attributes.integer(ir::Key::scratch), bytes_of(kernel, operation),
                     operation.where});
  });
  return found;
}

ir::Kernel lower(const ir::Kernel& kernel, passes::Rewrites& rewrites,
                 const StageObserver& observer) {
  std::set<std::string, std::less<>> seen;
  const auto record = [&](std::string_view name, const ir::Kernel& after, double milliseconds,
                          bool changed) {
    if (!observer) return;
    // What the tile form went through is run again on the schedule that was made of it.
    const bool first = seen.emplace(name).second;
    observer({std::string(name) + (first ? "" : "_scheduled"), milliseconds, changed}, after);
  };
  ir::Kernel machine = kernel;
  if (kernel.form == ir::Form::tile) {
    passes::prepare_for_schedule(machine, ir::kDefaultTarget, record, rewrites);
  }
  const ir::Kernel prepared = machine;
  const auto schedule = [&](std::int64_t reserved) {
    if (kernel.form == ir::Form::tile) {
      const Stopwatch stopwatch;
      machine = schedules::schedule_for_target(prepared, reserved);
      machine.claims = kernel.claims;
      machine.tile_grid = kernel.grid;
      record("schedule", machine, stopwatch.milliseconds(), true);
    }
    rewrites.convert_layouts = kernel.form == ir::Form::tile;
    passes::lower_to_machine(machine, record, rewrites);
  };
  // Conversions show when layouts are assigned: where they find no room, the schedule takes less.
  try {
    schedule(0);
  } catch (const passes::SharedMemoryExceeded& exceeded) {
    if (exceeded.conversions == 0) throw;
    schedule(exceeded.conversions);
  }
  return machine;
}

GpuProgram translate(const ir::Kernel& kernel, passes::Rewrites& rewrites,
                     const StageObserver& observer) {
  GpuProgram program;
  program.machine = lower(kernel, rewrites, observer);
  const Stopwatch stopwatch;
  program.source = codegen::print(program.machine);
  if (observer) observer({"print_cuda", stopwatch.milliseconds(), true}, program.machine);
  return program;
}

GpuProgram translate(const ir::Kernel& kernel) {
  passes::Rewrites rewrites;
  return translate(kernel, rewrites);
}

std::string build_name(const GpuProgram& program, const std::string& arch) {
  return fmt::format("{} for {}", program.source.entry, arch);
}

runtime::ResourcePolicy resource_policy(const ir::Kernel& traced, bool allow_stack_frame) {
  return {allow_stack_frame || traced.form == ir::Form::tile};
}

runtime::Build build(const GpuProgram& program, const std::string& arch) {
  runtime::CompileRequest request;
  request.name = program.source.entry;
  request.source = program.source.text;
  request.arch = arch;
  // The machine form says itself where a product and a sum round once.
  request.options = {"--std=c++17", "--fmad=false"};
  request.where = program.machine.where;
  return runtime::build_cubin(request, {.allow_stack_frame = true});
}

std::optional<std::string> why_not_overlapped(const GpuProgram& program,
                                              const passes::Rewrites& rewrites,
                                              const std::string& arch) {
  const auto applied = rewrites.applied.find("overlap_products");
  if (applied == rewrites.applied.end() || applied->second == 0) return std::nullopt;
  constexpr const char* kWithout = "products do not overlap with what their operands are made of: ";
  try {
    const runtime::Build result = build(program, arch);
    const auto* resources = result.kernel.report.find(program.source.entry);
    if (!resources || (resources->stack_bytes <= 0 && resources->spill_bytes() <= 0)) {
      return std::nullopt;
    }
    return fmt::format("{}a stack frame of {} bytes, {} bytes of registers spilled", kWithout,
                       resources->stack_bytes, std::max(resources->spill_bytes(), 0));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) return std::nullopt;
    return kWithout + error.message();
  }
}

runtime::Build assemble(const GpuProgram& program, const std::string& arch,
                        const runtime::ResourcePolicy& policy) {
  enforce_claims(program.machine, nullptr);
  runtime::Build result = build(program, arch);
  // Before the policy: the author's own line says more than the kernel's.
  enforce_claims(program.machine, result.kernel.report.find(program.source.entry));
  runtime::check_report(result.kernel.report, policy, build_name(program, arch),
                        program.machine.where);
  return result;
}

BuiltKernel build_kernel(const ir::Kernel& traced, const std::string& arch,
                         const Numerics& numerics, bool allow_stack_frame) {
  passes::Rewrites rewrites{numerics, {}};
  BuiltKernel built{translate(traced, rewrites), {}};
  if (why_not_overlapped(built.program, rewrites, arch)) {
    rewrites.overlap_products = false;
    built.program = translate(traced, rewrites);
  }
  built.build = assemble(built.program, arch, resource_policy(traced, allow_stack_frame));
  return built;
}

}  // namespace tilewright::compiler
