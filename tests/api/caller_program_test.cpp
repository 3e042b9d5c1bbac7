#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "common/error_text.h"
#include "common/programs.h"
#include "runtime/device.h"
#include "runtime/fake_driver.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/program.h"

// Programs on the tensors and the stream of a caller.
namespace tilewright {
namespace {

using test::add;
using test::kColumns;
using test::kRows;
using test::scale;
using testing::AllOf;
using testing::HasSubstr;

// y = factor x + x, by way of scratch and of zeros.
struct Called {
  Called() : program("called") {
    const Dim rows = program.dim("rows");
    const RunNumber factor = program.scalar("factor", f32);
    const Buffer x = program.in("x", f32, {rows, kColumns});
    const Buffer y = program.out("y", f32, {rows, kColumns});
    const Buffer scaled = program.scratch("scaled", f32, {rows, kColumns});
    const Buffer sum = program.zeroed("sum", f32, {rows, kColumns});
    const Stream stream = program.rank(0).stream();
    stream.launch(scale(), {x, scaled}, {factor});
    stream.launch(add(), {scaled, sum});
    stream.launch(add(), {x, sum});
    stream.copy(y, sum);
  }
  Program program;
};

class CalledTargets : public testing::TestWithParam<const char*> {};

TEST_P(CalledTargets, OfAllLengthsOnHostTensors) {
  const ProgramExecutable executable = compile(Called().program, GetParam());
  for (const std::int64_t rows : {0, 1, 40}) {
    HostTensor x = HostTensor::random_normal(f32, {rows, kColumns}, 3);
    HostTensor y = HostTensor::poisoned(f32, {rows, kColumns});
    executable.run({ref(x), ref(y)}, {2});
    executable.run({ref(x), ref(y)}, {4});
    for (std::int64_t i = 0; i < rows * kColumns; ++i) {
      ASSERT_NEAR(y.flat(i), 5 * x.flat(i), 1e-5 * (1 + std::abs(x.flat(i)))) << rows << " " << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Targets, CalledTargets,
                         testing::Values("interpreter", "sim:sm_90a", "passes:sm_90a"));

TEST(CallerProgram, RowsThatAreApart) {
  const ProgramExecutable executable = compile(Called().program, "interpreter");
  HostTensor x = HostTensor::random_normal(f32, {5, 64}, 3);
  HostTensor y = HostTensor::poisoned(f32, {5, kColumns});
  executable.run({{x.data(), f32, {5, kColumns}, {64, 1}}, ref(y)}, {1});
  EXPECT_FLOAT_EQ(static_cast<float>(y.at({4, 7})), static_cast<float>(2 * x.at({4, 7})));
}

TEST(CallerProgram, ScalarsByTheirNames) {
  Program program("named");
  const RunNumber first = program.scalar("first", f32), second = program.scalar("second", f32);
  const Dim rows = program.dim("rows");
  const Buffer x = program.in("x", f32, {rows, kColumns});
  const Stream stream = program.rank(0).stream();
  stream.launch(scale(), {x, program.out("y", f32, {rows, kColumns})}, {second});
  stream.launch(scale(), {x, program.out("z", f32, {rows, kColumns})}, {first});
  HostTensor from = HostTensor::random_normal(f32, {5, kColumns}, 3);
  HostTensor y = HostTensor::poisoned(f32, {5, kColumns}), z = y;
  compile(program, "interpreter").run({ref(from), ref(y), ref(z)}, {2, 8});
  EXPECT_EQ(y.at({4, 7}), 8 * from.at({4, 7}));
  EXPECT_EQ(z.at({4, 7}), 2 * from.at({4, 7}));
}

// Of the caller's tensors none lies in one that is written, whichever kernel writes it.
TEST(CallerProgram, TensorsLieApart) {
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    const ProgramExecutable executable = compile(Called().program, target);
    HostTensor both = HostTensor::zeros(f32, {10, kColumns});
    const auto part = [&](std::int64_t row) {
      return TensorRef{
          static_cast<std::byte*>(both.data()) + row * kColumns * 4, f32, {5, kColumns}, {}};
    };
    executable.run({part(0), part(5)}, {2});
    EXPECT_THAT(test::usage_error_of([&] {
                  executable.run({part(0), part(4)}, {2});
                }),
                AllOf(HasSubstr("tensor y is stored to, and tensor x lies in the same memory"),
                      HasSubstr("caller_program_test.cpp")))
        << target;
  }
}

TEST(CallerProgram, AnInputThatAKernelAddsTo) {
  EXPECT_THAT(test::usage_error_of([] {
                Program program("adds");
                const Buffer x = program.in("x", f32, {8, kColumns});
                const Buffer sum = program.in("sum", f32, {8, kColumns});
                program.rank(0).stream().launch(add(), {x, sum});
                program.finish();
              }),
              HasSubstr("sum is passed to be read, and"));
}

// A copy by TMA, which a launch on a GPU refuses for this tensor in the same words.
TEST(CallerProgram, TensorsThatTmaCannotCopy) {
  Kernel copy("copy");
  const Tensor X = copy.in("X", bf16, {64, 64}), Y = copy.out("Y", bf16, {64, 64});
  copy.ctas(1);
  SharedTile tile(copy, "tile", bf16, 64, 64);
  copy.roles({role("copy", warpgroups(1), registers(64), [&] {
    store(tile, load(X(all, all)));
    fence_proxy_async();
    NamedBarrier(copy, 128).sync();
    tma_store(Y(Dim(64).block(warp_index(), 16), all), tile.rows(16 * warp_index(), 16));
    bulk_commit();
    bulk_wait(0);
  })});
  Program program("copies");
  const Buffer x = program.in("x", bf16, {64, 64}), y = program.out("y", bf16, {64, 64});
  program.rank(0).stream().launch(copy, {x, y});
  const ProgramExecutable executable = compile(program, "sim:sm_90a");
  HostTensor from = HostTensor::random_normal(bf16, {64, 64}, 1);
  HostTensor to = HostTensor::poisoned(bf16, {64, 68});
  EXPECT_THAT(
      test::usage_error_of([&] {
        executable.run({ref(from), {to.data(), bf16, {64, 64}, {68, 1}}});
      }),
      AllOf(HasSubstr("caller_program_test.cpp"), HasSubstr("the stride of axis 0 is 68 elements"),
            HasSubstr("fix: pad axis 1 to 72 elements")));
  executable.run({ref(from), {to.data(), bf16, {64, 64}, {64, 1}}});
  EXPECT_EQ(to.flat(63 * 64 + 63), from.at({63, 63}));
}

TEST(CallerProgram, KernelsWithAWorkspace) {
  Kernel counts("counts");
  const Tensor Y = counts.out("Y", f32, {64, 64}), word = counts.workspace("word", 1);
  counts.ctas(1);
  counts.roles({role("math", warpgroups(1), registers(64), [&] {
    store(Y(all, all), full({64, 64}, 3));
    when(warp_index() == 0, [&] {
      atomic_add(word(0), 1);
      atomic_add(word(0), -1);
    });
  })});
  Program program("p");
  program.rank(0).stream().launch(counts, {program.out("y", f32, {64, 64})});
  for (const char* target : {"sim:sm_90a", "passes:sm_90a"}) {
    HostTensor y = HostTensor::poisoned(f32, {64, 64});
    compile(program, target).run({ref(y)});
    EXPECT_EQ(y.at({63, 63}), 3) << target;
  }
}

// C++ takes the braces for a number of runs.
TEST(CallerProgram, NoTensors) {
  ProgramExecutable executable = compile(Called().program, "interpreter");
  EXPECT_THAT(test::usage_error_of([&] { executable.run({}); }),
              AllOf(HasSubstr("caller_program_test.cpp"), HasSubstr("0 runs, which run({}) asks"),
                    HasSubstr("fix: pass the tensors")));
}

TEST(CallerProgram, TensorsThatDoNotFit) {
  const ProgramExecutable executable = compile(Called().program, "interpreter");
  HostTensor x = HostTensor::zeros(f32, {5, kColumns}), y = HostTensor::zeros(f32, {4, kColumns});
  const auto refused = [&](const std::vector<TensorRef>& tensors,
                           const std::vector<double>& scalars) {
    return test::usage_error_of([&] { executable.run(tensors, scalars); });
  };
  EXPECT_THAT(refused({ref(x), ref(y)}, {1}),
              HasSubstr("the dim rows is 5 by axis 0 of x, but 4 by axis 0 of y"));
  EXPECT_THAT(refused({ref(x)}, {1}), HasSubstr("y is missing"));
  EXPECT_THAT(refused({ref(x), ref(x)}, {}), HasSubstr("takes 1 scalar, and the launch gives 0"));
  EXPECT_THAT(refused({{nullptr, f32, {5, kColumns}, {}}, ref(x)}, {1}), HasSubstr("is null"));
}

TEST(CallerProgram, ProgramsThatHangOnMoreThanACaller) {
  const auto refused = [](const Program& program) {
    return test::usage_error_of([&] { compile(program, "interpreter"); });
  };
  EXPECT_THAT(refused(test::TwoKernels("first", false).program),
              HasSubstr("a scalar depends on the number of the run"));
  // Nor do the ranks of a host count: each run would be the first one.
  Program counted("counted", 2);
  const Buffer x = counted.in("x", f32, {kRows, kColumns});
  const Buffer z = counted.out("z", f32, {kRows, kColumns});
  counted.on_each_rank([&](const Rank& rank) {
    rank.stream().launch(test::scale(), {x, z}, {counted.run()});
  });
  EXPECT_THAT(refused(counted), HasSubstr("a scalar depends on the number of the run"));
  Program nothing("nothing");
  nothing.out("y", f32, {4});
  EXPECT_THAT(refused(nothing), HasSubstr("nothing writes the output y"));
}

// y = 2 x of the next rank, which a stream of its own copies once that has made it.
struct Exchanged {
  explicit Exchanged(bool tells = true, int ranks = 3) : program("exchanged", ranks) {
    const Buffer x = program.in("x", f32, {kRows, kColumns});
    const Buffer y = program.out("y", f32, {kRows, kColumns});
    const Buffer scaled = program.scratch("scaled", f32, {kRows, kColumns});
    const Buffer made = program.signals("made", 1);
    program.on_each_rank([&](const Rank& rank) {
      // Recorded first, so that it waits for what comes behind it.
      const Stream pull = rank.stream("pull"), main = rank.stream();
      pull.wait(made[0], program.run());
      pull.copy(y, scaled.on(rank.next()));
      main.launch(scale(), {x, scaled}, {2});
      if (tells) main.write(made.on(rank.next(-1))[0], program.run());
    });
  }
  Program program;
};

// One rank has streams and words as each of several has them.
TEST(CallerProgram, StreamsAndWordsOfOneRankOnTheHost) {
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a", "passes:sm_90a"}) {
    SCOPED_TRACE(target);
    const HostTensor x = HostTensor::random_normal(f32, {kRows, kColumns}, 5);
    const ProgramExecutable executable = compile(Exchanged(true, 1).program, target);
    for (int run = 0; run < 2; ++run) {
      HostTensor given = x, y = HostTensor::poisoned(f32, {kRows, kColumns});
      executable.run({ref(given), ref(y)});
      for (std::int64_t i = 0; i < x.elements(); ++i) ASSERT_EQ(y.flat(i), 2 * x.flat(i));
    }
  }
}

TEST(CallerProgram, SeveralRanksOnTheHost) {
  for (const char* target : {"interpreter", "sim:sm_90a", "passes:sm_90a"}) {
    SCOPED_TRACE(target);
    std::vector<HostTensor> tensors;
    for (int rank = 0; rank < 3; ++rank) {
      tensors.push_back(HostTensor::random_normal(f32, {kRows, kColumns}, 5 + rank));
      tensors.push_back(HostTensor::poisoned(f32, {kRows, kColumns}));
    }
    std::vector<TensorRef> refs;
    for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
    const ProgramExecutable executable = compile(Exchanged().program, target);
    for (int run = 0; run < 2; ++run) executable.run(refs);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const HostTensor &x = tensors[2 * ((rank + 1) % 3)], &y = tensors[2 * rank + 1];
      for (std::int64_t i = 0; i < x.elements(); ++i) ASSERT_EQ(y.flat(i), 2 * x.flat(i)) << rank;
    }
    // Memory of its own for the longer strides, so that nothing else lies between them.
    HostTensor wide = HostTensor::zeros(f32, {kRows, 64});
    refs[2].data = ref(wide).data;
    refs[2].strides = {64, 1};
    EXPECT_THAT(test::usage_error_of([&] { executable.run(refs); }),
                HasSubstr("x of rank 1 has strides {64, 1}, and x of rank 0 has {32, 1}"));
  }
}

TEST(CallerProgram, AWaitThatNothingEndsOnTheInterpreter) {
  std::vector<HostTensor> tensors(6, HostTensor::zeros(f32, {kRows, kColumns}));
  std::vector<TensorRef> refs;
  for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
  const ProgramExecutable executable = compile(Exchanged(false).program, "interpreter");
  EXPECT_THAT(test::usage_error_of([&] { executable.run(refs); }),
              HasSubstr("stream pull of rank 0 waits for what no other stream does"));
}

// Of GPUs a caller gives the tensors and a stream of each.
TEST(CallerProgram, SeveralRanksOnOneStream) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const ProgramExecutable executable = compile(Exchanged().program, "sm_90a");
  EXPECT_THAT(test::usage_error_of([&] { executable.run({}); }),
              AllOf(HasSubstr("it has 3 ranks"), HasSubstr("run_on_gpus()")));
}

