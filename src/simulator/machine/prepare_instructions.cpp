#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/memory_order.h"
#include "simulator/machine/preparation.h"

namespace tilewright::simulator {

using ir::Family;
using ir::Key;
using ir::Op;
using ir::Operation;

namespace {

Spread spread_of(const ir::RegisterLayout& layout) {
  Spread spread;
  spread.rank = static_cast<int>(layout.shape.size());
  spread.warps = static_cast<int>(std::max<std::int64_t>(layout.warp_count(), 1));
  const auto append = [](std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (std::int64_t r = 0; r < layout.register_count(); ++r) {
    append(spread.reg, layout.coordinates(r, 0, 0));
  }
  for (int l = 0; l < 32; ++l) append(spread.lane, layout.coordinates(0, l, 0));
  for (int w = 0; w < spread.warps; ++w) append(spread.warp, layout.coordinates(0, 0, w));
  return spread;
}

// Of rows of `rank` coordinates, those that equal an earlier one.
std::vector<bool> repeated(const std::vector<std::int64_t>& coordinates, std::size_t rank) {
  std::vector<bool> repeats;
  for (std::size_t i = 0; i * rank < coordinates.size(); ++i) {
    bool found = false;
    for (std::size_t j = 0; j < i && !found; ++j) {
      found = std::equal(coordinates.begin() + i * rank, coordinates.begin() + (i + 1) * rank,
                         coordinates.begin() + j * rank);
    }
    repeats.push_back(found);
  }
  return repeats;
}

std::vector<int> indices(const ir::IndexMap& map, std::int64_t count) {
  std::vector<int> index(count);
  for (std::int64_t i = 0; i < count; ++i) index[i] = static_cast<int>(ir::evaluate(map, i));
  return index;
}

// The first element where each is the one after the one before it; else -1.
int first_of_run(const std::vector<int>& index) {
  for (std::size_t i = 1; i < index.size(); ++i) {
    if (index[i] != index[i - 1] + 1) return -1;
  }
  return index.empty() ? -1 : index[0];
}

// Sorts them by a number that stands for all coordinates, which are at least 0: that of the axis
// whose elements follow each other in memory counts least.
void find_runs(GlobalAccess& access) {
  const TensorArgument& tensor = *access.tensor;
  const Spread& spread = access.spread;
  const std::size_t rank = tensor.shape.size();
  std::vector<std::size_t> axes;  // of the tensor, those that the tile has
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (access.tile_axis[axis] < 0) continue;
    axes.push_back(axis);
    if (tensor.strides[axis] == 1) access.run_axis = static_cast<int>(axis);
  }
  std::stable_partition(axes.begin(), axes.end(), [&](std::size_t axis) {
    return static_cast<int>(axis) != access.run_axis;
  });
  const std::size_t held = spread.rank == 0 ? 1 : spread.reg.size() / spread.rank;
  const std::size_t lanes = spread.rank == 0 ? 1 : spread.lane.size() / spread.rank;
  const auto at = [&](std::size_t axis, std::size_t r, std::size_t l) {
    const auto i = static_cast<std::size_t>(access.tile_axis[axis]);
    return spread.reg[r * spread.rank + i] + spread.lane[l * spread.rank + i];
  };
  std::vector<std::int64_t> extents(rank, 1), numbers;
  for (const std::size_t axis : axes) {
    for (std::size_t r = 0; r < held; ++r) {
      for (std::size_t l = 0; l < lanes; ++l) {
        extents[axis] = std::max(extents[axis], at(axis, r, l) + 1);
      }
    }
  }
  for (std::size_t r = 0; r < held; ++r) {
    for (std::size_t l = 0; l < lanes; ++l) {
      std::int64_t number = 0;
      for (const std::size_t axis : axes) number = number * extents[axis] + at(axis, r, l);
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const std::int64_t row = access.run_axis < 0 ? 1 : extents[access.run_axis];
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool goes_on = i > 0 && numbers[i] == numbers[i - 1] + 1 && numbers[i] % row != 0;
    if (goes_on) {
      ++access.runs.back().count;
      continue;
    }
    ElementRun& run = access.runs.emplace_back();
    run.first.resize(rank);
    std::int64_t rest = numbers[i];
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      run.first[*axis] = rest % extents[*axis];
      rest /= extents[*axis];
    }
  }
}

}  // namespace

void Preparation::compute(const Operation& operation) {
  const std::vector<ir::IndexMap>& maps = operation.attributes.maps();
  Compute made;
  made.function = operation.attributes.function();
  made.destination = object(operation.operands[0]);
  const RegisterInfo& destination = prepared_.registers[made.destination];
  if (maps.size() + 1 != operation.operands.size()) {
    refuse(operation,
           fmt::format("{} maps for {} sources", maps.size(), operation.operands.size() - 1));
  }
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const ir::ValueId value = operation.operands[i + 1];
    RegisterSource source;
    made.operand_type = type(value).dtype;
    if (type(value).is_scalar()) {
      source.scalar = value;
    } else {
      source.array = object(value);
      source.index = indices(maps[i], destination.elements);
      source.first = first_of_run(source.index);
      check_indices(operation, source.index, array_info(value));
    }
    made.sources.push_back(std::move(source));
  }
  emit(operation).detail = static_cast<int>(prepared_.computes.size());
  prepared_.computes.push_back(std::move(made));
}

