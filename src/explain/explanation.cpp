#include "explain/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "compiler/cpu_kernel.h"
#include "compiler/host_program.h"
#include "ir/memory_order.h"
#include "ir/text.h"
#include "library/program_simulation.h"
#include "passes/pipeline.h"
#include "simulator/machine/machine.h"
#include "support/diagnostic.h"
#include "target/core.h"
#include "target/target.h"

namespace tilewright::explanations {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Keeps what each stage left. Writing it down is no part of the compilation's time.
class Recorder {
 public:
  explicit Recorder(Explanation& explanation) : explanation_(explanation) {}

  void operator()(const compiler::Stage& stage, const ir::Kernel& kernel) {
    const auto start = Clock::now();
    ExplainedStage& recorded = explanation_.stages.emplace_back();
    static_cast<compiler::Stage&>(recorded) = stage;
    if (stage.changed && stage.name != "print_cuda") {
      std::string plain = ir::to_text(kernel, {.locations = false});
      if (!plain_.empty()) recorded.diff = ir::text_diff(plain_, plain);
      plain_ = std::move(plain);
      recorded.text = ir::to_text(kernel);
    }
    if (kernel.form == ir::Form::scheduled) explanation_.scheduled = kernel;
    excluded_ += milliseconds_since(start);
    if (stage.name == "print_cuda") {
      explanation_.front_end_milliseconds += milliseconds_since(begun_) - excluded_;
    }
  }
  // Of the front end, whose last stage prints.
  void begin() {
    begun_ = Clock::now();
    excluded_ = 0;
  }
  // Keeps the trace alone: the kernel is translated once more.
  void restart(const ir::Kernel& traced) {
    explanation_.stages.resize(1);
    plain_ = ir::to_text(traced, {.locations = false});
    begin();
  }

 private:
  Explanation& explanation_;
  std::string plain_;  // the text without locations
  Clock::time_point begun_ = Clock::now();
  double excluded_ = 0;
};

void note_failure(Explanation& explanation, const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    explanation.failures.emplace_back(error.what());
  }
}

void add_build(Explanation& explanation, const compiler::GpuProgram& program,
               const std::string& arch, const runtime::ResourcePolicy& policy) {
  const auto start = Clock::now();
  try {
    const runtime::Build result = build(program, arch);
    explanation.build_milliseconds = milliseconds_since(start);
    explanation.from_cache = result.from_cache;
    const runtime::PtxasReport& report = result.kernel.report;
    const runtime::FunctionResources* function = report.find(program.source.entry);
    if (function != nullptr) {
      explanation.resources.registers = function->registers;
      explanation.resources.stack_bytes = function->stack_bytes;
      explanation.resources.spill_bytes = std::max(function->spill_bytes(), 0);
    }
    explanation.claims = compiler::check_claims(program.machine, function);
    note_failure(explanation, [&] {
      runtime::check_report(report, policy, compiler::build_name(program, arch),
                            program.machine.where);
    });
    explanation.warnings = runtime::warnings_of(report);
    if (policy.allow_stack_frame && explanation.resources.stack_bytes > 0) {
      explanation.warnings.push_back(
          fmt::format("a stack frame of {} bytes, {} bytes of registers spilled: smaller tiles, or "
                      "more of them a block, may be faster",
                      explanation.resources.stack_bytes, explanation.resources.spill_bytes));
    }
    explanation.ptx = result.kernel.ptx;
    explanation.cubin = result.kernel.cubin;
    explanation.log = result.kernel.log;
    explanation.sass = disassemble(explanation.cubin);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    explanation.no_cubin = error.what();
    explanation.warnings.push_back("not assembled: " + error.message());
    explanation.sass.missing = "there is no cubin to disassemble";
    explanation.claims = compiler::check_claims(program.machine, nullptr);
  }
  for (const compiler::CheckedClaim& claim : explanation.claims) {
    if (!claim.holds()) {
      explanation.failures.push_back(compiler::diagnostic_of(claim, program.machine).render());
    }
  }
}

// Of tensor memory; -1 where the target has none.
std::int64_t tensor_columns(const ir::Kernel& machine) {
  if (target::target_of(machine).limits.tensor_columns == 0) return -1;
  std::int64_t columns = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::tensor_memory) columns += machine.type(o.results[0]).shape[0];
  });
  return columns;
}

