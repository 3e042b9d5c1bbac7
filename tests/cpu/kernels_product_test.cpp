#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "cpu/emulated_tiles.h"
#include "cpu/kernel_sets.h"
#include "support/number_formats.h"

namespace tilewright::cpu {
namespace {

// A matrix in memory with any strides, NaN wherever no element lies.
struct Placed {
  std::vector<std::byte> bytes;
  Matrix matrix;
};

enum class Order { rows, columns, sparse };

// `values` {rows, columns} as elements of the dtype; the values become what the dtype holds.
Placed place(std::vector<float>& values, std::int64_t rows, std::int64_t columns, DType dtype,
             Order order) {
  const std::int64_t size = size_of(dtype);
  Matrix m = {nullptr, (columns + 3) * size, size};
  if (order == Order::columns) m = {nullptr, size, (rows + 4) * size};
  if (order == Order::sparse) m = {nullptr, (2 * columns + 1) * size, 2 * size};
  Placed placed;
  placed.bytes.assign(
      static_cast<std::size_t>(rows * m.row_stride + columns * m.column_stride + 64),
      std::byte{0xff});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float& value = values[static_cast<std::size_t>(i * columns + j)];
      value = round_to(dtype, value);
      from_float(dtype, &value, placed.bytes.data() + i * m.row_stride + j * m.column_stride, 1);
    }
  }
  m.data = placed.bytes.data();
  placed.matrix = m;
  return placed;
}

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

struct Case {
  std::int64_t m, n, k;
  Order a = Order::rows, b = Order::rows;
};

struct Scratch {
  Scratch(const Kernels& set, const Case& c, Element element)
      : size(static_cast<std::size_t>(set.product_scratch(c.m, c.n, c.k, element))),
        memory(size + 128) {
    // NaN, so that what nobody wrote shows, and a mark behind the end.
    std::memset(memory.data(), 0xff, memory.size());
    std::fill(aligned() + size, memory.data() + memory.size(), kMark);
  }
  std::byte* aligned() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64;
  }
  bool is_closed() {
    std::byte* const end = memory.data() + memory.size();
    return std::all_of(aligned() + size, end, [](std::byte byte) { return byte == kMark; });
  }
  static constexpr std::byte kMark{0x5a};
  std::size_t size;
  std::vector<std::byte> memory;
};

// The product on one set, onto `start` or onto nothing.
TestTile<float> run_product(const Kernels& set, const Case& c, Element element, Rounding rounding,
                            const Placed& a, const Placed& b, const TestTile<float>* start,
                            Matrix needed = {}, bool skips_zeros = false) {
  TestTile<float> result(c.m, c.n);
  if (start) result = *start;
  Scratch scratch(set, c, element);
  set.product({c.m, c.n, c.k, a.matrix, b.matrix, element, result.result(), start != nullptr,
               rounding, scratch.aligned(), needed, skips_zeros});
  EXPECT_TRUE(result.is_closed()) << set.name;
  EXPECT_TRUE(scratch.is_closed()) << set.name;
  return result;
}

// One sum in ascending order, of terms that are rounded, or not. b's elements are `step` apart.
float ascending_sum(float start, std::int64_t k, bool fused, const float* a, const float* b,
                    std::int64_t step) {
  float sum = start;
  for (std::int64_t i = 0; i < k; ++i) {
    const float term = a[i] * b[i * step];
    sum = fused ? std::fma(a[i], b[i * step], sum) : sum + term;
  }
  return sum;
}

