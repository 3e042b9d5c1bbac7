#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "ahead/c_dims.h"
#include "ahead/exported.h"
#include "library/schedule_choice.h"
#include "support/diagnostic.h"

namespace tilewright::ahead {
namespace {

using ir::ProgramOperation;
using LaunchKind = codegen::LaunchParameter::Kind;

[[noreturn]] void refuse(const std::string& name, SourceLocation where, const std::string& what,
                         const std::string& fix) {
  Diagnostic(where, fmt::format("{} has no form in C: {}", name, what)).fix(fix).raise();
}

ir::ProgramBuffer::Kind buffer_kind(ir::Parameter::Kind kind) {
  if (kind == ir::Parameter::Kind::in) return ir::ProgramBuffer::Kind::in;
  return kind == ir::Parameter::Kind::out ? ir::ProgramBuffer::Kind::out
                                          : ir::ProgramBuffer::Kind::tensor;
}

// One launch of the kernel, on buffers and scalars named as its parameters.
ir::Program launching(const ir::Kernel& kernel) {
  ir::Program program;
  program.name = kernel.name;
  program.where = kernel.where;
  program.dims = kernel.dims;
  program.streams.push_back({"main", 0, kernel.where});
  program.kernels.push_back(std::make_shared<const ir::Kernel>(kernel));
  ProgramOperation launch;
  launch.where = kernel.where;
  launch.epoch = launch.epochs_per_run = 1;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor()) {
      program.scalars.push_back({parameter.name, parameter.dtype, parameter.where});
      RunNumber& number = launch.scalars.emplace_back(0.0);
      number.terms.push_back({1, parameter.name, 0});
      continue;
    }
    if (parameter.is_owned()) continue;  // ir::add_owned gives it
    const int buffer = static_cast<int>(program.buffers.size());
    program.buffers.push_back({buffer_kind(parameter.kind), parameter.name, parameter.dtype,
                               parameter.shape, parameter.where});
    launch.tensors.push_back(
        {buffer, 0, std::vector<Dim>(parameter.shape.size(), 0), parameter.shape});
  }
  program.operations.push_back(std::move(launch));
  return program;
}

void check_program(const ir::Program& program) {
  const std::string& name = program.name;
  if (program.ranks > 1) {
    refuse(name, program.where, "it has " + ir::ranks_text(program.ranks), "run it from C++");
  }
  if (program.streams.size() > 1) {
    refuse(name, program.streams[1].where, "it has a second stream",
           "queue all of it on one stream");
  }
  if (!program.scopes.empty()) {
    refuse(name, program.scopes.front().where, "what it does depends on numbers that a run reads",
           "run it from C++");
  }
  std::vector<DimSource> tensors;
  for (const ir::ProgramBuffer& buffer : program.buffers) {
    if (buffer.is_passed()) tensors.push_back({buffer.name, buffer.shape});
  }
  for (const Dim& dim : program.dims) {
    if (is_said(dim, tensors)) continue;
    refuse(name, program.where, fmt::format("no axis of a tensor says what {} is", dim.name()),
           fmt::format("make {0} the size of an axis, or {0} plus a number", dim.name()));
  }
  for (const ProgramOperation& operation : program.operations) {
    const bool has_form = operation.kind == ProgramOperation::Kind::launch ||
                          operation.kind == ProgramOperation::Kind::zero;
    if (!has_form) {
      refuse(name, operation.where, fmt::format("it has a {}", ir::name_of(operation.kind)),
             "launch a kernel that does it");
    }
    for (const RunNumber& scalar : operation.scalars) {
      if (scalar.per_run == 0) continue;
      refuse(name, operation.where, "a scalar depends on the number of the run",
             "make it a scalar of the program");
    }
  }
}

void check_kernel(const compiler::BuiltKernel& kernel) {
  const std::set<LaunchKind> known = {LaunchKind::tensor_map, LaunchKind::pointer,
                                      LaunchKind::stride, LaunchKind::dim, LaunchKind::scalar};
  for (const codegen::LaunchParameter& parameter : kernel.program.source.parameters) {
    if (known.count(parameter.kind) != 0) continue;
    refuse(kernel.program.machine.name, kernel.program.machine.where,
           "it reaches other ranks, or counts its launches", "run it from C++");
  }
}

