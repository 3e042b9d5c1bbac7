#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/rank_words.h"
#include "tilewright/asynchronous.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {

// A rank's rows, to all others, by warps of a kernel that computes: one part of the depth after the
// other, through a ring of their own, so that the products wait for nothing of it. Memory has two
// halves, for every second run. A rank that begins run r + 1 has ended run r, for which the others
// pushed when they had ended run r - 1: they read what two runs push and no more.
class RowPush {
 public:
  static constexpr int kColumns = 64;  // of a piece, which a warp pushes at a time
  struct Plan {
    int ranks;
    DType dtype;
    int rows;     // of a piece
    int depths;   // parts of the depth, each of which has a word of each rank
    int stages;   // pieces that shared memory has room for
    int block_k;  // of the product, in whole blocks of which parts are
    int shared_bytes() const { return stages * rows * kColumns * size_of(dtype); }
    // Columns of a part.
    Dim part_depth(const Dim& k) const {
      const int unit = std::max(kColumns, block_k);
      return ceil_div(k, depths * unit) * unit;
    }
  };
  static std::vector<Dim> shape(int ranks, const Dim& m, const Dim& k) { return {2 * ranks, m, k}; }

  // `rows` {m, k} are this rank's; `gathered`, of that shape, gets the others'. A word of
  // `arrived`, of a rank's part, counts the pieces that have come.
  RowPush(Kernel& kernel, const Plan& plan, const Tensor& rows, const Dim& m, const Dim& k,
          const Tensor& gathered, const Tensor& arrived)
      : kernel_(kernel),
        plan_(plan),
        rows_(rows),
        m_(m),
        k_(k),
        gathered_(gathered),
        arrived_(arrived),
        pushed_(kernel, "pushed", stages(plan.stages),
                std::vector<TileShape>{{plan.dtype, plan.rows, kColumns}}, here()),
        stored_(kernel, kWarpThreads * 2, 1, here()) {}

  // The warps that do it.
  std::vector<RoleSpec> roles(RegisterBudget budget) {
    return {role("fetch", warps(1), budget, [this] { fetch(); }),
            role("push", warps(1), budget, [this] { push(); }),
            role("tell", warps(1), budget, [this] { tell(); })};
  }

  // What another rank has sent in this run, behind a wait for the word of the part.
  TensorView rows_of(const Index& rank, const Block& rows, const Block& depth) const {
    return gathered_(slot(rank), rows, depth);
  }
  void wait_for(const Index& rank, const Index& part) const {
    wait_flag(arrived_(rank * plan_.depths + part), Compare::ge, kernel_.epoch() * pieces(part),
              kLearn);
  }

 private:
  Index slot(const Index& rank) const { return kernel_.epoch() % 2 * kernel_.ranks() + rank; }
  Dim part_depth() const { return plan_.part_depth(k_); }
  // Of a part of the depth.
  Index pieces(const Index& part) const {
    const Dim width = part_depth();
    const Index columns = ceil_div(min(max(k_ - part * width, 0), width), kColumns);
    return columns * ceil_div(m_, plan_.rows);
  }
  // Each behind a fence of its own: told together they would come when the last of them has.
  void each_piece(FunctionRef<void(const Index& piece)> body) {
    const Dim pieces = ceil_div(m_, plan_.rows) * ceil_div(k_, kColumns);
    for (Index piece : range(cta_index(), pieces, cta_count())) body(piece);
  }
  std::pair<Block, Block> place(const Index& piece) const {
    const Dim rows = ceil_div(m_, plan_.rows);
    return {m_.block(piece % rows, plan_.rows), k_.block(piece / rows, kColumns)};
  }
  void fetch() {
    each_piece([&](const Index& piece) {
      const auto [rows, depth] = place(piece);
      pushed_.produce([&](const Slot& slot) { tma_load(rows_(rows, depth), slot[0]); });
    });
  }
  // A stage is given back as soon as its piece has been read, so that the loads of all stages are
  // under way.
  void push() {
    const Index me = kernel_.rank();
    each_piece([&](const Index& piece) {
      const auto [rows, depth] = place(piece);
      const Slot next = pushed_.consume();
      each_other_rank(kernel_, plan_.ranks, [&](const Index& to) {
        tma_store(gathered_.at(to)(slot(me), rows, depth), next[0]);
      });
      bulk_commit();
      bulk_wait_read(0);
      pushed_.release(next);
      bulk_wait(0);
      stored_.sync();
    });
  }
  // It waits for what is on its way, and the warp that pushes does not.
  void tell() {
    each_piece([&](const Index& piece) {
      stored_.sync();
      fence(Scope::system);  // once for all ranks
      const Index part = place(piece).second.start() / part_depth();
      each_other_rank(kernel_, plan_.ranks, [&](const Index& to) {
        atomic_add(arrived_.at(to)(kernel_.rank() * plan_.depths + part), 1,
                   {Semantics::relaxed, Scope::system});
      });
    });
  }

  static constexpr int kWarpThreads = 32;
  Kernel& kernel_;
  const Plan plan_;
  const Tensor rows_;
  const Dim m_, k_;
  const Tensor gathered_, arrived_;
  Ring pushed_;
  NamedBarrier stored_;  // of the warps that push and that tell
};

}  // namespace tilewright::kernels
