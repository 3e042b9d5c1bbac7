#include "schedules/row_spread.h"

#include <algorithm>
#include <string>
#include <utility>

#include "schedules/declared_maps.h"
#include "schedules/placement.h"

namespace tilewright::schedules {
namespace {

using ir::Op;
using ir::Operation;
using ir::RegisterLayout;

// A CTA of so many warps, whose threads may have so many registers and hold so many elements of one
// tile beside what goes with it.
struct Size {
  int warps, registers;
  std::int64_t elements;
};
constexpr int kMostRegisters = 248;
constexpr int kUsualWarps[] = {4, 8, 16};
// What leaves room for several tiles and several CTAs.
constexpr std::int64_t kFewElements = 32;
constexpr int kOwnRegisters = 24;  // of a thread, for all but tiles
constexpr int kFewRegisters = 128;

// Tiles have half of what addresses and sums leave.
Size size_of_cta(const TargetLimits& limits, int warps, int ctas) {
  const int share = launch_registers(limits, limits.lanes * warps * ctas);
  const int registers = std::min(kMostRegisters, share / 8 * 8);
  return {warps, registers, (registers - kOwnRegisters) / 16 * 8};
}

bool fits(const TargetLimits& limits, const Size& size, int ctas) {
  return limits.lanes * size.warps * ctas <= limits.multiprocessor_threads &&
         size.registers >= limits.least_role_registers;
}

// Those that the schedule states, or that maps are declared for, or all that the compiler chooses
// among.
std::vector<Size> sizes_of(const ir::Kernel& kernel) {
  const TargetLimits& limits = target::target_of(kernel).limits;
  const ScheduleField<int>& stated = kernel.schedule.warpgroups;
  const int ctas = kernel.schedule.ctas.value_or(1);
  std::vector<Size> sizes;
  if (stated.is_set()) {
    const int groups = stated.value();
    if ((groups & (groups - 1)) != 0) {
      refused("warpgroups", stated, "rows and columns are shared out among a power of two of warps")
          .fix("state 1, 2, 4 or 8")
          .raise();
    }
    sizes.push_back(size_of_cta(limits, groups * target::kGroupWarps, ctas));
  } else if (const std::int64_t warps = declared_warps(kernel); warps != 0) {
    sizes.push_back(size_of_cta(limits, static_cast<int>(warps), ctas));
  } else {
    for (const int warps : kUsualWarps) {
      const Size size = size_of_cta(limits, warps, ctas);
      if (sizes.empty() || (size.elements > 0 && fits(limits, size, ctas))) sizes.push_back(size);
    }
  }
  return sizes;
}

// The registers that a thread may name leave room for more CTAs than one of few threads.
void check_ctas(const ir::Kernel& kernel, const Size& size) {
  const ScheduleField<int>& stated = kernel.schedule.ctas;
  const TargetLimits& limits = target::target_of(kernel).limits;
  if (!stated.is_set()) return;
  const std::int64_t threads = limits.lanes * size.warps;
  if (!fits(limits, size, stated.value())) {
    refused("ctas", stated,
            "of " + std::to_string(threads) + " threads, and a multiprocessor has room for " +
                std::to_string(limits.multiprocessor_threads) + " threads with " +
                std::to_string(limits.least_role_registers) + " registers each")
        .fix("state fewer, or fewer warpgroups")
        .raise();
  }
  const std::int64_t fit = limits.registers / (threads * size.registers);
  if (fit == stated.value() || size.registers < kMostRegisters) return;
  refused("ctas", stated,
          "of " + std::to_string(threads) + " threads with at most " +
              std::to_string(size.registers) + " registers " + std::to_string(fit) +
              " always share a multiprocessor's")
      .fix("state " + std::to_string(fit) + " or more, or more warpgroups")
      .raise();
}

// The most that a declared map gives each thread.
std::int64_t declared_elements(const ir::Kernel& kernel) {
  std::int64_t most = 0;
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (is_declared(o)) {
      most = std::max(most, o.attributes.register_layout().register_count());
    }
  });
  return most;
}

// {rows, columns}; a tile of one axis is a row.
std::pair<std::int64_t, std::int64_t> matrix(const std::vector<std::int64_t>& shape) {
  return {shape.size() > 1 ? shape[0] : 1, shape.empty() ? 1 : shape.back()};
}

}  // namespace

