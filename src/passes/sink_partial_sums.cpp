#include "passes/sink_partial_sums.h"

#include <cmath>
#include <map>
#include <set>

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// One tile of zeros may begin a sum and serve something else. Each use gets a tile of its own,
// since only the sum's may hold partial sums.
class SeparateZeros {
 public:
  explicit SeparateZeros(ir::Kernel& kernel) : kernel_(kernel) {}

  void visit(ir::Block& block) {
    std::vector<Operation> body;
    body.reserve(block.body.size());
    for (Operation& o : block.body) {
      for (ir::Block& inner : o.blocks) visit(inner);
      for (ValueId& operand : o.operands) {
        const auto zero = zeros_.find(operand);
        if (zero == zeros_.end() || !zero->second.used) {
          if (zero != zeros_.end()) zero->second.used = true;
          continue;
        }
        Operation copy = zero->second.splat;
        copy.results = {kernel_.add_value(ir::Type(kernel_.type(operand)))};
        operand = copy.results[0];
        body.push_back(std::move(copy));
      }
      if (o.op == Op::constant && kernel_.type(o.results[0]).dtype == f32) {
        const auto* value = std::get_if<double>(o.attributes.find(Key::value));
        if (value && *value == 0) numbers_.insert(o.results[0]);
      }
      if (o.op == Op::splat && numbers_.count(o.operands[0]) != 0)
        zeros_[o.results[0]] = {o, false};
      body.push_back(std::move(o));
    }
    block.body = std::move(body);
  }

 private:
  struct Zero {
    Operation splat;
    bool used = false;
  };
  ir::Kernel& kernel_;
  std::set<ValueId> numbers_;
  std::map<ValueId, Zero> zeros_;
};

// The values that may hold partial sums. It is the greatest set whose members are reductions, sums
// of members, members times other values, or carried from members by a loop or a condition. No
// member is read in another way deeper in loops than it is made, since that would complete it
// there.
class PartialSums {
 public:
  explicit PartialSums(ir::Kernel& kernel) : kernel_(kernel), depth_(kernel.types.size(), 0) {
    for (ValueId id = 0; id < kernel.types.size(); ++id) {
      const ir::Type& type = kernel.types[id];
      if (type.is_tile() && type.dtype == f32) partial_.insert(id);
    }
    zero_.resize(kernel.types.size(), false);
    measure(kernel.body, 0);
    find_questions();
    std::size_t before;
    do {
      before = partial_.size();
      check(kernel.body, 0);
    } while (partial_.size() != before);
    // Zeros may hold partial sums, but without a reduction there is nothing to sink.
    bool any = false;
    ir::for_each(kernel.body, [&](const Operation& o) { any |= is_sum(o) && holds(o.results[0]); });
    if (!any) partial_.clear();
  }

  int apply() {
    if (!partial_.empty()) rewrite(kernel_.body);
    return count_;
  }

 private:
  // A reduction of one element has no parts. One over several warpgroups (Key::count) is completed
  // where it is made.
  bool is_sum(const Operation& o) const {
    return o.op == Op::reduce && o.attributes.function() == Op::add &&
           !o.attributes.has(Key::count) &&
           kernel_.type(o.operands[0]).shape[o.attributes.integer(Key::axis)] > 1;
  }
  bool holds(ValueId id) const { return partial_.count(id) != 0; }
  void drop(ValueId id) { partial_.erase(id); }

  void measure(const ir::Block& block, int depth) {
    for (const ValueId argument : block.arguments) depth_[argument] = depth;
    for (const Operation& o : block.body) {
      for (const ValueId result : o.results) depth_[result] = depth;
      if (o.op == Op::splat) splats_.insert(o.results[0]);
      if (is_finite(o)) finite_.insert(o.results[0]);
      if (o.op == Op::constant && kernel_.type(o.results[0]).dtype == f32) {
        const auto* value = std::get_if<double>(o.attributes.find(Key::value));
        zero_[o.results[0]] = value && *value == 0;
      }
      const bool loop = o.op == Op::for_loop || o.op == Op::while_loop;
      for (const ir::Block& inner : o.blocks) measure(inner, depth + loop);
      for (std::size_t i = 0; o.op == Op::if_then && i < o.results.size(); ++i) {
        const auto known = [&](int b) {
          return finite_.count(o.blocks[b].body.back().operands[i]) != 0;
        };
        if (known(0) && known(1)) finite_.insert(o.results[i]);
      }
    }
  }

  // Finds the comparisons that only any_nearby reads.
  void find_questions() {
    std::set<ValueId> nearby, otherwise;
    ir::for_each(kernel_.body, [&](const Operation& o) {
      const bool asks = o.op == Op::any && o.attributes.has(Key::partial);
      for (const ValueId operand : o.operands) (asks ? nearby : otherwise).insert(operand);
    });
    for (const ValueId id : nearby) {
      if (otherwise.count(id) == 0) questions_.insert(id);
    }
  }

  // Whether the comparison asks if a sum exceeds a bound, for any_nearby, which partial sums may
  // answer.
  bool asks_parts(const Operation& o) const {
    return (o.op == Op::lt || o.op == Op::le) && questions_.count(o.results[0]) != 0 &&
           holds(o.operands[1]) && !holds(o.operands[0]) &&
           kernel_.type(o.operands[1]).shape == kernel_.type(o.results[0]).shape;
  }

