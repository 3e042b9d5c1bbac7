#include <fmt/format.h>

#include <chrono>

#include "runtime/cubin_cache.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"
#include "runtime/kernels.h"
#include "runtime/module.h"
#include "runtime/runtime_test.h"
#include "runtime/tensor_map.h"

namespace tilewright::runtime {
namespace {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_ = &Device::get();
      Nvrtc::get();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  LoadedKernel build(const std::string& source, const std::string& name) const {
    const Build build = build_cubin({name, source, device_->info().arch(), {}});
    return LoadedKernel(*device_, build.kernel.cubin, name);
  }

  void require_hopper() {
    if (device_->info().major < 9)
      GTEST_SKIP() << device_->info().name << " has no TMA or clusters";
  }

  const Device* device_ = nullptr;
};

TEST_F(GpuTest, EachLaunchTakesTheValuesOfItsTime) {
  const LoadedKernel kernel = build(kScaleSource, "scale");
  EXPECT_EQ(kernel.attributes().max_threads, 128);
  constexpr int kCount = 1000;
  std::vector<float> values(1024, 3.0F);
  const Stream stream(*device_);
  const DeviceBuffer x(*device_, values.size() * sizeof(float), "x");
  x.upload(values.data(), x.size(), stream);

  LaunchShape shape;
  shape.grid = {8, 1, 1};
  shape.block = {128, 1, 1};
  ParameterBuffer parameters;
  parameters.add(x.data());
  const size_t factor_offset = parameters.add(2.0F);
  parameters.add(kCount);
  const std::vector<void*> arguments = parameters.pointers();
  kernel.launch(shape, stream, arguments.data());
  parameters.set(factor_offset, 5.0F);
  kernel.launch(shape, stream, arguments.data());

  std::fill(values.begin(), values.end(), -1.0F);
  x.download(values.data(), x.size(), stream);
  stream.synchronize();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], i < kCount ? 3.0F * 2 * 5 : 3.0F) << i;
  }
}

// Each block writes its rank in the cluster; the dynamic shared memory is used to its last byte.
constexpr const char* kClusterSource = R"(
extern "C" __global__ void __launch_bounds__(32, 1) ranks(unsigned* x, unsigned bytes) {
  extern __shared__ unsigned char memory[];
  memory[bytes - 1] = 77;
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) x[blockIdx.x] = rank * 100 + memory[bytes - 1];
})";

TEST_F(GpuTest, LaunchesClustersWithAllSharedMemory) {
  require_hopper();
  if (IsSkipped()) return;
  LoadedKernel kernel = build(kClusterSource, "ranks");
  const auto bytes = static_cast<unsigned>(device_->info().max_shared_bytes);
  kernel.reserve_shared(bytes);
  LaunchShape shape;
  shape.grid = {8, 1, 1};
  shape.block = {32, 1, 1};
  shape.cluster = {4, 1, 1};
  shape.shared_bytes = bytes;

  const Stream stream(*device_);
  const DeviceBuffer x(*device_, 8 * sizeof(unsigned), "x");
  x.fill(0xFF, stream);
  ParameterBuffer parameters;
  parameters.add(x.data());
  parameters.add(bytes);
  kernel.launch(shape, stream, parameters.pointers().data());
  unsigned ranks[8] = {};
  x.download(ranks, sizeof ranks, stream);
  stream.synchronize();
  EXPECT_THAT(ranks, testing::ElementsAre(77, 177, 277, 377, 77, 177, 277, 377));
}

// Copies one 8 x 64 box of halfwords, from (x, y), through shared memory to `out`.
constexpr const char* kTmaSource = R"(
struct __align__(64) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void __launch_bounds__(128, 1)
copy_box(const __grid_constant__ TensorMap map, unsigned short* out, int x, int y) {
  __shared__ __align__(1024) unsigned short box[8 * 64];
  __shared__ __align__(8) unsigned long long barrier;
  const unsigned box_address = static_cast<unsigned>(__cvta_generic_to_shared(box));
  const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(bar) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];"
        :: "r"(box_address), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(done) : "r"(bar) : "memory");
  }
  for (int i = threadIdx.x; i < 8 * 64; i += 128) out[i] = box[i];
})";

