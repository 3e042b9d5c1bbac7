#include <array>

#include "ir/memory_order.h"
#include "ir/verifier_context.h"

namespace tilewright::ir {
namespace {

// In the order of Attribute's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Attribute>> kAlternatives = {
    "integer", "number",          "text",          "list", "function",
    "dim",     "register_layout", "shared_layout", "maps"};

// As messages name what is expected.
std::string_view name_of(AttributeType type) {
  switch (type) {
    case AttributeType::integer:
      return "integer";
    case AttributeType::value:
      return "value";
    case AttributeType::text:
      return "text";
    case AttributeType::list:
      return "list";
    case AttributeType::function:
      return "function";
    case AttributeType::dim:
      return "dim";
    case AttributeType::register_layout:
      return "register_layout";
    case AttributeType::shared_layout:
      return "shared_layout";
    case AttributeType::maps:
      return "maps";
    case AttributeType::semantics:
      return "weak, relaxed, acquire, release or acq_rel";
    case AttributeType::scope:
      return "block, cluster, gpu or system";
    case AttributeType::compare:
      return "eq, ne, lt, le, gt or ge";
  }
  return {};
}

bool has_type(const Attribute& attribute, AttributeType type) {
  const auto* const text = std::get_if<std::string>(&attribute);
  switch (type) {
    case AttributeType::integer:
      return std::holds_alternative<std::int64_t>(attribute);
    case AttributeType::value:
      return std::holds_alternative<std::int64_t>(attribute) ||
             std::holds_alternative<double>(attribute);
    case AttributeType::text:
      return text != nullptr;
    case AttributeType::list:
      return std::holds_alternative<std::vector<std::int64_t>>(attribute);
    case AttributeType::function:
      return std::holds_alternative<Op>(attribute);
    case AttributeType::dim:
      return std::holds_alternative<Dim>(attribute);
    case AttributeType::register_layout:
      return std::holds_alternative<RegisterLayout>(attribute);
    case AttributeType::shared_layout:
      return std::holds_alternative<SharedLayout>(attribute);
    case AttributeType::maps:
      return std::holds_alternative<std::vector<IndexMap>>(attribute);
    case AttributeType::semantics:
      return text != nullptr && find_semantics(*text).has_value();
    case AttributeType::scope:
      return text != nullptr && find_scope(*text).has_value();
    case AttributeType::compare:
      return text != nullptr && find_compare(*text).has_value();
  }
  return false;
}

// So that products of a few of them fit 64 bits. Constants and descriptors may be larger.
void verify_size(const VerifierContext& context, const AttributeRule& rule,
                 const Attribute& attribute) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 31;
  const auto check = [&](std::int64_t number) {
    context.require(number >= -kLargest && number <= kLargest,
                    "the attribute \"{}\" holds {}, expected -2^31 to 2^31", name_of(rule.key),
                    number);
  };
  const bool is_descriptor = rule.key == Key::descriptor_a || rule.key == Key::descriptor_b;
  if (rule.type == AttributeType::integer && !is_descriptor)
    check(std::get<std::int64_t>(attribute));
  if (rule.type != AttributeType::list) return;
  for (const std::int64_t number : std::get<std::vector<std::int64_t>>(attribute)) check(number);
}

void verify_attributes(const VerifierContext& context, const OpInfo& record) {
  const Attributes& attributes = context.attributes();
  std::size_t known = 0;
  for (const AttributeRule& rule : record.attributes) {
    const Attribute* attribute = attributes.find(rule.key);
    context.require(attribute || !rule.required, "lacks the attribute \"{}\" ({})",
                    name_of(rule.key), name_of(rule.type));
    if (!attribute) continue;
    ++known;
    if (has_type(*attribute, rule.type)) {
      verify_size(context, rule, *attribute);
      continue;
    }
    if (const auto* text = std::get_if<std::string>(attribute)) {
      context.fail("the attribute \"{}\" is \"{}\", expected {}", name_of(rule.key), *text,
                   name_of(rule.type));
    }
    context.fail("the attribute \"{}\" is of type {}, expected {}", name_of(rule.key),
                 kAlternatives[attribute->index()], name_of(rule.type));
  }
  if (known == attributes.entries().size()) return;
  for (const auto& [key, value] : attributes.entries()) {
    context.require(record.find(key) != nullptr, "has no attribute \"{}\"", name_of(key));
  }
}

