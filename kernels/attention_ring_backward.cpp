#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/attention_backward_recording.h"
#include "kernels/attention_backward_ring.h"
#include "kernels/attention_backward_weights.h"
#include "kernels/attention_ring.h"
#include "tilewright/plan_case.h"

// The gradients of attention in a ring. Queries stay where they are. Keys go round, and with them,
// a step behind, the sums of their gradients. A rank begins with the keys of the rank before it,
// and ends with its own: then their sums have come home.
namespace tilewright::kernels {
namespace {

// What kernels of gradients read, of own queries and the keys of one rank.
template <typename Ring>
struct RingInputs {
  RingInputs(Kernel& kernel, const SequenceParallelAttention& o)
      : a(o.attention),
        ring(kernel, a, o.shards),
        Q(kernel.in("Q", a.dtype, ring.of_queries(a.dim))),
        K(kernel.in("K", a.dtype, ring.of_keys(a.dim))),
        V(kernel.in("V", a.dtype, ring.of_keys(a.dim_v))),
        dO(kernel.in("dO", a.dtype, ring.of_queries(a.dim_v))),
        L(kernel.in("L", f32, ring.of_rows())),
        D(kernel.in("D", f32, ring.of_rows())) {}
  const Attention& a;
  Ring ring;
  Tensor Q, K, V, dO, L, D;
};

template <typename Ring>
Kernel ring_statistics(const SequenceParallelAttention& o, bool of_lse, const std::string& name) {
  const Attention& a = o.attention;
  Kernel kernel(name);
  const Ring ring(kernel, a, o.shards, /*has_keys=*/false);
  const Tensor O = kernel.in("O", a.dtype, ring.of_queries(a.dim_v));
  const Tensor dO = kernel.in("dO", a.dtype, ring.of_queries(a.dim_v));
  const Tensor LSE = kernel.in("LSE", f32, ring.of_rows());
  std::optional<Tensor> dLSE;
  if (plan_case("gradient of LSE", of_lse)) dLSE = kernel.in("dLSE", f32, ring.of_rows());
  // Rows of no sequence stay as they are.
  const Tensor L = kernel.inout("L", f32, ring.of_rows());
  const Tensor D = kernel.inout("D", f32, ring.of_rows());
  constexpr int kRows = 64;
  const ShardBlock at = ring.block_of_queries(kRows);
  const auto numbers = [&](const Tensor& tensor) {
    return ring.numbers(tensor, at.sequence, at.rows, at.head);
  };
  const Tile o_rows = load(ring.rows(O, at.sequence, at.rows, at.head)).cast(f32);
  const Tile gradient = load(ring.rows(dO, at.sequence, at.rows, at.head)).cast(f32);
  const Tile sum = reduce_sum(o_rows * gradient, 1).reshape({kRows});
  store(numbers(D), dLSE ? sum - load(numbers(*dLSE)) : sum);
  store(numbers(L), in_powers_of_two(load(numbers(LSE))));
  return kernel;
}

template <typename Ring>
Kernel ring_query_gradient(const SequenceParallelAttention& o, RingPass pass,
                           const std::string& name) {
  Kernel kernel(name);
  const RingInputs<Ring> in(kernel, o);
  const Attention& a = in.a;
  const AttentionScores scores(a);
  const RingSum sums(kernel, "sum_dQ", pass, in.ring.of_queries(a.dim));
  std::optional<Tensor> dQ;
  if (pass == RingPass::last) dQ = kernel.out("dQ", a.dtype, in.ring.of_queries(a.dim));
  const Index owner = ring_owner(kernel);
  // Its sums are of queries, as the others' are of keys: so are its blocks.
  const int size = a.block_k;
  const ShardBlock at = in.ring.block_of_queries(size);
  const Index kv_head = at.head / scores.group, shift = in.ring.shift(at.sequence);
  const auto rows = [&](const Tensor& tensor) {
    return in.ring.rows(tensor, at.sequence, at.rows, at.head);
  };
  const auto numbers = [&](const Tensor& tensor) {
    return load(in.ring.numbers(tensor, at.sequence, at.rows, at.head)).reshape({size, 1});
  };
  const Tile q = load(rows(in.Q)), grad = load(rows(in.dO));
  const Tile l = numbers(in.L), d = numbers(in.D);
  Var acc{sums.before ? load(rows(*sums.before)) : zeros({at.rows, a.dim})};
  for (Index late : range(in.ring.pieces())) {
    const ShardRows keys = in.ring.keys_of(owner, at.sequence, late > 0);
    for (Block cols : blocks(seen_keys(a, at, keys, shift), a.block_q)) {
      const Tile k = load(in.ring.rows(in.K, at.sequence, cols, kv_head));
      const Tile v = load(in.ring.rows(in.V, at.sequence, cols, kv_head));
      const Weights weights = weights_of(scores, dot(q, k.T()), l, [&](const Tile& s) {
        return where(visible_in_ring(a, at, cols, keys.ahead, shift), s, kNone);
      });
      acc = dot(gradient_of(scores, weights, dot(grad, v.T()), d).cast(a.dtype), k, acc);
    }
  }
  if (dQ) {
    store(rows(*dQ), (acc * scores.product_scale).cast(a.dtype));
  } else {
    store(rows(*sums.after), Tile(acc));
  }
  return kernel;
}

// Which sums a kernel has: its registers may not hold both.
struct RingKeySums {
  bool of_keys, of_values;
};

template <typename Ring>
Kernel ring_key_gradients(const SequenceParallelAttention& o, RingPass pass, RingKeySums which,
                          const std::string& name) {
  Kernel kernel(name);
  const RingInputs<Ring> in(kernel, o);
  const Attention& a = in.a;
  const AttentionScores scores(a);
  std::optional<RingSum> dk_sums, dv_sums;
  std::optional<Tensor> dK, dV;
  if (which.of_keys) dk_sums.emplace(kernel, "sum_dK", pass, in.ring.of_keys(a.dim));
  if (which.of_keys && pass == RingPass::last) {
    dK = kernel.out("dK", a.dtype, in.ring.of_keys(a.dim));
  }
  if (which.of_values) dv_sums.emplace(kernel, "sum_dV", pass, in.ring.of_keys(a.dim_v));
  if (which.of_values && pass == RingPass::last) {
    dV = kernel.out("dV", a.dtype, in.ring.of_keys(a.dim_v));
  }
  const Index owner = ring_owner(kernel);
  const ShardBlock at = in.ring.block_of_keys(owner, a.block_k);
  const Index shift = in.ring.shift(at.sequence);
  const auto keys = [&](const Tensor& tensor) {
    return in.ring.rows(tensor, at.sequence, at.rows, at.head);
  };
  const Tile k = load(keys(in.K)), v = load(keys(in.V));
  const auto before = [&](const RingSum& sums, int dim) {
    return sums.before ? load(keys(*sums.before)) : zeros({at.rows, dim});
  };
  std::optional<Var> dk, dv;
  if (dk_sums) dk.emplace(before(*dk_sums, a.dim));
  if (dv_sums) dv.emplace(before(*dv_sums, a.dim_v));
  for (Index member : range(scores.group)) {
    const Index head = at.head * scores.group + member;
    for (Index late : range(in.ring.pieces())) {
      const ShardRows queries = in.ring.queries_of(at.sequence, late > 0);
      for (Block rows : blocks(seeing_queries(a, at, queries, shift), a.block_q)) {
        const Tile q = load(in.ring.rows(in.Q, at.sequence, rows, head));
        const Tile grad = load(in.ring.rows(in.dO, at.sequence, rows, head));
        const auto numbers = [&](const Tensor& tensor) {
          return load(in.ring.numbers(tensor, at.sequence, rows, head)).reshape({1, a.block_q});
        };
        // Rows and keys that do not exist are zeros: they add nothing to what is stored.
        const Weights weights =
            weights_of(scores, dot(k, q.T()), numbers(in.L), [&](const Tile& s) {
              if (!a.causal) return s;
              const Tile last = rows.as_row() + (queries.ahead + shift);
              return where(under_mask(a, at.rows.as_column() + at.ahead, last), s, kNone);
            });
        if (dv) *dv = dot(weights.weights.cast(a.dtype), grad, *dv);
        if (dk) {
          const Tile gradient = gradient_of(scores, weights, dot(v, grad.T()), numbers(in.D));
          *dk = dot(gradient.cast(a.dtype), q, *dk);
        }
      }
    }
  }
  const auto leave = [&](const RingSum& sums, const std::optional<Tensor>& result, const Tile& sum,
                         double scale) {
    if (result) {
      store(keys(*result), (sum * scale).cast(a.dtype));
    } else {
      store(keys(*sums.after), sum);
    }
  };
  if (dk) leave(*dk_sums, dK, *dk, scores.product_scale);
  if (dv) leave(*dv_sums, dV, *dv, 1);
  return kernel;
}

// dLoss/dsink = - sum over the rows of exp(sink - LSE) D, of a rank's rows. Of rows of no sequence
// D is 0, as of rows behind the last one.
template <typename Ring>
Kernel ring_sink_part(const SequenceParallelAttention& o, const std::string& name) {
  const Attention& a = o.attention;
  Kernel kernel(name);
  const Ring ring(kernel, a, o.shards, /*has_keys=*/false);
  const Tensor sinks = kernel.in("sinks", f32, {a.heads});
  const Tensor L = kernel.in("L", f32, ring.of_rows()), D = kernel.in("D", f32, ring.of_rows());
  const Tensor part = kernel.out("part", f32, {1, a.heads});
  const auto [h] = kernel.grid(a.heads);
  const Block head = Dim(a.heads).block(h, 1);
  const Tile sink = load(sinks(head)).reshape({1, 1}) * kLog2e;
  Var sum{zeros({1, 1})};
  constexpr int kRows = 128;
  ring.each_numbers(h, kRows, [&](const auto& view) {
    const auto numbers = [&](const Tensor& tensor) {
      return load(view(tensor)).reshape({1, kRows});
    };
    const Tile d = numbers(D);
    sum = sum + reduce_sum(where(d == 0, 0, exp2(sink - numbers(L)) * d), 1);
  });
  store(part(0, head), (0 - Tile(sum)).reshape({1}));
  return kernel;
}

Kernel ring_sink_sum(const SequenceParallelAttention& o, const std::string& name) {
  Kernel kernel(name);
  const Dim heads(o.attention.heads);
  const Tensor parts = kernel.in("parts", f32, {o.ranks, heads});
  const Tensor dsinks = kernel.out("dsinks", f32, {heads});
  constexpr int kHeads = 64;
  const auto [x] = kernel.grid(ceil_div(heads, kHeads));
  const Block block = heads.block(x, kHeads);
  Var sum{zeros({block})};
  for (Index rank : range(o.ranks)) sum = sum + load(parts(rank, block));
  store(dsinks(block), Tile(sum));
  return kernel;
}

template <typename Ring>
class RingGradients {
 public:
  using Shapes = typename Ring::Shapes;
  // `is_sm90`: the steps are those of gradients_to_one_sm90.
  RingGradients(Program& program, const SequenceParallelAttention& o, bool of_lse, bool is_sm90,
                const Caller& caller)
      : o_(o),
        of_lse_(of_lse),
        is_sm90_(is_sm90),
        caller_(caller),
        name_(caller.function),
        program_(program),
        s_(shapes_of(program, o.attention, is_sm90)),
        keys_(program, "keys", 0, o.ranks - 1),
        sums_(program, "sums", 0, o.ranks) {
    const Attention& a = o.attention;
    Q_ = program.in("Q", a.dtype, s_.of_queries(a.dim));
    K_ = program.in("K", a.dtype, s_.of_keys(a.dim));
    V_ = program.in("V", a.dtype, s_.of_keys(a.dim_v));
    first_rows_ = first_rows(program, s_);
    if (a.sinks) sinks_ = program.in("sinks", f32, {a.heads});
    O_ = program.in("O", a.dtype, s_.of_queries(a.dim_v));
    LSE_ = program.in("LSE", f32, s_.of_rows());
    dO_ = program.in("dO", a.dtype, s_.of_queries(a.dim_v));
    if (of_lse) dLSE_ = program.in("dLSE", f32, s_.of_rows());
    dQ_ = program.out("dQ", a.dtype, s_.of_queries(a.dim));
    dK_ = program.out("dK", a.dtype, s_.of_keys(a.dim));
    dV_ = program.out("dV", a.dtype, s_.of_keys(a.dim_v));
    if (a.sinks) dsinks_ = program.out("dsinks", f32, {a.heads});
    // Of rows behind the last one, and of those of no sequence, nothing is computed.
    const bool all_computed = !is_sm90_ && std::is_same_v<Shapes, BatchShapes>;
    const auto numbers = [&](const char* name) {
      return all_computed ? program.scratch(name, f32, s_.of_rows(multiple()))
                          : program.zeroed(name, f32, s_.of_rows(multiple()));
    };
    L_ = numbers("L");
    D_ = numbers("D");
    keys_.add("K", a.dtype, s_.of_keys(a.dim));
    keys_.add("V", a.dtype, s_.of_keys(a.dim_v));
    if (is_sm90) {
      declare_sums_sm90();
      return;
    }
    sum_dQ_ = program.scratch("sum_dQ", f32, s_.of_queries(a.dim));
    sums_.add("dK", f32, s_.of_keys(a.dim));
    sums_.add("dV", f32, s_.of_keys(a.dim_v));
  }

