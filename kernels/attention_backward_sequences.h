#pragma once

#include <optional>
#include <vector>

#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"

// The sequences of the gradients of attention, of one length or packed, and the blocks of their
// rows.
namespace tilewright::kernels {

// What a kernel is about. The other's dims have no value.
enum class Of { queries, keys, both };

// Sequences of one length, and what a block of the grid is of them. What a kernel has for each row
// and keeps for others, it may keep in whole blocks of `multiple` rows.
class Batch : public BatchShapes {
 public:
  using Shapes = BatchShapes;
  // Who writes all rows of sequences writes all that is kept of rows.
  static constexpr bool kFills = true;
  Batch(Kernel& kernel, const Attention& a, Of of, int = 1)
      : Shapes(kernel, a, of != Of::keys, of != Of::queries), a_(a) {}
  // Of a program: what its kernels take behind Q, K and V.
  static std::vector<Buffer> first_rows(Program&, const Shapes&) { return {}; }

  struct One {
    Index sequence;
    Sequence queries, keys;
    Mask mask;
    TensorView rows(const Tensor& tensor, const Block& rows, const Index& head,
                    const Selector& columns = all) const {
      return tensor(sequence, rows, head, columns);
    }
    TensorView row_numbers(const Tensor& tensor, const Block& rows, const Index& head) const {
      return tensor(sequence, head, rows);
    }
    // Of what is kept in whole blocks.
    TensorView kept(const Tensor& tensor, const Block& rows, const Index& head) const {
      return row_numbers(tensor, rows, head);
    }
    TensorView kept_block(const Tensor& tensor, const Block& block, const Block& one_head) const {
      return tensor(sequence, one_head, block);
    }
    // Among those of a head that are kept, the block that is the sequence's own `block`.
    Index kept_number(const Index& block) const { return block; }
    // A block of queries that may reach beyond the last one: what is behind is read as zero.
    Block queries_or_zeros(const Index& row, int size) const {
      return Block(row * size, size, row * size + size);
    }
  };
  One of(const Index& sequence) const {
    return {sequence, queries, keys, attention_mask(queries, keys, a_.causal, a_.window)};
  }
  // Among those of all heads.
  Index kept_number(const One& one, const Index& head, const Index& block, int size) const {
    return (one.sequence * heads + head) * ceil_div(queries, size) + block;
  }
  Index head_of_kept(const One& one, const Index& kept, int size) const {
    return kept / ceil_div(queries, size) - one.sequence * heads;
  }
  // The same of blocks of keys.
  Index kept_keys(const One& one, const Index& kv_head, const Index& block, int size) const {
    return (one.sequence * kv_heads + kv_head) * ceil_div(keys, size) + block;
  }

  struct Place : One {
    Index head;
    Block block;  // of queries, or of keys
    Index number, part;
  };
  // In `parts` each.
  Place block_of_queries(Kernel& kernel, int size, int parts = 1) const {
    const auto [x, h, b] = kernel.grid(ceil_div(queries, size) * parts, heads, batch);
    return query_place(of(b), h, size, x, parts);
  }
  // The last ones first: what a kernel before has written last is still in L2.
  Place last_block_of_queries(Kernel& kernel, int size, int parts) const {
    const Dim blocks = ceil_div(queries, size) * parts;
    const auto [x, h, b] = kernel.grid(blocks, heads, batch);
    return query_place(of(batch - 1 - b), heads - 1 - h, size, blocks - 1 - x, parts);
  }
  // `used`: 1, or 0 for an empty grid.
  Place block_of_keys(Kernel& kernel, int size, const Dim& used = 1) const {
    const auto [x, h, b] = kernel.grid(ceil_div(keys, size) * used, kv_heads, batch);
    return {of(b), h, keys.block(x, size), x, 0};
  }
  // Calls `body` with blocks of all rows of a head that are kept; `queries` is how many those are.
  template <typename Body>
  void for_kept_rows(const Index& head, int size, const Body& body) const {
    for (Index b : range(batch)) {
      for (Block rows : blocks(queries, size)) {
        body([&](const Tensor& tensor) { return tensor(b, head, rows); });
      }
    }
  }

 private:
  Place query_place(const One& one, const Index& head, int size, const Index& number,
                    int parts) const {
    const Index block = number / parts;
    return {one, head, queries.block(block, size), block, number % parts};
  }

