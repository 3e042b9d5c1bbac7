#include "schedules/shared_plan.h"

#include <algorithm>
#include <tuple>

#include "schedules/declared_maps.h"
#include "support/diagnostic.h"

namespace tilewright::schedules {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

// Of a CTA, where so many share what a multiprocessor has.
std::int64_t shared_bytes_of_cta(const TargetLimits& limits, int ctas) {
  return std::min(limits.shared_bytes,
                  limits.multiprocessor_shared_bytes / ctas - limits.reserved_shared_bytes);
}

constexpr std::int64_t kBarrierBytes = 1024;  // and what else is small
constexpr int kMostStages = 4;                // more bring nothing: docs/log
constexpr std::int64_t kVectorRows = 8;       // of shared memory, for one
constexpr std::int64_t kCopyAlignment = 128;  // bytes, of where a copy begins in shared memory

// Columns of a piece, and through how many buffers pieces go in turn. The best first: as many as a
// 128-byte swizzle spans. Without any, registers are stored as they lie.
constexpr SharedPlan::StagingSize kStagingSizes[] = {{64, 2}, {64, 1}, {32, 1}, {16, 1}, {0, 0}};

}  // namespace

std::map<ValueId, const Operation*> last_readers(const ir::Block& block) {
  std::map<ValueId, const Operation*> last;
  std::map<ValueId, ValueId> load_of;  // of a transposed tile, or a part of one, or of a stage
  ValueId stage = ir::kNoValue;        // the latest
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
    if (o.op == Op::load) {
      if (part_of_stage(o) == 0) stage = o.results[0];
      last[stage] = &o;
      if (stage != o.results[0]) load_of[o.results[0]] = stage;
    }
    if (o.op == Op::transpose || o.op == Op::slice) {
      const auto source = load_of.find(o.operands[0]);
      const ValueId load = source == load_of.end() ? o.operands[0] : source->second;
      if (last.count(load) != 0) load_of[o.results[0]] = load;
    }
  }
  return last;
}

SharedPlan::SharedPlan(const Placement& placement, std::int64_t reserved)
    : placement_(placement),
      reserved_(reserved),
      limit_(shared_bytes_of_cta(placement.limits, placement.ctas) - kBarrierBytes) {
  plan_rings(placement.kernel.body, 0);
  check_stages();
  for (const auto& [ring, held] : count_held(placement.kernel.body)) rings_[ring].held = held;
  plan_exchange(placement.kernel.body, {});
  const std::size_t exchanges = buffers_.size();
  const auto choose = [&](const StagingSize& size) {
    buffers_.resize(exchanges);
    plan_staging(size);
    return choose_stages();
  };
  // Staging gives way to a second stage of what loops load, of as many rings as that helps, and to
  // a first one of everything.
  const StagingSize* best = nullptr;
  std::int64_t most = -1;
  for (const StagingSize& size : kStagingSizes) {
    if (!choose(size) || loaded_ahead() <= most) continue;
    most = loaded_ahead();
    best = &size;
  }
  if (best != nullptr) {
    choose(*best);
    return;
  }
  // What is left behind is the smallest plan. The others may take less than was left to them.
  if (bytes() > limit_) refuse();
}

