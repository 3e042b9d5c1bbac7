#include "ir/builder.h"

#include "ir/type_rules.h"
#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

ValueId typed_elementwise(Builder& builder, Op op, std::vector<ValueId> operands, DType to,
                          SourceLocation where) {
  std::vector<Type> types;
  for (const ValueId operand : operands) types.push_back(builder.kernel().type(operand));
  const TypeOrProblem result = elementwise_type(op, types, to);
  if (!result.ok()) {
    Diagnostic(where, std::string(info(op).name) + ": " + result.problem, ErrorKind::internal)
        .raise();
  }
  return builder.value(op, std::move(operands), result.type);
}

}  // namespace

Operation& Builder::append(Op op, std::vector<ValueId> operands, const std::vector<Type>& results,
                           Attributes attributes) {
  Operation operation;
  operation.op = op;
  operation.operands = std::move(operands);
  operation.results = kernel_values(results);
  operation.attributes = std::move(attributes);
  operation.where = where_;
  block_->body.push_back(std::move(operation));
  return block_->body.back();
}

ValueId Builder::constant(std::int64_t value, DType dtype) {
  return this->value(Op::constant, {}, Type::scalar(dtype), {{Key::value, value}});
}

ValueId Builder::constant(double value, DType dtype) {
  return this->value(Op::constant, {}, Type::scalar(dtype), {{Key::value, value}});
}

ValueId Builder::dim(const Dim& dim) {
  if (dim.is_constant()) return constant(dim.constant());
  return value(Op::dim, {}, Type::scalar(DType::i32), {{Key::dim, dim}});
}

ValueId Builder::elementwise(Op op, std::vector<ValueId> operands) {
  return typed_elementwise(*this, op, std::move(operands), DType::f32, where_);
}

ValueId Builder::cast(ValueId value, DType to) {
  return typed_elementwise(*this, Op::cast, {value}, to, where_);
}

std::vector<Type> Builder::types_of(const std::vector<ValueId>& values) const {
  std::vector<Type> types;
  for (const ValueId value : values) types.push_back(kernel_.type(value));
  return types;
}

std::vector<ValueId> Builder::kernel_values(const std::vector<Type>& types) {
  std::vector<ValueId> values;
  for (const Type& type : types) values.push_back(kernel_.add_value(type));
  return values;
}

std::vector<ValueId> Builder::append_with(Op op, std::vector<ValueId> operands,
                                          const std::vector<Type>& results, Attributes attributes,
                                          std::vector<Block> blocks) {
  Operation& operation = append(op, std::move(operands), results, std::move(attributes));
  operation.blocks = std::move(blocks);
  return operation.results;
}

}  // namespace tilewright::ir
