#include "passes/materialise_extents.h"

#include <cstdint>
#include <limits>
#include <set>

#include "analysis/definitions.h"
#include "analysis/extents.h"
#include "analysis/not_less.h"
#include "ir/builder.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

class Materialising {
 public:
  // The facts are of the kernel as it was; the copy keeps them while this one is rewritten.
  explicit Materialising(ir::Kernel& kernel)
      : kernel_(kernel),
        before_(kernel),
        extents_(before_),
        not_less_(before_),
        definitions_(analysis::definitions(before_)) {
    for (const ir::Parameter& each : kernel.parameters) defined_.insert(each.value);
  }

  void visit(ir::Block& block) {
    std::set<ValueId> outside = defined_;
    defined_.insert(block.arguments.begin(), block.arguments.end());
    std::vector<Operation> old = std::move(block.body);
    block.body.clear();
    for (Operation& operation : old) {
      for (ir::Block& inner : operation.blocks) visit(inner);
      if (operation.op == Op::reduce) {
        const Op function = operation.attributes.function();
        const double infinity = std::numeric_limits<double>::infinity();
        const auto axis = static_cast<std::size_t>(operation.attributes.integer(Key::axis));
        fill(block, operation, 0, axis,
             function == Op::add   ? 0
             : function == Op::max ? -infinity
                                   : infinity,
             extents_.of(operation.operands[0], axis));
      } else if (operation.op == Op::dot) {
        // Terms that one side does not have are no terms, whatever the other has there.
        analysis::Extents::Bounds both = extents_.of(operation.operands[0], 1);
        both.merge(analysis::Extents::Bounds(extents_.of(operation.operands[1], 0)));
        for (const std::size_t side : {0u, 1u}) {
          // What is not there of a loaded tile is zero already.
          if (analysis::is_loaded(definitions_, operation.operands[side])) continue;
          fill(block, operation, side, 1 - side, 0, both);
        }
      } else if (operation.op == Op::any && !operation.attributes.has(Key::partial)) {
        const std::size_t axes = kernel_.type(operation.operands[0]).shape.size();
        const ValueId whole = operation.operands[0];
        for (std::size_t axis = 0; axis < axes; ++axis) {
          fill(block, operation, 0, axis, 0, extents_.of(whole, axis));
        }
      } else if (operation.op == Op::store || operation.op == Op::red_tile) {
        clip(block, operation);
      }
      defined_.insert(operation.results.begin(), operation.results.end());
      block.body.push_back(std::move(operation));
    }
    defined_ = std::move(outside);
  }

 private:
  void fill(ir::Block& block, Operation& reader, std::size_t operand, std::size_t axis,
            double neutral, const analysis::Extents::Bounds& bounds) {
    if (bounds.empty()) return;
    ir::Builder builder(kernel_, block, reader.where);
    const ValueId read = reader.operands[operand];
    // Transposing stays the last, so that a product still reads a transposed tile.
    const Operation* made = read < definitions_.size() ? definitions_[read] : nullptr;
    const bool transposed = made && made->op == Op::transpose;
    if (transposed) axis = made->attributes.integers(Key::permutation)[axis];
    ValueId filled = transposed ? made->operands[0] : read;
    const Type type = kernel_.type(filled);
    for (const analysis::Extents::Bound& bound : bounds) {
      if (!available(bound) && is_whole(bound, type.shape[axis])) continue;
      std::vector<std::int64_t> shape(type.shape.size(), 1);
      shape[axis] = type.shape[axis];
      const ValueId place = builder.value(Op::iota, {}, Type::tile(DType::i32, shape),
                                          {{Key::axis, static_cast<std::int64_t>(axis)}});
      const ValueId count = count_of(builder, bound, reader);
      const ValueId exists = builder.value(
          Op::lt, {place, builder.value(Op::splat, {count}, Type::tile(DType::i32, shape))},
          Type::tile(DType::boolean, shape));
      if (type.dtype == DType::boolean) {
        filled = builder.value(Op::logical_and, {exists, filled}, type);
        continue;
      }
      const ValueId otherwise =
          is_integer(type.dtype)
              ? builder.constant(neutral_integer(neutral, type.dtype), type.dtype)
              : builder.constant(neutral, type.dtype);
      filled = builder.value(Op::select, {exists, filled, otherwise}, type);
    }
    reader.operands[operand] =
        transposed ? builder.value(Op::transpose, {filled}, kernel_.type(read), made->attributes)
                   : filled;
  }

