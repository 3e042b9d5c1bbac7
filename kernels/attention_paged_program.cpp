#include "kernels/attention_paged_program.h"

#include <optional>
#include <vector>

#include "kernels/attention_paged_plan.h"

namespace tilewright::kernels {
namespace {

constexpr int kKeysOfPart = 64;  // at least

// As many parts as fill the GPU, or as many of a fixed size as the table has room for.
Dim parts_of(const PagedAttention& a, const PagedShapes& s, const PagedProgram& how) {
  if (a.fixed_split_size > 0) return max(ceil_div(s.max_pages * s.page, a.fixed_split_size), 1);
  const Dim tiles = max(s.batch, s.total_queries / how.tile.queries());
  const Dim places = how.places / max(tiles * (s.kv_heads * how.tile.head_blocks), 1);
  return max(min(places, ceil_div(s.max_pages * s.page, kKeysOfPart)), 1);
}

// The rows whose parts a kernel of its own joins.
std::vector<Dim> rows_of_parts(const PagedAttention& a, const PagedShapes& s,
                               const PagedProgram& how) {
  if (kept(a, how.keys) == Kept::by_query) return {s.total_queries, parts_of(a, s, how), a.heads};
  return {most_items(s, how.tile, how.places), how.tile.queries(), a.heads};
}

// Keys and values, and their scales.
std::vector<Part> declare_cache(Program& program, const PagedAttention& a, const PagedShapes& s) {
  if (a.latent) return {program.in("KV", a.dtype, s.of_latent_keys(a.dim))};
  std::vector<Part> cache{program.in("K", dtype_of_keys(a), s.of_keys(a.dim)),
                          program.in("V", dtype_of_keys(a), s.of_keys(a.dim_v))};
  if (a.quantised) {
    for (const char* name : {"K_scale", "V_scale"}) {
      cache.push_back(program.in(name, f32, {a.scales}));
    }
  }
  return cache;
}

}  // namespace

Program paged_program(const char* name, const PagedAttention& a, const Kernel& kernel,
                      const PagedProgram& how) {
  Program program(name);
  const PagedShapes s(program, a);
  const Buffer Q = program.in("Q", a.dtype, s.of_queries(a.dim));
  const Buffer cu_seqlens_q = program.in("cu_seqlens_q", i32, {s.batch + 1});
  const Buffer lengths = program.in("lengths", i32, {s.batch});
  std::vector<Part> tensors{Q, cu_seqlens_q, lengths};
  if (a.csr) {
    tensors.push_back(program.in("indptr", i32, {s.batch + 1}));
    tensors.push_back(program.in("indices", i32, {s.max_pages}));
  } else {
    tensors.push_back(program.in("block_table", i32, {s.batch, s.max_pages}));
  }
  const std::vector<Part> cache = declare_cache(program, a, s);
  tensors.insert(tensors.end(), cache.begin(), cache.end());
  const Buffer O = program.out("O", a.dtype, s.of_queries(a.dim_v));
  const Buffer LSE = program.out("LSE", f32, s.of_rows());
  std::vector<Part> outputs{O, LSE};
  if (a.sinks) outputs.push_back(program.in("sinks", f32, {a.heads}));
  std::optional<Buffer> plan;
  if (a.planned) plan = program.in("plan", i32, shape_of_plan(s.batch));
  const Stream stream = program.rank(0).stream();
  if (how.keys == KeyParts::one) {
    tensors.insert(tensors.end(), outputs.begin(), outputs.end());
    stream.launch(kernel, tensors);
    return program;
  }
  const bool is_fixed = a.fixed_split_size > 0, by_item = kept(a, how.keys) == Kept::by_item;
  if (how.keys == KeyParts::planned) {
    if (!plan) {
      plan = program.scratch("plan", i32, shape_of_plan(s.batch));
      launch_plan(stream, a, {cu_seqlens_q, lengths, *plan}, how.places);
    }
    tensors.push_back(*plan);
  }
  const std::vector<Dim> rows = rows_of_parts(a, s, how);
  std::vector<Dim> outputs_of_rows = rows;
  outputs_of_rows.emplace_back(a.dim_v);
  const Buffer P = program.scratch("P", f32, outputs_of_rows);
  const Buffer L = program.scratch("L", f32, rows);
  tensors.insert(tensors.end(), {P, L});
  if (by_item) tensors.insert(tensors.end(), outputs.begin(), outputs.end());
  stream.launch(kernel, tensors);
  std::vector<Part> joined{P, L, cu_seqlens_q};
  if (how.keys == KeyParts::planned) {
    joined.push_back(*plan);
  } else if (is_fixed) {
    joined.push_back(lengths);
  }
  joined.insert(joined.end(), outputs.begin(), outputs.end());
  stream.launch(by_item    ? attention_paged_planned_join(a, how.tile)
                : is_fixed ? attention_paged_fixed_join(a, how.tile, how.keys)
                           : attention_paged_join(a),
                joined);
  return program;
}

}  // namespace tilewright::kernels