TEST_F(GpuTest, CopiesABoxThroughATensorMapAndClipsIt) {
  require_hopper();
  if (IsSkipped()) return;
  const LoadedKernel kernel = build(kTmaSource, "copy_box");
  constexpr uint64_t kRows = 12;
  constexpr uint64_t kColumns = 96;
  std::vector<uint16_t> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint16_t>(i + 1);
  const Stream stream(*device_);
  const DeviceBuffer tensor(*device_, values.size() * sizeof(uint16_t), "tensor");
  tensor.upload(values.data(), tensor.size(), stream);

  TensorMapSpec spec;
  spec.name = "tensor";
  spec.base = tensor.data();
  spec.type = TensorMapType::u16;
  spec.rank = 2;
  spec.sizes[0] = kColumns;
  spec.sizes[1] = kRows;
  spec.strides[0] = kColumns * sizeof(uint16_t);
  spec.box[0] = 64;
  spec.box[1] = 8;
  const TensorMap map = encode(spec);

  const DeviceBuffer out(*device_, 8 * 64 * sizeof(uint16_t), "out");
  out.fill(0xFF, stream);
  constexpr int kX = 64;
  constexpr int kY = 8;
  ParameterBuffer parameters;
  parameters.add(map);
  parameters.add(out.data());
  parameters.add(kX);
  parameters.add(kY);
  LaunchShape shape;
  shape.block = {128, 1, 1};
  kernel.launch(shape, stream, parameters.pointers().data());
  std::vector<uint16_t> box(8 * 64);
  out.download(box.data(), out.size(), stream);
  stream.synchronize();
  for (size_t row = 0; row < 8; ++row) {
    for (size_t column = 0; column < 64; ++column) {
      const size_t r = row + kY;
      const size_t c = column + kX;
      const bool inside = r < kRows && c < kColumns;
      ASSERT_EQ(box[row * 64 + column], inside ? values[r * kColumns + c] : 0)
          << row << ", " << column;
    }
  }
}

// What a test of each parity answers on a barrier of two arrivals: fresh, after one arrival, after
// both, and after the two arrivals of the next phase.
constexpr const char* kParitySource = R"(
extern "C" __global__ void __launch_bounds__(32, 1) parities(unsigned* out) {
  __shared__ __align__(8) unsigned long long barrier;
  if (threadIdx.x != 0) return;
  const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" :: "r"(bar) : "memory");
  for (int arrivals = 0; arrivals <= 4; ++arrivals) {
    for (unsigned parity = 0; parity < 2; ++parity) {
      unsigned passed;
      asm volatile(
          "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(passed) : "r"(bar), "r"(parity) : "memory");
      out[2 * arrivals + parity] = passed;
    }
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
  }
})";

// Rings start their producer at parity 1 and prime nothing; the simulator's barriers do the same.
TEST_F(GpuTest, FreshBarriersHavePassedParityOne) {
  require_hopper();
  if (IsSkipped()) return;
  const LoadedKernel kernel = build(kParitySource, "parities");
  const Stream stream(*device_);
  const DeviceBuffer out(*device_, 10 * sizeof(unsigned), "out");
  out.fill(0xFF, stream);
  ParameterBuffer parameters;
  parameters.add(out.data());
  LaunchShape shape;
  shape.block = {32, 1, 1};
  kernel.launch(shape, stream, parameters.pointers().data());
  unsigned passed[10] = {};
  out.download(passed, sizeof passed, stream);
  stream.synchronize();
  EXPECT_THAT(passed, testing::ElementsAre(0, 1, 0, 1, 1, 0, 1, 0, 0, 1));
}

TEST_F(GpuTest, LaunchingAddsLittleToTheDriversOwnTime) {
  const LoadedKernel kernel = build(kScaleSource, "scale");
  const CudaDriver& driver = device_->driver();
  const Stream stream(*device_);
  const DeviceBuffer x(*device_, 512, "x");
  LaunchShape shape;
  shape.block = {128, 1, 1};
  ParameterBuffer parameters;
  parameters.add(x.data());
  const size_t factor = parameters.add(1.0F);
  parameters.add(128);
  const std::vector<void*> arguments = parameters.pointers();

  constexpr int kLaunches = 2000;
  const auto microseconds_each = [&](auto launch) {
    double best = 1e9;
    for (int attempt = 0; attempt < 5; ++attempt) {
      stream.synchronize();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kLaunches; ++i) launch(i);
      const std::chrono::duration<double, std::micro> spent =
          std::chrono::steady_clock::now() - start;
      best = std::min(best, spent.count() / kLaunches);
    }
    stream.synchronize();
    return best;
  };
  const double ours = microseconds_each([&](int i) {
    parameters.set(factor, static_cast<float>(i));
    kernel.launch(shape, stream, arguments.data());
  });

  const Build plain = build_cubin({"scale", kScaleSource, device_->info().arch(), {}});
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  ASSERT_EQ(driver.cuModuleLoadData(&module, plain.kernel.cubin.data()), cuda::kSuccess);
  ASSERT_EQ(driver.cuModuleGetFunction(&function, module, "scale"), cuda::kSuccess);
  const cuda::LaunchConfig config = {1, 1, 1, 128, 1, 1, 0, stream.handle(), nullptr, 0};
  const double drivers = microseconds_each([&](int) {
    void* pointer = x.data();
    float one = 1;
    int count = 128;
    void* arguments[] = {&pointer, &one, &count};
    driver.cuLaunchKernelEx(&config, function, arguments, nullptr);
  });
  driver.cuModuleUnload(module);
  RecordProperty("launch_microseconds", fmt::format("{:.2f}", ours));
  RecordProperty("driver_microseconds", fmt::format("{:.2f}", drivers));
  EXPECT_LT(ours - drivers, 5.0) << "ours " << ours << " us, the driver's " << drivers << " us";
}

}  // namespace
}  // namespace tilewright::runtime