void Preparation::check_indices(const Operation& operation, const std::vector<int>& index,
                                const RegisterInfo& array) const {
  for (const int i : index) {
    if (i >= 0 && i < array.elements) continue;
    refuse(operation, fmt::format("a map names element {} of {}, which has {}", i, array.name,
                                  array.elements));
  }
}

void Preparation::reduce_registers(const Operation& operation) {
  RegisterReduction made;
  made.function = operation.attributes.function();
  made.destination = object(operation.operands[0]);
  made.source = object(operation.operands[1]);
  const std::vector<int> index =
      indices(operation.attributes.maps().at(0), array_info(operation.operands[1]).elements);
  check_indices(operation, index, array_info(operation.operands[0]));
  made.sources.resize(array_info(operation.operands[0]).elements);
  for (std::size_t i = 0; i < index.size(); ++i) {
    made.sources[index[i]].push_back(static_cast<int>(i));
  }
  emit(operation).detail = static_cast<int>(prepared_.reductions.size());
  prepared_.reductions.push_back(std::move(made));
}

void Preparation::reduce_lanes(const Operation& operation) {
  LaneReduction made;
  made.function = operation.attributes.function();
  made.array = object(operation.operands[0]);
  for (const std::int64_t mask : operation.attributes.integers(Key::masks)) {
    made.masks.push_back(static_cast<int>(mask));
  }
  emit(operation).detail = static_cast<int>(prepared_.lane_reductions.size());
  prepared_.lane_reductions.push_back(std::move(made));
}

void Preparation::check_spread(const Operation& operation, const Spread& spread,
                               const RegisterInfo& array) const {
  const std::size_t held = spread.rank == 0 ? 1 : spread.reg.size() / spread.rank;
  if (static_cast<int>(held) == array.elements) return;
  refuse(operation, fmt::format("the layout holds {} elements a lane, {} has {}", held, array.name,
                                array.elements));
}

void Preparation::access_global(const Operation& operation) {
  const bool loads = !ir::info(operation.op).writes(ir::Memory::global);
  const ir::ValueId array = operation.operands[loads ? 0 : 1];
  GlobalAccess made;
  made.returns = !loads && ir::info(operation.op).writes(ir::Memory::registers);
  if (operation.attributes.has(Key::semantics)) made.order = ir::order_of(operation);
  made.tensor = &arguments_.tensors[object(operation.operands[loads ? 1 : 0])];
  made.rank = rank(operation.operands[loads ? 1 : 0]);
  made.array = object(array);
  made.spread = spread_of(operation.attributes.register_layout());
  check_spread(operation, made.spread, array_info(array));
  made.repeated_lane = repeated(made.spread.lane, made.spread.rank);
  made.repeated_warp = repeated(made.spread.warp, made.spread.rank);
  const bool adds = !loads && ir::info(operation.op).reads(ir::Memory::global);
  made.atomic = adds && !operation.attributes.has(Key::ordered);
  const std::size_t rank = made.tensor->shape.size();
  const std::vector<std::int64_t>& sizes = operation.attributes.integers(Key::sizes);
  if (sizes.size() != rank || operation.operands.size() != 2 + 2 * rank) {
    refuse(operation,
           fmt::format("tensor {} has rank {}, the access {} sizes and {} bounds",
                       made.tensor->name, rank, sizes.size(), operation.operands.size() - 2));
  }
  int tile_axis = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    made.starts.push_back(operation.operands[2 + axis]);
    made.limits.push_back(operation.operands[2 + rank + axis]);
    made.tile_axis.push_back(sizes[axis] == 0 ? -1 : tile_axis++);
  }
  if (tile_axis > made.spread.rank) {
    refuse(operation,
           fmt::format("{} axes are accessed, the layout has {}", tile_axis, made.spread.rank));
  }
  made.checks = analysis::axis_checks(operation, 2, integers_);
  if (!made.order) find_runs(made);
  emit(operation).detail = static_cast<int>(prepared_.global_accesses.size());
  prepared_.global_accesses.push_back(std::move(made));
}

