#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "tilewright/asynchronous.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {

// Tiles that go through shared memory by TMA, from this rank's memory to another one's or its own:
// one warp of a CTA loads them, another one stores them. Both name the same tiles in one order. A
// tile takes the first rows and columns of a stage; the columns are whole panels of 128 bytes.
class TilePush {
 public:
  TilePush(Kernel& kernel, const std::string& name, DType dtype, int rows, int columns, int stages)
      : stages_(stages),
        under_way_(std::min(kUnderWay, stages - 1)),
        ring_(kernel, name, tilewright::stages(stages), {{dtype, rows, columns}}) {}

  // In the warp that loads.
  void load(const TensorView& from, int rows, int columns) {
    ring_.produce(
        [&](const Slot& slot) { tma_load(from, slot[0].rows(0, rows).columns(0, columns)); });
  }
  // In the warp that stores, before its first tile.
  void begin_to_store() { stored_.emplace(0, here()); }
  // A stage is given back when so many stores behind its own have begun: a link that always has
  // some of each CTA is a little faster (docs/log). What others wait for is told behind all_stored.
  void store(const TensorView& to, int rows, int columns) {
    const Slot slot = ring_.consume();
    tma_store(to, slot[0].rows(0, rows).columns(0, columns));
    bulk_commit();
    bulk_wait_read(under_way_);
    when(*stored_ >= under_way_,
         [&] { ring_.release((slot.stage() + (stages_ - under_way_)) % stages_); });
    *stored_ = *stored_ + 1;
  }
  // Until what this warp has stored is in memory; a release hands it on. Nothing less will do:
  // bulk_wait_read waits for shared memory alone.
  void all_stored() {
    bulk_wait(0);
    stored_.reset();
  }

 private:
  static constexpr int kUnderWay = 2;
  int stages_, under_way_;  // of few stages fewer: one has to be given back
  Ring ring_;
  std::optional<Cell<Index>> stored_;
};

}  // namespace tilewright::kernels
