#include <functional>
#include <optional>
#include <vector>

#include "kernels/attention_parameters.h"
#include "kernels/attention_sm90_plan.h"
#include "kernels/attention_sm90_tiles.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {
namespace {

// One kernel for every order of tiles, which says what a tile's rows and keys are.
template <typename Order>
class Forward {
 public:
  Forward(Kernel& kernel, const Attention& a)
      : a_(a),
        plan_(sm90_plan(a)),
        p_(kernel, a),
        // Tiles are handed out as CTAs become free: a mask makes some far shorter than others.
        next_tile_(kernel.workspace("next_tile", 1)),
        order_(p_, a, plan_.packed_heads),
        tiles_(order_.count()),
        q_ring_(kernel, "q", stages(plan_.q_stages), {{a.dtype, a.block_q, plan_.qk_columns}}),
        k_ring_(kernel, plan_.kv_together ? "kv" : "k", stages(plan_.kv_stages),
                k_tiles(a, plan_)) {
    if (!plan_.kv_together) {
      v_ring_.emplace(kernel, "v", stages(plan_.kv_stages),
                      std::vector<TileShape>{{a.dtype, a.block_k, plan_.v_columns}}, here());
    }
    if (!plan_.o_in_q) {
      o_tile_.emplace(kernel, "o", a.dtype, a.block_q, plan_.o_columns * plan_.o_buffers, here());
    }
    q_ring_.numbered(3);  // with each Q tile its place; row block -1 ends the work
    kernel.ctas(multiprocessors());
    kernel.roles({role("load", warps(1), registers(plan_.load_registers), [this] { load_tiles(); }),
                  role("math", warpgroups(a.block_q / 64), registers(plan_.math_registers),
                       [this](const Index& group) { compute_tiles(group); })});
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
  static std::vector<TileShape> k_tiles(const Attention& a, const Sm90Plan& plan) {
    std::vector<TileShape> tiles{{a.dtype, a.block_k, plan.qk_columns}};
    if (plan.kv_together) tiles.push_back({a.dtype, a.block_k, plan.v_columns});
    return tiles;
  }
  Ring& v_ring() { return v_ring_ ? *v_ring_ : k_ring_; }
  SharedView values(const Slot& v) const {
    return v[plan_.kv_together ? 1 : 0].columns(0, a_.dim_v);
  }

  void load_tiles() {
    Cell<Index> tile(cta_index());
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Index now = tile;
      more = now < tiles_;
      when(
          now < tiles_,
          [&] {
            // One tile ahead, so that nobody waits for the counter. Each tile fetches once: the
            // last fetch of all sets the counter back for the next launch.
            const Index fetched = atomic_add(next_tile_(0), 1);
            when(fetched == tiles_ - 1, [&] { atomic_add(next_tile_(0), 0 - Index(tiles_)); });
            tile = fetched + cta_count();
            load_tile(now);
          },
          [&] {
            q_ring_.produce({-1, 0, 0});
          });
    });
  }

  void load_tile(const Index& number) {
    const Place place = order_.place(number);
    const Work work = order_.work(place);
    const auto load = [&] { load_tile(place, work); };
    if constexpr (Order::kEveryTileHasRows) {
      load();
    } else {
      when(work.queries.start() < work.queries.limit(), load);
    }
  }

  void load_tile(const Place& place, const Work& work) {
    const Block qk_columns = Dim(a_.dim).block(0, plan_.qk_columns);
    const Block v_columns = Dim(a_.dim_v).block(0, plan_.v_columns);
    const auto load_k = [&](const Slot& k, const Index& j) {
      tma_load(work.part(p_.K, work.keys.block(j, a_.block_k), work.kv_head, qk_columns), k[0]);
    };
    const auto load_v = [&](const Slot& v, const Index& j) {
      tma_load(work.part(p_.V, work.keys.block(j, a_.block_k), work.kv_head, v_columns),
               v[plan_.kv_together ? 1 : 0]);
    };
    const auto produce_k = [&](const Index& j) {
      k_ring_.produce([&](const Slot& k) { load_k(k, j); });
    };
    const auto produce_v = [&](const Index& j) {
      v_ring().produce([&](const Slot& v) { load_v(v, j); });
    };
    q_ring_.produce({place.row_block, place.pack, place.sequence}, [&](const Slot& q) {
      tma_load(work.part(p_.Q, work.queries, work.heads, qk_columns), q);
    });
    // In the order of use: blocks descend, K one block ahead of V.
    const KeyBlocks blocks(work, a_, work.queries);
    when(blocks.first < blocks.last, [&] {
      produce_k(blocks.last - 1);
      for (Index i : range(blocks.first + 1, blocks.last)) {
        const Index j = blocks.last + blocks.first - i;
        if (plan_.kv_together) {
          k_ring_.produce([&](const Slot& kv) {
            load_k(kv, j - 1);
            load_v(kv, j);
          });
        } else {
          produce_k(j - 1);
          produce_v(j);
        }
      }
      produce_v(blocks.first);
    });
  }