TEST(CallerProgram, IsNotRunWhereTheTargetOnlyBuilds) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const ProgramExecutable executable = compile(Called().program, "sm_90a");
  HostTensor x = HostTensor::zeros(f32, {5, kColumns}), y = HostTensor::zeros(f32, {5, kColumns});
  try {
    executable.run({ref(x), ref(y)}, {1});
    FAIL() << "it runs";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_THAT(test::without_source_lines(error.what()),
                HasSubstr("program called is built for sm_90a, which is not tied"));
  }
}

// On a driver that executes nothing: what is allocated, and when.
class CallerProgramOnFake : public runtime::FakeDriverTest {
 protected:
  void SetUp() override {
    state_->max_threads = 1024;
    if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  }
  static std::vector<TensorRef> tensors(std::int64_t rows) {
    static HostTensor x = HostTensor::zeros(f32, {4096, kColumns}), y = x;
    return {{x.data(), f32, {rows, kColumns}, {}}, {y.data(), f32, {rows, kColumns}, {}}};
  }
};

TEST_F(CallerProgramOnFake, ScratchIsThereOnceForAStreamAndSize) {
  char stream = 0, other = 0;
  {
    const ProgramExecutable executable = compile(Called().program, "cuda");
    const auto run = [&](std::int64_t rows, void* on) { executable.run(tensors(rows), {2}, on); };
    run(64, &stream);
    EXPECT_EQ(state_->allocations, 1);
    EXPECT_EQ(state_->launches, 3);
    EXPECT_EQ(state_->memsets, 1);
    EXPECT_EQ(state_->copies, 1);
    run(64, &stream);
    run(10, &stream);  // less has room in it
    EXPECT_EQ(state_->allocations, 1);
    run(4096, &stream);
    run(64, &other);
    EXPECT_EQ(state_->allocations, 3);
    run(4000, &stream);
    EXPECT_EQ(state_->allocations, 3);
  }
  EXPECT_EQ(state_->live_allocations, 0);
}

