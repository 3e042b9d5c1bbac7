#include "simulator/machine/prepared_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/aligned.h"
#include "simulator/machine/preparation.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::Operation;

[[noreturn]] void refuse(const Operation& operation, const std::string& why) {
  Diagnostic(operation.where, fmt::format("{}: {}", ir::info(operation.op).name, why)).raise();
}

Preparation::Preparation(const ir::Kernel& kernel, const Arguments& arguments,
                         std::int64_t multiprocessors)
    : kernel_(kernel), arguments_(arguments), integers_(kernel) {
  std::vector<ir::TensorShape> shapes;
  for (const TensorArgument& tensor : arguments.tensors) {
    shapes.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.strides});
  }
  binding_ = ir::bind(kernel, shapes, multiprocessors, ir::given_ranks(kernel, arguments.ranks));
  ir::check_scalars(kernel, arguments.scalars);
  ir::check_memory(kernel, arguments.tensors);
}

PreparedKernel Preparation::run() {
  if (kernel_.form != ir::Form::machine) {
    Diagnostic(kernel_.where, fmt::format("kernel {} is in {} form; the virtual GPU executes the "
                                          "machine form",
                                          kernel_.name, ir::name_of(kernel_.form)))
        .raise();
  }
  prepared_.name = kernel_.name;
  prepared_.where = kernel_.where;
  prepared_.warps = static_cast<int>(kernel_.threads / 32);
  prepared_.ctas = kernel_.grid.empty() ? 1 : binding_.evaluate(kernel_.grid[0]);
  prepared_.cluster = kernel_.cluster;
  prepared_.cta_pairs = kernel_.cta_pairs;
  prepared_.cooperative = ir::is_cooperative(kernel_);
  ir::for_each(kernel_.body, [&](const ir::Operation& operation) {
    const ir::OpInfo& info = ir::info(operation.op);
    prepared_.changes_words = prepared_.changes_words ||
                              (info.family == ir::Family::word && info.writes(ir::Memory::global));
  });
  if (prepared_.ctas > INT32_MAX) {
    Diagnostic(kernel_.where, fmt::format("kernel {} has {} CTAs, and a grid takes {}",
                                          kernel_.name, prepared_.ctas, INT32_MAX))
        .fix("use larger tiles, or a persistent loop")
        .raise();
  }
  if (prepared_.ctas % prepared_.cluster != 0) {
    Diagnostic(kernel_.where, fmt::format("kernel {} has {} CTAs, no multiple of its cluster of {}",
                                          kernel_.name, prepared_.ctas, prepared_.cluster))
        .fix(fmt::format("round the number of CTAs up to a multiple of {}", prepared_.cluster))
        .raise();
  }
  prepared_.shared_bytes = kernel_.shared_bytes;
  prepared_.target = &target::target_of(kernel_);
  prepared_.launch_registers =
      launch_registers(prepared_.target->limits, kernel_.resident * kernel_.threads);
  prepared_.scalars.resize(kernel_.types.size());
  object_.assign(kernel_.types.size(), -1);
  rank_.assign(kernel_.types.size(), ir::kNoValue);
  outside_.assign(kernel_.types.size(), ir::kNoValue);
  parameters();
  prepared_.roles.push_back({kernel_.name, 0, prepared_.warps, kernel_.where});
  prepared_.role_of_warp.assign(prepared_.warps, 0);
  prepared_.registers_of_warp.assign(prepared_.warps, 0);
  block(kernel_.body);
  emit(Code::end, nullptr);
  find_uses_of_words();
  check_places();
  return std::move(prepared_);
}

void Preparation::parameters() {
  std::size_t tensor = 0, scalar = 0;
  for (const ir::Parameter& parameter : kernel_.parameters) {
    if (parameter.is_tensor()) {
      object_[parameter.value] = static_cast<int>(tensor++);
    } else {
      const double value = arguments_.scalars[scalar++];
      const bool integral = !is_float(kernel_.type(parameter.value).dtype);
      prepared_.scalars[parameter.value] = {integral ? static_cast<std::int64_t>(value) : 0, value};
    }
  }
}