RowSpread::RowSpread(const ir::Kernel& kernel) {
  const Operation* largest = nullptr;
  std::int64_t elements = 0;
  int bytes = 16;  // of the narrowest element in memory
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::load) bytes = std::min(bytes, size_of(kernel.type(o.results[0]).dtype));
    if (o.op == Op::store) bytes = std::min(bytes, size_of(kernel.type(o.operands[1]).dtype));
    for (const ir::ValueId result : o.results) {
      const ir::Type& type = kernel.type(result);
      if (!type.is_tile() || type.elements() <= elements) continue;
      largest = &o;
      elements = type.elements();
      largest_ = type.shape;
    }
  });
  const std::vector<Size> sizes = sizes_of(kernel);
  const ScheduleField<int>& ctas = kernel.schedule.ctas;
  warps_ = sizes.front().warps;
  const int widest = 16 / bytes;
  check_partition(kernel, widest);
  if (!largest) {
    check_ctas(kernel, sizes.front());
    registers_ =
        ctas.is_set() ? sizes.front().registers : std::min(registers_, sizes.front().registers);
    return;
  }
  const Size* best = nullptr;
  std::int64_t held = 0;
  for (const Size& size : sizes) {
    const std::int64_t elements_held = divide(size.warps, widest);
    if (best && elements_held >= held) continue;
    best = &size;
    held = elements_held;
    // Tiles of more axes lie as their neighbours say, who may be of one warpgroup.
    if (held <= kFewElements || largest_.size() > 2) break;
  }
  divide(best->warps, widest);
  check_ctas(kernel, *best);
  warps_ = best->warps;
  registers_ = best->registers;
  held = std::max(held, declared_elements(kernel));
  if (held <= kFewElements && !ctas.is_set()) {
    // One computed tile, all that is loaded, and what addresses and sums take.
    const std::int64_t wanted = held + loaded_registers(kernel, kernel.body) + 48;
    registers_ = static_cast<int>(std::clamp<std::int64_t>(
        (wanted + 7) / 8 * 8, std::min(kFewRegisters, best->registers), best->registers));
  }
  if (held <= best->elements) return;
  const std::string tile = "a tile of " + std::to_string(elements) + " elements, " +
                           std::to_string(held) + " for each of " + std::to_string(32 * warps_) +
                           " threads, whose registers hold " + std::to_string(best->elements) +
                           " beside what goes with them";
  const auto refuse = [&](const char* name, const ScheduleField<int>& field, const char* fix) {
    refused(name, field, tile).note(largest->where, "the tile is made").fix(fix).raise();
  };
  if (ctas.value_or(1) > 1) refuse("ctas", ctas, "state fewer");
  if (kernel.schedule.warpgroups.is_set()) {
    refuse("warpgroups", kernel.schedule.warpgroups, "state more, or take smaller blocks");
  }
  unfit(*largest, tile,
        "take fewer rows a block, loop over blocks of columns, or give tiles sizes that are "
        "multiples of 32");
}

// Tiles of other than two axes lie as their neighbours say.
void RowSpread::check_partition(const ir::Kernel& kernel, int widest) {
  const ScheduleField<Partition>& stated = kernel.schedule.partition;
  if (stated.value_or(Partition::rows) == Partition::rows) return;
  if (largest_.size() != 2) {
    refused("partition", stated,
            "the largest tile has " + std::to_string(largest_.size()) +
                " axes, and warps share rows and columns of those with two")
        .fix("leave it out")
        .raise();
  }
  columns_first_ = true;
  const ir::RowSplit split = ir::split_rows(largest_[0], largest_[1], warps_, widest, true);
  if (split.column_warps > 1) return;
  refused("partition", stated,
          "a row of the largest tile, of " + std::to_string(largest_[1]) +
              " elements, lies in one warp")
      .fix("state rows, or take blocks of more columns")
      .raise();
}

std::int64_t RowSpread::loaded_registers(const ir::Kernel& kernel, const ir::Block& block) const {
  std::int64_t bytes = 0;
  ir::for_each(block, [&](const Operation& o) {
    if (o.op != Op::load) return;
    const ir::Type& type = kernel.type(o.results[0]);
    // A tile of one axis may become a row, which the warps of all rows hold.
    const auto [rows, columns] = matrix(type.shape);
    const std::int64_t held = type.shape.size() > 2 || largest_.size() > 2
                                  ? type.elements() / (32 * warps_)
                                  : of_rows(rows, columns).register_count();
    bytes += size_of(type.dtype) * held;
  });
  return (bytes + 3) / 4;
}

std::int64_t RowSpread::divide(int warps, int widest) {
  const auto [rows, columns] = matrix(largest_);
  std::int64_t held = 0;
  for (int vector = widest; vector >= 1; vector /= 2) {
    const ir::RowSplit split = ir::split_rows(rows, columns, warps, vector, columns_first_);
    const RegisterLayout layout = largest_.size() > 2
                                      ? ir::blocked(largest_, 32 * warps, vector)
                                      : ir::row_layout(rows, columns, split, vector);
    if (held != 0 && layout.register_count() >= held) continue;
    held = layout.register_count();
    vector_ = vector;
    split_ = split;
  }
  return held;
}

RegisterLayout RowSpread::of_rows(std::int64_t rows, std::int64_t columns) const {
  return ir::row_layout(rows, columns, split_, vector_);
}

RegisterLayout RowSpread::layout(const std::vector<std::int64_t>& shape) const {
  if (shape.size() == 2 && largest_.size() == 2) return of_rows(shape[0], shape[1]);
  if (shape != largest_) return {};
  if (shape.size() != 1) return ir::blocked(shape, 32 * warps_, vector_);
  RegisterLayout row = of_rows(1, shape[0]);
  row.shape = shape;
  for (std::vector<ir::Mode>* modes : {&row.registers, &row.lanes, &row.warps}) {
    for (ir::Mode& mode : *modes) mode.axis = 0;
  }
  return row;
}

}  // namespace tilewright::schedules
