#include "ir/memory_order.h"
#include "ir/verifier_context.h"

// Peers, and accesses to memory that say how they order others.
namespace tilewright::ir {
namespace {

void verify_peer(const VerifierContext& context) {
  const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
  context.require(tensor.is_symmetric(), "{} is in this rank alone, expected a symmetric tensor",
                  tensor.name);
  const Type& result = context.result();
  const auto number = &tensor - context.kernel().parameters.data();
  const Type expected =
      Type::of(Type::Kind::tensor, tensor.dtype,
               {static_cast<std::int64_t>(tensor.shape.size()), std::int64_t{number}});
  if (result == expected) return;
  context.fail("gives {}, expected {}", result.to_string(), expected.to_string());
}

void verify_peer_map(const VerifierContext& context) {
  const Operation* map = context.defined_by(context.operation().operands[0]);
  context.require(map->op == Op::tensor_map && map->attributes.integer_or(Key::peers, 0) == 1,
                  "takes {}, expected a tensor map with peers", context.operand_text(0));
}

// Of a whole array of maps no copy says which it means.
void verify_map(const VerifierContext& context) {
  const Operation* map = context.defined_by(context.operation().operands[0]);
  context.require(map->op == Op::peer_map || !map->attributes.has(Key::peers),
                  "takes {}, which has a map for each rank, expected a peer_map",
                  context.operand_text(0));
}

void verify_order(const VerifierContext& context) {
  const Operation& operation = context.operation();
  const Attributes& attributes = operation.attributes;
  if (attributes.has(Key::semantics)) {
    const std::string& text = attributes.text(Key::semantics);
    const Semantics semantics = *find_semantics(text);
    const std::string problem = order_problem(operation.op, semantics);
    context.require(problem.empty(), "{}", problem);
    context.require(attributes.has(Key::scope) == (semantics != Semantics::weak),
                    "semantics \"{}\" {} a scope", text,
                    attributes.has(Key::scope) ? "with" : "without");
  }
  context.require(
      !attributes.has(Key::scope) || attributes.has(Key::semantics) || operation.op == Op::fence,
      "a scope without semantics");
  const Op op = operation.op;
  if (attributes.has(Key::semantics) && (op == Op::atomic_add || op == Op::load_index)) {
    const Type& value = context.result();
    context.require(value.dtype == DType::i32, "gives {} in an order, expected i32",
                    name_of(value.dtype));
  }
}

// One i32 of a vector.
void verify_element(const VerifierContext& context) {
  const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
  context.require(tensor.dtype == DType::i32 && tensor.shape.size() == 1,
                  "{} is {} of rank {}, expected i32 of rank 1", tensor.name, name_of(tensor.dtype),
                  tensor.shape.size());
  context.require(context.operand(2).dtype == DType::i32, "a value of {}, expected i32",
                  name_of(context.operand(2).dtype));
  context.require(context.operation().op == Op::wait_flag || tensor.kind != Parameter::Kind::in,
                  "writes {}, which is an input", tensor.name);
}

}  // namespace

void verify_rank_types(const VerifierContext& context) {
  switch (context.operation().op) {
    case Op::rank:
    case Op::epoch:
      return context.require(context.result().dtype == DType::i32, "gives {}, expected i32",
                             name_of(context.result().dtype));
    case Op::peer:
      return verify_peer(context);
    case Op::peer_map:
      return verify_peer_map(context);
    case Op::tma_load_tile:
    case Op::tma_store_tile:
    case Op::tma_load:
    case Op::tma_store:
      return verify_map(context);
    case Op::tensor_map: {
      const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
      return context.require(!context.attributes().has(Key::peers) || tensor.is_symmetric(),
                             "has peers, but {} is in this rank alone", tensor.name);
    }
    case Op::store_index:
    case Op::reduce_add:
    case Op::wait_flag:
      verify_element(context);
      return verify_order(context);
    case Op::load_index:
    case Op::atomic_add:
    case Op::fence:
      return verify_order(context);
    default:
      return;
  }
}

}  // namespace tilewright::ir
