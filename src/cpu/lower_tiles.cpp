#include <algorithm>
#include <bit>
#include <numeric>

#include "cpu/layout.h"
#include "cpu/lowering.h"
#include "support/diagnostic.h"

// What the tile form computes of tiles.
namespace tilewright::cpu {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

struct NamedFunction {
  Op op;
  Function function;
  const char* name;
};
constexpr NamedFunction kFunctions[] = {
#define TW_CPU_FUNCTION(name) {Op::name, Function::name, #name},
    TW_CPU_FUNCTIONS(TW_CPU_FUNCTION)
    // Which is by products and sums here anyway.
    {Op::exp2_polynomial, Function::exp2, "exp2"},
#undef TW_CPU_FUNCTION
};

const NamedFunction* find_function(Op op) {
  const auto* const found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                         [op](const NamedFunction& each) { return each.op == op; });
  return found == std::end(kFunctions) ? nullptr : found;
}

// Whether it asks for memory meanwhile, and can be a step of a chain (kernels.h).
bool is_of_reals(Function function, Lane lane) {
  const bool is_turn = function == Function::sin || function == Function::cos;
  return lane == Lane::f32 && !is_turn && function <= Function::rint;
}

// How long such a function takes for an element, roughly.
std::int64_t weight_of(Function function) {
  if (function == Function::count) return 0;
  return function >= Function::exp && function <= Function::erf ? 6 : 1;
}

// The place of functions that go by the elements' bytes.
int width_of(Element element) { return std::countr_zero(static_cast<unsigned>(bytes_of(element))); }

}  // namespace

TileId Lowering::new_tile(Tile tile) {
  program_.tiles.push_back(tile);
  return static_cast<TileId>(program_.tiles.size() - 1);
}

TileId Lowering::define_tile(ValueId value, const std::vector<bool>& held) {
  const ir::Type& type = this->type(value);
  if (type.shape.size() > kMaximumRank) {
    const ir::Operation* const definition = definitions_[value];
    Diagnostic(definition ? definition->where : kernel_.where,
               "a tile of " + std::to_string(type.shape.size()) +
                   " axes, and the target cpu takes " + std::to_string(kMaximumRank))
        .fix("join axes by reshape")
        .raise();
  }
  return tiles_[value] = new_tile(make_tile(type.dtype, type.shape, held));
}

TileId Lowering::define_tile(ValueId value) {
  return define_tile(value, std::vector<bool>(type(value).shape.size(), true));
}

std::vector<std::int64_t> Lowering::shape_of(TileId tile) const {
  const Tile& of = program_.tiles[tile];
  return {of.shape.begin(), of.shape.begin() + static_cast<std::ptrdiff_t>(of.rank)};
}

void Lowering::copy_tile(TileId from, TileId to) {
  const Tile &source = program_.tiles[from], &target = program_.tiles[to];
  Move move{from, to, {}, {}, walk_of(target), lie_alike(source, target)};
  std::iota(move.axes.begin(), move.axes.end(), 0);
  append(move);
}

TileId Lowering::whole(TileId tile) {
  if (!is_stretched(program_.tiles[tile])) return tile;
  const auto dtype = static_cast<DType>(program_.tiles[tile].element);
  const TileId copy = new_tile(make_tile(dtype, shape_of(tile)));
  copy_tile(tile, copy);
  return copy;
}

Source Lowering::source(ValueId value) const {
  if (type(value).is_scalar()) return {.scalar = scalars_[value]};
  return {.tile = tiles_[value]};
}

void Lowering::apply(Apply::Run run, const char* name, std::vector<Source> operands, TileId result,
                     Function function) {
  append(Apply{run, name, std::move(operands), result, walk_of(program_.tiles[result]),
               weight_of(function), function});
}

// Through f32 where there is no direct way.
void Lowering::convert(TileId from, TileId to) {
  const auto function = [&](Element a, Element b) {
    return kernels_.convert[static_cast<int>(a)][static_cast<int>(b)];
  };
  const Element source = program_.tiles[from].element, target = program_.tiles[to].element;
  if (const Convert direct = function(source, target)) {
    return apply(direct, "cast", {{.tile = from}}, to);
  }
  const TileId wide = converted(from, Element::f32);
  apply(function(Element::f32, target), "cast", {{.tile = wide}}, to);
}

