#include <functional>
#include <optional>

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
        plan_(sm90_plan(a, !Order::kEveryTileHasRows)),
        p_(kernel, a),
        // Tiles are handed out as CTAs become free: a mask makes some far shorter than others.
        next_tile_(kernel.workspace("next_tile", 1)),
        order_(p_, a, plan_.packed_heads),
        tiles_(order_.count()),
        q_ring_(kernel, "q", stages(plan_.q_stages), {{a.dtype, a.block_q, plan_.qk_columns}}),
        k_ring_(kernel, "k", stages(plan_.kv_stages), {{a.dtype, a.block_k, plan_.qk_columns}}),
        v_ring_(kernel, "v", stages(plan_.kv_stages), {{a.dtype, a.block_k, plan_.v_columns}}) {
    if (!plan_.o_in_q) {
      o_tile_.emplace(kernel, "o", a.dtype, a.block_q, plan_.o_columns * plan_.o_buffers);
    }
    q_ring_.numbered(3);  // with each Q tile its place; row block -1 ends the work
    kernel.ctas(multiprocessors());
    kernel.roles({role("load", warps(1), registers(plan_.load_registers), [this] { load_tiles(); }),
                  role("math", warpgroups(a.block_q / 64), registers(plan_.math_registers),
                       [this](const Index& group) { compute_tiles(group); })});
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
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
    const auto load_k = [&](const Index& j) {
      k_ring_.produce([&](const Slot& k) {
        tma_load(work.part(p_.K, work.keys.block(j, a_.block_k), work.kv_head, qk_columns), k);
      });
    };
    const auto load_v = [&](const Index& j) {
      v_ring_.produce([&](const Slot& v) {
        tma_load(work.part(p_.V, work.keys.block(j, a_.block_k), work.kv_head, v_columns), v);
      });
    };
    q_ring_.produce({place.row_block, place.pack, place.sequence}, [&](const Slot& q) {
      tma_load(work.part(p_.Q, work.queries, work.heads, qk_columns), q);
    });
    // In the order of use: blocks descend, K one block ahead of V.
    const KeyBlocks blocks(work, a_, work.queries);
    when(blocks.first < blocks.last, [&] {
      load_k(blocks.last - 1);
      for (Index i : range(blocks.first + 1, blocks.last)) {
        const Index j = blocks.last + blocks.first - i;
        load_k(j - 1);
        load_v(j);
      }
      load_v(blocks.first);
    });
  }

  Work work_of(const Slot& q_slot) const {
    return order_.work({q_slot.number(0), q_slot.number(1), q_slot.number(2)});
  }

  // A warpgroup's part of a tile: 64 rows, and of the tile's blocks those that its own rows see.
  struct Part {
    Part(const Forward& forward, const Index& group, const Slot& q_slot)
        : group(group),
          stage(q_slot.stage()),
          q(q_slot[0]),
          work(forward.work_of(q_slot)),
          queries(work.queries.part(group, 64 / forward.plan_.packed_heads)),
          tile(work, forward.a_, work.queries),
          own(KeyBlocks(work, forward.a_, queries).within(tile, queries)) {}
    Condition sees_keys() const { return own.first < own.last; }
    // Blocks of the tile that the rows do not see.
    Index above() const { return tile.last - own.last; }
    Index below() const { return own.first - tile.first; }
    Index group, stage;  // of Q
    SharedView q;        // of the whole tile
    Work work;
    Block queries;
    KeyBlocks tile, own;
  };

  // What a warpgroup carries from block to block.
  struct State {
    explicit State(const Forward& forward, const std::optional<Tile>& sinks)
        : softmax(64, forward.p_.scale, sinks),
          acc{zeros({64, forward.a_.dim_v})},
          weights{zeros({64, forward.a_.block_k}).cast(forward.a_.dtype)} {}
    OnlineSoftmax softmax;
    Var acc, weights;
  };

  void compute_tiles(const Index& group) {
    Cell<Condition> more(true);
    Cell<Condition> begun(false);  // the weights of the tile's top block are there
    Cell<Index> stored(-1);        // the stage of Q through which the tile before leaves
    std::optional<State> carried;
    if (plan_.tiles_overlap) carried.emplace(*this, std::nullopt);
    repeat_while(more, [&] {
      const Slot q_slot = q_ring_.consume();
      const Condition valid = q_slot.number() >= 0;
      more = valid;
      when(valid, [&] {
        const Part part(*this, group, q_slot);
        if (carried) {
          compute_overlapped(q_slot, part, *carried, begun, stored);
        } else {
          compute_tile(q_slot, part, stored);
        }
      });
    });
    bulk_wait(0);
  }

  // One tile by itself.
  void compute_tile(const Slot& q_slot, const Part& part, Cell<Index>& stored) {
    State state(*this, p_.sinks(part.work.heads, 64));
    begin(part, state);
    release_stored(part, stored);
    descend(part, state);
    if (!plan_.o_in_q) q_ring_.release(q_slot);
    end(part, state);
    store_output(part.group, part.work, state.acc, state.softmax.normaliser(), staging(q_slot));
    store_sums(part.work, part.queries, state.softmax.log_sum_exp());
  }

  // The next tile begins under the last product of this one.
  void compute_overlapped(const Slot& q_slot, const Part& part, State& state,
                          Cell<Condition>& begun, Cell<Index>& stored) {
    when(
        begun, [] {},
        [&] {
          state.softmax.restart(64, p_.sinks(part.work.heads, 64));
          begin(part, state);
        });
    release_stored(part, stored);
    descend(part, state);
    const Tile normaliser = state.softmax.normaliser();
    store_sums(part.work, part.queries, state.softmax.log_sum_exp());
    begun = false;
    // The next Q arrives behind the blocks of this tile.
    when(
        part.sees_keys() && part.below() < plan_.kv_stages,
        [&] {
          const Slot next_slot = q_ring_.peek();
          const Part next(*this, part.group, next_slot);
          // Its first block of keys arrives behind those that are left out before it, whose V is
          // not taken before this tile's last.
          const Index ahead = part.below() + max(next.above() - 1, 0);
          when(
              next_slot.number() >= 0 && next.sees_keys() && ahead < plan_.kv_stages,
              [&] {
                end_and_begin(part, next, state);
                begun = true;
              },
              [&] { end(part, state); });
        },
        [&] { end(part, state); });
    // The place is computed again rather than kept in registers beside the next tile's.
    store_output(part.group, work_of(q_slot), state.acc, normaliser, staging(q_slot));
    state.acc = zeros({64, a_.dim_v});
  }

  // Gives back the stage of Q through which the tile before has left.
  void release_stored(const Part& part, Cell<Index>& stored) {
    if (!plan_.o_in_q) return;
    bulk_wait_read(0);
    q_ring_.release_if(stored >= 0, stored);
    stored = part.stage;
  }

  const SharedView& staging(const Slot& q_slot) const {
    return plan_.o_in_q ? q_slot[0] : *o_tile_;
  }

  // Take so many blocks of keys, or of one ring, unread. In the order in which they come: more than
  // there are stages of K arrive only as V is taken.
  void leave_out(const Index& count) {
    for ([[maybe_unused]] Index j : range(count)) {
      k_ring_.release(k_ring_.consume());
      v_ring_.release(v_ring_.consume());
    }
  }
  void leave_out(Ring& ring, const Index& count) {
    for ([[maybe_unused]] Index j : range(count)) ring.release(ring.consume());
  }

  Tile masked(const Part& part, const Tile& scores, const Index& block) const {
    return part.work.mask.apply(scores, part.queries, part.work.keys.block(block, a_.block_k));
  }

  Pending scores(const Part& part, const Slot& k) const {
    return wgmma(part.q.rows(64 * part.group, 64).columns(0, a_.dim), k[0].columns(0, a_.dim).T());
  }

  // The weights of the first block of a tile's rows.
  Tile top_weights(const Part& part, const Pending& product, const Slot& k, State& state) {
    Var top{p_.capped(wait(product))};
    k_ring_.release(k);
    const KeyBlocks& own = part.own;
    when(own.whole_last < own.last || own.whole_first >= own.last, [&] {
      const Tile s = top;
      top = masked(part, s, own.last - 1);
    });
    const Tile s = top;
    state.softmax.raise(s);
    return state.softmax.weights(s);
  }

  void begin(const Part& part, State& state) {
    leave_out(part.above());
    when(part.sees_keys(), [&] {
      const Slot k = k_ring_.consume();
      const Pending product = scores(part, k);
      state.weights = top_weights(part, product, k, state).cast(a_.dtype);
    });
  }

  // S of block j is computed beside the product of the weights of block j + 1, and its softmax
  // under that product.
  void step(const Part& part, const Index& j, bool cut, State& state) {
    const Slot k = k_ring_.consume();
    const Pending product = scores(part, k);
    const Slot v = v_ring_.consume();
    const Pending sum = wgmma(state.weights, v[0].columns(0, a_.dim_v), state.acc);
    const Tile capped = p_.capped(wait(product));
    const Tile s = cut ? masked(part, capped, j) : capped;
    k_ring_.release(k);
    const Condition raised = state.softmax.raise(s);
    const Tile next = state.softmax.weights(s);
    v_ring_.peek();
    state.acc = wait(sum);
    v_ring_.release(v);
    state.weights = next.cast(a_.dtype);
    when(raised, [&] {
      const Tile acc = state.acc;
      state.acc = acc * state.softmax.rescale();
    });
  }

  // Blocks descend from last - 2 to first: those that the diagonal or the end cuts, the whole ones,
  // those that the window cuts.
  void descend(const Part& part, State& state) {
    const KeyBlocks& own = part.own;
    const Index top = own.last - 1;
    const Index whole_end = max(own.first, min(own.whole_last, top));
    const Index whole_begin = max(own.first, min(own.whole_first, whole_end));
    for (Index i : range(whole_end, top)) step(part, top - 1 + whole_end - i, true, state);
    for (Index i : range(whole_begin, whole_end)) {
      step(part, whole_end - 1 + whole_begin - i, false, state);
    }
    if (a_.window == 0) return;
    for (Index i : range(own.first, whole_begin)) {
      step(part, whole_begin - 1 + own.first - i, true, state);
    }
  }

  void end(const Part& part, State& state) {
    when(part.sees_keys(), [&] {
      const Slot v = v_ring_.consume();
      state.acc = wait(wgmma(state.weights, v[0].columns(0, a_.dim_v), state.acc));
      v_ring_.release(v);
    });
    leave_out(part.below());
  }

  // The last product of `part` beside the first of `next`, whose softmax it hides.
  void end_and_begin(const Part& part, const Part& next, State& state) {
    const Index between = part.below() + next.above();
    leave_out(k_ring_, between);
    const Slot k = k_ring_.consume();
    const Pending product = scores(next, k);
    const Slot v = v_ring_.consume();
    const Pending sum = wgmma(state.weights, v[0].columns(0, a_.dim_v), state.acc);
    state.softmax.restart(64, p_.sinks(next.work.heads, 64));
    const Tile weights = top_weights(next, product, k, state);
    v_ring_.peek();
    state.acc = wait(sum);
    v_ring_.release(v);
    state.weights = weights.cast(a_.dtype);
    leave_out(v_ring_, between);
  }

  // Each warp stores its own 16 rows.
  void store_output(const Index& group, const Work& work, const Tile& sum, const Tile& normaliser,
                    const SharedView& staging) {
    const Index own = 64 * group + 16 * warp_index();
    const Block queries = work.queries.part(4 * group + warp_index(), 16 / plan_.packed_heads);
    for (int part = 0; part * plan_.o_columns < a_.dim_v; ++part) {
      const int column = part % plan_.o_buffers * plan_.o_columns;
      const Tile columns = sum.slice({0, part * plan_.o_columns}, {64, plan_.o_columns});
      if (!plan_.o_in_q) {
        // The copy that last read this part of the buffer.
        bulk_wait_read(plan_.o_buffers - 1);
        warp_sync();
      }
      store(staging.rows(64 * group, 64).columns(column, plan_.o_columns),
            (columns * normaliser).cast(a_.dtype));
      fence_proxy_async();
      warp_sync();
      tma_store(
          work.part(p_.O, queries, work.heads, Dim(a_.dim_v).block(part, plan_.o_shared_columns)),
          staging.rows(own, 16).columns(column, plan_.o_shared_columns));
      bulk_commit();
    }
  }

  void store_sums(const Work& work, const Block& queries, const Tile& sums) {
    const int heads = plan_.packed_heads;
    store(work.sums(p_.LSE, queries), sums.reshape({64 / heads, heads}).T());
  }

  const Attention& a_;
  Sm90Plan plan_;
  typename Order::Parameters p_;
  Tensor next_tile_;
  Order order_;
  Dim tiles_;
  Ring q_ring_, k_ring_, v_ring_;
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
