#include "kernels/attention_paged_parameters.h"

#include <algorithm>
#include <bit>
#include <string>

#include "kernels/attention_join.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

void check_paged(const PagedAttention& a, const Caller& caller) {
  check_attention(a, caller);
  caller.check_positive("page", a.page);
}

PagedRows::PagedRows(const PagedAttention& a, int rows) : rows(rows) {
  const int group = a.heads / a.kv_heads;
  heads = std::min(static_cast<int>(std::bit_ceil(static_cast<unsigned>(group))), rows);
  head_blocks = (group + heads - 1) / heads;
  plan_case("heads in several tiles", head_blocks > 1);
  plan_case("heads fill their tiles", group % heads == 0);
}

PagedParameters::PagedParameters(Kernel& kernel, const PagedAttention& a)
    : AttentionScores(a),
      PagedShapes(kernel, a),
      Q(kernel.in("Q", a.dtype, of_queries(a.dim))),
      cu_seqlens_q(kernel.in("cu_seqlens_q", i32, {batch + 1})),
      lengths(kernel.in("lengths", i32, {batch})),
      block_table(kernel.in("block_table", i32, {batch, max_pages})),
      K(kernel.in("K", a.dtype, of_keys(a.dim))),
      V(kernel.in("V", a.dtype, of_keys(a.dim_v))),
      queries(total_queries, cu_seqlens_q),
      a_(a) {}

Sequence PagedParameters::keys(const Index& b) const {
  return Sequence(max_pages * page, Index(0), load_index(lengths(b)));
}

Mask PagedParameters::mask(const Sequence& queries, const Sequence& keys) const {
  return attention_mask(queries, keys, a_.causal, a_.window);
}

PageSlots PagedParameters::slots(const Block& keys, const Index& listed) const {
  const Index slot = keys.start() % page;
  const Condition is_page = listed != -1;
  const Index end = min(keys.limit() - keys.start() + slot, page);
  return {select(is_page, listed, 0), Block(slot, keys.size(), select(is_page, end, 0))};
}

PagedItems items_of(const PagedParameters& p, const PagedRows& tile, const Dim& parts) {
  return {p.kv_heads * tile.head_blocks, parts, p.queries.tiles(tile.queries()), &p.queries,
          tile.queries()};
}

PagedItem PagedItems::item(const Index& number) const {
  const Index rest = number / heads;
  const auto [sequence, block] = queries->tile(rest / parts, queries_of_tile);
  return {sequence, block, number % heads, rest % parts};
}

PagedWork::PagedWork(const PagedParameters& p, const PagedRows& tile, const PagedItem& item)
    : item(item),
      queries(p.queries.of(item.sequence)),
      keys(p.keys(item.sequence)),
      mask(p.mask(queries, keys)),
      rows(queries.block(item.block, tile.queries())),
      kv_head(item.head_block / tile.head_blocks),
      read_heads(kv_head * p.group + item.head_block % tile.head_blocks * tile.heads, tile.heads,
                 kv_head * p.group + item.head_block % tile.head_blocks * tile.heads + tile.heads),
      heads(read_heads.start(), tile.heads, (kv_head + 1) * p.group) {}

std::pair<Index, Index> PagedWork::blocks_of_part(const Dim& parts, int size) const {
  const auto [first, last] = mask.visible(rows, keys, size);
  const Index each = ceil_div(last - first, parts);
  const Index begin = min(first + item.part * each, last);
  return {begin, min(begin + each, last)};
}

PagedStores::PagedStores(Kernel& kernel, const PagedAttention& a, PagedParameters& p, KeyParts keys)
    : whole_(plan_case("keys as a whole", keys == KeyParts::one)),
      parts_(whole_ ? Dim(1) : kernel.dim("parts", at_least(1))),
      O_(whole_ ? kernel.out("O", a.dtype, p.of_queries(a.dim_v))
                : kernel.out("P", f32, {p.total_queries, parts_, a.heads, a.dim_v})),
      LSE_(whole_ ? kernel.out("LSE", f32, p.of_rows())
                  : kernel.out("L", f32, {p.total_queries, parts_, a.heads})) {
  if (whole_) p.declare_sinks(kernel);
}

void PagedStores::store(const PagedWork& work, const PagedRows& tile, const Tile& outputs,
                        const Tile& sums) const {
  const Tile rows = outputs.reshape({tile.queries(), tile.heads, outputs.shape()[1]});
  const Tile of_rows = sums.reshape({tile.queries(), tile.heads});
  if (whole_) {
    tilewright::store(O_(work.rows, work.heads, all), rows);
    tilewright::store(LSE_(work.rows, work.heads), of_rows);
  } else {
    tilewright::store(O_(work.rows, work.item.part, work.heads, all), rows);
    tilewright::store(LSE_(work.rows, work.item.part, work.heads), of_rows);
  }
}

Kernel attention_paged_join(const PagedAttention& a) {
  Kernel kernel("attention_paged_join");
  const Dim total_queries = kernel.dim("queries"), batch = kernel.dim("batch");
  const Dim parts = kernel.dim("parts", at_least(1));
  const Tensor P = kernel.in("P", f32, {total_queries, parts, a.heads, a.dim_v});
  const Tensor L = kernel.in("L", f32, {total_queries, parts, a.heads});
  const Tensor cu_seqlens_q = kernel.in("cu_seqlens_q", i32, {batch + 1});
  const Tensor O = kernel.out("O", a.dtype, {total_queries, a.heads, a.dim_v});
  const Tensor LSE = kernel.out("LSE", f32, {total_queries, a.heads});
  std::optional<Tensor> sinks;
  if (plan_case("sinks", a.sinks)) sinks = kernel.in("sinks", f32, {a.heads});
  const int size = rows_to_join(a.heads);
  const auto [x, query] = kernel.grid(ceil_div(Dim(a.heads), Dim(size)), total_queries);
  const Block heads = Dim(a.heads).block(x, size);
  const Condition is_there =
      load_index(cu_seqlens_q(0)) <= query && query < load_index(cu_seqlens_q(Index(batch)));
  when(is_there, [&, query = query] {
    std::optional<Tile> of_heads;
    if (sinks) of_heads = load((*sinks)(heads)).reshape({size, 1});
    const JoinedRows joined =
        join({parts, size, a.dim_v, [&](const Index& part) { return P(query, part, heads, all); },
              [&](const Index& part) { return L(query, part, heads); }},
             of_heads);
    store(O(query, heads, all), joined.outputs.cast(a.dtype));
    store(LSE(query, heads), joined.sums.reshape({size}));
  });
  return kernel;
}

}  // namespace tilewright::kernels
