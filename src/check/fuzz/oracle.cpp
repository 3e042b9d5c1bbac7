#include "check/fuzz/oracle.h"

#include <fmt/format.h>

#include <functional>
#include <optional>

#include "check/fuzz/envelope.h"
#include "check/fuzz/faults.h"
#include "compiler/compile_to_machine.h"
#include "compiler/compiled.h"
#include "compiler/cpu_kernel.h"
#include "compiler/device_tensors.h"
#include "compiler/launch_plan.h"
#include "cpu/instruction_sets.h"
#include "ir/text.h"
#include "passes/pipeline.h"
#include "simulator/interpreter.h"
#include "simulator/machine/machine.h"
#include "support/diagnostic.h"

namespace tilewright::checks::fuzz {
namespace {

using Kind = Verdict::Kind;

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Whether each is rounded as IEEE says.
bool has_exact_functions_alone(const ir::Kernel& kernel) {
  bool exact = true;
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    const ir::OpInfo& record = ir::info(operation.op);
    if (!record.elementwise() || record.kind != ir::FunctionKind::real) return;
    const ir::Op op = operation.op;
    exact = exact && (op == ir::Op::sqrt || op == ir::Op::rcp || op == ir::Op::floor ||
                      op == ir::Op::ceil || op == ir::Op::rint);
  });
  return exact;
}

bool has_products_of(const ir::Kernel& kernel, DType dtype) {
  bool found = false;
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    found = found ||
            (operation.op == ir::Op::dot && kernel.types[operation.operands[0]].dtype == dtype);
  });
  return found;
}

// Ends the judgement with a verdict.
struct Decided {
  Verdict verdict;
};

class Judge {
 public:
  Judge(const Recipe& recipe, Target target, std::string_view machine)
      : recipe_(recipe),
        target_(target),
        machine_(machine),
        traced_(trace(recipe)),
        kernel_(traced_.kernel.finish()) {}

  Verdict run() {
    stage_ = "envelope";
    find_bounds();
    if (target_ == Target::cpu) {
      run_natively();
      return verdict_;
    }
    interpret();
    if (target_ == Target::interpreter) return verdict_;
    stage_ = "lowering";
    const ir::Kernel source = is_explicit() ? explicit_kernel() : kernel_;
    for (const compiler::MachineForm& form : compiler::machine_forms(source, machine_)) {
      simulate(form.kernel);
    }
    if (target_ == Target::cuda) launch(source);
    return verdict_;
  }

  std::optional<Verdict> run(const SeededFault& fault) {
    stage_ = "planting";
    if (is_explicit() && fault.form == ir::Form::tile) return {};
    Random random(recipe_.seed);
    ir::Kernel kernel = is_explicit() ? explicit_kernel() : compiler::prepare(kernel_, machine_);
    if (fault.form == ir::Form::tile && !fault.plant(kernel, random)) return {};
    planted_ = fault.form == ir::Form::tile;
    compiler::MachineOptions options;
    options.taken_up = !is_explicit();
    kernel = compiler::compile_to_machine(kernel, machine_, options).kernel;
    if (fault.form == ir::Form::machine && !fault.plant(kernel, random)) return {};
    planted_ = true;
    envelope_ = envelope_of(kernel_, traced_.launch, precision_);
    simulate(kernel);
    return verdict_;
  }

  const std::string& stage() const { return stage_; }
  bool planted() const { return planted_; }

 private:
  Launch interpreted(const ir::Kernel& kernel, bool float64) const {
    Launch launch = traced_.launch;
    simulator::InterpreterOptions options;
    options.float64 = float64;
    simulator::interpret(kernel, launch.arguments(), options);
    return launch;
  }

  // Where a decision depends on rounding there are none. But what rounds as the interpreter does
  // decides alike, and has the same bits.
  void find_bounds() {
    try {
      envelope_ = envelope_of(kernel_, traced_.launch, precision_);
    } catch (const Undecided&) {
      if (target_ != Target::cpu || !has_exact_functions_alone(kernel_)) throw;
      is_bounded_ = false;
    }
  }

  void interpret() {
    stage_ = "interpreter";
    const Launch plain = interpreted(kernel_, false);
    compare(plain);
    stage_ = "interpreter in float64";
    compare(interpreted(kernel_, true));
    stage_ = "passes of the tile form";
    bool simplifies = true;  // and keeps every bit
    const auto observe = [&](std::string_view pass, const ir::Kernel& now, bool changed) {
      simplifies = simplifies && pass != "materialise_extents";
      if (!changed) return;
      stage_ = "interpreter after " + std::string(pass);
      const Launch after = interpreted(now, false);
      if (simplifies) {
        expect_equal(after, plain);
      } else {
        compare(after);
      }
      stage_ = "a pass behind " + std::string(pass);
    };
    if (is_explicit()) {
      ir::Kernel simplified = kernel_;
      return passes::simplify_kernel(
          simplified, [&](std::string_view pass, const ir::Kernel& now, double, bool changed) {
            observe(pass, now, changed);
          });
    }
    compiler::prepare(kernel_, machine_, {},
                      [&](const compiler::Stage& stage, const ir::Kernel& now) {
                        observe(stage.name, now, stage.changed);
                      });
  }

