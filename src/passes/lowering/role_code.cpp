#include "passes/lowering/role_code.h"

#include <fmt/format.h>

#include "support/diagnostic.h"

namespace tilewright::passes {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

RoleCode::RoleCode(ir::Kernel& kernel, const ir::Block& role)
    : kernel_(kernel), buffers_(kernel, role) {
  for (int i = 0; i < buffers_.count(); ++i) {
    const Type& tile = type(buffers_.representative(i));
    add_array(tile.dtype, tile.layout.register_count());
  }
}

ValueId RoleCode::add_array(DType dtype, std::int64_t registers) {
  arrays_.push_back(kernel_.add_value(Type::of(Type::Kind::registers, dtype, {registers})));
  return arrays_.back();
}

std::vector<Operation> RoleCode::declarations(SourceLocation where) const {
  std::vector<Operation> all;
  for (const ValueId array : arrays_) {
    Operation o;
    o.op = Op::registers;
    o.results = {array};
    o.attributes = {{Key::name, fmt::format("r{}", all.size())}};
    o.where = where;
    all.push_back(std::move(o));
  }
  return all;
}

void RoleCode::emit(Op op, std::vector<ValueId> operands, ir::Attributes attributes,
                    SourceLocation where) {
  Operation o;
  o.op = op;
  o.operands = std::move(operands);
  o.attributes = std::move(attributes);
  o.where = where;
  out_.push_back(std::move(o));
}

ValueId RoleCode::scalar(Op op, std::vector<ValueId> operands, ir::Attributes attributes,
                         DType dtype, SourceLocation where) {
  emit(op, std::move(operands), std::move(attributes), where);
  out_.back().results = {kernel_.add_value(Type::scalar(dtype))};
  return out_.back().results[0];
}

ValueId RoleCode::integer(std::int64_t value, SourceLocation where) {
  return scalar(Op::constant, {}, {{Key::value, value}}, i32, where);
}

ValueId RoleCode::boolean(bool value, SourceLocation where) {
  return scalar(Op::constant, {}, {{Key::value, std::int64_t{value}}}, DType::boolean, where);
}

ValueId RoleCode::add(ValueId a, ValueId b, SourceLocation where) {
  return scalar(Op::add, {a, b}, {}, i32, where);
}

ValueId RoleCode::scale(ValueId a, std::int64_t factor, SourceLocation where) {
  return scalar(Op::mul, {a, integer(factor, where)}, {}, i32, where);
}

bool RoleCode::must_move(ValueId to, ValueId from, SourceLocation where) const {
  if (buffers_.of(to) == buffers_.of(from)) return false;
  const auto pending = [this](ValueId id) { return type(id).is(Type::Kind::pending); };
  if (pending(to) && pending(from) && complete_.count(from) == 0) {
    Diagnostic(where,
               "a product in flight would have to be copied: it lives on beside another value of "
               "its variable, or changes places with another product")
        .fix("wait for it and go on from the tile, or keep each product in a Cell of its own")
        .raise();
  }
  return true;
}

void RoleCode::copy(ValueId to, ValueId from, SourceLocation where) {
  if (must_move(to, from, where)) emit(Op::copy, {array(to), array(from)}, {}, where);
}

// `to[i] = from[i]`, all at once: a source that an earlier copy overwrites is saved first.
void RoleCode::copy_all(const Moves& moves, SourceLocation where) {
  Moves arrays;
  for (const auto& [to, from] : moves) {
    if (must_move(to, from, where)) arrays.push_back({array(to), array(from)});
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    for (std::size_t j = i + 1; j < arrays.size(); ++j) {
      if (arrays[j].second != arrays[i].first) continue;
      const Type& type = kernel_.type(arrays[i].first);
      const ValueId saved = add_array(type.dtype, type.elements());
      emit(Op::copy, {saved, arrays[j].second}, {}, where);
      arrays[j].second = saved;
    }
    emit(Op::copy, {arrays[i].first, arrays[i].second}, {}, where);
  }
}

}  // namespace tilewright::passes
