#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/not_less.h"
#include "ir/ir.h"
#include "simulator/faults/fault_kinds.h"

namespace tilewright::simulator {

inline constexpr std::size_t kNoSite = SIZE_MAX;

// An operation of a kernel: its number, parents first, is the same in every copy of the kernel.
struct Site {
  std::size_t number = 0;
  const ir::Operation* operation = nullptr;
  std::size_t parent = kNoSite;
  std::size_t block = 0;  // of the parent
  std::size_t end = 0;    // the number behind all operations inside
  std::size_t role = kNoSite;
  std::vector<std::size_t> yields;  // of each block; kNoSite where it ends without one

  ir::Op op() const { return operation->op; }
};

// An operand of an operation.
struct Use {
  std::size_t site = kNoSite;
  std::size_t operand = 0;
};

// A machine-form kernel by its operations: who stands where, defines and uses what.
class Sites {
 public:
  explicit Sites(const ir::Kernel& kernel);

  const ir::Kernel& kernel() const { return kernel_; }
  const std::vector<Site>& all() const { return sites_; }
  const Site& at(std::size_t number) const { return sites_[number]; }
  std::vector<const Site*> of(ir::Op op) const;

  // The operation that makes the value; null for parameters and block arguments.
  const Site* definition(ir::ValueId value) const;
  const std::vector<Use>& uses(ir::ValueId value) const { return uses_[value]; }
  std::optional<std::int64_t> constant(ir::ValueId value) const;
  bool is_constant(ir::ValueId value, std::int64_t number) const {
    return constant(value) == number;
  }
  // Whether the scalar plus the constant is provably never less than the other one.
  bool not_less(ir::ValueId a, ir::ValueId b, std::int64_t more = 0) const {
    // A kernel has few such questions, and each of its mutants asks them.
    const auto [known, is_new] = not_less_known_.try_emplace({a, b, more});
    if (is_new) known->second = not_less_.proves(a, b, more);
    return known->second;
  }
  // Of a place: "k_full".
  std::string name(ir::ValueId place) const;

  // Beside it in its block; null at the end.
  const Site* next(const Site& site) const;
  const Site* previous(const Site& site) const;
  const Site* parent(const Site& site) const;
  // The operation of `outer`'s block that is or holds `inner`; null where it is in none.
  const Site* beside(const Site& outer, const Site& inner) const;

  // What a loop carries or a condition gives, as seen from inside and outside.
  // Where a block argument comes from: the operand with which its loop starts. No site: none.
  Use start_of(ir::ValueId argument) const;
  // The operands that may become the value: of the loop and its yield for an argument, of yields
  // for a result.
  std::vector<Use> sources(ir::ValueId value) const;

  ir::ValueId operand(const Use& use) const {
    return sites_[use.site].operation->operands[use.operand];
  }

 private:
  void index(const ir::Block& block, std::size_t parent, std::size_t number, std::size_t role);

  const ir::Kernel& kernel_;
  std::vector<Site> sites_;
  std::vector<std::size_t> definitions_;  // of a value
  std::vector<std::vector<Use>> uses_;    // of a value
  struct Argument {
    std::size_t site = kNoSite;  // whose block it belongs to
    std::size_t number = 0;
  };
  std::vector<Argument> arguments_;  // of a value
  mutable analysis::NotLess not_less_;
  mutable std::map<std::tuple<ir::ValueId, ir::ValueId, std::int64_t>, bool> not_less_known_;
};

// Changes to a kernel. Operations are named by their numbers in the kernel as it is when called.
ir::Operation& operation_at(ir::Kernel& kernel, std::size_t number);
void remove(ir::Kernel& kernel, std::size_t number);
enum class Side { before, after };
void insert(ir::Kernel& kernel, std::size_t number, Side side, ir::Operation operation);
void move(ir::Kernel& kernel, std::size_t number, std::size_t target, Side side);
// A new scalar before the operation.
ir::ValueId insert_scalar(ir::Kernel& kernel, std::size_t before, ir::Op op,
                          std::vector<ir::ValueId> operands, DType dtype = DType::i32,
                          ir::Attributes attributes = {});
ir::ValueId insert_constant(ir::Kernel& kernel, std::size_t before, std::int64_t value);

// A mutant of the site without its edit.
Mutant mutant_at(const Sites& sites, const Site& site, std::string change);
Mutant left_out(const Sites& sites, const Site& site);

}  // namespace tilewright::simulator
