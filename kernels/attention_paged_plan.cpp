#include "kernels/attention_paged_plan.h"

#include <optional>
#include <vector>

#include "kernels/attention_join.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

constexpr int kSequences = 64;  // of a step
// A plan chooses among so many divisions: half an item of a place, one, one and a half, and so on.
constexpr int kDivisions = 8;
constexpr int kMostItemsOfPlace = kDivisions / 2;

// What a part takes beside its keys, in blocks of them: it begins, and is written and joined.
int blocks_of_joining(const PagedAttention& a) {
  return plan_case("parts of wide rows", a.latent) ? 4 : 1;
}

Tile ceil_div(const Tile& a, const Tile& b) { return (a + b - 1) / b; }

// Of some sequences the tiles, and the blocks of keys that their queries see at most.
struct Counts {
  Tile tiles, blocks;
};
// Of each tile, where none may have more blocks than its share.
Tile parts_of(const Counts& c, const Tile& share) { return max(ceil_div(c.blocks, share), 1); }

// Keys that the queries of a sequence see, at most. What a window shows begins inside of a block.
template <typename Number>
Number seen_keys(const Number& queries, const Number& keys, int window) {
  return window > 0 ? min(keys, queries + (window + kKeysOfBlock)) : keys;
}

Index queries_of(const Tensor& cu_seqlens_q, const Index& sequence) {
  return load_index(cu_seqlens_q(sequence + 1)) - load_index(cu_seqlens_q(sequence));
}

}  // namespace

std::vector<Dim> shape_of_plan(const Dim& batch) { return {batch + 1}; }

Dim places(const PagedAttention& a, const Dim& multiprocessors) {
  return a.latent ? multiprocessors : multiprocessors * kLanesOfPages;
}

Dim places_of_head(int kv_heads, const PagedRows& tile, const Dim& places) {
  return max(places / (kv_heads * tile.head_blocks), 1);
}

// No item is longer than if all were as many of one length; each tile has one that is shorter.
Dim most_items(const PagedShapes& s, const PagedRows& tile, const Dim& places) {
  const Dim wanted = kMostItemsOfPlace * places_of_head(s.kv_heads, tile, places);
  return s.total_queries / tile.queries() + s.batch + wanted;
}

// The share by which the GPU is done first, and of such shares the largest, which divides least.
// Items take places as these become free. So the last one ends no later than if all were as long as
// the longest, and no later than if the longest began when all others are done.
class BestShare {
 public:
  BestShare(const Tile& all_blocks, const Scalar& places)
      : places_(full({1, 1}, places)),
        of_place_(ceil_div(all_blocks, places_)),
        shares_(max(ceil_div(all_blocks * 2, (iota({kDivisions, 1}, 0) + 1) * places_), 1)),
        items_(zeros({kDivisions, 1}, i32)),
        parts_(zeros({kDivisions, 1}, i32)),
        longest_(full({kDivisions, 1}, 1, i32)) {}
  void count(const Counts& c) {
    const Tile parts = parts_of(c, shares_), items = c.tiles * parts;
    items_ = items_ + reduce_sum(items, 1);
    parts_ = parts_ + reduce_sum(where(parts > 1, items, 0), 1);
    longest_ = max(longest_, reduce_max(where(items > 0, ceil_div(c.blocks, parts), 0), 1));
  }
  Tile best(int blocks_of_joining) const {
    const Tile longest = longest_;
    // More rounds are more than the other bound, and may be more than 32 bits hold.
    const Tile rounds = min(ceil_div(items_, places_), of_place_ / longest + 2);
    const Tile end = min(rounds * longest, of_place_ + longest);
    const Tile time = end + ceil_div(parts_, places_) * blocks_of_joining;
    return reduce_max(where(time == reduce_min(time, 0), shares_, 0), 0);
  }

 private:
  Tile places_, of_place_, shares_;
  Var items_, parts_, longest_;  // of each share; parts of tiles that are divided
};

Kernel plan_kernel(const PagedAttention& a, const PagedRows& tile) {
  Kernel kernel("attention_paged_plan");
  const Dim batch = kernel.dim("batch");
  const Tensor cu_seqlens_q = kernel.in("cu_seqlens_q", i32, {batch + 1});
  const Tensor lengths = kernel.in("lengths", i32, {batch});
  const Tensor plan = kernel.out("plan", i32, shape_of_plan(batch));
  std::optional<Scalar> places;
  if (a.fixed_split_size == 0) places = kernel.scalar("places", i32);
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
  if (places) {
    Var all_blocks{zeros({1, 1}, i32)};
    for (Index step : range(steps)) {
      const Counts c = counts(step);
      all_blocks = all_blocks + reduce_sum(c.tiles * c.blocks, 1);
    }
    BestShare shares(all_blocks, *places);
    for (Index step : range(steps)) shares.count(counts(step));
    share = shares.best(blocks_of_joining(a));
  }

  Var before{zeros({1, 1}, i32)}, most{zeros({1, 1}, i32)};
  for (Index step : range(steps)) {
    const Counts c = counts(step);
    const Tile parts = parts_of(c, share), items = c.tiles * parts;
    most = max(most, reduce_max(where(c.tiles > 0, parts, 0), 1));
    const Tile is_before = iota({kSequences, 1}, 0) >= iota({1, kSequences}, 1);
    const Tile up_to = reduce_sum(where(is_before, items, 0), 1) + before;
    store(plan(Block(step * kSequences + 1, kSequences, batch + 1)), up_to.reshape({kSequences}));
    before = before + reduce_sum(items, 1);
  }
  store(plan(Block(0, 1, 1)), where(most > 1, full({1, 1}, 0, i32), kNothingDivided).reshape({1}));
  return kernel;
}