  const Attention& a_;
};

// Packed sequences. Of what is kept in blocks, each has whole blocks of its own.
class Packed : public PackedShapes {
 public:
  using Shapes = PackedShapes;
  static constexpr bool kFills = false;  // there are blocks that no sequence has
  Packed(Kernel& kernel, const Attention& a, Of of, int multiple = 1,
         BlocksFrom blocks = BlocksFrom::sequence)
      : Shapes(kernel, a, of != Of::keys, of != Of::queries), a_(a), multiple_(multiple) {
    const auto given = [&](const char* name) { return kernel.in(name, i32, of_first_rows()); };
    if (of != Of::keys) queries_.emplace(total_queries, given("cu_seqlens_q"), blocks);
    if (of != Of::queries) keys_.emplace(total_keys, given("cu_seqlens_k"), blocks);
  }
  static std::vector<Buffer> first_rows(Program& program, const Shapes& shapes) {
    return {program.in("cu_seqlens_q", i32, shapes.of_first_rows()),
            program.in("cu_seqlens_k", i32, shapes.of_first_rows())};
  }

  struct One {
    Index sequence;
    Sequence queries, keys;
    Mask mask;
    int multiple;
    TensorView rows(const Tensor& tensor, const Block& rows, const Index& head,
                    const Selector& columns = all) const {
      return tensor(rows, head, columns);
    }
    TensorView row_numbers(const Tensor& tensor, const Block& rows, const Index& head) const {
      return tensor(head, rows);
    }
    TensorView kept(const Tensor& tensor, const Block& rows, const Index& head) const {
      if (multiple == 1) return row_numbers(tensor, rows, head);
      const Index moved = kept_number(0) * multiple - queries.begin();
      return tensor(head, Block(rows.start() + moved, rows.size(), rows.limit() + moved));
    }
    TensorView kept_block(const Tensor& tensor, const Block& block, const Block& one_head) const {
      return tensor(one_head, block);
    }
    // Behind the last query the next sequence begins, which no block may reach.
    Block queries_or_zeros(const Index& row, int size) const { return queries.block(row, size); }
    // As Ragged::tile numbers them, but that those before the first sequence count.
    Index kept_number(const Index& block) const {
      return queries.begin() / multiple + sequence + block;
    }
  };
  One of(const Index& sequence) const {
    Sequence queries, keys;
    if (queries_) queries = queries_->of(sequence);
    if (keys_) keys = keys_->of(sequence);
    if (!queries_ || !keys_) return {sequence, queries, keys, everything(), multiple_};
    return {sequence, queries, keys, attention_mask(queries, keys, a_.causal, a_.window),
            multiple_};
  }
  Index kept_number(const One& one, const Index& head, const Index& block, int size) const {
    return head * (total_queries / size + batch) + one.kept_number(block);
  }
  Index head_of_kept(const One&, const Index& kept, int size) const {
    return kept / (total_queries / size + batch);
  }
  Index kept_keys(const One& one, const Index& kv_head, const Index& block, int size) const {
    return kv_head * (total_keys / size + batch) + one.keys.begin() / size + one.sequence + block;
  }

  struct Place : One {
    Index head;
    Block block;
    Index number, part;
  };
  Place block_of_queries(Kernel& kernel, int size, int parts = 1) const {
    const auto [x, h] = kernel.grid(queries_->tiles(size) * parts, heads);
    return query_place(h, size, x, parts);
  }
  Place last_block_of_queries(Kernel& kernel, int size, int parts) const {
    const Dim blocks = queries_->tiles(size) * parts;
    const auto [x, h] = kernel.grid(blocks, heads);
    return query_place(heads - 1 - h, size, blocks - 1 - x, parts);
  }
  Place block_of_keys(Kernel& kernel, int size, const Dim& used = 1) const {
    const auto [tile, h] = kernel.grid(keys_->tiles(size) * used, kv_heads);
    const auto [b, x] = keys_->tile(tile, size);
    const One one = of(b);
    return {one, h, one.keys.block(x, size), x, 0};
  }
  // `total_queries` is how many they are. Of whole blocks of several rows all are read.
  template <typename Body>
  void for_kept_rows(const Index& head, int size, const Body& body) const {
    const auto part_of = [&](const Block& rows) {
      body([&](const Tensor& tensor) { return tensor(head, rows); });
    };
    for (Block rows : blocks(total_queries, size)) part_of(rows);
  }
  const Ragged& query_sequences() const { return *queries_; }
  const Ragged& key_sequences() const { return *keys_; }

 private:
  Place query_place(const Index& head, int size, const Index& number, int parts) const {
    const auto [b, block] = queries_->tile(number / parts, size);
    const One one = of(b);
    return {one, head, one.queries.block(block, size), block, number % parts};
  }

  const Attention& a_;
  int multiple_;
  std::optional<Ragged> queries_, keys_;
};

}  // namespace tilewright::kernels
