#include "analysis/interference.h"

#include "analysis/carried.h"

namespace tilewright::analysis {

using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

// Whether the result may lie where an operand of the same type lay: each register is read before it
// is written. What a product reads while it runs is live until it is waited for.
bool in_place(const Operation& o) {
  const ir::OpInfo& record = ir::info(o.op);
  return record.elementwise() || record.is_asynchronous_product() || o.op == Op::wait ||
         o.op == Op::as_pending || o.op == Op::complete;
}

}  // namespace

Interference::Interference(const ir::Kernel& kernel, const ir::Block& block)
    : kernel_(kernel), operands_(kernel, block) {
  Live live;
  walk(block, live);
}

bool Interference::tracked(ValueId value) const {
  return kernel_.type(value).is_tile() || kernel_.type(value).is(ir::Type::Kind::pending);
}

void Interference::add(ValueId a, ValueId b) {
  if (finds_edges_ && a != b) graph_.insert({a < b ? a : b, a < b ? b : a});
}

void Interference::define(ValueId value, const Live& live) {
  if (!finds_edges_ || !tracked(value)) return;
  for (const ValueId other : live) add(value, other);
}

void Interference::loop(const Operation& o, Live& live) {
  const Carried c = carried(o);
  const ir::Block& body = o.blocks[0];
  for (const ValueId result : o.results) live.erase(result);
  for (const ValueId result : o.results) define(result, live);
  // What the body needs at its end includes what its next round needs at its start.
  Live end = live;
  const auto yields = [&](Live& set) {
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      const ValueId yielded = body.body.back().operands[c.extra + i];
      if (tracked(yielded)) set.insert(yielded);
    }
  };
  yields(end);
  const auto at_start = [&] {
    Live start = end;
    walk(body, start);
    for (const ValueId argument : body.arguments) start.erase(argument);
    return start;
  };
  // One round finds what is live. Edges take a second one, once what is live is known:
  // loops inside each other would be walked 2^depth times.
  const bool outer = std::exchange(finds_edges_, false);
  Live start = at_start();
  finds_edges_ = outer;
  if (finds_edges_) {
    end.insert(start.begin(), start.end());
    start = at_start();
  }
  for (const ValueId argument : body.arguments) {
    define(argument, start);
    for (const ValueId other : body.arguments) {
      if (tracked(argument) && tracked(other)) add(argument, other);
    }
  }
  // Around the loop, also where it does not run, results take the initial values.
  live = start;
  for (std::size_t i = 0; i < o.results.size(); ++i) {
    const ValueId initial = o.operands[c.leading + i];
    if (tracked(initial)) live.insert(initial);
  }
}

void Interference::walk(const ir::Block& block, Live& live) {
  for (auto at = block.body.rbegin(); at != block.body.rend(); ++at) {
    const Operation& o = *at;
    if (o.op == Op::yield) continue;  // the enclosing operation counts these uses
    if (o.op == Op::for_loop || o.op == Op::while_loop) {
      loop(o, live);
      continue;
    }
    if (o.op == Op::if_then) {
      for (const ValueId result : o.results) live.erase(result);
      for (const ValueId result : o.results) define(result, live);
      for (const ValueId a : o.results) {
        for (const ValueId b : o.results) {
          if (tracked(a) && tracked(b)) add(a, b);
        }
      }
      Live all;
      for (const ir::Block& branch : o.blocks) {
        Live own = live;
        for (const ValueId yielded : branch.body.back().operands) {
          if (tracked(yielded)) own.insert(yielded);
        }
        walk(branch, own);
        all.insert(own.begin(), own.end());
      }
      live = std::move(all);
      continue;
    }
    for (const ir::Block& inner : o.blocks) walk(inner, live);
    for (const ValueId result : o.results) live.erase(result);
    for (const ValueId result : o.results) {
      define(result, live);
      if (!tracked(result)) continue;
      for (std::size_t i = 0; i < o.operands.size(); ++i) {
        const ValueId operand = o.operands[i];
        if (!tracked(operand)) continue;
        const bool same = kernel_.type(operand).shape == kernel_.type(result).shape &&
                          kernel_.type(operand).dtype == kernel_.type(result).dtype;
        if (!in_place(o) || !same) add(result, operand);
      }
    }
    // Retiring only waits: the product's registers may by then hold a later product.
    if (o.op == Op::wait || o.op == Op::retire) {
      const std::set<ValueId>& operands = operands_.of(o.operands[0]);
      live.insert(operands.begin(), operands.end());
    }
    if (o.op == Op::retire) continue;
    for (const ValueId operand : o.operands) {
      if (tracked(operand)) live.insert(operand);
    }
  }
}

}  // namespace tilewright::analysis
