#include <fmt/format.h>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"
#include "ir/memory_order.h"

// Tensors and words of other ranks.
namespace tilewright::codegen {
namespace {

using ir::Operation;

static_assert(ir::kMaximumRanks == 8, "the prelude's Peers and PeerMaps have room for 8");

std::string_view ptx_scope(Scope scope) {
  constexpr std::string_view names[] = {"cta", "cluster", "gpu", "sys"};
  return names[static_cast<int>(scope)];
}

// "release_sys", and ".release.sys" of the instruction.
std::string suffix(MemoryOrder order, char separator) {
  const std::string_view semantics = ir::name_of(order.semantics);
  if (order.semantics == Semantics::weak) return fmt::format("{}{}", separator, semantics);
  return fmt::format("{}{}{}{}", separator, semantics, separator, ptx_scope(order.scope));
}

std::string element(Emitter& emitter, const Operation& operation) {
  return fmt::format("{} + {}", emitter.pointer(operation.operands[0]),
                     emitter.name(operation.operands[1]));
}

// Whether the word is as it is waited for.
std::string_view holds(Compare compare) {
  switch (compare) {
    case Compare::eq:
      return "v == value";
    case Compare::ne:
      return "v != value";
    case Compare::lt:
      return "(int)((u32)v - (u32)value) < 0";
    case Compare::le:
      return "(int)((u32)v - (u32)value) <= 0";
    case Compare::gt:
      return "(int)((u32)v - (u32)value) > 0";
    case Compare::ge:
      return "(int)((u32)v - (u32)value) >= 0";
  }
  return {};
}

// One lane's instruction on an address and a value.
void print_word(Emitter& emitter, const Operation& operation, std::string_view verb,
                std::string_view instruction, std::string_view type) {
  const MemoryOrder order = ir::order_of(operation);
  const std::string name = fmt::format("{}{}", verb, suffix(order, '_'));
  emitter.add_wrapper(
      name, fmt::format("__device__ __forceinline__ void {}(int* address, int v) {{\n"
                        "  asm volatile(\"{}{}{} [%0], %1;\" ::\"l\"(address), \"r\"(v) : "
                        "\"memory\");\n}}\n",
                        name, instruction, suffix(order, '.'), type));
  emitter.lane_line(fmt::format("{}({}, {});", name, element(emitter, operation),
                                emitter.name(operation.operands[2])));
}

// How one instruction's value is called in C++, in PTX, and by an operand of asm.
struct ElementType {
  std::string_view type, bits, sum;
  char operand;
};

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {"float", "f32", "add.f32", 'f'};
    case DType::i32:
      return {"int", "b32", "add.s32", 'r'};
    case DType::u32:
      return {"u32", "b32", "add.s32", 'r'};  // modulo 2^32 the same
    case DType::i64:
      return {"i64", "b64", "add.u64", 'l'};
    case DType::f16:
      return {"u16", "b16", "add.noftz.f16", 'h'};
    case DType::bf16:
      return {"u16", "b16", "add.noftz.bf16", 'h'};
    case DType::f8e4m3:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      break;
  }
  return {"u16", "b8", "", 'h'};  // PTX has no registers of 8 bits
}

// With the state space, and nothing of u32: src/ptx tells elements of tiles from words by that.
std::string element_wrapper(Emitter& emitter, const Operation& operation, std::string_view name,
                            std::string_view memory, const ElementType& type) {
  const bool loads = !ir::info(operation.op).writes(ir::Memory::global);
  const bool returns = ir::info(operation.op).writes(ir::Memory::registers);
  const bool sums = !loads && ir::info(operation.op).reads(ir::Memory::global);
  const MemoryOrder order = ir::order_of(operation);
  const std::string_view verb = loads ? "ld" : returns ? "atom" : sums ? "red" : "st";
  const std::string called = fmt::format("{}_{}{}", verb, name, suffix(order, '_'));
  const std::string instruction =
      fmt::format("{}{}.global.{}", verb, suffix(order, '.'), sums ? type.sum : type.bits);
  const std::string value = loads ? "" : fmt::format(", {} v", type.type);
  const std::string_view places = loads ? "%0, [%1]" : returns ? "%0, [%1], %2" : "[%0], %1";
  emitter.add_wrapper(
      called,
      fmt::format("__device__ __forceinline__ {} {}({}{}* address{}) {{\n{}"
                  "  asm volatile(\"{} {};\" : {} : \"l\"(address){} : \"memory\");\n{}}}\n",
                  returns ? type.type : "void", called, loads ? "const " : "", memory, value,
                  returns ? fmt::format("  {} old;\n", type.type) : "", instruction, places,
                  returns ? fmt::format("\"={}\"(old)", type.operand) : "",
                  loads ? "" : fmt::format(", \"{}\"(v)", type.operand),
                  returns ? "  return old;\n" : ""));
  return called;
}

}  // namespace

std::string ordered_element(Emitter& emitter, const Operation& operation, DType dtype) {
  return element_wrapper(emitter, operation, name_of(dtype), memory_type(dtype),
                         element_type(dtype));
}

std::string ordered_pair(Emitter& emitter, const Operation& operation, DType dtype) {
  const std::string sum = fmt::format("add.noftz.{}x2", name_of(dtype));
  return element_wrapper(emitter, operation, fmt::format("{}x2", name_of(dtype)), "u32",
                         {"u32", "b32", sum, 'r'});
}

