#include <string>
#include <utility>

#include "ir/memory_order.h"
#include "language/explicit_tracing.h"
#include "language/view.h"
#include "tilewright/ranks.h"

// Tiles of global memory whose elements are accessed in an order of PTX.
namespace tilewright {

using ir::Key;
using ir::Op;
using ir::Type;

namespace {

// What one of these functions has been called with.
class OrderedAccess {
 public:
  OrderedAccess(Op op, const char* what, const TensorView& view, MemoryOrder order,
                SourceLocation where)
      : op_(op),
        what_(what),
        where_(where),
        tracer_(in_role(what, where)),
        view_(resolve(tracer_, view, what, where)) {
    if (const std::string problem = ir::order_problem(op, order.semantics); !problem.empty()) {
      refuse(problem, "take one that PTX has");
    }
    if (view_.shape.empty()) take_element();
    check_tensor();
    attributes_.set(Key::sizes, view_.sizes);
    ir::set_order(attributes_, order);
  }

  Type type() const { return Type::tile(view_.parameter->dtype, view_.shape); }

  void check_sum() {
    const std::string problem = ir::info(op_).function_problem(Op::add, view_.parameter->dtype);
    if (!problem.empty()) refuse(problem, "add to a tensor of another dtype");
    attributes_.set(Key::function, Op::add);
  }

  // The tile, of the view's dtype and shape; a number or a scalar becomes one.
  ir::ValueId tile_of(const TileOperand& operand) {
    const DType dtype = view_.parameter->dtype;
    ir::ValueId tile = operand.is_number() ? tracer_.number(operand.number, dtype, what_, where_)
                                           : tracer_.use(operand.handle, what_, where_);
    if (tracer_.type(tile).is_scalar()) {
      tile = tracer_.emit(Op::splat, {tile}, Type::tile(tracer_.type(tile).dtype, view_.shape), {},
                          where_);
    }
    if (tracer_.type(tile) == type()) return tile;
    Diagnostic(where_, std::string(what_) + ": the tile is " + tracer_.type(tile).to_string() +
                           ", the place in " + view_.parameter->name + " is " + type().to_string())
        .token(what_)
        .note(tracer_.location(tile), "the tile is computed")
        .fix("a tile of the view's shape and dtype; .cast(dtype) converts")
        .raise();
  }

  void record(std::vector<ir::ValueId> leading) {
    plain(tracer_, op_, operands(std::move(leading)), attributes_, where_);
  }
  Tile record_result(std::vector<ir::ValueId> leading) {
    return Tile(tracer_.handle(
        tracer_.emit(op_, operands(std::move(leading)), type(), attributes_, where_)));
  }
  ir::ValueId tensor() const { return view_.tensor; }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& fix) const {
    Diagnostic(where_, std::string(what_) + ": " + problem)
        .token(what_)
        .note(view_.parameter->where, view_.parameter->name + " is declared")
        .fix(fix)
        .raise();
  }

  // One element: a tile {1} along the last axis.
  void take_element() {
    const ir::ValueId one = tracer_.integer(1, where_);
    view_.sizes.back() = 1;
    view_.shape.assign(1, 1);
    view_.limits.back() = tracer_.arithmetic(Op::add, view_.starts.back(), one, where_);
  }

  // What is an input, nobody writes meanwhile, and what is an output nobody reads.
  void check_tensor() const {
    const ir::Parameter::Kind kind = view_.parameter->kind;
    const std::string fix = "declare it with Kernel::inout or Kernel::symmetric";
    if (kind == ir::Parameter::Kind::in) refuse(view_.parameter->name + " is an input", fix);
    if (kind == ir::Parameter::Kind::out && op_ != Op::store) {
      refuse(view_.parameter->name + " is an output", fix);
    }
  }

  std::vector<ir::ValueId> operands(std::vector<ir::ValueId> leading) const {
    leading.insert(leading.end(), view_.starts.begin(), view_.starts.end());
    leading.insert(leading.end(), view_.limits.begin(), view_.limits.end());
    return leading;
  }

  const Op op_;
  const char* const what_;
  const SourceLocation where_;
  Tracer& tracer_;
  ResolvedView view_;
  ir::Attributes attributes_;
};

}  // namespace

Tile ld(const TensorView& from, MemoryOrder order, SourceLocation where) {
  OrderedAccess access(Op::load, "ld", from, order, where);
  return access.record_result({access.tensor()});
}

void st(const TensorView& to, const TileOperand& tile, MemoryOrder order, SourceLocation where) {
  OrderedAccess access(Op::store, "st", to, order, where);
  access.record({access.tensor(), access.tile_of(tile)});
}

void red(const TensorView& to, const TileOperand& tile, MemoryOrder order, SourceLocation where) {
  OrderedAccess access(Op::red_tile, "red", to, order, where);
  access.check_sum();
  access.record({access.tensor(), access.tile_of(tile)});
}

Tile atom_add(const TensorView& to, const TileOperand& tile, MemoryOrder order,
              SourceLocation where) {
  OrderedAccess access(Op::atomic_tile, "atom_add", to, order, where);
  access.check_sum();
  return access.record_result({access.tensor(), access.tile_of(tile)});
}

}  // namespace tilewright
