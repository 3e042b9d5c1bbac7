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

}  // namespace

std::vector<Dim> shape_of_plan(const Dim& batch) { return {batch + 1}; }

Dim places(const PagedAttention& a, const Dim& multiprocessors) {
  return a.latent ? multiprocessors : multiprocessors * kLanesOfPages;
}

Dim wanted_items(int kv_heads, const PagedRows& tile, const Dim& places) {
  return max(kItemsOfPlace * places / (kv_heads * tile.head_blocks), 1);
}

// No item is longer than if all were wanted ones of one length; each tile has one that is shorter.
Dim most_items(const PagedShapes& s, const PagedRows& tile, const Dim& places) {
  return s.total_queries / tile.queries() + s.batch + wanted_items(s.kv_heads, tile, places);
}

Kernel plan_kernel(const PagedAttention& a, const PagedRows& tile) {
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

void launch_plan(const Stream& stream, const PagedAttention& a, const std::vector<Part>& tensors,
                 const Dim& places) {
  const PagedRows tile = rows_of_plan(a);
  std::vector<RunNumber> scalars;
  if (a.fixed_split_size == 0) scalars.push_back(wanted_items(a.kv_heads, tile, places));
  stream.launch(plan_kernel(a, tile), tensors, scalars);
}

PagedPlan::PagedPlan(Kernel& kernel, const Tensor& cu_seqlens_q, const Dim& batch,
                     int queries_of_tile, bool is_given)
    : plan_(kernel.in("plan", i32, shape_of_plan(batch))),
      cu_seqlens_q_(cu_seqlens_q),
      batch_(batch),
      queries_of_tile_(queries_of_tile),
      is_given_(plan_case("a plan of several layers", is_given)) {}

std::optional<PagedPlan> PagedPlan::declared(Kernel& kernel, const PagedParameters& p,
                                             const PagedRows& tile, KeyParts keys) {
  if (keys != KeyParts::planned) return std::nullopt;
  return PagedPlan(kernel, p.cu_seqlens_q, p.batch, tile.queries(), p.is_planned());
}

PlannedItem PagedPlan::item(const Index& place) const {
  const Index sequence = last_not_past(plan_, batch_, place);
  const auto [first, parts] = items_of(sequence);
  const Index number = max(place - first, 0);
  return {sequence, number / parts, number % parts, parts};
}

PagedPlan::Items PagedPlan::items_of(const Index& sequence) const {
  const Index tiles = ceil_div(queries_of(cu_seqlens_q_, sequence), queries_of_tile_);
  const Index end = load_index(plan_(sequence + 1));
  const auto items_from = [&](const Index& first) {
    return Items{first, (end - first) / max(tiles, 1)};
  };
  Items items = items_from(load_index(plan_(sequence)));
  if (is_given_) {
    // A plan of other queries has no such element, for whoever checks indices.
    const Condition is_of_these =
        items.parts * tiles == end - items.first && (items.parts > 0 || tiles == 0);
    items = items_from(load_index(plan_(select(is_of_these, sequence, Index(batch_) + 1))));
  }
  return {items.first, max(items.parts, 1)};
}

Kernel attention_paged_planned_join(const PagedAttention& a, const PagedRows& tile) {
  Kernel kernel("attention_paged_join");
  const PagedShapes s = PagedShapes::of_queries_only(kernel, a);
  const Dim items = kernel.dim("items", at_least(1));
  const Tensor P = kernel.in("P", f32, {items, tile.queries(), a.heads, a.dim_v});
  const Tensor L = kernel.in("L", f32, {items, tile.queries(), a.heads});
  const Tensor cu_seqlens_q = kernel.in("cu_seqlens_q", i32, {s.batch + 1});
  const PagedPlan plan(kernel, cu_seqlens_q, s.batch, tile.queries(), a.planned);
  const JoinedOutput output(kernel, a, s.total_queries);
  const Ragged queries(s.total_queries, cu_seqlens_q);
  const auto [x, number] = kernel.grid(output.blocks_of_heads(), queries.tiles(tile.queries()));
  const auto [sequence, block] = queries.tile(number, tile.queries());
  const Block rows = queries.of(sequence).block(block, tile.queries()), heads = output.heads(x);
  const auto [first_of_sequence, parts] = plan.items_of(sequence);
  const Index first = first_of_sequence + block * parts;
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

Kernel attention_paged_fixed_join(const PagedAttention& a, const PagedRows& tile, KeyParts keys) {
  Kernel kernel("attention_paged_fixed_join");
  const PagedShapes s = PagedShapes::of_queries_only(kernel, a);
  const Dim most = kernel.dim("parts", at_least(1));
  const Tensor P = kernel.in("P", f32, {s.total_queries, most, a.heads, a.dim_v});
  const Tensor L = kernel.in("L", f32, {s.total_queries, most, a.heads});
  const Tensor cu_seqlens_q = kernel.in("cu_seqlens_q", i32, {s.batch + 1});
  std::optional<PagedPlan> plan;
  std::optional<Tensor> lengths;
  if (keys == KeyParts::planned) {
    plan.emplace(kernel, cu_seqlens_q, s.batch, tile.queries(), a.planned);
  } else {
    lengths = kernel.in("lengths", i32, {s.batch});
  }
  const auto parts_of = [&](const Index& sequence) {
    if (plan) return plan->items_of(sequence).parts;
    const Index keys =
        seen_keys(queries_of(cu_seqlens_q, sequence), load_index((*lengths)(sequence)), a.window);
    return max(ceil_div(keys, a.fixed_split_size), 1);
  };
  const JoinedOutput output(kernel, a, s.total_queries);
  const Ragged queries(s.total_queries, cu_seqlens_q);
  const auto [x, number] = kernel.grid(output.blocks_of_heads(), queries.tiles(1));
  const auto [sequence, block] = queries.tile(number, 1);
  const Block row = queries.of(sequence).block(block, 1), heads = output.heads(x);
  when(row.start() < row.limit(), [&, sequence = sequence] {
    const Index parts = min(parts_of(sequence), most), query = row.start();
    output.join_row(query, heads,
                    {parts, [&](const Block& of_parts) { return P(query, of_parts, heads, all); },
                     [&](const Block& of_parts) { return L(query, of_parts, heads); }});
  });
  return kernel;
}

Program attention_paged_plan(const PagedAttention& attention, int multiprocessors,
                             SourceLocation where) {
  const Caller caller{"attention_paged_plan", where};
  check_paged(attention, caller);
  caller.check_positive("multiprocessors", multiprocessors);
  Program program(caller.function);
  const Dim batch = program.dim("batch");
  const Buffer cu_seqlens_q = program.in("cu_seqlens_q", i32, {batch + 1});
  const Buffer lengths = program.in("lengths", i32, {batch});
  const Buffer plan = program.out("plan", i32, shape_of_plan(batch));
  launch_plan(program.rank(0).stream(), attention, {cu_seqlens_q, lengths, plan},
              places(attention, multiprocessors));
  return program;
}

}  // namespace tilewright::kernels
