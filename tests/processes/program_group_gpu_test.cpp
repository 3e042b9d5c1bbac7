#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>

#include "common/processes.h"
#include "common/programs.h"
#include "distributed/ranks.h"
#include "examples/all_reduce.h"
#include "runtime/device.h"
#include "runtime/nvrtc.h"
#include "support/hash.h"
#include "tilewright/program.h"

// Programs over two processes on two GPUs, beside the same over two GPUs of one process.
namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;
using test::FileRanks;
using test::Processes;
using test::Voice;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kRanks = 2;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// CTAs of both ranks push to each other, and wait for each other's words.
struct AllReduced {
  explicit AllReduced(std::int64_t rows) : program("all_reduce", kRanks) {
    const Kernel kernel = examples::all_reduce();
    constexpr std::int64_t kColumns = examples::kColumns;
    const Buffer x = program.buffer("x", f32, {rows, kColumns});
    y = program.buffer("y", f32, {rows, kColumns});
    const Buffer parts = program.buffer("parts", f32, {2 * kRanks, rows, kColumns});
    program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y, parts}); });
  }
  Program program;
  Buffer y;
};

// Copy engines and words that streams write and wait for.
struct Pushed {
  explicit Pushed(std::int64_t) : push(/*waits=*/true, kRanks), program(push.program), y(push.z) {}
  test::Push push;
  Program program;
  Buffer y;
};

class TwoGpus : public testing::Test {
 protected:
  // In a process of its own: one that has opened a GPU cannot be forked.
  void SetUp() override {
    Processes look(1, [](int, const Voice& voice) {
      runtime::Nvrtc::get();
      const int count = runtime::Device::count();
      voice.say(count < kRanks ? "too few GPUs" : runtime::Device::get(0).info().arch());
    });
    if (look.said(0) != "sm_90a") GTEST_SKIP() << look.said(0);
  }
};

template <typename Made>
class ProgramGroupGpu : public TwoGpus {
 protected:
  static ProgramExecutable build(const Made& made, const Group& group) {
    CompileOptions options;
    options.device = group.rank();
    return compile(made.program, "cuda", group, options);
  }

  // What the rank's output is after so many runs of memory of the same numbers.
  static std::string result(ProgramExecutable& executable, const Made& made, int rank, int runs) {
    ProgramMemory memory(made.program, 7);
    memory.at(made.y, rank) = HostTensor::poisoned(f32, memory.at(made.y, rank).shape());
    executable.load(memory);
    executable.run(runs);
    executable.store(memory);
    const HostTensor& y = memory.at(made.y, rank);
    return content_hash({reinterpret_cast<const char*>(y.data()), y.size_bytes()}) + " ";
  }

  static double microseconds_a_run(ProgramExecutable& executable) {
    constexpr int kRuns = 2000;
    executable.run(kRuns);
    const Clock::time_point start = Clock::now();
    executable.run(kRuns);
    return 1e3 * milliseconds_since(start) / kRuns;
  }
};

using Programs = testing::Types<AllReduced, Pushed>;
TYPED_TEST_SUITE(ProgramGroupGpu, Programs);

