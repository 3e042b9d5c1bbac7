#include "schedules/tile_loads.h"

namespace tilewright::schedules {

using ir::Operation;
using ir::ValueId;

namespace {

constexpr int kRowsOfCopy = 256;  // by one copy, at most
constexpr int kUnit = 8;          // rows of shared memory that are named together

}  // namespace

void TileLoads::declare_rings(Kernel& kernel) {
  for (const SharedPlan::RingPlan& ring : plan_.rings()) {
    rings_.push_back(std::make_unique<Ring>(
        kernel, ring.name, stages(ring.stages),
        std::vector<TileShape>{{ring.dtype, ring.rows, ring.columns}}, ring.where));
  }
}

// All warps meet between a load and the stores to its tensor, where these may be of other warps.
void TileLoads::meet(const Operation& load, bool needed) {
  if (!needed) return;
  const ValueId value = load.results[0];
  const bool spread = placement_.owners(value) == placement_.groups && placement_.has_rows(value);
  // Only tiles as wide as products may be are sure to lie in warps by rows, each element once, and
  // only where nobody says otherwise.
  const std::vector<std::int64_t>& shape = placement_.kernel.type(value).shape;
  const bool by_rows = spread && shape.size() == 2 &&
                       shape[1] % placement_.limits.product_column_unit == 0 &&
                       !placement_.turns() && !placement_.declares;
  if (placement_.memory.stored_elsewhere(load) || !by_rows) return (*all_groups_)->sync();
  warp_sync(load.where);
}

void TileLoads::load(const Operation& o) {
  const ValueId result = o.results[0];
  const auto cache = static_cast<Cache>(o.attributes.integer_or(ir::Key::cache, 0));
  if (!placement_.in_ring(o)) {
    if (values_.loading()) return;
    const RoleValues::Part part = values_.own_part(result);
    meet(o, placement_.memory.after_store(o));
    values_[result] = values_.id(tilewright::load(values_.view(o, 1, part), cache, o.where));
    meet(o, placement_.memory.stored(o));
    return;
  }
  Ring& ring = *rings_[plan_.ring_of(result)];
  if (values_.loading()) {
    const auto rows = static_cast<int>(placement_.kernel.type(result).shape[0]);
    return ring.produce(
        [&](const Slot& slot) {
          if (placement_.row_in_ring(o)) {
            return tma_load(values_.view(o, 1, {}), slot[0].first_row(), {cache}, o.where);
          }
          if (rows <= kRowsOfCopy) return tma_load(values_.view(o, 1, {}), slot, {cache}, o.where);
          int runs = 2;
          while (rows > runs * kRowsOfCopy || rows % (runs * kUnit) != 0) ++runs;
          for (int run = 0; run < runs; ++run) {
            RoleValues::Part part;
            part.rows = rows / runs;
            part.run = run;
            tma_load(values_.view(o, 1, part), slot[0].rows(run * part.rows, part.rows), {cache},
                     o.where);
          }
        },
        o.where);
  }
  slots_.insert_or_assign(result, std::make_unique<Slot>(ring.consume(o.where)));
  if (!placement_.in_registers(result)) return;
  const SharedView rows = placement_.row_in_ring(o)
                              ? stage(result).first_row()
                              : stage(result).rows(values_.row_part(result) * placement_.group_rows,
                                                   placement_.group_rows);
  values_[result] = values_.id(tilewright::load(rows, o.where));
  read_.push_back(result);
}

void TileLoads::release(ValueId load, const Operation& o) {
  const std::size_t number = plan_.ring_of(load);
  const Slot& slot = *slots_.at(load);
  if (placement_.in_tensor_memory() && plan_.rings()[number].in_products) {
    when(
        warp_index(o.where) == 0, [&] { rings_[number]->release_behind_products(slot, o.where); },
        {}, o.where);
  }
  rings_[number]->release(slot, o.where);
}

void TileLoads::release_read(const Operation& o) {
  if (read_.empty()) return;
  const Tracer::At at(tracer_, o.where);
  fence_proxy_async(o.where);
  warp_sync(o.where);
  for (const ValueId load : read_) {
    if (placement_.in_products(load)) continue;
    release(load, o);
    slots_.erase(load);
  }
  read_.clear();
}

}  // namespace tilewright::schedules
