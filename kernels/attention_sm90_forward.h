#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "kernels/attention_fp8.h"
#include "kernels/attention_parameters.h"
#include "kernels/attention_sm90_plan.h"
#include "kernels/attention_sm90_tiles.h"
#include "kernels/split_tiles.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

// The attention of sm_90a, of one GPU and of ranks.
namespace tilewright::kernels {

// Q, K and V are of bytes with scales: see attention_fp8_sm90.cpp.
template <typename Parameters>
concept HasHeadScales = requires(const Parameters& p, const Index& kv_head) {
  p.of_values(kv_head);
};

// What a tile gives is joined with what was there before.
template <typename Order>
concept JoinsSums = Order::kJoinsSums;

// The keys of some tiles are divided among CTAs.
template <typename Order>
concept SplitsTiles = requires(const Order& order) {
  order.split();
};

// One kernel for every order of tiles, which says what a tile's rows and keys are.
template <typename Order>
class Forward {
 public:
  // `more` is what the order's parameters take besides.
  template <typename... More>
  Forward(Kernel& kernel, const Attention& a, const Sm90Plan& plan, const More&... more)
      : a_(a),
        plan_(plan),
        p_(kernel, a, more...),
        order_(p_, a, plan_),
        q_ring_(kernel, "q", stages(plan_.q_stages),
                {{element_of(a), a.block_q, plan_.qk_columns}}),
        k_ring_(kernel, plan_.kv_together ? "kv" : "k", stages(plan_.kv_stages),
                k_tiles(a, plan_)) {
    if (!plan_.kv_together) {
      v_ring_.emplace(kernel, "v", stages(plan_.kv_stages),
                      std::vector<TileShape>{v_tile(a, plan_)}, here());
    }
    if (!plan_.o_in_q) {
      o_tile_.emplace(kernel, "o", a.dtype, a.block_q, plan_.o_columns * plan_.o_buffers, here());
    }
    // With each Q tile its place, of which row block -1 ends the work, and what `Sliding` is.
    q_ring_.numbered(plan_.slides ? 5 : splits() ? 4 : 3);
    if constexpr (Order::kKeysInPages) k_ring_.numbered();  // which pages there are none of
    if constexpr (Order::kInPairs) {
      k_ring_.multicast(2);
      if (v_ring_) v_ring_->multicast(2);
      kernel.ctas(Order::clusters() * 2, 2);
    } else {
      counter_.emplace(kernel);
      kernel.ctas(multiprocessors());
    }
    const RegisterBudget few = registers(plan_.load_registers + 2 * given());
    std::vector<RoleSpec> roles{role("load", warps(1), few, [this] { load(); })};
    if constexpr (Order::kKeysInPages) {
      tiles_.emplace(kernel, "tiles", stages(2), std::vector<TileShape>{}, here());
      tiles_->numbered(3);
      roles.push_back(role("load_values", warps(1), few, [this] { load_values(); }));
    }
    if constexpr (requires { p_.of_ranks; }) {
      for (RoleSpec& each : p_.of_ranks.push_roles(few)) roles.push_back(std::move(each));
    }
    roles.push_back(role("math", warpgroups(a.block_q / 64),
                         registers(plan_.math_registers - given()),
                         [this](const Index& group) { compute_tiles(group); }));
    kernel.roles(roles);
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
  // Of two warpgroups' registers: who loads the keys of several ranks has numbers for more than 24.
  int given() const { return Order::kKeysArrive && a_.block_q == 128 ? 8 : 0; }
  static constexpr bool kScaledBytes = HasHeadScales<typename Order::Parameters>;
  static DType element_of(const Attention& a) { return kScaledBytes ? f8e4m3 : a.dtype; }
  static TileShape v_tile(const Attention& a, const Sm90Plan& plan) {
    if (kScaledBytes) return {f8e4m3, plan.v_columns, a.block_k};
    return {a.dtype, a.block_k, plan.v_columns};
  }
  static std::vector<TileShape> k_tiles(const Attention& a, const Sm90Plan& plan) {
    std::vector<TileShape> tiles{{element_of(a), a.block_k, plan.qk_columns}};
    if (plan.kv_together) tiles.push_back(v_tile(a, plan));
    return tiles;
  }
  Ring& v_ring() { return v_ring_ ? *v_ring_ : k_ring_; }
  SharedView values(const Slot& v) const {
    const SharedView& tile = v[plan_.kv_together ? 1 : 0];
    return kScaledBytes ? tile.T() : tile.columns(0, a_.dim_v);
  }
  // Weights as products take them.
  Tile rounded(const Tile& weights) const {
    if constexpr (kScaledBytes) {
      return p_.weights(weights);
    } else {
      return weights.cast(a_.dtype);
    }
  }
  OptimisticSoftmax softmax_of(const Work& work, const Place& place) const {
    if constexpr (kScaledBytes) {
      return OptimisticSoftmax(64, p_.scale, p_.of_scores(work.heads, work.kv_head, 64),
                               range_of_weights(a_));
    } else {
      std::optional<Tile> sinks = p_.sinks(work.heads, 64);
      if constexpr (SplitsTiles<Order>) {
        if (sinks && order_.split()) sinks = order_.split()->of_first(place.part, *sinks);
      }
      return OptimisticSoftmax(64, p_.scale, sinks);
    }
  }
  Tile normaliser(const OnlineSoftmax& softmax, const Work& work) const {
    const Tile of_sums = softmax.normaliser();
    if constexpr (kScaledBytes) {
      return of_sums * p_.of_values(work.kv_head);
    } else {
      return of_sums;
    }
  }

  void load() {
    arrivals_.emplace(order_);
    if constexpr (Order::kInPairs) {
      load_pairs();
    } else {
      load_runs();
    }
    arrivals_.reset();
    if constexpr (Order::kSendsOutput) order_.end_loads();
  }

  void load_pairs() {
    for (Index round : range(order_.rounds())) {
      const Index pair = order_.pair(round);
      when(pair < order_.pairs(), [&] {
        const Place place = order_.place(pair);
        load_tile(place, order_.work(place), [] {});
      });
    }
    q_ring_.produce(numbers({-1, 0, 0}, {0, 0}));
  }

  void load_runs() {
    Cell<Index> loaded(0);
    counter_->each(
        order_.runs(),
        [&](const Index& run, FunctionRef<void()> fetch_next) {
          load_run(run, loaded, fetch_next);
        },
        [&] { end_tiles(); });
  }
  void end_tiles() {
    if constexpr (Order::kKeysInPages) {
      tiles_->produce({-1, 0, 0});
    } else {
      q_ring_.produce(numbers({-1, 0, 0}, {0, 0}));
    }
  }

  void load_run(const Index& number, Cell<Index>& loaded, FunctionRef<void()> fetch_next) {
    if constexpr (Order::kHasNeighbours) {
      if (plan_.slides) return load_neighbours(order_.run(number), loaded, fetch_next);
    }
    const Place place = order_.run(number).first;
    const Work work = order_.work(place);
    const auto load = [&] { load_tile(place, work, fetch_next); };
    if constexpr (Order::kEveryTileHasRows) {
      load();
    } else {
      when(work.queries.start() < work.queries.limit(), load, fetch_next);
    }
  }

  bool splits() const {
    bool splits = false;
    if constexpr (SplitsTiles<Order>) splits = order_.split().has_value();
    return plan_case("keys of the last tiles divided", splits);
  }
  KeyBlocks blocks_of(const Work& work, const Place& place) const {
    const KeyBlocks blocks(work, a_, order_.queries_of_all(work, place));
    if constexpr (SplitsTiles<Order>) {
      if (order_.split()) return order_.split()->blocks(place.part, blocks);
    }
    return blocks;
  }

  void load_tile(const Place& place, const Work& work, FunctionRef<void()> fetch_next) {
    if constexpr (Order::kKeysArrive) arrivals_->await_tile(work);
    const KeyBlocks blocks = blocks_of(work, place);
    if constexpr (Order::kKeysInPages) {
      tiles_->produce({place.row_block, place.pack, place.sequence});
      fetch_next();
      load_pages(work, blocks, KeyTensor::K);
    } else {
      // The only stage of Q comes free late in the tile before, K's earlier.
      const bool k_first = plan_.q_stages == 1;
      if (k_first) load_first_k(work, blocks);
      load_q(place, work, {0, 0});
      if (!k_first) load_first_k(work, blocks);
      load_keys(work, blocks, fetch_next);
    }
  }

  // Where neighbouring tiles share their blocks of keys: the position in the rings that block 0
  // has, or would have, and whether the tile above is the next.
  struct Sliding {
    Index position_of_first, continues;
  };
  std::vector<IndexOperand> numbers(const Place& place, const Sliding& sliding) const {
    std::vector<IndexOperand> all{place.row_block, place.pack, place.sequence};
    if (plan_.slides) {
      all.push_back(sliding.position_of_first);
      all.push_back(sliding.continues);
    }
    if (splits()) all.push_back(place.part);
    return all;
  }

  void load_q(const Place& place, const Work& work, const Sliding& sliding) {
    q_ring_.produce(numbers(place, sliding), [&](const Slot& q) {
      tma_load(work.part(p_.Q, work.queries, work.heads, qk_columns()), q,
               {keys_come_back() ? Cache::evict_first : Cache::normal});
    });
  }
  void load_k(const Work& work, const Slot& k, const Index& j) {
    load_block(p_.K, work, j, qk_columns(), k[0]);
  }
  void load_v(const Work& work, const Slot& v, const Index& j) {
    const SharedView& to = v[plan_.kv_together ? 1 : 0];
    if constexpr (kScaledBytes) {
      tma_load(p_.values(*work.batch, work.kv_head, a_.dim_v, j, a_.block_k), to,
               {keys_come_back() ? Cache::evict_last : Cache::normal});
    } else {
      load_block(p_.V, work, j, v_columns(), to);
    }
  }
  // One stage: K of block j - 1, or V of block j, or both.
  struct Loads {
    bool k, v;
  };
  void produce_keys(Ring& ring, const Work& work, const Index& j, const Loads& loads) {
    if constexpr (Order::kKeysArrive) {
      produce_arriving(ring, work, j, loads);
    } else {
      ring.produce([&](const Slot& slot) {
        if (loads.k) load_k(work, slot, j - 1);
        if (loads.v) load_v(work, slot, j);
      });
    }
  }
  // The same from wherever the blocks are, once they are there.
  void produce_arriving(Ring& ring, const Work& work, const Index& j, const Loads& loads) {
    const auto stage = [&](const std::optional<TensorView>& k, const std::optional<TensorView>& v) {
      ring.produce([&](const Slot& slot) {
        const Cache cache = keys_come_back() ? Cache::evict_last : Cache::normal;
        if (k) tma_load(*k, slot[0], {cache});
        if (v) tma_load(*v, slot[plan_.kv_together ? 1 : 0], {cache});
      });
    };
    const auto with_v = [&](const std::optional<TensorView>& k) {
      if (!loads.v) return stage(k, {});
      order_.each_place(*arrivals_, KeyTensor::V, work, work.keys.block(j, a_.block_k), v_columns(),
                        [&](const TensorView& v) { stage(k, v); });
    };
    if (!loads.k) return with_v({});
    order_.each_place(*arrivals_, KeyTensor::K, work, work.keys.block(j - 1, a_.block_k),
                      qk_columns(), with_v);
  }
  // Of a pair each CTA loads half of the rows, for both.
  void load_block(const Tensor& tensor, const Work& work, const Index& j, const Block& columns,
                  const SharedView& to) {
    const Block keys = work.keys.block(j, a_.block_k);
    const Cache cache = keys_come_back() ? Cache::evict_last : Cache::normal;
    if (!Order::kInPairs) {
      return tma_load(work.part(tensor, keys, work.kv_head, columns), to, {cache});
    }
    const int half = a_.block_k / 2;
    const Index own = cluster_rank();
    tma_load(work.part(tensor, keys.part(own, half), work.kv_head, columns),
             to.rows(own * half, half), {cache, true});
  }
  // Under a causal mask, tiles read a head's keys at different times: L2 keeps them before Q.
  bool keys_come_back() const { return Order::kEveryTileHasRows && a_.causal && a_.window == 0; }
  Block qk_columns() const { return Dim(a_.dim).block(0, plan_.qk_columns); }
  Block v_columns() const { return Dim(a_.dim_v).block(0, plan_.v_columns); }

  // The tiles of a run: of each, the blocks of keys that the tile before did not see.
  void load_neighbours(const Run& run, Cell<Index>& loaded, FunctionRef<void()> fetch_next) {
    Cell<Index> position_of_first(0), reached(0);
    for (Index i : range(run.tiles)) {
      when(i == run.tiles - 1, fetch_next);
      const Place place{run.first.row_block - i, run.first.pack, run.first.sequence};
      const Work work = order_.work(place);
      const KeyBlocks blocks(work, a_, work.queries);
      when(i == 0, [&] {
        reached = blocks.last;
        position_of_first = loaded + blocks.last - 1;
      });
      load_q(place, work, {position_of_first, select(i + 1 < run.tiles, 1, 0)});
      const Index top = reached;
      for (Index n : range(blocks.first, top)) {
        const Index j = top - 1 + blocks.first - n;
        k_ring_.produce([&](const Slot& k) { load_k(work, k, j); });
        v_ring_->produce([&](const Slot& v) { load_v(work, v, j); });
      }
      loaded = loaded + top - blocks.first;
      reached = blocks.first;
    }
  }

  // In the order of use: blocks descend, K one block ahead of V.
  void load_first_k(const Work& work, const KeyBlocks& blocks) {
    when(blocks.first < blocks.last, [&] {
      produce_keys(k_ring_, work, blocks.last, {true, false});
    });
  }
  void load_keys(const Work& work, const KeyBlocks& blocks, FunctionRef<void()> fetch_next) {
    // Where keys arrive by parts of them, there are no registers to take the next tile before the
    // end.
    constexpr bool kFetchesBefore = !Order::kKeysArrive || Order::kSendsOutput;
    load_descending(
        blocks,
        [&](const Index& j) {
          produce_keys(k_ring_, work, j, {true, plan_.kv_together});
          if (!plan_.kv_together) produce_keys(*v_ring_, work, j, {false, true});
        },
        kFetchesBefore ? fetch_next : nullptr);
    when(blocks.first < blocks.last, [&] {
      produce_keys(v_ring(), work, blocks.first, {false, true});
    });
    if (!kFetchesBefore) fetch_next();
  }

  // Keys in pages are many copies, so that a second warp brings Q and V: of the tiles that the
  // first one takes, whose K it brings.
  void load_values() {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot slot = tiles_->consume();
      const Place place{slot.number(0), slot.number(1), slot.number(2)};
      tiles_->release(slot);
      const Condition is_tile = place.row_block >= 0;
      more = is_tile;
      when(
          is_tile,
          [&] {
            const Work work = order_.work(place);
            load_q(place, work, {0, 0});
            load_pages(work, KeyBlocks(work, a_, order_.queries_of_all(work, place)), KeyTensor::V);
          },
          [&] {
            q_ring_.produce(numbers({-1, 0, 0}, {0, 0}));
          });
    });
  }
  // In the order of use: blocks descend. A stage of K has the number of what is missing.
  void load_pages(const Work& work, const KeyBlocks& blocks, KeyTensor tensor) {
    const auto bring = [&](const auto& copies, const Index& missing) {
      const auto fill = [&](const Slot& slot) {
        order_.copies().load(copies, [&](const auto& at, int row, int rows) {
          tma_load(tensor == KeyTensor::K ? p_.keys(at, work.kv_head, qk_columns())
                                          : p_.values(at, work.kv_head, v_columns()),
                   slot[0].rows(row, rows));
        });
      };
      if (tensor == KeyTensor::K) return k_ring_.produce(missing, fill);
      v_ring_->produce(fill);
    };
    when(blocks.first < blocks.last, [&] { order_.each_block(work, blocks, bring); });
  }

