#include "check/pass_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "compiler/written_tensors.h"
#include "passes/allocate_shared.h"
#include "simulator/interpreter.h"
#include "support/diagnostic.h"
#include "tilewright/host_tensor.h"

namespace tilewright::checks {
namespace {

// Of results whose roundings differ, also where they are to bf16 on the way: relative to the
// largest of the element and the root mean squares of its row and of the tensor.
constexpr double kTolerance = 2e-2;

// The tensors that a kernel writes.
class Outputs : public compiler::WrittenTensors {
 public:
  using WrittenTensors::WrittenTensors;
  // Row-major.
  std::vector<std::vector<double>> values() const {
    std::vector<std::vector<double>> result;
    for (const TensorArgument* tensor : tensors()) {
      std::vector<double>& values = result.emplace_back();
      const std::int64_t elements = span(*tensor);
      if (elements == 0) continue;
      const HostTensor memory =
          HostTensor::from_bytes(tensor->dtype, {elements},
                                 {tensor->data, tensor->data + elements * size_of(tensor->dtype)});
      std::vector<std::int64_t> index(tensor->shape.size(), 0);
      for (bool more = true; more;) {
        std::int64_t place = 0;
        for (std::size_t axis = 0; axis < index.size(); ++axis) {
          place += index[axis] * tensor->strides[axis];
        }
        values.push_back(memory.flat(place));
        more = false;
        for (std::size_t axis = index.size(); axis-- > 0 && !more;) {
          more = ++index[axis] < tensor->shape[axis];
          if (!more) index[axis] = 0;
        }
      }
    }
    return result;
  }
};

// One machine form of a kernel, and what it was made of.
class PassCheck {
 public:
  PassCheck(const ir::Kernel& kernel, const Arguments& arguments,
            const simulator::MachineOptions& simulated, const Spoil& spoil)
      : kernel_(kernel),
        arguments_(arguments),
        simulated_(simulated),
        outputs_(kernel, arguments),
        spoil_(spoil) {}

  void run(std::string_view target, const compiler::MachineOptions& options,
           const std::map<std::string, int>& rewrites) {
    rewrites_ = &rewrites;
    if (kernel_.form == ir::Form::tile) {
      interpret(kernel_);
      last_ = outputs_.values();
    } else {
      complete(kernel_, "");
    }
    compiler::compile_to_machine(kernel_, target, options,
                                 [this](const compiler::Stage& stage, const ir::Kernel& after) {
                                   check(stage.name, left_by(stage.name, after), stage.changed);
                                 });
  }

 private:
  ir::Kernel left_by(std::string_view pass, const ir::Kernel& after) const {
    ir::Kernel kernel = after;
    if (spoil_) spoil_(pass, kernel);
    return kernel;
  }

  void check(const std::string& stage, const ir::Kernel& after, bool changed) {
    if (stage == "schedule") {
      has_layouts_ = is_machine_ = false;
      is_abandoned_ = !finds_room(after);
    }
    if (is_abandoned_) return;
    if (after.form == ir::Form::tile) {
      if (!changed) return;
      interpret(after);
      return compare(stage, rewrites_->count(stage) != 0 ? kTolerance : 0);
    }
    has_layouts_ |= stage == "assign_layouts";
    is_machine_ |= stage == "allocate_shared";
    if (is_machine_ && (changed || stage == "allocate_shared")) {
      // Up to here places in registers, and with them orders of sums, may have moved.
      const bool first = stage == "allocate_shared";
      const std::string name = first ? "assign_layouts, or one up to allocate_shared," : stage;
      execute(after, name);
      compare(name, first ? kTolerance : 0);
    } else if (!has_layouts_ && changed) {
      complete(after, stage);
    }
  }

  // Whether the compiler goes on with this schedule, or makes another one that takes less.
  bool finds_room(const ir::Kernel& scheduled) const {
    try {
      completed(scheduled);
      return true;
    } catch (const passes::SharedMemoryExceeded&) {
      return false;
    }
  }

  void interpret(const ir::Kernel& kernel) {
    outputs_.restore();
    simulator::InterpreterOptions options;
    options.threads = 0;
    simulator::interpret(kernel, arguments_, options);
  }

  // By what the passes behind make of it, which change no rounding.
  ir::Kernel completed(const ir::Kernel& scheduled) const {
    compiler::MachineOptions strict{Numerics::strict()};
    strict.taken_up = kernel_.form == ir::Form::tile;
    return compiler::compile_to_machine(scheduled, scheduled.target, strict).kernel;
  }

  void complete(const ir::Kernel& scheduled, const std::string& stage) {
    execute(completed(scheduled), stage);
    if (stage.empty()) {
      last_ = outputs_.values();
    } else {
      compare(stage, kTolerance);
    }
  }

  void execute(const ir::Kernel& machine, const std::string& pass) {
    outputs_.restore();
    const simulator::MachineReport report = compiler::simulate(machine, arguments_, simulated_);
    if (report.ok()) return;
    Diagnostic fault = compiler::diagnostic_of(report.faults.front());
    if (!pass.empty()) fault.note({}, "so it is behind pass " + pass + ", and was not before");
    fault.raise();
  }

  // With what the kernel left before the pass.
  void compare(const std::string& pass, double tolerance) {
    std::vector<std::vector<double>> now = outputs_.values();
    for (std::size_t t = 0; t < now.size(); ++t) {
      const std::vector<double>&got = now[t], &want = last_[t];
      const auto row = static_cast<std::size_t>(std::max<std::int64_t>(
          outputs_.tensors()[t]->shape.empty() ? 1 : outputs_.tensors()[t]->shape.back(), 1));
      const double overall = magnitude(want, 0, want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double x = got[i], y = want[i];
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        const double scale = std::max({std::abs(y), overall, magnitude(want, i / row * row, row)});
        if (std::abs(x - y) <= tolerance * scale) continue;
        Diagnostic(kernel_.where,
                   fmt::format("kernel {}: behind pass {} element {} of {} is {:.9g}, before it "
                               "{:.9g}",
                               kernel_.name, pass, i, outputs_.tensors()[t]->name, x, y),
                   ErrorKind::result)
            .fix("report this: a pass of Tilewright changes what the kernel computes")
            .raise();
      }
    }
    last_ = std::move(now);
  }

  // The root mean square of what is finite.
  static double magnitude(const std::vector<double>& values, std::size_t first, std::size_t count) {
    double squares = 0;
    for (std::size_t i = first; i < std::min(first + count, values.size()); ++i) {
      if (std::isfinite(values[i])) squares += values[i] * values[i];
    }
    return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(count, 1)));
  }

  const ir::Kernel& kernel_;
  const Arguments& arguments_;
  const simulator::MachineOptions& simulated_;
  const Outputs outputs_;
  const std::map<std::string, int>* rewrites_ = nullptr;  // by name
  const Spoil& spoil_;
  std::vector<std::vector<double>> last_;
  bool has_layouts_ = false, is_machine_ = false, is_abandoned_ = false;
};

}  // namespace

void check_passes(const ir::Kernel& kernel, std::string_view target, const Arguments& arguments,
                  const Numerics& numerics, const simulator::MachineOptions& simulated,
                  const Spoil& spoil) {
  PassCheck check(kernel, arguments, simulated, spoil);
  std::optional<compiler::MachineOptions> options = compiler::MachineOptions{numerics};
  while (options) {
    compiler::MachineForm form = compiler::compile_to_machine(kernel, target, *options);
    check.run(target, *options, form.applied);
    options = std::move(form.otherwise);
  }
}

}  // namespace tilewright::checks
