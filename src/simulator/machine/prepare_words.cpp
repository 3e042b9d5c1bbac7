#include <algorithm>
#include <vector>

#include "simulator/machine/preparation.h"

// What kernels use words of global memory for.
namespace tilewright::simulator {
namespace {

using ir::Block;
using ir::Op;
using ir::Operation;
using ir::ValueId;

std::vector<int> count_uses(const ir::Kernel& kernel) {
  std::vector<int> uses(kernel.types.size());
  ir::for_each(kernel.body, [&](const Operation& operation) {
    for (const ValueId operand : operation.operands) {
      if (operand < uses.size()) ++uses[operand];
    }
  });
  return uses;
}

// What the block's own operations define; null: none of them.
const Operation* definition(const Block& block, ValueId value) {
  const auto found = std::find_if(block.body.begin(), block.body.end(), [&](const Operation& each) {
    return std::find(each.results.begin(), each.results.end(), value) != each.results.end();
  });
  return found == block.body.end() ? nullptr : &*found;
}

// The operation that is all that the block does but for arithmetic; null: there is none, or more.
const Operation* only_effect(const Block& block) {
  const Operation* effect = nullptr;
  for (const Operation& each : block.body) {
    if (each.op == Op::yield || ir::info(each.op).pure()) continue;
    if (effect) return nullptr;
    effect = &each;
  }
  return effect;
}

// Of the last of those who leave, who takes back what all have added:
//   %found = atomic_add %words, %at, %one
//   %is_last = eq %found, %last_finds
//   if_then %is_last () { atomic_add %words, %at, %back }
struct Leaving {
  const Operation* leave = nullptr;
  const Operation* take_back = nullptr;
  ValueId last_finds = ir::kNoValue;
};

Leaving leaving_at(const Block& block, const Operation& branch, const std::vector<int>& uses) {
  if (branch.op != Op::if_then || !branch.results.empty() || only_effect(branch.blocks[1]))
    return {};
  const Operation* const is_last = definition(block, branch.operands[0]);
  const Operation* const take_back = only_effect(branch.blocks[0]);
  if (!is_last || is_last->op != Op::eq || uses[branch.operands[0]] != 1) return {};
  if (!take_back || take_back->op != Op::atomic_add || uses[take_back->results[0]] != 0) return {};
  for (const int side : {0, 1}) {
    const Operation* const leave = definition(block, is_last->operands[side]);
    const ValueId last_finds = is_last->operands[1 - side];
    // Behind it in the block, so that the warp's next step at a word finds it still there.
    const bool comes_later = leave && definition(block, last_finds) > leave;
    if (!comes_later || leave->op != Op::atomic_add || uses[leave->results[0]] != 1) continue;
    const auto &words = leave->operands, &same = take_back->operands;
    if (std::equal(words.begin(), words.end() - 1, same.begin(), same.end() - 1)) {
      return {leave, take_back, last_finds};
    }
  }
  return {};
}

void find_leaving(const Block& block, const std::vector<int>& uses, std::vector<Leaving>& all) {
  for (const Operation& operation : block.body) {
    for (const Block& inner : operation.blocks) find_leaving(inner, uses, all);
    if (operation.op != Op::if_then) continue;
    if (const Leaving found = leaving_at(block, operation, uses); found.leave) all.push_back(found);
  }
}

}  // namespace

void Preparation::find_uses_of_words() {
  if (prepared_.words.empty()) return;
  const std::vector<int> uses = count_uses(kernel_);
  std::vector<Leaving> all;
  find_leaving(kernel_.body, uses, all);
  for (WordAccess& word : prepared_.words) {
    if (word.result == ir::kNoValue) continue;
    word.takes = uses[word.result] > 0;
    for (const Leaving& each : all) {
      word.takes_back = word.takes_back || each.take_back->results[0] == word.result;
      if (each.leave->results[0] == word.result) word.last_finds = each.last_finds;
    }
    word.takes = word.takes && word.last_finds == ir::kNoValue;
  }
}

}  // namespace tilewright::simulator
