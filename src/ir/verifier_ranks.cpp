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
  const bool says_semantics = info(operation.op).find(Key::semantics) != nullptr;
  context.require(!attributes.has(Key::scope) || attributes.has(Key::semantics) || !says_semantics,
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

void verify_load_index(const VerifierContext& context) {
  const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
  context.require(context.operand_count() - 1 == tensor.shape.size(),
                  "{} indices, but {} has rank {}", context.operand_count() - 1, tensor.name,
                  tensor.shape.size());
  context.require(tensor.dtype == DType::i32, "reads an integer of {}, which is {}, expected i32",
                  tensor.name, name_of(tensor.dtype));
  context.require(context.result() == Type::scalar(DType::i32), "gives {}, expected i32",
                  name_of(context.result().dtype));
}

void verify_atomic_add(const VerifierContext& context) {
  const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
  context.require(tensor.kind != Parameter::Kind::in, "writes {}, which is an input", tensor.name);
  context.require(
      context.operand(2).dtype == tensor.dtype && context.result().dtype == tensor.dtype,
      "adds {} and gives {}, but {} is {}", name_of(context.operand(2).dtype),
      name_of(context.result().dtype), tensor.name, name_of(tensor.dtype));
}

}  // namespace

void verify_position(const VerifierContext& context) {
  context.require(context.result().dtype == DType::i32, "gives {}, expected i32",
                  name_of(context.result().dtype));
}

void verify_peers(const VerifierContext& context) {
  switch (as<PeerOp>(context.operation().op)) {
    case PeerOp::peer:
      return verify_peer(context);
    case PeerOp::peer_map:
      return verify_peer_map(context);
  }
}

// Of a whole array of maps no copy says which it means.
void verify_copied_map(const VerifierContext& context) {
  const Operation* map = context.defined_by(context.operation().operands[0]);
  context.require(map->op == Op::peer_map || !map->attributes.has(Key::peers),
                  "takes {}, which has a map for each rank, expected a peer_map",
                  context.operand_text(0));
}

void verify_word(const VerifierContext& context) {
  switch (as<WordOp>(context.operation().op)) {
    case WordOp::load_index:
      verify_load_index(context);
      break;
    case WordOp::atomic_add:
      verify_atomic_add(context);
      break;
    case WordOp::store_index:
    case WordOp::reduce_add:
      verify_element(context);
      break;
  }
  verify_order(context);
}

void verify_word_wait(const VerifierContext& context) {
  verify_element(context);
  verify_order(context);
}

void verify_fence(const VerifierContext& context) { verify_order(context); }

void verify_element_order(const VerifierContext& context, const Parameter& tensor) {
  const Attributes& attributes = context.operation().attributes;
  verify_order(context);
  const bool in_order = attributes.has(Key::semantics);
  context.require(!in_order || context.kernel().form != Form::tile,
                  "has an order in the tile form");
  context.require(!in_order || !attributes.has(Key::ordered),
                  "adds in the order of the blocks, and in one of PTX");
  if (!attributes.has(Key::function)) return;
  verify_combined(context, tensor.dtype);
  context.require(in_order || tensor.dtype == DType::f32, "adds {} in no order, expected f32",
                  name_of(tensor.dtype));
}

}  // namespace tilewright::ir
