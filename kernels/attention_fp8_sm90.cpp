#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention_fp8.h"
#include "kernels/attention_sm90_forward.h"
#include "tilewright/hopper.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

// Attention by products of e4m3, whose operands have their depth side by side in memory. V has its
// columns so. A kernel of its own turns it over, and orders the keys so that the weights, as a
// product has left them in registers, are the next product's operand.
namespace tilewright::kernels {
namespace {

constexpr int kTurned = 128;  // keys of a tile that is turned over
constexpr int kOrdered = 16;  // keys that change places among themselves
constexpr int kBarrierBytes = 1 << 10;

// Of 16 columns a thread has two of a product's result and, 8 columns on, two more. Of an operand
// of bytes it has four side by side: these. Of the keys, which V has as rows, both are ordered so.
Tile as_operand(const Tile& weights) {
  const std::int64_t rows = weights.shape()[0], keys = weights.shape()[1];
  return weights.reshape({rows, keys / kOrdered, 2, 4, 2})
      .permute({0, 1, 3, 2, 4})
      .reshape({rows, keys});
}
Tile turned_over(const Tile& values) {
  const std::int64_t keys = values.shape()[0], columns = values.shape()[1];
  return values.reshape({keys / kOrdered, 2, 4, 2, columns})
      .permute({4, 0, 2, 1, 3})
      .reshape({columns, keys});
}

// The operand of bytes in registers (PTX, wgmma: layout of A).
RegisterMap operand_map(int columns) {
  return {{{4, 1, 1}, {2, 0, 8}, {columns / kOrdered, 1, kOrdered}},
          {{4, 1, 4}, {8, 0, 1}},
          {{4, 0, 16}}};
}

// Each thread has rows of the result, four keys side by side.
RegisterMap turned_map(int columns) {
  const int rows_of_warps = columns / 32;
  return {{{4, 1, 1}, {kTurned / 4 / (4 / rows_of_warps), 1, 4}},
          {{32, 0, 1}},
          {{rows_of_warps, 0, 32}, {4 / rows_of_warps, 1, kTurned / (4 / rows_of_warps)}}};
}

Dim padded(const Dim& keys) { return ceil_div(keys, kOrdered) * kOrdered; }

std::vector<Dim> shape_of_turned(const BatchShapes& shapes, const Attention& a) {
  return {shapes.batch, a.kv_heads, a.dim_v, padded(shapes.keys)};
}

struct TurnedParameters : Fp8Parameters {
  TurnedParameters(Kernel& kernel, const Attention& a)
      : TurnedParameters(kernel, a, BatchShapes(kernel, a)) {}
  TurnedParameters(Kernel& kernel, const Attention& a, const BatchShapes& shapes)
      : Fp8Parameters(kernel, a, shapes, shape_of_turned(shapes, a)) {}
  TensorView values(const Index& sequence, const Index& kv_head, int dim_v, const Index& j,
                    int block_k) const {
    return V(sequence, kv_head, Dim(dim_v).block(0, dim_v), padded(keys).block(j, block_k));
  }
  static Tile weights(const Tile& tile) {
    return in_registers(as_operand(tile), operand_map(static_cast<int>(tile.shape()[1])))
        .cast(f8e4m3);
  }
};

class TurnedOrder : public BatchOrder {
 public:
  using Parameters = TurnedParameters;
  static constexpr bool kHasNeighbours = false;
  TurnedOrder(const TurnedParameters& p, const Attention& a, const Sm90Plan& plan)
      : BatchOrder(p, a, plan) {}
};

// V {batch, keys, kv_heads, dim_v} as {batch, kv_heads, dim_v, keys}, the keys ordered; 0 behind
// the last one.
Kernel turn_over(const Attention& a) {
  Kernel kernel("attention_fp8_values");
  const BatchShapes shapes(kernel, a, false);
  const Tensor V = kernel.in("V", f8e4m3, shapes.of_keys(a.dim_v));
  const Tensor turned = kernel.out("turned", f8e4m3, shape_of_turned(shapes, a));
  Ring values(kernel, "values", stages(4), {{f8e4m3, kTurned, a.dim_v}}, here());
  SharedTile result(kernel, "result", f8e4m3, a.dim_v, 2 * kTurned, here());
  const Dim of_head = max(ceil_div(shapes.keys, kTurned), 1);
  const Dim tiles = ceil_div(shapes.keys, kTurned) * shapes.batch * a.kv_heads;
  const Dim ctas = multiprocessors() * 2;
  const auto each = [&](const auto& body) {
    for (Index round : range(ceil_div(tiles, ctas))) {
      const Index tile = round * ctas + cta_index();
      when(tile < tiles, [&] {
        const Index head = tile / of_head;
        body(head / a.kv_heads, head % a.kv_heads, tile % of_head, round);
      });
    }
  };
  const Block columns = Dim(a.dim_v).block(0, a.dim_v);
  kernel.ctas(ctas);
  kernel.roles({role("load", warps(1), registers(40),
                     [&] {
                       each([&](const Index& b, const Index& h, const Index& block, const Index&) {
                         values.produce([&](const Slot& slot) {
                           tma_load(V(b, shapes.keys.block(block, kTurned), h, columns), slot);
                         });
                       });
                     }),
                role("turn", warpgroups(1), registers(128), [&] {
                  NamedBarrier all_warps(kernel, 128);
                  each([&](const Index& b, const Index& h, const Index& block, const Index& round) {
                    const Slot slot = values.consume();
                    const Tile tile = in_registers(turned_over(load(slot)), turned_map(a.dim_v));
                    fence_proxy_async();  // what was loaded from here TMA overwrites
                    values.release(slot);
                    const SharedView to = result.column_part(round % 2, kTurned);
                    // What was copied from here two rounds before.
                    bulk_wait_read(1);
                    all_warps.sync();
                    store(to, tile);
                    fence_proxy_async();
                    all_warps.sync();
                    when(warp_index() == 0, [&] {
                      tma_store(turned(b, h, columns, padded(shapes.keys).block(block, kTurned)),
                                to);
                      bulk_commit();
                    });
                  });
                  bulk_wait(0);
                })});
  return kernel;
}

Sm90Plan plan_of(const Attention& a) {
  Sm90Plan plan{};
  const int groups = a.block_q / 64;
  plan.packed_heads = std::gcd(a.heads / a.kv_heads, 16);
  plan_case("rows of several heads", plan.packed_heads > 1);
  plan.qk_columns = a.dim;
  plan.v_columns = a.dim_v;
  plan.kv_together = groups == 3;
  plan.scores_last = true;
  plan.o_columns = a.dim_v;
  plan.o_buffers = 1;
  const RoleRegisters share = role_registers(target_limits("sm_90a"), groups);
  plan.load_registers = share.loading;
  plan.math_registers = share.computing;
  plan.q_stages = 2;
  const int shared = static_cast<int>(target_limits("sm_90a").shared_bytes) - kBarrierBytes;
  const int q = a.block_q * a.dim, o = a.block_q * a.dim_v * size_of(a.dtype);
  plan.kv_stages = std::min((shared - o - 2 * q) / (a.block_k * (a.dim + a.dim_v)), 4);
  return plan;
}

Kernel attend(Attention a) {
  Kernel kernel("attention_forward_fp8_sm90");
  // As many heads of bytes stay in L2 as of half as many elements of O's dtype.
  a.l2_bytes *= 2;
  const Sm90Plan plan = plan_of(a);
  Forward<TurnedOrder>(kernel, a, plan);
  return kernel;
}

void check(const Attention& a, const Caller& caller) {
  check_attention_fp8(a, caller);
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim == 64 || dim == 128) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  "take 64 or 128, or attention_forward_fp8");
  }
}

}  // namespace

Attention with_sm90_fp8_blocks(Attention a) {
  // Three warpgroups hide more of each other's softmax than two with longer blocks: what their
  // registers hold of scores (docs/log/2026-11-27-attention-e4m3.md).
  a.block_q = 192;
  a.block_k = 96;
  return a;
}

Program attention_forward_fp8_sm90(const Attention& a, SourceLocation where) {
  check(a, {"attention_forward_fp8_sm90", where});
  Program program("attention_forward_fp8");
  const Fp8Buffers buffers(program, a);
  const Buffer turned =
      program.scratch("turned", f8e4m3, {buffers.batch, a.kv_heads, a.dim_v, padded(buffers.keys)});
  const Stream stream = program.rank(0).stream();
  stream.launch(turn_over(a), {buffers.V, turned});
  stream.launch(attend(a), buffers.for_attention(turned));
  return program;
}

}  // namespace tilewright::kernels