TYPED_TEST(ProgramGroupGpu, HasTheBitsOfOneProcess) {
  const std::vector<int> runs = {1, 2, 100, 3000};
  std::vector<std::string> alone(kRanks);
  double time_alone = 0;
  {
    Processes one(1, [&](int, const Voice& voice) {
      const TypeParam made(1000);
      ProgramExecutable executable = compile(made.program, "cuda");
      for (int rank = 0; rank < kRanks; ++rank) {
        for (const int count : runs) voice.say(this->result(executable, made, rank, count));
        voice.say("|");
      }
      voice.say(std::to_string(this->microseconds_a_run(executable)));
    });
    const std::string said = one.said(0);
    const auto first = said.find('|'), second = said.find('|', first + 1);
    ASSERT_NE(second, std::string::npos) << said;
    alone = {said.substr(0, first), said.substr(first + 1, second - first - 1)};
    time_alone = std::stod(said.substr(second + 1));
  }
  const FileRanks job;
  Processes ranks(kRanks, [&](int rank, const Voice& voice) {
    const TypeParam made(1000);
    ProgramExecutable executable = this->build(made, job.join(rank, kRanks));
    for (const int count : runs) voice.say(this->result(executable, made, rank, count));
    voice.say("|" + std::to_string(this->microseconds_a_run(executable)));
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string said = ranks.said(rank);
    const auto end = said.find('|');
    ASSERT_NE(end, std::string::npos) << said;
    EXPECT_EQ(said.substr(0, end), alone[rank]) << "rank " << rank;
    std::printf("TABLE rank %d: %s us a run over processes, %.2f over GPUs of one process\n", rank,
                said.substr(end + 1).c_str(), time_alone);
  }
}

TYPED_TEST(ProgramGroupGpu, ARankThatIsKilledWhileItRunsIsNamed) {
  for (int victim = 0; victim < kRanks; ++victim) {
    const FileRanks job;
    Processes ranks(kRanks, [&](int rank, const Voice& voice) {
      const TypeParam made(1000);
      const Group group = job.join(rank, kRanks);
      {
        ProgramExecutable executable = this->build(made, group);
        executable.load(ProgramMemory(made.program));
        voice.say("runs ");
        voice.say_error_of([&] {
          for (;;) executable.run(100);
        });
      }
      // The GPU still works.
      const runtime::Device& device = runtime::Device::get(rank);
      const runtime::Stream stream(device);
      const runtime::DeviceBuffer buffer(device, 4096, "rest");
      buffer.fill(1, stream);
      stream.synchronize();
      voice.say(" rests");
    });
    for (int rank = 0; rank < kRanks; ++rank) ranks.wait_for(rank, "runs");
    const Clock::time_point start = Clock::now();
    ranks.signal(victim, SIGKILL);
    ranks.wait_for(1 - victim, "fix:");
    const double named = milliseconds_since(start);
    ranks.wait_for(1 - victim, "rests");
    std::printf("TABLE rank %d killed: named after %.1f ms, the other GPU at rest after %.1f ms\n",
                victim, named, milliseconds_since(start));
    EXPECT_THAT(ranks.said(1 - victim),
                StartsWith("runs error: lost rank " + std::to_string(victim)));
    EXPECT_LT(named, 5'000);
  }
}

TYPED_TEST(ProgramGroupGpu, LeavesNothingOpen) {
  const FileRanks job;
  Processes ranks(kRanks, [&](int rank, const Voice& voice) {
    const Group group = job.join(rank, kRanks);
    const TypeParam made(1000);
    const ProgramMemory memory(made.program);
    int before = 0, now = 0;
    for (int round = 0; round < 6; ++round) {
      {
        ProgramExecutable executable = this->build(made, group);
        executable.load(memory);
        executable.run(10);
      }
      group.barrier("round");
      // What the other rank still mapped when this one gave it up is freed by another arena.
      const SymmetricArena next(group, 1, "next", SymmetricArena::Memory::gpu, rank);
      now = test::open_descriptors();
      if (round == 1) before = now;  // the first rounds load what the driver keeps
      group.barrier("looked");
    }
    voice.say(fmt::format("{} descriptors", now - before));
  });
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.said(rank), "0 descriptors");
}

// Scratch of so many bytes, of which a little goes from rank to rank.
Program with_scratch(std::size_t bytes) {
  Program program("with_scratch", kRanks);
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  const Buffer big = program.scratch("big", f32, {count});
  program.on_each_rank([&](const Rank& rank) {
    rank.stream().copy(big.on(rank.next()).rows(0, 1024), big.rows(1024, 1024));
  });
  return program;
}

// Three times as much as there is, one after the other. What the card has free says nothing: others
// use it too, and the driver frees behind its calls.
TEST_F(TwoGpus, GiveBackTheMemoryOfPrograms) {
  constexpr int kParts = 8, kRounds = 3 * kParts;
  for (const char* way : {"descriptors", "ipc"}) {
    const FileRanks job;
    Processes ranks(kRanks, [&](int rank, const Voice& voice) {
      setenv("TILEWRIGHT_GPU_SHARING", way, 1);
      const Group group = job.join(rank, kRanks);
      const Program program = with_scratch(runtime::Device::get(rank).info().memory_bytes / kParts);
      CompileOptions options;
      options.device = rank;
      const Clock::time_point start = Clock::now();
      for (int round = 0; round < kRounds; ++round) {
        ProgramExecutable executable = compile(program, "cuda", group, options);
        executable.run(1);
      }
      std::printf("TABLE rank %d, %s: %.1f ms a round of allocation\n", rank, way,
                  milliseconds_since(start) / kRounds);
      std::fflush(stdout);
      voice.say("all rounds");
    });
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.said(rank), "all rounds") << way;
  }
}

// The arena alone, by copies of both ranks: by descriptors and by IPC handles.
TEST_F(TwoGpus, ReachEachOthersArena) {
  for (const char* way : {"descriptors", "ipc"}) {
    const FileRanks job;
    Processes ranks(kRanks, [&](int rank, const Voice& voice) {
      setenv("TILEWRIGHT_GPU_SHARING", way, 1);
      const runtime::Device& device = runtime::Device::get(rank);
      const Group group = job.join(rank, kRanks);
      for (int round = 0; round < 3; ++round) {
        const SymmetricArena arena(group, 1 << 20, "words", SymmetricArena::Memory::gpu, rank);
        const runtime::Stream stream(device);
        const int sent = 41 + rank + 10 * round;
        int received = 0;
        runtime::copy_async(arena.at(1 - rank) + 64, &sent, sizeof sent, stream);
        stream.synchronize();
        group.barrier();
        runtime::copy_async(&received, arena.at(rank) + 64, sizeof received, stream);
        stream.synchronize();
        voice.say(fmt::format("{} ", received));
      }
    });
    EXPECT_EQ(ranks.said(0), "42 52 62 ") << way;
    EXPECT_EQ(ranks.said(1), "41 51 61 ") << way;
  }
}

}  // namespace
}  // namespace tilewright
