#include "passes/lowering/transfers.h"

#include <algorithm>
#include <numeric>

#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::passes {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

namespace {

// Chunk c of row r lies at chunk c ^ (r / divisor & mask): Swizzle<bits, 4, 3> of 16-byte chunks
// in rows of the panel's span.
ir::Attributes swizzle_attributes(const View& view) {
  const std::int64_t chunks = view.panels.swizzle_bytes / 16;
  return {{Key::row_bytes, view.panels.span_bytes},
          {Key::swizzle_divisor, chunks > 0 ? 8 / chunks : 1},
          {Key::swizzle_mask, chunks > 0 ? chunks - 1 : 0}};
}

// What one access takes, of whole registers: rows of panels are whole chunks of 16 bytes, which the
// swizzle keeps together.
std::int64_t vector_elements(const ir::RegisterLayout& layout, DType dtype) {
  constexpr std::int64_t kChunk = 16, kRegister = 4;
  const int bytes = size_of(dtype);
  const std::int64_t elements = std::gcd(layout.adjacent(), kChunk / bytes);
  return bytes > kRegister || dtype == DType::boolean || elements * bytes < kRegister ? 1
                                                                                      : elements;
}

}  // namespace

void TransferLowering::load_tile(const Operation& o) {
  move_tile(o.results[0], o.operands[0], Op::load_matrix, Op::load_elements, o);
}

void TransferLowering::store_tile(const Operation& o) {
  move_tile(o.operands[0], o.operands[1], Op::store_matrix, Op::store_elements, o);
}

// By matrices of 8 x 8 where the tile is a product's accumulator of 2-byte elements, or one that is
// transposed, else element by element.
void TransferLowering::move_tile(ValueId tile, ValueId place, Op by_matrix, Op by_element,
                                 const Operation& o) {
  const View view = views_.at(place);
  const Type& type = code_.type(tile);
  const bool packed = size_of(type.dtype) == 2 && type.shape.size() == 2 && !view.transposed &&
                      view.panels.contiguous_axis == 1;
  const target::Target& target = target::target_of(code_.kernel());
  const auto accumulates = [&](std::size_t columns) {
    const std::int64_t rows = type.shape[1 - columns], unit = target.limits.product_column_unit;
    return target.accumulator && rows == target.limits.group_rows &&
           type.shape[columns] % unit == 0 &&
           (columns == 1 ? type.layout : type.layout.transposed()) ==
               target.accumulator(rows, type.shape[columns], type.dtype, o.where);
  };
  if (packed && accumulates(1)) return matrices(by_matrix, tile, view, o);
  if (packed && accumulates(0) && view.panels.span == 64) {
    return transposed_matrices(by_matrix, tile, view, o);
  }
  elements(by_element, tile, view, o);
}

// A warp has 16 of the tile's rows.
void TransferLowering::matrices(Op op, ValueId tile, const View& view, const Operation& o) {
  const std::int64_t columns = code_.type(tile).shape[1];
  const ValueId warp = code_.scalar(Op::warp_index, {}, {}, i32, o.where);
  const ValueId row = code_.add(view.row, code_.scale(warp, 16, o.where), o.where);
  const ValueId stage = views_.offset(view, false, o.where);
  const std::int64_t start = views_.panel_step(view, o);
  std::int64_t width = 0;
  for (std::int64_t column = 0; column < columns; column += width) {
    // Four matrices where a panel holds 16 columns.
    width = columns - column < 16 || view.panels.span % 16 != 0 ? 8 : 16;
    ir::Attributes attributes = swizzle_attributes(view);
    attributes.set(Key::register_, column / 4);
    attributes.set(Key::step, start + column / view.panels.span * view.panels.distance);
    attributes.set(Key::column_bytes, column % view.panels.span * 2);
    if (width == 8) attributes.set(Key::count, std::int64_t{2});
    code_.emit(op, {code_.array(tile), view.shared, stage, row}, std::move(attributes), o.where);
  }
}

