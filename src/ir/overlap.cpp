#include "ir/overlap.h"

#include <algorithm>
#include <cstddef>

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

namespace {

// Whether steps ahead in one tensor and back in the other add up to how far they lie apart.
class Meeting {
 public:
  Meeting(const Layout& ahead, const Layout& back) {
    for (std::size_t i = 0; i < ahead.sizes.size(); ++i) {
      at(ahead.strides[i]).most += ahead.sizes[i] - 1;
    }
    for (std::size_t i = 0; i < back.sizes.size(); ++i) {
      at(back.strides[i]).least -= back.sizes[i] - 1;
    }
    std::sort(axes_.begin(), axes_.end(),
              [](const Steps& a, const Steps& b) { return a.stride < b.stride; });
    for (std::size_t i = 1; i < axes_.size(); ++i) {
      axes_[i].low = axes_[i - 1].low + axes_[i - 1].least * axes_[i - 1].stride;
      axes_[i].high = axes_[i - 1].high + axes_[i - 1].most * axes_[i - 1].stride;
    }
  }

  bool is_found(std::int64_t apart) { return find(axes_.size(), apart); }

 private:
  struct Steps {
    std::int64_t stride = 1, least = 0, most = 0;
    std::int64_t low = 0, high = 0;  // what the axes of smaller strides add up to
  };
  // Axes of one stride are one axis here: it is the sum of their steps that counts.
  Steps& at(std::int64_t stride) {
    for (Steps& each : axes_) {
      if (each.stride == stride) return each;
    }
    axes_.push_back({stride});
    return axes_.back();
  }

  // Whether the `count` axes of the smallest strides can add up to `rest`.
  bool find(std::size_t count, std::int64_t rest) {
    if (count == 0) return rest == 0;
    const Steps& axis = axes_[count - 1];
    // Strides that do not divide each other leave many ways: what takes too long goes unseen.
    constexpr int kMostTries = 20'000;
    const std::int64_t first = std::max(axis.least, (rest - axis.high) / axis.stride - 1);
    const std::int64_t last = std::min(axis.most, (rest - axis.low) / axis.stride + 1);
    for (std::int64_t step = first; step <= last; ++step) {
      const std::int64_t next = rest - step * axis.stride;
      if (next < axis.low || next > axis.high) continue;
      if (++tries_ > kMostTries) return false;
      if (find(count - 1, next)) return true;
    }
    return false;
  }

  std::vector<Steps> axes_;
  int tries_ = 0;
};

}  // namespace

bool share_elements(const TensorArgument& a, const TensorArgument& b) {
  if (a.data == nullptr || b.data == nullptr) return false;
  // Most tensors lie apart, and each launch asks.
  const Span of_a = span_of(a), of_b = span_of(b);
  if (of_a.end <= of_b.first || of_b.end <= of_a.first) return false;
  const Layout x(a), y(b);
  if (x.empty || y.empty || x.end <= y.first || y.end <= x.first) return false;
  if (x.first == y.first || (x.dense && y.dense)) return true;
  const std::int64_t apart = y.first - x.first;
  if (x.bytes != y.bytes || apart % x.bytes != 0) return false;
  return Meeting(x, y).is_found(apart / x.bytes);
}

}  // namespace tilewright::ir
