#include "passes/skip_hidden.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "analysis/definitions.h"
#include "analysis/extents.h"
#include "analysis/hidden.h"
#include "ir/builder.h"
#include "ir/cloner.h"
#include "passes/own_rows.h"

namespace tilewright::passes {
namespace {

using analysis::Linear;
using ir::Builder;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// One loop, with what is known of it before anything changes.
class Cutting {
 public:
  using Definitions = std::vector<const Operation*>;
  Cutting(ir::Kernel& kernel, const Definitions& definitions, const analysis::Extents& extents,
          const analysis::OwnRows& own, const Operation& loop)
      : kernel_(kernel), definitions_(definitions), own_(own), loop_(loop), body_(loop.blocks[0]) {
    if (!simple()) return;
    find_existing(extents);
    find_masks();
  }

  bool worthwhile() const { return exist_ || !slacks_.empty(); }

  // Appends what the loop becomes.
  void append_to(ir::Block& block) {
    Builder builder(kernel_, block, loop_.where);
    const ValueId low = loop_.operands[0], high = loop_.operands[1];
    analysis::OwnRows own = own_;
    if (exist_) {
      ValueId count = builder.binary(Op::sub, exist_->limit, exist_->start);
      // Said so that a role to which all rows belong need not ask.
      if (has_rows(*exist_)) count = builder.binary(Op::max, builder.constant(1), count);
      own.end = builder.binary(Op::min, own.end, count);
    }
    ValueId first = low, end = high;
    for (Linear slack : slacks_) {
      if (const auto at = slack.values.find(own_.end); at != slack.values.end()) {
        const std::int64_t factor = at->second;
        slack.values.erase(at);
        slack.values[own.end] = factor;
      }
      // What is visible ends, or begins, where rest + per_index * i changes its sign.
      const ValueId rest = without_index(builder, slack);
      const ValueId one = builder.constant(1);
      const ValueId slope = builder.constant(std::abs(slack.per_index));
      if (slack.per_index > 0) {
        const ValueId minus_one = builder.constant(-1);
        const ValueId below = builder.binary(Op::sub, minus_one, rest);
        const ValueId last = builder.binary(Op::div, below, slope);
        end = builder.binary(Op::min, end, builder.binary(Op::add, last, one));
      } else {
        const ValueId last = builder.binary(Op::div, rest, slope);
        first = builder.binary(Op::max, first, builder.binary(Op::add, last, one));
      }
    }
    if (first != low) first = builder.binary(Op::min, first, high);
    if (exist_) {
      const ValueId any = builder.binary(Op::lt, own.first, own.end);
      end = builder.elementwise(Op::select, {any, end, first});
    }
    end = builder.binary(Op::max, end, first);
    if (first != low) discard(builder, low, first);
    Operation cut = loop_;
    cut.operands[0] = first;
    cut.operands[1] = end;
    block.body.push_back(std::move(cut));
    discard(builder, end, high);
  }

 private:
  // A loop that counts, over products of loaded tiles and functions of them: nothing in it has an
  // effect, or makes warpgroups meet, and each load is one of those that the schedule counts.
  bool simple() {
    const Operation* step = definitions_[loop_.operands[2]];
    if (!step || step->op != Op::constant || step->attributes.integer(Key::value) != 1) {
      return false;
    }
    bool fits = !loop_.results.empty();
    for (const ValueId result : loop_.results) {
      const ir::Type& type = kernel_.type(result);
      fits &= type.is_tile() && type.shape.size() == 2 && type.shape[0] == own_.rows;
    }
    std::set<const Operation*> read;
    ir::for_each(body_, [&](const Operation& o) {
      fits &= ir::info(o.op).pure() || o.op == Op::load || o.op == Op::if_then || o.op == Op::yield;
      if (o.op == Op::any) fits &= o.attributes.has(Key::partial);
      fits &= !moves_rows(o);
      if (o.op != Op::dot) return;
      fits &= analysis::is_loaded(definitions_, o.operands[1]);
      for (const std::size_t side : {0u, 1u}) {
        if (const Operation* load = loaded(o.operands[side])) read.insert(load);
      }
    });
    std::set<ValueId> tensors;
    int nested = 0;
    ir::for_each(body_, [&](const Operation& o) { nested += o.op == Op::load; });
    for (const Operation& o : body_.body) {
      if (o.op != Op::load) continue;
      --nested;
      fits &= kernel_.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::in;
      if (read.count(&o) != 0) {
        fits &= tensors.insert(o.operands[0]).second;
        loads_.push_back(&o);
      } else {
        // Rows of a row or a column are loaded where they are read.
        const std::vector<std::int64_t>& shape = kernel_.type(o.results[0]).shape;
        fits &= shape.size() < 2 || shape[0] != own_.rows;
        // A schedule may copy a row to shared memory for all warpgroups.
        if (shape.size() == 2 && shape[0] == 1) loads_.push_back(&o);
      }
    }
    return fits && nested == 0 && !loads_.empty();
  }

