#include "check/pass_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/simulation.h"
#include "passes/pipeline.h"
#include "schedules/schedule.h"
#include "simulator/interpreter.h"
#include "support/diagnostic.h"
#include "tilewright/host_tensor.h"

namespace tilewright::checks {
namespace {

// Of results whose roundings differ, also where they are to bf16 on the way: relative to the
// largest of the element and the root mean squares of its row and of the tensor.
constexpr double kTolerance = 2e-2;

// The tensors that a kernel writes.
class Outputs {
 public:
  Outputs(const ir::Kernel& kernel, const Arguments& arguments) {
    std::size_t next = 0;
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (!parameter.is_tensor() || parameter.is_owned()) continue;
      const TensorArgument& tensor = arguments.tensors.at(next++);
      if (parameter.kind != ir::Parameter::Kind::in) tensors_.push_back(&tensor);
    }
    for (const TensorArgument* tensor : tensors_) {
      initial_.emplace_back(tensor->data, tensor->data + span(*tensor) * size_of(tensor->dtype));
    }
  }

  void restore() const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!initial_[i].empty()) {
        std::memcpy(tensors_[i]->data, initial_[i].data(), initial_[i].size());
      }
    }
  }
  // Row-major.
  std::vector<std::vector<double>> values() const {
    std::vector<std::vector<double>> result;
    for (const TensorArgument* tensor : tensors_) {
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
  const TensorArgument& tensor(std::size_t i) const { return *tensors_[i]; }

 private:
  // Elements from the first to one past the last.
  static std::int64_t span(const TensorArgument& tensor) {
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      if (tensor.shape[axis] == 0) return 0;
      last += (tensor.shape[axis] - 1) * tensor.strides[axis];
    }
    return last + 1;
  }

  std::vector<const TensorArgument*> tensors_;
  std::vector<std::vector<std::byte>> initial_;
};

class PassCheck {
 public:
  PassCheck(const ir::Kernel& kernel, const Arguments& arguments, const Numerics& numerics,
            const Spoil& spoil)
      : kernel_(kernel),
        arguments_(arguments),
        outputs_(kernel, arguments),
        rewrites_{numerics, {}},
        spoil_(spoil) {}

  void run() {
    ir::Kernel now = kernel_;
    if (now.form == ir::Form::tile) {
      interpret(now);
      last_ = outputs_.values();
      passes::prepare_for_schedule(
          now, ir::kDefaultTarget,
          [this](std::string_view pass, const ir::Kernel& after, double, bool changed) {
            if (!changed) return;
            interpret(left_by(pass, after));
            const bool rewrites = rewrites_.applied.count(std::string(pass)) != 0;
            compare(std::string(pass), rewrites ? kTolerance : 0);
          },
          rewrites_);
      now = schedules::schedule_for_target(now);
    }
    rewrites_.convert_layouts = kernel_.form == ir::Form::tile;
    complete(now, now.form == kernel_.form ? "" : "schedule");
    passes::lower_to_machine(
        now,
        [this](std::string_view pass, const ir::Kernel& after, double, bool changed) {
          check_lowered(std::string(pass), left_by(pass, after), changed);
        },
        rewrites_);
  }

 private:
  ir::Kernel left_by(std::string_view pass, const ir::Kernel& after) const {
    ir::Kernel kernel = after;
    if (spoil_) spoil_(pass, kernel);
    return kernel;
  }

  void check_lowered(const std::string& pass, const ir::Kernel& after, bool changed) {
    has_layouts_ |= pass == "assign_layouts";
    is_machine_ |= pass == "allocate_shared";
    if (is_machine_ && (changed || pass == "allocate_shared")) {
      // Up to here places in registers, and with them orders of sums, may have moved.
      const bool first = pass == "allocate_shared";
      const std::string name = first ? "assign_layouts, or one up to allocate_shared," : pass;
      execute(after, name);
      compare(name, first ? kTolerance : 0);
    } else if (!has_layouts_ && changed) {
      complete(after, pass);
    }
  }

  void interpret(const ir::Kernel& kernel) {
    outputs_.restore();
    simulator::InterpreterOptions options;
    options.threads = 0;
    simulator::interpret(kernel, arguments_, options);
  }

  // By what the passes behind make of it, which change no rounding.
  void complete(ir::Kernel scheduled, const std::string& pass) {
    passes::Rewrites strict{Numerics::strict(), {}};
    strict.convert_layouts = kernel_.form == ir::Form::tile;
    passes::lower_to_machine(scheduled, {}, strict);
    execute(scheduled, pass);
    if (pass.empty()) {
      last_ = outputs_.values();
    } else {
      compare(pass, kTolerance);
    }
  }

  void execute(const ir::Kernel& machine, const std::string& pass) {
    outputs_.restore();
    const simulator::MachineReport report = compiler::simulate(machine, arguments_, {});
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
          outputs_.tensor(t).shape.empty() ? 1 : outputs_.tensor(t).shape.back(), 1));
      const double overall = magnitude(want, 0, want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double x = got[i], y = want[i];
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        const double scale = std::max({std::abs(y), overall, magnitude(want, i / row * row, row)});
        if (std::abs(x - y) <= tolerance * scale) continue;
        Diagnostic(kernel_.where,
                   fmt::format("kernel {}: behind pass {} element {} of {} is {:.9g}, before it "
                               "{:.9g}",
                               kernel_.name, pass, i, outputs_.tensor(t).name, x, y),
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
  const Outputs outputs_;
  passes::Rewrites rewrites_;
  const Spoil& spoil_;
  std::vector<std::vector<double>> last_;
  bool has_layouts_ = false, is_machine_ = false;
};

}  // namespace

void check_passes(const ir::Kernel& kernel, const Arguments& arguments, const Numerics& numerics,
                  const Spoil& spoil) {
  PassCheck(kernel, arguments, numerics, spoil).run();
}

}  // namespace tilewright::checks