void launch_plan(const Stream& stream, const PagedAttention& a, const std::vector<Part>& tensors,
                 const Dim& places) {
  const PagedRows tile = rows_of_plan(a);
  std::vector<RunNumber> scalars;
  if (a.fixed_split_size == 0) scalars.push_back(places_of_head(a.kv_heads, tile, places));
  stream.launch(plan_kernel(a, tile), tensors, scalars);
}

PagedPlan::PagedPlan(Kernel& kernel, const Tensor& cu_seqlens_q, const Dim& batch,
                     int queries_of_tile, bool is_given)
    : plan_(kernel.in("plan", i32, shape_of_plan(batch))),
      cu_seqlens_q_(cu_seqlens_q),
      batch_(batch),
      queries_of_tile_(queries_of_tile),
      is_given_(plan_case("a plan of several layers", is_given)) {}

Index PlanRoom::parts(const Index& first, const Index& tiles, const Index& planned) const {
  if (kept_ == Kept::by_query) return min(planned, room_);
  return min(planned, max((Index(room_) - first) / max(tiles, 1), 1));
}

std::optional<PagedPlan> PagedPlan::declared(Kernel& kernel, const PagedParameters& p,
                                             const PagedRows& tile, KeyParts keys) {
  if (keys != KeyParts::planned) return std::nullopt;
  PagedPlan plan(kernel, p.cu_seqlens_q, p.batch, tile.queries(), p.is_planned());
  plan.is_searched_by_halves_ = p.is_latent() && !p.is_planned();
  return plan;
}

PlannedItem PagedPlan::item(const Index& number, const PlanRoom& room) const {
  const Index sequence = is_searched_by_halves_ ? last_not_past_by_halves(plan_, batch_, number)
                                                : last_not_past(plan_, batch_, number);
  const auto [first, tiles, planned, parts] = items_of(sequence, room);
  const Index own = max(number - first, 0), block = own / planned, part = own % planned;
  // A part that there is no room for is one of a tile that does not exist.
  const Index kept = is_given_ ? select(part < parts, block, tiles) : block;
  return {sequence, kept, part, parts, first + block * parts + part};
}

Condition PagedPlan::divides() const { return load_index(plan_(0)) != kNothingDivided; }

Index PagedPlan::first_of(const Index& sequence) const {
  return max(load_index(plan_(sequence)), 0);
}

PagedPlan::Items PagedPlan::items_of(const Index& sequence, const PlanRoom& room) const {
  const Index tiles = ceil_div(queries_of(cu_seqlens_q_, sequence), queries_of_tile_);
  const Index end = load_index(plan_(sequence + 1));
  const auto items_from = [&](const Index& first) {
    const Index planned = (end - first) / max(tiles, 1);
    return Items{first, tiles, planned, planned};
  };
  Items items = items_from(first_of(sequence));
  if (is_given_) {
    // A plan of other queries has no such element, for whoever checks indices.
    const Condition is_of_these =
        items.planned * tiles == end - items.first && (items.planned > 0 || tiles == 0);
    items = items_from(first_of(select(is_of_these, sequence, Index(batch_) + 1)));
  }
  const Index planned = max(items.planned, 1);
  return {items.first, tiles, planned,
          is_given_ ? room.parts(items.first, tiles, planned) : planned};
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
  const QueryTiles queries(s, cu_seqlens_q, tile.queries());
  const auto [x, number] = kernel.grid(output.blocks_of_heads(), queries.count());
  // Asked first, since what follows is a chain of loads that nobody needs where nothing is divided.
  when(plan.divides(), [&, x = x, number = number] {
    const auto [sequence, block] = queries.tile(number);
    const Block rows = queries.rows({sequence, block}), heads = output.heads(x);
    const PagedPlan::Items own = plan.items_of(sequence, {Kept::by_item, items});
    const Index parts = own.parts, first = own.first + block * parts;
    const auto kept = [&](const Block& of_parts) {
      return Block(first + of_parts.start(), of_parts.size(), first + of_parts.limit());
    };
    // Whose keys are not divided has its output already.
    const Index end = select(parts > 1, min(rows.start() + tile.queries(), rows.limit()), 0);
    for (Index query : range(rows.start(), end)) {
      const Index row = query - rows.start();
      output.join_row(
          query, heads,
          {parts, [&](const Block& of_parts) { return P(kept(of_parts), row, heads, all); },
           [&](const Block& of_parts) { return L(kept(of_parts), row, heads); }});
    }
  });
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
    if (plan) return plan->items_of(sequence, {Kept::by_query, most}).parts;
    const Index keys = seen_keys(queries_of(cu_seqlens_q, sequence),
                                 load_index((*lengths)(sequence), Counted{}), a.window);
    return min(max(ceil_div(keys, a.fixed_split_size), 1), most);
  };
  const JoinedOutput output(kernel, a, s.total_queries);
  const QueryTiles queries(s, cu_seqlens_q, 1);
  const auto [x, number] = kernel.grid(output.blocks_of_heads(), queries.count());
  const Ragged::Tile own = queries.tile(number);
  const Block row = queries.rows(own), heads = output.heads(x);
  when(row.start() < row.limit(), [&] {
    const Index parts = parts_of(own.sequence), query = row.start();
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
