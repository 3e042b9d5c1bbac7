#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <optional>
#include <vector>

#include "common/processes.h"
#include "distributed/ranks.h"
#include "fake_cuda/fake_cuda.h"
#include "runtime/cuda_api.h"
#include "runtime/runtime_test.h"

namespace tilewright {
namespace {

using runtime::ScopedVariable;
using test::FileRanks;
using test::Processes;
using test::Voice;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Memory = SymmetricArena::Memory;

// How the memory comes to the other ranks.
enum class Way { host, descriptors, handles };

const char* name_of(Way way) {
  switch (way) {
    case Way::host:
      return "Host";
    case Way::descriptors:
      return "Gpu";
    case Way::handles:
      return "GpuByHandles";
  }
  return "";
}

// What says that there is no room.
const char* refusal_of(Way way) {
  switch (way) {
    case Way::host:
      return "Cannot allocate memory";
    case Way::descriptors:
      return "cuMemCreate";
    case Way::handles:
      return "cuMemAlloc";
  }
  return "";
}

constexpr std::size_t kBytes = std::size_t{3} << 20;

// Where a byte of every rank lies is anybody's to write.
std::atomic<std::uint64_t>& word(const SymmetricArena& arena, int rank, std::size_t offset) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(arena.at(rank) + offset);
}

FakeCudaState& fake_state() {
  return *static_cast<FakeCudaState*>(runtime::cuda_driver().library.find("fake_cuda_state"));
}

int shared_maps() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  int count = 0;
  while (std::getline(maps, line)) {
    count += line.find("memfd:") != std::string::npos ? 1 : 0;
  }
  return count;
}

// On host memory, and on that of two GPUs of a driver that has none.
class Arena : public testing::TestWithParam<Way> {
 protected:
  // Before the driver is asked for anything.
  static void prepare(Way way) {
    if (way == Way::host) return;
    fake_state().device_count = 2;
    fake_state().without_descriptors = way == Way::handles ? 1 : 0;
  }
  static void prepare() { prepare(GetParam()); }
  static SymmetricArena make(const Group& group, std::size_t bytes = kBytes) {
    const Memory memory = GetParam() == Way::host ? Memory::host : Memory::gpu;
    return SymmetricArena(group, bytes, "weights", memory, group.rank() % 2);
  }

 private:
  const ScopedVariable driver_{"TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA};
};

TEST_P(Arena, EveryRankReachesEveryOther) {
  const FileRanks job;
  Processes ranks(3, [&](int rank, const Voice& voice) {
    prepare();
    const Group group = job.join(rank, 3);
    SymmetricArena arena = make(group);
    const std::size_t first = arena.allocate(100, "first");
    const std::size_t second = arena.allocate(8 * 3, "second", 1024);
    for (int other = 0; other < 3; ++other) {
      word(arena, other, second + 8 * static_cast<std::size_t>(rank)) = 10 * rank + other;
    }
    group.barrier();
    std::string read = fmt::format("{} {}:", first, second);
    for (std::size_t from = 0; from < 3; ++from) {
      read += fmt::format(" {}", word(arena, rank, second + 8 * from).load());
    }
    // The last byte too.
    arena.at((rank + 1) % 3)[arena.size() - 1] = std::byte{1};
    voice.say(read);
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks.said(rank), fmt::format("0 1024: {} {} {}", rank, 10 + rank, 20 + rank));
  }
}

// It has the host's as its parent does, and a GPU's not at all.
TEST_P(Arena, IsNoMemoryOfAForkedChild) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    prepare();
    const Group group = job.join(rank, 2);
    const SymmetricArena arena = make(group);
    const pid_t child = fork();
    if (child == 0) {
      try {
        arena.at(1 - rank);
      } catch (const Error& error) {
        voice.say(error.message());
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    group.barrier();
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(ranks.said(rank), HasSubstr("comes to weights, and it was forked from process " +
                                            std::to_string(ranks.process(rank))));
  }
}

TEST_P(Arena, LeavesNothingOpenInAnyOrder) {
  if (GetParam() == Way::handles) GTEST_SKIP() << "ArenaOfHandles has what is promised of these";
  const FileRanks job;
  Processes ranks(3, [&](int rank, const Voice& voice) {
    prepare();
    const int descriptors = test::open_descriptors(), maps = shared_maps();
    int differs = 0;
    for (int round = 0; round < 4; ++round) {
      const Group group = job.join(rank, 3);
      const SymmetricArena arena = make(group);
      group.barrier();
      // In another order in each round; what the others still map stays theirs.
      if ((rank + round) % 3 == 0) continue;
      word(arena, (rank + 1) % 3, 0) = 1;
    }
    differs += test::open_descriptors() - descriptors + shared_maps() - maps;
    if (GetParam() == Way::descriptors) {
      differs += fake_state().live_allocations + fake_state().live_handles;
    }
    voice.say(std::to_string(differs));
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.said(rank), "0");
}

TEST_P(Arena, OtherSizesAreNamed) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice&) {
    prepare();
    make(job.join(rank, 2), rank == 0 ? 4096 : 8192);
  });
  EXPECT_THAT(ranks.said(0), StartsWith("usage: error: arena weights: rank 1 asks for 8192 bytes, "
                                        "and rank 0 for 4096 bytes"));
  EXPECT_THAT(ranks.said(1), HasSubstr("rank 0 asks for 4096 bytes, and rank 1 for 8192 bytes"));
}

