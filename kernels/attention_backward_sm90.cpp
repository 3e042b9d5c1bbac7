#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

constexpr int kRows = 64;  // of a warpgroup's product
constexpr int kGroups = 2;
constexpr int kHalves = 4;
constexpr int kLine = 128;  // f32 that a warp adds at a time

// A block of keys of a head that others share, and the sequence.
struct KeyPlace {
  Index block, kv_head, sequence;
};

// dK and dV of a block of keys in the registers of two warpgroups, which have 64 keys each. Scores
// are computed as S^T = K Q^T, so that P^T and dS^T are operands from registers. dS passes through
// shared memory for dQ = dS K, of which each warpgroup has a part, and adds it to memory.
class Backward {
 public:
  Backward(Kernel& kernel, const Attention& a, const BackwardPlan& plan)
      : a_(a),
        plan_(plan),
        scores_(a),
        batch_(kernel.dim("batch")),
        queries_(kernel.dim("queries")),
        keys_(kernel.dim("keys")),
        Q_(kernel.in("Q", a.dtype, {batch_, queries_, a.heads, a.dim})),
        K_(kernel.in("K", a.dtype, {batch_, keys_, a.kv_heads, a.dim})),
        V_(kernel.in("V", a.dtype, {batch_, keys_, a.kv_heads, a.dim_v})),
        dO_(kernel.in("dO", a.dtype, {batch_, queries_, a.heads, a.dim_v})),
        L_(kernel.in("L", f32, {batch_, a.heads, plan.padded(queries_)})),
        D_(kernel.in("D", f32, {batch_, a.heads, plan.padded(queries_)})),
        dQ_(kernel.inout("dQ", f32, plan.sums(a, batch_, queries_))),
        dK_(kernel.out("dK", a.dtype, {batch_, keys_, a.kv_heads, a.dim})),
        dV_(kernel.out("dV", a.dtype, {batch_, keys_, a.kv_heads, a.dim_v})),
        mask_(attention_mask(queries_, keys_, a.causal, a.window)),
        next_(kernel.workspace("next_block", 1)),
        key_blocks_(ceil_div(keys_, a.block_k)),
        kv_heads_(batch_ * a.kv_heads),
        blocks_(key_blocks_ * kv_heads_),
        kv_ring_(kernel, "kv", stages(1), kv_tiles(a, plan)),
        ring_(kernel, "rows", stages(plan.stages),
              {{a.dtype, a.block_q, a.dim},
               {a.dtype, a.block_q, a.dim_v},
               {f32, 8, a.block_q},
               {f32, 8, a.block_q}}),
        ds_(kernel, "ds", a.dtype, plan.stages * a.block_k, a.block_q),
        ds_full_(kernel, "ds_full"),
        all_math_(kernel, kGroups * 128) {
    kv_ring_.numbered(4);
    ring_.numbered(3);
    kernel.ctas(multiprocessors());
    kernel.roles({role("load", warps(1), registers(plan.load_registers), [this] { load_blocks(); }),
                  role("math", warpgroups(kGroups), registers(plan.math_registers),
                       [this](const Index& group) { compute_blocks(group); })});
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
  // V, and K in parts of columns, one below the other, where each warpgroup's dQ takes one.
  static std::vector<TileShape> kv_tiles(const Attention& a, const BackwardPlan& plan) {
    return {{a.dtype, a.block_k, a.dim_v},
            {a.dtype, a.block_k * plan.k_parts, a.dim / plan.k_parts}};
  }

  // In groups of heads whose Q, dO and sums of dQ stay in L2 together, the blocks with the most
  // rows first.
  KeyPlace place(const Index& number) const {
    const Dim bytes = max(queries_, 1) * (a_.heads / a_.kv_heads) *
                      ((a_.dim + a_.dim_v) * size_of(a_.dtype) + 4 * a_.dim);
    const Dim fit = max(Dim(a_.l2_bytes) / bytes, 1);
    const Dim group = ceil_div(kv_heads_, max(ceil_div(kv_heads_, fit), 1));
    const Dim per_group = max(group * key_blocks_, 1);
    const Index first = number / per_group * group, in_group = number % per_group;
    const Index height = min(kv_heads_ - first, group);
    const Index head = first + in_group % height;
    return {in_group / height, head % a_.kv_heads, head / a_.kv_heads};
  }
  Block keys_of(const KeyPlace& place) const { return keys_.block(place.block, a_.block_k); }

  // Blocks of rows that some of the keys are seen by, those of all heads one behind the other.
  struct Steps {
    Index first, of_head, all;
  };
  Steps steps(const KeyPlace& place) const {
    const auto [first, last] = mask_.visible_rows(keys_of(place), queries_, a_.block_q);
    const Index count = last - first;
    return {first, count, count * scores_.group};
  }

  void load_blocks() {
    Cell<Index> number(cta_index());
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Index now = number;
      more = now < blocks_;
      when(
          now < blocks_,
          [&] {
            load_block(place(now));
            // The last fetch of all sets the counter back for the next launch.
            const Index fetched = atomic_add(next_(0), 1);
            when(fetched == blocks_ - 1, [&] { atomic_add(next_(0), 0 - Index(blocks_)); });
            number = fetched + cta_count();
          },
          [&] {
            kv_ring_.produce(std::vector<IndexOperand>{-1, 0, 0, 0});
          });
    });
  }

  void load_block(const KeyPlace& at) {
    const Block cols = keys_of(at);
    const Steps steps = this->steps(at);
    kv_ring_.produce({at.block, at.kv_head, at.sequence, steps.all}, [&](const Slot& kv) {
      tma_load(V_(at.sequence, cols, at.kv_head, all), kv[0]);
      for (int i = 0; i < plan_.k_parts; ++i) {
        tma_load(K_(at.sequence, cols, at.kv_head, Dim(a_.dim).block(i, a_.dim / plan_.k_parts)),
                 kv[1].rows(a_.block_k * i, a_.block_k));
      }
    });
    const auto [whole_first, whole_last] = mask_.full_rows(cols, queries_, a_.block_q);
    for (Index i : range(steps.all)) {
      const Index member = scores_.group == 1 ? Index(0) : i / steps.of_head;
      const Index row = steps.first + (i - member * steps.of_head);
      const Index head = at.kv_head * scores_.group + member;
      const Block rows = queries_.block(row, a_.block_q);
      const Block padded = plan_.padded(queries_).block(row, a_.block_q);
      const Block one = Dim(a_.heads).block(head, 1);
      const Index place = plan_.place(a_, queries_, at.sequence, head, row);
      const Index is_cut = select(row >= whole_first && row < whole_last, 0, 1);
      ring_.produce({row, place, is_cut}, [&](const Slot& slot) {
        tma_load(Q_(at.sequence, rows, head, all), slot[0]);
        tma_load(dO_(at.sequence, rows, head, all), slot[1]);
        tma_load(L_(at.sequence, one, padded), slot[2].first_row());
        tma_load(D_(at.sequence, one, padded), slot[3].first_row());
      });
    }
  }

  void compute_blocks(const Index& group) {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot kv = kv_ring_.consume();
      const Condition valid = kv.number() >= 0;
      more = valid;
      when(valid, [&] { compute_block(group, kv); });
    });
    bulk_wait(0);
  }

  // A product of this warpgroup's keys, from shared memory or from registers.
  struct Keys {
    std::vector<SharedView> shared;
    std::vector<Tile> held;
    Pending times(const SharedView& rows) const {
      std::optional<Pending> sum;
      int column = 0;
      for (std::size_t i = 0; i < shared.size(); ++i) {
        const SharedView part = rows.columns(column, shared[i].column_count()).T();
        column += shared[i].column_count();
        if (held.empty()) {
          sum = sum ? wgmma(shared[i], part, *sum) : wgmma(shared[i], part);
        } else {
          sum = sum ? wgmma(held[i], part, *sum) : wgmma(held[i], part);
        }
      }
      return *sum;
    }
  };
  Keys keys(const Index& group, const SharedView& tile) const {
    Keys keys;
    for (int i = 0; i < tile.row_count() / a_.block_k; ++i) {
      keys.shared.push_back(tile.rows(a_.block_k * i + kRows * group, kRows));
      if (plan_.keys_in_registers) keys.held.push_back(load(keys.shared.back()));
    }
    return keys;
  }

  // Half of the columns of dQ.
  Pending query_product(const Index& group, const SharedView& ds, const Slot& kv) const {
    if (plan_.k_parts == 1) return wgmma(ds, kv[1].column_part(group, plan_.part_columns));
    return wgmma(ds, kv[1].rows(a_.block_k * group, a_.block_k));
  }

  void compute_block(const Index& group, const Slot& kv) {
    const Keys k = keys(group, kv[1]), v = keys(group, kv[0]);
    // Numbers are read again where they are needed: registers are what there is least of.
    const auto place = [&] {
      return KeyPlace{kv.number(0), kv.number(1), kv.number(2)};
    };
    const Index steps = kv.number(3);
    Var sum_k{zeros({kRows, a_.dim})}, sum_v{zeros({kRows, a_.dim_v})};
    when(steps > 0, [&] {
      const auto weights = [&](const Slot& slot, const Tile& products) {
        Var x{scores_.capped(products)};
        when(slot.number(2) > 0, [&] {
          const Tile s = x;
          const Block cols = keys_.block(kv.number(0), a_.block_k).part(group, kRows);
          x = mask_.apply_transposed(s, queries_.block(slot.number(0), a_.block_q), cols);
        });
        return exp2(x * (scores_.scale * kLog2e) - load(slot[2].first_row()));
      };
      const auto ds_of = [&](const Slot& slot) {
        return ds_.rows(a_.block_k * slot.stage(), a_.block_k);
      };
      // What a step adds to dV; dS is then in shared memory, and dK in flight. `beside` runs beside
      // the product of dV.
      const auto key_gradients = [&](const Slot& slot, const Tile& p,
                                     const std::function<void(int)>& beside) {
        const SharedView &q = slot[0], &d_o = slot[1];
        const Pending dv = wgmma(p.cast(a_.dtype), d_o, sum_v);
        beside(0);
        const Pending value_products = v.times(d_o);
        beside(1);
        sum_v = wait(dv);
        beside(2);
        const Tile dp = wait(value_products);
        const Tile ds = (p * (dp - load(slot[3].first_row()))).cast(a_.dtype);
        store(ds_of(slot).rows(kRows * group, kRows), ds);
        fence_proxy_async();
        ds_full_.arrive();
        return wgmma(ds, q, sum_k);
      };
      const auto query_gradient = [&](const Index& of) {
        ds_full_.wait();
        return query_product(group, ds_.rows(a_.block_k * of, a_.block_k).T(), kv);
      };
      const auto add = [&](const Index& to, const Tile& dq, int half) {
        const Dim lines = plan_.sums(a_, batch_, queries_)[0];
        const int columns = plan_.part_columns / kHalves;
        const Tile part = fragments(dq.slice({0, columns * half}, {kRows, columns}));
        atomic_add(dQ_(lines.block(to + (group * kHalves + half), plan_.part_rows()), all),
                   part.reshape({plan_.part_rows(), kLine}));
      };
      const Slot first = ring_.consume();
      sum_k = wait(key_gradients(first, weights(first, wait(k.times(first[0]))), [](int) {}));
      Cell<Pending> dk(as_pending(sum_k));
      // Of the step before: its stage, and where its dQ belongs.
      Cell<Index> stage(first.stage()), to(first.number(1));
      for ([[maybe_unused]] Index i : range(1, steps)) {
        const Slot slot = ring_.consume();
        const Tile x = wait(k.times(slot[0]));
        sum_k = wait(dk);
        ring_.release(stage);
        const Tile p = weights(slot, x);
        // Of the step before, so that the warpgroups may be half a step apart.
        const Pending dq = query_gradient(stage);
        std::optional<Tile> sum;
        dk = key_gradients(slot, p, [&](int when) {
          if (when == 0) {
            sum = wait(dq);
            add(to, *sum, 0);
            add(to, *sum, 1);
          } else {
            add(to, *sum, when + 1);
          }
        });
        stage = slot.stage();
        to = slot.number(1);
      }
      const Pending dq = query_gradient(stage);
      sum_k = wait(dk);
      ring_.release(stage);
      const Tile sum = wait(dq);
      for (int i = 0; i < kHalves; ++i) add(to, sum, i);
    });
    const KeyPlace at = place();
    kv_ring_.release(kv);
    // Both leave through dS, which no product reads any more.
    all_math_.sync();
    const int panel = ds_.column_count();
    const auto put = [&](const Tensor& to, const Tile& tile) {
      bulk_wait_read(0);
      warp_sync();
      const int columns = static_cast<int>(tile.shape()[1]), width = std::min(panel, columns);
      const Tile rounded = tile.cast(a_.dtype);
      for (int j = 0; j * panel < columns; ++j) {
        store(ds_.rows(a_.block_k * j + kRows * group, kRows).columns(0, width),
              rounded.slice({0, panel * j}, {kRows, width}));
      }
      fence_proxy_async();
      warp_sync();
      const Block own = keys_of(at).part(4 * group + warp_index(), 16);
      for (int j = 0; j * panel < columns; ++j) {
        tma_store(to(at.sequence, own, at.kv_head, Dim(columns).block(j, width)),
                  ds_.rows(a_.block_k * j + kRows * group + 16 * warp_index(), 16)
                      .columns(0, width));
      }
      bulk_commit();
    };
    put(dV_, sum_v);
    put(dK_, sum_k * scores_.product_scale);
    bulk_wait_read(0);
    all_math_.sync();
  }

  const Attention& a_;
  BackwardPlan plan_;
  AttentionScores scores_;
  Dim batch_, queries_, keys_;
  Tensor Q_, K_, V_, dO_, L_, D_, dQ_, dK_, dV_;
  Mask mask_;
  Tensor next_;
  Dim key_blocks_, kv_heads_, blocks_;
  Ring kv_ring_, ring_;
  SharedTile ds_;
  ClusterBarrier ds_full_;
  NamedBarrier all_math_;
};

