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

}  // namespace

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
  emitter.line(fmt::format("const TensorMap& {} = {}.rank[{}];", emitter.name(operation.results[0]),
                           emitter.name(operation.operands[0]),
                           emitter.name(operation.operands[1])));
}

void print_store_index(Emitter& emitter, const Operation& operation) {
  print_word(emitter, operation, "store", "st", ".b32");
}

void print_reduce_add(Emitter& emitter, const Operation& operation) {
  print_word(emitter, operation, "reduce_add", "red", ".add.s32");
}

void print_wait_flag(Emitter& emitter, const Operation& operation) {
  const MemoryOrder order = ir::order_of(operation);
  const Compare compare = ir::compare_of(operation);
  const std::string name = fmt::format("wait_flag_{}{}", ir::name_of(compare), suffix(order, '_'));
  emitter.add_wrapper(
      name, fmt::format("__device__ __forceinline__ void {}(const int* address, int value) {{\n"
                        "  int v;\n"
                        "  do {{\n"
                        "    asm volatile(\"ld{}.b32 %0, [%1];\" : \"=r\"(v) : \"l\"(address) : "
                        "\"memory\");\n"
                        "  }} while (!({}));\n}}\n",
                        name, suffix(order, '.'), holds(compare)));
  emitter.line(fmt::format("{}({}, {});", name, element(emitter, operation),
                           emitter.name(operation.operands[2])));
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
