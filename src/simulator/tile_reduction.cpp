#include "simulator/tile_reduction.h"

#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "support/arguments.h"
#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

using ir::Op;

// Where the element lies.
std::int64_t offset(const std::vector<std::int64_t>& index,
                    const std::vector<std::int64_t>& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0});
}

template <typename T>
T combine(Op function, T a, T b) {
  if (function == Op::min) return a < b || b != b ? a : b;
  return a > b || b != b ? a : b;
}

// `count` elements, `stride` apart, in ascending order.
template <typename T>
T reduce_elements(const Elementwise& function, std::int64_t count, const T* x,
                  std::int64_t stride) {
  if (count <= 0) return reduce_identity<T>(function.op, function.dtype);
  T result = x[0];
  if (function.op != Op::add) {
    for (std::int64_t i = 1; i < count; ++i) result = combine(function.op, result, x[i * stride]);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    for (std::int64_t i = 1; i < count; ++i) {
      const T pair[] = {result, x[i * stride]};
      const T* const operands[] = {&pair[0], &pair[1]};
      evaluate(function, 1, operands, &result);
    }
  } else {
    for (std::int64_t i = 1; i < count; ++i) result = static_cast<T>(result + x[i * stride]);
  }
  return result;
}

}  // namespace

template <typename Real>
void reduce_tile(const Elementwise& function, std::size_t axis, const Value& source,
                 Value& result) {
  const std::int64_t count = source.extents()[axis];
  result.extents() = source.extents();
  result.extents()[axis] = 1;
  if (any_empty(result.extents())) return;
  const std::vector<std::int64_t> from = row_major_strides(source.type().shape);
  const std::vector<std::int64_t> to = row_major_strides(result.type().shape);
  with_element<Real>(source.kind(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::int64_t> index(from.size());
    do {
      T& target = result.data<T>()[offset(index, to)];
      target = reduce_elements(function, count, source.data<T>() + offset(index, from), from[axis]);
      if constexpr (std::is_same_v<T, float>) target = round_to(result.type().dtype, target);
    } while (advance(index, result.extents()));
  });
}

template void reduce_tile<float>(const Elementwise&, std::size_t, const Value&, Value&);
template void reduce_tile<double>(const Elementwise&, std::size_t, const Value&, Value&);

bool any_element(const Value& source) {
  if (any_empty(source.extents())) return false;
  const std::vector<std::int64_t> strides = row_major_strides(source.type().shape);
  std::vector<std::int64_t> index(strides.size());
  bool found = false;
  do {
    found = source.data<std::uint8_t>()[offset(index, strides)] != 0;
  } while (!found && advance(index, source.extents()));
  return found;
}

}  // namespace tilewright::simulator
