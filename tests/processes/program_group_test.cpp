#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <random>

#include "common/processes.h"
#include "distributed/members.h"
#include "distributed/ranks.h"
#include "processes/counted_kernels.h"
#include "processes/lost_rank.h"
#include "runtime/device.h"
#include "runtime/runtime_test.h"
#include "tilewright/asynchronous.h"
#include "tilewright/program.h"

// Programs whose ranks are processes, on a driver whose queues threads work off.
namespace tilewright {
namespace {

using runtime::ScopedVariable;
using test::FileRanks;
using test::Processes;
using test::Voice;
using test::Work;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kRows = 3, kColumns = 5;

// In each run every rank pushes its rows to the next, which copies what has come: z holds what the
// rank before has had in x. In the rank of `silent` nobody says that the rows have come.
struct Ring {
  explicit Ring(int ranks, int silent = -1, const char* name = "ring") : program(name, ranks) {
    x = program.buffer("x", i32, {kRows, kColumns});
    y = program.buffer("y", i32, {kRows, kColumns});
    z = program.buffer("z", i32, {kRows, kColumns});
    const Buffer arrived = program.signals("arrived", 1), taken = program.signals("taken", 1);
    program.on_each_rank([&](const Rank& rank) {
      const Stream push = rank.stream("push"), take = rank.stream("take");
      push.wait(taken[0], program.run() - 1);
      push.copy(y.on(rank.next()), x);
      if (rank.number() != silent) push.write(arrived.on(rank.next())[0], program.run());
      take.wait(arrived[0], program.run());
      take.copy(z, y);
      const Event copied = take.record();
      push.wait(copied);
      take.write(taken.on(rank.next(-1))[0], program.run());
    });
  }
  Program program;
  Buffer x, y, z;
};

class ProgramGroup : public testing::Test {
 protected:
  static FakeCudaState& state() { return test::fake_cuda_state(); }
  static void prepare() {
    state().device_count = 4;
    state().has_queues = 1;
  }

  static ProgramExecutable build(const Ring& ring, const Group& group) {
    CompileOptions options;
    options.device = group.rank();
    return compile(ring.program, "cuda", group, options);
  }

  // What x holds is told by the rank.
  static ProgramMemory memory_of(const Ring& ring, int ranks) {
    ProgramMemory memory(ring.program);
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
        memory.at(ring.x, rank).set_flat(i, 100 * (rank + 1) + static_cast<double>(i));
      }
    }
    return memory;
  }

  static bool has_come_from(const HostTensor& z, int rank) {
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      if (z.flat(i) != 100 * (rank + 1) + static_cast<double>(i)) return false;
    }
    return true;
  }

 private:
  const ScopedVariable driver_{"TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA};
};

TEST_F(ProgramGroup, RunsAsItDoesInOneProcess) {
  constexpr int kRanks = 3;
  const FileRanks job;
  Processes processes(kRanks + 1, [&](int rank, const Voice& voice) {
    prepare();
    const Ring ring(kRanks);
    ProgramMemory memory = memory_of(ring, kRanks);
    if (rank == kRanks) {  // all ranks in one process
      ProgramExecutable alone = compile(ring.program, "cuda");
      alone.load(memory);
      alone.run(5);
      alone.store(memory);
      for (int of = 0; of < kRanks; ++of) {
        voice.say(has_come_from(memory.at(ring.z, of), (of + kRanks - 1) % kRanks) ? "right "
                                                                                   : "wrong ");
      }
      return;
    }
    ProgramExecutable executable = build(ring, job.join(rank, kRanks));
    for (int round = 0; round < 2; ++round) {
      executable.load(memory);
      executable.run(40);
      executable.run(1);
      executable.store(memory);
      const int from = (rank + kRanks - 1) % kRanks;
      voice.say(has_come_from(memory.at(ring.z, rank), from) ? "right " : "wrong ");
      // Of the others nothing is moved.
      voice.say(has_come_from(memory.at(ring.z, from), (from + kRanks - 1) % kRanks) ? "moved "
                                                                                     : "own ");
    }
  });
  EXPECT_EQ(processes.said(kRanks), "right right right ");
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(processes.said(rank), "right own right own ");
  }
}

