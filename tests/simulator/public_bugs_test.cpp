#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "passes/pipeline.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"
#include "tilewright/error.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// Faults that were published in the trackers of other projects or found by their reviewers, rebuilt
// as small kernels: each is found, and the kernel without it is clean. Those between ranks are in
// tests/check/public_bugs_ranks_test.cpp; flashinfer #5334 is about tensor memory, which Hopper
// has not.
namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSize = 64;

// What a kernel of one CTA finds in X {rows, 64}, and C and D of the same shape.
struct Launch {
  std::int64_t rows = kSize;
  std::vector<std::string> outputs = {"C"};
  std::int64_t keys = -1;  // of a tensor A {keys, 64}; none if below 0
};

// The first fault of some schedules; no kind when all are clean.
simulator::Fault fault_of(const ir::Kernel& machine, const Launch& launch) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<HostTensor> tensors = {HostTensor::random_normal(bf16, {launch.rows, kSize}, 1)};
    std::vector<std::string> names = {"X"};
    if (launch.keys >= 0) {
      tensors.push_back(HostTensor::random_normal(bf16, {launch.keys, kSize}, 2));
      names.push_back("A");
    }
    for (const std::string& name : launch.outputs) {
      tensors.push_back(HostTensor::poisoned(bf16, {launch.rows, kSize}));
      names.push_back(name);
    }
    Arguments arguments;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      HostTensor& tensor = tensors[i];
      arguments.tensors.push_back(
          {names[i], tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
    }
    simulator::MachineOptions options;
    options.seed = seed;
    const simulator::MachineReport report = simulator::run_machine(machine, arguments, options);
    if (!report.ok()) return report.faults.front();
  }
  return {};
}

simulator::Fault fault_of(const Kernel& kernel, const Launch& launch = {}) {
  ir::Kernel machine = kernel.finish();
  passes::lower_to_machine(machine);
  return fault_of(machine, launch);
}

void expect_clean(const Kernel& kernel, const Launch& launch = {}) {
  const simulator::Fault fault = fault_of(kernel, launch);
  EXPECT_EQ(fault.kind, "") << fault.message;
}

void expect_race(const simulator::Fault& fault, const char* first, const char* second) {
  EXPECT_EQ(fault.kind, "race") << fault.message;
  EXPECT_THAT(fault.message, AllOf(HasSubstr(first), HasSubstr(second)));
  EXPECT_GT(fault.first.line, 0);
  EXPECT_GT(fault.second.line, 0);
}

// NVIDIA/cudnn-frontend #784: the epilogue of an HSTU kernel wrote its tile to shared memory, met
// at a named barrier and stored it by TMA. The barrier orders the threads, but not their writes
// with the reads of the async proxy: now and then 120 elements of a result were old ones.
Kernel barrier_before_tma_store(bool fenced) {
  Kernel kernel("epilogue");
  const Tensor X = kernel.in("X", bf16, {kSize, kSize});
  const Tensor C = kernel.out("C", bf16, {kSize, kSize});
  kernel.ctas(1);
  const SharedTile staging(kernel, "staging", bf16, kSize, kSize);
  NamedBarrier written(kernel, 128);
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    store(staging, load(X(all, all)));
    if (fenced) fence_proxy_async();
    written.sync();
    when(warp_index() == 0, [&] {
      tma_store(C(all, all), staging);
      bulk_commit();
      bulk_wait(0);
    });
  })});
  return kernel;
}

TEST(PublicBugs, CudnnFrontend784NoProxyFenceBeforeTmaStore) {
  expect_clean(barrier_before_tma_store(true));
  const simulator::Fault fault = fault_of(barrier_before_tma_store(false));
  EXPECT_EQ(fault.kind, "proxy") << fault.message;
  EXPECT_THAT(fault.message,
              AllOf(HasSubstr("write  store_elements"), HasSubstr("read   tma_store")));
  EXPECT_THAT(fault.missing, HasSubstr("fence_proxy_async"));
}

// One warp stores what its warpgroup has written, and waits until it is in memory, or has been
// read.
void store_by_tma(const Tile& tile, const Tensor& to, const SharedTile& staging,
                  NamedBarrier& written, bool complete) {
  store(staging, tile);
  fence_proxy_async();
  written.sync();
  when(warp_index() == 0, [&] {
    tma_store(to(all, all), staging);
    bulk_commit();
    complete ? bulk_wait(0) : bulk_wait_read(0);
    warp_sync();
  });
}

