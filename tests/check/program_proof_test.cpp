#include "check/program_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "check/last_cta.h"
#include "common/error_text.h"
#include "common/programs.h"
#include "common/ranks_kernels.h"
#include "library/program_simulation.h"
#include "simulator/faults/program_faults.h"
#include "tilewright/hopper.h"

// Faults seeded into programs, and into the signals of their kernels.
namespace tilewright::checks {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Verdict = MutantResult::Verdict;

std::vector<MutantResult> prove(const Program& program, std::int64_t more = 100,
                                bool has_callers = false) {
  const std::vector<ir::Kernel> machine =
      library::machine_forms(program.finish(), ir::default_target()).front();
  simulator::MachineOptions how;
  how.multiprocessors = how.resident = 8;
  ProofOptions options;
  options.launches = 3;
  options.more = more;
  ProgramCase made = program_case(program.finish(), how, options.seed);
  made.has_callers = has_callers;
  return prove_program({made}, machine, options);
}

// How many mutants of each kind there are, all of which have to be caught as what they are.
std::map<int, int> expect_caught(const std::vector<MutantResult>& results) {
  std::map<int, int> counts;
  for (const MutantResult& result : results) {
    SCOPED_TRACE(result.mutant.operation + " " + result.mutant.change);
    ++counts[result.kind->number];
    EXPECT_EQ(result.verdict, Verdict::caught);
    EXPECT_TRUE(result.right_class) << result.fault.message;
    EXPECT_TRUE(result.both_lines) << result.fault.message;
  }
  return counts;
}

TEST(ProgramProofTest, WordsOfRanks) {
  const test::Push push(true, 2);
  // Of each rank: two waits, two writes of which each announces something, and these four values.
  EXPECT_EQ(expect_caught(prove(push.program)),
            (std::map<int, int>{{27, 4}, {28, 4}, {29, 4}, {30, 8}}));
}

void add_exchange(const Program& program, const Rank& rank, const Buffer& X, const Buffer& Y,
                  const Buffer& begun, const Buffer& arrived) {
  const Stream stream = rank.stream();
  stream.write(begun.on(rank.next())[0], program.run());
  stream.wait(begun[0], program.run());
  stream.copy(Y.on(rank.next()), X);
  stream.write(arrived.on(rank.next())[0], program.run());
  stream.wait(arrived[0], program.run());
}

// Nothing in it reads what has arrived, or writes what is sent: callers do, between the runs.
Program exchange() {
  Program program("exchange", 2);
  const Buffer X = program.in("X", f32, {8}), Y = program.out("Y", f32, {8});
  const Buffer begun = program.signals("begun", 1), arrived = program.signals("arrived", 1);
  program.on_each_rank(
      [&](const Rank& rank) { add_exchange(program, rank, X, Y, begun, arrived); });
  return program;
}

TEST(ProgramProofTest, CallersUseTheirTensorsBetweenTheRuns) {
  EXPECT_EQ(expect_caught(prove(exchange(), 100, /*has_callers=*/true)),
            (std::map<int, int>{{27, 4}, {28, 2}, {29, 4}, {30, 8}}));
  const std::vector<MutantResult> alone = prove(exchange());
  EXPECT_TRUE(std::any_of(alone.begin(), alone.end(), [](const MutantResult& result) {
    return result.verdict != Verdict::caught;
  }));
}

// A copy before the exchange that no other rank looks for: the word need not announce it, in any
// order. Each wait has found no later number than its own, and in other orders knows as much.
TEST(ProgramProofTest, AWordNeedNotAnnounceWhatNobodyLooksFor) {
  Program program("exchange", 2);
  const Buffer X = program.in("X", f32, {8}), Y = program.out("Y", f32, {8});
  const Buffer own = program.buffer("own", f32, {8}), kept = program.buffer("kept", f32, {8});
  const Buffer begun = program.signals("begun", 1), arrived = program.signals("arrived", 1);
  program.on_each_rank([&](const Rank& rank) {
    rank.stream().copy(kept, own);
    add_exchange(program, rank, X, Y, begun, arrived);
  });
  int needless = 0;
  for (const MutantResult& result : prove(program, 100, /*has_callers=*/true)) {
    if (result.kind->number != 28) continue;
    const bool is_needless = result.mutant.operation.find("begun") != std::string::npos;
    needless += is_needless;
    EXPECT_EQ(result.verdict, is_needless ? Verdict::equivalent : Verdict::caught) << result.reason;
  }
  EXPECT_EQ(needless, 2);
}

TEST(ProgramProofTest, EventsOfStreams) {
  const test::TwoKernels two("second", true);
  EXPECT_EQ(expect_caught(prove(two.program)), (std::map<int, int>{{26, 1}}));
}

TEST(ProgramProofTest, MemoryThatIsNotSetToZero) {
  const test::AllLengths all;
  const ir::Program program = ir::bind_program(all.program.finish(), DimValues{{"rows", 20}}, 8);
  const std::vector<MutantResult> results =
      prove_program({program_case(program, {}, 0)},
                    library::machine_forms(program, ir::default_target()).front(), {});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].kind->number, 31);
  EXPECT_EQ(results[0].mutant.operation, "zeros of sum in stream main");
  EXPECT_EQ(results[0].verdict, Verdict::caught);
  EXPECT_THAT(results[0].fault.message, HasSubstr("mismatch: y"));
}

