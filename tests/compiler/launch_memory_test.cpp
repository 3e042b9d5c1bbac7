#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "compiler/compiled.h"
#include "runtime/fake_driver.h"
#include "tilewright/asynchronous.h"
#include "tilewright/hopper.h"

// What a launch passes of memory that is not the caller's, on a driver that executes nothing.
namespace tilewright::compiler {
namespace {

using runtime::expect_error;

constexpr int kFirst = 3, kSecond = 70;  // numbers

// Where a launch was told that each workspace lies, and whether all of it was 0 then.
struct Passed {
  std::size_t parameter[2] = {};
  std::byte* at[2] = {};
  bool zeros = true;
} passed;

int note(void** arguments) {
  for (int i = 0; i < 2; ++i) {
    std::memcpy(&passed.at[i], arguments[passed.parameter[i]], sizeof(std::byte*));
    const std::size_t bytes = 4 * (i == 0 ? kFirst : kSecond);
    passed.zeros = passed.zeros && std::all_of(passed.at[i], passed.at[i] + bytes,
                                               [](std::byte each) { return each == std::byte{}; });
    std::memset(passed.at[i], 0x5A, bytes);
  }
  return 0;
}

class LaunchMemory : public runtime::FakeDriverTest {
 protected:
  void SetUp() override {
    state_->max_threads = 1024;
    passed = {};
  }
  ~LaunchMemory() override { state_->executes = nullptr; }

  static Kernel traced(int cluster = 1) {
    Kernel kernel("two_workspaces");
    const Tensor Y = kernel.out("Y", f32, {64});
    const Tensor first = kernel.workspace("first", kFirst);
    const Tensor second = kernel.workspace("second", kSecond);
    kernel.ctas(cluster, cluster);
    kernel.roles({role("only", warps(1), registers(40), [&] {
      const Index count = atomic_add(first(kFirst - 1), 1) + atomic_add(second(kSecond - 1), 1);
      when(count >= 0, [&] { store(Y(all), zeros({64})); });
    })});
    return kernel;
  }
  static std::unique_ptr<CompiledKernel> compiled(int cluster = 1) {
    GpuProgram program = translate(traced(cluster).finish(), "sm_90a");
    const auto& parameters = program.source.parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].kind != codegen::LaunchParameter::Kind::pointer) continue;
      const std::string& name = program.machine.parameters[parameters[i].index].name;
      if (name == "first") passed.parameter[0] = i;
      if (name == "second") passed.parameter[1] = i;
    }
    runtime::Build build;
    build.kernel.cubin = "no cubin";
    return std::make_unique<CompiledKernel>(std::move(program), std::move(build),
                                            runtime::Device::get());
  }
  static void launch(const CompiledKernel& kernel, void* stream, std::uintptr_t y = 0x10000) {
    kernel.launch(runtime::Stream::borrow(kernel.device(), static_cast<CUstream_st*>(stream)),
                  std::vector<TensorRef>{{reinterpret_cast<void*>(y), f32, {64}, {}}}, {});
  }
};

TEST_F(LaunchMemory, WorkspacesAreZerosOneBehindTheOther) {
  const auto kernel = compiled();
  state_->executes = note;
  launch(*kernel, nullptr);
  EXPECT_TRUE(passed.zeros);
  EXPECT_GE(passed.at[1] - passed.at[0], 4 * kFirst);
  EXPECT_EQ((passed.at[1] - passed.at[0]) % ir::kOwnedAlignment, 0);
  EXPECT_EQ(state_->memsets, 1);
  EXPECT_EQ(state_->live_allocations, 1);
}

// Launches of one stream find what the last one left, those of another do not.
TEST_F(LaunchMemory, WorkspacesAreTheStreams) {
  const auto kernel = compiled();
  char one = 0, another = 0;
  state_->executes = note;
  launch(*kernel, &one);
  const std::byte* const first = passed.at[0];
  launch(*kernel, &one, 0x20000);
  EXPECT_EQ(passed.at[0], first);
  EXPECT_FALSE(passed.zeros);
  passed.zeros = true;
  launch(*kernel, &another);
  EXPECT_NE(passed.at[0], first);
  EXPECT_TRUE(passed.zeros);
  launch(*kernel, &one);
  EXPECT_EQ(passed.at[0], first);
}

// A graph would set a workspace to zeros in every run: the first launch comes before the capture.
TEST_F(LaunchMemory, NothingIsAllocatedInACapture) {
  const auto kernel = compiled();
  state_->capturing = 1;
  expect_error(ErrorKind::usage, {"two_workspaces", "bytes of workspace first"},
               [&] { launch(*kernel, nullptr); });
  state_->capturing = 0;
  launch(*kernel, nullptr);
  state_->capturing = 1;
  launch(*kernel, nullptr);
  EXPECT_EQ(state_->launches, 2);
}

std::size_t epoch_parameter = 0;
std::vector<std::int32_t> epochs;

int note_epoch(void** arguments) {
  std::int32_t epoch = 0;
  std::memcpy(&epoch, arguments[epoch_parameter], sizeof(epoch));
  epochs.push_back(epoch);
  return 0;
}

// Launches are counted for each stream, which has signals of its own.
TEST_F(LaunchMemory, EveryLaunchOfAStreamHasTheNextEpoch) {
  Kernel kernel("counted");
  const Index epoch = kernel.epoch();
  const Tensor Y = kernel.inout("Y", i32, {1});
  kernel.ctas(1);
  kernel.roles({role("only", warps(1), registers(40), [&] { atomic_add(Y(0), epoch); })});
  GpuProgram program = translate(kernel.finish(), "sm_90a");
  const auto& parameters = program.source.parameters;
  const auto found = std::find_if(parameters.begin(), parameters.end(), [](const auto& each) {
    return each.kind == codegen::LaunchParameter::Kind::epoch;
  });
  ASSERT_NE(found, parameters.end());
  epoch_parameter = static_cast<std::size_t>(found - parameters.begin());
  runtime::Build build;
  build.kernel.cubin = "no cubin";
  const CompiledKernel compiled(std::move(program), std::move(build), runtime::Device::get());
  char one = 0, another = 0;
  state_->executes = note_epoch;
  epochs.clear();
  for (void* const stream : {&one, &one, &another, &one}) {
    compiled.launch(runtime::Stream::borrow(compiled.device(), static_cast<CUstream_st*>(stream)),
                    std::vector<TensorRef>{{reinterpret_cast<void*>(0x10000), i32, {1}, {}}}, {});
  }
  EXPECT_EQ(epochs, (std::vector<std::int32_t>{1, 2, 1, 3}));
}

// A cluster of more CTAs than every GPU has room for is asked for.
TEST_F(LaunchMemory, LargeClustersAreAllowed) {
  compiled(8);
  EXPECT_EQ(state_->large_clusters, 0);
  compiled(16);
  EXPECT_EQ(state_->large_clusters, 1);
}

}  // namespace
}  // namespace tilewright::compiler
