#include "kernels/attention_paged_plan.h"

#include <optional>
#include <vector>

#include "kernels/attention_join.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

constexpr int kSequences = 128;  // of a step
// Items of so many a place: who is given a long one last then ends not much later than the others.
constexpr int kItemsOfPlace = 2;

Tile ceil_div(const Tile& a, const Tile& b) { return (a + b - 1) / b; }

// Of some sequences the tiles, and the blocks of keys that their queries see at most.
struct Counts {
  Tile tiles, blocks;
};

// Keys that the queries of a sequence see, at most. What a window shows begins inside of a block.
template <typename Number>
Number seen_keys(const Number& queries, const Number& keys, int window) {
  return window > 0 ? min(keys, queries + (window + kKeysOfBlock)) : keys;
}

// The last of `count` numbers, which ascend, that is not past `wanted`.
Index last_not_past(const Tensor& numbers, const Dim& count, const Index& wanted) {
  Cell<Index> low(0), high{Index(count)};
  Cell<Condition> more(Index(1) < high);
  repeat_while(more, [&] {
    const Index middle = (low + high) / 2;
    const Condition reached = load_index(numbers(middle)) <= wanted;
    low = select(reached, middle, low);
    high = select(reached, high, middle);
    more = low + 1 < high;
  });
  return low;
}

Index queries_of(const Tensor& cu_seqlens_q, const Index& sequence) {
  return load_index(cu_seqlens_q(sequence + 1)) - load_index(cu_seqlens_q(sequence));
}

// The parts of each tile of a sequence, as the plan has counted them.
Index parts_of_tile(const Tensor& cu_seqlens_q, const Tensor& plan, const PagedRows& tile,
                    const Index& sequence) {
  const Index items = load_index(plan(sequence + 1)) - load_index(plan(sequence));
  const Index tiles = ceil_div(queries_of(cu_seqlens_q, sequence), tile.queries());
  return max(items / max(tiles, 1), 1);
}

}  // namespace

std::vector<Dim> shape_of_plan(const Dim& batch) { return {batch + 1}; }

Dim wanted_items(const PagedShapes& s, const PagedRows& tile, const Dim& places) {
  return max(kItemsOfPlace * places / (s.kv_heads * tile.head_blocks), 1);
}

// No item is longer than if all were wanted ones of one length; each tile has one that is shorter.
Dim most_items(const PagedShapes& s, const PagedRows& tile, const Dim& places) {
  return s.total_queries / tile.queries() + s.batch + wanted_items(s, tile, places);
}

Kernel attention_paged_plan(const PagedAttention& a, const PagedRows& tile) {
  Kernel kernel("attention_paged_plan");
  const Dim batch = kernel.dim("batch");
  const Tensor cu_seqlens_q = kernel.in("cu_seqlens_q", i32, {batch + 1});
  const Tensor lengths = kernel.in("lengths", i32, {batch});
  const Tensor plan = kernel.out("plan", i32, shape_of_plan(batch));
  std::optional<Scalar> wanted;
  if (a.fixed_split_size == 0) wanted = kernel.scalar("wanted_items", i32);
  kernel.grid(1);
  const auto row = [](const Tile& t) { return t.reshape({1, kSequences}); };
  const auto counts = [&](const Index& step) {
    const Index first = step * kSequences;
    const Block own(first, kSequences, Index(batch)), next(first + 1, kSequences, batch + 1);
    const Tile queries = row(load(cu_seqlens_q(next))) - row(load(cu_seqlens_q(own)));
    const Tile keys = seen_keys(queries, row(load(lengths(own))), a.window);
    return Counts{(queries + (tile.queries() - 1)) / tile.queries(),
                  (keys + (kKeysOfBlock - 1)) / kKeysOfBlock};
  };
  const Dim steps = tilewright::ceil_div(batch, kSequences);

  // Blocks that an item has at most.
  Var share{full({1, 1}, a.fixed_split_size / kKeysOfBlock, i32)};
  if (wanted) {
    Var all_blocks{zeros({1, 1}, i32)};
    for (Index step : range(steps)) {
      const Counts c = counts(step);
      all_blocks = all_blocks + reduce_sum(c.tiles * c.blocks, 1);
    }
    share = max(ceil_div(all_blocks, full({1, 1}, *wanted)), 1);
  }

  Var before{zeros({1, 1}, i32)};
  for (Index step : range(steps)) {
    const Counts c = counts(step);
    const Tile items = c.tiles * max(ceil_div(c.blocks, share), 1);
    const Tile is_before = iota({kSequences, 1}, 0) >= iota({1, kSequences}, 1);
    const Tile up_to = reduce_sum(where(is_before, items, 0), 1) + before;
    store(plan(Block(step * kSequences + 1, kSequences, batch + 1)), up_to.reshape({kSequences}));
    before = before + reduce_sum(items, 1);
  }
  store(plan(Block(0, 1, 1)), zeros({1}, i32));
  return kernel;
}