  void compute_tiles(const Index& group) {
    Cell<Condition> more(true);
    Cell<Index> left(-1);  // the stage of Q through which the tile before leaves
    Cell<Index> held(-1);  // blocks below this one are the next tile's too; -1: a run begins
    repeat_while(more, [&] {
      const Slot q_slot = q_ring_.consume();
      const Condition valid = q_slot.number() >= 0;
      more = valid;
      when(valid, [&] { compute_tile(group, q_slot, left, held); });
    });
    bulk_wait(0);
    if constexpr (Order::kSendsOutput) order_.end_output();
  }

  // The blocks of keys that a warpgroup gives back in a tile, from the last down to `first`: with
  // those that it sees others of the tile, since every warpgroup gives back all of them.
  struct Passing {
    Index first, last;
    Index position_of_first;  // see Sliding
  };
  Passing passing(const Index& group, const Slot& q_slot, const Place& place, const KeyBlocks& tile,
                  Cell<Index>& held) const {
    if (!plan_.slides) return {tile.first, tile.last, 0};
    const Work above = order_.work({place.row_block - 1, place.pack, place.sequence});
    const KeyBlocks next(above, a_, rows_of(above, group));
    const Condition continues = q_slot.number(4) > 0;
    const Index first = select(continues, max(next.last, tile.first), tile.first);
    const Index last = select(held >= 0, held, tile.last);
    held = select(continues, first, -1);
    return {first, last, q_slot.number(3)};
  }

