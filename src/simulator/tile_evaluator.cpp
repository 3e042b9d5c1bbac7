#include "simulator/tile_evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "simulator/evaluate_elementwise.h"
#include "simulator/matrix_product.h"
#include "simulator/tile_rearrangement.h"
#include "simulator/tile_reduction.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

using ir::Family;
using ir::Key;
using ir::Op;
using ir::Operation;

// A function of rows whose operands and result are arrays of `From` and `To`.
template <typename F>
class Row final : public RowFunction {
 public:
  explicit Row(F f) : f_(std::move(f)) {}
  void run(std::size_t count, const std::byte* const* operands, std::byte* result) override {
    f_(count, operands, result);
  }

 private:
  F f_;
};

template <typename T>
const T* as(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}

void multiply_add_integers(const Operation& operation, const Value& a, const Value& b, Value& c,
                           std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t width = c.type().shape[1];
  for (std::int64_t i = 0; i < m; ++i) {
    std::int64_t* row = c.data<std::int64_t>() + i * width;
    for (std::int64_t x = 0; x < k; ++x) {
      const std::int64_t left = a.data<std::int64_t>()[i * a.type().shape[1] + x];
      const std::int64_t* right = b.data<std::int64_t>() + x * width;
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t* const operands[] = {&left, right + j, row + j};
        evaluate({Op::fma, c.type().dtype, operation.where}, 1, operands, row + j);
      }
    }
  }
}

}  // namespace

template <typename Real>
TileEvaluator<Real>::TileEvaluator(const TileLaunch& launch)
    : launch_(launch),
      kernel_(*launch.kernel),
      values_(kernel_.types.size()),
      tensors_(kernel_.types.size()) {
  std::size_t tensor = 0, scalar = 0;
  for (const ir::Parameter& parameter : kernel_.parameters) {
    if (parameter.is_tensor()) {
      tensors_[parameter.value] = &launch.arguments->tensors[tensor++];
    } else {
      set(parameter.value, number_value(parameter.value, launch.arguments->scalars[scalar++]));
    }
  }
}

template <typename Real>
void TileEvaluator<Real>::run_block(const std::vector<std::int64_t>& grid_index,
                                    std::int64_t block) {
  block_ = block;
  if (launch_.rounding_seed) {
    rounding_ = Random(*launch_.rounding_seed + Random(static_cast<std::uint64_t>(block)).next());
  }
  for (std::size_t i = 0; i < grid_index.size(); ++i) {
    const ir::ValueId id = kernel_.body.arguments[i];
    Value value = make(id);
    *value.template data<std::int64_t>() = grid_index[i];
    set(id, std::move(value));
  }
  run(kernel_.body);
}

template <typename Real>
std::vector<Value> TileEvaluator<Real>::run(const ir::Block& block) {
  for (const Operation& operation : block.body) {
    if (operation.op == Op::yield) {
      std::vector<Value> yielded;
      for (const ir::ValueId id : operation.operands) yielded.push_back(values_[id]);
      return yielded;
    }
    run(operation);
  }
  return {};
}

template <typename Real>
void TileEvaluator<Real>::tile(const Operation& operation) {
  switch (ir::as<ir::TileOp>(operation.op)) {
    case ir::TileOp::splat: {
      Operation same = {Op::cast, operation.operands, operation.results, {}, {}, operation.where};
      return elementwise(same);
    }
    case ir::TileOp::iota:
      return iota(operation);
    case ir::TileOp::reduce:
      return reduce(operation);
    case ir::TileOp::any:
      return any(operation);
    case ir::TileOp::transpose: {
      const auto& permutation = operation.attributes.integers(Key::permutation);
      return rearrange(operation, permutation, std::vector<std::int64_t>(permutation.size()));
    }
    case ir::TileOp::slice: {
      std::vector<std::int64_t> axes(operand(operation, 0).rank());
      std::iota(axes.begin(), axes.end(), 0);
      return rearrange(operation, axes, operation.attributes.integers(Key::offsets));
    }
    case ir::TileOp::reshape:
      return set(operation.results[0], reshape_tile(operation, operand(operation, 0),
                                                    kernel_.types[operation.results[0]]));
    case ir::TileOp::convert:  // where it lies changes nothing
      return set(operation.results[0], operand(operation, 0));
    case ir::TileOp::complete:
      return refuse(operation);
  }
}

