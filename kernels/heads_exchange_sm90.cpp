#include "kernels/heads_exchange_sm90.h"

#include <algorithm>
#include <bit>

#include "tilewright/asynchronous.h"
#include "tilewright/ranks.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

// So many warpgroups of a CTA move rows, each so many elements at a time.
constexpr int kRowMovers = 4;
constexpr int kMovedElements = 4096;
constexpr int kMovedStatistics = 128;

class HeadsExchange {
 public:
  HeadsExchange(Kernel& kernel, const SequenceParallelAttention& o, bool packed, int group,
                ExchangeWay way, const std::vector<DividedTensor>& tensors)
      : kernel_(kernel),
        ranks_(o.ranks),
        packed_(packed),
        group_(group),
        back_(way == ExchangeWay::back),
        batch_(packed ? Dim(1) : kernel.dim("batch")),
        queries_(kernel.dim("queries")),
        keys_(kernel.dim("keys")) {
    for (const DividedTensor& each : tensors) {
      const Dim& rows = each.of_queries ? queries_ : keys_;
      const std::vector<Dim> own = shape(each, rows, each.heads);
      const Dim all_rows = ceil_div(rows * ranks_, each.multiple) * each.multiple;
      const std::vector<Dim> all = shape(each, all_rows, each.kept);
      const std::string name_of_all = each.name + "_all";
      moved_.push_back({each,
                        back_ ? kernel.symmetric(each.name, each.dtype, own)
                              : kernel.in(each.name, each.dtype, own),
                        back_ ? kernel.in(name_of_all, each.dtype, all)
                              : kernel.symmetric(name_of_all, each.dtype, all),
                        DividedAxis(rows, kernel.ranks(), o.shards)});
    }
  }

  void record() {
    kernel_.ctas(multiprocessors());
    const TargetLimits& limits = target_limits("sm_90a");
    const int all = launch_registers(limits, kRowMovers * limits.group_threads());
    kernel_.roles({role("move", warpgroups(kRowMovers), registers(all), [this](const Index& mover) {
      for (const Moved& each : moved_) {
        for (int piece = 0; piece < each.axis.pieces_of_rank(); ++piece) {
          move(each, piece == 1, mover);
        }
      }
    })});
  }

 private:
  struct Moved {
    DividedTensor tensor;
    Tensor own, all;
    DividedAxis axis;
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

  Kernel& kernel_;
  int ranks_;
  bool packed_;
  int group_;
  bool back_;
  Dim batch_, queries_, keys_;
  std::vector<Moved> moved_;
};

}  // namespace

Kernel heads_exchange_sm90(const SequenceParallelAttention& o, bool packed, int group,
                           ExchangeWay way, const std::vector<DividedTensor>& tensors,
                           const std::string& name) {
  Kernel kernel(name);
  HeadsExchange(kernel, o, packed, group, way, tensors).record();
  return kernel;
}

}  // namespace tilewright::kernels
