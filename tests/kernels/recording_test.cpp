#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/hash.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/library.h"

// What the library's kernels record, as text. Every compiler records the same: the goldens are
// compared by builds of all of them. TILEWRIGHT_UPDATE_GOLDENS=1 writes them.
namespace tilewright::kernels {
namespace {

void compare(const std::string& file, const std::string& text) {
  const std::string path = std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/kernels/goldens/" + file;
  if (std::getenv("TILEWRIGHT_UPDATE_GOLDENS")) std::ofstream(path) << text;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

void expect_golden(const std::string& name, const Kernel& kernel) {
  ir::verify(kernel.finish());
  compare(name + ".tw", ir::to_text(kernel.finish(), {.locations = false}));
}

TEST(Recording, Gemm) {
  Gemm g;
  g.block_m = g.block_n = 128;
  g.block_k = 64;
  expect_golden("gemm", gemm(g));
}

Attention recorded_attention() {
  Attention a;
  a.heads = 8;
  a.block_q = 128;
  a.block_k = 64;
  return a;
}
TEST(Recording, Attention) {
  expect_golden("attention_forward", attention_forward(recorded_attention()));
}
TEST(Recording, AttentionWithAWindow) {
  Attention a = recorded_attention();
  a.causal = true;
  a.window = 100;
  a.kv_heads = 2;
  expect_golden("attention_forward_window", attention_forward(a));
}

// The explicit schedules too, and what the compiler makes of the tile level: too long to read, so
// that their hashes have to do.
TEST(Recording, EverySchedule) {
  std::string text;
  for (const LibraryKernel& kernel : kernel_library()) {
    const auto hash_of = [](const ir::Kernel& traced) {
      const ir::Kernel machine = compiler::compile_to_machine(traced, ir::default_target()).kernel;
      return content_hash(ir::to_text(machine, {.locations = false}));
    };
    const auto add = [&](const std::vector<std::string>& settings) {
      const ScheduleChoice choice =
          choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a");
      const std::string name = fmt::format("{} {}", kernel.name, fmt::join(settings, " "));
      if (!kernel.is_program()) {
        text += fmt::format("{} {}\n", hash_of(build_choice(kernel, choice).finish()), name);
        return;
      }
      const Program program = build_program(kernel, choice);
      for (const auto& each : program.finish().kernels) {
        text += fmt::format("{} {} {}\n", hash_of(*each), name, each->name);
      }
    };
    add({"schedule=tile"});
    for (const LibrarySchedule& schedule : kernel.schedules) add({"schedule=" + schedule.name});
  }
  compare("schedules.txt", text);
}

}  // namespace
}  // namespace tilewright::kernels
