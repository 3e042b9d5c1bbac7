#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::explanations {

// Stages of a ring that are filled in one of several ways, as a condition of the kernel holds: such
// as neighbouring pages in one copy, or each in its own. Or stages that threads fill, as from pages
// that are too small for copies.
struct Tiers {
  struct Way {
    int together = 1;  // of what the way with the most copies copies one by one
    // "1 of K_4x16x64, 1 of V_4x16x64": by the names of their tensor maps. Of those that are cut,
    // rows may end before the tensor does.
    std::string copies;
  };
  std::string ring;
  std::vector<Way> ways;    // in the order in which they are tried
  bool by_threads = false;  // that load what they store in the stage: one way, "64 of K_1x128"
  SourceLocation where;
};
// Of the scheduled form, in its order.
std::vector<Tiers> tiers_in(const ir::Kernel& scheduled);

}  // namespace tilewright::explanations