// A warp has 16 of the tile's columns, 32 bytes of a panel as wide as the tile.
void TransferLowering::transposed_matrices(Op op, ValueId tile, const View& view,
                                           const Operation& o) {
  const std::int64_t rows = code_.type(tile).shape[0];
  const ValueId warp = code_.scalar(Op::warp_index, {}, {}, i32, o.where);
  const ValueId chunk = code_.scale(warp, 2, o.where);
  const ValueId stage = views_.offset(view, false, o.where);
  const std::int64_t start = views_.panel_step(view, o);
  for (std::int64_t row = 0; row < rows; row += 16) {
    ir::Attributes attributes = swizzle_attributes(view);
    attributes.set(Key::register_, row / 4);
    attributes.set(Key::step, start + row * view.panels.span_bytes);
    attributes.set(Key::column_bytes, std::int64_t{0});
    attributes.set(Key::transposed, std::int64_t{1});
    if (rows - row == 8) attributes.set(Key::count, std::int64_t{2});
    code_.emit(op, {code_.array(tile), view.shared, stage, view.row, chunk}, std::move(attributes),
               o.where);
  }
}

void TransferLowering::elements(Op op, ValueId tile, const View& view, const Operation& o) {
  ir::Attributes attributes = swizzle_attributes(view);
  const ir::RegisterLayout& layout = code_.layout(tile);
  const ir::RegisterLayout placed = view.transposed ? layout.transposed() : layout;
  attributes.set(Key::layout, placed);
  attributes.set(Key::panel_columns, view.panels.span);
  attributes.set(Key::panel_bytes, view.panels.distance);
  const std::int64_t vector = vector_elements(placed, code_.type(tile).dtype);
  if (vector > 1) attributes.set(Key::vector, vector);
  ValueId place = views_.offset(view, true, o.where);
  if (const std::int64_t start = views_.panel_step(view, o)) {
    place = code_.add(place, code_.integer(start, o.where), o.where);
  }
  code_.emit(op, {code_.array(tile), view.shared, place}, std::move(attributes), o.where);
}

void TransferLowering::load_fragment(const Operation& o) {
  fragment(Op::load_words, o.results[0], o.operands[0], o.operands[1], o);
}

void TransferLowering::store_fragment(const Operation& o) {
  fragment(Op::store_words, o.operands[0], o.operands[1], o.operands[2], o);
}

void TransferLowering::fragment(Op op, ValueId tile, ValueId shared, ValueId place,
                                const Operation& o) {
  const target::Target& target = target::target_of(code_.kernel());
  const std::int64_t columns = code_.type(tile).shape[1];
  if (!(code_.layout(tile) ==
        target.accumulator(target.limits.group_rows, columns, f32, o.where))) {
    Diagnostic(o.where, "fragments: the tile does not lie as a product's result does: " +
                            code_.layout(tile).to_string())
        .fix("pass it through a SharedTile: store(view, tile), then load(view)")
        .raise();
  }
  constexpr std::int64_t kWarps = 4;
  const std::int64_t warp_bytes = code_.type(tile).elements() * size_of(f32) / kWarps;
  const ValueId warp = code_.scalar(Op::warp_index, {}, {}, i32, o.where);
  const ValueId index = code_.add(code_.scale(place, kWarps, o.where), warp, o.where);
  std::vector<ValueId> operands{code_.array(tile), shared, code_.scale(index, warp_bytes, o.where)};
  if (op == Op::load_words && o.operands.size() > 2) operands.push_back(o.operands[2]);
  code_.emit(op, std::move(operands), {}, o.where);
}

// Of what lies in global memory: one element that indices alone choose is a row of one.
static ir::RegisterLayout of_places(ir::RegisterLayout layout) {
  if (layout.shape.empty()) layout.shape.push_back(1);
  return layout;
}

void TransferLowering::load(const Operation& o) {
  std::vector<ValueId> operands{code_.array(o.results[0])};
  operands.insert(operands.end(), o.operands.begin(), o.operands.end());
  ir::Attributes attributes = o.attributes;
  attributes.set(Key::layout, of_places(code_.layout(o.results[0])));
  code_.emit(Op::load_registers, std::move(operands), std::move(attributes), o.where);
}

// The array that holds the tile then holds what was in memory.
void TransferLowering::atomic(const Operation& o) {
  const ir::RegisterLayout& layout = code_.layout(o.operands[1]);
  const auto repeats = [](const ir::Mode& mode) {
    return mode.kind != ir::ModeKind::distribute && mode.size > 1;
  };
  if (std::any_of(layout.warps.begin(), layout.warps.end(), repeats)) {
    Diagnostic(o.where,
               "atom_add: several warps of the role hold the same elements of the tile, "
               "which would be added once and be known to one of them")
        .token("atom_add")
        .fix("a role of one warp, or a larger tile; red() adds, and gives nothing back")
        .raise();
  }
  code_.copy(o.results[0], o.operands[1], o.where);
  std::vector<ValueId> operands = o.operands;
  operands[1] = code_.array(o.results[0]);
  ir::Attributes attributes = o.attributes;
  attributes.set(Key::layout, layout);
  code_.emit(Op::atomic_registers, std::move(operands), std::move(attributes), o.where);
}

