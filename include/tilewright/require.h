#pragma once

#include <cstdint>
#include <string>

#include "tilewright/error.h"

// What an author claims of the compiled kernel:
//
//   kernel.require({wgmma_rs, no_stack, registers <= 168, stages("K") >= 2});
//
// The claims are checked whenever the kernel is compiled for a GPU (those about registers and the
// stack once it is assembled). One that does not hold is an error at its line. They change nothing
// of what is compiled; the interpreter ignores them.
namespace tilewright {

// One figure of a compiled kernel, bounded.
struct Claim {
  enum class Figure : std::uint8_t {
    registers,     // of a thread when the kernel starts, as ptxas reports them
    stack_bytes,   // of a thread
    spill_bytes,   // of a thread: stores and loads of spilled registers
    shared_bytes,  // of a CTA
    stages,        // of a ring or another place in shared memory, by name
    instructions,  // operations of the machine form, by name
  };
  enum class Relation : std::uint8_t { at_most, at_least, equal };
  // A claim without a number, such as no_stack.
  struct Property {
    Figure figure;
    const char* name;
    Relation relation;
    std::int64_t bound;
  };

  Claim(Figure figure, std::string name, Relation relation, std::int64_t bound,
        SourceLocation where)
      : figure(figure), name(std::move(name)), relation(relation), bound(bound), where(where) {}
  Claim(const Property& property, SourceLocation where = here())
      : Claim(property.figure, property.name, property.relation, property.bound, where) {}

  // As it is written: registers <= 168, instructions("wgmma_rs") >= 1.
  std::string to_string() const;
  bool holds_of(std::int64_t found) const;

  Figure figure;
  std::string name;  // of the instruction or the ring; else empty
  Relation relation;
  std::int64_t bound;
  SourceLocation where;
};

// A number in a claim; notes the line.
struct ClaimBound {
  ClaimBound(std::int64_t value, SourceLocation where = here()) : value(value), where(where) {}
  std::int64_t value;
  SourceLocation where;
};

// A figure that is not bounded yet: compare it with a number to claim something.
class ClaimFigure {
 public:
  // `name` outlives it.
  constexpr explicit ClaimFigure(Claim::Figure figure, const char* name = "")
      : figure_(figure), name_(name != nullptr ? name : "") {}
  Claim operator<=(const ClaimBound& bound) const { return claim(Claim::Relation::at_most, bound); }
  Claim operator>=(const ClaimBound& bound) const {
    return claim(Claim::Relation::at_least, bound);
  }
  Claim operator==(const ClaimBound& bound) const { return claim(Claim::Relation::equal, bound); }

 private:
  Claim claim(Claim::Relation relation, const ClaimBound& bound) const {
    return Claim(figure_, name_, relation, bound.value, bound.where);
  }

  Claim::Figure figure_;
  const char* name_;
};

struct RegisterBudget {
  int count;
};
// `registers <= 168` is a claim; `registers(24)` is the budget of a role (hopper.h): registers a
// thread of its warpgroup (setmaxnreg), 24..256, a multiple of 8.
struct RegisterFigure : ClaimFigure {
  using ClaimFigure::ClaimFigure;
  constexpr RegisterBudget operator()(int count) const { return {count}; }
};
inline constexpr RegisterFigure registers{Claim::Figure::registers};

inline constexpr ClaimFigure stack_bytes{Claim::Figure::stack_bytes};
inline constexpr ClaimFigure spill_bytes{Claim::Figure::spill_bytes};
inline constexpr ClaimFigure shared_bytes{Claim::Figure::shared_bytes};
// Operations of the machine form, as `tilewright explain` counts them: instructions("named_sync").
// "wgmma" stands for both of its kinds.
inline ClaimFigure instructions(const char* operation) {
  return ClaimFigure(Claim::Figure::instructions, operation);
}
// Of the ring or tile of shared memory that has the name.
inline ClaimFigure stages(const char* place) { return ClaimFigure(Claim::Figure::stages, place); }

// Nothing lies on the stack; nothing is spilled to it.
inline constexpr Claim::Property no_stack{Claim::Figure::stack_bytes, "", Claim::Relation::equal,
                                          0};
inline constexpr Claim::Property no_spills{Claim::Figure::spill_bytes, "", Claim::Relation::equal,
                                           0};
// Products whose first operand is in registers (in shared memory): at least one.
inline constexpr Claim::Property wgmma_rs{Claim::Figure::instructions, "wgmma_rs",
                                          Claim::Relation::at_least, 1};
inline constexpr Claim::Property wgmma_ss{Claim::Figure::instructions, "wgmma_ss",
                                          Claim::Relation::at_least, 1};

}  // namespace tilewright
