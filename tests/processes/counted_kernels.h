#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "fake_cuda/fake_cuda.h"
#include "runtime/cuda_api.h"

// The fake driver with queues, and what stands there for the kernels by which runs count on GPUs.
namespace tilewright::test {

inline FakeCudaState& fake_cuda_state() {
  return *static_cast<FakeCudaState*>(runtime::cuda_driver().library.find("fake_cuda_state"));
}

// What a kernel does when its turn comes.
using Work = std::function<void()>;

inline Work counted_work(void** arguments) {
  const FakeCudaState& state = fake_cuda_state();
  const std::string kernel = state.launched;
  // Parameters come as the kernel uses them: what is written comes last.
  auto* const from = *static_cast<std::int32_t**>(arguments[0]);
  auto* const to = *static_cast<std::int32_t**>(arguments[1]);
  if (kernel == "count_run") {
    const int covered = static_cast<int>(state.grid[0] * state.block[0]);
    const int count = std::min(*static_cast<int*>(arguments[2]), covered);
    return [=] {
      for (int i = 0; i < count; ++i) to[i] += from[i];
    };
  }
  if (kernel == "write_counted_word") {
    return [=] { std::atomic_ref(*to).store(*from, std::memory_order_release); };
  }
  return [=] {
    while (std::atomic_ref(*to).load(std::memory_order_acquire) - *from < 0) {
      std::this_thread::yield();
    }
  };
}

// Launches are what the function makes of their arguments.
template <Work (*play)(void** arguments)>
void play_kernels() {
  FakeCudaState& state = fake_cuda_state();
  state.max_threads = 1024;
  state.takes = [](void** arguments) -> void* { return new Work(play(arguments)); };
  state.executes_taken = [](void* taken) {
    const std::unique_ptr<Work> work(static_cast<Work*>(taken));
    (*work)();
  };
}

}  // namespace tilewright::test
