#include "passes/buffers.h"

#include <numeric>

#include "analysis/interference.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Sharing {
 public:
  Sharing(const ir::Kernel& kernel, const ir::Block& role)
      : kernel_(kernel), interference_(kernel, role), parent_(kernel.types.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    members_.resize(kernel.types.size());
    for (ValueId id = 0; id < kernel.types.size(); ++id) members_[id] = {id};
    // What is in flight cannot be copied at all, and a copy of an accumulator costs most: products
    // that continue each other, then all products, before loops and conditions.
    for (const bool in_flight : {true, false}) {
      in_flight_ = in_flight;
      ir::for_each(role, [this](const Operation& o) { tie_products(o); });
      ir::for_each(role, [this](const Operation& o) { tie_control(o); });
    }
  }

  ValueId root(ValueId id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }

 private:
  void tie(ValueId a, ValueId b) {
    const ir::Type &x = kernel_.type(a), &y = kernel_.type(b);
    if (!Buffers::in_registers(x) || !Buffers::in_registers(y)) return;
    if (in_flight_ && !(x.is(ir::Type::Kind::pending) && y.is(ir::Type::Kind::pending))) return;
    if (x.dtype != y.dtype || x.layout.register_count() != y.layout.register_count()) return;
    a = root(a);
    b = root(b);
    if (a == b) return;
    for (const ValueId m : members_[a]) {
      for (const ValueId n : members_[b]) {
        if (interference_.between(m, n)) return;
      }
    }
    parent_[b] = a;
    members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
    members_[b].clear();
  }

  void tie_products(const Operation& o) {
    const ValueId accumulator = ir::accumulator_of(o);
    if (accumulator != ir::kNoValue) tie(accumulator, o.results[0]);
    if (o.op == Op::wait || o.op == Op::as_pending || o.op == Op::reshape || o.op == Op::complete) {
      tie(o.operands[0], o.results[0]);
    }
  }

  void tie_control(const Operation& o) {
    if (o.op == Op::if_then) {
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        for (const ir::Block& branch : o.blocks) tie(branch.body.back().operands[i], o.results[i]);
      }
    }
    if (o.op != Op::for_loop && o.op != Op::while_loop) return;
    const ir::Block& body = o.blocks[0];
    const std::size_t leading = o.op == Op::for_loop ? 3 : 1;
    const std::size_t extra = o.op == Op::while_loop ? 1 : 0;
    const std::size_t first = body.arguments.size() - o.results.size();
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      const ValueId argument = body.arguments[first + i];
      tie(argument, o.results[i]);
      tie(argument, body.body.back().operands[extra + i]);
      tie(argument, o.operands[leading + i]);
    }
  }

  const ir::Kernel& kernel_;
  analysis::Interference interference_;
  bool in_flight_ = false;  // only pending products are tied
  std::vector<ValueId> parent_;
  std::vector<std::vector<ValueId>> members_;
};

}  // namespace

Buffers::Buffers(const ir::Kernel& kernel, const ir::Block& role) {
  Sharing sharing(kernel, role);
  number_.assign(kernel.types.size(), -1);
  const auto place = [&](ValueId value) {
    if (!in_registers(kernel.type(value))) return;
    const ValueId root = sharing.root(value);
    if (number_[root] < 0) {
      number_[root] = static_cast<int>(representative_.size());
      representative_.push_back(root);
    }
    number_[value] = number_[root];
  };
  ir::for_each(role, [&](const Operation& o) {
    for (const ValueId result : o.results) place(result);
    for (const ir::Block& inner : o.blocks) {
      for (const ValueId argument : inner.arguments) place(argument);
    }
  });
}

}  // namespace tilewright::passes
