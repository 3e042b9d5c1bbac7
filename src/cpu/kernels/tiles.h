#pragma once

#include "cpu/kernels/pairs.h"

// Products of bf16 by tiles: registers of up to 16 rows of 64 bytes, and an instruction that adds
// the product of two of them to a third. `Tiles` are those of AMX, or what a test has instead:
//   configure(shape)         gives the tiles these shapes, and clears them
//   load<tile>(data, stride), store<tile>(data, stride)    rows `stride` bytes apart
//   multiply<tile>()         adds to these sums their rows of a times their columns of b
//   release()
namespace tilewright::cpu::TW_LEVEL {
namespace {

constexpr std::int64_t kTileRows = 16, kTilePairs = 16;

// As the instruction that sets the tiles up reads them.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// Tiles 0 to 3 are sums, 4 and 5 rows of a, 6 and 7 columns of b: sums 2 i + j have rows i and
// columns j.
constexpr int kSumsTile = 0, kRowsTile = 4, kColumnsTile = 6;

TW_INLINE TileShapes shapes_of(std::int64_t rows, std::int64_t pairs) {
  TileShapes shapes;
  for (int i = 0; i < 2; ++i) {
    // A tile needs a row, also one of rows that are not there, which nobody uses.
    const std::int64_t left = smaller_of(rows - i * kTileRows, kTileRows);
    const auto count = static_cast<std::uint8_t>(left > 0 ? left : 1);
    const auto set = [&](int tile, std::uint8_t tile_rows, std::int64_t bytes) {
      shapes.rows[tile] = tile_rows;
      shapes.row_bytes[tile] = static_cast<std::uint16_t>(bytes);
    };
    set(kSumsTile + 2 * i, count, 64);
    set(kSumsTile + 2 * i + 1, count, 64);
    set(kRowsTile + i, count, pairs * 4);
    set(kColumnsTile + i, static_cast<std::uint8_t>(pairs), 64);
  }
  return shapes;
}

// Sums of up to two tiles of rows and two of columns over `chunks` tiles of so many pairs each.
template <typename Tiles>
void multiply_tiles(Tiles& tiles, std::int64_t rows, bool two_columns, std::int64_t pairs,
                    std::int64_t chunks, PairRows a, const float* panel, FloatRows c,
                    bool from_zero) {
  const bool two_rows = rows > kTileRows;
  const TileShapes shapes = shapes_of(rows, pairs);
  tiles.configure(shapes);
  const std::int64_t c_bytes = c.stride * 4, panel_bytes = kPanel * 4;
  float* const lower = c.data + kTileRows * c.stride;
  if (!from_zero) {
    tiles.template load<0>(c.data, c_bytes);
    if (two_columns) tiles.template load<1>(c.data + kLanes, c_bytes);
    if (two_rows) tiles.template load<2>(lower, c_bytes);
    if (two_rows && two_columns) tiles.template load<3>(lower + kLanes, c_bytes);
  }
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const char* const from = a.data + chunk * pairs * 4;
    const float* const columns = panel + chunk * pairs * kPanel;
    tiles.template load<4>(from, a.stride);
    tiles.template load<6>(columns, panel_bytes);
    tiles.template multiply<0>();
    if (two_columns) {
      tiles.template load<7>(columns + kLanes, panel_bytes);
      tiles.template multiply<1>();
    }
    if (!two_rows) continue;
    tiles.template load<5>(from + kTileRows * a.stride, a.stride);
    tiles.template multiply<2>();
    if (two_columns) tiles.template multiply<3>();
  }
  tiles.template store<0>(c.data, c_bytes);
  if (two_columns) tiles.template store<1>(c.data + kLanes, c_bytes);
  if (two_rows) tiles.template store<2>(lower, c_bytes);
  if (two_rows && two_columns) tiles.template store<3>(lower + kLanes, c_bytes);
}

// The pairs outside of which so many rows have zeros alone. They begin with a tile of pairs, and
// end with one or with the last.
TW_INLINE Span tiles_not_zero(std::int64_t rows, std::int64_t pairs, PairRows a) {
  const std::int64_t whole = pairs / kTilePairs * kTilePairs;
  const auto at = [&](std::int64_t row, std::int64_t pair) {
    return a.data + row * a.stride + pair * 4;
  };
  Span span = not_zero(rows, whole, [&](std::int64_t row, std::int64_t pair) {
    return is_zero(at(row, pair), kOfPair);
  });
  std::int32_t rest = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t pair = whole; pair < pairs; ++pair) {
      std::int32_t bits;
      __builtin_memcpy(&bits, at(row, pair), 4);
      rest |= bits & kOfPair;
    }
  }
  if (rest == 0) return span;
  return {span.end > 0 ? span.begin : whole, pairs};
}

// Whole tiles of pairs, and then those that are left. Of none the sums are 0 all the same.
template <typename Tiles>
void multiply_part(Tiles& tiles, std::int64_t pairs, std::int64_t rows, bool two_columns,
                   PairRows a, const float* panel, FloatRows c, bool from_zero) {
  const std::int64_t whole = pairs / kTilePairs;
  if (whole > 0 || pairs == 0) {
    multiply_tiles(tiles, rows, two_columns, kTilePairs, whole, a, panel, c, from_zero);
  }
  const std::int64_t done = whole * kTilePairs;
  if (done == pairs) return;
  multiply_tiles(tiles, rows, two_columns, pairs - done, 1, {a.data + done * 4, a.stride},
                 panel + done * kPanel, c, from_zero && whole == 0);
}

template <typename Tiles>
void product_in_tiles(const Product& p) {
  static_assert(kLanes * 4 == 64 && kPanel == 4 * kLanes);
  if (p.k == 0 && !p.accumulates) clear(p);
  const ProductScratch scratch = scratch_of(p);
  const PairRows a = a_as_pairs(p, scratch.a);
  const FloatRows c = {static_cast<float*>(p.c.data), p.c.row_stride / 4};
  Tiles tiles;
  const auto pack = [&](const PackedPart& part) { pack_part_in_pairs(p, part, scratch); };
  for_packed_parts<2>(p, scratch.panels, pack, [&](const PackedPart& part) {
    const std::int64_t pairs = pairs_of(part.terms);
    for (std::int64_t row = 0; row < p.m; row += 2 * kTileRows) {
      const std::int64_t rows = smaller_of(p.m - row, 2 * kTileRows);
      const PairRows all = {a.data + row * a.stride + part.first_term * 2, a.stride};
      const Span terms = p.skips_zeros ? tiles_not_zero(rows, pairs, all) : Span{0, pairs};
      const Span columns = needed_columns(p, part, row, rows);
      constexpr std::int64_t kTwo = 2 * kLanes;
      for (std::int64_t column = columns.begin / kTwo * kTwo; column < columns.end;
           column += kTwo) {
        multiply_part(tiles, terms.end - terms.begin, rows, columns.end - column > kLanes,
                      {all.data + terms.begin * 4, a.stride},
                      packed_column(part.panels, pairs, column) + terms.begin * kPanel,
                      {c.data + row * c.stride + part.first_column + column, c.stride},
                      !p.accumulates && part.first_term == 0);
      }
    }
  });
  tiles.release();
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
