#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "command.h"
#include "explain/explanation.h"
#include "explain/report/explanation_json.h"
#include "explain/report/layout_svg.h"
#include "explain/report/page.h"
#include "explain/tensor_memory.h"
#include "library/kernel_source.h"
#include "library/library_build.h"
#include "support/diagnostic.h"
#include "support/escape.h"
#include "support/file.h"
#include "tilewright/error.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

void print_stages(const explanations::Explanation& explanation, bool with_diffs) {
  for (const explanations::ExplainedStage& stage : explanation.stages) {
    fmt::print("{:<36} {:8.3f} ms{}\n", stage.name, stage.milliseconds,
               stage.changed ? "" : "  (nothing changed)");
    if (with_diffs) fmt::print("{}", ir::format_diff(stage.diff));
  }
  fmt::print("{:<36} {:8.3f} ms\n", "trace to source", explanation.front_end_milliseconds);
  if (explanation.build_milliseconds > 0) {
    fmt::print("{:<36} {:8.3f} ms{}\n", "assembler", explanation.build_milliseconds,
               explanation.from_cache ? "  (from the cache)" : "");
  }
}

void print_resources(const explanations::Explanation& explanation) {
  const explanations::Resources& resources = explanation.resources;
  if (resources.registers >= 0) {
    fmt::print("registers {}, stack {} bytes, spills {} bytes\n", resources.registers,
               resources.stack_bytes, resources.spill_bytes);
  }
  if (resources.shared_bytes >= 0) fmt::print("shared memory {} bytes\n", resources.shared_bytes);
  for (const compiler::SharedUse& use : explanation.shared) {
    fmt::print("  {:<14} {}\n", use.name, use.bytes);
  }
  if (resources.tensor_columns >= 0) {
    fmt::print("tensor memory {} columns\n{}", resources.tensor_columns,
               explanations::tensor_memory_text(explanation.last));
  }
  for (const explanations::MemoryUse& use : explanation.memories) {
    fmt::print("memory {:<8} {:<14} {:<16} x {:<3} {:>8} of {} bytes\n", use.space, use.name,
               use.shape, use.stages, use.bytes, use.of);
  }
  // On the CPU the list says more.
  if (explanation.cpu) return;
  for (const auto& [name, count] : explanation.instructions) {
    fmt::print("{:<36} {:8}\n", name, count);
  }
  for (const auto& [name, count] : explanation.units) {
    fmt::print("unit {:<31} {:8}\n", name, count);
  }
  for (const auto& [name, count] : explanation.sass.instructions) {
    fmt::print("SASS {:<31} {:8}\n", name, count);
  }
  if (!explanation.cubin.empty() && !explanation.sass.missing.empty()) {
    fmt::print("SASS: {}\n", explanation.sass.missing);
  }
}

void print_numerics(const explanations::Explanation& explanation) {
  for (const explanations::AppliedRewrite& applied : explanation.rewrites) {
    const std::string times =
        applied.allowed ? fmt::format("{:>8}", applied.count) : std::string("     off");
    fmt::print("{:<36} {}  {}\n", fmt::format("numerics {}", applied.rewrite->name), times,
               applied.rewrite->effect);
  }
  for (const compiler::Approximation& each : explanation.approximations) {
    fmt::print("{:<36} {:8}  {}\n", fmt::format("numerics {}", each.function), each.count,
               each.instruction);
  }
}

void print_fields(const explanations::Explanation& explanation) {
  for (const schedules::ChosenField& field : explanation.fields) {
    const std::string where = format_location(field.where);
    const bool none = field.value.starts_with("none");
    fmt::print("schedule {:<14} {:<12} {}\n", field.name, field.value,
               none            ? ""
               : !field.stated ? "by the compiler"
               : where.empty() ? "as stated"
                               : "as stated at " + where);
  }
}

void print_decisions(const explanations::Explanation& explanation) {
  for (const compiler::Decision& decision : explanation.decisions) {
    if (!decision.warns) fmt::print("decision: {}: {}\n", decision.what, decision.why);
  }
  if (explanation.form != 0) fmt::print("machine form {:016x}\n", explanation.form);
}