// What ranks keep from run to run stays while the sizes do. Here there is one of them.
TEST_F(CallerProgramOnFake, RunsOnGpusAllocateForNewSizesAlone) {
  char stream = 0;
  {
    ProgramExecutable executable = compile(Called().program, "cuda");
    executable.run_on_gpus(tensors(64), {&stream}, {2});
    EXPECT_EQ(state_->launches, 3);
    EXPECT_EQ(state_->copies, 1);
    const int allocations = state_->allocations;
    executable.run_on_gpus(tensors(64), {}, {2});
    EXPECT_EQ(state_->launches, 6);
    EXPECT_EQ(state_->allocations, allocations);
    executable.run_on_gpus(tensors(10), {&stream}, {2});
    EXPECT_GT(state_->allocations, allocations);
    const std::string refused = test::usage_error_of([&] {
      executable.run_on_gpus(tensors(10), {&stream, &stream}, {2});
    });
    EXPECT_THAT(refused, HasSubstr("2 streams for 1 rank"));
  }
  EXPECT_EQ(state_->live_allocations, 0);
}

// A counter of tiles, which comes behind all buffers of the program: a caller passes none.
// New sizes take the memory that a run before may still use.
TEST_F(CallerProgramOnFake, NewSizesWaitForTheRunBefore) {
  static std::atomic<bool> goes_on;
  goes_on = false;
  state_->has_queues = 1;
  state_->takes = [](void**) -> void* { return &goes_on; };
  state_->executes_taken = [](void*) {
    while (!goes_on) std::this_thread::yield();
  };
  const runtime::Stream caller(runtime::Device::get(0));
  ProgramExecutable executable = compile(Called().program, "cuda");
  executable.run_on_gpus(tensors(64), {caller.handle()}, {2});
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    goes_on = true;
  });
  executable.run_on_gpus(tensors(10), {caller.handle()}, {2});
  EXPECT_TRUE(goes_on);
  later.join();
  executable.synchronize();
}

