#include "check/printed.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "check/fuzz/recipe.h"
#include "check/shrunken_sizes.h"
#include "codegen/print.h"
#include "compiler/build.h"
#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "compiler/target.h"
#include "ir/text.h"
#include "library/library_build.h"
#include "library/workload.h"
#include "runtime/nvrtc_available.h"

// The PTX of printed kernels beside their machine forms.
namespace tilewright::checks {
namespace {

using runtime::why_no_nvrtc;

ptx::Module module_of(const compiler::GpuProgram& program) {
  return ptx::parse(compiler::build_ptx(program, "sm_90a"), program.machine.name + ".ptx");
}

std::string difference_of(const ir::Kernel& machine, const Arguments& arguments,
                          const PrintedOptions& options) {
  const compiler::GpuProgram program{machine, codegen::print(machine)};
  const PrintedDifference difference =
      compare_printed(machine, program.source.parameters, module_of(program), arguments, options);
  if (!difference.none() && std::getenv("DUMP")) {
    FILE* f = fopen("/tmp/dump.ptx", "w");
    const auto t = compiler::build_ptx(program, "sm_90a");
    fputs(t.c_str(), f);
    fclose(f);
    f = fopen("/tmp/dump.cu", "w");
    fputs(program.source.text.c_str(), f);
    fclose(f);
    f = fopen("/tmp/dump.tw", "w");
    fputs(ir::to_text(machine).c_str(), f);
    fclose(f);
  }
  return difference.none() ? "" : difference.kind + ": " + difference.message;
}

TEST(Printed, RandomKernels) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const int first = std::getenv("FIRST") ? atoi(std::getenv("FIRST")) : 4000;
  const int count = std::getenv("COUNT") ? atoi(std::getenv("COUNT")) : 20;
  int compared = 0;
  for (int seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const fuzz::Recipe recipe = fuzz::random_recipe(static_cast<std::uint64_t>(seed));
    try {
      fuzz::Traced traced = fuzz::trace(recipe);
      const Kernel kernel = recipe.style == fuzz::Recipe::Style::explicit_level
                                ? fuzz::trace_explicit(recipe)
                                : std::move(traced.kernel);
      for (const compiler::MachineForm& form :
           compiler::machine_forms(kernel.finish(), ir::kDefaultTarget)) {
        PrintedOptions options;
        options.multiprocessors = shrunken_multiprocessors(form.kernel);
        EXPECT_EQ(difference_of(form.kernel, traced.launch.arguments(), options), "");
        ++compared;
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
      EXPECT_EQ(std::string(error.what()).find(".ptx"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(compared, count / 2);
}

}  // namespace
}  // namespace tilewright::checks
