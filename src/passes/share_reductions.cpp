#include "passes/share_reductions.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "passes/convert_layouts.h"
#include "passes/drop_conversions.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Mode;
using ir::ModeKind;
using ir::Op;
using ir::Operation;
using ir::RegisterLayout;
using ir::Type;
using ir::ValueId;

bool reduces(const Operation& o) {
  return o.op == Op::complete ||
         (o.op == Op::reduce && o.attributes.integer_or(Key::partial, 0) == 0);
}

// Whether the warps that a mode numbers hold parts of what the operation sums.
bool parted(const Operation& o, const Mode& mode) {
  if (mode.size == 1 || mode.kind == ModeKind::replicate) return false;
  return o.op == Op::complete ? mode.kind == ModeKind::partial
                              : mode.axis == o.attributes.integer(Key::axis);
}

class ReductionSharing {
 public:
  explicit ReductionSharing(ir::Kernel& kernel) : kernel_(kernel) {
    ir::for_each(kernel.body, [this](const Operation& o) {
      if (o.op != Op::named_sync && o.op != Op::named_arrive) return;
      const std::int64_t count = o.attributes.integer_or(Key::count, 1);
      next_barrier_ = std::max(next_barrier_, o.attributes.integer(Key::first) + count);
    });
  }

  void run() {
    for (Operation& role : kernel_.body.body) {
      if (role.op != Op::role) continue;
      const std::int64_t warps = role.attributes.integer(Key::warps);
      first_barriers_.clear();
      all_barrier_ = 0;
      together_.clear();
      conversions_.clear();
      ir::for_each(role.blocks[0], [&](Operation& o) {
        if (o.op == Op::convert) {
          if (!stays_in_lanes(kernel_, o)) convert(o, warps);
        } else {
          reduce(o, warps);
        }
      });
      for (const auto& [kind, conversions] : conversions_) place(kind.first, conversions);
    }
    kernel_.body.body.insert(kernel_.body.body.begin(), std::make_move_iterator(places_.begin()),
                             std::make_move_iterator(places_.end()));
  }

 private:
  void reduce(Operation& o, std::int64_t role_warps) {
    const auto exchange = warp_exchange(kernel_, o);
    if (!exchange) return;
    const std::int64_t groups = role_warps / exchange->written.warp_count();
    constexpr const char* kWhy = "reduce: the parts of its axis lie in several warps";
    constexpr const char* kFix = "use fewer named barriers, or reduce along the other axis";
    const std::int64_t together = exchange->groups;
    take_barrier(o, together > 1 ? 1 : groups,
                 together > 1 ? all_barrier_ : first_barriers_[groups], kWhy, kFix);
    const std::vector<std::int64_t> shape{together * exchange->parts, exchange->elements};
    const DType dtype = kernel_.type(o.results[0]).dtype;
    // Warpgroups may be in copies of a loop that passes have split: they meet in one place.
    if (together > 1) {
      const auto [at, fresh] = together_.emplace(std::make_pair(dtype, shape), ir::kNoValue);
      if (!fresh) return o.operands.push_back(at->second);
      add_place(o, "reduction", groups / together,
                ir::SharedLayout::row_major(shape, size_of(dtype)));
      at->second = o.operands.back();
      return;
    }
    add_place(o, "reduction", groups, ir::SharedLayout::row_major(shape, size_of(dtype)));
  }

  // Conversions follow each other, so that all of a role lie in the same memory. Only those of as
  // many groups of warps do, each of which waits for itself alone; and of single warps, which wait
  // for no others, those in which a warp has the same part of the memory.
  void convert(Operation& o, std::int64_t role_warps) {
    const Conversion made = conversion(kernel_, o);
    const std::int64_t groups = role_warps / made.written.warp_count();
    std::string part;
    if (made.within_warps) {
      RegisterLayout warps = made.written;
      warps.registers = warps.lanes = {};
      part = made.shared.to_string() + warps.to_string();
    } else {
      take_barrier(o, groups, first_barriers_[groups], "a tile changes places between warps",
                   "use fewer named barriers");
    }
    conversions_[{groups, part}].push_back(&o);
  }

  // Each group of warps has as much room as the largest of them takes.
  void place(std::int64_t groups, const std::vector<Operation*>& conversions) {
    std::int64_t most = 0;
    for (const Operation* o : conversions) {
      most = std::max(most, conversion(kernel_, *o).shared.size_bytes());
    }
    for (Operation* o : conversions) {
      const ir::SharedLayout shared = conversion(kernel_, *o).shared;
      const std::int64_t bytes = shared.size_bytes();
      add_place(*o, "conversion", (groups * most + bytes - 1) / bytes, shared);
      places_.back().attributes.set(Key::scratch, scratch_);
      o->attributes.set(Key::bytes, most);
    }
    ++scratch_;
  }

