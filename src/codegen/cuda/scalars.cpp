#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"

namespace tilewright::codegen {

using ir::Op;
using ir::Operation;

// Constants and dimensions have no statement: they appear where they are used.
void print_constant(Emitter& emitter, const Operation& operation) {
  emitter.set_name(operation.results[0], literal(emitter.type(operation.results[0]).dtype,
                                                 *operation.attributes.find(ir::Key::value)));
}

void print_dim(Emitter& emitter, const Operation& operation) {
  const std::string name = emitter.dim(operation.attributes.dim());
  const bool wide = emitter.type(operation.results[0]).dtype == DType::i64;
  emitter.set_name(operation.results[0], wide ? "(i64)" + name : name);
}

namespace {

// A quotient or remainder by what the launch knows takes a product: the host divides.
std::optional<std::string> division_by_dim(Emitter& emitter, const Operation& operation) {
  if (operation.op != Op::div && operation.op != Op::mod) return {};
  const ir::ValueId a = operation.operands[0], b = operation.operands[1];
  const Operation* divisor = emitter.definition(b);
  if (divisor == nullptr || divisor->op != Op::dim || emitter.type(b).dtype != DType::i32)
    return {};
  const Dim dim = divisor->attributes.dim();
  if (dim.is_constant() || !emitter.nonnegative(a) || !emitter.nonnegative(b)) return {};
  const Dim inverse = min(Dim(INT32_MAX), Dim(std::int64_t{1} << 31) / max(dim, 1));
  return fmt::format("{}({}, {}, {})", operation.op == Op::div ? "dim_div" : "dim_mod",
                     operand(emitter, a), operand(emitter, b), emitter.dim(inverse));
}

}  // namespace

void print_elementwise(Emitter& emitter, const Operation& operation) {
  const ir::ValueId result = operation.results[0];
  const DType to = emitter.type(result).dtype;
  if (const auto division = division_by_dim(emitter, operation)) {
    return emitter.line(fmt::format("const int {} = {};", emitter.name(result), *division));
  }
  const DType from = emitter.type(operation.operands.back()).dtype;
  std::vector<std::string> operands;
  bool nonnegative = true;
  for (const ir::ValueId value : operation.operands) {
    operands.push_back(operand(emitter, value));
    nonnegative = nonnegative && emitter.nonnegative(value);
  }
  std::vector<std::string> values{function_text(operation.op, from, to, operands, nonnegative)};
  values.resize(packing(to), std::string(nothing(to)));
  emitter.line(
      fmt::format("const {} {} = {};", scalar_type(to), emitter.name(result), packed(to, values)));
}

void print_position(Emitter& emitter, const Operation& operation) {
  const std::string& name = emitter.name(operation.results[0]);
  switch (ir::as<ir::PositionOp>(operation.op)) {
    case ir::PositionOp::rank:
      return emitter.set_name(operation.results[0],
                              emitter.launch_number(LaunchParameter::Kind::rank));
    case ir::PositionOp::epoch:
      if (emitter.has_epoch_word()) {
        const std::string word = emitter.launch_number(LaunchParameter::Kind::epoch_word);
        return emitter.line(fmt::format("const int {} = *{};", name, word));
      }
      return emitter.set_name(operation.results[0],
                              emitter.launch_number(LaunchParameter::Kind::epoch));
    case ir::PositionOp::cta_index:
      return emitter.line(fmt::format("const int {} = (int)blockIdx.x;", name));
    case ir::PositionOp::cta_count:
      return emitter.line(fmt::format("const int {} = (int)gridDim.x;", name));
    case ir::PositionOp::cluster_rank:
      return emitter.line(fmt::format("const int {} = cluster_rank();", name));
    case ir::PositionOp::warp_index:
      return emitter.line(fmt::format("const int {} = warp % 4;", name));
  }
}

}  // namespace tilewright::codegen
