#include "cpu/call.h"

#include <algorithm>

#include "cpu/engine_walk.h"

namespace tilewright::cpu {
namespace {

// Rows of a call, and where they begin.
struct RowsOfCall {
  std::byte* data(const Call::Place& place) const {
    const std::int64_t step = is_of_column ? place.column_stride : place.row_stride;
    return place.data + (place.is_of_strip ? first.of_strip : first.of_all) * step;
  }
  Operand operand(const Call::Place& place) const {
    return {data(place), place.row_stride, place.column_stride == 0};
  }
  Result result(const Call::Place& place) const { return {data(place), place.row_stride}; }
  Matrix matrix(const Call::Place& place) const {
    return {data(place), place.row_stride, place.column_stride};
  }

  FirstRow first;
  bool is_of_column;
};

struct Perform {
  const std::array<Call::Place, 4>& places;
  const Shape& shape;
  const RowsOfCall rows;

  void operator()(Elementwise function) const {
    const Operand all[] = {rows.operand(places[0]), rows.operand(places[1]),
                           rows.operand(places[2])};
    function(shape, all, rows.result(places[kResult]));
  }
  void operator()(Select function) const {
    function(shape, rows.operand(places[0]), rows.operand(places[1]), rows.operand(places[2]),
             rows.result(places[kResult]));
  }
  void operator()(Convert function) const {
    function(shape, rows.operand(places[0]), rows.result(places[kResult]));
  }
  void operator()(Copy function) const {
    function(shape, rows.matrix(places[0]), rows.matrix(places[kResult]));
  }
  void operator()(Fill function) const {
    function(shape, rows.data(places[0]), rows.result(places[kResult]));
  }
  void operator()(ReduceProducts function) const {
    function(shape, rows.operand(places[0]), rows.operand(places[1]), rows.data(places[kResult]));
  }
  void operator()(Reduce function) const {
    function(shape, rows.operand(places[0]), rows.data(places[kResult]));
  }
};

}  // namespace

void perform(const Call& call) {
  std::visit(Perform{call.places, call.shape, {{}, false}}, call.function);
}

void perform_as_one_row(const Call& call) {
  const std::int64_t columns = call.shape.columns;
  const bool are_one = columns % kWholeVectors == 0 &&
                       std::all_of(call.places.begin(), call.places.end(), [&](const auto& place) {
                         return place.row_stride == columns * place.column_stride;
                       });
  const Shape shape = are_one ? Shape{1, call.shape.rows * columns} : call.shape;
  std::visit(Perform{call.places, shape, {{}, false}}, call.function);
}

CallOfStrips::CallOfStrips(const Call& call, const PartOfStrips& part, ChainSteps& chains)
    : call_(call),
      last_step_(part.step),
      chains_(chains),
      first_(part.first),
      last_(part.first + (part.is_of_column ? call.shape.columns : call.shape.rows)),
      weight_(part.weight),
      is_of_column_(part.is_of_column) {
  // Of a strip's rows it has those from `first_` on.
  const RowsOfCall before{{0, -first_}, is_of_column_};
  for (Call::Place& place : call_.places) place.data = before.data(place);
}

void CallOfStrips::ask_ahead(const Ahead& ahead, std::int64_t first_step,
                             std::int64_t second_step) {
  ahead_ = ahead_begin_ = ahead;
  call_.shape.ahead = ahead.lines > 0 ? &ahead_ : nullptr;
  ahead_rows_[0] = first_step;
  ahead_rows_[1] = second_step;
}

bool CallOfStrips::perform(std::int64_t begin, std::int64_t end) {
  const std::int64_t low = std::max(begin, first_), high = std::min(end, last_);
  if (low >= high) return false;
  const FirstRow first{low - first_, low - begin};
  std::int64_t& rows = is_of_column_ ? call_.shape.columns : call_.shape.rows;
  if (rows != high - low) rows = high - low;
  ahead_.first = ahead_begin_.first + first.of_all * ahead_rows_[0];
  ahead_.second = ahead_begin_.second + first.of_all * ahead_rows_[1];
  if (is_chain()) {
    chain_(call_.shape, &chains_.steps[first_step_], static_cast<int>(end_step_ - first_step_),
           first);
  } else {
    std::visit(Perform{call_.places, call_.shape, {first, is_of_column_}}, call_.function);
  }
  return true;
}

void CallOfStrips::add_step(Step step, const ChainSteps::Places& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    step.operands[i] = places[i].data;
    step.row_strides[i] = places[i].row_stride;
    step.repeats[i] = places[i].data != nullptr && places[i].column_stride == 0;
    step.of_strip[i] = places[i].is_of_strip;
  }
  chains_.steps.push_back(step);
  chains_.places.push_back(places);
  ++end_step_;
}

void CallOfStrips::add_store(Element element, const Call::Place& place) {
  add_step({.kind = StepKind::store, .element = element, .is_far = place.is_far}, {place});
}

// A function loads its first operand, and finds the others by itself.
void CallOfStrips::begin_chain(Chain chain) {
  chain_ = chain;
  first_step_ = end_step_ = chains_.steps.size();
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
      next.shape.columns != call_.shape.columns ||
      end_step_ - first_step_ + kMoreSteps > kMaximumSteps) {
    return false;
  }
  if (!is_chain()) begin_chain(chain);
  if (!last_step_.is_kept) {
    chains_.steps.pop_back();
    chains_.places.pop_back();
    --end_step_;
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
  if (!is_chain() && call_.places[kResult].is_far && last_step_.function != Function::count) {
    begin_chain(chain);
  }
  return is_chain() && chains_.steps[end_step_ - 1].is_far;
}

}  // namespace tilewright::cpu
