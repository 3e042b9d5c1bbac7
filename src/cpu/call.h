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
  std::array<Place, 4> places = {};  // of three operands, and of the result
};
constexpr std::size_t kResult = 3;

void perform(const Call& call);

// What a call is to strips, which make it for some of its rows at a time.
struct PartOfStrips {
  std::int64_t first = 0;  // its rows begin behind so many of the strips' rows
  // How long it takes for an element, roughly, if it asks for memory meanwhile; else 0.
  std::int64_t weight = 0;
  bool is_of_column = false;  // the strips' rows are its columns
};

class CallOfStrips {
 public:
  CallOfStrips(const Call& call, const PartOfStrips& part);

  const Call& call() const { return call_; }
  bool is_of_column() const { return is_of_column_; }
  std::int64_t weight() const { return is_of_column_ ? 0 : weight_; }
  // What it asks for while the first strip is computed, and how far on that is for each row behind.
  void ask_ahead(const Ahead& ahead, std::int64_t first_step, std::int64_t second_step);

  // What it has of the next strip, from row `begin` to before row `end`. False if that is nothing.
  bool perform_next(std::int64_t begin, std::int64_t end);

 private:
  Call call_;
  Ahead ahead_ = {};
  std::array<std::int64_t, 4> steps_ = {};  // from row to row of the strips
  std::int64_t first_step_ = 0, second_step_ = 0;
  std::int64_t next_, last_;  // rows of the strips
  std::int64_t weight_;
  bool is_of_column_;
};

}  // namespace tilewright::cpu
