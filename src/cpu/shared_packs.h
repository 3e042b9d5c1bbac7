#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/program.h"

namespace tilewright::cpu {

// Finds the products whose right factor other blocks read too, and makes room for its packs.
void find_shared_factors(Program& program);

// The right factors in tensors that a thread has packed, for the products of blocks to come. What
// the tensors hold there does not change during a launch.
class SharedPacks {
 public:
  // `grid`: blocks on each axis. `memory` has the program's packs_bytes.
  SharedPacks(const Program& program, const std::vector<std::int64_t>& grid, std::byte* memory);
  // Those for the product, found or to be made; null where none are kept. The product is performed
  // before the next call. `block` is the one that needs it.
  Packs* of(const Multiply& operation, const Product& product, std::int64_t block);
  // Whether there are some of a factor that begins here.
  bool have(const std::byte* b) const;

 private:
  struct Entry {
    Matrix b;
    Element element;
    std::int64_t n, k;
    float* packs;
  };
  void keep_last();
  void forget();

  std::uint32_t axis_ = 0;  // a bit for that along which blocks follow each other
  float *begin_, *end_, *free_;
  std::vector<Entry> entries_;
  Packs packs_ = {};        // of the last product
  Entry last_ = {};         // what it packed, if it found none
  std::int64_t block_ = 0;  // the one that needed it
  int found_ = 0;           // since packs were forgotten
  int in_vain_ = 0;         // so often they were forgotten without that, in a row
};

}  // namespace tilewright::cpu
