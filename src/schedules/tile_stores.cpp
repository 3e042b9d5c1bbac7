#include "schedules/tile_stores.h"

#include <vector>

#include "language/explicit_tracing.h"

namespace tilewright::schedules {
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

void TileStores::store(const Operation& o) {
  const Operation* from = placement_.definitions[o.operands[1]];
  if (from && from->op == Op::transpose && !values_.known(o.operands[1])) return turned(o);
  values_.when_owner(
      o.operands[1], [&] { own(o); }, o.where);
}

// A tile that is transposed to be stored is so in registers: of rows that warpgroups have parts of,
// each stores columns.
void TileStores::turned(const Operation& o) {
  const Operation& turn = *placement_.definitions[o.operands[1]];
  const auto put = [&] {
    const Type from = values_.local(turn.operands[0]);
    Type type = from;
    const std::vector<std::int64_t>& axes = turn.attributes.integers(ir::Key::permutation);
    for (std::size_t i = 0; i < axes.size(); ++i) type.shape[i] = from.shape[axes[i]];
    Tracer& tracer = values_.tracer();
    const ValueId tile =
        tracer.emit(Op::transpose, {values_[turn.operands[0]]}, type, turn.attributes, o.where);
    RoleValues::Part part;
    if (placement_.divided(turn.operands[0])) {
      part.columns = placement_.group_rows;
      part.piece = values_.row_part(turn.operands[0]);
    }
    write(o, values_.view(o, 2, part), Tile(tracer.handle(tile)));
  };
  values_.when_owner(turn.operands[0], put, o.where);
}

// TMA writes whole 16 bytes: a row that ends inside of them is stored by the threads.
void TileStores::own(const Operation& o) {
  const auto directly = [&] {
    write(o, values_.view(o, 2, values_.own_part(o.operands[1])), values_.tile(o.operands[1]));
  };
  const SharedPlan::Staging* plan = plan_.staging_of(o);
  if (!plan) return directly();
  const ir::Parameter& tensor = *placement_.kernel.parameter_of(o.operands[0]);
  const Dim& width = tensor.shape.back();
  const std::int64_t chunk = placement_.limits.copy_bytes / size_of(tensor.dtype);
  if (width.range().multiple % chunk == 0) return staged(o, *plan);
  when(
      Index(width) % chunk == 0, [&] { staged(o, *plan); }, directly, o.where);
}

void TileStores::write(const Operation& o, const TensorView& view, const Tile& tile) const {
  if (o.op == Op::store) return tilewright::store(view, tile, o.where);
  atomic_add(view, tile, o.attributes.has(ir::Key::ordered) ? Order::blocks : Order::any, o.where);
}

void TileStores::staged(const Operation& o, const SharedPlan::Staging& plan) {
  const bool by_columns = placement_.column_parts(o.operands[1]) > 1;
  const int parts = placement_.row_parts(o.operands[1]);
  for (int piece = 0; piece < plan.pieces; ++piece) {
    const SharedTile& buffer = buffers_[plan.buffers[piece % plan.buffers.size()]];
    bulk_wait_read(plan.in_flight, o.where);
    warp_sync(o.where);
    tilewright::store(buffer.rows(values_.group() * placement_.group_rows, placement_.group_rows),
                      by_rows(columns(o.operands[1], piece * plan.columns, plan.columns, o), o),
                      o.where);
    fence_proxy_async(o.where);
    warp_sync(o.where);
    // Each warp sends its own rows: it waits for no other.
    const Index place = by_columns ? values_.group() * plan.pieces + piece : Index(piece);
    tma_store(
        values_.view(o, 2, {parts, true, plan.columns, place}),
        buffer.rows(values_.group() * placement_.group_rows + warp_index() * values_.warp_rows(),
                    values_.warp_rows()),
        o.where);
    bulk_commit(o.where);
  }
}

// Each warp sends the rows that it wrote itself, also of a tile that is declared to lie otherwise.
Tile TileStores::by_rows(const Tile& tile, const Operation& o) const {
  if (!placement_.declares) return tile;
  return in_registers(tile, RegisterMap::product(static_cast<int>(tile.shape()[1])), o.where);
}

// Some columns of a tile; of a converted one they are converted piece by piece.
Tile TileStores::columns(ValueId value, int first, int count, const Operation& o) {
  const Operation* made = placement_.definitions[value];
  if (!made || made->op != Op::cast || !values_.known(made->operands[0])) {
    return values_.tile(value).slice({0, first}, {placement_.group_rows, count}, o.where);
  }
  return values_.tile(made->operands[0])
      .slice({0, first}, {placement_.group_rows, count}, o.where)
      .cast(placement_.kernel.type(value).dtype, o.where);
}

}  // namespace tilewright::schedules
