#include <string>

#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {
namespace {

// The order of tiles (row block, head and batch): the longest rows of a causal mask first, within
// groups of heads whose K and V stay in L2 together.
class TileOrder {
 public:
  TileOrder(const AttentionParameters& p, const Attention& a)
      : p_(p),
        a_(a),
        row_blocks_(ceil_div(p.queries, a.block_q)),
        heads_(p.batch * a.heads),
        group_(min(heads_,
                   max(kL2Bytes / (max(p.keys, 1) * (a.dim + a.dim_v) * size_of(a.dtype)), 1))) {}

  Dim count() const { return row_blocks_ * heads_; }

  struct Work {
    Block rows;
    Index head, batch;
  };
  Work work(const Index& tile) const {
    const Dim per_group = max(group_ * row_blocks_, 1);
    const Index first = tile / per_group * group_, in_group = tile % per_group;
    const Index height = min(heads_ - first, group_);
    const Index head = first + in_group % height,
                longest_first = row_blocks_ - 1 - in_group / height;
    return {p_.queries.block(longest_first, a_.block_q), head % a_.heads, head / a_.heads};
  }

 private:
  static constexpr std::int64_t kL2Bytes = 32 << 20;  // measured: docs/performance.md
  const AttentionParameters& p_;
  const Attention& a_;
  Dim row_blocks_, heads_, group_;
};

}  // namespace

Attention with_sm90_blocks(Attention attention) {
  // A row of 64 has half the products of one of 128 for the same exponentials: a third warpgroup
  // covers them.
  attention.block_q = attention.dim <= 64 && attention.dim_v <= 64 ? 192 : 128;
  attention.block_k = 128;
  return attention;
}

