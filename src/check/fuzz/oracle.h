#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "check/fuzz/recipe.h"
#include "ir/ir.h"

namespace tilewright::checks::fuzz {

enum class Target : std::uint8_t { interpreter, cpu, simulator, cuda };

struct Verdict {
  enum class Kind : std::uint8_t {
    agrees,
    refused,    // with a diagnostic that names a line
    undecided,  // a decision of the kernel depends on rounding
    mismatch,
    fault,     // of the simulated GPU
    internal,  // an assertion of the compiler
  };
  Kind kind = Kind::agrees;
  std::string stage;         // which execution
  std::string text;          // what is wrong, or why it was refused
  std::int64_t checked = 0;  // elements that were compared
  bool failed() const { return kind >= Kind::mismatch; }
};

// Runs the recipe's kernel every way that the target has, compiled for the machine of that name,
// and holds each result against the bounds that follow from the kernel.
Verdict judge(const Recipe& recipe, Target target, std::string_view machine);

struct SeededFault;
// The same of the simulated GPU alone, with a fault planted on the way; nothing where the kernel
// has no place for it.
std::optional<Verdict> judge_fault(const Recipe& recipe, const SeededFault& fault,
                                   std::string_view machine);

// The kernel of the tile form, as text.
std::string text_of(const Recipe& recipe);

}  // namespace tilewright::checks::fuzz
