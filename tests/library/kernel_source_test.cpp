#include "library/kernel_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "check/shrunken_sizes.h"
#include "common/error_text.h"
#include "common/temporary_folder.h"
#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "ir/text.h"
#include "library/accuracy.h"
#include "simulator/interpreter.h"
#include "support/file.h"
#include "tilewright/compile.h"
#include "tilewright/kernel.h"

namespace tilewright::library {
namespace {

using test::usage_error_of;
using testing::HasSubstr;

Kernel scaled_product() {
  Kernel kernel("scaled_product");
  const Dim m = kernel.dim("m"), k = kernel.dim("k", {16, 16, 4096});
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {64, k});
  const Tensor which = kernel.in("which", i32, {m + 1});
  const Tensor Y = kernel.out("Y", f32, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 64));
  const Block rows = m.block(i, 64);
  Var sum{zeros({rows, 64})};
  for (Block depth : blocks(k, 64)) {
    sum = sum + dot(load(X(rows, depth)), load(W(all, depth)).T());
  }
  const Index first = load_index(which(0));
  store(Y(rows, all), sum * 2 + Tile({1, 1}, first).cast(f32));
  return kernel;
}

std::string written(const test::TemporaryFolder& folder, const Kernel& kernel) {
  setenv("TILEWRIGHT_DUMP", folder.path().c_str(), 1);
  compile(kernel, "sim:sm_90a");
  unsetenv("TILEWRIGHT_DUMP");
  return folder / (kernel.name() + ".tw");
}

Kernel copied(const std::string& name) {
  Kernel kernel(name);
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n}), Y = kernel.out("Y", f32, {n});
  const auto [i] = kernel.grid(ceil_div(n, 64));
  store(Y(n.block(i, 64)), load(X(n.block(i, 64))));
  return kernel;
}

TEST(KernelSource, KernelsOfOneNameHaveAFileEach) {
  const test::TemporaryFolder folder;
  const std::string first = written(folder, scaled_product());
  const std::string text = read_text(first);
  written(folder, copied("scaled_product"));
  written(folder, copied("scaled_product"));
  EXPECT_EQ(read_text(first), text);
  EXPECT_EQ(KernelSource::of_file(folder / "scaled_product-2.tw").entry().tensors.size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(folder / "scaled_product-3.tw"));
}

TEST(KernelSource, ProcessesSideBySideHaveAFileEach) {
  const test::TemporaryFolder folder;
  write_text(folder / "scaled_product.tw", "of an earlier run");
  std::filesystem::last_write_time(
      folder / "scaled_product.tw",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const std::string first = written(folder, scaled_product());
  const std::string text = read_text(first);
  write_text(folder / "scaled_product-2.tw", "of another process");
  written(folder, copied("scaled_product"));
  EXPECT_EQ(read_text(first), text);
  EXPECT_EQ(read_text(folder / "scaled_product-2.tw"), "of another process");
  EXPECT_EQ(KernelSource::of_file(folder / "scaled_product-3.tw").entry().tensors.size(), 2u);
}

TEST(KernelSource, OfAFileThatAProgramWrote) {
  const test::TemporaryFolder folder;
  const KernelSource source = KernelSource::of_file(written(folder, scaled_product()));
  const LibraryKernel& entry = source.entry();
  EXPECT_EQ(entry.name, "scaled_product");
  Workload workload = make_workload(entry, {"m=70", "k=48"}, {}, 3);
  ASSERT_EQ(workload.tensors.size(), 4u);
  EXPECT_EQ(workload.tensors[0].shape(), (std::vector<std::int64_t>{70, 48}));
  EXPECT_EQ(workload.tensors[2].shape(), (std::vector<std::int64_t>{71}));
  EXPECT_EQ(workload.tensors[2].flat(70), 0);
  const Reference wanted = reference_of(workload);
  double product = 0;
  for (std::int64_t d = 0; d < 48; ++d) {
    product += workload.tensors[0].at({69, d}) * workload.tensors[1].at({5, d});
  }
  EXPECT_NEAR(wanted.values.at(0).at(69 * 64 + 5), 2 * product, 1e-4);

  const ir::Kernel machine =
      compiler::compile_to_machine(
          source.traced(workload.options, compiler::parse_target("sm_90a")), ir::default_target())
          .kernel;
  EXPECT_TRUE(compiler::simulate(machine, workload.arguments(), {}).ok());
  const Comparison comparison = compare(workload, wanted);
  EXPECT_TRUE(comparison.ok()) << comparison.text();
  // In sizes that the dims take.
  for (const auto& sizes : checks::shrunken_sizes(entry, {}, resolve_options(entry, {}), machine,
                                                  checks::Sizes::further)) {
    EXPECT_NO_THROW(make_workload(entry, sizes, {}, 0)) << testing::PrintToString(sizes);
  }
  EXPECT_THAT(usage_error_of([&] { make_workload(entry, {"k=40"}, {}, 0); }),
              HasSubstr("k = 40 is not a multiple of 16"));
}

// It is executed as it is, and what one execution computes is its reference.
TEST(KernelSource, OfAFileInTheMachineForm) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "machine.tw";
  const ir::Kernel compiled =
      compiler::compile_to_machine(scaled_product().finish(), ir::default_target()).kernel;
  std::ofstream(file) << ir::to_text(compiled);
  const KernelSource source = KernelSource::of_file(file);
  EXPECT_TRUE(source.is_compiled());
  EXPECT_FALSE(KernelSource::of_file(written(folder, scaled_product())).is_compiled());
  Workload workload = make_workload(source.entry(), {"m=70", "k=48"}, {}, 3);
  const std::vector<ir::Kernel> forms = compiler::simulated_forms(
      source.traced(workload.options, compiler::parse_target("sm_90a")), "sm_90a");
  ASSERT_EQ(forms.size(), 1u);
  EXPECT_EQ(ir::to_text(forms[0]), ir::to_text(compiled));
  EXPECT_TRUE(compiler::simulate(forms[0], workload.arguments(), {}).ok());
  EXPECT_EQ(compare(workload, reference_of(workload)).share(), 0);
}

