#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_record.h"
#include "kernels/attention_backward_recording.h"
#include "kernels/attention_backward_sequences.h"
#include "kernels/attention_backward_weights.h"
#include "kernels/attention_parameters.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

// The gradients of attention (Dao, FlashAttention-2, 2023, algorithm 2). With x the scaled, capped
// and masked scores, P = exp(x - LSE) and dP = dO V^T:
//   dV = P^T dO,  dx = P (dP - D),  D = rowsum(dO O) - dLSE,  dQ = scale dS K,  dK = scale dS^T Q,
// where dS is dx times what the cap lets through, 1 - tanh^2. Two kernels compute P and dP, one
// for dQ and one for dK and dV: no sum is divided among CTAs, so that every launch gives the same
// bits.
namespace tilewright::kernels {

namespace {
// D, without what the gradient of LSE takes from it.
Tile sums_of_products(const TensorView& O, const TensorView& dO, const Block& rows) {
  const auto numbers = [](const TensorView& view) {
    return load(view, Cache::evict_first).cast(f32);
  };
  return reduce_sum(numbers(O) * numbers(dO), 1).reshape({rows.size()});
}
}  // namespace

template <typename Sequences>
Kernel statistics_of_rows(const Attention& a, const StatisticsPlan& plan, const std::string& name) {
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::queries, plan.multiple);
  const Tensor O = kernel.in("O", a.dtype, sequences.of_queries(a.dim_v));
  const Tensor dO = kernel.in("dO", a.dtype, sequences.of_queries(a.dim_v));
  const Tensor LSE = kernel.in("LSE", f32, sequences.of_rows());
  std::optional<Tensor> dLSE;
  if (plan_case("gradient of LSE", plan.of_lse)) dLSE = kernel.in("dLSE", f32, sequences.of_rows());
  const bool fills = sets_all<Sequences>(plan.multiple);
  const auto written = [&](const char* tensor) {
    const std::vector<Dim> shape = sequences.of_rows(plan.multiple);
    return plan.multiple > 1 && !fills ? kernel.inout(tensor, f32, shape)
                                       : kernel.out(tensor, f32, shape);
  };
  const Tensor L = written("L"), D = written("D");
  const auto at = sequences.block_of_queries(kernel, kStatisticRows);
  const Block rows = fills ? at.queries_or_zeros(at.number, kStatisticRows) : at.block;

  const auto numbers = [&](const Tensor& tensor) {
    return load(at.row_numbers(tensor, rows, at.head));
  };
  const Tile sum = sums_of_products(at.rows(O, rows, at.head), at.rows(dO, rows, at.head), rows);
  store(at.kept(D, rows, at.head), dLSE ? sum - numbers(*dLSE) : sum);
  store(at.kept(L, rows, at.head), in_powers_of_two(numbers(LSE)));
  if (plan.turns > 0) {
    const Dim words = sequences.kept_blocks(kStatisticRows) * plan.turns;
    const Index first = sequences.kept_number(at, at.head, at.number, kStatisticRows) * plan.turns;
    store(kernel.out("turns", i32, {words})(Block(first, plan.turns, words)),
          zeros({plan.turns}, i32));
  }
  return kernel;
}
template Kernel statistics_of_rows<Batch>(const Attention&, const StatisticsPlan&,
                                          const std::string&);
template Kernel statistics_of_rows<Packed>(const Attention&, const StatisticsPlan&,
                                           const std::string&);