  // Whether warpgroups may have to tell each other what they hold.
  bool moves_rows(const Operation& o) const {
    if (o.op == Op::reduce) {
      return o.attributes.integer(Key::axis) == 0 &&
             kernel_.type(o.operands[0]).shape[0] == own_.rows;
    }
    if (o.op == Op::transpose) return !analysis::is_loaded(definitions_, o.operands[0]);
    if (o.op == Op::slice) {
      return !analysis::is_loaded(definitions_, o.operands[0]) &&
             kernel_.type(o.operands[0]).shape[0] != kernel_.type(o.results[0]).shape[0];
    }
    return o.op == Op::reshape && is_column(o.operands[0]) && !is_column(o.results[0]) &&
           kernel_.type(o.results[0]).shape.size() == 2;
  }
  bool is_column(ValueId value) const {
    const std::vector<std::int64_t>& shape = kernel_.type(value).shape;
    if (shape.size() == 2) return shape[0] == own_.rows && shape[1] == 1;
    const Operation* o = definitions_[value];
    if (shape.size() != 1 || !o) return false;
    const bool follows = o->op == Op::reshape || ir::info(o->op).elementwise();
    return follows && std::any_of(o->operands.begin(), o->operands.end(),
                                  [&](ValueId operand) { return is_column(operand); });
  }

  const Operation* loaded(ValueId value) const {
    const Operation* o = definitions_[value];
    while (o && (o->op == Op::transpose || o->op == Op::slice)) o = definitions_[o->operands[0]];
    return o && o->op == Op::load ? o : nullptr;
  }

  bool inside(ValueId value) const {
    bool found = std::count(body_.arguments.begin(), body_.arguments.end(), value) != 0;
    ir::for_each(body_, [&](const Operation& o) {
      found |= std::count(o.results.begin(), o.results.end(), value) != 0;
    });
    return found;
  }

  // Where all results end with the same rows, nobody reads others.
  void find_existing(const analysis::Extents& extents) {
    for (const analysis::Extents::Bound& bound : extents.of(loop_.results[0], 0)) {
      const bool of_all =
          std::all_of(loop_.results.begin(), loop_.results.end(),
                      [&](ValueId result) { return extents.of(result, 0).count(bound) != 0; });
      if (of_all && bound.factor == 1 && bound.offset == 0 && !inside(bound.start) &&
          !inside(bound.limit)) {
        exist_ = bound;
        return;
      }
    }
  }

  // A block of the grid that divides its dimension: the last one too begins before the dimension
  // ends.
  bool has_rows(const analysis::Extents::Bound& bound) const {
    const Operation* start = definitions_[bound.start];
    const Operation* limit = definitions_[bound.limit];
    if (!start || start->op != Op::mul || !limit || limit->op != Op::dim) return false;
    for (const std::size_t side : {0u, 1u}) {
      const Operation* size = definitions_[start->operands[side]];
      if (!size || size->op != Op::constant) continue;
      const Dim blocks = ceil_div(limit->attributes.dim(), size->attributes.integer(Key::value));
      for (std::size_t axis = 0; axis < kernel_.grid.size(); ++axis) {
        if (start->operands[1 - side] == kernel_.body.arguments[axis] &&
            kernel_.grid[axis] == blocks) {
          return true;
        }
      }
    }
    return false;
  }

