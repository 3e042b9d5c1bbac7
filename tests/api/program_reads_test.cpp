#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "check/program_proof.h"
#include "common/error_text.h"
#include "common/gathered.h"
#include "common/programs.h"
#include "common/schedules.h"
#include "ir/program_text.h"
#include "library/program_simulation.h"
#include "tilewright/program.h"

// What a program does depends on elements of buffers, as each run finds them.
namespace tilewright {
namespace {

using test::Gathered;
using test::GatheredTensors;
using test::kColumns;
using test::kPage;
using test::scale;
using test::text_of;
using testing::AllOf;
using testing::HasSubstr;

TEST(ProgramReads, SayWhatIsDoneOnEveryTarget) {
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a", "passes:sm_90a"}) {
    GatheredTensors tensors;
    const Gathered of;
    tensors.run(of, target);
    EXPECT_EQ(tensors.wrong(), 0) << target;
  }
}

// Each run reads again.
TEST(ProgramReads, FollowTheTensors) {
  const Gathered of;
  const ProgramExecutable executable = compile(of.program, "cpu");
  GatheredTensors tensors;
  for (const auto& lengths : {std::vector<double>{6, 0, 12}, {1, 4, 0}, {0, 0, 0}}) {
    tensors.lengths = HostTensor::from_values(i32, {3}, lengths);
    tensors.table = HostTensor::from_values(i32, {3, 3}, {1, 3, 0, 2, 0, 0, 4, 1, 0});
    tensors.y = HostTensor::poisoned(f32, {3 * 3 * kPage, kColumns});
    executable.run({ref(tensors.x), ref(tensors.table), ref(tensors.lengths), ref(tensors.y)});
    EXPECT_EQ(tensors.wrong(), 0);
  }
}

// What is done where a comparison holds, and what where it does not, on both sides of equality.
TEST(ProgramReads, EveryComparisonHasItsOtherwise) {
  const auto holds = [](Compare compare, int left, int right) {
    return compare == Compare::eq   ? left == right
           : compare == Compare::ne ? left != right
           : compare == Compare::lt ? left < right
           : compare == Compare::le ? left <= right
           : compare == Compare::gt ? left > right
                                    : left >= right;
  };
  for (const Compare compare :
       {Compare::eq, Compare::ne, Compare::lt, Compare::le, Compare::gt, Compare::ge}) {
    Program program("compared");
    const Buffer count = program.in("count", i32, {1}), x = program.in("x", f32, {8, kColumns});
    const Buffer y = program.out("y", f32, {8, kColumns});
    const Stream stream = program.rank(0).stream();
    program.when(
        program.read("count", count, {0}), compare, 3,
        [&] {
          stream.launch(scale(), {x, y}, {2});
        },
        [&] {
          stream.launch(scale(), {x, y}, {5});
        });
    const ProgramExecutable executable = compile(program, "interpreter");
    HostTensor rows = HostTensor::random_normal(f32, {8, kColumns}, 1);
    for (const int number : {2, 3, 4}) {
      HostTensor found = HostTensor::from_values(i32, {1}, {static_cast<double>(number)});
      HostTensor result = HostTensor::poisoned(f32, {8, kColumns});
      executable.run({ref(found), ref(rows), ref(result)});
      const double factor = holds(compare, number, 3) ? 2 : 5;
      EXPECT_NEAR(result.at({7, 3}), factor * rows.at({7, 3}), 1e-5)
          << static_cast<int>(compare) << " of " << number;
    }
  }
}

// The first use is one of several bodies, the one before it another's.
TEST(ProgramReads, ZerosComeBeforeAllTurns) {
  Program program("zeros_in_turns");
  const Buffer x = program.in("x", f32, {8, kColumns});
  const Buffer y = program.out("y", f32, {8, kColumns}),
               other = program.scratch("other", f32, {8, kColumns});
  const Buffer sum = program.zeroed("sum", f32, {8, kColumns});
  const Stream stream = program.rank(0).stream();
  program.repeat("multiprocessors", 3, [&](const Dim& turn) {
    EXPECT_EQ(turn.name(), "multiprocessors_2");  // not the number that every program has
    program.when(turn, Compare::eq, 0, [&] { stream.launch(scale(), {x, other}, {2}); });
    program.when(turn, Compare::ge, 1, [&] { stream.launch(test::add(), {x, sum}); });
  });
  stream.copy(y, sum);
  HostTensor rows = HostTensor::random_normal(f32, {8, kColumns}, 1);
  for (const char* target : {"interpreter", "cpu"}) {
    HostTensor result = HostTensor::poisoned(f32, {8, kColumns});
    compile(program, target).run({ref(rows), ref(result)});
    EXPECT_NEAR(result.at({7, 3}), 2 * rows.at({7, 3}), 1e-5) << target;
  }
}

TEST(ProgramReads, AreSimulatedUnderManySchedules) {
  const Gathered of;
  ProgramMemory memory(of.program, {{"batch", 3}, {"slots", 20}, {"most", 3}});
  GatheredTensors tensors;
  memory.at(of.x) = tensors.x;
  memory.at(of.table) = tensors.table;
  memory.at(of.lengths) = tensors.lengths;
  memory.at(of.y) = tensors.y;
  SimulationOptions options;
  options.schedules = 3;
  const SimulationReport report = simulate(of.program, memory, options);
  ASSERT_TRUE(report.ok()) << text_of(report);
  tensors.y = memory.at(of.y);
  EXPECT_EQ(tensors.wrong(), 0);
}

// A neighbour of what is meant, a turn more or less, a condition that holds elsewhere.
TEST(ProgramReads, SeededFaultsAreFound) {
  const Gathered of;
  const ir::Program& recorded = of.program.finish();
  const DimValues sizes{{"batch", 3}, {"slots", 20}, {"most", 3}};
  std::vector<checks::ProgramCase> cases;
  std::vector<ir::Kernel> machine;
  for (const std::vector<double>& lengths : {std::vector<double>{6, 0, 12}, {3, 9, 0}}) {
    ProgramMemory memory(of.program, sizes);
    GatheredTensors tensors;
    memory.at(of.x) = tensors.x;
    memory.at(of.table) = HostTensor::from_values(i32, {3, 3}, {4, 0, 2, 1, 3, 2, 2, 3, 1});
    memory.at(of.lengths) = HostTensor::from_values(i32, {3}, lengths);
    memory.at(of.y) = tensors.y;
    const simulator::Rebind rebind = [&recorded, sizes,
                                      before = memory.tensors](const auto& change) {
      ir::Program changed = recorded;
      change(changed);
      return ir::bind_program(changed, sizes, 2, ir::contents_of(before.front()));
    };
    checks::ProgramCase& each = cases.emplace_back();
    each.program = rebind([](ir::Program&) {});
    each.machine.multiprocessors = 2;
    each.before = memory.tensors;
    each.recorded = recorded;
    each.rebind = rebind;
  }
  machine = library::machine_forms(cases.front().program, "sm_90a").front();
  checks::ProofOptions how;
  how.mutants.emplace();
  const auto listed = checks::list_mutants(cases.front().program, machine, false, recorded);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i].kind->number >= 58) how.mutants->insert(i);
  }
  EXPECT_EQ(how.mutants->size(), 11u);
  for (const checks::MutantResult& result : checks::prove_program(cases, machine, how)) {
    EXPECT_EQ(result.verdict, checks::MutantResult::Verdict::caught)
        << result.mutant.operation << " " << result.mutant.change << ": " << result.reason;
  }
}

