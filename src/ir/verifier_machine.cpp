#include <algorithm>

#include "ir/type_rules.h"
#include "ir/verifier_context.h"

// The machine form: register arrays, index maps, TMA and wgmma as instructions take them.
namespace tilewright::ir {
namespace {

std::int64_t size_of_array(const Type& registers) { return registers.shape[0]; }

// 32-bit registers that an array takes: narrow elements are packed.
std::int64_t words(const Type& registers) {
  return (size_of_array(registers) * size_of(registers.dtype) + 3) / 4;
}

void require_same_dtype(const VerifierContext& context, const Type& a, const Type& b) {
  context.require(a.dtype == b.dtype, "between {} and {}, expected one dtype", name_of(a.dtype),
                  name_of(b.dtype));
}

// Every index of `count` elements must stay inside the `size` elements of array `i`.
void verify_map(const VerifierContext& context, const IndexMap& map, std::int64_t count,
                std::size_t i, std::int64_t size) {
  for (const IndexTerm& term : map) {
    context.require(term.divisor > 0 && term.modulus > 0,
                    "the map of operand {} has the term {}:{}:{}, expected positive divisor and "
                    "modulus",
                    i, term.divisor, term.modulus, term.stride);
  }
  for (std::int64_t element = 0; element < count; ++element) {
    const std::int64_t index = evaluate(map, element);
    if (index >= 0 && index < size) continue;
    context.fail("the map of operand {} takes element {} to register {} of {}, which has {}", i,
                 element, index, context.operand_text(i), size);
  }
}

void verify_copy(const VerifierContext& context) {
  const Type &destination = context.operand(0), &source = context.operand(1);
  require_same_dtype(context, destination, source);
  const std::int64_t offset = context.integer(Key::offset);
  context.require(offset >= 0 && offset + size_of_array(destination) <= size_of_array(source),
                  "copies {} elements from element {} of {}", size_of_array(destination), offset,
                  size_of_array(source));
}

void verify_map_count(const VerifierContext& context, std::size_t maps, std::size_t expected) {
  context.require(maps == expected, "{} maps, expected {}", maps, expected);
}

void verify_compute(const VerifierContext& context) {
  const Op function = context.attributes().function();
  context.require(info(function).elementwise(), "the function {} is not elementwise",
                  info(function).name);
  const Type& destination = context.operand(0);
  const auto& maps = context.attributes().maps();
  verify_map_count(context, maps.size(), context.operand_count() - 1);
  std::vector<DType> dtypes;
  for (std::size_t i = 1; i < context.operand_count(); ++i) {
    const Type& source = context.operand(i);
    dtypes.push_back(source.dtype);
    if (source.is_scalar()) {
      context.require(maps[i - 1].empty(), "operand {} is a scalar but has a map", i);
    } else if (source.is(Type::Kind::registers)) {
      verify_map(context, maps[i - 1], size_of_array(destination), i, size_of_array(source));
    } else {
      context.fail("operand {} is {}, expected a register array or a scalar", i,
                   source.to_string());
    }
  }
  const DTypeOrProblem expected = elementwise_dtype(function, dtypes, destination.dtype);
  if (!expected.problem.empty()) context.fail("{}: {}", info(function).name, expected.problem);
  context.require(expected.dtype == destination.dtype, "{} gives {}, but the destination is {}",
                  info(function).name, name_of(expected.dtype), name_of(destination.dtype));
}

void verify_reduce_registers(const VerifierContext& context) {
  verify_combined(context, context.operand(0).dtype);
  const Type &destination = context.operand(0), &source = context.operand(1);
  require_same_dtype(context, destination, source);
  const auto& maps = context.attributes().maps();
  verify_map_count(context, maps.size(), 1);
  verify_map(context, maps[0], size_of_array(source), 0, size_of_array(destination));
}

void verify_masks(const VerifierContext& context) {
  verify_combined(context, context.operand(0).dtype);
  for (const std::int64_t mask : context.attributes().integers(Key::masks)) {
    context.require(mask >= 1 && mask <= 31, "the mask {}, expected 1 to 31", mask);
  }
}

void verify_layout(const VerifierContext& context, std::size_t array) {
  const RegisterLayout& layout = context.attributes().register_layout();
  if (const auto problem = layout.problem()) {
    context.fail("layout {}: {}", layout.to_string(), *problem);
  }
  if (layout.register_count() != size_of_array(context.operand(array))) {
    context.fail("{} has {} elements, but its layout {} has {}", context.operand_text(array),
                 size_of_array(context.operand(array)), layout.to_string(),
                 layout.register_count());
  }
}

void verify_coordinate(const VerifierContext& context) {
  verify_layout(context, 0);
  context.require(context.operand(0).dtype == DType::i32, "coordinates are i32, not {}",
                  name_of(context.operand(0).dtype));
  const std::int64_t axis = context.integer(Key::axis);
  const std::size_t rank = context.attributes().register_layout().shape.size();
  context.require(axis >= 0 && axis < static_cast<std::int64_t>(rank), "axis {} of rank {}", axis,
                  rank);
}

std::int64_t bytes_of(const Operation& shared) {
  return shared.attributes.shared_layout().size_bytes() * shared.attributes.integer(Key::stages);
}

// `step` and the bytes behind it lie inside shared operand i, whose dynamic offset is not known.
void verify_step(const VerifierContext& context, std::size_t i, Key key, std::int64_t bytes) {
  const std::int64_t step = context.integer(key);
  const std::int64_t offset = context.constant_operand(i + 1).value_or(0);
  const std::int64_t capacity = bytes_of(*context.defined_by(context.operation().operands[i]));
  if (step >= 0 && offset >= 0 && offset + step + bytes <= capacity) return;
  context.fail("{} bytes at offset {} + {} of {}, which has {}", bytes, offset, step,
               context.operand_text(i), capacity);
}

std::int64_t box_bytes(const VerifierContext& context) {
  const Operation& map = context.map_operand(0);
  std::int64_t bytes = size_of(context.tensor_of(map.operands[0]).dtype);
  for (const std::int64_t extent : map.attributes.integers(Key::box)) bytes *= extent;
  return bytes;
}

// What wgmma_ss and wgmma_rs have in common; `a` and `b` are operands.
void verify_wgmma(const VerifierContext& context, std::size_t a, std::size_t b) {
  const Type& accumulator = context.operand(0);
  const DType element = context.operand(b).dtype;
  const std::int64_t n = context.integer(Key::n), k = context.integer(Key::k);
  context.require(k == 32 / size_of(element), "k is {}, expected {} elements of {}", k,
                  32 / size_of(element), name_of(element));
  require_same_dtype(context, context.operand(a), context.operand(b));
  context.require(accumulator.dtype == accumulator_dtype(element),
                  "the accumulator is {}, expected {}", name_of(accumulator.dtype),
                  name_of(accumulator_dtype(element)));
  if (size_of_array(accumulator) != n / 2) {
    context.fail("the accumulator {} has {} elements, expected n / 2 = {}", context.operand_text(0),
                 size_of_array(accumulator), n / 2);
  }
  for (const Key key : {Key::transpose_a, Key::transpose_b}) {
    const std::int64_t transpose = context.integer(key);
    context.require(transpose == 0 || (transpose == 1 && size_of(element) == 2),
                    "{} is {}, expected 0, or 1 with elements of 2 bytes", name_of(key), transpose);
  }
  for (const Key key : {Key::descriptor_a, Key::descriptor_b}) {
    const std::int64_t bits = context.integer(key);
    context.require(bits >= 0 && bits < (std::int64_t{1} << 50),
                    "{} is {}, expected the 50 bits above the address", name_of(key), bits);
  }
  verify_step(context, b, Key::step_b, 1);
}

void verify_copied_bytes(const VerifierContext& context) {
  const std::int64_t bytes = context.integer(Key::bytes);
  context.require(bytes > 0 && bytes % 16 == 0, "{} bytes, expected a multiple of 16", bytes);
  verify_step(context, 1, Key::step, bytes);
  verify_barrier_index(context, 3);
}

}  // namespace

void verify_computation(const VerifierContext& context) {
  switch (as<ComputationOp>(context.operation().op)) {
    case ComputationOp::fill:
      return require_same_dtype(context, context.operand(0), context.operand(1));
    case ComputationOp::copy:
      return verify_copy(context);
    case ComputationOp::compute:
      return verify_compute(context);
    case ComputationOp::coordinate:
      return verify_coordinate(context);
    case ComputationOp::reduce_registers:
      return verify_reduce_registers(context);
    case ComputationOp::reduce_lanes:
      return verify_masks(context);
    case ComputationOp::any_register:
      return context.require(context.operand(0).dtype == DType::boolean, "of {}, expected bool",
                             name_of(context.operand(0).dtype));
  }
}

void verify_global_access(const VerifierContext& context) {
  const bool stores = info(context.operation().op).writes(Memory::global);
  // A load's destination comes first, and so does a store's.
  const std::size_t tensor_operand = stores ? 0 : 1, array = stores ? 1 : 0;
  verify_layout(context, array);
  const Parameter& tensor = context.tensor_of(context.operation().operands[tensor_operand]);
  const std::size_t rank = tensor.shape.size();
  context.require(!stores || tensor.kind != Parameter::Kind::in, "writes {}, which is an input",
                  tensor.name);
  context.require(context.operand(array).dtype == tensor.dtype, "{} {} {} {}, which is {}",
                  stores ? "stores" : "loads", name_of(context.operand(array).dtype),
                  stores ? "to" : "from", tensor.name, name_of(tensor.dtype));
  context.require(context.operand_count() == 2 + 2 * rank,
                  "{} starts and limits, expected {}: {} has rank {}", context.operand_count() - 2,
                  2 * rank, tensor.name, rank);
  verify_element_order(context, tensor);
  const auto& sizes = context.attributes().integers(Key::sizes);
  std::vector<std::int64_t> shape;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(shape),
               [](std::int64_t size) { return size != 0; });
  if (shape.empty()) shape.push_back(1);  // one element, chosen by indices alone
  const auto& layout = context.attributes().register_layout().shape;
  if (sizes.size() != rank || shape != layout) {
    context.fail("the sizes on {} are {}, but the layout has shape {}", tensor.name,
                 shape_text(sizes), shape_text(layout));
  }
}

