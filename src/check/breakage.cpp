#include "check/breakage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/faults/families.h"
#include "support/diagnostic.h"

namespace tilewright::checks {
namespace {

using ir::Op;
using simulator::Mutant;
using simulator::Site;
using simulator::Sites;

int loops_around(const Sites& sites, std::size_t number) {
  int loops = 0;
  for (const Site* site = sites.parent(sites.at(number)); site; site = sites.parent(*site)) {
    loops += site->op() == Op::for_loop || site->op() == Op::while_loop;
  }
  return loops;
}

// Of the innermost loop. A line of the source may have become several operations: all of them.
std::vector<Mutant> early_releases(const Sites& sites) {
  std::vector<Mutant> mutants = simulator::seed_early_release(sites);
  const auto keep = [&](const std::function<bool(const Mutant&)>& predicate) {
    mutants.erase(std::remove_if(mutants.begin(), mutants.end(), std::not_fn(predicate)),
                  mutants.end());
  };
  keep([](const Mutant& mutant) { return mutant.equivalent.empty(); });
  const auto first =
      std::max_element(mutants.begin(), mutants.end(), [&](const Mutant& a, const Mutant& b) {
        return loops_around(sites, a.site) < loops_around(sites, b.site);
      });
  if (first == mutants.end()) return {};
  const std::string line = format_location(first->where), change = first->change;
  keep([&](const Mutant& mutant) {
    return mutant.change == change && format_location(mutant.where) == line;
  });
  return mutants;
}

// One lane arrives for the others. All of them: one that is left orders the lanes for the arrivals
// behind it too. The last one first, so that the numbers of the others hold.
std::vector<Mutant> unordered_lanes(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* sync : sites.of(Op::warp_sync)) {
    const Site* next = sites.next(*sync);
    if (next && next->op() == Op::mbarrier_arrive) mutants.push_back(left_out(sites, *sync));
  }
  std::reverse(mutants.begin(), mutants.end());
  return mutants;
}

struct BreakageKind {
  std::string_view name;
  simulator::SeedFaults seed;
  std::string_view absent;
};
constexpr BreakageKind kBreakages[] = {
    {"release", early_releases, "releases no stage behind what reads it"},
    {"warp_sync", unordered_lanes, "has no warp_sync before an arrival"},
};

const BreakageKind& find_breakage(const std::string& name) {
  const BreakageKind* kind =
      std::find_if(std::begin(kBreakages), std::end(kBreakages),
                   [&](const BreakageKind& each) { return each.name == name; });
  if (kind != std::end(kBreakages)) return *kind;
  Diagnostic({}, fmt::format("there is no breakage '{}'", name))
      .fix("use: release, warp_sync")
      .raise();
}

// Nothing where the kernel has nothing to break so.
std::optional<Breakage> broken(ir::Kernel& machine, const BreakageKind& kind) {
  const std::vector<Mutant> mutants = kind.seed(Sites(machine));
  if (mutants.empty()) return std::nullopt;
  for (const Mutant& mutant : mutants) mutant.edit(machine);
  const Mutant& first = mutants.front();
  return Breakage{fmt::format("{} is {}", first.operation, first.change), first.where};
}

[[noreturn]] void nothing_to_break(const ir::Kernel& machine, const BreakageKind& kind) {
  Diagnostic(machine.where,
             fmt::format("kernel {} {}: there is nothing to break", machine.name, kind.absent))
      .fix("break a kernel with a ring and products, such as attention_forward")
      .raise();
}

}  // namespace

Breakage break_kernel(ir::Kernel& machine, const std::string& name) {
  const BreakageKind& kind = find_breakage(name);
  if (const std::optional<Breakage> breakage = broken(machine, kind)) return *breakage;
  nothing_to_break(machine, kind);
}

Breakage break_one_of(std::vector<ir::Kernel>& machine, const std::string& name) {
  const BreakageKind& kind = find_breakage(name);
  for (ir::Kernel& each : machine) {
    if (const std::optional<Breakage> breakage = broken(each, kind)) return *breakage;
  }
  nothing_to_break(machine.front(), kind);
}

}  // namespace tilewright::checks
