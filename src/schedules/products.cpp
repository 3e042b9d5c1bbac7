#include "schedules/products.h"

namespace tilewright::schedules {

SharedView Products::shared_part(const Source& source) {
  SharedView view = source.load ? loads_.stage(source.value)
                                : SharedView(buffers_[plan_.buffer_of(source.value)]);
  if (source.rows != view.row_count()) {
    view = view.rows(static_cast<int>(source.row), static_cast<int>(source.rows));
  }
  if (source.columns != view.column_count()) {
    view = view.columns(static_cast<int>(source.column), static_cast<int>(source.columns));
  }
  return view;
}

SharedView Products::left(const Source& source) {
  const SharedView view = shared_part(source);
  if (source.transposed) return view.column_part(values_.row_part(), kGroupRows).T();
  return view.rows(values_.row_part() * kGroupRows, kGroupRows);
}

SharedView Products::right(const Source& source, bool spread) {
  SharedView view = shared_part(source);
  const int own = static_cast<int>(placement_.wide) / placement_.groups;
  if (spread && source.transposed) view = view.rows(values_.group() * own, own);
  if (spread && !source.transposed) view = view.column_part(values_.group(), own);
  return source.transposed ? view.T() : view;
}

}  // namespace tilewright::schedules