  void record() {
    keys_.send(0, {K_, V_});
    std::vector<Part> rows = {O_, dO_, LSE_};
    if (dLSE_) rows.push_back(*dLSE_);
    launch("_statistics", with_offsets(false, rows, {L_, D_}), [&](const std::string& name) {
      if (!is_sm90_) return ring_statistics<Ring>(o_, of_lse_, name);
      return statistics_of_rows<Batch>(o_.attention, {of_lse_, multiple(), /*turns=*/0}, name);
    });
    for (int step = 0; step < o_.ranks; ++step) record_step(step);
    if (sinks_) record_sinks();
  }

 private:
  // Explicit steps take as many keys as queries under a mask.
  static Shapes shapes_of(Program& program, const Attention& a, bool is_sm90) {
    if constexpr (std::is_same_v<Shapes, BatchShapes>) {
      if (is_sm90 && a.causal) {
        Shapes shapes(program, a, true, /*has_keys=*/false);
        shapes.keys = shapes.queries;
        return shapes;
      }
    }
    return Shapes(program, a);
  }
  int multiple() const { return is_sm90_ ? o_.attention.block_q : 1; }
  void declare_sums_sm90() {
    if constexpr (std::is_same_v<Shapes, BatchShapes>) {
      const RingSums sums = ring_sums_sm90(o_, s_, caller_);
      sum_dQ_ = program_.scratch("sum_dQ", f32, sums.of_queries);
      sums_.add("keys", f32, sums.of_keys);
      own_sums_ = program_.scratch("own_sums", f32, sums.of_keys);
      turns_of_step_ = sums.turns;
      turns_ = program_.zeroed("turns", i32, {sums.turns * o_.ranks});
    }
  }
  static std::vector<Buffer> first_rows(Program&, const BatchShapes&) { return {}; }
  static std::vector<Buffer> first_rows(Program& program, const PackedShapes& s) {
    return {program.in("cu_seqlens_q", i32, s.of_first_rows()),
            program.in("cu_seqlens_k", i32, s.of_first_rows())};
  }
  // What a kernel takes: of packed sequences where they begin, those of keys perhaps, comes first.
  std::vector<Part> with_offsets(bool has_keys, const std::vector<Part>& parts,
                                 const std::vector<Part>& more) const {
    const auto some = static_cast<std::ptrdiff_t>(first_rows_.size() / (has_keys ? 1 : 2));
    std::vector<Part> all_parts(first_rows_.begin(), first_rows_.begin() + some);
    all_parts.insert(all_parts.end(), parts.begin(), parts.end());
    all_parts.insert(all_parts.end(), more.begin(), more.end());
    return all_parts;
  }
  // In each rank. A kernel of one name is made once.
  template <typename Make>
  void launch(const std::string& of, const std::vector<Part>& parts, const Make& make,
              const std::vector<RunNumber>& scalars = {}) {
    auto kernel = kernels_.find(of);
    if (kernel == kernels_.end()) kernel = kernels_.emplace(of, make(name_ + of)).first;
    program_.on_each_rank(
        [&](const Rank& rank) { rank.stream().launch(kernel->second, parts, scalars); });
  }
  std::vector<Event> reached() const {
    std::vector<Event> events;
    program_.on_each_rank([&](const Rank& rank) { events.push_back(rank.stream().record()); });
    return events;
  }

