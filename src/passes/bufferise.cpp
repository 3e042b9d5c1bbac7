#include "passes/bufferise.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/descriptor.h"
#include "passes/buffers.h"
#include "passes/share_reductions.h"
#include "support/diagnostic.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

// A `view` operation's operands and what its shared allocation is.
struct View {
  ValueId shared, stage, row;
  std::optional<ValueId> panel;
  std::int64_t column = 0;
  bool transposed = false;
  const ir::SharedLayout* layout = nullptr;
  ir::Panels panels;
};

class RoleLowering {
 public:
  RoleLowering(ir::Kernel& kernel, const std::map<ValueId, const Operation*>& places,
               const Operation& role)
      : kernel_(kernel), places_(places), role_(role), buffers_(kernel, role.blocks[0]) {
    for (int i = 0; i < buffers_.count(); ++i) {
      const Type& type = kernel.type(buffers_.representative(i));
      arrays_.push_back(kernel_.add_value(
          Type::of(Type::Kind::registers, type.dtype, {type.layout.register_count()})));
    }
  }

  std::vector<Operation> declarations(SourceLocation where) const {
    std::vector<Operation> all;
    for (const ValueId array : arrays_) {
      Operation o;
      o.op = Op::registers;
      o.results = {array};
      o.attributes = {{Key::name, "r" + std::to_string(all.size())}};
      o.where = where;
      all.push_back(std::move(o));
    }
    return all;
  }

  void lower(ir::Block& block) {
    std::vector<Operation> source = std::move(block.body);
    std::vector<Operation> outer = std::move(out_);
    out_.clear();
    for (Operation& operation : source) visit(operation);
    block.body = std::move(out_);
    out_ = std::move(outer);
  }

 private:
  bool in_registers(ValueId id) const { return Buffers::in_registers(kernel_.type(id)); }
  ValueId array(ValueId tile) const { return arrays_[buffers_.of(tile)]; }
  const ir::RegisterLayout& layout(ValueId tile) const { return kernel_.type(tile).layout; }

  void emit(Op op, std::vector<ValueId> operands, ir::Attributes attributes, SourceLocation where) {
    Operation o;
    o.op = op;
    o.operands = std::move(operands);
    o.attributes = std::move(attributes);
    o.where = where;
    out_.push_back(std::move(o));
  }
  ValueId scalar(Op op, std::vector<ValueId> operands, ir::Attributes attributes, DType dtype,
                 SourceLocation where) {
    emit(op, std::move(operands), std::move(attributes), where);
    out_.back().results = {kernel_.add_value(Type::scalar(dtype))};
    return out_.back().results[0];
  }
  ValueId integer(std::int64_t value, SourceLocation where) {
    return scalar(Op::constant, {}, {{Key::value, value}}, i32, where);
  }
  ValueId boolean(bool value, SourceLocation where) {
    return scalar(Op::constant, {}, {{Key::value, std::int64_t{value}}}, DType::boolean, where);
  }
  ValueId add(ValueId a, ValueId b, SourceLocation where) {
    return scalar(Op::add, {a, b}, {}, i32, where);
  }
  ValueId scale(ValueId a, std::int64_t factor, SourceLocation where) {
    return scalar(Op::mul, {a, integer(factor, where)}, {}, i32, where);
  }

  bool must_move(ValueId to, ValueId from, SourceLocation where) const {
    if (buffers_.of(to) == buffers_.of(from)) return false;
    const auto pending = [this](ValueId id) { return kernel_.type(id).is(Type::Kind::pending); };
    if (pending(to) && pending(from) && complete_.count(from) == 0) {
      Diagnostic(where,
                 "a product in flight would have to be copied: it lives on beside another value of "
                 "its variable, or changes places with another product")
          .fix("wait for it and go on from the tile, or keep each product in a Cell of its own")
          .raise();
    }
    return true;
  }
  void copy(ValueId to, ValueId from, SourceLocation where) {
    if (must_move(to, from, where)) emit(Op::copy, {array(to), array(from)}, {}, where);
  }

