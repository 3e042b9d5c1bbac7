#include "ir/tensor_descriptor.h"
#include "ir/type_rules.h"
#include "ir/verifier_context.h"

// Tensor memory: its allocation, accesses, and products whose results lie there.
namespace tilewright::ir {
namespace {

bool is_power_of_two(std::int64_t count) { return count > 0 && (count & (count - 1)) == 0; }

std::int64_t columns_of(const Type& memory) { return memory.shape[0]; }

// Columns of 32 bits.
std::int64_t columns_of(std::int64_t elements, DType dtype) {
  return (elements * size_of(dtype) + 3) / 4;
}

// Of 16 lanes results move by matrices of 8 columns, and operands by those of 4.
std::int64_t columns_of_matrix(int element_bytes) { return element_bytes == 4 ? 8 : 4; }

void require_columns(const VerifierContext& context, std::size_t memory, std::int64_t columns) {
  const std::int64_t available = columns_of(context.operand(memory));
  if (columns <= available) return;
  context.fail("takes {} columns of {}, which has {}", columns, context.operand_text(memory),
               available);
}

// Of a view as a product sees it.
std::vector<std::int64_t> seen_shape(const VerifierContext& context, std::size_t view) {
  std::vector<std::int64_t> shape = context.operand(view).shape;
  const Operation* made = context.defined_by(context.operation().operands[view]);
  if (made != nullptr && made->attributes.integer_or(Key::transposed, 0) != 0) {
    std::swap(shape[0], shape[1]);
  }
  return shape;
}

Major major_of(const VerifierContext& context, Key key) {
  return context.integer(key) != 0 ? Major::mn : Major::k;
}

// That work on one result.
std::int64_t ctas_of(const VerifierContext& context) { return context.kernel().cta_pairs ? 2 : 1; }

void verify_descriptor(const VerifierContext& context, Key key) {
  const std::int64_t bits = context.integer(key);
  context.require(bits >= 0 && bits < (std::int64_t{1} << 50),
                  "{} is {}, expected the 50 bits above the address", name_of(key), bits);
}

}  // namespace

void verify_tensor_memory(const VerifierContext& context) {
  const Type& type = context.result();
  context.require(type.shape.size() == 1 && is_power_of_two(columns_of(type)),
                  "{} is {}, expected a power of two of columns",
                  context.attributes().text(Key::name), type.to_string());
}

void verify_tensor_allocation(const VerifierContext& context) {
  switch (as<TensorAllocationOp>(context.operation().op)) {
    case TensorAllocationOp::tcgen05_alloc:
      return context.require(context.operand(1).dtype == DType::i32,
                             "leaves the address in shared memory of {}, expected i32",
                             name_of(context.operand(1).dtype));
    case TensorAllocationOp::tcgen05_dealloc:
    case TensorAllocationOp::tcgen05_relinquish:
      return;
  }
}

void verify_tensor_tile(const VerifierContext& context) {
  const bool loads = info(context.operation().op).reads(Memory::tensor);
  const Type& tile = loads ? context.result() : context.operand(2);
  const bool is_half = tile.shape.size() == 2 && tile.shape[0] == 64;
  context.require(is_half || (tile.shape.size() == 2 && tile.shape[0] == 128),
                  "moves {}, expected a tile of 128 or 64 rows", tile.to_string());
  context.require(tile.dtype != DType::boolean && size_of(tile.dtype) <= 4 &&
                      tile.shape[1] * size_of(tile.dtype) % 4 == 0,
                  "moves rows of {} {}, expected whole columns of 32 bits", tile.shape[1],
                  name_of(tile.dtype));
  const std::int64_t columns = columns_of(tile.shape[1], tile.dtype);
  context.require(!is_half || columns % columns_of_matrix(size_of(tile.dtype)) == 0,
                  "moves {} columns of 64 rows, expected a multiple of {}", columns,
                  columns_of_matrix(size_of(tile.dtype)));
  require_columns(context, 0, columns);
}

void verify_tensor_tile_product(const VerifierContext& context) {
  const Type &a = context.operand(2), &b = context.operand(3);
  const bool in_tensor_memory = a.is(Type::Kind::tensor_memory);
  context.require(in_tensor_memory || a.is(Type::Kind::view),
                  "a is {}, expected a view or tensor memory", a.to_string());
  context.require(context.operand_count() == (in_tensor_memory ? 6u : 5u),
                  "has {} operands, expected {}", context.operand_count(),
                  in_tensor_memory ? 6 : 5);
  const std::vector<std::int64_t> k_n = seen_shape(context, 3);
  const std::int64_t step = 32 / size_of(b.dtype);
  context.require(k_n[0] % step == 0, "k is {}, expected a multiple of {} for {}", k_n[0], step,
                  name_of(b.dtype));
  std::int64_t m = context.attributes().integer_or(Key::m, 128);
  context.require(m == 128 || (in_tensor_memory && m == 64),
                  "m is {}, expected 64 or 128 of an a in tensor memory", m);
  if (!in_tensor_memory) {
    const std::vector<std::int64_t> m_k = seen_shape(context, 2);
    m = m_k[0];
    context.require(m_k[1] == k_n[0], "inner dimensions differ: {{{}, {}}} x {{{}, {}}}", m_k[0],
                    m_k[1], k_n[0], k_n[1]);
    context.require(a.dtype == b.dtype, "a is {} and b is {}", name_of(a.dtype), name_of(b.dtype));
  }
  const std::int64_t ctas = ctas_of(context);
  require_columns(context, 0,
                  result_columns({b.dtype, m * ctas, k_n[1] * ctas, Major::k, Major::k, ctas}));
}

void verify_tensor_access(const VerifierContext& context) {
  const bool loads = info(context.operation().op).reads(Memory::tensor);
  const std::size_t array = loads ? 0 : 2, memory = loads ? 1 : 0;
  const Type& registers = context.operand(array);
  const std::int64_t count = context.integer(Key::count), first = context.integer(Key::register_);
  context.require(is_power_of_two(count) && count <= 128,
                  "{} registers, expected a power of two up to 128", count);
  context.require(registers.dtype != DType::boolean && size_of(registers.dtype) <= 4,
                  "moves {}, expected elements of 1, 2 or 4 bytes", name_of(registers.dtype));
  const std::int64_t available = columns_of(registers.elements(), registers.dtype);
  if (first < 0 || first + count > available) {
    context.fail("registers {} to {} of {}, which has {}", first, first + count - 1,
                 context.operand_text(array), available);
  }
  const std::int64_t matrix = context.attributes().integer_or(Key::row_bytes, 0);
  context.require(matrix == 0 || matrix == 16 || matrix == 32, "row_bytes is {}, expected 16 or 32",
                  matrix);
  context.require(matrix == 0 || count >= matrix / 8,
                  "{} registers, expected at least {} of matrices of {} bytes", count, matrix / 8,
                  matrix);
  require_columns(context, memory, matrix == 0 ? count : 2 * count);
}

void verify_tensor_product(const VerifierContext& context) {
  const Type& b = context.operand(4);
  const bool from_shared = context.operand(2).is(Type::Kind::shared);
  const std::int64_t k = context.integer(Key::k);
  context.require(k == 32 / size_of(b.dtype), "k is {}, expected {} elements of {}", k,
                  32 / size_of(b.dtype), name_of(b.dtype));
  context.require(!from_shared || context.operand(2).dtype == b.dtype, "a is {} and b is {}",
                  name_of(context.operand(2).dtype), name_of(b.dtype));
  const TensorProductShape shape{b.dtype,
                                 context.integer(Key::m),
                                 context.integer(Key::n),
                                 major_of(context, Key::transpose_a),
                                 major_of(context, Key::transpose_b),
                                 ctas_of(context)};
  if (const std::string problem = problem_of(shape); !problem.empty()) context.fail("{}", problem);
  context.require(context.integer(Key::instruction) == instruction_descriptor(shape),
                  "the instruction descriptor is {:#x}, but its shape and dtypes say {:#x}",
                  context.integer(Key::instruction), instruction_descriptor(shape));
  context.require(from_shared || result_columns(shape) == shape.n,
                  "a of a pair in tensor memory with m = {}, expected 256", shape.m);
  if (from_shared) verify_descriptor(context, Key::descriptor_a);
  verify_descriptor(context, Key::descriptor_b);
  require_columns(context, 0, result_columns(shape));
  if (!from_shared) require_columns(context, 2, columns_of(k, b.dtype));
}

void verify_tensor_copy(const VerifierContext& context) {
  context.require(!context.kernel().cta_pairs, "in a kernel with cta_pairs, expected one CTA");
  switch (as<TensorCopyOp>(context.operation().op)) {
    case TensorCopyOp::tcgen05_shift: {
      constexpr std::int64_t kShifted = 8;  // PTX: 32 bytes of each lane
      return require_columns(context, 0, kShifted);
    }
    case TensorCopyOp::tcgen05_cp: {
      const std::int64_t rows = context.integer(Key::m), bytes = context.integer(Key::row_bytes);
      context.require((rows == 128 && (bytes == 16 || bytes == 32)) || (rows == 32 && bytes == 16),
                      "{} rows of {} bytes, expected 128 of 16 or 32, or 32 of 16", rows, bytes);
      verify_descriptor(context, Key::descriptor_a);
      return require_columns(context, 0, bytes / 4);
    }
  }
}

void verify_tensor_commit(const VerifierContext& context) {
  verify_barrier_index(context, 0);
  if (!context.attributes().has(Key::multicast)) return;
  context.require(context.kernel().cta_pairs, "multicast in a kernel without cta_pairs");
  const std::int64_t mask = context.integer(Key::multicast);
  const std::int64_t group = context.integer(Key::multicast_group, context.kernel().cluster);
  context.require(group >= 1 && context.kernel().cluster % group == 0 && mask > 0 &&
                      mask < std::int64_t{1} << group,
                  "multicast to CTAs {:#b} of groups of {} in clusters of {}", mask, group,
                  context.kernel().cluster);
}

void verify_launch_control(const VerifierContext& context) {
  context.require(context.operand(0).dtype == DType::i32,
                  "an answer in shared memory of {}, expected i32",
                  name_of(context.operand(0).dtype));
  if (as<LaunchControlOp>(context.operation().op) == LaunchControlOp::try_cancel) {
    verify_barrier_index(context, 2);
  }
}

}  // namespace tilewright::ir
