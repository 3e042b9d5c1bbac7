#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/operations.h"

namespace tilewright::codegen {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;

std::string barrier(const Emitter& emitter, const Operation& operation) {
  return barrier_address(emitter, operation.operands[0], operation.operands[1]);
}

// A barrier's number is part of the instruction: one predicated instruction for each.
std::string barrier_choice(std::string_view name, std::string_view instruction, std::int64_t first,
                           std::int64_t count, std::int64_t threads) {
  std::string text = fmt::format(
      "__device__ __forceinline__ void {}(int index) {{\n"
      "  asm volatile(\n      \"{{ .reg .pred p;\\n\"\n",
      name);
  for (std::int64_t i = 0; i < count; ++i) {
    text += fmt::format("      \"setp.eq.s32 p, %0, {};\\n\"\n      \"@p {} {}, {};\\n\"\n", i,
                        instruction, first + i, threads);
  }
  return text + "      \"}\" ::\"r\"(index) : \"memory\");\n}\n";
}

}  // namespace

std::string barrier_address(const Emitter& emitter, ir::ValueId array, ir::ValueId index) {
  const auto constant = emitter.constant(index);
  if (!constant) return fmt::format("{} + 8 * {}", emitter.name(array), emitter.name(index));
  return *constant == 0 ? emitter.name(array)
                        : fmt::format("{} + {}", emitter.name(array), 8 * *constant);
}

void print_mbarriers(Emitter& emitter, const Operation& operation) {
  const std::string name = emitter.named(operation);
  emitter.set_name(operation.results[0], name);
  emitter.line(
      fmt::format("const u32 {} = shared + {};", name, operation.attributes.integer(Key::offset)));
}

void print_mbarrier_init(Emitter& emitter, const Operation& operation) {
  const std::int64_t count = emitter.type(operation.operands[0]).elements();
  const std::int64_t arrivals = operation.attributes.integer(Key::arrivals);
  const std::string& array = emitter.name(operation.operands[0]);
  if (count == 1) return emitter.lane_line(fmt::format("mbarrier_init({}, {});", array, arrivals));
  emitter.lane_line(fmt::format("for (int i = 0; i < {}; ++i) mbarrier_init({} + 8 * i, {});",
                                count, array, arrivals));
}

void print_fence_barrier_init(Emitter& emitter, const Operation&) {
  emitter.lane_line("fence_barrier_init();");
}

void print_mbarrier_expect_tx(Emitter& emitter, const Operation& operation) {
  emitter.lane_line(fmt::format("mbarrier_expect_tx({}, {});", barrier(emitter, operation),
                                operation.attributes.integer(Key::bytes)));
}

void print_mbarrier_arrive(Emitter& emitter, const Operation& operation) {
  if (operation.operands.size() < 3) {
    return emitter.lane_line(fmt::format("mbarrier_arrive({});", barrier(emitter, operation)));
  }
  emitter.lane_line(fmt::format("mbarrier_arrive_remote({}, {});", barrier(emitter, operation),
                                emitter.name(operation.operands[2])));
}

static_assert(sizeof(WatchReport::Wait) == 9 * sizeof(std::int64_t) && WatchReport::kWaits == 32,
              "the prelude's report_wait writes these");

std::string watched_arguments(Emitter& emitter, const Operation& operation,
                              const std::string& index) {
  const auto loop = [&](const std::string& name) { return name.empty() ? "0" : "(i64)" + name; };
  return fmt::format("{}, {}, warp, {}, {}, {}", emitter.watch(),
                     operation.attributes.integer(Key::watched), index,
                     loop(emitter.loops.empty() ? "" : emitter.loops.front()),
                     loop(emitter.loops.empty() ? "" : emitter.loops.back()));
}

void print_mbarrier_wait(Emitter& emitter, const Operation& operation) {
  if (operation.attributes.has(Key::watched)) {
    const std::string index = emitter.name(operation.operands[1]);
    return emitter.line(fmt::format(
        "mbarrier_wait_watched({}, {}, {});", barrier(emitter, operation),
        emitter.name(operation.operands[2]), watched_arguments(emitter, operation, index)));
  }
  emitter.line(fmt::format("mbarrier_wait({}, {});", barrier(emitter, operation),
                           emitter.name(operation.operands[2])));
}

void print_named_barrier(Emitter& emitter, const Operation& operation) {
  const bool sync = operation.op == Op::named_sync;
  const std::int64_t first = operation.attributes.integer(Key::first);
  const std::int64_t threads = operation.attributes.integer(Key::threads);
  const std::string_view name = sync ? "named_sync" : "named_arrive";
  if (const auto index = emitter.constant(operation.operands[0])) {
    emitter.line(fmt::format("{}<{}, {}>();", name, first + *index, threads));
  } else {
    const std::int64_t count = operation.attributes.integer(Key::count);
    const std::string choice =
        fmt::format("{}_{}_to_{}_of_{}", name, first, first + count - 1, threads);
    emitter.add_wrapper(
        choice, barrier_choice(choice, sync ? "bar.sync" : "bar.arrive", first, count, threads));
    emitter.line(fmt::format("{}({});", choice, emitter.name(operation.operands[0])));
  }
}

void print_fence_proxy_async(Emitter& emitter, const Operation&) {
  emitter.line("fence_proxy_async();");
}

void print_fence_cluster(Emitter& emitter, const Operation&) { emitter.line("fence_cluster();"); }

void print_bulk_commit(Emitter& emitter, const Operation&) { emitter.lane_line("bulk_commit();"); }

void print_bulk_wait(Emitter& emitter, const Operation& operation) {
  const bool read = operation.attributes.integer_or(Key::read, 0) != 0;
  emitter.lane_line(fmt::format("bulk_wait{}<{}>();", read ? "_read" : "",
                                operation.attributes.integer(Key::count)));
}

void print_warp_sync(Emitter& emitter, const Operation&) { emitter.line("__syncwarp();"); }

void print_cta_sync(Emitter& emitter, const Operation&) { emitter.line("__syncthreads();"); }

void print_cluster_sync(Emitter& emitter, const Operation&) { emitter.line("cluster_sync();"); }

}  // namespace tilewright::codegen
