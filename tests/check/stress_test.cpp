#include "check/stress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "common/temporary_folder.h"
#include "compiler/compile_to_machine.h"
#include "ir/text.h"
#include "library/kernel_source.h"
#include "library/library_build.h"
#include "runtime/fake_driver.h"
#include "runtime/nvrtc_available.h"
#include "simulator/faults/fault_kinds.h"
#include "tilewright/hopper.h"

namespace tilewright::checks {
namespace {

const std::vector<std::string> kSettings = {"schedule=64x96", "m=72", "n=72", "k=136"};

ir::Kernel machine() {
  const LibraryKernel& entry = find_kernel("gemm");
  return compiler::compile_to_machine(library::trace_entry(entry, resolve_options(entry, kSettings),
                                                           compiler::parse_target("sm_90a"))
                                          .finish(),
                                      ir::default_target())
      .kernel;
}

std::vector<library::Workload> workloads() {
  return {library::make_workload(find_kernel("gemm"), kSettings, {}, 0)};
}

TEST(StressTest, SimulatesBeforeAnythingRuns) {
  std::vector<library::Workload> inputs = workloads();
  const ir::Kernel kernel = machine();
  EXPECT_EQ(simulate_workloads(kernel, inputs, {}).kind, "");
  // A read before the copy is waited for.
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    if (kind.number != 9) continue;
    const std::vector<simulator::Mutant> mutants = simulator::mutants_of(kind, kernel);
    ASSERT_FALSE(mutants.empty());
    EXPECT_NE(simulate_workloads(mutants[0].apply(kernel), inputs, {}).kind, "");
  }
}

// Which of two CTAs comes first: a schedule's own.
TEST(StressTest, SchedulesDiffer) {
  Kernel kernel("first");
  const Tensor Y = kernel.out("Y", f32, {2, 32}), turn = kernel.workspace("turn", 1);
  kernel.ctas(2);
  kernel.roles({role("all", warps(1), registers(40), [&] {
    const Index own = atomic_add(turn(0), 1);
    when(
        own == 0, [&] { store(Y(cta_index(), all), zeros({32})); },
        [&] {
          store(Y(cta_index(), all), full({32}, 1));
          atomic_add(turn(0), -2);  // as it was
        });
  })});
  const test::TemporaryFolder folder;
  std::ofstream(folder / "first.tw") << ir::to_text(kernel.finish());
  const auto source = library::KernelSource::of_file(folder / "first.tw");
  std::vector<library::Workload> inputs = {library::make_workload(source.entry(), {}, {}, 0)};
  const ir::Kernel machine =
      compiler::compile_to_machine(source.traced({}, compiler::parse_target("sm_90a")), "sm_90a")
          .kernel;
  StressOptions options;
  options.launches = 1;
  options.schedules = 20;
  EXPECT_EQ(simulate_workloads(machine, inputs, options).kind, "mismatch");
}

TEST(StressTest, AKernelThatIsNoneIsNotWellFormed) {
  ir::Kernel kernel = machine();
  EXPECT_EQ(why_not_well_formed(kernel), "");
  kernel.threads = 31;
  EXPECT_NE(why_not_well_formed(kernel), "");
}

// A program whose kernel counts in a word, and writes to Y whether it is the first to do so.
struct CountingKernel {
  bool is_zeroed = true;  // the word, before each run
  int warps = 4, cluster = 1;

