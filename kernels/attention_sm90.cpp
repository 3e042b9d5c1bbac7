#include "kernels/attention.h"
#include "kernels/attention_parameters.h"
#include "kernels/softmax.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {
namespace {

// Tile t of the persistent loop: row block, head and batch. Causal work grows with the row block, so
// the longest come first; neighbouring tiles share a head's K and V in L2.
struct Work {
  Block rows;
  Index head, batch;
};

Work work(const AttentionParameters& p, const Attention& a, const Index& tile) {
  const Dim row_blocks = ceil_div(p.queries, a.block_q);
  const Index in_row = tile % row_blocks, head_of_batch = tile / row_blocks;
  const Index x = a.causal ? row_blocks - 1 - in_row : in_row;
  return {p.queries.block(x, a.block_q), head_of_batch % a.heads, head_of_batch / a.heads};
}

}  // namespace

Kernel attention_forward_sm90(const Attention& a) {
  Kernel kernel("attention_forward_sm90");
  const AttentionParameters p(kernel, a);
  kernel.ctas(multiprocessors());
  const Dim tiles = ceil_div(p.queries, a.block_q) * a.heads * p.batch;

  Ring q_ring(kernel, "q", stages(1), {{a.dtype, a.block_q, a.dim}});
  Ring k_ring(kernel, "k", stages(2), {{a.dtype, a.block_k, a.dim}});
  Ring v_ring(kernel, "v", stages(2), {{a.dtype, a.block_k, a.dim_v}});
  SharedTile o_tile(kernel, "o", a.dtype, a.block_q, a.dim_v);
  // The two warpgroups take turns to issue products, so that one's softmax runs under the other's.
  NamedBarrier turn(kernel, 256, 2);

  const auto load_role = [&] {
    for (Index tile : range(cta_index(), tiles, cta_count())) {
      const Work w = work(p, a, tile);
      const Index kv_head = w.head / p.group;
      const auto [first, last] = p.mask.visible(w.rows, p.keys, a.block_k);
      const auto load_k = [&](const Index& j) {
        k_ring.produce([&](const Slot& k) {
          tma_load(p.K(w.batch, p.keys.block(j, a.block_k), kv_head, all), k, {Cache::evict_last});
        });
      };
      const auto load_v = [&](const Index& j) {
        v_ring.produce([&](const Slot& v) {
          tma_load(p.V(w.batch, p.keys.block(j, a.block_k), kv_head, all), v, {Cache::evict_last});
        });
      };
      when(first < last, [&, first = first, last = last] {
        q_ring.produce([&](const Slot& q) {
          tma_load(p.Q(w.batch, w.rows, w.head, all), q, {Cache::evict_first});
        });
        load_k(last - 1);
        for (Index i : range(first + 1, last)) {
          const Index j = last + first - i;  // descending: last - 1 ... first + 1
          load_k(j - 1);
          load_v(j);
        }
        load_v(first);
      });
    }
  };

  const auto math_role = [&](const Index& group) {
    when(group == 1, [&] { turn.arrive(0); });
    for (Index tile : range(cta_index(), tiles, cta_count())) {
      const Work w = work(p, a, tile);
      const Block rows = w.rows.part(group, 64);
      const auto [first, last] = p.mask.visible(w.rows, p.keys, a.block_k);
      const auto [full_first, full_last] = p.mask.full(w.rows, p.keys, a.block_k);
      OnlineSoftmax softmax(rows, p.scale);
      Var acc{zeros({rows, a.dim_v})};

      when(first < last, [&, first = first, last = last, full_first = full_first,
                          full_last = full_last] {
        const Slot q_slot = q_ring.consume();
        const SharedView q = q_slot[0].rows(64 * group, 64);
        const auto scores = [&](const Tile& s, const Index& j, bool masked) {
          return masked ? p.mask.apply(s, rows, p.keys.block(j, a.block_k)) : s;
        };

        const Slot k = k_ring.consume();
        turn.sync(group);
        const Pending s = wgmma(q, k.T());
        turn.arrive(1 - group);
        const Tile visible = scores(wait(s), last - 1, true);
        k_ring.release(k);
        Var weights{softmax.step(visible).weights.cast(a.dtype)};

        // S of block j runs under the product of the weights of block j + 1, the softmax under the
        // other warpgroup's products.
        const auto step = [&](const Index& j, bool masked) {
          const Slot k = k_ring.consume();
          turn.sync(group);
          const Pending s = wgmma(q, k.T());
          const Slot v = v_ring.consume();
          const Pending o = wgmma(weights, v, acc);
          turn.arrive(1 - group);
          const Tile visible = scores(wait(s), j, masked);
          k_ring.release(k);
          const auto [next, rescale] = softmax.step(visible);
          const Tile sum = wait(o);
          v_ring.release(v);
          weights = next.cast(a.dtype);
          acc = sum * rescale;
        };
        // Blocks descend from last - 2 to first: those cut by the diagonal or the end, the whole
        // ones, those cut by the window.
        const Index top = last - 1;
        const Index masked_end = max(first, min(full_last, top));
        const Index full_end = max(first, min(full_first, masked_end));
        for (Index i : range(masked_end, top)) step(top - 1 + masked_end - i, true);
        for (Index i : range(full_end, masked_end)) step(masked_end - 1 + full_end - i, false);
        if (a.window > 0) {
          for (Index i : range(first, full_end)) step(full_end - 1 + first - i, true);
        }
        q_ring.release(q_slot);

        const Slot v = v_ring.consume();
        acc = wait(wgmma(weights, v, acc));
        v_ring.release(v);
      });

      // Each warp stores its own 16 rows; the copy before must have read them.
      bulk_wait_read(0);
      warp_sync();
      store(o_tile.rows(64 * group, 64), (acc * softmax.normaliser()).cast(a.dtype));
      fence_proxy_async();
      warp_sync();
      const Block own = rows.part(warp_index(), 16);
      tma_store(p.O(w.batch, own, w.head, all), o_tile.rows(64 * group + 16 * warp_index(), 16));
      bulk_commit();
      store(p.LSE(w.batch, w.head, rows), softmax.log_sum_exp().reshape({64}));
    }
    when(group == 0, [&] { turn.sync(0); });
    bulk_wait(0);
  };

  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(2), registers(240), math_role)});
  return kernel;
}

}  // namespace tilewright::kernels
