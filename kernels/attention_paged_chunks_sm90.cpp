#include <cstddef>
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

struct ChunkParameters : PagedParameters {
  ChunkParameters(Kernel& kernel, const Attention&, const PagedAttention& a)
      : PagedParameters(kernel, a),
        O(kernel.out("O", a.dtype, of_queries(a.dim_v))),
        LSE(kernel.out("LSE", f32, of_rows())) {
    declare_sinks(kernel);
  }
  Tensor O, LSE;
};

// Where the keys of a block lie.
class BlockPages {
 public:
  BlockPages(const PageCopies& copies, const Work& work, const Index& j)
      : rows_(copies.rows()), missing_(0) {
    for (int i = 0; i < copies.count(); ++i) {
      const Index listed = copies.listed(*work.table_row, work.keys, j, i);
      slots_.push_back(copies.slots(work.keys, j, i, listed));
      missing_ = missing_ + PageCopies::missing(listed, i);
    }
  }
  Index missing() const { return missing_; }
  // What `part` says of each page, to the rows of the block that it is.
  template <typename Part>
  void load(const SharedView& to, const Part& part) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      tma_load(part(slots_[i]), to.rows(static_cast<int>(i) * rows_, rows_));
    }
  }

 private:
  int rows_;
  Cell<Index> missing_;
  std::vector<PageSlots> slots_;
};

class ChunkOrder : public PackedTiles<ChunkParameters> {
 public:
  using Pages = BlockPages;
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
  const Sm90Plan plan = sm90_plan(a, ChunkOrder::kHasNeighbours, caller);
  Kernel kernel("attention_paged_chunks");
  const Forward<ChunkOrder> forward(kernel, a, plan, a);
  return paged_program(caller.function, a, kernel, {KeyParts::one, PagedRows(a, 64), 1});
}

}  // namespace tilewright::kernels
