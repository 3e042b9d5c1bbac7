#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

#include "common/processes.h"
#include "common/programs.h"
#include "compiler/build.h"
#include "processes/counted_kernels.h"
#include "runtime/device.h"
#include "runtime/runtime_test.h"
#include "tilewright/asynchronous.h"
#include "tilewright/kernels/attention_ranks.h"
#include "tilewright/kernels/gemm_ranks.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// What the launches of a program's runs are told: by the host, and where the GPUs count the runs.
namespace tilewright {
namespace {

using codegen::LaunchParameter;
using runtime::ScopedVariable;
using test::Processes;
using test::Voice;
using test::Work;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// More numbers than one CTA counts.
constexpr int kWords = 130;

// Hangs on its epoch and on a number.
Kernel told_kernel() {
  Kernel kernel("told");
  const Index turn = kernel.epoch();
  const Tensor sum = kernel.inout("sum", i32, {1});
  const Scalar number = kernel.scalar("number", i32);
  kernel.signals("own", 1);
  kernel.ctas(1);
  kernel.roles({role("only", warps(1), registers(40), [&] {
    atomic_add(sum(0), turn);
    atomic_add(sum(0), number);
  })});
  return kernel;
}

// Which parameters of the kernel these are; the epoch's word is where else the epoch is.
struct ToldParameters {
  ToldParameters() {
    const compiler::GpuProgram program = compiler::translate(told_kernel().finish(), "sm_90a");
    const auto& all = program.source.parameters;
    const auto place = [&all](LaunchParameter::Kind kind) {
      const auto found = std::find_if(all.begin(), all.end(),
                                      [kind](const auto& each) { return each.kind == kind; });
      return static_cast<std::size_t>(found - all.begin());
    };
    epoch = place(LaunchParameter::Kind::epoch);
    scalar = place(LaunchParameter::Kind::scalar);
  }
  std::size_t epoch = 0, scalar = 0;
};

std::optional<ToldParameters> parameters;
bool finds_epochs = false;  // in memory
std::string told;           // "epoch:number " of each launch, in their order

// Of one stream, so that `told` is one thread's.
Work play_told(void** arguments) {
  if (std::string(test::fake_cuda_state().launched) != "told") {
    return test::counted_work(arguments);
  }
  const void* const epoch = arguments[parameters->epoch];
  const auto number = *static_cast<const std::int32_t*>(arguments[parameters->scalar]);
  if (finds_epochs) {
    const auto* const word = *static_cast<const std::int32_t* const*>(epoch);
    return [=] { told += fmt::format("{}:{} ", *word, number); };
  }
  const auto value = *static_cast<const std::int32_t*>(epoch);
  return [=] { told += fmt::format("{}:{} ", value, number); };
}

// Each run writes the words and launches the kernel twice.
struct Told {
  explicit Told(const std::function<RunNumber(const Program&)>& number) : program("told_runs") {
    const Buffer sum = program.out("sum", i32, {1}), words = program.signals("words", kWords);
    const Kernel kernel = told_kernel();
    const Stream stream = program.rank(0).stream();
    for (int i = 0; i < kWords; ++i) stream.write(words[i], program.run());
    for (int i = 0; i < 2; ++i) stream.launch(kernel, {sum}, {number(program)});
  }
  Program program;
};

class CountedRuns : public testing::Test {
 private:
  const ScopedVariable driver_{"TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA};
};

// What is said by a process that runs it three times, of which the GPUs count two.
std::string said_of(const std::function<RunNumber(const Program&)>& number) {
  Processes processes(1, [&](int, const Voice& voice) {
    test::fake_cuda_state().device_count = 1;
    test::fake_cuda_state().has_queues = 1;
    test::play_kernels<play_told>();
    parameters.emplace();
    const Told of(number);
    ProgramExecutable executable = compile(of.program, "cuda");
    const runtime::Stream stream(runtime::Device::get(0));
    HostTensor sum = HostTensor::zeros(i32, {1});
    const auto run = [&] {
      executable.run_on_gpus({ref(sum)}, {stream.handle()});
      stream.synchronize();
    };
    run();
    run();
    voice.say(told + "\n");
    told.clear();
    executable.count_on_gpus();
    finds_epochs = true;
    run();
    run();
    voice.say(told);
  });
  return processes.said(0);
}

TEST_F(CountedRuns, LaunchesAreToldTheirEpochs) {
  EXPECT_EQ(said_of([](const Program&) { return 7; }), "1:7 2:7 3:7 4:7 \n5:7 6:7 7:7 8:7 ");
}

TEST_F(CountedRuns, NumbersThatHangOnTheRunAreTheHosts) {
  EXPECT_THAT(said_of([](const Program& program) { return program.run() * 10 + 1; }),
              AllOf(StartsWith("1:11 2:11 3:21 4:21 \nusage: "), HasSubstr("counted_runs_test.cpp"),
                    HasSubstr("a scalar of kernel told depends on the number of the run"),
                    HasSubstr("fix: Kernel::epoch in place of the scalar")));
}

std::mutex told_mutex;

// The second stream's kernel takes long.
Work play_streams(void**) {
  const std::string name = test::fake_cuda_state().launched;
  return [name] {
    if (name == "add") std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const std::lock_guard lock(told_mutex);
    told += name + " ";
  };
}

// Each stream of a rank begins behind the ends of all in the run before.
TEST_F(CountedRuns, ARunBeginsBehindAllStreamsOfTheOneBefore) {
  Processes processes(1, [&](int, const Voice& voice) {
    test::fake_cuda_state().device_count = 1;
    test::fake_cuda_state().has_queues = 1;
    test::play_kernels<play_streams>();
    Program program("two_streams");
    const std::vector<Dim> shape = {test::kRows, test::kColumns};
    const Buffer x = program.buffer("x", f32, shape), y = program.buffer("y", f32, shape),
                 z = program.buffer("z", f32, shape);
    program.rank(0).stream("first").launch(test::scale(), {x, y}, {2});
    program.rank(0).stream("second").launch(test::add(), {x, z});
    {
      ProgramExecutable executable = compile(program, "cuda");
      executable.run(3);
    }
    voice.say(told);
  });
  EXPECT_EQ(processes.said(0), "scale add scale add scale add ");
}

// Its CTAs wait for each other and for a word that the stream beside it writes.
Kernel crowding_kernel() {
  Kernel kernel("crowding");
  const Tensor turn = kernel.inout("turn", i32, {1});
  const Tensor arrived = kernel.symmetric("arrived", i32, {1});
  kernel.ctas(2);
  kernel.roles({role("only", warps(1), registers(40), [&] {
    wait_flag(arrived(0), Compare::ge, kernel.epoch(), {Semantics::acquire, Scope::system});
    atomic_add(turn(0), Index(1));
    wait_flag(turn(0), Compare::ge, 2, {Semantics::acquire, Scope::gpu});
  })});
  return kernel;
}

// What count_on_gpus() says of a program of so many GPUs, in a process of its own.
std::string said_of_counting(int gpus, const std::function<Program()>& made) {
  Processes processes(1, [&](int, const Voice& voice) {
    test::fake_cuda_state().device_count = gpus;
    test::fake_cuda_state().has_queues = 1;
    ProgramExecutable executable = compile(made(), "cuda");
    executable.count_on_gpus();
    voice.say("served");
  });
  return processes.said(0);
}

TEST_F(CountedRuns, NoKernelStandsInTheWayOfItsWords) {
  const auto crowded = [](bool is_before) {
    return said_of_counting(1, [=] {
      Program program("crowded");
      const Buffer turn = program.inout("turn", i32, {1}), words = program.signals("words", 1);
      const auto write = [&] { program.rank(0).stream("beside").write(words[0], program.run()); };
      if (is_before) write();
      program.rank(0).stream().launch(crowding_kernel(), {turn, words});
      if (!is_before) write();
      return program;
    });
  };
  EXPECT_EQ(crowded(true), "served");  // the kernel waits for the stream beside it
  EXPECT_THAT(crowded(false),
              AllOf(HasSubstr("kernel crowding waits for words of arrived that a stream writes"),
                    HasSubstr("a kernel writes a word before"), HasSubstr("counted_runs_test.cpp"),
                    HasSubstr("it waits here"), HasSubstr("count the runs on the host")));
}

// Of two ranks, each of whose kernels waits for a word that the other one's stream writes behind a
// wait of its own.
TEST_F(CountedRuns, WordsOfOtherGpusAreCopied) {
  const auto exchanged = [](int value_of_run) {
    return said_of_counting(2, [=] {
      Program program("exchanged", 2);
      const Buffer turn = program.inout("turn", i32, {1}), words = program.signals("words", 1);
      const Buffer taken = program.signals("taken", 1);
      program.on_each_rank([&](const Rank& rank) {
        const Stream beside = rank.stream("beside");
        beside.wait(taken[0], program.run() + value_of_run);
        beside.write(words.on(rank.next(1))[0], program.run());
        rank.stream().launch(crowding_kernel(), {turn, words});
        rank.stream().write(taken.on(rank.next(1))[0], program.run());
      });
      return program;
    });
  };
  EXPECT_EQ(exchanged(-1), "served");
  // In the same run nothing says that the word does not depend on the kernel.
  EXPECT_THAT(exchanged(0), HasSubstr("a kernel waits for a word before"));
}

// What another GPU's memory gets needs no multiprocessor, though a kernel holds them all: neither
// the word that a kernel waits for nor one that the stream writes before it.
TEST_F(CountedRuns, CopiedWordsBehindEachOtherNeedNoKernel) {
  EXPECT_EQ(said_of_counting(2,
                             [] {
                               Program program("copied", 2);
                               const Buffer turn = program.inout("turn", i32, {1}),
                                            words = program.signals("words", 1),
                                            seen = program.signals("seen", 1);
                               program.on_each_rank([&](const Rank& rank) {
                                 rank.stream().launch(crowding_kernel(), {turn, words});
                                 const Stream beside = rank.stream("beside");
                                 for (const Buffer& each : {seen, words}) {
                                   beside.write(each.on(rank.next(1))[0], program.run());
                                 }
                               });
                               return program;
                             }),
            "served");
}

TEST_F(CountedRuns, OperationsOfTheLibrary) {
  const auto said = [](const std::function<Program()>& made) { return said_of_counting(2, made); };
  kernels::SequenceParallelAttention attention;
  attention.attention.heads = 4;
  attention.attention.kv_heads = 2;
  attention.attention.dim = attention.attention.dim_v = 128;
  attention.attention = kernels::with_sm90_backward_blocks(attention.attention);
  EXPECT_EQ(said([&] {
              return kernels::sequence_parallel_attention_backward_heads_sm90(attention, false);
            }),
            "served");
  attention.attention = kernels::with_sm90_blocks(attention.attention);
  EXPECT_EQ(said([&] { return kernels::sequence_parallel_attention_copied_sm90(attention); }),
            "served");
  EXPECT_EQ(said([] { return kernels::all_gather_gemm_sm90({}); }), "served");
  kernels::GemmReduceScatter copied;
  copied.parts_by = kernels::PartsBy::copies;
  EXPECT_THAT(said([&] { return kernels::gemm_reduce_scatter_sm90(copied); }),
              HasSubstr("a kernel waits for a word before"));
}

}  // namespace
}  // namespace tilewright