namespace {

// Of a family that executes nothing there is none.
std::optional<Code> code_of(ir::Family family) {
  switch (family) {
#define TW_FAMILY(name) case ir::Family::name:
#define TW_INSTRUCTION_FAMILY(name)
#include "ir/families.def"
    break;
#define TW_FAMILY(name)
#define TW_INSTRUCTION_FAMILY(name) \
  case ir::Family::name:            \
    return Code::name;
#include "ir/families.def"
  }
  return std::nullopt;
}

}  // namespace

Instruction& Preparation::emit(const Operation& operation) {
  return emit(code_of(ir::info(operation.op).family).value(), &operation);
}

Instruction& Preparation::emit(Code code, const Operation* operation) {
  if (elected_ && code != Code::parted && operation && is_aligned(operation->op)) {
    emit(Code::parted, operation);
  }
  Instruction instruction;
  instruction.code = code;
  instruction.operation = operation;
  if (operation) instruction.op = operation->op;
  instruction.elected = elected_ || (operation && ir::info(operation->op).agent == ir::Agent::lane);
  instruction.once = !in_role_ && instruction.elected;
  instruction.loop = loop_;
  prepared_.code.push_back(instruction);
  return prepared_.code.back();
}

void Preparation::move(const Operation& operation, const std::vector<ir::ValueId>& to,
                       const std::vector<ir::ValueId>& from, std::size_t skip_to,
                       std::size_t skip_from) {
  std::vector<std::pair<Slot, Slot>> list;
  for (std::size_t i = 0; i + skip_to < to.size(); ++i) {
    list.push_back({to[i + skip_to], from[i + skip_from]});
  }
  if (list.empty()) return;
  emit(Code::move, &operation).detail = static_cast<int>(prepared_.moves.size());
  prepared_.moves.push_back(std::move(list));
}

const std::vector<ir::ValueId>& Preparation::yielded(const ir::Block& body) const {
  static const std::vector<ir::ValueId> nothing;
  const bool yields = !body.body.empty() && body.body.back().op == Op::yield;
  return yields ? body.body.back().operands : nothing;
}

void Preparation::block(const ir::Block& body) {
  straight_ = here();
  for (const Operation& operation : body.body) visit(operation);
  straight_ = here();
}

void Preparation::control(const Operation& operation) {
  switch (ir::as<ir::ControlOp>(operation.op)) {
    case ir::ControlOp::for_loop:
      return for_loop(operation);
    case ir::ControlOp::while_loop:
      return while_loop(operation);
    case ir::ControlOp::if_then:
      return if_then(operation);
    case ir::ControlOp::yield:
      return;
    case ir::ControlOp::role:
      return role(operation);
    case ir::ControlOp::elect: {
      const bool outer = std::exchange(elected_, true);
      block(operation.blocks[0]);
      elected_ = outer;
      return;
    }
  }
}

void Preparation::for_loop(const Operation& operation) {
  const ir::Block& body = operation.blocks[0];
  const Slot index = body.arguments[0];
  move(operation, body.arguments, operation.operands, 1, 3);
  emit(Code::move, &operation).detail = static_cast<int>(prepared_.moves.size());
  prepared_.moves.push_back({{index, operation.operands[0]}});
  const int test = here();
  emit(Code::loop_test, &operation).a = index;
  prepared_.code.back().b = operation.operands[1];
  const Slot outer = std::exchange(loop_, index);
  block(body);
  loop_ = outer;
  move(operation, body.arguments, yielded(body), 1, 0);
  Instruction& next = emit(Code::loop_next, &operation);
  next.a = index;
  next.b = operation.operands[2];
  next.target = test;
  prepared_.code[test].target = here();
  move(operation, operation.results, body.arguments, 0, 1);
}

void Preparation::while_loop(const Operation& operation) {
  const ir::Block& body = operation.blocks[0];
  const Slot condition = new_slot();
  emit(Code::move, &operation).detail = static_cast<int>(prepared_.moves.size());
  prepared_.moves.push_back({{condition, operation.operands[0]}});
  move(operation, body.arguments, operation.operands, 0, 1);
  const int test = here();
  emit(Code::branch_unless, &operation).a = condition;
  block(body);
  std::vector<ir::ValueId> to{condition};
  to.insert(to.end(), body.arguments.begin(), body.arguments.end());
  move(operation, to, yielded(body), 0, 0);
  emit(Code::jump, &operation).target = test;
  prepared_.code[test].target = here();
  move(operation, operation.results, body.arguments, 0, 0);
}

