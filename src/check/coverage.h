#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/ir.h"
#include "library/workload.h"
#include "support/arguments.h"

namespace tilewright::checks {

// What runs of a machine form came to, without arithmetic.
struct Coverage {
  // How often a CTA's barriers must complete: a ring of stages has then wrapped around three times,
  // and each parity has been waited for twice.
  static constexpr std::uint64_t kPhases = 4;

  // Of each operation, in the order of ir::for_each: whether it is executed as such, and was.
  std::vector<bool> executable, reached;
  std::vector<std::uint64_t> phases;  // of each barrier of a CTA, at most kPhases

  bool all() const;
  // Whether this one came to something that the other did not.
  bool adds_to(const Coverage& other) const;
  void add(const Coverage& other);
  // Operations that no run came to.
  std::vector<const ir::Operation*> missing(const ir::Kernel& machine) const;
};

// Of one run, in which conditions that hang on data are drawn by the seed. Adds the operations that
// it executed.
Coverage coverage_of(const ir::Kernel& machine, const Arguments& arguments,
                     std::int64_t multiprocessors, std::uint64_t seed, std::int64_t& operations);

// Those of the candidates, in their order, that come to something which neither `begun` nor an
// earlier one of them comes to; `begun` becomes what all together come to. It ends when that is
// everything, or when some seconds are spent.
std::vector<std::size_t> covering(const ir::Kernel& machine,
                                  const std::vector<std::function<library::Workload()>>& candidates,
                                  std::int64_t multiprocessors, std::uint64_t seed,
                                  Coverage& begun);

}  // namespace tilewright::checks
