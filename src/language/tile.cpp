#include <algorithm>

#include "ir/type_rules.h"
#include "language/tracer.h"

// Tiles and the functions on them.
namespace tilewright {
namespace {

using ir::Op;
using ir::Type;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "{";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "}";
}

std::string describe(const Type& type) {
  return std::string(name_of(type.dtype)) + " " + shape_text(type.shape);
}

std::vector<std::int64_t> sizes_of(std::initializer_list<Extent> shape, const char* what,
                                   SourceLocation where) {
  std::vector<std::int64_t> sizes;
  for (const Extent& extent : shape) {
    if (extent.size <= 0) {
      Diagnostic(where, std::string(what) + ": axis " + std::to_string(sizes.size()) +
                            " has the size " + std::to_string(extent.size))
          .token(what)
          .fix("a tile's sizes are positive numbers known while tracing")
          .raise();
    }
    sizes.push_back(extent.size);
  }
  return sizes;
}

// Operands of an elementwise function: numbers become scalars of the tiles' dtype, which scalars of
// the launch must have.
struct Elementwise {
  std::vector<ir::ValueId> ids;
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  SourceLocation where;
};

Elementwise gather(Tracer& tracer, const char* what,
                   std::initializer_list<const TileOperand*> operands) {
  Elementwise e;
  const TileOperand* first = nullptr;
  const Type* first_type = nullptr;
  for (const TileOperand* operand : operands) {
    if (operand->is_number()) continue;
    const Type& type = tracer.type(tracer.use(operand->handle, what, operand->where));
    if (type.is_scalar()) continue;
    if (!first) {
      first = operand;
      first_type = &type;
      e.shape = type.shape;
      e.dtype = type.dtype;
      e.where = operand->where;
      continue;
    }
    const auto mismatch = [&](const char* kind, const char* fix) {
      Diagnostic(operand->where, std::string(what) + ": " + kind +
                                     " differ: " + describe(*first_type) + " and " + describe(type))
          .token(what)
          .note(tracer.location(first->handle.id()), "the first is computed")
          .note(tracer.location(operand->handle.id()), "the second is computed")
          .fix(fix)
          .raise();
    };
    if (type.dtype != e.dtype) mismatch("dtypes", "convert one with .cast(dtype)");
    if (type.shape.size() != e.shape.size()) {
      mismatch("ranks", "give both as many axes: .reshape adds those of size 1, which stretch");
    }
    for (std::size_t i = 0; i < e.shape.size(); ++i) {
      if (e.shape[i] == 1) e.shape[i] = type.shape[i];
      if (type.shape[i] != e.shape[i] && type.shape[i] != 1)
        mismatch("shapes", "an axis stretches only from size 1");
    }
  }
  if (!first) {
    Diagnostic((*operands.begin())->where, std::string(what) + ": no operand is a tile")
        .token(what)
        .fix("make a tile of the number with full({...}, value)")
        .raise();
  }
  for (const TileOperand* operand : operands) {
    if (!operand->is_number()) {
      const Type& type = tracer.type(operand->handle.id());
      if (type.is_scalar() && type.dtype != e.dtype) {
        Diagnostic(operand->where, std::string(what) + ": a scalar of " +
                                       std::string(name_of(type.dtype)) + " and a tile of " +
                                       std::string(name_of(e.dtype)))
            .token(what)
            .note(tracer.location(operand->handle.id()), "the scalar is made")
            .note(tracer.location(first->handle.id()), "the tile is computed")
            .fix("convert the tile with .cast(" + std::string(name_of(type.dtype)) +
                 "), or make the scalar a tile: Tile({1, ...}, scalar).cast(" +
                 std::string(name_of(e.dtype)) + ")")
            .raise();
      }
    }
    e.ids.push_back(operand->is_number()
                        ? tracer.number(operand->number, e.dtype, what, operand->where)
                        : operand->handle.id());
  }
  return e;
}

Tile elementwise(Op op, const char* what, std::initializer_list<const TileOperand*> operands,
                 bool comparison = false) {
  Tracer& tracer = Tracer::get(what, (*operands.begin())->where);
  Elementwise e = gather(tracer, what, operands);
  const bool logical = op == Op::logical_and || op == Op::logical_or || op == Op::logical_not;
  if (logical != (e.dtype == DType::boolean)) {
    Diagnostic(e.where, std::string(what) + ": operands are " + std::string(name_of(e.dtype)))
        .token(what)
        .fix(logical             ? "compare first: <, <=, =="
             : op == Op::bit_not ? "write !condition"
                                 : "use where(condition, a, b) on a condition")
        .raise();
  }
  const ir::DTypeOrProblem checked =
      ir::elementwise_dtype(op, std::vector<DType>(operands.size(), e.dtype));
  if (!checked.problem.empty()) {
    const bool takes_floats =
        ir::elementwise_dtype(op, std::vector<DType>(operands.size(), f32)).problem.empty();
    Diagnostic(e.where, std::string(what) + ": " + checked.problem)
        .token(what)
        .fix("convert it with .cast(" + std::string(takes_floats ? "f32" : "i32") + ")")
        .raise();
  }
  if (e.ids.size() > 1) tracer.check_divisor(op, e.ids[1], what, e.where);
  const DType result = comparison ? DType::boolean : e.dtype;
  return Tile(tracer.handle(tracer.emit(op, e.ids, Type::tile(result, e.shape), {}, e.where)));
}

Tile reduce(Op function, const char* what, const TileOperand& a, int axis) {
  Tracer& tracer = Tracer::get(what, a.where);
  ir::ValueId id = tracer.use(a.handle, what, a.where);
  Type type = tracer.type(id);
  if (axis < 0 || axis >= static_cast<int>(type.shape.size())) {
    Diagnostic(a.where, std::string(what) + ": axis " + std::to_string(axis) + " of a tile " +
                            describe(type))
        .token(what)
        .fix("axes count from 0 to " + std::to_string(type.shape.size() - 1))
        .raise();
  }
  if (type.dtype == DType::boolean || is_memory_format(type.dtype)) {
    Diagnostic(a.where, std::string(what) + ": the tile is " + std::string(name_of(type.dtype)))
        .token(what)
        .fix("convert it with .cast(i32)")
        .raise();
  }
  // Sums are in f32 whatever they are of.
  const bool widens = function == Op::add && is_float(type.dtype) && type.dtype != DType::f32;
  const DType dtype = type.dtype;
  if (widens) {
    type.dtype = DType::f32;
    id = tracer.emit(Op::cast, {id}, type, {}, a.where);
  }
  type.shape[axis] = 1;
  id = tracer.emit(Op::reduce, {id}, type,
                   {{ir::Key::function, function}, {ir::Key::axis, std::int64_t{axis}}}, a.where);
  type.dtype = dtype;
  if (widens) id = tracer.emit(Op::cast, {id}, type, {}, a.where);
  return Tile(tracer.handle(id));
}

Tile product(const TileOperand& a, const TileOperand& b, const TileOperand* accumulator) {
  Tracer& tracer = Tracer::get("dot", a.where);
  const auto tile = [&](const TileOperand& operand) {
    if (operand.is_number()) {
      Diagnostic(operand.where, "dot: an operand is a number")
          .token("dot")
          .fix("use * for scaling")
          .raise();
    }
    return tracer.use(operand.handle, "dot", operand.where);
  };
  std::vector<ir::ValueId> ids{tile(a), tile(b)};
  const Type &x = tracer.type(ids[0]), &y = tracer.type(ids[1]);
  const auto fail = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(a.where, "dot: " + problem)
        .token("dot")
        .note(tracer.location(ids[0]), "a is made")
        .note(tracer.location(ids[1]), "b is made")
        .fix(fix)
        .raise();
  };
  if (x.shape.size() != 2 || y.shape.size() != 2) {
    fail("operands must have two axes: a " + shape_text(x.shape) + ", b " + shape_text(y.shape),
         "index the other axes away when loading");
  }
  if (x.dtype != y.dtype) {
    fail("dtypes differ: a " + describe(x) + ", b " + describe(y), "convert one with .cast(dtype)");
  }
  if (x.dtype == DType::boolean || x.dtype == i64 || is_memory_format(x.dtype)) {
    fail("the dtype " + std::string(name_of(x.dtype)) + " has no product",
         "convert with .cast(" + std::string(is_byte_integer(x.dtype) ? "bf16" : "f32") + ")");
  }
  if (x.shape[1] != y.shape[0]) {
    fail("inner dimensions differ: a " + shape_text(x.shape) + " x b " + shape_text(y.shape),
         "b must have " + std::to_string(x.shape[1]) + " rows; .T() transposes");
  }
  const Type result = Type::tile(is_float(x.dtype) ? f32 : i32, {x.shape[0], y.shape[1]});
  if (accumulator) {
    ids.push_back(tile(*accumulator));
    const Type& sum = tracer.type(ids[2]);
    if (sum != result) {
      fail("the accumulator is " + describe(sum) + ", the product " + describe(result),
           "make it with zeros({...}) of the product's shape");
    }
  }
  return Tile(tracer.handle(tracer.emit(Op::dot, ids, result, {}, a.where)));
}

