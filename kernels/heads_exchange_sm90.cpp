#include "kernels/heads_exchange_sm90.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "tilewright/asynchronous.h"
#include "tilewright/ranks.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

// So many warpgroups of a CTA move rows, each so many elements at a time.
constexpr int kRowMovers = 4;
constexpr int kMovedElements = 4096;
constexpr int kMovedStatistics = 128;
constexpr int kMostHeads = 16;  // of a block of statistics
constexpr int kRowsOfZeros = 16;

class HeadsExchange {
 public:
  HeadsExchange(Kernel& kernel, const SequenceParallelAttention& o, bool packed, int group,
                ExchangeWay way, const std::vector<DividedTensor>& tensors,
                const std::optional<PackedExchange>& sequences)
      : kernel_(kernel),
        ranks_(o.ranks),
        packed_(packed),
        group_(group),
        back_(way == ExchangeWay::back),
        batch_(packed ? Dim(1) : kernel.dim("batch")),
        sequence_count_(sequences ? kernel.dim("batch") : Dim(0)),
        queries_(kernel.dim("queries")),
        keys_(kernel.dim("keys")) {
    for (const DividedTensor& each : tensors) {
      const Dim& rows = each.of_queries ? queries_ : keys_;
      const std::vector<Dim> own = shape(each, rows, each.heads);
      const bool in_blocks = sequences && each.dim == 0;
      const Dim all_rows = in_blocks
                               ? (rows * ranks_ / each.multiple + sequence_count_) * each.multiple
                               : ceil_div(rows * ranks_, each.multiple) * each.multiple;
      const std::vector<Dim> all = shape(each, all_rows, each.kept);
      const std::string name_of_all = each.name + "_all";
      moved_.push_back({each,
                        back_ ? kernel.symmetric(each.name, each.dtype, own)
                              : kernel.in(each.name, each.dtype, own),
                        back_ ? kernel.in(name_of_all, each.dtype, all)
                              : kernel.symmetric(name_of_all, each.dtype, all),
                        DividedAxis(rows, kernel.ranks(), o.shards), in_blocks});
    }
    if (!sequences) return;
    const Dim count = sequence_count_ + 1;
    first_queries_ = kernel.in("cu_seqlens_q", i32, {count});
    first_keys_ = kernel.in("cu_seqlens_k", i32, {count});
    for (const DividedTensor& each : sequences->outputs) {
      const Dim& rows = each.of_queries ? queries_ : keys_;
      const Tensor own = kernel.inout(each.name, each.dtype, shape(each, rows, each.heads));
      cleared_.push_back({each, own, own, DividedAxis(rows, kernel.ranks(), o.shards), false});
    }
  }

  void record() {
    kernel_.ctas(multiprocessors());
    const TargetLimits& limits = target_limits("sm_90a");
    const int all = launch_registers(limits, kRowMovers * limits.group_threads());
    kernel_.roles({role("move", warpgroups(kRowMovers), registers(all), [this](const Index& mover) {
      const auto of_each_piece = [&](const std::vector<Moved>& tensors, const auto& body) {
        for (const Moved& each : tensors) {
          for (int piece = 0; piece < each.axis.pieces_of_rank(); ++piece) body(each, piece == 1);
        }
      };
      of_each_piece(moved_, [&](const Moved& each, bool is_late) {
        each.in_blocks ? move_blocks(each, is_late, mover) : move(each, is_late, mover);
      });
      of_each_piece(cleared_,
                    [&](const Moved& each, bool is_late) { clear_outside(each, is_late, mover); });
    })});
  }

 private:
  struct Moved {
    DividedTensor tensor;
    Tensor own, all;
    DividedAxis axis;
    bool in_blocks;  // of packed sequences
  };
  std::vector<Dim> shape(const DividedTensor& each, const Dim& rows, int heads) const {
    std::vector<Dim> shape{rows, heads, each.dim};
    if (each.dim == 0) shape = {heads, rows};
    if (!packed_) shape.insert(shape.begin(), batch_);
    return shape;
  }

