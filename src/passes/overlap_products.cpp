#include "passes/overlap_products.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "analysis/definitions.h"
#include "analysis/tile_registers.h"
#include "ir/builder.h"
#include "ir/cloner.h"
#include "support/diagnostic.h"

namespace tilewright::passes {
namespace {

using ir::Builder;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// A sum that waits for the next iteration.
struct Delayed {
  std::size_t position;  // among the carried values
  const Operation* product;
};

// One loop, while it is rotated.
class Rotation {
 public:
  using Definitions = std::vector<const Operation*>;
  Rotation(const ir::Kernel& kernel, const Definitions& definitions, const Operation& loop)
      : kernel_(kernel), definitions_(definitions), loop_(loop), body_(loop.blocks[0]) {
    for (const ValueId argument : body_.arguments) inside_.insert(argument);
    for (const Operation& o : body_.body) inside_.insert(o.results.begin(), o.results.end());
    find_delayed();
    find_front();
  }

  bool worthwhile() const {
    const bool stated = kernel_.schedule.overlap.value_or(false);
    return steps_by_one() && !delayed_.empty() && !front_.empty() && (stated || fits());
  }

  // For each sum that could have waited for the next iteration, why it does not.
  void explain_to(std::vector<SumInTurn>& sums) const {
    const std::vector<ValueId> last = yielded();
    for (std::size_t i = 0; i < last.size(); ++i) {
      if (is_sum_of_products(last[i])) sums.push_back({definitions_[last[i]]->where, why(i)});
    }
  }

  // Appends what the loop becomes; its results are the loop's.
  void append_to(ir::Kernel& kernel, ir::Block& block) {
    Builder builder(kernel, block, loop_.where);
    const ValueId low = loop_.operands[0], high = loop_.operands[1];
    const std::vector<ValueId> initial(loop_.operands.begin() + 3, loop_.operands.end());
    const ValueId runs = builder.binary(Op::lt, low, high);
    builder.if_then(
        runs,
        [&](Builder& inside) {
          std::vector<ValueId> carried = prologue(inside, low, initial);
          carried = rotated(inside, inside.binary(Op::add, low, loop_.operands[2]), high, carried);
          return epilogue(inside, high, std::move(carried));
        },
        [&](Builder&) { return initial; });
    block.body.back().results = loop_.results;
  }

 private:
  std::vector<ValueId> yielded() const { return body_.body.back().operands; }

  // Of the operations of the body, those that the values need, in order.
  std::set<const Operation*> slice(const std::vector<ValueId>& values) const {
    std::set<const Operation*> result;
    std::vector<ValueId> open = values;
    while (!open.empty()) {
      const Operation* o = definitions_[open.back()];
      const bool here = o && inside_.count(open.back()) != 0;
      open.pop_back();
      if (!here || !result.insert(o).second) continue;
      open.insert(open.end(), o->operands.begin(), o->operands.end());
      for (const ir::Block& inner : o->blocks) {
        ir::for_each(inner, [&](const Operation& n) {
          open.insert(open.end(), n.operands.begin(), n.operands.end());
        });
      }
    }
    return result;
  }

  bool reads(const std::set<const Operation*>& operations, ValueId value) const {
    return std::any_of(operations.begin(), operations.end(), [&](const Operation* o) {
      bool found = std::count(o->operands.begin(), o->operands.end(), value) != 0;
      for (const ir::Block& inner : o->blocks) {
        ir::for_each(inner, [&](const Operation& n) {
          found |= std::count(n.operands.begin(), n.operands.end(), value) != 0;
        });
      }
      return found;
    });
  }

  bool reads_carried(const std::set<const Operation*>& operations) const {
    return std::any_of(body_.arguments.begin() + 1, body_.arguments.end(),
                       [&](ValueId argument) { return reads(operations, argument); });
  }

  int uses(ValueId value) const {
    int count = 0;
    ir::for_each(body_, [&](const Operation& o) {
      count += static_cast<int>(std::count(o.operands.begin(), o.operands.end(), value));
    });
    return count;
  }