Kernel statistics_sm90(const Attention& a, const BackwardPlan& plan, bool of_lse,
                       const std::string& name) {
  Kernel kernel(name);
  const Dim batch = kernel.dim("batch"), queries = kernel.dim("queries");
  const Tensor O = kernel.in("O", a.dtype, {batch, queries, a.heads, a.dim_v});
  const Tensor dO = kernel.in("dO", a.dtype, {batch, queries, a.heads, a.dim_v});
  const Tensor LSE = kernel.in("LSE", f32, {batch, a.heads, queries});
  std::optional<Tensor> dLSE;
  if (of_lse) dLSE = kernel.in("dLSE", f32, {batch, a.heads, queries});
  const Tensor L = kernel.inout("L", f32, {batch, a.heads, plan.padded(queries)});
  const Tensor D = kernel.inout("D", f32, {batch, a.heads, plan.padded(queries)});
  const auto [x, h, b] = kernel.grid(ceil_div(queries, 64), a.heads, batch);
  const Block rows = queries.block(x, 64);
  const Tile sum = reduce_sum(load(O(b, rows, h, all)).cast(f32) *
                                  load(dO(b, rows, h, all)).cast(f32),
                              1)
                       .reshape({64});
  store(D(b, h, rows), dLSE ? sum - load((*dLSE)(b, h, rows)) : sum);
  const Tile lse = load(LSE(b, h, rows));
  store(L(b, h, rows), where(lse == kNone, 0, lse * kLog2e));
  return kernel;
}

