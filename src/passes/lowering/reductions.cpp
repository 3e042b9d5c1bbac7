#include "passes/lowering/reductions.h"

#include "passes/share_reductions.h"

namespace tilewright::passes {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

void ReductionLowering::reduce(const Operation& o, bool in_loop) {
  const ValueId source = o.operands[0], result = o.results[0];
  const int axis = static_cast<int>(o.attributes.integer(Key::axis));
  const ir::RegisterMap map = ir::register_map(
      code_.layout(source), code_.layout(source).reduce(axis, ir::Reduction::complete));
  code_.emit(
      Op::reduce_registers, {code_.array(result), code_.array(source)},
      {{Key::function, o.attributes.function()}, {Key::maps, std::vector<ir::IndexMap>{map.terms}}},
      o.where);
  if (o.attributes.integer_or(Key::partial, 0) == 0) {
    shuffle(result, code_.layout(source).shuffle_distances(axis), o);
  }
  exchange(o, in_loop);
}

void ReductionLowering::complete(const Operation& o, bool in_loop) {
  code_.copy(o.results[0], o.operands[0], o.where);
  reduce_lanes(o.results[0], code_.layout(o.operands[0]), o);
  exchange(o, in_loop);
}

void ReductionLowering::reduce_lanes(ValueId result, const ir::RegisterLayout& partial,
                                     const Operation& o) {
  for (int axis = 0; axis < static_cast<int>(partial.shape.size()); ++axis) {
    if (partial.is_partial(axis)) shuffle(result, partial.shuffle_distances(axis), o);
  }
}

void ReductionLowering::shuffle(ValueId result, const std::vector<int>& distances,
                                const Operation& o) {
  if (distances.empty()) return;
  code_.emit(Op::reduce_lanes, {code_.array(result)},
             {{Key::function, o.attributes.function()},
              {Key::masks, std::vector<std::int64_t>(distances.begin(), distances.end())}},
             o.where);
}

// What the warps hold of a reduction, through shared memory: all write, all read what all wrote.
void ReductionLowering::exchange(const Operation& o, bool in_loop) {
  const auto exchange = warp_exchange(code_.kernel(), o);
  if (!exchange) return;
  const ValueId shared = o.operands[1], result = o.results[0];
  const std::int64_t warps = exchange->written.warp_count();
  const std::int64_t groups = role_.attributes.integer(Key::warps) / warps;
  const ValueId group = groups > 1 ? role_.blocks[0].arguments[0] : code_.integer(0, o.where);
  const bool together = exchange->groups > 1;
  const std::int64_t all_parts = exchange->groups * exchange->parts;
  const std::int64_t row_bytes = exchange->elements * size_of(code_.type(result).dtype);
  const ValueId place = code_.scale(group, exchange->parts * row_bytes, o.where);
  const auto sync = [&] {
    code_.emit(Op::named_sync, {together ? code_.integer(0, o.where) : group},
               {{Key::first, o.attributes.integer(Key::first)},
                {Key::threads, 32 * warps * exchange->groups},
                {Key::count, together ? 1 : groups}},
               o.where);
  };
  const auto access = [&](Op op, ValueId array, const ir::RegisterLayout& layout, ValueId at) {
    code_.emit(op, {array, shared, at},
               {{Key::layout, layout},
                {Key::row_bytes, row_bytes},
                {Key::swizzle_divisor, std::int64_t{1}},
                {Key::swizzle_mask, std::int64_t{0}},
                {Key::panel_columns, exchange->elements},
                {Key::panel_bytes, row_bytes * exchange->parts}},
               o.where);
  };
  // Before the next round writes, all have read what the last one wrote.
  if (in_loop || together) sync();
  access(Op::store_elements, code_.array(result), exchange->written, place);
  sync();
  const std::int64_t held = code_.type(code_.array(result)).elements();
  const ValueId parts = code_.add_array(code_.type(result).dtype, held * all_parts);
  access(Op::load_elements, parts, exchange->read, together ? code_.integer(0, o.where) : place);
  code_.emit(Op::reduce_registers, {code_.array(result), parts},
             {{Key::function, o.attributes.function()},
              {Key::maps, std::vector<ir::IndexMap>{{{1, held, 1}}}}},
             o.where);
}

}  // namespace tilewright::passes