// HazyResearch/ThunderKittens #194 (gemm_ar): a tile was stored by TMA and its readers were
// signalled behind `wait_group.read`, which says that shared memory has been read and not that the
// tile has been written. The readers were other GPUs; here they are another role.
Kernel signal_behind_read_wait(bool complete) {
  Kernel kernel("gemm_ar");
  const Tensor X = kernel.in("X", bf16, {kSize, kSize});
  const Tensor C = kernel.inout("C", bf16, {kSize, kSize});
  const Tensor D = kernel.out("D", bf16, {kSize, kSize});
  kernel.ctas(1);
  const SharedTile staging(kernel, "staging", bf16, kSize, kSize);
  NamedBarrier written(kernel, 128), outputs_finished(kernel, 256);
  const auto storer = [&] {
    store_by_tma(load(X(all, all)), C, staging, written, complete);
    outputs_finished.arrive();
  };
  const auto reader = [&] {
    outputs_finished.sync();
    store(D(all, all), load(C(all, all)));
  };
  kernel.roles({role("store", warpgroups(1), registers(128), storer),
                role("reduce", warpgroups(1), registers(128), reader)});
  return kernel;
}

TEST(PublicBugs, ThunderKittens194ReadWaitBeforeTheSignal) {
  const Launch launch{kSize, {"C", "D"}, -1};
  expect_clean(signal_behind_read_wait(true), launch);
  expect_race(fault_of(signal_behind_read_wait(false), launch), "tma_store", "load_registers");
}

// mirage-project/mirage (persistent megakernel): a task ended, and its event was triggered, behind
// `wait_group.read` of its TMA stores; the task that waited for the event loaded the tile by TMA.
Kernel task_behind_read_wait(bool complete) {
  Kernel kernel("megakernel");
  const Tensor X = kernel.in("X", bf16, {kSize, kSize});
  const Tensor C = kernel.inout("C", bf16, {kSize, kSize});
  const Tensor D = kernel.out("D", bf16, {kSize, kSize});
  kernel.ctas(1);
  const SharedTile staging(kernel, "staging", bf16, kSize, kSize);
  Ring ring(kernel, "next", stages(1), {{bf16, kSize, kSize}});
  NamedBarrier written(kernel, 128), event(kernel, 128 + 32);
  const auto first_task = [&] {
    store_by_tma(load(X(all, all)), C, staging, written, complete);
    event.arrive();
    const Slot slot = ring.consume();
    store(D(all, all), load(slot[0]));
    ring.release(slot);
  };
  const auto load_of_next_task = [&] {
    event.sync();
    ring.produce([&](const Slot& slot) { tma_load(C(all, all), slot[0]); });
  };
  kernel.roles({role("load", warps(1), registers(24), load_of_next_task),
                role("math", warpgroups(1), registers(240), first_task)});
  return kernel;
}

TEST(PublicBugs, MirageMegakernelReadWaitBeforeTheNextTask) {
  const Launch launch{kSize, {"C", "D"}, -1};
  expect_clean(task_behind_read_wait(true), launch);
  expect_race(fault_of(task_behind_read_wait(false), launch), "tma_store", "tma_load");
}

// NVIDIA/cutlass #2835 (example 77): one warp writes an address to shared memory, and others read
// it behind the barriers of the main loop. Without a tile of keys there is no such barrier, and
// what they read may not be there yet. The address was that of tensor memory; here it is a number.
Kernel address_behind_the_loop(bool only_with_keys) {
  Kernel kernel("fmha");
  const Dim keys = kernel.dim("keys");
  const Tensor X = kernel.in("X", bf16, {kSize, kSize});
  const Tensor A = kernel.in("A", bf16, {keys, kSize});
  const Tensor C = kernel.out("C", bf16, {kSize, kSize});
  kernel.ctas(1);
  Ring ring(kernel, "keys", stages(2), {{bf16, kSize, kSize}});
  SharedIntegers address(kernel, "address", 1);
  const auto load_role = [&] {
    const auto allocate = [&] { address.store(0, 7); };
    only_with_keys ? when(Index(keys) > 0, allocate) : allocate();
    for (Block rows : blocks(keys, kSize)) {
      ring.produce([&](const Slot& slot) { tma_load(A(rows, all), slot[0]); });
    }
  };
  const auto math_role = [&] {
    Var sum{load(X(all, all)).cast(f32)};
    for ([[maybe_unused]] Index step : range(ceil_div(keys, kSize))) {
      const Slot slot = ring.consume();
      sum = sum + load(slot[0]).cast(f32);
      fence_proxy_async();
      warp_sync();
      ring.release(slot);
    }
    const auto use = [&] {
      for ([[maybe_unused]] Index i : range(address.load(0))) sum = sum + 1;
    };
    only_with_keys ? when(Index(keys) > 0, use) : use();
    const Tile result = sum;
    store(C(all, all), result.cast(bf16));
  };
  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(1), registers(240), math_role)});
  return kernel;
}