// dQ from its sums, which lie in the order of the registers that added them.
Kernel convert_sums(const Attention& a, const BackwardPlan& plan, const std::string& name) {
  Kernel kernel(name);
  const Dim batch = kernel.dim("batch"), queries = kernel.dim("queries");
  const Tensor sums = kernel.in("sums", f32, plan.sums(a, batch, queries));
  const Tensor dQ = kernel.out("dQ", a.dtype, {batch, queries, a.heads, a.dim});
  constexpr int kParts = kGroups * kHalves;
  const auto [x, h, b] = kernel.grid(ceil_div(queries, a.block_q) * kParts, a.heads, batch);
  const Index block = x / kParts, part = x % kParts;
  const Index place = plan.place(a, queries, b, h, block) + part;
  const Dim lines = plan.sums(a, batch, queries)[0];
  const int columns = plan.part_columns / kHalves;
  const Tile sum = from_fragments(
      load(sums(lines.block(place, plan.part_rows()), all)).reshape({kRows * columns}), columns);
  const Tile dq = (sum * AttentionScores(a).product_scale).cast(a.dtype);
  store(dQ(b, queries.block(block, kRows), h, Dim(a.dim).block(part, columns)), dq);
  return kernel;
}

}  // namespace

Dim BackwardPlan::padded(const Dim& queries) const {
  return ceil_div(queries, block_q) * block_q;
}

