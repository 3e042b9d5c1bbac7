#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "cpu/program.h"
#include "cpu/tile_uses.h"

namespace tilewright::cpu {

// The axes of the grid, a bit each, that scalars depend on.
class GridAxes {
 public:
  explicit GridAxes(const Program& program) : of_(program.scalars.size(), 0) {
    for (std::size_t axis = 0; axis < program.grid.size(); ++axis) {
      of_[program.grid[axis]] = 1u << axis;
    }
    // What a loop carries depends on what its body computes.
    do {
      has_changed_ = false;
      for_operations(program.body, [this](const Operation& operation) {
        std::visit([this](const auto& each) { visit(each); }, operation);
      });
    } while (has_changed_);
  }

  std::uint32_t of(const std::vector<ScalarId>& scalars) const {
    std::uint32_t all = 0;
    for (const ScalarId scalar : scalars) all |= of_[scalar];
    return all;
  }

 private:
  static constexpr std::uint32_t kAll = UINT32_MAX;

  void visit(const Compute& compute) {
    for (const ScalarId operand : compute.operands) {
      if (operand != kNone) add(compute.result, of_[operand]);
    }
  }
  void visit(const MoveScalar& move) { add(move.result, of_[move.source]); }
  void visit(const LoadIndex& load) { add(load.result, of(load.indices)); }
  void visit(const For& loop) { add(loop.index, of({loop.low, loop.high, loop.step})); }
  void visit(const Any& any) { add(any.result, kAll); }
  void visit(const auto&) {}

  void add(ScalarId scalar, std::uint32_t axes) {
    has_changed_ = has_changed_ || (axes & ~of_[scalar]) != 0;
    of_[scalar] |= axes;
  }

  std::vector<std::uint32_t> of_;
  bool has_changed_ = false;
};

}  // namespace tilewright::cpu
