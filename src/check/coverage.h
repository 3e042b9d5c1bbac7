#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/ir.h"
#include "library/workload.h"
#include "support/arguments.h"

namespace tilewright::checks {

// Where what is off by one shows: at the edge of a comparison, a minimum, a maximum or a division,
// with and without a remainder of that, and among none, one, a few or many parts.
enum Edges : std::uint32_t {
  kNoEdge = 0,
  kEqual = 1 << 0,
  kOneLess = 1 << 1,
  kOneMore = 1 << 2,
  kDivides = 1 << 3,
  kRemainder = 1 << 4,
  kNoPart = 1 << 5,
  kOnePart = 1 << 6,
  kFewParts = 1 << 7,   // two or three
  kManyParts = 1 << 8,  // four and more
};

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
  // Of each operation that compares or divides indices, then of each comparison and division in the
  // dims that a launch computes: Edges that were met.
  std::vector<std::uint32_t> edges;
  // Of each operation: whether it divided, and a divisor of one more gave another result, or one of
  // one less; and whether it rounded up what had a remainder.
  std::vector<bool> divisor_tells, less_tells, remainder_tells;

  // How much another one would add.
  std::uint64_t gain(const Coverage& other) const;
  void add(const Coverage& other);
  // Operations that no run came to.
  std::vector<const ir::Operation*> missing(const ir::Kernel& machine) const;
};

// What a run came to, and how many operations of warps it executed.
struct CoveredRun {
  Coverage coverage;
  std::int64_t operations = 0;
};

// Of one run, in which conditions that depend on data are drawn by the seed; with arithmetic they
// are as the data says. Adds the operations that it executed.
Coverage coverage_of(const ir::Kernel& machine, const Arguments& arguments,
                     std::int64_t multiprocessors, std::uint64_t seed, std::int64_t& operations,
                     bool control_only = true);

// Some of the candidates, by their numbers, that come to all that any comes to and `reached` does
// not: first one that meets most edges at once, then the one that adds most for what it
// executes, and no more than `most_sizes`. What they come to is added to `reached`. No more are
// looked at once so many operations of warps have been executed.
struct Covering {
  std::vector<std::size_t> chosen;
  std::vector<CoveredRun> runs;  // of the first candidates, which were looked at
};
Covering covering(const ir::Kernel& machine,
                  const std::vector<std::function<library::Workload()>>& candidates,
                  std::int64_t multiprocessors, std::uint64_t seed, std::int64_t operations,
                  Coverage& reached, std::size_t most_sizes = SIZE_MAX);

}  // namespace tilewright::checks