void TransferLowering::store(const Operation& o) {
  std::vector<ValueId> operands = o.operands;
  operands[1] = code_.array(o.operands[1]);
  ir::Attributes attributes = o.attributes;
  attributes.set(Key::layout, of_places(code_.layout(o.operands[1])));
  code_.emit(o.op == Op::red_tile ? Op::red_registers : Op::store_registers, std::move(operands),
             std::move(attributes), o.where);
}

// One copy for each panel of the tile, whose rows follow each other.
void TransferLowering::cluster_copy(const Operation& o) {
  const View from = views_.at(o.operands[0]), to = views_.at(o.operands[1]);
  const Type part = code_.type(o.operands[1]);
  const ValueId source = views_.offset(from, true, o.where),
                place = views_.offset(to, true, o.where);
  const std::int64_t start = views_.panel_step(from, o), step = views_.panel_step(to, o);
  for (std::int64_t panel = 0; panel * to.panels.span < part.shape[1]; ++panel) {
    const ValueId at =
        code_.add(source, code_.integer(start + panel * from.panels.distance, o.where), o.where);
    code_.emit(Op::cluster_copy,
               {from.shared, to.shared, place, o.operands[2], o.operands[3], at, o.operands[4]},
               {{Key::step, step + panel * to.panels.distance},
                {Key::bytes, part.shape[0] * to.panels.span_bytes}},
               o.where);
  }
}

// That of the copy of the tile's columns from `column` on. A store touches nothing outside.
ValueId TransferLowering::ragged_map(const Operation& copy, const Operation& map,
                                     std::int64_t column) {
  const bool loads = ir::info(ir::info(copy.op).becomes).writes(ir::Memory::shared);
  const ValueId is_outside =
      loads ? outside_.condition(code_, copy, map, column) : code_.boolean(false, copy.where);
  const ValueId chosen = code_.new_value(Type::of(Type::Kind::tensor_map));
  code_.emit(Op::ragged_map, {copy.operands[0], is_outside}, {}, copy.where);
  code_.last().results = {chosen};
  return chosen;
}

// One copy for each panel of the tile.
void TransferLowering::tma(const Operation& o) {
  const Op copy = ir::info(o.op).becomes;
  const bool load = ir::info(copy).writes(ir::Memory::shared);
  const View view = views_.at(o.operands[1]);
  const Type part = code_.type(o.operands[1]);
  const std::size_t leading = load ? 4 : 2;
  const ValueId place = views_.offset(view, true, o.where);
  const std::int64_t start = views_.panel_step(view, o);
  const auto several = chosen_from_.find(o.operands[0]);
  const ir::Operation& map =
      *places_.at(several == chosen_from_.end() ? o.operands[0] : several->second);
  const bool is_ragged = map.attributes.has(Key::ragged);
  const std::vector<std::int64_t>& box = map.attributes.integers(Key::box);
  for (std::int64_t column = 0; column < part.shape[1]; column += box.back()) {
    std::vector<ValueId> coordinates(o.operands.begin() + leading, o.operands.end());
    std::reverse(coordinates.begin(), coordinates.end());
    if (column > 0) {
      coordinates[0] = code_.add(coordinates[0], code_.integer(column, o.where), o.where);
    }
    const ValueId through = is_ragged ? ragged_map(o, map, column) : o.operands[0];
    std::vector<ValueId> operands{through, view.shared, place};
    ir::Attributes attributes{
        {Key::step, start + column / view.panels.span * view.panels.distance}};
    if (load) {
      operands.insert(operands.end(), {o.operands[2], o.operands[3]});
      attributes.set(Key::bytes, part.shape[0] * box.back() * size_of(part.dtype));
    }
    for (const auto& [key, value] : o.attributes.entries()) attributes.set(key, value);
    operands.insert(operands.end(), coordinates.begin(), coordinates.end());
    code_.emit(copy, std::move(operands), std::move(attributes), o.where);
  }
}

}  // namespace tilewright::passes
