#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "simulator/tensor_access.h"
#include "simulator/tile_evaluator.h"
#include "support/diagnostic.h"

// What the tile form reads and writes in tensors, by the interpreter.
namespace tilewright::simulator {

using ir::Family;
using ir::Op;
using ir::Operation;

AccessChecks access_checks(const ir::Kernel& kernel) {
  const analysis::LoadedIntegers integers(kernel);
  AccessChecks checks;
  ir::for_each(kernel.body, [&](const Operation& operation) {
    if (ir::info(operation.op).family != Family::tile_access) return;
    checks[&operation] =
        analysis::axis_checks(operation, operation.op == Op::load ? 1 : 2, integers);
  });
  return checks;
}

template <typename Real>
Box TileEvaluator<Real>::box(const Operation& operation, std::size_t first) const {
  std::vector<std::int64_t> bounds;
  for (std::size_t i = first; i < operation.operands.size(); ++i) {
    bounds.push_back(integer(operation, i));
  }
  Box box = box_of(operation, *tensors_[operation.operands[0]], bounds);
  for (const analysis::AxisCheck& check : launch_.checks->at(&operation)) {
    const std::size_t axis = check.axis;
    const std::string fault = analysis::describe_fault(check, box.starts[axis], box.limits[axis],
                                                       box.tensor->shape[axis], box.tensor->name);
    if (!fault.empty()) refuse_access(operation, check, fault);
  }
  return box;
}

namespace {

[[noreturn]] void refuse_element(const Operation& operation, const TensorArgument& tensor,
                                 const std::vector<std::int64_t>& at) {
  Diagnostic(operation.where, std::string(ir::info(operation.op).name) + ": element " +
                                  shape_text(at) + " is outside " + tensor.name +
                                  ", whose shape is " + shape_text(tensor.shape))
      .token(tensor.name)
      .fix("ask first whether it lies inside: when(index >= 0 && index < extent)")
      .raise();
}

}  // namespace

template <typename Real>
void TileEvaluator<Real>::refuse_access(const Operation& operation,
                                        const analysis::AxisCheck& check,
                                        const std::string& fault) const {
  Diagnostic diagnostic(operation.where, std::string(ir::info(operation.op).name) + ": " + fault);
  diagnostic.token(tensors_[operation.operands[0]]->name);
  if (check.source != ir::kNoValue) {
    const std::int64_t number = *values_[check.source].template data<std::int64_t>();
    const Operation* loaded = nullptr;
    ir::for_each(kernel_.body, [&](const Operation& o) {
      if (!o.results.empty() && o.results[0] == check.source) loaded = &o;
    });
    diagnostic.note(loaded ? loaded->where : kernel_.where,
                    "it is computed from " + std::to_string(number) + ", which " +
                        (loaded ? "is loaded" : "the launch gives"));
  }
  diagnostic
      .fix(check.size == 0 ? "ask first whether it lies inside: when(index >= 0 && index < extent)"
                           : "keep blocks inside of the tensor, or ask first with when")
      .raise();
}

template <typename Real>
void TileEvaluator<Real>::load(const Operation& operation) {
  const Box box = this->box(operation, 1);
  Value tile = make(operation.results[0]);
  if (tile.rank() == 0 && !index_exists(box)) refuse_element(operation, *box.tensor, box.starts);
  tile.extents() = existing_extents(box);
  read_box<Real>(box, tile);
  if (launch_.reads) launch_.reads->note(box, tile.type().shape, tile.extents());
  set(operation.results[0], std::move(tile));
}

template <typename Real>
void TileEvaluator<Real>::load_index(const Operation& operation) {
  const TensorArgument& tensor = *tensors_[operation.operands[0]];
  std::vector<std::int64_t> at;
  std::int64_t element = 0;
  bool exists = true;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    at.push_back(integer(operation, 1 + axis));
    exists = exists && at[axis] >= 0 && at[axis] < tensor.shape[axis];
    element += at[axis] * tensor.strides[axis];
  }
  if (!exists) refuse_element(operation, tensor, at);
  std::int32_t number = 0;
  std::memcpy(&number, tensor.data + element * 4, sizeof(number));
  if (launch_.reads) launch_.reads->note(tensor.data + element * 4);
  const analysis::IndexClaim claim(operation);
  analysis::LoadedIndex index{tensor.name, at, tensor.data + element * 4, tensor.strides[0]};
  if (claim.at_most) index.at_most = launch_.evaluate(*claim.at_most);
  if (const std::string fault = analysis::describe_fault(claim, index); !fault.empty()) {
    Diagnostic(operation.where, "load_index: " + fault).fix(analysis::fix_of(claim, index)).raise();
  }
  set(operation.results[0], integer_value(operation.results[0], number, operation));
}

template <typename Real>
void TileEvaluator<Real>::peer(const Operation& operation) {
  TensorArgument tensor = *tensors_[operation.operands[0]];
  const std::int64_t rank = integer(operation, 1);
  if (rank < 0 || rank >= launch_.arguments->ranks) {
    Diagnostic(operation.where, "peer: rank " + std::to_string(rank) + " of " +
                                    std::to_string(launch_.arguments->ranks) + ", for " +
                                    tensor.name)
        .fix("ranks count from 0 to kernel.ranks() - 1")
        .raise();
  }
  if (!tensor.peers.empty()) tensor.data = tensor.peers[static_cast<std::size_t>(rank)];
  peers_[operation.results[0]] = std::move(tensor);
  tensors_[operation.results[0]] = &peers_[operation.results[0]];
}

template <typename Real>
void TileEvaluator<Real>::store(const Operation& operation) {
  const Box box = this->box(operation, 2);
  const Value& tile = operand(operation, 1);
  if (!index_exists(box)) return;
  std::vector<std::int64_t> extents = existing_extents(box);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    extents[i] = std::min(extents[i], tile.extents()[i]);
  }
  if (operation.op == Op::red_tile) {
    write_box<Real>(box, added(operation, box), extents);
  } else {
    write_box<Real>(box, tile, extents);
  }
  if (launch_.shadow) launch_.shadow->store(operation, box, extents, block_);
}

// What is in memory, and the tile on top of it.
template <typename Real>
Value TileEvaluator<Real>::added(const Operation& operation, const Box& box) {
  const Value& tile = operand(operation, 1);
  Value sum = make(operation.operands[1]);
  sum.extents() = existing_extents(box);
  read_box<Real>(box, sum);
  for (std::int64_t i = 0; i < sum.type().elements(); ++i) {
    sum.template data<Real>()[i] += tile.template data<Real>()[i];
  }
  vary(sum);
  return sum;
}

template class TileEvaluator<float>;
template class TileEvaluator<double>;

}  // namespace tilewright::simulator
