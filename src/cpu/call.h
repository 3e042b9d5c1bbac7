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
// Of a function of each element by itself: rows that lie one behind the other are a single one, of
// which loops have more.
void perform_as_one_row(const Call& call);

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

// The steps of chains, one chain behind the other, and where their operands lie.
struct ChainSteps {
  using Places = std::array<Call::Place, 2>;

  void clear() {
    steps.clear();
    places.clear();
  }
  std::vector<Step> steps;
  std::vector<Places> places;
};

// What it is made of stays as it is from strip to strip, and each strip's addresses are computed
// from it: two numbers that were stored one by one and are then loaded as one vector are waited for
// until they have reached the cache, and with them all that was stored before, also past the
// caches.
class CallOfStrips {
 public:
  CallOfStrips(const Call& call, const PartOfStrips& part, ChainSteps& chains);

  const Shape& shape() const { return call_.shape; }
  // Calls visit(place) for all memory that it reads or writes.
  template <typename Visit>
  void for_places(Visit visit) const {
    for (std::size_t i = first_step_; i < end_step_; ++i) {
      for (const Call::Place& place : chains_.places[i]) visit(place);
    }
    if (is_chain()) return;
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

  // What it has of a strip, from row `begin` to before row `end`. False if that is nothing.
  bool perform(std::int64_t begin, std::int64_t end);

 private:
  bool is_chain() const { return end_step_ > first_step_; }
  void begin_chain(Chain chain);
  void add_store(Element element, const Call::Place& place);
  void add_step(Step step, const ChainSteps::Places& places);

  Call call_;  // the first, where it is a chain of several
  StepOfChain last_step_;
  Chain chain_ = nullptr;
  ChainSteps& chains_;
  std::size_t first_step_ = 0, end_step_ = 0;  // among them: none for a single call
  Ahead ahead_begin_ = {}, ahead_ = {};
  std::int64_t ahead_rows_[2] = {};  // how far on from row to row
  std::int64_t first_, last_;        // rows of the strips
  std::int64_t weight_;
  bool is_of_column_;
};

}  // namespace tilewright::cpu