namespace {

// `multiple`: of the rows that statistics have.
template <typename Sequences>
Kernel query_gradient(const Attention& a, int multiple, const std::string& name) {
  Kernel kernel(name);
  const AttentionScores scores(a);
  const Sequences sequences(kernel, a, Of::both, multiple);
  const Tensor Q = kernel.in("Q", a.dtype, sequences.of_queries(a.dim));
  const Tensor K = kernel.in("K", a.dtype, sequences.of_keys(a.dim));
  const Tensor V = kernel.in("V", a.dtype, sequences.of_keys(a.dim_v));
  const Tensor dO = kernel.in("dO", a.dtype, sequences.of_queries(a.dim_v));
  const Tensor L = kernel.in("L", f32, sequences.of_rows(multiple));
  const Tensor D = kernel.in("D", f32, sequences.of_rows(multiple));
  const Tensor dQ = kernel.out("dQ", a.dtype, sequences.of_queries(a.dim));
  const auto at = sequences.block_of_queries(kernel, a.block_q);
  const Block& rows = at.block;
  const Index kv_head = at.head / scores.group;

  const Tile q = load(at.rows(Q, rows, at.head)), grad = load(at.rows(dO, rows, at.head));
  const auto numbers = [&](const Tensor& tensor) {
    return load(at.kept(tensor, rows, at.head)).reshape({rows.size(), 1});
  };
  const Tile l = numbers(L), d = numbers(D);
  Var acc{zeros({rows, a.dim})};
  for (Block cols : at.mask.blocks(rows, at.keys, a.block_k)) {
    const Tile k = load(at.rows(K, cols, kv_head)), v = load(at.rows(V, cols, kv_head));
    const Weights weights = weights_of(scores, dot(q, k.T()), l,
                                       [&](const Tile& s) { return at.mask.apply(s, rows, cols); });
    acc = dot(gradient_of(scores, weights, dot(grad, v.T()), d).cast(a.dtype), k, acc);
  }
  store(at.rows(dQ, rows, at.head), (acc * scores.product_scale).cast(a.dtype));
  return kernel;
}

// One CTA has the keys of all heads that share them: no sum over heads leaves it. Where the sums of
// both do not fit its registers, dK and dV have a kernel each, which computes the weights anew.
struct Sums {
  bool of_keys, of_values;
};

// The gradients of blocks of keys, in a kernel that has these tensors.
template <typename Sequences>
class KeyGradients {
 public:
  // `a` and `sequences` outlive it.
  KeyGradients(Kernel& kernel, const Attention& a, const Sums& sums, const Sequences& sequences)
      : a_(a),
        scores_(a),
        sequences_(sequences),
        Q_(kernel.in("Q", a.dtype, sequences.of_queries(a.dim))),
        K_(kernel.in("K", a.dtype, sequences.of_keys(a.dim))),
        dO_(kernel.in("dO", a.dtype, sequences.of_queries(a.dim_v))),
        L_(kernel.in("L", f32, sequences.of_rows(a.block_q))) {
    if (sums.of_keys) {
      V_ = kernel.in("V", a.dtype, sequences.of_keys(a.dim_v));
      D_ = kernel.in("D", f32, sequences.of_rows(a.block_q));
      dK_ = kernel.out("dK", a.dtype, sequences.of_keys(a.dim));
    }
    if (sums.of_values) dV_ = kernel.out("dV", a.dtype, sequences.of_keys(a.dim_v));
  }

  // Of the block `cols`. `take(head, row, gradient, k)` is given dS^T of each block of rows, and
  // the keys.
  template <typename Take>
  void store_block(const typename Sequences::One& at, const Index& kv_head, const Block& cols,
                   const Take& take) const {
    const Tile k = load(at.rows(K_, cols, kv_head));
    std::optional<Tile> v;
    std::optional<Var> dk, dv;
    if (dK_) {
      v = load(at.rows(*V_, cols, kv_head));
      dk.emplace(zeros({cols, a_.dim}));
    }
    if (dV_) dv.emplace(zeros({cols, a_.dim_v}));
    for (Index member : range(scores_.group)) {
      const Index head = kv_head * scores_.group + member;
      const auto [first, last] = at.mask.visible_rows(cols, at.queries, a_.block_q);
      for (Index row : range(first, last)) {
        const Block rows = at.queries_or_zeros(row, a_.block_q);
        const Tile q = load(at.rows(Q_, rows, head)), grad = load(at.rows(dO_, rows, head));
        const Block kept =
            sequences_.of_rows(a_.block_q).back().block(at.kept_number(row), a_.block_q);
        const Block one_head = Dim(a_.heads).block(head, 1);
        const auto numbers = [&](const Tensor& tensor) {
          return load(at.kept_block(tensor, kept, one_head));
        };
        // Keys that do not exist reach nothing but their own gradients, which nobody stores.
        const Weights weights = weights_of(scores_, dot(k, q.T()), numbers(L_), [&](const Tile& s) {
          return a_.causal ? at.mask.apply_transposed(s, rows, cols) : s;
        });
        if (dV_) *dv = dot(weights.weights.cast(a_.dtype), grad, *dv);
        if (dK_) {
          const Tile gradient =
              gradient_of(scores_, weights, dot(*v, grad.T()), numbers(*D_)).cast(a_.dtype);
          *dk = dot(gradient, q, *dk);
          take(head, row, gradient, k);
        }
      }
    }
    if (dK_) store(at.rows(*dK_, cols, kv_head), (*dk * scores_.product_scale).cast(a_.dtype));
    if (dV_) store(at.rows(*dV_, cols, kv_head), Tile(*dv).cast(a_.dtype));
  }

 private:
  const Attention& a_;
  const AttentionScores scores_;
  const Sequences& sequences_;
  Tensor Q_, K_, dO_, L_;
  std::optional<Tensor> V_, D_, dK_, dV_;
};

template <typename Sequences>
Kernel key_gradients(const Attention& a, const Sums& sums, const std::string& name) {
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::both, a.block_q);
  const KeyGradients<Sequences> gradients(kernel, a, sums, sequences);
  const auto at = sequences.block_of_keys(kernel, a.block_k);
  gradients.store_block(at, at.head, at.block, [](const auto&...) {});
  return kernel;
}

