#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_parameters.h"
#include "kernels/attention_sm100_plan.h"
#include "kernels/attention_sm90_tiles.h"
#include "tilewright/blackwell.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {

// The attention of sm_100a for every order of tiles. Each tile has a ring of one stage, through
// which its scores pass: a commit fills it, and it is released when the weights of the block are
// there and the sums are scaled for them. The commit behind a block's scores comes behind the
// product of the block before with V, so that it also tells that the sums, and the place of the
// weights, are nobody's. So a tile of n blocks has n + 1 phases; the last one has sums alone.
template <typename Order>
class ForwardSm100 {
 public:
  ForwardSm100(Kernel& kernel, const Attention& a, const Sm100Plan& plan)
      : a_(a),
        plan_(plan),
        p_(kernel, a),
        order_(p_, a, plan_),
        counter_(kernel),
        places_(kernel, "places", stages(2), {}),
        k_ring_(kernel, "k", stages(plan.kv_stages), {{a.dtype, a.block_k, plan.qk_columns}}),
        v_ring_(kernel, "v", stages(plan.kv_stages), {{a.dtype, a.block_k, plan.v_columns}}),
        memory_(kernel, "tensor_memory", plan.tensor_columns),
        allocated_(kernel, threads()),
        freed_(kernel, threads()) {
    places_.numbered(3);  // what `Place` is, of which row block -1 ends the work
    for (int tile = 0; tile < plan.tiles; ++tile) {
      const std::string number = std::to_string(tile);
      q_rings_.emplace_back(kernel, "q" + number, stages(1),
                            std::vector<TileShape>{{a.dtype, Sm100Plan::kRows, plan.qk_columns}},
                            here());
      s_rings_.emplace_back(kernel, "s" + number, stages(1), std::vector<TileShape>{}, here());
      if (plan.corrects_apart) factors_.emplace_back(kernel, 2 * kWarp, kWarps, here());
    }
    for (int buffer = 0; buffer < plan.o_buffers; ++buffer) {
      o_tiles_.emplace_back(kernel, "o" + std::to_string(buffer), a.dtype, Sm100Plan::kRows,
                            plan.o_columns, here());
    }
    if (plan.weights == WeightsIn::columns_of_scores) products_.emplace(kernel, "products", here());
    if (plan.weights == WeightsIn::shared_memory) {
      p_tile_.emplace(kernel, "p", a.dtype, Sm100Plan::kRows, a.block_k, here());
    }
    kernel.ctas(multiprocessors());
    kernel.roles(roles());
    kernel.require({no_stack, no_spills});
  }

 private:
  static constexpr int kWarp = 32, kWarps = 4;  // threads of a warp, warps of a warpgroup

  // Of the roles that use tensor memory.
  int threads() const { return kWarp * (1 + kWarps * (plan_.tiles + plan_.corrects_apart)); }

  std::vector<RoleSpec> roles() {
    const RegisterBudget few = registers(plan_.few_registers);
    std::vector<RoleSpec> roles{role("load", warps(1), few, [this] { load(); }),
                                role("multiply", warps(1), few, [this] { multiply(); })};
    for (int tile = 0; tile < plan_.tiles; ++tile) {
      roles.push_back(role(plan_.tiles == 1 ? "weigh" : "weigh" + std::to_string(tile),
                           warpgroups(1), registers(plan_.weighing_registers),
                           [this, tile] { weigh_tiles(tile); }));
    }
    if (plan_.corrects_apart) {
      roles.push_back(role("correct", warpgroups(1), registers(plan_.correcting_registers),
                           [this] { correct_tiles(); }));
    }
    return roles;
  }

  // One tile of a CTA's: its queries, and the blocks of keys that they see.
  struct Part {
    Block queries;
    KeyBlocks keys;
    Condition has_keys() const { return keys.first < keys.last; }
  };
  // What a CTA does at a time.
  struct Item {
    Work work;
    KeyBlocks keys;  // that some tile sees
    std::vector<Part> parts;
  };
  Item item(const Place& place) const {
    const Work work = order_.work(place);
    const KeyBlocks keys(work, a_, order_.queries_of_all(work, place));
    std::vector<Part> parts;
    for (int tile = 0; tile < plan_.tiles; ++tile) {
      const Block queries = work.queries.part(tile, Sm100Plan::kRows / plan_.packed_heads);
      parts.push_back({queries, KeyBlocks(work, a_, queries).within(keys, queries)});
    }
    return {work, keys, parts};
  }