template <typename Real>
void TileEvaluator<Real>::position(const Operation& operation) {
  const ir::ValueId result = operation.results[0];
  switch (ir::as<ir::PositionOp>(operation.op)) {
    case ir::PositionOp::rank:
      return set(result, integer_value(result, launch_.arguments->rank, operation));
    case ir::PositionOp::epoch:
      return set(result, integer_value(result, launch_.arguments->epoch, operation));
    case ir::PositionOp::cta_index:
    case ir::PositionOp::cta_count:
    case ir::PositionOp::cluster_rank:
    case ir::PositionOp::warp_index:
      return refuse(operation);
  }
}

// All rows are their own here.
template <typename Real>
void TileEvaluator<Real>::own_rows(const Operation& operation) {
  switch (ir::as<ir::OwnRowsOp>(operation.op)) {
    case ir::OwnRowsOp::own_first:
      return set(operation.results[0], integer_value(operation.results[0], 0, operation));
    case ir::OwnRowsOp::own_end:
      return set(
          operation.results[0],
          integer_value(operation.results[0], operation.attributes.integer(Key::count), operation));
    case ir::OwnRowsOp::discard:
      return;
  }
}

template <typename Real>
void TileEvaluator<Real>::control(const Operation& operation) {
  switch (ir::as<ir::ControlOp>(operation.op)) {
    case ir::ControlOp::for_loop:
      return for_loop(operation);
    case ir::ControlOp::while_loop:
      return while_loop(operation);
    case ir::ControlOp::if_then:
      return if_then(operation);
    case ir::ControlOp::yield:  // ends the block
    case ir::ControlOp::role:
    case ir::ControlOp::elect:
      return refuse(operation);
  }
}

template <typename Real>
void TileEvaluator<Real>::refuse(const Operation& operation) const {
  Diagnostic(
      operation.where,
      "the interpreter of the tile form does not know " + std::string(ir::info(operation.op).name),
      ErrorKind::internal)
      .raise();
}

template <typename Real>
void TileEvaluator<Real>::run(const Operation& operation) {
  const ir::OpInfo& record = ir::info(operation.op);
  if (!record.in_plans()) refuse(operation);
  switch (record.family) {
    case Family::function:
      return elementwise(operation);
    case Family::constant:
      if (operation.op == Op::constant) return constant(operation);
      return set(operation.results[0],
                 integer_value(operation.results[0], launch_.evaluate(operation.attributes.dim()),
                               operation));
    case Family::position:
      return position(operation);
    case Family::peer:
      return peer(operation);
    case Family::own_rows:
      return own_rows(operation);
    case Family::control:
      return control(operation);
    case Family::tile_access:
      return record.writes(ir::Memory::global) ? store(operation) : load(operation);
    case Family::word:
      return load_index(operation);
    case Family::tile_product:
      return dot(operation);
    case Family::tile:
      return tile(operation);
    case Family::place:  // these are of the forms behind
    case Family::map_choice:
    case Family::tile_copy:
    case Family::pending:
    case Family::view:
    case Family::shared_tile:
    case Family::fragment_tile:
    case Family::prefetch:
    case Family::array:
    case Family::computation:
    case Family::global_access:
    case Family::matrix_access:
    case Family::element_access:
    case Family::fragment_access:
    case Family::shared_word:
    case Family::word_wait:
    case Family::mbarrier:
    case Family::named_barrier:
    case Family::cta_barrier:
    case Family::cluster_barrier:
    case Family::fence:
    case Family::lane_order:
    case Family::commit:
    case Family::group_wait:
    case Family::bulk_copy:
    case Family::product:
    case Family::product_fence:
    case Family::tensor_tile:
    case Family::tensor_tile_product:
    case Family::tensor_allocation:
    case Family::tensor_access:
    case Family::tensor_wait:
    case Family::tensor_product:
    case Family::tensor_copy:
    case Family::tensor_commit:
    case Family::tensor_fence:
    case Family::launch_control:
    case Family::check:
    case Family::register_budget:
    case Family::core_memory:
    case Family::core_window:
    case Family::core_copy:
    case Family::core_compute:
    case Family::core_event:
      return refuse(operation);
  }
}

template <typename Real>
Value TileEvaluator<Real>::make(ir::ValueId id) const {
  return Value(kernel_.types[id], sizeof(Real));
}

template <typename Real>
std::int64_t TileEvaluator<Real>::integer(const Operation& operation, std::size_t i) const {
  return *operand(operation, i).template data<std::int64_t>();
}

template <typename Real>
Value TileEvaluator<Real>::integer_value(ir::ValueId id, std::int64_t number,
                                         const Operation& operation) const {
  check_fits(kernel_.types[id].dtype, number, operation.op, operation.where);
  Value value = make(id);
  *value.template data<std::int64_t>() = number;
  return value;
}

