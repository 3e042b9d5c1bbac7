#include <optional>

#include "kernels/attention_parameters.h"
#include "kernels/attention_sm90_plan.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {
namespace {

// A tile: a block of queries of one head, and the keys that they see.
struct Work {
  Block rows;
  Index head;
  Sequence keys;
  Mask mask;
  std::optional<Index> batch;  // of tensors that have such an axis

  TensorView operator()(const Tensor& tensor, const Block& part, const Index& head_of_tensor,
                        const Selector& columns) const {
    return batch ? tensor(*batch, part, head_of_tensor, columns)
                 : tensor(part, head_of_tensor, columns);
  }
  TensorView sums(const Tensor& lse, const Block& part) const {
    return batch ? lse(*batch, head, part) : lse(head, part);
  }
};

// The order of tiles (row block, head and batch): the longest rows of a causal mask first, within
// groups of heads whose K and V stay in L2 together.
class BatchOrder {
 public:
  using Parameters = AttentionParameters;
  static constexpr bool kEveryTileHasRows = true;

  BatchOrder(const AttentionParameters& p, const Attention& a)
      : p_(p),
        a_(a),
        row_blocks_(ceil_div(p.queries, a.block_q)),
        heads_(p.batch * a.heads),
        group_(min(heads_,
                   max(kL2Bytes / (max(p.keys, 1) * (a.dim + a.dim_v) * size_of(a.dtype)), 1))) {}

  Dim count() const { return row_blocks_ * heads_; }

  Work work(const Index& tile) const {
    const Dim per_group = max(group_ * row_blocks_, 1);
    const Index first = tile / per_group * group_, in_group = tile % per_group;
    const Index height = min(heads_ - first, group_);
    const Index head = first + in_group % height,
                longest_first = row_blocks_ - 1 - in_group / height;
    return {p_.queries.block(longest_first, a_.block_q), head % a_.heads, p_.keys, p_.mask,
            head / a_.heads};
  }

 private:
  static constexpr std::int64_t kL2Bytes = 32 << 20;  // measured: docs/performance.md
  const AttentionParameters& p_;
  const Attention& a_;
  Dim row_blocks_, heads_, group_;
};

// Head by head, the tiles of all sequences: of each sequence the longest rows of a causal mask
// first.
class PackedOrder {
 public:
  using Parameters = VarlenParameters;
  static constexpr bool kEveryTileHasRows = false;

  PackedOrder(const VarlenParameters& p, const Attention& a)
      : p_(p), a_(a), per_head_(p.queries.tiles(a.block_q)) {}

  Dim count() const { return per_head_ * a_.heads; }

  Work work(const Index& tile) const {
    const Dim per_head = max(per_head_, 1);
    const auto [sequence, block] = p_.queries.tile(per_head - 1 - tile % per_head, a_.block_q);
    const Sequence queries = p_.queries.of(sequence), keys = p_.keys.of(sequence);
    return {queries.block(block, a_.block_q), tile / per_head, keys, p_.mask(queries, keys), {}};
  }

