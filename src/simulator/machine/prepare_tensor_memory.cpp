#include "simulator/machine/preparation.h"

// What works on tensor memory, and what takes clusters over.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::Operation;

void Preparation::tensor_memory(const Operation& operation) {
  object_[operation.results[0]] = static_cast<int>(prepared_.tensor_memories.size());
  prepared_.tensor_memories.push_back({operation.attributes.text(Key::name),
                                       static_cast<int>(type(operation.results[0]).shape[0]),
                                       operation.where});
}

// value: the tensor memory. Of alloc object: the allocation that gets the address, a: the element;
// of dealloc a: the address.
void Preparation::tensor_allocation(const Operation& operation) {
  Instruction& made = emit(operation);
  switch (ir::as<ir::TensorAllocationOp>(operation.op)) {
    case ir::TensorAllocationOp::tcgen05_alloc:
      made.value = object(operation.operands[0]);
      made.object = object(operation.operands[1]);
      made.a = operation.operands[2];
      return;
    case ir::TensorAllocationOp::tcgen05_dealloc:
      made.value = object(operation.operands[0]);
      made.a = operation.operands[1];
      return;
    case ir::TensorAllocationOp::tcgen05_relinquish:
      return;
  }
}

// object: the allocation, a: the element; of a request detail: the barriers, b: the index; of a
// look at the answer b: the result.
void Preparation::launch_control(const Operation& operation) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  Instruction& made = emit(operation);
  made.object = object(operands[0]);
  made.a = operands[1];
  switch (ir::as<ir::LaunchControlOp>(operation.op)) {
    case ir::LaunchControlOp::try_cancel:
      made.detail = object(operands[2]);
      made.b = operands[3];
      signals(made.detail);
      prepared_.barrier_arrays[made.detail].transactions = true;
      return;
    case ir::LaunchControlOp::query_cancel:
      made.b = operation.results[0];
      return;
  }
}

// detail: the access.
void Preparation::tensor_access(const Operation& operation) {
  const bool loads = operation.op == Op::tcgen05_ld;
  const std::vector<ir::ValueId>& operands = operation.operands;
  TensorAccess made;
  made.array = object(operands[loads ? 0 : 2]);
  made.memory = object(operands[loads ? 1 : 0]);
  made.address = operands[loads ? 2 : 1];
  made.first = static_cast<int>(operation.attributes.integer_or(Key::register_, 0));
  made.count = static_cast<int>(operation.attributes.integer(Key::count));
  made.beside = static_cast<int>(operation.attributes.integer_or(Key::row_bytes, 0)) / 16;
  emit(operation).detail = static_cast<int>(prepared_.tensor_accesses.size());
  prepared_.tensor_accesses.push_back(made);
}

// detail: the product.
void Preparation::tensor_product(const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const std::vector<ir::ValueId>& operands = operation.operands;
  const auto matrix = [&](std::size_t operand, Key step, Key descriptor) {
    return MatrixOperand{object(operands[operand]), operands[operand + 1],
                         attributes.integer_or(step, 0),
                         static_cast<std::uint64_t>(attributes.integer(descriptor)) << 14, false};
  };
  TensorProduct made;
  made.memory = object(operands[0]);
  made.address = operands[1];
  made.instruction = static_cast<std::uint32_t>(attributes.integer(Key::instruction));
  made.dtype = type(operands[4]).dtype;
  made.k = static_cast<int>(attributes.integer(Key::k));
  if (operation.op == Op::tcgen05_mma_ts) {
    made.a_memory = object(operands[2]);
    made.a_address = operands[3];
  } else {
    made.a = matrix(2, Key::step_a, Key::descriptor_a);
  }
  made.b = matrix(4, Key::step_b, Key::descriptor_b);
  made.accumulate = operands[6];
  emit(operation).detail = static_cast<int>(prepared_.tensor_products.size());
  prepared_.tensor_products.push_back(made);
}

// detail: the copy.
void Preparation::tensor_copy(const Operation& operation) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  TensorCopy made;
  made.memory = object(operands[0]);
  made.address = operands[1];
  if (ir::as<ir::TensorCopyOp>(operation.op) == ir::TensorCopyOp::tcgen05_cp) {
    const ir::Attributes& attributes = operation.attributes;
    made.from = {object(operands[2]), operands[3], attributes.integer_or(Key::step_a, 0),
                 static_cast<std::uint64_t>(attributes.integer(Key::descriptor_a)) << 14, false};
    made.rows = static_cast<int>(attributes.integer(Key::m));
    made.row_bytes = static_cast<int>(attributes.integer(Key::row_bytes));
  }
  emit(operation).detail = static_cast<int>(prepared_.tensor_copies.size());
  prepared_.tensor_copies.push_back(made);
}

// object: the barriers, a: the index, value: the CTAs, a bit each, of those from `detail` on; 0:
// this one.
void Preparation::tensor_commit(const Operation& operation) {
  Instruction& made = emit(operation);
  made.object = object(operation.operands[0]);
  made.a = operation.operands[1];
  made.value = operation.attributes.integer_or(Key::multicast, 0);
  made.detail = static_cast<int>(operation.attributes.integer_or(Key::multicast_group, 0));
  signals(made.object);
}

}  // namespace tilewright::simulator
