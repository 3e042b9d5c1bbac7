#include "ir/memory_order.h"
#include "ir/verifier_context.h"

// Peers, one of several tensor maps, and accesses to memory that say how they order others.
namespace tilewright::ir {

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

namespace {

void verify_peer_map(const VerifierContext& context) {
  const Operation* map = context.defined_by(context.operation().operands[0]);
  context.require(map->op == Op::tensor_map && map->attributes.integer_or(Key::peers, 0) == 1,
                  "takes {}, expected a tensor map with peers", context.operand_text(0));
}

// Of all ranks' maps nothing says whose is meant.
void require_one_rank(const VerifierContext& context, const Operation& map) {
  context.require(map.op == Op::peer_map || !map.attributes.has(Key::peers),
                  "takes {}, which has a map for each rank, expected a peer_map",
                  context.operand_text(0));
}

void verify_ragged_map(const VerifierContext& context) {
  const Operation& map = *context.defined_by(context.operation().operands[0]);
  context.require(map.op != Op::ragged_map && context.map_operand(0).attributes.has(Key::ragged),
                  "takes {}, expected a ragged tensor map", context.operand_text(0));
  require_one_rank(context, map);
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
  const Attributes& attributes = context.operation().attributes;
  context.require(attributes.has(Key::counted) ||
                      !(attributes.has(Key::ascending) || attributes.has(Key::at_most)),
                  "is at most so much, or ascends, and is not counted");
  context.require(!attributes.has(Key::ascending) || tensor.shape.size() == 1,
                  "{} ascends and has rank {}", tensor.name, tensor.shape.size());
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

void verify_map_choice(const VerifierContext& context) {
  switch (as<MapChoiceOp>(context.operation().op)) {
    case MapChoiceOp::peer_map:
      return verify_peer_map(context);
    case MapChoiceOp::ragged_map:
      return verify_ragged_map(context);
  }
}

// Of several maps no copy says which it means. Which of a ragged one's it is, the machine form
// says.
void verify_copied_map(const VerifierContext& context) {
  const Operation& map = *context.defined_by(context.operation().operands[0]);
  if (map.op == Op::ragged_map) return;
  require_one_rank(context, map);
  const bool is_pair =
      context.kernel().form == Form::machine && context.map_operand(0).attributes.has(Key::ragged);
  context.require(!is_pair,
                  "takes {}, which has another map for boxes that lie outside, expected a "
                  "ragged_map",
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
  const bool has_own = is_float(tensor.dtype) && size_of(tensor.dtype) > 1;
  context.require(in_order || has_own, "adds {} in no order, expected f32, bf16 or f16",
                  name_of(tensor.dtype));
}

}  // namespace tilewright::ir
