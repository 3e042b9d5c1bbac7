#include "cpu/lower.h"

#include <algorithm>

#include "analysis/carried.h"
#include "cpu/arena.h"
#include "cpu/chains.h"
#include "cpu/layout.h"
#include "cpu/lowering.h"
#include "cpu/recompute.h"
#include "cpu/shared_packs.h"
#include "cpu/strips.h"
#include "cpu/zeros.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::cpu {

using ir::Family;
using ir::Key;
using ir::Op;
using ir::ValueId;

Program lower(const ir::Kernel& kernel, const Kernels& kernels, const Numerics& numerics) {
  Program program = Lowering(kernel, kernels, numerics).run();
  make_strips(program);
  recompute_values(program);
  make_chains(program);
  place_tiles(program, kernels);
  find_shared_factors(program);
  find_zeros(program, kernels);
  return program;
}

Lowering::Lowering(const ir::Kernel& kernel, const Kernels& kernels, const Numerics& numerics)
    : kernel_(kernel),
      kernels_(kernels),
      numerics_(numerics),
      integers_(kernel),
      definitions_(kernel.types.size(), nullptr),
      uses_(kernel.types.size()),
      tiles_(kernel.types.size(), kNone),
      scalars_(kernel.types.size(), kNone),
      tensors_(kernel.types.size(), kNone) {
  ir::for_each(kernel.body, [this](const ir::Operation& operation) {
    for (const ValueId result : operation.results) definitions_[result] = &operation;
    for (const ValueId operand : operation.operands) uses_[operand].push_back(&operation);
  });
}

void Lowering::refuse(const ir::Operation& operation) const {
  Diagnostic(operation.where, "the target cpu does not know " +
                                  std::string(ir::info(operation.op).name) + " of " + kernel_.name)
      .fix("use the target interpreter, which takes every kernel of the tile level")
      .raise();
}

Program Lowering::run() {
  block_ = &program_.body;
  bind_parameters();
  visit(kernel_.body);
  return std::move(program_);
}

ScalarId Lowering::new_scalar(Scalar initial) {
  program_.scalars.push_back(initial);
  return static_cast<ScalarId>(program_.scalars.size() - 1);
}

ScalarId Lowering::define_scalar(ValueId value) { return scalars_[value] = new_scalar(); }

void Lowering::bind_parameters() {
  for (const ir::Parameter& parameter : kernel_.parameters) {
    if (parameter.is_tensor()) {
      tensors_[parameter.value] = static_cast<TensorId>(program_.tensors++);
    } else {
      program_.parameters.push_back({define_scalar(parameter.value), parameter.dtype, {}});
    }
  }
  for (const ValueId index : kernel_.body.arguments) {
    program_.grid.push_back(define_scalar(index));
  }
}

void Lowering::visit(const ir::Block& block) {
  const ir::Block* const outer = std::exchange(visited_, &block);
  for (const ir::Operation& operation : block.body) {
    if (operation.op != Op::yield) visit(operation);
  }
  visited_ = outer;
}

