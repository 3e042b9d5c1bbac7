#include "schedules/shared_plan.h"

#include <algorithm>
#include <tuple>

#include "support/diagnostic.h"

namespace tilewright::schedules {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

constexpr std::int64_t kSharedBytes = 232448 - 1024;  // of a CTA, less barriers
constexpr int kMostStages = 4;                        // more bring nothing: docs/performance.md

}  // namespace

std::map<ValueId, const Operation*> last_readers(const ir::Block& block) {
  std::map<ValueId, const Operation*> last;
  std::map<ValueId, ValueId> load_of;  // of a transposed tile, or a part of one
  const auto read = [&](const Operation& by, const Operation& o) {
    for (const ValueId operand : o.operands) {
      const auto source = load_of.find(operand);
      const auto at = last.find(source == load_of.end() ? operand : source->second);
      if (at != last.end()) at->second = &by;
    }
  };
  for (const Operation& o : block.body) {
    read(o, o);
    for (const ir::Block& inner : o.blocks) {
      ir::for_each(inner, [&](const Operation& nested) { read(o, nested); });
    }
    if (o.op == Op::load) last[o.results[0]] = &o;
    if (o.op == Op::transpose || o.op == Op::slice) {
      const auto source = load_of.find(o.operands[0]);
      const ValueId load = source == load_of.end() ? o.operands[0] : source->second;
      if (last.count(load) != 0) load_of[o.results[0]] = load;
    }
  }
  return last;
}

SharedPlan::SharedPlan(const Placement& placement, const analysis::Extents& extents)
    : placement_(placement) {
  plan_rings(placement.kernel.body, 0);
  for (const auto& [ring, held] : count_held(placement.kernel.body)) rings_[ring].held = held;
  plan_staging(placement, extents);
  for (ValueId value = 0; value < placement.kernel.types.size(); ++value) {
    const ir::Type& type = placement.kernel.type(value);
    if (placement.exchanged(value)) other_bytes_ += type.elements() * size_of(type.dtype);
  }
  choose_stages();
}

void SharedPlan::plan_rings(const ir::Block& block, int loops) {
  const auto last = last_readers(block);
  for (const Operation& o : block.body) {
    if (o.op == Op::load && placement_.in_ring(o)) {
      const ir::Type& type = placement_.kernel.type(o.results[0]);
      if (type.shape.size() != 2) unfit(o, "a tile of other than two axes", "index axes away");
      // Held over a loop, it would stand in the way of the loop's own loads.
      const bool over_loop =
          std::any_of(last.at(o.results[0])->blocks.begin(), last.at(o.results[0])->blocks.end(),
                      [](const ir::Block& inner) { return has_loads(inner); });
      const Kind kind{o.operands[0], type.shape, over_loop ? loops : -1};
      const auto [at, fresh] = kinds_.emplace(kind, rings_.size());
      if (fresh) {
        RingPlan ring;
        ring.name = placement_.kernel.parameter_of(o.operands[0])->name;
        ring.dtype = type.dtype;
        ring.rows = static_cast<int>(type.shape[0]);
        ring.columns = static_cast<int>(type.shape[1]);
        ring.where = o.where;
        rings_.push_back(ring);
      }
      rings_[at->second].in_loop |= loops > 0;
      ring_of_[o.results[0]] = at->second;
    }
    const bool loop = o.op == Op::for_loop || o.op == Op::while_loop;
    for (const ir::Block& inner : o.blocks) plan_rings(inner, loops + loop);
  }
}

