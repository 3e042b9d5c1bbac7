#include "simulator/machine/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/binding.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;

[[noreturn]] void refuse(const Operation& operation, const std::string& why) {
  Diagnostic(operation.where, fmt::format("{}: {}", ir::info(operation.op).name, why)).raise();
}

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

std::vector<int> indices(const ir::IndexMap& map, std::int64_t count) {
  std::vector<int> index(count);
  for (std::int64_t i = 0; i < count; ++i) index[i] = static_cast<int>(ir::evaluate(map, i));
  return index;
}

class Preparation {
 public:
  Preparation(const ir::Kernel& kernel, const Arguments& arguments, std::int64_t multiprocessors)
      : kernel_(kernel), arguments_(arguments) {
    std::vector<ir::TensorShape> shapes;
    for (const TensorArgument& tensor : arguments.tensors) {
      shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
    }
    binding_ = ir::bind(kernel, shapes, multiprocessors);
  }

  Program run() {
    if (kernel_.form != ir::Form::machine) {
      Diagnostic(kernel_.where, fmt::format("kernel {} is in {} form; the virtual GPU executes the "
                                            "machine form",
                                            kernel_.name, ir::name_of(kernel_.form)))
          .raise();
    }
    program_.kernel = kernel_.name;
    program_.warps = static_cast<int>(kernel_.threads / 32);
    program_.ctas = kernel_.grid.empty() ? 1 : binding_.evaluate(kernel_.grid[0]);
    program_.cluster = kernel_.cluster;
    program_.shared_bytes = kernel_.shared_bytes;
    // As ptxas shares a multiprocessor's 64 K registers among the threads of one CTA.
    const std::int64_t threads = std::max<std::int64_t>(kernel_.threads, 1);
    program_.launch_registers =
        static_cast<int>(std::min<std::int64_t>(65536 / threads / 8 * 8, 256));
    program_.scalars.resize(kernel_.types.size());
    object_.assign(kernel_.types.size(), -1);
    parameters();
    program_.roles.push_back({kernel_.name, 0, program_.warps, 0});
    block(kernel_.body);
    emit(Code::end, nullptr);
    return std::move(program_);
  }

 private:
  void parameters() {
    std::size_t tensor = 0, scalar = 0;
    for (const ir::Parameter& parameter : kernel_.parameters) {
      if (parameter.is_tensor()) {
        object_[parameter.value] = static_cast<int>(tensor++);
      } else {
        const double value = arguments_.scalars.at(scalar++);
        program_.scalars[parameter.value] = {static_cast<std::int64_t>(value), value};
      }
    }
  }

  Instruction& emit(Code code, const Operation* operation) {
    Instruction instruction;
    instruction.code = code;
    instruction.operation = operation;
    instruction.once =
        !in_role_ && (elected_ || (operation && ir::info(operation->op).has("by:lane")));
    program_.code.push_back(instruction);
    return program_.code.back();
  }
  int here() const { return static_cast<int>(program_.code.size()); }

  void move(const Operation& operation, const std::vector<ir::ValueId>& to,
            const std::vector<ir::ValueId>& from, std::size_t skip_to, std::size_t skip_from) {
    std::vector<std::pair<Slot, Slot>> list;
    for (std::size_t i = 0; i + skip_to < to.size(); ++i) {
      list.push_back({to[i + skip_to], from[i + skip_from]});
    }
    if (list.empty()) return;
    emit(Code::move, &operation).detail = static_cast<int>(program_.moves.size());
    program_.moves.push_back(std::move(list));
  }

  // The operands of the yield that ends the block; empty when it has none.
  const std::vector<ir::ValueId>& yielded(const ir::Block& body) const {
    static const std::vector<ir::ValueId> nothing;
    const bool yields = !body.body.empty() && body.body.back().op == Op::yield;
    return yields ? body.body.back().operands : nothing;
  }

  void block(const ir::Block& body) {
    for (const Operation& operation : body.body) visit(operation);
  }

