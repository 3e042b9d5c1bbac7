#include "passes/issue_products.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analysis/definitions.h"
#include "analysis/tile_registers.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

using Definitions = std::vector<const Operation*>;
using Order = std::vector<std::size_t>;  // of the operations of a body, by number

// What depends on what in the body of a loop.
class Body {
 public:
  Body(const ir::Kernel& kernel, const std::vector<Operation>& operations)
      : kernel_(kernel), operations_(operations) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      for (const ValueId result : operations[i].results) made_by_[result] = i;
    }
    std::size_t effect = operations.size();  // the last one
    for (std::size_t i = 0; i < operations.size(); ++i) {
      std::set<std::size_t> needs;
      const auto read = [&](const Operation& o) {
        for (const ValueId operand : o.operands) {
          const auto maker = made_by_.find(operand);
          if (maker != made_by_.end() && maker->second < i) needs.insert(maker->second);
        }
      };
      read(operations[i]);
      for (const ir::Block& inner : operations[i].blocks) ir::for_each(inner, read);
      if (!movable(operations[i])) {
        if (effect != operations.size()) needs.insert(effect);
        effect = i;
      }
      needs_.emplace_back(needs.begin(), needs.end());
    }
  }

  std::size_t size() const { return operations_.size(); }
  const Operation& operator[](std::size_t i) const { return operations_[i]; }
  // What must come before the operation.
  const std::vector<std::size_t>& needs(std::size_t i) const { return needs_[i]; }
  // What a product adds to, if it is made here.
  bool is_sum_of(std::size_t i, std::size_t product) const {
    const std::vector<ValueId>& operands = operations_[product].operands;
    const std::vector<ValueId>& results = operations_[i].results;
    return operands.size() > 2 && std::count(results.begin(), results.end(), operands[2]) != 0;
  }

 private:
  bool movable(const Operation& o) const {
    if (o.op != Op::load) return ir::info(o.op).pure();
    return kernel_.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::in;
  }

  const ir::Kernel& kernel_;
  const std::vector<Operation>& operations_;
  std::map<ValueId, std::size_t> made_by_;
  std::vector<std::vector<std::size_t>> needs_;
};

enum class Later : std::uint8_t { as_early_as_possible, as_written };

// An order of the body's operations in which products come early.
class Issue {
 public:
  Issue(const Body& body, Later later) : body_(body), later_(later), emitted_(body.size(), false) {}

  Order order() {
    std::vector<std::size_t> products;
    for (std::size_t i = 0; i < body_.size(); ++i) {
      if (body_[i].op == Op::dot) products.push_back(i);
    }
    while (!products.empty()) {
      const auto next =
          std::min_element(products.begin(), products.end(),
                           [this](std::size_t a, std::size_t b) { return place(a) < place(b); });
      const std::size_t product = *next;
      products.erase(next);
      emit(product);
      const int number = static_cast<int>(issued_.size());
      issued_[product] = number;
    }
    for (std::size_t i = 0; i < body_.size(); ++i) emit(i);
    return std::move(order_);
  }

 private:
  static constexpr int kOfLoads = -1;

  int place(std::size_t product) const {
    const int last = waits_for(product);
    return later_ == Later::as_written ? std::min(last, 0) : last;
  }

  // The last of the issued products that the product's operands are made from; behind all others
  // if one that is not issued comes first.
  int waits_for(std::size_t product) const {
    int last = kOfLoads;
    std::set<std::size_t> seen;
    std::vector<std::size_t> open = body_.needs(product);
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      if (!seen.insert(i).second) continue;
      const auto at = issued_.find(i);
      if (at != issued_.end()) {
        if (!body_.is_sum_of(i, product)) last = std::max(last, at->second);
      } else if (body_[i].op == Op::dot) {
        return static_cast<int>(body_.size());
      } else {
        open.insert(open.end(), body_.needs(i).begin(), body_.needs(i).end());
      }
    }
    return last;
  }

  void emit(std::size_t i) {
    if (emitted_[i]) return;
    emitted_[i] = true;
    for (const std::size_t needed : body_.needs(i)) emit(needed);
    order_.push_back(i);
  }

  const Body& body_;
  const Later later_;
  std::map<std::size_t, int> issued_;  // products, and as which of them
  std::vector<bool> emitted_;
  Order order_;
};

