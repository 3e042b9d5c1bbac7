#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/machine/shadow.h"

// Where in which tensor the elements of products come from, whatever their values: what a product
// sums over has to be the same part of both operands, and one box of a tensor each.
namespace tilewright::simulator {

struct Compute;
struct Cta;
struct Event;
struct Instruction;
struct MatrixOperand;
struct PendingProduct;
struct TensorMap;
struct Warp;
class Launch;

// The copy that brought an element, and the element's coordinates in the tensor, innermost first.
struct Origin {
  struct Copy {
    Access access;
    const TensorMap* map = nullptr;
  };
  std::shared_ptr<const Copy> copy;  // null: not known
  std::array<std::int64_t, 5> at{};
};

// An operand of a product: its first element, and the axis of the tensor that is summed over; -1
// where that is more than one.
struct OperandOrigin {
  std::string name;
  Origin first;
  int axis = -1;
  // Of each row of M or N, with 0 for the coordinate that is summed over.
  std::vector<Origin> rows;
};

// What a register array holds.
struct ArrayOrigin {
  struct Term {
    OperandOrigin a, b;
  };
  // Of each column of a product's result.
  std::shared_ptr<const std::vector<Origin>> columns;
  // The last product of each pair of tensors that went into the sum.
  std::vector<Term> terms;
};

class Provenance {
 public:
  explicit Provenance(Launch& launch) : launch_(launch) {}

  // A copy has arrived.
  void load(const Event& event) const;
  void move(const Event& event, std::int64_t bytes) const;
  // Threads have written: nothing is known of these bytes.
  void forget(Cta& cta, std::int64_t address, std::int64_t bytes) const;
  void forget(Warp& warp, int array) const;
  // Before an instruction that computes with registers: elementwise ones and copies hand on what
  // is known of their operands' columns.
  void registers(Warp& warp, const Instruction& instruction) const;
  // Faults when the operands are not what belongs together.
  void product(Warp& warp, const PendingProduct& pending) const;

 private:
  ArrayOrigin& of(Warp& warp, int array) const;
  void compute(Warp& warp, const Compute& compute) const;
  std::optional<OperandOrigin> in_shared(const Warp& warp, const PendingProduct& pending,
                                         const MatrixOperand& operand, std::int64_t start,
                                         int first, int rows) const;
  std::optional<OperandOrigin> in_registers(Warp& warp, const PendingProduct& pending) const;
  void report_mixed(const Warp& warp, const Instruction& instruction, const std::string& name,
                    const Origin& before, const Origin& odd) const;
  void check(const Warp& warp, const Instruction& instruction, const ArrayOrigin::Term& now,
             const ArrayOrigin::Term* before) const;
  void report(const Warp& warp, const Instruction& instruction, const ArrayOrigin::Term& now,
              const ArrayOrigin::Term* before, const std::string& disagreement) const;

  Launch& launch_;
};

}  // namespace tilewright::simulator
