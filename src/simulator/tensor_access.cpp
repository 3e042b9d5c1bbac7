#include "simulator/tensor_access.h"

#include <algorithm>
#include <cstring>

#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

// Whether an axis that is indexed away is indexed inside of the tensor, and below the limit.
bool is_inside(const Box& box, std::size_t axis) {
  return box.starts[axis] < std::min(box.limits[axis], box.tensor->shape[axis]);
}

// Whether all that exists of the box lies inside of the tensor.
bool lies_inside(const Box& box, const std::vector<std::int64_t>& extents) {
  std::size_t axis = 0;
  for (std::size_t i = 0; i < box.sizes.size(); ++i) {
    if (box.sizes[i] == 0) continue;
    const std::int64_t extent = extents[axis++];
    if (box.starts[i] < 0 || box.starts[i] + extent > box.tensor->shape[i]) return false;
  }
  return true;
}

// Reads `count` elements, `step` bytes apart.
template <typename Real>
void read_row(const TensorArgument& tensor, const std::byte* memory, std::int64_t step,
              std::int64_t count, std::byte* target) {
  const DType dtype = tensor.dtype;
  const auto size = static_cast<std::size_t>(count);
  if (!is_float(dtype)) {
    auto* integers = reinterpret_cast<std::int64_t*>(target);
    for (std::int64_t i = 0; i < count; ++i, memory += step) {
      integers[i] = to_integer(dtype, memory);
    }
    return;
  }
  auto* reals = reinterpret_cast<Real*>(target);
  if (tensor.is_double) {
    for (std::int64_t i = 0; i < count; ++i, memory += step) {
      double element = 0;
      std::memcpy(&element, memory, sizeof(element));
      reals[i] = static_cast<Real>(element);
    }
    return;
  }
  if (step != size_of(dtype)) {
    for (std::int64_t i = 0; i < count; ++i, memory += step) {
      float element = 0;
      to_float(dtype, memory, &element, 1);
      reals[i] = element;
    }
  } else if constexpr (sizeof(Real) == sizeof(float)) {
    to_float(dtype, memory, reals, size);
  } else {
    std::vector<float> narrow(size);
    to_float(dtype, memory, narrow.data(), size);
    std::copy(narrow.begin(), narrow.end(), reals);
  }
}

template <typename Real>
void write_row(const TensorArgument& tensor, const std::byte* source, std::int64_t count,
               std::byte* memory, std::int64_t step) {
  const DType dtype = tensor.dtype;
  const auto size = static_cast<std::size_t>(count);
  if (!is_float(dtype)) {
    const auto* integers = reinterpret_cast<const std::int64_t*>(source);
    for (std::int64_t i = 0; i < count; ++i, memory += step) {
      from_integer(dtype, integers[i], memory);
    }
    return;
  }
  const auto* reals = reinterpret_cast<const Real*>(source);
  if (tensor.is_double) {
    for (std::int64_t i = 0; i < count; ++i, memory += step) {
      const double element = reals[i];
      std::memcpy(memory, &element, sizeof(element));
    }
    return;
  }
  std::vector<float> narrow(reals, reals + size);
  if (step == size_of(dtype)) {
    from_float(dtype, narrow.data(), memory, size);
    return;
  }
  for (std::size_t i = 0; i < size; ++i, memory += step) from_float(dtype, &narrow[i], memory, 1);
}

