#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace tilewright::ir {

// Appends operations to a block of a kernel, for passes and tests.
class Builder {
 public:
  Builder(Kernel& kernel, Block& block, SourceLocation where = {})
      : kernel_(kernel), block_(&block), where_(where) {}

  // The source location of the operations that follow.
  void at(SourceLocation where) { where_ = where; }
  Kernel& kernel() { return kernel_; }
  Block& block() { return *block_; }

  // The operation stays where it is until the next one is appended to the same block.
  Operation& append(Op op, std::vector<ValueId> operands, const std::vector<Type>& results,
                    Attributes attributes = {});
  std::vector<ValueId> emit(Op op, std::vector<ValueId> operands, const std::vector<Type>& results,
                            Attributes attributes = {}) {
    return append(op, std::move(operands), results, std::move(attributes)).results;
  }
  ValueId value(Op op, std::vector<ValueId> operands, const Type& result,
                Attributes attributes = {}) {
    return append(op, std::move(operands), {result}, std::move(attributes)).results[0];
  }

  ValueId constant(std::int64_t value, DType dtype = DType::i32);
  ValueId constant(int value) { return constant(std::int64_t{value}); }
  ValueId constant(double value, DType dtype = DType::f32);
  ValueId dim(const Dim& dim);  // a constant where it is one
  // An elementwise function; the result's type follows from the operands. Raises an internal error
  // where they do not fit.
  ValueId elementwise(Op op, std::vector<ValueId> operands);
  ValueId binary(Op op, ValueId a, ValueId b) { return elementwise(op, {a, b}); }
  ValueId cast(ValueId value, DType to);
  void yield(std::vector<ValueId> values = {}) { append(Op::yield, std::move(values), {}); }

  // A loop over [low, high); `body` gets a builder of the block, the index and the carried values,
  // and returns what the next iteration carries. Gives the final carried values.
  template <typename Body>
  std::vector<ValueId> for_loop(ValueId low, ValueId high, ValueId step,
                                std::vector<ValueId> carried, Body&& body) {
    std::vector<Type> types = types_of(carried);
    Block block;
    const ValueId index = kernel_.add_value(kernel_.type(low));
    const std::vector<ValueId> inside = kernel_values(types);
    block.arguments = inside;
    block.arguments.insert(block.arguments.begin(), index);
    Builder inner(kernel_, block, where_);
    inner.yield(body(inner, index, inside));
    carried.insert(carried.begin(), {low, high, step});
    return append_with(Op::for_loop, std::move(carried), types, {}, {std::move(block)});
  }
  // Each body gets a builder of its block and returns the values of the results.
  template <typename Then, typename Otherwise>
  std::vector<ValueId> if_then(ValueId condition, Then&& then, Otherwise&& otherwise) {
    Block first, second;
    Builder on_true(kernel_, first, where_), on_false(kernel_, second, where_);
    const std::vector<ValueId> values = then(on_true);
    on_true.yield(values);
    on_false.yield(otherwise(on_false));
    return append_with(Op::if_then, {condition}, types_of(values), {},
                       {std::move(first), std::move(second)});
  }
  // elect, or a role. The body of a role gets the index of its warpgroup.
  template <typename Body>
  void elect(Body&& body) {
    Block block;
    Builder inner(kernel_, block, where_);
    body(inner);
    inner.yield();
    append_with(Op::elect, {}, {}, {}, {std::move(block)});
  }
  template <typename Body>
  void role(Attributes attributes, Body&& body) {
    Block block;
    block.arguments = {kernel_.add_value(Type::scalar(DType::i32))};
    Builder inner(kernel_, block, where_);
    body(inner, block.arguments[0]);
    inner.yield();
    append_with(Op::role, {}, {}, std::move(attributes), {std::move(block)});
  }

 private:
  std::vector<Type> types_of(const std::vector<ValueId>& values) const;
  std::vector<ValueId> kernel_values(const std::vector<Type>& types);
  std::vector<ValueId> append_with(Op op, std::vector<ValueId> operands,
                                   const std::vector<Type>& results, Attributes attributes,
                                   std::vector<Block> blocks);

  Kernel& kernel_;
  Block* block_;
  SourceLocation where_;
};

}  // namespace tilewright::ir
