#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
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

// The columns that the CTAs of a multiprocessor have taken.
struct TakenColumns {
  struct Run {
    int first = 0, count = 0;
    std::int64_t cta = 0;
  };
  std::vector<Run> runs;
};

// What a CTA has of the tensor memory of its multiprocessor: of 128 lanes of 512 columns of 32
// bits. What a warp reaches are windows of 32 lanes; who has done what is known of each half of a
// window of each column.
class TensorMemory {
 public:
  static constexpr int kLanes = 128, kColumns = 512, kWindow = 32, kWindows = kLanes / kWindow;
  static constexpr int kHalf = 16, kHalves = kLanes / kHalf;

  // `taken`: of the multiprocessor.
  TensorMemory(std::shared_ptr<TakenColumns> taken, std::int64_t cta)
      : taken(std::move(taken)), cta_(cta) {}

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
  const std::shared_ptr<TakenColumns> taken;

  // The columns from `first` on, if all of them are of one allocation.
  const Held* find(int first, int count) const;
  // Where so many columns begin that nobody has, or that no other allocation of this CTA has.
  std::vector<int> places_for(int count) const { return places_for(count, /*of_all=*/true); }
  std::vector<int> own_places_for(int count) const { return places_for(count, /*of_all=*/false); }
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
  // So many lanes of a column, which lie in one of its halves of 64.
  bool is_written(int lane, int column, int count) const {
    return (~written_[column][lane / 64] & run_of(lane, count)) == 0;
  }
  void read(int lane, int column, int count, float* to) const {
    std::memcpy(to, bits_.data() + column * kLanes + lane, count * sizeof(float));
  }
  void write(int lane, int column, int count, const float* from) {
    std::memcpy(bits_.data() + column * kLanes + lane, from, count * sizeof(float));
    mark_written(lane, column, count);
  }
  void mark_written(int lane, int column, int count) {
    written_[column][lane / 64] |= run_of(lane, count);
  }
  // Columns of all lanes, or of one half of each window.
  struct Part {
    static constexpr int kBoth = -1;
    int first = 0, count = 0, half = kBoth;
    bool meets(const Part& other) const;
    bool covers(const Part& other) const;
  };
  // What a product has left there.
  struct Result {
    Part part;
    Access by;
    bool is_read = false;  // any of it, by anybody
  };
  // Forgets those of which the part takes the place, and gives those of them that nobody has read.
  std::vector<Result> replace_results(const Part& part);
  // Of products that add to what is there only the last counts.
  void leave(const Result& result, bool accumulates);
  void note_read(const Part& part);

  // Adds columns `first` ... of `lanes` from `lane` on to what an access touches.
  static void add(ByteSet& touched, int first, int count, int lane, int lanes);

 private:
  std::vector<int> places_for(int count, bool of_all) const;
  static std::uint64_t run_of(int lane, int count) {
    return ((std::uint64_t{1} << count) - 1) << lane % 64;
  }

  const std::int64_t cta_;
  std::vector<Result> results_;
  std::vector<std::uint32_t> bits_ = std::vector<std::uint32_t>(kLanes * kColumns);
  std::array<std::array<std::uint64_t, 2>, kColumns> written_{};
};

}  // namespace tilewright::simulator
