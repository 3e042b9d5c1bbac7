#include "simulator/faults/fault_kinds.h"

#include <algorithm>
#include <utility>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"
#include "simulator/faults/sites.h"

namespace tilewright::simulator {

using ir::Op;
using ir::ValueId;

ir::Kernel Mutant::apply(const ir::Kernel& kernel) const {
  ir::Kernel changed = kernel;
  edit(changed);
  return changed;
}

namespace {

// Puts an access that always is a fault before an operation, where conditions hold.
class Probe {
 public:
  Probe(const ir::Kernel& kernel, std::size_t site) : probed_(kernel), at_(site) {
    constexpr std::int64_t kNoBarrier = 1 << 20;
    number_ = constant(kNoBarrier);
  }
  ir::Operation& site() { return operation_at(probed_, at_); }
  ValueId constant(std::int64_t value) { return insert_constant(probed_, at_++, value); }
  ValueId scalar(Op op, std::vector<ValueId> operands, DType dtype = DType::i32) {
    return insert_scalar(probed_, at_++, op, std::move(operands), dtype);
  }
  void only_if(ValueId condition) {
    number_ = scalar(Op::select, {condition, number_, constant(0)});
  }
  // A named barrier that does not exist; where it does not matter, a meeting of a warp with itself.
  ir::Kernel take() {
    insert(probed_, at_, Side::before,
           {Op::named_sync,
            {number_},
            {},
            {{ir::Key::first, std::int64_t{0}}, {ir::Key::threads, std::int64_t{32}}},
            {},
            {}});
    return std::move(probed_);
  }