PlannedItem planned_item(const PagedParameters& p, const Tensor& plan, const PagedRows& tile,
                         const Index& place) {
  const Index sequence = last_not_past(plan, p.batch, place);
  const Index number = max(place - load_index(plan(sequence)), 0);
  const Index parts = parts_of_tile(p.cu_seqlens_q, plan, tile, sequence);
  return {sequence, number / parts, number % parts, parts};
}

Kernel attention_paged_planned_join(const PagedAttention& a, const PagedRows& tile) {
  Kernel kernel("attention_paged_join");
  const PagedShapes s = PagedShapes::of_queries_only(kernel, a);
  const Dim items = kernel.dim("items", at_least(1));
  const Tensor P = kernel.in("P", f32, {items, tile.queries(), a.heads, a.dim_v});
  const Tensor L = kernel.in("L", f32, {items, tile.queries(), a.heads});
  const Tensor cu_seqlens_q = kernel.in("cu_seqlens_q", i32, {s.batch + 1});
  const Tensor plan = kernel.in("plan", i32, shape_of_plan(s.batch));
  const JoinedOutput output(kernel, a, s.total_queries);
  const Ragged queries(s.total_queries, cu_seqlens_q);
  const auto [x, number] = kernel.grid(output.blocks_of_heads(), queries.tiles(tile.queries()));
  const auto [sequence, block] = queries.tile(number, tile.queries());
  const Block rows = queries.of(sequence).block(block, tile.queries()), heads = output.heads(x);
  const Index parts = parts_of_tile(cu_seqlens_q, plan, tile, sequence);
  const Index first = load_index(plan(sequence)) + block * parts;
  for (Index query : range(rows.start(), min(rows.start() + tile.queries(), rows.limit()))) {
    const Index row = query - rows.start();
    const auto kept = [&](const Block& of_parts) {
      return Block(first + of_parts.start(), of_parts.size(), first + of_parts.limit());
    };
    output.join_row(
        query, heads,
        {parts, [&](const Block& of_parts) { return P(kept(of_parts), row, heads, all); },
         [&](const Block& of_parts) { return L(kept(of_parts), row, heads); }});
  }
  return kernel;
}

Kernel attention_paged_fixed_join(const PagedAttention& a) {
  Kernel kernel("attention_paged_fixed_join");
  const PagedShapes s = PagedShapes::of_queries_only(kernel, a);
  const Dim most = kernel.dim("parts", at_least(1));
  const Tensor P = kernel.in("P", f32, {s.total_queries, most, a.heads, a.dim_v});
  const Tensor L = kernel.in("L", f32, {s.total_queries, most, a.heads});
  const Tensor cu_seqlens_q = kernel.in("cu_seqlens_q", i32, {s.batch + 1});
  const Tensor lengths = kernel.in("lengths", i32, {s.batch});
  const JoinedOutput output(kernel, a, s.total_queries);
  const Ragged queries(s.total_queries, cu_seqlens_q);
  const auto [x, number] = kernel.grid(output.blocks_of_heads(), queries.tiles(1));
  const auto [sequence, block] = queries.tile(number, 1);
  const Block row = queries.of(sequence).block(block, 1), heads = output.heads(x);
  when(row.start() < row.limit(), [&, sequence = sequence] {
    const Index keys =
        seen_keys(queries_of(cu_seqlens_q, sequence), load_index(lengths(sequence)), a.window);
    const Index parts = min(max(ceil_div(keys, a.fixed_split_size), 1), most);
    const Index query = row.start();
    output.join_row(query, heads,
                    {parts, [&](const Block& of_parts) { return P(query, of_parts, heads, all); },
                     [&](const Block& of_parts) { return L(query, of_parts, heads); }});
  });
  return kernel;
}

}  // namespace tilewright::kernels