  void record_step(int step) {
    const int last = o_.ranks - 1;
    const RingPass pass = ring_pass(step, o_.ranks);
    const std::vector<Part> keys = step == last ? std::vector<Part>{K_, V_} : keys_.parts(step);
    if (step + 1 < last) keys_.send(step + 1, keys);
    if (step < last) wait_for(keys_, step);
    const std::vector<Part> inputs = {Q_, keys[0], keys[1], dO_, L_, D_};
    const std::vector<RunNumber> places{static_cast<double>(step + 1)};
    if (is_sm90_) {
      record_kernel_sm90(step, inputs, places);
    } else {
      record_queries(pass, inputs, places);
      if (step > 0) wait_for(sums_, step);
      record_keys(pass, inputs, places, sums_.parts(step));
    }
    const std::vector<Event> done = reached();
    if (step < last) keys_.give_back(step, done);
    if (step < last) sums_.send(step + 1, sums_.parts(step), done);
    sums_.give_back(step, done);
  }
  // Sums of dK and dV may come while it runs.
  void record_kernel_sm90(int step, std::vector<Part> parts, const std::vector<RunNumber>& places) {
    const RingPass pass = ring_pass(step, o_.ranks);
    parts.push_back(sum_dQ_);
    if (pass == RingPass::last) parts.insert(parts.end(), {dQ_, dK_, dV_});
    parts.push_back(turns_.rows(turns_of_step_ * step, turns_of_step_));
    if (step > 0) parts.push_back(own_sums_);
    parts.push_back(sums_.parts(step)[0]);
    if (step > 0) parts.push_back(sums_.arrived());
    launch(
        std::string("_step") + pass, parts,
        [&](const std::string& name) { return gradients_to_one_sm90(o_, pass, name, caller_); },
        places);
  }
  void record_queries(RingPass pass, const std::vector<Part>& inputs,
                      const std::vector<RunNumber>& places) {
    std::vector<Part> sums{sum_dQ_};
    if (pass == RingPass::last) sums.push_back(dQ_);
    launch(
        std::string("_queries") + pass, with_offsets(true, inputs, sums),
        [&](const std::string& name) { return ring_query_gradient<Ring>(o_, pass, name); }, places);
  }
  void record_keys(RingPass pass, const std::vector<Part>& inputs,
                   const std::vector<RunNumber>& places, const std::vector<Part>& sums) {
    const auto run = [&](const char* of, RingKeySums which) {
      std::vector<Part> outputs;
      const auto add = [&](std::size_t number, const Buffer& result) {
        outputs.push_back(sums[number]);
        if (pass == RingPass::last) outputs.push_back(result);
      };
      if (which.of_keys) add(0, dK_);
      if (which.of_values) add(1, dV_);
      launch(
          std::string(of) + pass, with_offsets(true, inputs, outputs),
          [&](const std::string& name) { return ring_key_gradients<Ring>(o_, pass, which, name); },
          places);
    };
    constexpr int kColumns = 256;  // of both sums, in registers
    if (plan_case("dK and dV in one kernel", o_.attention.dim + o_.attention.dim_v <= kColumns)) {
      return run("_keys", {true, true});
    }
    run("_keys", {true, false});
    run("_values", {false, true});
  }
  void wait_for(const RingSlots& slots, int step) const {
    program_.on_each_rank([&](const Rank& rank) { slots.wait(step, rank.stream()); });
  }

