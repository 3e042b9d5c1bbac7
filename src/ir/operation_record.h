#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tilewright/dtype.h"
#include "tilewright/memory_order.h"

// What an operation is, as operations.def states it: one record, which verifier, passes, simulator
// and printer ask.
namespace tilewright::ir {

enum class Op : std::uint8_t {
#define TW_OPERATION(name, ...) name,
#include "ir/operations.def"
};

inline constexpr std::size_t kOperationCount = 0
#define TW_OPERATION(...) +1
#include "ir/operations.def"
    ;

enum class Key : std::uint8_t {
#define TW_ATTRIBUTE(name, type) name,
#include "ir/attributes.def"
};

enum class Family : std::uint8_t {
#define TW_FAMILY(name) name,
#include "ir/families.def"
};

inline constexpr Family kFamilies[] = {
#define TW_FAMILY(name) Family::name,
#include "ir/families.def"
};

// The members of families, and of kinds of functions, that are told apart by name:
// as<ControlOp>(op) where info(op).family is that family. A switch over one of these names every
// member, so that none is forgotten.
enum class ArithmeticFunction : std::uint8_t {
#define TW_OPERATION(...)
#define TW_ARITHMETIC(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class DivisionFunction : std::uint8_t {
#define TW_OPERATION(...)
#define TW_DIVISION(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class RealFunction : std::uint8_t {
#define TW_OPERATION(...)
#define TW_REAL(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class ComparisonFunction : std::uint8_t {
#define TW_OPERATION(...)
#define TW_COMPARISON(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class LogicFunction : std::uint8_t {
#define TW_OPERATION(...)
#define TW_LOGIC(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class ChoiceFunction : std::uint8_t {
#define TW_OPERATION(...)
#define TW_CHOICE(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class BitFunction : std::uint8_t {
#define TW_OPERATION(...)
#define TW_BITS(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class ConstantOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_CONSTANT(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class PositionOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_POSITION(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class PeerOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_PEER(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class MapChoiceOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_MAP_CHOICE(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class ControlOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_CONTROL(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class PlaceOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_PLACE(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class TileOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_TILE(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class TileProductOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_TILE_PRODUCT(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class OwnRowsOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_OWN_ROWS(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class PendingOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_PENDING(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class ComputationOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_COMPUTATION(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class SharedWordOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_SHARED_WORD(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class WordOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_WORD(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class MbarrierOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_MBARRIER(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class FenceOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_FENCE(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class CommitOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_COMMIT(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class GroupWaitOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_GROUP_WAIT(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class TensorAllocationOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_TENSOR_ALLOCATION(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class TensorAccessOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_TENSOR_ACCESS(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class TensorCopyOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_TENSOR_COPY(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class TensorWaitOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_TENSOR_WAIT(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class LaunchControlOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_LAUNCH_CONTROL(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class TensorFenceOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_TENSOR_FENCE(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class CoreCopyOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_CORE_COPY(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class CoreComputeOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_CORE_COMPUTE(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
enum class CoreEventOp : std::uint8_t {
#define TW_OPERATION(...)
#define TW_CORE_EVENT(name, ...) name = static_cast<std::uint8_t>(Op::name),
#include "ir/operations.def"
};
template <typename Members>
constexpr Members as(Op op) {
  return static_cast<Members>(op);
}

enum class Form : std::uint8_t { tile, scheduled, machine };
// tensor: tensor memory, where tensor cores accumulate. core: any of the memories of a core whose
// program places every tile.
enum class Memory : std::uint8_t { global, shared, registers, barrier, tensor, core };
// generic: loads and stores of threads; async: TMA and the tensor cores, and threads' accesses to
// tensor memory.
enum class Proxy : std::uint8_t { generic, async };
// Who issues an operation; none in particular where it is a pure function. sequencer: what issues
// the instructions of a core's units.
enum class Agent : std::uint8_t { none, lane, warp, warpgroup, cta, sequencer };
// What tells that an operation is over: nothing (it is, at once), the phase of an mbarrier, a wait
// for bulk groups, a wait for groups of products, a commit behind it, a wait for accesses to tensor
// memory, an event of its unit.
enum class Completion : std::uint8_t { now, mbarrier, bulk, products, committed, waited, event };
// division: of integers. real: of floating-point numbers alone. choice: what passes its operands
// on.
enum class FunctionKind : std::uint8_t {
  arithmetic,
  division,
  real,
  comparison,
  logic,
  choice,
  bits
};
// What the operands of an elementwise function are.
enum class Domain : std::uint8_t { number, integer, floating, boolean, anything };
// What executes an elementwise function: the integer or the floating-point pipe, the unit for
// special functions, that one behind a reduction of the argument, a polynomial of a library;
// split_exponent: a polynomial beside the special functions, of what the exponent leaves.
enum class Pipe : std::uint8_t {
  integer,
  arithmetic,
  conversion,
  special,
  reduced_special,
  polynomial,
  split_exponent
};

// A kind of operands or results, and how many there are.
struct OperandKind {
  enum class Kind : std::uint8_t {
    integer,
    scalar,
    boolean,
    tile,
    pending,
    tile_or_pending,
    tensor,
    shared,
    view,
    mbarriers,
    registers,
    tensor_map,
    tensor_memory,
    core_memory,
    core_window,
    anything
  };
  enum class Count : std::uint8_t { one, optional, any };
  Kind kind = Kind::anything;
  Count count = Count::one;
};

// value: an integer or a number. semantics, scope, compare: their words (memory_order.h).
enum class AttributeType : std::uint8_t {
  integer,
  value,
  text,
  list,
  function,
  dim,
  register_layout,
  shared_layout,
  maps,
  semantics,
  scope,
  compare
};

struct AttributeRule {
  Key key = Key::name;
  AttributeType type = AttributeType::integer;
  bool required = false;
};

// A function that the attribute of that name may be, and the dtypes that it is there for: a bit
// each, none for any.
struct FunctionRule {
  Op function = Op::add;
  std::uint32_t dtypes = 0;
  constexpr bool takes(DType dtype) const {
    return dtypes == 0 || (dtypes >> static_cast<int>(dtype) & 1) != 0;
  }
};

// A few of T, in a constant expression.
template <typename T, std::size_t kMost>
struct Few {
  std::array<T, kMost> items{};
  std::size_t count = 0;
  constexpr void add(T item) { items[count++] = item; }
  constexpr const T* begin() const { return items.data(); }
  constexpr const T* end() const { return items.data() + count; }
};

struct OpInfo {
  std::string_view name;
  Family family = Family::function;
  Few<OperandKind, 8> operands, results;
  Agent agent = Agent::none;
  Completion completion = Completion::now;
  bool synchronises = false;
  Few<AttributeRule, 10> attributes;
  Few<FunctionRule, 3> functions;
  Op becomes = Op::yield;       // in the machine form, of a copy of tiles
  std::optional<Op> made_of;    // in the scheduled form, of a product
  int accumulator = -1;         // of a product: the operand that the others' product is added to
  Few<Semantics, 4> semantics;  // first what it means where no attribute says
  // Whose threads it orders with this one, where no attribute says. Nothing: an operation that
  // orders no threads, lanes of one warp alone, or whom its attribute has to say.
  std::optional<Scope> scope;
  // Of an elementwise function.
  FunctionKind kind = FunctionKind::arithmetic;
  int arity = 0;
  Domain domain = Domain::number;
  Pipe pipe = Pipe::integer;