  Block rows_of(const Work& work, const Index& group) const {
    return work.queries.part(group, 64 / plan_.packed_heads);
  }

  void compute_tile(const Index& group, const Slot& q_slot, Cell<Index>& left, Cell<Index>& held) {
    Place place{q_slot.number(0), q_slot.number(1), q_slot.number(2)};
    if (splits()) place.part = q_slot.number(3);
    const Work work = order_.work(place);
    const Block queries = rows_of(work, group);
    // Of the tile's blocks, a warpgroup leaves out those that none of its own rows sees.
    const KeyBlocks tile = blocks_of(work, place);
    const KeyBlocks own = KeyBlocks(work, a_, queries).within(tile, queries);
    const Passing pass = passing(group, q_slot, place, tile, held);
    OptimisticSoftmax softmax = softmax_of(work, place);
    Var acc{zeros({64, a_.dim_v})};
    const auto begun = [&] {
      if (plan_.o_in_q) release_left(q_slot, left);
    };
    leave_out(plan_.slides ? max(own.last, pass.first) : own.last, pass.last, pass);
    when(
        own.first < own.last,
        [&] {
          attend(q_slot[0].rows(64 * group, 64).columns(0, a_.dim), work, queries, own, pass,
                 softmax, acc, begun, q_slot);
        },
        [&] {
          begun();
          if (!plan_.o_in_q) q_ring_.release(q_slot);
          if (plan_.kv_together) leave_out(0, min(tile.last - tile.first, 1), pass);
        });
    leave_out(pass.first, own.first, pass);
    if constexpr (JoinsSums<Order>) {
      return order_.join(work, queries, tile, acc, this->normaliser(softmax, work),
                         softmax.log_sum_exp(), plan_.o_columns);
    }
    const SharedView& staging = plan_.o_in_q ? q_slot[0] : *o_tile_;
    if constexpr (SplitsTiles<Order>) {
      if (order_.split()) {
        return order_.split()->join(place.part, group, acc, this->normaliser(softmax, work),
                                    softmax.log_sum_exp(), plan_.o_columns,
                                    [&](const Tile& log_sum, const auto& columns) {
                                      store_columns(group, work, columns, staging);
                                      store_sums(work, queries, log_sum);
                                    });
      }
    }
    store_output(group, work, acc, softmax, staging);
    store_sums(work, queries, softmax.log_sum_exp());
  }