void print_additions(const explanations::Explanation& explanation) {
  if (explanation.target == "interpreter" || explanation.cpu) return;
  bool any_order = false;
  for (const compiler::Addition& each : explanation.additions) {
    any_order = any_order || !each.ordered;
    fmt::print("sums added in {}: {} by {} of {} ({})\n",
               each.ordered ? "the order of blocks" : "any order", each.tensor, each.count,
               each.instruction, format_location(each.where));
  }
  if (!any_order) fmt::print("sums added in any order: none\n");
}

void print_tiers(const explanations::Explanation& explanation) {
  for (const explanations::Tiers& tiers : explanation.tiers) {
    fmt::print("stages of {} are filled {} ({})\n", tiers.ring,
               tiers.by_threads ? "by threads, which load" : "in one of these ways",
               format_location(tiers.where));
    for (const explanations::Tiers::Way& way : tiers.ways) {
      fmt::print("  {:<4} {}\n", fmt::format("x{}", way.together), way.copies);
    }
  }
}

void print_claims(const explanations::Explanation& explanation) {
  for (const compiler::CheckedClaim& checked : explanation.claims) {
    fmt::print("require {:<28} {:>8}  {}\n", checked.claim.to_string(),
               checked.found ? std::to_string(*checked.found) : "unknown",
               !checked.found    ? "not assembled"
               : checked.holds() ? "holds"
                                 : "does not hold");
  }
}

void print_roofline(const explanations::Work& work, std::string_view target) {
  fmt::print("{:.4g} GFLOP, at least {:.4g} MB of memory traffic: {:.4g} FLOP a byte\n",
             work.flops / 1e9, work.bytes / 1e6, work.intensity());
  for (const explanations::RooflinePoint& point : explanations::roofline(work, target)) {
    fmt::print("  {:<12} bound by {} (ridge {:.0f}): at most {:.4g} TFLOP/s, at least {:.4g} us\n",
               point.device->name, point.memory_bound ? "memory" : "arithmetic", point.ridge,
               point.flops_per_second / 1e12, point.seconds * 1e6);
  }
}

void print(const explanations::Explanation& explanation, bool with_diffs) {
  print_stages(explanation, with_diffs);
  print_resources(explanation);
  print_numerics(explanation);
  print_claims(explanation);
  print_fields(explanation);
  print_tiers(explanation);
  print_decisions(explanation);
  print_additions(explanation);
  if (explanation.cpu) {
    fmt::print("{}", explanations::text_of(*explanation.cpu, explanation.work));
  } else if (explanation.work && explanation.memories.empty()) {
    print_roofline(*explanation.work, explanation.target);
  }
  if (explanation.schedule) fmt::print("{}", library::to_text(*explanation.schedule));
  // That there is no cubin is the error that ends the command.
  if (explanation.no_cubin) return;
  for (const std::string& warning : explanation.warnings) fmt::print("warning: {}\n", warning);
}

void print_places(const Request& request) {
  if (!request.dump.empty()) {
    fmt::print("stages and source are in {}\n", escaped_lines(request.dump));
  }
  if (!request.html.empty()) fmt::print("the page is {}\n", escaped_lines(request.html));
  if (!request.layouts.empty()) fmt::print("layouts are in {}\n", escaped_lines(request.layouts));
}

// What ends the command.
int status_of(const explanations::Explanation& explanation) {
  std::fflush(stdout);
  for (const std::string& failure : explanation.failures) {
    std::fprintf(stderr, "%s\n", failure.c_str());
  }
  if (!explanation.failures.empty()) return static_cast<int>(ErrorKind::usage);
  if (!explanation.no_cubin) return 0;
  std::fprintf(stderr, "%s\n", explanation.no_cubin->c_str());
  return static_cast<int>(ErrorKind::unavailable);
}