  constexpr bool in(Form form) const { return (forms_ >> static_cast<int>(form) & 1) != 0; }
  // In the tile form of a kernel that knows its target.
  constexpr bool in_plans() const { return (forms_ & kPlanned) != 0 || in(Form::tile); }
  constexpr bool elementwise() const { return family == Family::function; }
  // Of tiles, which its warps go on beside: the result is pending.
  constexpr bool is_asynchronous_product() const {
    return family == Family::tile_product && completion != Completion::now;
  }
  // Gives booleans of whatever it compares.
  constexpr bool is_comparison() const { return elementwise() && kind == FunctionKind::comparison; }
  constexpr bool is_place() const {
    return family == Family::place || family == Family::array || family == Family::core_memory;
  }
  // Done by a unit beside the threads, on memory that they see too.
  constexpr bool asynchronous() const {
    return touches(Memory::global, Proxy::async) || touches(Memory::shared, Proxy::async) ||
           touches(Memory::tensor, Proxy::async) || touches(Memory::core, Proxy::async);
  }
  // Free to move and to drop.
  constexpr bool pure() const {
    return touched_ == 0 && agent == Agent::none && !synchronises && !is_place() &&
           family != Family::control;
  }
  constexpr bool reads(Memory memory, Proxy proxy) const { return has(memory, proxy, kRead); }
  constexpr bool writes(Memory memory, Proxy proxy) const { return has(memory, proxy, kWrite); }
  // Through either proxy.
  constexpr bool reads(Memory memory) const {
    return reads(memory, Proxy::generic) || reads(memory, Proxy::async);
  }
  constexpr bool writes(Memory memory) const {
    return writes(memory, Proxy::generic) || writes(memory, Proxy::async);
  }
  constexpr bool touches(Memory memory, Proxy proxy) const {
    return reads(memory, proxy) || writes(memory, proxy);
  }
  const AttributeRule* find(Key key) const;
  // Why it cannot combine elements of the dtype by the function; empty where it can.
  std::string function_problem(Op function, DType dtype) const;

  // For the table alone.
  static constexpr int kRead = 0, kWrite = 1;
  constexpr void touch(Memory memory, Proxy proxy, int access) {
    touched_ |= bit(memory, proxy, access);
  }
  constexpr void exist_in(Form form) { forms_ |= 1u << static_cast<int>(form); }
  constexpr void exist_in_plans() { forms_ |= kPlanned; }
  // As the instruction that it becomes.
  constexpr void behave_as(const OpInfo& instruction) {
    touched_ = instruction.touched_;
    agent = instruction.agent;
    completion = instruction.completion;
    for (const FunctionRule& rule : instruction.functions) combine(rule);
  }
  constexpr void combine(FunctionRule rule) {
    if (functions.count == 0) attributes.add({Key::function, AttributeType::function, true});
    functions.add(rule);
  }

 private:
  static constexpr std::uint32_t kPlanned = 1u << 3;
  static constexpr std::uint32_t bit(Memory memory, Proxy proxy, int access) {
    return 1u << (static_cast<int>(memory) * 4 + static_cast<int>(proxy) * 2 + access);
  }
  constexpr bool has(Memory memory, Proxy proxy, int access) const {
    return (touched_ & bit(memory, proxy, access)) != 0;
  }
  std::uint32_t forms_ = 0, touched_ = 0;
};

const OpInfo& info(Op op);
std::optional<Op> find_op(std::string_view name);
std::string_view name_of(Key key);
std::optional<Key> find_key(std::string_view name);
std::string_view name_of(Form form);

}  // namespace tilewright::ir
