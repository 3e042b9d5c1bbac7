#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <iterator>

#include "common/temporary_folder.h"
#include "compiler/device_tensors.h"
#include "compiler/launch_key.h"
#include "explain/explanation.h"
#include "library/timing.h"
#include "runtime/fake_driver.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/library.h"

namespace tilewright {
namespace {

using runtime::expect_error;

// On a driver that executes nothing: what is launched, and what a launch costs the host.
class CompiledTest : public runtime::FakeDriverTest {
 protected:
  void SetUp() override {
    state_->max_threads = 1024;
    if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  }

  static Kernel gemm() {
    kernels::Gemm how;
    how.share_b = 2;
    return kernels::gemm_sm90(how);
  }
  static std::vector<TensorRef> tensors(std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto make = [](std::uintptr_t address, std::int64_t rows, std::int64_t columns) {
      return TensorRef{reinterpret_cast<void*>(address), bf16, {rows, columns}, {}};
    };
    return {make(0x1000000, m, k), make(0x2000000, n, k), make(0x3000000, m, n)};
  }

  test::TemporaryFolder folder_;
  runtime::ScopedVariable cache_{"TILEWRIGHT_CACHE", folder_.path().string()};
};

TEST_F(CompiledTest, LaunchesWhatTheKernelDeclares) {
  const Executable executable = compile(gemm(), "cuda");
  executable.run(tensors(512, 768, 128));
  EXPECT_EQ(state_->launches, 1);
  EXPECT_EQ(state_->grid[0], 12u);  // tiles
  EXPECT_EQ(state_->cluster[0], 2u);
  EXPECT_EQ(state_->block[0], 384u);
  EXPECT_GT(state_->shared_bytes, 49152u);
  EXPECT_EQ(static_cast<unsigned>(state_->dynamic_shared_limit), state_->shared_bytes);
}

TEST_F(CompiledTest, EmptyOutputsLaunchNothing) {
  const Executable executable = compile(gemm(), "cuda");
  executable.run(tensors(0, 768, 128));
  EXPECT_EQ(state_->launches, 0);
}

TEST_F(CompiledTest, ASecondLaunchEncodesNothing) {
  const Executable executable = compile(gemm(), "cuda");
  executable.run(tensors(512, 768, 128));
  state_->map_base = nullptr;
  executable.run(tensors(512, 768, 128));
  EXPECT_EQ(state_->map_base, nullptr);
  EXPECT_EQ(state_->launches, 2);
  std::vector<TensorRef> moved = tensors(512, 768, 128);
  moved[2].data = reinterpret_cast<void*>(0x4000000);
  executable.run(moved);
  EXPECT_EQ(state_->map_base, reinterpret_cast<void*>(0x4000000));
}

// What is prepared for launches that do not come again is not kept for ever.
TEST_F(CompiledTest, FewLaunchesAreKept) {
  const Executable executable = compile(gemm(), "cuda");
  executable.run(tensors(512, 768, 128));
  for (std::size_t i = 0; i < compiler::kMaximumPrepared; ++i) {
    executable.run(tensors(512, 768, 128 + 8 * static_cast<std::int64_t>(i + 1)));
  }
  state_->map_base = nullptr;
  executable.run(tensors(512, 768, 128));
  EXPECT_NE(state_->map_base, nullptr);
}

TEST_F(CompiledTest, ARepeatedLaunchCostsLittle) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers cost more than a launch";
#endif
  const Executable executable = compile(gemm(), "cuda");
  const std::vector<TensorRef> given = tensors(512, 768, 128);
  executable.run(given);
  constexpr int kLaunches = 1000;
  double best = 1;
  for (int batch = 0; batch < 20; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) executable.run(given);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count() / kLaunches);
  }
  RecordProperty("nanoseconds", static_cast<int>(best * 1e9));
  EXPECT_LT(best, 5e-6);
}

TEST_F(CompiledTest, EachStreamHasItsWorkspace) {
  const LibraryKernel& entry = find_kernel("attention_forward");
  const OptionValues options = resolve_options(entry, {"heads=1", "queries=8", "keys=8"});
  std::vector<TensorRef> given;
  for (const LibraryTensor* tensor : tensors_of(entry, options)) {
    given.push_back({reinterpret_cast<void*>(0x10000 * (given.size() + 1)),
                     dtype_of(*tensor, options),
                     shape_of(*tensor, options),
                     {}});
  }
  char one = 0, another = 0;
  {
    const Executable executable = compile(entry.schedules[0].build(options), "cuda");
    for (void* stream : {&one, &another, &one}) executable.run(given, {}, stream);
    EXPECT_EQ(state_->live_allocations, 2);
    EXPECT_EQ(state_->launches, 3);
  }
  EXPECT_EQ(state_->live_allocations, 0);
}

// Scores of 96 keys beside an accumulator of 256 columns and the weights of the block before:
// places that are kept over the loop would take the registers that these need.
TEST_F(CompiledTest, WideAccumulatorsOverlap) {
  kernels::Attention a;
  a.dim = a.dim_v = 256;
  a.causal = true;
  a.block_k = 96;
  const explanations::Explanation explained =
      explanations::explain(kernels::attention_forward(a), compiler::parse_target("sm_90a", 0));
  EXPECT_EQ(explained.resources.spill_bytes, 0);
  EXPECT_TRUE(explained.failures.empty());
  EXPECT_TRUE(explained.warnings.empty());
  EXPECT_TRUE(std::any_of(explained.stages.begin(), explained.stages.end(),
                          [](const auto& stage) { return stage.name == "overlap_products"; }));
}