Tile full_of(std::vector<std::int64_t> shape, ir::ValueId scalar, SourceLocation where) {
  Tracer& tracer = Tracer::get("full", where);
  const Type type = Type::tile(tracer.type(scalar).dtype, std::move(shape));
  return Tile(tracer.handle(tracer.emit(Op::splat, {scalar}, type, {}, where)));
}

}  // namespace

TileOperand::TileOperand(const Var& var, SourceLocation where)
    : handle(static_cast<Tile>(var).handle()), where(where) {}

IndexBesideTile::IndexBesideTile(const Cell<Index>& cell, SourceLocation where)
    : operand(static_cast<Index>(cell).handle(), where) {}

Tile::Tile(std::initializer_list<Extent> shape, const IndexOperand& value, SourceLocation where) {
  Tracer& tracer = Tracer::get("Tile", where);
  handle_ = full_of(sizes_of(shape, "Tile", where), tracer.use(value.index.handle(), "Tile", where),
                    where)
                .handle();
}

DType Tile::dtype() const { return Tracer::of(handle_, "Tile").type(handle_.id()).dtype; }
std::vector<std::int64_t> Tile::shape() const {
  return Tracer::of(handle_, "Tile").type(handle_.id()).shape;
}

Tile Tile::T(SourceLocation where) const {
  Tracer& tracer = Tracer::get("T", where);
  const ir::ValueId id = tracer.use(handle_, "T", where);
  Type type = tracer.type(id);
  if (type.shape.size() != 2) {
    Diagnostic(where, "T: the tile " + describe(type) + " does not have two axes")
        .token("T")
        .fix("reshape({rows, columns}) gives it two")
        .raise();
  }
  std::swap(type.shape[0], type.shape[1]);
  return Tile(
      tracer.handle(tracer.emit(Op::transpose, {id}, type,
                                {{ir::Key::permutation, std::vector<std::int64_t>{1, 0}}}, where)));
}

