#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "simulator/machine/shadow.h"

namespace tilewright::simulator {

// An address: the lane in the upper 16 bits, the column in the lower.
struct TensorAddress {
  int lane = 0, column = 0;
  explicit TensorAddress(std::int64_t address)
      : lane(static_cast<int>(address >> 16 & 0xffff)),
        column(static_cast<int>(address & 0xffff)) {}
};

// The tensor memory of a multiprocessor: 128 lanes of 512 columns of 32 bits. What a warp reaches
// are windows of 32 lanes; who has done what is known of each half of a window of each column.
class TensorMemory {
 public:
  static constexpr int kLanes = 128, kColumns = 512, kWindow = 32, kWindows = kLanes / kWindow;
  static constexpr int kHalf = 16, kHalves = kLanes / kHalf;

  // Columns that are taken.
  struct Held {
    int memory = 0;  // of PreparedKernel::tensor_memories
    int first = 0, count = 0;
    Access by;
  };
  std::vector<Held> held;
  bool relinquished = false;
  int last_count = kColumns;  // of the latest allocation: later ones are not larger
  ShadowMemory shadow{kColumns * kHalves};

  // The columns from `first` on, if all of them are of one allocation.
  const Held* find(int first, int count) const;
  // Where so many free columns begin, which a draw may ask for; -1 where there are none.
  std::vector<int> places_for(int count) const;
  void take(Held columns);
  void give_back(int first);

  std::uint32_t bits(int lane, int column) const { return bits_[column * kLanes + lane]; }
  bool is_written(int lane, int column) const {
    return written_[column][lane / 64] >> lane % 64 & 1;
  }
  void write(int lane, int column, std::uint32_t bits) {
    bits_[column * kLanes + lane] = bits;
    written_[column][lane / 64] |= std::uint64_t{1} << lane % 64;
  }
  // All lanes of a column.
  bool is_written(int column) const {
    return (written_[column][0] & written_[column][1]) == ~std::uint64_t{0};
  }
  void read(int column, float* lanes) const {
    std::memcpy(lanes, bits_.data() + column * kLanes, kLanes * sizeof(float));
  }
  void write(int column, const float* lanes) {
    std::memcpy(bits_.data() + column * kLanes, lanes, kLanes * sizeof(float));
    mark_written(column);
  }
  void mark_written(int column) { written_[column].fill(~std::uint64_t{0}); }
  // Adds columns `first` ... of `lanes` from `lane` on to what an access touches.
  static void add(ByteSet& touched, int first, int count, int lane, int lanes);

 private:
  std::vector<std::uint32_t> bits_ = std::vector<std::uint32_t>(kLanes * kColumns);
  std::array<std::array<std::uint64_t, 2>, kColumns> written_{};
};

}  // namespace tilewright::simulator
