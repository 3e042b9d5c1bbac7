#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/all_to_all_parts.h"
#include "kernels/rank_words.h"
#include "kernels/tile_push.h"
#include "kernels/token_places.h"
#include "tilewright/function_ref.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

// A tile is so large at most. Smaller ones leave at more CTAs at once, and keep their stores apart:
// on two H200 8 KiB were faster than 16 and 32.
constexpr int kExchangedBytes = 8192, kExchangeStages = 12;

// Some tokens of some of a rank's heads.
struct ExchangedTile {
  int tokens, heads, columns;
  int rows() const { return tokens * heads; }
};

ExchangedTile tile_of(const ExchangedHeads& part, DType dtype) {
  const int panel = 128 / size_of(dtype);
  const int columns = (part.dim + panel - 1) / panel * panel;
  const int copied = static_cast<int>(target_limits("sm_90a").copy_extent);
  const int most = std::clamp(kExchangedBytes / (columns * size_of(dtype)), 8, copied);
  // The most heads that divide the rank's and leave room for a whole number of 8 rows.
  ExchangedTile tile{0, part.own, columns};
  for (;; --tile.heads) {
    const int unit = 8 / std::gcd(8, tile.heads);
    tile.tokens = most / tile.heads / unit * unit;
    if (part.own % tile.heads == 0 && tile.tokens > 0) break;
  }
  plan_case("a rank's heads in several tiles", tile.heads < part.own);
  return tile;
}

class AllToAllSm90 {
 public:
  AllToAllSm90(Kernel& kernel, const AllToAll& o, Direction direction)
      : o_(o),
        direction_(direction),
        kernel_(kernel),
        dims_(kernel, o, direction),
        parts_(exchanged(o, direction)) {
    plan_case("packed", o.packed);
    plan_case("back", direction == Direction::back);
    declare();
    begin_.emplace(kernel, o.ranks);
    arrive_.emplace(kernel, o.ranks);
    int rows = 0, columns = 0;
    for (const Moved& moved : moved_) {
      rows = std::max(rows, moved.tile.rows());
      columns = std::max(columns, moved.tile.columns);
    }
    push_.emplace(
        kernel, "tiles", o.dtype, rows, columns,
        std::min<int>(kExchangeStages, 12 * kExchangedBytes / (rows * columns * size_of(o.dtype))));
  }

  void record() {
    // Ranks take turns evenly where they divide the CTAs. The link is full with fewer.
    const Dim most = min(multiprocessors() / 16 * 16, RanksArrive::kCtas);
    kernel_.ctas(max(min(most, tiles_before(moved_.size())), 1));
    const int few = static_cast<int>(target_limits("sm_90a").least_role_registers);
    kernel_.roles({role("load", warps(1), registers(few), [this] { load(); }),
                   role("store", warps(1), registers(few), [this] { store(); })});
  }

 private:
  struct Moved {
    const ExchangedHeads& part;
    Tensor from, to;
    TokenPlaces places;
    ExchangedTile tile;
  };
  // A tile: where it comes from, and where it belongs in which rank.
  struct Work {
    Index rank;
    TokenPlaces::Place place;
    Block own_heads, all_heads;  // among a rank's heads, and among all of them
  };

  void declare() {
    const auto own = [&](const ExchangedHeads& part, auto declared) {
      return (kernel_.*declared)(part.name, o_.dtype, dims_.own(part), here());
    };
    const auto all = [&](const ExchangedHeads& part, auto declared) {
      return (kernel_.*declared)(std::string(part.name) + "_all", o_.dtype, dims_.all(part),
                                 here());
    };
    const bool back = direction_ == Direction::back;
    std::vector<Tensor> from;
    for (const ExchangedHeads& part : parts_) {
      from.push_back(back ? all(part, &Kernel::in) : own(part, &Kernel::in));
    }
    std::optional<Tensor> first_queries, first_keys;
    if (o_.packed) {
      first_queries.emplace(kernel_.in("cu_seqlens_q", i32, dims_.first_rows()));
      if (!back) first_keys.emplace(kernel_.in("cu_seqlens_k", i32, dims_.first_rows()));
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const ExchangedHeads& part = parts_[i];
      const TokenPlaces places(o_.ranks, dims_.batch, dims_.tokens(part),
                               part.of_queries ? first_queries : first_keys);
      const Tensor to = back ? own(part, &Kernel::symmetric) : all(part, &Kernel::symmetric);
      moved_.push_back({part, from[i], to, places, tile_of(part, o_.dtype)});
    }
  }

