#include "ir/operation_record.h"

#include <algorithm>

namespace tilewright::ir {
namespace {

// What operations.def is written in, with the words of its enumerations. All of it is evaluated by
// the compiler: a word, a letter or a key that does not exist is an error there.
namespace records {

using enum Memory;
using enum Agent;
using enum Completion;
using enum Semantics;
using enum Scope;
constexpr Proxy async = Proxy::async;

struct Touch {
  Memory memory;
  Proxy proxy;
  int access;
};
constexpr Touch reads(Memory memory, Proxy proxy = Proxy::generic) {
  return {memory, proxy, OpInfo::kRead};
}
constexpr Touch writes(Memory memory, Proxy proxy = Proxy::generic) {
  return {memory, proxy, OpInfo::kWrite};
}
constexpr Agent by(Agent agent) { return agent; }
constexpr Completion done(Completion completion) { return completion; }
constexpr Scope within(Scope scope) { return scope; }
struct Synchronises {};
constexpr Synchronises synchronises;
template <typename... Words>
constexpr Few<Semantics, 4> orders_as(Words... words) {
  Few<Semantics, 4> list;
  (list.add(words), ...);
  return list;
}

template <typename... DTypes>
constexpr FunctionRule combines(Op function, DTypes... dtypes) {
  return {function, (0u | ... | (1u << static_cast<int>(dtypes)))};
}
struct Becomes {
  Op op;
};
constexpr Becomes becomes(Op op) { return {op}; }

struct Accumulates {
  int operand;
};
struct MadeOf {
  Op op;
};
constexpr MadeOf made_of(Op op) { return {op}; }
constexpr Accumulates accumulates_in(int operand) { return {operand}; }

constexpr AttributeType kTypes[] = {
#define TW_ATTRIBUTE(name, type) AttributeType::type,
#include "ir/attributes.def"
};

using Rules = Few<AttributeRule, 10>;
template <typename... Keys>
constexpr Rules rules(bool required, Keys... keys) {
  Rules list;
  (list.add({keys, kTypes[static_cast<int>(keys)], required}), ...);
  return list;
}
template <typename... Keys>
constexpr Rules must(Keys... keys) {
  return rules(true, keys...);
}
template <typename... Keys>
constexpr Rules may(Keys... keys) {
  return rules(false, keys...);
}
// Of a key that has another type here than elsewhere.
constexpr Rules must(AttributeType type, Key key) {
  Rules list;
  list.add({key, type, true});
  return list;
}

constexpr void add(OpInfo& record, Touch touch) {
  record.touch(touch.memory, touch.proxy, touch.access);
}
constexpr void add(OpInfo& record, Agent agent) { record.agent = agent; }
constexpr void add(OpInfo& record, Completion completion) { record.completion = completion; }
constexpr void add(OpInfo& record, Scope scope) { record.scope = scope; }
constexpr void add(OpInfo& record, Synchronises) { record.synchronises = true; }
constexpr void add(OpInfo& record, Few<Semantics, 4> list) { record.semantics = list; }
constexpr void add(OpInfo& record, const Rules& list) {
  for (const AttributeRule& rule : list) record.attributes.add(rule);
}
constexpr void add(OpInfo& record, FunctionRule rule) { record.combine(rule); }
constexpr void add(OpInfo& record, Becomes becomes) { record.becomes = becomes.op; }
constexpr void add(OpInfo& record, MadeOf made_of) { record.made_of = made_of.op; }
constexpr void add(OpInfo& record, Accumulates it) { record.accumulator = it.operand; }
constexpr void add(OpInfo& record, Domain domain) { record.domain = domain; }
constexpr void add(OpInfo& record, Pipe pipe) { record.pipe = pipe; }

constexpr OperandKind::Kind kind_of(char letter) {
  using Kind = OperandKind::Kind;
  switch (letter) {
    case 'i':
      return Kind::integer;
    case 's':
      return Kind::scalar;
    case 'c':
      return Kind::boolean;
    case 't':
      return Kind::tile;
    case 'p':
      return Kind::pending;
    case 'a':
      return Kind::tile_or_pending;
    case 'T':
      return Kind::tensor;
    case 'H':
      return Kind::shared;
    case 'V':
      return Kind::view;
    case 'B':
      return Kind::mbarriers;
    case 'R':
      return Kind::registers;
    case 'm':
      return Kind::tensor_map;
    case 'N':
      return Kind::tensor_memory;
    case 'U':
      return Kind::core_memory;
    case 'W':
      return Kind::core_window;
    case '.':
      return Kind::anything;
  }
  throw "no such kind of operand";  // an error of the compiler: nothing here runs
}

constexpr Few<OperandKind, 8> kinds_of(std::string_view letters) {
  Few<OperandKind, 8> list;
  for (const char letter : letters) {
    if (letter == '?' || letter == '*') {
      list.items[list.count - 1].count =
          letter == '?' ? OperandKind::Count::optional : OperandKind::Count::any;
    } else {
      list.add({kind_of(letter), OperandKind::Count::one});
    }
  }
  return list;
}

constexpr Form form_of(char letter) {
  if (letter == 'T') return Form::tile;
  if (letter == 'S') return Form::scheduled;
  if (letter == 'M') return Form::machine;
  throw "no such form";  // as above
}

template <typename... Traits>
constexpr OpInfo record(std::string_view name, Family family, std::string_view forms,
                        std::string_view operands, std::string_view results, Traits... traits) {
  OpInfo made;
  made.name = name;
  made.family = family;
  for (const char letter : forms) {
    if (letter == 'P') {
      made.exist_in_plans();
    } else {
      made.exist_in(form_of(letter));
    }
  }
  made.operands = kinds_of(operands);
  made.results = kinds_of(results);
  (add(made, traits), ...);
  return made;
}

constexpr Domain domain_of(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::division:
    case FunctionKind::bits:
      return Domain::integer;
    case FunctionKind::real:
      return Domain::floating;
    case FunctionKind::logic:
      return Domain::boolean;
    case FunctionKind::choice:
      return Domain::anything;
    case FunctionKind::arithmetic:
    case FunctionKind::comparison:
      break;
  }
  return Domain::number;
}

template <typename... Traits>
constexpr OpInfo elementwise(std::string_view name, FunctionKind kind, int arity,
                             Traits... traits) {
  OpInfo made = record(name, Family::function, "TSM", std::string_view("...").substr(0, arity), ".",
                       domain_of(kind), traits...);
  made.kind = kind;
  made.arity = arity;
  return made;
}

constexpr std::array kWritten = {
#define TW_ELEMENTWISE(name, kind, ...) elementwise(#name, FunctionKind::kind, __VA_ARGS__),
#define TW_OPERATION(name, family, ...) record(#name, Family::family, __VA_ARGS__),
#include "ir/operations.def"
};
constexpr std::array kOperations = [] {
  auto all = kWritten;
  for (OpInfo& operation : all) {
    if (operation.becomes == Op::yield) continue;
    operation.behave_as(kWritten[static_cast<std::size_t>(operation.becomes)]);
  }
  return all;
}();

// What parts of a record say must agree: a record that forgets one of them does not compile.
template <typename Holds>
constexpr bool all_of(Holds holds) {
  for (const OpInfo& record : kOperations) {
    if (!holds(record)) return false;
  }
  return true;
}
static_assert(all_of([](const OpInfo& o) { return o.asynchronous() == (o.completion != now); }),
              "what works asynchronously on memory says what tells that it is over, no other does");
static_assert(all_of([](const OpInfo& o) {
                return !o.asynchronous() ||
                       (!o.touches(global, Proxy::generic) && !o.touches(shared, Proxy::generic));
              }),
              "an asynchronous unit accesses memory through its own proxy alone");
static_assert(all_of([](const OpInfo& o) {
                return !o.synchronises || (!o.asynchronous() && !o.writes(global) &&
                                           !o.writes(shared) && !o.writes(registers));
              }),
              "what orders other work neither moves nor computes anything itself");
static_assert(all_of([](const OpInfo& o) {
                return o.writes(barrier, Proxy::async) == (o.completion == mbarrier);
              }),
              "what is over with a phase of an mbarrier writes that, asynchronously");
static_assert(
    all_of([](const OpInfo& o) {
      if (o.completion == now) return true;
      if (o.completion == waited) return o.agent == warp;
      if (o.completion == event) return o.agent == sequencer;
      return o.agent == (o.completion == products ? warpgroup : lane);
    }),
    "a warpgroup issues products to registers, a warp accesses to tensor memory, and one "
    "lane what TMA and tensor cores do on memory; what issues a core's instructions, those");
static_assert(all_of([](const OpInfo& o) {
                const bool outside = o.reads(global) || o.writes(global) || o.reads(shared) ||
                                     o.writes(shared) || o.reads(tensor) || o.writes(tensor) ||
                                     o.reads(core) || o.writes(core) ||
                                     o.touches(barrier, Proxy::generic);
                return !outside || o.agent != none;
              }),
              "somebody issues what touches memory");
static_assert(all_of([](const OpInfo& o) {
                return o.functions.count == 0 || !o.writes(global) || o.reads(global);
              }),
              "what combines elements in memory reads them");
static_assert(all_of([](const OpInfo& o) {
                for (const Semantics semantics : o.semantics) {
                  const bool both = semantics == acq_rel && o.family != Family::fence;
                  if ((both || semantics == acquire) && !o.reads(global)) return false;
                  if ((both || semantics == release) && !o.writes(global)) return false;
                }
                return true;
              }),
              "what acquires reads memory, and what releases writes it");
static_assert(all_of([](const OpInfo& o) {
                const OpInfo& machine = kOperations[static_cast<std::size_t>(o.becomes)];
                return (o.family == Family::tile_copy) == (machine.family == Family::bulk_copy);
              }),
              "a copy of tiles says which instruction it becomes, and nothing else does");

}  // namespace records

constexpr const auto& kOperations = records::kOperations;

constexpr std::string_view kKeys[] = {
#define TW_ATTRIBUTE(name, type) #name,
#include "ir/attributes.def"
};

}  // namespace

