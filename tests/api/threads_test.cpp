#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "common/temporary_folder.h"
#include "runtime/fake_driver.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/c_api.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/program.h"

// What may be called from several threads at once. Under the preset tsan these find races
// (scripts/prove threads).
namespace tilewright {
namespace {

constexpr int kThreads = 4, kRounds = 20;

template <typename Work>
void in_threads(const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

// C = A x B of ones, m rows: whether the kernel gives k everywhere.
bool multiplies(const tilewright_kernel* kernel, std::int64_t m) {
  constexpr std::int64_t kColumns = 6, kTerms = 5;
  std::vector<float> a(static_cast<std::size_t>(m * kTerms), 1), b(kColumns * kTerms, 1);
  std::vector<float> c(static_cast<std::size_t>(m * kColumns), -1);
  const std::array<std::int64_t, 2> of_a = {m, kTerms}, of_b = {kColumns, kTerms},
                                    of_c = {m, kColumns};
  const std::array<tilewright_tensor, 3> tensors = {{{a.data(), "f32", 2, of_a.data(), nullptr},
                                                     {b.data(), "f32", 2, of_b.data(), nullptr},
                                                     {c.data(), "f32", 2, of_c.data(), nullptr}}};
  if (tilewright_kernel_run(kernel, tensors.data(), 3, nullptr) != TILEWRIGHT_OK) return false;
  return std::all_of(c.begin(), c.end(), [](float value) { return value == kTerms; });
}

TEST(ThreadsTest, TheCInterfaceTakesCallsFromAll) {
  tilewright_kernel* shared = nullptr;
  ASSERT_EQ(tilewright_kernel_create("gemm", "dtype=f32", "interpreter", 0, &shared), TILEWRIGHT_OK)
      << tilewright_last_error();
  std::atomic<int> wrong = 0;
  in_threads([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      if (!multiplies(shared, 3 + (thread + round) % 5)) ++wrong;
    }
    tilewright_kernel* own = nullptr;
    const std::string options = "dtype=f32,m=" + std::to_string(8 + thread);
    if (tilewright_kernel_create("gemm", options.c_str(), "interpreter", 0, &own) ==
        TILEWRIGHT_OK) {
      wrong += multiplies(own, 2) ? 0 : 1;
      tilewright_kernel_destroy(own);
    } else {
      ++wrong;
    }
    // Errors are each thread's own.
    const std::string name = "kernel" + std::to_string(thread);
    if (tilewright_kernel_create(name.c_str(), "", "interpreter", 0, &own) == TILEWRIGHT_OK ||
        std::string(tilewright_last_error()).find(name) == std::string::npos) {
      ++wrong;
    }
  });
  tilewright_kernel_destroy(shared);
  EXPECT_EQ(wrong, 0);
}

// Y += the sums of 16 rows at a time, each block in its turn.
Kernel column_sums() {
  Kernel kernel("column_sums");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 32});
  const Tensor Y = kernel.inout("Y", f32, {1, 32});
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  add(Y(all, all), reduce_sum(load(X(rows.block(x, 16), all)), 0));
  return kernel;
}

// Each of two ranks adds up its rows, and the other one's, which a second stream pulls.
Program sums_of_ranks() {
  Program program("sums_of_ranks", 2);
  const Buffer X = program.in("X", f32, {100, 32}), Y = program.inout("Y", f32, {1, 32});
  const Buffer pulled = program.scratch("pulled", f32, {100, 32});
  const Buffer ready = program.signals("ready", 1);
  const Kernel sums = column_sums();
  program.on_each_rank([&](const Rank& rank) {
    const Stream math = rank.stream("math"), pull = rank.stream("pull");
    const int peer = rank.next(1);
    math.write(ready.on(peer)[0], program.run());
    math.launch(sums, {X, Y});
    pull.wait(ready[0], program.run());
    pull.copy(pulled, X.on(peer));
    math.wait(pull.record());
    math.launch(sums, {pulled, Y});
  });
  return program;
}

