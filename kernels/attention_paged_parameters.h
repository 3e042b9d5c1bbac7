#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/attention_join.h"
#include "kernels/attention_parameters.h"
#include "tilewright/asynchronous.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernels/attention_paged.h"

// What every schedule of attention_paged has.
namespace tilewright::kernels {

// Raises for what fits no paged attention.
void check_paged(const PagedAttention& a, const Caller& caller);
// Of a schedule that divides no keys.
void check_undivided(const PagedAttention& a, const Caller& caller);

// As they lie in the cache.
DType dtype_of_keys(const PagedAttention& a);

// The dims that a kernel or a program declares, and the shapes that tensors have by them.
struct PagedShapes {
  template <typename Declarer>
  PagedShapes(Declarer& declarer, const PagedAttention& a)
      : batch(declarer.dim("batch")),
        total_queries(declarer.dim("queries")),
        pages(declarer.dim("pages")),
        max_pages(declarer.dim(a.csr ? "entries" : "max_pages")),
        heads(a.heads),
        kv_heads(a.kv_heads),
        page(a.page) {}
  // Without a cache.
  template <typename Declarer>
  static PagedShapes of_queries_only(Declarer& declarer, const PagedAttention& a) {
    return PagedShapes(a, declarer.dim("batch"), declarer.dim("queries"));
  }
  std::vector<Dim> of_queries(int dim) const { return {total_queries, heads, dim}; }
  std::vector<Dim> of_keys(int dim) const { return {pages, page, kv_heads, dim}; }
  std::vector<Dim> of_latent_keys(int dim) const { return {pages, page, dim}; }
  std::vector<Dim> of_rows() const { return {total_queries, heads}; }
  Dim batch, total_queries, pages;
  Dim max_pages;  // of a sequence, as far as the table has room
  int heads, kv_heads, page;

 private:
  PagedShapes(const PagedAttention& a, const Dim& batch, const Dim& queries)
      : batch(batch),
        total_queries(queries),
        pages(0),
        max_pages(0),
        heads(a.heads),
        kv_heads(a.kv_heads),
        page(a.page) {}
};

// The rows of a tile: heads that share keys, beside each query. They are as many as a power of two,
// so that whole queries fill the tile; those that are too many are no heads, and are not stored.
struct PagedRows {
  PagedRows(const PagedAttention& a, int rows);
  // Of one query alone, where its heads do not fill the tile.
  static PagedRows of_one_query(const PagedAttention& a, int rows) { return {a, rows, rows}; }
  int queries() const { return rows / heads; }
  int rows, heads;
  int head_blocks;  // tiles that the heads take which share keys

 private:
  PagedRows(const PagedAttention& a, int rows, int heads);
};

// The queries of all sequences in tiles of so many, which do not cross from one sequence into the
// next. Of one query a tile, there are as many as queries: a Ragged has another one for each
// sequence, and half of the CTAs that take every n-th tile would get nothing.
class QueryTiles {
 public:
  QueryTiles(const PagedShapes& s, const Tensor& cu_seqlens_q, int size);
  Dim count() const;
  // Past the sequence's last where the tile has no rows.
  Ragged::Tile tile(const Index& number) const;
  Block rows(const Ragged::Tile& tile) const;

 private:
  Dim total_queries_, batch_;
  Tensor cu_seqlens_q_;
  Ragged queries_;
  int size_;
};

// The last of `count` numbers, which ascend, that is not past `wanted`. By halves one of them is
// looked at at a time, else several.
Index last_not_past(const Tensor& numbers, const Dim& count, const Index& wanted);
Index last_not_past_by_halves(const Tensor& numbers, const Dim& count, const Index& wanted);

// Where a run of a sequence's keys lies: slots of one page, or of neighbouring ones all of them.
struct PageSlots {
  Index page;
  Block slots;
};

// What products of elements stand for: so many times what they are.
class HeadScale {
 public:
  // Without scales: themselves.
  HeadScale(const std::optional<Tensor>& scales, const Index& number);
  Tile operator()(const Tile& products) const { return scale_ ? products * *scale_ : products; }

 private:
  std::optional<Tile> scale_;
};

// The tensors that keys and queries are read from.
struct PagedParameters : AttentionScores, PagedShapes {
  PagedParameters(Kernel& kernel, const PagedAttention& a);
  // The keys of sequence b: they count from its first.
  Sequence keys(const Index& b) const;
  Mask mask(const Sequence& queries, const Sequence& keys) const;
  // What the table has for the `number`-th page of sequence b.
  Index listed(const Index& b, const Index& number) const;
  // Of `keys`, which lie in one page, whose number the table has `listed`. Of no page none exist.
  PageSlots slots(const Block& keys, const Index& listed) const;
  // Of one key that there is.
  PageSlots slot(const Index& key, const Index& listed) const;
  TensorView keys(const PageSlots& at, const Index& kv_head, const Selector& columns = all) const;
  // None of latent attention, whose values are columns of its keys.
  TensorView values(const PageSlots& at, const Index& kv_head, const Selector& columns = all) const;
  HeadScale key_scale(const Index& kv_head) const { return {K_scale_, scale_of(kv_head)}; }
  HeadScale value_scale(const Index& kv_head) const { return {V_scale_, scale_of(kv_head)}; }
  int window() const { return a_.window; }
  int fixed_split_size() const { return a_.fixed_split_size; }
  bool is_planned() const { return a_.planned; }
  bool is_latent() const { return a_.latent; }
  void declare_sinks(Kernel& kernel) { AttentionScores::declare_sinks(kernel, a_); }
  Tensor Q, cu_seqlens_q, lengths;
  std::vector<Tensor> table;  // block_table, or indptr and indices
  Tensor K;
  Ragged queries;