template <typename Real>
Value TileEvaluator<Real>::number_value(ir::ValueId id, double number) const {
  Value value = make(id);
  with_element<Real>(value.kind(), [&](auto zero) {
    using To = decltype(zero);
    convert<double, To>({Op::cast, value.type().dtype, {}}, 1, &number, value.data<To>());
  });
  return value;
}

template <typename Real>
void TileEvaluator<Real>::constant(const Operation& operation) {
  const ir::ValueId id = operation.results[0];
  const ir::Attribute* attribute = operation.attributes.find(Key::value);
  const auto* whole = attribute ? std::get_if<std::int64_t>(attribute) : nullptr;
  if (whole && is_integer(kernel_.types[id].dtype)) {
    return set(id, integer_value(id, *whole, operation));
  }
  const auto* number = attribute ? std::get_if<double>(attribute) : nullptr;
  set(id, number_value(id, whole ? static_cast<double>(*whole) : number ? *number : 0));
}

template <typename Real>
void TileEvaluator<Real>::vary(Value& result, std::int64_t terms) {
  if constexpr (std::is_same_v<Real, double>) {
    if (!launch_.rounding_seed || result.kind() != Held::real) return;
    const double most =
        unit_roundoff(result.type().dtype) +
        (terms > 1 ? unit_roundoff(DType::f32) * std::sqrt(static_cast<double>(terms)) : 0);
    double* const numbers = result.template data<double>();
    const std::int64_t count = result.type().elements();
    for (std::int64_t i = 0; i < count; ++i) {
      numbers[i] *= 1 + most * (2 * rounding_.uniform() - 1);
    }
  }
}

template <typename Real>
void TileEvaluator<Real>::elementwise(const Operation& operation) {
  Value result = make(operation.results[0]);
  std::vector<const Value*> operands;
  for (const ir::ValueId id : operation.operands) operands.push_back(&values_[id]);
  const Value& last = *operands.back();
  Elementwise function{operation.op, result.type().dtype, operation.where};
  const auto apply = [&](auto f) {
    Row row(f);
    apply_elementwise(operands, result, row);
  };
  with_element<Real>(last.kind(), [&](auto zero) {
    using T = decltype(zero);
    if (operation.op == Op::cast) {
      with_element<Real>(result.kind(), [&](auto target) {
        using To = decltype(target);
        apply([&](std::size_t count, const std::byte* const* x, std::byte* y) {
          convert(function, count, as<T>(x[0]), reinterpret_cast<To*>(y));
        });
      });
    } else if (operation.op == Op::select) {
      apply([](std::size_t count, const std::byte* const* x, std::byte* y) {
        select(count, as<std::uint8_t>(x[0]), as<T>(x[1]), as<T>(x[2]), reinterpret_cast<T*>(y));
      });
    } else if (ir::info(operation.op).is_comparison()) {
      apply([&](std::size_t count, const std::byte* const* x, std::byte* y) {
        compare(function, count, as<T>(x[0]), as<T>(x[1]), reinterpret_cast<std::uint8_t*>(y));
      });
    } else {
      apply([&](std::size_t count, const std::byte* const* x, std::byte* y) {
        const T* const rows[] = {as<T>(x[0]), as<T>(x[1]), as<T>(x[2])};
        evaluate(function, count, rows, reinterpret_cast<T*>(y));
      });
    }
  });
  // These take an operand as it is.
  if (operation.op != Op::select) vary(result);
  set(operation.results[0], std::move(result));
}

template <typename Real>
void TileEvaluator<Real>::for_loop(const Operation& operation) {
  const std::int64_t low = integer(operation, 0), high = integer(operation, 1),
                     step = integer(operation, 2);
  if (step <= 0) {
    Diagnostic(operation.where, "a loop's step is " + std::to_string(step))
        .fix("use a step of at least 1")
        .raise();
  }
  std::vector<Value> carried;
  for (std::size_t i = 3; i < operation.operands.size(); ++i) {
    carried.push_back(operand(operation, i));
  }
  const ir::Block& body = operation.blocks[0];
  for (std::int64_t i = low; i < high; i += step) {
    set(body.arguments[0], integer_value(body.arguments[0], i, operation));
    for (std::size_t k = 0; k < carried.size(); ++k) {
      set(body.arguments[k + 1], std::move(carried[k]));
    }
    carried = run(body);
  }
  for (std::size_t k = 0; k < carried.size(); ++k) {
    set(operation.results[k], std::move(carried[k]));
  }
}