  void for_loop(const Operation& operation) {
    const ir::Block& body = operation.blocks[0];
    const Slot index = body.arguments[0];
    move(operation, body.arguments, operation.operands, 1, 3);
    emit(Code::move, &operation).detail = static_cast<int>(program_.moves.size());
    program_.moves.push_back({{index, operation.operands[0]}});
    const int test = here();
    emit(Code::loop_test, &operation).a = index;
    program_.code.back().b = operation.operands[1];
    block(body);
    move(operation, body.arguments, yielded(body), 1, 0);
    Instruction& next = emit(Code::loop_next, &operation);
    next.a = index;
    next.b = operation.operands[2];
    next.target = test;
    program_.code[test].target = here();
    move(operation, operation.results, body.arguments, 0, 1);
  }

  void while_loop(const Operation& operation) {
    const ir::Block& body = operation.blocks[0];
    const Slot condition = new_slot();
    emit(Code::move, &operation).detail = static_cast<int>(program_.moves.size());
    program_.moves.push_back({{condition, operation.operands[0]}});
    move(operation, body.arguments, operation.operands, 0, 1);
    const int test = here();
    emit(Code::branch_unless, &operation).a = condition;
    block(body);
    std::vector<ir::ValueId> to{condition};
    to.insert(to.end(), body.arguments.begin(), body.arguments.end());
    move(operation, to, yielded(body), 0, 0);
    emit(Code::jump, &operation).target = test;
    program_.code[test].target = here();
    move(operation, operation.results, body.arguments, 0, 0);
  }

  void if_then(const Operation& operation) {
    const int test = here();
    emit(Code::branch_unless, &operation).a = operation.operands[0];
    block(operation.blocks[0]);
    move(operation, operation.results, yielded(operation.blocks[0]), 0, 0);
    const int leave = here();
    emit(Code::jump, &operation);
    program_.code[test].target = here();
    if (operation.blocks.size() > 1) {
      block(operation.blocks[1]);
      move(operation, operation.results, yielded(operation.blocks[1]), 0, 0);
    }
    program_.code[leave].target = here();
  }

  void role(const Operation& operation) {
    Role made{operation.attributes.text(Key::name),
              static_cast<int>(operation.attributes.integer(Key::first_warp)),
              static_cast<int>(operation.attributes.integer(Key::warps)), 0};
    if (made.first_warp + made.warps > program_.warps) {
      refuse(operation, fmt::format("\"{}\" covers warps {} to {} of a CTA of {} warps ({} threads)",
                                    made.name, made.first_warp, made.first_warp + made.warps - 1,
                                    program_.warps, kernel_.threads));
    }
    const int outer = role_;
    role_ = static_cast<int>(program_.roles.size());
    program_.roles.push_back(std::move(made));
    in_role_ = true;
    const int enter = here();
    emit(Code::enter_role, &operation).object = role_;
    const ir::Block& body = operation.blocks[0];
    program_.code[enter].a = body.arguments.empty() ? ir::kNoValue : body.arguments[0];
    block(body);
    emit(Code::leave_role, &operation).object = outer;
    program_.code[enter].target = here();
    role_ = outer;
    in_role_ = outer != 0;
  }

  Slot new_slot() {
    program_.scalars.emplace_back();
    return static_cast<Slot>(program_.scalars.size() - 1);
  }
  int object(ir::ValueId value) const { return object_[value]; }
  const ir::Type& type(ir::ValueId value) const { return kernel_.type(value); }

  void shared(const Operation& operation) {
    const ir::Attributes& attributes = operation.attributes;
    object_[operation.results[0]] = static_cast<int>(program_.allocations.size());
    program_.allocations.push_back(
        {attributes.text(Key::name), type(operation.results[0]).dtype,
         attributes.integer(Key::offset), attributes.integer_or(Key::stages, 1),
         attributes.shared_layout().size_bytes(), operation.where});
  }

  void mbarriers(const Operation& operation) {
    BarrierArray array;
    array.name = operation.attributes.text(Key::name);
    array.offset = operation.attributes.integer(Key::offset);
    array.first = program_.barriers;
    array.count = static_cast<int>(type(operation.results[0]).elements());
    array.arrivals = static_cast<int>(operation.attributes.integer(Key::arrivals));
    array.where = operation.where;
    program_.barriers += array.count;
    object_[operation.results[0]] = static_cast<int>(program_.barrier_arrays.size());
    program_.barrier_arrays.push_back(std::move(array));
  }