TEST(ProgramProofTest, SignalsOfKernels) {
  const std::vector<MutantResult> results = prove(test::message_in_each_rank());
  int caught = 0;
  for (const MutantResult& result : results) {
    SCOPED_TRACE(result.mutant.operation + " " + result.mutant.change);
    EXPECT_THAT(result.mutant.operation, HasSubstr(" of message"));
    EXPECT_TRUE(result.kind->number == 23 || result.kind->number == 24);
    EXPECT_NE(result.verdict, Verdict::undecided) << result.reason;
    caught += result.verdict == Verdict::caught && result.right_class;
  }
  // Two signals and two waits, each relaxed, of the GPU alone, early or left out.
  EXPECT_GE(caught, 11);
}

// Each of two events orders the launches by itself.
TEST(ProgramProofTest, AWaitThatAnotherOneStandsForIsAnEquivalent) {
  Program program("twice");
  const Buffer x = program.buffer("x", f32, {test::kRows, test::kColumns});
  const Buffer y = program.buffer("y", f32, {test::kRows, test::kColumns});
  const Stream copies = program.rank(0).stream("copies"), math = program.rank(0).stream("math");
  copies.copy(y, x);
  const Event first = copies.record();
  math.wait(first);
  math.wait(first);
  math.launch(test::scale(), {y, x}, {1});
  for (const MutantResult& result : prove(program)) {
    EXPECT_EQ(result.verdict, Verdict::equivalent) << result.mutant.operation;
    EXPECT_THAT(result.reason, HasSubstr("nothing depends on the order of the work"));
  }
}

// No order of the work tells it.
TEST(ProgramProofTest, AWaitForNothingIsAnEquivalent) {
  Program program("idle");
  const Buffer x = program.buffer("x", f32, {test::kRows, test::kColumns});
  const Buffer y = program.buffer("y", f32, {test::kRows, test::kColumns});
  const Stream idle = program.rank(0).stream("idle"), copies = program.rank(0).stream("copies");
  copies.wait(idle.record());
  copies.copy(y, x);
  const std::vector<MutantResult> results = prove(program, 5);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].verdict, Verdict::equivalent);
}

// Whoever reads them finds them in each order, and what for, orders do not say.
TEST(ProgramProofTest, ZerosThatNobodyReadsAreEquivalents) {
  for (const std::int64_t rows : {test::kRows, test::kRows - 1}) {
    Program program("overwritten");
    const Buffer x = program.buffer("x", f32, {test::kRows, test::kColumns});
    const Buffer y = program.zeroed("y", f32, {test::kRows, test::kColumns});
    const Buffer left = program.scratch("left", f32, {test::kRows, test::kColumns});
    const Stream stream = program.rank(0).stream("main");
    stream.copy(y.rows(0, rows), x.rows(0, rows));
    stream.copy(left, y);
    const std::vector<MutantResult> results = prove(program, 5);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].kind->number, 31);
    EXPECT_EQ(results[0].verdict, rows == test::kRows ? Verdict::equivalent : Verdict::undecided);
  }
}

// The event orders the same, so that the wait may be for any number. It finds later ones than its
// own, which depends on the order of the work.
TEST(ProgramProofTest, AWaitForLessIsAsNoneWhereNoneIsNeeded) {
  for (const bool has_event : {true, false}) {
    Program program("twice");
    const Buffer x = program.in("x", f32, {test::kRows, test::kColumns});
    const Buffer y = program.out("y", f32, {test::kRows, test::kColumns});
    const Buffer between = program.scratch("between", f32, {test::kRows, test::kColumns});
    const Buffer word = program.signals("word", 1);
    const Stream first = program.rank(0).stream("first"), second = program.rank(0).stream("second");
    first.copy(between, x);
    first.write(word[0], program.run());
    if (has_event) second.wait(first.record());
    second.wait(word[0], program.run());
    second.copy(y, between);
    int waits = 0;
    for (const MutantResult& result : prove(program, 100, /*has_callers=*/true)) {
      if (result.kind->number != 30 || result.mutant.operation.find("wait") != 0) continue;
      ++waits;
      EXPECT_EQ(result.verdict, has_event ? Verdict::equivalent : Verdict::caught) << result.reason;
    }
    EXPECT_EQ(waits, 1);
  }
}