void SharedPlan::plan_rings(const ir::Block& block, int loops) {
  const auto last = last_readers(block);
  for (const Operation& o : block.body) {
    if (o.op == Op::load && part_of_stage(o) > 0) {
      ring_of_[o.results[0]] = ring_of_.at(placement_.leader_of(o.results[0]));
    } else if (o.op == Op::load && placement_.in_ring(o)) {
      ir::Type type = placement_.kernel.type(o.results[0]);
      const std::size_t parts = placement_.stage_of(o.results[0]).size();
      type.shape[0] *= static_cast<std::int64_t>(parts);
      if (type.shape.size() != 2) unfit(o, "a tile of other than two axes", "index axes away");
      // Held over a loop, it would stand in the way of the loop's own loads.
      const bool over_loop =
          std::any_of(last.at(o.results[0])->blocks.begin(), last.at(o.results[0])->blocks.end(),
                      [&](const ir::Block& inner) { return placement_.fills_rings(inner); });
      const Kind kind{o.operands[0], type.shape, over_loop ? loops : -1};
      const auto [at, fresh] = kinds_.emplace(kind, rings_.size());
      if (fresh) {
        RingPlan ring;
        ring.name = placement_.kernel.parameter_of(o.operands[0])->name;
        if (parts > 1) ring.name += "_x" + std::to_string(parts);
        ring.dtype = type.dtype;
        const bool begins_anywhere = type.shape[1] * size_of(type.dtype) % kCopyAlignment == 0;
        const bool fills_up = placement_.row_in_ring(o) && !begins_anywhere;
        ring.rows = static_cast<int>(fills_up ? kVectorRows : type.shape[0]);
        ring.columns = static_cast<int>(type.shape[1]);
        ring.where = o.where;
        rings_.push_back(ring);
      }
      rings_[at->second].in_loop |= loops > 0;
      rings_[at->second].in_products |= placement_.in_products(o.results[0]);
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
    if (o.op == Op::load && part_of_stage(o) == 0 && placement_.in_ring(o)) {
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

std::size_t SharedPlan::buffer(const Buffer& kind, const std::set<std::size_t>& taken) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& b = buffers_[i];
    const bool alike = b.name == kind.name && b.dtype == kind.dtype && b.rows == kind.rows &&
                       b.columns == kind.columns;
    if (alike && taken.count(i) == 0) return i;
  }
  buffers_.push_back(kind);
  return buffers_.size() - 1;
}

// `taken`: by the blocks around, which still read them.
void SharedPlan::plan_exchange(const ir::Block& block, std::set<std::size_t> taken) {
  const auto plan = [&](const std::vector<ValueId>& values, SourceLocation where) {
    for (const ValueId value : values) {
      if (!placement_.exchanged(value)) continue;
      const ir::Type& type = placement_.kernel.type(value);
      const bool vector = is_vector(type);
      const std::int64_t rows = vector ? kVectorRows : type.shape[0];
      const std::int64_t columns = vector ? type.elements() : type.shape[1];
      const std::size_t place = buffer({vector ? "vector" : "operand", type.dtype,
                                        static_cast<int>(rows), static_cast<int>(columns), where},
                                       taken);
      buffer_of_[value] = place;
      taken.insert(place);
    }
  };
  for (const Operation& o : block.body) {
    for (const ir::Block& inner : o.blocks) {
      const std::set<std::size_t> outside = taken;
      plan(inner.arguments, o.where);
      plan_exchange(inner, taken);
      taken = outside;
    }
    plan(o.results, o.where);
  }
}

// 16-bit rows of a matrix, clipped where the tensor ends, as TMA does it. Each warp sends rows of
// its own, which it is not sure to have where tiles are turned.
// What is declared to lie in some way is stored from there.
bool SharedPlan::declared(ir::ValueId value) const {
  const Operation* made = placement_.definitions[value];
  return made && is_declared(*made);
}

void SharedPlan::plan_staging(const StagingSize& size) {
  staging_.clear();
  if (placement_.turns() || size.buffers == 0) return;
  const std::size_t first = buffers_.size();
  bool in_turn = true;  // the buffers, from store to store
  ir::for_each(placement_.kernel.body, [&](const Operation& o) {
    if (o.op != Op::store) return;
    const ir::Type& type = placement_.kernel.type(o.operands[1]);
    if (size_of(type.dtype) != 2 || type.shape.size() != 2 || type.shape[0] != placement_.rows ||
        type.shape[1] % 16 != 0 || o.attributes.integers(Key::sizes).back() == 0 ||
        placement_.turned_in_registers(o.operands[1]) || declared(o.operands[1]) ||
        !placement_.extents.clips_boxes(o) || placement_.memory.read_back(o) ||
        !placement_.copies_rows(*placement_.kernel.parameter_of(o.operands[0]))) {
      return;
    }
    // Of tiles that are spread by columns each warpgroup stages its own.
    const std::int64_t own =
        type.shape[1] / (type.shape[1] == placement_.wide ? placement_.groups : 1);
    Staging staging;
    for (staging.columns = size.columns; own % staging.columns != 0;) staging.columns /= 2;
    staging.pieces = static_cast<int>(own) / staging.columns;
    const int count = std::min(staging.pieces, size.buffers);
    std::set<std::size_t> taken;
    for (int i = 0; i < count; ++i) {
      staging.buffers.push_back(
          buffer({"staging", type.dtype, placement_.groups * placement_.group_rows, staging.columns,
                  o.where},
                 taken));
      taken.insert(staging.buffers.back());
    }
    in_turn &= staging.pieces % count == 0;
    staging_[&o] = staging;
  });
  for (auto& [store, staging] : staging_) {
    in_turn &= staging.buffers.size() == buffers_.size() - first;
  }
  // The next store begins where the one before ended: at the buffer that waited longest.
  for (auto& [store, staging] : staging_) {
    staging.in_flight = in_turn ? static_cast<int>(staging.buffers.size()) - 1 : 0;
  }
}

const SharedPlan::Staging* SharedPlan::staging_of(const Operation& store) const {
  const auto at = staging_.find(&store);
  return at == staging_.end() ? nullptr : &at->second;
}

// How many of the loops' rings are loaded while what came before is read.
std::int64_t SharedPlan::loaded_ahead() const {
  return std::count_if(rings_.begin(), rings_.end(), [](const RingPlan& ring) {
    return ring.in_loop && ring.stages > ring.held;
  });
}

std::int64_t SharedPlan::bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : buffers_) bytes += buffer.bytes();
  for (const RingPlan& ring : rings_) bytes += ring.stages * ring.stage_bytes();
  return bytes;
}