  // `to[i] = from[i]`, all at once: a source that an earlier copy overwrites is saved first.
  void copy_all(const std::vector<std::pair<ValueId, ValueId>>& moves, SourceLocation where) {
    std::vector<std::pair<ValueId, ValueId>> arrays;
    for (const auto& [to, from] : moves) {
      if (must_move(to, from, where)) arrays.push_back({array(to), array(from)});
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      for (std::size_t j = i + 1; j < arrays.size(); ++j) {
        if (arrays[j].second != arrays[i].first) continue;
        const Type type = kernel_.type(arrays[i].first);
        arrays_.push_back(kernel_.add_value(type));
        emit(Op::copy, {arrays_.back(), arrays[j].second}, {}, where);
        arrays[j].second = arrays_.back();
      }
      emit(Op::copy, {arrays[i].first, arrays[i].second}, {}, where);
    }
  }

  void visit(Operation& o) {
    if (ir::info(o.op).elementwise() && in_registers(o.results[0])) return elementwise(o);
    switch (o.op) {
      case Op::view:
        return view(o);
      case Op::for_loop:
        return loop(o, 3, 0);
      case Op::while_loop:
        return loop(o, 1, 1);
      case Op::if_then:
        return branch(o);
      case Op::elect:
        lower(o.blocks[0]);
        out_.push_back(std::move(o));
        return;
      case Op::splat:
        return emit(Op::fill, {array(o.results[0]), o.operands[0]}, {}, o.where);
      case Op::iota:
        return emit(
            Op::coordinate, {array(o.results[0])},
            {{Key::axis, o.attributes.integer(Key::axis)}, {Key::layout, layout(o.results[0])}},
            o.where);
      case Op::any: {
        emit(Op::any_register, {array(o.operands[0])}, {}, o.where);
        out_.back().results = o.results;
        return;
      }
      case Op::reduce:
        return reduce(o);
      case Op::complete:
        copy(o.results[0], o.operands[0], o.where);
        reduce_lanes(o.results[0], layout(o.operands[0]), o);
        return exchange(o);
      case Op::as_pending:
        complete_.insert(o.results[0]);
        return copy(o.results[0], o.operands[0], o.where);
      case Op::reshape:
      case Op::transpose:
        return copy(o.results[0], o.operands[0], o.where);
      case Op::slice:
        return slice(o);
      case Op::wgmma:
        return product(o);
      case Op::wait:
      case Op::retire:
        return wait(o);
      case Op::store_tile:
        return store_tile(o);
      case Op::load_tile:
        return move_tile(o.results[0], o.operands[0], Op::load_matrix, Op::load_elements, o);
      case Op::store_fragment:
        return fragment(Op::store_words, o.operands[0], o.operands[1], o.operands[2], o);
      case Op::load_fragment:
        return fragment(Op::load_words, o.results[0], o.operands[0], o.operands[1], o);
      case Op::load:
        return load(o);
      case Op::store:
        return store(o);
      case Op::tma_load_tile:
        return tma(o, true);
      case Op::tma_store_tile:
        return tma(o, false);
      default:
        out_.push_back(std::move(o));
    }
  }

  void view(const Operation& o) {
    View view;
    view.shared = o.operands[0];
    view.stage = o.operands[1];
    view.row = o.operands[2];
    if (o.operands.size() > 3) view.panel = o.operands[3];
    view.column = o.attributes.integer(Key::column);
    view.transposed = o.attributes.integer(Key::transposed) != 0;
    view.layout = &places_.at(view.shared)->attributes.shared_layout();
    view.panels = *view.layout->as_panels();
    views_[o.results[0]] = view;
  }

  // Bytes from the allocation's start to the view's stage, first panel and row.
  ValueId offset(const View& view, bool with_row, SourceLocation where) {
    ValueId place = scale(view.stage, view.layout->size_bytes(), where);
    if (view.panel) place = add(place, scale(*view.panel, view.panels.distance, where), where);
    return with_row ? add(place, scale(view.row, view.panels.span_bytes, where), where) : place;
  }
  // Bytes to the panel in which the view's columns begin.
  std::int64_t panel_step(const View& view, const Operation& o) {
    if (view.column % view.panels.span != 0) {
      Diagnostic(o.where, "columns from " + std::to_string(view.column) +
                              " of a shared tile whose panels are " +
                              std::to_string(view.panels.span) + " wide")
          .fix("begin at a multiple of the panel's width")
          .raise();
    }
    return view.column / view.panels.span * view.panels.distance;
  }

