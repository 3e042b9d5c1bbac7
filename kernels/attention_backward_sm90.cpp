#include "kernels/attention_backward_sm90.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/attention_backward_heads.h"
#include "kernels/attention_backward_outputs.h"
#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_queries.h"
#include "kernels/attention_backward_ring.h"
#include "kernels/attention_backward_shared.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_backward_unseen.h"
#include "kernels/attention_backward_wave_parts.h"
#include "kernels/attention_parameters.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

constexpr int kTileRows = BackwardPlan::kTileRows, kLine = BackwardPlan::kLine;
constexpr int kStages = 2;  // of a block of queries
// Added to the number of a tile of dQ by who is last to come to it.
constexpr int kLast = 1 << 28;

// dK and dV of a block of keys lie in the registers of two warpgroups. Scores are computed as
// S^T = K Q^T, so that P^T and dS^T are operands from registers. dS passes through shared memory
// for dQ = dS K, of which each warpgroup computes half of the columns, and adds them to memory.
template <typename Keys>
class Backward {
 public:
  // `more`: what else the places of keys are made of.
  template <typename... More>
  Backward(Kernel& kernel, const Attention& a, const BackwardPlan& plan, const More&... more)
      : a_(a),
        plan_(plan),
        scores_(a),
        sequences_(kernel, a, plan.ordered, plan.shares ? kernel.dim("parts", at_least(1)) : Dim(1),
                   plan.division(), more...),
        Q_(kernel.in("Q", a.dtype, sequences_.of_queries(a.dim))),
        K_(kernel.in("K", a.dtype, sequences_.of_keys(a.dim))),
        V_(kernel.in("V", a.dtype, sequences_.of_keys(a.dim_v))),
        dO_(kernel.in("dO", a.dtype, sequences_.of_queries(a.dim_v))),
        L_(kernel.in("L", f32, sequences_.of_rows(a.block_q))),
        D_(kernel.in("D", f32, sequences_.of_rows(a.block_q))),
        sums_(kernel.inout("sums", f32, plan.sums(a, sequences_.kept_blocks(a.block_q)))),
        dQ_(plan.ordered && !plan.leaves
                ? std::optional(sequences_.query_gradient(kernel, sequences_, a.dtype, a.dim))
                : std::nullopt),
        dK_(output(kernel, "dK", a.dim)),
        dV_(output(kernel, "dV", a.dim_v)),
        words_(plan.ordered || plan.shares
                   ? std::optional(
                         kernel.inout("turns", i32, {backward_turns(a, plan, sequences_, parts())}))
                   : std::nullopt),
        wave_(WaveParts::of(kernel, a, plan, sequences_)),
        key_sums_(plan.shares ? std::optional(kernel.inout("key_sums", f32, key_sums().sums()))
                              : std::nullopt),
        sums_before_(plan.joins ? std::optional(kernel.inout("sums_before", f32, key_sums().sums()))
                                : std::nullopt),
        arrived_(plan.joins ? std::optional(kernel.symmetric("sums_arrived", i32, {kernel.ranks()}))
                            : std::nullopt),
        next_(kernel.workspace("next_block", 1)),
        blocks_(wave_ ? wave_->wave().count() : sequences_.count()),
        kv_ring_(kernel, "kv", stages(plan.key_stages),
                 {{a.dtype, a.block_k, shared_columns(a.dim_v)},
                  {a.dtype, a.block_k, shared_columns(a.dim)}}),
        ring_(kernel, "rows", stages(kStages),
              {{a.dtype, a.block_q, shared_columns(a.dim)},
               {a.dtype, a.block_q, shared_columns(a.dim_v)},
               {f32, 1, a.block_q},
               {f32, 1, a.block_q}}),
        ds_(kernel, "ds", a.dtype, kScoreStages * a.block_q, a.block_k),
        ds_full_(kernel, "ds_full"),
        own_math_(kernel, 128, kGroups) {
    kv_ring_.numbered(kKeyNumbers);
    ring_.numbered(plan.last_converts ? 4 : 3);
    if (!plan.leaves) outputs_.emplace(kernel, a, plan, sequences_, *dK_, *dV_, ds_);
    if (plan.staggers) first_begun_.emplace(kernel, kGroups * 128, 1, here());
    kernel.ctas(multiprocessors());
    const RegisterBudget few = registers(plan.load_registers);
    std::vector<RoleSpec> roles = {role("load", warps(1), few, [this] { load_blocks(); })};
    if (plan.ordered) {
      turns_.emplace(kernel, "turn", *words_, plan.alternates ? 128 : kGroups * 128,
                     plan.last_converts ? LastAdditions<Keys>::kNumbers : 0);
      roles.push_back(role("await_turns", warps(1), few, [this] { await_turns(); }));
      roles.push_back(role("end_turns", warps(1), few, [this] { end_turns(kv_ring_, *turns_); }));
    }
    if (plan.last_converts) {
      last_.emplace(
          kernel, a, plan, sequences_, sums_, *dQ_, own_math_,
          [this](const Index& group, int panel) { return outputs_->panel_apart(group, panel); });
      roles.push_back(
          role("put_unseen", warps(1), few, [this] { put_unseen(a_, sequences_, *dQ_); }));
    } else if (plan.ordered && !plan.leaves) {
      queries_.emplace(kernel, a, plan, sequences_, *words_, sums_, *dQ_, ds_, own_math_);
      roles.push_back(role("give_summed", warps(1), few, [this] { queries_->give_all(kv_ring_); }));
    }
    if (plan.shares) {
      const Dim first_word = plan.ordered ? sequences_.kept_blocks(a.block_q) : Dim(0);
      shared_.emplace(key_sums(), *key_sums_, *words_, first_word, kernels());
    }
    if (wave_) shared_.emplace(wave_->shared_sums(kernel));
    roles.push_back(role("math", warpgroups(kGroups), registers(plan.math_registers),
                         [this](const Index& group) { compute_blocks(group); }));
    kernel.roles(roles);
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
  using Sequence = typename Keys::One;
  static constexpr bool kIsStep = std::is_base_of_v<KeysOfStep, Keys>;

  const Dim& parts() const { return sequences_.parts().count; }
  SharedSumsShape key_sums() const { return shared_sums(a_, plan_, sequences_, parts()); }

  std::optional<Tensor> output(Kernel& kernel, const char* name, int dim) const {
    if (plan_.leaves) return std::nullopt;
    return sequences_.key_gradient(kernel, sequences_, name, a_.dtype, dim);
  }
  SumsOfKernels kernels() const {
    SumsOfKernels kernels{sums_before_, plan_.leaves, {}};
    if constexpr (kIsStep) {
      kernels.await = [this] { sequences_.await_sums(*arrived_); };
    }
    return kernels;
  }

  Block keys_of(const Sequence& sequence, const Index& block) const {
    return sequence.keys.block(block, a_.block_k);
  }
  Block columns(int dim) const { return Dim(dim).block(0, shared_columns(dim)); }

  void load_blocks() {
    came_.emplace(sequences_);
    const auto load = [&](const Index& number) {
      if (wave_) {
        return wave_->wave().for_parts(number, [&](const LastWave::Part& part) {
          load_block(sequences_.place(part.number), part);
        });
      }
      const KeyPlace at = sequences_.place(number);
      came_->await(at.kv_head);
      load_block(at);
    };
    hand_out(next_, blocks_, load, [&] { kv_ring_.produce(no_keys(kEndOfKeys, 0)); });
    came_.reset();
  }

  // With each block of keys its place, of which block -1 ends the work, and how many blocks of rows
  // follow: those of all heads that share the keys. Without turns and without a mask each block of
  // keys begins at another row, so that not all add to the same one.
  void load_block(const KeyPlace& at, const std::optional<LastWave::Part>& part = {}) {
    load_at(
        sequences_, at, a_.block_k,
        [&](const Sequence& sequence, const Block& cols) { load_keys(at, sequence, cols, part); },
        [&] {
          if (plan_.ordered) kv_ring_.produce(no_keys(kNoKeys, at.number));
        });
  }

  void load_keys(const KeyPlace& at, const Sequence& sequence, const Block& cols,
                 const std::optional<LastWave::Part>& part) {
    const auto [first, last] = sequence.mask.visible_rows(cols, sequence.queries, a_.block_q);
    const auto [whole_first, whole_last] =
        sequence.mask.full_rows(cols, sequence.queries, a_.block_q);
    const HeadParts& parts = sequences_.parts();
    const Index of_head = last - first;
    const Index first_head = at.kv_head * parts.group + parts.number(at.part, 0);
    const auto load = [&](const Tensor& K, const Tensor& V, const Block& keys, const Index& head) {
      KeyPlace place = at;
      if (part) place.part = part->word;
      const Index steps = part ? part->last - part->first : parts.count_of(at.part, of_head);
      kv_ring_.produce(key_numbers(place, steps), [&](const Slot& kv) {
        tma_load(sequence.rows(V, keys, head, columns(a_.dim_v)), kv[0], kOfKeys);
        tma_load(sequence.rows(K, keys, head, columns(a_.dim)), kv[1], kOfKeys);
      });
    };
    const auto bring_keys = [&] { sequences_.with_keys(K_, V_, cols, at.kv_head, load); };
    if (plan_.joins && plan_.leaves) {
      // To the sums of keys that nobody sees nothing is added.
      when(of_head > 0, bring_keys, [&] { kv_ring_.produce(no_keys(kNoKeys, at.number)); });
    } else {
      bring_keys();
    }
    const auto bring_rows = [&](const Index& i, const Index& member) {
      Index row = first + i;
      if (plan_.rotates) {
        const Index blocks = sequence.keys.blocks(a_.block_k);
        row = first + (i + at.block * of_head / blocks) % of_head;
      }
      const Index is_cut = select(row >= whole_first && row < whole_last, 0, 1);
      load_rows(at, sequence, row, first_head + member, is_cut);
    };
    if (!part) return for_rows(parts, at, of_head, bring_rows);
    for (Index i : range(part->first, part->last)) bring_rows(i, 0);
  }

  // With each block of rows its number, the first tile of its dQ, and whether a mask cuts it. In
  // turns the tile is -1 - tile for who is first to come to it, and finds no sum there. Where the
  // last one converts, the tile is kLast more for it, and the head follows.
  void load_rows(const KeyPlace& at, const Sequence& sequence, const Index& row, const Index& head,
                 const Index& is_cut) {
    came_->await_queries(head);
    const Block rows = sequence.queries.block(row, a_.block_q);
    const Block kept =
        sequences_.of_rows(a_.block_q).back().block(sequence.kept_number(row), a_.block_q);
    const Block one = Dim(a_.heads).block(head, 1);
    const Index tile = sequences_.kept_number(sequence, head, row, a_.block_q) * plan_.tiles(a_);
    std::vector<IndexOperand> numbers = {row, given_tile(at, sequence, row, rows, tile), is_cut};
    if (plan_.last_converts) numbers.push_back(head);
    const auto load = [&](const Tensor& Q, const Tensor& dO, const Block& from, const Index& of) {
      ring_.produce(numbers, [&](const Slot& slot) {
        tma_load(sequence.rows(Q, from, of, columns(a_.dim)), slot[0], kOfRows);
        tma_load(sequence.rows(dO, from, of, columns(a_.dim_v)), slot[1], kOfRows);
        tma_load(sequence.kept_block(L_, kept, one), slot[2].first_row());
        tma_load(sequence.kept_block(D_, kept, one), slot[3].first_row());
      });
    };
    sequences_.with_queries(Q_, dO_, rows, head, load);
  }

  Index given_tile(const KeyPlace& at, const Sequence& sequence, const Index& row,
                   const Block& rows, const Index& tile) const {
    if (!plan_.ordered) return tile;
    const Index turn = turn_of(a_, sequence, at, row);
    const Condition is_first = turn == 0 && !sequences_.has_sums(rows);
    if (!plan_.last_converts) return select(is_first, -1 - tile, tile);
    const Index given = select(turn == adders_of(a_, sequence, row) - 1, tile + kLast, tile);
    return select(is_first, -1 - given, given);
  }

  // Ahead of the warps that add, so that they do not wait for memory.
  void await_turns() {
    for_key_blocks(kv_ring_, [&](const KeyPlace& at, const Index& steps) {
      const Sequence sequence = sequences_.of(at.sequence);
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot slot = ring_.consume();
        const Index row = slot.number(0), given = slot.number(1);
        const Index tile = select(given < 0, -1 - given, given);
        if (!last_) {
          ring_.release(slot);
          turns_->await(tile / plan_.tiles(a_), turn_of(a_, sequence, at, row));
          continue;
        }
        const Index head = slot.number(3);
        ring_.release(slot);
        const Index kept = select(tile >= kLast, tile - kLast, tile) / plan_.tiles(a_);
        turns_->await(kept, turn_of(a_, sequence, at, row), {row, head, at.sequence});
        when(given >= kLast, [&] { last_->bring(kept); });
      }
    });
  }
  void compute_blocks(const Index& group) {
    if (outputs_) outputs_->clear(group);
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot kv = kv_ring_.consume();
      when(
          kv.number() >= 0,
          [&] {
            compute_block(group, kv);
            more = true;
          },
          [&] {
            more = kv.number() != kEndOfKeys;
            kv_ring_.release(kv);
          });
      if (queries_) queries_->convert(group);
    });

    bulk_wait(0);
  }

  // Until what the block of keys before has stored has left shared memory: dV, and dK and dQ from
  // where dS will lie.
  void await_copies(const Index& group) {
    bulk_wait_read(0);
    own_math_.sync(group);
  }

  // Of the step before: the stage of its dS, and the first tile of its dQ.
  struct Before {
    Cell<Index> stage{0}, tile{0};
  };
  void compute_block(const Index& group, const Slot& kv) {
    const SharedView v = own_rows(group, kv[0]).columns(0, a_.dim_v);
    const SharedView k = own_rows(group, kv[1]).columns(0, a_.dim);
    Var dk{zeros({kGroupRows, a_.dim})}, dv{zeros({kGroupRows, a_.dim_v})};
    Before before;
    KeyOutputs to;
    std::optional<Tile> held;
    if (plan_.held_columns > 0) held = load(v.columns(0, plan_.held_columns));
    const Index steps = kv.number(3);
    const auto has_rows = [&] {
      // dQ is that of the step before, so that the warpgroups may be half a step apart.
      const auto step = [&](bool has_before) {
        const Slot slot = ring_.consume();
        const Index own_tile = slot.number(1);
        const Gradients now = gradients(group, kv, k, v, held, slot, has_before);
        if (has_before && !plan_.meets_early) ds_full_.wait();
        if (!has_before) await_copies(group);
        store(own_gradient(slot.stage(), group), now.scores);
        std::optional<Pending> sum_q;
        if (has_before && plan_.alternates) add_alone(group, kv, before);
        if (has_before && !plan_.alternates) sum_q = query_gradient(group, kv, before.stage);
        const SharedView q = slot[0].columns(0, a_.dim), dO = slot[1].columns(0, a_.dim_v);
        const Pending sum_v = has_before ? wgmma(now.weights, dO, dv) : wgmma(now.weights, dO);
        const Pending sum_k = has_before ? wgmma(now.scores, q, dk) : wgmma(now.scores, q);
        std::optional<Tile> dq;
        if (sum_q) dq = wait(*sum_q);
        // The other warpgroup may read this step's dS then, and write over that of the step before.
        fence_proxy_async();
        ds_full_.arrive();
        if (dq) add(group, before.tile, *dq);
        if (has_before && plan_.alternates) pass_over(group, before);
        dv = wait(sum_v);
        dk = wait(sum_k);
        before.stage = slot.stage();
        before.tile = own_tile;
        ring_.release(slot);
      };
      step(false);
      for ([[maybe_unused]] Index i : range(1, steps)) step(true);
      end_steps(group, kv, before, to, dv);
    };
    when(steps > 0, has_rows, [&] {
      to.read(key_place(kv));
      if (held) fence_proxy_async();  // V was read, and no step has a fence behind it
      kv_ring_.release(kv);
      await_copies(group);
      if (!plan_.shares) outputs_->put_values(group, to, before.stage, dv);
    });
    const auto put_keys = [&] { outputs_->put_keys(group, to, dk); };
    const auto add_shared = [&] { this->add_shared(group, to, before, dk, dv); };
    if (wave_) return when(to.part == 0, put_keys, add_shared);
    shared_ ? add_shared() : put_keys();
  }

  // The last product of dQ, beside which dV leaves. Behind it the next keys may come, and when both
  // warpgroups are there dK may lie where dS was.
  void end_steps(const Index& group, const Slot& kv, const Before& before, KeyOutputs& to,
                 const Tile& dv) {
    ds_full_.wait();
    std::optional<Pending> sum_q;
    if (!plan_.alternates) sum_q = query_gradient(group, kv, before.stage);
    to.read(key_place(kv));
    if (last_) await_copies(group);
    const auto put_values = [&] { outputs_->put_values(group, to, before.stage, dv); };
    if (wave_) when(to.part == 0, put_values);
    if (!shared_) put_values();
    std::optional<Tile> dq;
    if (sum_q) {
      dq = wait(*sum_q);
    } else {
      add_alone(group, kv, before);
      pass_over(group, before);
    }
    kv_ring_.release(kv);
    ds_full_.arrive();
    if (dq) add(group, before.tile, *dq);
    ds_full_.wait();
  }

  struct Gradients {
    Tile weights, scores;  // P^T and dS^T without the scale, as operands of products
  };
  // Beside products that read both operands in shared memory, a load waits for hundreds of clocks:
  // what lies there is read before they begin, where registers have room for it.
  Gradients gradients(const Index& group, const Slot& kv, const SharedView& k, const SharedView& v,
                      const std::optional<Tile>& held, const Slot& slot, bool has_before) {
    const Index is_cut = slot.number(2);
    std::optional<Tile> l, d;
    if (plan_.reads_l_early) l = load(slot[2].first_row());
    if (plan_.reads_d_early) d = load(slot[3].first_row());
    const bool staggers = first_begun_ && !has_before;
    if (staggers) when(group == 1, [&] { first_begun_->sync(); });
    const Pending products = wgmma(k, slot[0].columns(0, a_.dim).T());
    const Pending value_products = value_product(v, held, slot[1], d);
    if (staggers) when(group == 0, [&] { first_begun_->arrive(); });
    const Tile p = weights(group, kv, slot, is_cut, wait(products), l);
    if (has_before && plan_.meets_early) ds_full_.wait();
    const Tile ds = score_gradient(slot, p, wait(value_products), d);
    return {p.cast(a_.dtype), ds.cast(a_.dtype)};
  }

  // dP^T = V dO^T. Of columns that are held V is an operand from registers, so that additions find
  // shared memory free for as long; the sum then begins with -D.
  Pending value_product(const SharedView& v, const std::optional<Tile>& held,
                        const SharedView& rows, const std::optional<Tile>& d) const {
    const int first = plan_.held_columns, rest = a_.dim_v - first;
    const auto columns = [&](int begin, int count) { return rows.columns(begin, count).T(); };
    if (!held) return wgmma(v, columns(0, a_.dim_v));
    const Pending sum = wgmma(*held, columns(0, first), zeros({kGroupRows, a_.block_q}) - *d);
    return rest > 0 ? wgmma(v.columns(first, rest), columns(first, rest), sum) : sum;
  }

  // P^T of a block of rows. What a mask needs is read again here, since registers are scarce.
  Tile weights(const Index& group, const Slot& kv, const Slot& slot, const Index& is_cut,
               const Tile& products, const std::optional<Tile>& l) const {
    Var x{scores_.capped(products) * (scores_.scale * kLog2e) -
          (l ? *l : load(slot[2].first_row()))};
    when(is_cut > 0, [&] {
      const Tile s = x;
      const Sequence sequence = masked_sequence(kv);
      const Block cols = keys_of(sequence, kv.number(0)).part(group, kGroupRows);
      x = sequence.mask.apply_transposed(s, sequence.queries.block(slot.number(0), a_.block_q),
                                         cols);
    });
    return exp2(x);
  }

  // Of sequences of one length the mask is the same.
  Sequence masked_sequence(const Slot& kv) const {
    if constexpr (Keys::kOneLength) {
      return sequences_.of(0);
    } else {
      return sequences_.of(kv.number(2));
    }
  }

  Tile score_gradient(const Slot& slot, const Tile& p, const Tile& value_products,
                      const std::optional<Tile>& d) const {
    const bool begins_with_d = plan_.held_columns > 0;
    const Tile gradient = begins_with_d
                              ? p * value_products
                              : p * (value_products - (d ? *d : load(slot[3].first_row())));
    if (!scores_.is_capped()) return gradient;
    // The capped score follows from its weight, which needs no registers of its own.
    const Tile capped = (log2(p) + load(slot[2].first_row())) * (1 / (scores_.scale * kLog2e));
    return where(p == 0, 0, gradient * (1 - capped * capped));
  }

  // dS of a stage, and there the keys of a warpgroup, as it holds them.
  SharedView gradient(const Index& stage) const { return ds_.rows(a_.block_q * stage, a_.block_q); }
  SharedView own_gradient(const Index& stage, const Index& group) const {
    return gradient(stage).column_part(group, kGroupRows).T();
  }

  // Of dQ = dS K a warpgroup's tile: its columns, its rows, or all there is.
  Pending query_gradient(const Index& group, const Slot& kv, const Index& stage) const {
    if (plan_.by_columns) {
      return wgmma(kv[1].column_part(group, kTileRows).T(), gradient(stage).T());
    }
    const SharedView rows = plan_.alternates
                                ? gradient(stage)
                                : ds_.rows(a_.block_q * stage + kTileRows * group, kTileRows);
    return plan_.transposed ? wgmma(kv[1].T(), rows.T()) : wgmma(rows, kv[1].columns(0, a_.dim));
  }

  // The warpgroups' tiles of a block of rows.
  void add(const Index& group, const Index& tile, const Tile& dq) {
    if (plan_.adds_together) own_math_.sync(group);
    when_due(tile, [&](const Due& due) { add_tile(due, group, group, dq); });
  }
  // The tile of one of them. There are as many stages as warpgroups. The product comes before the
  // turn, which others wait for.
  void add_alone(const Index& group, const Slot& kv, const Before& before) {
    const Index stage = before.stage;
    when(group == stage, [&] {
      const Tile dq = wait(query_gradient(group, kv, stage));
      when_due(before.tile, [&](const Due& due) { add_tile(due, group, 0, dq); });
    });
  }
  // By the other one, which waits for the turn beside its products.
  void pass_over(const Index& group, const Before& before) {
    if (!turns_) return;
    when(group != before.stage, [&] {
      const Turns::Turn turn = turns_->begin();
      if (last_) when(before.tile >= kLast, [&] { last_->pass_over(); });
      turns_->pass_over(turn);
    });
  }
  // `place` is the tile, or what it is for who is first or last to come to it.
  struct Due {
    Index place;
    std::optional<Turns::Turn> turn;
  };
  void when_due(const Index& tile, FunctionRef<void(const Due& due)> additions) {
    if (!turns_) return additions({tile, std::nullopt});
    const Turns::Turn turn = turns_->begin();
    additions({tile, turn});
    turns_->end(turn);
  }

  void add_tile(const Due& due, const Index& group, const Index& part, const Tile& dq) {
    const Index& place = due.place;
    if (!last_) return add_to_sums(place, part, dq);
    when(
        place < kLast && place >= -kLast, [&] { add_to_sums(place, part, dq); },
        [&] {
          const Turns::Turn& turn = *due.turn;
          last_->finish(group, part, dq, place < 0, {turn.more(0), turn.more(1), turn.more(2)});
        });
  }
  // The first stores: nothing has to set the sums to zero before.
  void add_to_sums(const Index& place, const Index& part, const Tile& dq) const {
    const Dim lines = plan_.sums(a_, sequences_.kept_blocks(a_.block_q))[0];
    const int of_tile = plan_.tile_lines(a_);
    const Tile sum = fragments(dq).reshape({of_tile, kLine});
    const auto at = [&](const Index& tile) {
      return sums_(lines.block(tile + part, of_tile), all);
    };
    if (!plan_.ordered) return atomic_add(at(place), sum);
    when(
        place < 0, [&] { tilewright::store(at(-1 - place), sum); },
        [&] { atomic_add(at(place), sum, Order::blocks); });
  }

  void add_shared(const Index& group, const KeyOutputs& to, const Before& before, const Tile& dk,
                  const Tile& dv) {
    const auto place = [&]() -> SharedSums::Place {
      if (wave_) return WaveParts::place_of_sums(to.part);
      return {sequences_.kept_keys(sequences_.of(to.sequence), to.kv_head, to.block, a_.block_k),
              to.part};
    };
    const SharedSums::Place at = place();
    if (last_) await_copies(group);
    shared_->add(at, group, /*of_keys=*/false, dv,
                 [&](const Tile& sum) { outputs_->put_values(group, to, before.stage, sum); });
    shared_->add(at, group, /*of_keys=*/true, dk,
                 [&](const Tile& sum) { outputs_->put_keys(group, to, sum); });
    // Lanes that have parted and do not meet have what all share in registers of each.
    warp_sync();
  }

  static SharedView own_rows(const Index& group, const SharedView& keys) {
    return keys.rows(kGroupRows * group, kGroupRows);
  }

  const Attention& a_;
  BackwardPlan plan_;
  AttentionScores scores_;
  Keys sequences_;
  Tensor Q_, K_, V_, dO_, L_, D_, sums_;
  std::optional<Tensor> dQ_, dK_, dV_, words_;
  std::optional<WaveParts> wave_;
  std::optional<Tensor> key_sums_, sums_before_, arrived_;
  Tensor next_;
  Dim blocks_;
  std::optional<typename Keys::HeadsThatCame> came_;  // of the role that loads
  Ring kv_ring_, ring_;
  SharedTile ds_;
  ClusterBarrier ds_full_;
  NamedBarrier own_math_;  // of a warpgroup
  std::optional<NamedBarrier> first_begun_;
  std::optional<StoredKeyGradients<Keys>> outputs_;
  std::optional<SharedSums> shared_;
  // In order.
  std::optional<Turns> turns_;
  std::optional<QueryGradients<Keys>> queries_;
  std::optional<LastAdditions<Keys>> last_;
};

}  // namespace

