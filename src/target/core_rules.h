#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/core_window.h"
#include "target/core.h"

// What a core's record allows of one instruction. The language asks at the author's line, and the
// verifier of every form behind.
namespace tilewright::target {

// What is wrong, and what would be right; empty where nothing is.
struct CoreProblem {
  std::string problem, fix;
  bool none() const { return problem.empty(); }
};

// An operand: a window of a space, or a part of a tensor (no space).
struct CoreOperand {
  const CoreSpace* space = nullptr;
  Matrix lying;  // the window's, as it lies in memory
  bool transposed = false;
  std::int64_t matrices = 1;  // of a tensor's part, below each other

  std::string_view name() const { return space ? std::string_view(space->name) : ""; }
  ir::Extent2 seen() const {
    const ir::Extent2 extent{lying.rows, lying.columns};
    return transposed ? ir::transposed(extent) : extent;
  }
};

// Each gives the instruction's entry of the record, of a unit of the sequencer where one has it;
// by a unit where one is named. `function`: of elements, by its operation's name, if any.
CoreProblem find_move(const Core& core, const CoreOperand& to, const CoreOperand& from,
                      std::string_view sequencer, std::string_view unit, const CoreMove*& found);
CoreProblem find_product(const Core& core, const CoreOperand& result, const CoreOperand& left,
                         const CoreOperand& right, std::string_view sequencer,
                         const CoreProduct*& found);
CoreProblem find_functions(const Core& core, const CoreOperand& to,
                           const std::vector<CoreOperand>& from, std::string_view function,
                           bool is_fill, std::string_view sequencer, std::string_view unit,
                           const CoreFunctions*& found);
// Of a set or a wait, in a role of the sequencer.
CoreProblem check_event(const Core& core, std::string_view from, std::string_view to, bool is_set,
                        std::string_view sequencer);
CoreProblem check_unit(const Core& core, std::string_view unit, std::string_view sequencer);
// Of so many stages of the matrix in a space of that name.
CoreProblem check_memory(const Core& core, std::string_view space, const Matrix& matrix);
// A window that begins there, of a whole matrix.
CoreProblem check_start(const CoreSpace& space, const Matrix& whole, std::int64_t row,
                        std::int64_t column);

}  // namespace tilewright::target