  void elementwise(const Operation& o) {
    const ValueId result = o.results[0];
    std::vector<ValueId> operands{array(result)};
    std::vector<ir::IndexMap> maps;
    for (const ValueId operand : o.operands) {
      if (!in_registers(operand)) {
        operands.push_back(operand);
        maps.push_back({});
        continue;
      }
      const ir::RegisterMap map = ir::register_map(layout(result), layout(operand));
      if (!map.ok()) {
        Diagnostic(o.where, std::string(ir::info(o.op).name) +
                                ": operands lie differently in registers: " + map.mismatch)
            .fix("pass one through shared memory: store(view, tile), then load(view)")
            .raise();
      }
      operands.push_back(array(operand));
      maps.push_back(map.terms);
    }
    emit(Op::compute, std::move(operands), {{Key::function, o.op}, {Key::maps, std::move(maps)}},
         o.where);
  }

  void reduce(const Operation& o) {
    const ValueId source = o.operands[0], result = o.results[0];
    const int axis = static_cast<int>(o.attributes.integer(Key::axis));
    const ir::RegisterMap map =
        ir::register_map(layout(source), layout(source).reduce(axis, ir::Reduction::complete));
    emit(Op::reduce_registers, {array(result), array(source)},
         {{Key::function, o.attributes.function()},
          {Key::maps, std::vector<ir::IndexMap>{map.terms}}},
         o.where);
    if (o.attributes.integer_or(Key::partial, 0) == 0) {
      shuffle(result, layout(source).shuffle_distances(axis), o);
    }
    exchange(o);
  }
  void reduce_lanes(ValueId result, const ir::RegisterLayout& partial, const Operation& o) {
    for (int axis = 0; axis < static_cast<int>(partial.shape.size()); ++axis) {
      if (partial.is_partial(axis)) shuffle(result, partial.shuffle_distances(axis), o);
    }
  }
  void shuffle(ValueId result, const std::vector<int>& distances, const Operation& o) {
    if (distances.empty()) return;
    emit(Op::reduce_lanes, {array(result)},
         {{Key::function, o.attributes.function()},
          {Key::masks, std::vector<std::int64_t>(distances.begin(), distances.end())}},
         o.where);
  }

  // What the warps hold of a reduction, through shared memory: all write, all read what all wrote.
  void exchange(const Operation& o) {
    const auto exchange = warp_exchange(kernel_, o);
    if (!exchange) return;
    const ValueId shared = o.operands[1], result = o.results[0];
    const std::int64_t warps = exchange->written.warp_count();
    const std::int64_t groups = role_.attributes.integer(Key::warps) / warps;
    const ValueId group = groups > 1 ? role_.blocks[0].arguments[0] : integer(0, o.where);
    const std::int64_t row_bytes = exchange->elements * size_of(kernel_.type(result).dtype);
    const ValueId place = scale(group, exchange->parts * row_bytes, o.where);
    const auto sync = [&] {
      emit(Op::named_sync, {group},
           {{Key::first, o.attributes.integer(Key::first)}, {Key::threads, 32 * warps}}, o.where);
    };
    const auto access = [&](Op op, ValueId array, const ir::RegisterLayout& layout) {
      emit(op, {array, shared, place},
           {{Key::layout, layout},
            {Key::row_bytes, row_bytes},
            {Key::swizzle_divisor, std::int64_t{1}},
            {Key::swizzle_mask, std::int64_t{0}},
            {Key::panel_columns, exchange->elements},
            {Key::panel_bytes, row_bytes * exchange->parts}},
           o.where);
    };
    // Before the next round writes, all have read what the last one wrote.
    if (loops_ > 0) sync();
    access(Op::store_elements, array(result), exchange->written);
    sync();
    const std::int64_t held = kernel_.type(array(result)).elements();
    arrays_.push_back(kernel_.add_value(
        Type::of(Type::Kind::registers, kernel_.type(result).dtype, {held * exchange->parts})));
    access(Op::load_elements, arrays_.back(), exchange->read);
    emit(Op::reduce_registers, {array(result), arrays_.back()},
         {{Key::function, o.attributes.function()},
          {Key::maps, std::vector<ir::IndexMap>{{{1, held, 1}}}}},
         o.where);
  }

  void slice(const Operation& o) {
    const ir::RegisterLayout from = layout(o.operands[0]).canonical();
    const std::vector<std::int64_t>& offsets = o.attributes.integers(Key::offsets);
    const ir::Mode& last = from.registers.back();
    const std::int64_t below = from.register_count() / last.size;
    const std::int64_t first = offsets[last.axis] / last.stride * below;
    emit(Op::copy, {array(o.results[0]), array(o.operands[0])}, {{Key::offset, first}}, o.where);
  }

