#include "kernels/attention_sm90_plan.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/attention_parameters.h"
#include "kernels/split_tiles.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

int panel_columns(const Attention& a) { return 128 / size_of(a.dtype); }

}  // namespace

int packed_heads(const Attention& a, int warp_rows) {
  const int packed = std::gcd(a.heads / a.kv_heads, warp_rows);
  plan_case("rows of several heads", packed > 1);
  plan_case("several tiles of heads share keys", a.heads / a.kv_heads > packed);
  return packed;
}

// Rows of 32 or 64 bytes are panels of their own.
int shared_columns(const Attention& a, int dim) {
  const int panel = panel_columns(a);
  return dim <= panel / 2 && panel % dim == 0 ? dim : (dim + panel - 1) / panel * panel;
}

namespace {

int shared_bytes() { return static_cast<int>(target_limits("sm_90a").shared_bytes); }

constexpr int kBarrierBytes = 1 << 10;  // barriers, tile numbers and what aligns the tiles
constexpr int kWarpgroupRows = 64;
// Three warpgroups drift further apart than two: a third stage keeps them from waiting.
constexpr int kKvStages[] = {0, 2, 2, 3};
// What the accumulator and one block's scores may take of them, in f32: the weights take half of
// the scores again, and addresses, masks and the softmax the rest (ptxas serialises the products
// above 108 of 160).
constexpr int kTileRegisters[] = {0, 160, 160, 96};

int warpgroups_of(const Attention& a) { return std::clamp(a.block_q / kWarpgroupRows, 1, 3); }

struct Bytes {
  explicit Bytes(const Attention& a)
      : element(size_of(a.dtype)),
        q(a.block_q * shared_columns(a, a.dim) * element),
        kv(kKvStages[warpgroups_of(a)] * a.block_k *
           (shared_columns(a, a.dim) + shared_columns(a, a.dim_v)) * element),
        o(a.block_q * a.dim_v * element),
        left(shared_bytes() - kBarrierBytes - kv) {}
  int element, q, kv, o, left;
};

// Columns of one buffer of O if it does not fit as a whole.
int part_columns(const Attention& a) {
  return a.dim_v % panel_columns(a) == 0 ? panel_columns(a) : a.dim_v;
}

// The most buffers of so many columns that divide a row of O evenly: 0 if there is no room for one.
int part_buffers(const Attention& a, const Bytes& bytes) {
  const int parts = a.dim_v / part_columns(a), part = bytes.o / parts;
  int buffers = std::min(parts, std::max(bytes.left - bytes.q, 0) / part);
  while (buffers > 0 && parts % buffers != 0) --buffers;
  return buffers;
}

// The most keys, 128 at most, whose block leaves room for O, or for a part of it; 0 if none do.
// Every block costs waits and one question whether the maximum rises. Of three warpgroups with wide
// accumulators, short blocks whose scores may outlive their weights are faster all the same.
int widest_block_k(Attention a, bool o_in_parts) {
  const int registers = kTileRegisters[warpgroups_of(a)] - a.dim_v / 2;
  const int most = warpgroups_of(a) == 3 && a.dim_v > 64 ? 64 : 128;
  for (a.block_k = std::min(most, 2 * registers / 16 * 16); a.block_k > 0; a.block_k -= 16) {
    const Bytes bytes(a);
    if (bytes.q + bytes.o <= bytes.left || (o_in_parts && part_buffers(a, bytes) > 0)) break;
  }
  return a.block_k;
}

constexpr int kWidestDim = 256;

void check_options(const Attention& a, const Caller& caller) {
  check_dims(a, kWidestDim, caller);
  check_elements(a, caller);
  if (a.block_q % kWarpgroupRows != 0 || a.block_q > 3 * kWarpgroupRows) {
    caller.refuse("block_q is " + std::to_string(a.block_q),
                  "take 64, 128 or 192: 64 rows for each warpgroup");
  }
  if (a.in_pairs && a.window > 0) {
    caller.refuse("in_pairs is set and window is " + std::to_string(a.window),
                  "leave one of them out: the tiles of a pair see too few keys together");
  }
  if (a.in_parts && (a.window > 0 || a.in_pairs)) {
    caller.refuse("in_parts is set and " + (a.window > 0 ? "window is " + std::to_string(a.window)
                                                         : std::string("in_pairs is set")),
                  "leave one of them out: tiles of a window and of pairs stay whole");
  }
  if (a.in_parts && !can_have_parts(a)) {
    caller.refuse("in_parts is set, dim is " + std::to_string(a.dim) + " and dim_v " +
                      std::to_string(a.dim_v),
                  "leave it out (schedule sm90): tiles of dims above 128 stay whole");
  }
  if (a.block_k % 16 != 0 || a.block_k > 256) {
    caller.refuse("block_k is " + std::to_string(a.block_k), "take a multiple of 16 up to 256");
  }
}

void check_fit(const Attention& a, const Sm90Plan& plan, const Caller& caller) {
  if (plan.o_buffers > 0) return;
  caller.refuse("blocks of " + std::to_string(a.block_q) + " rows and " +
                    std::to_string(a.block_k) + " keys of " + std::to_string(a.dim) + " and " +
                    std::to_string(a.dim_v) + " elements do not fit " +
                    std::to_string(shared_bytes()) + " bytes of shared memory",
                "take with_sm90_blocks(attention), or smaller blocks");
}

// The most blocks of keys that two neighbouring tiles both see, where the rows' own keys begin at
// multiples of `step`, a divisor of a block.
int shared_blocks(const Attention& a, int step) {
  int most = 0;
  const int start = (a.window / a.block_k + 1) * a.block_k;
  // Both see the window - 1 keys below the first row's own.
  for (int own = start; own < start + a.block_k; own += step) {
    const int first = (own - a.window + 1) / a.block_k, last = (own - 1) / a.block_k;
    most = std::max(most, last + 1 - first);
  }
  return most;
}

}  // namespace

