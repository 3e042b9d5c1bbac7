#include "kernels/attention_sm100_plan.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "kernels/attention_parameters.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

// Of a block: a thread has a row of scores in registers, beside what a mask takes, and more.
constexpr int kMostKeys = 128, kMaskedKeys = 112, kFewKeys = 96;
constexpr int kSm100BarrierBytes = 2048;  // barriers, tile numbers and what aligns the tiles
// Of a block's keys so many have their exponentials by a polynomial. By the model of costs more of
// them take longer (docs/log/2026-11-27-attention-sm100-polynomial.md).
constexpr int kPolynomialKeys = 16;
constexpr int kLeastStages = 2, kMostStages = 3;

TargetLimits limits() { return target_limits("sm_100a"); }
int tiles_of(AttentionRoles roles) { return roles == AttentionRoles::ping_pong ? 2 : 1; }

// Of the sums, that a thread has in registers at a time.
int stored_columns(const Attention& a) { return a.dim_v % 32 == 0 ? 32 : 16; }

// Bytes of shared memory beside the stages of keys and values, and of one of these.
int fixed_bytes(const Attention& a, AttentionRoles roles, int o_buffers) {
  const int rows = Sm100Plan::kRows * size_of(a.dtype);
  const int weights = roles == AttentionRoles::one_tile_shared ? a.block_k : 0;
  return kSm100BarrierBytes + rows * (tiles_of(roles) * shared_columns(a, a.dim) +
                                      o_buffers * stored_columns(a) + weights);
}
int stage_bytes(const Attention& a) {
  return a.block_k * (shared_columns(a, a.dim) + shared_columns(a, a.dim_v)) * size_of(a.dtype);
}
int stages_that_fit(const Attention& a, AttentionRoles roles, int o_buffers) {
  const int left = static_cast<int>(limits().shared_bytes) - fixed_bytes(a, roles, o_buffers);
  return std::clamp(left / stage_bytes(a), 0, kMostStages);
}

// Columns of tensor memory that a tile takes at least.
int least_columns(const Attention& a) { return a.block_k + a.dim_v; }
bool columns_fit(int of_tile, AttentionRoles roles) {
  return tiles_of(roles) * of_tile <= limits().tensor_columns;
}

void check_products_sm100(const Attention& a, const Caller& caller) {
  check_dims(a, 256, caller);
  check_elements(a, caller);
}

void check_options_sm100(const Attention& a, AttentionRoles roles, const Caller& caller) {
  check_products_sm100(a, caller);
  const int rows = tiles_of(roles) * Sm100Plan::kRows;
  if (a.in_pairs) {
    caller.refuse("in_pairs is set", "leave it out: clusters share keys on sm_90a alone");
  }
  if (a.block_q != rows) {
    caller.refuse("block_q is " + std::to_string(a.block_q),
                  "take " + std::to_string(rows) + ": 128 rows for each tile");
  }
  if (a.block_k % 16 != 0 || a.block_k > kMostKeys) {
    caller.refuse("block_k is " + std::to_string(a.block_k), "take a multiple of 16 up to 128");
  }
  const bool in_registers = roles != AttentionRoles::one_tile_shared;
  if (a.polynomial_keys < 0 || a.polynomial_keys % 16 != 0 ||
      a.polynomial_keys > (in_registers ? a.block_k : 0)) {
    caller.refuse("polynomial_keys is " + std::to_string(a.polynomial_keys),
                  in_registers ? "take a multiple of 16 up to block_k, " + std::to_string(a.block_k)
                               : "take 0: weights in shared memory are stored as a whole");
  }
  const std::string blocks = "blocks of " + std::to_string(a.block_k) + " keys";
  if (!columns_fit(least_columns(a), roles)) {
    caller.refuse(blocks + " and sums of " + std::to_string(a.dim_v) + " columns of " +
                      std::to_string(tiles_of(roles)) + " tiles do not fit " +
                      std::to_string(limits().tensor_columns) + " columns of tensor memory",
                  tiles_of(roles) > 1 ? "take one tile: AttentionRoles::one_tile, schedule sm100_ts"
                                      : "take fewer keys");
  }
  if (stages_that_fit(a, roles, 1) < kLeastStages) {
    caller.refuse(std::to_string(kLeastStages) + " stages of " + blocks + " of " +
                      std::to_string(a.dim) + " and " + std::to_string(a.dim_v) +
                      " elements do not fit " + std::to_string(limits().shared_bytes) +
                      " bytes of shared memory",
                  "take with_sm100_blocks(attention, roles), or fewer keys");
  }
}

