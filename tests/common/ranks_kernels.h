#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tilewright/program.h"
#include "tilewright/ranks.h"

// Small kernels in which rank 0 writes into the memory of rank 1. What is not as it should be is
// set.
namespace tilewright::test {

inline constexpr int kSize = 64;
inline constexpr MemoryOrder kRelease{Semantics::release, Scope::system};
inline constexpr MemoryOrder kAcquire{Semantics::acquire, Scope::system};

// By threads.
struct Message {
  MemoryOrder signal = kRelease, wait = kAcquire;
  std::optional<Scope> signal_fence, wait_fence;
  bool early = false;  // signals before the data
  bool meets = true;   // waits for the other warps before the signal
  bool waits = true;
  bool to_itself = false;    // signals its own word instead of rank 1's
  bool counts = true;        // up with the launches
  bool acknowledged = true;  // rank 1 tells that it has read

  Kernel kernel() const {
    Kernel kernel("message");
    const Tensor X = kernel.in("X", f32, {kSize, kSize}), Y = kernel.out("Y", f32, {kSize, kSize});
    const Tensor box = kernel.symmetric("box", f32, {kSize, kSize});
    const Signals ready = kernel.signals("ready", 2);
    NamedBarrier all_warps(kernel, 128);
    kernel.ctas(1);
    kernel.roles({role("both", warpgroups(1), registers(240), [&] {
      const Index me = kernel.rank();
      const Index turn = counts ? kernel.epoch() : Index(1);
      const auto one_warp = [&](const std::function<void()>& body) {
        when(warp_index() == 0, body);
      };
      when(
          me == 0,
          [&] {
            if (acknowledged) wait_flag(ready, 1, Compare::ge, turn - 1);
            const auto tell = [&] {
              if (signal_fence) fence(*signal_fence);
              tilewright::signal(ready.at(to_itself ? 0 : 1), 0, turn, signal);
            };
            if (early) one_warp(tell);
            store(box.at(1)(all, all), load(X(all, all)));
            if (meets) all_warps.sync();
            if (!early) one_warp(tell);
          },
          [&] {
            if (waits) wait_flag(ready, 0, Compare::ge, turn, wait);
            if (wait_fence) fence(*wait_fence);
            store(Y(all, all), load(box(all, all)));
            all_warps.sync();
            if (acknowledged) one_warp([&] { tilewright::signal(ready.at(0), 1, turn); });
          });
    })});
    return kernel;
  }
};

// By TMA, through shared memory on both sides.
struct Copied {
  bool full_wait = true;  // not for the source alone
  bool waits = true;      // for its copy at all
  bool fenced = true;     // before rank 1's copy reads

  Kernel kernel() const {
    Kernel kernel("copied");
    const Tensor X = kernel.in("X", bf16, {kSize, kSize}),
                 Y = kernel.out("Y", bf16, {kSize, kSize});
    const Tensor box = kernel.symmetric("box", bf16, {kSize, kSize});
    const Signals ready = kernel.signals("ready", 1);
    SharedTile staging(kernel, "staging", bf16, kSize, kSize);
    Ring ring(kernel, "ring", stages(1), {{bf16, kSize, kSize}});
    NamedBarrier all_warps(kernel, 128);
    kernel.ctas(1);
    kernel.roles({
        role("load", warps(1), registers(24),
             [&] {
               when(kernel.rank() == 1, [&] {
                 wait_flag(ready, 0, Compare::ge, kernel.epoch());
                 if (fenced) fence_proxy_async_global();
                 ring.produce([&](const Slot& slot) { tma_load(box(all, all), slot); });
               });
             }),
        role("both", warpgroups(1), registers(240),
             [&] {
               when(
                   kernel.rank() == 0,
                   [&] {
                     store(staging, load(X(all, all)));
                     fence_proxy_async();
                     all_warps.sync();
                     when(warp_index() == 0, [&] {
                       tma_store(box.at(1)(all, all), staging);
                       bulk_commit();
                       if (waits && full_wait) bulk_wait(0);
                       if (waits && !full_wait) bulk_wait_read(0);
                       signal_add(ready.at(1), 0, 1);
                       if (!waits || !full_wait) bulk_wait(0);
                     });
                   },
                   [&] {
                     const Slot slot = ring.consume();
                     store(Y(all, all), load(slot));
                     ring.release(slot);
                   });
             }),
    });
    return kernel;
  }
};

// A message from rank 0 to rank 1.
inline Program message_in_each_rank() {
  Program program("message", 2);
  const Kernel kernel = Message{}.kernel();
  std::vector<Part> parts;
  for (const char* name : {"x", "y", "box"}) {
    parts.push_back(program.buffer(name, f32, {kSize, kSize}));
  }
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, parts); });
  return program;
}

}  // namespace tilewright::test