void verify_matrix(const VerifierContext& context) {
  const Type& source = context.operand(0);
  context.require(size_of(source.dtype) == 2, "moves {}, expected a type of 2 bytes",
                  name_of(source.dtype));
  require_same_dtype(context, source, context.operand(1));
  const ir::Attributes& attributes = context.operation().attributes;
  const std::int64_t count = attributes.integer_or(Key::count, 4);
  const std::int64_t transposed = attributes.integer_or(Key::transposed, 0);
  context.require(count == 2 || count == 4, "{} matrices, expected 2 or 4", count);
  context.require(transposed == 0 || transposed == 1, "transposed is {}, expected 0 or 1",
                  transposed);
  const std::int64_t first = context.integer(Key::register_);
  context.require(first >= 0 && first + count <= words(source), "registers {} to {} of {}", first,
                  first + count - 1, words(source));
  const std::int64_t row = context.integer(Key::row_bytes);
  const std::int64_t column = context.integer(Key::column_bytes);
  context.require(row > 0 && row % 16 == 0, "rows of {} bytes, expected a multiple of 16", row);
  // Two matrices stand below each other, or where they are transposed side by side.
  const std::int64_t bytes = count == 2 && transposed == 0 ? 16 : 32;
  context.require(column >= 0 && column % 16 == 0 && column + bytes <= row,
                  "{} bytes from byte {} of rows of {}, expected a multiple of 16 inside", bytes,
                  column, row);
  const std::int64_t mask = context.integer(Key::swizzle_mask);
  context.require(mask == 0 || mask == 1 || mask == 3 || mask == 7,
                  "a swizzle mask of {}, expected 0, 1, 3 or 7", mask);
  context.require(context.integer(Key::swizzle_divisor) >= 1, "a swizzle divisor of {}",
                  context.integer(Key::swizzle_divisor));
  verify_step(context, 1, Key::step, 16);
}