TEST_F(ProgramGroup, ARankThatDiesIsNamedAndTheOthersComeToRest) {
  constexpr int kRanks = 3;
  for (unsigned round = 0; round < 4; ++round) {
    const FileRanks job;
    std::mt19937 random(round);
    const int victim = static_cast<int>(random() % kRanks);
    Processes processes(kRanks, [&](int rank, const Voice& voice) {
      prepare();
      const Ring ring(kRanks);
      ProgramMemory memory = memory_of(ring, kRanks);
      const Group group = job.join(rank, kRanks);
      const int before = test::open_descriptors();
      {
        ProgramExecutable executable = build(ring, group);
        executable.load(memory);
        test::run_until_a_rank_is_lost(executable, 20, voice);
      }
      // Streams that waited for the dead have come to their end before they were destroyed.
      voice.say(state().ended_queues_with_work == 0 ? " at rest" : " still waiting");
      voice.say(test::open_descriptors() == before ? ", closed" : ", open");
    });
    for (int rank = 0; rank < kRanks; ++rank) processes.wait_for(rank, "runs");
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    processes.signal(victim, SIGKILL);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      const std::string name = "error: lost rank " + std::to_string(victim);
      EXPECT_THAT(processes.said(rank),
                  AllOf(StartsWith("runs " + name), HasSubstr("program ring"),
                        HasSubstr(" again: " + name), HasSubstr(" at rest, closed")))
          << "round " << round;
    }
  }
}

TEST_F(ProgramGroup, AWaitThatNobodyEndsIsOverWithThePatience) {
  const ScopedVariable watch("TILEWRIGHT_WATCH", "60");
  const FileRanks job;
  Processes processes(2, [&](int rank, const Voice&) {
    prepare();
    const Ring ring(2, /*silent=*/0);
    const Group group = job.join(rank, 2);
    ProgramExecutable executable = build(ring, group);
    executable.load(memory_of(ring, 2));
    if (rank == 1) group.members()->set_patience(test::kShortPatience);
    executable.run(1);
  });
  EXPECT_THAT(processes.said(1),
              AllOf(HasSubstr(fmt::format("the end of run 1 of program ring has not come in rank 1 "
                                          "within the group's patience of {} ms, and no rank has "
                                          "died",
                                          test::kShortPatience.count())),
                    HasSubstr("waits for arrived of rank 1[0] >= 1, which is 0 (run 1)")));
  EXPECT_THAT(processes.said(0), HasSubstr("rank 1 (process "));
}

// Of streams that stand still it is said where, for what they wait, and who writes that; and then
// they end.
TEST_F(ProgramGroup, AWatchedStandstillIsReported) {
  const ScopedVariable watch("TILEWRIGHT_WATCH", "0.1");
  Processes processes(1, [&](int, const Voice& voice) {
    prepare();
    const Ring ring(2, /*silent=*/0);
    try {
      compile(ring.program, "cuda").run(3);
    } catch (const Error& error) {
      voice.say(error.what());
    }
    voice.say(state().ended_queues_with_work == 0 ? " at rest" : " still waiting");
  });
  EXPECT_THAT(processes.said(0),
              AllOf(HasSubstr("program ring stands still: nothing has gone on for 0.1 s"),
                    HasSubstr("stream take of rank 1  "), HasSubstr("program_group_test.cpp"),
                    HasSubstr("waits for arrived of rank 1[0] >= 1, which is 0 (run 1)"),
                    HasSubstr("nothing writes arrived of rank 1"),
                    HasSubstr("waits for taken of rank 0[0] >= 1, which is 0 (run 2)"),
                    HasSubstr("taken of rank 0[0] is written by stream take of rank 1"),
                    HasSubstr(" at rest")));
}