TEST_F(CallerProgramOnFake, ACaptureOfRunsOnGpusNeedsOneOfItsSizesBefore) {
  char stream = 0;
  ProgramExecutable executable = compile(Called().program, "cuda");
  const auto refused = [&](std::int64_t rows) {
    return test::usage_error_of([&] { executable.run_on_gpus(tensors(rows), {&stream}, {2}); });
  };
  state_->capturing = 1;
  EXPECT_THAT(refused(64), HasSubstr("its runs are counted by the host, and the stream is being"));
  executable.count_on_gpus();
  EXPECT_THAT(refused(64), HasSubstr("a first run of these sizes needs memory"));
  state_->capturing = 0;
  executable.run_on_gpus(tensors(64), {&stream}, {2});
  const int allocations = state_->allocations;
  state_->capturing = 1;
  executable.run_on_gpus(tensors(64), {&stream}, {2});
  EXPECT_THAT(refused(10), HasSubstr("a first run of these sizes needs memory"));
  EXPECT_EQ(state_->allocations, allocations);
}

TEST_F(CallerProgramOnFake, RunsOnGpusOfACounterOfTheSchedulesOwn) {
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 64;
  a.causal = true;
  a.dtype = bf16;
  const std::vector<std::int64_t> shape = {1, 200, 1, 64};
  Program program("counted");
  const Buffer q = program.in("q", bf16, {1, 200, 1, 64}),
               k = program.in("k", bf16, {1, 200, 1, 64});
  const Buffer v = program.in("v", bf16, {1, 200, 1, 64}),
               o = program.out("o", bf16, {1, 200, 1, 64});
  const Buffer lse = program.out("lse", f32, {1, 1, 200});
  program.rank(0).stream().launch(kernels::attention_forward(a), {q, k, v, o, lse});
  HostTensor Q = HostTensor::zeros(bf16, shape), K = Q, V = Q, O = Q;
  HostTensor LSE = HostTensor::zeros(f32, {1, 1, 200});
  ProgramExecutable executable = compile(program, "cuda");
  executable.run_on_gpus({ref(Q), ref(K), ref(V), ref(O), ref(LSE)});
  EXPECT_EQ(state_->launches, 1);
}