void verify_elements(const VerifierContext& context) {
  verify_layout(context, 0);
  require_same_dtype(context, context.operand(0), context.operand(1));
  for (const Key key : {Key::row_bytes, Key::panel_columns, Key::panel_bytes}) {
    context.require(context.integer(key) > 0, "{} is {}, expected a positive number", name_of(key),
                    context.integer(key));
  }
  const std::int64_t vector = context.attributes().integer_or(Key::vector, 1);
  if (vector == 1) return;
  const DType dtype = context.operand(0).dtype;
  const std::int64_t bytes = vector * size_of(dtype);
  context.require(dtype != DType::boolean && size_of(dtype) <= 4, "accesses of several {}",
                  name_of(dtype));
  context.require(bytes == 4 || bytes == 8 || bytes == 16,
                  "accesses of {} bytes, expected 4, 8 or 16", bytes);
  context.require(context.attributes().register_layout().adjacent() % vector == 0,
                  "accesses of {} elements, which no lane has side by side", vector);
  context.require(context.integer(Key::panel_columns) % vector == 0,
                  "accesses of {} elements in panels of {}", vector,
                  context.integer(Key::panel_columns));
  for (const Key key : {Key::row_bytes, Key::panel_bytes}) {
    context.require(context.integer(key) % bytes == 0, "{} is {} and accesses take {} bytes",
                    name_of(key), context.integer(key), bytes);
  }
}