// That nothing depends on the order of the work says nothing of what is computed.
TEST(ProgramProofTest, AChangeOfValuesThatNoInputShowsIsUndecided) {
  Kernel kernel("floor");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, test::kColumns}),
               Y = kernel.out("Y", f32, {rows, test::kColumns});
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block block = rows.block(x, 16);
  const Tile loaded = load(X(block, all));
  store(Y(block, all), max(loaded * loaded, 1e30));
  Program program("squares");
  const Buffer in = program.buffer("x", f32, {test::kRows, test::kColumns});
  const Buffer out = program.buffer("y", f32, {test::kRows, test::kColumns});
  program.rank(0).stream("main").launch(kernel, {in, out});
  const ir::Program recorded = program.finish();
  const std::vector<MutantResult> results =
      prove_program({program_case(recorded, {}, 0)},
                    library::machine_forms(recorded, ir::default_target()).front(), {}, {}, {},
                    /*all_of_kernels=*/true);
  int weights = 0;
  for (const MutantResult& result : results) {
    if (result.kind->number != 33) continue;
    ++weights;
    EXPECT_EQ(result.verdict, Verdict::undecided) << result.reason;
    EXPECT_THAT(result.reason, HasSubstr("no result is wrong on these inputs"));
  }
  EXPECT_GT(weights, 0);
}

TEST(ProgramProofTest, AProgramWithAFaultOfItsOwnIsRefused) {
  const test::TwoKernels two("second", false);
  try {
    prove(two.program);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("race: global y"), HasSubstr("faults of its own")));
  }
}

TEST(ProgramProofTest, ChangesOneOperationAlone) {
  const test::Push push(true, 2);
  const ir::Program& program = push.program.finish();
  for (const simulator::ProgramMutant& mutant : simulator::program_mutants(program)) {
    const ir::Program changed = mutant.apply(program);
    const bool left_out = mutant.change == "left out";
    EXPECT_EQ(changed.operations.size(), program.operations.size() - (left_out ? 1 : 0));
  }
}

// What shows in a later schedule alone is found while operations are left, of all cases together:
// each of four equal cases takes a fourth of them.
TEST(ProgramProofTest, TheCasesShareTheLimitOnOperations) {
  const Kernel kernel = test::last_cta();
  Program program("meet");
  const Buffer x = program.buffer("x", bf16, {16, 32}), c = program.buffer("c", bf16, {16, 32});
  program.rank(0).stream("main").launch(kernel, {x, c});
  const std::vector<ir::Kernel> machine =
      library::machine_forms(program.finish(), ir::default_target()).front();
  ir::Program owned = program.finish();
  ir::add_owned(owned, machine);
  simulator::MachineOptions how;
  how.multiprocessors = how.resident = 2;
  ProofOptions options;
  options.schedules = options.launches = options.few = 1;
  options.more = 64;
  // The relaxed atomic: a race where the CTA that comes last is the other one.
  options.mutants.emplace();
  const std::vector<MutantResult> listed = list_mutants(owned, machine, /*all_of_kernels=*/true);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i].kind->number == 35) options.mutants->insert(i);
  }
  ASSERT_EQ(options.mutants->size(), 1u);
  const auto verdict = [&](std::size_t cases) {
    const std::vector<ProgramCase> all(cases, program_case(owned, how, 0));
    return prove_program(all, machine, options, {}, {}, /*all_of_kernels=*/true).front().verdict;
  };
  const std::int64_t enough = options.operations;
  int later = 0;
  for (options.seed = 0; options.seed < 8; ++options.seed) {
    options.operations = 1;
    if (verdict(1) != Verdict::undecided) continue;
    while (options.operations < enough && verdict(1) == Verdict::undecided) options.operations *= 2;
    EXPECT_EQ(verdict(1), Verdict::caught);
    EXPECT_EQ(verdict(4), Verdict::undecided);
    ++later;
  }
  EXPECT_GT(later, 0);
}

}  // namespace
}  // namespace tilewright::checks