  void each_item(FunctionRef<void(const Item& item)> body) {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot slot = places_.consume();
      const Place place{slot.number(0), slot.number(1), slot.number(2)};
      places_.release(slot);
      const Condition valid = place.row_block >= 0;
      more = valid;
      when(valid, [&] { body(item(place)); });
    });
  }

  void load() {
    counter_.each(
        order_.runs(),
        [&](const Index& run, FunctionRef<void()> fetch_next) {
          const Place place = order_.run(run).first;
          const Item next = item(place);
          const auto load = [&] {
            places_.produce({place.row_block, place.pack, place.sequence});
            load_item(next, fetch_next);
          };
          if constexpr (Order::kEveryTileHasRows) {
            load();
          } else {
            when(next.work.queries.start() < next.work.queries.limit(), load, fetch_next);
          }
        },
        [&] {
          places_.produce({-1, 0, 0});
        });
  }

  // In the order of use: blocks descend, K one block ahead of V.
  void load_item(const Item& item, FunctionRef<void()> fetch_next) {
    const KeyBlocks& keys = item.keys;
    const auto load_k = [&](const Index& j) { load_keys(k_ring_, p_.K, item.work, j, a_.dim); };
    const auto load_v = [&](const Index& j) { load_keys(v_ring_, p_.V, item.work, j, a_.dim_v); };
    when(keys.first < keys.last, [&] {
      for (int tile = 0; tile < plan_.tiles; ++tile) {
        const Part& part = item.parts[tile];
        when(part.has_keys(), [&] {
          q_rings_[tile].produce([&](const Slot& q) {
            tma_load(item.work.part(p_.Q, part.queries, item.work.heads,
                                    Dim(a_.dim).block(0, plan_.qk_columns)),
                     q);
          });
        });
        if (tile == 0) load_k(keys.last - 1);
      }
    });
    load_descending(
        keys,
        [&](const Index& j) {
          load_v(j);
          load_k(j - 1);
        },
        fetch_next);
    when(keys.first < keys.last, [&] { load_v(keys.first); });
  }
  void load_keys(Ring& ring, const Tensor& tensor, const Work& work, const Index& j, int dim) {
    const Block columns = Dim(dim).block(0, shared_columns(a_, dim));
    ring.produce([&](const Slot& slot) {
      tma_load(work.part(tensor, work.keys.block(j, a_.block_k), work.kv_head, columns), slot);
    });
  }

  TensorColumns scores_of(const TensorColumns& all, int tile) const {
    return all.columns(tile * plan_.tile_columns, a_.block_k);
  }
  TensorColumns weights_of(const TensorColumns& all, int tile) const {
    return all.columns(tile * plan_.tile_columns + plan_.first_weights,
                       a_.block_k * size_of(a_.dtype) / 4);
  }
  TensorColumns sums_of(const TensorColumns& all, int tile, int first, int count) const {
    return all.columns(tile * plan_.tile_columns + plan_.first_sums + first, count);
  }
  // What the sums of a tile are multiplied by: a column of scores that have been read.
  TensorColumns factor_of(const TensorColumns& all, int tile) const {
    return all.columns(tile * plan_.tile_columns, 1);
  }

  void multiply() {
    memory_.allocate();
    allocated_.sync();
    const TensorColumns all = memory_.attach();
    each_item([&](const Item& item) {
      const KeyBlocks& keys = item.keys;
      const auto step = [&](const Index& j, const Slot* k, const Slot* v) {
        for (int tile = 0; tile < plan_.tiles; ++tile) {
          multiply_block(all, tile, item.parts[tile].keys, j, k, v);
        }
        if (v) v_ring_.release_behind_products(*v);
        if (k) k_ring_.release_behind_products(*k);
      };
      when(keys.first < keys.last, [&] {
        const Slot first = k_ring_.consume();
        step(keys.last - 1, &first, nullptr);
        for (Index i : range(keys.first + 1, keys.last)) {
          const Slot v = v_ring_.consume(), k = k_ring_.consume();
          step(keys.last - 1 + keys.first - i, &k, &v);
        }
        const Slot last = v_ring_.consume();
        step(keys.first - 1, nullptr, &last);
      });
    });
    relinquish_tensor_memory();  // another CTA's may begin
    freed_.sync();               // nobody reads what is freed
    memory_.free();
  }

  // One phase of a tile: the scores of block j behind the sum of block j + 1.
  void multiply_block(const TensorColumns& all, int tile, const KeyBlocks& own, const Index& j,
                      const Slot* k, const Slot* v) {
    const Condition scores = own.first <= j && j < own.last;
    const Condition sum = own.first <= j + 1 && j + 1 < own.last;
    when(!v   ? scores
         : !k ? sum
              : scores || sum,
         [&] {
           Ring& ring = s_rings_[tile];
           const Slot phase = ring.reserve();
           if (v) when(sum, [&] { add_values(all, tile, *v, j + 2 < own.last); });
           // Of one tile all blocks are the item's, of which the first comes before all values.
           const bool may_begin = !v || plan_.tiles > 1;
           if (k) when(scores, [&] { multiply_keys(all, tile, own, j, *k, may_begin); });
           ring.commit(phase);
           // Else compilers let the lane that issues wait apart for what comes next.
           warp_sync();
         });
  }
  void add_values(const TensorColumns& all, int tile, const Slot& v, const Condition& adds) {
    const TensorColumns sums = sums_of(all, tile, 0, a_.dim_v);
    const SharedView values = v[0].columns(0, a_.dim_v);
    if (p_tile_) return mma(sums, *p_tile_, values, adds);
    mma(sums, weights_of(all, tile), values, adds);
    if (products_) products_->wait();
  }
  void multiply_keys(const TensorColumns& all, int tile, const KeyBlocks& own, const Index& j,
                     const Slot& k, bool may_begin) {
    Ring& ring = q_rings_[tile];
    if (may_begin) when(j == own.last - 1, [&] { ring.consume(); });
    const Slot q = ring.last();
    mma(scores_of(all, tile), q[0].columns(0, a_.dim), k[0].columns(0, a_.dim).T(), false);
    when(j == own.first, [&] { ring.release_behind_products(q); });
  }

  void weigh_tiles(int tile) {
    allocated_.sync();
    const TensorColumns all = memory_.attach();
    each_item([&](const Item& item) {
      const Part& part = item.parts[tile];
      OnlineSoftmax softmax(Sm100Plan::kRows, p_.scale,
                            p_.sinks(item.work.heads, Sm100Plan::kRows));
      when(part.has_keys(), [&] {
        for (Index i : range(part.keys.first, part.keys.last)) {
          weigh_block(all, tile, item.work, part, part.keys.last - 1 + part.keys.first - i,
                      softmax);
        }
        const Slot sums = s_rings_[tile].consume();
        if (plan_.corrects_apart) hand_on(all, tile, softmax.normaliser());
        s_rings_[tile].release(sums);
      });
      if (!plan_.corrects_apart) store_sums(all, tile, item.work, part, softmax.normaliser());
      const int heads = plan_.packed_heads;
      const Tile lse = softmax.log_sum_exp().reshape({Sm100Plan::kRows / heads, heads});
      store(order_.sums(item.work, part.queries), lse.T());
    });
    end_role();
  }

  void weigh_block(const TensorColumns& all, int tile, const Work& work, const Part& part,
                   const Index& j, OnlineSoftmax& softmax) {
    Ring& ring = s_rings_[tile];
    const Slot phase = ring.consume();
    Var scores{p_.capped(tilewright::load(scores_of(all, tile)))};
    when(j >= part.keys.whole_last || j < part.keys.whole_first, [&] {
      const Tile s = scores;
      // Without a window one comparison an element is enough.
      const Hides hides = a_.causal && a_.window == 0 ? Hides::last_keys : Hides::anything;
      scores = work.mask.apply(s, part.queries, work.keys.block(j, a_.block_k), hides);
    });
    const Tile s = scores;
    const Condition raised = softmax.raise(s), has_sums = j < part.keys.last - 1;
    if (plan_.corrects_apart) {
      when(has_sums, [&] { hand_on(all, tile, softmax.rescale()); });
    } else {
      when(raised && has_sums, [&] { rescale_sums(all, tile, softmax.rescale()); });
    }
    store_weights(all, tile, s, softmax);
    ring.release(phase);
  }

  void store_weights(const TensorColumns& all, int tile, const Tile& s, OnlineSoftmax& softmax) {
    if (p_tile_) {
      store(*p_tile_, softmax.weights(s).cast(a_.dtype));
      return fence_proxy_async();
    }
    const int by_polynomial = a_.polynomial_keys;
    const auto part = [&](int first, int count, const auto& power) {
      if (count == 0) return;
      const Tile scores = count == a_.block_k ? s : s.slice({0, first}, {Sm100Plan::kRows, count});
      const int packed = 4 / size_of(a_.dtype);
      store(weights_of(all, tile).columns(first / packed, count / packed),
            softmax.weights(scores, power).cast(a_.dtype));
    };
    part(0, by_polynomial, [](const Tile& x) { return exp2_polynomial(x); });
    part(by_polynomial, a_.block_k - by_polynomial, [](const Tile& x) { return exp2(x); });
  }

  // Each warp of the role that corrects waits for the warp that has its rows.
  void hand_on(const TensorColumns& all, int tile, const Tile& factor) {
    store(factor_of(all, tile), factor);
    factors_[tile].arrive(warp_index());
  }

  void correct_tiles() {
    allocated_.sync();
    const TensorColumns all = memory_.attach();
    each_item([&](const Item& item) {
      const KeyBlocks& keys = item.keys;
      std::deque<Var> normalisers;  // of each tile
      for (int tile = 0; tile < plan_.tiles; ++tile) {
        normalisers.emplace_back(zeros({Sm100Plan::kRows, 1}), here());
      }
      for (Index i : range(keys.first, keys.last + 1)) {
        for (int tile = 0; tile < plan_.tiles; ++tile) {
          correct_block(all, tile, item.parts[tile].keys, keys.last - 1 + keys.first - i,
                        normalisers[tile]);
        }
      }
      for (int tile = 0; tile < plan_.tiles; ++tile) {
        store_sums(all, tile, item.work, item.parts[tile], normalisers[tile]);
      }
    });
    end_role();
  }

  // One phase of a tile. Behind the last one the next tile's scores may come: its first sum waits
  // for this role once more.
  void correct_block(const TensorColumns& all, int tile, const KeyBlocks& own, const Index& j,
                     Var& normaliser) {
    when(own.first < own.last && j < own.last && own.first <= j + 1, [&] {
      const Slot phase = s_rings_[tile].consume();
      when(j < own.last - 1, [&] {
        factors_[tile].sync(warp_index());
        const Tile factor = tilewright::load(factor_of(all, tile));
        normaliser = factor;
        when(j >= own.first && any_nearby(factor != 1), [&] { rescale_sums(all, tile, factor); });
      });
      s_rings_[tile].release(phase);
    });
  }

  void rescale_sums(const TensorColumns& all, int tile, const Tile& factor) {
    for (int first = 0; first < a_.dim_v; first += plan_.o_columns) {
      const TensorColumns some = sums_of(all, tile, first, plan_.o_columns);
      store(some, tilewright::load(some) * factor);
    }
  }

  // Each warp stores the rows that it reaches, into a buffer that its last copy but so many has
  // left. Without keys nobody has written the sums.
  void store_sums(const TensorColumns& all, int tile, const Work& work, const Part& part,
                  const Tile& normaliser) {
    const Index own = Sm100Plan::kWarpRows * warp_index();
    const Block queries =
        part.queries.part(warp_index(), Sm100Plan::kWarpRows / plan_.packed_heads);
    for (int block = 0; block * plan_.o_columns < a_.dim_v; ++block) {
      const SharedTile& staging = o_tiles_[block % plan_.o_buffers];
      bulk_wait_read(plan_.o_buffers - 1);
      warp_sync();
      Var sums{zeros({Sm100Plan::kRows, plan_.o_columns})};
      when(part.has_keys(), [&] {
        sums = tilewright::load(sums_of(all, tile, block * plan_.o_columns, plan_.o_columns));
      });
      store(staging, (sums * normaliser).cast(a_.dtype));
      fence_proxy_async();
      warp_sync();
      tma_store(order_.output(work, queries, Dim(a_.dim_v).block(block, plan_.o_columns)),
                staging.rows(own, Sm100Plan::kWarpRows));
      bulk_commit();
    }
  }

  void end_role() {
    bulk_wait(0);  // shared memory must outlive what reads it
    freed_.sync();
  }

  const Attention& a_;
  const Sm100Plan plan_;
  typename Order::Parameters p_;
  Order order_;
  RunCounter counter_;
  Ring places_, k_ring_, v_ring_;
  std::vector<Ring> q_rings_, s_rings_;  // of each tile
  const TensorMemory memory_;
  std::optional<ProductBarrier> products_;  // where the next scores have the weights' place
  NamedBarrier allocated_, freed_;
  std::vector<NamedBarrier> factors_;  // of each tile, one for each warp
  std::vector<SharedTile> o_tiles_;
  std::optional<SharedTile> p_tile_;
};

}  // namespace tilewright::kernels