void expect_in_order(const Case& c, Element element, DType dtype, Rounding rounding) {
  std::vector<float> x = random_floats(c.m * c.k, 1), y = random_floats(c.k * c.n, 2);
  const Placed a = place(x, c.m, c.k, dtype, c.a), b = place(y, c.k, c.n, dtype, c.b);
  TestTile<float> start(c.m, c.n);
  std::vector<float> first = random_floats(c.m * c.n, 3);
  std::size_t next = 0;
  start.fill([&] { return first[next++]; });
  for (const Kernels* const set : sets_here()) {
    const bool fused = rounding != Rounding::apart && has_fma(*set);
    for (const bool accumulates : {false, true}) {
      const TestTile<float> got =
          run_product(*set, c, element, rounding, a, b, accumulates ? &start : nullptr);
      for (std::int64_t i = 0; i < c.m; ++i) {
        for (std::int64_t j = 0; j < c.n; ++j) {
          const float wanted = ascending_sum(accumulates ? start.at(i, j) : 0, c.k, fused,
                                             x.data() + i * c.k, y.data() + j, c.n);
          ASSERT_EQ(got.at(i, j), wanted)
              << set->name << " " << name_of(dtype) << " " << c.m << " x " << c.n << " x " << c.k
              << " at " << i << ", " << j;
        }
      }
    }
  }
}

const Case kCases[] = {
    {1, 1, 1},
    {3, 70, 5},
    {4, 64, 17, Order::rows, Order::columns},
    {7, 33, 64, Order::columns, Order::columns},
    {9, 130, 11, Order::sparse, Order::sparse},
    {13, 17, 7, Order::rows, Order::columns},
    {2, 18, 33, Order::columns, Order::rows},
    {5, 6, 0},
    {0, 6, 4},
    {5, 6, 515, Order::rows, Order::columns},
    {5, 37, 252, Order::rows, Order::columns},  // columns lie 1 KB apart, of f32
    {3, 18, 508, Order::rows, Order::columns},  // and of bf16
    {1, 128, 130},                              // few rows, of which b is read in place
    {4, 96, 520},
    {3, 64, 40},
    {2, 50, 300, Order::rows, Order::columns},
    {1, 40, 135, Order::rows, Order::columns},
    {1, 33, 508, Order::rows, Order::columns},  // b's columns are few sets of a cache, of f32
    {1, 88, 21},
    {130, 20, 35, Order::columns, Order::rows},  // a lies the other way round
    {520, 3, 6, Order::columns, Order::rows},    // and its terms more than 2 KB apart
};

TEST(CpuKernelsProduct, OfF32InAscendingOrder) {
  for (const Case& c : kCases) {
    expect_in_order(c, Element::f32, DType::f32, Rounding::fused);
    expect_in_order(c, Element::f32, DType::f32, Rounding::apart);
  }
}

// Terms that are rounded leave f32's range by themselves: inf - inf.
TEST(CpuKernelsProduct, OfBf16BeyondTheRangeOfF32) {
  const Case c = {3, 18, 2};
  std::vector<float> x = {3e38f, -3e38f, 3e38f, -3e38f, 3e38f, -3e38f};
  std::vector<float> y(static_cast<std::size_t>(c.k * c.n), 3e38f);
  const Placed a = place(x, c.m, c.k, DType::bf16, c.a), b = place(y, c.k, c.n, DType::bf16, c.b);
  for (const Kernels* const set : sets_here()) {
    const TestTile<float> got = run_product(*set, c, Element::bf16, Rounding::apart, a, b, nullptr);
    for (std::int64_t i = 0; i < c.m; ++i) {
      for (std::int64_t j = 0; j < c.n; ++j) EXPECT_TRUE(std::isnan(got.at(i, j))) << set->name;
    }
  }
}

// Two such floats have a product that an f32 holds, so that both roundings are the same.
TEST(CpuKernelsProduct, OfNarrowFloatsInAscendingOrder) {
  for (const Case& c : kCases) {
    expect_in_order(c, Element::bf16, DType::bf16, Rounding::fused);
    expect_in_order(c, Element::bf16, DType::bf16, Rounding::apart);
    expect_in_order(c, Element::f16, DType::f16, Rounding::apart);
    expect_in_order(c, Element::f8e4m3, DType::f8e4m3, Rounding::fused);
  }
}