Tile Tile::permute(const std::vector<int>& axes, SourceLocation where) const {
  Tracer& tracer = Tracer::get("permute", where);
  const ir::ValueId id = tracer.use(handle_, "permute", where);
  Type type = tracer.type(id);
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool each_once = sorted.size() == type.shape.size();
  for (std::size_t i = 0; each_once && i < sorted.size(); ++i) {
    each_once = sorted[i] == static_cast<int>(i);
  }
  if (!each_once) {
    Diagnostic(where, "permute: the tile " + describe(type) + " by axes " +
                          shape_text({axes.begin(), axes.end()}))
        .token("permute")
        .fix("name each axis of the tile once, the slowest of the result first")
        .raise();
  }
  const std::vector<std::int64_t> old = type.shape;
  for (std::size_t i = 0; i < axes.size(); ++i) type.shape[i] = old[axes[i]];
  return Tile(tracer.handle(tracer.emit(
      Op::transpose, {id}, type,
      {{ir::Key::permutation, std::vector<std::int64_t>(axes.begin(), axes.end())}}, where)));
}

Tile Tile::cast(DType dtype, SourceLocation where) const {
  Tracer& tracer = Tracer::get("cast", where);
  const ir::ValueId id = tracer.use(handle_, "cast", where);
  Type type = tracer.type(id);
  if (type.dtype == dtype) return *this;
  if (dtype == DType::boolean) {
    Diagnostic(where, "cast: the tile " + describe(type) + " has no cast to bool")
        .token("cast")
        .fix("compare it: tile != 0")
        .raise();
  }
  type.dtype = dtype;
  return Tile(tracer.handle(tracer.emit(Op::cast, {id}, type, {}, where)));
}

