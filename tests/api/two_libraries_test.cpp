#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/temporary_folder.h"
#include "runtime/runtime_test.h"
#include "tilewright/c_api.h"

// Two copies of the library in one process, as two Python packages bring them. Each has a pool of
// its own, and neither may take the processors from the other for good.
namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

class Copy {
 public:
  Copy(const std::filesystem::path& folder, const std::string& name) {
    const std::filesystem::path path = folder / (name + ".so");
    std::filesystem::copy_file(TILEWRIGHT_LIBRARY, path);
    // Also where the names of the first one are everybody's, as those of a linked library.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    create_ = find<decltype(create_)>(library, "tilewright_kernel_create");
    run_ = find<decltype(run_)>(library, "tilewright_kernel_run");
    set_parallel_for_ = find<decltype(set_parallel_for_)>(library, "tilewright_set_parallel_for");
    const auto last_error =
        find<decltype(&tilewright_last_error)>(library, "tilewright_last_error");
    if (create_("gemm", "dtype=f32", "cpu", 0, &kernel_) != TILEWRIGHT_OK) {
      throw std::runtime_error(last_error());
    }
  }

  // C = A x B of ones, in as many blocks as keep several threads busy.
  bool multiply() const {
    constexpr std::int64_t kSize = 512;
    thread_local std::vector<float> a(kSize * kSize, 1), b(kSize * kSize, 1), c(kSize * kSize);
    const std::array<std::int64_t, 2> shape = {kSize, kSize};
    const std::array<tilewright_tensor, 3> tensors = {
        {{a.data(), "f32", 2, shape.data(), nullptr},
         {b.data(), "f32", 2, shape.data(), nullptr},
         {c.data(), "f32", 2, shape.data(), nullptr}}};
    return run_(kernel_, tensors.data(), 3, nullptr) == TILEWRIGHT_OK && c[77] == kSize;
  }

  decltype(&tilewright_set_parallel_for) set_parallel_for_ = nullptr;

 private:
  template <typename Function>
  static Function find(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
  }

  decltype(&tilewright_kernel_create) create_ = nullptr;
  decltype(&tilewright_kernel_run) run_ = nullptr;
  tilewright_kernel* kernel_ = nullptr;
};

TEST(TwoLibrariesTest, NeitherStarvesTheOther) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes two copies of one library for a fault";
#endif
  const runtime::ScopedVariable threads("TILEWRIGHT_THREADS", "4");
  const test::TemporaryFolder folder;
  const std::array<Copy, 2> copies = {Copy(folder.path(), "first"), Copy(folder.path(), "second")};
  ASSERT_NE(copies[0].set_parallel_for_, copies[1].set_parallel_for_) << "one library, not two";

  std::array<std::atomic<int>, 2> done = {0, 0};
  std::atomic<bool> wrong = false;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(600);
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&, i] {
      while (Clock::now() < end) {
        if (!copies[i].multiply()) wrong = true;
        ++done[i];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_FALSE(wrong);
  // Both had their turns: a share of one in eight is far from a fair half.
  EXPECT_GE(done[0] * 7, done[1]);
  EXPECT_GE(done[1] * 7, done[0]);

  // One behind the other: who has ended does not keep the processors.
  const auto seconds = [&](bool alternate) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < 30; ++i) copies[alternate ? i % 2 : 0].multiply();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  seconds(true);
  EXPECT_LE(seconds(true), 4 * seconds(false) + 0.1);
}

}  // namespace
}  // namespace tilewright