Kernel attention_forward_sm90(const Attention& a) {
  Kernel kernel("attention_forward_sm90");
  const int groups = a.block_q / 64;
  const AttentionParameters p(kernel, a);
  // Tiles are handed out as CTAs become free: a mask makes some far shorter than others.
  const Tensor next_tile = kernel.workspace("next_tile", 1);
  kernel.ctas(multiprocessors());
  const TileOrder order(p, a);
  const Dim tiles = order.count();

  Ring q_ring(kernel, "q", stages(2), {{a.dtype, a.block_q, a.dim}});
  q_ring.numbered();  // with each Q tile its number
  Ring k_ring(kernel, "k", stages(2), {{a.dtype, a.block_k, a.dim}});
  Ring v_ring(kernel, "v", stages(2), {{a.dtype, a.block_k, a.dim_v}});
  SharedTile o_tile(kernel, "o", a.dtype, a.block_q, a.dim_v);

  const auto load_role = [&] {
    Cell<Index> tile(cta_index());
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Index now = tile;
      more = now < tiles;
      when(
          now < tiles,
          [&] {
            // One tile ahead, so that nobody waits for the counter. Each tile fetches once: the
            // last fetch of all sets the counter back for the next launch.
            const Index fetched = atomic_add(next_tile(0), 1);
            when(fetched == tiles - 1, [&] { atomic_add(next_tile(0), 0 - Index(tiles)); });
            tile = fetched + cta_count();

            const auto [rows, head, batch] = order.work(now);
            const Index kv_head = head / p.group;
            const auto load_k = [&, &batch = batch](const Index& j) {
              k_ring.produce([&](const Slot& k) {
                tma_load(p.K(batch, p.keys.block(j, a.block_k), kv_head, all), k);
              });
            };
            const auto load_v = [&, &batch = batch](const Index& j) {
              v_ring.produce([&](const Slot& v) {
                tma_load(p.V(batch, p.keys.block(j, a.block_k), kv_head, all), v);
              });
            };
            q_ring.produce(now, [&, &rows = rows, &head = head, &batch = batch](const Slot& q) {
              tma_load(p.Q(batch, rows, head, all), q);
            });
            // In the order of use: blocks descend, K one block ahead of V.
            const auto [first, last] = p.mask.visible(rows, p.keys, a.block_k);
            when(first < last, [&, &first = first, &last = last] {
              load_k(last - 1);
              for (Index i : range(first + 1, last)) {
                const Index j = last + first - i;
                load_k(j - 1);
                load_v(j);
              }
              load_v(first);
            });
          },
          [&] { q_ring.produce(now); });
    });
  };

  const auto math_tile = [&](const Index& group, const Slot& q_slot) {
    const auto [tile_rows, head, batch] = order.work(q_slot.number());
    const Block rows = tile_rows.part(group, 64);
    const SharedView q = q_slot[0].rows(64 * group, 64);
    const auto [first, last] = p.mask.visible(tile_rows, p.keys, a.block_k);
    const auto [full_first, full_last] = p.mask.full(tile_rows, p.keys, a.block_k);
    LazySoftmax softmax(rows, p.scale);
    Var acc{zeros({rows, a.dim_v})};

    when(first < last,
         [&, &first = first, &last = last, &full_first = full_first, &full_last = full_last] {
           const auto mask = [&](const Tile& s, const Index& j, bool masked) {
             return masked ? p.mask.apply(s, rows, p.keys.block(j, a.block_k)) : s;
           };
           const Slot k = k_ring.consume();
           const Tile s = mask(wait(wgmma(q, k.T())), last - 1, true);
           k_ring.release(k);
           softmax.raise(s);
           Var weights{softmax.weights(s).cast(a.dtype)};

           // S of block j is computed beside the product of the weights of block j + 1, and its
           // softmax under that product.
           const auto step = [&](const Index& j, bool masked) {
             const Slot k = k_ring.consume();
             const Pending scores = wgmma(q, k.T());
             const Slot v = v_ring.consume();
             const Pending sum = wgmma(weights, v, acc);
             const Tile s = mask(wait(scores), j, masked);
             k_ring.release(k);
             const Condition raised = softmax.raise(s);
             const Tile next = softmax.weights(s);
             acc = wait(sum);
             v_ring.release(v);
             weights = next.cast(a.dtype);
             when(raised, [&] { acc = acc * softmax.rescale(); });
           };
           // Blocks descend from last - 2 to first: those that the diagonal or the end cuts, the
           // whole ones, those that the window cuts.
           const Index top = last - 1;
           const Index whole_end = max(first, min(full_last, top));
           const Index whole_begin = max(first, min(full_first, whole_end));
           for (Index i : range(whole_end, top)) step(top - 1 + whole_end - i, true);
           for (Index i : range(whole_begin, whole_end))
             step(whole_end - 1 + whole_begin - i, false);
           if (a.window > 0) {
             for (Index i : range(first, whole_begin)) step(whole_begin - 1 + first - i, true);
           }

           const Slot v = v_ring.consume();
           acc = wait(wgmma(weights, v, acc));
           v_ring.release(v);
         });
    q_ring.release(q_slot);

    // Each warp stores its own 16 rows, once its copy of the tile before has read them.
    const Index own = 64 * group + 16 * warp_index();
    bulk_wait_read(0);
    warp_sync();
    store(o_tile.rows(64 * group, 64), (acc * softmax.normaliser()).cast(a.dtype));
    fence_proxy_async();
    warp_sync();
    tma_store(p.O(batch, rows.part(warp_index(), 16), head, all), o_tile.rows(own, 16));
    bulk_commit();
    store(p.LSE(batch, head, rows), softmax.log_sum_exp().reshape({64}));
  };

  const auto math_role = [&](const Index& group) {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot q_slot = q_ring.consume();
      const Condition valid = q_slot.number() < tiles;
      more = valid;
      when(valid, [&] { math_tile(group, q_slot); });
    });
    bulk_wait(0);
  };

  // 65536 registers: a warpgroup of loads beside two or three of arithmetic.
  kernel.roles({role("load", warps(1), registers(groups > 2 ? 32 : 24), load_role),
                role("math", warpgroups(groups), registers(groups > 2 ? 160 : 240), math_role)});
  kernel.require({wgmma_rs, no_stack, no_spills});
  return kernel;
}

}  // namespace tilewright::kernels