// object: the array; value: the allocation; a: offset; b: row; c: chunk.
void Preparation::matrix(const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const RegisterInfo& source = array_info(operation.operands[0]);
  MatrixStore made;
  made.first_element = static_cast<int>(attributes.integer(Key::register_)) * 2;
  made.count = static_cast<int>(attributes.integer_or(Key::count, 4));
  made.transposed = attributes.integer_or(Key::transposed, 0) != 0;
  made.has_chunk = operation.operands.size() > 4;
  made.step = attributes.integer_or(Key::step, 0);
  made.row_bytes = attributes.integer(Key::row_bytes);
  made.chunk = attributes.integer_or(Key::column_bytes, 0) / 16;
  made.divisor = std::max<std::int64_t>(attributes.integer_or(Key::swizzle_divisor, 1), 1);
  made.mask = attributes.integer_or(Key::swizzle_mask, 0);
  if (size_of(source.dtype) != 2 || made.first_element + 2 * made.count > source.elements) {
    refuse(operation, fmt::format("{} has {} elements of {} bytes; elements {} to {} of 2 bytes "
                                  "are moved",
                                  source.name, source.elements, size_of(source.dtype),
                                  made.first_element, made.first_element + 2 * made.count - 1));
  }
  Instruction& instruction = emit(operation);
  instruction.object = object(operation.operands[0]);
  instruction.value = object(operation.operands[1]);
  instruction.a = operation.operands[2];
  instruction.b = operation.operands[3];
  if (made.has_chunk) instruction.c = operation.operands[4];
  instruction.detail = static_cast<int>(prepared_.matrix_stores.size());
  prepared_.matrix_stores.push_back(made);
}

// object: the array; value: the allocation; a: offset.
void Preparation::access_elements(const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  ElementAccess made;
  made.spread = spread_of(attributes.register_layout());
  check_spread(operation, made.spread, array_info(operation.operands[0]));
  made.repeated_lane = repeated(made.spread.lane, made.spread.rank);
  made.repeated_warp = repeated(made.spread.warp, made.spread.rank);
  made.row_bytes = attributes.integer(Key::row_bytes);
  made.divisor = std::max<std::int64_t>(attributes.integer_or(Key::swizzle_divisor, 1), 1);
  made.mask = attributes.integer_or(Key::swizzle_mask, 0);
  made.panel_columns = attributes.integer_or(Key::panel_columns, 0);
  made.panel_bytes = attributes.integer_or(Key::panel_bytes, 0);
  made.vector = static_cast<int>(attributes.integer_or(Key::vector, 1));
  Instruction& instruction = emit(operation);
  instruction.object = object(operation.operands[0]);
  instruction.value = object(operation.operands[1]);
  instruction.a = operation.operands[2];
  instruction.detail = static_cast<int>(prepared_.element_accesses.size());
  prepared_.element_accesses.push_back(std::move(made));
}

