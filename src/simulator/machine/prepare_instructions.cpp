#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/memory_order.h"
#include "simulator/machine/preparation.h"

namespace tilewright::simulator {

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
  emit(Code::compute, &operation).detail = static_cast<int>(prepared_.computes.size());
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
  emit(Code::reduce_registers, &operation).detail = static_cast<int>(prepared_.reductions.size());
  prepared_.reductions.push_back(std::move(made));
}

void Preparation::reduce_lanes(const Operation& operation) {
  LaneReduction made;
  made.function = operation.attributes.function();
  made.array = object(operation.operands[0]);
  for (const std::int64_t mask : operation.attributes.integers(Key::masks)) {
    made.masks.push_back(static_cast<int>(mask));
  }
  emit(Code::reduce_lanes, &operation).detail = static_cast<int>(prepared_.lane_reductions.size());
  prepared_.lane_reductions.push_back(std::move(made));
}

void Preparation::check_spread(const Operation& operation, const Spread& spread,
                               const RegisterInfo& array) const {
  const std::size_t held = spread.rank == 0 ? 1 : spread.reg.size() / spread.rank;
  if (static_cast<int>(held) == array.elements) return;
  refuse(operation, fmt::format("the layout holds {} elements a lane, {} has {}", held, array.name,
                                array.elements));
}

void Preparation::access_global(const Operation& operation, Code code) {
  const bool loads = code == Code::load_registers;
  const ir::ValueId array = operation.operands[loads ? 0 : 1];
  GlobalAccess made;
  made.tensor = &arguments_.tensors[object(operation.operands[loads ? 1 : 0])];
  made.rank = rank(operation.operands[loads ? 1 : 0]);
  made.array = object(array);
  made.spread = spread_of(operation.attributes.register_layout());
  check_spread(operation, made.spread, array_info(array));
  made.repeated_lane = repeated(made.spread.lane, made.spread.rank);
  made.repeated_warp = repeated(made.spread.warp, made.spread.rank);
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
  emit(code, &operation).detail = static_cast<int>(prepared_.global_accesses.size());
  prepared_.global_accesses.push_back(std::move(made));
}

// object: the array; value: the allocation; a: offset; b: row; c: chunk.
void Preparation::matrix(const Operation& operation, Code code) {
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
  Instruction& instruction = emit(code, &operation);
  instruction.object = object(operation.operands[0]);
  instruction.value = object(operation.operands[1]);
  instruction.a = operation.operands[2];
  instruction.b = operation.operands[3];
  if (made.has_chunk) instruction.c = operation.operands[4];
  instruction.detail = static_cast<int>(prepared_.matrix_stores.size());
  prepared_.matrix_stores.push_back(made);
}

// object: the array; value: the allocation; a: offset.
void Preparation::access_elements(const Operation& operation, Code code) {
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
  Instruction& instruction = emit(code, &operation);
  instruction.object = object(operation.operands[0]);
  instruction.value = object(operation.operands[1]);
  instruction.a = operation.operands[2];
  instruction.detail = static_cast<int>(prepared_.element_accesses.size());
  prepared_.element_accesses.push_back(std::move(made));
}

// detail: the word.
void Preparation::word(const Operation& operation, Code code) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  if (type(operands[0]).dtype != DType::i32) refuse(operation, "a tensor that is not i32");
  const bool loads = code == Code::load_index;
  WordAccess made;
  made.tensor = object(operands[0]);
  made.rank = rank(operands[0]);
  made.coordinates.assign(operands.begin() + 1, operands.end() - (loads ? 0 : 1));
  made.order = ir::order_of(operation);
  if (code == Code::wait_flag) made.compare = ir::compare_of(operation);
  if (!loads) made.value = operands.back();
  if (!operation.results.empty()) made.result = operation.results[0];
  emit(code, &operation).detail = static_cast<int>(prepared_.words.size());
  prepared_.words.push_back(std::move(made));
}