void Lowering::visit(const ir::Operation& operation) {
  where_ = operation.where;
  switch (ir::info(operation.op).family) {
    case Family::function:
      return type(operation.results[0]).is_scalar() ? compute(operation) : elementwise(operation);
    case Family::constant:
      return constant(operation);
    case Family::position: {
      const ScalarId result = define_scalar(operation.results[0]);
      if (operation.op == Op::rank) return void(program_.rank = result);
      if (operation.op == Op::epoch) return void(program_.epoch = result);
      return refuse(operation);
    }
    case Family::peer:
      return peer(operation);
    case Family::own_rows: {  // all rows are the block's
      if (operation.op == Op::discard) return;
      const ScalarId result = define_scalar(operation.results[0]);
      const bool ends = operation.op == Op::own_end;
      program_.scalars[result].whole = ends ? operation.attributes.integer(Key::count) : 0;
      return;
    }
    case Family::control:
      return control(operation);
    case Family::tile_access:
      return access(operation);
    case Family::word:
      return operation.op == Op::load_index ? load_index(operation) : refuse(operation);
    case Family::tile_product:
      return product(operation);
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

void Lowering::constant(const ir::Operation& operation) {
  const ValueId result = operation.results[0];
  const DType dtype = type(result).dtype;
  const ScalarId scalar = define_scalar(result);
  if (operation.op == Op::dim) {
    program_.dims.push_back({scalar, dtype, operation.attributes.dim()});
    return;
  }
  const ir::Attribute* attribute = operation.attributes.find(Key::value);
  if (is_float(dtype)) {
    const auto number = static_cast<float>(std::get<double>(*attribute));
    program_.scalars[scalar].real = round_to(dtype, number);
  } else {
    program_.scalars[scalar].whole = std::get<std::int64_t>(*attribute);
  }
}

void Lowering::compute(const ir::Operation& operation) {
  Compute compute{operation.op,
                  type(operation.results[0]).dtype,
                  type(operation.operands.back()).dtype,
                  {kNone, kNone, kNone},
                  define_scalar(operation.results[0]),
                  operation.where};
  if (operation.op != Op::cast) compute.dtype = compute.from;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    compute.operands[i] = scalar(operation.operands[i]);
  }
  append(compute);
}

void Lowering::control(const ir::Operation& operation) {
  switch (ir::as<ir::ControlOp>(operation.op)) {
    case ir::ControlOp::for_loop:
      return for_loop(operation);
    case ir::ControlOp::while_loop:
      return while_loop(operation);
    case ir::ControlOp::if_then:
      return if_then(operation);
    case ir::ControlOp::yield:
    case ir::ControlOp::role:
    case ir::ControlOp::elect:
      return refuse(operation);
  }
}

template <typename End>
void Lowering::lower_block(const ir::Block& from, Block& to, End end) {
  Block* const outer = std::exchange(block_, &to);
  const SourceLocation where = where_;
  visit(from);
  where_ = where;
  end();
  block_ = outer;
}

void Lowering::share(ValueId same, ValueId value) {
  tiles_[same] = tiles_[value];
  scalars_[same] = scalars_[value];
  tensors_[same] = tensors_[value];
}

Lowering::Place Lowering::place(ValueId value) const {
  return type(value).is_scalar() ? Place{true, scalars_[value]} : Place{false, tiles_[value]};
}

Lowering::Place Lowering::new_place(const ir::Type& type) {
  if (type.is_scalar()) return {true, new_scalar()};
  return {false, new_tile(make_tile(type.dtype, type.shape))};
}

void Lowering::copy(Place to, Place from) {
  if (to == from) return;
  if (to.is_scalar) return append(MoveScalar{from.id, to.id});
  copy_tile(from.id, to.id);
}

std::vector<Lowering::Place> Lowering::begin_variables(const std::vector<ValueId>& variables,
                                                       const std::vector<ValueId>& results,
                                                       const std::vector<ValueId>& initial) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Place own = places.emplace_back(new_place(type(variables[i])));
    for (const ValueId value : {variables[i], results[i]}) {
      (own.is_scalar ? scalars_ : tiles_)[value] = own.id;
    }
    copy(own, place(initial[i]));
  }
  return places;
}

// A value that is itself one of the variables is set aside before another takes its place.
void Lowering::assign(const std::vector<Place>& variables, const std::vector<ValueId>& values) {
  std::vector<Place> sources;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    Place& source = sources.emplace_back(place(values[i]));
    const bool is_variable =
        std::find(variables.begin(), variables.end(), source) != variables.end();
    if (!is_variable || source == variables[i]) continue;
    const Place aside = new_place(type(values[i]));
    copy(aside, source);
    source = aside;
  }
  for (std::size_t i = 0; i < variables.size(); ++i) copy(variables[i], sources[i]);
}

namespace {

std::vector<ValueId> tail(const std::vector<ValueId>& values, std::size_t first) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first), values.end()};
}

}  // namespace

void Lowering::for_loop(const ir::Operation& operation) {
  const analysis::Carried carried = analysis::carried(operation);
  const ir::Block& body = operation.blocks[0];
  const std::vector<Place> variables =
      begin_variables(tail(body.arguments, carried.first), operation.results,
                      tail(operation.operands, carried.leading));
  For loop{scalar(operation.operands[0]),
           scalar(operation.operands[1]),
           scalar(operation.operands[2]),
           define_scalar(body.arguments[0]),
           type(body.arguments[0]).dtype,
           {},
           operation.where};
  const ir::Operation* const outer = std::exchange(loop_, &operation);
  lower_block(body, loop.body,
              [&] { assign(variables, tail(body.body.back().operands, carried.extra)); });
  loop_ = outer;
  append(std::move(loop));
}

void Lowering::while_loop(const ir::Operation& operation) {
  const analysis::Carried carried = analysis::carried(operation);
  const ir::Block& body = operation.blocks[0];
  std::vector<Place> variables =
      begin_variables(tail(body.arguments, carried.first), operation.results,
                      tail(operation.operands, carried.leading));
  const Place condition = new_place(ir::Type::scalar(DType::boolean));
  copy(condition, place(operation.operands[0]));
  variables.insert(variables.begin(), condition);
  While loop{condition.id, {}, operation.where};
  lower_block(body, loop.body, [&] { assign(variables, body.body.back().operands); });
  append(std::move(loop));
}

void Lowering::if_then(const ir::Operation& operation) {
  std::vector<Place> results;
  for (const ValueId result : operation.results) {
    const Place own = results.emplace_back(new_place(type(result)));
    (own.is_scalar ? scalars_ : tiles_)[result] = own.id;
  }
  If choice{scalar(operation.operands[0]), {}, {}};
  for (std::size_t i = 0; i < 2; ++i) {
    const ir::Block& branch = operation.blocks[i];
    lower_block(branch, i == 0 ? choice.then : choice.otherwise,
                [&] { assign(results, branch.body.back().operands); });
  }
  append(std::move(choice));
}

}  // namespace tilewright::cpu