void Preparation::if_then(const Operation& operation) {
  const int test = here();
  emit(Code::branch_unless, &operation).a = operation.operands[0];
  block(operation.blocks[0]);
  move(operation, operation.results, yielded(operation.blocks[0]), 0, 0);
  const int leave = here();
  emit(Code::jump, &operation);
  prepared_.code[test].target = here();
  if (operation.blocks.size() > 1) {
    block(operation.blocks[1]);
    move(operation, operation.results, yielded(operation.blocks[1]), 0, 0);
  }
  prepared_.code[leave].target = here();
}

void Preparation::role(const Operation& operation) {
  Role made{operation.attributes.text(Key::name),
            static_cast<int>(operation.attributes.integer(Key::first_warp)),
            static_cast<int>(operation.attributes.integer(Key::warps)), operation.where};
  if (made.first_warp + made.warps > prepared_.warps) {
    refuse(operation, fmt::format("\"{}\" covers warps {} to {} of a CTA of {} warps ({} threads)",
                                  made.name, made.first_warp, made.first_warp + made.warps - 1,
                                  prepared_.warps, kernel_.threads));
  }
  const int outer = role_;
  role_ = static_cast<int>(prepared_.roles.size());
  for (int warp = 0; warp < made.warps; ++warp) {
    prepared_.role_of_warp[made.first_warp + warp] = role_;
  }
  prepared_.roles.push_back(std::move(made));
  in_role_ = true;
  const int enter = here();
  emit(Code::enter_role, &operation).object = role_;
  const ir::Block& body = operation.blocks[0];
  prepared_.code[enter].a = body.arguments.empty() ? ir::kNoValue : body.arguments[0];
  block(body);
  emit(Code::leave_role, &operation).object = outer;
  prepared_.code[enter].target = here();
  role_ = outer;
  in_role_ = outer != 0;
}

Slot Preparation::new_slot() {
  prepared_.scalars.emplace_back();
  return static_cast<Slot>(prepared_.scalars.size() - 1);
}

Slot Preparation::zero() {
  if (zero_ == ir::kNoValue) zero_ = new_slot();
  return zero_;
}

void Preparation::place(const Operation& operation) {
  switch (ir::as<ir::PlaceOp>(operation.op)) {
    case ir::PlaceOp::shared:
      return shared(operation);
    case ir::PlaceOp::mbarriers:
      return mbarriers(operation);
    case ir::PlaceOp::tensor_map:
      return tensor_map(operation);
    case ir::PlaceOp::tensor_memory:
      return tensor_memory(operation);
  }
}

void Preparation::shared(const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  object_[operation.results[0]] = static_cast<int>(prepared_.allocations.size());
  prepared_.allocations.push_back({attributes.text(Key::name), type(operation.results[0]).dtype,
                                   attributes.integer(Key::offset),
                                   attributes.integer_or(Key::stages, 1),
                                   attributes.shared_layout().size_bytes(), operation.where});
}

void Preparation::mbarriers(const Operation& operation) {
  BarrierArray array;
  array.name = operation.attributes.text(Key::name);
  array.offset = operation.attributes.integer(Key::offset);
  array.first = prepared_.barriers;
  array.count = static_cast<int>(type(operation.results[0]).elements());
  array.arrivals = static_cast<int>(operation.attributes.integer(Key::arrivals));
  array.where = operation.where;
  prepared_.barriers += array.count;
  object_[operation.results[0]] = static_cast<int>(prepared_.barrier_arrays.size());
  prepared_.barrier_arrays.push_back(std::move(array));
}

