#include <fmt/format.h>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"
#include "ir/memory_order.h"

namespace tilewright::codegen {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

std::string offset_text(const Emitter& emitter, ValueId offset) {
  return emitter.constant(offset) ? std::to_string(*emitter.constant(offset))
                                  : emitter.name(offset);
}

// The address of an element of a shared allocation.
std::string shared_element(const Emitter& emitter, const Operation& operation) {
  return fmt::format("{} + {} * {}", emitter.name(operation.operands[0]),
                     size_of(emitter.type(operation.operands[0]).dtype),
                     emitter.name(operation.operands[1]));
}

// Of what several threads hold, one stores it.
std::string if_owner(const Emitter& emitter, const ir::RegisterLayout& layout) {
  const std::string owners = owner_condition(emitter, layout);
  return owners.empty() ? "" : fmt::format("if ({}) ", owners);
}

// The elements from i on, whole registers.
void print_shared_vector(Emitter& emitter, const Operation& operation, std::int64_t bytes) {
  const ValueId array = operation.operands[0];
  const int per_register = packing(emitter.type(array).dtype);
  const std::string registers =
      fmt::format("{} + {}", emitter.name(array),
                  per_register == 1 ? "i" : fmt::format("i / {}", per_register));
  const bool stores = operation.op == Op::store_elements;
  emitter.line(fmt::format(
      "{}{}_shared_{}(address, {});",
      stores ? if_owner(emitter, operation.attributes.register_layout()) : std::string(),
      stores ? "store" : "load", bytes, registers));
}

}  // namespace

void print_shared(Emitter& emitter, const Operation& operation) {
  const std::string name = emitter.named(operation);
  emitter.set_name(operation.results[0], name);
  emitter.line(
      fmt::format("const u32 {} = shared + {};", name, operation.attributes.integer(Key::offset)));
}

void print_shared_load(Emitter& emitter, const Operation& operation) {
  const std::string_view type = scalar_type(emitter.type(operation.results[0]).dtype);
  // Every lane loads the same; the shuffle tells ptxas, which else takes what depends on it, such
  // as a ring's stage, for different from lane to lane and keeps descriptors out of uniform
  // registers.
  emitter.line(fmt::format("const {} {} = __shfl_sync(0xffffffffu, load_shared<{}>({}), 0);", type,
                           emitter.name(operation.results[0]), type,
                           shared_element(emitter, operation)));
}

void print_shared_store(Emitter& emitter, const Operation& operation) {
  const DType dtype = emitter.type(operation.operands[0]).dtype;
  emitter.lane_line(fmt::format("store_shared({}, ({}){});", shared_element(emitter, operation),
                                memory_type(dtype), emitter.name(operation.operands[2])));
}

// Where nobody reads what was there, PTX has a reduction: of i32, and it acquires nothing.
bool is_reduction(const Emitter& emitter, const Operation& operation) {
  const ValueId old = operation.results[0];
  const Semantics semantics = ir::order_of(operation).semantics;
  return !emitter.is_used(old) && emitter.type(old).dtype == DType::i32 &&
         (semantics == Semantics::relaxed || semantics == Semantics::release);
}

void print_atomic_add(Emitter& emitter, const Operation& operation) {
  if (emitter.agent == Emitter::Agent::cta) {
    cannot_print(operation, "outside every role its result would have to reach other warps");
  }
  if (is_reduction(emitter, operation)) return print_unread_add(emitter, operation);
  const ValueId result = operation.results[0];
  const std::string_view type = scalar_type(emitter.type(result).dtype);
  const std::string call = fmt::format(
      "{}({} + {}, {})",
      operation.attributes.has(Key::semantics) ? ordered_add(emitter, ir::order_of(operation))
                                               : "atomic_add",
      emitter.pointer(operation.operands[0]), emitter.name(operation.operands[1]),
      emitter.name(operation.operands[2]));
  const std::string& name = emitter.name(result);
  if (emitter.agent == Emitter::Agent::lane) {
    return emitter.line(fmt::format("const {} {} = {};", type, name, call));
  }
  emitter.line(fmt::format("{} {} = 0;", type, name));
  emitter.lane_line(fmt::format("{} = {};", name, call));
  emitter.line(fmt::format("{} = __shfl_sync(0xffffffffu, {}, 0);", name, name));
}