TEST(CpuKernelsProduct, OfEveryNumberOfRowsAndColumns) {
  for (std::int64_t i = 0; i <= 70; ++i) {
    expect_in_order({i % 12, i, 6, Order::rows, i % 2 ? Order::rows : Order::columns},
                    Element::bf16, DType::bf16, Rounding::fused);
  }
}

// Sets that take terms of bf16 in pairs, and those of AMX by an emulation of its tiles.
std::vector<const Kernels*> sets_with_pairs() {
  std::vector<const Kernels*> sets = sets_here();
#if defined(__x86_64__)
  if (const Kernels* const bf16 = find_kernels("bf16")) {
    static const Kernels emulated = [bf16] {
      Kernels kernels = *bf16;
      kernels.name = "amx, emulated";
      kernels.product = product_by_emulated_tiles;
      return kernels;
    }();
    sets.push_back(&emulated);
  }
#endif
  return sets;
}

void expect_near_in_pairs(const Case& c) {
  std::vector<float> x = random_floats(c.m * c.k, 1), y = random_floats(c.k * c.n, 2);
  const Placed a = place(x, c.m, c.k, DType::bf16, c.a), b = place(y, c.k, c.n, DType::bf16, c.b);
  TestTile<float> start(c.m, c.n);
  start.fill([] { return 0.75f; });
  for (const Kernels* const set : sets_with_pairs()) {
    for (const bool accumulates : {false, true}) {
      const TestTile<float> got = run_product(*set, c, Element::bf16, Rounding::pairs, a, b,
                                              accumulates ? &start : nullptr);
      for (std::int64_t i = 0; i < c.m; ++i) {
        for (std::int64_t j = 0; j < c.n; ++j) {
          double sum = accumulates ? 0.75 : 0, magnitude = sum;
          for (std::int64_t t = 0; t < c.k; ++t) {
            const double term = double{x[static_cast<std::size_t>(i * c.k + t)]} *
                                y[static_cast<std::size_t>(t * c.n + j)];
            sum += term;
            magnitude += std::fabs(term);
          }
          ASSERT_NEAR(got.at(i, j), sum, 1e-6 * magnitude)
              << set->name << " " << c.m << " x " << c.n << " x " << c.k << " at " << i << ", "
              << j;
        }
      }
    }
  }
}

TEST(CpuKernelsProduct, InPairsWithinRounding) {
  for (const Case& c : kCases) expect_near_in_pairs(c);
  // Tiles of 16 rows, 16 columns and 16 pairs: whole ones, two by two, and parts of them.
  for (const std::int64_t rows : {15, 16, 17, 32, 33}) {
    for (const std::int64_t columns : {16, 40, 64}) {
      for (const std::int64_t terms : {31, 32, 34, 65}) {
        expect_near_in_pairs({rows, columns, terms});
      }
    }
  }
}

TEST(CpuKernelsProduct, InfinityAndNaNArrive) {
  const Case c = {9, 20, 8};
  std::vector<float> x = random_floats(c.m * c.k, 1), y = random_floats(c.k * c.n, 2);
  x[3] = INFINITY, y[5] = NAN;  // row 0 of a, column 5 of b
  const Placed a = place(x, c.m, c.k, DType::bf16, c.a), b = place(y, c.k, c.n, DType::bf16, c.b);
  for (const Kernels* const set : sets_with_pairs()) {
    for (const Rounding rounding : {Rounding::apart, Rounding::fused, Rounding::pairs}) {
      const TestTile<float> got = run_product(*set, c, Element::bf16, rounding, a, b, nullptr);
      for (std::int64_t i = 0; i < c.m; ++i) {
        for (std::int64_t j = 0; j < c.n; ++j) {
          ASSERT_EQ(std::isnan(got.at(i, j)), j == 5) << set->name;
          ASSERT_EQ(std::isinf(got.at(i, j)), i == 0 && j != 5) << set->name;
        }
      }
    }
  }
}

