#include "simulator/tile_value.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tilewright::simulator {
namespace {

constexpr std::size_t kMaxOperands = 3;
constexpr std::size_t kResult = kMaxOperands;  // its place among the strides

struct Axis {
  std::int64_t size, extent;
  std::array<std::int64_t, kMaxOperands + 1> strides;  // in elements
};

// Whether `outer` and `inner` are one longer axis of every operand.
bool merge(const Axis& outer, const Axis& inner) {
  if (inner.extent != inner.size) return false;
  for (std::size_t k = 0; k <= kResult; ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.size) return false;
  }
  return true;
}

// The axes of more than one element, with neighbours merged where all operands allow it.
std::vector<Axis> loop_axes(const std::vector<const Value*>& operands, const Value& result) {
  const std::vector<std::int64_t>& shape = result.type().shape;
  std::vector<Axis> axes;
  std::array<std::int64_t, kMaxOperands + 1> next = {1, 1, 1, 1};
  for (std::size_t i = shape.size(); i-- > 0;) {  // innermost first
    Axis axis{shape[i], result.extents()[i], {}};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const std::size_t missing = shape.size() - operands[k]->rank();
      const std::int64_t size = i < missing ? 1 : operands[k]->type().shape[i - missing];
      axis.strides[k] = size == 1 ? 0 : next[k];
      next[k] *= size;
    }
    axis.strides[kResult] = next[kResult];
    next[kResult] *= shape[i];
    if (axis.size == 1) continue;
    if (!axes.empty() && merge(axis, axes.back())) {
      axes.back().extent = axis.extent * axes.back().size;
      axes.back().size *= axis.size;
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

void fill(std::byte* target, const std::byte* element, std::size_t bytes, std::size_t count) {
  if (bytes == 1) {
    std::memset(target, static_cast<int>(*element), count);
    return;
  }
  std::memcpy(target, element, bytes);
  for (std::size_t done = 1; done < count;) {
    const std::size_t more = std::min(done, count - done);
    std::memcpy(target + done * bytes, target, more * bytes);
    done += more;
  }
}

}  // namespace

Value::Value(const ir::Type& type, std::size_t real_bytes)
    : type_(&type),
      element_bytes_(held(type.dtype) == Held::real      ? real_bytes
                     : held(type.dtype) == Held::integer ? sizeof(std::int64_t)
                                                         : sizeof(std::uint8_t)),
      extents_(type.shape) {
  if (extents_.empty()) return;
  const std::size_t bytes = static_cast<std::size_t>(type.elements()) * element_bytes_;
  elements_.reset(new std::byte[bytes]);
  std::memset(elements_.get(), 0xff, bytes);
}

Value Value::with_type(const ir::Type& type) const {
  Value result = *this;
  result.type_ = &type;
  result.extents_ = type.shape;
  return result;
}

std::string shape_text(const std::vector<std::int64_t>& extents) {
  std::string result = "{";
  for (std::size_t i = 0; i < extents.size(); ++i) {
    result += (i ? ", " : "") + std::to_string(extents[i]);
  }
  return result + "}";
}

bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& extents) {
  for (std::size_t i = index.size(); i-- > 0;) {
    if (++index[i] < extents[i]) return true;
    index[i] = 0;
  }
  return false;
}

bool any_empty(const std::vector<std::int64_t>& extents) {
  return std::any_of(extents.begin(), extents.end(), [](std::int64_t e) { return e <= 0; });
}

void apply_elementwise(const std::vector<const Value*>& operands, Value& result,
                       RowFunction& function) {
  const std::vector<std::int64_t>& shape = result.type().shape;
  for (const Value* operand : operands) {
    const std::size_t missing = shape.size() - operand->rank();
    for (std::size_t i = 0; i < operand->rank(); ++i) {
      const std::int64_t extent = operand->extents()[i];
      const bool stretched = operand->type().shape[i] == 1 && extent == 1;
      std::int64_t& own = result.extents()[i + missing];
      if (!stretched) own = std::min(own, extent);
    }
  }
  if (any_empty(result.extents())) return;

  const std::vector<Axis> axes = loop_axes(operands, result);
  const std::size_t row = axes.empty() ? 1 : static_cast<std::size_t>(axes[0].extent);
  std::vector<std::int64_t> index, outer;  // of the axes but the innermost, outermost first
  for (std::size_t i = axes.size(); i-- > 1;) outer.push_back(axes[i].extent);
  index.resize(outer.size());

  // An operand that does not move along a row is repeated here.
  std::array<std::vector<std::byte>, kMaxOperands> repeated;
  do {
    std::array<std::int64_t, kMaxOperands + 1> offsets = {};
    for (std::size_t i = 0; i < index.size(); ++i) {
      for (std::size_t k = 0; k <= kResult; ++k) {
        offsets[k] += index[i] * axes[axes.size() - 1 - i].strides[k];
      }
    }
    std::array<const std::byte*, kMaxOperands> sources = {};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const std::size_t bytes = operands[k]->element_bytes();
      sources[k] = operands[k]->bytes() + offsets[k] * static_cast<std::int64_t>(bytes);
      if (row > 1 && axes[0].strides[k] == 0) {
        repeated[k].resize(row * bytes);
        fill(repeated[k].data(), sources[k], bytes, row);
        sources[k] = repeated[k].data();
      }
    }
    function.run(
        row, sources.data(),
        result.bytes() + offsets[kResult] * static_cast<std::int64_t>(result.element_bytes()));
  } while (advance(index, outer));
}

}  // namespace tilewright::simulator