// detail: the word.
void Preparation::word(const Operation& operation) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  if (type(operands[0]).dtype != DType::i32) refuse(operation, "a tensor that is not i32");
  const bool loads = operation.op == Op::load_index;
  WordAccess made;
  made.tensor = object(operands[0]);
  made.rank = rank(operands[0]);
  made.coordinates.assign(operands.begin() + 1, operands.end() - (loads ? 0 : 1));
  made.checks = analysis::word_checks(operation, made.coordinates.size(), integers_);
  made.order = ir::order_of(operation);
  if (operation.op == Op::wait_flag) made.compare = ir::compare_of(operation);
  if (loads) {
    made.claim.emplace(operation);
    if (made.claim->at_most) made.at_most = binding_.evaluate(*made.claim->at_most);
  }
  if (!loads) made.value = operands.back();
  if (!operation.results.empty()) made.result = operation.results[0];
  emit(operation).detail = static_cast<int>(prepared_.words.size());
  prepared_.words.push_back(std::move(made));
}

// object: array, value: allocation, a: offset, detail: b is the CTA
void Preparation::access_fragment(const Operation& operation) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  Instruction& made = emit(operation);
  made.object = object(operands[0]);
  made.value = object(operands[1]);
  made.a = operands[2];
  made.detail = operands.size() > 3;
  if (made.detail) made.b = operands[3];
}

// object: allocation, a: element, b: what is written, or the result
void Preparation::shared_word(const Operation& operation) {
  Instruction& made = emit(operation);
  made.object = object(operation.operands[0]);
  made.a = operation.operands[1];
  made.b = operation.results.empty() ? operation.operands[2] : operation.results[0];
}

// object: array
void Preparation::mbarrier(const Operation& operation) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  const ir::Attributes& attributes = operation.attributes;
  Instruction& made = emit(operation);
  made.object = object(operands[0]);
  switch (ir::as<ir::MbarrierOp>(operation.op)) {
    case ir::MbarrierOp::mbarrier_init:  // value: arrivals
      made.value = attributes.integer(Key::arrivals);
      return;
    case ir::MbarrierOp::mbarrier_expect_tx:  // a: index, value: bytes
      signals(made.object);
      made.a = operands[1];
      made.value = attributes.integer(Key::bytes);
      return;
    case ir::MbarrierOp::mbarrier_arrive:  // a: index, b: CTA of the cluster if value
      signals(made.object);
      made.a = operands[1];
      made.value = operands.size() > 2;
      made.b = operands.size() > 2 ? operands[2] : 0;
      return;
    case ir::MbarrierOp::mbarrier_wait:  // a: index, b: parity
      waits_for(made.object);
      made.a = operands[1];
      made.b = operands[2];
      return;
  }
}

// object: destination, detail: source, value: first element
void Preparation::copy(const Operation& operation) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  const std::int64_t first = operation.attributes.integer_or(Key::offset, 0);
  const std::int64_t wanted = first + array_info(operands[0]).elements;
  if (first < 0 || wanted > array_info(operands[1]).elements) {
    refuse(operation, fmt::format("{} takes elements {} to {} of {}, which has {}",
                                  array_info(operands[0]).name, first, wanted - 1,
                                  array_info(operands[1]).name, array_info(operands[1]).elements));
  }
  Instruction& made = emit(operation);
  made.object = object(operands[0]);
  made.detail = object(operands[1]);
  made.value = first;
}

// object: array, detail: layout, value: axis
void Preparation::coordinate(const Operation& operation) {
  Spread spread = spread_of(operation.attributes.register_layout());
  check_spread(operation, spread, array_info(operation.operands[0]));
  Instruction& made = emit(operation);
  made.object = object(operation.operands[0]);
  made.value = operation.attributes.integer(Key::axis);
  made.detail = static_cast<int>(prepared_.spreads.size());
  prepared_.spreads.push_back(std::move(spread));
}

void Preparation::computation(const Operation& operation) {
  switch (ir::as<ir::ComputationOp>(operation.op)) {
    case ir::ComputationOp::fill: {  // object: array, a: value
      Instruction& made = emit(operation);
      made.object = object(operation.operands[0]);
      made.a = operation.operands[1];
      return;
    }
    case ir::ComputationOp::copy:
      return copy(operation);
    case ir::ComputationOp::compute:
      return compute(operation);
    case ir::ComputationOp::coordinate:
      return coordinate(operation);
    case ir::ComputationOp::reduce_registers:
      return reduce_registers(operation);
    case ir::ComputationOp::reduce_lanes:
      return reduce_lanes(operation);
    case ir::ComputationOp::any_register: {  // object: array, b: result
      Instruction& made = emit(operation);
      made.object = object(operation.operands[0]);
      made.b = operation.results[0];
      return;
    }
  }
}

