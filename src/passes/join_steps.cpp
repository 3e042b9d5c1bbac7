#include "passes/join_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analysis/numbered_blocks.h"
#include "ir/builder.h"
#include "ir/cloner.h"

namespace tilewright::passes {
namespace {

using ir::Builder;
using ir::Cloner;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

using Steps = analysis::NumberedSteps;

constexpr std::size_t kCarriedOfLoop = 3;  // behind low, high and step

class JoiningSteps {
 public:
  explicit JoiningSteps(ir::Kernel& kernel) : kernel_(kernel) {}

  int run() {
    visit(kernel_.body);
    return count_;
  }

 private:
  void visit(ir::Block& block) {
    for (Operation& o : block.body) {
      for (ir::Block& inner : o.blocks) visit(inner);
    }
    const bool any = std::any_of(block.body.begin(), block.body.end(),
                                 [](const Operation& o) { return o.op == Op::for_loop; });
    if (!any) return;
    const analysis::FindNumberedSteps find(kernel_);
    const std::vector<Operation>& old = block.body;
    ir::Block fresh{block.arguments, {}};
    for (std::size_t i = 0; i < old.size(); ++i) {
      const bool may = old[i].op == Op::for_loop && is_smallest(old, old[i]);
      const Steps steps = may ? find.of(old[i]) : Steps{};
      if (steps.together > 1) {
        definitions_ = find.definitions();
        join(fresh, old[i], steps);
        ++count_;
      } else {
        fresh.body.push_back(old[i]);
      }
    }
    block = std::move(fresh);
  }

  // Of the loops that one loop has become.
  static bool is_smallest(const std::vector<Operation>& operations, const Operation& loop) {
    return std::none_of(operations.begin(), operations.end(), [&](const Operation& o) {
      return o.op == Op::for_loop && o.where.file == loop.where.file &&
             o.where.line == loop.where.line && size_of(o) < size_of(loop);
    });
  }

  static int size_of(const Operation& loop) {
    int size = 0;
    ir::for_each(loop.blocks[0], [&](const Operation&) { ++size; });
    return size;
  }

  // Steps of `together` each, where there are as many, and what is left.
  void join(ir::Block& block, const Operation& loop, const Steps& steps) {
    Builder at(kernel_, block, loop.where);
    const ValueId low = loop.operands[0], high = loop.operands[1];
    const ValueId together = at.constant(steps.together);
    const ValueId all = at.binary(Op::max, at.binary(Op::sub, high, low), at.constant(0));
    const ValueId end =
        at.binary(Op::add, low, at.binary(Op::mul, at.binary(Op::div, all, together), together));
    const std::vector<ValueId> first(loop.operands.begin() + kCarriedOfLoop, loop.operands.end());
    // No number is loaded for steps that there are not.
    const std::vector<ValueId> carried = at.if_then(
        at.binary(Op::lt, low, end),
        [&](Builder& then) { return joined(then, loop, steps, end, first); },
        [&](Builder&) { return first; });
    Operation rest = loop;
    rest.operands[0] = end;
    std::copy(carried.begin(), carried.end(), rest.operands.begin() + kCarriedOfLoop);
    block.body.push_back(std::move(rest));
  }

  std::vector<ValueId> joined(Builder& at, const Operation& loop, const Steps& steps, ValueId end,
                              const std::vector<ValueId>& first) {
    const ValueId last = at.binary(Op::sub, end, at.constant(1));
    std::vector<ValueId> initial = first;
    for (int k = 0; k < steps.together; ++k) {
      const ValueId index = at.binary(Op::add, loop.operands[0], at.constant(k));
      append(initial, numbers_of(at, loop, steps, index));
    }
    std::vector<ValueId> results =
        at.for_loop(loop.operands[0], end, at.constant(steps.together), initial,
                    [&](Builder& body, ValueId index, const std::vector<ValueId>& carried) {
                      return body_of(body, loop, steps, index, last, carried);
                    });
    results.resize(first.size());
    return results;
  }

  static void append(std::vector<ValueId>& to, const std::vector<ValueId>& values) {
    to.insert(to.end(), values.begin(), values.end());
  }

