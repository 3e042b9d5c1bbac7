#include "cpu/call.h"

#include <algorithm>
#include <utility>

namespace tilewright::cpu {
namespace {

Operand operand_at(const Call::Place& place) {
  return {place.data, place.row_stride, place.column_stride == 0};
}
Result result_at(const Call::Place& place) { return {place.data, place.row_stride}; }
Matrix matrix_at(const Call::Place& place) {
  return {place.data, place.row_stride, place.column_stride};
}

// Operands as most functions take them.
struct Operands {
  explicit Operands(const std::array<Call::Place, 4>& places)
      : all{operand_at(places[0]), operand_at(places[1]), operand_at(places[2])},
        result(result_at(places[kResult])) {}
  Operand all[3];
  Result result;
};

struct Perform {
  const Call& call;

  void operator()(Elementwise function) const {
    const Operands of(call.places);
    function(call.shape, of.all, of.result);
  }
  void operator()(Select function) const {
    const Operands of(call.places);
    function(call.shape, of.all[0], of.all[1], of.all[2], of.result);
  }
  void operator()(Convert function) const {
    function(call.shape, operand_at(call.places[0]), result_at(call.places[kResult]));
  }
  void operator()(Copy function) const {
    function(call.shape, matrix_at(call.places[0]), matrix_at(call.places[kResult]));
  }
  void operator()(Fill function) const {
    function(call.shape, call.places[0].data, result_at(call.places[kResult]));
  }
  void operator()(ReduceProducts function) const {
    function(call.shape, operand_at(call.places[0]), operand_at(call.places[1]),
             call.places[kResult].data);
  }
  void operator()(Reduce function) const {
    function(call.shape, operand_at(call.places[0]), call.places[kResult].data);
  }
};

void move(const void*& data, std::int64_t bytes) {
  data = static_cast<const std::byte*>(data) + bytes;
}

}  // namespace

void perform(const Call& call) { std::visit(Perform{call}, call.function); }

CallOfStrips::CallOfStrips(const Call& call, const PartOfStrips& part)
    : call_(call),
      last_step_(part.step),
      first_(part.first),
      next_(part.first),
      last_(part.first + (part.is_of_column ? call.shape.columns : call.shape.rows)),
      weight_(part.weight),
      is_of_column_(part.is_of_column) {
  for (Call::Place& place : call_.places)
    place.data -= place.is_of_strip ? first_ * step(place) : 0;
}

// From row to row of the strips.
std::int64_t CallOfStrips::step(const Call::Place& place) const {
  return is_of_column_ ? place.column_stride : place.row_stride;
}

void CallOfStrips::ask_ahead(const Ahead& ahead, std::int64_t first_step,
                             std::int64_t second_step) {
  ahead_ = ahead;
  first_step_ = first_step;
  second_step_ = second_step;
}

bool CallOfStrips::perform_next(std::int64_t begin, std::int64_t end) {
  const std::int64_t low = std::max(begin, next_), high = std::min(end, last_);
  if (low >= high) return false;
  const std::int64_t rows = high - low;
  (is_of_column_ ? call_.shape.columns : call_.shape.rows) = rows;
  call_.shape.ahead = ahead_.lines > 0 ? &ahead_ : nullptr;
  if (low > begin) move_within(low - begin);
  if (steps_.empty()) {
    perform(call_);
  } else {
    chain_(call_.shape, steps_.data(), static_cast<int>(steps_.size()));
  }
  if (low > begin) move_within(begin - low);
  move_on(rows);
  ahead_.first += rows * first_step_;
  ahead_.second += rows * second_step_;
  next_ = high;
  return true;
}

void CallOfStrips::move_on(std::int64_t rows) {
  if (steps_.empty()) {
    for (Call::Place& place : call_.places)
      place.data += place.is_of_strip ? 0 : rows * step(place);
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      const Call::Place& place = places_[i][j];
      if (!place.is_of_strip) move(steps_[i].operands[j], rows * place.row_stride);
    }
  }
}

// To the row that lies so many behind the first one of the strip.
void CallOfStrips::move_within(std::int64_t rows) {
  for (Call::Place& place : call_.places) place.data += place.is_of_strip ? rows * step(place) : 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      const Call::Place& place = places_[i][j];
      if (place.is_of_strip) move(steps_[i].operands[j], rows * place.row_stride);
    }
  }
}

void CallOfStrips::add_step(Step step, const Places& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    step.operands[i] = places[i].data;
    step.row_strides[i] = places[i].row_stride;
    step.repeats[i] = places[i].data != nullptr && places[i].column_stride == 0;
  }
  steps_.push_back(step);
  places_.push_back(places);
}

void CallOfStrips::add_store(Element element, const Call::Place& place) {
  add_step({.kind = StepKind::store, .element = element, .is_far = place.is_far}, {place});
}

// A function loads its first operand, and finds the others by itself.
void CallOfStrips::begin_chain() {
  constexpr std::size_t kUsual = 6;
  steps_.reserve(kUsual);
  places_.reserve(kUsual);
  const bool is_function = last_step_.function != Function::count;
  add_step({.kind = StepKind::load, .element = last_step_.from}, {call_.places[0]});
  if (is_function) {
    add_step({.kind = StepKind::function, .function = last_step_.function},
             {call_.places[1], call_.places[2]});
  }
  add_store(Element::f32, call_.places[kResult]);
}

bool CallOfStrips::extend(const Call& next, const PartOfStrips& part, Chain chain) {
  constexpr std::size_t kMoreSteps = 3;
  if (is_of_column_ || part.is_of_column || next.shape.rows != call_.shape.rows ||
      next.shape.columns != call_.shape.columns || steps_.size() + kMoreSteps > kMaximumSteps) {
    return false;
  }
  chain_ = chain;
  if (steps_.empty()) begin_chain();
  if (!last_step_.is_kept) {
    steps_.pop_back();
    places_.pop_back();
  }
  last_step_ = part.step;
  weight_ += part.weight;
  const std::array<Call::Place, 4>& places = next.places;
  if (part.step.squares) {
    add_step({.kind = StepKind::square}, {});
  } else if (!part.step.sums && part.step.function != Function::count) {
    const std::size_t takes = part.step.takes;
    add_step({.kind = StepKind::function,
              .function = part.step.function,
              .place = static_cast<std::uint8_t>(takes)},
             {places[takes == 0 ? 1 : 0], places[takes == 2 ? 1 : 2]});
  }
  if (part.step.sums) {
    add_step({.kind = StepKind::sum}, {places[kResult]});
  } else {
    add_store(part.step.to, places[kResult]);
  }
  return true;
}

bool CallOfStrips::stores_far(Chain chain) {
  if (steps_.empty() && call_.places[kResult].is_far && last_step_.function != Function::count) {
    chain_ = chain;
    begin_chain();
  }
  return !steps_.empty() && steps_.back().is_far;
}

}  // namespace tilewright::cpu
