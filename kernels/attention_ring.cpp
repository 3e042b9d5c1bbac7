#include "kernels/attention_ring.h"

#include <functional>
#include <map>
#include <utility>

#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {
namespace {

Sequence part_of(const Sequence& all, const Index& first, const Index& end) {
  const Index last = min(max(end, all.begin()), all.end());
  return Sequence(all.axis(), min(max(first, all.begin()), last), last);
}
Index end_of(const Block& rows) { return min(rows.start() + rows.size(), rows.limit()); }

struct RingScores : AttentionScores {
  RingScores(Kernel& kernel, const Attention& a, bool has_sinks) : AttentionScores(a) {
    if (has_sinks) declare_sinks(kernel, a);
  }
};

// Own queries attend to the keys of one rank. The result is that to the keys of all ranks so far,
// each of which counts by its part of the sum of exponentials. Sinks are among the first ones.
template <typename Ring>
Kernel attention_to_one(const SequenceParallelAttention& o, RingPass pass,
                        const std::string& name) {
  const Attention& a = o.attention;
  Kernel kernel(name);
  const Ring ring(kernel, a, o.shards);
  const Tensor Q = kernel.in("Q", a.dtype, ring.of_queries(a.dim));
  const Tensor K = kernel.in("K", a.dtype, ring.of_keys(a.dim));
  const Tensor V = kernel.in("V", a.dtype, ring.of_keys(a.dim_v));
  const RingSum outputs(kernel, "sum_O", pass, ring.of_queries(a.dim_v));
  const RingSum sums(kernel, "sum_LSE", pass, ring.of_rows());
  std::optional<Tensor> O, LSE;
  if (pass == RingPass::last) {
    O = kernel.out("O", a.dtype, ring.of_queries(a.dim_v));
    LSE = kernel.out("LSE", f32, ring.of_rows());
  }
  const RingScores scores(kernel, a, pass == RingPass::first);
  const Index owner = ring_owner(kernel);
  const ShardBlock at = ring.block_of_queries(a.block_q);
  const Index kv_head = at.head / scores.group, shift = ring.shift(at.sequence);

  const Tile q = load(ring.rows(Q, at.sequence, at.rows, at.head));
  OnlineSoftmax softmax(at.rows, scores.scale, scores.sink(at.head));
  Var acc{zeros({at.rows, a.dim_v})};
  for (Index late : range(ring.pieces())) {
    const ShardRows keys = ring.keys_of(owner, at.sequence, late > 0);
    for (Block cols : blocks(seen_keys(a, at, keys, shift), a.block_k)) {
      const Tile k = load(ring.rows(K, at.sequence, cols, kv_head));
      const Tile s = scores.capped(dot(q, k.T()));
      const Tile seen = visible_in_ring(a, at, cols, keys.ahead, shift);
      const auto [weights, rescale] = softmax.step(where(seen, s, kNone));
      const Tile v = load(ring.rows(V, at.sequence, cols, kv_head));
      acc = acc * rescale + dot(weights.cast(a.dtype), v);
    }
  }

  Var output{acc * softmax.normaliser()}, sum{softmax.log_sum_exp()};
  if (outputs.before) {
    const Tile before =
        load(ring.numbers(*sums.before, at.sequence, at.rows, at.head)).reshape({a.block_q, 1});
    const Tile more = sum, top = max(before, more);
    // -inf - -inf is no number: a row that has seen nothing is shifted by 0.
    const Tile at_top = where(top == kNone, 0, top);
    const Tile old_part = exp2((before - at_top) * kLog2e), part = exp2((more - at_top) * kLog2e);
    const Tile all_parts = old_part + part;
    const Tile factor = where(all_parts == 0, 0, 1 / all_parts);
    const Tile old = load(ring.rows(*outputs.before, at.sequence, at.rows, at.head));
    output = (old * old_part + Tile(output) * part) * factor;
    sum = where(all_parts == 0, kNone, at_top + log2(all_parts) * kLn2);
  }
  const Tensor& to = O ? *O : *outputs.after;
  const Tensor& of_sums = LSE ? *LSE : *sums.after;
  store(ring.rows(to, at.sequence, at.rows, at.head), Tile(output).cast(O ? a.dtype : f32));
  store(ring.numbers(of_sums, at.sequence, at.rows, at.head), Tile(sum).reshape({a.block_q}));
  return kernel;
}

using MakeStep = FunctionRef<Kernel(RingPass pass, const std::string& name)>;

template <typename Ring>
Program attention_in_ring(const SequenceParallelAttention& o, const Caller& caller,
                          const MakeStep& make) {
  check_attention_ranks(o, caller);
  const Attention& a = o.attention;
  Program program(caller.function, o.ranks, caller.where);
  const AttentionBuffers<typename Ring::Shapes> own(program, a);
  const Buffer outputs = program.scratch("sum_O", f32, own.shapes.of_queries(a.dim_v));
  const Buffer sums = program.scratch("sum_LSE", f32, own.shapes.of_rows());
  RingSlots keys(program, "keys", 1, o.ranks);
  keys.add("K", a.dtype, own.shapes.of_keys(a.dim));
  keys.add("V", a.dtype, own.shapes.of_keys(a.dim_v));

  std::map<RingPass, Kernel> kernels;  // of which several steps may launch one
  for (int step = 0; step < o.ranks; ++step) {
    const RingPass pass = ring_pass(step, o.ranks);
    const std::vector<Part> here = step == 0 ? std::vector<Part>{own.K, own.V} : keys.parts(step);
    if (step + 1 < o.ranks) keys.send(step + 1, here);
    if (kernels.count(pass) == 0) {
      kernels.emplace(pass, make(pass, caller.function + pass));
    }
    std::vector<Part> parts(own.first_rows.begin(), own.first_rows.end());
    parts.push_back(own.Q);
    parts.insert(parts.end(), here.begin(), here.end());
    parts.insert(parts.end(), {outputs, sums});
    if (pass == RingPass::last) parts.insert(parts.end(), {own.O, own.LSE});
    if (pass == RingPass::first && own.sinks) parts.push_back(*own.sinks);
    std::vector<Event> done;
    program.on_each_rank([&](const Rank& rank) {
      const Stream stream = rank.stream();
      if (step > 0) keys.wait(step, stream);
      stream.launch(kernels.at(pass), parts, {static_cast<double>(step)});
      if (step > 0) done.push_back(stream.record());
    });
    if (step > 0) keys.give_back(step, done);
  }
  return program;
}

}  // namespace