  Kernel kernel() const {
    Kernel kernel("counting");
    const Tensor Y = kernel.out("Y", f32, {32}), copy = kernel.out("copy", f32, {32});
    const Tensor count = kernel.inout("count", i32, {1});
    kernel.ctas(cluster, cluster);
    kernel.roles({role("all", tilewright::warps(warps), registers(40), [&] {
      when(cta_index() == 0 && warp_index() == 0, [&] {
        const Index before = atomic_add(count(0), 1);
        for (const Tensor& each : {Y, copy}) {
          when(
              before == 0, [&] { store(each(all), zeros({32})); },
              [&] { store(each(all), full({32}, 1)); });
        }
      });
    })});
    return kernel;
  }
  Program program() const {
    Program program("counting");
    const Buffer Y = program.out("Y", f32, {32}), copy = program.scratch("copy", f32, {32});
    const Buffer count =
        is_zeroed ? program.zeroed("count", i32, {1}) : program.signals("count", 1);
    program.rank(0).stream().launch(kernel(), {Y, copy, count});
    return program;
  }
};

struct Counting {
  explicit Counting(const CountingKernel& counting = {}) {
    entry.name = "counting";
    entry.tensors = {{"Y", {"32"}, true, f32}};
    entry.check = [](const OptionValues&) {};
    entry.build_program = [counting](const OptionValues&) { return counting.program(); };
    entry.reference = [](const OptionValues&, const std::vector<HostTensor>&) {
      return std::vector<std::vector<double>>{std::vector<double>(32)};
    };
    entry.rounded = entry.reference;
    recorded = library::KernelSource(entry).program({}, compiler::parse_target("sm_90a"));
    machine = library::machine_forms(recorded, ir::default_target()).front();
    StressedProgram& each = programs.emplace_back();
    each.made.workload = library::make_workload(entry, {}, {}, 0);
    each.made.program = library::bind_workload(recorded, each.made.workload, 1);
    each.multiprocessors = 1;
  }
  Counting(const Counting&) = delete;
  // `broken`: in place of its own kernels.
  StressReport stress(const StressOptions& options, const std::vector<ir::Kernel>& broken = {}) {
    return stress_on_gpu(recorded, machine, broken.empty() ? machine : broken, programs, options,
                         [](const StressReport&, bool) { std::abort(); });
  }
  LibraryKernel entry;
  ir::Program recorded;
  std::vector<ir::Kernel> machine;
  std::vector<StressedProgram> programs;
};

// The second launch of a program finds what the first has left.
TEST(StressTest, LaunchesOfAProgramFollowEachOther) {
  Counting counting({.is_zeroed = false});
  StressOptions options;
  options.launches = 1;
  EXPECT_EQ(simulate_programs(counting.machine, counting.programs, options).kind, "");
  options.launches = 2;
  EXPECT_EQ(simulate_programs(counting.machine, counting.programs, options).kind, "mismatch");
}

class StressOnFakeGpuTest : public runtime::FakeDriverTest {
 protected:
  void SetUp() override {
    state_->max_threads = 1024;
    if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  }
  StressReport run(const StressOptions& options, int* hangs = nullptr) {
    const ir::Kernel kernel = machine();
    std::vector<library::Workload> inputs = workloads();
    return stress_on_gpu(kernel, kernel, inputs, options, [&](const StressReport&, bool) {
      if (hangs == nullptr) std::abort();
      ++*hangs;
    });
  }
  test::TemporaryFolder folder_;
  runtime::ScopedVariable cache_{"TILEWRIGHT_CACHE", folder_.path().string()};
};

const std::vector<std::string> kDecode = {"dim=16", "group=1", "batch=1", "kv_heads=1", "keys=70"};

struct Decode {
  Decode() {
    const LibraryKernel& entry = find_kernel("attention_decode");
    const library::KernelSource source(entry);
    recorded = source.program(resolve_options(entry, kDecode), compiler::parse_target("sm_90a"));
    machine = library::machine_forms(recorded, ir::default_target()).front();
    for (const std::int64_t count : {1, 8}) {
      StressedProgram& each = programs.emplace_back();
      each.made.workload = library::make_workload(entry, kDecode, {}, 0);
      each.made.program = library::bind_workload(recorded, each.made.workload, count);
      each.multiprocessors = count;
    }
  }
  ir::Program recorded;
  std::vector<ir::Kernel> machine;
  std::vector<StressedProgram> programs;
};

TEST(StressTest, SimulatesPrograms) {
  Decode decode;
  EXPECT_EQ(simulate_programs(decode.machine, decode.programs, {}).kind, "");
  std::vector<ir::Kernel> broken = decode.machine;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    const std::vector<simulator::Mutant> mutants = simulator::mutants_of(kind, broken.front());
    if (kind.number != 9 || mutants.empty()) continue;
    broken.front() = mutants.front().apply(decode.machine.front());
    EXPECT_NE(simulate_programs(broken, decode.programs, {}).kind, "");
    return;
  }
  FAIL() << "no mutant of kind 9";
}

// Doubles the scale of the scores, a constant of 1 / sqrt(16) / ln 2.
bool double_scale(ir::Block& block) {
  for (ir::Operation& o : block.body) {
    const ir::Attribute* value = o.attributes.find(ir::Key::value);
    const double* number = value ? std::get_if<double>(value) : nullptr;
    if (number && std::abs(*number - 0.25 / std::log(2)) < 1e-6) {
      o.attributes.set(ir::Key::value, *number * 2);
      return true;
    }
    for (ir::Block& inner : o.blocks) {
      if (double_scale(inner)) return true;
    }
  }
  return false;
}

