#include "kernels/attention_paged_parameters.h"

#include <algorithm>
#include <bit>
#include <string>

#include "kernels/attention_join.h"
#include "kernels/attention_paged_plan.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

void check_paged(const PagedAttention& a, const Caller& caller) {
  check_attention(a, caller);
  caller.check_positive("page", a.page);
  if (a.fixed_split_size < 0 || a.fixed_split_size % kKeysOfBlock != 0) {
    caller.refuse("fixed_split_size is " + std::to_string(a.fixed_split_size),
                  "take a multiple of " + std::to_string(kKeysOfBlock) +
                      " keys, or 0 to divide keys so that they fill the GPU");
  }
  if (a.quantised && a.scales != 1 && a.scales != a.kv_heads) {
    caller.refuse(
        "scales is " + std::to_string(a.scales) + ", and kv_heads is " + std::to_string(a.kv_heads),
        "take 1 for all heads, or one for each of them");
  }
  if (!a.latent) return;
  if (a.kv_heads != 1) {
    caller.refuse("kv_heads is " + std::to_string(a.kv_heads) + " of latent attention",
                  "set kv_heads to 1: all heads share the latent keys");
  }
  if (a.dim_v > a.dim) {
    caller.refuse("dim_v is " + std::to_string(a.dim_v) + ", and dim is " + std::to_string(a.dim),
                  "a latent key's first dim_v elements are its value: take no more than it has");
  }
  if (a.quantised) {
    caller.refuse("latent and quantised are both set", "leave one of them out");
  }
}

void check_undivided(const PagedAttention& a, const Caller& caller) {
  if (a.fixed_split_size == 0) return;
  caller.refuse("fixed_split_size is " + std::to_string(a.fixed_split_size) +
                    ", and this schedule divides no keys",
                "take one that divides them, or leave fixed_split_size out");
}

DType dtype_of_keys(const PagedAttention& a) {
  return plan_case("keys of e4m3", a.quantised) ? f8e4m3 : a.dtype;
}

namespace {

std::vector<Tensor> declare_table(Kernel& kernel, const PagedShapes& s, const PagedAttention& a) {
  if (!plan_case("a table in two vectors", a.csr)) {
    return {kernel.in("block_table", i32, {s.batch, s.max_pages})};
  }
  const Tensor indptr = kernel.in("indptr", i32, {s.batch + 1});
  return {indptr, kernel.in("indices", i32, {s.max_pages})};
}

}  // namespace

HeadScale::HeadScale(const std::optional<Tensor>& scales, const Index& number) {
  if (scales) scale_ = load((*scales)(Block(number, 1, number + 1))).reshape({1, 1});
}

PagedRows::PagedRows(const PagedAttention& a, int rows)
    : PagedRows(
          a, rows,
          std::min(static_cast<int>(std::bit_ceil(static_cast<unsigned>(a.heads / a.kv_heads))),
                   rows)) {}