void print_memory(const std::vector<explanations::OwnMemory>& memory) {
  if (memory.empty()) return;
  std::int64_t sum = 0;
  for (const explanations::OwnMemory& own : memory) sum += own.bytes;
  fmt::print("\nmemory beside the tensors {} bytes\n", sum);
  for (const explanations::OwnMemory& own : memory) {
    fmt::print("  {:<14} {}\n", own.name, own.bytes);
  }
}

void print(const explanations::ProgramExplanation& program, bool with_diffs) {
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    fmt::print("{:>3} {}\n", i + 1, program.steps[i].text);
  }
  for (const explanations::Explanation& kernel : program.kernels) {
    fmt::print("\n{}\n", kernel.kernel);
    print(kernel, with_diffs);
  }
  print_memory(program.memory);
  if (const explanations::CpuList* const list = explanations::longest_list(program)) {
    fmt::print("\n{}", explanations::text_of(*list->peaks, program.work));
  } else if (program.work) {
    print_roofline(*program.work, program.target);
  }
  if (program.schedule) fmt::print("{}", library::to_text(*program.schedule));
}

// The files of a kernel are in a folder of its name.
int explain_program(const Request& request, const library::KernelSource& source,
                    const OptionValues& options, const compiler::Target& target) {
  const LibraryKernel& entry = source.entry();
  const ir::Program recorded = source.program(options, target);
  explanations::ProgramExplanation program =
      explanations::explain(recorded, target, compilation_of(request));
  if (target.kind == compiler::Target::Kind::cpu) {
    explanations::measure(program, recorded, workload_of(request, entry));
  }
  program.work = explanations::work_of(entry, options);
  // A file's sizes have no values that are sure to fit it.
  if (!source.is_file() && recorded.ranks == 1) {
    program.memory = explanations::own_memory(recorded, entry, options);
  }
  program.schedule = library::report_schedule(entry, options, target);
  for (std::size_t i = 0; i < program.kernels.size(); ++i) {
    const std::string folder = "/" + program.folder(i);
    const explanations::Explanation& kernel = program.kernels[i];
    if (!request.dump.empty()) {
      compiler::write_dump(request.dump + folder, explanations::dump_files(kernel));
    }
    if (!request.layouts.empty()) {
      compiler::write_dump(request.layouts + folder, explanations::layout_files(kernel));
    }
  }
  if (!request.html.empty()) write_text(request.html, explanations::page(program));
  if (request.json) {
    fmt::print("{}\n", explanations::explanation_json(program));
  } else {
    print(program, request.diff);
    print_places(request);
  }
  int status = 0;
  for (const explanations::Explanation& kernel : program.kernels) {
    status = std::max(status, status_of(kernel));
  }
  return status;
}

}  // namespace

int explain(const Request& request) {
  const library::KernelSource source = open_kernel(request.kernel);
  const LibraryKernel& entry = source.entry();
  const compiler::Target target = target_of(request);
  const OptionValues options = resolve_options(entry, request.settings);
  if (entry.is_program()) return explain_program(request, source, options, target);
  const compiler::MachineOptions how = compilation_of(request);
  explanations::Explanation explanation;
  if (source.is_file()) {
    explanation = explanations::explain(source.traced(options, target), target, how);
  } else {
    explanation = explanations::explain(
        [&] { return library::trace_entry(entry, options, target); }, target, how);
    explanation.work = explanations::work_of(entry, options);
    explanation.schedule = library::report_schedule(entry, options, target);
  }
  if (explanation.cpu && !source.reaches_ranks()) {
    library::Workload workload = workload_of(request, entry);
    explanations::measure(*explanation.cpu, workload.arguments());
  }
  if (!request.dump.empty())
    compiler::write_dump(request.dump, explanations::dump_files(explanation));
  if (!request.html.empty()) write_text(request.html, explanations::page(explanation));
  if (!request.layouts.empty()) {
    compiler::write_dump(request.layouts, explanations::layout_files(explanation));
  }
  if (request.json) {
    fmt::print("{}\n", explanations::explanation_json(explanation));
  } else {
    print(explanation, request.diff);
    print_places(request);
  }
  return status_of(explanation);
}

}  // namespace tilewright::tools
