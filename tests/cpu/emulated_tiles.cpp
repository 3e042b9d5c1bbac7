#if defined(__x86_64__)

// The products of AMX by tiles that are computed one number at a time, as Intel's manual has their
// instructions. It is compiled for AVX-512 with bf16, since the copies of operands are.
#define TW_LEVEL emulated
#include "cpu/emulated_tiles.h"

#include "cpu/kernels/tables.h"
#include "cpu/kernels/tiles.h"

namespace tilewright::cpu {
namespace emulated {
namespace {

void expect(bool holds) {
  if (!holds) __builtin_trap();
}

// Subnormals are 0, of operands and of results.
float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? 0 * x : x; }

class EmulatedTiles {
 public:
  void configure(const TileShapes& shapes) {
    shapes_ = shapes;
    __builtin_memset(rows_, 0, sizeof(rows_));
    for (int i = 0; i < 8; ++i) {
      expect(shapes.rows[i] >= 1 && shapes.rows[i] <= 16);
      expect(shapes.row_bytes[i] >= 4 && shapes.row_bytes[i] <= 64 && shapes.row_bytes[i] % 4 == 0);
    }
  }
  template <int tile>
  void load(const void* data, std::int64_t stride) {
    __builtin_memset(rows_[tile], 0, sizeof(rows_[tile]));
    for (int i = 0; i < shapes_.rows[tile]; ++i) {
      __builtin_memcpy(rows_[tile][i], static_cast<const char*>(data) + i * stride,
                       shapes_.row_bytes[tile]);
    }
  }
  template <int tile>
  void store(void* data, std::int64_t stride) const {
    for (int i = 0; i < shapes_.rows[tile]; ++i) {
      __builtin_memcpy(static_cast<char*>(data) + i * stride, rows_[tile][i],
                       shapes_.row_bytes[tile]);
    }
  }
  // Even and odd terms have sums of their own, which are added behind.
  template <int sums>
  void multiply() {
    constexpr int a = kRowsTile + sums / 2, b = kColumnsTile + sums % 2;
    const int pairs = shapes_.row_bytes[a] / 4, columns = shapes_.row_bytes[sums] / 4;
    expect(shapes_.rows[a] == shapes_.rows[sums] && shapes_.rows[b] == pairs);
    expect(shapes_.row_bytes[b] == shapes_.row_bytes[sums]);
    for (int i = 0; i < shapes_.rows[sums]; ++i) {
      for (int j = 0; j < columns; ++j) {
        float of[2] = {};
        for (int pair = 0; pair < pairs; ++pair) {
          for (int odd = 0; odd < 2; ++odd) {
            const float x = number(a, i, 2 * pair + odd), y = number(b, pair, 2 * j + odd);
            of[odd] = flushed(__builtin_fmaf(x, y, of[odd]));
          }
        }
        float sum;
        __builtin_memcpy(&sum, rows_[sums][i] + 4 * j, 4);
        sum = flushed(flushed(sum) + flushed(of[0] + of[1]));
        __builtin_memcpy(rows_[sums][i] + 4 * j, &sum, 4);
      }
    }
  }
  void release() {}

 private:
  float number(int tile, int row, int column) const {
    std::uint16_t bits;
    __builtin_memcpy(&bits, rows_[tile][row] + 2 * column, 2);
    return flushed(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16));
  }

  TileShapes shapes_;
  unsigned char rows_[8][16][64];
};

}  // namespace
}  // namespace emulated

void product_by_emulated_tiles(const Product& p) {
  if (p.element != Element::bf16 || p.rounding != Rounding::pairs) return kKernelsV4.product(p);
  emulated::product_in_tiles<emulated::EmulatedTiles>(p);
}

}  // namespace tilewright::cpu

#endif
