#include "language/explicit_tracing.h"

namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

namespace {

struct ProductOperand {
  ir::ValueId id;
  DType dtype;
  std::int64_t rows, columns;
};

ProductOperand shared_operand(Tracer& tracer, const SharedView& view, SourceLocation where) {
  const ir::ValueId id = ExplicitTracing::emit(tracer, view, "wgmma", where);
  const auto [rows, columns] = ExplicitTracing::product_shape(view);
  return {id, tracer.type(id).dtype, rows, columns};
}

ProductOperand register_operand(Tracer& tracer, const TileOperand& tile, SourceLocation where) {
  if (tile.is_number()) {
    Diagnostic(where, "wgmma: a is a number").token("wgmma").fix("use * for scaling").raise();
  }
  const ir::ValueId id = tracer.use(tile.handle, "wgmma", where);
  const Type& type = tracer.type(id);
  if (type.shape.size() != 2) {
    Diagnostic(where, "wgmma: a does not have two axes: " + type.to_string())
        .token("wgmma")
        .fix("reshape({64, k}) gives it two")
        .raise();
  }
  return {id, type.dtype, type.shape[0], type.shape[1]};
}

Pending product(Tracer& tracer, const ProductOperand& a, const SharedView& b_view,
                const Handle* accumulator, SourceLocation where) {
  const ProductOperand b = shared_operand(tracer, b_view, where);
  const auto shape = [](const ProductOperand& o) {
    return std::string(name_of(o.dtype)) + " {" + std::to_string(o.rows) + ", " +
           std::to_string(o.columns) + "}";
  };
  const auto fail = [&](const std::string& problem, const std::string& fix) {
    Diagnostic(where, "wgmma: " + problem + ": a " + shape(a) + " x b " + shape(b))
        .token("wgmma")
        .fix(fix)
        .raise();
  };
  if (a.columns != b.rows) fail("inner dimensions differ", "b is {k, n}; .T() transposes a view");
  if (a.dtype != b.dtype) fail("dtypes differ", "load both with one dtype");
  if (a.dtype != bf16 && a.dtype != f16 && a.dtype != f8e4m3) {
    fail("no such product", "use bf16, f16 or f8e4m3");
  }
  const std::int64_t k = 32 / size_of(a.dtype);
  if (a.rows != 64) fail("a warpgroup multiplies 64 rows", "take a.rows(64 * group, 64)");
  if (a.columns % k != 0) fail("k is no multiple of " + std::to_string(k), "pad the tile");
  if (b.columns % 8 != 0 || b.columns > 256) fail("n is no multiple of 8 up to 256", "split b");
  std::vector<ir::ValueId> operands{a.id, b.id};
  const Type result = Type::of(Type::Kind::pending, f32, {a.rows, b.columns});
  if (accumulator) {
    operands.push_back(tracer.use(*accumulator, "wgmma", where));
    const Type& type = tracer.type(operands.back());
    if (type.dtype != f32 || type.shape != result.shape) {
      fail("the accumulator is " + type.to_string(), "make it with zeros({64, n})");
    }
  }
  return Pending(tracer.handle(tracer.emit(Op::wgmma, std::move(operands), result, {}, where)));
}

}  // namespace

Pending wgmma(const SharedView& a, const SharedView& b, SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, nullptr, where);
}
Pending wgmma(const TileOperand& a, const SharedView& b, SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, register_operand(tracer, a, where), b, nullptr, where);
}
Pending wgmma(const SharedView& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, &accumulator.handle(), where);
}
Pending wgmma(const TileOperand& a, const SharedView& b, const Tile& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, register_operand(tracer, a, where), b, &accumulator.handle(), where);
}
Pending wgmma(const SharedView& a, const SharedView& b, const Pending& accumulator,
              SourceLocation where) {
  Tracer& tracer = in_role("wgmma", where);
  return product(tracer, shared_operand(tracer, a, where), b, &accumulator.handle(), where);
}

Tile wait(const Pending& pending, SourceLocation where) {
  Tracer& tracer = in_role("wait", where);
  const ir::ValueId id = tracer.use(pending.handle(), "wait", where);
  return Tile(tracer.handle(tracer.emit(Op::wait, {id}, as_tile(tracer.type(id)), {}, where)));
}

void retire(const Pending& pending, SourceLocation where) {
  Tracer& tracer = in_role("retire", where);
  plain(tracer, Op::retire, {tracer.use(pending.handle(), "retire", where)}, {}, where);
}

Pending as_pending(const TileOperand& tile, SourceLocation where) {
  Tracer& tracer = in_role("as_pending", where);
  const ir::ValueId id = tracer.use(tile.handle, "as_pending", where);
  Type type = tracer.type(id);
  type.kind = Type::Kind::pending;
  return Pending(tracer.handle(tracer.emit(Op::as_pending, {id}, type, {}, where)));
}

}  // namespace tilewright
