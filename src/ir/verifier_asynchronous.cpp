#include <algorithm>

#include "ir/padded_panels.h"
#include "ir/type_rules.h"
#include "ir/verifier_context.h"

// Places, views of shared memory, TMA on tiles, wgmma on tiles, barriers.
namespace tilewright::ir {
namespace {

using Shape = std::vector<std::int64_t>;

void verify_shared(const VerifierContext& context) {
  const SharedLayout& layout = context.attributes().shared_layout();
  const std::string& name = context.attributes().text(Key::name);
  const Type& type = context.result();
  if (const auto problem = layout.problem()) context.fail("{}: {}", name, *problem);
  const std::int64_t stages = context.integer(Key::stages);
  context.require(stages >= 1, "{} has {} stages, expected at least 1", name, stages);
  Shape shape = layout.shape;
  shape.insert(shape.begin(), stages);
  if (type.shape != shape) {
    context.fail("{} is {}, but its stages and layout say {}", name, type.to_string(),
                 shape_text(shape));
  }
  context.require(layout.element_bytes == size_of(type.dtype),
                  "{} is of {}, {} bytes, but its layout has elements of {}", name,
                  name_of(type.dtype), size_of(type.dtype), layout.element_bytes);
  if (!context.attributes().has(Key::offset)) return;
  const std::int64_t offset = context.integer(Key::offset);
  const std::int64_t alignment = std::max<std::int64_t>(16, layout.alignment());
  context.require(offset >= 0 && offset % alignment == 0,
                  "{} lies at offset {}, expected a multiple of {}", name, offset, alignment);
}

void verify_mbarriers(const VerifierContext& context) {
  const std::string& name = context.attributes().text(Key::name);
  const std::int64_t arrivals = context.integer(Key::arrivals);
  context.require(arrivals >= 1 && arrivals < (1 << 20),
                  "{} expects {} arrivals a phase, expected 1 to 2^20 - 1", name, arrivals);
  const std::int64_t offset = context.integer(Key::offset);
  context.require(offset >= 0 && offset % 8 == 0, "{} lies at offset {}, expected a multiple of 8",
                  name, offset);
}

void verify_tensor_map(const VerifierContext& context) {
  const std::string& name = context.attributes().text(Key::name);
  const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
  const Shape& box = context.attributes().integers(Key::box);
  context.require(!box.empty() && box.size() == tensor.shape.size(),
                  "{}: a box of rank {}, but {} has rank {}", name, box.size(), tensor.name,
                  tensor.shape.size());
  for (const std::int64_t extent : box) {
    if (extent < 1) context.fail("{}: box {} has an extent of {}", name, shape_text(box), extent);
  }
  const auto rank = static_cast<std::int64_t>(box.size());
  const std::int64_t ragged = context.attributes().integer_or(Key::ragged, 0);
  context.require(
      !context.attributes().has(Key::ragged) || (ragged >= 0 && ragged < rank - 1 && rank <= 4),
      "{}: axis {} of {} is ragged, expected one of at most 4 and not the last", name, ragged,
      rank);
  if (const Attribute* single = context.attributes().find(Key::single)) {
    for (const std::int64_t axis : std::get<Shape>(*single)) {
      context.require(axis >= 0 && axis < rank && box[axis] == 1,
                      "{}: axis {} has blocks of 1, expected one of which a box {} takes 1", name,
                      axis, shape_text(box));
    }
  }
  const std::int64_t swizzle = context.integer(Key::swizzle);
  context.require(swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128,
                  "{}: a swizzle of {} bytes, expected 0, 32, 64 or 128", name, swizzle);
  const std::int64_t inner = box.back() * size_of(tensor.dtype);
  context.require(swizzle == 0 || inner <= swizzle,
                  "{}: rows of {} bytes, more than the swizzle's span of {}", name, inner, swizzle);
  context.require(!context.attributes().has(Key::peers) || tensor.is_symmetric(),
                  "has peers, but {} is in this rank alone", tensor.name);
}

void verify_fragment(const VerifierContext& context, const Type& tile, const Type& shared) {
  const std::int64_t elements = tile.elements();
  context.require(tile.dtype == f32 && shared.dtype == f32 && tile.shape.size() == 2 &&
                      tile.shape[0] == 64 && shared.shape.back() == elements,
                  "{} in places of {}", tile.to_string(), shared.to_string());
}

// The shape of a tile or view as a product sees it.
Shape product_shape(const VerifierContext& context, std::size_t i) {
  Shape shape = context.operand(i).shape;
  const Operation* view = context.defined_by(context.operation().operands[i]);
  if (view && view->op == Op::view && view->attributes.integer_or(Key::transposed, 0) != 0) {
    std::reverse(shape.begin(), shape.end());
  }
  return shape;
}

void require_same_tile(const VerifierContext& context, const Type& a, const Shape& a_shape,
                       const Type& b, const Shape& b_shape) {
  if (a.dtype == b.dtype && a_shape == b_shape) return;
  context.fail("{} of {} and {} of {} differ", a.to_string(), shape_text(a_shape), b.to_string(),
               shape_text(b_shape));
}

// A tile that moves between the tensor of map 0 and view 1: whole boxes of equal dtype.
void verify_tma_tile(const VerifierContext& context, std::size_t first) {
  verify_coordinates(context, first);
  const Operation& map = context.map_operand(0);
  const Parameter& tensor = context.tensor_of(map.operands[0]);
  const Type& view = context.operand(1);
  context.require(view.dtype == tensor.dtype, "{} is {}, but {} is {}", context.operand_text(1),
                  name_of(view.dtype), tensor.name, name_of(tensor.dtype));
  std::int64_t box = 1;
  bool is_whole = true;
  for (const std::int64_t extent : map.attributes.integers(Key::box)) {
    is_whole = is_whole && !__builtin_mul_overflow(box, extent, &box);
  }
  context.require(is_whole && view.elements() % box == 0,
                  "{} has {} elements, which are no whole boxes of {} elements",
                  context.operand_text(1), view.elements(), box);
}

// Each panel is copied as it lies.
void verify_copied_views(const VerifierContext& context) {
  const auto layout = [&](std::size_t i) {
    const Operation* view = context.defined_by(context.operation().operands[i]);
    return context.defined_by(view->operands[0])->attributes.shared_layout().as_panels();
  };
  require_same_tile(context, context.operand(0), product_shape(context, 0), context.operand(1),
                    product_shape(context, 1));
  const auto from = layout(0), to = layout(1);
  context.require(from && to && from->span == to->span && from->swizzle_bytes == to->swizzle_bytes,
                  "{} and {} have other panels", context.operand_text(0), context.operand_text(1));
  verify_barrier_index(context, 2);
}

}  // namespace

void verify_coordinates(const VerifierContext& context, std::size_t first) {
  const Operation& map = context.map_operand(0);
  const Parameter& tensor = context.tensor_of(map.operands[0]);
  const std::size_t rank = tensor.shape.size() + (map.attributes.has(Key::ragged) ? 1 : 0);
  context.require(context.operand_count() - first == rank,
                  "{} coordinates, but the map of {} has {}", context.operand_count() - first,
                  tensor.name, rank);
}

void verify_destination(const VerifierContext& context) {
  const Parameter& tensor = context.tensor_of(context.map_operand(0).operands[0]);
  context.require(tensor.kind != Parameter::Kind::in, "writes {}, which is an input", tensor.name);
  if (context.attributes().has(Key::function)) verify_combined(context, tensor.dtype);
}

void verify_signalled(const VerifierContext& context) {
  context.require(context.integer(Key::pair) == 0 || context.kernel().cta_pairs,
                  "signals the first CTA of a pair, and the kernel has no cta_pairs");
}

void verify_barrier_index(const VerifierContext& context, std::size_t barriers) {
  const auto index = context.constant_operand(barriers + 1);
  const std::int64_t count = context.operand(barriers).shape[0];
  if (index && (*index < 0 || *index >= count)) {
    context.fail("index {} of the {} barriers of {}", *index, count,
                 context.operand_text(barriers));
  }
}

void verify_place(const VerifierContext& context) {
  switch (as<PlaceOp>(context.operation().op)) {
    case PlaceOp::shared:
      return verify_shared(context);
    case PlaceOp::mbarriers:
      return verify_mbarriers(context);
    case PlaceOp::tensor_map:
      return verify_tensor_map(context);
    case PlaceOp::tensor_memory:
      return verify_tensor_memory(context);
  }
}

void verify_view(const VerifierContext& context) {
  const Type &shared = context.operand(0), &view = context.result();
  const std::string name = context.operand_text(0);
  context.require(shared.shape.size() == 3 && view.shape.size() == 2,
                  "a view of rank {} of {}, whose rank is {}, expected 2 of 3", view.shape.size(),
                  name, shared.shape.size());
  context.require(view.dtype == shared.dtype, "a view of {} of {}, which is {}",
                  name_of(view.dtype), name, name_of(shared.dtype));
  // The panel is not known as a rule: what is behind it lies inside if the first panel's does.
  const std::int64_t column = context.integer(Key::column);
  context.require(column >= 0 && column <= shared.shape[2] - view.shape[1],
                  "{} columns from {} of the {} of {}", view.shape[1], column, shared.shape[2],
                  name);
  const auto stage = context.constant_operand(1);
  context.require(!stage || (*stage >= 0 && *stage < shared.shape[0]), "stage {} of the {} of {}",
                  stage.value_or(0), shared.shape[0], name);
  const std::int64_t row = context.constant_operand(2).value_or(0);
  const Operation* place = context.defined_by(context.operation().operands[0]);
  const std::int64_t unit = place ? rows_of_views(place->attributes.shared_layout()) : 8;
  context.require(row >= 0 && row % unit == 0 && row <= shared.shape[1] - view.shape[0],
                  "{} rows from {} of the {} of {}, expected a multiple of {} inside",
                  view.shape[0], row, shared.shape[1], name, unit);
  if (context.operand_count() < 4) return;
  const auto panels = padded_panels(place->attributes.shared_layout());
  context.require(panels.has_value(), "{} has no panels", name);
  const std::int64_t panel = context.constant_operand(3).value_or(0);
  context.require(panel >= 0 && column + panel * panels->span <= shared.shape[2] - view.shape[1],
                  "{} columns from panel {} of the {} of {}", view.shape[1], panel, panels->count,
                  name);
}

void verify_wgmma_tile(const VerifierContext& context) {
  const Type &a = context.operand(0), &b = context.operand(1);
  if (!a.is_tile() && !a.is(Type::Kind::view)) {
    context.fail("a is {}, expected a tile or a view", a.to_string());
  }
  const Shape m_k = product_shape(context, 0), k_n = product_shape(context, 1);
  if (m_k.size() != 2 || k_n.size() != 2 || m_k[1] != k_n[0]) {
    context.fail("inner dimensions differ: {} {} x {} {}", context.operand_text(0), shape_text(m_k),
                 context.operand_text(1), shape_text(k_n));
  }
  context.require(a.dtype == b.dtype && a.dtype != DType::boolean && !is_memory_format(a.dtype),
                  "a is {} and b is {}", name_of(a.dtype), name_of(b.dtype));
  const std::int64_t k_step = 32 / size_of(a.dtype);
  context.require(m_k[1] % k_step == 0, "k is {}, expected a multiple of {} for {}", m_k[1], k_step,
                  name_of(a.dtype));
  const Type& result = context.result();
  const Type expected = Type::of(Type::Kind::pending, accumulator_dtype(a.dtype), {m_k[0], k_n[1]});
  if (result.dtype != expected.dtype || result.shape != expected.shape) {
    context.fail("gives {}, expected {}", result.to_string(), expected.to_string());
  }
  if (context.operand_count() < 3) return;
  const Type& c = context.operand(2);
  if (c.dtype != expected.dtype || c.shape != expected.shape) {
    context.fail("the accumulator is {}, expected {}", c.to_string(), expected.to_string());
  }
}

void verify_pending(const VerifierContext& context) {
  switch (as<PendingOp>(context.operation().op)) {
    case PendingOp::wait:
    case PendingOp::as_pending:
      return require_same_tile(context, context.operand(0), context.operand(0).shape,
                               context.result(), context.result().shape);
    case PendingOp::retire:
      return;
  }
}

void verify_shared_tile(const VerifierContext& context) {
  if (info(context.operation().op).writes(Memory::shared)) {
    return require_same_tile(context, context.operand(0), context.operand(0).shape,
                             context.operand(1), product_shape(context, 1));
  }
  require_same_tile(context, context.operand(0), product_shape(context, 0), context.result(),
                    context.result().shape);
}

void verify_fragment_tile(const VerifierContext& context) {
  if (info(context.operation().op).writes(Memory::shared)) {
    return verify_fragment(context, context.operand(0), context.operand(1));
  }
  verify_fragment(context, context.result(), context.operand(0));
}

void verify_tile_copy(const VerifierContext& context) {
  const OpInfo& record = info(context.operation().op);
  if (context.operand(0).is(Type::Kind::view)) return verify_copied_views(context);
  if (record.writes(Memory::global)) verify_destination(context);
  const bool loads = record.writes(Memory::shared);
  verify_tma_tile(context, loads ? 4 : 2);
  if (loads) verify_barrier_index(context, 2);
  verify_signalled(context);
  verify_copied_map(context);
}

void verify_mbarrier(const VerifierContext& context) {
  switch (as<MbarrierOp>(context.operation().op)) {
    case MbarrierOp::mbarrier_init: {
      const Operation* barriers = context.defined_by(context.operation().operands[0]);
      const std::int64_t expected = barriers->attributes.integer(Key::arrivals);
      const std::int64_t arrivals = context.integer(Key::arrivals);
      if (arrivals == expected) return;
      context.fail("{} arrivals, but {} expects {}", arrivals, context.operand_text(0), expected);
    }
    case MbarrierOp::mbarrier_expect_tx: {
      const std::int64_t bytes = context.integer(Key::bytes);
      context.require(bytes >= 0 && bytes < (1 << 20), "{} bytes, expected 0 to 2^20 - 1", bytes);
      return verify_barrier_index(context, 0);
    }
    case MbarrierOp::mbarrier_arrive:
    case MbarrierOp::mbarrier_wait:
      return verify_barrier_index(context, 0);
  }
}

void verify_named_barrier(const VerifierContext& context) {
  const std::int64_t first = context.integer(Key::first), threads = context.integer(Key::threads);
  const std::int64_t count = context.attributes().integer_or(Key::count, 1);
  context.require(first >= 1 && count >= 1, "{} barriers from {}, expected one or more from 1",
                  count, first);
  context.require(context.constant_operand(0) || context.attributes().has(Key::count),
                  "{} chooses among barriers, expected their count", context.operand_text(0));
  const std::int64_t index = context.constant_operand(0).value_or(0);
  context.require(index >= 0, "barrier {} + {}", first, index);
  context.require(!context.attributes().has(Key::count) || index < count,
                  "index {}, expected one below the count, {}", index, count);
  context.require(threads >= 32 && threads % 32 == 0 && threads <= context.kernel().threads,
                  "{} threads, expected a multiple of 32 up to the CTA's {}", threads,
                  context.kernel().threads);
}

void verify_group_wait(const VerifierContext& context) {
  const std::int64_t count = context.integer(Key::count);
  switch (as<GroupWaitOp>(context.operation().op)) {
    case GroupWaitOp::bulk_wait:
      return context.require(count >= 0, "a count of {}, expected at least 0", count);
    case GroupWaitOp::wgmma_wait:
      return context.require(count >= 0 && count <= 7, "a count of {}, expected 0 to 7", count);
  }
}

void verify_shared_word(const VerifierContext& context) {
  const bool loads = info(context.operation().op).reads(Memory::shared);
  const Type& value = loads ? context.result() : context.operand(2);
  context.require(context.operand(0).dtype == DType::i32 && value.dtype == DType::i32,
                  "moves {} of shared memory of {}, expected i32", name_of(value.dtype),
                  name_of(context.operand(0).dtype));
}

}  // namespace tilewright::ir
