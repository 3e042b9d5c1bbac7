#pragma once

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
      : ring_(kernel, name, tilewright::stages(stages), {{dtype, rows, columns}}) {}

  // In the warp that loads.
  void load(const TensorView& from, int rows, int columns) {
    ring_.produce(
        [&](const Slot& slot) { tma_load(from, slot[0].rows(0, rows).columns(0, columns)); });
  }
  // In the warp that stores. What others wait for is told behind all_stored.
  void store(const TensorView& to, int rows, int columns) {
    const Slot slot = ring_.consume();
    tma_store(to, slot[0].rows(0, rows).columns(0, columns));
    bulk_commit();
    bulk_wait_read(0);
    ring_.release(slot);
  }
  // Until what this warp has stored is in memory; a release hands it on. Nothing less will do:
  // bulk_wait_read waits for shared memory alone.
  static void all_stored() { bulk_wait(0); }

 private:
  Ring ring_;
};

}  // namespace tilewright::kernels