  void store_sums(const Work& work, const Block& queries, const Tile& log_sum) const {
    const int heads = plan_.packed_heads;
    const Tile lse = log_sum.reshape({64 / heads, heads});
    // Beside pages head follows head in LSE, as in Q.
    store(order_.sums(work, queries), Order::kKeysInPages ? lse : lse.T());
  }

  // Gives back the stage of Q through which the tile before has left; this tile's is the next.
  void release_left(const Slot& q_slot, Cell<Index>& left) {
    bulk_wait_read(0);
    q_ring_.release_if(left >= 0, left);
    left = q_slot.stage();
  }

  // Takes blocks [first, last) from the rings unread. Where a stage holds K and the V of the block
  // above, a tile has a stage more than blocks.
  void leave_out(const Index& first, const Index& last, const Passing& pass) {
    for (Index i : range(first, last)) {
      const Index j = last - 1 + first - i;
      k_ring_.release(consume(k_ring_, j, pass));
      if (v_ring_) v_ring_->release(consume(*v_ring_, j, pass));
    }
  }

  Slot consume(Ring& ring, const Index& j, const Passing& pass) const {
    return plan_.slides ? ring.consume_at(pass.position_of_first - j) : ring.consume();
  }
  void release(Ring& ring, const Slot& slot, const Index& j, const Passing& pass) const {
    if (!plan_.slides) return ring.release(slot);
    when(j >= pass.first, [&] { ring.release(slot); });
  }

