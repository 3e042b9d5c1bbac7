#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"

// Faults that a kernel's author, or a pass, may make, seeded one at a time into the machine form: a
// simulated GPU that finds all of them is one to rely on.
namespace tilewright::simulator {

// One change to a kernel.
struct Mutant {
  // How the quotient or remainder of the site is changed, where nothing else is.
  enum class Division : std::uint8_t { none, by_one_more, by_one_less, without_remainder };
  SourceLocation where;   // of the operation that is changed
  std::size_t site = 0;   // its number, parents first
  std::string operation;  // "mbarrier_wait k_full"
  std::string change;     // what is done to it: "left out"
  // Why no execution can tell the mutant from the kernel; empty where no rule says so.
  std::string equivalent;
  std::function<void(ir::Kernel&)> edit;
  // The same fault in other ways, each for where those before show nothing: a bound that is off by
  // one may do no harm on one side. Any of them stands for the site.
  struct Way {
    std::string change;
    std::function<void(ir::Kernel&)> edit;
    Division division = Division::none;
  };
  std::vector<Way> others = {};
  // The change can be told only where this condition holds (kNoValue: wherever the site is
  // executed), and perhaps
  ir::ValueId matters_if = ir::kNoValue;
  bool in_later_turns = false;  // of the loop around it: not in the first
  // The numbers of the computations on registers whose results it changes, where it changes nothing
  // else.
  std::vector<std::size_t> computations;
  Division division = Division::none;

  ir::Kernel apply(const ir::Kernel& kernel) const;
  // The kernel with an access that always is a fault at the site, so that a run shows whether it is
  // ever executed (and matters).
  ir::Kernel probe(const ir::Kernel& kernel) const;
  // Of another divisor: the same where that makes another number.
  ir::Kernel probe_number(const ir::Kernel& kernel) const;
};

class Sites;
// All places of a kernel where a fault of one kind can be seeded, in their order.
using SeedFaults = std::vector<Mutant> (*)(const Sites& sites);

struct FaultKind {
  int number = 0;
  std::string_view name;
  // Faults of the simulated GPU (Fault::kind) that say what is wrong; "mismatch" is a wrong result.
  std::vector<std::string_view> classes;
  SeedFaults seed = nullptr;  // null: of programs
  std::string_view absent;    // why a kernel has no site
};

// In the order of their numbers.
const std::vector<FaultKind>& fault_kinds();

// The mutants of a kernel in the machine form, in the order of their sites. Each is as well formed
// as the verifier says: it may refuse some.
std::vector<Mutant> mutants_of(const FaultKind& kind, const ir::Kernel& machine);
// Of several kinds faster: what is known of a kernel is found out once.
std::vector<Mutant> mutants_of(const FaultKind& kind, const Sites& sites);

}  // namespace tilewright::simulator
