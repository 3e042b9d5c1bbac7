#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "cpu/kernel_sets.h"

namespace tilewright::cpu {
namespace {

constexpr Reduction kReductions[] = {Reduction::add, Reduction::min, Reduction::max};

std::uint32_t pattern(float x) {
  return std::isnan(x) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(x);
}

float in_order(Reduction f, const float* first, std::int64_t count, std::int64_t step) {
  if (count == 0) return f == Reduction::add ? 0 : f == Reduction::min ? INFINITY : -INFINITY;
  float result = first[0];
  for (std::int64_t i = 1; i < count; ++i) {
    const float next = first[i * step];
    const bool keeps = f == Reduction::min ? result < next : result > next;
    result = f == Reduction::add ? result + next : keeps || std::isnan(next) ? result : next;
  }
  return result;
}

// Rows of one kind each: plain numbers, with zeros of both signs, with NaN, only NaN, infinite.
void fill_rows(TestTile<float>& tile) {
  std::mt19937 random(11);
  std::int64_t next = 0;
  tile.fill([&]() -> float {
    const std::int64_t row = next++ / std::max<std::int64_t>(tile.columns(), 1);
    const std::uint32_t bits = random();
    if (row == 1) return bits % 2 ? 0.0f : -0.0f;
    if (row == 2 && bits % 3 == 0) return NAN;
    if (row == 3) return NAN;
    if (row == 4) return -INFINITY;
    if (row == 5) return INFINITY;
    return std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)), -(bits % 30));
  });
}

TEST(CpuKernelsReduce, OfFloatsAlongRowsAndColumnsOfEveryLength) {
  constexpr std::int64_t kRows = 37;  // whole vectors of rows, and some more
  for (std::int64_t columns = 0; columns <= 70; ++columns) {
    TestTile<float> tile(kRows, columns);
    fill_rows(tile);
    for (const Kernels* const set : sets_here()) {
      for (const Reduction f : kReductions) {
        std::vector<float> rows(room(kRows), 5.0f),
            wide(static_cast<std::size_t>(room(columns) + 16), 5.0f);
        set->reduce_along_row[static_cast<int>(f)][0]({kRows, columns}, tile.operand(),
                                                      rows.data());
        for (std::int64_t i = 0; i < kRows; ++i) {
          const float wanted = in_order(f, tile.row(i), columns, 1);
          ASSERT_EQ(pattern(rows[static_cast<std::size_t>(i)]), pattern(wanted))
              << set->name << " row " << i << " of " << columns;
        }
        set->reduce_along_column[static_cast<int>(f)][0]({kRows, columns}, tile.operand(),
                                                         wide.data());
        for (std::int64_t j = 0; j < columns; ++j) {
          ASSERT_EQ(pattern(wide[static_cast<std::size_t>(j)]),
                    pattern(in_order(f, tile.row(0) + j, kRows, room(columns))))
              << set->name << " column " << j << " of " << columns;
        }
        ASSERT_EQ(wide[static_cast<std::size_t>(room(columns))], 5.0f) << set->name;
      }
    }
  }
}

// Part j of 16 has the elements j, j + 64 and so on, then those of j + 16, j + 32 and j + 48.
float in_parts(const float* row, std::int64_t columns) {
  float parts[64];
  std::fill(std::begin(parts), std::end(parts), -0.0f);
  for (std::int64_t i = 0; i < columns; ++i) parts[i % 64] += row[i];
  for (int j = 0; j < 16; ++j) {
    parts[j] = (parts[j] + parts[j + 16]) + (parts[j + 32] + parts[j + 48]);
  }
  for (int j = 0; j < 4; ++j) {
    parts[j] = (parts[j] + parts[j + 8]) + (parts[j + 4] + parts[j + 12]);
  }
  return columns == 0 ? 0 : (parts[0] + parts[2]) + (parts[1] + parts[3]);
}

TEST(CpuKernelsReduce, SumsInPartsHaveOneOrder) {
  constexpr std::int64_t kRows = 37;
  for (std::int64_t columns = 0; columns <= 200; ++columns) {
    TestTile<float> tile(kRows, columns);
    fill_rows(tile);
    for (const Kernels* const set : sets_here()) {
      std::vector<float> sums(room(kRows), 5.0f);
      set->sum_along_row_in_parts({kRows, columns}, tile.operand(), sums.data());
      for (std::int64_t i = 0; i < kRows; ++i) {
        ASSERT_EQ(pattern(sums[static_cast<std::size_t>(i)]),
                  pattern(in_parts(tile.row(i), columns)))
            << set->name << " row " << i << " of " << columns;
      }
    }
  }
}

