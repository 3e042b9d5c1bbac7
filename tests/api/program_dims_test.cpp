#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/error_text.h"
#include "common/programs.h"
#include "common/schedules.h"
#include "ir/program.h"
#include "library/program_simulation.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/program.h"

namespace tilewright {
namespace {

using test::add;
using test::AllLengths;
using test::kColumns;
using test::scale;
using test::text_of;
using testing::AllOf;
using testing::HasSubstr;

TEST(ProgramDimsTest, OneRecordingServesAllLengths) {
  const AllLengths all;
  for (const std::int64_t rows : {0, 1, 15, 16, 100}) {
    SCOPED_TRACE(rows);
    ProgramMemory memory(all.program, {{"rows", rows}});
    ASSERT_EQ(memory.at(all.y).shape(), (std::vector<std::int64_t>{2 * rows, kColumns}));
    SimulationOptions options;
    options.schedules = 3;
    const SimulationReport report = simulate(all.program, memory, options);
    ASSERT_TRUE(report.ok()) << text_of(report);
    for (std::int64_t i = 0; i < rows * kColumns; ++i) {
      // The second run: what the first has left in the sum is gone.
      const double wanted = memory.at(all.x).flat(i) * static_cast<double>(rows + 2);
      ASSERT_NEAR(memory.at(all.y).flat(i), wanted, 1e-5 * std::fabs(wanted)) << i;
      ASSERT_NEAR(memory.at(all.y).flat(rows * kColumns + i), wanted / 2, 1e-5 * std::fabs(wanted))
          << i;
    }
  }
}

TEST(ProgramDimsTest, WhatDoesNotFitIsAnErrorOfTheRun) {
  const AllLengths all;
  const auto refused = [&](const DimValues& sizes) {
    return test::usage_error_of([&] {
      ProgramMemory memory(all.program, sizes);
      simulate(all.program, memory);
    });
  };
  EXPECT_THAT(refused({}), AllOf(HasSubstr("the dim rows has no value"), HasSubstr("--set rows")));
  EXPECT_THAT(refused({{"rows", 1001}}), HasSubstr("at most 1000"));
  EXPECT_THAT(refused({{"rows", -1}}), HasSubstr("expected 0 to 2^31 - 1"));
  EXPECT_THAT(refused({{"rows", 8}, {"keys", 8}}),
              AllOf(HasSubstr("program all_lengths: there is no dim keys"),
                    HasSubstr("its dims are rows")));
  EXPECT_THAT(refused({{"row", 8}}), HasSubstr("there is no dim row"));
  EXPECT_THAT(test::usage_error_of([&] { simulate(all.program); }),
              HasSubstr("the dim rows has no value"));
  ProgramMemory memory(all.program, {{"rows", 8}});
  memory.at(all.y) = HostTensor::zeros(f32, {8, kColumns});
  EXPECT_THAT(test::usage_error_of([&] { simulate(all.program, memory); }),
              HasSubstr("the memory has f32 {8, 32} for y, which is f32 {16, 32}"));
  EXPECT_THAT(test::usage_error_of([&] { memory.at(all.scaled); }), HasSubstr("is no scratch"));
}

// At the user's line, with what the run made of the dims.
TEST(ProgramDimsTest, APartThatEndsOutsideOfItsBuffer) {
  Program program("outside");
  const Dim rows = program.dim("rows");
  const Buffer x = program.buffer("x", f32, {rows, kColumns});
  const Stream stream = program.rank(0).stream();
  const int line = __LINE__ + 1;
  stream.copy(x.rows(0, 8), x.rows(8, 8));
  ProgramMemory fits(program, {{"rows", 16}});
  EXPECT_TRUE(simulate(program, fits).ok());
  ProgramMemory short_one(program, {{"rows", 15}});
  EXPECT_THAT(test::usage_error_of([&] { simulate(program, short_one); }),
              AllOf(HasSubstr("program_dims_test.cpp:" + std::to_string(line)),
                    HasSubstr("{8, 32} elements from {8, 0} on are not inside of x {15, 32}"),
                    HasSubstr("rows = 15")));
}

// At the line that cuts the part, before anything is bound.
TEST(ProgramDimsTest, APartThatNoSizeBringsInside) {
  Program program("never_inside");
  const Dim rows = program.dim("rows"), more = program.dim("more", at_least(1));
  const Buffer x = program.buffer("x", f32, {rows, kColumns});
  const auto refused = [&](const std::function<void()>& cut, const std::string& problem) {
    EXPECT_THAT(test::usage_error_of(cut), AllOf(HasSubstr("program_dims_test.cpp:"),
                                                 HasSubstr(problem), HasSubstr("x is made")));
  };
  refused([&] { x.rows(rows, 1); }, "{1, 32} elements from {rows, 0} on are not inside of x {rows");
  refused([&] { x.rows(0, rows + 1); }, "{(rows + 1), 32} elements from {0, 0} on");
  refused([&] { x.rows(more, rows); }, "{rows, 32} elements from {more, 0} on");
  refused([&] { x.rows(0 - more, 1); }, "{1, 32} elements from {(0 - more), 0} on");
  refused([&] { x.rows(0, 0 - more); }, "{(0 - more), 32} elements");
  refused([&] { x.rows(INT64_MAX, rows + 1); }, "elements from {9223372036854775807, 0} on");
  // Of the part that it is cut from, though the buffer has the rows.
  const Part first = x.rows(0, more);
  refused([&] { first.rows(0, more + 1); }, "are not inside of x {more, 32}");
  refused([&] { first.rows(more, more); }, "{more, 32} elements from {more, 0} on");
  refused([&] { first.box({0, 1}, {more, kColumns}); }, "from {0, 1} on");
  // Which some sizes bring inside.
  first.rows(more - 1, 1);
  x.rows(more, rows - more);
  x.rows(rows, 0);
  x.rows(rows / 2, rows);
  x.rows(0, more);
}

TEST(ProgramDimsTest, ALaunchThatNoKernelTakes) {
  Program program("unequal");
  const Dim rows = program.dim("rows"), others = program.dim("others");
  const Buffer x = program.buffer("x", f32, {rows, kColumns});
  const Buffer y = program.buffer("y", f32, {others, kColumns});
  const int line = __LINE__ + 1;
  program.rank(0).stream().launch(scale(), {x, y}, {1});
  ProgramMemory memory(program, {{"rows", 8}, {"others", 9}});
  EXPECT_THAT(test::usage_error_of([&] { simulate(program, memory); }),
              AllOf(HasSubstr("program_dims_test.cpp:" + std::to_string(line)),
                    HasSubstr("the dim rows is 8 by axis 0 of x, but 9 by axis 0 of y")));
}

TEST(ProgramDimsTest, SizesByTheMachine) {
  Program program("by_the_machine");
  const Buffer x = program.in("x", f32, {kColumns, kColumns});
  const Buffer y = program.out("y", f32, {kColumns, kColumns});
  const Buffer copies = program.scratch("copies", f32, {multiprocessors() * kColumns, kColumns});
  const Stream stream = program.rank(0).stream();
  const Part last = copies.rows((multiprocessors() - 1) * kColumns, kColumns);
  stream.copy(last, x);
  stream.copy(y, last);
  for (const int multiprocessors : {1, 3}) {
    ProgramMemory memory(program);
    SimulationOptions options;
    options.multiprocessors = multiprocessors;
    const SimulationReport report = simulate(program, memory, options);
    ASSERT_TRUE(report.ok()) << text_of(report);
    EXPECT_EQ(memory.at(y), memory.at(x));
  }
}

TEST(ProgramDimsTest, MultiprocessorsAreThoseOfTheOptions) {
  Program program("by_the_options");
  const Buffer x = program.in("x", f32, {4, kColumns}), y = program.out("y", f32, {1, kColumns});
  program.rank(0).stream().copy(y, x.rows(multiprocessors() - 1, 1));
  HostTensor from = HostTensor::random_normal(f32, {4, kColumns}, 1);
  for (const int count : {1, 3}) {
    CompileOptions options;
    options.multiprocessors = count;
    HostTensor to = HostTensor::poisoned(f32, {1, kColumns});
    compile(program, "sim:sm_90a", options).run({ref(from), ref(to)});
    EXPECT_EQ(to.flat(0), from.flat((count - 1) * kColumns));
  }
}

// Nobody may count on what scratch holds, nor on what an output did before.
TEST(ProgramDimsTest, WhatNobodyWroteIsPoison) {
  Program program("poison");
  const Buffer x = program.out("x", f32, {16, kColumns}), y = program.out("y", f32, {16, kColumns});
  const Buffer scratch = program.scratch("scratch", f32, {16, kColumns});
  const Stream stream = program.rank(0).stream();
  stream.zero(scratch.rows(8, 8));
  stream.launch(scale(), {scratch, x}, {1});
  stream.zero(y.rows(0, 8));
  ProgramMemory memory(program);
  SimulationOptions options;
  options.runs = 1;
  ASSERT_TRUE(simulate(program, memory, options).ok());
  EXPECT_TRUE(std::isnan(memory.at(x).flat(0)));
  EXPECT_EQ(memory.at(y).at({7, 31}), 0);
  EXPECT_TRUE(std::isnan(memory.at(y).at({8, 0})));
}

TEST(ProgramDimsTest, WhatNothingHasWrittenIsNotRead) {
  Program program("early");
  const Buffer x = program.in("x", f32, {16, kColumns}), y = program.out("y", f32, {16, kColumns});
  const Buffer scratch = program.scratch("scratch", f32, {16, kColumns});
  const Stream stream = program.rank(0).stream();
  const auto refused = [](const std::function<void()>& body) { return test::usage_error_of(body); };
  EXPECT_THAT(refused([&] {
                stream.launch(scale(), {scratch, y}, {1});
              }),
              AllOf(HasSubstr("launch: scale, as its X, reads scratch, which nothing has written"),
                    HasSubstr("scratch is made"), HasSubstr("Program::zeroed")));
  EXPECT_THAT(refused([&] { stream.copy(scratch, y); }),
              AllOf(HasSubstr("copy: it reads y"), HasSubstr("Program::inout")));
  stream.launch(scale(), {x, scratch}, {1});
  stream.launch(scale(), {scratch, y}, {1});
  stream.copy(scratch, y);
  // Behind a word there may be what is recorded later.
  Program words("words");
  const Buffer late = words.scratch("late", f32, {16, kColumns});
  const Buffer z = words.inout("z", f32, {16, kColumns}), ready = words.signals("ready", 1);
  const Stream first = words.rank(0).stream("first"), second = words.rank(0).stream("second");
  second.wait(ready[0], words.run());
  second.copy(z, late);
  first.launch(scale(), {z, late}, {1});
}

// Zeros are set in the stream that uses them first; others have to be ordered behind.
TEST(ProgramDimsTest, ZerosAreOrderedLikeACopy) {
  for (const bool ordered : {true, false}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      Program program("zeros");
      const Buffer x = program.in("x", f32, {32, kColumns});
      const Buffer sum = program.zeroed("sum", f32, {32, kColumns});
      const Stream first = program.rank(0).stream("first");
      const Stream second = program.rank(0).stream("second");
      first.launch(add(), {x, sum});
      if (ordered) second.wait(first.record());
      second.launch(add(), {x, sum});
      SimulationOptions options;
      options.seed = seed;
      const SimulationReport report = simulate(program, options);
      EXPECT_EQ(report.ok(), ordered) << text_of(report);
      EXPECT_EQ(text_of(report).find("race: global sum") != std::string::npos, !ordered);
    }
  }
}

TEST(ProgramDimsTest, AnotherStreamsZerosAreARace) {
  Program program("late_zeros");
  const Buffer x = program.in("x", f32, {32, kColumns});
  const Buffer sum = program.buffer("sum", f32, {32, kColumns});
  program.rank(0).stream("first").launch(add(), {x, sum});
  program.rank(0).stream("second").zero(sum);
  EXPECT_THAT(text_of(simulate(program)),
              AllOf(HasSubstr("race: global sum"), HasSubstr("zero"), HasSubstr("stream second")));
}

// What the automatic schedule of a kernel asks for beyond what the kernel does.
TEST(ProgramDimsTest, ACounterOfTheSchedulesOwn) {
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 64;
  a.causal = true;
  a.dtype = bf16;
  Program program("counted");
  const Dim rows = program.dim("rows");
  const Buffer q = program.in("q", bf16, {1, rows, 1, 64}),
               k = program.in("k", bf16, {1, rows, 1, 64});
  const Buffer v = program.in("v", bf16, {1, rows, 1, 64}),
               o = program.out("o", bf16, {1, rows, 1, 64});
  const Buffer lse = program.out("lse", f32, {1, 1, rows});
  program.rank(0).stream().launch(kernels::attention_forward(a), {q, k, v, o, lse});
  const std::vector<ir::Kernel> machine =
      library::machine_forms(program.finish(), ir::default_target()).front();
  ir::Program bound = ir::bind_program(program.finish(), DimValues{{"rows", 200}}, 8);
  ir::add_owned(bound, machine);
  ASSERT_EQ(bound.buffers.size(), 6u);
  EXPECT_EQ(bound.buffers.back().name, "attention_forward.next_tile of stream main");
  ProgramMemory memory(program, {{"rows", 200}});
  const SimulationReport report = simulate(program, memory);
  ASSERT_TRUE(report.ok()) << text_of(report);
  for (std::int64_t i = 0; i < 200 * 64; ++i) {
    ASSERT_FALSE(std::isnan(memory.at(o).flat(i))) << i;
  }
}

}  // namespace
}  // namespace tilewright