  void product(const Operation& o) {
    const ValueId result = o.results[0], accumulator = array(result);
    const Type type = kernel_.type(result);
    const bool accumulates = o.operands.size() > 2;
    if (accumulates) copy(result, o.operands[2], o.where);
    const bool a_in_registers = in_registers(o.operands[0]);
    const View b = views_.at(o.operands[1]);
    const DType dtype = kernel_.type(o.operands[1]).dtype;
    const std::int64_t step_k = 32 / size_of(dtype);
    const int b_axis = b.transposed ? 1 : 0;
    const std::int64_t depth = kernel_.type(o.operands[1]).shape[b_axis];

    std::vector<ValueId> pinned{accumulator};
    if (a_in_registers) pinned.push_back(array(o.operands[0]));
    // ptxas serialises products when what is read beside this one shares its registers.
    if (const auto copy = copied_.find(accumulator); copy != copied_.end()) {
      pinned.insert(pinned.begin(), copy->second);
    }
    ProductSide right = side(b, b_axis, o);
    ProductSide left;
    if (!a_in_registers) {
      const View a = views_.at(o.operands[0]);
      left = side(a, a.transposed ? 0 : 1, o);
    }
    emit(Op::wgmma_fence, pinned, {}, o.where);
    const ValueId yes = boolean(true, o.where);
    const ValueId first = accumulates ? yes : boolean(false, o.where);
    for (std::int64_t step = 0; step * step_k < depth; ++step) {
      ir::Attributes attributes{{Key::n, type.shape[1]},
                                {Key::k, step_k},
                                {Key::descriptor_b, right.descriptor},
                                {Key::step_b, right.steps.at(right.first + step)},
                                {Key::transpose_b, right.transposed}};
      std::vector<ValueId> operands{accumulator};
      if (a_in_registers) {
        operands.push_back(array(o.operands[0]));
        attributes.set(Key::register_, step * 4);
      } else {
        operands.insert(operands.end(), {left.shared, left.offset});
        attributes.set(Key::descriptor_a, left.descriptor);
        attributes.set(Key::step_a, left.steps.at(left.first + step));
        attributes.set(Key::transpose_a, left.transposed);
      }
      operands.insert(operands.end(), {right.shared, right.offset, step == 0 ? first : yes});
      emit(a_in_registers ? Op::wgmma_rs : Op::wgmma_ss, std::move(operands), std::move(attributes),
           o.where);
    }
    emit(Op::wgmma_commit, {}, {}, o.where);
    if (a_in_registers) operands_of_[result] = array(o.operands[0]);
  }

  struct ProductSide {
    ValueId shared = 0, offset = 0;
    std::int64_t descriptor = 0, transposed = 0;
    std::vector<std::int64_t> steps;
    std::int64_t first = 0;
  };
  // `k_axis`: the axis of the tile in memory that is summed over.
  ProductSide side(const View& view, int k_axis, const Operation& o) {
    const ir::WgmmaOperand operand = ir::wgmma_operand(*view.layout, k_axis, o.where);
    ProductSide side;
    side.shared = view.shared;
    side.offset = offset(view, true, o.where);
    side.descriptor = static_cast<std::int64_t>(operand.high_bits >> 14);  // above the address
    side.transposed = operand.major == ir::Major::mn;
    side.steps = operand.k_steps;
    const std::int64_t step_k = 32 / size_of(kernel_.type(view.shared).dtype);
    if (k_axis == 1) {
      if (view.column % step_k != 0) panel_step(view, o);
      side.first = view.column / step_k;
    } else {
      const std::int64_t slice = ir::wgmma_slice_offset(*view.layout, k_axis, view.column, o.where);
      for (std::int64_t& step : side.steps) step += slice;
    }
    return side;
  }

  void wait(const Operation& o) {
    std::vector<ValueId> readable;
    // Where the product wrote, which the copy below may read.
    if (o.op == Op::wait) readable.push_back(array(o.operands[0]));
    const auto a = operands_of_.find(o.operands[0]);
    if (a != operands_of_.end()) readable.push_back(a->second);
    emit(Op::wgmma_wait, std::move(readable), {{Key::count, o.attributes.integer(Key::count)}},
         o.where);
    if (o.op != Op::wait || !must_move(o.results[0], o.operands[0], o.where)) return;
    copy(o.results[0], o.operands[0], o.where);
    copied_[array(o.operands[0])] = array(o.results[0]);
  }

