#include <fmt/format.h>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"
#include "ir/multicast.h"

namespace tilewright::codegen {

std::string shared_address(const Emitter& emitter, ir::ValueId shared, ir::ValueId offset,
                           std::int64_t step) {
  const auto constant = emitter.constant(offset);
  return sum_text({emitter.name(shared), constant ? "0" : emitter.name(offset),
                   std::to_string(step + constant.value_or(0))});
}

std::string list(std::string_view pattern, int count, int first) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += (i ? ", " : "") + fmt::format(fmt::runtime(pattern), first + i);
  }
  return text;
}

namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// L2 eviction policies of cp.async.bulk, by the attribute `cache`.
constexpr std::string_view kPolicies[] = {"", "0x12f0000000000000ull", "0x14f0000000000000ull"};

struct TmaShape {
  std::string_view operation;
  std::string_view function;  // of a reduction
  bool load = true;
  int rank = 0;
  bool multicast = false;
  bool pair = false;  // the barrier is that of the first CTA of a pair
  bool hint = false;

  std::string name() const {
    return fmt::format("{}{}{}_{}d{}{}{}", operation, function.empty() ? "" : "_", function, rank,
                       multicast ? "_multicast" : "", pair ? "_pair" : "", hint ? "_hint" : "");
  }

  std::string wrapper() const {
    const int first = 2, bar = first + rank;
    int next = bar + (load ? 1 : 0);
    const std::string_view reduce = function.empty() ? "" : "reduce.";
    const std::string dot = function.empty() ? "" : fmt::format(".{}", function);
    std::string instruction =
        fmt::format("cp.{}async.bulk.tensor.{}d.{}", reduce, rank,
                    load ? "shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                         : fmt::format("global.shared::cta{}.tile.bulk_group", dot));
    std::string parameters =
        fmt::format("u32 address, const TensorMap& map, {}", list("int x{}", rank));
    std::string arguments =
        fmt::format("\"r\"(address), \"l\"(&map), {}", list("\"r\"(x{})", rank));
    std::string operands =
        load ? fmt::format("[%0], [%1, {{{}}}], [%{}]", list("%{}", rank, first), bar)
             : fmt::format("[%1, {{{}}}], [%0]", list("%{}", rank, first));
    if (load) {
      parameters += ", u32 barrier";
      // A bit of the address says which CTA of a pair it is in.
      arguments += pair ? ", \"r\"(barrier & 0xfeffffffu)" : ", \"r\"(barrier)";
    }
    if (multicast) {
      instruction += ".multicast::cluster";
      operands += fmt::format(", %{}", next++);
      parameters += ", u16 ctas";
      arguments += ", \"h\"(ctas)";
    }
    if (pair) instruction += ".cta_group::2";
    if (hint) {
      instruction += ".L2::cache_hint";
      operands += fmt::format(", %{}", next++);
      parameters += ", u64 policy";
      arguments += ", \"l\"(policy)";
    }
    return fmt::format(
        "__device__ __forceinline__ void {}({}) {{\n  asm volatile(\"{} {};\"\n               ::{} "
        ": "
        "\"memory\");\n}}\n",
        name(), parameters, instruction, operands, arguments);
  }
};

struct WgmmaShape {
  bool from_registers = false;
  std::int64_t n = 0, k = 0;
  DType dtype = DType::bf16;
  bool transpose_a = false, transpose_b = false;

  std::string name() const {
    return fmt::format("wgmma_{}_m64n{}k{}_{}{}{}", from_registers ? "rs" : "ss", n, k,
                       tilewright::name_of(dtype), transpose_a ? "_ta" : "",
                       transpose_b ? "_tb" : "");
  }

  std::string wrapper() const {
    const int registers = static_cast<int>(n / 2);
    const int a_count = from_registers ? 4 : 1;
    const int b = registers + a_count;
    const std::string_view type = dtype == DType::bf16  ? "bf16"
                                  : dtype == DType::f16 ? "f16"
                                  : dtype == DType::f32 ? "tf32"
                                                        : "e4m3";
    // Only 16-bit operands have a choice of major.
    std::string majors;
    if (size_of(dtype) == 2) {
      majors = from_registers ? fmt::format(", {}", int{transpose_b})
                              : fmt::format(", {}, {}", int{transpose_a}, int{transpose_b});
    }
    const std::string a = from_registers ? fmt::format("{{{}}}", list("%{}", 4, registers))
                                         : fmt::format("%{}", registers);
    return fmt::format(
        "__device__ __forceinline__ void {}(float* d, {}, u64 b, bool accumulate) {{\n"
        "  asm volatile(\n"
        "      \"{{ .reg .pred p;\\n\"\n"
        "      \"setp.ne.b32 p, %{}, 0;\\n\"\n"
        "      \"wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{{}}}, {}, %{}, p, 1, 1{}; "
        "}}\"\n"
        "      : {}\n"
        "      : {}, \"l\"(b), \"r\"((int)accumulate));\n}}\n",
        name(), from_registers ? "const u32* a" : "u64 a", b + 1, n, k, type, type,
        list("%{}", registers), a, b, majors, list("\"+f\"(d[{}])", registers),
        from_registers ? list("\"r\"(a[{}])", 4) : "\"l\"(a)");
  }
};

}  // namespace