// A field for which there is nothing to load in stages.
void SharedPlan::check_stages() const {
  const ScheduleField<int>& stages = placement_.kernel.schedule.stages;
  const bool any =
      std::any_of(rings_.begin(), rings_.end(), [](const RingPlan& ring) { return ring.in_loop; });
  if (any || !stages.is_set()) return;
  refused("stages", stages,
          "no loop of \"" + placement_.kernel.name +
              "\" loads tiles to shared memory, as it does for products")
      .fix("leave it out")
      .raise();
}

// With which the loops' rings fit beside all else; 0 where one does not.
std::int64_t SharedPlan::most_stages() const {
  std::int64_t others = bytes(), each = 0;
  for (const RingPlan& ring : rings_) {
    if (!ring.in_loop) continue;
    others -= ring.stages * ring.stage_bytes();
    each += ring.held * ring.stage_bytes();
  }
  return each == 0 || others > limit_ ? 0 : (limit_ - others) / each;
}

std::string SharedPlan::stages_text() const {
  std::string text;
  for (const RingPlan& ring : rings_) {
    if (!ring.in_loop) continue;
    text += (text.empty() ? "" : ", ") + ring.name + " " + std::to_string(ring.stages);
  }
  return text.empty() ? "none: no loop loads tiles to shared memory" : text;
}

void SharedPlan::refuse() const {
  const Schedule& stated = placement_.kernel.schedule;
  const std::string why = "tiles of " + std::to_string(bytes()) + " bytes, a CTA has " +
                          std::to_string(limit_) + " bytes of shared memory";
  const std::int64_t most = most_stages();
  if (stated.stages.is_set() && most > 0) {
    refuse_with(refused("stages", stated.stages, why),
                "state at most " + std::to_string(most) + ", or take smaller blocks" +
                    (placement_.ctas > 1 ? " or fewer CTAs" : ""));
  }
  if (placement_.ctas > 1) {
    refuse_with(refused("ctas", stated.ctas, why),
                "state fewer" + std::string(stated.stages.is_set() ? ", or fewer stages" : "") +
                    ", or take smaller blocks");
  }
  refuse_with(
      Diagnostic(placement_.kernel.where, "schedule for " + placement_.kernel.target + ": " + why),
      "take smaller blocks");
}

void SharedPlan::refuse_with(Diagnostic error, const std::string& fix) const {
  for (const RingPlan& ring : rings_) {
    error.note(ring.where, "\"" + ring.name + "\": " + std::to_string(ring.stages) + " x " +
                               std::to_string(ring.stage_bytes()) + " bytes");
  }
  for (const Buffer& buffer : buffers_) {
    error.note(buffer.where, "\"" + buffer.name + "\": " + std::to_string(buffer.bytes()) +
                                 " bytes, written and read again");
  }
  error.fix(fix).raise();
}

// What the schedule states for loops. Else first a stage that is loaded while another is read, for
// loops and then across tiles; then more for loops. Whether all of it fits.
bool SharedPlan::choose_stages() {
  const ScheduleField<int>& stated = placement_.kernel.schedule.stages;
  for (RingPlan& ring : rings_) {
    ring.stages = ring.held * (ring.in_loop ? stated.value_or(1) : 1);
  }
  const std::int64_t limit = limit_ - reserved_;
  if (bytes() > limit) return false;
  const auto grow = [&](bool in_loop, int most) {
    for (RingPlan& ring : rings_) {
      const bool chosen = in_loop && stated.is_set();
      if (ring.in_loop != in_loop || chosen || ring.stages >= most * ring.held) continue;
      ++ring.stages;
      if (bytes() > limit) --ring.stages;
    }
  };
  grow(true, 2);
  grow(false, 2);
  for (int stages = 3; stages <= kMostStages; ++stages) grow(true, stages);
  return true;
}

}  // namespace tilewright::schedules
