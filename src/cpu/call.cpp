#include "cpu/call.h"

#include <algorithm>

namespace tilewright::cpu {
namespace {

Operand operand_at(const Call::Place& place) {
  return {place.data, place.row_stride, place.column_stride == 0};
}
Result result_at(const Call::Place& place) { return {place.data, place.row_stride}; }
Matrix matrix_at(const Call::Place& place) {
  return {place.data, place.row_stride, place.column_stride};
}

struct Perform {
  const Call& call;

  void operator()(Elementwise function) const {
    const Operand operands[] = {operand_at(call.places[0]), operand_at(call.places[1]),
                                operand_at(call.places[2])};
    function(call.shape, operands, result_at(call.places[kResult]));
  }
  void operator()(Select function) const {
    function(call.shape, operand_at(call.places[0]), operand_at(call.places[1]),
             operand_at(call.places[2]), result_at(call.places[kResult]));
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
  void operator()(Reduce function) const {
    function(call.shape, operand_at(call.places[0]), call.places[kResult].data);
  }
};

}  // namespace

void perform(const Call& call) { std::visit(Perform{call}, call.function); }

CallOfStrips::CallOfStrips(const Call& call, const PartOfStrips& part)
    : call_(call),
      next_(part.first),
      last_(part.first + (part.is_of_column ? call.shape.columns : call.shape.rows)),
      weight_(part.weight),
      is_of_column_(part.is_of_column) {
  for (std::size_t i = 0; i < call_.places.size(); ++i) {
    Call::Place& place = call_.places[i];
    steps_[i] = is_of_column_ ? place.column_stride : place.row_stride;
    if (place.is_of_strip) place.data -= part.first * steps_[i];
  }
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
  (is_of_column_ ? call_.shape.columns : call_.shape.rows) = high - low;
  call_.shape.ahead = ahead_.lines > 0 ? &ahead_ : nullptr;
  // The first of its rows may lie within the strip.
  for (std::size_t i = 0; low > begin && i < steps_.size(); ++i) {
    if (call_.places[i].is_of_strip) call_.places[i].data += (low - begin) * steps_[i];
  }
  perform(call_);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const std::int64_t rows = call_.places[i].is_of_strip ? begin - low : high - low;
    call_.places[i].data += rows * steps_[i];
  }
  ahead_.first += (high - low) * first_step_;
  ahead_.second += (high - low) * second_step_;
  next_ = high;
  return true;
}

}  // namespace tilewright::cpu
