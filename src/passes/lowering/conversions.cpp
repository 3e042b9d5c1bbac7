#include "passes/lowering/conversions.h"

#include "passes/drop_conversions.h"

namespace tilewright::passes {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

void ConversionLowering::convert(const Operation& o, bool in_loop) {
  if (stays_in_lanes(code_.kernel(), o)) {
    const ir::RegisterMap map =
        ir::register_map(code_.layout(o.results[0]), code_.layout(o.operands[0]));
    return code_.emit(
        Op::compute, {code_.array(o.results[0]), code_.array(o.operands[0])},
        {{Key::function, Op::cast}, {Key::maps, std::vector<ir::IndexMap>{map.terms}}}, o.where);
  }
  const Conversion made = conversion(code_.kernel(), o);
  // Panels where it is swizzled, else plain rows.
  ir::Panels panels;
  panels.span = made.shared.shape[1];
  panels.span_bytes = panels.span * made.shared.element_bytes;
  panels.distance = made.shared.size_bytes();
  if (made.shared.swizzle.bits != 0) panels = *made.shared.as_panels();
  const std::int64_t chunks = panels.swizzle_bytes / 16;
  const std::int64_t warps = made.written.warp_count();
  const std::int64_t groups = role_.attributes.integer(Key::warps) / warps;
  const ValueId group = groups > 1 ? role_.blocks[0].arguments[0] : code_.integer(0, o.where);
  const auto sync = [&] {
    if (made.within_warps) return code_.emit(Op::warp_sync, {}, {}, o.where);
    code_.emit(Op::named_sync, {group},
               {{Key::first, o.attributes.integer(Key::first)},
                {Key::threads, 32 * warps},
                {Key::count, groups}},
               o.where);
  };
  const auto access = [&](Op op, ValueId tile, const ir::RegisterLayout& layout,
                          std::int64_t offset) {
    ValueId place = code_.scale(group, o.attributes.integer(Key::bytes), o.where);
    if (offset != 0) place = code_.add(place, code_.integer(offset, o.where), o.where);
    code_.emit(op, {code_.array(tile), o.operands[1], place},
               {{Key::layout, layout},
                {Key::row_bytes, panels.span_bytes},
                {Key::swizzle_divisor, chunks > 0 ? 8 / chunks : 1},
                {Key::swizzle_mask, chunks > 0 ? chunks - 1 : 0},
                {Key::panel_columns, panels.span},
                {Key::panel_bytes, panels.distance}},
               o.where);
  };
  // Before the next one writes, all have read what the last one wrote.
  bool& before = before_[made.within_warps ? 1 : 0];
  if (in_loop || before) sync();
  before = true;
  access(Op::store_elements, o.operands[0], made.written, 0);
  sync();
  access(Op::load_elements, o.results[0], made.read, made.offset);
}

}  // namespace tilewright::passes
