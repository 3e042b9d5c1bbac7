#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention_paged_copies.h"
#include "kernels/attention_paged_parameters.h"
#include "kernels/attention_paged_program.h"
#include "kernels/attention_sm90_forward.h"

// Paged attention of chunks of prompts, whose tiles have so many rows that products are what
// counts: the tiles of attention_varlen_forward_sm90, whose blocks of keys come page by page.
namespace tilewright::kernels {
namespace {

constexpr int kMostCopies = 4;  // of a block

struct ChunkParameters : PagedParameters {
  ChunkParameters(Kernel& kernel, const Attention&, const PagedAttention& a)
      : PagedParameters(kernel, a),
        O(kernel.out("O", a.dtype, of_queries(a.dim_v))),
        LSE(kernel.out("LSE", f32, of_rows())) {
    declare_sinks(kernel);
  }
  Tensor O, LSE;
};

class ChunkOrder : public PackedTiles<ChunkParameters> {
 public:
  static constexpr bool kKeysInPages = true;

  ChunkOrder(const ChunkParameters& p, const Attention& a, const Sm90Plan& plan)
      : PackedTiles(p, a, plan), copies_(p, a.block_k) {}
  Work work(const Place& place) const {
    Work work = work_on(place, p_.keys(place.sequence));
    work.table_row = place.sequence;
    return work;
  }
  TensorView sums(const Work& work, const Block& rows) const { return p_.LSE(rows, work.heads); }
  const PageCopies& copies() const { return copies_; }
  // Calls `bring` with the copies of each block that the tile sees, of the last one first.
  template <typename Bring>
  void each_block(const Work& work, const KeyBlocks& blocks, const Bring& bring) const {
    const auto descending = [end = blocks.last - 1 + blocks.first](const Index& j) {
      return end - j;
    };
    copies_.each_block({*work.table_row, work.keys, work.mask, work.queries, blocks.first,
                        blocks.last, descending},
                       [&](const CopiedBlock& block) { bring(block.copies, block.missing[0]); });
  }

 private:
  PageCopies copies_;
};

}  // namespace

Program attention_paged_chunks_sm90(const PagedAttention& attention, SourceLocation where) {
  const Caller caller{"attention_paged_chunks_sm90", where};
  check_paged(attention, caller);
  check_undivided(attention, caller);
  if (attention.quantised || attention.latent) {
    caller.refuse("quantised or latent is set", "take attention_paged_sm90, or attention_paged");
  }
  if (attention.page % PageCopies::kRowUnit != 0) {
    caller.refuse("page is " + std::to_string(attention.page),
                  "take a multiple of 8 slots, or attention_paged");
  }
  PagedAttention a = attention;
  static_cast<Attention&>(a) = with_sm90_varlen_blocks(a, where);
  // The numbers of a block's pages are in registers of the warp that loads.
  a.block_k = std::min(a.block_k, kMostCopies * std::gcd(a.page, a.block_k));
  Sm90Plan plan = sm90_plan(a, ChunkOrder::kHasNeighbours, caller);
  plan.kv_together = false;  // a warp brings K, and another one V
  Kernel kernel("attention_paged_chunks");
  const Forward<ChunkOrder> forward(kernel, a, plan, a);
  return paged_program(caller.function, a, kernel, {KeyParts::one, PagedRows(a, 64), 1});
}

}  // namespace tilewright::kernels
