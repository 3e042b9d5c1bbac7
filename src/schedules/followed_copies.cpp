#include "schedules/followed_copies.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::schedules {

using ir::Family;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

void FollowedCopies::note(const Operation& operation) {
  if (operation.op == Op::tensor_map) maps_[operation.results[0]] = &operation;
  if (ir::info(operation.op).family == Family::map_choice) {
    maps_[operation.results[0]] = maps_.at(operation.operands[0]);
  }
}

const Operation* FollowedCopies::made(ValueId map) const {
  const auto found = maps_.find(map);
  return found == maps_.end() ? nullptr : found->second;
}

const ir::Parameter* FollowedCopies::tensor_of(ValueId map) const {
  const Operation* operation = made(map);
  return operation == nullptr ? nullptr : kernel_.parameter_of(operation->operands[0]);
}

double FollowedCopies::longer_by_rows(const Operation& load) const {
  const ir::Parameter* tensor = tensor_of(load.operands[0]);
  if (tensor == nullptr || tensor->shape.size() < 2) return 0;
  return reached_.longer_in_rows(binding_.evaluate(tensor->shape.back()) * size_of(tensor->dtype));
}

double FollowedCopies::behind_ends(const Operation& load,
                                   const std::function<FollowedScalar(ValueId)>& scalar) const {
  constexpr std::size_t kCoordinates = 5;  // the innermost first
  const ir::Parameter* tensor = tensor_of(load.operands[0]);
  if (tensor == nullptr || made(load.operands[0])->attributes.has(Key::ragged)) return 0;
  const std::vector<std::int64_t>& box = made(load.operands[0])->attributes.integers(Key::box);
  const std::size_t last = kCoordinates + box.size() - 1;
  double inside = 1;
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    const FollowedScalar begin = scalar(load.operands[last - axis]);
    if (!begin.known) return 0;
    const std::int64_t rest = binding_.evaluate(tensor->shape[axis]) - begin.value;
    const bool is_row = axis + 1 == box.size();
    if (is_row && rest > 0) continue;
    const std::int64_t size = std::max<std::int64_t>(box[axis], 1);
    inside *=
        static_cast<double>(std::clamp<std::int64_t>(rest, 0, size)) / static_cast<double>(size);
  }
  return 1 - inside;
}

double FollowedCopies::stored_bytes(ValueId map) const {
  const Operation* operation = made(map);
  if (operation == nullptr) return 0;
  double bytes = size_of(kernel_.type(operation->operands[0]).dtype);
  for (const std::int64_t extent : operation->attributes.integers(Key::box)) {
    bytes *= static_cast<double>(std::max<std::int64_t>(extent, 1));
  }
  return bytes;
}

}  // namespace tilewright::schedules