Tile Tile::reshape(std::vector<std::int64_t> shape, SourceLocation where) const {
  Tracer& tracer = Tracer::get("reshape", where);
  const ir::ValueId id = tracer.use(handle_, "reshape", where);
  Type type = tracer.type(id);
  const Type old = type;
  type.shape = std::move(shape);
  if (type.elements() != old.elements() ||
      std::any_of(type.shape.begin(), type.shape.end(), [](auto n) { return n <= 0; })) {
    Diagnostic(where, "reshape: " + shape_text(old.shape) + " has " +
                          std::to_string(old.elements()) + " elements, " + shape_text(type.shape) +
                          " has " + std::to_string(type.elements()))
        .token("reshape")
        .fix("both need the same number of elements, and positive sizes")
        .raise();
  }
  return Tile(tracer.handle(tracer.emit(Op::reshape, {id}, type, {}, where)));
}

Tile Tile::slice(std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes,
                 SourceLocation where) const {
  Tracer& tracer = Tracer::get("slice", where);
  const ir::ValueId id = tracer.use(handle_, "slice", where);
  Type type = tracer.type(id);
  bool inside = offsets.size() == type.shape.size() && sizes.size() == type.shape.size();
  for (std::size_t i = 0; inside && i < sizes.size(); ++i) {
    inside = offsets[i] >= 0 && sizes[i] > 0 && offsets[i] + sizes[i] <= type.shape[i];
  }
  if (!inside) {
    Diagnostic(where, "slice: offsets " + shape_text(offsets) + " with sizes " + shape_text(sizes) +
                          " do not lie inside the tile " + shape_text(type.shape))
        .token("slice")
        .fix("give one offset and one size an axis; offset + size is at most the tile's size")
        .raise();
  }
  type.shape = std::move(sizes);
  return Tile(tracer.handle(
      tracer.emit(Op::slice, {id}, type, {{ir::Key::offsets, std::move(offsets)}}, where)));
}

Tile operator+(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::add, "+", {&a, &b});
}
Tile operator-(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::sub, "-", {&a, &b});
}
Tile operator*(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::mul, "*", {&a, &b});
}
Tile operator/(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::div, "/", {&a, &b});
}
Tile operator%(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::mod, "%", {&a, &b});
}
Tile operator-(const TileOperand& a) { return elementwise(Op::neg, "-", {&a}); }
Tile operator<(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::lt, "<", {&a, &b}, true);
}
Tile operator<=(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::le, "<=", {&a, &b}, true);
}
Tile operator>(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::lt, ">", {&b, &a}, true);
}
Tile operator>=(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::le, ">=", {&b, &a}, true);
}
namespace {

bool are_conditions(const char* what, const TileOperand& a, const TileOperand& b) {
  for (const TileOperand* operand : {&a, &b}) {
    if (operand->is_number()) return false;
    Tracer& tracer = Tracer::get(what, operand->where);
    const Type& type = tracer.type(tracer.use(operand->handle, what, operand->where));
    if (!type.is_tile() || type.dtype != DType::boolean) return false;
  }
  return true;
}

// Where both are true, or neither is.
Tile agree(const TileOperand& a, const TileOperand& b) {
  const TileOperand both((a && b).handle(), a.where), one((a || b).handle(), a.where);
  return both || TileOperand((!one).handle(), a.where);
}

}  // namespace