  Dim tiles(const Moved& moved) const {
    return moved.places.tiles(moved.tile.tokens) * (moved.part.own / moved.tile.heads * o_.ranks);
  }
  Dim tiles_before(std::size_t number) const {
    Dim sum = 0;
    for (std::size_t i = 0; i < number; ++i) sum = sum + tiles(moved_[i]);
    return sum;
  }

  // This CTA's tiles. One tensor's go on with the CTA behind the one that has the last of another.
  void each_tile(FunctionRef<void(const Moved&, const Work&)> body) const {
    for (std::size_t i = 0; i < moved_.size(); ++i) {
      const Moved& moved = moved_[i];
      const Index first = (cta_index() + cta_count() - tiles_before(i) % cta_count()) % cta_count();
      for (Index tile : range(first, tiles(moved), cta_count())) {
        const Work work = this->work(moved, tile);
        if (!o_.packed) {
          body(moved, work);
          continue;
        }
        const Block& rows = work.place.own;
        when(rows.start() < rows.limit(), [&] { body(moved, work); });
      }
    }
  }

  // In turn for each rank, this one last: what it keeps takes no time beside what crosses a link.
  // The turn moves on with each round of the CTAs, so that each has tiles for all ranks.
  Work work(const Moved& moved, const Index& tile) const {
    const int ranks = o_.ranks, heads = moved.tile.heads, blocks = moved.part.own / heads;
    const Index me = kernel_.rank(), rounds = tile / (cta_count() * ranks),
                rank = (me + 1 + tile % ranks + rounds) % ranks;
    const Index block = tile / ranks % blocks;
    const bool back = direction_ == Direction::back;
    const Index first = moved.part.first(back ? me : rank, heads);
    return {rank, moved.places.place(back ? rank : me, tile / (ranks * blocks), moved.tile.tokens),
            Dim(moved.part.own).block(block, heads),
            Dim(moved.part.heads).block(first + block, heads)};
  }
  TensorView own_tokens(const Moved& moved, const Tensor& tensor, const Work& w) const {
    return moved.places.at(tensor, w.place.sequence, w.place.own, w.all_heads, columns(moved));
  }
  TensorView all_tokens(const Moved& moved, const Tensor& tensor, const Work& w) const {
    return moved.places.at(tensor, w.place.sequence, w.place.all, w.own_heads, columns(moved));
  }
  static Block columns(const Moved& moved) {
    return Dim(moved.part.dim).block(0, moved.tile.columns);
  }

  void load() {
    each_tile([&](const Moved& moved, const Work& w) {
      push_->load(direction_ == Direction::back ? all_tokens(moved, moved.from, w)
                                                : own_tokens(moved, moved.from, w),
                  moved.tile.rows(), moved.tile.columns);
    });
  }

  void store() {
    push_->begin_to_store();
    begin_->tell();
    begin_->wait();
    fence_proxy_async_global();  // what others have read is now written by TMA
    each_tile([&](const Moved& moved, const Work& w) {
      const Tensor to = moved.to.at(w.rank);
      push_->store(
          direction_ == Direction::back ? own_tokens(moved, to, w) : all_tokens(moved, to, w),
          moved.tile.rows(), moved.tile.columns);
    });
    push_->all_stored();
    arrive_->tell_all();
    arrive_->wait_all();
  }

  const AllToAll o_;
  const Direction direction_;
  Kernel& kernel_;
  ExchangeDims dims_;
  std::vector<ExchangedHeads> parts_;
  std::vector<Moved> moved_;
  std::optional<RanksBegin> begin_;
  std::optional<RanksArrive> arrive_;
  std::optional<TilePush> push_;
};

}  // namespace

Kernel all_to_all_kernel_sm90(const AllToAll& o, Direction direction, const Caller& caller) {
  Kernel kernel(caller.function);
  AllToAllSm90(kernel, o, direction).record();
  return kernel;
}

}  // namespace tilewright::kernels
