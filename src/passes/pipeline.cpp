#include "passes/pipeline.h"

#include <chrono>

#include "ir/text.h"
#include "passes/allocate_shared.h"
#include "passes/assign_layouts.h"
#include "passes/begin_sums.h"
#include "passes/bufferise.h"
#include "passes/check_accesses.h"
#include "passes/check_divergence.h"
#include "passes/check_pair_loads.h"
#include "passes/check_starts.h"
#include "passes/contract_fma.h"
#include "passes/convert_layouts.h"
#include "passes/count_waits.h"
#include "passes/drop_branches.h"
#include "passes/drop_selects.h"
#include "passes/eliminate_common.h"
#include "passes/eliminate_dead.h"
#include "passes/fold_accumulators.h"
#include "passes/hoist.h"
#include "passes/issue_products.h"
#include "passes/join_copies.h"
#include "passes/join_steps.h"
#include "passes/materialise_extents.h"
#include "passes/order_lanes.h"
#include "passes/overlap_products.h"
#include "passes/peel_masks.h"
#include "passes/place_memories.h"
#include "passes/separate_columns.h"
#include "passes/share_reductions.h"
#include "passes/simplify.h"
#include "passes/sink_partial_maxima.h"
#include "passes/sink_partial_sums.h"
#include "passes/skip_hidden.h"
#include "passes/skip_identities.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "target/verify.h"

namespace tilewright::passes {
namespace {

struct Pass {
  constexpr Pass(const char* name, void (*run)(ir::Kernel&)) : name(name), run(run) {}
  // One that changes rounding: it returns how often it did, and may be switched off.
  constexpr Pass(const char* name, int (*rewrite)(ir::Kernel&), bool Numerics::*allowed)
      : name(name), rewrite(rewrite), allowed(allowed) {}
  // One that a schedule may do without.
  constexpr Pass(const char* name, int (*rewrite)(ir::Kernel&), bool Rewrites::*chosen)
      : name(name), rewrite(rewrite), chosen(chosen) {}
  const char* name;
  void (*run)(ir::Kernel&) = nullptr;
  int (*rewrite)(ir::Kernel&) = nullptr;
  bool Numerics::*allowed = nullptr;
  bool Rewrites::*chosen = nullptr;
};

// Every pass there is, by the name that records of targets list it by; some stand in several places
// of a kernel's way, by a name for each.
constexpr Pass kPasses[] = {
    {"simplify", simplify},
    {"simplify_loops", simplify},
    {"simplify_addresses", simplify},
    {"eliminate_common", eliminate_common},
    {"eliminate_common_hoisted", eliminate_common},
    {"eliminate_common_extents", eliminate_common},
    {"eliminate_common_loops", eliminate_common},
    {"eliminate_common_sums", eliminate_common},
    {"eliminate_common_addresses", eliminate_common},
    {"eliminate_common_hoisted_addresses", eliminate_common},
    {"hoist", hoist},
    {"hoist_loops", hoist},
    {"hoist_addresses", hoist},
    {"eliminate_dead", eliminate_dead},
    {"eliminate_folded", eliminate_dead},
    {"eliminate_loops", eliminate_dead},
    {"eliminate_products", eliminate_dead},
    {"eliminate_dead_addresses", eliminate_dead},
    // From the tile form to its schedule.
    {"check_starts", check_starts},
    {"materialise_extents", materialise_extents},
    {"drop_selects", drop_selects},
    {"drop_selects_of_loads", drop_selects_of_loads},
    {"fold_accumulators", fold_accumulators, &Numerics::fold_accumulators},
    {"skip_hidden", skip_hidden, &Numerics::skip_hidden},
    {"skip_identities", skip_identities},
    {"begin_sums", begin_sums, &Numerics::fold_accumulators},
    {"overlap_products", overlap_products, &Rewrites::overlap_products},
    {"issue_products", issue_products, &Rewrites::overlap_products},
    {"peel_masks", peel_masks},
    {"join_steps", join_steps, &Rewrites::join_copies},
    {"separate_columns", separate_columns},
    // From the schedule to the machine form.
    {"join_copies", join_copies, &Rewrites::join_copies},
    {"contract_fma", contract_fma, &Numerics::contract_fma},
    {"sink_partial_sums", sink_partial_sums, &Numerics::sink_partial_sums},
    {"sink_partial_maxima", sink_partial_maxima, &Numerics::sink_partial_maxima},
    {"convert_layouts", convert_layouts, &Rewrites::convert_layouts},
    {"assign_layouts", assign_layouts},
    {"share_reductions", share_reductions},
    {"check_pair_loads", check_pair_loads},
    {"check_divergence", check_divergence},
    {"count_waits", count_waits},
    {"bufferise", bufferise},
    {"allocate_shared", allocate_shared},
    {"check_accesses", check_accesses, &Rewrites::check_accesses},
    {"order_lanes", order_lanes},
    {"drop_branches", drop_branches},
    {"place_memories", place_memories},
};

// What every kernel of SSA tiles takes, whatever it is compiled for.
const std::vector<std::string_view> kSimplify = {"simplify", "eliminate_common", "hoist",
                                                 "eliminate_common_hoisted", "eliminate_dead"};

const Pass& find_pass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return pass;
  }
  Diagnostic({}, "there is no pass '" + std::string(name) + "', which a target lists",
             ErrorKind::internal)
      .raise();
}

void run(const std::vector<std::string_view>& passes, ir::Kernel& kernel,
         const PassObserver& observer, Rewrites& rewrites) {
  for (const std::string_view name : passes) {
    const Pass& pass = find_pass(name);
    if (pass.allowed && !(rewrites.allowed.*pass.allowed)) continue;
    if (pass.chosen && !(rewrites.*pass.chosen)) continue;
    const ir::Kernel before = observer ? kernel : ir::Kernel();
    const auto start = std::chrono::steady_clock::now();
    if (pass.rewrite) {
      rewrites.applied[pass.name] += pass.rewrite(kernel);
    } else {
      pass.run(kernel);
    }
    ir::canonicalise(kernel);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    target::verify(kernel);
    if (observer) observer(pass.name, kernel, time.count(), !ir::equal(before, kernel));
  }
}

}  // namespace

void simplify_kernel(ir::Kernel& kernel, const PassObserver& observer) {
  target::verify(kernel);
  Rewrites none;
  run(kSimplify, kernel, observer, none);
}

void prepare_for_schedule(ir::Kernel& kernel, std::string_view target, const PassObserver& observer,
                          Rewrites& rewrites) {
  simplify_kernel(kernel, observer);
  kernel.target = target;
  run(target::target_of(kernel).preparation, kernel, observer, rewrites);
}

void lower_to_machine(ir::Kernel& kernel, const PassObserver& observer, Rewrites& rewrites) {
  simplify_kernel(kernel, observer);
  run(target::target_of(kernel).lowering, kernel, observer, rewrites);
}

void lower_to_machine(ir::Kernel& kernel, const PassObserver& observer) {
  Rewrites rewrites;
  lower_to_machine(kernel, observer, rewrites);
}

}  // namespace tilewright::passes