template <typename Real>
void TileEvaluator<Real>::while_loop(const Operation& operation) {
  std::vector<Value> state;  // the condition, then what is carried
  for (const ir::ValueId id : operation.operands) state.push_back(values_[id]);
  const ir::Block& body = operation.blocks[0];
  for (std::int64_t rounds = 0; boolean(state[0]); ++rounds) {
    if (rounds == launch_.while_limit) {
      Diagnostic(operation.where, "the loop has not ended after " + std::to_string(rounds) +
                                      " rounds, the interpreter's limit")
          .fix("let its condition become false")
          .raise();
    }
    for (std::size_t k = 1; k < state.size(); ++k) {
      set(body.arguments[k - 1], std::move(state[k]));
    }
    state = run(body);
  }
  for (std::size_t k = 1; k < state.size(); ++k) {
    set(operation.results[k - 1], std::move(state[k]));
  }
}

template <typename Real>
void TileEvaluator<Real>::if_then(const Operation& operation) {
  const std::size_t branch = boolean(operand(operation, 0)) ? 0 : 1;
  std::vector<Value> yielded = run(operation.blocks[branch]);
  for (std::size_t i = 0; i < yielded.size(); ++i) {
    set(operation.results[i], std::move(yielded[i]));
  }
}

template <typename Real>
void TileEvaluator<Real>::dot(const Operation& operation) {
  const Value& a = operand(operation, 0);
  const Value& b = operand(operation, 1);
  const bool accumulates = operation.operands.size() > 2;
  Value c = make(operation.results[0]);
  std::int64_t m = a.extents()[0], n = b.extents()[1];
  const std::int64_t k = std::min(a.extents()[1], b.extents()[0]);
  if (accumulates) {
    const Value& accumulator = operand(operation, 2);
    m = std::min(m, accumulator.extents()[0]);
    n = std::min(n, accumulator.extents()[1]);
  }
  c.extents() = {m, n};
  const std::int64_t width = c.type().shape[1];
  const std::size_t row = static_cast<std::size_t>(n) * c.element_bytes();
  for (std::int64_t i = 0; i < m; ++i) {
    const std::size_t offset = static_cast<std::size_t>(i * width) * c.element_bytes();
    if (accumulates) {
      std::memcpy(c.bytes() + offset, operand(operation, 2).bytes() + offset, row);
    } else {
      std::memset(c.bytes() + offset, 0, row);
    }
  }
  if (c.kind() == Held::integer) {
    multiply_add_integers(operation, a, b, c, m, n, k);
  } else {
    Real* const sums = c.data<Real>();
    multiply_add<Real>(m, n, k, {a.data<Real>(), a.type().shape[1]},
                       {b.data<Real>(), b.type().shape[1]}, {sums, width});
    if constexpr (std::is_same_v<Real, float>) {
      for (std::int64_t i = 0; i < m && c.type().dtype != DType::f32; ++i) {
        round_to(c.type().dtype, sums + i * width, static_cast<std::size_t>(n));
      }
    }
  }
  vary(c, k);
  set(operation.results[0], std::move(c));
}

template <typename Real>
void TileEvaluator<Real>::iota(const Operation& operation) {
  Value tile = make(operation.results[0]);
  const std::vector<std::int64_t>& shape = tile.type().shape;
  const auto axis = static_cast<std::size_t>(operation.attributes.integer(Key::axis));
  const std::int64_t stride = row_major_strides(shape)[axis];
  for (std::int64_t i = 0; i < tile.type().elements(); ++i) {
    tile.data<std::int64_t>()[i] = i / stride % shape[axis];
  }
  set(operation.results[0], std::move(tile));
}

template <typename Real>
void TileEvaluator<Real>::reduce(const Operation& operation) {
  const Value& source = operand(operation, 0);
  Value result = make(operation.results[0]);
  const auto axis = static_cast<std::size_t>(operation.attributes.integer(Key::axis));
  const Elementwise function{operation.attributes.function(), source.type().dtype, operation.where};
  reduce_tile<Real>(function, axis, source, result);
  vary(result, source.extents()[axis]);
  set(operation.results[0], std::move(result));
}

template <typename Real>
void TileEvaluator<Real>::rearrange(const Operation& operation,
                                    const std::vector<std::int64_t>& axes,
                                    const std::vector<std::int64_t>& offsets) {
  Value result = make(operation.results[0]);
  rearrange_tile<Real>(axes, offsets, operand(operation, 0), result);
  set(operation.results[0], std::move(result));
}

template <typename Real>
void TileEvaluator<Real>::any(const Operation& operation) {
  Value result = make(operation.results[0]);
  *result.template data<std::uint8_t>() = any_element(operand(operation, 0));
  set(operation.results[0], std::move(result));
}

template class TileEvaluator<float>;
template class TileEvaluator<double>;

}  // namespace tilewright::simulator