int polynomial_keys(const Attention& a, AttentionRoles roles) {
  return roles == AttentionRoles::one_tile_shared ? 0 : std::min(kPolynomialKeys, a.block_k);
}

}  // namespace

Sm100Plan sm100_plan(const Attention& a, AttentionRoles roles, const Caller& caller) {
  check_options_sm100(a, roles, caller);
  Sm100Plan plan;
  plan.packed_heads = packed_heads(a, Sm100Plan::kWarpRows);
  plan.tiles = tiles_of(roles);
  plan.corrects_apart = plan_case("a role that corrects", plan.tiles > 1);
  // Weights beside the scores, where there are columns for both.
  const int of_weights = a.block_k * size_of(a.dtype) / 4;
  const bool fits = columns_fit(least_columns(a) + of_weights, roles);
  plan.weights = roles == AttentionRoles::one_tile_shared   ? WeightsIn::shared_memory
                 : plan_case("weights beside scores", fits) ? WeightsIn::own_columns
                                                            : WeightsIn::columns_of_scores;
  const bool own = plan.weights == WeightsIn::own_columns;
  plan.first_weights = own ? a.block_k : a.block_k - of_weights;
  plan.first_sums = a.block_k + (own ? of_weights : 0);
  plan.tile_columns = plan.first_sums + a.dim_v;
  plan.tensor_columns = static_cast<int>(
      std::max<unsigned>(std::bit_ceil(static_cast<unsigned>(plan.tiles * plan.tile_columns)),
                         static_cast<unsigned>(limits().least_tensor_columns)));
  plan.qk_columns = shared_columns(a, a.dim);
  plan.v_columns = shared_columns(a, a.dim_v);
  plan_case("padded rows of Q", plan.qk_columns > a.dim);
  plan_case("padded rows of V", plan.v_columns > a.dim_v);
  plan.o_columns = stored_columns(a);
  // A warp fills one buffer while TMA reads the other, where that costs no stage of keys.
  const int stages = stages_that_fit(a, roles, 1);
  // Both come as often in every tile.
  const bool two = a.dim_v % (2 * plan.o_columns) == 0 && stages_that_fit(a, roles, 2) == stages;
  plan.o_buffers = plan_case("two buffers of O", two) ? 2 : 1;
  plan.kv_stages = stages;
  // Of 128 for each thread as the CTA begins, or of 256 with one tile.
  plan.few_registers = plan.corrects_apart ? 56 : 64;
  plan.weighing_registers = plan.corrects_apart ? 184 : 240;
  plan.correcting_registers = 88;
  return plan;
}

// Every block costs waits and one question whether the maximum rises: as many keys as fit. Where
// two tiles share the registers, what masks, caps and sinks take of them is missing for scores.
Attention with_sm100_blocks(Attention a, AttentionRoles roles, SourceLocation where) {
  check_products_sm100(a, {"with_sm100_blocks", where, "attention for sm_100a"});
  const bool shared = tiles_of(roles) > 1, more = a.window > 0 || a.softcap > 0 || a.sinks;
  a.block_q = tiles_of(roles) * Sm100Plan::kRows;
  a.block_k = plan_case("keys beside windows, caps or sinks", shared && more) ? kFewKeys
              : plan_case("keys beside a diagonal", shared && a.causal)       ? kMaskedKeys
                                                                              : kMostKeys;
  const auto fits = [&] {
    return columns_fit(least_columns(a), roles) && stages_that_fit(a, roles, 1) >= kLeastStages;
  };
  while (a.block_k > 16 && !fits()) a.block_k -= 16;
  a.polynomial_keys = polynomial_keys(a, roles);
  return a;
}

// The same of a sequence's lengths.
Attention with_sm100_varlen_blocks(Attention a, AttentionRoles roles, SourceLocation where) {
  a = with_sm100_blocks(a, roles, where);
  if (tiles_of(roles) > 1) a.block_k = std::min(a.block_k, kFewKeys);
  a.polynomial_keys = polynomial_keys(a, roles);
  return a;
}

}  // namespace tilewright::kernels