  // Whether the value can be computed again in the next iteration: it comes from loads and index
  // arithmetic alone. A load that others read too is excluded, since it would be loaded twice.
  bool repeatable(ValueId value) const {
    const std::set<const Operation*> needed = slice({value});
    if (reads_carried(needed)) return false;
    for (const Operation* o : needed) {
      if (o->op != Op::load) continue;
      int within = 0;
      for (const Operation* reader : needed) {
        within += static_cast<int>(
            std::count(reader->operands.begin(), reader->operands.end(), o->results[0]));
      }
      if (uses(o->results[0]) != within + (o->results[0] == value)) return false;
    }
    return std::all_of(needed.begin(), needed.end(),
                       [&](const Operation* o) { return can_be_had_again(*o); });
  }

  // A loaded number, such as that of a page, may be loaded again: that costs one load of a scalar.
  bool can_be_had_again(const Operation& o) const {
    if (o.op == Op::load || o.op == Op::load_index) {
      return kernel_.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::in &&
             !o.attributes.has(ir::Key::semantics);
    }
    return o.op == Op::transpose ||
           (ir::info(o.op).pure() && kernel_.type(o.results[0]).is_scalar());
  }

  // Whether it adds up products of what the iteration computes from another product.
  bool is_sum_of_products(ValueId value) const {
    const Operation* o = definitions_[value];
    const bool sum = o && o->op == Op::dot && o->operands.size() == 3;
    if (!sum || inside_.count(value) == 0 || uses(value) != 1) return false;
    const std::set<const Operation*> operand = slice({o->operands[0]});
    return std::any_of(operand.begin(), operand.end(),
                       [](const Operation* n) { return n->op == Op::dot; });
  }
  // A transposed tile is a view of its operand, and takes no registers.
  bool in_registers(ValueId value) const { return definitions_[value]->op != Op::transpose; }

  void find_delayed() {
    const std::vector<ValueId> last = yielded();
    for (std::size_t i = 0; i < last.size(); ++i) {
      if (!is_sum_of_products(last[i])) continue;
      const Operation* o = definitions_[last[i]];
      if (in_registers(o->operands[0]) && repeatable(o->operands[1]) &&
          !reads(slice({o->operands[0]}), body_.arguments[1 + i])) {
        delayed_.push_back({i, o});
      }
    }
  }

  bool steps_by_one() const {
    const Operation* step = definitions_[loop_.operands[2]];
    return step && step->op == Op::constant && step->attributes.integer(ir::Key::value) == 1;
  }

  // What keeps the i-th carried value, a sum, from waiting.
  std::string why(std::size_t i) const {
    const Operation& sum = *definitions_[yielded()[i]];
    if (!is_delayed(sum)) {
      if (!in_registers(sum.operands[0])) return "what it multiplies is a transposed tile";
      if (reads(slice({sum.operands[0]}), body_.arguments[1 + i])) {
        return "what it multiplies depends on the sum";
      }
      return why_not_repeatable(sum.operands[1]);
    }
    if (!steps_by_one()) return "the loop does not step by 1";
    if (front_.empty()) return "no other product begins an iteration by itself";
    return "tiles of " + std::to_string(live_registers().live) +
           " registers of a thread would be live, and there are " +
           std::to_string(analysis::registers_for_tiles(kernel_, live_registers().rows)) +
           " for them";
  }
  std::string why_not_repeatable(ValueId value) const {
    const std::set<const Operation*> needed = slice({value});
    if (reads_carried(needed)) return "what it multiplies with depends on what the loop carries";
    for (const Operation* o : needed) {
      if (can_be_had_again(*o)) continue;
      return "what it multiplies with is made by " + std::string(ir::info(o->op).name) + " at " +
             format_location(o->where);
    }
    return "what it multiplies with is loaded once for several readers";
  }

  bool is_delayed(const Operation& o) const {
    return std::any_of(delayed_.begin(), delayed_.end(),
                       [&](const Delayed& d) { return d.product == &o; });
  }