Variant built_variant(std::string name, ir::Program program, bool is_kernel,
                      const std::string& arch, const BuildKernel& build) {
  check_program(program);
  Variant variant{std::move(name), is_kernel, std::move(program), {}};
  std::vector<ir::Kernel> machine;
  for (const auto& kernel : variant.program.kernels) {
    variant.kernels.push_back(build(*kernel, arch));
    check_kernel(variant.kernels.back());
    machine.push_back(variant.kernels.back().program.machine);
  }
  ir::add_owned(variant.program, machine);
  return variant;
}

Variant variant_of(const LibraryKernel& entry, const ScheduleChoice& choice,
                   const std::string& arch, const BuildKernel& build) {
  const std::string name = library::name_of(choice);
  if (entry.is_program()) {
    return built_variant(name, build_program(entry, choice).finish(), false, arch, build);
  }
  return built_variant(name, launching(build_choice(entry, choice).finish()), true, arch, build);
}

// The numbers of the rules that serve the sizes, in their order; where none are said, of those that
// serve any.
std::vector<std::size_t> wanted_rules(const library::CompiledRules& rules,
                                      const OptionValues& options,
                                      const std::vector<OptionValues>& kept, int multiprocessors) {
  std::vector<std::size_t> wanted;
  for (const OptionValues& sizes : kept) {
    std::vector<std::int64_t> values = rules.values_of(sizes, multiprocessors);
    wanted.push_back(rules.match(values.data()));
  }
  if (!kept.empty()) return wanted;
  const std::vector<bool> reachable = rules.reachable(options);
  for (std::size_t i = 0; i < reachable.size(); ++i) {
    if (reachable[i]) wanted.push_back(i);
  }
  return wanted;
}

}  // namespace

Exported export_operation(const library::KernelSource& source, const OptionValues& options,
                          const std::string& arch, const std::vector<OptionValues>& kept,
                          const BuildKernel& build,
                          const std::function<void(std::size_t done, std::size_t all)>& built) {
  const LibraryKernel& entry = source.entry();
  Exported exported{entry.name, entry.description, arch, {}, source.file_text(), {}, {}};
  if (entry.over_ranks || source.reaches_ranks()) {
    refuse(entry.name, {}, "it runs on several ranks", "run it from C++ or Python");
  }
  if (source.is_file()) {
    built(0, 1);
    const ir::Kernel kernel = source.traced(options, compiler::parse_target(arch));
    exported.variants.push_back(built_variant("tile", launching(kernel), true, arch, build));
    built(1, 1);
    return exported;
  }
  for (const KernelOption& option : entry.options) {
    if (!option.is_length) exported.options.emplace_back(option.name, options.text(option.name));
  }
  const int multiprocessors = library::multiprocessors_of(arch);
  Selector selector{library::open_rules(entry, options, arch, ""), {}, {}, {}};
  selector.values = selector.rules.values_of(options, multiprocessors);
  selector.sources = library::length_sources(entry, tensors_of(entry, options));
  std::map<std::string, std::size_t> number_of_name;
  std::vector<ScheduleChoice> choices;
  std::size_t last = 0;
  for (const std::size_t rule : wanted_rules(selector.rules, options, kept, multiprocessors)) {
    ScheduleChoice choice = library::choice_of(entry, options, selector.rules.rules()[rule]);
    const auto [found, is_new] = number_of_name.emplace(library::name_of(choice), choices.size());
    if (is_new) choices.push_back(std::move(choice));
    last = found->second;
  }
  for (const library::Rule& rule : selector.rules.rules()) {
    const auto found =
        number_of_name.find(library::name_of(library::choice_of(entry, options, rule)));
    selector.variant_of_rule.push_back(found == number_of_name.end() ? last : found->second);
  }
  built(0, choices.size());
  for (const ScheduleChoice& choice : choices) {
    exported.variants.push_back(variant_of(entry, choice, arch, build));
    built(exported.variants.size(), choices.size());
  }
  if (exported.variants.size() > 1) exported.selector = std::move(selector);
  return exported;
}

}  // namespace tilewright::ahead