std::vector<Dim> BackwardPlan::sums(const Attention& a, const Dim& batch,
                                    const Dim& queries) const {
  return {batch * a.heads * ceil_div(queries, block_q) * kGroups * kHalves * part_rows(), kLine};
}

int BackwardPlan::part_rows() const { return kRows * part_columns / kHalves / kLine; }

Index BackwardPlan::place(const Attention& a, const Dim& queries, const Index& sequence,
                          const Index& head, const Index& block) const {
  return ((sequence * a.heads + head) * ceil_div(queries, block_q) + block) * kGroups * kHalves;
}

BackwardPlan backward_plan(const Attention& a, const Caller& caller) {
  (void)caller;
  BackwardPlan plan;
  plan.block_q = a.block_q;
  plan.part_columns = a.dim / kGroups;
  plan.k_parts = plan.part_columns % 64 == 0 ? 1 : kGroups;
  plan.keys_in_registers = a.dim + a.dim_v <= 128;
  plan.stages = 2;
  plan.load_registers = 24;
  plan.math_registers = 240;
  return plan;
}

Program attention_backward_sm90(const Attention& a, bool of_lse, SourceLocation where) {
  const Caller caller{"attention_backward", where};
  check_attention(a, caller);
  const BackwardPlan plan = backward_plan(a, caller);
  const std::string name(caller.function);
  Program program(name);
  const Dim batch = program.dim("batch"), queries = program.dim("queries"),
            keys = program.dim("keys");
  const std::vector<Dim> of_q{batch, queries, a.heads, a.dim};
  const std::vector<Dim> of_o{batch, queries, a.heads, a.dim_v};
  const std::vector<Dim> of_k{batch, keys, a.kv_heads, a.dim};
  const std::vector<Dim> of_v{batch, keys, a.kv_heads, a.dim_v};
  const std::vector<Dim> of_rows{batch, a.heads, queries};
  const std::vector<Dim> padded{batch, a.heads, plan.padded(queries)};
  const Buffer Q = program.in("Q", a.dtype, of_q), K = program.in("K", a.dtype, of_k);
  const Buffer V = program.in("V", a.dtype, of_v);
  const Buffer O = program.in("O", a.dtype, of_o), LSE = program.in("LSE", f32, of_rows);
  const Buffer dO = program.in("dO", a.dtype, of_o);
  const Buffer dLSE = of_lse ? program.in("dLSE", f32, of_rows) : Buffer();
  const Buffer dQ = program.out("dQ", a.dtype, of_q), dK = program.out("dK", a.dtype, of_k);
  const Buffer dV = program.out("dV", a.dtype, of_v);
  const Buffer L = program.zeroed("L", f32, padded), D = program.zeroed("D", f32, padded);
  const Buffer sums = program.zeroed("sums", f32, plan.sums(a, batch, queries));
  const Stream stream = program.rank(0).stream();
  std::vector<Part> read = {O, dO, LSE};
  if (of_lse) read.push_back(dLSE);
  read.insert(read.end(), {L, D});
  stream.launch(statistics_sm90(a, plan, of_lse, name + "_statistics"), read);
  Kernel kernel(name + "_sm90");
  Backward(kernel, a, plan);
  stream.launch(kernel, {Q, K, V, dO, L, D, sums, dK, dV});
  stream.launch(convert_sums(a, plan, name + "_convert"), {sums, dQ});
  return program;
}

}  // namespace tilewright::kernels