void print_load_index(Emitter& emitter, const Operation& operation) {
  const ValueId tensor = operation.operands[0];
  const int rank = static_cast<int>(operation.operands.size()) - 1;
  std::vector<std::string> address{emitter.pointer(tensor)};
  for (int axis = 0; axis < rank; ++axis) {
    const std::string at = offset_text(emitter, operation.operands[1 + axis]);
    if (at == "0") continue;
    address.push_back(
        axis == rank - 1 ? at : fmt::format("(i64){} * {}", at, emitter.stride(tensor, axis)));
  }
  const MemoryOrder order = ir::order_of(operation);
  const std::string load =
      fmt::format("{}({})", order.semantics == Semantics::weak ? "*" : ordered_load(emitter, order),
                  sum_text(address));
  const std::string& name = emitter.name(operation.results[0]);
  // As in print_shared_load: the shuffle tells ptxas that all lanes have the same.
  emitter.line(emitter.agent == Emitter::Agent::lane
                   ? fmt::format("const int {} = {};", name, load)
                   : fmt::format("const int {} = __shfl_sync(0xffffffffu, {}, 0);", name, load));
}

void print_matrix(Emitter& emitter, const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const std::int64_t divisor = attributes.integer(Key::swizzle_divisor);
  const std::int64_t mask = attributes.integer(Key::swizzle_mask);
  const std::int64_t chunk = attributes.integer(Key::column_bytes) / 16;
  const bool transposed = attributes.integer_or(Key::transposed, 0) != 0;
  // Of .x2 lanes 16 to 31 give addresses that nothing uses.
  const bool pair = attributes.integer_or(Key::count, 4) == 2;
  const char* const below = !transposed ? "lane % 16"
                            : pair      ? "lane % 8"
                                        : "lane % 8 + lane / 16 * 8";
  const char* const beside = !transposed ? "lane / 16" : "lane / 8 % 2";
  emitter.open("");
  emitter.line(fmt::format("const int row = here({});",
                           sum_text({offset_text(emitter, operation.operands[3]), below})));
  std::vector<std::string> chunks{std::to_string(chunk), beside};
  if (operation.operands.size() > 4) {
    chunks.insert(chunks.begin(), offset_text(emitter, operation.operands[4]));
  }
  const std::string column = sum_text(chunks);
  const std::string swizzled =
      mask == 0 ? fmt::format("({})", column)
                : fmt::format("(({}) ^ ({} & {}))", column,
                              divisor == 1 ? "row" : fmt::format("row / {}", divisor), mask);
  const std::string address =
      sum_text({emitter.name(operation.operands[1]), offset_text(emitter, operation.operands[2]),
                std::to_string(attributes.integer_or(Key::step, 0)),
                fmt::format("row * {}", attributes.integer(Key::row_bytes)),
                fmt::format("{} * 16", swizzled)});
  emitter.line(fmt::format("{}matrix_x{}{}({}, {} + {});",
                           operation.op == Op::load_matrix ? "ld" : "st", pair ? 2 : 4,
                           transposed ? "_trans" : "", address, emitter.name(operation.operands[0]),
                           attributes.integer(Key::register_)));
  emitter.close();
}

void print_words(Emitter& emitter, const Operation& operation) {
  const std::string& array = emitter.name(operation.operands[0]);
  const bool remote = operation.operands.size() > 3;
  emitter.open("");
  std::string base = sum_text({emitter.name(operation.operands[1]),
                               offset_text(emitter, operation.operands[2]), "lane * 16"});
  if (remote) base = fmt::format("in_cta({}, {})", base, emitter.name(operation.operands[3]));
  emitter.line(fmt::format("const u32 address = {};", base));
  emitter.line("#pragma unroll");
  emitter.line(fmt::format("for (int i = 0; i < {}; ++i) {}(address + 512 * i, {} + 4 * i);",
                           emitter.type(operation.operands[0]).elements() / 4,
                           operation.op == Op::store_words ? "store_words"
                           : remote                        ? "load_words_cluster"
                                                           : "load_words",
                           array));
  emitter.close();
}

constexpr std::int64_t kFewElements = 4;

// Where in its tile an element of a register lies, from its coordinates `row` and `column`.
std::string shared_place(const ir::Attributes& attributes, int bytes) {
  const std::int64_t mask = attributes.integer(Key::swizzle_mask);
  const std::int64_t divisor = attributes.integer_or(Key::swizzle_divisor, 1);
  const std::int64_t panel_columns = attributes.integer(Key::panel_columns);
  std::vector<std::string> terms{fmt::format("row * {}", attributes.integer(Key::row_bytes))};
  std::string inner = "column";
  if (panel_columns > 0) {
    terms.push_back(
        fmt::format("column / {} * {}", panel_columns, attributes.integer(Key::panel_bytes)));
    inner = fmt::format("column % {}", panel_columns);
  }
  inner += fmt::format(" * {}", bytes);
  // The swizzle moves chunks of 16 bytes; it leaves the place inside a chunk alone.
  terms.push_back(mask == 0
                      ? inner
                      : fmt::format("(({}) ^ (({} & {}) * 16))", inner,
                                    divisor == 1 ? "row" : fmt::format("row / {}", divisor), mask));
  return sum_text(terms);
}

