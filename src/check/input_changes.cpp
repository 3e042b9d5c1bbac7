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
// How far the last element of an axis lies from the others. A key that lies so far from the others
// has some thousand times their weight in a softmax: it outweighs them, and they still count.
constexpr double kApart = 8;
// The size of operands of one sign, or of sums of products of two of them along the last axis.
// There tanh and sigmoid are neither 0 nor 1, so that every term of the sum shows.
constexpr double kSum = 3;
// exp(-kFarSum / sqrt(256)) is 0 in f32.
constexpr double kFarSum = 3072;
constexpr double kSteep = 8;
constexpr double kSmall = 1.0 / 16;
constexpr std::size_t kFew = 4;  // inputs of which every two are changed

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

// An element of the wanted sign and size. Sizes vary a little, so that no two elements are alike.
double of_one_sign(double drawn, bool is_negative, double sum, std::int64_t extent) {
  const double usual =
      sum > 0 ? std::sqrt(sum / static_cast<double>(std::max<std::int64_t>(extent, 1))) : kSum;
  const double size = usual * (1 + std::clamp(drawn, -1.0, 1.0) / 8);
  return is_negative ? -size : size;
}

// Whether the element's coordinates but the last add up to an odd number, so that rows alternate
// along each axis.
bool is_in_odd_row(const std::vector<std::int64_t>& shape, std::int64_t element) {
  std::int64_t sum = 0;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (axis + 1 < shape.size()) sum += element % shape[axis];
    element /= shape[axis];
  }
  return sum % 2 != 0;
}

double in_rows(double value, bool has_small_rows, const std::vector<std::int64_t>& shape,
               std::int64_t element, std::int64_t elements) {
  if (has_small_rows) return is_in_odd_row(shape, element) ? value * kSmall : value;
  const std::int64_t row = element / shape.back(), rows = elements / shape.back();
  const double part =
      static_cast<double>(row) / static_cast<double>(std::max<std::int64_t>(rows - 1, 1));
  return value * (1 + kSteep * part);
}

bool is_apart(const InputChange& change, std::int64_t at, std::int64_t extent) {
  constexpr std::int64_t kEvery = 32;
  switch (change.kind) {
    case Kind::starts:
      return at % kEvery == 0;
    case Kind::ends:
      return at % kEvery == kEvery - 1 || at + 1 == extent;
    case Kind::end:
      return at + 1 == extent;
    case Kind::shift:
      return true;
    case Kind::growth:
    case Kind::sign:
    case Kind::zero:
    case Kind::rows:
      break;
  }
  return false;
}

// Changes of all inputs together, and of every two of them if there are few.
void add_together(const std::vector<std::size_t>& inputs, std::vector<InputChange>& changes) {
  for (const double sum : {kSum, 0.0, kFarSum}) {
    for (const std::size_t other : inputs) changes.push_back({Kind::sign, inputs, sum, 0, other});
  }
  if (inputs.size() > kFew) return;
  for (const std::size_t first : inputs) {
    for (const std::size_t second : inputs) {
      if (first == second) continue;
      changes.push_back({Kind::rows, {first, second}, kSteep, 0, second});
      for (const double sum : {kSum, 0.0}) {
        changes.push_back({Kind::sign, inputs, sum, 0, first, second});
      }
    }
  }
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
  add_together(narrow, changes);
  for (const std::vector<std::size_t>* all : {&narrow, &single}) {
    for (const std::size_t input : *all) changes.push_back({Kind::zero, {input}});
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
    if (change.kind == Kind::zero || (change.zero && *change.zero == input)) {
      tensor.set_flat(i, 0);
    } else if (change.kind == Kind::sign) {
      tensor.set_flat(i, of_one_sign(value, input == change.other, change.by,
                                     shape.empty() ? 1 : shape.back()));
    } else if (change.kind == Kind::rows) {
      tensor.set_flat(i, shape.empty()
                             ? value
                             : in_rows(value, input == change.other, shape, i, tensor.elements()));
    } else if (change.kind == Kind::growth) {
      tensor.set_flat(i, value * (1 + change.by * part));
    } else if (is_apart(change, at, extent)) {
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
    case Kind::starts:
    case Kind::ends:
      return fmt::format("every 32nd element of axis {} of {}, from {} on, lies {} apart",
                         change.axis, name, change.kind == Kind::starts ? 0 : 31, change.by);
    case Kind::end:
      return fmt::format("the end of axis {} of {} lies {} apart", change.axis, name, change.by);
    case Kind::sign:
      return fmt::format(
          "{} are {}, {} negative{}", name,
          change.by != 0 ? fmt::format("as large as sums of about {} want", change.by) : "about 3",
          names[change.other], change.zero ? fmt::format(" and {} zero", names[*change.zero]) : "");
    case Kind::zero:
      return fmt::format("{} is zero", name);
    case Kind::rows:
      return fmt::format("{} grows from row to row, and every other row of {} is small",
                         names[change.inputs.front()], names[change.other]);
    case Kind::shift:
      break;
  }
  return fmt::format("{} lies {} from zero", name, change.by);
}

}  // namespace tilewright::checks