  // If one of the values cannot hold partial sums, none of them can.
  void tie(std::initializer_list<ValueId> values) {
    bool all = true;
    for (const ValueId value : values) all &= holds(value);
    if (!all) {
      for (const ValueId value : values) drop(value);
    }
  }

  // A use that needs the whole sum. Deeper in loops than the sum is made it would cost too much.
  void read(ValueId operand, int depth) {
    if (depth > depth_[operand]) drop(operand);
  }

  void check(const ir::Block& block, int depth) {
    for (const Operation& o : block.body) {
      const bool tile_result = o.results.size() == 1 && kernel_.type(o.results[0]).is_tile();
      if (o.op == Op::for_loop || o.op == Op::while_loop || o.op == Op::if_then) {
        const bool is_if = o.op == Op::if_then;
        const std::size_t extra = o.op == Op::while_loop ? 1 : 0;
        const std::size_t leading = o.op == Op::for_loop ? 3 : 1;
        for (std::size_t i = 0; i < o.results.size(); ++i) {
          if (is_if) {
            tie({o.results[i], o.blocks[0].body.back().operands[i],
                 o.blocks[1].body.back().operands[i]});
          } else {
            const ir::Block& body = o.blocks[0];
            const std::size_t first = body.arguments.size() - o.results.size();
            tie({o.results[i], body.arguments[first + i], o.operands[leading + i],
                 body.body.back().operands[extra + i]});
          }
        }
        for (const ir::Block& inner : o.blocks) check(inner, depth + !is_if);
        continue;
      }
      if (o.op == Op::yield) continue;
      for (const ir::Block& inner : o.blocks) check(inner, depth);
      if (is_sum(o)) {
        if (holds(o.operands[0])) read(o.operands[0], depth);
        continue;
      }
      if (o.op == Op::splat) {
        if (!zero_[o.operands[0]]) drop(o.results[0]);
        continue;
      }
      if (tile_result && (linear(o) || asks_parts(o))) continue;
      for (const ValueId operand : o.operands) {
        if (holds(operand)) read(operand, depth);
      }
      for (const ValueId result : o.results) drop(result);
    }
  }

  // Keeps the result's membership when the operation is linear in its members.
  bool linear(const Operation& o) {
    const ValueId result = o.results[0];
    if (!holds(result)) return false;
    // One that stretches is read as often as the result has columns.
    for (const ValueId operand : o.operands) {
      if (holds(operand) && kernel_.type(operand).shape != kernel_.type(result).shape) return false;
    }
    if (o.op == Op::add && holds(o.operands[0]) && holds(o.operands[1])) return true;
    const bool one = o.operands.size() > 1 && holds(o.operands[0]) != holds(o.operands[1]);
    // An infinity times a lane's part that is 0 would be NaN.
    if (!one || finite_.count(o.operands[holds(o.operands[0]) ? 1 : 0]) == 0) return false;
    return o.op == Op::mul || (o.op == Op::fma && holds(o.operands[2]));
  }

  // Whether the result is finite whatever the data: constants, and exponentials short of overflow.
  bool is_finite(const Operation& o) const {
    const auto known = [&](ValueId id) { return finite_.count(id) != 0; };
    if (o.op == Op::exp || o.op == Op::exp2 || o.op == Op::exp2_polynomial) return true;
    if (o.op == Op::constant) {
      const auto* value = std::get_if<double>(o.attributes.find(Key::value));
      return value && std::isfinite(*value);
    }
    if (o.op == Op::splat || o.op == Op::reshape) return known(o.operands[0]);
    return o.op == Op::select && known(o.operands[1]) && known(o.operands[2]);
  }

  void rewrite(ir::Block& block) {
    std::vector<Operation> body;
    body.reserve(block.body.size());
    for (Operation& o : block.body) {
      for (ir::Block& inner : o.blocks) rewrite(inner);
      const bool carries = o.op == Op::for_loop || o.op == Op::while_loop || o.op == Op::if_then ||
                           o.op == Op::yield;
      const bool asks = asks_parts(o);
      const bool keeps = asks || (!o.results.empty() && holds(o.results[0]) && !is_sum(o));
      if (!carries && !keeps) {
        for (ValueId& operand : o.operands) {
          if (!holds(operand) || is_zero_splat(operand)) continue;
          Operation complete;
          complete.op = Op::complete;
          complete.operands = {operand};
          const ir::Type type = kernel_.type(operand);
          complete.results = {kernel_.add_value(type)};
          complete.attributes = {{Key::function, Op::add}};
          complete.where = o.where;
          operand = complete.results[0];
          body.push_back(std::move(complete));
        }
      }
      if (is_sum(o) && holds(o.results[0])) {
        o.attributes.set(Key::partial, std::int64_t{1});
        ++count_;
      }
      if (asks) o.attributes.set(Key::partial, std::int64_t{1});
      if (keeps && (o.op == Op::mul || o.op == Op::fma)) {
        o.attributes.set(Key::partial, std::int64_t{holds(o.operands[0]) ? 0 : 1});
      }
      body.push_back(std::move(o));
    }
    block.body = std::move(body);
  }

  bool is_zero_splat(ValueId id) const { return splats_.count(id) != 0; }

  ir::Kernel& kernel_;
  std::set<ValueId> partial_, splats_, finite_, questions_;
  std::vector<int> depth_;
  std::vector<bool> zero_;
  int count_ = 0;
};

}  // namespace

int sink_partial_sums(ir::Kernel& kernel) {
  SeparateZeros(kernel).visit(kernel.body);
  return PartialSums(kernel).apply();
}

}  // namespace tilewright::passes