std::string_view name_of(OperandKind::Kind kind) {
  using Kind = OperandKind::Kind;
  switch (kind) {
    case Kind::integer:
      return "an integer scalar";
    case Kind::scalar:
      return "a scalar";
    case Kind::boolean:
      return "a boolean scalar";
    case Kind::tile:
      return "a tile";
    case Kind::pending:
      return "a pending tile";
    case Kind::tile_or_pending:
      return "a tile or a pending one";
    case Kind::tensor:
      return "a tensor";
    case Kind::shared:
      return "a shared allocation";
    case Kind::view:
      return "a view of shared memory";
    case Kind::mbarriers:
      return "mbarriers";
    case Kind::registers:
      return "a register array";
    case Kind::tensor_map:
      return "a tensor map";
    case Kind::tensor_memory:
      return "tensor memory";
    case Kind::core_memory:
      return "a memory of a core";
    case Kind::core_window:
      return "a window of a core's memory";
    case Kind::anything:
      return "anything";
  }
  return {};
}

bool accepts(OperandKind::Kind kind, const Type& type) {
  using Kind = OperandKind::Kind;
  switch (kind) {
    case Kind::integer:
      return type.is_scalar() && is_integer(type.dtype) && !is_memory_format(type.dtype);
    case Kind::scalar:
      return type.is_scalar();
    case Kind::boolean:
      return type.is_scalar() && type.dtype == DType::boolean;
    case Kind::tile:
      return type.is_tile();
    case Kind::pending:
      return type.is(Type::Kind::pending);
    case Kind::tile_or_pending:
      return type.is_tile() || type.is(Type::Kind::pending);
    case Kind::tensor:
      return type.is(Type::Kind::tensor);
    case Kind::shared:
      return type.is(Type::Kind::shared);
    case Kind::view:
      return type.is(Type::Kind::view);
    case Kind::mbarriers:
      return type.is(Type::Kind::mbarriers);
    case Kind::registers:
      return type.is(Type::Kind::registers);
    case Kind::tensor_map:
      return type.is(Type::Kind::tensor_map);
    case Kind::tensor_memory:
      return type.is(Type::Kind::tensor_memory);
    case Kind::core_memory:
      return type.is(Type::Kind::memory);
    case Kind::core_window:
      return type.is(Type::Kind::window);
    case Kind::anything:
      return !type.is(Type::Kind::none);
  }
  return false;
}

void verify_values(const VerifierContext& context, const Few<OperandKind, 8>& kinds,
                   const std::vector<ValueId>& values, std::string_view what) {
  using Count = OperandKind::Count;
  std::size_t next = 0;
  for (const OperandKind& expected : kinds) {
    std::size_t end = expected.count == Count::any ? values.size() : next + 1;
    if (expected.count == Count::optional && next == values.size()) end = next;
    for (; next < end; ++next) {
      context.require(next < values.size(), "has {} {}s, expected {} as {} {}", values.size(), what,
                      name_of(expected.kind), what, next);
      const Type& type = context.kernel().types[values[next]];
      if (accepts(expected.kind, type)) continue;
      context.fail("{} {} is {}, which is {}, expected {}", what, next,
                   context.describe(values[next]), type.to_string(), name_of(expected.kind));
    }
  }
  context.require(next == values.size(), "has {} {}s, expected {}", values.size(), what, next);
}

}  // namespace

