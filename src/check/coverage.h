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
  // How often a barrier must complete: a ring of stages has then wrapped around three times, and
  // each parity has been waited for twice. Where a phase takes many arrivals, one that is missing
  // from each adds up to a whole phase.
  static std::uint64_t phases_wanted(int arrivals);

  // What comes last in a run, nobody misses: of an operation that is to be left out several turns
  // are wanted.
  static constexpr std::uint64_t kTurns = 6;

  // Of each operation, in the order of ir::for_each: whether it is executed as such, and how often
  // one warp came to it, at most kTurns times.
  std::vector<bool> executable;
  std::vector<std::uint64_t> turns;
  std::vector<std::uint64_t> phases;  // of each barrier of a CTA, at most as many as are wanted
  std::vector<std::uint64_t> wanted;

  // How much another one would add.
  std::uint64_t gain(const Coverage& other) const;
  void add(const Coverage& other);
  // Operations that no run came to.
  std::vector<const ir::Operation*> missing(const ir::Kernel& machine) const;
};

// Of one run, in which conditions that hang on data are drawn by the seed. Adds the operations that
// it executed.
Coverage coverage_of(const ir::Kernel& machine, const Arguments& arguments,
                     std::int64_t multiprocessors, std::uint64_t seed, std::int64_t& operations);

// Some of the candidates, by their numbers, that come to all that any of them comes to and `begun`
// does not: the one that adds most first. No more are looked at once so many operations of warps
// have been executed.
std::vector<std::size_t> covering(const ir::Kernel& machine,
                                  const std::vector<std::function<library::Workload()>>& candidates,
                                  std::int64_t multiprocessors, std::uint64_t seed,
                                  std::int64_t operations, Coverage begun);

}  // namespace tilewright::checks