void verify_words(const VerifierContext& context) {
  require_same_dtype(context, context.operand(0), context.operand(1));
  context.require(context.operand(0).dtype == f32 && context.operand(0).elements() % 4 == 0,
                  "{}, expected a multiple of 4 elements of f32", context.operand_text(0));
}

void verify_bulk_copy(const VerifierContext& context) {
  const OpInfo& record = info(context.operation().op);
  if (record.reads(Memory::shared) && record.writes(Memory::shared)) {
    return verify_copied_bytes(context);
  }
  const bool loads = record.writes(Memory::shared);
  if (record.writes(Memory::global)) verify_destination(context);
  verify_coordinates(context, loads ? 5 : 3);
  if (loads) verify_barrier_index(context, 3);
  const std::int64_t bytes = box_bytes(context), step = context.integer(Key::step);
  context.require(step % 128 == 0, "a step of {} bytes, expected a multiple of 128", step);
  verify_step(context, 1, Key::step, bytes);
  context.require(!loads || context.integer(Key::bytes) == bytes,
                  "bytes says {}, but the box of its map has {}", context.integer(Key::bytes),
                  bytes);
  verify_signalled(context);
  verify_copied_map(context);
}

void verify_product(const VerifierContext& context) {
  if (!info(context.operation().op).reads(Memory::registers)) {
    verify_wgmma(context, 1, 3);
    return verify_step(context, 1, Key::step_a, 1);
  }
  verify_wgmma(context, 1, 2);
  const std::int64_t first = context.integer(Key::register_);
  const std::int64_t available = words(context.operand(1));
  if (first >= 0 && first + 4 <= available) return;
  context.fail("registers {} to {} of {}, which has {}", first, first + 3, context.operand_text(1),
               available);
}

void verify_register_budget(const VerifierContext& context) {
  const std::int64_t increase = context.integer(Key::increase);
  context.require(increase == 0 || increase == 1, "increase is {}, expected 0 or 1", increase);
}

void verify_check(const VerifierContext& context) {
  const std::size_t numbers = context.operation().operands.size() - 1;
  context.require(numbers <= kCheckNumbers, "has {} numbers, and a report has room for {}", numbers,
                  kCheckNumbers);
}

}  // namespace tilewright::ir