// How many stages of each ring are held at once somewhere in the block.
std::map<std::size_t, int> SharedPlan::count_held(const ir::Block& block) {
  const auto last = last_readers(block);
  std::map<std::size_t, int> now, most;
  std::map<const Operation*, std::vector<ValueId>> ends;
  for (const auto& [load, reader] : last) {
    if (ring_of_.count(load) != 0) ends[reader].push_back(load);
  }
  for (const Operation& o : block.body) {
    if (o.op == Op::load && placement_.in_ring(o)) {
      const std::size_t ring = ring_of_.at(o.results[0]);
      most[ring] = std::max(most[ring], ++now[ring]);
    }
    for (const ir::Block& inner : o.blocks) {
      for (const auto& [ring, held] : count_held(inner)) {
        most[ring] = std::max(most[ring], now[ring] + held);
      }
    }
    for (const ValueId load : ends[&o]) --now[ring_of_.at(load)];
  }
  return most;
}

// 16-bit rows of a matrix, clipped where the tensor ends, as TMA does it; in pieces of the columns
// that a 128-byte swizzle spans, through two buffers in turn.
void SharedPlan::plan_staging(const Placement& placement, const analysis::Extents& extents) {
  ir::for_each(placement.kernel.body, [&](const Operation& o) {
    if (o.op != Op::store) return;
    const ir::Type& type = placement.kernel.type(o.operands[1]);
    if (size_of(type.dtype) != 2 || type.shape.size() != 2 || type.shape[0] != placement.rows ||
        type.shape[1] % 16 != 0 || o.attributes.integers(Key::sizes).back() == 0 ||
        !extents.ends_with_tensor(o)) {
      return;
    }
    // Of tiles that are spread by columns each warpgroup stages its own.
    const std::int64_t own =
        type.shape[1] / (type.shape[1] == placement.wide ? placement.groups : 1);
    Staging staging;
    for (const int columns : {64, 32, 16}) {
      if (staging.columns == 0 && own % columns == 0) staging.columns = columns;
    }
    staging.rows = placement.groups * kGroupRows;
    staging.pieces = static_cast<int>(own) / staging.columns;
    staging.buffers = std::min(staging.pieces, 2);
    staging_[&o] = staging;
    other_bytes_ += std::int64_t{staging.buffers} * staging.columns * staging.rows * 2;
  });
  // With one such store the buffers take turns from tile to tile.
  if (staging_.size() != 1) return;
  Staging& only = staging_.begin()->second;
  only.in_flight = only.pieces % only.buffers == 0 ? only.buffers - 1 : 0;
}

const SharedPlan::Staging* SharedPlan::staging_of(const Operation& store) const {
  const auto at = staging_.find(&store);
  return at == staging_.end() ? nullptr : &at->second;
}

std::int64_t SharedPlan::bytes() const {
  std::int64_t bytes = other_bytes_;
  for (const RingPlan& ring : rings_) bytes += ring.stages * ring.stage_bytes();
  return bytes;
}

// First a stage that is loaded while another is read, for loops and then across tiles; then more
// for loops.
void SharedPlan::choose_stages() {
  for (RingPlan& ring : rings_) ring.stages = ring.held;
  if (bytes() > kSharedBytes) {
    Diagnostic error(placement_.kernel.where, "schedule for sm_90a: tiles of " +
                                                  std::to_string(bytes()) + " bytes, a CTA has " +
                                                  std::to_string(kSharedBytes) +
                                                  " bytes of shared memory");
    for (const RingPlan& ring : rings_) {
      error.note(ring.where, "\"" + ring.name + "\": " + std::to_string(ring.stages) + " x " +
                                 std::to_string(ring.stage_bytes()) + " bytes");
    }
    error.fix("take smaller blocks").raise();
  }
  const auto grow = [&](bool in_loop, int most) {
    std::vector<RingPlan> before = rings_;
    for (RingPlan& ring : rings_) {
      if (ring.in_loop == in_loop && ring.stages < most * ring.held) ++ring.stages;
    }
    if (bytes() > kSharedBytes) rings_ = std::move(before);
  };
  grow(true, 2);
  grow(false, 2);
  for (int stages = 3; stages <= kMostStages; ++stages) grow(true, stages);
}

}  // namespace tilewright::schedules