TEST_P(Arena, OtherPartsAreNamed) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    prepare();
    const Group group = job.join(rank, 2);
    SymmetricArena arena = make(group);
    arena.allocate(kBytes - 16, "most");
    voice.say_error_of([&] { arena.allocate(17, "rest", 16); });
    voice.say_error_of([&] { arena.allocate(1, "far", 1 << 22); });
    voice.say(fmt::format("; the last byte: {}; ", arena.allocate(16, "all of the rest", 16) + 15));
    arena.allocate(rank == 0 ? 8 : 4, "keys", 4);
  });
  EXPECT_THAT(
      ranks.said(0),
      AllOf(HasSubstr(fmt::format("; the last byte: {}; ", kBytes - 1)),
            HasSubstr("rest of arena weights asks for 17 bytes at multiples of 16, and of "
                      "3145728 bytes 16 are left"),
            HasSubstr("far of arena weights asks for 1 bytes at multiples of 4194304, and of "
                      "3145728 bytes 16 are left"),
            HasSubstr("usage: error: keys of arena weights: rank 1 asks for 4 bytes at "
                      "multiples of 4, and rank 0 for 8 bytes")));
}

TEST_P(Arena, OneWithoutRoomIsNamedByAll) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice&) {
    prepare();
    // More than any machine has: the host's is a shared file's greatest length.
    make(job.join(rank, 2), std::size_t{1} << 62);
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(ranks.said(rank),
                AllOf(StartsWith("unavailable: "),
                      HasSubstr("weights of rank " + std::to_string(rank) + " needs 4"),
                      HasSubstr(refusal_of(GetParam()))));
  }
}

TEST_P(Arena, WhatAKilledRankHadStaysWhileOthersMapIt) {
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    prepare();
    const Group group = job.join(rank, 2);
    const SymmetricArena arena = make(group);
    if (rank == 1) {
      word(arena, 1, 8) = 77;
      group.barrier("written");
      raise(SIGKILL);
    }
    group.barrier("written");
    try {
      group.barrier("the end");
    } catch (const Error&) {
      voice.say(fmt::format("{} lost, {}", group.lost().size(), word(arena, 1, 8).load()));
    }
  });
  EXPECT_EQ(ranks.said(0), "1 lost, 77");
}

INSTANTIATE_TEST_SUITE_P(Symmetric, Arena,
                         testing::Values(Way::host, Way::descriptors, Way::handles),
                         [](const auto& of) { return std::string(name_of(of.param)); });

// The driver must not free what others still map. Another arena is then when it is looked at again.
TEST(ArenaOfHandles, AreFreedWhenTheOthersHaveGivenThemUp) {
  const ScopedVariable driver("TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA);
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    fake_state().device_count = 2;
    fake_state().without_descriptors = 1;
    const Group group = job.join(rank, 2);
    const int descriptors = test::open_descriptors(), inherited = test::inherited_descriptors();
    std::optional<SymmetricArena> arena;
    arena.emplace(group, kBytes, "first", Memory::gpu, rank);
    // Who holds an end of a pipe is taken for one who maps the block.
    voice.say(fmt::format("{} ", test::inherited_descriptors() - inherited));
    word(*arena, 1 - rank, 8) = 5;
    group.barrier("written");
    if (rank == 0) arena.reset();
    group.barrier("rank 0 has given it up");
    if (rank == 1) voice.say(fmt::format("{} ", word(*arena, 0, 8).load()));
    voice.say(fmt::format("{} ", fake_state().live_allocations));
    group.barrier("looked");
    arena.reset();
    group.barrier("both have given it up");
    arena.emplace(group, kBytes, "second", Memory::gpu, rank);
    // The reader's end and the mapping's file of the fake driver's, of two blocks.
    voice.say(fmt::format("{} {}", fake_state().live_allocations,
                          test::open_descriptors() - descriptors));
  });
  EXPECT_EQ(ranks.said(0), "0 1 2 4");
  EXPECT_EQ(ranks.said(1), "0 5 2 2 4");
}

TEST(ArenaOfHandles, IsTheWayOfAllWhereOneRankCannotDoOtherwise) {
  const ScopedVariable driver("TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA);
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice& voice) {
    fake_state().device_count = 2;
    fake_state().without_descriptors = 1;  // the fake's own memory can then be opened
    if (rank == 0) setenv("TILEWRIGHT_GPU_SHARING", "ipc", 1);
    const Group group = job.join(rank, 2);
    const SymmetricArena arena(group, kBytes, "words", Memory::gpu, rank);
    word(arena, 1 - rank, 16) = 40 + rank;
    group.barrier();
    voice.say(std::to_string(word(arena, rank, 16).load()));
  });
  EXPECT_EQ(ranks.said(0), "41");
  EXPECT_EQ(ranks.said(1), "40");
}

TEST(ArenaOfGpus, ARankWithoutAGpuIsNamedByAll) {
  const ScopedVariable driver("TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA);
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice&) {
    fake_state().device_count = 1;
    SymmetricArena(job.join(rank, 2), kBytes, "weights", Memory::gpu, rank);
  });
  EXPECT_THAT(ranks.said(1), HasSubstr("GPU 1 was asked for"));
  EXPECT_THAT(ranks.said(0), HasSubstr("rank 1: GPU 1 was asked for"));
}

TEST(ArenaOfGpus, OneThatIsNotReachedIsNamedByAll) {
  const ScopedVariable driver("TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA);
  const FileRanks job;
  Processes ranks(2, [&](int rank, const Voice&) {
    fake_state().device_count = 2;
    fake_state().reaches_nobody = rank;
    SymmetricArena(job.join(rank, 2), kBytes, "weights", Memory::gpu, rank);
  });
  EXPECT_THAT(ranks.said(1), HasSubstr("GPU 1 does not reach weights of rank"));
  EXPECT_THAT(ranks.said(0), HasSubstr("rank 1: cuMemSetAccess"));
}

}  // namespace
}  // namespace tilewright
