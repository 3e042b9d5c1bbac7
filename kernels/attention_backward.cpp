#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_record.h"
#include "kernels/attention_backward_sm100.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_backward_summed.h"
#include "kernels/attention_backward_weights.h"
#include "kernels/attention_backward_wide_sm90.h"
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

constexpr int kStatisticRows = 64;

// Whether the kernel of statistics writes all that is kept of blocks of `multiple` rows, so that
// nothing has to set it to zero before. Blocks of another size than its own are slower.
template <typename Sequences>
constexpr bool sets_all(int multiple) {
  return Sequences::kFills && multiple == kStatisticRows;
}

// What the kernel of statistics is to write.
struct StatisticsPlan {
  bool of_lse;   // LSE has a gradient
  int multiple;  // of the rows that L and D have
  int turns;     // words of each block of so many rows, which it sets to 0
};

// LSE in powers of two, and D. Behind the last query both are 0, by this kernel or before it.
template <typename Sequences>
Kernel statistics(const Attention& a, const StatisticsPlan& plan, const std::string& name) {
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

  const auto part = [&](const Tensor& tensor) {
    return load(at.rows(tensor, rows, at.head)).cast(f32);
  };
  const auto numbers = [&](const Tensor& tensor) {
    return load(at.row_numbers(tensor, rows, at.head));
  };
  const Tile sum = reduce_sum(part(O) * part(dO), 1).reshape({rows.size()});
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

// dLoss/dsink = - sum over the rows of exp(sink - LSE) D. One CTA has all rows of a head.
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

struct BackwardBuffers {
  Buffer Q, K, V, dO, L, D, dQ, dK, dV;
  std::optional<Buffer> turns;
};

// Launches on a stream of each rank.
struct Launches {
  using Make = std::function<Kernel(const std::string& name)>;
  const std::vector<Stream>& streams;
  BackwardKernels& kernels;
  void launch(const std::string& name, const Make& make, const std::vector<Part>& parts) const {
    auto kernel = kernels.find(name);
    if (kernel == kernels.end()) kernel = kernels.emplace(name, make(name)).first;
    for (const Stream& stream : streams) stream.launch(kernel->second, parts);
  }
};

template <typename Sequences>
using Recording = BackwardRecording<typename Sequences::Shapes>;

// `launch` is the main part, from the statistics to dQ, dK and dV. It is given `turns` words for
// each block of queries, which are 0. Statistics have whole blocks of rows, of which those behind
// the last query are 0.
template <typename Sequences, typename Launch>
void record(const Attention& a, int turns, const Recording<Sequences>& to, const Launch& launch) {
  Program& program = to.program;
  const typename Sequences::Shapes& like = to.shapes;
  const BackwardTensors& t = to.tensors;
  const std::string& name = to.name;
  const Launches stream{to.streams, to.kernels};
  const int multiple = a.block_q;
  const bool are_set = !t.L && sets_all<Sequences>(multiple);
  const auto memory = [&](const char* of, DType dtype, const std::vector<Dim>& shape) {
    return are_set ? program.scratch(of + to.suffix, dtype, shape)
                   : program.zeroed(of + to.suffix, dtype, shape);
  };
  const auto made = [&](const std::optional<Buffer>& before, const char* of) {
    return before ? *before : memory(of, f32, like.of_rows(multiple));
  };
  const Buffer L = made(t.L, "L"), D = made(t.D, "D");
  std::optional<Buffer> words;
  if (turns > 0) words = memory("turns", i32, {like.kept_blocks(multiple) * turns});
  const auto with_offsets = [&](Of of, std::vector<Part> parts) {
    const auto half = static_cast<std::ptrdiff_t>(t.offsets.size() / 2);
    parts.insert(parts.begin(), t.offsets.begin() + (of == Of::keys ? half : 0),
                 of == Of::queries ? t.offsets.begin() + half : t.offsets.end());
    return parts;
  };
  if (!t.L) {
    std::vector<Part> read = {t.O, t.dO, t.LSE};
    if (t.dLSE) read.push_back(*t.dLSE);
    read.insert(read.end(), {L, D});
    if (words && are_set) read.push_back(*words);
    stream.launch(
        name + "_statistics",
        [&](const std::string& of) {
          return statistics<Sequences>(a, {t.dLSE.has_value(), multiple, are_set ? turns : 0}, of);
        },
        with_offsets(Of::queries, read));
  }
  launch(program, like, stream, BackwardBuffers{t.Q, t.K, t.V, t.dO, L, D, t.dQ, t.dK, t.dV, words},
         with_offsets);
  if (plan_case("sinks", a.sinks)) {
    stream.launch(
        name + "_sinks",
        [&](const std::string& of) { return sink_gradient<Sequences>(a, multiple, of); },
        with_offsets(Of::queries, {*t.sinks, L, D, *t.dsinks}));
  }
}

// Without sums that are divided among CTAs.
template <typename Sequences>
void deterministic_backward(const Attention& a, const Recording<Sequences>& to) {
  const std::string& name = to.name;
  record<Sequences>(
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

// Into how many parts keys are divided: the fewer, the less memory. All heads' are enough for the
// threads of a machine, and a part has two blocks or more.
Dim parts_of_keys(const Attention& a, const BatchShapes& shapes) {
  constexpr int kEnough = 32, kMost = 8;
  const Dim heads = max(shapes.batch * shapes.kv_heads, 1);
  const Dim pairs = ceil_div(shapes.keys, 2 * a.block_k);
  return max(min(min(ceil_div(kEnough, heads), kMost), pairs), 1);
}

// In five products instead of seven, where a part of the keys adds to sums of its own in memory.
void backward_in_parts(const Attention& a, const Recording<Batch>& to) {
  const std::string& name = to.name;
  record<Batch>(a, /*turns=*/0, to,
                [&](Program& program, const BatchShapes& shapes, const Launches& stream,
                    const BackwardBuffers& b, const auto&) {
                  const Buffer sums = program.zeroed(
                      "sums" + to.suffix, f32, query_sums(a, parts_of_keys(a, shapes), shapes));
                  stream.launch(name + "_keys",
                                [&](const std::string& of) { return gradients_of_parts(a, of); },
                                {b.Q, b.K, b.dO, b.L, b.V, b.D, b.dK, b.dV, sums});
                  stream.launch(
                      name + "_queries",
                      [&](const std::string& of) { return query_gradient_of_parts(a, of); },
                      {sums, b.dQ});
                });
}

// What the kernels take that sum dQ in memory, and that convert the sums.
struct SummedParts {
  std::vector<Part> all, summed;
};
SummedParts parts_of_sums(Program& program, const std::string& name, const std::vector<Dim>& shape,
                          bool ordered, const BackwardBuffers& b) {
  const Buffer sums =
      ordered ? program.scratch(name, f32, shape) : program.zeroed(name, f32, shape);
  SummedParts parts{{b.Q, b.K, b.V, b.dO, b.L, b.D, sums, b.dK, b.dV}, {sums}};
  if (b.turns) {
    parts.all.push_back(*b.turns);
    parts.summed.push_back(*b.turns);
  }
  parts.summed.push_back(b.dQ);
  return parts;
}

// dQ is summed in memory. dK and dV of heads that share keys may be summed there too.
template <typename Sequences>
void wide_backward(const Attention& a, Order order, KeySums keys, const Caller& caller,
                   const Recording<Sequences>& to) {
  check_wide_backward(a, caller);
  const WideBackwardPlan plan = wide_backward_plan(a, order, keys);
  const std::string& name = to.name;
  record<Sequences>(
      a, plan.ordered ? wide_backward_turns(a) : 0, to,
      [&](Program& program, const auto& shapes, const Launches& stream, const BackwardBuffers& b,
          const auto& with_offsets) {
        const Dim blocks = shapes.kept_blocks(a.block_q);
        const std::vector<Dim> of_sums = wide_backward_sums(a, blocks);
        auto [all, summed] = parts_of_sums(program, "sums" + to.suffix, of_sums, plan.ordered, b);
        // Parts for the order gain with a mask alone, and lose without one (docs/log).
        const Order for_parts = a.causal ? order : Order::any;
        const Dim parts = HeadParts::wanted(a, shapes, for_parts, wide_backward_ctas(a));
        const SharedSumsShape shared(a, shapes.kept_key_blocks(a.block_k), parts, order, keys);
        const Buffer key_sums =
            plan.shares ? program.scratch("key_sums" + to.suffix, f32, shared.sums()) : Buffer();
        if (plan.shares) {
          all.insert(all.end(),
                     {key_sums, program.zeroed("key_turns" + to.suffix, i32, {shared.words()})});
        }
        stream.launch(
            name,
            [&](const std::string& of) { return wide_gradients_sm90<Sequences>(a, plan, of); },
            with_offsets(Of::both, all));
        if (plan.sums_keys_apart()) {
          stream.launch(
              name + "_keys",
              [&](const std::string& of) { return key_gradients_of_sums<Sequences>(a, of); },
              with_offsets(Of::keys, {key_sums, b.dK, b.dV}));
        }
        stream.launch(
            name + "_queries",
            [&](const std::string& of) {
              return wide_query_gradient_of_sums<Sequences>(a, plan.ordered, of);
            },
            with_offsets(Of::queries, summed));
      });
}

// The same of dims up to 128. dK and dV of heads that share keys may be summed in memory too.
template <typename Sequences>
void adding_backward(const Attention& a, Order order, KeySums keys, const Caller& caller,
                     const Recording<Sequences>& to) {
  if (plan_case("more than 128 columns", is_wide_backward(a))) {
    return wide_backward<Sequences>(a, order, keys, caller, to);
  }
  const bool is_packed = std::is_same_v<Sequences, Packed>;
  const BackwardPlan plan = backward_plan(a, order, keys, is_packed, caller);
  // Words of shared heads' keys follow those of queries, and are set apart.
  const int turns = plan.ordered && !plan.shares ? 1 : 0;
  const std::string& name = to.name;
  record<Sequences>(
      a, turns, to,
      [&](Program& program, const auto& shapes, const Launches& stream, const BackwardBuffers& b,
          const auto& with_offsets) {
        const std::vector<Dim> of_sums = plan.sums(a, shapes.kept_blocks(a.block_q));
        const Buffer sums = plan.ordered ? program.scratch("sums" + to.suffix, f32, of_sums)
                                         : program.zeroed("sums" + to.suffix, f32, of_sums);
        const Dim parts = HeadParts::wanted(a, shapes, order);
        const auto shared = shared_sums(a, plan, shapes, parts);
        const Buffer key_sums =
            plan.shares ? program.scratch("key_sums" + to.suffix, f32, shared.sums()) : Buffer();
        std::vector<Part> all = {b.Q, b.K, b.V, b.dO, b.L, b.D, sums};
        if (plan.ordered) all.push_back(b.dQ);
        all.insert(all.end(), {b.dK, b.dV});
        if (b.turns) all.push_back(*b.turns);
        if (plan.shares) {
          all.push_back(
              program.zeroed("turns" + to.suffix, i32, {backward_turns(a, plan, shapes, parts)}));
        }
        if (plan.shares) all.push_back(key_sums);
        stream.launch(
            name, [&](const std::string& of) { return gradients_sm90<Sequences>(a, plan, of); },
            with_offsets(Of::both, all));
        if (plan.sums_keys_apart()) {
          stream.launch(
              name + "_keys",
              [&](const std::string& of) { return key_gradients_of_sums<Sequences>(a, of); },
              with_offsets(Of::keys, {key_sums, b.dK, b.dV}));
        }
        if (!plan.ordered) {
          stream.launch(
              name + "_queries",
              [&](const std::string& of) { return query_gradient_of_sums<Sequences>(a, plan, of); },
              with_offsets(Of::queries, {sums, b.dQ}));
        }
      });
}

// For sm_100a. dQ is summed in memory, and all heads that share keys go through them in one CTA.
template <typename Sequences>
void sm100_backward(const Attention& a, Order order, const Caller& caller,
                    const Recording<Sequences>& to) {
  const Sm100BackwardPlan plan = sm100_backward_plan(a, order, caller);
  const std::string& name = to.name;
  record<Sequences>(
      a, plan.ordered ? 1 : 0, to,
      [&](Program& program, const auto& shapes, const Launches& stream, const BackwardBuffers& b,
          const auto& with_offsets) {
        const std::vector<Dim> of_sums = sm100_backward_sums(a, shapes.kept_blocks(a.block_q));
        auto [all, summed] = parts_of_sums(program, "sums" + to.suffix, of_sums, plan.ordered, b);
        stream.launch(
            name, [&](const std::string& of) { return gradients_sm100<Sequences>(a, plan, of); },
            with_offsets(Of::both, all));
        stream.launch(
            name + "_queries",
            [&](const std::string& of) {
              return query_gradient_of_sums_sm100<Sequences>(a, plan, of);
            },
            with_offsets(Of::queries, summed));
      });
}

// The program of one rank, whose tensors a caller passes.
template <typename Sequences>
Program backward(const Attention& a, bool of_lse, const Caller& caller,
                 const std::function<void(const Recording<Sequences>&)>& record_all) {
  check_attention(a, caller);
  const std::string name(caller.function);
  Program program(name);
  const typename Sequences::Shapes like(program, a);
  BackwardTensors t;
  t.Q = program.in("Q", a.dtype, like.of_queries(a.dim));
  t.K = program.in("K", a.dtype, like.of_keys(a.dim));
  t.V = program.in("V", a.dtype, like.of_keys(a.dim_v));
  t.offsets = Sequences::first_rows(program, like);
  if (a.sinks) t.sinks = program.in("sinks", f32, {a.heads});
  t.O = program.in("O", a.dtype, like.of_queries(a.dim_v));
  t.LSE = program.in("LSE", f32, like.of_rows());
  t.dO = program.in("dO", a.dtype, like.of_queries(a.dim_v));
  if (of_lse) t.dLSE = program.in("dLSE", f32, like.of_rows());
  t.dQ = program.out("dQ", a.dtype, like.of_queries(a.dim));
  t.dK = program.out("dK", a.dtype, like.of_keys(a.dim));
  t.dV = program.out("dV", a.dtype, like.of_keys(a.dim_v));
  if (a.sinks) t.dsinks = program.out("dsinks", f32, {a.heads});
  BackwardKernels kernels;
  record_all({program, name, like, t, {program.rank(0).stream()}, kernels});
  return program;
}

template <typename Sequences>
Program deterministic_program(const Attention& a, bool of_lse, const Caller& caller) {
  return backward<Sequences>(a, of_lse, caller, [&](const Recording<Sequences>& to) {
    deterministic_backward<Sequences>(a, to);
  });
}

template <typename Sequences>
Program adding_program(const Attention& a, bool of_lse, Order order, KeySums keys,
                       const Caller& caller) {
  return backward<Sequences>(a, of_lse, caller, [&](const Recording<Sequences>& to) {
    adding_backward<Sequences>(a, order, keys, caller, to);
  });
}

template <typename Sequences>
Program sm100_program(const Attention& a, bool of_lse, Order order, const Caller& caller) {
  return backward<Sequences>(a, of_lse, caller, [&](const Recording<Sequences>& to) {
    sm100_backward<Sequences>(a, order, caller, to);
  });
}

}  // namespace

Kernel backward_statistics(const Attention& a, bool of_lse, const std::string& name) {
  return statistics<Batch>(a, {of_lse, /*multiple=*/1, /*turns=*/0}, name);
}

Buffer backward_statistic(Program& program, const std::string& name, const Attention& a,
                          const BatchShapes& shapes) {
  return program.zeroed(name, f32, shapes.of_rows(a.block_q));
}

void record_backward(const Attention& a, const BackwardRecording<BatchShapes>& to, bool is_sm90,
                     const Caller& caller) {
  if (is_sm90) return adding_backward<Batch>(a, Order::blocks, KeySums::in_turn, caller, to);
  deterministic_backward<Batch>(a, to);
}

Program attention_backward(const Attention& a, bool of_lse, SourceLocation where) {
  return deterministic_program<Batch>(a, of_lse, {"attention_backward", where});
}

Program attention_backward_in_parts(const Attention& a, bool of_lse, SourceLocation where) {
  return backward<Batch>(a, of_lse, {"attention_backward_in_parts", where},
                         [&](const Recording<Batch>& to) { backward_in_parts(a, to); });
}

Program attention_varlen_backward(const Attention& a, bool of_lse, SourceLocation where) {
  return deterministic_program<Packed>(a, of_lse, {"attention_varlen_backward", where});
}

Program attention_backward_sm90(const Attention& a, bool of_lse, Order order, KeySums keys,
                                SourceLocation where) {
  return adding_program<Batch>(a, of_lse, order, keys, {"attention_backward_sm90", where});
}

Program attention_varlen_backward_sm90(const Attention& a, bool of_lse, Order order, KeySums keys,
                                       SourceLocation where) {
  return adding_program<Packed>(a, of_lse, order, keys, {"attention_varlen_backward_sm90", where});
}

Program attention_backward_sm100(const Attention& a, bool of_lse, Order order,
                                 SourceLocation where) {
  return sm100_program<Batch>(a, of_lse, order, {"attention_backward_sm100", where});
}

Program attention_varlen_backward_sm100(const Attention& a, bool of_lse, Order order,
                                        SourceLocation where) {
  return sm100_program<Packed>(a, of_lse, order, {"attention_varlen_backward_sm100", where});
}

Attention with_backward_blocks(Attention a) {
  // Scores, their gradients and two sums of the keys' rows lie in the registers of two warpgroups.
  const int dim = std::max(a.dim, a.dim_v);
  a.block_k = plan_case("128 keys", dim <= 128) ? 128 : 64;
  a.block_q = plan_case("128 queries", dim <= 64) ? 128 : 64;
  return a;
}

Attention with_cpu_backward_blocks(Attention a) {
  // Rows are packed once for all keys of a block. But the shorter it is, the closer it begins at a
  // causal mask.
  a.block_k = plan_case("causal", a.causal) ? 128 : 256;
  a.block_q = 128;
  return a;
}

Attention with_sm100_backward_blocks(Attention a) {
  a.block_q = a.block_k = Sm100BackwardPlan::kRows;
  return a;
}

Attention with_sm90_backward_blocks(Attention a) {
  const bool is_wide = is_wide_backward(a);
  a.block_k = is_wide ? wide_backward_keys(a) : 128;
  a.block_q = is_wide ? 64 : backward_rows(a);
  return a;
}

}  // namespace tilewright::kernels