TEST_F(ProgramGroup, AWatchOfNoTimeIsAnError) {
  Processes processes(1, [&](int, const Voice&) {
    prepare();
    const ScopedVariable watch("TILEWRIGHT_WATCH", "soon");
    compile(Ring(1).program, "cuda").run(1);
  });
  EXPECT_THAT(processes.said(0),
              AllOf(StartsWith("usage: "), HasSubstr("TILEWRIGHT_WATCH is \"soon\"")));
}

// What the driver refuses names the word and the program's line.
TEST_F(ProgramGroup, AWordThatTheDriverRefusesIsNamed) {
  Processes processes(1, [&](int, const Voice&) {
    prepare();
    const Ring ring(1);
    ProgramExecutable executable = compile(ring.program, "cuda");
    executable.load(memory_of(ring, 1));
    state().next_result = 1;
    executable.run(1);
  });
  EXPECT_THAT(processes.said(0),
              AllOf(HasSubstr("cuStreamBatchMemOp_v2: "), HasSubstr("wait for taken[0] at "),
                    HasSubstr("program_group_test.cpp")));
}

// A stream counts a word; another one copies once that compares so.
TEST_F(ProgramGroup, StreamsWaitForAComparison) {
  Processes processes(1, [&](int, const Voice& voice) {
    prepare();
    for (const auto& [compare, value] :
         {std::pair(Compare::eq, 2), {Compare::gt, 2}, {Compare::ge, 3}}) {
      Program program("compares");
      const Buffer x = program.buffer("x", i32, {1}), y = program.buffer("y", i32, {1});
      const Buffer word = program.signals("word", 2);
      const Stream counts = program.rank(0).stream("counts"),
                   waits = program.rank(0).stream("waits");
      for (int i = 1; i <= 3; ++i) {
        counts.write(word[0], i);
        // Else it might be past what is waited for before anybody looks.
        if (compare == Compare::eq && i == 2) counts.wait(word[1], 1);
      }
      waits.wait(word[0], compare, value);
      waits.copy(y, x);
      waits.write(word[1], 1);
      ProgramExecutable executable = compile(program, "cuda");
      ProgramMemory memory(program);
      memory.at(x).set_flat(0, 7);
      executable.load(memory);
      executable.run(1);
      executable.store(memory);
      voice.say(memory.at(y).flat(0) == 7 ? "right " : "wrong ");
    }
  });
  EXPECT_EQ(processes.said(0), "right right right ");
}