 private:
  const VarlenParameters& p_;
  const Attention& a_;
  Dim per_head_;
};

template <typename Order>
Kernel attention_sm90(const char* name, const Attention& a) {
  Kernel kernel(name);
  const Sm90Plan plan = sm90_plan(a);
  const typename Order::Parameters p(kernel, a);
  // Tiles are handed out as CTAs become free: a mask makes some far shorter than others.
  const Tensor next_tile = kernel.workspace("next_tile", 1);
  kernel.ctas(multiprocessors());
  const Order order(p, a);
  const Dim tiles = order.count();

  Ring q_ring(kernel, "q", stages(plan.q_stages), {{a.dtype, a.block_q, a.dim}});
  q_ring.numbered();  // with each Q tile its number
  Ring k_ring(kernel, "k", stages(plan.kv_stages), {{a.dtype, a.block_k, a.dim}});
  Ring v_ring(kernel, "v", stages(plan.kv_stages), {{a.dtype, a.block_k, a.dim_v}});
  SharedTile o_tile(kernel, "o", a.dtype, a.block_q, plan.o_columns * plan.o_buffers);

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

            const Work work = order.work(now);
            const Index kv_head = work.head / p.group;
            const auto load_k = [&](const Index& j) {
              k_ring.produce([&](const Slot& k) {
                tma_load(work(p.K, work.keys.block(j, a.block_k), kv_head, all), k);
              });
            };
            const auto load_v = [&](const Index& j) {
              v_ring.produce([&](const Slot& v) {
                tma_load(work(p.V, work.keys.block(j, a.block_k), kv_head, all), v);
              });
            };
            const auto load_tile = [&] {
              q_ring.produce(
                  now, [&](const Slot& q) { tma_load(work(p.Q, work.rows, work.head, all), q); });
              // In the order of use: blocks descend, K one block ahead of V.
              const auto [first, last] = work.mask.visible(work.rows, work.keys, a.block_k);
              when(first < last, [&, &first = first, &last = last] {
                load_k(last - 1);
                for (Index i : range(first + 1, last)) {
                  const Index j = last + first - i;
                  load_k(j - 1);
                  load_v(j);
                }
                load_v(first);
              });
            };
            if constexpr (Order::kEveryTileHasRows) {
              load_tile();
            } else {
              when(work.rows.start() < work.rows.limit(), load_tile);
            }
          },
          [&] { q_ring.produce(now); });
    });
  };

  const auto math_tile = [&](const Index& group, const Slot& q_slot) {
    const Work work = order.work(q_slot.number());
    const Block rows = work.rows.part(group, 64);
    const SharedView q = q_slot[0].rows(64 * group, 64);
    const auto [first, last] = work.mask.visible(work.rows, work.keys, a.block_k);
    const auto [full_first, full_last] = work.mask.full(work.rows, work.keys, a.block_k);
    OnlineSoftmax softmax(rows, p.scale);
    Var acc{zeros({rows, a.dim_v})};

    when(
        first < last,
        [&, &first = first, &last = last, &full_first = full_first, &full_last = full_last] {
          const auto mask = [&](const Tile& s, const Index& j, bool masked) {
            return masked ? work.mask.apply(s, rows, work.keys.block(j, a.block_k)) : s;
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

          // The next tile's Q may come while this one ends.
          q_ring.release(q_slot);
          const Slot v = v_ring.consume();
          acc = wait(wgmma(weights, v, acc));
          v_ring.release(v);
        },
        [&] { q_ring.release(q_slot); });

    // Each warp stores its own 16 rows, once the copy that last read its part of the buffer has.
    const Tile sum = acc, normaliser = softmax.normaliser();
    const Index own = 64 * group + 16 * warp_index();
    for (int part = 0; part * plan.o_columns < a.dim_v; ++part) {
      const int column = part % plan.o_buffers * plan.o_columns;
      const Tile columns = sum.slice({0, part * plan.o_columns}, {64, plan.o_columns});
      bulk_wait_read(plan.o_buffers - 1);
      warp_sync();
      store(o_tile.rows(64 * group, 64).columns(column, plan.o_columns),
            (columns * normaliser).cast(a.dtype));
      fence_proxy_async();
      warp_sync();
      tma_store(work(p.O, rows.part(warp_index(), 16), work.head,
                     Dim(a.dim_v).block(part, plan.o_columns)),
                o_tile.rows(own, 16).columns(column, plan.o_columns));
      bulk_commit();
    }
    store(work.sums(p.LSE, rows), softmax.log_sum_exp().reshape({64}));
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

  kernel.roles(
      {role("load", warps(1), registers(plan.load_registers), load_role),
       role("math", warpgroups(a.block_q / 64), registers(plan.math_registers), math_role)});
  kernel.require({wgmma_rs, no_stack, no_spills});
  return kernel;
}

}  // namespace

Kernel attention_forward_sm90(const Attention& a) {
  return attention_sm90<BatchOrder>("attention_forward_sm90", a);
}

Kernel attention_varlen_forward_sm90(const Attention& a) {
  return attention_sm90<PackedOrder>("attention_varlen_forward_sm90", a);
}

}  // namespace tilewright::kernels