void Preparation::visit(const Operation& operation) {
  const std::vector<ir::ValueId>& operands = operation.operands;
  const ir::Attributes& attributes = operation.attributes;
  switch (operation.op) {
    case Op::yield:
    case Op::prefetch_map:
      return;
    case Op::fence_proxy_async:
      emit(Code::fence_proxy_async, &operation);
      return;
    case Op::fence_barrier_init:
      emit(Code::fence_barrier_init, &operation);
      return;
    case Op::fence_cluster:
      emit(Code::fence_cluster, &operation);
      return;
    case Op::warp_sync:
      emit(Code::warp_sync, &operation);
      return;
    case Op::constant:
      return constant(operation);
    case Op::dim: {
      const std::int64_t value = binding_.evaluate(attributes.dim());
      prepared_.scalars[operation.results[0]] = {value, static_cast<double>(value)};
      return;
    }
    case Op::rank:
      prepared_.scalars[operation.results[0]] = {arguments_.rank,
                                                 static_cast<double>(arguments_.rank)};
      return;
    case Op::epoch:
      prepared_.scalars[operation.results[0]] = {arguments_.epoch,
                                                 static_cast<double>(arguments_.epoch)};
      return;
    case Op::peer:
    case Op::peer_map:
      object_[operation.results[0]] = object(operands[0]);
      rank_[operation.results[0]] = operands[1];
      return;
    case Op::cta_index:
    case Op::cta_count:
    case Op::cluster_rank:
    case Op::warp_index:
      prepared_.positions.push_back({operation.results[0], operation.op});
      return;
    case Op::for_loop:
      return for_loop(operation);
    case Op::while_loop:
      return while_loop(operation);
    case Op::if_then:
      return if_then(operation);
    case Op::role:
      return role(operation);
    case Op::elect: {
      const bool outer = std::exchange(elected_, true);
      block(operation.blocks[0]);
      elected_ = outer;
      return;
    }
    case Op::shared:
      return shared(operation);
    case Op::mbarriers:
      return mbarriers(operation);
    case Op::tensor_map:
      return tensor_map(operation);
    case Op::registers:
      return registers(operation);
    case Op::compute:
      return compute(operation);
    case Op::reduce_registers:
      return reduce_registers(operation);
    case Op::reduce_lanes:
      return reduce_lanes(operation);
    case Op::any_register: {  // object: array, b: result
      Instruction& made = emit(Code::any_register, &operation);
      made.object = object(operands[0]);
      made.b = operation.results[0];
      return;
    }
    case Op::load_registers:
      return access_global(operation, Code::load_registers);
    case Op::store_registers:
      return access_global(operation, Code::store_registers);
    case Op::store_matrix:
      return matrix(operation, Code::store_matrix);
    case Op::load_matrix:
      return matrix(operation, Code::load_matrix);
    case Op::store_elements:
      return access_elements(operation, Code::store_elements);
    case Op::load_elements:
      return access_elements(operation, Code::load_elements);
    case Op::store_words:
    case Op::load_words: {  // object: array, value: allocation, a: offset, detail: b is the CTA
      Instruction& made =
          emit(operation.op == Op::load_words ? Code::load_words : Code::store_words, &operation);
      made.object = object(operands[0]);
      made.value = object(operands[1]);
      made.a = operands[2];
      made.detail = operands.size() > 3;
      if (made.detail) made.b = operands[3];
      return;
    }
    case Op::tma_load:
      return transfer(operation, Code::tma_load);
    case Op::tma_store:
      return transfer(operation, Code::tma_store);
    case Op::wgmma_ss:
    case Op::wgmma_rs:
      return product(operation);
    case Op::fill: {  // object: array, a: value
      emit(Code::fill, &operation).object = object(operands[0]);
      prepared_.code.back().a = operands[1];
      return;
    }
    case Op::copy: {  // object: destination, detail: source, value: first element
      const std::int64_t first = attributes.integer_or(Key::offset, 0);
      const std::int64_t wanted = first + array_info(operands[0]).elements;
      if (first < 0 || wanted > array_info(operands[1]).elements) {
        refuse(operation,
               fmt::format("{} takes elements {} to {} of {}, which has {}",
                           array_info(operands[0]).name, first, wanted - 1,
                           array_info(operands[1]).name, array_info(operands[1]).elements));
      }
      emit(Code::copy, &operation).object = object(operands[0]);
      prepared_.code.back().detail = object(operands[1]);
      prepared_.code.back().value = first;
      return;
    }
    case Op::coordinate: {  // object: array, detail: layout, value: axis
      Spread spread = spread_of(attributes.register_layout());
      check_spread(operation, spread, array_info(operands[0]));
      Instruction& made = emit(Code::coordinate, &operation);
      made.object = object(operands[0]);
      made.value = attributes.integer(Key::axis);
      made.detail = static_cast<int>(prepared_.spreads.size());
      prepared_.spreads.push_back(std::move(spread));
      return;
    }
    case Op::shared_load: {  // object: allocation, a: element, b: result
      Instruction& made = emit(Code::shared_load, &operation);
      made.object = object(operands[0]);
      made.a = operands[1];
      made.b = operation.results[0];
      return;
    }
    case Op::shared_store: {  // object: allocation, a: element, b: value
      Instruction& made = emit(Code::shared_store, &operation);
      made.object = object(operands[0]);
      made.a = operands[1];
      made.b = operands[2];
      return;
    }
    case Op::load_index:
      return word(operation, Code::load_index);
    case Op::store_index:
      return word(operation, Code::store_index);
    case Op::atomic_add:
      return word(operation, Code::atomic_add);
    case Op::reduce_add:
      return word(operation, Code::reduce_add);
    case Op::wait_flag:
      return word(operation, Code::wait_flag);
    case Op::fence:  // value: the scope
      emit(Code::fence, &operation).value = static_cast<int>(ir::order_of(operation).scope);
      return;
    case Op::fence_proxy_async_global:
      emit(Code::fence_proxy_async_global, &operation);
      return;
    case Op::mbarrier_init: {  // object: array, value: arrivals
      Instruction& made = emit(Code::mbarrier_init, &operation);
      made.object = object(operands[0]);
      made.value =
          attributes.integer_or(Key::arrivals, prepared_.barrier_arrays[made.object].arrivals);
      return;
    }
    case Op::mbarrier_expect_tx: {  // object: array, a: index, value: bytes
      signals(object(operands[0]));
      Instruction& made = emit(Code::mbarrier_expect_tx, &operation);
      made.object = object(operands[0]);
      made.a = operands[1];
      made.value = attributes.integer(Key::bytes);
      return;
    }
    case Op::mbarrier_arrive: {  // object: array, a: index, b: CTA of the cluster if value
      signals(object(operands[0]));
      Instruction& made = emit(Code::mbarrier_arrive, &operation);
      made.object = object(operands[0]);
      made.a = operands[1];
      made.value = operands.size() > 2;
      made.b = operands.size() > 2 ? operands[2] : 0;
      return;
    }
    case Op::mbarrier_wait: {  // object: array, a: index, b: parity
      waits_for(object(operands[0]));
      Instruction& made = emit(Code::mbarrier_wait, &operation);
      made.object = object(operands[0]);
      made.a = operands[1];
      made.b = operands[2];
      return;
    }
    case Op::named_sync:
    case Op::named_arrive: {  // a: index, detail: first, value: threads
      Instruction& made =
          emit(operation.op == Op::named_sync ? Code::named_sync : Code::named_arrive, &operation);
      made.a = operands[0];
      made.detail = static_cast<int>(attributes.integer(Key::first));
      made.value = attributes.integer(Key::threads);
      return;
    }
    case Op::cta_sync: {  // barrier 0 of all threads
      Instruction& made = emit(Code::named_sync, &operation);
      made.a = zero();
      made.value = kernel_.threads;
      return;
    }
    case Op::cluster_sync:
      emit(Code::cluster_sync, &operation);
      return;
    case Op::set_max_registers: {  // value: count, detail: increase, object: of this warpgroup
                                   // alone
      Instruction& made = emit(Code::set_max_registers, &operation);
      made.value = attributes.integer(Key::count);
      made.detail = static_cast<int>(attributes.integer_or(Key::increase, 0));
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
    case Op::bulk_commit:
      emit(Code::bulk_commit, &operation);
      return;
    case Op::bulk_wait: {  // value: count, detail: only the reads
      Instruction& made = emit(Code::bulk_wait, &operation);
      made.value = attributes.integer_or(Key::count, 0);
      made.detail = static_cast<int>(attributes.integer_or(Key::read, 0));
      return;
    }
    case Op::wgmma_fence:
      emit(Code::wgmma_fence, &operation);
      return;
    case Op::wgmma_commit:
      emit(Code::wgmma_commit, &operation);
      return;
    case Op::wgmma_wait:
      emit(Code::wgmma_wait, &operation).value = attributes.integer_or(Key::count, 0);
      return;
    default:
      break;
  }
  if (ir::info(operation.op).elementwise()) return scalar(operation);
  refuse(operation, "not an operation of the machine form");
}

}  // namespace tilewright::simulator