  // The products that depend on nothing carried: they start an iteration.
  void find_front() {
    for (const Operation& o : body_.body) {
      if (o.op != Op::dot || is_delayed(o)) continue;
      const std::set<const Operation*> needed = slice({o.results[0]});
      const auto products = std::count_if(needed.begin(), needed.end(),
                                          [](const Operation* n) { return n->op == Op::dot; });
      if (products == 1 && !reads_carried(needed)) front_.push_back(&o);
    }
  }

  // Registers of a thread for what is live while the first products run beside the delayed ones. A
  // warpgroup of 128 threads holds 64 rows.
  struct LiveRegisters {
    std::int64_t live = 0, rows = 0;
  };
  LiveRegisters live_registers() const {
    LiveRegisters all;
    const auto add = [&](ValueId value) {
      const ir::Type& type = kernel_.type(value);
      if (!type.is_tile() || type.shape.size() != 2) return;
      all.rows = std::max(all.rows, type.shape[0]);
      all.live += analysis::tile_registers(kernel_, type);
    };
    for (const Operation* o : front_) add(o->results[0]);
    for (const ValueId value : loop_.results) add(value);
    for (const Delayed& d : delayed_) add(d.product->operands[0]);
    return all;
  }
  bool fits() const {
    const auto [live, rows] = live_registers();
    return live <= analysis::registers_for_tiles(kernel_, rows);
  }

  std::vector<ValueId> prologue(Builder& builder, ValueId low,
                                const std::vector<ValueId>& initial) {
    ir::Cloner cloner(builder.kernel());
    cloner.bind(body_.arguments[0], low);
    for (std::size_t i = 0; i < initial.size(); ++i) {
      cloner.bind(body_.arguments[1 + i], initial[i]);
    }
    for (const Operation& o : body_.body) {
      if (o.op != Op::yield && !is_delayed(o)) builder.block().body.push_back(cloner.copy(o));
    }
    return next(cloner);
  }

  // What an iteration leaves for the next.
  std::vector<ValueId> next(const ir::Cloner& cloner) const {
    std::vector<ValueId> values = cloner(yielded());
    for (const Delayed& d : delayed_) values[d.position] = cloner(d.product->operands[2]);
    for (const Delayed& d : delayed_) values.push_back(cloner(d.product->operands[0]));
    return values;
  }

  // The sum that the iteration before left, whose index is `index`.
  ValueId catch_up(Builder& builder, const Delayed& d, std::size_t number, ValueId index,
                   const std::vector<ValueId>& carried) {
    ir::Cloner cloner(builder.kernel());
    cloner.bind(body_.arguments[0], index);
    const std::set<const Operation*> needed = slice({d.product->operands[1]});
    for (const Operation& o : body_.body) {
      if (needed.count(&o) != 0) builder.block().body.push_back(cloner.copy(o));
    }
    cloner.bind(d.product->operands[0], carried[loop_.results.size() + number]);
    cloner.bind(d.product->operands[2], carried[d.position]);
    builder.block().body.push_back(cloner.copy(*d.product));
    return builder.block().body.back().results[0];
  }