  void store_tile(const Operation& o) {
    move_tile(o.operands[0], o.operands[1], Op::store_matrix, Op::store_elements, o);
  }

  // By matrices of 8 x 8 where the tile is a product's accumulator of 2-byte elements, else element
  // by element.
  void move_tile(ValueId tile, ValueId place, Op by_matrix, Op by_element, const Operation& o) {
    const View view = views_.at(place);
    const Type& type = kernel_.type(tile);
    const bool matrices = size_of(type.dtype) == 2 && type.shape.size() == 2 &&
                          type.shape[0] == 64 && type.shape[1] % 16 == 0 &&
                          view.panels.span_bytes >= 32 && view.panels.contiguous_axis == 1 &&
                          type.layout == ir::wgmma_accumulator(64, type.shape[1]);
    if (!matrices) return elements(by_element, tile, view, o);
    const std::int64_t columns = type.shape[1];
    const ValueId warp = scalar(Op::warp_index, {}, {}, i32, o.where);
    const ValueId row = add(view.row, scale(warp, 16, o.where), o.where);
    const ValueId stage = offset(view, false, o.where);
    const std::int64_t start = panel_step(view, o);
    for (std::int64_t column = 0; column < columns; column += 16) {
      ir::Attributes attributes = swizzle_attributes(view);
      attributes.set(Key::register_, column / 4);
      attributes.set(Key::step, start + column / view.panels.span * view.panels.distance);
      attributes.set(Key::column_bytes, column % view.panels.span * 2);
      emit(by_matrix, {array(tile), view.shared, stage, row}, std::move(attributes), o.where);
    }
  }

  // Chunk c of row r lies at chunk c ^ (r / divisor & mask): Swizzle<bits, 4, 3> of 16-byte chunks
  // in rows of the panel's span.
  static ir::Attributes swizzle_attributes(const View& view) {
    const std::int64_t chunks = view.panels.swizzle_bytes / 16;
    return {{Key::row_bytes, view.panels.span_bytes},
            {Key::swizzle_divisor, chunks > 0 ? 8 / chunks : 1},
            {Key::swizzle_mask, chunks > 0 ? chunks - 1 : 0}};
  }

  void elements(Op op, ValueId tile, const View& view, const Operation& o) {
    ir::Attributes attributes = swizzle_attributes(view);
    attributes.set(Key::layout, layout(tile));
    attributes.set(Key::panel_columns, view.panels.span);
    attributes.set(Key::panel_bytes, view.panels.distance);
    ValueId place = offset(view, true, o.where);
    if (const std::int64_t start = panel_step(view, o)) {
      place = add(place, integer(start, o.where), o.where);
    }
    emit(op, {array(tile), view.shared, place}, std::move(attributes), o.where);
  }

  void fragment(Op op, ValueId tile, ValueId shared, ValueId place, const Operation& o) {
    if (!(layout(tile) == ir::wgmma_accumulator(64, kernel_.type(tile).shape[1]))) {
      Diagnostic(o.where, "fragments: the tile does not lie as a product's result does: " +
                              layout(tile).to_string())
          .fix("pass it through a SharedTile: store(view, tile), then load(view)")
          .raise();
    }
    constexpr std::int64_t kWarps = 4;
    const std::int64_t warp_bytes = kernel_.type(tile).elements() * size_of(f32) / kWarps;
    const ValueId warp = scalar(Op::warp_index, {}, {}, i32, o.where);
    const ValueId index = add(scale(place, kWarps, o.where), warp, o.where);
    std::vector<ValueId> operands{array(tile), shared, scale(index, warp_bytes, o.where)};
    if (op == Op::load_words && o.operands.size() > 2) operands.push_back(o.operands[2]);
    emit(op, std::move(operands), {}, o.where);
  }

  void load(const Operation& o) {
    std::vector<ValueId> operands{array(o.results[0])};
    operands.insert(operands.end(), o.operands.begin(), o.operands.end());
    emit(Op::load_registers, std::move(operands),
         {{Key::sizes, o.attributes.integers(Key::sizes)}, {Key::layout, layout(o.results[0])}},
         o.where);
  }
  void store(const Operation& o) {
    std::vector<ValueId> operands = o.operands;
    operands[1] = array(o.operands[1]);
    emit(Op::store_registers, std::move(operands),
         {{Key::sizes, o.attributes.integers(Key::sizes)}, {Key::layout, layout(o.operands[1])}},
         o.where);
  }