TileId Lowering::converted(TileId tile, Element to) {
  const Tile& from = program_.tiles[tile];
  if (from.element == to) return tile;
  std::vector<bool> held(from.rank);
  for (std::size_t axis = 0; axis < from.rank; ++axis) held[axis] = from.strides[axis] != 0;
  const TileId result = new_tile(make_tile(static_cast<DType>(to), shape_of(tile), held));
  convert(tile, result);
  return result;
}

void Lowering::elementwise(const ir::Operation& operation) {
  const ValueId value = operation.results[0];
  const std::size_t rank = type(value).shape.size();
  std::vector<bool> held(rank, false);
  std::vector<Source> operands;
  for (const ValueId operand : operation.operands) {
    operands.push_back(source(operand));
    if (!operands.back().is_tile()) continue;
    const Tile& tile = program_.tiles[operands.back().tile];
    for (std::size_t axis = 0; axis < rank; ++axis) {
      held[axis] = held[axis] || tile.strides[axis] != 0;
    }
  }
  const TileId result = define_tile(value, held);
  const Element element = program_.tiles[result].element;
  if (operation.op == Op::cast) {
    const TileId from = operands[0].tile;
    return program_.tiles[from].element == element ? copy_tile(from, result)
                                                   : convert(from, result);
  }
  if (operation.op == Op::select) {
    for (Source& operand : operands) {
      if (operand.is_tile() || &operand == operands.data()) continue;
      const TileId one = new_tile(make_tile(type(value).dtype, std::vector<std::int64_t>(rank, 1)));
      append(Splat{operand.scalar, one});
      operand = {.tile = one};
    }
    return apply(kernels_.select[width_of(element)], "select", std::move(operands), result);
  }
  const NamedFunction* const function = find_function(operation.op);
  if (function == nullptr) refuse(operation);
  const DType dtype = type(operation.operands[0]).dtype;
  const Lane lane = lane_of(dtype);
  const Elementwise run =
      kernels_.elementwise[static_cast<int>(function->function)][static_cast<int>(lane)];
  if (run == nullptr) refuse(operation);
  const bool is_narrow = lane == Lane::f32 && dtype != DType::f32;
  const Function real =
      is_of_reals(function->function, lane) ? function->function : Function::count;
  if (!is_narrow) return apply(run, function->name, std::move(operands), result, real);
  for (Source& operand : operands) {
    if (operand.is_tile()) operand = {.tile = converted(operand.tile, Element::f32)};
  }
  if (element == Element::boolean) return apply(run, function->name, std::move(operands), result);
  const TileId wide = new_tile(make_tile(DType::f32, type(value).shape, held));
  apply(run, function->name, std::move(operands), wide, real);
  convert(wide, result);
}

void Lowering::tile(const ir::Operation& operation) {
  const ValueId result = operation.results[0];
  switch (ir::as<ir::TileOp>(operation.op)) {
    case ir::TileOp::splat: {
      const std::vector<bool> held(type(result).shape.size(), false);
      return append(Splat{scalar(operation.operands[0]), define_tile(result, held)});
    }
    case ir::TileOp::iota:
      return count(operation);
    case ir::TileOp::reduce:
      return reduce(operation);
    case ir::TileOp::any:
      return any(operation);
    case ir::TileOp::transpose:
    case ir::TileOp::slice:
      return move(operation);
    case ir::TileOp::reshape:
      return reshape(operation);
    case ir::TileOp::convert:  // where it lies on a GPU
      return share(result, operation.operands[0]);
    case ir::TileOp::complete:
      return refuse(operation);
  }
}

void Lowering::count(const ir::Operation& operation) {
  const auto axis = static_cast<std::size_t>(operation.attributes.integer(Key::axis));
  std::vector<bool> held(type(operation.results[0]).shape.size(), false);
  held[axis] = true;
  append(Count{define_tile(operation.results[0], held), axis});
}

void Lowering::any(const ir::Operation& operation) {
  const TileId source = whole(tiles_[operation.operands[0]]);
  append(Any{source, define_scalar(operation.results[0]), walk_of(program_.tiles[source])});
}

