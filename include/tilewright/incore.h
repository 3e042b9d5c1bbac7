#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/asynchronous.h"
#include "tilewright/function_ref.h"

// The explicit level of cores with explicit memories: the program places every matrix in a memory,
// moves it along the ways that the target has, and orders the units, which work beside each other.
// A kernel names its target first (Kernel::target). What the target's record does not allow raises
// Error(usage) at the caller's line: a way between memories that there is not, sizes, a start that
// is not aligned, events between units that have none. More than a memory holds raises it in
// compile(). Missing events, races and hangs raise nothing here: the simulator finds them.
// docs/incore.md has a whole kernel.
namespace tilewright {

// What one sequencer of the target issues, in each of its cores; the body may take its number among
// those of its name.
template <typename Body>
RoleSpec sequencer(std::string name, Body body, SourceLocation where = here()) {
  return role(std::move(name), warps(0), RegisterBudget{0}, std::move(body), where);
}

// A part of a matrix in a memory.
class CoreWindow {
 public:
  // So many rows and columns from there on.
  CoreWindow part(const IndexOperand& row, const IndexOperand& column, int rows, int columns,
                  SourceLocation where = here()) const;
  // Rows and columns swapped, for a move that transposes, or a product that wants it.
  CoreWindow T() const;
  int row_count() const { return transposed_ ? columns_ : rows_; }
  int column_count() const { return transposed_ ? rows_ : columns_; }

 private:
  friend class CoreTracing;
  Handle memory_, stage_, row_, column_;
  int rows_ = 0, columns_ = 0;  // as it lies
  bool transposed_ = false;
};

// `stages` matrices of one shape in the memory `space`, such as "Left".
class CoreMemory {
 public:
  CoreMemory(Kernel& kernel, std::string space, std::string name, DType dtype, int rows,
             int columns, Stages stages = {1}, SourceLocation where = here());
  CoreWindow operator[](const IndexOperand& stage) const;
  // The first stage.
  operator CoreWindow() const;
  int stage_count() const { return stages_; }

 private:
  friend class CoreTracing;
  Handle memory_;
  int rows_, columns_, stages_;
};

// Between global memory and a memory, and between memories. Of elements that do not exist a load
// writes none, but for zeros behind a row where the target fills rows up; a store writes none.
// Where the target converts on the way, dtypes may differ.
void move(const CoreWindow& to, const TensorView& from, SourceLocation where = here());
void move(const TensorView& to, const CoreWindow& from, SourceLocation where = here());
void move(const CoreWindow& to, const CoreWindow& from, SourceLocation where = here());

// result = left x right, or that added to the result. With `k` only so many of the columns of left
// and rows of right. A unit that multiplies whole pieces also sums what lies behind, up to the end
// of the piece: it has to be zero.
void matmul(const CoreWindow& result, const CoreWindow& left, const CoreWindow& right,
            const Condition& accumulate, SourceLocation where = here());
void matmul(const CoreWindow& result, const CoreWindow& left, const CoreWindow& right,
            const Condition& accumulate, const IndexOperand& k, SourceLocation where = here());

// An operand of a function: a window, whose axes of size 1 stretch, or a number.
struct VectorOperand {
  VectorOperand(const CoreWindow& window) : value(window) {}
  VectorOperand(const CoreMemory& memory) : value(CoreWindow(memory)) {}
  VectorOperand(double number) : value(number) {}
  VectorOperand(int number) : value(static_cast<double>(number)) {}
  std::variant<CoreWindow, double> value;
};
// As of tiles, element by element; convert rounds to the result's dtype.
enum class VectorFunction {
  add,
  subtract,
  multiply,
  divide,
  minimum,
  maximum,
  negate,
  exp,
  exp2,
  log,
  log2,
  sqrt,
  reciprocal,
  tanh,
  convert,
  // Comparisons make elements of bool, which select takes first.
  less,
  less_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  logical_not,
  select
};
void vector(VectorFunction function, const CoreWindow& to, const std::vector<VectorOperand>& of,
            SourceLocation where = here());
// Along the axis, which the result has with size 1.
void reduce(Reduction how, const CoreWindow& to, const CoreWindow& from, int axis,
            SourceLocation where = here());
// By the unit that computes in the memory, or else by the one that fills it. Where both can, `unit`
// names the other one: what loads into a memory fills what a tail leaves, and needs no event to do
// it.
void fill(const CoreWindow& to, double number, SourceLocation where = here());
void fill(const CoreWindow& to, double number, const std::string& unit,
          SourceLocation where = here());
// To each element its coordinate along the axis, and `first`.
void iota(const CoreWindow& to, int axis, const IndexOperand& first, SourceLocation where = here());

// `count` events from one unit to another. A set takes its place in the queue of the one: it is
// raised when all before it is over. A wait takes its place in the queue of the other: what is
// behind it starts once the event is raised, which lowers it again. Every event that is raised has
// to be waited for before the kernel ends.
class CoreEvent {
 public:
  CoreEvent(Kernel& kernel, std::string from, std::string to, int count = 1,
            SourceLocation where = here());
  void set(const IndexOperand& index = 0) const;
  void wait(const IndexOperand& index = 0) const;

 private:
  void record(bool is_set, const IndexOperand& index) const;
  std::string from_, to_;
  int first_, count_;
};

// What is behind it in the unit's queue starts when all before it is over.
void unit_barrier(const std::string& unit, SourceLocation where = here());

// Stages that one unit fills and another empties, in turn: an event each way for each stage. At
// the start of the kernel all stages are free, and the events back are raised; at its end they are
// taken back. So nothing is left over, whatever the number of turns.
class CoreRing {
 public:
  CoreRing(Kernel& kernel, std::string filled_by, std::string emptied_by, Stages stages,
           SourceLocation where = here());
  ~CoreRing();
  // The body's instructions of the filling unit go to the next stage, once it is free.
  void produce(FunctionRef<void(const Index& stage)> body, SourceLocation where = here());
  // The body's instructions of the emptying unit take the next stage, once it is full.
  void consume(FunctionRef<void(const Index& stage)> body, SourceLocation where = here());

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tilewright
