#include <fmt/format.h>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"

// tcgen05: tensor memory, and products whose results lie there.
namespace tilewright::codegen {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

std::int64_t columns_of(const Emitter& emitter, ValueId memory) {
  return emitter.type(memory).shape[0];
}

// Of one access: `count` registers of floats, or of 32 bits. Rows of its matrices are so wide, if
// it moves such.
struct AccessShape {
  bool loads = true;
  std::int64_t count = 0;
  bool floats = true;
  std::int64_t row_bytes = 0;

  std::string name() const {
    return fmt::format("tcgen05_{}{}_x{}{}", loads ? "ld" : "st",
                       row_bytes == 0 ? "" : fmt::format("_16x{}b", 8 * row_bytes), count,
                       floats ? "" : "_bits");
  }
  // With how often it is repeated.
  std::string shape() const {
    if (row_bytes == 0) return fmt::format("32x32b.x{}", count);
    return fmt::format("16x{}b.x{}", 8 * row_bytes, count * 8 / row_bytes);
  }
  std::string wrapper() const {
    const int registers = static_cast<int>(count);
    const std::string type = floats ? "float" : "u32";
    const std::string bound =
        fmt::format("\"{}{}\"(r[{{}}])", loads ? "=" : "", floats ? 'f' : 'r');
    const std::string values = list(bound, registers);
    if (loads) {
      return fmt::format(
          "__device__ __forceinline__ void {}({}* r, u32 address) {{\n"
          "  asm volatile(\"tcgen05.ld.sync.aligned.{}.b32 {{{}}}, [%{}];\"\n"
          "               : {}\n               : \"r\"(address) : \"memory\");\n}}\n",
          name(), type, shape(), list("%{}", registers), registers, values);
    }
    return fmt::format(
        "__device__ __forceinline__ void {}(u32 address, const {}* r) {{\n"
        "  asm volatile(\"tcgen05.st.sync.aligned.{}.b32 [%0], {{{}}};\"\n"
        "               :: \"r\"(address), {} : \"memory\");\n}}\n",
        name(), type, shape(), list("%{}", registers, 1), values);
  }
};

std::string registers_from(const Emitter& emitter, ValueId array, std::int64_t first) {
  const std::string& name = emitter.name(array);
  return first == 0 ? name : fmt::format("{} + {}", name, first);
}

// Of the functions that name the CTAs that work together.
std::string_view group_suffix(const Emitter& emitter) {
  return emitter.kernel().cta_pairs ? "_pair" : "";
}

// One product, of operands of that size.
std::string product_name(const Emitter& emitter, bool from_shared, DType dtype) {
  return fmt::format("tcgen05_mma_{}_{}{}", from_shared ? "ss" : "ts",
                     size_of(dtype) == 2 ? "f16" : "f8f6f4", group_suffix(emitter));
}

std::string product_wrapper(const Emitter& emitter, bool from_shared, DType dtype) {
  return fmt::format(
      "__device__ __forceinline__ void {}(u32 d, {} a, u64 b, u32 instruction, bool accumulate) "
      "{{\n"
      "  asm volatile(\n"
      "      \"{{ .reg .pred p;\\n\"\n"
      "      \"setp.ne.b32 p, %4, 0;\\n\"\n"
      "      \"tcgen05.mma.cta_group::{}.kind::{} [%0], {}, %2, %3, p; }}\"\n"
      "      ::\"r\"(d), \"{}\"(a), \"l\"(b), \"r\"(instruction), \"r\"((int)accumulate) : "
      "\"memory\");\n}}\n",
      product_name(emitter, from_shared, dtype), from_shared ? "u64" : "u32",
      emitter.kernel().cta_pairs ? 2 : 1, size_of(dtype) == 2 ? "f16" : "f8f6f4",
      from_shared ? "%1" : "[%1]", from_shared ? "l" : "r");
}

}  // namespace

// Its address is known once it is allocated.
void print_tensor_memory(Emitter&, const Operation&) {}

void print_tcgen05_alloc(Emitter& emitter, const Operation& operation) {
  emitter.line(fmt::format("tcgen05_alloc{}<{}>({} + 4 * {});", group_suffix(emitter),
                           columns_of(emitter, operation.operands[0]),
                           emitter.name(operation.operands[1]),
                           emitter.name(operation.operands[2])));
}

void print_tcgen05_dealloc(Emitter& emitter, const Operation& operation) {
  emitter.line(fmt::format("tcgen05_dealloc{}<{}>({});", group_suffix(emitter),
                           columns_of(emitter, operation.operands[0]),
                           emitter.name(operation.operands[1])));
}

void print_tcgen05_relinquish(Emitter& emitter, const Operation&) {
  emitter.line(fmt::format("tcgen05_relinquish{}();", group_suffix(emitter)));
}

void print_tcgen05_ld(Emitter& emitter, const Operation& operation) {
  const ValueId array = operation.operands[0];
  const AccessShape shape{true, operation.attributes.integer(Key::count),
                          emitter.type(array).dtype == DType::f32,
                          operation.attributes.integer_or(Key::row_bytes, 0)};
  emitter.add_wrapper(shape.name(), shape.wrapper());
  emitter.line(fmt::format(
      "{}({}, {});", shape.name(),
      registers_from(emitter, array, operation.attributes.integer_or(Key::register_, 0)),
      emitter.name(operation.operands[2])));
}

