#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "kernels/attention_parameters.h"
#include "tilewright/kernels/attention_paged.h"

// What every schedule of attention_paged has.
namespace tilewright::kernels {

// Raises for what fits no paged attention.
void check_paged(const PagedAttention& a, const Caller& caller);

// The dims that a kernel or a program declares, and the shapes that tensors have by them.
struct PagedShapes {
  template <typename Declarer>
  PagedShapes(Declarer& declarer, const PagedAttention& a)
      : batch(declarer.dim("batch")),
        total_queries(declarer.dim("queries")),
        pages(declarer.dim("pages")),
        max_pages(declarer.dim("max_pages")),
        heads(a.heads),
        kv_heads(a.kv_heads),
        page(a.page) {}
  std::vector<Dim> of_queries(int dim) const { return {total_queries, heads, dim}; }
  std::vector<Dim> of_keys(int dim) const { return {pages, page, kv_heads, dim}; }
  std::vector<Dim> of_rows() const { return {total_queries, heads}; }
  Dim batch, total_queries, pages, max_pages;
  int heads, kv_heads, page;
};

// The rows of a tile: heads that share keys, beside each query. They are as many as a power of two,
// so that whole queries fill the tile; those that are too many are no heads, and are not stored.
struct PagedRows {
  PagedRows(const PagedAttention& a, int rows);
  int queries() const { return rows / heads; }
  int rows, heads;
  int head_blocks;  // tiles that the heads take which share keys
};

// Where a run of a sequence's keys lies: slots of one page.
struct PageSlots {
  Index page;
  Block slots;
};

// The tensors that keys and queries are read from.
struct PagedParameters : AttentionScores, PagedShapes {
  PagedParameters(Kernel& kernel, const PagedAttention& a);
  // The keys of sequence b: they count from its first.
  Sequence keys(const Index& b) const;
  Mask mask(const Sequence& queries, const Sequence& keys) const;
  // Of `keys`, which lie in one page, whose number the table has `listed`. Of no page none exist.
  PageSlots slots(const Block& keys, const Index& listed) const;
  void declare_sinks(Kernel& kernel) { AttentionScores::declare_sinks(kernel, a_); }
  Tensor Q, cu_seqlens_q, lengths, block_table, K, V;
  Ragged queries;

 private:
  const PagedAttention& a_;
};

// A tile: some queries of a sequence, some heads that share keys, and one part of these.
struct PagedItem {
  Index sequence, block, head_block, part;
};

// The items of a launch, by number: tiles of sequences, of each all parts, of each all heads.
// Heads of one sequence come together, since they lie together in memory.
struct PagedItems {
  Dim count() const { return heads * parts * tiles; }
  PagedItem item(const Index& number) const;
  Dim heads, parts, tiles;
  const Ragged* queries;
  int queries_of_tile;
};
PagedItems items_of(const PagedParameters& p, const PagedRows& tile, const Dim& parts);

// What an item computes.
struct PagedWork {
  PagedWork(const PagedParameters& p, const PagedRows& tile, const PagedItem& item);
  // Of the blocks of `size` keys that some row sees, those of this part.
  std::pair<Index, Index> blocks_of_part(const Dim& parts, int size) const;
  TensorView of_queries(const Tensor& Q) const { return Q(rows, read_heads, all); }
  PagedItem item;
  Sequence queries, keys;
  Mask mask;
  Block rows;  // queries of the tile
  Index kv_head;
  Block read_heads, heads;  // of the tile, and those of them that are heads
};

// Where results go: to the output, or to the parts that a kernel of its own joins.
class PagedStores {
 public:
  PagedStores(Kernel& kernel, const PagedAttention& a, PagedParameters& p, KeyParts keys);
  const Dim& parts() const { return parts_; }
  // That the softmax of these rows begins with: of parts, the kernel that joins them does.
  std::optional<Tile> sinks(const PagedParameters& p, const PagedWork& work,
                            const PagedRows& tile) const {
    return whole_ ? p.sinks(work.read_heads, tile.rows) : std::nullopt;
  }
  // Rows {rows, dim_v} that are divided by their sums, and the logarithms of these, {rows, 1}.
  void store(const PagedWork& work, const PagedRows& tile, const Tile& outputs,
             const Tile& sums) const;

 private:
  bool whole_;
  Dim parts_;
  Tensor O_, LSE_;
};

// Joins the parts: in P, L, cu_seqlens_q; out O, LSE; in sinks, if there are any.
Kernel attention_paged_join(const PagedAttention& a);

}  // namespace tilewright::kernels
