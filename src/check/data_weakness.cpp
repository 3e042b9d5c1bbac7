#include "check/data_weakness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/counted.h"

namespace tilewright::checks {
namespace {

// The elements of a tensor as numbers, of which somebody reads some.
class Elements {
 public:
  explicit Elements(const InputData& input) : input_(input), shape_(input.values->shape()) {
    values_.resize(static_cast<std::size_t>(input.values->elements()));
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = input.values->flat(static_cast<std::int64_t>(i));
    }
  }

  std::size_t size() const { return values_.size(); }
  bool is_read(std::size_t i) const { return !input_.read || (*input_.read)[i]; }
  double at(std::size_t i) const { return values_[i]; }

  std::int64_t count_read() const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) count += is_read(i);
    return count;
  }
  // The one number that all of them are that are read.
  std::optional<double> constant() const {
    std::optional<double> first;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!is_read(i)) continue;
      if (!first) first = values_[i];
      if (values_[i] != *first) return {};
    }
    return first;
  }
  // 0, 1, 2 and so on.
  bool is_in_order() const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (values_[i] != static_cast<double>(i)) return false;
    }
    return true;
  }
  // Whether all that is read is the same at each place of the axis.
  bool repeats_along(std::size_t axis) const {
    std::size_t inner = 1;
    for (std::size_t i = axis + 1; i < shape_.size(); ++i) {
      inner *= static_cast<std::size_t>(shape_[i]);
    }
    const std::size_t around = inner * static_cast<std::size_t>(shape_[axis]);
    std::size_t compared = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::size_t before = i - inner;
      if (i % around < inner || !is_read(i) || !is_read(before)) continue;
      if (values_[i] != values_[before]) return false;
      ++compared;
    }
    return compared > 0;
  }

 private:
  const InputData& input_;
  const std::vector<std::int64_t>& shape_;
  std::vector<double> values_;
};

// Of the first axis: rows of which nobody reads an element.
struct Unread {
  std::int64_t rows = 0, of = 0;
  std::int64_t without_poison = 0;
};

Unread unread_rows(const InputData& input, const Elements& elements) {
  Unread unread;
  unread.of = input.values->shape().empty() ? 1 : input.values->shape().front();
  if (unread.of == 0) return unread;
  const std::size_t row = elements.size() / static_cast<std::size_t>(unread.of);
  for (std::size_t first = 0; row > 0 && first < elements.size(); first += row) {
    bool read = false, poisoned = true;
    for (std::size_t i = first; i < first + row; ++i) {
      read |= elements.is_read(i);
      poisoned &= std::isnan(elements.at(i));
    }
    unread.rows += !read;
    unread.without_poison += !read && !poisoned;
  }
  return unread;
}

void add_unread(const InputData& input, const Elements& elements, std::vector<std::string>& all) {
  const Unread unread = unread_rows(input, elements);
  if (2 * unread.rows > unread.of) {
    all.push_back(fmt::format("{}: nobody reads {} of {}, more than half", input.name, unread.rows,
                              counted(unread.of, "row")));
  } else if (unread.without_poison > 0 && is_float(input.values->dtype())) {
    all.push_back(
        fmt::format("{}: nobody reads {} of {}, which are not NaN: whoever reads them "
                    "all the same is not noticed",
                    input.name, unread.without_poison, counted(unread.of, "row")));
  }
}

std::string repeated_axis(const InputData& input, const Elements& elements) {
  for (std::size_t axis = 0; axis < input.values->shape().size(); ++axis) {
    if (elements.repeats_along(axis)) {
      return fmt::format(
          "{}: the same at each place of axis {}: whoever takes another place is "
          "not noticed",
          input.name, axis);
    }
  }
  return {};
}

bool are_alike(const HostTensor& a, const HostTensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const auto bytes = static_cast<std::size_t>(a.elements() * size_of(a.dtype()));
  return std::memcmp(a.data(), b.data(), bytes) == 0;
}

}  // namespace

std::vector<std::string> weaknesses_of(const InputData& input) {
  const Elements elements(input);
  std::vector<std::string> all;
  if (elements.count_read() > 1) {
    const bool is_table = is_integer(input.values->dtype());
    if (const std::optional<double> constant = elements.constant()) {
      all.push_back(fmt::format("{}: every number is {}{}", input.name, *constant,
                                is_table ? ": as a table it names one place alone" : ""));
    } else if (is_table && !input.may_be_in_order && elements.size() > 3 &&
               elements.is_in_order()) {
      all.push_back(
          fmt::format("{}: the numbers count up from 0: as a table, whoever ignores it "
                      "is not noticed",
                      input.name));
    } else if (const std::string repeated = repeated_axis(input, elements); !repeated.empty()) {
      all.push_back(repeated);
    }
  }
  if (input.read && !input.keeps_unread && elements.size() > 1) add_unread(input, elements, all);
  return all;
}

// Integers may be the same for a reason, such as the lengths of queries and of keys.
std::vector<std::string> weaknesses_among(const std::vector<InputData>& inputs) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const HostTensor& values = *inputs[i].values;
    if (!is_float(values.dtype()) || values.elements() < 2) continue;
    for (std::size_t before = 0; before < i; ++before) {
      if (!are_alike(*inputs[before].values, values)) continue;
      all.push_back(
          fmt::format("{}: the same numbers as {}: whoever takes one for the other is not noticed",
                      inputs[i].name, inputs[before].name));
      break;
    }
  }
  return all;
}

std::vector<std::string> weaknesses_of_result(const std::string& name,
                                              const std::vector<double>& expected) {
  const auto nans = std::count_if(expected.begin(), expected.end(),
                                  [](double value) { return std::isnan(value); });
  if (nans > 0) {
    return {fmt::format("{}: {} of {} expected numbers are NaN, as what nobody writes is", name,
                        nans, expected.size())};
  }
  if (expected.size() < 2) return {};
  const bool is_constant = std::all_of(expected.begin(), expected.end(),
                                       [&](double value) { return value == expected.front(); });
  if (!is_constant) return {};
  return {fmt::format("{}: every expected number is {}", name, expected.front())};
}

}  // namespace tilewright::checks