TEST_F(CallerProgramOnFake, RunsOnGpusOfSeveralStreams) {
  HostTensor x = HostTensor::zeros(f32, {kRows, kColumns}), y = x, z = x;
  ProgramExecutable executable = compile(test::TwoKernels("second", true).program, "cuda");
  for (int run = 0; run < 2; ++run) executable.run_on_gpus({ref(x), ref(y), ref(z)});
  EXPECT_EQ(state_->launches, 4);
  EXPECT_NE(state_->arguments, nullptr);
}

// A run's number, which signals carry, is one more than that of the run before.
TEST_F(CallerProgramOnFake, RunsOnGpusAreCounted) {
  Program program("counted");
  const Buffer x = program.in("x", f32, {kRows, kColumns});
  const Buffer y = program.out("y", f32, {kRows, kColumns});
  const Buffer made = program.signals("made", 1);
  const Stream first = program.rank(0).stream("first"), second = program.rank(0).stream("second");
  first.copy(y, x);
  first.write(made[0], program.run());
  second.wait(made[0], program.run());
  HostTensor given = HostTensor::zeros(f32, {kRows, kColumns}), made_of = given;
  ProgramExecutable executable = compile(program, "cuda");
  for (const unsigned run : {1u, 2u, 3u}) {
    executable.run_on_gpus({ref(given), ref(made_of)});
    EXPECT_EQ(state_->last_word, run);
  }
  EXPECT_THAT(test::usage_error_of([&] {
                executable.run({ref(given), ref(made_of)});
              }),
              HasSubstr("it has a second stream, and a caller gives one"));
}

TEST_F(CallerProgramOnFake, WordsOfOneRankAreRefused) {
  Program program("told");
  const Buffer x = program.in("x", f32, {kRows, kColumns});
  const Buffer y = program.out("y", f32, {kRows, kColumns});
  const Buffer made = program.signals("made", 1);
  const Stream stream = program.rank(0).stream();
  stream.copy(y, x);
  stream.write(made[0], program.run());
  HostTensor given = HostTensor::zeros(f32, {kRows, kColumns}), made_of = given;
  const ProgramExecutable executable = compile(program, "cuda");
  EXPECT_THAT(test::usage_error_of([&] {
                executable.run({ref(given), ref(made_of)});
              }),
              HasSubstr("the signals made count its runs"));
}

