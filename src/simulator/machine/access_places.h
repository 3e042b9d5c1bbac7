#pragma once

#include <cstdint>
#include <vector>

#include "simulator/machine/prepared_kernel.h"
#include "simulator/machine/shadow.h"

namespace tilewright::simulator {

// Where the elements of one warp lie that an instruction moves. That is the same each time, but for
// where all of them begin.

// In shared memory, behind the access's base.
struct SharedPlaces {
  std::vector<std::int64_t> bytes;  // of each access of a lane: [element / vector * kLanes + lane]
  std::int64_t low = 0, high = 0;   // of all that are made
  bool aligned = true;              // each lies at a multiple of its bytes
  std::vector<ByteCell> cells;      // that all of them make, where the base is a multiple of 16
};
SharedPlaces shared_places(const ElementAccess& access, int elements, int element_bytes,
                           bool stores, int position);

// In a tensor, behind the tile's first element.
struct TensorPlaces {
  std::vector<std::int64_t> elements;   // [element * kLanes + lane]
  std::vector<std::int64_t> low, high;  // coordinates on each axis
};
TensorPlaces tensor_places(const GlobalAccess& access, int elements, int position);

// Of each instruction of a kind, and of each warp that has places of its own: made when they are
// asked for.
template <typename Places>
class PlacesOfWarps {
 public:
  template <typename Make>
  const Places& of(int detail, int position, int warps, Make make) {
    const auto number = static_cast<std::size_t>(detail);
    if (made_.size() <= number) made_.resize(number + 1);
    std::vector<Places>& own = made_[number];
    if (own.empty()) own.resize(static_cast<std::size_t>(warps));
    Places& places = own[static_cast<std::size_t>(position % warps)];
    if (is_empty(places)) places = make();
    return places;
  }

 private:
  static bool is_empty(const SharedPlaces& places) { return places.bytes.empty(); }
  static bool is_empty(const TensorPlaces& places) { return places.elements.empty(); }
  std::vector<std::vector<Places>> made_;
};

}  // namespace tilewright::simulator
