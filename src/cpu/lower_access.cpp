#include <algorithm>

#include "cpu/layout.h"
#include "cpu/lowering.h"
#include "support/diagnostic.h"

// What the tile form reads and writes in tensors.
namespace tilewright::cpu {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

// Whether the operation lies in a loop of the block.
bool is_in_loop(const ir::Operation& operation, const ir::Block& block, bool is_of_loop = false) {
  return std::any_of(block.body.begin(), block.body.end(), [&](const ir::Operation& each) {
    if (&each == &operation) return is_of_loop;
    const bool loops = is_of_loop || each.op == Op::for_loop || each.op == Op::while_loop;
    return std::any_of(each.blocks.begin(), each.blocks.end(),
                       [&](const ir::Block& inner) { return is_in_loop(operation, inner, loops); });
  });
}

}  // namespace

void Lowering::peer(const ir::Operation& operation) {
  const auto own = static_cast<TensorId>(program_.tensors++);
  tensors_[operation.results[0]] = own;
  append(
      Peer{tensors_[operation.operands[0]], scalar(operation.operands[1]), own, operation.where});
}

void Lowering::load_index(const ir::Operation& operation) {
  const analysis::IndexClaim claim(operation);
  ScalarId most = kNone;
  if (claim.at_most) {
    most = new_scalar();
    program_.dims.push_back({most, i32, *claim.at_most});
  }
  LoadIndex load{tensors_[operation.operands[0]],
                 {},
                 define_scalar(operation.results[0]),
                 operation.where,
                 claim,
                 most};
  for (std::size_t i = 1; i < operation.operands.size(); ++i) {
    load.indices.push_back(scalar(operation.operands[i]));
  }
  append(std::move(load));
}

Box Lowering::box(const ir::Operation& operation, std::size_t first) const {
  Box box;
  box.tensor = tensors_[operation.operands[0]];
  box.sizes = operation.attributes.integers(Key::sizes);
  box.where = operation.where;
  const std::size_t rank = box.sizes.size();
  for (std::size_t axis = 0; axis < rank; ++axis) {
    box.starts.push_back(scalar(operation.operands[first + axis]));
    box.limits.push_back(scalar(operation.operands[first + rank + axis]));
  }
  box.checks = analysis::axis_checks(operation, first, integers_);
  for (const analysis::AxisCheck& check : box.checks) {
    box.sources.push_back(check.source == ir::kNoValue ? kNone : scalar(check.source));
  }
  return box;
}

// What a kernel may store to may change before it is read.
bool Lowering::is_constant(const ir::Operation& load) const {
  const ir::Parameter* const tensor = kernel_.parameter_of(load.operands[0]);
  return tensor && tensor->kind == ir::Parameter::Kind::in;
}

// Products read with any strides, also a part of the tile.
bool Lowering::is_read_in_place(const ir::Operation& load) const {
  const ValueId value = load.results[0];
  return is_constant(load) && type(value).shape.size() == 2 &&
         std::all_of(uses_[value].begin(), uses_[value].end(), [&](const ir::Operation* use) {
           return takes_factor(*use, value) ||
                  (use->op == Op::slice && is_factor_alone(use->results[0]));
         });
}

// Others read rows, and none of them hands on the tile itself.
bool Lowering::is_read_by_rows(const ir::Operation& load) const {
  const ValueId value = load.results[0];
  return is_constant(load) && std::all_of(uses_[value].begin(), uses_[value].end(), [&](auto* use) {
           if (use->op == Op::cast) return type(use->results[0]).dtype != type(value).dtype;
           return use->op == Op::reduce || ir::info(use->op).family == ir::Family::function;
         });
}

// By products of f32 in a loop behind it, as the left factor.
bool Lowering::is_read_often(const ir::Operation& load) const {
  const ValueId value = load.results[0];
  if (type(value).dtype != DType::f32) return false;
  return std::any_of(uses_[value].begin(), uses_[value].end(), [&](const ir::Operation* use) {
    return use->op == Op::dot && use->operands[0] == value && is_in_loop(*use, *visited_);
  });
}