std::string resource_text(const Explanation& explanation) {
  std::string text;
  const Resources& r = explanation.resources;
  const auto line = [&text](const char* what, std::int64_t value) {
    text +=
        value < 0 ? fmt::format("{:<14} unknown\n", what) : fmt::format("{:<14} {}\n", what, value);
  };
  line("registers", r.registers);
  line("stack bytes", r.stack_bytes);
  line("spill bytes", r.spill_bytes);
  line("shared bytes", r.shared_bytes);
  for (const compiler::SharedUse& use : explanation.shared) {
    text += fmt::format("  {:<12} {} {}\n", use.name, use.bytes, format_location(use.where));
  }
  if (r.tensor_columns >= 0) line("tensor columns", r.tensor_columns);
  for (const auto& [name, count] : explanation.instructions) {
    text += fmt::format("{:<24} {}\n", name, count);
  }
  for (const auto& [name, count] : explanation.sass.instructions) {
    text += fmt::format("SASS {:<19} {}\n", name, count);
  }
  for (const std::string& warning : explanation.warnings) text += "warning: " + warning + "\n";
  return text;
}

void explain_gpu(Explanation& explanation, Recorder& record, const ir::Kernel& traced,
                 const compiler::Target& target, const compiler::MachineOptions& options) {
  record.begin();
  compiler::GpuProgram program = compiler::choose_form(
      traced, target.arch, options, std::ref(record), [&] { record.restart(traced); });
  for (const compiler::Rewrite& rewrite : compiler::all_rewrites()) {
    if (rewrite.of_cpu) continue;
    explanation.rewrites.push_back(
        {&rewrite, options.numerics.*rewrite.allowed, program.applied[rewrite.name]});
  }
  explanation.last = program.machine;
  explanation.approximations = compiler::approximations_in(program.machine);
  explanation.resources.shared_bytes = program.machine.shared_bytes;
  explanation.shared = compiler::shared_use(program.machine);
  explanation.resources.tensor_columns = tensor_columns(program.machine);
  explanation.additions = compiler::additions_in(program.machine);
  if (explanation.scheduled) explanation.tiers = tiers_in(*explanation.scheduled);
  explanation.cuda = program.source.text;
  add_build(explanation, program, target.arch, compiler::resource_policy(traced));
  for (const compiler::Decision& decision : program.decisions) {
    if (decision.warns) explanation.warnings.push_back(decision.what + ": " + decision.why);
  }
  explanation.decisions = std::move(program.decisions);
  explanation.fields = std::move(program.schedule);
  explanation.form = ir::form_hash(program.machine);
  for (const compiler::Converted& conversion : compiler::conversions_in(program.machine)) {
    explanation.warnings.push_back(fmt::format(
        "{}: a tile is needed in two register layouts, and passes through shared memory: {} bytes",
        format_location(conversion.where), conversion.bytes));
  }
}

// Of a core that is simulated only: there is no source and no assembler.
void explain_core(Explanation& explanation, Recorder& record, const ir::Kernel& traced,
                  const target::Target& target, const compiler::MachineOptions& options) {
  compiler::MachineForm form = compiler::compile_to_machine(
      traced, target.name, options, [&](const compiler::Stage& stage, const ir::Kernel& after) {
        record(stage, after);
        explanation.front_end_milliseconds += stage.milliseconds;
      });
  for (const ir::Operation& o : form.kernel.body.body) {
    if (o.op != ir::Op::memory) continue;
    const target::CoreSpace& space = *target.core->space(o.attributes.text(ir::Key::space));
    const ir::Type& type = form.kernel.type(o.results[0]);
    MemoryUse use{
        o.attributes.text(ir::Key::name),
        space.name,
        fmt::format("{} {} x {}", name_of(type.dtype), type.shape[1], type.shape[2]),
        type.shape[0],
        type.shape[0] * target::matrix_bytes(space, {type.shape[1], type.shape[2], type.dtype}),
        space.bytes,
        o.where};
    explanation.memories.push_back(std::move(use));
  }
  explanation.form = ir::form_hash(form.kernel);
  explanation.decisions = std::move(form.decisions);
  explanation.fields = std::move(form.schedule);
  explanation.last = std::move(form.kernel);
}

