#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "cpu/kernels.h"

namespace tilewright::cpu {

// One call of a function of rows and columns: which one, and where its operands and its result lie.
struct Call {
  struct Place {
    std::byte* data = nullptr;
    std::int64_t row_stride = 0, column_stride = 0;
    bool is_of_strip = false;  // the rows of each strip lie where those of the first one do
    bool is_far = false;       // what is stored there goes past the caches
  };
  using Function = std::variant<Elementwise, Select, Convert, Copy, Fill, Reduce, ReduceProducts>;

  Function function;
  Shape shape;
  std::array<Place, 4> places = {};  // of three operands, and of the result
};
constexpr std::size_t kResult = 3;

void perform(const Call& call);

// What a call is as a step of a chain (kernels.h): a function of f32, or a conversion.
struct StepOfChain {
  Function function = Function::count;             // count: a conversion
  Element from = Element::f32, to = Element::f32;  // of a conversion
  std::size_t takes = 0;                           // the operand that the call before computes
  bool squares = false;                            // the other one too
  bool is_kept = true;                             // others need the result as well
  bool sums = false;                               // a sum of each row, or of the squares
};

// What a call is to strips, which make it for some of its rows at a time.
struct PartOfStrips {
  std::int64_t first = 0;  // its rows begin behind so many of the strips' rows
  // How long it takes for an element, roughly, if it asks for memory meanwhile; else 0.
  std::int64_t weight = 0;
  bool is_of_column = false;  // the strips' rows are its columns
  StepOfChain step = {};
};

class CallOfStrips {
 public:
  CallOfStrips(const Call& call, const PartOfStrips& part);

  const Shape& shape() const { return call_.shape; }
  // Calls visit(place) for all memory that it reads or writes.
  template <typename Visit>
  void for_places(Visit visit) const {
    for (const Places& places : places_) {
      for (const Call::Place& place : places) visit(place);
    }
    if (!places_.empty()) return;
    for (const Call::Place& place : call_.places) visit(place);
  }
  // Takes the call behind this one as well, which becomes a step of a chain. False if it cannot.
  bool extend(const Call& next, const PartOfStrips& part, Chain chain);
  // Whether it stores past the caches. That of a single function becomes a chain, which can.
  bool stores_far(Chain chain);
  bool is_of_column() const { return is_of_column_; }
  std::int64_t weight() const { return is_of_column_ ? 0 : weight_; }
  // What it asks for while the first strip is computed, and how far on that is for each row behind.
  void ask_ahead(const Ahead& ahead, std::int64_t first_step, std::int64_t second_step);

  // What it has of the next strip, from row `begin` to before row `end`. False if that is nothing.
  bool perform_next(std::int64_t begin, std::int64_t end);

 private:
  using Places = std::array<Call::Place, 2>;

  std::int64_t step(const Call::Place& place) const;
  void move_on(std::int64_t rows);
  void move_within(std::int64_t rows);
  void begin_chain();
  void add_store(Element element, const Call::Place& place);
  void add_step(Step step, const Places& places);

  Call call_;  // the first, where it is a chain of several
  StepOfChain last_step_;
  Chain chain_ = nullptr;
  std::vector<Step> steps_;     // empty for a single call
  std::vector<Places> places_;  // of the steps, as the first strip has them
  Ahead ahead_ = {};
  std::int64_t first_step_ = 0, second_step_ = 0;
  std::int64_t first_, next_, last_;  // rows of the strips
  std::int64_t weight_;
  bool is_of_column_;
};

}  // namespace tilewright::cpu