TEST(PublicBugs, Cutlass2835AddressReadWithoutABarrierWhenThereAreNoKeys) {
  const Launch with_keys{kSize, {"C"}, 3 * kSize}, without{kSize, {"C"}, 0};
  expect_clean(address_behind_the_loop(true), with_keys);
  expect_clean(address_behind_the_loop(true), without);
  expect_clean(address_behind_the_loop(false), with_keys);
  const simulator::Fault fault = fault_of(address_behind_the_loop(false), without);
  EXPECT_THAT(fault.kind, ::testing::AnyOf("race", "uninitialised")) << fault.message;
  EXPECT_THAT(fault.message, AllOf(HasSubstr("address"), HasSubstr("shared_load")));
}

// Two warpgroups hand each other 64 rows through shared memory, `turns` times.
enum class Meeting { nowhere, before_the_loop, in_the_loop };
Kernel exchange(Meeting meeting, int turns) {
  constexpr int kRows = 2 * kSize;
  Kernel kernel("exchange");
  const Tensor X = kernel.in("X", bf16, {kRows, kSize});
  const Tensor C = kernel.out("C", bf16, {kRows, kSize});
  kernel.ctas(1);
  const SharedTile tile(kernel, "tile", bf16, kRows, kSize);
  NamedBarrier met(kernel, 256);
  kernel.roles({role("math", warpgroups(2), registers(240), [&](const Index& group) {
    const Block own = Dim(kRows).block(0, kRows).part(group, kSize);
    Var x{load(X(own, all))};
    if (meeting == Meeting::before_the_loop) met.sync();
    for ([[maybe_unused]] Index turn : range(turns)) {
      const Tile mine = x;
      store(tile.rows(kSize * group, kSize), mine);
      if (meeting == Meeting::in_the_loop) met.sync();
      x = load(tile.rows(kSize * (1 - group), kSize));
      if (meeting == Meeting::in_the_loop) met.sync();
    }
    const Tile last = x;
    store(C(own, all), last);
  })});
  return kernel;
}

// Whether the other warpgroup has not written yet, or may be about to, is the seed's choice.
void expect_unordered(const simulator::Fault& fault) {
  EXPECT_THAT(fault.kind, ::testing::AnyOf("race", "uninitialised")) << fault.message;
  EXPECT_THAT(fault.message, HasSubstr("read   load_matrix"));
}

// tile-ai/tilelang #2556: a __syncthreads() that the compiler itself had found necessary was
// dropped where the threads were no multiple of 32 (`if tx < 48`), and threads read what others had
// not written yet. A barrier of so many threads is refused here; one that is missing is found.
TEST(PublicBugs, Tilelang2556DroppedBarrier) {
  const Launch launch{2 * kSize, {"C"}, -1};
  expect_clean(exchange(Meeting::in_the_loop, 1), launch);
  expect_unordered(fault_of(exchange(Meeting::nowhere, 1), launch));
  Kernel kernel("partial");
  EXPECT_THROW(NamedBarrier(kernel, 48), Error);
}

// tile-ai/tilelang #2612: a __syncthreads() between a write and a read in a loop under a condition
// was moved before the condition, where it separates nothing.
TEST(PublicBugs, Tilelang2612BarrierHoistedOutOfTheLoop) {
  const Launch launch{2 * kSize, {"C"}, -1};
  expect_clean(exchange(Meeting::in_the_loop, 3), launch);
  expect_unordered(fault_of(exchange(Meeting::before_the_loop, 3), launch));
}