void explain_cpu(Explanation& explanation, Recorder& record, const ir::Kernel& traced,
                 const compiler::MachineOptions& options) {
  explanation.last = traced;
  const auto observe = [&](std::string_view name, const ir::Kernel& after, double milliseconds,
                           bool changed) {
    record({std::string(name), milliseconds, changed}, after);
    explanation.front_end_milliseconds += milliseconds;
    explanation.last = after;
  };
  std::map<std::string, int> applied;
  explanation.cpu = list_for_cpu(compiler::compile_for_cpu(
      traced, {options.numerics, options.schedule, nullptr, observe, &applied}));
  for (const cpu::ListedOperation& each : explanation.cpu->operations) {
    if (each.sums_in_parts) ++applied["sink_partial_sums"];
    if (each.product == nullptr) continue;
    const bool in_pairs = each.product->rounding == cpu::Rounding::pairs;
    const bool rounds_once = each.product->rounding == cpu::Rounding::fused &&
                             each.product->element == cpu::Element::f32;
    if (in_pairs) ++applied["bf16_pairs"];
    if (each.product->skips_zeros) ++applied["skip_hidden"];
    if (rounds_once) ++applied["contract_fma"];
  }
  for (const compiler::Rewrite& rewrite : compiler::all_rewrites()) {
    if (!rewrite.of_cpu && applied.count(rewrite.name) == 0) continue;
    explanation.rewrites.push_back(
        {&rewrite, options.numerics.*rewrite.allowed, applied[rewrite.name]});
  }
  explanation.last.target.clear();  // its operations are not a machine form's
}

std::map<std::string, std::int64_t> units_of(const ir::Kernel& machine) {
  const target::Target& target = target::target_of(machine);
  std::map<std::string, std::int64_t> counts;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const std::string& name = target.unit_of(operation).name;
    if (!name.empty()) ++counts[name];
  });
  return counts;
}

// "launch scale {x, scaled}, stream main".
std::string step_text(const ir::Program& program, const ir::ProgramOperation& operation) {
  using Kind = ir::ProgramOperation::Kind;
  const auto part_text = [&](const ir::ProgramPart& part) {
    const ir::ProgramBuffer& buffer = program.buffers[part.buffer];
    std::string text = name_of(program, part.buffer, part.rank);
    if (part.sizes != buffer.shape) {
      text += " " + ir::braced(part.sizes) + " from " + ir::braced(part.starts);
    }
    return text;
  };
  std::string text(name_of(operation.kind));
  switch (operation.kind) {
    case Kind::launch: {
      std::vector<std::string> tensors;
      for (const ir::ProgramPart& part : operation.tensors) tensors.push_back(part_text(part));
      text += fmt::format(" {} {{{}}}", program.kernels[operation.kernel]->name,
                          fmt::join(tensors, ", "));
      break;
    }
    case Kind::copy:
      text += fmt::format(" {} to {}", part_text(operation.from), part_text(operation.to));
      break;
    case Kind::zero:
    case Kind::write:
    case Kind::wait:
      text += " " + part_text(operation.to);
      break;
    case Kind::record:
    case Kind::wait_event:
      text += fmt::format(" {}", operation.event);
      break;
  }
  text += ", " + name_of(program, program.streams[operation.stream]);
  for (int i = operation.scope; i >= 0; i = program.scopes[i].parent) {
    const ir::ProgramScope& scope = program.scopes[i];
    text += scope.kind == ir::ProgramScope::Kind::repeat
                ? fmt::format(", for {} below {}", scope.turn, scope.count.to_string())
                : fmt::format(", when {} {} {}", scope.left.to_string(), ir::sign_of(scope.compare),
                              scope.right.to_string());
  }
  return text;
}

Explanation explain_traced(const ir::Kernel& traced, double trace_milliseconds,
                           const compiler::Target& target,
                           const compiler::MachineOptions& options) {
  Explanation explanation;
  Recorder record(explanation);
  explanation.target = target.name;
  explanation.kernel = traced.name;
  explanation.front_end_milliseconds = trace_milliseconds;
  record({"trace", trace_milliseconds, true}, traced);
  if (target.kind == compiler::Target::Kind::interpreter) {
    explanation.last = traced;
    passes::simplify_kernel(explanation.last, [&](std::string_view name, const ir::Kernel& after,
                                                  double milliseconds, bool changed) {
      record({std::string(name), milliseconds, changed}, after);
      explanation.front_end_milliseconds += milliseconds;
    });
  } else if (target.kind == compiler::Target::Kind::cpu) {
    explain_cpu(explanation, record, traced, options);
  } else if (const target::Target& machine = target::find_target(target.arch); machine.core) {
    explain_core(explanation, record, traced, machine, options);
  } else {
    explain_gpu(explanation, record, traced, target, options);
  }
  explanation.instructions = compiler::count_instructions(explanation.last);
  if (!explanation.last.target.empty()) explanation.units = units_of(explanation.last);
  return explanation;
}

}  // namespace

