#if defined(__x86_64__)

// Products of bf16 by the tiles of AMX: all in which this set differs from AVX-512 with bf16.
#define TW_LEVEL amx
#include "cpu/kernels/tables.h"
#include "cpu/kernels/tiles.h"

namespace tilewright::cpu {
namespace amx {
namespace {

// The compiler takes the tiles' numbers as they are written.
struct MachineTiles {
  TW_INLINE void configure(const TileShapes& shapes) { _tile_loadconfig(&shapes); }
  template <int tile>
  TW_INLINE void load(const void* data, std::int64_t stride) {
#define TW_TILE(number) \
  if constexpr (tile == number) _tile_loadd(number, data, stride)
    TW_TILE(0);
    TW_TILE(1);
    TW_TILE(2);
    TW_TILE(3);
    TW_TILE(4);
    TW_TILE(5);
    TW_TILE(6);
    TW_TILE(7);
#undef TW_TILE
  }
  template <int tile>
  TW_INLINE void store(void* data, std::int64_t stride) {
#define TW_TILE(number) \
  if constexpr (tile == number) _tile_stored(number, data, stride)
    TW_TILE(0);
    TW_TILE(1);
    TW_TILE(2);
    TW_TILE(3);
#undef TW_TILE
  }
  template <int sums>
  TW_INLINE void multiply() {
    if constexpr (sums == 0) _tile_dpbf16ps(0, 4, 6);
    if constexpr (sums == 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (sums == 2) _tile_dpbf16ps(2, 5, 6);
    if constexpr (sums == 3) _tile_dpbf16ps(3, 5, 7);
  }
  TW_INLINE void release() { _tile_release(); }
};

}  // namespace
}  // namespace amx

void product_with_amx(const Product& p) {
  if (p.element != Element::bf16 || p.rounding != Rounding::pairs || p.m <= kFewRows) {
    return product_with_bf16(p);
  }
  amx::product_in_tiles<amx::MachineTiles>(p);
}

}  // namespace tilewright::cpu

#endif
