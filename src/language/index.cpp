#include "language/tracer.h"

// Index and Condition: traced scalars.
namespace tilewright {
namespace {

using ir::Op;

Index binary(Op op, const IndexOperand& a, const IndexOperand& b, const char* what) {
  Tracer& tracer = Tracer::get(what, a.where);
  const ir::ValueId x = tracer.use(a.index.handle(), what, a.where);
  const ir::ValueId y = tracer.use(b.index.handle(), what, b.where);
  tracer.check_divisor(op, y, what, b.where);
  return Index(tracer.handle(tracer.arithmetic(op, x, y, a.where)));
}

Condition compare(Op op, const IndexOperand& a, const IndexOperand& b, const char* what) {
  Tracer& tracer = Tracer::get(what, a.where);
  const ir::ValueId x = tracer.use(a.index.handle(), what, a.where);
  const ir::ValueId y = tracer.use(b.index.handle(), what, b.where);
  return Condition(
      tracer.handle(tracer.emit(op, {x, y}, ir::Type::scalar(DType::boolean), {}, a.where)));
}

Condition combine(Op op, std::initializer_list<const Condition*> operands, const char* what) {
  Tracer& tracer = Tracer::get(what, {});
  std::vector<ir::ValueId> ids;
  SourceLocation where;
  for (const Condition* operand : operands) {
    ids.push_back(tracer.use(operand->handle(), what, {}));
    where = tracer.location(ids.back());
  }
  return Condition(
      tracer.handle(tracer.emit(op, ids, ir::Type::scalar(DType::boolean), {}, where)));
}

Handle integer(std::int64_t value, SourceLocation where) {
  Tracer& tracer = Tracer::get("Index", where);
  return tracer.handle(tracer.integer(value, where));
}

}  // namespace

Condition::Condition(bool constant, SourceLocation where) {
  Tracer& tracer = Tracer::get("Condition", where);
  handle_ = tracer.handle(tracer.boolean(constant, where));
}

Index::Index(int constant, SourceLocation where) : handle_(integer(constant, where)) {}
Index::Index(std::int64_t constant, SourceLocation where) : handle_(integer(constant, where)) {}
Index::Index(const Dim& dim, SourceLocation where) {
  Tracer& tracer = Tracer::get("Dim", where);
  handle_ = tracer.handle(tracer.dim(dim, where));
}

Index::Index(const Scalar& scalar, SourceLocation where)
    : handle_(IndexOperand(scalar, where).index.handle()) {}

IndexOperand::IndexOperand(const Cell<Index>& cell, SourceLocation where)
    : index(static_cast<Index>(cell)), where(where) {}

IndexOperand::IndexOperand(const Scalar& scalar, SourceLocation where)
    : index(scalar.handle()), where(where) {
  Tracer& tracer = Tracer::get("scalar", where);
  const ir::ValueId id = tracer.use(scalar.handle(), "scalar", where);
  const DType dtype = tracer.type(id).dtype;
  if (dtype == i32) return;
  Diagnostic(where, "a scalar of " + std::string(name_of(dtype)) + " as an index")
      .note(tracer.location(id), "the scalar is declared")
      .fix("declare it as i32")
      .raise();
}

Index operator+(const IndexOperand& a, const IndexOperand& b) { return binary(Op::add, a, b, "+"); }
Index operator-(const IndexOperand& a, const IndexOperand& b) { return binary(Op::sub, a, b, "-"); }
Index operator*(const IndexOperand& a, const IndexOperand& b) { return binary(Op::mul, a, b, "*"); }
Index operator/(const IndexOperand& a, const IndexOperand& b) { return binary(Op::div, a, b, "/"); }
Index operator%(const IndexOperand& a, const IndexOperand& b) { return binary(Op::mod, a, b, "%"); }
Index ceil_div(const IndexOperand& a, const IndexOperand& b) {
  return binary(Op::ceildiv, a, b, "ceil_div");
}
Index operator&(const IndexOperand& a, const IndexOperand& b) {
  return binary(Op::bit_and, a, b, "&");
}
Index operator|(const IndexOperand& a, const IndexOperand& b) {
  return binary(Op::bit_or, a, b, "|");
}
Index operator^(const IndexOperand& a, const IndexOperand& b) {
  return binary(Op::bit_xor, a, b, "^");
}
Index operator<<(const IndexOperand& a, const IndexOperand& b) {
  return binary(Op::shift_left, a, b, "<<");
}
Index operator>>(const IndexOperand& a, const IndexOperand& b) {
  return binary(Op::shift_right, a, b, ">>");
}
Index min(const IndexOperand& a, const IndexOperand& b) { return binary(Op::min, a, b, "min"); }
Index max(const IndexOperand& a, const IndexOperand& b) { return binary(Op::max, a, b, "max"); }

Index select(const Condition& condition, const IndexOperand& a, const IndexOperand& b) {
  Tracer& tracer = Tracer::get("select", a.where);
  return Index(tracer.handle(tracer.emit(Op::select,
                                         {tracer.use(condition.handle(), "select", a.where),
                                          tracer.use(a.index.handle(), "select", a.where),
                                          tracer.use(b.index.handle(), "select", b.where)},
                                         ir::Type::scalar(i32), {}, a.where)));
}

Condition operator<(const IndexOperand& a, const IndexOperand& b) {
  return compare(Op::lt, a, b, "<");
}
Condition operator<=(const IndexOperand& a, const IndexOperand& b) {
  return compare(Op::le, a, b, "<=");
}
Condition operator>(const IndexOperand& a, const IndexOperand& b) {
  return compare(Op::lt, b, a, ">");
}
Condition operator>=(const IndexOperand& a, const IndexOperand& b) {
  return compare(Op::le, b, a, ">=");
}
Condition operator==(const IndexOperand& a, const IndexOperand& b) {
  return compare(Op::eq, a, b, "==");
}
Condition operator!=(const IndexOperand& a, const IndexOperand& b) {
  return compare(Op::ne, a, b, "!=");
}
Condition operator&&(const Condition& a, const Condition& b) {
  return combine(Op::logical_and, {&a, &b}, "&&");
}
Condition operator||(const Condition& a, const Condition& b) {
  return combine(Op::logical_or, {&a, &b}, "||");
}
Condition operator!(const Condition& a) { return combine(Op::logical_not, {&a}, "!"); }

Block Block::part(const IndexOperand& index, int size) const {
  if (size <= 0 || size_ % size != 0) {
    Diagnostic(index.where, "part: a block of " + std::to_string(size_) +
                                " elements does not divide into parts of " + std::to_string(size))
        .token("part")
        .fix("use a divisor of the block's size")
        .raise();
  }
  const Tracer::At at(Tracer::get("part", index.where), index.where);
  return Block(start_ + index * size, size, limit_, packed_);
}

namespace {

Tile coordinates(const Block& block, int axis, SourceLocation where) {
  Tracer& tracer = Tracer::get("Block", where);
  std::vector<std::int64_t> shape{1, 1};
  shape[axis] = block.size();
  const ir::ValueId offsets = tracer.emit(Op::iota, {}, ir::Type::tile(i32, shape),
                                          {{ir::Key::axis, std::int64_t{axis}}}, where);
  const ir::ValueId start = tracer.use(block.start().handle(), "Block", where);
  return Tile(
      tracer.handle(tracer.emit(Op::add, {offsets, start}, ir::Type::tile(i32, shape), {}, where)));
}

}  // namespace

Tile Block::as_column(SourceLocation where) const { return coordinates(*this, 0, where); }
Tile Block::as_row(SourceLocation where) const { return coordinates(*this, 1, where); }

Block Dim::block(const Index& index, int size, SourceLocation where) const {
  return Sequence(*this).block(index, size, where);
}

// Cells.

template <typename T>
Cell<T>::Cell(const T& initial, SourceLocation where) : tracer_(&Tracer::get("Var", where)) {
  slot_ = tracer_->open_cell(tracer_->use(initial.handle(), "Var", where), where);
}

template <typename T>
Cell<T>::~Cell() {
  tracer_->close_cell(slot_);
}

template <typename T>
Cell<T>& Cell<T>::operator=(const Assigned<T>& assigned) {
  tracer_->assign(slot_, tracer_->use(assigned.value.handle(), "=", assigned.where),
                  assigned.where);
  return *this;
}

template <typename T>
Cell<T>& Cell<T>::operator=(const Cell& other) {
  const T value = other;
  return *this = Assigned<T>(value, tracer_->location(value.handle().id()));
}

template <typename T>
Cell<T>::operator T() const {
  return T(tracer_->handle(tracer_->read(slot_, {})));
}

template class Cell<Tile>;
template class Cell<Index>;
template class Cell<Condition>;
template class Cell<Pending>;

}  // namespace tilewright
