#include "schedules/row_spread.h"

#include <algorithm>
#include <string>
#include <utility>

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
constexpr Size kSizes[] = {{4, 248, 112}, {8, 248, 112}, {16, 128, 48}};
// What leaves room for several tiles and several CTAs.
constexpr std::int64_t kFewElements = 32;
constexpr int kFewRegisters = 128;

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
  if (!largest) return;
  const int widest = 16 / bytes;
  const Size* best = nullptr;
  std::int64_t held = 0;
  for (const Size& size : kSizes) {
    const std::int64_t elements_held = divide(size.warps, widest);
    if (best && elements_held >= held) continue;
    best = &size;
    held = elements_held;
    // Tiles of more axes lie as their neighbours say, who may be of one warpgroup.
    if (held <= kFewElements || largest_.size() > 2) break;
  }
  divide(best->warps, widest);
  warps_ = best->warps;
  registers_ = best->registers;
  if (held <= kFewElements) {
    // One computed tile, all that is loaded, and what addresses and sums take.
    const std::int64_t wanted = held + loaded_registers(kernel, kernel.body) + 48;
    registers_ = static_cast<int>(
        std::clamp<std::int64_t>((wanted + 7) / 8 * 8, kFewRegisters, best->registers));
  }
  if (held <= best->elements) return;
  unfit(*largest,
        "a tile of " + std::to_string(elements) + " elements, " + std::to_string(held) +
            " for each of " + std::to_string(32 * warps_) + " threads, whose registers hold " +
            std::to_string(best->elements) + " beside what goes with them",
        "take fewer rows a block, loop over blocks of columns, or give tiles sizes that are "
        "multiples of 32");
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
    const ir::RowSplit split = ir::split_rows(rows, columns, warps, vector);
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