  std::vector<ValueId> rotated(Builder& outer, ValueId low, ValueId high,
                               std::vector<ValueId> initial) {
    return outer.for_loop(
        low, high, loop_.operands[2], std::move(initial),
        [&](Builder& builder, ValueId index, const std::vector<ValueId>& carried) {
          ir::Cloner cloner(builder.kernel());
          cloner.bind(body_.arguments[0], index);
          for (std::size_t i = 0; i < loop_.results.size(); ++i) {
            cloner.bind(body_.arguments[1 + i], carried[i]);
          }
          const auto copy = [&](const auto& chosen) {
            for (const Operation& o : body_.body) {
              if (chosen(o)) builder.block().body.push_back(cloner.copy(o));
            }
          };
          std::vector<ValueId> products;
          for (const Operation* o : front_) products.push_back(o->results[0]);
          const std::set<const Operation*> first = slice(products);
          copy([&](const Operation& o) { return first.count(&o) != 0; });
          const ValueId before = builder.binary(Op::sub, index, loop_.operands[2]);
          for (std::size_t i = 0; i < delayed_.size(); ++i) {
            cloner.bind(body_.arguments[1 + delayed_[i].position],
                        catch_up(builder, delayed_[i], i, before, carried));
          }
          // What needs the delayed sums comes last: they run as long as possible.
          const std::set<const Operation*> late = readers_of_sums();
          const auto rest = [&](const Operation& o) {
            return o.op != Op::yield && !is_delayed(o) && first.count(&o) == 0;
          };
          copy([&](const Operation& o) { return rest(o) && late.count(&o) == 0; });
          copy([&](const Operation& o) { return rest(o) && late.count(&o) != 0; });
          return next(cloner);
        });
  }

  std::set<const Operation*> readers_of_sums() const {
    std::set<ValueId> sums;
    for (const Delayed& d : delayed_) sums.insert(body_.arguments[1 + d.position]);
    std::set<const Operation*> readers;
    for (const Operation& o : body_.body) {
      const bool reads_one =
          std::any_of(sums.begin(), sums.end(), [&](ValueId sum) { return reads({&o}, sum); });
      if (!reads_one) continue;
      readers.insert(&o);
      sums.insert(o.results.begin(), o.results.end());
    }
    return readers;
  }

  std::vector<ValueId> epilogue(Builder& builder, ValueId high, std::vector<ValueId> carried) {
    const ValueId last = builder.binary(Op::sub, high, loop_.operands[2]);
    for (std::size_t i = 0; i < delayed_.size(); ++i) {
      const ValueId sum = catch_up(builder, delayed_[i], i, last, carried);
      carried[delayed_[i].position] = sum;
    }
    carried.resize(loop_.results.size());
    return carried;
  }

  const ir::Kernel& kernel_;
  const Definitions& definitions_;
  const Operation& loop_;
  const ir::Block& body_;
  std::set<ValueId> inside_;
  std::vector<Delayed> delayed_;
  std::vector<const Operation*> front_;
};

class Overlapping {
 public:
  explicit Overlapping(ir::Kernel& kernel) : kernel_(kernel) {}

  int count() const { return count_; }

  void visit(ir::Block& block) {
    for (Operation& operation : block.body) {
      for (ir::Block& inner : operation.blocks) visit(inner);
    }
    // Of this block as it is now; the blocks below have changed.
    const std::vector<const Operation*> definitions = analysis::definitions(kernel_);
    ir::Block result{block.arguments, {}};
    for (const Operation& operation : block.body) {
      if (operation.op == Op::for_loop) {
        Rotation rotation(kernel_, definitions, operation);
        if (rotation.worthwhile()) {
          rotation.append_to(kernel_, result);
          ++count_;
          continue;
        }
      }
      result.body.push_back(operation);
    }
    block = std::move(result);
  }

 private:
  ir::Kernel& kernel_;
  int count_ = 0;
};

void explain_block(const ir::Kernel& kernel, const Rotation::Definitions& definitions,
                   const ir::Block& block, std::vector<SumInTurn>& sums) {
  for (const Operation& operation : block.body) {
    for (const ir::Block& inner : operation.blocks) {
      explain_block(kernel, definitions, inner, sums);
    }
    if (operation.op == Op::for_loop) Rotation(kernel, definitions, operation).explain_to(sums);
  }
}

}  // namespace

std::vector<SumInTurn> sums_in_turn(const ir::Kernel& kernel) {
  std::vector<SumInTurn> sums;
  explain_block(kernel, analysis::definitions(kernel), kernel.body, sums);
  return sums;
}

int overlap_products(ir::Kernel& kernel) {
  Overlapping overlapping(kernel);
  overlapping.visit(kernel.body);
  return overlapping.count();
}

}  // namespace tilewright::passes