TEST_F(ProgramGroup, OtherProgramsAreNamed) {
  const FileRanks job;
  constexpr int kRanks = 3;
  Processes processes(kRanks, [&](int rank, const Voice&) {
    prepare();
    const Ring ring(kRanks, /*silent=*/rank == kRanks - 1 ? 1 : -1);
    build(ring, job.join(rank, kRanks)).run(1);
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    const int other = rank == kRanks - 1 ? 0 : kRanks - 1;
    EXPECT_THAT(processes.said(rank),
                AllOf(StartsWith("usage: "), HasSubstr("program_group_test.cpp"),
                      HasSubstr("program ring: rank " + std::to_string(other) +
                                " has recorded another one than rank " + std::to_string(rank)),
                      HasSubstr(fmt::format("rank {} has: ", other)), HasSubstr("write"),
                      HasSubstr("wait")));
  }
}

TEST_F(ProgramGroup, TwoRanksOfOneGpuAreAnError) {
  const FileRanks job;
  Processes processes(2, [&](int rank, const Voice&) {
    prepare();
    const Ring ring(2);
    compile(ring.program, "cuda", job.join(rank, 2));
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(processes.said(rank),
                AllOf(StartsWith("usage: "), HasSubstr("ranks 0 and 1 are on the same GPU, GPU-00"),
                      HasSubstr("rank_environment()->local_rank")));
  }
}

TEST_F(ProgramGroup, OtherSizesOfTheGroupAndOtherTargetsAreErrors) {
  const FileRanks job;
  Processes processes(1, [&](int, const Voice& voice) {
    prepare();
    const Ring ring(2);
    const Group group = job.join(0, 1);
    for (const char* target : {"cuda", "interpreter"}) {
      try {
        compile(ring.program, target, group);
      } catch (const Error& error) {
        voice.say(error.what());
      }
    }
  });
  EXPECT_THAT(processes.said(0), AllOf(HasSubstr("program ring has 2 ranks, and the group 1"),
                                       HasSubstr("a group runs programs on cuda")));
}

// The same on a caller's x and z, of any number of rows. `reached`: y is the caller's too.
struct PassedRing {
  explicit PassedRing(int ranks, bool reached = false) : program("passed_ring", ranks) {
    const Dim rows = program.dim("rows");
    const Buffer x = program.in("x", i32, {rows, kColumns});
    const Buffer y = reached ? program.inout("y", i32, {rows, kColumns})
                             : program.scratch("y", i32, {rows, kColumns});
    const Buffer z = program.out("z", i32, {rows, kColumns});
    const Buffer arrived = program.signals("arrived", 1), taken = program.signals("taken", 1);
    program.on_each_rank([&](const Rank& rank) {
      const Stream push = rank.stream("push"), take = rank.stream("take");
      push.wait(taken[0], program.run() - 1);
      push.copy(y.on(rank.next()), x);
      push.write(arrived.on(rank.next())[0], program.run());
      take.wait(arrived[0], program.run());
      take.copy(z, y);
      take.write(taken.on(rank.next(-1))[0], program.run());
    });
  }
  Program program;
};

// One rank of it, on tensors and a stream of its own.
class PassedRank {
 public:
  PassedRank(const PassedRing& ring, const Group& group)
      : rank_(group.rank()), ranks_(group.size()), stream_(runtime::Device::get(rank_)) {
    CompileOptions options;
    options.device = rank_;
    executable_.emplace(compile(ring.program, "cuda", group, options));
  }

  // `y`: of a ring in which others reach it.
  void queue(std::int64_t rows, int first, std::byte* y = nullptr) {
    x_ = HostTensor::zeros(i32, {rows, kColumns});
    z_ = HostTensor::poisoned(i32, {rows, kColumns});
    for (std::int64_t i = 0; i < x_.elements(); ++i) {
      x_.set_flat(i, static_cast<double>(first + 100 * rank_ + i));
    }
    std::vector<TensorRef> tensors = {ref(x_), ref(z_)};
    if (y != nullptr) tensors.insert(tensors.begin() + 1, {y, i32, {rows, kColumns}, {}});
    executable_->run_in_group(tensors, stream_.handle());
  }
  // What the rank before has queued with that number.
  bool has_come(int first) {
    executable_->synchronize();
    const int from = (rank_ + ranks_ - 1) % ranks_;
    for (std::int64_t i = 0; i < z_.elements(); ++i) {
      if (z_.flat(i) != static_cast<double>(first + 100 * from + i)) return false;
    }
    return true;
  }
  ProgramExecutable& executable() { return *executable_; }
  const HostTensor& x() const { return x_; }

 private:
  const int rank_, ranks_;
  const runtime::Stream stream_;
  HostTensor x_, z_;
  std::optional<ProgramExecutable> executable_;
};

TEST_F(ProgramGroup, OtherSizesAreShown) {
  const FileRanks job;
  Processes processes(2, [&](int rank, const Voice&) {
    prepare();
    PassedRank(PassedRing(2), job.join(rank, 2)).queue(/*rows=*/3 + rank, 0);
  });
  for (int rank = 0; rank < 2; ++rank) {
    const auto has = [](int of, int rows) {
      return HasSubstr(fmt::format("rank {} has: scratch \"y\": i32[{}, 5]", of, rows));
    };
    EXPECT_THAT(processes.said(rank), AllOf(StartsWith("usage: "), has(0, 3), has(1, 4)));
  }
}

TEST_F(ProgramGroup, RunsOnTheTensorsOfEachProcess) {
  constexpr int kRanks = 3;
  const FileRanks job;
  Processes processes(kRanks, [&](int rank, const Voice& voice) {
    prepare();
    const PassedRing ring(kRanks);
    PassedRank own(ring, job.join(rank, kRanks));
    int first = 0;
    for (const std::int64_t rows : {3, 3, 7, 7, 2, 3}) {
      own.queue(rows, first += 1000);
      voice.say(own.has_come(first) ? "right " : "wrong ");
    }
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(processes.said(rank), "right right right right right right ");
  }
}

// Each run finds its number where the one before has left it, also behind runs that the host
// counts.
TEST_F(ProgramGroup, RunsCountOnTheGpus) {
  constexpr int kRanks = 3;
  const FileRanks job;
  Processes processes(kRanks, [&](int rank, const Voice& voice) {
    prepare();
    test::play_kernels<test::counted_work>();
    const PassedRing ring(kRanks);
    PassedRank own(ring, job.join(rank, kRanks));
    int first = 0;
    const auto run = [&](std::int64_t rows) {
      own.queue(rows, first += 1000);
      voice.say(own.has_come(first) ? "right " : "wrong ");
    };
    run(3);
    run(3);
    state().capturing = 1;
    try {
      run(3);
    } catch (const Error& error) {
      voice.say(std::string(error.what()).find("counted by the host") != std::string::npos
                    ? "host "
                    : "other ");
    }
    state().capturing = 0;
    own.executable().count_on_gpus();
    for (const std::int64_t rows : {3, 3, 3, 7, 7}) run(rows);
    voice.say(state().word_calls > 0 ? "words" : "no words");
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(processes.said(rank), "right right host right right right right right words");
  }
}

TEST_F(ProgramGroup, ARankThatDiesAmongCallersRunsIsNamed) {
  const FileRanks job;
  Processes processes(2, [&](int rank, const Voice& voice) {
    prepare();
    const PassedRing ring(2);
    {
      PassedRank own(ring, job.join(rank, 2));
      own.queue(3, 1000);
      own.has_come(1000);
      if (rank == 1) raise(SIGKILL);
      try {
        own.queue(3, 2000);
        own.has_come(2000);
      } catch (const Error& error) {
        voice.say(error.what());
      }
      try {
        own.queue(3, 3000);
      } catch (const Error& error) {
        voice.say(std::string(" again: ") + error.what());
      }
    }
    voice.say(state().ended_queues_with_work == 0 ? " at rest" : " still waiting");
  });
  EXPECT_THAT(processes.said(0),
              AllOf(StartsWith("error: lost rank 1 (process "), HasSubstr("program passed_ring"),
                    HasSubstr(" again: error: lost rank 1"), HasSubstr(" at rest")));
}

// TMA and vectors need that of what is small, too.
int bytes_off = -1;
Work play_places(void** arguments) {
  bytes_off = 0;
  for (int i = 0; i < 2; ++i) {
    bytes_off += static_cast<int>(*static_cast<std::uintptr_t*>(arguments[i]) % 1024);
  }
  return [] {};
}

TEST_F(ProgramGroup, BuffersBeginAtWholeKibibytes) {
  const FileRanks job;
  Processes processes(1, [&](int, const Voice& voice) {
    prepare();
    test::play_kernels<play_places>();
    Kernel kernel("places");
    const Tensor a = kernel.inout("a", i32, {1}), b = kernel.inout("b", i32, {1});
    kernel.ctas(1);
    kernel.roles({role("only", warps(1), registers(40), [&] {
      atomic_add(a(0), Index(1));
      atomic_add(b(0), Index(1));
    })});
    Program program("places");
    const Buffer first = program.buffer("first", i32, {1}),
                 second = program.buffer("second", i32, {1});
    program.rank(0).stream().launch(kernel, {first, second});
    ProgramExecutable executable = compile(program, "cuda", job.join(0, 1));
    executable.load(ProgramMemory(program));
    executable.run(1);
    voice.say(std::to_string(bytes_off));
  });
  EXPECT_EQ(processes.said(0), "0");
}

TEST_F(ProgramGroup, WhatOtherRanksReachLiesInMemoryThatTheyShare) {
  const FileRanks job;
  Processes processes(2, [&](int rank, const Voice& voice) {
    prepare();
    const Group group = job.join(rank, 2);
    const PassedRing ring(2, true);
    PassedRank own(ring, group);
    const SymmetricArena arena(group, 4096, "y", SymmetricArena::Memory::gpu, rank);
    std::byte* const y = arena.at(rank);
    std::vector<std::byte> alone(4096);
    int first = 0;
    const auto run = [&](std::int64_t rows, std::byte* place) {
      try {
        own.queue(rows, first += 1000, place);
        voice.say(own.has_come(first) ? "right\n" : "wrong\n");
      } catch (const Error& error) {
        voice.say(error.what());
      }
    };
    run(3, y);
    run(3, y);
    run(3, y + 1024);              // of the same sizes, elsewhere
    run(7, y + 256);               // of others
    run(7, y + 256 * (1 + rank));  // not where the other has it
    run(7, rank == 0 ? alone.data() : y);
    run(7, y + 4096 - 7 * kColumns * 4);
    run(7, y + 4096 - 7 * kColumns * 4 + 4);  // beyond its end
    run(7, y);
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = processes.said(rank);
    EXPECT_THAT(said, StartsWith("right\nright\nright\nright\n"));
    EXPECT_THAT(said, HasSubstr("program_group_test.cpp:"));
    EXPECT_THAT(said, HasSubstr("program passed_ring: this copy reaches y of other ranks: "));
    EXPECT_THAT(said, testing::EndsWith("right\n"));
    EXPECT_THAT(said, testing::Not(HasSubstr("wrong")));
    EXPECT_THAT(
        said,
        HasSubstr(rank == 0 ? "rank 1 passes it at byte 512 of y (arena 0), rank 0 at byte 256 "
                            : "rank 0 passes it at byte 256 of y (arena 0), rank 1 at byte 512 "));
    EXPECT_THAT(said, HasSubstr("rank 0 passes a tensor that lies in no memory that they share"));
  }
}

TEST_F(ProgramGroup, WhatOtherRanksReachIsNoCallers) {
  const FileRanks job;
  Processes processes(2, [&](int rank, const Voice& voice) {
    prepare();
    const Group group = job.join(rank, 2);
    const auto tell = [&](const auto& action) {
      try {
        action();
      } catch (const Error& error) {
        voice.say(error.what());
      }
    };
    const PassedRing reached(2, true), ring(2);
    PassedRank wrong(reached, group), own(ring, group);
    std::vector<std::byte> alone(3 * kColumns * 4);
    tell([&] { wrong.queue(3, 0, alone.data()); });
    own.queue(3, 0);
    tell([&] { own.executable().run_on_gpus({}); });
    HostTensor x = own.x();
    tell([&] { own.executable().run_in_group({ref(x)}); });
    state().capturing = 1;
    tell([&] { own.queue(3, 0); });
    state().capturing = 0;
    own.queue(3, 0);
    own.has_come(0);
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(
        processes.said(rank),
        AllOf(HasSubstr("program passed_ring: this copy reaches y of other ranks"),
              HasSubstr("program_group_test.cpp"), HasSubstr("fix: pass a tensor in memory"),
              HasSubstr("its runs are counted by the host, and the stream is being captured"),
              HasSubstr("run_in_group(), which takes the tensors of this process's rank"),
              HasSubstr("program passed_ring takes 2 tensors of a rank's, and 1 is given"),
              HasSubstr("pass this rank's x, z")));
  }
}

}  // namespace
}  // namespace tilewright
