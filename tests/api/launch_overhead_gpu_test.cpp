#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/launch_plan.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"
#include "runtime/nvrtc.h"
#include "tilewright/c_api.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright {
namespace {

constexpr double kAllowedMicroseconds = 5;
constexpr int kLaunches = 500;  // fewer than the driver queues: beyond that a launch waits
constexpr int kRounds = 100;    // a busy machine leaves some of them alone

// Host time of one launch, the best of several rounds.
template <typename Launch>
double microseconds_each(const runtime::Stream& stream, const Launch& launch) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    stream.synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) launch();
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / kLaunches);
  }
  stream.synchronize();
  return best;
}

// The same kernel with the same arguments, through the C API, through C++, and by the driver alone.
TEST(LaunchOverhead, IsSmallBesideTheDriversOwnTime) {
  const runtime::Device* device = nullptr;
  try {
    device = &runtime::Device::get();
    runtime::Nvrtc::get();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  if (device->info().arch() != "sm_90a") GTEST_SKIP() << "the kernel is of sm_90a";
  const runtime::CudaDriver& cuda = device->driver();
  const runtime::Stream stream(*device);
  constexpr std::int64_t kSize = 64;
  const runtime::DeviceBuffer memory(*device, 3 * kSize * kSize * sizeof(std::uint16_t), "ABC");
  memory.fill(0, stream);
  std::vector<TensorRef> refs;
  std::vector<tilewright_tensor> tensors;
  const std::int64_t shape[] = {kSize, kSize};
  for (int i = 0; i < 3; ++i) {
    auto* data = static_cast<std::uint16_t*>(memory.data()) + i * kSize * kSize;
    refs.push_back({data, bf16, {kSize, kSize}, {}});
    tensors.push_back({data, "bf16", 2, shape, nullptr});
  }

  const Kernel kernel = kernels::gemm_sm90({});
  const compiler::GpuProgram program = compiler::translate(kernel.finish(), ir::default_target());
  const runtime::Build build = compiler::assemble(program, "sm_90a");
  compiler::LaunchPlan plan = compiler::plan_launch(
      program.machine, program.source.parameters,
      compiler::make_arguments(program.machine, refs, {}), device->info().multiprocessors);
  for (const compiler::LaunchPlan::Map& map : plan.maps) {
    plan.parameters.set(map.offset, runtime::encode(map.spec));
  }
  std::vector<void*> arguments = plan.parameters.pointers();
  runtime::cuda::Module module = nullptr;
  runtime::cuda::Function function = nullptr;
  ASSERT_EQ(cuda.cuModuleLoadData(&module, build.kernel.cubin.data()), runtime::cuda::kSuccess);
  ASSERT_EQ(cuda.cuModuleGetFunction(&function, module, program.source.entry.c_str()),
            runtime::cuda::kSuccess);
  ASSERT_EQ(cuda.cuFuncSetAttribute(function, runtime::cuda::kMaxDynamicSharedSizeBytes,
                                    static_cast<int>(plan.shape.shared_bytes)),
            runtime::cuda::kSuccess);
  const runtime::LaunchShape& s = plan.shape;
  const runtime::cuda::LaunchConfig config = {
      s.grid.x, 1, 1, s.block.x, 1, 1, s.shared_bytes, stream.handle(), nullptr, 0};
  runtime::cuda::Result status = runtime::cuda::kSuccess;
  const double drivers = microseconds_each(stream, [&] {
    status = std::max(status, cuda.cuLaunchKernelEx(&config, function, arguments.data(), nullptr));
  });
  cuda.cuModuleUnload(module);
  ASSERT_EQ(status, runtime::cuda::kSuccess);

  const Executable executable = compile(kernel, "cuda");
  const double through_cpp =
      microseconds_each(stream, [&] { executable.run(refs, {}, stream.handle()); });

  tilewright_kernel* c_kernel = nullptr;
  ASSERT_EQ(tilewright_kernel_create("gemm", "dtype=bf16", "cuda", 0, &c_kernel), TILEWRIGHT_OK)
      << tilewright_last_error();
  int failed = TILEWRIGHT_OK;
  const double through_c = microseconds_each(stream, [&] {
    failed |= tilewright_kernel_run(c_kernel, tensors.data(), 3, stream.handle());
  });
  tilewright_kernel_destroy(c_kernel);
  ASSERT_EQ(failed, TILEWRIGHT_OK) << tilewright_last_error();

  RecordProperty("driver_microseconds", fmt::format("{:.2f}", drivers));
  RecordProperty("cpp_microseconds", fmt::format("{:.2f}", through_cpp));
  RecordProperty("c_microseconds", fmt::format("{:.2f}", through_c));
  EXPECT_LT(through_cpp - drivers, kAllowedMicroseconds)
      << "C++ " << through_cpp << " us, the driver's " << drivers << " us";
  EXPECT_LT(through_c - drivers, kAllowedMicroseconds)
      << "C " << through_c << " us, the driver's " << drivers << " us";
}

}  // namespace
}  // namespace tilewright
