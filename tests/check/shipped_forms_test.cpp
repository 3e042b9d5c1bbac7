#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "check/fuzz/recipe.h"
#include "compiler/build.h"
#include "compiler/simulation.h"
#include "ir/program.h"
#include "ir/text.h"
#include "library/library_build.h"
#include "library/schedule_choice.h"
#include "library/workload.h"
#include "runtime/cubin.h"
#include "runtime/nvrtc.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/recorder.h"
#include "support/diagnostic.h"
#include "tilewright/library.h"
#include "tilewright/program.h"

// From the cubin on: the machine form that it was printed from is one that the simulator executes.
namespace tilewright::checks {
namespace {

using compiler::BuiltKernel;

void skip_without_assembler() {
  try {
    runtime::Nvrtc::get();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
}

std::uint64_t form_of_cubin(const runtime::Build& build) {
  const auto form = runtime::cubin_variable(build.kernel.cubin, "tilewright_form");
  EXPECT_TRUE(form.has_value());
  return form.value_or(0);
}

// Of the launches that an execution began.
class FormsExecuted : public simulator::Recorder {
 public:
  std::vector<std::uint64_t> forms;

  void begin(const simulator::Launch& launch) override {
    forms.push_back(ir::form_hash(*launch.kernel.source));
  }
  void begin(const ir::Program&, const std::vector<ir::Kernel>&, std::int64_t) override {}
  void starts(const simulator::StreamOperation&) override {}
  void executed(const simulator::StreamOperation&, bool) override {}
  void changed(const std::byte*, std::int64_t) override {}
  void starts(const simulator::Warp&, const simulator::Instruction&) override {}
  void executed(const simulator::Warp&, const simulator::Instruction&) override {}
  void load_issued(const simulator::Event&) override {}
  void load_finished(const simulator::Event&) override {}
  void arrived(const simulator::Warp&, const simulator::Cta&, int) override {}
  void phase_completed(const simulator::Cta&, int) override {}
  void end(const std::vector<simulator::Fault>&) override {}
};

// The arguments are for each form anew, since outputs are poisoned.
void expect_simulated(const ir::Kernel& traced, const std::function<Arguments()>& arguments,
                      const std::string& name) {
  const BuiltKernel built = compiler::build_kernel(traced, "sm_90a", {}, true);
  FormsExecuted recorder;
  for (const ir::Kernel& form : compiler::simulated_forms(traced, "sm_90a")) {
    simulator::MachineOptions options;
    options.recorder = &recorder;
    options.control_only = true;
    options.multiprocessors = options.resident = 2;
    EXPECT_TRUE(compiler::simulate(form, arguments(), options).ok()) << name;
  }
  EXPECT_EQ(std::count(recorder.forms.begin(), recorder.forms.end(), form_of_cubin(built.build)), 1)
      << name << ": the cubin is of another form than those that the simulator executed";
}

// Of a program's kernel, which takes memory that the program has for it.
void expect_among_forms(const ir::Kernel& traced) {
  const BuiltKernel built = compiler::build_kernel(traced, "sm_90a", {}, true);
  std::vector<std::uint64_t> forms;
  for (const ir::Kernel& form : compiler::simulated_forms(traced, "sm_90a")) {
    forms.push_back(ir::form_hash(form));
  }
  EXPECT_EQ(std::count(forms.begin(), forms.end(), form_of_cubin(built.build)), 1) << traced.name;
}

TEST(ShippedForms, OfTheLibrarysKernelsAreSimulated) {
  skip_without_assembler();
  if (IsSkipped()) return;
  for (const LibraryKernel& kernel : kernel_library()) {
    if (kernel.is_program()) {
      const OptionValues options = resolve_options(kernel, {});
      const Program program = build_program(kernel, choose_schedule(kernel, options, "sm_90a"));
      for (const auto& each : program.finish().kernels) expect_among_forms(*each);
      continue;
    }
    std::vector<std::string> schedules = {"tile"};
    for (const LibrarySchedule& schedule : kernel.schedules) schedules.push_back(schedule.name);
    // Of gemm's many variants, some of each way to divide the work.
    const std::size_t step = schedules.size() > 20 ? schedules.size() / 10 : 1;
    for (std::size_t i = 0; i < schedules.size(); i += step) {
      const std::vector<std::string> settings = {"schedule=" + schedules[i]};
      library::Workload work = library::make_workload(kernel, settings, {}, 1);
      const compiler::Target target = compiler::parse_target("sm_90a");
      const Kernel traced = library::trace_entry(kernel, work.options, target);
      expect_simulated(
          traced.finish(), [&] { return work.arguments(); }, kernel.name + " " + schedules[i]);
    }
  }
}

TEST(ShippedForms, OfRandomKernelsAreSimulated) {
  skip_without_assembler();
  if (IsSkipped()) return;
  int assembled = 0;
  for (std::uint64_t seed = 9000; assembled < 100; ++seed) {
    const fuzz::Recipe recipe = fuzz::random_recipe(seed);
    try {
      fuzz::Traced traced = fuzz::trace(recipe);
      const Kernel kernel = recipe.style == fuzz::Recipe::Style::explicit_level
                                ? fuzz::trace_explicit(recipe, "sm_90a")
                                : std::move(traced.kernel);
      expect_simulated(
          kernel.finish(), [&] { return traced.launch.arguments(); }, fmt::format("seed {}", seed));
      ++assembled;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::usage) << seed << ": " << error.what();
    }
  }
}

// Whoever prints one form and simulates another is noticed.
TEST(ShippedForms, AnotherFormIsNoticed) {
  skip_without_assembler();
  if (IsSkipped()) return;
  const LibraryKernel& kernel = find_kernel("gemm");
  const Kernel traced = build_choice(
      kernel, choose_schedule(kernel, resolve_options(kernel, {"schedule=tile"}), "sm_90a"));
  compiler::MachineForm form = compiler::compile_to_machine(traced.finish(), "sm_90a");
  const std::uint64_t before = ir::form_hash(form.kernel);
  form.kernel.shared_bytes += 16;
  const runtime::Build build = compiler::build(compiler::print(std::move(form)), "sm_90a");
  EXPECT_NE(form_of_cubin(build), before);
}

}  // namespace
}  // namespace tilewright::checks