 private:
  ir::Kernel probed_;
  std::size_t at_;
  ValueId number_ = ir::kNoValue;
};

}  // namespace

ir::Kernel Mutant::probe(const ir::Kernel& kernel) const {
  Probe probe(kernel, site);
  if (matters_if != ir::kNoValue) probe.only_if(matters_if);
  if (in_later_turns) {
    const Sites sites(kernel);
    const ir::Operation& loop = *sites.parent(sites.at(site))->operation;
    probe.only_if(
        probe.scalar(Op::lt, {loop.operands[0], loop.blocks[0].arguments[0]}, DType::boolean));
  }
  return probe.take();
}

ir::Kernel Mutant::probe_number(const ir::Kernel& kernel) const {
  Probe probe(kernel, site);
  const Op op = probe.site().op;
  const std::vector<ValueId> operands = probe.site().operands;
  const ValueId one = probe.constant(1);
  const ValueId next =
      probe.scalar(division == Division::by_one_more ? Op::add : Op::sub, {operands[1], one});
  const ValueId divisor = probe.scalar(Op::max, {next, one});
  const ValueId own = probe.scalar(op, operands), other = probe.scalar(op, {operands[0], divisor});
  probe.only_if(probe.scalar(Op::ne, {own, other}, DType::boolean));
  return probe.take();
}

const std::vector<FaultKind>& fault_kinds() {
  static const std::vector<FaultKind> kinds = {
      {1,
       "a barrier's state and the first parity disagree",
       {"deadlock", "race", "uninitialised", "mbarrier"},
       seed_first_parity,
       "no waits on barriers"},
      {2,
       "wrong parity at a full barrier",
       {"race", "uninitialised", "deadlock", "mbarrier"},
       seed_full_parity,
       "no full barriers"},
      {3,
       "wrong parity at an empty barrier",
       {"race", "deadlock", "mbarrier"},
       seed_empty_parity,
       "no empty barriers"},
      {4,
       "no wait for a product before its result is read",
       {"wgmma", "race", "uninitialised", "mbarrier"},
       seed_product_wait,
       "no products"},
      {5,
       "stage not advanced",
       {"race", "deadlock", "mbarrier", "uninitialised", "exit"},
       seed_stage,
       "no ring of several stages"},
      {6,
       "phase not flipped",
       {"race", "deadlock", "mbarrier", "uninitialised", "exit"},
       seed_phase,
       "no phase is carried on"},
      {7,
       "no proxy fence before a TMA store",
       {"proxy"},
       seed_unfenced_store,
       "no fence before a TMA store"},
      {8,
       "no proxy fence before wgmma",
       {"proxy"},
       seed_unfenced_product,
       "no product reads what threads wrote"},
      {9,
       "read before the full wait",
       {"race", "uninitialised", "mbarrier", "exit"},
       seed_early_use,
       "no full barriers"},
      {10,
       "stage released too early",
       {"race"},
       seed_early_release,
       "nothing is released behind a read"},
      {11,
       "commit forgotten",
       {"wgmma", "bulk", "race", "uninitialised"},
       seed_commit,
       "no commits"},
      {12,
       "tcgen05.commit missing or by another thread",
       {"deadlock", "race", "uninitialised", "mbarrier", "tcgen05"},
       seed_tensor_commit,
       "no products in tensor memory"},
      {13,
       "arrivals wrong",
       {"deadlock", "mbarrier", "race", "uninitialised"},
       seed_arrivals,
       "no barriers"},
      {14,
       "bytes of expect_tx, or of a copy that it expects, wrong",
       {"mbarrier", "deadlock", "race", "uninitialised"},
       seed_bytes,
       "no copies onto barriers"},
      {15, "wait_group.read missing", {"race", "bulk"}, seed_read_wait, "no such wait"},
      {16,
       ".read where the full wait is needed",
       {"race", "bulk"},
       seed_full_wait,
       "no full wait for stores"},
      {17,
       "no wait::ld before tensor memory is released",
       {"tcgen05", "race"},
       seed_tensor_load_wait,
       "nothing is read from tensor memory"},
      {18, "wgmma.fence missing", {"wgmma"}, seed_wgmma_fence, "no products"},
      {19,
       "initialised barriers not published",
       {"mbarrier", "proxy", "race"},
       seed_unpublished_barriers,
       "no barriers"},
      {20,
       "named barrier: threads or number wrong, or no meeting",
       {"named_barrier", "deadlock", "race", "bulk", "proxy", "uninitialised"},
       seed_named_barriers,
       "no named barriers"},
      {21,
       "shared memory or registers exceeded",
       {"capacity", "registers", "deadlock"},
       seed_budget,
       "neither shared memory nor register budgets"},
      {22,
       "CTA ends before a peer has used its shared memory",
       {"exit"},
       seed_early_exit,
       "no clusters"},
      {23,
       "signal before its data, without its fence, relaxed, or of too small a scope",
       {"race", "proxy", "uninitialised"},
       seed_signal,
       "no barrier announces what threads wrote"},
      {24,
       "signal not reset, or not counted up, for the next launch",
       {"workspace", "race", "deadlock"},
       seed_unreset_signal,
       "no signals that outlive a launch"},
      {25,
       "tail mask absent, heads of another group, pages taken for neighbours",
       {"mismatch", "out_of_bounds"},
       seed_wrong_elements,
       "no masks, groups of heads nor tables of pages; TMA clips at the tensors' ends"},
      // 26 to 31 are of programs (program_faults.h).
      {32, "mask off by one", {"mismatch", "out_of_bounds"}, seed_shifted_masks, "no masks"},
      {33, "a weight off by half a percent", {"mismatch"}, seed_wrong_weights, "no weights"},
      {34,
       "warp_sync left out",
       {"race", "proxy", "mbarrier", "bulk", "uninitialised", "deadlock"},
       seed_unmet_lanes,
       "no warp_sync"},
      {35,
       "an atomic that signals is relaxed",
       {"race", "proxy"},
       seed_relaxed_atomic,
       "no atomic signals"},
      {36,
       "order of tiles or division into parts wrong",
       {"mismatch", "out_of_bounds", "race", "deadlock", "mbarrier", "uninitialised", "workspace",
        "refused"},
       seed_wrong_division,
       "no divisions"},
      {37,
       "multicast to a CTA too few or too many, a copy to another CTA or announced to it",
       {"deadlock", "mbarrier", "race", "uninitialised", "exit", "mismatch"},
       seed_multicast,
       "neither multicast nor copies in a cluster"},
      {38,
       "lanes part before an aligned instruction",
       {"divergence", "mbarrier", "deadlock", "race", "exit"},
       seed_parted_lanes,
       "no aligned instructions"},
      {39,
       "workspace not as the next launch needs it",
       {"workspace", "race", "deadlock"},
       seed_wrong_reset,
       "no workspaces"},
      {40,
       "the map for boxes outside where it is not meant, or the other where it is",
       {"out_of_bounds"},
       seed_other_map,
       "no ragged tensor maps"},
  };
  return kinds;
}

std::vector<Mutant> mutants_of(const FaultKind& kind, const ir::Kernel& machine) {
  return mutants_of(kind, Sites(machine));
}

std::vector<Mutant> mutants_of(const FaultKind& kind, const Sites& sites) {
  if (!kind.seed) return {};
  std::vector<Mutant> mutants = kind.seed(sites);
  for (Mutant& mutant : mutants) {
    const Site& site = sites.at(mutant.site);
    if (mutant.equivalent.empty()) mutant.equivalent = never_executed(sites, site);
    if (mutant.equivalent.empty() && mutant.in_later_turns) {
      mutant.equivalent = never_in_later_turns(sites, site);
    }
  }
  std::stable_sort(mutants.begin(), mutants.end(),
                   [](const Mutant& a, const Mutant& b) { return a.site < b.site; });
  return mutants;
}

}  // namespace tilewright::simulator