Sequence seen_keys(const Attention& a, const ShardBlock& queries, const ShardRows& keys,
                   const Index& shift) {
  if (!a.causal) return keys.rows;
  const Index more = queries.ahead - keys.ahead + shift;
  const Index first =
      a.window > 0 ? queries.rows.start() + more - (a.window - 1) : keys.rows.begin();
  return part_of(keys.rows, first, end_of(queries.rows) + more);
}

Sequence seeing_queries(const Attention& a, const ShardBlock& keys, const ShardRows& queries,
                        const Index& shift) {
  if (!a.causal) return queries.rows;
  const Index more = keys.ahead - queries.ahead - shift;
  const Index end = a.window > 0 ? end_of(keys.rows) + more + (a.window - 1) : queries.rows.end();
  return part_of(queries.rows, keys.rows.start() + more, end);
}

Tile visible_in_ring(const Attention& a, const ShardBlock& queries, const Block& keys,
                     const Index& ahead, const Index& shift) {
  const Tile column = keys.as_row();
  const Tile exists = column < keys.limit();
  if (!a.causal) return exists;
  const Tile last = queries.rows.as_column() + (queries.ahead + shift);
  return exists && under_mask(a, column + ahead, last);
}

RingSum::RingSum(Kernel& kernel, const std::string& name, RingPass pass,
                 const std::vector<Dim>& shape) {
  switch (pass) {
    case RingPass::first:
      after = kernel.out(name, f32, shape);
      break;
    case RingPass::next:
      before = after = kernel.inout(name, f32, shape);
      break;
    case RingPass::last:
      before = kernel.in(name, f32, shape);
      break;
  }
}

Index ring_owner(Kernel& kernel) {
  const Index before(kernel.scalar("places_before", i32));
  return (kernel.rank() + kernel.ranks() - before) % kernel.ranks();
}

void RingSlots::add(const std::string& name, DType dtype, const std::vector<Dim>& shape) {
  slots_.push_back({program_.scratch("ring_" + name + "_0", dtype, shape),
                    program_.scratch("ring_" + name + "_1", dtype, shape)});
}

std::vector<Part> RingSlots::parts(int step) const {
  std::vector<Part> parts;
  for (const auto& slots : slots_) parts.push_back(slots[static_cast<std::size_t>(step % 2)]);
  return parts;
}

void RingSlots::send(int step, const std::vector<Part>& parts,
                     const std::vector<Event>& made) const {
  program_.on_each_rank([&](const Rank& rank) {
    const Stream stream = rank.stream(name_);
    if (!made.empty()) stream.wait(made[static_cast<std::size_t>(rank.number())]);
    // What is made of what has come adds to it, or leaves it as it was, unread.
    const int first_that_comes = first_ + (made.empty() ? 0 : 1);
    if (step > first_that_comes) stream.wait(arrived_[step - 1], program_.run());
    // Who had the slot before: two steps ago, or in the run before.
    int before = step - 2;
    if (before < first_) {
      for (before = end_ - 1; before % 2 != step % 2;) --before;
      stream.wait(taken_[before], program_.run() - 1);
    } else {
      stream.wait(taken_[before], program_.run());
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Buffer& slot = slots_[i][static_cast<std::size_t>(step % 2)];
      stream.copy(slot.on(rank.next()), parts[i]);
    }
    stream.write(arrived_.on(rank.next())[step], program_.run());
  });
}

void RingSlots::wait(int step, const Stream& stream) const {
  stream.wait(arrived_[step], program_.run());
}

void RingSlots::give_back(int step, const std::vector<Event>& done) const {
  program_.on_each_rank([&](const Rank& rank) {
    const Stream stream = rank.stream(name_);
    stream.wait(done[static_cast<std::size_t>(rank.number())]);
    stream.write(taken_.on(rank.next(-1))[step], program_.run());
  });
}

Program ring_attention(const SequenceParallelAttention& o, SourceLocation where) {
  return attention_in_ring<BatchRing>(o, {"ring_attention", where},
                                      [&](RingPass pass, const std::string& name) {
                                        return attention_to_one<BatchRing>(o, pass, name);
                                      });
}

Program ring_attention_sm90(const SequenceParallelAttention& o, SourceLocation where) {
  const Caller caller{"ring_attention_sm90", where};
  return attention_in_ring<BatchRing>(o, caller, [&](RingPass pass, const std::string& name) {
    return attention_to_one_sm90(o, pass, name, caller);
  });
}

Program ring_varlen_attention(const SequenceParallelAttention& o, SourceLocation where) {
  return attention_in_ring<PackedRing>(o, {"ring_varlen_attention", where},
                                       [&](RingPass pass, const std::string& name) {
                                         return attention_to_one<PackedRing>(o, pass, name);
                                       });
}

}  // namespace tilewright::kernels
