#include "kernels/attention_sm90_plan.h"

#include <algorithm>
#include <string>

#include "tilewright/error.h"

namespace tilewright::kernels {
namespace {

constexpr int kSharedBytes = 227 << 10;  // of a CTA on sm_90
constexpr int kBarrierBytes = 1 << 10;   // barriers, tile numbers and what aligns the tiles
constexpr int kKvStages = 2;

struct Bytes {
  explicit Bytes(const Attention& a)
      : element(size_of(a.dtype)),
        q(a.block_q * a.dim * element),
        kv(kKvStages * a.block_k * (a.dim + a.dim_v) * element),
        o(a.block_q * a.dim_v * element),
        left(kSharedBytes - kBarrierBytes - kv) {}
  int element, q, kv, o, left;
};

// Columns of O that one 128-byte swizzled panel holds; the whole row where panels are narrower.
int panel_columns(const Attention& a) {
  const int columns = 128 / size_of(a.dtype);
  return a.dim_v % columns == 0 ? columns : a.dim_v;
}

// The most buffers of a panel each that divide a row of O evenly: 0 if there is no room for one.
int panel_buffers(const Attention& a, const Bytes& bytes) {
  const int panels = a.dim_v / panel_columns(a), panel = bytes.o / panels;
  int buffers = std::min(panels, std::max(bytes.left - bytes.q, 0) / panel);
  while (buffers > 0 && panels % buffers != 0) --buffers;
  return buffers;
}

}  // namespace

Sm90Plan sm90_plan(const Attention& a) {
  const Bytes bytes(a);
  // 65536 registers: a warpgroup of loads beside two or three of arithmetic.
  const bool wide = a.block_q > 128;
  Sm90Plan plan{1, kKvStages, a.dim_v, 1, wide ? 32 : 24, wide ? 160 : 240};
  // First a buffer for all of O, so that a tile need not wait for its own stores; then a second Q,
  // so that the next tile's comes before this one ends.
  if (bytes.q + bytes.o <= bytes.left) {
    plan.q_stages = 2 * bytes.q + bytes.o <= bytes.left ? 2 : 1;
    return plan;
  }
  plan.o_columns = panel_columns(a);
  plan.o_buffers = panel_buffers(a, bytes);
  if (plan.o_buffers == 0) {
    const std::string message = "attention: blocks of " + std::to_string(a.block_q) + " rows and " +
                                std::to_string(a.block_k) + " keys of " + std::to_string(a.dim) +
                                " and " + std::to_string(a.dim_v) + " elements do not fit " +
                                std::to_string(kSharedBytes) + " bytes of shared memory";
    throw Error(
        ErrorKind::usage, {}, message,
        "error: " + message + "\n  fix: take with_sm90_blocks(attention), or smaller blocks");
  }
  return plan;
}

Attention with_sm90_blocks(Attention a) {
  // A row of 64 has half the products of one of 128 for the same exponentials: a third warpgroup
  // covers them.
  a.block_q = a.dim <= 64 && a.dim_v <= 64 ? 192 : 128;
  // The most keys that leave room for a panel of O: every block costs waits and one question
  // whether the maximum rises.
  for (a.block_k = 128; a.block_k > 16; a.block_k -= 16) {
    const Bytes bytes(a);
    if (bytes.q + bytes.o <= bytes.left || panel_buffers(a, bytes) > 0) break;
  }
  return a;
}

Attention with_sm90_varlen_blocks(Attention a) {
  a = with_sm90_blocks(a);
  // What a sequence's lengths take of three warpgroups' registers is missing for scores.
  if (a.block_q > 128 && (a.window > 0 || a.softcap > 0)) a.block_k = std::min(a.block_k, 96);
  return a;
}

}  // namespace tilewright::kernels
