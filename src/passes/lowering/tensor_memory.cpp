#include "passes/lowering/tensor_memory.h"

#include <algorithm>

#include "ir/tensor_descriptor.h"
#include "passes/lowering/operand_side.h"

namespace tilewright::passes {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

constexpr std::int64_t kLane = std::int64_t{1} << 16;  // in an address
constexpr std::int64_t kColumnBytes = 4;
// Registers of one access: with more of them the assembler finds no place for 512 threads.
constexpr std::int64_t kMostRegisters = 32;

}  // namespace

ValueId TensorMemoryLowering::at(ValueId address, std::int64_t column, SourceLocation where) {
  return column == 0 ? address : code_.add(address, code_.integer(column, where), where);
}

void TensorMemoryLowering::product(const Operation& o) {
  const ValueId memory = o.operands[0], address = o.operands[1];
  const bool from_shared = code_.type(o.operands[2]).is(ir::Type::Kind::view);
  const View b = views_.at(o.operands[3]);
  const ir::Type b_type = code_.type(o.operands[3]);  // new values move what is there
  const int b_axis = b.transposed ? 1 : 0;
  const auto side = [&](const View& view, int k_axis) {
    return operand_side(code_, views_, view, k_axis, limits_.product_depth_bytes,
                        ir::tensor_operand, o);
  };
  const OperandSide right = side(b, b_axis);
  OperandSide left;
  const std::int64_t ctas = code_.kernel().cta_pairs ? 2 : 1;
  ir::TensorProductShape shape{b_type.dtype, o.attributes.integer_or(Key::m, limits_.tensor_lanes),
                               b_type.shape[1 - b_axis] * ctas};
  shape.ctas = ctas;
  if (from_shared) {
    const View a = views_.at(o.operands[2]);
    left = side(a, a.transposed ? 0 : 1);
    shape.m = code_.type(o.operands[2]).shape[a.transposed ? 1 : 0];
  }
  shape.m *= ctas;
  shape.a = left.transposed != 0 ? ir::Major::mn : ir::Major::k;
  shape.b = right.transposed != 0 ? ir::Major::mn : ir::Major::k;
  const std::int64_t step_k = limits_.product_depth_bytes / size_of(shape.element);
  const ValueId yes = code_.boolean(true, o.where);
  for (std::int64_t step = 0; step * step_k < b_type.shape[b_axis]; ++step) {
    ir::Attributes attributes{
        {Key::m, shape.m},
        {Key::n, shape.n},
        {Key::k, step_k},
        {Key::instruction, std::int64_t{ir::instruction_descriptor(shape, o.where)}},
        {Key::descriptor_b, right.descriptor},
        {Key::step_b, right.steps.at(right.first + step)},
        {Key::transpose_b, right.transposed}};
    std::vector<ValueId> operands{memory, address, o.operands[2]};
    if (from_shared) {
      operands[2] = left.shared;
      operands.push_back(left.offset);
      attributes.set(Key::descriptor_a, left.descriptor);
      attributes.set(Key::step_a, left.steps.at(left.first + step));
      attributes.set(Key::transpose_a, left.transposed);
    } else {
      operands.push_back(
          at(o.operands[5], step * limits_.product_depth_bytes / kColumnBytes, o.where));
    }
    operands.insert(operands.end(), {right.shared, right.offset, step == 0 ? o.operands[4] : yes});
    code_.emit(from_shared ? Op::tcgen05_mma_ss : Op::tcgen05_mma_ts, std::move(operands),
               std::move(attributes), o.where);
  }
}

// Warp w of a warpgroup reaches lanes 32 w to 32 w + 31 alone.
ValueId TensorMemoryLowering::own_window(ValueId address, SourceLocation where) {
  const ValueId warp = code_.scalar(Op::warp_index, {}, {}, i32, where);
  return code_.add(address, code_.scale(warp, limits_.lanes * kLane, where), where);
}

// Calls `emit(address, attributes)` for powers of two of the tile's registers. A tile of 128 rows
// has a column in each; one of 64 rows moves by matrices, of which a thread has half of the
// columns of two rows.
template <typename Emit>
void TensorMemoryLowering::in_pieces(ValueId tile, ValueId address, const Operation& o, Emit emit) {
  const ir::Type type = code_.type(tile);
  const ValueId first = own_window(address, o.where);
  const bool whole = type.shape[0] == limits_.tensor_lanes;
  const std::int64_t columns = whole ? 1 : 2;  // of a register
  const std::int64_t registers = type.shape[1] * size_of(type.dtype) / kColumnBytes / columns;
  for (std::int64_t moved = 0; moved < registers;) {
    std::int64_t count = kMostRegisters;
    while (count > registers - moved) count /= 2;
    ir::Attributes attributes{{Key::count, count}, {Key::register_, moved}};
    if (!whole) attributes.set(Key::row_bytes, std::int64_t{size_of(type.dtype) == 4 ? 32 : 16});
    emit(at(first, columns * moved, o.where), std::move(attributes));
    moved += count;
  }
}

void TensorMemoryLowering::load(const Operation& o) {
  const ValueId array = code_.array(o.results[0]);
  in_pieces(o.results[0], o.operands[1], o, [&](ValueId address, ir::Attributes attributes) {
    code_.emit(Op::tcgen05_ld, {array, o.operands[0], address}, std::move(attributes), o.where);
  });
  code_.emit(Op::tcgen05_wait_ld, {array}, {}, o.where);
}

void TensorMemoryLowering::store(const Operation& o) {
  const ValueId array = code_.array(o.operands[2]);
  in_pieces(o.operands[2], o.operands[1], o, [&](ValueId address, ir::Attributes attributes) {
    code_.emit(Op::tcgen05_st, {o.operands[0], address, array}, std::move(attributes), o.where);
  });
  code_.emit(Op::tcgen05_wait_st, {}, {}, o.where);
}

}  // namespace tilewright::passes