std::string ordered_load(Emitter& emitter, MemoryOrder order) {
  const std::string name = "load" + suffix(order, '_');
  emitter.add_wrapper(
      name, fmt::format("__device__ __forceinline__ int {}(const int* address) {{\n"
                        "  int v;\n"
                        "  asm volatile(\"ld{}.b32 %0, [%1];\" : \"=r\"(v) : \"l\"(address) : "
                        "\"memory\");\n  return v;\n}}\n",
                        name, suffix(order, '.')));
  return name;
}

std::string ordered_add(Emitter& emitter, MemoryOrder order) {
  const std::string name = "atomic_add" + suffix(order, '_');
  emitter.add_wrapper(name,
                      fmt::format("__device__ __forceinline__ int {}(int* address, int v) {{\n"
                                  "  int old;\n"
                                  "  asm volatile(\"atom{}.add.s32 %0, [%1], %2;\" : \"=r\"(old) : "
                                  "\"l\"(address), \"r\"(v) : \"memory\");\n  return old;\n}}\n",
                                  name, suffix(order, '.')));
  return name;
}

void print_peer(Emitter& emitter, const Operation& operation) {
  emitter.line(fmt::format(
      "{}* const {} = {}.rank[{}];", memory_type(emitter.type(operation.results[0]).dtype),
      emitter.name(operation.results[0]), emitter.peer_pointers(operation.operands[0]),
      emitter.name(operation.operands[1])));
}

void print_peer_map(Emitter& emitter, const Operation& operation) {
  emitter.line(fmt::format("const {}& {} = {}.rank[{}];",
                           emitter.is_ragged(operation.operands[0]) ? "RaggedMap" : "TensorMap",
                           emitter.name(operation.results[0]), emitter.name(operation.operands[0]),
                           emitter.name(operation.operands[1])));
}

void print_ragged_map(Emitter& emitter, const Operation& operation) {
  emitter.line(fmt::format("const TensorMap& {} = {}.outside[{}];",
                           emitter.name(operation.results[0]), emitter.name(operation.operands[0]),
                           emitter.name(operation.operands[1])));
}

void print_store_index(Emitter& emitter, const Operation& operation) {
  print_word(emitter, operation, "store", "st", ".b32");
}

// With the state space: of a generic address ptxas makes an atomic.
constexpr std::string_view kReduction = ".global.add.u32";

void print_reduce_add(Emitter& emitter, const Operation& operation) {
  print_word(emitter, operation, "reduce_add", "red", kReduction);
}

void print_unread_add(Emitter& emitter, const Operation& operation) {
  print_word(emitter, operation, "atomic_add_unread", "red", kReduction);
}

namespace {

// Looks until the word holds; watched, it reports itself where that takes too long.
std::string wait_wrapper(const std::string& name, Compare compare, MemoryOrder order,
                         bool watched) {
  const std::string look = fmt::format(
      "    asm volatile(\"ld{}.b32 %0, [%1];\" : \"=r\"(v) : \"l\"(address) : "
      "\"memory\");\n",
      suffix(order, '.'));
  if (!watched) {
    return fmt::format(
        "__device__ __forceinline__ void {}(const int* address, int value) {{\n"
        "  int v;\n  do {{\n{}  }} while (!({}));\n}}\n",
        name, look, holds(compare));
  }
  return fmt::format(
      "__device__ __forceinline__ void {}(const int* address, int value, i64* watch, int number, "
      "int warp, i64 index, i64 outer, i64 inner) {{\n"
      "  int v;\n"
      "  const u64 late = late_at(watch, 1);\n"
      "  for (;;) {{\n{}"
      "    if ({}) return;\n"
      "    if (nanoseconds() > late) report_wait(watch, number, warp, index, value, v, outer, "
      "inner);\n"
      "  }}\n}}\n",
      name, look, holds(compare));
}

}  // namespace

void print_wait_flag(Emitter& emitter, const Operation& operation) {
  const MemoryOrder order = ir::order_of(operation);
  const Compare compare = ir::compare_of(operation);
  const bool watched = operation.attributes.has(ir::Key::watched);
  const std::string name = fmt::format("wait_flag_{}{}{}", ir::name_of(compare), suffix(order, '_'),
                                       watched ? "_watched" : "");
  emitter.add_wrapper(name, wait_wrapper(name, compare, order, watched));
  const std::string index = emitter.name(operation.operands[1]);
  emitter.line(fmt::format(
      "{}({}, {}{});", name, element(emitter, operation), emitter.name(operation.operands[2]),
      watched ? ", " + watched_arguments(emitter, operation, index) : std::string()));
}

void print_fence(Emitter& emitter, const Operation& operation) {
  const std::string_view scope = ptx_scope(ir::order_of(operation).scope);
  const std::string name = fmt::format("fence_acq_rel_{}", scope);
  emitter.add_wrapper(name, fmt::format("__device__ __forceinline__ void {}() {{\n"
                                        "  asm volatile(\"fence.acq_rel.{};\" ::: \"memory\");\n"
                                        "}}\n",
                                        name, scope));
  emitter.line(fmt::format("{}();", name));
}

void print_fence_proxy_async_global(Emitter& emitter, const Operation&) {
  emitter.line("fence_proxy_async_global();");
}

}  // namespace tilewright::codegen