  // One copy for each panel of the tile.
  void tma(const Operation& o, bool load) {
    const View view = views_.at(o.operands[1]);
    const Type part = kernel_.type(o.operands[1]);
    const std::size_t leading = load ? 4 : 2;
    const ValueId place = offset(view, true, o.where);
    const std::int64_t start = panel_step(view, o);
    const std::vector<std::int64_t>& box = places_.at(o.operands[0])->attributes.integers(Key::box);
    for (std::int64_t column = 0; column < part.shape[1]; column += box.back()) {
      std::vector<ValueId> coordinates(o.operands.begin() + leading, o.operands.end());
      std::reverse(coordinates.begin(), coordinates.end());
      if (column > 0) coordinates[0] = add(coordinates[0], integer(column, o.where), o.where);
      std::vector<ValueId> operands{o.operands[0], view.shared, place};
      ir::Attributes attributes{
          {Key::step, start + column / view.panels.span * view.panels.distance}};
      if (load) {
        operands.insert(operands.end(), {o.operands[2], o.operands[3]});
        attributes.set(Key::bytes, part.shape[0] * box.back() * size_of(part.dtype));
        attributes.set(Key::cache, o.attributes.integer(Key::cache));
        if (o.attributes.has(Key::multicast)) {
          attributes.set(Key::multicast, o.attributes.integer(Key::multicast));
        }
      }
      operands.insert(operands.end(), coordinates.begin(), coordinates.end());
      emit(load ? Op::tma_load : Op::tma_store, std::move(operands), std::move(attributes),
           o.where);
    }
  }

  void loop(Operation& o, std::size_t leading, std::size_t extra) {
    ir::Block& body = o.blocks[0];
    const std::size_t first = body.arguments.size() - o.results.size();
    std::vector<std::pair<ValueId, ValueId>> before, after, results;
    Operation lowered;
    lowered.op = o.op;
    lowered.where = o.where;
    lowered.attributes = o.attributes;
    lowered.operands.assign(o.operands.begin(), o.operands.begin() + leading);
    std::vector<ValueId> arguments(body.arguments.begin(), body.arguments.begin() + first);
    const std::vector<ValueId> yielded = body.body.back().operands;
    std::vector<ValueId> kept(yielded.begin(), yielded.begin() + extra);
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      const ValueId argument = body.arguments[first + i];
      if (in_registers(argument)) {
        before.push_back({argument, o.operands[leading + i]});
        after.push_back({argument, yielded[extra + i]});
        results.push_back({o.results[i], argument});
        continue;
      }
      lowered.operands.push_back(o.operands[leading + i]);
      lowered.results.push_back(o.results[i]);
      arguments.push_back(argument);
      kept.push_back(yielded[extra + i]);
    }
    copy_all(before, o.where);
    ++loops_;
    lower_block(body, after, kept);
    --loops_;
    body.arguments = std::move(arguments);
    lowered.blocks.push_back(std::move(body));
    out_.push_back(std::move(lowered));
    copy_all(results, o.where);
  }

  void branch(Operation& o) {
    Operation lowered;
    lowered.op = o.op;
    lowered.where = o.where;
    lowered.operands = o.operands;
    for (const ValueId result : o.results) {
      if (!in_registers(result)) lowered.results.push_back(result);
    }
    for (ir::Block& block : o.blocks) {
      const std::vector<ValueId> yielded = block.body.back().operands;
      std::vector<std::pair<ValueId, ValueId>> after;
      std::vector<ValueId> kept;
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        if (in_registers(o.results[i])) {
          after.push_back({o.results[i], yielded[i]});
        } else {
          kept.push_back(yielded[i]);
        }
      }
      lower_block(block, after, kept);
      lowered.blocks.push_back(std::move(block));
    }
    out_.push_back(std::move(lowered));
  }

  // A block whose tiles are passed on by copies (or stay in place) and whose scalars are yielded.
  void lower_block(ir::Block& block, const std::vector<std::pair<ValueId, ValueId>>& moves,
                   const std::vector<ValueId>& yielded) {
    Operation yield = std::move(block.body.back());
    block.body.pop_back();
    yield.operands = yielded;
    std::vector<Operation> outer = std::move(out_);
    out_.clear();
    for (Operation& operation : block.body) visit(operation);
    copy_all(moves, yield.where);
    copied_.clear();
    out_.push_back(std::move(yield));
    block.body = std::move(out_);
    out_ = std::move(outer);
  }

  ir::Kernel& kernel_;
  const std::map<ValueId, const Operation*>& places_;
  const Operation& role_;
  Buffers buffers_;
  int loops_ = 0;  // around what is lowered
  std::vector<ValueId> arrays_;
  std::vector<Operation> out_;
  std::map<ValueId, View> views_;
  std::map<ValueId, ValueId> operands_of_;  // register operand of a pending product
  std::map<ValueId, ValueId> copied_;       // from an accumulator in this block, and to where
  std::set<ValueId> complete_;              // tiles that are given as pending products
};