// Two streams in a loop: each turn has an event of its own, and without it the turns race.
TEST(ProgramReads, TurnsAreOrderedByEvents) {
  for (const bool waits : {true, false}) {
    Program program("turns");
    const Buffer count = program.in("count", i32, {1});
    const Buffer x = program.in("x", f32, {8, kColumns}), y = program.out("y", f32, {8, kColumns});
    const Buffer between = program.scratch("between", f32, {8, kColumns});
    const Stream a = program.rank(0).stream("a"), b = program.rank(0).stream("b");
    program.repeat("turn", program.read("count", count, {0}), [&](const Dim&) {
      a.launch(scale(), {x, between}, {3});
      const Event made = a.record();
      if (waits) b.wait(made);
      b.launch(scale(), {between, y}, {1});
      const Event taken = b.record();
      a.wait(taken);
    });
    ProgramMemory memory(program);
    memory.at(count).set({0}, 3);
    SimulationOptions options;
    options.schedules = 4;
    const SimulationReport report = simulate(program, memory, options);
    EXPECT_EQ(report.ok(), waits);
    if (!waits) continue;
    EXPECT_NEAR(memory.at(y).at({7, 3}), 3 * memory.at(x).at({7, 3}), 1e-5);
  }
}

TEST(ProgramReads, TheTextParsesBack) {
  const Gathered of;
  const std::string text = ir::to_text(of.program.finish());
  EXPECT_THAT(text, AllOf(HasSubstr("repeat \"b\" [batch]"), HasSubstr("when [length] ne [0]"),
                          HasSubstr("when [length] eq [0]"),
                          HasSubstr("read \"page\" of \"table\" [b, j]")));
  EXPECT_EQ(ir::to_text(ir::parse_program(text, "gathered.twp")), text);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return test::usage_error_of([&] { ir::parse_program(other, "gathered.twp"); });
  };
  EXPECT_THAT(refused("\nend", "\n"), HasSubstr("expected the end of a repeat or when"));
  EXPECT_THAT(refused("\"page\" of \"table\"", "\"page\" of \"x\""),
              HasSubstr("expected integers"));
  EXPECT_THAT(refused("repeat \"j\"", "repeat \"b\""), HasSubstr("there is such a number already"));
}