PagedRows::PagedRows(const PagedAttention& a, int rows, int heads) : rows(rows), heads(heads) {
  const int group = a.heads / a.kv_heads;
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
      table(declare_table(kernel, *this, a)),
      K(a.latent ? kernel.in("KV", a.dtype, of_latent_keys(a.dim))
                 : kernel.in("K", dtype_of_keys(a), of_keys(a.dim))),
      queries(total_queries, cu_seqlens_q),
      a_(a) {
  if (plan_case("latent keys", a.latent)) return;
  V_ = kernel.in("V", dtype_of_keys(a), of_keys(a.dim_v));
  if (!a.quantised) return;
  K_scale_ = kernel.in("K_scale", f32, {a.scales});
  V_scale_ = kernel.in("V_scale", f32, {a.scales});
}

Sequence PagedParameters::keys(const Index& b) const {
  return Sequence(max_pages * page, Index(0), load_index(lengths(b), Counted{}));
}

Mask PagedParameters::mask(const Sequence& queries, const Sequence& keys) const {
  return attention_mask(queries, keys, a_.causal, a_.window);
}

Index PagedParameters::listed(const Index& b, const Index& number) const {
  if (!a_.csr) return load_index(table[0](b, number));
  const Tensor &indptr = table[0], &indices = table[1];
  const Index at = load_index(indptr(b)) + number;
  // Behind a sequence's own pages stand those of the next: it has no such page.
  const Condition is_own = at < load_index(indptr(b + 1));
  return load_index(indices(select(is_own, at, Index(max_pages))));
}

PageSlots PagedParameters::slots(const Block& keys, const Index& listed) const {
  const Index slot = keys.start() % page;
  const Condition is_page = listed != -1;
  const Index end = min(keys.limit() - keys.start() + slot, page);
  return {select(is_page, listed, 0), Block(slot, keys.size(), select(is_page, end, 0))};
}

PageSlots PagedParameters::slot(const Index& key, const Index& listed) const {
  const Index slot = key % page;
  return {listed, Block(slot, 1, slot + 1)};
}

Index PagedParameters::scale_of(const Index& kv_head) const {
  return plan_case("a scale for all heads", a_.scales == 1) ? Index(0) : kv_head;
}

TensorView PagedParameters::keys(const PageSlots& at, const Index& kv_head,
                                 const Selector& columns) const {
  return a_.latent ? K(at.page, at.slots, columns) : K(at.page, at.slots, kv_head, columns);
}

TensorView PagedParameters::values(const PageSlots& at, const Index& kv_head,
                                   const Selector& columns) const {
  return (*V_)(at.page, at.slots, kv_head, columns);
}

QueryTiles::QueryTiles(const PagedShapes& s, const Tensor& cu_seqlens_q, int size)
    : total_queries_(s.total_queries),
      batch_(s.batch),
      cu_seqlens_q_(cu_seqlens_q),
      queries_(s.total_queries, cu_seqlens_q),
      size_(size) {}

Dim QueryTiles::count() const {
  return plan_case("a query a tile", size_ == 1) ? total_queries_ * min(batch_, 1)
                                                 : queries_.tiles(size_);
}

Ragged::Tile QueryTiles::tile(const Index& number) const {
  if (size_ > 1) return queries_.tile(number, size_);
  const Index sequence = last_not_past(cu_seqlens_q_, batch_, number);
  const Index first = load_index(cu_seqlens_q_(sequence));
  // In front of the first sequence there may be queries of none.
  return {sequence, select(number < first, Index(total_queries_), max(number - first, 0))};
}

Block QueryTiles::rows(const Ragged::Tile& tile) const {
  return queries_.of(tile.sequence).block(tile.block, size_);
}

// Each load takes as long as memory takes to answer: so several numbers are looked at at a time.
Index last_not_past(const Tensor& numbers, const Dim& count, const Index& wanted) {
  constexpr int kProbes = 3;
  Cell<Index> low(0), high{Index(count)};
  Cell<Condition> more(Index(1) < high);
  repeat_while(more, [&] {
    const Index first = low, end = high, each = ceil_div(end - first, kProbes + 1);
    std::vector<Index> probes;
    std::vector<Condition> reached;
    for (int i = 1; i <= kProbes; ++i) {
      probes.push_back(min(first + each * i, end - 1));
      reached.push_back(load_index(numbers(probes.back())) <= wanted);
    }
    for (std::size_t i = 0; i < kProbes; ++i) low = select(reached[i], probes[i], low);
    for (std::size_t i = kProbes; i-- > 0;) high = select(reached[i], high, probes[i]);
    more = low + 1 < high;
  });
  return low;
}

Index last_not_past_by_halves(const Tensor& numbers, const Dim& count, const Index& wanted) {
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

PagedItem PagedItem::of(const Slot& slot) {
  return {slot.number(0), slot.number(1), slot.number(2),
          slot.number(3), slot.number(4), slot.number(5)};
}

PagedItems::PagedItems(const PagedParameters& p, const PagedRows& tile, const Dim& parts)
    : tiles_(p, p.cu_seqlens_q, tile.queries()),
      heads_(p.kv_heads * tile.head_blocks),
      parts_(parts) {}

PagedItems::PagedItems(const PagedParameters& p, const PagedRows& tile, const PagedStores& stores,
                       const std::optional<PagedPlan>& plan)
    : PagedItems(p, tile, stores.parts()) {
  if (!plan) return;
  plan_ = &*plan;
  kept_ = stores.kept();
}

Index PagedItems::count() const {
  if (!plan_) return heads_ * parts_ * tiles_.count();
  return plan_->count() * heads_;
}

PagedItem PagedItems::item(const Index& number) const {
  const Index head_block = number % heads_, place = number / heads_;
  if (plan_) {
    const PlannedItem planned = plan_->item(place, {kept_, parts_});
    return {planned.sequence, planned.block, head_block,
            planned.part,     planned.parts, planned.place};
  }
  const auto [sequence, block] = tiles_.tile(place / parts_);
  return {sequence, block, head_block, place % parts_, parts_, 0};
}

PagedWork::PagedWork(const PagedParameters& p, const PagedRows& tile, const PagedItem& item)
    : item(item),
      fixed_split_size(p.fixed_split_size()),
      is_planned(p.is_planned()),
      queries(p.queries.of(item.sequence)),
      keys(p.keys(item.sequence)),
      mask(p.mask(queries, keys)),
      rows(queries.block(item.block, tile.queries())),
      kv_head(item.head_block / tile.head_blocks),
      read_heads(kv_head * p.group + item.head_block % tile.head_blocks * tile.heads, tile.heads,
                 kv_head * p.group + item.head_block % tile.head_blocks * tile.heads + tile.heads),
      heads(read_heads.start(), tile.heads, (kv_head + 1) * p.group) {}

std::pair<Index, Index> PagedWork::blocks_of_part(int size) const {
  const auto [first, last] = mask.visible(rows, keys, size);
  const Index each =
      fixed_split_size > 0 ? Index(fixed_split_size / size) : ceil_div(last - first, item.parts);
  const Index begin = min(first + item.part * each, last);
  const Index end = min(begin + each, last);
  // A plan of shorter lengths has fewer parts.
  if (is_planned) return {begin, select(item.part + 1 == item.parts, last, end)};
  return {begin, end};
}

Kept kept(const PagedAttention& a, KeyParts keys) {
  if (plan_case("keys as a whole", keys == KeyParts::one)) return Kept::whole;
  const bool is_fixed = plan_case("parts of a fixed size", a.fixed_split_size > 0);
  return plan_case("keys by a plan", keys == KeyParts::planned) && !is_fixed ? Kept::by_item
                                                                             : Kept::by_query;
}

PagedStores::PagedStores(Kernel& kernel, const PagedAttention& a, PagedParameters& p, KeyParts keys,
                         const PagedRows& item, const PagedRows& tile)
    : kept_(kernels::kept(a, keys)),
      p_(p),
      tile_(tile),
      tiles_(item.queries() / tile.queries()),
      parts_(1) {
  std::vector<Dim> rows = p.of_rows();
  if (kept_ == Kept::by_query) {
    parts_ = kernel.dim("parts", at_least(1));
    rows = {p.total_queries, parts_, a.heads};
  } else if (kept_ == Kept::by_item) {
    parts_ = kernel.dim("items", at_least(1));
    rows = {parts_, item.queries(), a.heads};
  }
  if (kept_ != Kept::whole) {
    std::vector<Dim> outputs = rows;
    outputs.emplace_back(a.dim_v);
    P_ = kernel.out("P", f32, outputs);
    L_ = kernel.out("L", f32, rows);
  }
  if (kept_ == Kept::by_query) return;
  O_ = kernel.out("O", a.dtype, p.of_queries(a.dim_v));
  LSE_ = kernel.out("LSE", f32, p.of_rows());
  p.declare_sinks(kernel);
}

std::optional<Tile> PagedStores::sinks(const PagedWork& work) const {
  if (kept_ == Kept::by_query) return std::nullopt;
  const std::optional<Tile> sinks = p_.sinks(work.read_heads, tile_.rows);
  if (!sinks || kept_ == Kept::whole) return sinks;
  return where(Tile({1, 1}, work.item.parts) == 1, *sinks, kNone);
}

// A tile of one query has no axis of one: tiles that are spread over warpgroups by columns take no
// other shape.
void PagedStores::each_rows(const PagedWork& work,
                            FunctionRef<void(const Rows&, std::vector<std::int64_t>)> put) const {
  const Index first = work.rows.start(), count = work.rows.limit() - first;
  const Index place = tiles_ > 1 ? work.item.block % tiles_ * tile_.queries() : Index(0);
  if (plan_case("a tile of one query", tile_.queries() == 1)) {
    when(count > 0, [&] { put({first, place}, {tile_.heads}); });
  } else {
    put({work.rows, Block(place, tile_.queries(), place + count)}, {tile_.queries(), tile_.heads});
  }
}

void PagedStores::store_outputs(const PagedWork& work, const Selector& columns,
                                const Tile& outputs) const {
  each_rows(work, [&](const Rows& rows, std::vector<std::int64_t> shape) {
    shape.push_back(outputs.shape()[1]);
    const Tile tile = shape.size() == 2 ? outputs : outputs.reshape(shape);
    const auto whole = [&] { tilewright::store((*O_)(rows.own, work.heads, columns), tile); };
    switch (kept_) {
      case Kept::whole:
        return whole();
      case Kept::by_query:
        return tilewright::store((*P_)(rows.own, work.item.part, work.heads, columns), tile);
      case Kept::by_item:
        return when(work.item.parts == 1, whole, [&] {
          tilewright::store((*P_)(work.item.place, rows.placed, work.heads, columns), tile);
        });
    }
  });
}

void PagedStores::store_sums(const PagedWork& work, const Tile& sums) const {
  each_rows(work, [&](const Rows& rows, const std::vector<std::int64_t>& shape) {
    const Tile tile = sums.reshape(shape);
    const auto whole = [&] { tilewright::store((*LSE_)(rows.own, work.heads), tile); };
    switch (kept_) {
      case Kept::whole:
        return whole();
      case Kept::by_query:
        return tilewright::store((*L_)(rows.own, work.item.part, work.heads), tile);
      case Kept::by_item:
        return when(work.item.parts == 1, whole, [&] {
          tilewright::store((*L_)(work.item.place, rows.placed, work.heads), tile);
        });
    }
  });
}

JoinedOutput::JoinedOutput(Kernel& kernel, const PagedAttention& a, const Dim& total_queries)
    : a_(a),
      rows_(rows_to_join(a.heads, a.dim_v)),
      O_(kernel.out("O", a.dtype, {total_queries, a.heads, a.dim_v})),
      LSE_(kernel.out("LSE", f32, {total_queries, a.heads})) {
  if (plan_case("sinks", a.sinks)) sinks_ = kernel.in("sinks", f32, {a.heads});
}

void JoinedOutput::join_row(const Index& query, const Block& heads,
                            const SoftmaxParts& parts) const {
  std::optional<Tile> of_heads;
  if (sinks_) of_heads = load((*sinks_)(heads)).reshape({1, rows_});
  const JoinedSoftmax joined = join(parts, rows_, a_.dim_v, of_heads);
  store(O_(query, heads, all), joined.outputs.cast(a_.dtype));
  store(LSE_(query, heads), joined.sums.reshape({rows_}));
}

Kernel attention_paged_join(const PagedAttention& a) {
  Kernel kernel("attention_paged_join");
  const Dim total_queries = kernel.dim("queries"), batch = kernel.dim("batch");
  const Dim parts = kernel.dim("parts", at_least(1));
  const Tensor P = kernel.in("P", f32, {total_queries, parts, a.heads, a.dim_v});
  const Tensor L = kernel.in("L", f32, {total_queries, parts, a.heads});
  const Tensor cu_seqlens_q = kernel.in("cu_seqlens_q", i32, {batch + 1});
  const JoinedOutput output(kernel, a, total_queries);
  const auto [x, query] = kernel.grid(output.blocks_of_heads(), total_queries);
  const Block heads = output.heads(x);
  const Condition is_there =
      load_index(cu_seqlens_q(0)) <= query && query < load_index(cu_seqlens_q(Index(batch)));
  when(is_there, [&, query = query] {
    output.join_row(query, heads,
                    {parts, [&](const Block& of_parts) { return P(query, of_parts, heads, all); },
                     [&](const Block& of_parts) { return L(query, of_parts, heads); }});
  });
  return kernel;
}

}  // namespace tilewright::kernels