  void tensor_map(const Operation& operation) {
    const TensorArgument& tensor = arguments_.tensors.at(object(operation.operands[0]));
    const std::vector<std::int64_t>& box = operation.attributes.integers(Key::box);
    TensorMap map;
    map.name = tensor.name;
    map.data = tensor.data;
    map.rank = static_cast<int>(tensor.shape.size());
    map.element_bytes = size_of(tensor.dtype);
    map.swizzle = static_cast<int>(operation.attributes.integer_or(Key::swizzle, 0));
    map.where = operation.where;
    if (map.rank > 5 || map.rank != static_cast<int>(box.size())) {
      refuse(operation, fmt::format("tensor {} has rank {}, its box {} axes; TMA takes up to 5",
                                    tensor.name, map.rank, box.size()));
    }
    for (int axis = 0; axis < map.rank; ++axis) {
      const int innermost = map.rank - 1 - axis;
      map.extents[innermost] = tensor.shape[axis];
      map.strides[innermost] = tensor.strides[axis] * map.element_bytes;
      map.box[innermost] = box[axis];
    }
    object_[operation.results[0]] = static_cast<int>(program_.maps.size());
    program_.maps.push_back(std::move(map));
  }

  void registers(const Operation& operation) {
    const ir::Type& made = type(operation.results[0]);
    object_[operation.results[0]] = static_cast<int>(program_.registers.size());
    emit(Code::registers, &operation).object = object(operation.results[0]);
    program_.registers.push_back({operation.attributes.text(Key::name), made.dtype,
                                  static_cast<int>(made.elements()), operation.where});
  }
  const RegisterInfo& array_info(ir::ValueId value) const {
    return program_.registers[object(value)];
  }