  void compute_tiles(const Index& group) {
    Cell<Condition> more(true);
    Cell<Index> left(-1);  // the stage of Q through which the tile before leaves
    repeat_while(more, [&] {
      const Slot q_slot = q_ring_.consume();
      const Condition valid = q_slot.number() >= 0;
      more = valid;
      when(valid, [&] { compute_tile(group, q_slot, left); });
    });
    bulk_wait(0);
  }

  void compute_tile(const Index& group, const Slot& q_slot, Cell<Index>& left) {
    const Work work = order_.work({q_slot.number(0), q_slot.number(1), q_slot.number(2)});
    const Block queries = work.queries.part(group, 64 / plan_.packed_heads);
    // Of the tile's blocks, a warpgroup leaves out those that none of its own rows sees.
    const KeyBlocks tile(work, a_, work.queries);
    const KeyBlocks own = KeyBlocks(work, a_, queries).within(tile, queries);
    OptimisticSoftmax softmax(64, p_.scale, p_.sinks(work.heads, 64));
    Var acc{zeros({64, a_.dim_v})};
    const auto begun = [&] {
      if (plan_.o_in_q) release_left(q_slot, left);
    };
    const auto q_is_read = [&] {
      if (!plan_.o_in_q) q_ring_.release(q_slot);
    };
    leave_out(own.last, tile.last);
    when(
        own.first < own.last,
        [&] {
          attend(q_slot[0].rows(64 * group, 64).columns(0, a_.dim), work, queries, own, softmax,
                 acc, begun, q_is_read);
        },
        [&] {
          begun();
          q_is_read();
          if (plan_.kv_together) leave_out(0, min(tile.last - tile.first, 1));
        });
    leave_out(tile.first, own.first);
    store_output(group, work, acc, softmax, plan_.o_in_q ? q_slot[0] : *o_tile_);
    const Tile lse = softmax.log_sum_exp();
    const int heads = plan_.packed_heads;
    store(work.sums(p_.LSE, queries), lse.reshape({64 / heads, heads}).T());
  }

  // Gives back the stage of Q through which the tile before has left; this tile's is the next.
  void release_left(const Slot& q_slot, Cell<Index>& left) {
    bulk_wait_read(0);
    q_ring_.release_if(left >= 0, left);
    left = q_slot.stage();
  }

  // Takes blocks [first, last) from the rings unread. Where a stage holds K and the V of the block
  // above, a tile has a stage more than blocks.
  void leave_out(const Index& first, const Index& last) {
    for ([[maybe_unused]] Index j : range(first, last)) {
      k_ring_.release(k_ring_.consume());
      if (v_ring_) v_ring_->release(v_ring_->consume());
    }
  }

  // The weights of the next block in place of those that `finish` waits for the product of.
  void weigh(const Tile& scores, OptimisticSoftmax& softmax, Var& weights, Var& acc,
             const std::function<void()>& finish) {
    if (scores_last_) {
      finish();
      weights = softmax.next(scores, a_.dtype, [&](const Tile& rescale) { acc = acc * rescale; });
      return;
    }
    const Condition raised = softmax.raise(scores);
    const Tile next = softmax.weights(scores);
    finish();
    weights = next.cast(a_.dtype);
    when(raised, [&] { acc = acc * softmax.rescale(); });
  }

