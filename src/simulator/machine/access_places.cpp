#include "simulator/machine/access_places.h"

#include <algorithm>

#include "simulator/machine/cta.h"

namespace tilewright::simulator {

SharedPlaces shared_places(const ElementAccess& access, int elements, int element_bytes,
                           bool stores, int position) {
  SharedPlaces places;
  places.low = INT64_MAX;
  places.high = INT64_MIN;
  const int column_axis = access.spread.rank - 1;
  const std::int64_t bytes = std::int64_t{element_bytes} * access.vector;
  ByteSet all;
  for (int i = 0; i < elements; i += access.vector) {
    for (int l = 0; l < kLanes; ++l) {
      const std::int64_t row = column_axis > 0 ? access.spread.at(0, i, l, position) : 0;
      std::int64_t column = access.spread.at(column_axis, i, l, position);
      std::int64_t address = row * access.row_bytes;
      if (access.panel_columns > 0) {
        address += column / access.panel_columns * access.panel_bytes;
        column %= access.panel_columns;
      }
      const std::int64_t byte = column * element_bytes;
      const std::int64_t flipped = row / access.divisor & access.mask;
      address += ((byte / 16) ^ flipped) * 16 + byte % 16;
      places.bytes.push_back(address);
      if (stores && access.repeated_lane[l]) continue;
      places.low = std::min(places.low, address);
      places.high = std::max(places.high, address + bytes);
      places.aligned = places.aligned && address % bytes == 0;
      if (address >= 0) all.add(static_cast<std::uint64_t>(address), bytes);
    }
  }
  places.aligned = places.aligned && 16 % bytes == 0 && places.low >= 0;
  places.cells = all.take();
  return places;
}

TensorPlaces tensor_places(const GlobalAccess& access, int elements, int position) {
  const std::size_t rank = access.tensor->shape.size();
  TensorPlaces places;
  places.low.assign(rank, 0);
  places.high.assign(rank, 0);
  places.elements.assign(static_cast<std::size_t>(elements) * kLanes, 0);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const int tile_axis = access.tile_axis[axis];
    if (tile_axis < 0) continue;
    places.low[axis] = INT64_MAX;
    places.high[axis] = INT64_MIN;
    for (int i = 0; i < elements; ++i) {
      for (int l = 0; l < kLanes; ++l) {
        const std::int64_t at = access.spread.at(tile_axis, i, l, position);
        places.low[axis] = std::min(places.low[axis], at);
        places.high[axis] = std::max(places.high[axis], at);
        places.elements[i * kLanes + l] += at * access.tensor->strides[axis];
      }
    }
  }
  return places;
}

}  // namespace tilewright::simulator