 private:
  Index scale_of(const Index& kv_head) const;
  std::optional<Tensor> V_, K_scale_, V_scale_;
  const PagedAttention& a_;
};

// A tile, some queries of a sequence and some heads that share keys, and one of the parts of these
// keys. `place` is where a plan keeps it.
struct PagedItem {
  static PagedItem of(const Slot& slot);
  std::vector<IndexOperand> numbers() const {
    return {sequence, block, head_block, part, parts, place};
  }
  static constexpr int kNumbers = 6;
  Index sequence, block, head_block, part, parts, place;
};

// Where results are kept: they are the output, or a kernel of its own joins the parts of each
// query, or those of each item. A plan bounds the number of items, parts of a fixed size that of a
// query's. Of items the output has those whose keys are not divided.
enum class Kept : std::uint8_t { whole, by_query, by_item };
Kept kept(const PagedAttention& a, KeyParts keys);

class PagedPlan;
class PagedStores;

// The items of a launch, by number. Heads of one sequence come together, since they lie together in
// memory.
class PagedItems {
 public:
  // All parts of a tile, tile by tile.
  PagedItems(const PagedParameters& p, const PagedRows& tile, const Dim& parts);
  // Or as many parts of each sequence as a plan says, where there is one (attention_paged_plan.h).
  PagedItems(const PagedParameters& p, const PagedRows& tile, const PagedStores& stores,
             const std::optional<PagedPlan>& plan);
  Index count() const;
  PagedItem item(const Index& number) const;
  // As a grid, without a plan.
  const Dim& heads() const { return heads_; }
  const Dim& parts() const { return parts_; }
  const QueryTiles& tiles() const { return tiles_; }

 private:
  QueryTiles tiles_;
  Dim heads_, parts_;  // where there is a plan, the room for them
  const PagedPlan* plan_ = nullptr;
  Kept kept_ = Kept::whole;
};

// What an item computes.
struct PagedWork {
  PagedWork(const PagedParameters& p, const PagedRows& tile, const PagedItem& item);
  // Of the blocks of `size` keys that some row sees, those of this part.
  std::pair<Index, Index> blocks_of_part(int size) const;
  TensorView of_queries(const Tensor& Q) const { return Q(rows, read_heads, all); }
  // Of a tile of one query, without an axis of one. A tile without queries has some other's.
  TensorView of_query(const Tensor& Q) const {
    return Q(max(min(rows.start(), rows.limit() - 1), 0), read_heads, all);
  }
  PagedItem item;
  int fixed_split_size;
  bool is_planned;
  Sequence queries, keys;
  Mask mask;
  Block rows;  // queries of the tile
  Index kv_head;
  Block read_heads, heads;  // of the tile, and those of them that are heads
};

class PagedStores {
 public:
  // Of items of such rows, of which tiles of so many are stored at a time: all of them, or those of
  // some queries.
  PagedStores(Kernel& kernel, const PagedAttention& a, PagedParameters& p, KeyParts keys,
              const PagedRows& item, const PagedRows& tile);
  PagedStores(Kernel& kernel, const PagedAttention& a, PagedParameters& p, KeyParts keys,
              const PagedRows& tile)
      : PagedStores(kernel, a, p, keys, tile, tile) {}
  Kept kept() const { return kept_; }
  // Of each query, or of all items together.
  const Dim& parts() const { return parts_; }
  // That the softmax of these rows begins with: of parts, the kernel that joins them does.
  std::optional<Tile> sinks(const PagedWork& work) const;
  // Rows {rows, dim_v} that are divided by their sums, and the logarithms of these, {rows, 1}.
  void store(const PagedWork& work, const Tile& outputs, const Tile& sums) const {
    store_outputs(work, all, outputs);
    store_sums(work, sums);
  }
  void store_outputs(const PagedWork& work, const Selector& columns, const Tile& outputs) const;
  void store_sums(const PagedWork& work, const Tile& sums) const;

 private:
  // Where rows of queries lie: on their own axis, or in an item's place.
  struct Rows {
    Selector own, placed;
  };
  // Calls `put` with the rows, and the first axes of the tile that they are then.
  void each_rows(const PagedWork& work,
                 FunctionRef<void(const Rows&, std::vector<std::int64_t>)> put) const;
  Kept kept_;
  const PagedParameters& p_;
  PagedRows tile_;
  int tiles_;  // of an item
  Dim parts_;
  std::optional<Tensor> P_, L_, O_, LSE_;
};

// What kernels that join parts give: O, LSE, and in sinks, if there are any.
class JoinedOutput {
 public:
  JoinedOutput(Kernel& kernel, const PagedAttention& a, const Dim& total_queries);
  Dim blocks_of_heads() const { return ceil_div(Dim(a_.heads), Dim(rows_)); }
  Block heads(const Index& number) const { return Dim(a_.heads).block(number, rows_); }
  void join_row(const Index& query, const Block& heads, const SoftmaxParts& parts) const;

 private:
  const PagedAttention& a_;
  int rows_;
  Tensor O_, LSE_;
  std::optional<Tensor> sinks_;
};

// Joins as many parts of each query: in P, L, cu_seqlens_q; out O, LSE; in sinks, if there are any.
Kernel attention_paged_join(const PagedAttention& a);

}  // namespace tilewright::kernels