// Calls `visit(memory, step, element of the tile, count)` for each row of `extents`, for what of it
// lies inside of the tensor.
template <typename Visit>
void for_rows(const Box& box, const std::vector<std::int64_t>& shape,
              const std::vector<std::int64_t>& extents, Visit visit) {
  if (any_empty(extents)) return;
  const TensorArgument& tensor = *box.tensor;
  const std::int64_t bytes = tensor.element_bytes();
  const std::vector<std::int64_t> strides = row_major_strides(shape);
  std::int64_t origin = 0, corner = 0;  // of what lies inside: in the tensor, in the tile
  std::vector<std::int64_t> steps;      // of the tile's axes, in the tensor
  std::vector<std::int64_t> outer;
  for (std::size_t i = 0; i < box.sizes.size(); ++i) {
    origin += box.starts[i] * tensor.strides[i];
    if (box.sizes[i] == 0) continue;
    const std::size_t axis = steps.size();
    const std::int64_t first = std::max<std::int64_t>(0, -box.starts[i]);
    const std::int64_t last = std::min(extents[axis], tensor.shape[i] - box.starts[i]);
    if (first >= last) return;
    origin += first * tensor.strides[i];
    corner += first * strides[axis];
    outer.push_back(last - first);
    steps.push_back(tensor.strides[i]);
  }
  std::int64_t row = 1, step = 1;
  if (!outer.empty()) {
    row = outer.back();
    step = steps.back();
    outer.pop_back();
  }
  std::vector<std::int64_t> index(outer.size());
  do {
    std::int64_t place = origin, element = corner;
    for (std::size_t i = 0; i < index.size(); ++i) {
      place += index[i] * steps[i];
      element += index[i] * strides[i];
    }
    visit(tensor.data + place * bytes, step * bytes, element, row);
  } while (advance(index, outer));
}

}  // namespace

Box box_of(const ir::Operation& operation, const TensorArgument& tensor,
           const std::vector<std::int64_t>& bounds) {
  const std::size_t rank = tensor.shape.size();
  const auto middle = bounds.begin() + static_cast<std::ptrdiff_t>(rank);
  return {&tensor,
          {bounds.begin(), middle},
          {middle, bounds.end()},
          operation.attributes.integers(ir::Key::sizes)};
}

bool index_exists(const Box& box) {
  for (std::size_t i = 0; i < box.sizes.size(); ++i) {
    if (box.sizes[i] == 0 && !is_inside(box, i)) return false;
  }
  return true;
}

std::vector<std::int64_t> existing_extents(const Box& box) {
  const bool exists = index_exists(box);
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < box.sizes.size(); ++i) {
    if (box.sizes[i] == 0) continue;
    const std::int64_t extent =
        std::clamp<std::int64_t>(box.limits[i] - box.starts[i], 0, box.sizes[i]);
    extents.push_back(exists ? extent : 0);
  }
  return extents;
}

void for_each_row(const Box& box, const std::vector<std::int64_t>& shape,
                  const std::vector<std::int64_t>& extents, const VisitRow& visit) {
  for_rows(box, shape, extents,
           [&](const std::byte* memory, std::int64_t step, std::int64_t, std::int64_t count) {
             visit(memory, step, count);
           });
}

template <typename Real>
void read_box(const Box& box, Value& tile) {
  const auto bytes = static_cast<std::int64_t>(tile.element_bytes());
  if (!lies_inside(box, tile.extents())) {
    std::memset(tile.bytes(), 0, static_cast<std::size_t>(tile.type().elements() * bytes));
  }
  for_rows(
      box, tile.type().shape, tile.extents(),
      [&](const std::byte* memory, std::int64_t step, std::int64_t element, std::int64_t count) {
        read_row<Real>(*box.tensor, memory, step, count, tile.bytes() + element * bytes);
      });
}

template <typename Real>
void write_box(const Box& box, const Value& tile, const std::vector<std::int64_t>& extents) {
  const auto bytes = static_cast<std::int64_t>(tile.element_bytes());
  for_rows(box, tile.type().shape, extents,
           [&](std::byte* memory, std::int64_t step, std::int64_t element, std::int64_t count) {
             write_row<Real>(*box.tensor, tile.bytes() + element * bytes, count, memory, step);
           });
}

template void read_box<float>(const Box&, Value&);
template void read_box<double>(const Box&, Value&);
template void write_box<float>(const Box&, const Value&, const std::vector<std::int64_t>&);
template void write_box<double>(const Box&, const Value&, const std::vector<std::int64_t>&);

}  // namespace tilewright::simulator