// How many registers of a thread the tiles take that are live at once, at most. Loaded tiles are
// read where they lie. What a product reads in registers it may read until the turn ends.
class Live {
 public:
  Live(const ir::Kernel& kernel, const Definitions& definitions, const Operation& loop,
       std::int64_t rows)
      : kernel_(kernel), definitions_(definitions), loop_(loop), rows_(rows) {}

  std::int64_t most(const Order& order) const {
    const std::vector<Operation>& body = loop_.blocks[0].body;
    std::map<ValueId, std::size_t> last;  // where each value is needed last, in the order
    for (std::size_t at = 0; at < order.size(); ++at) {
      const Operation& o = body[order[at]];
      const auto read = [&](const Operation& reader) {
        for (const ValueId operand : reader.operands) last[operand] = at;
      };
      read(o);
      for (const ir::Block& inner : o.blocks) ir::for_each(inner, read);
      if (o.op == Op::dot) last[o.operands[0]] = order.size();
    }
    std::int64_t now = 0, most = 0;
    for (const ValueId argument : loop_.blocks[0].arguments) now += registers(argument);
    std::map<std::size_t, std::int64_t> freed;
    for (const auto& [value, at] : last) freed[at] += registers(value);
    for (std::size_t at = 0; at < order.size(); ++at) {
      now -= freed[at];
      for (const ValueId result : body[order[at]].results) {
        if (last.count(result) != 0) now += registers(result);
      }
      most = std::max(most, now);
    }
    return most;
  }

 private:
  // Of what this loop makes or carries.
  std::int64_t registers(ValueId value) const {
    const ir::Type& type = kernel_.type(value);
    const bool has_rows = type.is_tile() && type.shape.size() == 2 && type.shape[0] == rows_;
    if (!has_rows || analysis::is_loaded(definitions_, value)) return 0;
    return analysis::tile_registers(kernel_, type);
  }

  const ir::Kernel& kernel_;
  const Definitions& definitions_;
  const Operation& loop_;
  const std::int64_t rows_;
};

class Issuing {
 public:
  explicit Issuing(ir::Kernel& kernel)
      : kernel_(kernel), definitions_(analysis::definitions(kernel)) {
    ir::for_each(kernel.body, [&](const Operation& o) {
      if (o.op == Op::dot) rows_ = std::max(rows_, kernel.type(o.results[0]).shape[0]);
    });
  }

  int run() {
    visit(kernel_.body);
    for (const auto& [loop, order] : orders_) {
      std::vector<Operation> ordered;
      for (const std::size_t i : order) ordered.push_back(std::move(loop->blocks[0].body[i]));
      loop->blocks[0].body = std::move(ordered);
    }
    return static_cast<int>(orders_.size());
  }

 private:
  // Loops within come first. Nothing is moved before all orders are known.
  void visit(ir::Block& block) {
    for (Operation& o : block.body) {
      for (ir::Block& inner : o.blocks) visit(inner);
      if (o.op == Op::for_loop) choose(o);
    }
  }

  void choose(Operation& loop) {
    const std::vector<Operation>& operations = loop.blocks[0].body;
    const auto products = std::count_if(operations.begin(), operations.end(),
                                        [](const Operation& o) { return o.op == Op::dot; });
    if (products < 2) return;
    const Body body(kernel_, operations);
    const Live live(kernel_, definitions_, loop, rows_);
    for (const Later later : {Later::as_early_as_possible, Later::as_written}) {
      Order order = Issue(body, later).order();
      const bool asked = kernel_.schedule.overlap.value_or(false);
      if (!asked && live.most(order) > analysis::registers_for_tiles(kernel_, rows_)) continue;
      if (!std::is_sorted(order.begin(), order.end()))
        orders_.emplace_back(&loop, std::move(order));
      return;
    }
  }

  ir::Kernel& kernel_;
  const Definitions definitions_;
  std::int64_t rows_ = 0;  // of the products' results
  std::vector<std::pair<Operation*, Order>> orders_;
};

}  // namespace

int issue_products(ir::Kernel& kernel) { return Issuing(kernel).run(); }

}  // namespace tilewright::passes