TEST(KernelSource, LengthsBeginInsideTheirFacts) {
  const test::TemporaryFolder folder;
  Kernel kernel("lengths");
  const Dim a = kernel.dim("a", {100, 250, 1000}), b = kernel.dim("b", {1, 0, 7}),
            c = kernel.dim("c", {96, 0, INT32_MAX}), d = kernel.dim("d", {512, 0, INT32_MAX});
  const Tensor X = kernel.in("X", f32, {a, b}), Y = kernel.out("Y", f32, {c, d});
  const auto [x] = kernel.grid(1);
  store(Y(c.block(x, 32), d.block(x, 32)), load(X(a.block(x, 32), b.block(x, 32))));
  const KernelSource source = KernelSource::of_file(written(folder, kernel));
  std::vector<std::string> lengths;
  for (const KernelOption& option : source.entry().options) {
    EXPECT_TRUE(option.is_length) << option.name;
    lengths.push_back(option.standard);
  }
  EXPECT_EQ(lengths, (std::vector<std::string>{"300", "7", "192", "512"}));
}

// X += step, in place: what a launch leaves is held against what it was given.
TEST(KernelSource, TensorsInPlaceAreGivenBeforeEachLaunch) {
  const test::TemporaryFolder folder;
  Kernel kernel("in_place");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.inout("X", f32, {n, 64});
  const auto step = kernel.scalar("step", f32);
  const auto [i] = kernel.grid(ceil_div(n, 16));
  store(X(n.block(i, 16), all), load(X(n.block(i, 16), all)) + step);
  const KernelSource source = KernelSource::of_file(written(folder, kernel));
  Workload workload = make_workload(source.entry(), {"n=40", "step=-0.5"}, {}, 1);
  const HostTensor given = workload.tensors.at(0);
  const ir::Kernel traced = source.traced(workload.options, compiler::parse_target("interpreter"));
  for (int launch = 0; launch < 2; ++launch) {
    simulator::interpret(traced, workload.arguments());
    EXPECT_NEAR(workload.tensors[0].at({39, 63}), given.at({39, 63}) - 0.5, 1e-6);
    EXPECT_TRUE(compare(workload, reference_of(workload)).ok());
    workload.poison_outputs();
    EXPECT_EQ(workload.tensors[0], given);
  }
  EXPECT_EQ(workload.inputs(), std::vector<HostTensor>{given});
  // Where nobody sets it.
  EXPECT_EQ(scalars_of(source.entry(), resolve_options(source.entry(), {})),
            std::vector<double>{1});
}

TEST(KernelSource, RefusesAttributesThatAreWrong) {
  const test::TemporaryFolder folder;
  // Attributes that an operation does not have, or lacks: the user's text is wrong, not Tilewright.
  for (const auto& [attributes, problem] :
       {std::pair("{axis = 0, stages = 2}", "iota: has no attribute \"stages\""),
        std::pair("", "iota: lacks the attribute \"axis\" (integer)"),
        std::pair("{axis = \"rows\"}", "the attribute \"axis\" is \"rows\", expected integer")}) {
    const std::string wrong = folder / "wrong.tw";
    std::ofstream(wrong) << "kernel \"wrong\" tile\ngrid (1)\nbody (%0: i32) {\n  "
                         << "%1: tile<i32, 4x4> = iota " << attributes << "\n}\n";
    EXPECT_THAT(usage_error_of([&] { KernelSource::of_file(wrong); }),
                testing::AllOf(HasSubstr("wrong.tw:4"), HasSubstr(problem)));
  }
}

}  // namespace
}  // namespace tilewright::library
