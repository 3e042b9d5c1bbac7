#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// Raises for what fits no attention.
void check_attention(const Attention& a, const Caller& caller);

// What keys and values, or rows, may take of L2. Less than is measured is a case of a plan: heads
// are then taken in several groups.
int l2_bytes(const Attention& a);

// What an explicit schedule that refuses something adds to its fix: products of the tile form's own
// schedule take no more.
inline constexpr const char* kOtherTarget = ", or take the target cpu";

// Raises unless the products of an explicit schedule take the dims, multiples of 16 up to `widest`.
// `otherwise` ends the fix.
void check_dims(const Attention& a, int widest, const Caller& caller,
                const std::string& otherwise = kOtherTarget);
// The same of the elements: bf16 or f16.
void check_elements(const Attention& a, const Caller& caller);

// That of one sequence, whose lengths are those of `queries` and `keys`.
Mask attention_mask(const Sequence& queries, const Sequence& keys, bool is_causal, int window);

// What is the same in every attention that is checked.
class AttentionScores {
 public:
  explicit AttentionScores(const Attention& a);
  int group;             // query heads that share a K and V head
  double scale;          // of the softmax
  double product_scale;  // of Q K^T
  // Q K^T as the softmax takes it: with a soft cap, the part of the cap that it is.
  Tile capped(const Tile& products) const;
  bool is_capped() const;
  // The head's sink {1, 1}, if there are sinks.
  std::optional<Tile> sink(const Index& head) const;
  // The same of `rows` rows (query, head), the head fastest: {rows, 1}, or {1, 1} for one head.
  std::optional<Tile> sinks(const Block& heads, std::int64_t rows) const;

 protected:
  void declare_sinks(Kernel& kernel, const Attention& a);

 private:
  double softcap_;
  int heads_;
  std::optional<Tensor> sinks_;
};

// The dims of sequences of one length, which a kernel declares, or a program for its kernels, and
// the shapes that tensors have by them. Without queries, or without keys, theirs have no value.
struct BatchShapes {
  template <typename Declarer>
  BatchShapes(Declarer& declarer, const Attention& a, bool has_queries = true, bool has_keys = true)
      : batch(declarer.dim("batch")),
        queries(has_queries ? declarer.dim("queries") : Dim(0)),
        keys(has_keys ? declarer.dim("keys") : Dim(0)),
        heads(a.heads),
        kv_heads(a.kv_heads) {}
  std::vector<Dim> of_queries(int dim) const { return {batch, queries, heads, dim}; }
  std::vector<Dim> of_keys(int dim) const { return {batch, keys, kv_heads, dim}; }
  // The rows are rounded up to a multiple.
  std::vector<Dim> of_rows(int multiple = 1) const {
    return {batch, heads, ceil_div(queries, multiple) * multiple};
  }
  // Blocks of so many rows of all heads, and of so many keys.
  Dim kept_blocks(int size) const { return batch * heads * ceil_div(queries, size); }
  Dim kept_key_blocks(int size) const { return batch * kv_heads * ceil_div(keys, size); }
  // Of a sequence in the mean.
  Dim mean_queries() const { return queries; }
  Dim batch, queries, keys;
  int heads, kv_heads;
};

// The same of packed sequences, whose first rows are in vectors.
struct PackedShapes {
  template <typename Declarer>
  PackedShapes(Declarer& declarer, const Attention& a, bool has_queries = true,
               bool has_keys = true)
      : batch(declarer.dim("batch")),
        total_queries(has_queries ? declarer.dim("total_queries") : Dim(0)),
        total_keys(has_keys ? declarer.dim("total_keys") : Dim(0)),
        heads(a.heads),
        kv_heads(a.kv_heads) {}
  std::vector<Dim> of_queries(int dim) const { return {total_queries, heads, dim}; }
  std::vector<Dim> of_keys(int dim) const { return {total_keys, kv_heads, dim}; }
  // With a multiple, each sequence has whole blocks of so many rows.
  std::vector<Dim> of_rows(int multiple = 1) const {
    if (multiple == 1) return {heads, total_queries};
    return {heads, (total_queries / multiple + batch) * multiple};
  }
  Dim kept_blocks(int size) const { return heads * (total_queries / size + batch); }
  Dim kept_key_blocks(int size) const { return kv_heads * (total_keys / size + batch); }
  Dim mean_queries() const { return total_queries / max(batch, 1); }
  std::vector<Dim> of_first_rows() const { return {batch + 1}; }
  Dim batch, total_queries, total_keys;
  int heads, kv_heads;
};

// Where a kernel's keys and values come from: its caller, or ranks that write them meanwhile.
enum class KeysFrom { caller, ranks };

// The parameters that every schedule of attention_forward declares.
struct AttentionParameters : AttentionScores, BatchShapes {
  struct Tensors {
    Tensor Q, K, V, O, LSE;
  };
  AttentionParameters(Kernel& kernel, const Attention& a, KeysFrom from = KeysFrom::caller);
  AttentionParameters(Kernel& kernel, const Attention& a, const BatchShapes& shapes,
                      const Tensors& tensors);
  Tensor Q, K, V, O, LSE;
  Mask mask;
};

// The same of attention_varlen_forward. `mask` is that of one sequence.
struct VarlenParameters : AttentionScores, PackedShapes {
  VarlenParameters(Kernel& kernel, const Attention& a, KeysFrom from = KeysFrom::caller);
  Mask mask(const Sequence& queries, const Sequence& keys) const;
  Tensor Q, K, V, cu_seqlens_q, cu_seqlens_k, O, LSE;
  Ragged queries, keys;

 private:
  bool causal_;
  int window_;
};

}  // namespace tilewright::kernels