// Without a kernel.
TEST_F(CallerProgramOnFake, CopiesAlone) {
  Program program("copies");
  const Buffer x = program.in("x", f32, {kRows, kColumns});
  const Buffer y = program.out("y", f32, {kRows, kColumns});
  program.rank(0).stream().copy(y, x);
  HostTensor from = HostTensor::zeros(f32, {kRows, kColumns}), to = from;
  const ProgramExecutable executable = compile(program, "cuda");
  executable.prepare({ref(from), ref(to)});
  EXPECT_EQ(state_->copies, 0);
  executable.run({ref(from), ref(to)});
  EXPECT_EQ(state_->copies, 1);
}

// The tensors of a run before are no part of it.
TEST_F(CallerProgramOnFake, LoadedMemoryIsRunBehindCallersTensors) {
  Program program("copies", 2);
  const Dim rows = program.dim("rows", at_most(64));
  const Buffer x = program.in("x", f32, {rows, kColumns});
  const Buffer y = program.out("y", f32, {rows, kColumns});
  program.on_each_rank([&](const Rank& rank) { rank.stream().copy(y, x); });
  ProgramExecutable executable = compile(program, "cuda");
  std::vector<HostTensor> all(4, HostTensor::zeros(f32, {5, kColumns}));
  executable.run_on_gpus({ref(all[0]), ref(all[1]), ref(all[2]), ref(all[3])});
  const ProgramMemory memory(program, {{"rows", 8}});
  executable.load(memory);
  const int copies = state_->copies;
  executable.run(3);
  EXPECT_EQ(state_->copies, copies + 6);
}

// The driver would let both ranks' copies take turns there.
// What was loaded last says what the runs do.
TEST_F(CallerProgramOnFake, LoadedMemoryIsReadAgain) {
  Program program("copies");
  const Buffer x = program.in("x", f32, {kRows, kColumns}), times = program.in("times", i32, {1});
  const Buffer y = program.out("y", f32, {kRows, kColumns});
  const Stream stream = program.rank(0).stream();
  program.repeat("i", min(program.read("n", times, {0}), kRows),
                 [&](const Dim& i) { stream.copy(y.rows(i, 1), x.rows(i, 1)); });
  ProgramExecutable executable = compile(program, "cuda");
  ProgramMemory memory(program);
  for (const int count : {3, 5}) {
    memory.at(times) = HostTensor::from_values(i32, {1}, {static_cast<double>(count)});
    executable.load(memory);
    const int copies = state_->copies;
    executable.run(1);
    EXPECT_EQ(state_->copies, copies + count);
  }
}

TEST_F(CallerProgramOnFake, LoadedMemoryBeginsWithTheFirstRun) {
  Program program("counted");
  const Buffer made = program.signals("made", 1);
  const Buffer x = program.in("x", f32, {kRows, kColumns});
  program.rank(0).stream().write(made[0], program.run());
  ProgramExecutable executable = compile(program, "cuda");
  const ProgramMemory memory(program);
  for (const unsigned runs : {2u, 1u}) {
    executable.load(memory);
    executable.run(static_cast<int>(runs));
    EXPECT_EQ(state_->last_word, runs);
  }
}

TEST_F(CallerProgramOnFake, CopiesBetweenGpusAreNotInTheDefaultStream) {
  Program program("exchange", 2);
  const Buffer x = program.in("x", f32, {kRows, kColumns});
  const Buffer y = program.out("y", f32, {kRows, kColumns});
  program.on_each_rank([&](const Rank& rank) { rank.stream().copy(y.on(rank.next(1)), x); });
  std::vector<HostTensor> all(4, HostTensor::zeros(f32, {kRows, kColumns}));
  const std::vector<TensorRef> tensors = {ref(all[0]), ref(all[1]), ref(all[2]), ref(all[3])};
  ProgramExecutable executable = compile(program, "cuda");
  executable.run_on_gpus(tensors);
  EXPECT_EQ(state_->copies, 2);
  EXPECT_EQ(state_->copies_on_default, 0);
  std::vector<TensorRef> gone = tensors;
  gone.back().data = nullptr;
  EXPECT_THAT(test::usage_error_of([&] { executable.run_on_gpus(gone); }),
              HasSubstr("has no data: its address is null"));
}

