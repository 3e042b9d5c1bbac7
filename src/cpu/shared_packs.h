#pragma once

#include <cstdint>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/program.h"

namespace tilewright::cpu {

// Finds the products whose right factor other blocks read too, and makes room for its packs.
void find_shared_factors(Program& program);

// The packs of right factors that a thread keeps for the products to come. What they are of does
// not change during a launch.
class SharedPacks {
 public:
  // `grid`: blocks on each axis.
  SharedPacks(const Program& program, const std::vector<std::int64_t>& grid, std::byte* scratch);
  // Those for the product, if it shares any; `block` runs it. It is performed before the next call.
  bool have(const std::byte* b) const;
  Packs* of(const Multiply& operation, const Product& product, std::int64_t block);

 private:
  struct Entry {
    Matrix b;
    std::int64_t n, k;
    float* packs;
  };
  void end_last();
  void forget();

  std::uint32_t axis_ = 0;  // a bit for that along which blocks follow each other
  float *begin_ = nullptr, *end_ = nullptr, *free_ = nullptr;
  std::vector<Entry> entries_;
  Packs packs_ = {};
  Entry new_ = {};          // what the last product packs, if these are not there
  std::int64_t block_ = 0;  // of the last product
  int found_ = 0, in_vain_ = 0;
};

}  // namespace tilewright::cpu
