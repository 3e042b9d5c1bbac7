#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "cpu/kernels.h"

namespace tilewright::cpu {

// One call of a function of rows and columns: which one, and where its operands and its result lie.
struct Call {
  struct Place {
    std::byte* data = nullptr;
    std::int64_t row_stride = 0, column_stride = 0;
    bool is_of_strip = false;  // the rows of each strip lie where those of the first one do
  };
  using Function = std::variant<Elementwise, Select, Convert, Copy, Fill, Reduce>;

  Function function;
  Shape shape;
  std::array<Place, 3> operands = {};
  Place result = {};
};

void perform(const Call& call);

// A call that strips repeat: its rows begin behind the first rows of the strips.
struct CallOfStrips {
  Call call;
  std::int64_t first = 0;
  bool is_of_column = false;  // the strips' rows are the call's columns
};

// Those of its rows that lie in a strip, from row `begin` to before row `end`. False where none do.
bool perform(const CallOfStrips& each, std::int64_t begin, std::int64_t end);

}  // namespace tilewright::cpu