const AttributeRule* OpInfo::find(Key key) const {
  const auto* found = std::find_if(attributes.begin(), attributes.end(),
                                   [key](const AttributeRule& rule) { return rule.key == key; });
  return found == attributes.end() ? nullptr : found;
}

std::string OpInfo::function_problem(Op function, DType dtype) const {
  std::string there;  // functions of the dtype, and dtypes of the function
  const auto add = [&](std::string_view name, DType of) {
    there += (there.empty() ? "" : ", ") + std::string(name) + " of ";
    there += tilewright::name_of(of);
  };
  for (const FunctionRule& rule : functions) {
    if (rule.takes(dtype)) add(info(rule.function).name, dtype);
    if (rule.function != function) continue;
    if (rule.takes(dtype)) return {};
    for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
      if (rule.takes(static_cast<DType>(i))) add(info(function).name, static_cast<DType>(i));
    }
  }
  return "there is no " + std::string(info(function).name) + " of " +
         std::string(tilewright::name_of(dtype)) + (there.empty() ? "" : ", but " + there);
}

const OpInfo& info(Op op) { return kOperations[static_cast<std::size_t>(op)]; }

std::optional<Op> find_op(std::string_view name) {
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    if (kOperations[i].name == name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::string_view name_of(Key key) {
  const std::string_view name = kKeys[static_cast<std::size_t>(key)];
  return name.back() == '_' ? name.substr(0, name.size() - 1) : name;
}

std::optional<Key> find_key(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kKeys); ++i) {
    if (name_of(static_cast<Key>(i)) == name) return static_cast<Key>(i);
  }
  return std::nullopt;
}

std::string_view name_of(Form form) {
  constexpr std::string_view names[] = {"tile", "scheduled", "machine"};
  return names[static_cast<int>(form)];
}

}  // namespace tilewright::ir
