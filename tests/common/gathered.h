#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/programs.h"
#include "tilewright/compile.h"
#include "tilewright/program.h"

// A program that reads how long sequences are, and where their rows lie.
namespace tilewright::test {

inline constexpr int kPage = 4;

// Sequence b's rows, which lie in pages, one behind the other and twice what they were: row
// `b * most + i` of y. Of a sequence without rows the first row of y is 0.
struct Gathered {
  Program program{"gathered"};
  Dim batch = program.dim("batch"), slots = program.dim("slots"), most = program.dim("most");
  Buffer x = program.in("x", f32, {slots, kColumns});
  Buffer table = program.in("table", i32, {batch, most});
  Buffer lengths = program.in("lengths", i32, {batch});
  Buffer y = program.inout("y", f32, {batch * most * kPage, kColumns});
  Buffer twice = program.scratch("twice", f32, {kPage, kColumns});
  int read_line = 0, launch_line = 0, repeat_line = 0;

  explicit Gathered(bool guards = true) {
    const Stream stream = program.rank(0).stream();
    program.repeat("b", batch, [&](const Dim& b) {
      const Dim length = program.read("length", lengths, {b});
      const Dim first = b * most * kPage;
      program.when(
          length, Compare::ne, 0,
          [&] {
            repeat_line = __LINE__ + 1;
            program.repeat("j", guards ? ceil_div(length, kPage) : length, [&](const Dim& j) {
              read_line = __LINE__ + 1;
              const Dim page = program.read("page", table, {b, j});
              const Dim rows = guards ? min(length - j * kPage, kPage) : Dim(kPage);
              launch_line = __LINE__ + 1;
              stream.launch(scale(), {x.rows(page * kPage, rows), twice.rows(0, rows)}, {2});
              stream.copy(y.rows(first + j * kPage, rows), twice.rows(0, rows));
            });
          },
          [&] { stream.zero(y.rows(first, 1)); });
    });
  }
};

struct GatheredTensors {
  HostTensor x = HostTensor::random_normal(f32, {5 * kPage, kColumns}, 1);
  HostTensor table = HostTensor::from_values(i32, {3, 3}, {4, 0, -1, -1, -1, -1, 2, 3, 1});
  HostTensor lengths = HostTensor::from_values(i32, {3}, {6, 0, 12});
  HostTensor y = HostTensor::poisoned(f32, {3 * 3 * kPage, kColumns});

  void run(const Gathered& of, const std::string& target) {
    compile(of.program, target).run({ref(x), ref(table), ref(lengths), ref(y)});
  }
  // How many rows are wrong; of those that nobody writes, what is not as it was.
  int wrong() const {
    const HostTensor poisoned = HostTensor::poisoned(f32, {1, kColumns});
    int count = 0;
    for (std::int64_t b = 0; b < 3; ++b) {
      const auto length = static_cast<std::int64_t>(lengths.at({b}));
      for (std::int64_t row = 0; row < 3 * kPage; ++row) {
        const double got = y.at({b * 3 * kPage + row, 5});
        if (row >= length) {
          const bool is_zero = length == 0 && row == 0;
          count += is_zero ? got != 0 : got == got;
          continue;
        }
        const auto page = static_cast<std::int64_t>(table.at({b, row / kPage}));
        count += got != 2 * x.at({page * kPage + row % kPage, 5});
      }
    }
    return count;
  }
};

}  // namespace tilewright::test