  // In turn for each rank, this one last: what it keeps takes no time beside what crosses a link.
  void move(const Moved& each, bool is_late, const Index& mover) const {
    const int dim = each.tensor.dim, heads = each.tensor.exchanged;
    const int size =
        dim == 0
            ? kMovedStatistics
            : std::max(kMovedElements / static_cast<int>(std::bit_ceil(static_cast<unsigned>(dim))),
                       1);
    const Dim blocks = ceil_div(is_late ? each.axis.late_rows() : each.axis.early_rows(), size);
    const int to_ranks = each.tensor.own_stays ? ranks_ - 1 : ranks_;
    const Index me = kernel_.rank(), first = cta_index() + cta_count() * mover;
    for (Index tile :
         range(first, blocks * batch_ * (heads * to_ranks), cta_count() * kRowMovers)) {
      const Index to = (me + 1 + tile % to_ranks) % ranks_, block = tile / to_ranks;
      const Index row = block % max(blocks, 1) * size, of_head = block / max(blocks, 1);
      const Index head = of_head % heads, sequence = of_head / heads;
      const Index rows_of = back_ ? to : me, heads_of = back_ ? me : to;
      const DividedAxis::Piece piece = each.axis.of_rank(rows_of, is_late);
      const auto part = [&](const Tensor& tensor, const Index& begin, const Index& of) {
        const Block rows(begin + row, size, begin + piece.rows);
        if (packed_) return dim == 0 ? tensor(of, rows) : tensor(rows, of, all);
        return dim == 0 ? tensor(sequence, of, rows) : tensor(sequence, rows, of, all);
      };
      // Those of one group, or of all.
      const int of_rank = each.tensor.heads / ranks_,
                before = heads == of_rank ? 0 : group_ * heads;
      const Index own_head = heads_of * of_rank + before + head;
      const Index kept_head = head + (each.tensor.kept == heads ? 0 : before);
      if (back_) {
        store(part(each.own.at(to), piece.at, own_head),
              load(part(each.all, piece.first, kept_head)));
      } else {
        store(part(each.all.at(to), piece.first, kept_head),
              load(part(each.own, piece.at, own_head)));
      }
    }
  }

  // Statistics of packed sequences, each block of the axis with zeros behind its last row. A piece
  // has whole blocks.
  void move_blocks(const Moved& each, bool is_late, const Index& mover) const {
    const int size = each.tensor.multiple, heads = each.tensor.exchanged;
    const int at_once = std::gcd(heads, kMostHeads), runs = heads / at_once;
    const Ragged whole(each.axis.all_rows(), *first_queries_, BlocksFrom::axis);
    const DividedAxis::Piece piece = each.axis.of_rank(kernel_.rank(), is_late);
    const Dim rows = is_late ? each.axis.late_rows() : each.axis.early_rows();
    const Dim places = (rows / size + whole.sequences()) * min(whole.sequences(), 1);
    const Index before = max(piece.first / size - whole.of(0).begin() / size, 0);
    const Index first = cta_index() + cta_count() * mover;
    for (Index i : range(first, places * (ranks_ * runs), cta_count() * kRowMovers)) {
      const Index to = (kernel_.rank() + 1 + i % ranks_) % ranks_, run = i / ranks_ % runs;
      const auto [number, block] = whole.tile(before + i / (ranks_ * runs), size);
      const Sequence sequence = whole.of(number);
      const Block rows = sequence.block(block, size);
      const Condition is_here =
          rows.start() >= piece.first && rows.start() < min(piece.first + piece.rows, rows.limit());
      when(is_here, [&] {
        const Index kept = (sequence.begin() / size + number + block) * size;
        const Index moved = piece.at - piece.first;
        const Dim of_rank(heads);
        store(each.all.at(to)(of_rank.block(run, at_once), Block(kept, size, kept + size)),
              load(each.own(Dim(each.tensor.heads).block(to * runs + run, at_once),
                            Block(rows.start() + moved, size, rows.limit() + moved))));
      });
    }
  }

  // Zeros in the rank's own rows before the first sequence and behind the last one.
  void clear_outside(const Moved& each, bool is_late, const Index& mover) const {
    const Tensor& offsets = each.tensor.of_queries ? *first_queries_ : *first_keys_;
    const DividedAxis::Piece piece = each.axis.of_rank(kernel_.rank(), is_late);
    const auto in_piece = [&](const Index& row) {
      return piece.at + min(max(row - piece.first, 0), piece.rows);
    };
    const Index begin = in_piece(load_index(offsets(Index(0)))),
                end = in_piece(load_index(offsets(Index(sequence_count_))));
    clear(each, piece.at, begin, mover);
    clear(each, max(begin, end), piece.at + piece.rows, mover);
  }
  void clear(const Moved& each, const Index& begin, const Index& end, const Index& mover) const {
    const int heads = each.tensor.heads;
    const Index count = ceil_div(max(end - begin, 0), kRowsOfZeros) * heads;
    for (Index i : range(cta_index() + cta_count() * mover, count, cta_count() * kRowMovers)) {
      const Block rows(begin + i / heads * kRowsOfZeros, kRowsOfZeros, end);
      store(each.own(rows, i % heads, all),
            zeros({kRowsOfZeros, each.tensor.dim}).cast(each.tensor.dtype));
    }
  }

  Kernel& kernel_;
  int ranks_;
  bool packed_;
  int group_;
  bool back_;
  Dim batch_, sequence_count_, queries_, keys_;
  std::vector<Moved> moved_, cleared_;
  std::optional<Tensor> first_queries_, first_keys_;  // of packed sequences
};

}  // namespace

Kernel heads_exchange_sm90(const SequenceParallelAttention& o, bool packed, int group,
                           ExchangeWay way, const std::vector<DividedTensor>& tensors,
                           const std::string& name,
                           const std::optional<PackedExchange>& sequences) {
  Kernel kernel(name);
  HeadsExchange(kernel, o, packed, group, way, tensors, sequences).record();
  return kernel;
}

}  // namespace tilewright::kernels
