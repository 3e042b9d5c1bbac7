#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "kernels/machine_summary.h"
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

// The explicit schedules too, and what the compiler makes of the tile level: what a reviewer reads
// of each when a change is meant.
TEST(Recording, EverySchedule) {
  std::string text;
  for (const LibraryKernel& kernel : kernel_library()) {
    const auto summarised = [](const ir::Kernel& traced) {
      return summary_of(compiler::compile_to_machine(traced, ir::default_target()).kernel);
    };
    const auto add = [&](const std::vector<std::string>& settings) {
      const ScheduleChoice choice =
          choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a");
      const std::string name = fmt::format("{} {}", kernel.name, fmt::join(settings, " "));
      if (!kernel.is_program()) {
        text += fmt::format("{}\n{}", name, summarised(build_choice(kernel, choice).finish()));
        return;
      }
      const Program program = build_program(kernel, choice);
      for (const auto& each : program.finish().kernels) {
        text += fmt::format("{} {}\n{}", name, each->name, summarised(*each));
      }
    };
    add({"schedule=tile"});
    for (const LibrarySchedule& schedule : kernel.schedules) {
      if (schedule.target == "sm_90a") add({"schedule=" + schedule.name});
    }
    // Dims above 128 have kernels of their own.
    if (kernel.name == "attention_backward") add({"schedule=ordered", "dim=256"});
  }
  compare("schedules.txt", text);
}

// No report names a number: it has the line of the call that takes it, which may be in the standard
// library.
void add_foreign_lines(const ir::Block& block, std::set<std::string>& foreign) {
  for (const ir::Operation& operation : block.body) {
    const std::string file = operation.where.file == nullptr ? "" : operation.where.file;
    const bool is_number = operation.op == ir::Op::constant || operation.op == ir::Op::dim;
    if (!is_number && file.rfind(TILEWRIGHT_SOURCE_DIR "/", 0) != 0) {
      foreign.insert(
          fmt::format("{} of {}:{}", ir::info(operation.op).name, file, operation.where.line));
    }
    for (const ir::Block& inner : operation.blocks) add_foreign_lines(inner, foreign);
  }
}

// Callers name an operation's tensors and hand them over in their order, which is its programs'.
void expect_own_tensors(const LibraryKernel& kernel, const ScheduleChoice& choice,
                        const ir::Program& program) {
  std::vector<std::string> wanted, found;
  for (const LibraryTensor* tensor : tensors_of(kernel, choice.options)) {
    wanted.push_back(tensor->name);
  }
  for (const ir::ProgramBuffer& buffer : program.buffers) {
    if (buffer.is_passed()) found.push_back(buffer.name);
  }
  EXPECT_EQ(found, wanted) << kernel.name;
}

std::vector<std::shared_ptr<const ir::Kernel>> traced_by(const LibraryKernel& kernel,
                                                         const ScheduleChoice& choice) {
  if (kernel.is_program()) {
    const Program program = build_program(kernel, choice);
    expect_own_tensors(kernel, choice, program.finish());
    return program.finish().kernels;
  }
  return {std::make_shared<const ir::Kernel>(build_choice(kernel, choice).finish())};
}

// What is made in place, as in a std::optional, has to be told its line: the standard library makes
// it. Each schedule of each target as it usually is; explicit ones of one rank with each option
// set, too.
TEST(Recording, EveryOperationHasALineOfTheProject) {
  for (const LibraryKernel& kernel : kernel_library()) {
    std::vector<std::vector<std::string>> all = {{}};
    for (const KernelOption& option : kernel.options) {
      if (option.is_length) continue;
      for (const std::string& value : option.worth_trying) {
        if (value != option.standard) all.push_back({option.name + "=" + value});
      }
      if (option.kind == KernelOption::Kind::boolean) all.push_back({option.name + "=true"});
    }
    std::vector<std::pair<std::string, std::string>> schedules = {{"tile", "sm_90a"}};
    for (const LibrarySchedule& each : kernel.schedules) {
      schedules.emplace_back(each.name, each.target);
    }
    std::set<std::string> foreign;
    for (const auto& [schedule, target] : schedules) {
      for (std::vector<std::string> settings : all) {
        if (!settings.empty() && (kernel.over_ranks || schedule == "tile")) continue;
        settings.push_back("schedule=" + schedule);
        try {
          const OptionValues options = resolve_options(kernel, settings);
          kernel.check(options);
          for (const auto& each : traced_by(kernel, choose_schedule(kernel, options, target))) {
            add_foreign_lines(each->body, foreign);
          }
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::usage) throw;  // options that do not fit together
        }
      }
    }
    EXPECT_THAT(foreign, testing::IsEmpty()) << kernel.name;
  }
}

// Whole machine forms, of kernels that are short enough to be read: one that is written at the
// explicit level, and one that the automatic schedule makes.
void expect_machine_golden(const std::string& name, const ir::Kernel& traced) {
  const ir::Kernel machine = compiler::compile_to_machine(traced, ir::default_target()).kernel;
  compare(name + ".machine.tw", ir::to_text(machine, {.locations = false}));
}
TEST(Recording, MachineFormOfAnExplicitProduct) {
  const LibraryKernel& kernel = find_kernel("gemm");
  const auto options = resolve_options(kernel, {"schedule=64x64x128"});
  expect_machine_golden("gemm_64x64x128",
                        build_choice(kernel, choose_schedule(kernel, options, "sm_90a")).finish());
}
TEST(Recording, MachineFormOfAScheduledSoftmax) {
  Kernel kernel("softmax");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", bf16, {rows, 512}), Y = kernel.out("Y", bf16, {rows, 512});
  const auto [block] = kernel.grid(ceil_div(rows, 4));
  const Tile x = load(X(rows.block(block, 4), all)).cast(f32);
  const Tile weights = exp(x - reduce_max(x, 1));
  store(Y(rows.block(block, 4), all), (weights / reduce_sum(weights, 1)).cast(bf16));
  expect_machine_golden("softmax", kernel.finish());
}

}  // namespace
}  // namespace tilewright::kernels
