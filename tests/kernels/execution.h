#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "passes/pipeline.h"
#include "simulator/interpreter.h"
#include "simulator/machine/machine.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

namespace tilewright::test {

inline constexpr double kTolerance = 4e-3;     // of bf16
inline constexpr double kLseTolerance = 1e-4;  // of the logarithm of a sum of exponentials

// A tensor inside a larger one whose other elements are NaN: what lies beyond the ends of an axis
// belongs to nobody. The padding keeps strides that TMA takes.
class Padded {
 public:
  Padded(DType dtype, std::vector<std::int64_t> shape) : shape_(std::move(shape)) {
    std::vector<std::int64_t> outer = shape_;
    for (std::int64_t& size : outer) size += 1;
    const std::int64_t step = std::max(8, 16 / size_of(dtype));
    outer.back() = (shape_.back() + 2 * step - 1) / step * step;
    memory_ = HostTensor::poisoned(dtype, outer);
  }
  static Padded normal(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed) {
    Padded tensor(dtype, shape);
    const HostTensor values = HostTensor::random_normal(dtype, shape, seed);
    std::int64_t next = 0;
    tensor.each([&](const std::vector<std::int64_t>& index) {
      tensor.memory_.set(index, values.flat(next++));
    });
    return tensor;
  }

  const std::vector<std::int64_t>& shape() const { return shape_; }
  double at(const std::vector<std::int64_t>& index) const { return memory_.at(index); }
  void set(const std::vector<std::int64_t>& index, double value) { memory_.set(index, value); }
  TensorArgument argument(const char* name) {
    return {name, memory_.dtype(), shape_, memory_.strides(), memory_.data()};
  }
  // Calls `visit(index)` for every element, row-major.
  template <typename Visit>
  void each(Visit&& visit) const {
    std::vector<std::int64_t> index(shape_.size(), 0);
    for (const std::int64_t size : shape_) {
      if (size == 0) return;
    }
    for (;;) {
      visit(index);
      std::size_t axis = shape_.size();
      while (axis > 0 && ++index[axis - 1] == shape_[axis - 1]) index[--axis] = 0;
      if (axis == 0) return;
    }
  }
  // All elements, row-major: for loops, in which at() takes longer than the arithmetic.
  std::vector<double> values() const {
    std::vector<double> values;
    each([&](const std::vector<std::int64_t>& index) { values.push_back(at(index)); });
    return values;
  }
  // Elements outside the tensor that have been written.
  std::int64_t written_outside() const {
    HostTensor cleared = memory_;
    each([&](const std::vector<std::int64_t>& index) { cleared.set(index, 0); });
    std::int64_t numbers = 0, inside = 0;
    for (std::int64_t i = 0; i < cleared.elements(); ++i) numbers += !std::isnan(cleared.flat(i));
    each([&](const std::vector<std::int64_t>&) { ++inside; });
    return numbers - inside;
  }

 private:
  std::vector<std::int64_t> shape_;
  HostTensor memory_;
};

// Root mean square of the difference relative to the reference's; infinity where an element is
// missing or an infinity differs.
inline double relative_error(const Padded& result, const std::vector<double>& reference) {
  double difference = 0, magnitude = 0;
  bool broken = false;
  std::size_t next = 0;
  result.each([&](const std::vector<std::int64_t>& index) {
    const double x = result.at(index), y = reference.at(next++);
    if (x == y && std::isinf(y)) return;
    broken |= !std::isfinite(x) || !std::isfinite(y);
    difference += (x - y) * (x - y);
    magnitude += y * y;
  });
  if (broken || (magnitude == 0 && difference != 0)) return std::numeric_limits<double>::infinity();
  if (magnitude == 0) return 0;
  return std::sqrt(difference / magnitude);
}

struct Execution {
  bool machine = false;    // else the tile form, interpreted
  std::uint64_t seed = 0;  // of the machine's order
  std::int64_t multiprocessors = 2;
};

// Runs a kernel of the tile form, or one of the scheduled form lowered to the machine's. False, and
// a test failure, when the machine finds a fault.
[[nodiscard]] inline bool execute(const Kernel& kernel, const Arguments& arguments,
                                  const Execution& execution) {
  ir::Kernel lowered = kernel.finish();
  if (!execution.machine) {
    simulator::interpret(lowered, arguments);
    return true;
  }
  passes::lower_to_machine(lowered);
  simulator::MachineOptions options;
  options.seed = execution.seed;
  options.multiprocessors = execution.multiprocessors;
  options.resident = execution.multiprocessors;
  const simulator::MachineReport report = simulator::run_machine(lowered, arguments, options);
  for (const simulator::Fault& fault : report.faults) {
    ADD_FAILURE() << fault.kind << ": " << fault.message << "\n" << fault.missing;
  }
  return report.ok();
}

}  // namespace tilewright::test
