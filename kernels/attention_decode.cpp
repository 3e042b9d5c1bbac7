#include "kernels/attention_join.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

// Attention of one new query a sequence. Few rows leave a GPU empty, so that the keys are divided
// among CTAs (Flash-Decoding, 2023): each has the softmax of its part of them, and a second kernel
// joins the parts.
namespace tilewright::kernels {
namespace {

constexpr int kBlockKeys = 64;
constexpr int kMaximumGroup = 128;

void check_decode(const Attention& a, const Caller& caller) {
  check_attention(a, caller);
  if (a.window > 0) {
    caller.refuse("window is " + std::to_string(a.window), "pass the keys in the window alone");
  }
  if (a.sinks) caller.refuse("sinks is true", "attention_forward takes sinks");
  if (a.heads / a.kv_heads > kMaximumGroup) {
    caller.refuse(
        "heads / kv_heads is " + std::to_string(a.heads / a.kv_heads),
        "at most " + std::to_string(kMaximumGroup) + " heads share keys: split the group");
  }
}

// One block of the grid has the heads that share keys, and one part of these. A part without keys
// is 0, with -inf.
Kernel decode_parts(const Attention& a) {
  Kernel kernel("attention_decode_parts");
  const AttentionScores scores(a);
  const Dim batch = kernel.dim("batch"), keys = kernel.dim("keys");
  const Dim parts = kernel.dim("parts", at_least(1));
  const Tensor Q = kernel.in("Q", a.dtype, {batch, a.kv_heads, scores.group, a.dim});
  const Tensor K = kernel.in("K", a.dtype, {batch, keys, a.kv_heads, a.dim});
  const Tensor V = kernel.in("V", a.dtype, {batch, keys, a.kv_heads, a.dim_v});
  const Tensor O = kernel.out("O", f32, {batch, parts, a.kv_heads, scores.group, a.dim_v});
  const Tensor LSE = kernel.out("LSE", f32, {batch, parts, a.kv_heads, scores.group});
  const auto [part, head, b] = kernel.grid(parts, a.kv_heads, batch);
  // A product has 64 rows for each warpgroup; those past the group do not exist.
  plan_case("heads for two warpgroups", scores.group > 64);
  plan_case("heads fill their rows", scores.group % 64 == 0);
  const Block rows = Dim(scores.group).block(0, (scores.group + 63) / 64 * 64);
  const Dim blocks_of_keys = ceil_div(keys, kBlockKeys), each = ceil_div(blocks_of_keys, parts);
  const Index first = part * each;

  const Tile q = load(Q(b, head, rows, all));
  OnlineSoftmax softmax(rows, scores.scale);
  Var acc{zeros({rows, a.dim_v})};
  for (Block cols : blocks(keys, kBlockKeys, first, min(first + each, blocks_of_keys))) {
    const Tile k = load(K(b, cols, head, all));
    const Tile s = everything().apply(scores.capped(dot(q, k.T())), rows, cols);
    const auto [weights, rescale] = softmax.step(s);
    const Tile v = load(V(b, cols, head, all));
    acc = acc * rescale + dot(weights.cast(a.dtype), v);
  }
  store(O(b, part, head, rows, all), acc * softmax.normaliser());
  store(LSE(b, part, head, rows), softmax.log_sum_exp().reshape({rows.size()}));
  return kernel;
}

Kernel decode_join(const Attention& a) {
  Kernel kernel("attention_decode_join");
  const int group = a.heads / a.kv_heads;
  const Dim batch = kernel.dim("batch"), parts = kernel.dim("parts", at_least(1));
  const Tensor P = kernel.in("P", f32, {batch, parts, a.kv_heads, group, a.dim_v});
  const Tensor L = kernel.in("L", f32, {batch, parts, a.kv_heads, group});
  const Tensor O = kernel.out("O", a.dtype, {batch, a.kv_heads, group, a.dim_v});
  const Tensor LSE = kernel.out("LSE", f32, {batch, a.kv_heads, group});
  const int size = rows_to_join(group, a.dim_v);
  const auto [x, head, b] = kernel.grid(ceil_div(Dim(group), Dim(size)), a.kv_heads, batch);
  const Block rows = Dim(group).block(x, size);
  const JoinedSoftmax joined = join(
      {parts,
       [&, head = head, b = b](const Block& of_parts) { return P(b, of_parts, head, rows, all); },
       [&, head = head, b = b](const Block& of_parts) { return L(b, of_parts, head, rows); }},
      size, a.dim_v);
  store(O(b, head, rows, all), joined.outputs.cast(a.dtype));
  store(LSE(b, head, rows), joined.sums.reshape({size}));
  return kernel;
}

}  // namespace

Program attention_decode(const Attention& a, SourceLocation where) {
  check_decode(a, {"attention_decode", where});
  const int group = a.heads / a.kv_heads;
  Program program("attention_decode");
  const Dim batch = program.dim("batch"), keys = program.dim("keys");
  // As many parts as fill the GPU, each of a block of keys or more.
  const Dim places = multiprocessors() / max(batch * a.kv_heads, 1);
  const Dim parts = max(min(places, ceil_div(keys, kBlockKeys)), 1);
  const Buffer Q = program.in("Q", a.dtype, {batch, a.kv_heads, group, a.dim});
  const Buffer K = program.in("K", a.dtype, {batch, keys, a.kv_heads, a.dim});
  const Buffer V = program.in("V", a.dtype, {batch, keys, a.kv_heads, a.dim_v});
  const Buffer O = program.out("O", a.dtype, {batch, a.kv_heads, group, a.dim_v});
  const Buffer LSE = program.out("LSE", f32, {batch, a.kv_heads, group});
  const Buffer P = program.scratch("P", f32, {batch, parts, a.kv_heads, group, a.dim_v});
  const Buffer L = program.scratch("L", f32, {batch, parts, a.kv_heads, group});
  const Stream stream = program.rank(0).stream();
  stream.launch(decode_parts(a), {Q, K, V, P, L});
  stream.launch(decode_join(a), {P, L, O, LSE});
  return program;
}

}  // namespace tilewright::kernels