// Also where every access is in order.
TEST(StressTest, ProgramsComputeWhatTheirReferenceDoes) {
  Decode decode;
  ASSERT_TRUE(double_scale(decode.machine.front().body));
  EXPECT_EQ(simulate_programs(decode.machine, decode.programs, {}).kind, "mismatch");
}

TEST_F(StressOnFakeGpuTest, CountsTheRunsOfAProgram) {
  Decode decode;
  StressOptions options;
  options.runs = 3;
  const StressReport report =
      stress_on_gpu(decode.recorded, decode.machine, decode.machine, decode.programs, options,
                    [](const StressReport&, bool) { std::abort(); });
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.delayed_runs, 12);  // two sizes, each on all multiprocessors too
  EXPECT_EQ(report.delayed_mismatches, 12);
  EXPECT_EQ(report.plain_runs, 8);
  EXPECT_EQ(state_->launches, 2 * (4 + 8 + 12));
  EXPECT_EQ(state_->live_allocations, 0);
  EXPECT_THAT(report.first_mismatch, testing::HasSubstr("nan"));
}

// Threads of each launch.
std::vector<unsigned> launched;

// What all are held against comes from the kernels themselves, and not from their mutants.
TEST_F(StressOnFakeGpuTest, TheFirstRunIsOfTheOriginal) {
  static const FakeCudaState* state = nullptr;
  state = state_;
  launched.clear();
  state_->executes = [](void**) {
    launched.push_back(state->block[0]);
    return 0;
  };
  StressOptions options;
  options.runs = 1;
  const StressReport report = Counting().stress(options, Counting({.warps = 8}).machine);
  state_->executes = nullptr;
  EXPECT_EQ(report.error, "");
  // Without delays and with them, on all multiprocessors and on one.
  EXPECT_THAT(launched, testing::ElementsAre(128, 256, 256, 128, 256, 256));
}

TEST_F(StressOnFakeGpuTest, LargeClustersAreAllowed) {
  StressOptions options;
  options.runs = 1;
  EXPECT_EQ(Counting({.cluster = 8}).stress(options).error, "");
  EXPECT_EQ(state_->large_clusters, 0);
  EXPECT_EQ(Counting({.cluster = 16}).stress(options).error, "");
  EXPECT_EQ(state_->large_clusters, 1);
}

// What is filled, and launched, by two runs more.
struct More {
  int filled, launched;
};
template <typename Run>
More more(FakeCudaState& state, const Run& run) {
  const auto counted = [&](std::int64_t runs) {
    state.memsets = state.launches = 0;
    StressOptions options;
    options.runs = runs;
    EXPECT_EQ(run(options).error, "");
    return More{state.memsets, state.launches};
  };
  const More few = counted(3), many = counted(5);
  return {many.filled - few.filled, many.launched - few.launched};
}

// A run that leaves its outputs would else pass for the one before.
TEST_F(StressOnFakeGpuTest, OutputsOfAKernelArePoisoned) {
  const More of = more(*state_, [&](const StressOptions& options) { return run(options); });
  EXPECT_EQ(of.launched, 4);  // two grids
  EXPECT_EQ(of.filled, of.launched);
}

// Memory that is zeroed, too: a kernel that does not wait for the zeros would find those of before.
TEST_F(StressOnFakeGpuTest, OutputsAndScratchOfAProgramArePoisoned) {
  Counting counting;
  const More of =
      more(*state_, [&](const StressOptions& options) { return counting.stress(options); });
  EXPECT_EQ(of.launched, 4);
  EXPECT_EQ(of.filled, of.launched * 4);  // Y, copy and count; count again, with zeros
}

// The fake driver's launches write nothing: no run is right, although all leave the same bits.
TEST_F(StressOnFakeGpuTest, CountsEveryRunThatLeavesItsOutputs) {
  StressOptions options;
  options.runs = 3;
  const StressReport report = run(options);
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.delayed_runs, 6);  // two grids
  EXPECT_EQ(report.delayed_mismatches, 6);
  EXPECT_EQ(report.plain_runs, 4);
  EXPECT_EQ(report.plain_mismatches, 4);
  EXPECT_EQ(state_->launches, 2 + 4 + 6);
  EXPECT_THAT(report.first_mismatch,
              testing::AllOf(testing::HasSubstr("C[0, 0] is"), testing::HasSubstr("nan")));
  EXPECT_FALSE(report.ok());
}