  // acc and softmax over the blocks of keys; calls `begun` behind the first block's softmax, and
  // `q_is_read` once no product reads q any more.
  void attend(const SharedView& q, const Work& work, const Block& queries, const KeyBlocks& blocks,
              OptimisticSoftmax& softmax, Var& acc, const std::function<void()>& begun,
              const std::function<void()>& q_is_read) {
    const auto mask = [&](const Tile& s, const Index& j) {
      return work.mask.apply(s, queries, work.keys.block(j, a_.block_k));
    };
    const Slot k = k_ring_.consume();
    Var first{p_.capped(wait(wgmma(q, k[0].columns(0, a_.dim).T())))};
    k_ring_.release(k);
    when(blocks.whole_last < blocks.last || blocks.whole_first >= blocks.last, [&] {
      const Tile s = first;
      first = mask(s, blocks.last - 1);
    });
    const Tile s = first;
    Var weights{softmax.first(s).cast(a_.dtype)};
    begun();

    // S of block j is computed beside the product of the weights of block j + 1, and its softmax
    // under that product.
    const auto step = [&](const Index& j, bool masked) {
      const Slot k = k_ring_.consume();
      const Pending scores = wgmma(q, k[0].columns(0, a_.dim).T());
      const Slot v = v_ring_ ? v_ring_->consume() : k;
      const Pending sum = wgmma(weights, values(v), acc);
      const Tile capped = p_.capped(wait(scores));
      const Tile s = masked ? mask(capped, j) : capped;
      if (v_ring_) k_ring_.release(k);
      weigh(s, softmax, weights, acc, [&] {
        acc = wait(sum);
        v_ring().release(v);
      });
    };
    // Blocks descend from last - 2 to first: those that the diagonal or the end cuts, the whole
    // ones, those that the window cuts.
    const Index top = blocks.last - 1;
    const Index whole_end = max(blocks.first, min(blocks.whole_last, top));
    const Index whole_begin = max(blocks.first, min(blocks.whole_first, whole_end));
    for (Index i : range(whole_end, top)) step(top - 1 + whole_end - i, true);
    for (Index i : range(whole_begin, whole_end)) step(whole_end - 1 + whole_begin - i, false);
    if (a_.window > 0) {
      for (Index i : range(blocks.first, whole_begin)) {
        step(whole_begin - 1 + blocks.first - i, true);
      }
    }
    q_is_read();
    const Slot v = v_ring().consume();
    acc = wait(wgmma(weights, values(v), acc));
    v_ring().release(v);
  }

  // Each warp stores its own 16 rows, into a buffer once the copy that last read it has.
  void store_output(const Index& group, const Work& work, const Var& acc,
                    const OnlineSoftmax& softmax, const SharedView& staging) {
    const Tile sum = acc, normaliser = softmax.normaliser();
    const Index own = 64 * group + 16 * warp_index();
    const Block queries = work.queries.part(4 * group + warp_index(), 16 / plan_.packed_heads);
    for (int part = 0; part * plan_.o_columns < a_.dim_v; ++part) {
      const int column = part % plan_.o_buffers * plan_.o_columns;
      const Tile columns = sum.slice({0, part * plan_.o_columns}, {64, plan_.o_columns});
      if (!plan_.o_in_q) {
        bulk_wait_read(plan_.o_buffers - 1);
        warp_sync();
      }
      store(staging.rows(64 * group, 64).columns(column, plan_.o_columns),
            (columns * normaliser).cast(a_.dtype));
      fence_proxy_async();
      warp_sync();
      // Whole panels of Q: their columns beyond dim_v do not exist.
      const int stored = plan_.o_in_q ? plan_.v_columns : plan_.o_columns;
      tma_store(work.part(p_.O, queries, work.heads, Dim(a_.dim_v).block(part, stored)),
                staging.rows(own, 16).columns(column, stored));
      bulk_commit();
    }
  }

  const Attention& a_;
  Sm90Plan plan_;
  typename Order::Parameters p_;
  Tensor next_tile_;
  Order order_;
  Dim tiles_;
  Ring q_ring_, k_ring_;
  std::optional<Ring> v_ring_;  // none: V lies in K's stages
  // A sequence's lengths take of the registers, and so do windows and caps.
  const bool scores_last_ =
      plan_.scores_last && (Order::kEveryTileHasRows || (a_.window == 0 && a_.softcap == 0));
  std::optional<SharedTile> o_tile_;
};

}  // namespace

Kernel attention_forward_sm90(const Attention& a) {
  Kernel kernel("attention_forward_sm90");
  Forward<BatchOrder>(kernel, a);
  return kernel;
}

Kernel attention_varlen_forward_sm90(const Attention& a) {
  Kernel kernel("attention_varlen_forward_sm90");
  Forward<PackedOrder>(kernel, a);
  return kernel;
}

}  // namespace tilewright::kernels