// The streams of a program are threads, and several threads run one program.
TEST(ThreadsTest, StreamsOfAProgramOnTheCpu) {
  const runtime::ScopedVariable three("TILEWRIGHT_THREADS", "3");
  const ProgramExecutable shared = compile(sums_of_ranks(), "cpu");
  std::atomic<int> wrong = 0;
  in_threads([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<HostTensor> tensors;
      for (int rank = 0; rank < 2; ++rank) {
        HostTensor X = HostTensor::zeros(f32, {100, 32});
        for (std::int64_t i = 0; i < 100; ++i) X.set({i, 5}, static_cast<double>(i + rank));
        tensors.push_back(std::move(X));
        tensors.push_back(HostTensor::zeros(f32, {1, 32}));
      }
      shared.run({ref(tensors[0]), ref(tensors[1]), ref(tensors[2]), ref(tensors[3])});
      for (const int sums : {1, 3}) wrong += tensors[sums].at({0, 5}) == 2 * 4950 + 100 ? 0 : 1;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// While one thread's launch has the pool, others do theirs alone. A host may lend its threads
// meanwhile, and take them back.
TEST(ThreadsTest, TheCpuTakesLaunchesFromAll) {
  const runtime::ScopedVariable three("TILEWRIGHT_THREADS", "3");
  tilewright_kernel* shared = nullptr;
  ASSERT_EQ(tilewright_kernel_create("gemm", "dtype=f32", "cpu", 0, &shared), TILEWRIGHT_OK)
      << tilewright_last_error();
  const Executable sums = compile(column_sums(), "cpu");
  const tilewright_parallel_for lent = [](void*, int32_t parts, void (*call)(void*, int32_t),
                                          void* work) {
    std::vector<std::thread> threads;
    for (int32_t part = 0; part < parts; ++part) threads.emplace_back(call, work, part);
    for (std::thread& thread : threads) thread.join();
  };
  std::atomic<int> wrong = 0;
  in_threads([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      if (thread == 0) tilewright_set_parallel_for(round % 2 == 0 ? +lent : nullptr, nullptr, 2);
      wrong += multiplies(shared, 200 + 100 * round % 5 + thread) ? 0 : 1;
      HostTensor X = HostTensor::zeros(f32, {100, 32}), Y = HostTensor::zeros(f32, {1, 32});
      for (std::int64_t i = 0; i < 100; ++i) X.set({i, 5}, static_cast<double>(i));
      sums.run({ref(X), ref(Y)});
      wrong += Y.at({0, 5}) == 4950 && Y.at({0, 6}) == 0 ? 0 : 1;
    }
  });
  tilewright_set_parallel_for(nullptr, nullptr, 0);
  tilewright_kernel_destroy(shared);
  EXPECT_EQ(wrong, 0);
}

class LaunchThreadsTest : public runtime::FakeDriverTest {
 protected:
  void SetUp() override {
    state_->max_threads = 1024;
    if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  }

  const test::TemporaryFolder folder_;
  const runtime::ScopedVariable cache_{"TILEWRIGHT_CACHE", folder_.path().string()};
};

// Some launches with the addresses and sizes of others, and some of their own.
TEST_F(LaunchThreadsTest, LaunchesShareWhatIsPrepared) {
  const Executable executable = compile(kernels::gemm_sm90({}), "cuda");
  std::atomic<int> failed = 0;
  in_threads([&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const std::int64_t own_sizes = 3 + round * kThreads + thread;
      const std::int64_t m = 128 * (1 + (round % 4 == 0 ? round % 3 : own_sizes));
      const auto tensor = [](std::uintptr_t address, std::int64_t rows, std::int64_t columns) {
        return TensorRef{reinterpret_cast<void*>(address), bf16, {rows, columns}, {}};
      };
      char own = 0;
      try {
        executable.run(
            {tensor(0x10000000, m, 64), tensor(0x20000000, 256, 64), tensor(0x30000000, m, 256)},
            {}, round % 2 == 0 ? nullptr : &own);
      } catch (const Error&) {
        ++failed;
      }
    }
  });
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace tilewright
