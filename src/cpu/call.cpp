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
    const Operand operands[] = {operand_at(call.operands[0]), operand_at(call.operands[1]),
                                operand_at(call.operands[2])};
    function(call.shape, operands, result_at(call.result));
  }
  void operator()(Select function) const {
    function(call.shape, operand_at(call.operands[0]), operand_at(call.operands[1]),
             operand_at(call.operands[2]), result_at(call.result));
  }
  void operator()(Convert function) const {
    function(call.shape, operand_at(call.operands[0]), result_at(call.result));
  }
  void operator()(Copy function) const {
    function(call.shape, matrix_at(call.operands[0]), matrix_at(call.result));
  }
  void operator()(Fill function) const {
    function(call.shape, call.operands[0].data, result_at(call.result));
  }
  void operator()(Reduce function) const {
    function(call.shape, operand_at(call.operands[0]), call.result.data);
  }
};

}  // namespace

void perform(const Call& call) { std::visit(Perform{call}, call.function); }

bool perform(const CallOfStrips& each, std::int64_t begin, std::int64_t end) {
  Call part = each.call;
  std::int64_t& rows = each.is_of_column ? part.shape.columns : part.shape.rows;
  const std::int64_t low = std::max(begin, each.first), high = std::min(end, each.first + rows);
  if (low >= high) return false;
  rows = high - low;
  const auto move = [&](Call::Place& place) {
    const std::int64_t stride = each.is_of_column ? place.column_stride : place.row_stride;
    place.data += (low - each.first - (place.is_of_strip ? begin : 0)) * stride;
  };
  for (Call::Place& operand : part.operands) move(operand);
  move(part.result);
  perform(part);
  return true;
}

}  // namespace tilewright::cpu