Sm90Plan sm90_plan(const Attention& a, bool has_neighbours, const Caller& caller) {
  check_options(a, caller);
  const Bytes bytes(a);
  const int groups = warpgroups_of(a);
  Sm90Plan plan;
  plan.packed_heads = packed_heads(a, 16);
  plan.qk_columns = shared_columns(a, a.dim);
  plan.v_columns = shared_columns(a, a.dim_v);
  plan_case("padded rows of Q", plan.qk_columns > a.dim);
  plan_case("padded rows of V", plan.v_columns > a.dim_v);
  plan.kv_stages = kKvStages[groups];
  // Three warpgroups are bound by what each does in order between its products: one wait less, and
  // no search for a maximum where scores and weights have registers beside the accumulator. Blocks
  // of 128 keys have them without a window or cap, and gain by it under a causal mask only.
  plan.kv_together = plan_case("three warpgroups", groups == 3);
  plan.scores_last =
      plan_case("scores last",
                groups == 3 && (a.dim_v > 64 || (a.causal && a.window == 0 && a.softcap == 0)));
  const RoleRegisters share = role_registers(target_limits("sm_90a"), groups);
  plan.load_registers = share.loading;
  plan.math_registers = share.computing;
  // A buffer for all of O, so that a tile need not wait for its own stores, and a second Q, so that
  // the next tile's comes before this one ends. Where that fits in O's place only, O leaves through
  // its own Q, whose stage comes free later: not before the next tile has begun.
  const bool beside_o = 2 * bytes.q + bytes.o <= bytes.left;
  plan.o_in_q = plan_case("O leaves through Q", !beside_o && 2 * bytes.q <= bytes.left &&
                                                    plan.v_columns <= plan.qk_columns &&
                                                    plan.v_columns % panel_columns(a) == 0 &&
                                                    (groups == 3 || a.dim_v == plan.v_columns));
  const bool whole = plan.o_in_q || bytes.q + bytes.o <= bytes.left;
  plan.q_stages = plan_case("two stages of Q", beside_o || plan.o_in_q) ? 2 : 1;
  plan.o_columns = plan_case("O in one piece", whole) ? a.dim_v : part_columns(a);
  plan.o_buffers = whole ? 1 : part_buffers(a, bytes);
  check_fit(a, plan, caller);
  plan_case("several buffers of O", plan.o_buffers > 1);
  const int o = plan.o_in_q ? 0 : a.block_q * plan.o_columns * plan.o_buffers * bytes.element;
  const int stage = bytes.kv / plan.kv_stages;
  // One stage more where it fits: short lengths and windows wait for copies.
  const bool fits = groups == 3 && plan.q_stages * bytes.q + o + stage <= bytes.left;
  if (plan_case("one stage of keys more", fits)) ++plan.kv_stages;
  plan.waits_for_copies =
      plan_case("waits for copies", has_neighbours && a.window > 0 && a.dim_v > 64);
  // Blocks of keys stay for the next tile where they fit their stages, and where copies are what
  // three warpgroups wait for: not at short rows, and not for one block. K is given back before V.
  if (plan.waits_for_copies && groups == 3) {
    const int step = std::gcd(a.block_q / plan.packed_heads, a.block_k);
    const bool any_shift = shared_blocks(a, 1) <= plan.kv_stages;
    plan.slide_multiple = any_shift ? 1 : step;
    plan.slides = plan_case("slides", shared_blocks(a, step) > 1 &&
                                          shared_blocks(a, plan.slide_multiple) <= plan.kv_stages);
    if (plan.slides) plan_case("slides at any shift", any_shift);
    plan.kv_together = !plan.slides;
  }
  return plan;
}

Attention with_sm90_blocks(Attention a, SourceLocation where) {
  check_dims(a, kWidestDim, {"with_sm90_blocks", where, "attention for sm_90a"});
  // Three warpgroups hide more of each other's softmax than two, where they leave room for a block
  // of keys that is worth its waits.
  a.block_q = 3 * kWarpgroupRows;
  a.block_k = widest_block_k(a, false);
  if (plan_case("short blocks of keys", a.block_k < 64) || a.few_tiles) {
    a.block_q = 2 * kWarpgroupRows;
    a.block_k = std::max(widest_block_k(a, true), 16);
  }
  return a;
}

Attention with_sm90_varlen_blocks(Attention a, SourceLocation where) {
  check_dims(a, kWidestDim, {"with_sm90_varlen_blocks", where, "attention for sm_90a"});
  a = with_sm90_blocks(a, where);
  // What a sequence's lengths take of the registers is missing for scores: of three warpgroups',
  // and beside the widest accumulator.
  if (plan_case("keys beside lengths", a.block_q > 128 && (a.window > 0 || a.softcap > 0))) {
    a.block_k = std::min(a.block_k, 96);
  }
  if (plan_case("keys beside the widest sums", a.dim_v > 208 && a.window > 0)) {
    a.block_k = std::min(a.block_k, 48);
  }
  return a;
}

}  // namespace tilewright::kernels