TEST(CpuKernelsReduce, SumsOfProductsAreTheSumsOfWhatTheFunctionGives) {
  constexpr std::int64_t kRows = 37;
  for (const std::int64_t columns : {0, 1, 16, 63, 64, 200}) {
    TestTile<float> a(kRows, columns), b(kRows, columns), product(kRows, columns);
    fill_rows(a);
    fill_rows(b);
    for (const Kernels* const set : sets_here()) {
      const Operand factors[] = {a.operand(), b.operand()};
      set->elementwise[static_cast<int>(Function::mul)][static_cast<int>(Lane::f32)](
          {kRows, columns}, factors, product.result());
      std::vector<float> sums(room(kRows), 5.0f);
      set->sum_of_products_in_parts({kRows, columns}, a.operand(), b.operand(), sums.data());
      for (std::int64_t i = 0; i < kRows; ++i) {
        ASSERT_EQ(pattern(sums[static_cast<std::size_t>(i)]),
                  pattern(in_parts(product.row(i), columns)))
            << set->name << " row " << i << " of " << columns;
      }
    }
  }
}

TEST(CpuKernelsReduce, OfNoRows) {
  TestTile<float> tile(1, 20);
  tile.fill([] { return 1.0f; });
  for (const Kernels* const set : sets_here()) {
    std::vector<float> result(32);
    for (const Reduction f : kReductions) {
      set->reduce_along_column[static_cast<int>(f)][0]({0, 20}, tile.operand(), result.data());
      for (int j = 0; j < 20; ++j) {
        ASSERT_EQ(result[static_cast<std::size_t>(j)], in_order(f, nullptr, 0, 1));
      }
    }
  }
}

template <typename T>
void expect_whole_reductions(Lane lane) {
  std::mt19937_64 random(12);
  for (const std::int64_t columns : {0, 1, 15, 33, 300}) {
    TestTile<T> tile(5, columns);
    tile.fill([&] { return static_cast<T>(random()); });
    for (const Kernels* const set : sets_here()) {
      for (const Reduction f : kReductions) {
        const auto wanted = [&](const T* first, std::int64_t count, std::int64_t step) {
          T result = f == Reduction::add   ? 0
                     : f == Reduction::min ? std::numeric_limits<T>::max()
                                           : std::numeric_limits<T>::min();
          for (std::int64_t i = 0; i < count; ++i) {
            const T next = first[i * step];
            using Unsigned = std::make_unsigned_t<T>;
            result =
                f == Reduction::add
                    ? static_cast<T>(static_cast<Unsigned>(result) + static_cast<Unsigned>(next))
                : f == Reduction::min ? std::min(result, next)
                                      : std::max(result, next);
          }
          return result;
        };
        std::vector<T> rows(16), wide(static_cast<std::size_t>(room(columns)));
        const int to = static_cast<int>(lane);
        set->reduce_along_row[static_cast<int>(f)][to]({5, columns}, tile.operand(), rows.data());
        set->reduce_along_column[static_cast<int>(f)][to]({5, columns}, tile.operand(),
                                                          wide.data());
        for (std::int64_t i = 0; i < 5; ++i) {
          ASSERT_EQ(rows[static_cast<std::size_t>(i)], wanted(tile.row(i), columns, 1));
        }
        for (std::int64_t j = 0; j < columns; ++j) {
          ASSERT_EQ(wide[static_cast<std::size_t>(j)], wanted(tile.row(0) + j, 5, room(columns)));
        }
      }
    }
  }
}
TEST(CpuKernelsReduce, OfIntegers) {
  expect_whole_reductions<std::int32_t>(Lane::i32);
  expect_whole_reductions<std::int64_t>(Lane::i64);
}

TEST(CpuKernelsReduce, AnyLooksAtWhatExists) {
  for (const Kernels* const set : sets_here()) {
    for (std::int64_t columns = 0; columns <= 70; ++columns) {
      TestTile<std::uint8_t> tile(3, columns);  // behind the columns all is 0xff
      tile.fill([] { return std::uint8_t{0}; });
      ASSERT_FALSE(set->any({3, columns}, tile.operand())) << set->name << " of " << columns;
      if (columns == 0) continue;
      tile.at(2, columns - 1) = 1;
      ASSERT_TRUE(set->any({3, columns}, tile.operand())) << set->name << " of " << columns;
      ASSERT_FALSE(set->any({2, columns}, tile.operand()));
    }
  }
}

}  // namespace
}  // namespace tilewright::cpu