Explanation explain(const std::function<Kernel()>& trace, const compiler::Target& target,
                    const compiler::MachineOptions& options) {
  const auto start = Clock::now();
  const Kernel kernel = trace();
  const ir::Kernel& traced = kernel.finish();
  return explain_traced(traced, milliseconds_since(start), target, options);
}

Explanation explain(const Kernel& kernel, const compiler::Target& target,
                    const compiler::MachineOptions& options) {
  return explain_traced(kernel.finish(), 0, target, options);
}

Explanation explain(const ir::Kernel& traced, const compiler::Target& target,
                    const compiler::MachineOptions& options) {
  return explain_traced(traced, 0, target, options);
}

std::string ProgramExplanation::folder(std::size_t kernel) const {
  const std::string& name = kernels[kernel].kernel;
  const auto first = kernels.begin();
  const auto earlier = std::count_if(first, first + static_cast<std::ptrdiff_t>(kernel),
                                     [&](const Explanation& each) { return each.kernel == name; });
  return earlier == 0 ? name : fmt::format("{}-{}", name, earlier + 1);
}

ProgramExplanation explain(const ir::Program& program, const compiler::Target& target,
                           const compiler::MachineOptions& options) {
  ProgramExplanation made;
  made.program = program.name;
  made.target = target.name;
  for (const auto& kernel : program.kernels) {
    made.kernels.push_back(explain(*kernel, target, options));
  }
  for (const ir::ProgramOperation& operation : program.operations) {
    const bool launches = operation.kind == ir::ProgramOperation::Kind::launch;
    made.steps.push_back({step_text(program, operation), launches ? operation.kernel : -1,
                          format_location(operation.where)});
  }
  return made;
}

std::vector<OwnMemory> own_memory(const ir::Program& program, const LibraryKernel& kernel,
                                  const OptionValues& options) {
  std::vector<ir::TensorShape> shapes;
  for (const LibraryTensor* tensor : tensors_of(kernel, options)) {
    shapes.push_back({tensor->name, dtype_of(*tensor, options), shape_of(*tensor, options), {}});
  }
  std::vector<OwnMemory> memory;
  const auto bound = ir::bind_program(program, shapes, simulator::MachineOptions().multiprocessors);
  for (const ir::ProgramBuffer& buffer : bound.buffers) {
    if (!buffer.is_passed()) memory.push_back({buffer.name, buffer.bytes()});
  }
  return memory;
}

void measure(ProgramExplanation& explanation, const ir::Program& program,
             library::Workload workload) {
  const ir::Program bound =
      library::bind_workload(program, workload, simulator::MachineOptions().multiprocessors);
  const auto list_of = [&](const ir::Kernel& kernel) -> CpuList& {
    const auto found = std::find_if(bound.kernels.begin(), bound.kernels.end(),
                                    [&](const auto& each) { return each.get() == &kernel; });
    return *explanation.kernels[static_cast<std::size_t>(found - bound.kernels.begin())].cpu;
  };
  compiler::for_each_launch(bound, workload.arguments(),
                            [&](const ir::Kernel& kernel, const Arguments& arguments) {
                              CpuList& list = list_of(kernel);
                              if (!list.measurement) measure(list, arguments);
                              list.compiled->run(arguments);
                            });
}

const CpuList* longest_list(const ProgramExplanation& explanation) {
  const CpuList* longest = nullptr;
  for (const Explanation& kernel : explanation.kernels) {
    if (!kernel.cpu || !kernel.cpu->peaks) continue;
    if (!longest || seconds_of(*kernel.cpu) > seconds_of(*longest)) longest = &*kernel.cpu;
  }
  return longest;
}

std::vector<compiler::DumpFile> dump_files(const Explanation& explanation) {
  std::vector<compiler::DumpFile> files;
  std::size_t number = 0;
  for (const ExplainedStage& stage : explanation.stages) {
    const std::string name = fmt::format("{:02}-{}", ++number, stage.name);
    if (!stage.text.empty()) files.push_back({name + ".tw", stage.text});
    if (!stage.diff.empty()) files.push_back({name + ".diff", ir::format_diff(stage.diff)});
  }
  const auto add = [&files](const char* name, const std::string& text) {
    if (!text.empty()) files.push_back({name, text});
  };
  add("kernel.cu", explanation.cuda);
  add("kernel.ptx", explanation.ptx);
  add("kernel.cubin", explanation.cubin);
  add("kernel.sass", explanation.sass.text);
  add("nvrtc.log", explanation.log);
  if (explanation.resources.shared_bytes >= 0) add("resources.txt", resource_text(explanation));
  return files;
}

}  // namespace tilewright::explanations