Operation plain(Op op, std::vector<ValueId> operands, ir::Attributes attributes,
                SourceLocation where) {
  Operation o;
  o.op = op;
  o.operands = std::move(operands);
  o.attributes = std::move(attributes);
  o.where = where;
  return o;
}

void lower_role(ir::Kernel& kernel, const std::map<ValueId, const Operation*>& places,
                Operation& role, std::int64_t registers_at_launch, bool alone) {
  RoleLowering lowering(kernel, places, role);
  lowering.lower(role.blocks[0]);
  std::vector<Operation>& lowered = role.blocks[0].body;
  const std::int64_t budget = role.attributes.integer(Key::registers);
  std::vector<Operation> body;
  if (!alone) {
    body.push_back(
        plain(Op::set_max_registers, {},
              {{Key::count, budget}, {Key::increase, std::int64_t{budget > registers_at_launch}}},
              role.where));
  }
  for (Operation& array : lowering.declarations(role.where)) body.push_back(std::move(array));
  body.insert(body.end(), std::make_move_iterator(lowered.begin()),
              std::make_move_iterator(lowered.end()));
  lowered = std::move(body);
}

}  // namespace

void bufferise(ir::Kernel& kernel) {
  std::vector<Operation> source = std::move(kernel.body.body);
  std::map<ValueId, const Operation*> places;
  for (const Operation& o : source) {
    if (ir::info(o.op).has("place")) places[o.results[0]] = &o;
  }
  // Registers that a thread has from the launch: setmaxnreg gives to a role or takes from it.
  const std::int64_t at_launch = 65536 / kernel.threads / 8 * 8;
  const bool cluster = kernel.cluster > 1;
  // The only role has its registers from the launch, and leaves the others to further CTAs.
  const bool alone = std::count_if(source.begin(), source.end(),
                                   [](const Operation& o) { return o.op == Op::role; }) == 1;
  std::vector<Operation> prefetches, initialise, body, rest;
  for (Operation& o : source) {
    if (o.op == Op::role) lower_role(kernel, places, o, at_launch, alone);
    if (o.op == Op::tensor_map) {
      prefetches.push_back(plain(Op::prefetch_map, {o.results[0]}, {}, o.where));
    }
    if (o.op != Op::mbarriers) continue;
    const std::int64_t arrivals = o.attributes.integer(Key::arrivals);
    initialise.push_back(
        plain(Op::mbarrier_init, {o.results[0]}, {{Key::arrivals, arrivals}}, o.where));
  }
  // Only now: lowering the roles looks places up where they stand.
  for (Operation& o : source) {
    (ir::info(o.op).has("place") ? body : rest).push_back(std::move(o));
  }
  if (!initialise.empty()) {
    initialise.push_back(plain(Op::fence_barrier_init, {}, {}, kernel.where));
    initialise.push_back(plain(cluster ? Op::cluster_sync : Op::cta_sync, {}, {}, kernel.where));
  }
  // A CTA may not end while others of its cluster still arrive on its barriers.
  if (cluster) rest.push_back(plain(Op::cluster_sync, {}, {}, kernel.where));
  for (std::vector<Operation>* part : {&prefetches, &initialise, &rest}) {
    body.insert(body.end(), std::make_move_iterator(part->begin()),
                std::make_move_iterator(part->end()));
  }
  kernel.body.body = std::move(body);
  kernel.form = ir::Form::machine;
}

}  // namespace tilewright::passes