// The product whose sums begin as what is loaded, and are stored there again: nothing between
// reads or writes memory that may change, and nobody else needs either.
const ir::Operation* Lowering::product_that_updates(const ir::Operation& load) const {
  const auto only_use = [&](ValueId value) {
    return uses_[value].size() == 1 ? uses_[value][0] : nullptr;
  };
  const ir::Operation* const product = only_use(load.results[0]);
  if (product == nullptr || product->op != Op::dot || type(load.results[0]).dtype != DType::f32 ||
      ir::accumulator_of(*product) != load.results[0]) {
    return nullptr;
  }
  const ir::Operation* const store = only_use(product->results[0]);
  if (store == nullptr || store->op != Op::store ||
      store->attributes.integers(Key::sizes) != load.attributes.integers(Key::sizes) ||
      store->operands[0] != load.operands[0] ||
      !std::equal(load.operands.begin() + 1, load.operands.end(), store->operands.begin() + 2,
                  store->operands.end())) {
    return nullptr;
  }
  const std::vector<ir::Operation>& body = visited_->body;
  auto at = std::find_if(body.begin(), body.end(),
                         [&](const ir::Operation& each) { return &each == &load; });
  while (++at < body.end() && &*at != store) {
    const ir::Family family = ir::info(at->op).family;
    const bool is_of_tiles = family == ir::Family::function || family == ir::Family::constant ||
                             family == ir::Family::tile || family == ir::Family::tile_product;
    if (!is_of_tiles && !(at->op == Op::load && is_constant(*at))) return nullptr;
  }
  return at < body.end() ? product : nullptr;
}

void Lowering::access(const ir::Operation& operation) {
  if (operation.op == Op::load) {
    const ValueId value = operation.results[0];
    const TileId tile = define_tile(value);
    Load load{box(operation, 1),
              tile,
              walk_of(program_.tiles[tile]),
              is_read_in_place(operation),
              is_read_by_rows(operation),
              is_constant(operation),
              is_read_often(operation)};
    if (const ir::Operation* const product = product_that_updates(operation)) {
      load.summed = define_tile(product->results[0]);
    }
    return append(std::move(load));
  }
  Box to = box(operation, 2);
  if (operation.op == Op::red_tile) return add(operation, std::move(to));
  store(operation, std::move(to));
}

void Lowering::store(const ir::Operation& operation, Box to) {
  const ValueId value = operation.operands[1];
  const TileId tile = whole(tiles_[value]);
  if (!block_->empty() && uses_[value].size() == 1) {
    auto* const before = std::get_if<Apply>(&block_->back());
    if (before && before->result == tile) before->stored_to = to;
  }
  append(Store{std::move(to), tile, walk_of(program_.tiles[tile])});
}

// Narrow floats are added in f32 and rounded.
void Lowering::add(const ir::Operation& operation, Box box) {
  if (operation.attributes.function() != Op::add) refuse(operation);
  program_.adds = true;
  append(AwaitTurn{});
  const ir::Type& added = type(operation.operands[1]);
  const TileId before = new_tile(make_tile(added.dtype, added.shape));
  append(Load{box, before, walk_of(program_.tiles[before]), false});
  const Lane lane = lane_of(added.dtype);
  const Element wide = lane == Lane::f32 ? Element::f32 : element_of(added.dtype);
  const TileId a = converted(before, wide), b = converted(tiles_[operation.operands[1]], wide);
  const TileId sum = new_tile(make_tile(static_cast<DType>(wide), added.shape));
  apply(kernels_.elementwise[static_cast<int>(Function::add)][static_cast<int>(lane)], "add",
        {{.tile = a}, {.tile = b}}, sum);
  const TileId rounded = converted(sum, element_of(added.dtype));
  append(Store{std::move(box), rounded, walk_of(program_.tiles[rounded])});
}

}  // namespace tilewright::cpu
