#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_record.h"
#include "kernels/attention_backward_recording.h"
#include "kernels/attention_backward_sm100.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_backward_wave.h"
#include "kernels/attention_backward_wide_sm90.h"
#include "kernels/attention_parameters.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/plan_case.h"

// The programs of attention_backward, of whichever kernels.
namespace tilewright::kernels {
namespace {

// What the kernels take that sum dQ in memory, and that convert the sums. `puts_queries`: the
// former dQ too.
struct SummedParts {
  std::vector<Part> all, summed;
};
SummedParts parts_of_sums(Program& program, const std::string& name, const std::vector<Dim>& shape,
                          bool ordered, bool puts_queries, const BackwardBuffers& b) {
  const Buffer sums =
      ordered ? program.scratch(name, f32, shape) : program.zeroed(name, f32, shape);
  SummedParts parts{{b.Q, b.K, b.V, b.dO, b.L, b.D, sums, b.dK, b.dV}, {sums}};
  if (puts_queries) parts.all.push_back(b.dQ);
  if (b.turns) {
    parts.all.push_back(*b.turns);
    parts.summed.push_back(*b.turns);
  }
  parts.summed.push_back(b.dQ);
  return parts;
}

// Of heads that share keys, where all of them have been summed.
template <typename Sequences>
void convert_key_sums(const Attention& a, const KeyTiles& tiles, const std::string& name,
                      const Launches& stream, const std::vector<Part>& parts) {
  stream.launch(
      name + "_keys",
      [&](const std::string& of) { return key_gradients_of_sums<Sequences>(a, tiles, of); }, parts);
}

// Of heads that share keys: what is summed of dK and dV, and where parts take turns their words.
// Behind those of dQ the kernel takes it.
Buffer add_key_sums(Program& program, const SharedSumsShape& shared, const std::string& suffix,
                    std::vector<Part>& parts) {
  const Buffer sums = program.scratch("key_sums" + suffix, f32, shared.sums());
  parts.push_back(sums);
  if (!shared.apart) {
    parts.push_back(program.zeroed("key_turns" + suffix, i32, {shared.words()}));
  }
  return sums;
}

// dQ is summed in memory. dK and dV of heads that share keys may be summed there too.
template <typename Sequences>
void wide_backward(const Attention& a, Order order, KeySums keys, const Caller& caller,
                   const Recording<Sequences>& to) {
  check_wide_backward(a, caller);
  const WideBackwardPlan plan = wide_backward_plan(a, order, keys);
  const std::string& name = to.name;
  record_gradients<Sequences>(
      a, plan.ordered ? wide_backward_turns(a) : 0, to,
      [&](Program& program, const auto& shapes, const Launches& stream, const BackwardBuffers& b,
          const auto& with_offsets) {
        const Dim blocks = shapes.kept_blocks(a.block_q);
        const std::vector<Dim> of_sums = wide_backward_sums(a, blocks);
        auto [all, summed] = parts_of_sums(program, "sums" + to.suffix, of_sums, plan.ordered,
                                           plan.alone_converts, b);
        // Parts for the order gain with a mask alone, and lose without one (docs/log).
        const Order for_parts = a.causal ? order : Order::any;
        const Dim parts = HeadParts::wanted(a, shapes, for_parts, wide_backward_ctas(a));
        const SharedSumsShape shared(KeyTiles::of(a), shapes.kept_key_blocks(a.block_k), parts,
                                     order, keys);
        const Buffer key_sums =
            plan.shares ? add_key_sums(program, shared, to.suffix, all) : Buffer();
        stream.launch(
            name,
            [&](const std::string& of) { return wide_gradients_sm90<Sequences>(a, plan, of); },
            with_offsets(Of::both, all));
        if (plan.sums_keys_apart()) {
          convert_key_sums<Sequences>(a, KeyTiles::of(a), name, stream,
                                      with_offsets(Of::keys, {key_sums, b.dK, b.dV}));
        }
        stream.launch(
            name + "_queries",
            [&](const std::string& of) {
              return wide_query_gradient_of_sums<Sequences>(a, plan, of);
            },
            with_offsets(Of::queries, summed));
      });
}

// The same of dims up to 128. dK and dV of heads that share keys may be summed in memory too.
template <typename Sequences>
void adding_backward(const Attention& a, Order order, KeySums keys, const Caller& caller,
                     const Recording<Sequences>& to) {
  check_dims(a, 256, caller);
  if (plan_case("more than 128 columns", is_wide_backward(a))) {
    return wide_backward<Sequences>(a, order, keys, caller, to);
  }
  const bool is_packed = std::is_same_v<Sequences, Packed>;
  const BackwardPlan plan = backward_plan(a, order, keys, is_packed, caller);
  // Words of shared heads' keys follow those of queries, and are set apart.
  const int turns = plan.ordered && !plan.shares ? 1 : 0;
  const std::string& name = to.name;
  record_gradients<Sequences>(
      a, turns, to,
      [&](Program& program, const auto& shapes, const Launches& stream, const BackwardBuffers& b,
          const auto& with_offsets) {
        const std::vector<Dim> of_sums = plan.sums(a, shapes.kept_blocks(a.block_q));
        const Buffer sums = plan.ordered ? program.scratch("sums" + to.suffix, f32, of_sums)
                                         : program.zeroed("sums" + to.suffix, f32, of_sums);
        const Dim parts = plan.division() == Division::uneven ? HeadParts::wanted_uneven(a, shapes)
                                                              : HeadParts::wanted(a, shapes, order);
        const auto shared = shared_sums(a, plan, shapes, parts);
        Buffer key_sums;
        if (plan.shares) key_sums = program.scratch("key_sums" + to.suffix, f32, shared.sums());
        std::vector<Part> all = {b.Q, b.K, b.V, b.dO, b.L, b.D, sums};
        if (plan.ordered) all.push_back(b.dQ);
        all.insert(all.end(), {b.dK, b.dV});
        if (b.turns) all.push_back(*b.turns);
        if (plan.shares) {
          all.push_back(
              program.zeroed("turns" + to.suffix, i32, {backward_turns(a, plan, shapes, parts)}));
        }
        if (plan.shares) all.push_back(key_sums);
        if (plan.divides) {
          const LastWave wave(shapes.kept_key_blocks(a.block_k),
                              ceil_div(shapes.mean_queries(), a.block_q));
          all.push_back(
              program.scratch("key_sums" + to.suffix, f32,
                              {wave.blocks() * lines_of_block(a), SharedSumsShape::kLine}));
        }
        stream.launch(
            name, [&](const std::string& of) { return gradients_sm90<Sequences>(a, plan, of); },
            with_offsets(Of::both, all));
        if (plan.sums_keys_apart()) {
          convert_key_sums<Sequences>(a, KeyTiles::of(a), name, stream,
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

// For sm_100a, by one CTA or a pair for a block of keys. dQ is summed in memory, and dK and dV of
// heads that share keys may be too.
template <typename Sequences>
void sm100_backward_of(const Attention& a, Order order, KeySums keys, const Caller& caller,
                       const Recording<Sequences>& to) {
  const Sm100BackwardPlan plan = sm100_backward_plan(a, order, keys, caller);
  const std::string& name = to.name;
  record_gradients<Sequences>(
      a, plan.ordered ? plan.ctas : 0, to,
      [&](Program& program, const auto& shapes, const Launches& stream, const BackwardBuffers& b,
          const auto& with_offsets) {
        const std::vector<Dim> of_sums = sm100_backward_sums(a, shapes.kept_blocks(a.block_q));
        auto [all, summed] = parts_of_sums(program, "sums" + to.suffix, of_sums, plan.ordered,
                                           /*puts_queries=*/false, b);
        const KeyTiles tiles = sm100_key_tiles(a);
        const Dim parts = HeadParts::wanted(a, shapes, order, plan.ctas);
        const SharedSumsShape shared(tiles, shapes.kept_key_blocks(a.block_k), parts, order, keys);
        const Buffer key_sums =
            plan.shares ? add_key_sums(program, shared, to.suffix, all) : Buffer();
        stream.launch(
            name,
            [&](const std::string& of) {
              return plan.ctas == 1 ? gradients_sm100<Sequences>(a, plan, of)
                                    : pair_gradients_sm100<Sequences>(a, plan, of);
            },
            with_offsets(Of::both, all));
        if (plan.sums_keys_apart()) {
          convert_key_sums<Sequences>(a, tiles, name, stream,
                                      with_offsets(Of::keys, {key_sums, b.dK, b.dV}));
        }
        stream.launch(
            name + "_queries",
            [&](const std::string& of) {
              return query_gradient_of_sums_sm100<Sequences>(a, plan, of);
            },
            with_offsets(Of::queries, summed));
      });
}

// The program of one rank, whose tensors a caller passes. `name`: of it and of its kernels.
template <typename Sequences>
Program backward(const Attention& a, bool of_lse, const Caller& caller,
                 FunctionRef<void(const Recording<Sequences>&)> record_all,
                 const std::string& name) {
  check_attention(a, caller);
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
  return backward<Sequences>(
      a, of_lse, caller,
      [&](const Recording<Sequences>& to) { deterministic_backward<Sequences>(a, to); },
      std::string(caller.function));
}

template <typename Sequences>
Program adding_program(const Attention& a, bool of_lse, Order order, KeySums keys,
                       const Caller& caller) {
  return backward<Sequences>(
      a, of_lse, caller,
      [&](const Recording<Sequences>& to) {
        adding_backward<Sequences>(a, order, keys, caller, to);
      },
      std::string(caller.function));
}

template <typename Sequences>
Program sm100_program(const Attention& a, bool of_lse, Order order, KeySums keys,
                      const Caller& caller) {
  return backward<Sequences>(
      a, of_lse, caller,
      [&](const Recording<Sequences>& to) {
        sm100_backward_of<Sequences>(a, order, keys, caller, to);
      },
      std::string(caller.function));
}

}  // namespace

void record_backward(const Attention& a, const BackwardRecording<BatchShapes>& to, bool is_sm90,
                     const Caller& caller) {
  if (is_sm90) return adding_backward<Batch>(a, Order::blocks, KeySums::in_turn, caller, to);
  deterministic_backward<Batch>(a, to);
}
void record_backward(const Attention& a, const BackwardRecording<PackedShapes>& to, bool is_sm90,
                     const Caller& caller) {
  if (is_sm90) return adding_backward<Packed>(a, Order::blocks, KeySums::in_turn, caller, to);
  deterministic_backward<Packed>(a, to);
}

Program attention_backward(const Attention& a, bool of_lse, SourceLocation where) {
  return deterministic_program<Batch>(a, of_lse, {"attention_backward", where});
}

Program attention_backward_in_parts(const Attention& a, bool of_lse, SourceLocation where) {
  // It is a schedule of attention_backward, whose name users know.
  return backward<Batch>(
      a, of_lse, {"attention_backward_in_parts", where},
      [&](const Recording<Batch>& to) { backward_in_parts(a, to); }, "attention_backward");
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

Program attention_backward_sm100(const Attention& a, bool of_lse, Order order, KeySums keys,
                                 SourceLocation where) {
  return sm100_program<Batch>(a, of_lse, order, keys, {"attention_backward_sm100", where});
}

Program attention_varlen_backward_sm100(const Attention& a, bool of_lse, Order order, KeySums keys,
                                        SourceLocation where) {
  return sm100_program<Packed>(a, of_lse, order, keys, {"attention_varlen_backward_sm100", where});
}

Attention with_sm100_backward_blocks(Attention a) {
  a.block_q = a.block_k = Sm100BackwardPlan::kRows;
  return a;
}

Attention with_sm100_backward_pair_blocks(Attention a) {
  a.block_q = Sm100BackwardPlan::kRows;
  a.block_k = 2 * Sm100BackwardPlan::kRows;
  return a;
}

Attention with_sm90_backward_blocks(Attention a) {
  const bool is_wide = is_wide_backward(a);
  a.block_k = is_wide ? wide_backward_keys(a) : 128;
  a.block_q = is_wide ? 64 : backward_rows(a);
  return a;
}

}  // namespace tilewright::kernels