Tile operator==(const TileOperand& a, const TileOperand& b) {
  if (are_conditions("==", a, b)) return agree(a, b);
  return elementwise(Op::eq, "==", {&a, &b}, true);
}
Tile operator!=(const TileOperand& a, const TileOperand& b) {
  if (are_conditions("!=", a, b)) return !TileOperand(agree(a, b).handle(), a.where);
  return elementwise(Op::ne, "!=", {&a, &b}, true);
}
Tile operator&&(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::logical_and, "&&", {&a, &b});
}
Tile operator||(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::logical_or, "||", {&a, &b});
}
Tile operator!(const TileOperand& a) { return elementwise(Op::logical_not, "!", {&a}); }
Tile operator&(const TileOperand& a, const TileOperand& b) {
  return elementwise(are_conditions("&", a, b) ? Op::logical_and : Op::bit_and, "&", {&a, &b});
}
Tile operator|(const TileOperand& a, const TileOperand& b) {
  return elementwise(are_conditions("|", a, b) ? Op::logical_or : Op::bit_or, "|", {&a, &b});
}
Tile operator^(const TileOperand& a, const TileOperand& b) {
  if (are_conditions("^", a, b)) return !TileOperand(agree(a, b).handle(), a.where);
  return elementwise(Op::bit_xor, "^", {&a, &b});
}
Tile operator~(const TileOperand& a) { return elementwise(Op::bit_not, "~", {&a}); }
Tile operator<<(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::shift_left, "<<", {&a, &b});
}
Tile operator>>(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::shift_right, ">>", {&a, &b});
}
Tile min(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::min, "min", {&a, &b});
}
Tile max(const TileOperand& a, const TileOperand& b) {
  return elementwise(Op::max, "max", {&a, &b});
}
Tile fma(const TileOperand& a, const TileOperand& b, const TileOperand& c) {
  return elementwise(Op::fma, "fma", {&a, &b, &c});
}
Tile abs(const TileOperand& a) { return elementwise(Op::abs, "abs", {&a}); }
Tile exp(const TileOperand& a) { return elementwise(Op::exp, "exp", {&a}); }
Tile exp2(const TileOperand& a) { return elementwise(Op::exp2, "exp2", {&a}); }
Tile log(const TileOperand& a) { return elementwise(Op::log, "log", {&a}); }
Tile exp2_polynomial(const TileOperand& a) {
  return elementwise(Op::exp2_polynomial, "exp2_polynomial", {&a});
}
Tile log2(const TileOperand& a) { return elementwise(Op::log2, "log2", {&a}); }
Tile sqrt(const TileOperand& a) { return elementwise(Op::sqrt, "sqrt", {&a}); }
Tile rsqrt(const TileOperand& a) { return elementwise(Op::rsqrt, "rsqrt", {&a}); }
Tile rcp(const TileOperand& a) { return elementwise(Op::rcp, "rcp", {&a}); }
Tile tanh(const TileOperand& a) { return elementwise(Op::tanh, "tanh", {&a}); }
Tile log1p(const TileOperand& a) { return elementwise(Op::log1p, "log1p", {&a}); }
Tile expm1(const TileOperand& a) { return elementwise(Op::expm1, "expm1", {&a}); }
Tile erf(const TileOperand& a) { return elementwise(Op::erf, "erf", {&a}); }
Tile sin(const TileOperand& a) { return elementwise(Op::sin, "sin", {&a}); }
Tile cos(const TileOperand& a) { return elementwise(Op::cos, "cos", {&a}); }
Tile floor(const TileOperand& a) { return elementwise(Op::floor, "floor", {&a}); }
Tile ceil(const TileOperand& a) { return elementwise(Op::ceil, "ceil", {&a}); }
Tile rint(const TileOperand& a) { return elementwise(Op::rint, "rint", {&a}); }

// Of what is narrower than f32, rounded once as the other functions are.
Tile sigmoid(const TileOperand& a) {
  const auto step = [&](Op op, const TileOperand& x) { return elementwise(op, "sigmoid", {&x}); };
  Tile x = step(Op::neg, a);
  const DType dtype = x.dtype();
  if (is_float(dtype)) x = x.cast(f32, a.where);
  const TileOperand power(step(Op::exp, {x, a.where}), a.where), one(1, a.where);
  return step(Op::rcp, {elementwise(Op::add, "sigmoid", {&power, &one}), a.where})
      .cast(dtype, a.where);
}

Tile clamp(const TileOperand& a, const TileOperand& low, const TileOperand& high) {
  const TileOperand raised(elementwise(Op::max, "clamp", {&a, &low}), a.where);
  return elementwise(Op::min, "clamp", {&raised, &high});
}