  // The weights of the next block in place of those that `finish` waits for the product of.
  void weigh(const Tile& scores, OptimisticSoftmax& softmax, Var& weights, Var& acc,
             FunctionRef<void()> finish) {
    if (scores_last_) {
      finish();
      weights = softmax.next(
          scores, [&](const Tile& each) { return rounded(each); },
          [&](const Tile& rescale) { acc = acc * rescale; });
      return;
    }
    const Condition raised = softmax.raise(scores);
    const Tile next = softmax.weights(scores);
    finish();
    weights = rounded(next);
    when(raised, [&] { acc = acc * softmax.rescale(); });
  }

  // Scores of a block in the stage, without those of keys that have no page.
  Tile of_pages(const Tile& scores, const Slot& k) const {
    if constexpr (!Order::kKeysInPages) {
      return scores;
    } else {
      Var left{scores};
      const Index missing = k.number();  // of whole pages, fewer than a number's bits
      when(missing != 0, [&] {
        const Tile s = left;
        left = order_.copies().without(s, {missing});
      });
      return left;
    }
  }

  // acc and softmax over the blocks of keys; calls `begun` behind the first block's softmax, and
  // gives q's slot back once no product reads it any more, where O does not leave through it.
  void attend(const SharedView& q, const Work& work, const Block& queries, const KeyBlocks& blocks,
              const Passing& pass, OptimisticSoftmax& softmax, Var& acc, FunctionRef<void()> begun,
              const Slot& q_slot) {
    // A window so wide that no block has both ends of it. Three warpgroups gain by it; without a
    // window ptxas makes slower code of what hides the last keys alone.
    const bool one_end =
        plan_case("no block has both ends of the window",
                  a_.block_q == 192 && a_.window >= 64 / plan_.packed_heads + a_.block_k - 1);
    const auto mask = [&](const Tile& s, const Index& j, Hides hides) {
      return work.mask.apply(s, queries, work.keys.block(j, a_.block_k),
                             one_end ? hides : Hides::anything);
    };
    // The next tile waits for the only stage of Q: the last block's step gives it back.
    const bool q_is_scarce = plan_.q_stages == 1;
    const auto scores_are_there = [&](const Index& j) {
      if (q_is_scarce) q_ring_.release_if(j == blocks.first, q_slot.stage());
    };
    const Slot k = consume(k_ring_, blocks.last - 1, pass);
    Var first{of_pages(p_.capped(wait(wgmma(q, k[0].columns(0, a_.dim).T()))), k)};
    release(k_ring_, k, blocks.last - 1, pass);
    scores_are_there(blocks.last - 1);
    when(blocks.whole_last < blocks.last || blocks.whole_first >= blocks.last, [&] {
      const Tile s = first;
      first = mask(s, blocks.last - 1, Hides::last_keys);
    });
    const Tile s = first;
    Var weights{rounded(softmax.first(s))};
    begun();

    // S of block j is computed beside the product of the weights of block j + 1, and its softmax
    // under that product.
    const auto step = [&](const Index& j, std::optional<Hides> hides) {
      const Slot k = consume(k_ring_, j, pass);
      const Pending scores = wgmma(q, k[0].columns(0, a_.dim).T());
      const Slot v = v_ring_ ? consume(*v_ring_, j + 1, pass) : k;
      const Pending sum = wgmma(weights, values(v), acc);
      const Tile capped = of_pages(p_.capped(wait(scores)), k);
      const Tile s = hides ? mask(capped, j, *hides) : capped;
      scores_are_there(j);
      if (v_ring_) release(k_ring_, k, j, pass);
      weigh(s, softmax, weights, acc, [&] {
        acc = wait(sum);
        release(v_ring(), v, j + 1, pass);
      });
    };
    // Blocks descend from last - 2 to first: those that the diagonal or the end cuts, the whole
    // ones, those that the window cuts.
    const Index top = blocks.last - 1;
    const Index whole_end = max(blocks.first, min(blocks.whole_last, top));
    const Index whole_begin = max(blocks.first, min(blocks.whole_first, whole_end));
    for (Index i : range(whole_end, top)) step(top - 1 + whole_end - i, Hides::last_keys);
    for (Index i : range(whole_begin, whole_end)) step(whole_end - 1 + whole_begin - i, {});
    if (a_.window > 0) {
      for (Index i : range(blocks.first, whole_begin)) {
        step(whole_begin - 1 + blocks.first - i, Hides::first_keys);
      }
    }
    if (!q_is_scarce && !plan_.o_in_q) q_ring_.release(q_slot);
    const Slot v = consume(v_ring(), blocks.first, pass);
    acc = wait(wgmma(weights, values(v), acc));
    release(v_ring(), v, blocks.first, pass);
  }

