#include "simulator/tile_rearrangement.h"

#include <algorithm>
#include <string>

#include "ir/type_rules.h"
#include "support/arguments.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {
namespace {

// How much exists of the axes that a reshape makes of others; of these the first alone may be cut,
// and where whole rows of the new ones come of it.
bool reshape_extents(const ir::ReshapedAxes& axes, const Value& source,
                     const std::vector<std::int64_t>& to, std::vector<std::int64_t>& extents) {
  std::int64_t count = source.extents()[axes.from[0]], row = 1;
  for (std::size_t i = 1; i < axes.from.size(); ++i) {
    const std::size_t axis = axes.from[i];
    if (source.extents()[axis] != source.type().shape[axis]) return false;
    count *= source.type().shape[axis];
  }
  for (std::size_t i = 1; i < axes.to.size(); ++i) row *= to[axes.to[i]];
  if (count % row != 0) return false;
  extents[axes.to[0]] = count / row;
  return true;
}

}  // namespace

template <typename Real>
void rearrange_tile(const std::vector<std::int64_t>& axes, const std::vector<std::int64_t>& offsets,
                    const Value& source, Value& result) {
  const std::vector<std::int64_t> from = row_major_strides(source.type().shape);
  const std::vector<std::int64_t> to = row_major_strides(result.type().shape);
  std::vector<std::int64_t> strides;  // of the source, by the result's axes
  std::int64_t origin = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    strides.push_back(from[axis]);
    origin += offsets[i] * from[axis];
    result.extents()[i] =
        std::clamp<std::int64_t>(source.extents()[axis] - offsets[i], 0, result.extents()[i]);
  }
  if (any_empty(result.extents())) return;
  with_element<Real>(source.kind(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::int64_t> outer = result.extents();
    const std::int64_t row = outer.empty() ? 1 : outer.back();
    const std::int64_t step = strides.empty() ? 1 : strides.back();
    if (!outer.empty()) outer.pop_back();
    std::vector<std::int64_t> index(outer.size());
    do {
      const T* x = source.data<T>() + origin;
      T* y = result.data<T>();
      for (std::size_t i = 0; i < index.size(); ++i) {
        x += index[i] * strides[i];
        y += index[i] * to[i];
      }
      for (std::int64_t i = 0; i < row; ++i) y[i] = x[i * step];
    } while (advance(index, outer));
  });
}

template void rearrange_tile<float>(const std::vector<std::int64_t>&,
                                    const std::vector<std::int64_t>&, const Value&, Value&);
template void rearrange_tile<double>(const std::vector<std::int64_t>&,
                                     const std::vector<std::int64_t>&, const Value&, Value&);

Value reshape_tile(const ir::Operation& operation, const Value& source, const ir::Type& type) {
  Value result = source.with_type(type);
  for (const ir::ReshapedAxes& axes : ir::reshaped_axes(source.type().shape, type.shape)) {
    if (reshape_extents(axes, source, type.shape, result.extents())) continue;
    if (any_empty(source.extents())) {  // nothing is part of any shape
      result.extents()[axes.to[0]] = 0;
      continue;
    }
    Diagnostic(operation.where, "reshape: of a tile of shape " + shape_text(source.type().shape) +
                                    " only " + shape_text(source.extents()) +
                                    " exists, which is no " + "part of " + shape_text(type.shape))
        .token("reshape")
        .fix("split a cut axis so that the parts exist whole, or address the tensor by its axes")
        .raise();
  }
  // Axes keep what exists of them, so that a sum of no rows is 0 in every column; but an axis of
  // size 1 is in no group.
  if (any_empty(source.extents()) && !any_empty(result.extents())) {
    for (std::int64_t& extent : result.extents()) extent = 0;
  }
  return result;
}

}  // namespace tilewright::simulator
