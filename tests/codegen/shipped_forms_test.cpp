#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "check/fuzz/recipe.h"
#include "codegen/example_kernels.h"
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
};

// Whether the form is also assembled, which takes a second. The assembler sees what is printed, so
// that of most forms it is enough to read the printed hash.
enum class Ships { printed, assembled };

std::uint64_t form_of_text(const std::string& text) {
  const std::string before = "tilewright_form = 0x";
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos);
  return at == std::string::npos ? 0
                                 : std::stoull(text.substr(at + before.size(), 16), nullptr, 16);
}

std::uint64_t form_that_ships(const ir::Kernel& traced, Ships ships) {
  if (ships == Ships::printed) {
    return form_of_text(compiler::translate(traced, "sm_90a").source.text);
  }
  return form_of_cubin(compiler::build_kernel(traced, "sm_90a", {.allow_stack_frame = true}).build);
}

// The arguments are for each form anew, since outputs are poisoned.
void expect_simulated(const ir::Kernel& traced, const std::function<Arguments()>& arguments,
                      const std::string& name, Ships ships) {
  FormsExecuted recorder;
  for (const ir::Kernel& form : compiler::simulated_forms(traced, "sm_90a")) {
    simulator::MachineOptions options;
    options.recorder = &recorder;
    options.control_only = true;
    options.multiprocessors = options.resident = 2;
    EXPECT_TRUE(compiler::simulate(form, arguments(), options).ok()) << name;
  }
  EXPECT_EQ(
      std::count(recorder.forms.begin(), recorder.forms.end(), form_that_ships(traced, ships)), 1)
      << name << ": another form ships than those that the simulator executed";
}

// Without arguments: the forms that any execution on the virtual GPU takes.
void expect_among_forms(const ir::Kernel& traced, Ships ships) {
  std::vector<std::uint64_t> forms;
  for (const ir::Kernel& form : compiler::simulated_forms(traced, "sm_90a")) {
    forms.push_back(ir::form_hash(form));
  }
  EXPECT_EQ(std::count(forms.begin(), forms.end(), form_that_ships(traced, ships)), 1)
      << traced.name;
}

struct Variant {
  const LibraryKernel* kernel = nullptr;
  std::string schedule;
  bool executed = true;  // here; of others the forms that are to be executed are compared
};

std::vector<Variant> library_variants() {
  std::vector<Variant> all;
  for (const LibraryKernel& kernel : kernel_library()) {
    all.push_back({&kernel, "tile"});
    // Of gemm's many schedules, some of each way to divide the work are executed, and one in five
    // is printed.
    const std::size_t count = kernel.schedules.size(), step = count > 20 ? count / 10 : 1;
    for (std::size_t i = 0; i < count; ++i) {
      if (kernel.schedules[i].target != "sm_90a") continue;
      const bool executed = (i + 1) % step == 0;
      if (!executed && i % 5 != 0) continue;
      all.push_back({&kernel, kernel.schedules[i].name, executed});
    }
  }
  return all;
}

void expect_shipped(const Variant& variant, Ships ships) {
  const LibraryKernel& kernel = *variant.kernel;
  const std::vector<std::string> settings = {"schedule=" + variant.schedule};
  const ScheduleChoice choice =
      choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a");
  if (kernel.is_program()) {
    const Program program = build_program(kernel, choice);
    for (const auto& each : program.finish().kernels) expect_among_forms(*each, ships);
    return;
  }
  const Kernel traced = build_choice(kernel, choice);
  if (!variant.executed) return expect_among_forms(traced.finish(), ships);
  library::Workload work = library::make_workload(kernel, settings, {}, 1);
  expect_simulated(
      traced.finish(), [&] { return work.arguments(); }, kernel.name + " " + variant.schedule,
      ships);
}

// In parts, which are tests that run beside each other.
constexpr std::size_t kParts = 8;
class ShippedLibrary : public testing::TestWithParam<std::size_t> {};

TEST_P(ShippedLibrary, IsSimulated) {
  skip_without_assembler();
  if (IsSkipped()) return;
  const std::vector<Variant> all = library_variants();
  EXPECT_GT(all.size(), 100u);
  for (std::size_t i = GetParam(); i < all.size(); i += kParts) {
    SCOPED_TRACE(all[i].kernel->name + " " + all[i].schedule);
    expect_shipped(all[i], i / kParts % 12 == 0 ? Ships::assembled : Ships::printed);
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, ShippedLibrary, testing::Range(std::size_t{0}, kParts));

// Heads that share keys take more registers. Where a claim of the kernel does not hold then, each
// call with such options is refused.
TEST(ShippedForms, ClaimsHoldForGradientsOfSharedHeads) {
  skip_without_assembler();
  if (IsSkipped()) return;
  const std::vector<std::pair<std::string, std::vector<std::string>>> operations = {
      {"attention_backward", {"schedule=split", "dim=128"}},
      {"attention_backward", {"schedule=ordered", "dim=96", "causal=true", "softcap=3"}},
      {"attention_varlen_backward", {"schedule=atomic", "dim=128"}},
      // Padded rows beside all there is of options.
      {"attention_varlen_backward",
       {"schedule=ordered", "dim=112", "dim_v=128", "causal=true", "window=96", "softcap=3",
        "sinks=true", "lse_gradient=true"}},
  };
  for (const auto& [name, options] : operations) {
    const LibraryKernel& kernel = find_kernel(name);
    std::vector<std::string> settings = options;
    settings.insert(settings.end(), {"heads=2", "kv_heads=1"});
    const ScheduleChoice choice =
        choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a");
    const Program program = build_program(kernel, choice);
    for (const auto& each : program.finish().kernels) {
      if (each->claims.empty()) continue;
      EXPECT_NO_THROW(compiler::build_kernel(*each, "sm_90a")) << name << " " << options[0];
    }
  }
}

TEST(ShippedForms, OfExamplesAreSimulated) {
  skip_without_assembler();
  if (IsSkipped()) return;
  std::size_t i = 0;
  for (const Kernel& kernel : codegen::example_kernels()) {
    expect_among_forms(kernel.finish(), i++ % 4 == 0 ? Ships::assembled : Ships::printed);
  }
}

TEST(ShippedForms, OfRandomKernelsAreSimulated) {
  skip_without_assembler();
  if (IsSkipped()) return;
  int count = 0;
  for (std::uint64_t seed = 9000; count < 40; ++seed) {
    const fuzz::Recipe recipe = fuzz::random_recipe(seed);
    try {
      fuzz::Traced traced = fuzz::trace(recipe);
      const Kernel kernel = recipe.style == fuzz::Recipe::Style::explicit_level
                                ? fuzz::trace_explicit(recipe, "sm_90a")
                                : std::move(traced.kernel);
      expect_simulated(
          kernel.finish(), [&] { return traced.launch.arguments(); }, fmt::format("seed {}", seed),
          count % 4 == 0 ? Ships::assembled : Ships::printed);
      ++count;
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
  const compiler::GpuProgram printed = compiler::print(std::move(form));
  EXPECT_NE(form_of_text(printed.source.text), before);
  EXPECT_NE(form_of_cubin(compiler::build(printed, "sm_90a")), before);
}

}  // namespace
}  // namespace tilewright::checks
