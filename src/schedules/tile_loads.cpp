#include "schedules/tile_loads.h"

#include <algorithm>

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
  if (!placement_.in_ring(o)) {
    if (values_.loading()) return;
    const auto cache = static_cast<Cache>(o.attributes.integer_or(ir::Key::cache, 0));
    const RoleValues::Part part = values_.own_part(result);
    meet(o, placement_.memory.after_store(o));
    values_[result] = values_.id(tilewright::load(values_.view(o, 1, part), cache, o.where));
    meet(o, placement_.memory.stored(o));
    return;
  }
  if (values_.loading()) return produce(o);
  if (part_of_stage(o) > 0) return;
  Ring& ring = *rings_[plan_.ring_of(result)];
  slots_.insert_or_assign(result, std::make_unique<Slot>(ring.consume(o.where)));
  if (!placement_.in_registers(result)) return;
  const SharedView rows = placement_.row_in_ring(o)
                              ? stage(result).first_row()
                              : stage(result).rows(values_.row_part(result) * placement_.group_rows,
                                                   placement_.group_rows);
  values_[result] = values_.id(tilewright::load(rows, o.where));
  read_.push_back(result);
}

SharedView TileLoads::stage(ValueId load) const {
  const std::vector<const Operation*>& parts = placement_.stage_of(load);
  const SharedView all = (*slots_.at(placement_.leader_of(load)))[0];
  if (parts.size() == 1) return all;
  const auto rows = static_cast<int>(placement_.kernel.type(load).shape[0]);
  const auto part = std::find_if(parts.begin(), parts.end(),
                                 [&](const Operation* each) { return each->results[0] == load; });
  return all.rows(static_cast<int>(part - parts.begin()) * rows, rows);
}

void TileLoads::produce(const Operation& o) {
  const ValueId result = o.results[0];
  const std::vector<const Operation*>& parts = placement_.stage_of(result);
  if (parts.size() > 1) {
    if (&o == parts.back()) produce_joined(o);
    return;
  }
  const auto cache = static_cast<Cache>(o.attributes.integer_or(ir::Key::cache, 0));
  Ring& ring = *rings_[plan_.ring_of(result)];
  const auto rows = static_cast<int>(placement_.kernel.type(result).shape[0]);
  ring.produce(
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

// Where none of the blocks ends early, copies need not say where they end, and may be of several
// blocks (passes/join_copies.h).
void TileLoads::produce_joined(const Operation& last) {
  const std::vector<const Operation*>& parts = placement_.stage_of(last.results[0]);
  const auto rows = static_cast<int>(placement_.kernel.type(last.results[0]).shape[0]);
  const auto cache = static_cast<Cache>(last.attributes.integer_or(ir::Key::cache, 0));
  const auto fill = [&](bool whole) {
    rings_[plan_.ring_of(last.results[0])]->produce(
        [&](const Slot& slot) {
          for (std::size_t i = 0; i < parts.size(); ++i) {
            RoleValues::Part part;
            part.whole = whole;
            tma_load(values_.view(*parts[i], 1, part),
                     slot[0].rows(static_cast<int>(i) * rows, rows), {cache}, last.where);
          }
        },
        last.where);
  };
  std::optional<Condition> all;
  for (const Operation* part : parts) {
    const std::vector<std::int64_t>& sizes = part->attributes.integers(ir::Key::sizes);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (!placement_.extents.ends_earlier(*part, axis)) continue;
      const Index start = values_.number(*part, 1 + axis);
      const Condition whole =
          start + static_cast<int>(sizes[axis]) <= values_.number(*part, 1 + sizes.size() + axis);
      all.emplace(all ? *all && whole : whole);
    }
  }
  if (!all) return fill(true);
  when(
      *all, [&] { fill(true); }, [&] { fill(false); }, last.where);
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
