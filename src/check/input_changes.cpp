#include "check/input_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

namespace tilewright::checks {
namespace {

using Kind = InputChange::Kind;

constexpr double kFar = 256;  // exp(-kFar) is 0 in f32; e4m3 reaches to 448
constexpr double kGrowth = 2;
// Of a key of a softmax with usual queries: its weights are up to some thousand times those of
// others, and not more.
constexpr double kApart = 8;
// What such operands are, or sums of products of two of them along the last axis: functions such as
// tanh and sigmoid are neither 0 nor 1 there, and hang on all of their terms.
constexpr double kSum = 3;

void add_shifts(const std::vector<std::size_t>& inputs, std::vector<InputChange>& changes) {
  for (const double by : {-kFar, kFar}) changes.push_back({Kind::shift, inputs, by});
}

void add_changes(const HostTensor& tensor, std::size_t input, std::vector<InputChange>& changes) {
  const std::vector<std::int64_t>& shape = tensor.shape();
  add_shifts({input}, changes);
  if (shape.size() < 2) return;
  std::size_t longest = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis + 1 < shape.size() && shape[axis] > shape[longest]) longest = axis;
    if (shape[axis] > 1) changes.push_back({Kind::growth, {input}, kGrowth, axis});
  }
  for (const std::size_t axis : {longest, shape.size() - 1}) {
    if (shape[axis] > 1) changes.push_back({Kind::end, {input}, kApart, axis});
  }
}

// About as large as the others, and no two alike.
double of_one_sign(double drawn, bool is_negative, bool is_summed, std::int64_t extent) {
  const double usual =
      is_summed ? std::sqrt(kSum / static_cast<double>(std::max<std::int64_t>(extent, 1))) : kSum;
  const double size = usual * (1 + std::clamp(drawn, -1.0, 1.0) / 8);
  return is_negative ? -size : size;
}

}  // namespace

std::vector<InputChange> changes_of_inputs(
    const std::vector<std::pair<std::size_t, const HostTensor*>>& inputs) {
  std::vector<InputChange> changes;
  std::vector<std::size_t> single, narrow;
  for (const auto& [number, tensor] : inputs) {
    if (!is_float(tensor->dtype())) continue;
    add_changes(*tensor, number, changes);
    (tensor->dtype() == DType::f32 ? single : narrow).push_back(number);
  }
  if (single.size() > 1) add_shifts(single, changes);
  for (const std::size_t negative : narrow) {
    for (const double summed : {1, 0}) {
      changes.push_back({Kind::sign, narrow, summed, 0, negative});
    }
  }
  return changes;
}

void apply(const InputChange& change, std::size_t input, HostTensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape();
  const std::int64_t extent = shape.empty() ? 1 : shape[change.axis];
  const std::int64_t inner =
      std::accumulate(shape.begin() + std::min(change.axis + 1, shape.size()), shape.end(),
                      std::int64_t{1}, std::multiplies<>());
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const std::int64_t at = i / inner % extent;
    const double value = tensor.flat(i);
    const double part =
        static_cast<double>(at) / static_cast<double>(std::max<std::int64_t>(extent - 1, 1));
    if (change.kind == Kind::sign) {
      const bool is_negative = input == change.negative;
      tensor.set_flat(
          i, of_one_sign(value, is_negative, change.by != 0, shape.empty() ? 1 : shape.back()));
    } else if (change.kind == Kind::growth) {
      tensor.set_flat(i, value * (1 + change.by * part));
    } else if (change.kind == Kind::shift || at + 1 == extent) {
      tensor.set_flat(i, value + change.by);
    }
  }
}

std::string describe(const InputChange& change, const std::vector<std::string>& names) {
  std::vector<std::string> changed;
  for (const std::size_t input : change.inputs) changed.push_back(names[input]);
  const std::string name = fmt::format("{}", fmt::join(changed, " and "));
  switch (change.kind) {
    case Kind::growth:
      return fmt::format("{} grows along axis {}", name, change.axis);
    case Kind::end:
      return fmt::format("the end of axis {} of {} lies {} apart", change.axis, name, change.by);
    case Kind::sign:
      return fmt::format("{} are about {}, {} negative", name,
                         change.by != 0 ? "as large as sums of some size want" : "3",
                         names[change.negative]);
    case Kind::shift:
      break;
  }
  return fmt::format("{} lies {} from zero", name, change.by);
}

}  // namespace tilewright::checks