  // By every instruction set that this machine has. Without rewrites the results are the
  // interpreter's, bit by bit, where no function is approximated. Those with a fused multiply-add
  // have the same bits as each other, but for products of bf16 in pairs.
  void run_natively() {
    stage_ = "interpreter";
    const Launch plain = interpreted(kernel_, false);
    compare(plain);
    const bool is_exact = has_exact_functions_alone(kernel_);
    const bool multiplies_bf16 = has_products_of(kernel_, DType::bf16);
    std::optional<Launch> fused, strict;
    for (const std::string& level : cpu::instruction_sets()) {
      const cpu::Kernels* const kernels = cpu::find_kernels(level.c_str());
      for (const Numerics& numerics : {Numerics{}, Numerics::strict()}) {
        stage_ = fmt::format("cpu, {}{}", level, numerics.contract_fma ? "" : ", strict");
        Launch launch = traced_.launch;
        cpu::RunOptions options;
        options.threads = 1 + static_cast<unsigned>(recipe_.seed % 3);
        compiler::compile_for_cpu(kernel_, {numerics, {}, kernels})
            ->run(launch.arguments(), options);
        compare(launch);
        if (is_exact && !numerics.contract_fma) expect_equal(launch, plain);
        const bool has_pairs = level == "amx" || level.ends_with("bf16");
        const bool in_pairs = has_pairs && numerics.bf16_pairs && multiplies_bf16;
        if (level == "v2" || level == "baseline" || in_pairs) continue;
        std::optional<Launch>& first = numerics.contract_fma ? fused : strict;
        if (first) {
          stage_ += ", beside v3";
          expect_equal(launch, *first);
        } else {
          first = std::move(launch);
        }
      }
    }
  }

  // A second launch finds what the first has left.
  void simulate(const ir::Kernel& machine) {
    simulator::OwnedMemory owned;
    simulate(machine, 0, owned);
    if (machine.has_owned()) simulate(machine, 1, owned);
  }
  void simulate(const ir::Kernel& machine, std::uint64_t number, simulator::OwnedMemory& owned) {
    stage_ = number == 0 ? "simulated GPU" : "simulated GPU, second launch";
    Launch launch = traced_.launch;
    const Arguments arguments = launch.arguments();
    if (!compiler::outputs_are_empty(machine, arguments)) {
      simulator::MachineOptions options;
      options.seed = recipe_.seed;
      options.launch = number;
      options.owned = &owned;
      options.multiprocessors = 2 * (1 + static_cast<std::int64_t>(recipe_.seed % 3));
      options.resident = options.multiprocessors;
      const simulator::MachineReport report = simulator::run_machine(machine, arguments, options);
      if (!report.ok()) {
        const simulator::Fault& f = report.faults.front();
        end(Kind::fault, f.kind + ": " + f.message + (f.missing.empty() ? "" : "\n" + f.missing));
      }
    }
    compare(launch);
  }

  void launch(const ir::Kernel& source) {
    stage_ = "GPU";
    envelope_ = envelope_of(kernel_, traced_.launch, Precision::of_gpu());
    const runtime::Device& device = runtime::Device::get(0);
    const auto compiled = compiler::compile_for_device(source, device, {.allow_stack_frame = true});
    Launch launch = traced_.launch;
    std::vector<HostTensor> memory;
    for (const LaunchTensor& tensor : launch.tensors) memory.push_back(tensor.memory);
    const compiler::DeviceTensors on_device(memory);
    std::vector<TensorRef> refs = on_device.refs();
    for (std::size_t i = 0; i < refs.size(); ++i) refs[i].shape = launch.tensors[i].shape;
    for (std::size_t i = 0; i < refs.size(); ++i) {
      refs[i].strides = launch.tensors[i].memory.strides();
    }
    compiled->launch(on_device.stream(), refs, launch.scalars);
    on_device.download(memory);
    for (std::size_t i = 0; i < refs.size(); ++i) launch.tensors[i].memory = memory[i];
    compare(launch);
  }