void Preparation::tensor_map(const Operation& operation) {
  const TensorArgument& tensor = arguments_.tensors[object(operation.operands[0])];
  const std::vector<std::int64_t>& box = operation.attributes.integers(Key::box);
  TensorMap map;
  map.name = tensor.name;
  map.operation = &operation;
  map.tensor = &tensor;
  map.parameter =
      &*std::find_if(kernel_.parameters.begin(), kernel_.parameters.end(),
                     [&](const auto& each) { return each.value == operation.operands[0]; });
  map.rank = static_cast<int>(tensor.shape.size());
  map.element_bytes = size_of(tensor.dtype);
  map.swizzle = static_cast<int>(operation.attributes.integer_or(Key::swizzle, 0));
  map.where = map.parameter->where;
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
  if (const ir::Attribute* ragged = operation.attributes.find(Key::ragged)) {
    // The axis more: n + 1 rows that begin n rows before the tensor.
    const int axis = map.rank - 1 - static_cast<int>(std::get<std::int64_t>(*ragged));
    if (map.rank == 5) refuse(operation, "a ragged map of a tensor of rank 5; TMA takes 5 axes");
    map.extents[map.rank] = map.extents[axis] + 1;
    map.strides[map.rank] = map.strides[axis];
    map.box[map.rank] = 1;
    map.origin = -map.extents[axis] * map.strides[axis];
    map.ragged_axis = axis;
    ++map.rank;
  }
  object_[operation.results[0]] = static_cast<int>(prepared_.maps.size());
  prepared_.maps.push_back(std::move(map));
}

void Preparation::registers(const Operation& operation) {
  const ir::Type& made = type(operation.results[0]);
  object_[operation.results[0]] = static_cast<int>(prepared_.registers.size());
  emit(operation).object = object(operation.results[0]);
  const bool named = operation.attributes.has(Key::name);
  prepared_.registers.push_back({named ? operation.attributes.text(Key::name) : "registers",
                                 made.dtype, static_cast<int>(made.elements()), operation.where});
}

void Preparation::constant(const Operation& operation) {
  Scalar& value = prepared_.scalars[operation.results[0]];
  if (operation.op == Op::dim) {
    value.i = binding_.evaluate(operation.attributes.dim());
    value.f = static_cast<double>(value.i);
    return;
  }
  const ir::Attribute* attribute = operation.attributes.find(Key::value);
  if (attribute && std::holds_alternative<double>(*attribute)) {
    value.f = std::get<double>(*attribute);  // a float: nothing reads its integer
    // Registers hold what the dtype can: -1e30 is an infinity of f16.
    const DType dtype = type(operation.results[0]).dtype;
    if (is_float(dtype)) value.f = round_to(dtype, static_cast<float>(value.f));
  } else {
    value.i = operation.attributes.integer(Key::value);
    value.f = static_cast<double>(value.i);
  }
}

void Preparation::position(const Operation& operation) {
  const auto known = [&](std::int64_t value) {
    prepared_.scalars[operation.results[0]] = {value, static_cast<double>(value)};
  };
  const auto which = ir::as<ir::PositionOp>(operation.op);
  switch (which) {
    case ir::PositionOp::rank:
      return known(arguments_.rank);
    case ir::PositionOp::epoch:
      return known(arguments_.epoch);
    case ir::PositionOp::cta_index:
    case ir::PositionOp::cta_count:
    case ir::PositionOp::cluster_rank:
    case ir::PositionOp::warp_index:
      prepared_.positions.push_back({operation.results[0], which});
  }
}

void Preparation::scalar(const Operation& operation) {
  emit(operation).detail = static_cast<int>(prepared_.scalar_operations.size());
  prepared_.scalar_operations.push_back({operation.op, type(operation.operands.back()).dtype,
                                         type(operation.results[0]).dtype, operation.operands,
                                         operation.results[0]});
}

std::string Allocation::describe(std::int64_t address, std::int64_t size) const {
  const std::int64_t inside = address - offset;
  if (inside < 0 || stage_bytes == 0) {
    return fmt::format("{} {:+#x}..{:+#x}", name, inside, inside + size - 1);
  }
  const std::int64_t stage = std::min(inside / stage_bytes, stages - 1);
  const std::int64_t start = inside - stage * stage_bytes;
  return fmt::format("{} +{:#x}..{:#x}", stage_name(address), start, start + size - 1);
}

std::string Allocation::stage_name(std::int64_t address) const {
  return stages > 1 ? fmt::format("{}[stage {}]", name, stage_of(address)) : name;
}

std::int64_t Allocation::stage_of(std::int64_t address) const {
  if (stage_bytes == 0) return 0;
  return std::clamp<std::int64_t>((address - offset) / stage_bytes, 0, stages - 1);
}