void print_tcgen05_st(Emitter& emitter, const Operation& operation) {
  const ValueId array = operation.operands[2];
  const AccessShape shape{false, operation.attributes.integer(Key::count),
                          emitter.type(array).dtype == DType::f32,
                          operation.attributes.integer_or(Key::row_bytes, 0)};
  emitter.add_wrapper(shape.name(), shape.wrapper());
  emitter.line(fmt::format(
      "{}({}, {});", shape.name(), emitter.name(operation.operands[1]),
      registers_from(emitter, array, operation.attributes.integer_or(Key::register_, 0))));
}

// Whoever uses the arrays does so behind the wait.
void print_tcgen05_wait_ld(Emitter& emitter, const Operation& operation) {
  emitter.line("tcgen05_wait_ld();");
  for (const ValueId array : operation.operands) {
    emitter.line(fmt::format("pin({});", emitter.name(array)));
  }
}

void print_tcgen05_wait_st(Emitter& emitter, const Operation&) {
  emitter.line("tcgen05_wait_st();");
}

void print_tcgen05_fence_before(Emitter& emitter, const Operation&) {
  emitter.line("tcgen05_fence_before();");
}

void print_tcgen05_fence_after(Emitter& emitter, const Operation&) {
  emitter.line("tcgen05_fence_after();");
}

void print_tensor_commit(Emitter& emitter, const Operation& operation) {
  const std::int64_t mask = operation.attributes.integer_or(Key::multicast, 0);
  const std::string barrier =
      barrier_address(emitter, operation.operands[0], operation.operands[1]);
  if (mask == 0) {
    return emitter.lane_line(fmt::format("tcgen05_commit{}({});", group_suffix(emitter), barrier));
  }
  const std::int64_t group = operation.attributes.integer_or(Key::multicast_group, 0);
  const std::string first =
      group == 0 ? "" : fmt::format(" << cluster_rank() / {} * {}", group, group);
  emitter.lane_line(
      fmt::format("tcgen05_commit_multicast_pair({}, {:#x}{});", barrier, mask, first));
}

void print_tensor_product(Emitter& emitter, const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const std::vector<ValueId>& operands = operation.operands;
  const bool from_shared = operation.op == Op::tcgen05_mma_ss;
  const DType dtype = emitter.type(operands[4]).dtype;
  emitter.add_wrapper(product_name(emitter, from_shared, dtype),
                      product_wrapper(emitter, from_shared, dtype));
  const std::string a =
      from_shared ? descriptor(emitter, attributes.integer(Key::descriptor_a), operands[2],
                               operands[3], attributes.integer_or(Key::step_a, 0))
                  : emitter.name(operands[3]);
  emitter.lane_line(
      fmt::format("{}({}, {}, {}, {:#x}, {});", product_name(emitter, from_shared, dtype),
                  emitter.name(operands[1]), a,
                  descriptor(emitter, attributes.integer(Key::descriptor_b), operands[4],
                             operands[5], attributes.integer_or(Key::step_b, 0)),
                  attributes.integer(Key::instruction), emitter.name(operands[6])));
}

void print_tcgen05_cp(Emitter& emitter, const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const std::int64_t rows = attributes.integer(Key::m), bytes = attributes.integer(Key::row_bytes);
  const std::string name = fmt::format("tcgen05_cp_{}x{}b", rows, 8 * bytes);
  emitter.add_wrapper(name,
                      fmt::format("__device__ __forceinline__ void {}(u32 to, u64 from) {{\n"
                                  "  asm volatile(\"tcgen05.cp.cta_group::1.{}x{}b{} [%0], %1;\"\n"
                                  "               ::\"r\"(to), \"l\"(from) : \"memory\");\n}}\n",
                                  name, rows, 8 * bytes, rows == 32 ? ".warpx4" : ""));
  const std::vector<ValueId>& operands = operation.operands;
  emitter.lane_line(
      fmt::format("{}({}, {});", name, emitter.name(operands[1]),
                  descriptor(emitter, attributes.integer(Key::descriptor_a), operands[2],
                             operands[3], attributes.integer_or(Key::step_a, 0))));
}

void print_tcgen05_shift(Emitter& emitter, const Operation& operation) {
  emitter.lane_line(fmt::format("tcgen05_shift({});", emitter.name(operation.operands[1])));
}

void print_try_cancel(Emitter& emitter, const Operation& operation) {
  emitter.lane_line(
      fmt::format("try_cancel{}({} + 4 * {}, {});", emitter.kernel().cluster > 1 ? "_cluster" : "",
                  emitter.name(operation.operands[0]), emitter.name(operation.operands[1]),
                  barrier_address(emitter, operation.operands[2], operation.operands[3])));
}

void print_query_cancel(Emitter& emitter, const Operation& operation) {
  emitter.line(fmt::format("const int {} = query_cancel({} + 4 * {});",
                           emitter.name(operation.results[0]), emitter.name(operation.operands[0]),
                           emitter.name(operation.operands[1])));
}

}  // namespace tilewright::codegen
