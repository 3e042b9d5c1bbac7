#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_heads.h"
#include "kernels/attention_backward_ring.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_parameters.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

std::vector<Dim> BackwardPlan::sums(const Attention& a, const Dim& blocks) const {
  return {blocks * (tiles(a) * tile_lines(a)), kLine};
}

int BackwardPlan::tiles(const Attention& a) const {
  return a.block_q * (transposed ? shared_columns(a.dim) : a.dim) / (tile_lines(a) * kLine);
}

int BackwardPlan::tile_lines(const Attention& a) const {
  return kTileRows * (transposed ? kTileRows : a.dim) / kLine;
}

namespace {
constexpr int kHeldBesideMask = 64;  // columns of V
constexpr int kWidestOverRanks = 128;
}  // namespace

int backward_rows(const Attention& a) { return std::max(a.dim, a.dim_v) <= 64 ? 128 : 64; }

BackwardPlan backward_plan(const Attention& a, Order order, KeySums keys, bool is_packed,
                           const Caller& caller) {
  check_elements(a, caller);
  if (a.block_q != backward_rows(a) || a.block_k != kGroups * kGroupRows) {
    caller.refuse(
        "block_q is " + std::to_string(a.block_q) + " and block_k " + std::to_string(a.block_k),
        "take with_sm90_backward_blocks(attention): " + std::to_string(backward_rows(a)) +
            " queries and " + std::to_string(kGroups * kGroupRows) + " keys");
  }
  BackwardPlan plan;
  // Columns that fill up the last panel are computed too, as 0. In order an eighth of them costs
  // less than dQ in turn, for which no other product may be under way.
  constexpr int kTileRows = BackwardPlan::kTileRows;
  const int most_missing = order == Order::blocks ? kTileRows / 4 : 0;
  plan.by_columns = plan_case("dQ by columns",
                              a.dim > kTileRows && shared_columns(a.dim) - a.dim <= most_missing);
  plan.transposed = plan_case("dQ^T", plan.by_columns || a.dim % kTileRows == 0);
  plan_case("padded rows of Q", shared_columns(a.dim) > a.dim);
  plan_case("padded rows of V", shared_columns(a.dim_v) > a.dim_v);
  const bool is_short = plan_case("64 rows", a.block_q == kGroupRows);
  plan.alternates = plan_case("dQ in turn", is_short && !plan.by_columns);
  plan.reads_l_early = a.softcap == 0;
  plan.reads_d_early = is_short && a.softcap == 0;
  if (plan.reads_d_early && plan.by_columns) {
    // Offsets of sequences and the ends of a window take registers too; so do a mask (some versions
    // of ptxas spill beside 80) and parts of shared heads beside conversions.
    const bool has_parts = order == Order::blocks && a.heads > a.kv_heads;
    const int most = is_packed ? 48 : a.causal || has_parts ? kHeldBesideMask : 80;
    plan.held_columns = std::min(a.dim_v, most);
  }
  plan_case("columns of V in registers", plan.held_columns > 0);
  plan.meets_early = !is_short;
  plan.ordered = plan_case("dQ in order", order == Order::blocks);
  plan.shares = plan_case("heads share keys", a.heads > a.kv_heads);
  plan.keys = keys;
  plan_case("sums of keys apart", plan.sums_keys_apart());
  plan.rotates = plan_case("rows rotated", !plan.ordered && !a.causal);
  plan_case("parts by steps", plan.division() == Division::uneven && !a.causal);
  plan.adds_together =
      plan_case("additions together", !plan.ordered && is_short && plan.by_columns);
  plan.key_stages = is_short ? 1 : 2;
  plan.values_apart = is_short;
  // It needs a place in shared memory apart from dS, as dV has. Beside padded rows the offsets of
  // sequences leave too few registers for it.
  const bool is_padded = shared_columns(a.dim) > a.dim || shared_columns(a.dim_v) > a.dim_v;
  plan.last_converts = plan_case("who adds last converts dQ",
                                 plan.ordered && plan.values_apart && !(is_packed && is_padded));
  plan.divides =
      plan_case("the last wave's keys divided",
                !plan.ordered && !plan.shares && !a.causal && a.window == 0 && !is_packed);
  plan.staggers = plan_case("second warpgroup behind the first", is_short && !plan.ordered);
  plan.load_registers = 24;
  plan.math_registers = 240;
  return plan;
}

Attention own_backward_heads(const SequenceParallelAttention& o) {
  Attention own = o.attention;
  own.heads /= o.ranks;
  own.kv_heads /= o.ranks;
  return own;
}

BackwardPlan heads_backward_plan(const SequenceParallelAttention& o, const Attention& own,
                                 bool is_packed, const Caller& caller) {
  const Attention& a = o.attention;
  const std::string of_one_gpu = std::string("; or sequence_parallel_") +
                                 (is_packed ? "varlen_" : "") +
                                 "attention_backward_sm90, which takes it";
  const auto refuse = [&](const std::string& what, const std::string& fix) {
    caller.refuse(what, fix + of_one_gpu);
  };
  if (!divides_heads(o)) {
    refuse(
        "kv_heads is " + std::to_string(a.kv_heads) + ", for " + std::to_string(o.ranks) + " ranks",
        "take a multiple of the ranks");
  }
  if (a.sinks) refuse("sinks have a gradient", "take none");
  check_dims(own, 256, caller);
  check_dims(own, kWidestOverRanks, caller, of_one_gpu);
  return backward_plan(own, Order::blocks, KeySums::in_turn, is_packed, caller);
}

// Sums of dK and dV are in memory, of one part too, and no last one converts what stays.
BackwardPlan ring_backward_plan(const SequenceParallelAttention& o, RingPass pass,
                                const Caller& caller) {
  Attention a = o.attention;
  if (a.window > 0) {
    caller.refuse("window is " + std::to_string(a.window),
                  "take the tile level: here rows see all keys of another rank, or none");
  }
  check_dims(a, kWidestOverRanks, caller, ", or the tile level");
  a.causal = a.causal && pass == RingPass::last;
  BackwardPlan plan = backward_plan(a, Order::blocks, KeySums::in_turn, false, caller);
  plan.shares = true;
  plan.divides = false;
  plan.held_columns = std::min(plan.held_columns, kHeldBesideMask);
  plan.joins = plan_case("sums of kernels before", pass != RingPass::first);
  plan.leaves = plan_case("sums for kernels behind", pass != RingPass::last);
  plan.last_converts = plan.last_converts && !plan.leaves;
  return plan;
}

RingSums ring_sums_sm90(const SequenceParallelAttention& o, const BatchShapes& shapes,
                        const Caller& caller) {
  const Attention& a = o.attention;
  const BackwardPlan plan = ring_backward_plan(o, RingPass::last, caller);
  const Dim parts = HeadParts::wanted(a, shapes, Order::blocks);
  return {plan.sums(a, shapes.kept_blocks(a.block_q)), shared_sums(a, plan, shapes, parts).sums(),
          backward_turns(a, plan, shapes, parts)};
}

}  // namespace tilewright::kernels