// f32 sums of dQ, for each part of the keys whole blocks of rows.
std::vector<Dim> query_sums(const Attention& a, const Dim& parts, const BatchShapes& shapes) {
  return {parts, shapes.kept_blocks(a.block_q), a.block_q, a.dim};
}

// All gradients of the keys' blocks, part by part. What a part adds to dQ it alone adds up.
Kernel gradients_of_parts(const Attention& a, const std::string& name) {
  Kernel kernel(name);
  const Batch sequences(kernel, a, Of::both, a.block_q);
  const KeyGradients<Batch> gradients(kernel, a, {true, true}, sequences);
  const Dim parts = kernel.dim("parts", at_least(1));
  const Tensor sums = kernel.inout("sums", f32, query_sums(a, parts, sequences));
  const auto [part, kv_head, b] = kernel.grid(parts, sequences.kv_heads, sequences.batch);
  const auto at = sequences.of(b);
  const Dim blocks = ceil_div(sequences.keys, a.block_k), of_part = ceil_div(blocks, parts);
  for (Index block : range(min(part * of_part, blocks), min(part * of_part + of_part, blocks))) {
    gradients.store_block(
        at, kv_head, at.keys.block(block, a.block_k),
        [&](const Index& head, const Index& row, const Tile& gradient, const Tile& k) {
          const Index kept = sequences.kept_number(at, head, row, a.block_q);
          const TensorView sum = sums(part, kept, all, all);
          store(sum, dot(gradient.T(), k, load(sum)));
        });
  }
  return kernel;
}

Kernel query_gradient_of_parts(const Attention& a, const std::string& name) {
  Kernel kernel(name);
  const Batch sequences(kernel, a, Of::queries);
  const Dim parts = kernel.dim("parts", at_least(1));
  const Tensor sums = kernel.in("sums", f32, query_sums(a, parts, sequences));
  const Tensor dQ = kernel.out("dQ", a.dtype, sequences.of_queries(a.dim));
  const auto at = sequences.block_of_queries(kernel, a.block_q);
  const Index kept = sequences.kept_number(at, at.head, at.number, a.block_q);
  Var sum{zeros({at.block, a.dim})};
  for (Index part : range(parts)) sum = sum + load(sums(part, kept, all, all));
  store(at.rows(dQ, at.block, at.head), (sum * AttentionScores(a).product_scale).cast(a.dtype));
  return kernel;
}

// Into how many parts keys are divided: the fewer, the less memory. All heads' are enough for the
// threads of a machine, and a part has two blocks or more.
Dim parts_of_keys(const Attention& a, const BatchShapes& shapes) {
  constexpr int kEnough = 32, kMost = 8;
  const Dim heads = max(shapes.batch * shapes.kv_heads, 1);
  const Dim pairs = ceil_div(shapes.keys, 2 * a.block_k);
  return max(min(min(ceil_div(kEnough, heads), kMost), pairs), 1);
}

}  // namespace

template <typename Sequences>
Kernel sink_gradient(const Attention& a, int multiple, const std::string& name) {
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::queries, multiple);
  const Tensor sinks = kernel.in("sinks", f32, {a.heads});
  // With those that whole blocks of several rows are filled up with, of which D is 0.
  const Tensor L = kernel.in("L", f32, sequences.of_rows());
  const Tensor D = kernel.in("D", f32, sequences.of_rows());
  const Tensor dsinks = kernel.out("dsinks", f32, {a.heads});
  const auto [h] = kernel.grid(a.heads);
  const Block head = Dim(a.heads).block(h, 1);
  const Tile sink = load(sinks(head)).reshape({1, 1}) * kLog2e;
  Var sum{zeros({1, 1})};
  constexpr int kRows = 128;
  sequences.for_kept_rows(h, kRows, [&](const auto& part) {
    const auto numbers = [&](const Tensor& tensor) {
      return load(part(tensor)).reshape({1, kRows});
    };
    const Tile d = numbers(D);
    // Rows that do not exist have a D of 0, and an L of 0 that a large sink does not fit.
    sum = sum + reduce_sum(where(d == 0, 0, exp2(sink - numbers(L)) * d), 1);
  });
  store(dsinks(head), (0 - Tile(sum)).reshape({1}));
  return kernel;
}
template Kernel sink_gradient<Batch>(const Attention&, int, const std::string&);
template Kernel sink_gradient<Packed>(const Attention&, int, const std::string&);