template <typename Sequences>
Kernel gradients_sm90(const Attention& a, const BackwardPlan& plan, const std::string& name) {
  Kernel kernel(name);
  Backward<KeysOf<Sequences>>(kernel, a, plan);
  return kernel;
}
template Kernel gradients_sm90<Batch>(const Attention&, const BackwardPlan&, const std::string&);
template Kernel gradients_sm90<Packed>(const Attention&, const BackwardPlan&, const std::string&);

Kernel gradients_of_heads_sm90(const SequenceParallelAttention& o, bool is_packed,
                               const std::string& name, const Caller& caller) {
  const Attention own = own_backward_heads(o);
  const BackwardPlan plan = heads_backward_plan(o, own, is_packed, caller);
  Kernel kernel(name);
  if (is_packed) {
    Backward<HeadsOfRanks<PackedOverRanks>>(kernel, own, plan, o);
  } else {
    Backward<HeadsOfRanks<OneLengthOverRanks>>(kernel, own, plan, o);
  }
  return kernel;
}

Kernel gradients_to_one_sm90(const SequenceParallelAttention& o, RingPass pass,
                             const std::string& name, const Caller& caller) {
  const BackwardPlan plan = ring_backward_plan(o, pass, caller);
  Attention a = o.attention;
  Kernel kernel(name);
  if (pass == RingPass::last) {
    Backward<OwnKeys>(kernel, a, plan, o);
  } else {
    a.causal = false;
    Backward<OthersKeys>(kernel, a, plan, o, pass == RingPass::first);
  }
  return kernel;
}

}  // namespace tilewright::kernels