// Two sums that begin as zeros, each used behind another launch, and one that is written first.
Program sums_from_zero(std::int64_t rows) {
  Program program("sums");
  const Buffer x = program.in("x", f32, {rows, kColumns}),
               y = program.out("y", f32, {rows, kColumns});
  const Buffer first = program.zeroed("first", f32, {rows, kColumns});
  const Buffer second = program.zeroed("second", f32, {rows, kColumns});
  const Buffer again = program.scratch("again", f32, {rows, kColumns});
  const Stream stream = program.rank(0).stream();
  stream.launch(add(), {x, first});
  stream.copy(again, first);
  stream.zero(again);
  stream.launch(add(), {first, second});
  stream.launch(add(), {second, again});
  stream.copy(y, again);
  return program;
}

TEST_F(CallerProgramOnFake, SmallBuffersAreSetToZeroTogether) {
  char stream = 0;
  const ProgramExecutable small = compile(sums_from_zero(64), "cuda");
  small.run(tensors(64), {}, &stream);
  EXPECT_EQ(state_->memsets, 2) << "of what is written before, in its place";
  // Of more than 16 MB each has a call of its own.
  const std::int64_t rows = (20 << 20) / (4 * kColumns);
  HostTensor x = HostTensor::zeros(f32, {rows, kColumns}), y = x;
  const ProgramExecutable large = compile(sums_from_zero(rows), "cuda");
  state_->memsets = 0;
  large.run({ref(x), ref(y)}, {}, &stream);
  EXPECT_EQ(state_->memsets, 3);
}

std::vector<std::byte*> addresses_of_sums;

std::vector<float> values_of_sums;  // that each launch finds in its second tensor, one of each

int note_sums(void** arguments) {
  values_of_sums.push_back(**static_cast<float**>(arguments[2]));
  **static_cast<float**>(arguments[2]) = 7;
  return 0;
}

TEST_F(CallerProgramOnFake, EachRunBeginsWithZeros) {
  char stream = 0;
  const ProgramExecutable executable = compile(sums_from_zero(64), "cuda");
  values_of_sums.clear();
  state_->executes = note_sums;
  for (int i = 0; i < 2; ++i) executable.run(tensors(64), {}, &stream);
  state_->executes = nullptr;
  EXPECT_THAT(values_of_sums, testing::ElementsAre(0, 0, 0, 0, 0, 0));
}

// Of a kernel of two tensors, each with a stride behind it.
int note_addresses(void** arguments) {
  for (const int i : {0, 2}) {
    addresses_of_sums.push_back(*static_cast<std::byte**>(arguments[i]));
  }
  return 0;
}

TEST_F(CallerProgramOnFake, BuffersLieApart) {
  char stream = 0;
  const ProgramExecutable executable = compile(Called().program, "cuda");
  addresses_of_sums.clear();
  state_->executes = note_addresses;
  executable.run(tensors(3), {2}, &stream);
  state_->executes = nullptr;
  // The second launch adds what one buffer holds to the other.
  ASSERT_EQ(addresses_of_sums.size(), 6u);
  const std::ptrdiff_t apart = std::abs(addresses_of_sums[3] - addresses_of_sums[2]);
  EXPECT_GE(apart, 3 * kColumns * 4);
  EXPECT_EQ(apart % 256, 0);
}

TEST_F(CallerProgramOnFake, ACaptureNeedsARunOrPrepareBefore) {
  char stream = 0;
  const ProgramExecutable executable = compile(Called().program, "cuda");
  state_->capturing = 1;
  EXPECT_THAT(test::usage_error_of([&] { executable.run(tensors(64), {2}, &stream); }),
              AllOf(HasSubstr("called: the run needs"), HasSubstr("captured in a CUDA graph"),
                    HasSubstr("or call prepare")));
  EXPECT_EQ(state_->allocations, 0);
  state_->capturing = 0;
  executable.prepare(tensors(64), {2}, &stream);
  EXPECT_EQ(state_->launches, 0);
  state_->capturing = 1;
  executable.run(tensors(64), {2}, &stream);
  EXPECT_EQ(state_->launches, 3);
  EXPECT_EQ(state_->allocations, 1);
}

}  // namespace
}  // namespace tilewright