template <typename Sequences>
void deterministic_backward(const Attention& a, const Recording<Sequences>& to) {
  const std::string& name = to.name;
  record_gradients<Sequences>(
      a, /*turns=*/0, to,
      [&](Program&, const auto&, const Launches& stream, const BackwardBuffers& b,
          const auto& with_offsets) {
        const auto run = [&](const char* of, const Launches::Make& make,
                             const std::vector<Part>& parts) {
          stream.launch(name + of, make, with_offsets(Of::both, parts));
        };
        const auto keys = [&](Sums sums) {
          return
              [&a, sums](const std::string& of) { return key_gradients<Sequences>(a, sums, of); };
        };
        // Its sums are of queries, as the others' are of keys: so are its blocks.
        Attention turned = a;
        std::swap(turned.block_q, turned.block_k);
        // Four warpgroups have the registers for it where rows are short.
        if (plan_case("256 queries", std::max(a.dim, a.dim_v) <= 64)) {
          turned.block_q = 256;
          turned.block_k = 64;
        }
        run("_queries",
            [&](const std::string& of) { return query_gradient<Sequences>(turned, a.block_q, of); },
            {b.Q, b.K, b.V, b.dO, b.L, b.D, b.dQ});
        // Of 64 keys for each warpgroup: its registers hold f32 sums of so many
        // columns beside scores.
        constexpr int kColumns = 256;
        if (plan_case("dK and dV in one kernel", a.dim + a.dim_v <= kColumns)) {
          run("_keys", keys({true, true}), {b.Q, b.K, b.dO, b.L, b.V, b.D, b.dK, b.dV});
          return;
        }
        run("_keys", keys({true, false}), {b.Q, b.K, b.dO, b.L, b.V, b.D, b.dK});
        run("_values", keys({false, true}), {b.Q, b.K, b.dO, b.L, b.dV});
      });
}

template void deterministic_backward<Batch>(const Attention&, const Recording<Batch>&);
template void deterministic_backward<Packed>(const Attention&, const Recording<Packed>&);

void backward_in_parts(const Attention& a, const Recording<Batch>& to) {
  const std::string& name = to.name;
  record_gradients<Batch>(
      a, /*turns=*/0, to,
      [&](Program& program, const BatchShapes& shapes, const Launches& stream,
          const BackwardBuffers& b, const auto&) {
        const Buffer sums = program.zeroed("sums" + to.suffix, f32,
                                           query_sums(a, parts_of_keys(a, shapes), shapes));
        stream.launch(name + "_keys",
                      [&](const std::string& of) { return gradients_of_parts(a, of); },
                      {b.Q, b.K, b.dO, b.L, b.V, b.D, b.dK, b.dV, sums});
        stream.launch(name + "_queries",
                      [&](const std::string& of) { return query_gradient_of_parts(a, of); },
                      {sums, b.dQ});
      });
}

Kernel backward_statistics(const Attention& a, bool of_lse, const std::string& name) {
  return statistics_of_rows<Batch>(a, {of_lse, /*multiple=*/1, /*turns=*/0}, name);
}

Kernel packed_backward_statistics(const Attention& a, bool of_lse, const std::string& name) {
  Kernel kernel(name);
  const Dim queries = kernel.dim("total_queries");
  const std::vector<Dim> of_rows{a.heads, queries}, of_queries{queries, a.heads, a.dim_v};
  const Tensor O = kernel.in("O", a.dtype, of_queries), dO = kernel.in("dO", a.dtype, of_queries);
  const Tensor LSE = kernel.in("LSE", f32, of_rows);
  std::optional<Tensor> dLSE;
  if (plan_case("gradient of LSE", of_lse)) dLSE = kernel.in("dLSE", f32, of_rows);
  const Tensor L = kernel.out("L", f32, of_rows), D = kernel.out("D", f32, of_rows);
  const auto [x, h] = kernel.grid(ceil_div(queries, kStatisticRows), a.heads);
  const Block rows = queries.block(x, kStatisticRows);
  const Tile sum = sums_of_products(O(rows, h, all), dO(rows, h, all), rows);
  store(D(h, rows), dLSE ? sum - load((*dLSE)(h, rows)) : sum);
  store(L(h, rows), in_powers_of_two(load(LSE(h, rows))));
  return kernel;
}

Attention with_backward_blocks(Attention a) {
  // Scores, their gradients and two sums of the keys' rows lie in the registers of two warpgroups.
  a.block_k = 128;
  a.block_q = plan_case("128 queries", std::max(a.dim, a.dim_v) <= 64) ? 128 : 64;
  return a;
}

Attention with_cpu_backward_blocks(Attention a) {
  // Rows are packed once for all keys of a block. But the shorter it is, the closer it begins at a
  // causal mask.
  a.block_k = plan_case("causal", a.causal) ? 128 : 256;
  a.block_q = 128;
  return a;
}

}  // namespace tilewright::kernels