void verify_signature(const VerifierContext& context) {
  const Operation& operation = context.operation();
  const OpInfo& record = info(operation.op);
  const Form form = context.kernel().form;
  const bool planned = form == Form::tile && !context.kernel().target.empty();
  context.require(planned ? record.in_plans() : record.in(form), "does not exist in the {} form",
                  name_of(form));
  verify_values(context, record.operands, operation.operands, "operand");
  verify_values(context, record.results, operation.results, "result");
  verify_attributes(context, record);
}

void verify_combined(const VerifierContext& context, DType dtype) {
  const Op function = context.attributes().function();
  const std::string problem = info(context.operation().op).function_problem(function, dtype);
  context.require(problem.empty(), "{}", problem);
}

void verify_types(const VerifierContext& context) {
  const Operation& operation = context.operation();
  switch (info(operation.op).family) {
    case Family::function:
      return verify_elementwise(context);
    case Family::constant:
      if (operation.op == Op::constant) verify_constant(context);
      return;  // a dim's symbols are the kernel's: verifier.cpp
    case Family::position:
      return verify_position(context);
    case Family::peer:
      return verify_peer(context);
    case Family::map_choice:
      return verify_map_choice(context);
    case Family::place:
      return verify_place(context);
    case Family::tile:
      return verify_tile(context);
    case Family::tile_access:
      return verify_tile_access(context);
    case Family::tile_product:
      return operation.op == Op::dot ? verify_dot(context) : verify_wgmma_tile(context);
    case Family::tile_copy:
      return verify_tile_copy(context);
    case Family::pending:
      return verify_pending(context);
    case Family::view:
      return verify_view(context);
    case Family::shared_tile:
      return verify_shared_tile(context);
    case Family::fragment_tile:
      return verify_fragment_tile(context);
    case Family::computation:
      return verify_computation(context);
    case Family::global_access:
      return verify_global_access(context);
    case Family::matrix_access:
      return verify_matrix(context);
    case Family::element_access:
      return verify_elements(context);
    case Family::fragment_access:
      return verify_words(context);
    case Family::shared_word:
      return verify_shared_word(context);
    case Family::word:
      return verify_word(context);
    case Family::word_wait:
      return verify_word_wait(context);
    case Family::mbarrier:
      return verify_mbarrier(context);
    case Family::named_barrier:
      return verify_named_barrier(context);
    case Family::fence:
      return verify_fence(context);
    case Family::group_wait:
      return verify_group_wait(context);
    case Family::bulk_copy:
      return verify_bulk_copy(context);
    case Family::product:
      return verify_product(context);
    case Family::tensor_tile:
      return verify_tensor_tile(context);
    case Family::tensor_tile_product:
      return verify_tensor_tile_product(context);
    case Family::tensor_allocation:
      return verify_tensor_allocation(context);
    case Family::tensor_access:
      return verify_tensor_access(context);
    case Family::tensor_product:
      return verify_tensor_product(context);
    case Family::tensor_copy:
      return verify_tensor_copy(context);
    case Family::tensor_commit:
      return verify_tensor_commit(context);
    case Family::launch_control:
      return verify_launch_control(context);
    case Family::register_budget:
      return verify_register_budget(context);
    case Family::check:
      return verify_check(context);
    case Family::core_memory:
      return verify_core_memory(context);
    case Family::core_window:
      return verify_core_window(context);
    case Family::core_copy:
      return verify_core_copy(context);
    case Family::core_compute:
      return verify_core_compute(context);
    case Family::control:  // its blocks: verifier.cpp
    case Family::array:
    case Family::own_rows:
    case Family::prefetch:
    case Family::cta_barrier:
    case Family::cluster_barrier:
    case Family::lane_order:
    case Family::commit:
    case Family::product_fence:
    case Family::tensor_wait:
    case Family::tensor_fence:
    case Family::core_event:
      return;
  }
}

}  // namespace tilewright::ir
