#include "kernels/attention_paged_program.h"

#include <vector>

namespace tilewright::kernels {
namespace {

constexpr int kKeysOfPart = 64;  // at least

// As many parts as fill the GPU.
Dim parts_of(const PagedShapes& s, const PagedRows& tile) {
  const Dim tiles = max(s.batch, s.total_queries / tile.queries());
  const Dim places = multiprocessors() / max(tiles * (s.kv_heads * tile.head_blocks), 1);
  return max(min(places, ceil_div(s.max_pages * s.page, kKeysOfPart)), 1);
}

}  // namespace

Program paged_program(const char* name, const PagedAttention& a, const PagedRows& tile,
                      const Kernel& parts) {
  Program program(name);
  const PagedShapes s(program, a);
  const Buffer Q = program.in("Q", a.dtype, s.of_queries(a.dim));
  const Buffer cu_seqlens_q = program.in("cu_seqlens_q", i32, {s.batch + 1});
  const Buffer lengths = program.in("lengths", i32, {s.batch});
  const Buffer block_table = program.in("block_table", i32, {s.batch, s.max_pages});
  const Buffer K = program.in("K", a.dtype, s.of_keys(a.dim));
  const Buffer V = program.in("V", a.dtype, s.of_keys(a.dim_v));
  const Buffer O = program.out("O", a.dtype, s.of_queries(a.dim_v));
  const Buffer LSE = program.out("LSE", f32, s.of_rows());
  const Dim count = parts_of(s, tile);
  const Buffer P = program.scratch("P", f32, {s.total_queries, count, a.heads, a.dim_v});
  const Buffer L = program.scratch("L", f32, {s.total_queries, count, a.heads});
  std::vector<Part> joined{P, L, cu_seqlens_q, O, LSE};
  if (a.sinks) joined.push_back(program.in("sinks", f32, {a.heads}));
  const Stream stream = program.rank(0).stream();
  stream.launch(parts, {Q, cu_seqlens_q, lengths, block_table, K, V, P, L});
  stream.launch(attention_paged_join(a), joined);
  return program;
}

}  // namespace tilewright::kernels