TEST_F(CompiledTest, TensorsTravelToTheDeviceAndBack) {
  const std::vector<HostTensor> tensors = {HostTensor::random_normal(f32, {3, 4}, 1),
                                           HostTensor::zeros(bf16, {0, 5})};
  const compiler::DeviceTensors on_device(tensors);
  std::vector<HostTensor> back = {HostTensor::poisoned(f32, {3, 4}), tensors[1]};
  on_device.download(back);
  EXPECT_EQ(back, tensors);
  on_device.poison(0);
  on_device.download(0, back[0]);
  EXPECT_EQ(back[0], HostTensor::poisoned(f32, {3, 4}));
  on_device.upload(0, tensors[0]);
  on_device.download(0, back[0]);
  EXPECT_EQ(back[0], tensors[0]);
}

TEST_F(CompiledTest, TimingTakesTheMedianOfManyRuns) {
  const Executable executable = compile(gemm(), "cuda");
  const compiler::DeviceTensors on_device({HostTensor::zeros(bf16, {8, 8}),
                                           HostTensor::zeros(bf16, {8, 8}),
                                           HostTensor::zeros(bf16, {8, 8})});
  const library::Timing timing = library::time_on_gpu(
      [&](const std::vector<TensorRef>& tensors) { executable.run(tensors); }, on_device);
  EXPECT_DOUBLE_EQ(timing.median(), 1.5e-3);  // what the fake driver says of all events
  EXPECT_GE(static_cast<std::size_t>(state_->launches), timing.seconds.size());
}

TEST_F(CompiledTest, FailedLaunchesAreReported) {
  const Executable executable = compile(gemm(), "cuda");
  const std::vector<TensorRef> given = tensors(512, 768, 128);
  executable.run(given);
  state_->next_result = 700;
  try {
    executable.run(given);
    FAIL() << "no error was raised";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("gemm"));
  }
}

TEST_F(CompiledTest, AnArchitectureIsBuiltAndNotRun) {
  const Executable executable = compile(gemm(), "sm_90a");
  expect_error(ErrorKind::unavailable, {"gemm_sm90", "is built for sm_90a", "compile for cuda"},
               [&] { executable.run(tensors(512, 768, 128)); });
}

// They are a build of their own, beside the one that ships.
TEST_F(CompiledTest, DelaysAreSetByTheirVariable) {
  const auto builds = [this](const char* seed) {
    const runtime::ScopedVariable delays("TILEWRIGHT_DELAYS", seed);
    compile(gemm(), "sm_90a");
    const std::filesystem::recursive_directory_iterator entries(folder_.path());
    return std::distance(begin(entries), end(entries));
  };
  const auto shipped = builds(""), delayed = builds("1");
  EXPECT_LT(shipped, delayed);
  EXPECT_EQ(builds("1"), delayed);
  for (const char* wrong : {"soon", "-1", "1.5", "1 ", "99999999999999999999"}) {
    expect_error(ErrorKind::usage, {"TILEWRIGHT_DELAYS is", "such as 1"}, [&] { builds(wrong); });
  }
}

TEST_F(CompiledTest, NoNvrtcIsUnavailable) {
  const runtime::ScopedVariable none("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so");
  expect_error(ErrorKind::unavailable, {"/nonexistent/libnvrtc.so", "fix:"},
               [] { runtime::Nvrtc{runtime::nvrtc_request()}; });
}

TEST(CompileTest, FormsAndTargetsMustFit) {
  const LibraryKernel& entry = find_kernel("gemm");
  const OptionValues options = resolve_options(entry, {});
  expect_error(ErrorKind::usage, {"gemm_sm90", "explicit level", "simulate"},
               [&] { compile(entry.schedules[0].build(options), "interpreter"); });
  expect_error(ErrorKind::usage,
               {"there is no target 'gpu'", "interpreter, cpu, sim:sm_90a,", "cuda, sm_90a,"},
               [&] { compile(entry.build(options), "gpu"); });
  expect_error(ErrorKind::usage, {"gemm_sm90", "explicit level", "the target cpu"},
               [&] { compile(entry.schedules[0].build(options), "cpu"); });
}

TEST(CompileTest, EveryOutputMustBeStored) {
  Kernel kernel("forgetful");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, 8}), Y = kernel.out("Y", f32, {n, 8});
  kernel.out("Z", f32, {n, 8});
  const auto [i] = kernel.grid(ceil_div(n, 8));
  store(Y(n.block(i, 8), all), load(X(n.block(i, 8), all)));
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    expect_error(ErrorKind::usage, {"forgetful: nothing is stored to the output Z", "store a tile"},
                 [&] { compile(kernel, target); });
  }
}

TEST(CompileTest, InterpretsOnTheHost) {
  const LibraryKernel& entry = find_kernel("gemm");
  const Executable executable =
      compile(entry.build(resolve_options(entry, {"dtype=f32"})), "interpreter");
  HostTensor a = HostTensor::from_values(f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  HostTensor b = HostTensor::from_values(f32, {2, 3}, {1, 0, 2, 0, 1, 1});
  HostTensor c = HostTensor::poisoned(f32, {2, 2});
  executable.run({ref(a), ref(b), ref(c)});
  EXPECT_EQ(c, HostTensor::from_values(f32, {2, 2}, {7, 5, 16, 11}));
}

TEST(CompileTest, OverflowingSizesAreErrors) {
  const LibraryKernel& entry = find_kernel("gemm");
  const Executable executable = compile(entry.build(resolve_options(entry, {})), "interpreter");
  const std::int64_t huge = INT64_MAX;
  char byte = 0;
  expect_error(ErrorKind::usage, {"A"}, [&] {
    executable.run(
        {{&byte, bf16, {huge, huge}, {}}, {&byte, bf16, {4, 4}, {}}, {&byte, bf16, {4, 4}, {}}});
  });
}

}  // namespace
}  // namespace tilewright