void Preparation::visit(const Operation& operation) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  const ir::Attributes& attributes = operation.attributes;
  switch (ir::info(operation.op).family) {
    case Family::constant:
      return constant(operation);
    case Family::position:
      return position(operation);
    case Family::peer:
      object_[operation.results[0]] = object(operands[0]);
      rank_[operation.results[0]] = operands[1];
      return;
    case Family::map_choice:
      return choose_map(operation);
    case Family::control:
      return control(operation);
    case Family::place:
      return place(operation);
    case Family::array:
      return registers(operation);
    case Family::function:
      return scalar(operation);
    case Family::computation:
      return computation(operation);
    case Family::global_access:
      return access_global(operation);
    case Family::matrix_access:
      return matrix(operation);
    case Family::element_access:
      return access_elements(operation);
    case Family::fragment_access:
      return access_fragment(operation);
    case Family::shared_word:
      return shared_word(operation);
    case Family::word:
    case Family::word_wait:
      return word(operation);
    case Family::mbarrier:
      return mbarrier(operation);
    case Family::named_barrier: {  // a: index, detail: first, value: threads, object: how many
      Instruction& made = emit(operation);
      made.a = operands[0];
      made.detail = static_cast<int>(attributes.integer(Key::first));
      made.object = static_cast<int>(attributes.integer_or(Key::count, 0));
      made.value = attributes.integer(Key::threads);
      comes_to_named(made.detail, made.object);
      return;
    }
    case Family::cta_barrier: {  // named barrier 0, of all threads
      Instruction& made = emit(operation);
      made.a = zero();
      made.value = kernel_.threads;
      comes_to_named(0, 1);
      return;
    }
    case Family::fence:  // value: the scope, of a fence that says one
      emit(operation).value = static_cast<int>(ir::order_of(operation).scope);
      return;
    case Family::group_wait: {  // value: count, detail: only the reads
      Instruction& made = emit(operation);
      made.value = attributes.integer(Key::count);
      made.detail = static_cast<int>(attributes.integer_or(Key::read, 0));
      return;
    }
    case Family::register_budget: {  // value: count, detail: increase, object: of this warpgroup
                                     // alone
      Instruction& made = emit(operation);
      made.value = attributes.integer(Key::count);
      made.detail = static_cast<int>(attributes.integer(Key::increase));
      made.object = static_cast<int>(attributes.integer_or(Key::first_warp, -1));
      const Role& role = prepared_.roles[role_];
      const int first = made.object < 0 ? role.first_warp : made.object;
      const int warps =
          made.object < 0 ? role.warps : static_cast<int>(prepared_.target->limits.group_warps);
      for (int warp = first; warp < std::min(first + warps, prepared_.warps); ++warp) {
        prepared_.registers_of_warp[warp] = static_cast<int>(made.value);
      }
      return;
    }
    case Family::check:  // a: what must hold
      emit(operation).a = operation.operands[0];
      return;
    case Family::bulk_copy:
      return transfer(operation);
    case Family::product:
      return product(operation);
    case Family::tensor_allocation:
      return tensor_allocation(operation);
    case Family::launch_control:
      return launch_control(operation);
    case Family::tensor_access:
      return tensor_access(operation);
    case Family::tensor_product:
      return tensor_product(operation);
    case Family::tensor_copy:
      return tensor_copy(operation);
    case Family::tensor_commit:
      return tensor_commit(operation);
    case Family::cluster_barrier:
    case Family::lane_order:
    case Family::commit:
    case Family::product_fence:
    case Family::tensor_wait:
    case Family::tensor_fence:
      emit(operation);
      return;
    case Family::prefetch:
      return;
    case Family::tile:
    case Family::own_rows:
    case Family::tile_access:
    case Family::tile_product:
    case Family::tile_copy:
    case Family::pending:
    case Family::view:
    case Family::shared_tile:
    case Family::fragment_tile:
    case Family::tensor_tile:
    case Family::tensor_tile_product:
      refuse(operation, "not an operation of the machine form");
    case Family::core_memory:
    case Family::core_window:
    case Family::core_copy:
    case Family::core_compute:
    case Family::core_event:
      refuse(operation, "not an operation of a GPU");
  }
}

}  // namespace tilewright::simulator