// A sum of products whose tile nobody else needs takes the products as they come.
void Lowering::take_product(Fold& fold) {
  auto* const product = block_->empty() ? nullptr : std::get_if<Apply>(&block_->back());
  const auto* const run = product ? std::get_if<Elementwise>(&product->run) : nullptr;
  const Elementwise mul =
      kernels_.elementwise[static_cast<int>(Function::mul)][static_cast<int>(Lane::f32)];
  if (run == nullptr || *run != mul || product->result != fold.source) return;
  const auto is_whole = [&](const Source& factor) {
    return factor.is_tile() && lie_alike(program_.tiles[factor.tile], program_.tiles[fold.source]);
  };
  if (!is_whole(product->operands[0]) || !is_whole(product->operands[1])) return;
  fold.source = product->operands[0].tile;
  fold.factor = product->operands[1].tile;
  block_->pop_back();
}

// Narrow floats are combined in f32, and rounded once.
void Lowering::reduce(const ir::Operation& operation) {
  const ir::Type& result_type = type(operation.results[0]);
  const auto axis = static_cast<std::size_t>(operation.attributes.integer(Key::axis));
  const Lane lane = lane_of(result_type.dtype);
  const Element element = lane == Lane::f32 ? Element::f32 : element_of(result_type.dtype);
  const TileId from = converted(whole(tiles_[operation.operands[0]]), element);
  TileId to = define_tile(operation.results[0]);
  const bool is_narrow = program_.tiles[to].element != element;
  const TileId narrow = to;
  if (is_narrow) to = new_tile(make_tile(static_cast<DType>(element), result_type.shape));

  const Tile& source = program_.tiles[from];
  const std::size_t contiguous = contiguous_axis(source);
  const bool along_row = contiguous == axis;
  const Walk walk = along_row ? walk_of(source) : walk_of(source, axis, contiguous);
  const Op function = operation.attributes.function();
  const Reduction reduction = function == Op::add   ? Reduction::add
                              : function == Op::min ? Reduction::min
                                                    : Reduction::max;
  const auto number = static_cast<int>(reduction);
  const bool in_parts =
      numerics_.sink_partial_sums && along_row && lane == Lane::f32 && reduction == Reduction::add;
  const Reduce run = in_parts    ? kernels_.sum_along_row_in_parts
                     : along_row ? kernels_.reduce_along_row[number][static_cast<int>(lane)]
                                 : kernels_.reduce_along_column[number][static_cast<int>(lane)];
  Fold fold{run, reduction, from, to, axis, along_row, walk, in_parts};
  if (in_parts && uses_[operation.operands[0]].size() == 1) take_product(fold);
  append(fold);
  if (is_narrow) convert(to, narrow);
}

void Lowering::move(const ir::Operation& operation) {
  const ValueId value = operation.results[0];
  const ValueId operand = operation.operands[0];
  const bool is_transposition = operation.op == Op::transpose;
  if (is_transposition && is_factor_alone(value)) return;  // products read the operand as it lies
  const std::size_t rank = type(value).shape.size();
  Move move{tiles_[operand], kNone, {}, {}, {}};
  const auto& given =
      operation.attributes.integers(is_transposition ? Key::permutation : Key::offsets);
  std::iota(move.axes.begin(), move.axes.end(), 0);
  std::copy(given.begin(), given.end(),
            is_transposition ? move.axes.begin() : move.offsets.begin());
  const Tile source = program_.tiles[move.source];
  std::vector<bool> held(rank);
  std::size_t contiguous = Walk::kNoAxis;  // in the source
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto from = static_cast<std::size_t>(move.axes[axis]);
    held[axis] = source.strides[from] != 0;
    if (from == contiguous_axis(source)) contiguous = axis;
  }
  move.result = define_tile(value, held);
  const Tile& result = program_.tiles[move.result];
  move.walk = walk_of(result);
  if (contiguous != Walk::kNoAxis && contiguous != move.walk.columns &&
      result.strides[contiguous] != 0) {
    move.walk = walk_of(result, contiguous, move.walk.columns);
  }
  const bool is_vector = move.walk.rows == Walk::kNoAxis;
  move.is_copy = is_vector && is_transposition && lie_alike(source, result);
  const ir::Operation* const source_of = definitions_[operand];
  move.is_factor = !is_transposition && is_factor_alone(value) && source_of != nullptr &&
                   source_of->op == Op::load && is_read_in_place(*source_of);
  append(move);
}

