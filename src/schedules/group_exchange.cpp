#include "schedules/group_exchange.h"

#include "language/explicit_tracing.h"

namespace tilewright::schedules {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

void GroupExchange::put(ValueId value, const Operation& o) {
  if (!placement_.exchanged(value)) return;
  const Tracer::At here(tracer_, o.where);
  products_.finish_value(value, o);
  NamedBarrier& all_groups = **all_groups_;
  // Nobody's products still read what was there before: they were waited for in their iteration.
  all_groups.sync();
  values_.when_owner(
      value, [&] { put_part(value, o); }, o.where);
  fence_proxy_async(o.where);
  all_groups.sync();
}

void GroupExchange::put_part(ValueId value, const Operation& o) {
  const SharedTile& buffer = buffers_[plan_.buffer_of(value)];
  const bool divided = placement_.divided(value);
  if (is_vector(placement_.kernel.type(value))) {
    const SharedView row = ExplicitTracing::first_row(buffer);
    const int size = static_cast<int>(values_.local(value).elements());
    store(divided ? row.column_part(values_.row_part(value), size) : row,
          values_.tile(value).reshape({1, size}, o.where), o.where);
  } else if (divided || (placement_.groups == 1 && placement_.has_rows(value))) {
    store(buffer.rows(values_.row_part(value) * placement_.group_rows, placement_.group_rows),
          values_.tile(value), o.where);
  } else {
    store(buffer, values_.tile(value), o.where);
  }
}

void GroupExchange::take(const Operation& o) {
  const ValueId result = o.results[0];
  const ir::Type& type = placement_.kernel.type(result);
  const SharedTile& buffer = buffers_[plan_.buffer_of(o.operands[0])];
  const auto part = [&](const SharedView& view) {
    return placement_.divided(result)
               ? view.column_part(values_.row_part(result), placement_.group_rows)
               : view;
  };
  if (o.op == Op::slice) {
    const std::vector<std::int64_t>& offsets = o.attributes.integers(Key::offsets);
    const ir::Type own = values_.local(result);
    const auto first = static_cast<int>(offsets[0]), count = static_cast<int>(own.shape[0]);
    const Index start =
        placement_.divided(result) ? values_.row_part(result) * count + first : Index(first);
    const Tile rows = load(buffer.rows(start, count), o.where);
    values_[result] = values_.id(rows.slice({0, offsets[1]}, own.shape, o.where));
  } else if (is_vector(type)) {
    const Tile row = load(part(ExplicitTracing::first_row(buffer)), o.where);
    values_[result] = values_.id(row.reshape(values_.local(result).shape, o.where));
  } else {
    values_[result] = values_.id(load(part(buffer).T(), o.where));
  }
}

}  // namespace tilewright::schedules