  // Comparisons of masks: where one fails for all own rows and all columns of an iteration, the
  // iteration must leave everything as it was.
  void find_masks() {
    std::set<ValueId> comparisons;
    for (const Operation& o : body_.body) {
      if (o.op == Op::select) collect(o.operands[0], comparisons);
    }
    const analysis::LinearFacts facts(kernel_, definitions_, own_, loop_);
    for (const ValueId comparison : comparisons) {
      const auto slack = facts.all_false(comparison);
      if (!slack || slack->per_index == 0) continue;
      if (slack->values.count(own_.first) + slack->values.count(own_.end) == 0) continue;
      if (changes_nothing(comparison)) slacks_.push_back(*slack);
    }
  }

  void collect(ValueId condition, std::set<ValueId>& comparisons) const {
    const Operation* o = definitions_[condition];
    if (!o) return;
    if (o->op == Op::logical_and) {
      collect(o->operands[0], comparisons);
      collect(o->operands[1], comparisons);
    } else {
      comparisons.insert(condition);
    }
  }

  bool changes_nothing(ValueId comparison) const {
    const auto is_false = [&](ValueId condition) {
      std::set<ValueId> parts;
      collect(condition, parts);
      return parts.count(comparison) != 0;
    };
    analysis::Hidden hidden(kernel_, definitions_, is_false, true);
    const std::vector<ValueId>& yielded = body_.body.back().operands;
    for (std::size_t i = 0; i < yielded.size(); ++i) {
      if (hidden.of(yielded[i]).same != body_.arguments[1 + i]) return false;
    }
    return true;
  }

  void discard(Builder& builder, ValueId low, ValueId high) {
    builder.for_loop(low, high, loop_.operands[2], {},
                     [&](Builder& inner, ValueId index, const std::vector<ValueId>&) {
                       ir::Cloner cloner(kernel_);
                       cloner.bind(body_.arguments[0], index);
                       for (const Operation* load : loads_) {
                         copy(inner, cloner, load->results[0]);
                         inner.append(Op::discard, {cloner(load->results[0])}, {});
                       }
                       return std::vector<ValueId>{};
                     });
  }

  // The operation of the loop that makes the value, behind those that it needs.
  void copy(Builder& builder, ir::Cloner& cloner, ValueId value) {
    const Operation* o = definitions_[value];
    if (!o || cloner(value) != value || !inside(value)) return;
    for (const ValueId operand : o->operands) copy(builder, cloner, operand);
    builder.block().body.push_back(cloner.copy(*o));
  }

  ir::Kernel& kernel_;
  const Definitions& definitions_;
  const analysis::OwnRows& own_;
  const Operation& loop_;
  const ir::Block& body_;
  std::vector<const Operation*> loads_;  // for all warpgroups
  std::optional<analysis::Extents::Bound> exist_;
  std::vector<Linear> slacks_;  // >= 0 where a mask hides everything
};

class Skipping {
 public:
  explicit Skipping(ir::Kernel& kernel)
      : kernel_(kernel),
        own_(own_rows(kernel)),
        before_(kernel),
        definitions_(analysis::definitions(before_)),
        extents_(before_) {}

  int run() {
    if (own_.rows != 0) visit(kernel_.body, before_.body);
    return count_;
  }

 private:
  void visit(ir::Block& block, const ir::Block& before) {
    ir::Block result{block.arguments, {}};
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      Operation& o = block.body[i];
      const Operation& was = before.body[i];
      if (o.op == Op::for_loop) {
        Cutting cutting(kernel_, definitions_, extents_, own_, was);
        if (cutting.worthwhile()) {
          cutting.append_to(result);
          ++count_;
          continue;
        }
      }
      for (std::size_t b = 0; b < o.blocks.size(); ++b) visit(o.blocks[b], was.blocks[b]);
      result.body.push_back(std::move(o));
    }
    block = std::move(result);
  }

  ir::Kernel& kernel_;
  const analysis::OwnRows own_;
  const ir::Kernel before_;
  const std::vector<const Operation*> definitions_;
  const analysis::Extents extents_;
  int count_ = 0;
};

}  // namespace

int skip_hidden(ir::Kernel& kernel) { return Skipping(kernel).run(); }

}  // namespace tilewright::passes
