#include "library/differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/number_formats.h"

namespace tilewright::library {
namespace {

std::size_t bytes_of(DType dtype) { return static_cast<std::size_t>(size_of(dtype)); }

// The root mean square of what is finite.
double magnitude_of_finite(DType dtype, std::span<const std::byte> values) {
  const std::size_t elements = values.size() / bytes_of(dtype);
  double squares = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    float value = 0;
    to_float(dtype, values.data() + i * bytes_of(dtype), &value, 1);
    if (std::isfinite(value)) squares += double{value} * value;
  }
  return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(elements, 1)));
}

}  // namespace

std::string index_text(const std::vector<std::int64_t>& shape, std::int64_t index) {
  std::vector<std::int64_t> indices(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    indices[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(indices, ", "));
}

double bound_of_any_order(DType dtype) {
  if (!is_float(dtype)) return 0;
  if (dtype == DType::f32) return 0x1p-18;
  return size_of(dtype) == 1 ? 0x1p-3 : 0x1p-7;  // rounded from sums, to the next number at most
}

std::optional<std::size_t> first_apart(DType dtype, std::span<const std::byte> got,
                                       std::span<const std::byte> wanted, double bound) {
  const double least = bound > 0 ? bound * magnitude_of_finite(dtype, wanted) : 0;
  for (std::size_t at = 0; at < wanted.size(); at += bytes_of(dtype)) {
    if (std::memcmp(wanted.data() + at, got.data() + at, bytes_of(dtype)) == 0) continue;
    if (!is_float(dtype)) return at / bytes_of(dtype);
    float want = 0, is = 0;
    to_float(dtype, wanted.data() + at, &want, 1);
    to_float(dtype, got.data() + at, &is, 1);
    if (want == is || (std::isnan(want) && std::isnan(is))) continue;
    const double apart = std::abs(double{want} - is);
    if (bound > 0 && std::isfinite(want) && apart <= std::max(bound * std::abs(want), least)) {
      continue;
    }
    return at / bytes_of(dtype);
  }
  return std::nullopt;
}

std::string first_difference(const Workload& workload, const Workload& other,
                             const std::string& of_what,
                             const std::set<std::string>& in_any_order) {
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const HostTensor &tensor = workload.tensors[i], &before = other.tensors[i];
    if (!workload.parameters[i]->is_output || tensor == before) continue;
    const std::span<const std::byte> got(tensor.data(), tensor.size_bytes());
    const std::span<const std::byte> wanted(before.data(), before.size_bytes());
    std::size_t element = 0;
    if (in_any_order.count(workload.parameters[i]->name) > 0) {
      const auto apart =
          first_apart(tensor.dtype(), got, wanted, bound_of_any_order(tensor.dtype()));
      if (!apart) continue;
      element = *apart;
    } else {
      const auto bytes = std::mismatch(got.begin(), got.end(), wanted.begin());
      element = static_cast<std::size_t>(bytes.first - got.begin()) / bytes_of(tensor.dtype());
    }
    const auto flat = static_cast<std::int64_t>(element);
    return fmt::format("{}{} is {}, and {} {}", workload.name_of(i),
                       index_text(tensor.shape(), flat), tensor.flat(flat), before.flat(flat),
                       of_what);
  }
  return {};
}

}  // namespace tilewright::library