Tile where(const TileOperand& condition, const TileOperand& a, const TileOperand& b) {
  Tracer& tracer = Tracer::get("where", condition.where);
  if (condition.is_number() ||
      tracer.type(tracer.use(condition.handle, "where", condition.where)).dtype != DType::boolean) {
    const std::string is =
        condition.is_number() ? "a number" : describe(tracer.type(condition.handle.id()));
    Diagnostic(condition.where, "where: the condition is not a tile of booleans but " + is)
        .token("where")
        .fix("compare first: <, <=, ==")
        .raise();
  }
  const Type mask = tracer.type(condition.handle.id());  // a copy: numbers make new values
  if (a.is_number() && b.is_number()) {
    Diagnostic(a.where, "where: both alternatives are numbers, so that the dtype is unknown")
        .token("where")
        .fix("make one with full({...}, value, dtype)")
        .raise();
  }
  const auto no_tile = [&](const TileOperand& o) {
    return o.is_number() || tracer.type(tracer.use(o.handle, "where", o.where)).is_scalar();
  };
  if (no_tile(a) && no_tile(b)) {  // a scalar gives the dtype
    const std::vector<std::int64_t> ones(mask.shape.size(), 1);
    const TileOperand& scalar = a.is_number() ? b : a;
    const TileOperand tile(full_of(ones, scalar.handle.id(), scalar.where), scalar.where);
    return a.is_number() ? where(condition, a, tile) : where(condition, tile, b);
  }
  Elementwise e = gather(tracer, "where", {&a, &b});
  bool fits = mask.shape.size() == e.shape.size();
  for (std::size_t i = 0; fits && i < e.shape.size(); ++i) {
    if (e.shape[i] == 1) e.shape[i] = mask.shape[i];
    fits = mask.shape[i] == e.shape[i] || mask.shape[i] == 1;
  }
  if (!fits) {
    Diagnostic(condition.where, "where: the condition is " + shape_text(mask.shape) +
                                    ", the alternatives " + shape_text(e.shape))
        .token("where")
        .fix("an axis stretches only from size 1")
        .raise();
  }
  return Tile(tracer.handle(tracer.emit(Op::select, {condition.handle.id(), e.ids[0], e.ids[1]},
                                        Type::tile(e.dtype, e.shape), {}, condition.where)));
}

Tile reduce_sum(const TileOperand& a, int axis) { return reduce(Op::add, "reduce_sum", a, axis); }
Tile reduce_max(const TileOperand& a, int axis) { return reduce(Op::max, "reduce_max", a, axis); }
Tile reduce_min(const TileOperand& a, int axis) { return reduce(Op::min, "reduce_min", a, axis); }

namespace {

Condition asked(const char* what, const TileOperand& a, ir::Attributes attributes) {
  Tracer& tracer = Tracer::get(what, a.where);
  if (a.is_number() || tracer.type(tracer.use(a.handle, what, a.where)).dtype != DType::boolean) {
    Diagnostic(a.where, std::string(what) + ": the operand is not a tile of booleans")
        .token(what)
        .fix("compare first: <, <=, ==")
        .raise();
  }
  return Condition(tracer.handle(tracer.emit(Op::any, {a.handle.id()}, Type::scalar(DType::boolean),
                                             std::move(attributes), a.where)));
}

}  // namespace

Condition any(const TileOperand& a) { return asked("any", a, {}); }
Condition any_nearby(const TileOperand& a) {
  return asked("any_nearby", a, {{ir::Key::partial, std::int64_t{1}}});
}

namespace {

Tile filled(const char* what, std::initializer_list<Extent> shape, double value, DType dtype,
            SourceLocation where) {
  Tracer& tracer = Tracer::get(what, where);
  return full_of(sizes_of(shape, what, where), tracer.number(value, dtype, what, where), where);
}

}  // namespace

Tile full(std::initializer_list<Extent> shape, double value, DType dtype, SourceLocation where) {
  return filled("full", shape, value, dtype, where);
}
Tile full(std::initializer_list<Extent> shape, const Scalar& value, SourceLocation where) {
  Tracer& tracer = Tracer::get("full", where);
  return full_of(sizes_of(shape, "full", where), tracer.use(value.handle(), "full", where), where);
}
Tile zeros(std::initializer_list<Extent> shape, DType dtype, SourceLocation where) {
  return filled("zeros", shape, 0, dtype, where);
}

Tile iota(std::initializer_list<Extent> shape, int axis, SourceLocation where) {
  Tracer& tracer = Tracer::get("iota", where);
  std::vector<std::int64_t> sizes = sizes_of(shape, "iota", where);
  if (axis < 0 || axis >= static_cast<int>(sizes.size())) {
    Diagnostic(where, "iota: axis " + std::to_string(axis) + " of a tile " + shape_text(sizes))
        .token("iota")
        .fix("axes count from 0 to " + std::to_string(sizes.size() - 1))
        .raise();
  }
  return Tile(tracer.handle(tracer.emit(Op::iota, {}, Type::tile(i32, std::move(sizes)),
                                        {{ir::Key::axis, std::int64_t{axis}}}, where)));
}

Tile dot(const TileOperand& a, const TileOperand& b) { return product(a, b, nullptr); }
Tile dot(const TileOperand& a, const TileOperand& b, const TileOperand& accumulator) {
  return product(a, b, &accumulator);
}

}  // namespace tilewright
