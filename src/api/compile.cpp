#include "tilewright/check.h"

#include <set>

#include "api/build_options.h"
#include "check/pass_check.h"
#include "compiler/build.h"
#include "compiler/compile_traced.h"
#include "compiler/compiled.h"
#include "compiler/cpu_kernel.h"
#include "compiler/dump.h"
#include "compiler/launch_plan.h"
#include "compiler/simulation.h"
#include "compiler/target.h"
#include "compiler/written_tensors.h"
#include "ir/ir.h"
#include "ir/schedule.h"
#include "runtime/device.h"
#include "simulator/interpreter.h"
#include "support/diagnostic.h"
#include "support/held.h"

namespace tilewright {

struct Executable::State {
  compiler::Target target;
  ir::Kernel kernel;
  Numerics numerics;
  std::vector<ir::Kernel> forms;                       // simulator: all that may ship
  simulator::MachineOptions machine;                   // simulator
  std::unique_ptr<compiler::CompiledKernel> compiled;  // cuda
  std::shared_ptr<const cpu::CompiledKernel> native;   // cpu
};

namespace {

// Each form on what the tensors hold now; the first one's results stay.
void simulate(const ir::Kernel& kernel, const std::vector<ir::Kernel>& forms,
              const Arguments& arguments, simulator::MachineOptions options) {
  simulator::check_empty_grid(kernel, arguments);
  options.note_written = kernel.form == ir::Form::tile;
  const compiler::WrittenTensors written(kernel, arguments);
  for (auto form = forms.rbegin(); form != forms.rend(); ++form) {
    written.restore();
    const simulator::MachineReport report = compiler::simulate(*form, arguments, options);
    if (!report.ok()) compiler::diagnostic_of(report.faults.front()).raise();
    simulator::check_written(kernel, arguments, report.written);
  }
}

// What a launch of such a target is given. Whatever does not fit the kernel is an error before
// anything takes memory, or is left out, by sizes and strides.
Arguments checked_arguments(const ir::Kernel& kernel, const std::vector<TensorRef>& tensors,
                            const std::vector<double>& scalars, std::int64_t multiprocessors) {
  Arguments arguments = compiler::make_arguments(kernel, tensors, scalars);
  compiler::check_sizes(kernel, arguments, multiprocessors);
  return arguments;
}

}  // namespace

Executable::Executable(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executable::~Executable() = default;
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;

const std::string& Executable::target() const { return held(state_, "Executable").target.name; }

void Executable::run(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars,
                     void* stream) const {
  const State& state = held(state_, "Executable");
  const auto given = [&] {
    return checked_arguments(state.kernel, tensors, scalars, state.machine.multiprocessors);
  };
  switch (state.target.kind) {
    case compiler::Target::Kind::interpreter: {
      simulator::InterpreterOptions options;
      options.threads = 0;
      options.check_outputs = true;
      simulator::interpret(state.kernel, given(), options);
      return;
    }
    case compiler::Target::Kind::cpu:
      return state.native->run(compiler::make_arguments(state.kernel, tensors, scalars));
    case compiler::Target::Kind::simulator:
      return simulate(state.kernel, state.forms, given(), state.machine);
    case compiler::Target::Kind::passes:
      return checks::check_passes(state.kernel, state.target.arch, given(), state.numerics,
                                  state.machine);
    case compiler::Target::Kind::cuda: {
      const compiler::CompiledKernel& compiled = *state.compiled;
      compiled.launch(runtime::Stream::borrow(compiled.device(), static_cast<CUstream_st*>(stream)),
                      tensors, scalars);
      return;
    }
    case compiler::Target::Kind::architecture:
      break;
  }
  Diagnostic(state.kernel.where,
             "kernel " + state.kernel.name + " is built for " + target() +
                 ", which is not tied to a GPU of this machine",
             ErrorKind::unavailable)
      .fix("compile for cuda, the GPU that is here")
      .raise();
}

void Executable::prepare(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars,
                         void* stream) const {
  const State& state = held(state_, "Executable");
  if (!state.compiled) return;
  const compiler::CompiledKernel& compiled = *state.compiled;
  compiled.prepare(runtime::Stream::borrow(compiled.device(), static_cast<CUstream_st*>(stream)),
                   tensors, scalars);
}

namespace {

// What a launch would leave in an output that nothing writes is whatever was in its memory.
void check_outputs_are_stored(const ir::Kernel& kernel) {
  std::set<ir::ValueId> used;
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    used.insert(operation.operands.begin(), operation.operands.end());
  });
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (parameter.kind != ir::Parameter::Kind::out || used.count(parameter.value) != 0) continue;
    Diagnostic(parameter.where, kernel.name + ": nothing is stored to the output " + parameter.name)
        .token(parameter.name)
        .fix("store a tile to it, or leave it out")
        .raise();
  }
}

}  // namespace

std::string_view default_target() { return compiler::target_of_machine(); }

Executable compile(const Kernel& kernel, std::string_view target, const CompileOptions& options) {
  return compile_traced(kernel.finish(), target, options);
}

Executable compile_traced(const ir::Kernel& kernel, std::string_view target,
                          const CompileOptions& options) {
  auto state = std::make_unique<Executable::State>();
  state->target = compiler::parse_target(target, options.device);
  state->kernel = kernel;
  ir::check_ranges(options.schedule);
  state->machine = simulated_machine(options, state->kernel.where);
  check_outputs_are_stored(state->kernel);
  compiler::dump_traced(state->kernel);
  if (state->target.kind == compiler::Target::Kind::interpreter) {
    compiler::require_tile_form(state->kernel);
    return Executable(std::move(state));
  }
  if (state->target.kind == compiler::Target::Kind::cpu) {
    state->native = compiler::compile_for_cpu(state->kernel, {options.numerics, options.schedule});
    return Executable(std::move(state));
  }
  if (state->target.kind == compiler::Target::Kind::passes) {
    state->numerics = options.numerics;
    state->kernel.schedule = ir::merged(options.schedule, state->kernel.schedule);
    return Executable(std::move(state));
  }
  if (state->target.kind == compiler::Target::Kind::simulator) {
    state->forms = compiler::simulated_forms(state->kernel, state->target.arch,
                                             build_options(options).machine);
    return Executable(std::move(state));
  }
  if (state->target.kind == compiler::Target::Kind::cuda) {
    state->compiled = compiler::compile_for_device(
        state->kernel, runtime::Device::get(options.device), build_options(options));
  } else {
    compiler::build_kernel(state->kernel, state->target.arch, build_options(options));
  }
  return Executable(std::move(state));
}

void check(const Kernel& kernel, std::string_view target, const CompileOptions& options) {
  const ir::Kernel finished = kernel.finish();
  check_outputs_are_stored(finished);
  if (target == "interpreter") return compiler::require_tile_form(finished);
  if (target == "cpu")
    return void(compiler::compile_for_cpu(finished, {options.numerics, options.schedule}));
  compiler::simulated_forms(finished,
                            target == "cuda"
                                ? ir::default_target()
                                : std::string_view(compiler::parse_target(target).arch),
                            build_options(options).machine);
}

}  // namespace tilewright