  // One for each group of warps that shares its tiles, or from `first` on if they are taken
  // already.
  void take_barrier(Operation& o, std::int64_t groups, std::int64_t& first, const std::string& why,
                    const char* fix) {
    if (first == 0) {
      first = next_barrier_;
      next_barrier_ += groups;
    }
    const std::int64_t barriers = target::target_of(kernel_).limits.named_barriers;
    if (next_barrier_ > barriers) {
      Diagnostic(o.where, why + ", which need a named barrier, and all " +
                              std::to_string(barriers - 1) + " are taken")
          .token(ir::info(o.op).name)
          .fix(fix)
          .raise();
    }
    o.attributes.set(Key::first, first);
  }

  void add_place(Operation& o, const char* name, std::int64_t groups,
                 const ir::SharedLayout& layout) {
    std::vector<std::int64_t> shape = layout.shape;
    shape.insert(shape.begin(), groups);
    Operation place;
    place.op = Op::shared;
    place.results = {kernel_.add_value(
        Type::of(Type::Kind::shared, kernel_.type(o.results[0]).dtype, std::move(shape)))};
    place.attributes = {{Key::name, name + std::to_string(places_.size())},
                        {Key::layout, layout},
                        {Key::stages, groups}};
    place.where = o.where;
    o.operands.push_back(place.results[0]);
    places_.push_back(std::move(place));
  }

  ir::Kernel& kernel_;
  std::vector<Operation> places_;
  std::int64_t next_barrier_ = 1;
  // Of this role, by how many groups of warps it makes; 0 while there is none.
  std::map<std::int64_t, std::int64_t> first_barriers_;
  std::int64_t all_barrier_ = 0;  // of all its warpgroups
  std::map<std::pair<DType, std::vector<std::int64_t>>, ValueId> together_;
  // Of this role, those that share memory: of so many groups of warps, and which part a warp has.
  std::map<std::pair<std::int64_t, std::string>, std::vector<Operation*>> conversions_;
  std::int64_t scratch_ = 1;  // the next one's number
};

}  // namespace

std::optional<WarpExchange> warp_exchange(const ir::Kernel& kernel, const Operation& o) {
  if (!reduces(o)) return std::nullopt;
  const RegisterLayout& source = kernel.type(o.operands[0]).layout;
  const RegisterLayout& result = kernel.type(o.results[0]).layout;
  WarpExchange exchange;
  exchange.groups = o.attributes.integer_or(Key::count, 1);
  std::vector<std::int64_t> stride(result.shape.size(), 1);  // in the row of the result's elements
  for (std::size_t axis = result.shape.size(); axis-- > 0;) {
    stride[axis] = exchange.elements;
    exchange.elements *= result.shape[axis];
  }
  const auto flat = [&](const std::vector<Mode>& modes) {
    std::vector<Mode> row;
    for (Mode mode : modes) {
      if (mode.kind == ModeKind::distribute) mode.stride *= stride[mode.axis];
      mode.axis = mode.kind == ModeKind::distribute ? 1 : 0;
      row.push_back(mode);
    }
    return row;
  };
  exchange.written.registers = exchange.read.registers = flat(result.registers);
  exchange.written.lanes = exchange.read.lanes = flat(result.lanes);
  for (const Mode& mode : source.warps) {
    const Mode same{mode.size, 0, 0, ModeKind::replicate};
    if (parted(o, mode)) {
      exchange.written.warps.push_back({mode.size, 0, exchange.parts, ModeKind::distribute});
      exchange.read.warps.push_back(same);
      exchange.parts *= mode.size;
      continue;
    }
    const Mode kept = mode.kind == ModeKind::distribute ? flat({mode})[0] : same;
    exchange.written.warps.push_back(kept);
    exchange.read.warps.push_back(kept);
  }
  const std::int64_t all = exchange.groups * exchange.parts;
  if (all == 1) return std::nullopt;
  exchange.read.registers.push_back({all, 0, 1, ModeKind::distribute});
  exchange.written.shape = {exchange.parts, exchange.elements};
  exchange.read.shape = {all, exchange.elements};
  return exchange;
}

void share_reductions(ir::Kernel& kernel) { ReductionSharing(kernel).run(); }

}  // namespace tilewright::passes
