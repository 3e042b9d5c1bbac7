#include "compiler/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "codegen/cuda/delays.h"
#include "compiler/claims.h"
#include "compiler/stopwatch.h"
#include "support/diagnostic.h"
#include "support/messages.h"
#include "target/target.h"

namespace tilewright::compiler {
namespace {

// Why the form needs more registers than there are; nothing where the assembler builds it without
// a stack frame.
std::optional<std::string> why_refused(const GpuProgram& program, const std::string& arch,
                                       bool afresh) {
  try {
    const runtime::Build result = build(program, arch, afresh);
    const auto* resources = result.kernel.report.find(program.source.entry);
    if (!resources || (resources->stack_bytes <= 0 && resources->spill_bytes() <= 0)) {
      return std::nullopt;
    }
    return fmt::format("a stack frame of {} bytes, {} bytes of registers spilled",
                       resources->stack_bytes, std::max(resources->spill_bytes(), 0));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return error.message();
  }
}

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

GpuProgram print(MachineForm form) {
  GpuProgram program;
  program.source = codegen::print(form.kernel);
  program.machine = std::move(form.kernel);
  program.applied = std::move(form.applied);
  program.decisions = std::move(form.decisions);
  program.schedule = std::move(form.schedule);
  program.otherwise = std::move(form.otherwise);
  program.checked = form.checked;
  return program;
}

GpuProgram translate(const ir::Kernel& kernel, std::string_view target,
                     const MachineOptions& options, const StageObserver& observer) {
  MachineForm form = compile_to_machine(kernel, target, options, observer);
  const Stopwatch stopwatch;
  GpuProgram program = print(std::move(form));
  program.repeated_stores = analysis::repeated_stores(kernel);
  if (observer) observer({"print_cuda", stopwatch.milliseconds(), true}, program.machine);
  return program;
}

GpuProgram choose_form(const ir::Kernel& kernel, std::string_view target, MachineOptions options,
                       const StageObserver& observer, const std::function<void()>& restart,
                       bool afresh) {
  std::vector<Decision> refused;
  for (;;) {
    GpuProgram program = translate(kernel, target, options, observer);
    program.decisions.insert(program.decisions.begin(), refused.begin(), refused.end());
    if (!program.otherwise) return program;
    std::optional<std::string> why;
    try {
      why = why_refused(program, std::string(target), afresh);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      program.decisions.push_back(
          {"products that overlap may be taken apart again where the kernel is assembled",
           "only an assembler knows whether there are registers for them: " + error.message(),
           true});
      return program;
    }
    if (!why) return program;
    refused.push_back({"products do not overlap with what their operands are made of", *why, true});
    options = *program.otherwise;
    if (restart) restart();
  }
}

std::string build_name(const GpuProgram& program, const std::string& arch) {
  return fmt::format("{} for {}", program.source.entry, arch);
}

runtime::ResourcePolicy resource_policy(const ir::Kernel& traced, bool allow_stack_frame) {
  return {allow_stack_frame || traced.form == ir::Form::tile};
}

std::optional<std::uint64_t> delays_seed() {
  const char* const text = std::getenv("TILEWRIGHT_DELAYS");
  if (text == nullptr || *text == 0) return {};
  std::uint64_t seed = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, seed);
  if (error == std::errc() && rest == end) return seed;
  Diagnostic({}, fmt::format("TILEWRIGHT_DELAYS is \"{}\"", text))
      .fix("a number from which delays are drawn, such as 1; or leave it unset")
      .raise();
}

namespace {

runtime::CompileRequest request_of(const GpuProgram& program, const std::string& arch) {
  runtime::CompileRequest request;
  request.name = program.source.entry;
  request.source = program.source.text;
  request.arch = arch;
  // The machine form says itself where a product and a sum round once.
  request.options = {"--std=c++17", "--fmad=false"};
  request.where = program.machine.where;
  return request;
}

}  // namespace

runtime::Build build(const GpuProgram& program, const std::string& arch, bool afresh) {
  runtime::CompileRequest request = request_of(program, arch);
  request.afresh = afresh;
  return runtime::build_cubin(request,
                              {.allow_stack_frame = true, .allow_serialized = program.checked});
}

std::string build_ptx(const GpuProgram& program, const std::string& arch) {
  return runtime::build_ptx(request_of(program, arch));
}

runtime::Build assemble(const GpuProgram& program, const std::string& arch,
                        const runtime::ResourcePolicy& policy, bool afresh) {
  if (program.checked) return build(program, arch, afresh);
  enforce_claims(program.machine, nullptr);
  runtime::Build result = build(program, arch, afresh);
  // Before the policy: the author's own line says more than the kernel's.
  enforce_claims(program.machine, result.kernel.report.find(program.source.entry));
  runtime::check_report(result.kernel.report, policy, build_name(program, arch),
                        program.machine.where);
  return result;
}

namespace {

// As assemble, but that a stack frame is no reason not to run: who claims that there is none is
// told.
runtime::Build assemble_with_stack_frame(const GpuProgram& program, const std::string& arch,
                                         const runtime::ResourcePolicy& policy, bool afresh) {
  runtime::Build result = build(program, arch, afresh);
  if (program.checked) return result;
  const auto* resources = result.kernel.report.find(program.source.entry);
  for (const CheckedClaim& checked : check_claims(program.machine, resources)) {
    if (checked.holds()) continue;
    const Diagnostic broken = diagnostic_of(checked, program.machine);
    const Claim::Figure figure = checked.claim.figure;
    if (figure != Claim::Figure::stack_bytes && figure != Claim::Figure::spill_bytes) {
      broken.raise();
    }
    const std::string text = broken.render();
    constexpr std::string_view kError = "error: ";
    const std::size_t at = text.find(kError);
    say(Message::warning, text.substr(0, at) + "warning: " + text.substr(at + kError.size()) +
                              "\nIt runs all the same, and may be slower.");
  }
  runtime::check_report(result.kernel.report, policy, build_name(program, arch),
                        program.machine.where);
  return result;
}

}  // namespace

BuiltKernel build_kernel(const ir::Kernel& traced, const std::string& arch,
                         const BuildOptions& options) {
  BuiltKernel built{choose_form(traced, arch, options.machine, {}, {}, options.afresh), {}};
  if (options.delays && !options.epoch_words) {
    built.program.source = codegen::print_cuda_with_delays(built.program.machine, *options.delays);
    built.program.checked = true;
    built.build = build(built.program, arch, options.afresh);
    return built;
  }
  if (options.epoch_words) {
    built.program.source = codegen::print_cuda_with_epoch_word(built.program.machine);
    built.build = build(built.program, arch, options.afresh);
    return built;
  }
  const runtime::ResourcePolicy policy = resource_policy(traced, options.allow_stack_frame);
  built.build = options.allow_stack_frame
                    ? assemble_with_stack_frame(built.program, arch, policy, options.afresh)
                    : assemble(built.program, arch, policy, options.afresh);
  return built;
}

}  // namespace tilewright::compiler