// What a mask asks for: columns first(row) to last(row), of which a block may have any.
TEST(CpuKernelsProduct, IsRightWhereItIsNeeded) {
  const Case c = {130, 150, 9};
  std::vector<float> x = random_floats(c.m * c.k, 1), y = random_floats(c.k * c.n, 2);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Placed a = place(x, c.m, c.k, dtype, c.a), b = place(y, c.k, c.n, dtype, c.b);
    const Element element = dtype == DType::f32 ? Element::f32 : Element::bf16;
    for (const std::int64_t width : {0, 1, 40, 200}) {
      const auto is_needed = [&](std::int64_t i, std::int64_t j) {
        return i % 7 != 3 && j <= i && j > i - width;
      };
      std::vector<std::uint8_t> mask(static_cast<std::size_t>(c.m * 160));
      for (std::int64_t i = 0; i < c.m; ++i) {
        for (std::int64_t j = 0; j < c.n; ++j) {
          mask[static_cast<std::size_t>(i * 160 + j)] = is_needed(i, j) ? 1 : 0;
        }
      }
      for (const Kernels* const set : sets_with_pairs()) {
        const Rounding rounding = element == Element::bf16 ? Rounding::pairs : Rounding::fused;
        const TestTile<float> all = run_product(*set, c, element, rounding, a, b, nullptr);
        const TestTile<float> some =
            run_product(*set, c, element, rounding, a, b, nullptr, {mask.data(), 160, 1});
        for (std::int64_t i = 0; i < c.m; ++i) {
          for (std::int64_t j = 0; j < c.n; ++j) {
            if (!is_needed(i, j)) continue;
            ASSERT_EQ(some.at(i, j), all.at(i, j)) << set->name << ' ' << i << ' ' << j;
          }
        }
        // A block of columns that no row of its 32 needs is left out.
        const bool is_left_out = std::memcmp(&some.at(0, 149), &all.at(0, 149), 4) != 0;
        EXPECT_TRUE(is_left_out) << set->name;
      }
    }
  }
}

// b holds infinities where all rows that are multiplied at once have zeros: before `begin`, and
// from `end` on.
void expect_zeros_skipped(Order order, Element element, std::int64_t begin, std::int64_t end) {
  const Case c = {32, 21, 556, order};
  std::vector<float> x = random_floats(c.m * c.k, 1), y = random_floats(c.k * c.n, 2);
  std::vector<float> finite = y;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t t = 0; t < c.k; ++t) {
      const bool is_zero =
          t < begin + (i == 30 ? 0 : 16 + i) || (end < c.k && t >= end - (i + 5) % 32);
      if (is_zero) x[static_cast<std::size_t>(i * c.k + t)] = t % 2 ? 0.0f : -0.0f;
    }
  }
  for (std::int64_t t = 0; t < c.k; ++t) {
    if (t >= begin && t < end) continue;
    for (std::int64_t j = 0; j < c.n; ++j) y[static_cast<std::size_t>(t * c.n + j)] = INFINITY;
  }
  const DType dtype = static_cast<DType>(element);
  const Placed a = place(x, c.m, c.k, dtype, c.a), b = place(y, c.k, c.n, dtype, c.b);
  const Placed right = place(finite, c.k, c.n, dtype, c.b);
  for (const Kernels* const set : sets_with_pairs()) {
    const Rounding rounding = element == Element::bf16 ? Rounding::pairs : Rounding::fused;
    const TestTile<float> wanted = run_product(*set, c, element, rounding, a, right, nullptr);
    const TestTile<float> got =
        run_product(*set, c, element, rounding, a, b, nullptr, {}, /*skips_zeros=*/true);
    const TestTile<float> strict = run_product(*set, c, element, rounding, a, b, nullptr);
    for (std::int64_t i = 0; i < c.m; ++i) {
      for (std::int64_t j = 0; j < c.n; ++j) {
        ASSERT_EQ(got.at(i, j), wanted.at(i, j))
            << set->name << " " << i << " " << j << ", of " << begin << " to " << end;
        ASSERT_TRUE(std::isnan(strict.at(i, j))) << set->name;
      }
    }
  }
}