// At the program's line, with what the run has found.
TEST(ProgramReads, BoundsAreHeldAtTheirLines) {
  const auto refused = [](const Gathered& of, std::vector<double> table,
                          std::vector<double> lengths) {
    GatheredTensors tensors;
    tensors.table = HostTensor::from_values(i32, {3, 3}, table);
    tensors.lengths = HostTensor::from_values(i32, {3}, lengths);
    return test::usage_error_of([&] { tensors.run(of, "cpu"); });
  };
  const Gathered of;
  const auto line = [](int number) { return "gathered.h:" + std::to_string(number); };
  // A page that there is not, and one below 0.
  EXPECT_THAT(refused(of, {4, 5, 0, 0, 0, 0, 0, 0, 0}, {6, 0, 0}),
              AllOf(HasSubstr(line(of.launch_line)),
                    HasSubstr("{2, 32} elements from {20, 0} on are not inside of x {20, 32}"),
                    HasSubstr("b = 0"), HasSubstr("j = 1"), HasSubstr("page = 5")));
  EXPECT_THAT(refused(of, {4, 0, 0, 0, 0, 0, -1, 0, 0}, {4, 0, 1}),
              AllOf(HasSubstr(line(of.launch_line)), HasSubstr("page = -1")));
  // More pages than the table has.
  EXPECT_THAT(refused(of, {4, 0, 1, 0, 0, 0, 0, 0, 0}, {13, 0, 0}),
              AllOf(HasSubstr(line(of.read_line)),
                    HasSubstr("read: element {0, 3} is not inside of table {3, 3}")));
  const Gathered unguarded(false);
  EXPECT_THAT(refused(unguarded, {0, 0, 0, 0, 0, 0, 0, 0, 0}, {-2, 0, 0}),
              AllOf(HasSubstr(line(unguarded.repeat_line)), HasSubstr("repeat: length is -2")));
}

TEST(ProgramReads, MistakesAreErrorsWhileTheProgramIsRecorded) {
  Program program("mistakes");
  const Dim rows = program.dim("rows");
  const Buffer numbers = program.in("numbers", i32, {8}),
               x = program.in("x", f32, {rows, kColumns});
  const Buffer y = program.out("y", f32, {rows, kColumns});
  const Buffer written = program.inout("written", i32, {8}), words = program.signals("words", 2);
  const Stream stream = program.rank(0).stream();
  const auto error = [](const std::function<void()>& act) { return test::usage_error_of(act); };
  EXPECT_THAT(error([&] { program.read("n", written, {0}); }),
              AllOf(HasSubstr("written may be written by the run"), HasSubstr("Program::in")));
  EXPECT_THAT(error([&] { program.read("n", x, {0, 0}); }), HasSubstr("x is f32"));
  EXPECT_THAT(error([&] { program.read("n", numbers, {8}); }),
              HasSubstr("element {8} is not inside of numbers {8}"));
  EXPECT_THAT(error([&] {
                program.read("n", numbers, {0, 0});
              }),
              HasSubstr("one index for each axis"));
  Dim kept = 0;
  program.repeat("turn", rows,
                 [&](const Dim& turn) { kept = program.read("kept", numbers, {turn}); });
  EXPECT_THAT(error([&] { stream.copy(y.rows(kept, 1), x.rows(0, 1)); }),
              AllOf(HasSubstr("kept is what a run reads elsewhere"),
                    HasSubstr("use it in the body that made it")));
  const Dim own = program.read("own", numbers, {0});
  EXPECT_THAT(error([&] { program.scratch("s", f32, {own}); }),
              HasSubstr("a buffer's shape is one of dims"));
  EXPECT_THAT(
      error([&] { program.repeat("again", own, [&](const Dim&) { stream.write(words[0], 1); }); }),
      HasSubstr("write: words count runs"));
  // Behind an error the program is recorded where it was.
  stream.write(words[0], 1);
  Program several("several", 2);
  const Buffer n = several.in("n", i32, {1});
  EXPECT_THAT(error([&] { several.read("n", n, {0}); }), HasSubstr("program several has 2 ranks"));
}

}  // namespace
}  // namespace tilewright