  // Against the bounds; what was not written keeps every bit.
  void compare(const Launch& got) {
    if (!is_bounded_) return;
    for (std::size_t t = 0; t < got.tensors.size(); ++t) {
      const LaunchTensor& tensor = got.tensors[t];
      const TensorEnvelope& bounds = envelope_[t];
      for (std::int64_t i = 0; i < tensor.memory.elements(); ++i) {
        const double value = tensor.memory.flat(i);
        const Interval want = bounds.values[static_cast<std::size_t>(i)];
        const bool written = bounds.written[static_cast<std::size_t>(i)];
        if (!written) {
          if (same(value, traced_.launch.tensors[t].memory.flat(i))) continue;
          differ(tensor, i, value, "nothing to be written there");
        }
        if (want.anything()) continue;
        ++verdict_.checked;
        if (value >= want.lo && value <= want.hi) continue;
        differ(tensor, i, value, fmt::format("a value in [{:.9g}, {:.9g}]", want.lo, want.hi));
      }
    }
  }

  void expect_equal(const Launch& got, const Launch& want) {
    for (std::size_t t = 0; t < got.tensors.size(); ++t) {
      const LaunchTensor& tensor = got.tensors[t];
      for (std::int64_t i = 0; i < tensor.memory.elements(); ++i) {
        const double value = tensor.memory.flat(i), wanted = want.tensors[t].memory.flat(i);
        verdict_.checked += is_bounded_ ? 0 : 1;
        if (same(value, wanted)) continue;
        differ(tensor, i, value, fmt::format("{:.9g}, bit by bit", wanted));
      }
    }
  }

  bool is_explicit() const { return recipe_.style == Recipe::Style::explicit_level; }
  ir::Kernel explicit_kernel() const { return trace_explicit(recipe_, machine_).finish(); }

  [[noreturn]] void differ(const LaunchTensor& tensor, std::int64_t place, double value,
                           const std::string& wanted) {
    const std::vector<std::int64_t>& outer = tensor.memory.shape();
    std::vector<std::int64_t> index(outer.size());
    for (std::size_t axis = outer.size(); axis-- > 0; place /= outer[axis]) {
      index[axis] = place % outer[axis];
    }
    end(Kind::mismatch, fmt::format("{}[{}] is {:.9g}, expected {}", tensor.name,
                                    fmt::join(index, ", "), value, wanted));
  }

  [[noreturn]] void end(Kind kind, std::string text) {
    throw Decided{{kind, stage_, std::move(text), verdict_.checked}};
  }

  const Recipe& recipe_;
  Target target_;
  std::string_view machine_;
  Traced traced_;
  ir::Kernel kernel_;
  Precision precision_;
  std::vector<TensorEnvelope> envelope_;
  bool is_bounded_ = true;
  std::string stage_;
  bool planted_ = false;
  Verdict verdict_;
};

}  // namespace

namespace {

// What `run` decides, or what it throws says.
Verdict verdict_of(const std::string& stage, const std::function<Verdict()>& run) {
  try {
    return run();
  } catch (const Decided& decided) {
    return decided.verdict;
  } catch (const Undecided&) {
    return {Kind::undecided, stage, "", 0};
  } catch (const Error& error) {
    const bool proper = error.kind() != ErrorKind::internal && error.location().file != nullptr;
    if (error.kind() == ErrorKind::unavailable) throw;
    return {proper ? Kind::refused : Kind::internal, stage, error.message(), 0};
  } catch (const std::exception& error) {
    return {Kind::internal, stage, error.what(), 0};
  }
}

}  // namespace

Verdict judge(const Recipe& recipe, Target target, std::string_view machine) {
  std::optional<Judge> judge;
  Verdict verdict = verdict_of("tracing", [&] {
    judge.emplace(recipe, target, machine);
    return judge->run();
  });
  if (judge) verdict.stage = judge->stage();
  return verdict;
}

std::optional<Verdict> judge_fault(const Recipe& recipe, const SeededFault& fault,
                                   std::string_view machine) {
  std::optional<Judge> judge;
  bool has_place = true;
  const Verdict verdict = verdict_of("seeded fault", [&]() -> Verdict {
    judge.emplace(recipe, Target::simulator, machine);
    const std::optional<Verdict> result = judge->run(fault);
    has_place = result.has_value();
    return result.value_or(Verdict{});
  });
  if (!has_place || !judge || !judge->planted()) return {};
  return verdict;
}

std::string text_of(const Recipe& recipe) {
  try {
    const Traced traced = trace(recipe);
    return ir::to_text(traced.kernel.finish(), {.locations = false});
  } catch (const Error& error) {
    return std::string("it cannot be traced: ") + error.what() + "\n";
  }
}

}  // namespace tilewright::checks::fuzz