std::int64_t TensorMap::box_bytes() const {
  std::int64_t bytes = element_bytes;
  for (int i = 0; i < rank; ++i) bytes *= box[i];
  return bytes;
}

const TensorArgument* PreparedKernel::tensor_of(const Instruction& instruction,
                                                const Arguments& arguments) const {
  switch (instruction.code) {
    case Code::global_access:
      return global_accesses[instruction.detail].tensor;
    case Code::bulk_copy: {
      const int map = transfers[instruction.detail].map;
      return map < 0 ? nullptr : maps[map].tensor;
    }
    case Code::word:
    case Code::word_wait:
      return &arguments.tensors[words[instruction.detail].tensor];
    case Code::end:
    case Code::move:
    case Code::jump:
    case Code::loop_test:
    case Code::loop_next:
    case Code::branch_unless:
    case Code::parted:
    case Code::enter_role:
    case Code::leave_role:
    case Code::function:
    case Code::array:
    case Code::computation:
    case Code::matrix_access:
    case Code::element_access:
    case Code::fragment_access:
    case Code::shared_word:
    case Code::mbarrier:
    case Code::named_barrier:
    case Code::cta_barrier:
    case Code::cluster_barrier:
    case Code::fence:
    case Code::lane_order:
    case Code::check:
    case Code::commit:
    case Code::group_wait:
    case Code::product:
    case Code::product_fence:
    case Code::tensor_allocation:
    case Code::tensor_access:
    case Code::tensor_wait:
    case Code::tensor_product:
    case Code::tensor_copy:
    case Code::tensor_commit:
    case Code::tensor_fence:
    case Code::launch_control:
    case Code::register_budget:
      break;
  }
  return nullptr;
}

int PreparedKernel::allocation_of(const Instruction& instruction) const {
  switch (instruction.code) {
    case Code::matrix_access:
    case Code::element_access:
    case Code::fragment_access:
      return static_cast<int>(instruction.value);
    case Code::bulk_copy:
    case Code::shared_word:
    case Code::launch_control:
      return instruction.object;
    case Code::tensor_allocation:  // of what writes none the result does not matter
      return instruction.object;
    case Code::end:
    case Code::move:
    case Code::jump:
    case Code::loop_test:
    case Code::loop_next:
    case Code::branch_unless:
    case Code::parted:
    case Code::enter_role:
    case Code::leave_role:
    case Code::function:
    case Code::array:
    case Code::computation:
    case Code::global_access:
    case Code::word:
    case Code::word_wait:
    case Code::mbarrier:
    case Code::named_barrier:
    case Code::cta_barrier:
    case Code::cluster_barrier:
    case Code::fence:
    case Code::lane_order:
    case Code::check:
    case Code::commit:
    case Code::group_wait:
    case Code::product:
    case Code::product_fence:
    case Code::tensor_access:
    case Code::tensor_wait:
    case Code::tensor_product:
    case Code::tensor_copy:
    case Code::tensor_commit:
    case Code::tensor_fence:
    case Code::register_budget:
      break;
  }
  return -1;
}

void Preparation::check_places() const {
  for (const Instruction& instruction : prepared_.code) {
    if (is_flow(instruction.code)) continue;
    const ir::OpInfo& record = ir::info(instruction.op);
    const bool global = record.reads(ir::Memory::global) || record.writes(ir::Memory::global);
    const bool names_tensor = prepared_.tensor_of(instruction, arguments_) != nullptr;
    const bool names_allocation = prepared_.allocation_of(instruction) >= 0;
    if (names_tensor == global && (names_allocation || !record.writes(ir::Memory::shared))) {
      continue;
    }
    Diagnostic(instruction.where(),
               fmt::format("{}: the virtual GPU does not see what memory it touches", record.name),
               ErrorKind::internal)
        .raise();
  }
}

PreparedKernel prepare(const ir::Kernel& kernel, const Arguments& arguments,
                       std::int64_t multiprocessors) {
  PreparedKernel prepared = Preparation(kernel, arguments, multiprocessors).run();
  prepared.source = &kernel;
  return prepared;
}

}  // namespace tilewright::simulator