void Lowering::reshape(const ir::Operation& operation) {
  const TileId from = whole(tiles_[operation.operands[0]]);
  const TileId to = define_tile(operation.results[0]);
  const auto run_of = [](const Tile& tile) {
    const std::size_t axis = contiguous_axis(tile);
    return axis == Walk::kNoAxis ? 1 : tile.shape[axis];
  };
  const Tile &source = program_.tiles[from], &result = program_.tiles[to];
  append(Reshape{from, to, ir::reshaped_axes(shape_of(from), shape_of(to)),
                 std::gcd(run_of(source), run_of(result)), lie_alike(source, result), false,
                 operation.where});
}

bool Lowering::is_factor_alone(ValueId value) const {
  return std::all_of(uses_[value].begin(), uses_[value].end(),
                     [&](const ir::Operation* use) { return takes_factor(*use, value); });
}

bool Lowering::takes_factor(const ir::Operation& use, ValueId value) const {
  if (use.op == Op::transpose) {
    return type(value).shape.size() == 2 && is_factor_alone(use.results[0]);
  }
  return use.op == Op::dot && ir::accumulator_of(use) != value;
}

Lowering::Factor Lowering::factor(ValueId value) const {
  const ir::Operation* const definition = definitions_[value];
  if (definition == nullptr || definition->op != Op::transpose) return {tiles_[value], false};
  const bool swaps = definition->attributes.integers(Key::permutation)[0] == 1;
  Factor factor = this->factor(definition->operands[0]);
  factor.transposed ^= swaps;
  return factor;
}

Rounding Lowering::rounding(DType element) const {
  if (element == DType::bf16 && numerics_.bf16_pairs) return Rounding::pairs;
  return numerics_.contract_fma ? Rounding::fused : Rounding::apart;
}

// The condition under which somebody needs an element of the product: that of a choice, which takes
// what functions of single elements make of it. kNone where all are needed, or where the condition
// is not known before.
TileId Lowering::needed_of(ValueId product) const {
  ValueId value = product;
  while (uses_[value].size() == 1) {
    const ir::Operation& use = *uses_[value][0];
    if (!ir::info(use.op).elementwise() || type(use.results[0]).shape != type(product).shape) break;
    const ValueId condition = use.operands[0];
    if (use.op == Op::select && use.operands[1] == value && use.operands[2] != value) {
      const bool is_known = !type(condition).is_scalar() && tiles_[condition] != kNone &&
                            !is_stretched(program_.tiles[tiles_[condition]]);
      return is_known ? tiles_[condition] : kNone;
    }
    value = use.results[0];
  }
  return kNone;
}

// Whether the loop around hands the value on to its next round, itself or what functions of single
// elements make of it, and nobody needs what the last round hands on.
bool Lowering::is_for_next_round(ValueId value) const {
  if (loop_ == nullptr || &loop_->blocks[0] != visited_) return false;
  const ir::Operation& yield = visited_->body.back();
  for (const ir::Operation* const use : uses_[value]) {
    if (use == &yield) continue;
    if (!ir::info(use->op).elementwise() || !is_for_next_round(use->results[0])) return false;
  }
  for (std::size_t i = 0; i < yield.operands.size(); ++i) {
    if (yield.operands[i] == value && !uses_[loop_->results[i]].empty()) return false;
  }
  return true;
}

// A result of one column is computed as the row that it lies as: (a b)^T = b^T a^T.
void Lowering::product(const ir::Operation& operation) {
  const ValueId value = operation.results[0];
  // That of one that updates a tensor is known from the load on.
  const TileId result = tiles_[value] == kNone ? define_tile(value) : tiles_[value];
  const ValueId addend = ir::accumulator_of(operation);
  if (addend != ir::kNoValue) copy_tile(tiles_[addend], result);
  const DType element = type(operation.operands[0]).dtype;
  Factor a = factor(operation.operands[0]), b = factor(operation.operands[1]);
  const bool flipped = type(value).shape[1] == 1;
  if (flipped) {
    std::swap(a, b);
    a.transposed = !a.transposed;
    b.transposed = !b.transposed;
  }
  append(Multiply{a.tile, b.tile, result, a.transposed, b.transposed, flipped,
                  addend != ir::kNoValue, element_of(element), rounding(element),
                  flipped ? kNone : needed_of(value), numerics_.skip_hidden,
                  is_for_next_round(value)});
}

}  // namespace tilewright::cpu
