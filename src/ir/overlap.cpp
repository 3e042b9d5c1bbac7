#include "ir/overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace tilewright::ir {
namespace {

struct Axis {
  std::size_t number = 0;
  std::int64_t size = 1, stride = 1;
  std::int64_t reach = 0;  // of the axes of smaller strides together
};

// Steps along the axes that add up to nothing, not all of them 0: where one goes ahead and another
// back, two elements meet.
class ZeroSum {
 public:
  ZeroSum(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides)
      : steps_(sizes.size()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] > 1) axes_.push_back({i, sizes[i], strides[i]});
    }
    std::sort(axes_.begin(), axes_.end(),
              [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
    for (std::size_t i = 1; i < axes_.size(); ++i) {
      axes_[i].reach = axes_[i - 1].reach + (axes_[i - 1].size - 1) * axes_[i - 1].stride;
    }
  }

  bool find() { return find(axes_.size(), 0, false); }
  const ElementIndex& steps() const { return steps_; }

 private:
  // Whether the `count` axes of the smallest strides can add up to -sum.
  bool find(std::size_t count, std::int64_t sum, bool moved) {
    if (count == 0) return moved && sum == 0;
    const Axis& axis = axes_[count - 1];
    // What the smaller axes can make up for. The first axis that moves goes ahead.
    const std::int64_t most = std::min((axis.reach - sum) / axis.stride + 1, axis.size - 1);
    const std::int64_t least =
        moved ? std::max((-axis.reach - sum) / axis.stride - 1, 1 - axis.size) : 0;
    for (std::int64_t step = least; step <= most; ++step) {
      const std::int64_t next = sum + step * axis.stride;
      if (next > axis.reach || next < -axis.reach) continue;
      steps_[axis.number] = step;
      if (find(count - 1, next, moved || step != 0)) return true;
    }
    steps_[axis.number] = 0;
    return false;
  }

  std::vector<Axis> axes_;  // of several elements, by their strides
  ElementIndex steps_;
};

}  // namespace

std::optional<std::pair<ElementIndex, ElementIndex>> overlap(
    const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  ZeroSum sum(sizes, strides);
  if (!sum.find()) return std::nullopt;
  std::pair<ElementIndex, ElementIndex> elements;
  for (const std::int64_t step : sum.steps()) {
    elements.first.push_back(std::max<std::int64_t>(step, 0));
    elements.second.push_back(std::max<std::int64_t>(-step, 0));
  }
  return elements;
}

namespace {

// A tensor without its axes of one element, whose strides say nothing.
struct Layout {
  explicit Layout(const TensorArgument& tensor)
      : first(reinterpret_cast<std::intptr_t>(tensor.data)), bytes(tensor.element_bytes()) {
    const std::vector<std::int64_t> all =
        tensor.strides.empty() ? row_major_strides(tensor.shape) : tensor.strides;
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      elements *= tensor.shape[axis];
      if (tensor.shape[axis] <= 1) continue;
      sizes.push_back(tensor.shape[axis]);
      strides.push_back(all[axis]);
    }
    empty = elements == 0;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
    end = first + (last + 1) * bytes;
    dense = last + 1 == elements;
  }

  std::int64_t first, end = 0, bytes;
  std::vector<std::int64_t> sizes, strides;
  bool empty = false, dense = false;
};

}  // namespace

namespace {

// From the first byte of a tensor to behind its last one.
struct Span {
  std::int64_t first, end;
};
Span span_of(const TensorArgument& tensor) {
  const auto first = reinterpret_cast<std::intptr_t>(tensor.data);
  std::int64_t last = 0, elements = 1;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    elements *= tensor.shape[axis];
    if (!tensor.strides.empty()) last += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  if (elements == 0) return {first, first};
  return {first, first + (tensor.strides.empty() ? elements : last + 1) * tensor.element_bytes()};
}

}  // namespace

bool share_elements(const TensorArgument& a, const TensorArgument& b) {
  if (a.data == nullptr || b.data == nullptr) return false;
  // Most tensors lie apart, and each launch asks.
  const Span of_a = span_of(a), of_b = span_of(b);
  if (of_a.end <= of_b.first || of_b.end <= of_a.first) return false;
  const Layout x(a), y(b);
  if (x.empty || y.empty || x.end <= y.first || y.end <= x.first) return false;
  if (x.first == y.first || (x.dense && y.dense)) return true;
  const std::int64_t apart = std::abs(x.first - y.first);
  if (x.sizes != y.sizes || x.strides != y.strides || x.bytes != y.bytes || apart % x.bytes != 0) {
    return false;
  }
  // Both are parts of a tensor with an axis more, from one to the other.
  std::vector<std::int64_t> sizes = x.sizes, strides = x.strides;
  sizes.push_back(2);
  strides.push_back(apart / x.bytes);
  return overlap(sizes, strides).has_value();
}

}  // namespace tilewright::ir
