#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// A page of X, up to where it ends, goes through shared memory to a page of Y, up to where that
// ends: both by TMA.
namespace tilewright::test {

constexpr int kPages = 5, kPageRows = 16, kPageColumns = 32;

enum class To : std::uint8_t { stored, added };

// 16 rows from `first` on, of which those below `limit` exist.
struct PartOfPage {
  int page = 0, first = 0, limit = kPageRows;
  bool has(int row) const {
    return page >= 0 && page < kPages && row >= first && row < std::min(limit, kPageRows);
  }
};
struct Moved {
  PartOfPage from, to;
};

inline Kernel move_page(To to) {
  Kernel kernel("move_page");
  const Dim pages = kernel.dim("pages");
  const std::vector<Dim> shape{pages, kPageRows, kPageColumns};
  const Tensor X = kernel.in("X", f32, shape);
  const Tensor numbers = kernel.in("numbers", i32, {6});
  const Tensor Y = kernel.inout("Y", f32, shape);
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(1), {{f32, kPageRows, kPageColumns}});
  const auto part = [&](const Tensor& tensor, int first) {
    const auto number = [&](int i) { return load_index(numbers(first + i)); };
    return tensor(Block(number(0), 1, Index(pages)), Block(number(1), kPageRows, number(2)), all);
  };
  kernel.roles({role("load", warps(1), registers(24),
                     [&] { ring.produce([&](const Slot& slot) { tma_load(part(X, 0), slot); }); }),
                role("store", warps(1), registers(24), [&] {
                  const Slot slot = ring.consume();
                  if (to == To::stored) tma_store(part(Y, 3), slot);
                  if (to == To::added) tma_reduce(part(Y, 3), slot, Reduction::add);
                  bulk_commit();
                  bulk_wait(0);
                  ring.release(slot);
                })});
  return kernel;
}

inline std::vector<HostTensor> tensors_of(const Moved& moved) {
  const std::vector<std::int64_t> shape{kPages, kPageRows, kPageColumns};
  HostTensor x = HostTensor::zeros(f32, shape), y = x;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    x.set_flat(i, static_cast<double>(i + 1));
    y.set_flat(i, -7);
  }
  const auto& [from, to] = moved;
  const std::vector<double> numbers{double(from.page), double(from.first), double(from.limit),
                                    double(to.page),   double(to.first),   double(to.limit)};
  return {x, HostTensor::from_values(i32, {6}, numbers), y};
}

// The tensors before and behind the launch.
inline void expect_moved(const std::vector<HostTensor>& given, const std::vector<HostTensor>& left,
                         To how, const Moved& moved) {
  const auto& [from, to] = moved;
  SCOPED_TRACE(testing::Message() << (how == To::added ? "added: " : "stored: ") << from.page << " "
                                  << from.first << ".." << from.limit << " to " << to.page << " "
                                  << to.first << ".." << to.limit);
  for (std::int64_t page = 0; page < kPages; ++page) {
    for (int row = 0; row < kPageRows; ++row) {
      const int source = from.first + row - to.first;
      for (std::int64_t column = 0; column < kPageColumns; ++column) {
        const double was = given[2].at({page, row, column});
        const double brought = from.has(source) ? given[0].at({from.page, source, column}) : 0;
        const bool is_written = page == to.page && to.has(row);
        ASSERT_EQ(left[2].at({page, row, column}), !is_written        ? was
                                                   : how == To::added ? was + brought
                                                                      : brought)
            << page << ", " << row << ", " << column;
      }
    }
  }
}

// Parts of which everything exists, some rows, and nothing: loaded, and stored to.
inline std::vector<Moved> moved_pages() {
  std::vector<Moved> cases;
  for (const PartOfPage& part : {PartOfPage{0, 0, 16},
                                 {0, 3, 9},
                                 {4, 0, 1},
                                 {4, 15, 16},
                                 {0, 0, 0},
                                 {4, 0, 0},
                                 {2, 9, 9},
                                 {2, 12, 4},
                                 {0, 16, 16},
                                 {1, 0, -3},
                                 {1, 0, 40}}) {
    cases.push_back({part, {}});
    cases.push_back({{}, part});
  }
  return cases;
}

}  // namespace tilewright::test