  bool available(const analysis::Extents::Bound& bound) const {
    return defined_.count(bound.limit) + defined_.count(bound.start) == 2;
  }

  // Whether as much exists, in every iteration, as the block [first, end) has.
  bool reaches(const analysis::Extents::Bound& bound, ValueId first, ValueId end) {
    return bound.factor == 1 &&
           not_less_.proves({bound.limit, first}, {bound.start, end}, -bound.offset);
  }

  // Whether so many exist in every iteration, as of Block(64 * i, 64, 64 * i + 64).
  bool is_whole(const analysis::Extents::Bound& bound, std::int64_t size) {
    return bound.factor == 1 && not_less_.proves(bound.limit, bound.start, -bound.offset - size);
  }

  // How many elements exist.
  ValueId count_of(ir::Builder& builder, const analysis::Extents::Bound& bound,
                   const Operation& reader) {
    if (!available(bound)) {
      Diagnostic(reader.where, std::string(ir::info(reader.op).name) +
                                   ": how much of its operand exists was decided inside a loop or "
                                   "a condition")
          .token(ir::info(reader.op).name)
          .fix(
              "reduce it where it is made, or let the blocks inside reach as far as this one: what "
              "Block(start, size, limit) has outside of its tensor is zero")
          .raise();
    }
    ValueId count = builder.binary(Op::sub, bound.limit, bound.start);
    if (bound.factor != 1) {  // of more than a tile ever has, the product might overflow
      count = builder.binary(Op::min, count, builder.constant(INT32_MAX / bound.factor));
      count = builder.binary(Op::mul, count, builder.constant(bound.factor));
    }
    if (bound.offset == 0) return count;
    return builder.binary(Op::sub, count, builder.constant(bound.offset));
  }

  // A store ends where its tile does, too.
  void clip(ir::Block& block, Operation& store) {
    ir::Builder builder(kernel_, block, store.where);
    const std::vector<std::int64_t>& sizes = store.attributes.integers(Key::sizes);
    std::size_t tile_axis = 0;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 0) continue;
      const ValueId first = store.operands[2 + axis];
      ValueId& end = store.operands[2 + sizes.size() + axis];
      const ValueId tile_end = end;
      for (const analysis::Extents::Bound& bound : extents_.of(store.operands[1], tile_axis)) {
        if (bound.start == first && bound.limit == tile_end && bound.factor == 1 &&
            bound.offset == 0) {
          continue;
        }
        if (!available(bound) && reaches(bound, first, tile_end)) continue;
        const ValueId count = count_of(builder, bound, store);
        end = builder.binary(Op::min, end, builder.binary(Op::add, first, count));
      }
      ++tile_axis;
    }
  }

  static std::int64_t neutral_integer(double neutral, DType dtype) {
    if (neutral == 0) return 0;
    return neutral < 0 ? range_of(dtype).low : range_of(dtype).high;
  }

  ir::Kernel& kernel_;
  const ir::Kernel before_;
  const analysis::Extents extents_;
  analysis::NotLess not_less_;
  const std::vector<const Operation*> definitions_;
  std::set<ValueId> defined_;  // parameters, and in the blocks around, so far
};

}  // namespace

void materialise_extents(ir::Kernel& kernel) { Materialising(kernel).visit(kernel.body); }

}  // namespace tilewright::passes