// tile-ai/tilelang #2566: with a single iteration the copy's barrier got its bytes announced, by an
// expect_tx that does not arrive, and so never its one arrival: the consumer waited forever. In
// this language `produce` announces and arrives at once; below it the barrier is made to want one
// arrival more than there is.
TEST(PublicBugs, Tilelang2566ArrivalForgottenInASingleIteration) {
  Kernel kernel("single");
  const Tensor X = kernel.in("X", bf16, {kSize, kSize});
  const Tensor C = kernel.out("C", bf16, {kSize, kSize});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(2), {{bf16, kSize, kSize}});
  kernel.roles(
      {role("load", warps(1), registers(24),
            [&] { ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot[0]); }); }),
       role("math", warpgroups(1), registers(240), [&] {
         const Slot slot = ring.consume();
         store(C(all, all), load(slot[0]));
         ring.release(slot);
       })});
  expect_clean(kernel);
  ir::Kernel machine = kernel.finish();
  passes::lower_to_machine(machine);
  const simulator::FaultKind& arrivals = simulator::fault_kinds()[12];
  ASSERT_EQ(arrivals.number, 13);
  for (const simulator::Mutant& mutant : simulator::mutants_of(arrivals, machine)) {
    if (mutant.operation != "mbarrier_init x_full" ||
        mutant.change != "expects 2 arrivals instead of 1") {
      continue;
    }
    const simulator::Fault fault = fault_of(mutant.apply(machine), {});
    EXPECT_EQ(fault.kind, "deadlock") << fault.message;
    EXPECT_THAT(fault.message, HasSubstr("x_full[0] parity 0: phase 0 is not complete, 1 of 2 "
                                         "arrivals and 0 bytes pending"));
    EXPECT_THAT(fault.missing, HasSubstr("1 of the 2 arrivals of x_full[0]"));
    return;
  }
  FAIL() << "there is no such mutant";
}

// Reviewed in an attention kernel: the offset of a copy to the tensor's place was right for the
// first warpgroup alone. Here both write their rows to the first one's.
Kernel staged_by_two(bool own_offset) {
  constexpr int kRows = 2 * kSize;
  Kernel kernel("staged");
  const Tensor X = kernel.in("X", bf16, {kRows, kSize});
  const Tensor C = kernel.out("C", bf16, {kRows, kSize});
  kernel.ctas(1);
  const SharedTile staging(kernel, "staging", bf16, kRows, kSize);
  NamedBarrier written(kernel, 256);
  kernel.roles({role("math", warpgroups(2), registers(240), [&](const Index& group) {
    const Index place = own_offset ? kSize * group : Index(0);
    store(staging.rows(place, kSize), load(X(Dim(kRows).block(0, kRows).part(group, kSize), all)));
    fence_proxy_async();
    written.sync();
    when(4 * group + warp_index() == 0, [&] {
      tma_store(C(all, all), staging);
      bulk_commit();
      bulk_wait(0);
    });
  })});
  return kernel;
}

TEST(PublicBugs, OffsetOfTheFirstWarpgroupForAll) {
  const Launch launch{2 * kSize, {"C"}, -1};
  expect_clean(staged_by_two(true), launch);
  const simulator::Fault fault = fault_of(staged_by_two(false), launch);
  EXPECT_THAT(fault.kind, ::testing::AnyOf("race", "uninitialised")) << fault.message;
  EXPECT_THAT(fault.message, HasSubstr("staging"));
  EXPECT_GT(fault.first.line, 0);
}

// Reviewed in a packed batch: the number of sequences was declared, and was not the batch's, so
// that lengths were read behind the last one's.
TEST(PublicBugs, MoreSequencesDeclaredThanThereAre) {
  const auto sum_of_lengths = [](int declared) {
    Kernel kernel("lengths");
    const Tensor X = kernel.in("X", bf16, {kSize, kSize});
    const Tensor C = kernel.out("C", bf16, {kSize, kSize});
    const Tensor lengths = kernel.workspace("lengths", 4);
    kernel.ctas(1);
    kernel.roles({role("math", warpgroups(1), registers(240), [&] {
      Var sum{load(X(all, all)).cast(f32)};
      for (Index i : range(declared)) {
        for ([[maybe_unused]] Index row : range(load_index(lengths(i)))) sum = sum + 1;
      }
      const Tile result = sum;
      store(C(all, all), result.cast(bf16));
    })});
    return kernel;
  };
  expect_clean(sum_of_lengths(4));
  const simulator::Fault fault = fault_of(sum_of_lengths(5));
  EXPECT_EQ(fault.kind, "out_of_bounds") << fault.message;
  EXPECT_THAT(fault.message, HasSubstr("lengths"));
  EXPECT_GT(fault.first.line, 0);
}

}  // namespace
}  // namespace tilewright