  void compute(const Operation& operation) {
    const std::vector<ir::IndexMap>& maps = operation.attributes.maps();
    Compute made;
    made.function = operation.attributes.function();
    made.destination = object(operation.operands[0]);
    const RegisterInfo& destination = program_.registers[made.destination];
    if (maps.size() + 1 != operation.operands.size()) {
      refuse(operation, fmt::format("{} maps for {} sources", maps.size(),
                                    operation.operands.size() - 1));
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
        check_indices(operation, source.index, array_info(value));
      }
      made.sources.push_back(std::move(source));
    }
    emit(Code::compute, &operation).detail = static_cast<int>(program_.computes.size());
    program_.computes.push_back(std::move(made));
  }

  void check_indices(const Operation& operation, const std::vector<int>& index,
                     const RegisterInfo& array) const {
    for (const int i : index) {
      if (i >= 0 && i < array.elements) continue;
      refuse(operation, fmt::format("a map names element {} of {}, which has {}", i, array.name,
                                    array.elements));
    }
  }

  void reduce_registers(const Operation& operation) {
    RegisterReduction made;
    made.function = operation.attributes.function();
    made.destination = object(operation.operands[0]);
    made.source = object(operation.operands[1]);
    made.index = indices(operation.attributes.maps().at(0),
                         array_info(operation.operands[1]).elements);
    check_indices(operation, made.index, array_info(operation.operands[0]));
    emit(Code::reduce_registers, &operation).detail = static_cast<int>(program_.reductions.size());
    program_.reductions.push_back(std::move(made));
  }

  void reduce_lanes(const Operation& operation) {
    LaneReduction made;
    made.function = operation.attributes.function();
    made.array = object(operation.operands[0]);
    for (const std::int64_t mask : operation.attributes.integers(Key::masks)) {
      made.masks.push_back(static_cast<int>(mask));
    }
    emit(Code::reduce_lanes, &operation).detail =
        static_cast<int>(program_.lane_reductions.size());
    program_.lane_reductions.push_back(std::move(made));
  }

  void check_spread(const Operation& operation, const Spread& spread,
                    const RegisterInfo& array) const {
    const std::size_t held = spread.rank == 0 ? 1 : spread.reg.size() / spread.rank;
    if (static_cast<int>(held) == array.elements) return;
    refuse(operation, fmt::format("the layout holds {} elements a lane, {} has {}", held,
                                  array.name, array.elements));
  }

  void store_registers(const Operation& operation) {
    GlobalStore made;
    made.tensor = &arguments_.tensors.at(object(operation.operands[0]));
    made.source = object(operation.operands[1]);
    made.spread = spread_of(operation.attributes.register_layout());
    check_spread(operation, made.spread, array_info(operation.operands[1]));
    const std::size_t rank = made.tensor->shape.size();
    const std::vector<std::int64_t>& sizes = operation.attributes.integers(Key::sizes);
    if (sizes.size() != rank || operation.operands.size() != 2 + 2 * rank) {
      refuse(operation, fmt::format("tensor {} has rank {}, the store {} sizes and {} bounds",
                                    made.tensor->name, rank, sizes.size(),
                                    operation.operands.size() - 2));
    }
    int tile_axis = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      made.starts.push_back(operation.operands[2 + axis]);
      made.limits.push_back(operation.operands[2 + rank + axis]);
      made.tile_axis.push_back(sizes[axis] == 0 ? -1 : tile_axis++);
    }
    if (tile_axis > made.spread.rank) {
      refuse(operation, fmt::format("{} axes are stored, the layout has {}", tile_axis,
                                    made.spread.rank));
    }
    emit(Code::store_registers, &operation).detail =
        static_cast<int>(program_.global_stores.size());
    program_.global_stores.push_back(std::move(made));
  }

  // object: the array; value: the allocation; a: offset; b: row.
  void store_matrix(const Operation& operation) {
    const ir::Attributes& attributes = operation.attributes;
    const RegisterInfo& source = array_info(operation.operands[0]);
    MatrixStore made;
    made.first_element = static_cast<int>(attributes.integer(Key::register_)) * 2;
    made.step = attributes.integer_or(Key::step, 0);
    made.row_bytes = attributes.integer(Key::row_bytes);
    made.chunk = attributes.integer_or(Key::column_bytes, 0) / 16;
    made.divisor = std::max<std::int64_t>(attributes.integer_or(Key::swizzle_divisor, 1), 1);
    made.mask = attributes.integer_or(Key::swizzle_mask, 0);
    if (size_of(source.dtype) != 2 || made.first_element + 8 > source.elements) {
      refuse(operation, fmt::format("{} has {} elements of {} bytes; elements {} to {} of 2 bytes "
                                    "are stored",
                                    source.name, source.elements, size_of(source.dtype),
                                    made.first_element, made.first_element + 7));
    }
    Instruction& instruction = emit(Code::store_matrix, &operation);
    instruction.object = object(operation.operands[0]);
    instruction.value = object(operation.operands[1]);
    instruction.a = operation.operands[2];
    instruction.b = operation.operands[3];
    instruction.detail = static_cast<int>(program_.matrix_stores.size());
    program_.matrix_stores.push_back(made);
  }

  // object: the array; value: the allocation; a: offset.
  void access_elements(const Operation& operation, Code code) {
    const ir::Attributes& attributes = operation.attributes;
    ElementAccess made;
    made.spread = spread_of(attributes.register_layout());
    check_spread(operation, made.spread, array_info(operation.operands[0]));
    made.row_bytes = attributes.integer(Key::row_bytes);
    made.divisor = std::max<std::int64_t>(attributes.integer_or(Key::swizzle_divisor, 1), 1);
    made.mask = attributes.integer_or(Key::swizzle_mask, 0);
    made.panel_columns = attributes.integer_or(Key::panel_columns, 0);
    made.panel_bytes = attributes.integer_or(Key::panel_bytes, 0);
    Instruction& instruction = emit(code, &operation);
    instruction.object = object(operation.operands[0]);
    instruction.value = object(operation.operands[1]);
    instruction.a = operation.operands[2];
    instruction.detail = static_cast<int>(program_.element_accesses.size());
    program_.element_accesses.push_back(std::move(made));
  }

  // object: the allocation; detail: the transfer.
  void transfer(const Operation& operation, Code code) {
    const bool load = code == Code::tma_load;
    Transfer made;
    made.map = object(operation.operands[0]);
    made.offset = operation.operands[2];
    made.step = operation.attributes.integer_or(Key::step, 0);
    made.multicast = static_cast<std::uint64_t>(operation.attributes.integer_or(Key::multicast, 0));
    if (load) {
      made.barriers = object(operation.operands[3]);
      made.barrier_index = operation.operands[4];
      signals(made.barriers);
      program_.barrier_arrays[made.barriers].transactions = true;
    }
    made.coordinates.assign(operation.operands.begin() + (load ? 5 : 3), operation.operands.end());
    const TensorMap& map = program_.maps[made.map];
    if (static_cast<int>(made.coordinates.size()) != map.rank) {
      refuse(operation, fmt::format("{} coordinates for tensor {} of rank {}",
                                    made.coordinates.size(), map.name, map.rank));
    }
    Instruction& instruction = emit(code, &operation);
    instruction.object = object(operation.operands[1]);
    instruction.detail = static_cast<int>(program_.transfers.size());
    program_.transfers.push_back(std::move(made));
  }

  void signals(int array) {
    std::vector<int>& list = program_.barrier_arrays[array].signallers;
    if (std::find(list.begin(), list.end(), role_) == list.end()) list.push_back(role_);
  }

  void product(const Operation& operation) {
    const ir::Attributes& attributes = operation.attributes;
    const std::vector<ir::ValueId>& operands = operation.operands;
    const bool from_registers = operation.op == Op::wgmma_rs;
    Product made;
    made.n = static_cast<int>(attributes.integer(Key::n));
    made.k = static_cast<int>(attributes.integer(Key::k));
    made.accumulator = object(operands[0]);
    made.dtype = type(operands[1]).dtype;
    const std::size_t b = from_registers ? 2 : 3;
    if (from_registers) {
      made.a_array = object(operands[1]);
      made.a_element =
          static_cast<int>(attributes.integer(Key::register_)) * 4 / size_of(made.dtype);
    } else {
      made.a = {object(operands[1]), operands[2], attributes.integer_or(Key::step_a, 0),
                static_cast<std::uint64_t>(attributes.integer(Key::descriptor_a)) << 14,
                attributes.integer_or(Key::transpose_a, 0) != 0};
    }
    made.b = {object(operands[b]), operands[b + 1], attributes.integer_or(Key::step_b, 0),
              static_cast<std::uint64_t>(attributes.integer(Key::descriptor_b)) << 14,
              attributes.integer_or(Key::transpose_b, 0) != 0};
    made.accumulate = operands[b + 2];
    check_product(operation, made, type(operands[b]).dtype);
    emit(Code::wgmma, &operation).detail = static_cast<int>(program_.products.size());
    program_.products.push_back(made);
  }

  void check_product(const Operation& operation, const Product& made, DType b_type) const {
    const RegisterInfo& accumulator = program_.registers[made.accumulator];
    const Role& role = program_.roles[role_];
    if (made.n < 8 || made.n > 256 || made.n % 8 != 0 || made.k * size_of(made.dtype) != 32) {
      refuse(operation, fmt::format("n {} and k {} of {}; n is a multiple of 8 up to 256, k is 32 "
                                    "bytes",
                                    made.n, made.k, name_of(made.dtype)));
    }
    if (accumulator.dtype != DType::f32 || accumulator.elements != made.n / 2) {
      refuse(operation, fmt::format("accumulator {} has {} elements of {}; m64n{} takes {} of f32",
                                    accumulator.name, accumulator.elements,
                                    name_of(accumulator.dtype), made.n, made.n / 2));
    }
    if (!is_float(made.dtype) || made.dtype == DType::f32 || made.dtype != b_type) {
      refuse(operation, fmt::format("operands of {} and {}; both are bf16, f16 or f8e4m3",
                                    name_of(made.dtype), name_of(b_type)));
    }
    if ((made.a.transposed || made.b.transposed) && size_of(made.dtype) != 2) {
      refuse(operation, "an MN-major operand of 8-bit elements");
    }
    if (made.a_array >= 0 && made.a_element + 16 / size_of(made.dtype) >
                                 program_.registers[made.a_array].elements) {
      refuse(operation, fmt::format("a's fragment ends past the {} elements of {}",
                                    program_.registers[made.a_array].elements,
                                    program_.registers[made.a_array].name));
    }
    if (role.first_warp % 4 != 0 || role.warps % 4 != 0) {
      refuse(operation, fmt::format("{} covers warps {} to {}, not whole warpgroups", role.name,
                                    role.first_warp, role.first_warp + role.warps - 1));
    }
  }

  void visit(const Operation& operation) {
    const std::vector<ir::ValueId>& operands = operation.operands;
    const ir::Attributes& attributes = operation.attributes;
    switch (operation.op) {
      case Op::yield:
      // The lanes of a warp run together, and an access is visible to all at once.
      case Op::fence_proxy_async:
      case Op::fence_barrier_init:
      case Op::warp_sync: return;
      case Op::constant: return constant(operation);
      case Op::dim: {
        const std::int64_t value = binding_.evaluate(attributes.dim());
        program_.scalars[operation.results[0]] = {value, static_cast<double>(value)};
        return;
      }
      case Op::cta_index:
      case Op::cta_count:
      case Op::cluster_rank:
      case Op::warp_index: program_.positions.push_back({operation.results[0], operation.op}); return;
      case Op::for_loop: return for_loop(operation);
      case Op::while_loop: return while_loop(operation);
      case Op::if_then: return if_then(operation);
      case Op::role: return role(operation);
      case Op::elect: {
        const bool outer = std::exchange(elected_, true);
        block(operation.blocks[0]);
        elected_ = outer;
        return;
      }
      case Op::shared: return shared(operation);
      case Op::mbarriers: return mbarriers(operation);
      case Op::tensor_map: return tensor_map(operation);
      case Op::registers: return registers(operation);
      case Op::compute: return compute(operation);
      case Op::reduce_registers: return reduce_registers(operation);
      case Op::reduce_lanes: return reduce_lanes(operation);
      case Op::store_registers: return store_registers(operation);
      case Op::store_matrix: return store_matrix(operation);
      case Op::store_elements: return access_elements(operation, Code::store_elements);
      case Op::load_elements: return access_elements(operation, Code::load_elements);
      case Op::tma_load: return transfer(operation, Code::tma_load);
      case Op::tma_store: return transfer(operation, Code::tma_store);
      case Op::wgmma_ss:
      case Op::wgmma_rs: return product(operation);
      case Op::fill: {  // object: array, a: value
        emit(Code::fill, &operation).object = object(operands[0]);
        program_.code.back().a = operands[1];
        return;
      }
      case Op::copy: {  // object: destination, detail: source
        if (array_info(operands[0]).elements != array_info(operands[1]).elements) {
          refuse(operation, fmt::format("{} has {} elements, {} has {}",
                                        array_info(operands[0]).name,
                                        array_info(operands[0]).elements,
                                        array_info(operands[1]).name,
                                        array_info(operands[1]).elements));
        }
        emit(Code::copy, &operation).object = object(operands[0]);
        program_.code.back().detail = object(operands[1]);
        return;
      }
      case Op::coordinate: {  // object: array, detail: layout, value: axis
        Spread spread = spread_of(attributes.register_layout());
        check_spread(operation, spread, array_info(operands[0]));
        Instruction& made = emit(Code::coordinate, &operation);
        made.object = object(operands[0]);
        made.value = attributes.integer(Key::axis);
        made.detail = static_cast<int>(program_.spreads.size());
        program_.spreads.push_back(std::move(spread));
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
      case Op::atomic_add: {  // object: tensor, a: element, b: value, c: result
        Instruction& made = emit(Code::atomic_add, &operation);
        made.object = object(operands[0]);
        made.a = operands[1];
        made.b = operands[2];
        made.c = operation.results[0];
        return;
      }
      case Op::mbarrier_init: {  // object: array, value: arrivals
        Instruction& made = emit(Code::mbarrier_init, &operation);
        made.object = object(operands[0]);
        made.value = attributes.integer_or(
            Key::arrivals, program_.barrier_arrays[made.object].arrivals);
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
        Instruction& made = emit(Code::mbarrier_wait, &operation);
        made.object = object(operands[0]);
        made.a = operands[1];
        made.b = operands[2];
        return;
      }
      case Op::named_sync:
      case Op::named_arrive: {  // a: index, detail: first, value: threads
        Instruction& made = emit(
            operation.op == Op::named_sync ? Code::named_sync : Code::named_arrive, &operation);
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
      case Op::cluster_sync: emit(Code::cluster_sync, &operation); return;
      case Op::set_max_registers: {  // value: count, detail: increase
        Instruction& made = emit(Code::set_max_registers, &operation);
        made.value = attributes.integer(Key::count);
        made.detail = static_cast<int>(attributes.integer_or(Key::increase, 0));
        program_.roles[role_].registers = static_cast<int>(made.value);
        return;
      }
      case Op::bulk_commit: emit(Code::bulk_commit, &operation); return;
      case Op::bulk_wait: {  // value: count, detail: only the reads
        Instruction& made = emit(Code::bulk_wait, &operation);
        made.value = attributes.integer_or(Key::count, 0);
        made.detail = static_cast<int>(attributes.integer_or(Key::read, 0));
        return;
      }
      case Op::wgmma_fence: emit(Code::wgmma_fence, &operation); return;
      case Op::wgmma_commit: emit(Code::wgmma_commit, &operation); return;
      case Op::wgmma_wait:
        emit(Code::wgmma_wait, &operation).value = attributes.integer_or(Key::count, 0);
        return;
      default: break;
    }
    if (ir::info(operation.op).elementwise()) return scalar(operation);
    refuse(operation, "not an operation of the machine form");
  }

  void constant(const Operation& operation) {
    Scalar& value = program_.scalars[operation.results[0]];
    const ir::Attribute* attribute = operation.attributes.find(Key::value);
    if (attribute && std::holds_alternative<double>(*attribute)) {
      value.f = std::get<double>(*attribute);
      value.i = static_cast<std::int64_t>(value.f);
    } else {
      value.i = operation.attributes.integer(Key::value);
      value.f = static_cast<double>(value.i);
    }
  }

  void scalar(const Operation& operation) {
    emit(Code::scalar, &operation).detail = static_cast<int>(program_.scalar_operations.size());
    program_.scalar_operations.push_back({operation.op, type(operation.operands.back()).dtype,
                                          type(operation.results[0]).dtype, operation.operands,
                                          operation.results[0]});
  }

  Slot zero() {
    if (zero_ == ir::kNoValue) zero_ = new_slot();
    return zero_;
  }

  const ir::Kernel& kernel_;
  const Arguments& arguments_;
  ir::Binding binding_;
  Program program_;
  std::vector<int> object_;  // of a value: its tensor, map, allocation, barriers or array
  int role_ = 0;
  bool in_role_ = false;
  bool elected_ = false;
  Slot zero_ = ir::kNoValue;
};

}  // namespace

std::string Allocation::describe(std::int64_t address, std::int64_t size) const {
  const std::int64_t inside = address - offset;
  if (inside < 0 || stage_bytes == 0) {
    return fmt::format("{} {:+#x}..{:+#x}", name, inside, inside + size - 1);
  }
  const std::int64_t stage = std::min(inside / stage_bytes, stages - 1);
  const std::int64_t start = inside - stage * stage_bytes;
  const std::string of = stages > 1 ? fmt::format("{}[stage {}]", name, stage) : name;
  return fmt::format("{} +{:#x}..{:#x}", of, start, start + size - 1);
}

std::int64_t TensorMap::box_bytes() const {
  std::int64_t bytes = element_bytes;
  for (int i = 0; i < rank; ++i) bytes *= box[i];
  return bytes;
}

Program prepare(const ir::Kernel& kernel, const Arguments& arguments,
                std::int64_t multiprocessors) {
  return Preparation(kernel, arguments, multiprocessors).run();
}

}  // namespace tilewright::simulator
