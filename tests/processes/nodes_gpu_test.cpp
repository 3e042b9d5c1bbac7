#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

#include "common/processes.h"
#include "distributed/ranks.h"
#include "kernels/reference_exchanges.h"
#include "runtime/device.h"
#include "runtime/nccl.h"
#include "runtime/nvrtc.h"
#include "tilewright/kernels/nodes.h"
#include "tilewright/program.h"

// Four processes on two GPUs, ranks {0, 1} and {2, 3}, that take themselves for two nodes: these
// reach none of each other's memory, and NCCL joins {0, 2} and {1, 3}, which are on different GPUs.
// Two processes share a GPU, so that no time is of interest.
namespace tilewright {
namespace {

using test::FileRanks;
using test::Processes;
using test::Voice;

constexpr int kProcesses = 4, kGpus = 2;

class NodesGpu : public testing::Test {
 protected:
  void SetUp() override {
    // In a process of its own: one that has opened a GPU cannot be forked.
    Processes look(1, [](int, const Voice& voice) {
      runtime::Nvrtc::get();
      if (runtime::Device::count() < kGpus) return voice.say("too few GPUs");
      runtime::nccl();
      voice.say(runtime::Device::get(0).info().arch());
    });
    if (look.said(0) != "sm_90a") GTEST_SKIP() << look.said(0);
  }

  static Group join(const FileRanks& job, int rank) {
    GroupOptions options = test::rank_of(rank, kProcesses);
    options.node = "node" + std::to_string(rank / kGpus);
    return job.join(options);
  }
  static ProgramExecutable build(const Program& program, const Group& group) {
    const int rank = group.rank();
    CompileOptions options;
    options.device = rank < kGpus ? rank : kProcesses - 1 - rank;
    return compile(program, "cuda", group, options);
  }
};

using References = std::vector<std::vector<double>>;

// How many elements of the rank's Y are off; of sums in f32, rounded once.
int elements_off(const ProgramMemory& memory, const References& wanted, int rank) {
  const HostTensor& y = memory.tensors[static_cast<std::size_t>(rank)][1];
  int off = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const double w = wanted[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)];
    off += std::abs(y.flat(i) - w) <= 4.1e-3 * std::abs(w) + 2e-6 ? 0 : 1;
  }
  return off;
}

TEST_F(NodesGpu, CollectivesInTwoLevels) {
  const kernels::NodeCollective c{{bf16, kProcesses}, kProcesses / kGpus};
  const std::pair<Program, References (*)(const std::vector<HostTensor>&)> programs[] = {
      {kernels::all_gather_nodes(c), kernels::gathered_reference},
      {kernels::reduce_scatter_nodes(c), kernels::parts_summed_reference},
      {kernels::vector_all_to_all_nodes(c), kernels::exchanged_reference}};
  for (const auto& [program, reference] : programs) {
    const FileRanks job;
    Processes processes(
        kProcesses, [&, &program = program, &reference = reference](int rank, const Voice& voice) {
          ProgramExecutable executable = build(program, join(job, rank));
          // Whole pages, a tail, and more than NCCL sends at once.
          for (const std::int64_t count : {4096, 1001, 3'000'001}) {
            ProgramMemory memory(program, {{"count", count}}, 7);
            std::vector<HostTensor> x;
            for (const std::vector<HostTensor>& of_rank : memory.tensors) x.push_back(of_rank[0]);
            executable.load(memory);
            executable.run(20);
            executable.store(memory);
            const int off = elements_off(memory, reference(x), rank);
            voice.say(off == 0 ? "right " : fmt::format("{} of {} off ", off, count));
          }
        });
    for (int rank = 0; rank < kProcesses; ++rank) {
      EXPECT_EQ(processes.said(rank), "right right right ") << program.name() << ", rank " << rank;
      std::printf("TABLE %s rank %d: %s\n", program.name().c_str(), rank,
                  processes.said(rank).c_str());
    }
  }
}

TEST_F(NodesGpu, ARankThatIsKilledIsNamedAndTheOthersRest) {
  using Clock = std::chrono::steady_clock;
  const Program program = kernels::vector_all_to_all_nodes({{f32, kProcesses}, kProcesses / kGpus});
  const int victim = 2;
  const FileRanks job;
  Processes processes(kProcesses, [&](int rank, const Voice& voice) {
    const Group group = join(job, rank);
    {
      ProgramExecutable executable = build(program, group);
      executable.load(ProgramMemory(program, {{"count", 100'000}}));
      voice.say("runs ");
      voice.say_error_of([&] {
        for (;;) executable.run(20);
      });
    }
    voice.say(" rests");
  });
  for (int rank = 0; rank < kProcesses; ++rank) processes.wait_for(rank, "runs");
  const Clock::time_point start = Clock::now();
  processes.signal(victim, SIGKILL);
  for (int rank = 0; rank < kProcesses; ++rank) {
    if (rank == victim) continue;
    processes.wait_for(rank, " rests");
    EXPECT_THAT(processes.said(rank), testing::StartsWith("runs error: lost rank 2")) << rank;
  }
  std::printf("TABLE rank 2 killed: the others at rest after %.0f ms\n",
              std::chrono::duration<double, std::milli>(Clock::now() - start).count());
}

}  // namespace
}  // namespace tilewright