  // Each warp stores its own 16 rows, into a buffer once the copy that last read it has.
  void store_output(const Index& group, const Work& work, const Var& acc,
                    const OnlineSoftmax& softmax, const SharedView& staging) {
    const Tile sum = acc, normaliser = this->normaliser(softmax, work);
    const auto columns = [&](int part) {
      return sum.slice({0, part * plan_.o_columns}, {64, plan_.o_columns}) * normaliser;
    };
    store_columns(group, work, columns, staging);
  }
  void store_columns(const Index& group, const Work& work, FunctionRef<Tile(int part)> columns,
                     const SharedView& staging) {
    const Index own = 64 * group + 16 * warp_index();
    const Block queries = work.queries.part(4 * group + warp_index(), 16 / plan_.packed_heads);
    for (int part = 0; part * plan_.o_columns < a_.dim_v; ++part) {
      const int column = part % plan_.o_buffers * plan_.o_columns;
      const Tile value = columns(part);
      if (!plan_.o_in_q) {
        bulk_wait_read(plan_.o_buffers - 1);
        warp_sync();
      }
      store(staging.rows(64 * group, 64).columns(column, plan_.o_columns), value.cast(a_.dtype));
      fence_proxy_async();
      warp_sync();
      // Whole panels of Q: their columns beyond dim_v do not exist.
      const int stored = plan_.o_in_q ? plan_.v_columns : plan_.o_columns;
      tma_store(order_.output(work, queries, Dim(a_.dim_v).block(part, stored)),
                staging.rows(own, 16).columns(column, stored));
      bulk_commit();
    }
  }

  const Attention& a_;
  Sm90Plan plan_;
  typename Order::Parameters p_;
  Order order_;
  std::optional<typename Order::Arrivals> arrivals_;  // of the role that loads
  std::optional<RunCounter> counter_;
  std::optional<Ring> tiles_;  // that the warp which brings V is told of
  Ring q_ring_, k_ring_;
  std::optional<Ring> v_ring_;  // none: V lies in K's stages
  // A sequence's lengths take of the registers, and so do windows and caps.
  const bool scores_last_ =
      plan_.scores_last && (Order::kEveryTileHasRows || (a_.window == 0 && a_.softcap == 0));
  std::optional<SharedTile> o_tile_;
};

}  // namespace tilewright::kernels
