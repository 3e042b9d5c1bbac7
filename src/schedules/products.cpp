#include "schedules/products.h"

namespace tilewright::schedules {

using ir::ValueId;

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

SharedView Products::left(const Source& source, ValueId result) {
  const SharedView view = shared_part(source);
  const Index part = values_.row_part(result);
  if (source.transposed) return view.column_part(part, placement_.group_rows).T();
  return view.rows(part * placement_.group_rows, placement_.group_rows);
}

SharedView Products::right(const Source& source, ValueId result) {
  SharedView view = shared_part(source);
  if (placement_.column_parts(result) > 1) {
    const int own = static_cast<int>(values_.local(result).shape[1]);
    const Index part = values_.column_part(result);
    view = source.transposed ? view.rows(part * own, own) : view.column_part(part, own);
  }
  return source.transposed ? view.T() : view;
}

}  // namespace tilewright::schedules