void print_shared_elements(Emitter& emitter, const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const ir::RegisterLayout& layout = attributes.register_layout();
  const ValueId array = operation.operands[0];
  const DType dtype = emitter.type(array).dtype;
  const std::int64_t count = emitter.type(array).elements();
  const std::int64_t panel_columns = attributes.integer(Key::panel_columns);
  const int bytes = size_of(dtype);
  const int rank = static_cast<int>(layout.shape.size());
  const auto of_register = [&](int axis) {
    return axis < 0 ? "0" : index_text(coordinate_terms(layout.registers, axis), "i", count);
  };
  const auto of_thread = [&](int axis) {
    return axis < 0 ? "0" : thread_coordinate(emitter, layout, axis);
  };
  const std::string base =
      sum_text({emitter.name(operation.operands[1]), offset_text(emitter, operation.operands[2]),
                std::to_string(attributes.integer_or(Key::step, 0))});
  // Of few elements the places are sooner computed again than kept over a loop.
  const bool few = count <= kFewElements;
  // Then an address is a thread's plus a constant, which needs no register of its own. As one
  // expression NVVM makes each a register, since the bits of both parts never overlap.
  const bool is_linear = !few && attributes.integer(Key::swizzle_mask) == 0 &&
                         (panel_columns == 0 || layout.shape[rank - 1] <= panel_columns);
  const auto linear = [&](const auto& part) {
    const auto scaled = [](const std::string& index, std::int64_t by) {
      if (index == "0") return index;
      const bool is_sum = index.find(' ') != std::string::npos;
      return fmt::format("{} * {}", is_sum ? "(" + index + ")" : index, by);
    };
    return sum_text({scaled(part(rank - 2), attributes.integer(Key::row_bytes)),
                     scaled(part(rank - 1), bytes)});
  };
  const std::int64_t vector = attributes.integer_or(Key::vector, 1);
  if (is_linear) {
    emitter.open("");
    emitter.line(fmt::format("const u32 begin = here({});", sum_text({base, linear(of_thread)})));
  }
  emitter.line("#pragma unroll");
  emitter.open(fmt::format("for (int i = 0; i < {}; {})", count,
                           vector == 1 ? "++i" : fmt::format("i += {}", vector)));
  if (is_linear) {
    emitter.line(fmt::format("const u32 address = begin + {};", linear(of_register)));
  } else {
    const auto coordinate = [&](int axis) {
      return sum_text({of_register(axis), of_thread(axis)});
    };
    const std::string column = coordinate(rank - 1);
    emitter.line(fmt::format("const int row = {};", coordinate(rank - 2)));
    emitter.line(
        fmt::format("const int column = {};", few ? fmt::format("here({})", column) : column));
    emitter.line(
        fmt::format("const u32 address = {};", sum_text({base, shared_place(attributes, bytes)})));
  }
  const std::string_view type = memory_type(dtype);
  const int per_register = packing(dtype);
  if (vector > 1) {
    print_shared_vector(emitter, operation, vector * bytes);
  } else if (operation.op == Op::store_elements) {
    const std::string value =
        per_register == 1 ? fmt::format("{}[i]", emitter.name(array))
                          : fmt::format("({})({}[i / {}] >> i % {} * {})", type,
                                        emitter.name(array), per_register, per_register, 8 * bytes);
    emitter.line(fmt::format("{}store_shared(address, {});", if_owner(emitter, layout), value));
  } else if (per_register == 1) {
    emitter.line(fmt::format("{}[i] = load_shared<{}>(address);", emitter.name(array), type));
  } else {
    const std::string target = fmt::format("{}[i / {}]", emitter.name(array), per_register);
    emitter.line(
        fmt::format("{} = (i % {} == 0 ? 0 : {}) | (u32)load_shared<{}>(address) << i % {} * {};",
                    target, per_register, target, type, per_register, 8 * bytes));
  }
  emitter.close();
  if (is_linear) emitter.close();
}

}  // namespace tilewright::codegen