  // Copies what of the loop's scalars the values are computed from.
  void copy_scalars(Builder& at, const Operation& loop, const Steps& steps,
                    std::vector<ValueId> values, Cloner& cloner) const {
    std::set<const Operation*> needed;
    while (!values.empty()) {
      const Operation* made = definitions_[values.back()];
      const bool is_bound = cloner(values.back()) != values.back();
      values.pop_back();
      if (!made || is_bound || steps.scalars.count(made) == 0 || !needed.insert(made).second) {
        continue;
      }
      append(values, made->operands);
    }
    for (const Operation& o : loop.blocks[0].body) {
      if (needed.count(&o) != 0) at.block().body.push_back(cloner.copy(o));
    }
  }

  // The numbers that the step with this index loads.
  std::vector<ValueId> numbers_of(Builder& at, const Operation& loop, const Steps& steps,
                                  ValueId index) {
    Cloner cloner(kernel_);
    cloner.bind(loop.blocks[0].arguments[0], index);
    std::vector<ValueId> numbers;
    for (const Operation* number : steps.numbers) append(numbers, number->results);
    copy_scalars(at, loop, steps, numbers, cloner);
    return cloner(numbers);
  }

  std::vector<ValueId> body_of(Builder& at, const Operation& loop, const Steps& steps,
                               ValueId index, ValueId last, const std::vector<ValueId>& carried) {
    const ir::Block& body = loop.blocks[0];
    const std::size_t results = body.arguments.size() - 1;
    std::vector<Cloner> copies;  // of which nothing but indices and numbers is known
    for (int k = 0; k < steps.together; ++k) {
      Cloner& own = copies.emplace_back(kernel_);
      own.bind(body.arguments[0], at.binary(Op::add, index, at.constant(k)));
      for (std::size_t n = 0; n < steps.numbers.size(); ++n) {
        own.bind(steps.numbers[n]->results[0],
                 carried[results + static_cast<std::size_t>(k) * steps.numbers.size() + n]);
      }
    }
    const std::set<const Operation*> loads(steps.loads.begin(), steps.loads.end());
    std::map<const Operation*, std::vector<ValueId>> loaded;
    std::vector<ValueId> values(carried.begin(),
                                carried.begin() + static_cast<std::ptrdiff_t>(results));
    for (std::size_t k = 0; k < copies.size(); ++k) {
      Cloner own = copies[k];
      for (std::size_t i = 0; i < results; ++i) own.bind(body.arguments[1 + i], values[i]);
      for (const Operation& o : body.body) {
        if (loads.count(&o) != 0) {
          if (k == 0) loaded[&o] = load_stage(at, loop, steps, o, copies);
          own.bind(o.results[0], loaded[&o][k]);
        } else if (o.op == Op::yield) {
          values = own(o.operands);
        } else if (o.results.empty() || own(o.results[0]) == o.results[0]) {
          at.block().body.push_back(own.copy(o));
        }
      }
    }
    // A step whose numbers are loaded ahead is one of the loop's: none behind the last is read.
    for (int k = 0; k < steps.together; ++k) {
      const ValueId next = at.binary(Op::add, index, at.constant(steps.together + k));
      append(values, numbers_of(at, loop, steps, at.binary(Op::min, next, last)));
    }
    return values;
  }

  // The block of each step, one behind the other.
  std::vector<ValueId> load_stage(Builder& at, const Operation& loop, const Steps& steps,
                                  const Operation& load, std::vector<Cloner> copies) const {
    for (Cloner& own : copies) copy_scalars(at, loop, steps, load.operands, own);
    const auto count = static_cast<std::int64_t>(copies.size());
    std::vector<ValueId> results;
    for (std::int64_t k = 0; k < count; ++k) {
      Operation part = copies[static_cast<std::size_t>(k)].copy(load);
      part.attributes.set(Key::joined, std::vector<std::int64_t>{k, count});
      append(results, part.results);
      at.block().body.push_back(std::move(part));
    }
    return results;
  }

  ir::Kernel& kernel_;
  std::vector<const Operation*> definitions_;
  int count_ = 0;
};

}  // namespace

int join_steps(ir::Kernel& kernel) { return JoiningSteps(kernel).run(); }

}  // namespace tilewright::passes