// Stands for the kernel: stores what is right to C, whose tensor map is the last one, and from a
// launch on with another last bit somewhere.
struct StoredProduct {
  const FakeCudaState* state = nullptr;
  HostTensor right;
  int other_bits_from = 0;
} stored;

int store_product(void**) {
  std::byte* const to = static_cast<std::byte*>(stored.state->map_base);
  std::memcpy(to, stored.right.data(), stored.right.size_bytes());
  if (stored.state->launches >= stored.other_bits_from) to[0] ^= std::byte{1};
  return 0;
}

TEST_F(StressOnFakeGpuTest, RightResultsAreRightAndHaveTheSameBits) {
  const library::Workload workload = workloads().front();
  const library::Reference reference = reference_of(workload);
  stored = {state_, HostTensor::from_values(bf16, {72, 72}, reference.values[0]), INT32_MAX};
  state_->executes = store_product;
  StressOptions options;
  options.runs = 3;
  const StressReport right = run(options);
  EXPECT_TRUE(right.ok()) << right.error << right.first_mismatch;
  EXPECT_EQ(right.delayed_runs, 6);
  // The last run of all.
  state_->launches = 0;
  stored.other_bits_from = 2 + 4 + 6;
  const StressReport other = run(options);
  EXPECT_EQ(other.plain_mismatches, 0);
  EXPECT_EQ(other.delayed_mismatches, 1);
  EXPECT_THAT(other.first_mismatch, testing::HasSubstr("C[0, 0] is "));
  state_->executes = nullptr;
}

// The same to a tensor that the kernel adds to in any order, whose address it is given first.
struct StoredSums {
  const FakeCudaState* state = nullptr;
  std::vector<float> right;
  float other_by = 0;  // relative, of the first element, from the second launch on
} sums;

int store_sums(void** parameters) {
  auto* const to = *static_cast<float**>(parameters[0]);
  std::copy(sums.right.begin(), sums.right.end(), to);
  if (sums.state->launches > 1) to[0] *= 1 + sums.other_by;
  return 0;
}

TEST_F(StressOnFakeGpuTest, SumsInAnyOrderMayHaveOtherBits) {
  Kernel kernel("adding");
  const Tensor S = kernel.inout("S", f32, {64});
  kernel.ctas(2);
  kernel.roles({role("all", warps(1), registers(40), [&] { atomic_add(S(all), full({64}, 1)); })});
  std::ofstream(folder_ / "adding.tw") << ir::to_text(kernel.finish());
  const auto source = library::KernelSource::of_file(folder_ / "adding.tw");
  const ir::Kernel machine =
      compiler::compile_to_machine(source.traced({}, compiler::parse_target("sm_90a")), "sm_90a")
          .kernel;
  std::vector<library::Workload> inputs = {library::make_workload(source.entry(), {}, {}, 0)};
  const std::vector<double> right = reference_of(inputs.front()).values[0];
  state_->executes = store_sums;
  const auto mismatches = [&](float other_by) {
    state_->launches = 0;
    sums = {state_, {right.begin(), right.end()}, other_by};
    StressOptions options;
    options.runs = 1;
    const StressReport report = stress_on_gpu(machine, machine, inputs, options,
                                              [](const StressReport&, bool) { std::abort(); });
    EXPECT_EQ(report.error, "");
    return report.plain_mismatches + report.delayed_mismatches;
  };
  EXPECT_EQ(mismatches(0), 0);
  EXPECT_EQ(mismatches(0x1p-22F), 0);
  EXPECT_GT(mismatches(1e-4F), 0);
  state_->executes = nullptr;
}

TEST_F(StressOnFakeGpuTest, ALaunchThatTakesTooLongHangs) {
  state_->synchronise_milliseconds = 60;
  StressOptions options;
  options.runs = 1;
  options.patience = std::chrono::milliseconds(10);
  int hangs = 0;
  run(options, &hangs);
  EXPECT_EQ(hangs, 6);
  // All launches together do not, or what comes between them.
  state_->synchronise_milliseconds = 150;
  options.patience = std::chrono::milliseconds(800);
  hangs = 0;
  run(options, &hangs);
  EXPECT_EQ(hangs, 0);
}

TEST_F(StressOnFakeGpuTest, AnErrorOfTheDriverEndsTheRuns) {
  state_->max_threads = 32;  // of a block: fewer than the kernel has
  const StressReport report = run({});
  EXPECT_NE(report.error, "");
  EXPECT_EQ(report.delayed_runs, 0);
}

}  // namespace
}  // namespace tilewright::checks