std::string descriptor(const Emitter& emitter, std::int64_t bits, ValueId shared, ValueId offset,
                       std::int64_t step) {
  const std::uint64_t in_place = static_cast<std::uint64_t>(bits) << 14;
  const std::uint64_t high = in_place >> 32, low = in_place & 0xffffffff;
  const std::string base = fmt::format(
      "{}({:#x}, {:#x}, {})", emitter.kernel().cluster > 1 ? "descriptor_in_cluster" : "descriptor",
      high, low, shared_address(emitter, shared, offset, 0));
  // Shared memory ends below the address field's 2^18 bytes, so that a step never carries out of
  // it: one 64-bit addition in uniform registers, where a new descriptor would take several.
  return step == 0 ? base : fmt::format("{} + {}", base, step / 16);
}

void print_tensor_map(Emitter& emitter, const Operation& operation) {
  emitter.add_tensor_map(operation);
}

void print_prefetch_map(Emitter& emitter, const Operation& operation) {
  const ir::ValueId map = operation.operands[0];
  emitter.lane_line(fmt::format("prefetch_map({}{});", emitter.name(map),
                                emitter.is_ragged(map) ? ".outside[false]" : ""));
}

void print_bulk_copy(Emitter& emitter, const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const std::vector<ValueId>& operands = operation.operands;
  if (operation.op == Op::cluster_copy) {
    return emitter.lane_line(fmt::format(
        "cluster_copy({}, {}, {}, {}, {});",
        shared_address(emitter, operands[1], operands[2], attributes.integer_or(Key::step, 0)),
        shared_address(emitter, operands[0], operands[5], 0), attributes.integer(Key::bytes),
        barrier_address(emitter, operands[3], operands[4]), emitter.name(operands[6])));
  }
  TmaShape shape;
  shape.operation = ir::info(operation.op).name;
  shape.load = ir::info(operation.op).writes(ir::Memory::shared);
  if (attributes.has(Key::function)) shape.function = ir::info(attributes.function()).name;
  const std::size_t first = shape.load ? 5 : 3;
  shape.rank = static_cast<int>(operands.size() - first);
  const std::int64_t mask = attributes.integer_or(Key::multicast, 0);
  const std::int64_t cache = attributes.integer_or(Key::cache, 0);
  if (cache < 0 || cache > 2) cannot_print(operation, fmt::format("no cache policy {}", cache));
  shape.multicast = mask != 0;
  shape.pair = attributes.integer_or(Key::pair, 0) != 0;
  shape.hint = cache != 0;
  emitter.add_wrapper(shape.name(), shape.wrapper());
  std::string call = fmt::format(
      "{}({}, {}", shape.name(),
      shared_address(emitter, operands[1], operands[2], attributes.integer_or(Key::step, 0)),
      emitter.name(operands[0]));
  for (std::size_t i = first; i < operands.size(); ++i) call += ", " + emitter.name(operands[i]);
  if (shape.load) call += ", " + barrier_address(emitter, operands[3], operands[4]);
  if (shape.multicast) {
    const std::int64_t group = attributes.integer_or(Key::multicast_group, 0);
    const int stride = ir::multicast_stride(static_cast<std::uint64_t>(mask));
    call += fmt::format(", {:#x}", mask);
    if (group != 0) {
      call += fmt::format(" << (cluster_rank() / {} * {}", group, group);
      call += stride == 1 ? ")" : fmt::format(" + cluster_rank() % {})", stride);
    }
  }
  if (shape.hint) call += fmt::format(", {}", kPolicies[cache]);
  emitter.lane_line(call + ");");
}

void print_wgmma(Emitter& emitter, const Operation& operation) {
  const ir::Attributes& attributes = operation.attributes;
  const std::vector<ValueId>& operands = operation.operands;
  WgmmaShape shape;
  shape.from_registers = operation.op == Op::wgmma_rs;
  shape.n = attributes.integer(Key::n);
  shape.k = attributes.integer(Key::k);
  shape.dtype = emitter.type(operands[1]).dtype;
  shape.transpose_a = attributes.integer_or(Key::transpose_a, 0) != 0;
  shape.transpose_b = attributes.integer_or(Key::transpose_b, 0) != 0;
  const std::size_t b = shape.from_registers ? 2 : 3;
  emitter.add_wrapper(shape.name(), shape.wrapper());
  const std::string a =
      shape.from_registers
          ? fmt::format("{} + {}", emitter.name(operands[1]), attributes.integer(Key::register_))
          : descriptor(emitter, attributes.integer(Key::descriptor_a), operands[1], operands[2],
                       attributes.integer_or(Key::step_a, 0));
  emitter.line(fmt::format("{}({}, {}, {}, {});", shape.name(), emitter.name(operands[0]), a,
                           descriptor(emitter, attributes.integer(Key::descriptor_b), operands[b],
                                      operands[b + 1], attributes.integer_or(Key::step_b, 0)),
                           emitter.name(operands[b + 2])));
}

void print_wgmma_fence(Emitter& emitter, const Operation& operation) {
  for (const ValueId array : operation.operands)
    emitter.line(fmt::format("pin({});", emitter.name(array)));
  emitter.line("wgmma_fence();");
}

void print_wgmma_commit(Emitter& emitter, const Operation&) { emitter.line("wgmma_commit();"); }

void print_wgmma_wait(Emitter& emitter, const Operation& operation) {
  emitter.line(fmt::format("wgmma_wait<{}>();", operation.attributes.integer(Key::count)));
  for (const ValueId array : operation.operands)
    emitter.line(fmt::format("pin({});", emitter.name(array)));
}

}  // namespace tilewright::codegen