// On both sides; in front, also of the last terms alone; and all.
TEST(CpuKernelsProduct, ZerosAreSkippedWhereThatIsAllowed) {
  for (const auto& [begin, end] : {std::pair(64, 352), {64, 556}, {544, 556}, {556, 556}}) {
    expect_zeros_skipped(Order::rows, Element::f32, begin, end);
    expect_zeros_skipped(Order::columns, Element::f32, begin, end);
    expect_zeros_skipped(Order::rows, Element::bf16, begin, end);
  }
}

template <typename T>
void expect_integers(Element element) {
  const std::int64_t m = 5, n = 37, k = 19;
  std::mt19937_64 random(4);
  std::vector<T> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
  for (T& value : a) value = static_cast<T>(random());
  for (T& value : b) value = static_cast<T>(random());
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  for (const Kernels* const set : sets_here()) {
    TestTile<std::int32_t> result(m, n);
    Scratch scratch(*set, {m, n, k}, element);
    set->product({m,
                  n,
                  k,
                  {a.data(), k * kBytes, kBytes},
                  {b.data(), n * kBytes, kBytes},
                  element,
                  result.result(),
                  false,
                  Rounding::apart,
                  scratch.aligned()});
    EXPECT_TRUE(scratch.is_closed()) << set->name;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        std::uint32_t sum = 0;
        for (std::int64_t t = 0; t < k; ++t) {
          sum += static_cast<std::uint32_t>(a[static_cast<std::size_t>(i * k + t)]) *
                 static_cast<std::uint32_t>(b[static_cast<std::size_t>(t * n + j)]);
        }
        ASSERT_EQ(result.at(i, j), static_cast<std::int32_t>(sum)) << set->name;
      }
    }
  }
}

// The second one reads what the first one packed, and no more of b.
TEST(CpuKernelsProduct, FindsWhatWasPacked) {
  for (const Kernels* const set : sets_here()) {
    for (const auto& [element, dtype] :
         {std::pair{Element::f32, f32}, std::pair{Element::bf16, bf16},
          std::pair{Element::f16, f16}}) {
      for (const Order order : {Order::rows, Order::columns}) {
        SCOPED_TRACE(set->name);
        const Case c{37, 300, 585, Order::rows, order};
        std::vector<float> x = random_floats(c.m * c.k, 1), y = random_floats(c.k * c.n, 2);
        const Placed a = place(x, c.m, c.k, dtype, c.a);
        Placed b = place(y, c.k, c.n, dtype, c.b);
        Scratch scratch(*set, c, element);
        std::vector<float> memory(static_cast<std::size_t>(c.k * 320 + 32), NAN);
        auto* const first =
            memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64 / 4;
        Packs packs{first, false};
        const auto run = [&](Packs* with) {
          TestTile<float> result(c.m, c.n);
          Product product{c.m,
                          c.n,
                          c.k,
                          a.matrix,
                          b.matrix,
                          element,
                          result.result(),
                          false,
                          Rounding::pairs,
                          scratch.aligned()};
          product.packs = with;
          set->product(product);
          return result;
        };
        const TestTile<float> wanted = run(nullptr), packed = run(&packs);
        float* const end = packs.at;
        EXPECT_GT(end, first);
        EXPECT_LE(end, first + c.k * 320);
        std::fill(b.bytes.begin(), b.bytes.end(), std::byte{0xff});
        packs = {first, true};
        const TestTile<float> found = run(&packs);
        EXPECT_EQ(packs.at, end);
        for (std::int64_t i = 0; i < c.m; ++i) {
          for (std::int64_t j = 0; j < c.n; ++j) {
            ASSERT_EQ(packed.at(i, j), wanted.at(i, j)) << i << ", " << j;
            ASSERT_EQ(found.at(i, j), wanted.at(i, j)) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(CpuKernelsProduct, OfIntegersWraps) {
  expect_integers<std::int32_t>(Element::i32);
  expect_integers<std::int64_t>(Element::i64);
}

}  // namespace
}  // namespace tilewright::cpu