  // Each rank has the parts of all, and adds them in their order.
  void record_sinks() {
    const Buffer part = program_.scratch("sink_part", f32, {1, o_.attention.heads});
    const Buffer parts = program_.scratch("sink_parts", f32, {o_.ranks, o_.attention.heads});
    launch("_sink_part", with_offsets(false, {*sinks_, L_, D_}, {part}),
           [&](const std::string& name) { return ring_sink_part<Ring>(o_, name); });
    program_.on_each_rank([&](const Rank& rank) {
      const Stream stream = rank.stream();
      stream.barrier("before_sinks");
      for (int d = 0; d < rank.count(); ++d) {
        stream.copy(parts.on(rank.next(d)).rows(rank.number(), 1), part);
      }
      stream.barrier("behind_sinks");
    });
    launch("_sinks", {parts, *dsinks_},
           [&](const std::string& name) { return ring_sink_sum(o_, name); });
  }

  const SequenceParallelAttention& o_;
  bool of_lse_, is_sm90_;
  const Caller& caller_;
  std::string name_;
  Program& program_;
  Shapes s_;
  RingSlots keys_, sums_;
  Buffer Q_, K_, V_;
  std::vector<Buffer> first_rows_;
  std::optional<Buffer> sinks_;
  Buffer O_, LSE_, dO_;
  std::optional<Buffer> dLSE_;
  Buffer dQ_, dK_, dV_;
  std::optional<Buffer> dsinks_;
  Buffer L_, D_, sum_dQ_;
  // Of explicit steps. Sums of dK and dV: of heads that share keys, before those that come.
  Buffer turns_, own_sums_;
  Dim turns_of_step_ = 0;
  std::map<std::string, Kernel> kernels_;
};

template <typename Ring>
Program ring_gradients(const SequenceParallelAttention& o, bool of_lse, const Caller& caller,
                       bool is_sm90 = false) {
  check_attention_ranks(o, caller);
  Program program(caller.function, o.ranks, caller.where);
  RingGradients<Ring>(program, o, of_lse, is_sm90, caller).record();
  return program;
}

}  // namespace

Program gradients_in_ring(const SequenceParallelAttention& o, bool of_lse, bool is_packed,
                          const Caller& caller) {
  if (is_packed) return ring_gradients<PackedRing>(o, of_lse, caller);
  return ring_gradients<BatchRing>(o, of_lse, caller);
}

Program ring_attention_backward(const SequenceParallelAttention& o, bool of_lse,
                                SourceLocation where) {
  return gradients_in_ring(o, of_lse, false, {"ring_attention_backward", where});
}

Program ring_attention_backward_sm90(const SequenceParallelAttention& o, bool of_lse,
                                     SourceLocation where) {
  return ring_gradients<BatchRing>(o, of_lse, {"ring_attention_backward_sm90", where}, true);
}

Program ring_varlen_attention_backward(const SequenceParallelAttention& o, bool of_lse,
                                       SourceLocation where) {
  return gradients_in_ring(o, of_lse, true, {"ring_varlen_attention_backward", where});
}

}  // namespace tilewright::kernels
