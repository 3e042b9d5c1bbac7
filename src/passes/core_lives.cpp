#include "passes/core_lives.h"

#include <algorithm>
#include <utility>

#include "ir/core_window.h"

namespace tilewright::passes {

using ir::Block;
using ir::Key;
using ir::Op;
using ir::Operation;

namespace {

bool holds(const std::vector<const Block*>& blocks, const Block* block) {
  return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
}

std::vector<const Block*> common(const std::vector<const Block*>& a,
                                 const std::vector<const Block*>& b) {
  std::size_t count = 0;
  while (count < a.size() && count < b.size() && a[count] == b[count]) ++count;
  return {a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

CoreLives::CoreLives(const ir::Kernel& kernel, const target::Core& core)
    : kernel_(kernel), core_(core) {
  walk(kernel.body, {});
  for (const Operation& o : kernel.body.body) {
    if (o.op == Op::memory) begin_and_end(o, accesses_[o.results[0]]);
  }
}

void CoreLives::walk(const Block& block, std::vector<const Block*> blocks) {
  blocks.push_back(&block);
  for (const Operation& o : block.body) {
    const Place place{blocks, count_++};
    if (o.op == Op::window) windows_[o.results[0]] = &o;
    if (o.op == Op::unit_barrier) barriers_[o.attributes.text(Key::unit)].push_back(place);
    note(o, place);
    for (const Block& inner : o.blocks) {
      owners_[&inner] = &o;
      walk(inner, blocks);
    }
    ends_[&o] = count_ - 1;
  }
}

void CoreLives::note(const Operation& o, const Place& place) {
  std::map<ir::ValueId, Access> own;
  for (std::size_t i = 0; i < o.operands.size(); ++i) {
    const auto window = windows_.find(o.operands[i]);
    if (window == windows_.end()) continue;
    const ir::ValueId memory = window->second->operands[0];
    Access& access = own.try_emplace(memory, Access{&o, place}).first->second;
    const bool writes = i == 0 && o.op != Op::core_store;
    access.reads = access.reads || !writes;
    if (!writes) continue;
    // A load leaves what does not exist as it was, and a product may add.
    const ir::Type &whole = kernel_.type(memory), &part = kernel_.type(o.operands[0]);
    const ir::Extent2 lying = ir::lying_extent(part);
    access.fills = o.op != Op::core_load && o.op != Op::core_matmul && whole.shape[0] == 1 &&
                   lying == ir::Extent2{whole.shape[1], whole.shape[2]};
  }
  for (auto& [memory, access] : own) accesses_[memory].push_back(std::move(access));
}

void CoreLives::begin_and_end(const Operation& memory, const std::vector<Access>& accesses) {
  Life& life = lives_[&memory];
  if (accesses.empty()) return;
  life.blocks = accesses.front().place.blocks;
  const std::string& unit = accesses.front().operation->attributes.text(Key::unit);
  for (const Access& each : accesses) {
    if (each.operation->attributes.text(Key::unit) != unit) return;
    life.blocks = common(life.blocks, each.place.blocks);
  }
  // The first one stands beside all that follow, so that no turn and no way comes without it.
  const Access& first = accesses.front();
  if (first.place.blocks != life.blocks || !first.fills || first.reads) return;
  life.unit = unit;
  life.first = first.place.number;
  // What is used inside of an operation beside it is needed until that is over: it may be a loop.
  const Place& last = accesses.back().place;
  life.last = last.blocks.size() == life.blocks.size()
                  ? last.number
                  : ends_.at(owners_.at(last.blocks[life.blocks.size()]));
}

// In each turn of a loop around both, and then again in the next one, unless the unit waits for its
// own results by itself.
bool CoreLives::comes_before(const Life& a, const Life& b) const {
  if (a.last >= b.first) return false;
  if (core_.unit(a.unit)->orders_itself) return true;
  const auto barriers = barriers_.find(a.unit);
  if (barriers == barriers_.end()) return false;
  const std::vector<const Block*> both = common(a.blocks, b.blocks);
  const Block* turns = nullptr;  // of the innermost loop around both
  for (const Block* block : both) {
    const auto owner = owners_.find(block);
    if (owner == owners_.end()) continue;
    const Op op = owner->second->op;
    if (op == Op::for_loop || op == Op::while_loop) turns = block;
  }
  const auto any = [&](const auto& stands) {
    return std::any_of(barriers->second.begin(), barriers->second.end(), [&](const Place& each) {
      return holds(both, each.blocks.back()) && stands(each);
    });
  };
  const bool between =
      any([&](const Place& each) { return each.number > a.last && each.number < b.first; });
  const bool again =
      turns == nullptr || any([&](const Place& each) {
        return holds(each.blocks, turns) && (each.number > b.last || each.number < a.first);
      });
  return between && again;
}

bool CoreLives::may_share(const Operation& a, const Operation& b) const {
  const Life &one = lives_.at(&a), &other = lives_.at(&b);
  if (one.unit.empty() || one.unit != other.unit) return false;
  return comes_before(one, other) || comes_before(other, one);
}

}  // namespace tilewright::passes
