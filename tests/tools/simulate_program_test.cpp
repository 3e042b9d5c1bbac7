#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/programs.h"
#include "common/temporary_folder.h"
#include "examples/all_reduce.h"
#include "ir/program_text.h"
#include "ir/text.h"
#include "runtime/nvrtc_available.h"
#include "support/file.h"
#include "tools/run_command.h"

// The command on programs, and on kernels of several ranks.
namespace tilewright::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

// A program is written while it is simulated.
class SimulateProgram : public testing::Test {
 protected:
  SimulateProgram() : kernel_(folder_ / "all_reduce.tw") {
    setenv("TILEWRIGHT_DUMP", (folder_ / "").c_str(), 1);
    simulate(Push(true).program);
    simulate(Push(false, 2).program);
    simulate(TwoKernels("second", true).program);
    const AllLengths all;
    ProgramMemory memory(all.program, {{"rows", 1}});
    simulate(all.program, memory);
    unsetenv("TILEWRIGHT_DUMP");
    write_text(kernel_, ir::to_text(examples::all_reduce().finish()));
  }
  std::string simulate_line(const std::string& file) const {
    return "simulate " + (folder_ / file) + " --target sm_90a ";
  }
  std::string kernel_line() const { return "simulate " + kernel_ + " --target sm_90a "; }

  TemporaryFolder folder_;
  std::string kernel_;
};

TEST_F(SimulateProgram, SaysOverHowManySchedulesItIsClean) {
  const Answer answer = tilewright(simulate_line("push-3ranks.twp") + "--schedules 4 --launches 3");
  EXPECT_EQ(answer.status, 0) << answer.output;
  EXPECT_THAT(answer.output,
              AllOf(HasSubstr("push, 3 ranks, on simulated sm_90a: 4 schedules of 3 runs of 3 "
                              "launches"),
                    HasSubstr(" 0 faults"), HasSubstr("the schedules' results: the same bits")));
  const Json one = tilewright(simulate_line("two_kernels.twp") + "--json").json();
  EXPECT_EQ(one["ranks"], 1);
  EXPECT_EQ(one["runs"], 2);
  EXPECT_EQ(one["launches"], 2);
}

// Kernels of such a file are held against their target as it is read.
TEST_F(SimulateProgram, RefusesAKernelThatItsTargetDoesNotTake) {
  std::string text = ir::to_text(examples::all_reduce().finish());
  const std::string threads = "threads 128";
  ASSERT_NE(text.find(threads), std::string::npos);
  text.replace(text.find(threads), threads.size(), "threads 4096");
  write_text(folder_ / "many.twp", "program \"many\" 1 ranks\n" + text);
  const Answer answer = tilewright(simulate_line("many.twp"));
  EXPECT_EQ(answer.status, 2) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr("many.twp:2: error: kernel \"all_reduce\""));
}

TEST_F(SimulateProgram, NamesAFaultAndTheSeedThatReplaysIt) {
  const std::string line = simulate_line("push-2ranks.twp");
  const Answer answer = tilewright(line + "--schedules 3 --seed 5");
  EXPECT_EQ(answer.status, 1) << answer.output;
  EXPECT_THAT(answer.output,
              AllOf(HasSubstr("race: global y of rank"), HasSubstr("stream push of rank"),
                    HasSubstr("of scale of rank"), HasSubstr("the other place is at"),
                    HasSubstr("fix: a signal of scope system")));
  const std::string replay = "replay the first with ";
  const std::size_t start = answer.output.find(replay) + replay.size();
  const std::string options = answer.output.substr(start, answer.output.find('\n', start) - start);
  const Json again = tilewright(line + options + " --json").json();
  ASSERT_EQ(again["faults"].size(), 1u);
  EXPECT_THAT(answer.output, HasSubstr(again["faults"][0]["message"].get<std::string>()));
}

TEST_F(SimulateProgram, SearchesAndTraces) {
  const Json json = tilewright(simulate_line("push-3ranks.twp") +
                               "--search delays --schedules 5 --strict --control-only --json")
                        .json();
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["schedules"], 5);
  EXPECT_GT(json["cases"][0]["possible"], 100);
  const std::string page = folder_ / "t.html";
  EXPECT_EQ(tilewright(simulate_line("push-2ranks.twp") + "--trace " + page).status, 1);
  std::ifstream file(page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, AllOf(HasSubstr("stream push of rank 1"), HasSubstr("push-2ranks.twp")));
}

TEST_F(SimulateProgram, LaunchesAKernelInEachRank) {
  const Answer two = tilewright(kernel_line() + "--set rows=70 --launches 3");
  EXPECT_EQ(two.status, 0) << two.output;
  EXPECT_THAT(two.output, HasSubstr("all_reduce, 2 ranks, on simulated sm_90a: 1 schedule of 3 "
                                    "runs of 2 launches"));
  const Json json = tilewright(kernel_line() + "--ranks 3 --shrunken --schedules 2 --json").json();
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["ranks"], 3);
  EXPECT_GT(json["cases"].size(), 1u);
  // Each CTA waits for its like on the other ranks, and all of them for a place.
  const Answer narrow = tilewright(kernel_line() + "--multiprocessors 1 --set rows=300");
  EXPECT_EQ(narrow.status, 1);
  EXPECT_THAT(narrow.output, HasSubstr("have not started: all places of the device are taken"));
}

TEST_F(SimulateProgram, ShowsWhichSeededFaultsAreFound) {
  const Answer words = tilewright(simulate_line("push-3ranks.twp") + "--faults --json");
  EXPECT_EQ(words.status, 0) << words.output;
  const Json json = words.json();
  EXPECT_EQ(json["runs"], 3);
  ASSERT_EQ(json["kinds"].size(), 11u);
  EXPECT_EQ(json["kinds"][2]["absent"], "no site here: no waits for events");
  EXPECT_EQ(json["kinds"][3]["caught"], 6);
  const Answer kernel = tilewright(kernel_line() + "--faults --ranks 2 --set rows=70");
  EXPECT_EQ(kernel.status, 0) << kernel.output;
  EXPECT_THAT(kernel.output, AllOf(HasSubstr("23 signal before its data"),
                                   HasSubstr("27 a word that is not waited for"),
                                   Not(HasSubstr("undecided, and why:"))));
}

// Blocks that add in their order meet at a word that the compiler has added to the kernel.
TEST_F(SimulateProgram, OfKernelsThatAddInOrder) {
  Kernel sums("sums");
  const Dim rows = sums.dim("rows");
  const Tensor X = sums.in("X", f32, {rows, 64}), S = sums.inout("S", f32, {1, 64});
  const auto [i] = sums.grid(ceil_div(rows, 16));
  const Index first = 0;
  add(S(Block(first, 1, 1), all), reduce_sum(load(X(rows.block(i, 16), all)), 0));
  Program program("ordered_sums");
  const Dim m = program.dim("m");
  const Buffer x = program.in("x", f32, {m, 64}), s = program.zeroed("s", f32, {1, 64});
  const Buffer y = program.out("y", f32, {1, 64});
  const Stream stream = program.rank(0).stream();
  stream.launch(sums, {x, s});
  stream.copy(y, s);
  write_text(folder_ / "ordered_sums.twp", ir::to_text(program.finish()));
  const Answer answer = tilewright(simulate_line("ordered_sums.twp") + "--set m=50 --schedules 3");
  EXPECT_EQ(answer.status, 0) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr(" 0 faults"));
}

TEST_F(SimulateProgram, OfTheSizesThatAreSet) {
  const std::string line = simulate_line("all_lengths.twp");
  for (const char* rows : {"0", "37"}) {
    const Answer answer = tilewright(line + "--schedules 2 --set rows=" + rows);
    EXPECT_EQ(answer.status, 0) << answer.output;
    EXPECT_THAT(answer.output, HasSubstr("2 schedules of 2 runs of 3 launches"));
  }
  const Answer faults = tilewright(line + "--faults --set rows=20");
  EXPECT_EQ(faults.status, 0) << faults.output;
  EXPECT_THAT(faults.output, HasSubstr("31 memory that is not set to zero"));
  expect_failure(line, 2, {"the dim rows has no value", "--set rows=128"});
  expect_failure(line + "--set rows=1001", 2, {"the dim rows is 1001", "at most 1000"});
  expect_failure(line + "--set rows=many", 2, {"--set rows=many: no size"});
  expect_failure(line + "--set rows=9 --set keys=9", 2, {"there is no dim keys"});
  expect_failure(line + "--shrunken", 2, {"--shrunken", "--set name=value"});
}

TEST_F(SimulateProgram, RefusesWhatDoesNotApply) {
  const std::string program = simulate_line("push-3ranks.twp"), kernel = kernel_line();
  expect_failure(program + "--ranks 2", 2, {"--ranks 2", "recorded for 3 ranks", "fix: record it"});
  expect_failure(program + "--ranks 0", 2, {"--ranks 0", "1 to 8"});
  expect_failure(kernel + "--ranks -1", 2, {"--ranks -1", "1 to 8"});
  expect_failure(kernel + "--ranks 9", 2, {"--ranks 9", "1 to 8"});
  expect_failure(program + "--set rows=3", 2,
                 {"--set rows=3", "the sizes with which it was recorded"});
  expect_failure(program + "--shrunken", 2, {"--shrunken", "the sizes with which it was recorded"});
  expect_failure(program + "--break release", 2, {"--break release", "--faults"});
  expect_failure(program + "--faults --control-only", 2, {"--faults"});
  expect_failure(program + "--faults --part 2/3", 2,
                 {"--part 2/3", "a program with waits", "fix: leave --part out"});
  expect_failure(kernel + "--set columns=3", 2, {"columns", "rows"});
  expect_failure("simulate gemm --target sm_90a --ranks 2", 2, {"gemm", "reaches no other rank"});
  expect_failure("simulate gemm --target sm_90a --multiprocessors 2 --faults", 2,
                 {"as the shrunken sizes need"});
  expect_failure("simulate push --target sm_90a", 2,
                 {"there is no kernel 'push'", "gemm", "NAME.twp of a Program"});
  expect_failure("simulate " + (folder_ / "none.twp") + " --target sm_90a", 2, {"cannot read"});
  expect_failure("simulate " + (folder_ / "push-3ranks.twp") + " --target interpreter", 2,
                 {"not simulated"});
  expect_failure("stress " + kernel_ + " --target sm_90a", 2, {"reaches other ranks"});
  write_text(folder_ / "broken.twp", "program \"p\" 2 ranks\nstream \"s\" of 7\n");
  expect_failure(simulate_line("broken.twp"), 2, {"broken.twp:2", "a rank from 0 to 1"});
}

// Sizes at which the pipelines of all kernels wrap around: on one multiprocessor, and on as many as
// the program divides its work among.
TEST(SimulateOperation, TakesShrunkenSizes) {
  const std::string line = "simulate attention_decode --target sm_90a --set dim=64 ";
  const Answer answer = tilewright(line + "--shrunken --json");
  EXPECT_EQ(answer.status, 0) << answer.output;
  const Json json = answer.json();
  EXPECT_EQ(json["ok"], true);
  std::vector<std::string> sizes;
  for (const Json& each : json["cases"]) sizes.push_back(each["sizes"]);
  EXPECT_THAT(sizes, AllOf(Contains("batch=1 kv_heads=2 keys=304, 1 multiprocessor"),
                           Contains("batch=1 kv_heads=2 keys=304, 8 multiprocessors"),
                           Contains(HasSubstr("keys=0,"))));
  const Json set = tilewright(line + "--shrunken --set keys=70 --multiprocessors 3 --json").json();
  EXPECT_EQ(set["cases"][0]["sizes"], "batch=1 kv_heads=2, 3 multiprocessors");
  EXPECT_THAT(
      tilewright(line + "--set keys=70").output,
      AllOf(HasSubstr("1 schedule of 2 runs of 2 launches"), HasSubstr("rounding explains")));
}

// At one size here, and few schedules: it takes minutes at all of the shrunken ones.
TEST(SimulateOperation, SeedsFaultsIntoItsKernels) {
  const Json json = tilewright(
                        "simulate attention_decode --target sm_90a --set dim=16 --set group=1 "
                        "--set batch=1 --set kv_heads=1 --set keys=70 --multiprocessors 1 "
                        "--faults --more-schedules 1 --json")
                        .json();
  EXPECT_EQ(json["runs"], 2);
  int parts = 0;
  for (const Json& mutant : json["mutants"]) {
    if (mutant["verdict"] != "caught") continue;
    const std::string operation = mutant["operation"];
    parts += operation.find("of attention_decode_parts") != operation.npos;
  }
  EXPECT_GT(parts, 50);
}

TEST(SimulateOperation, ProvesAPartOfTheFaults) {
  const std::string line =
      "simulate attention_decode --target sm_90a --set dim=16 --set group=1 --set batch=1 --set "
      "kv_heads=1 --set keys=20 --multiprocessors 1 --faults --more-schedules 1 --json --part ";
  const auto mutants = [&](const char* part) {
    return tilewright(line + part).json()["mutants"].size();
  };
  const std::size_t all = mutants("1/1");
  std::size_t sum = 0;
  for (const char* part : {"1/3", "2/3", "3/3"}) {
    const std::size_t some = mutants(part);
    EXPECT_GE(some, all / 4) << part;
    sum += some;
  }
  EXPECT_EQ(sum, all);
}

TEST(SimulateOperation, ProvesTheFaultsOfTheseNumbers) {
  const std::string line =
      "simulate attention_decode --target sm_90a --set dim=16 --set group=1 --set batch=1 --set "
      "kv_heads=1 --set keys=20 --multiprocessors 1 --faults --more-schedules 1 --json ";
  const Json all = tilewright(line + "--list-mutants").json();
  const Json some = tilewright(line + "--mutants 3").json()["mutants"];
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0]["operation"], all[3]["operation"]);
  EXPECT_EQ(some[0]["where"], all[3]["where"]);
}

TEST(SimulateOperation, BreaksTheFirstKernelThatCanBeBrokenSo) {
  const std::string line = "simulate attention_decode --target sm_90a --set dim=64 --shrunken ";
  const Answer answer = tilewright(line + "--break release");
  EXPECT_EQ(answer.status, 1) << answer.output;
  EXPECT_THAT(answer.output, AllOf(HasSubstr("attention_decode is broken at"),
                                   HasSubstr("attention_decode_parts"), HasSubstr("race: ")));
  expect_failure(line + "--break nothing", 2, {"there is no breakage 'nothing'"});
}

TEST(SimulateOperation, DataThatSaysLittleIsAWarning) {
  const std::string line =
      "simulate attention_decode --target sm_90a --set dim=16 --set group=1 --set batch=1 --set "
      "kv_heads=1 --set keys=200";
  EXPECT_EQ(tilewright(line + " --json").json()["weak"], Json::array());
  const Answer zeros = tilewright(line + " --in V=full:0");
  EXPECT_EQ(zeros.status, 0);
  EXPECT_THAT(zeros.output, HasSubstr("warning: weak data: O: every expected number is 0"));
  EXPECT_EQ(tilewright(line + " --in V=full:0 --json").json()["weak"].size(), 1u);
}

TEST(SimulateOperation, StressSimulatesAndAssemblesEachKernel) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const std::string line =
      "stress attention_decode --target sm_90a --set dim=16 --set group=1 --set batch=1 --set "
      "kv_heads=1 ";
  const Json clean = tilewright(line + "--json").json();
  EXPECT_TRUE(clean["ok"]);
  EXPECT_EQ(clean["simulator"], "");
  EXPECT_TRUE(clean["assembled"]);
  EXPECT_THAT(clean["sizes"], Contains("default lengths"));
  const Json mutants = tilewright(line + "--list-mutants").json();
  ASSERT_GT(mutants.size(), 20u);
  EXPECT_THAT(std::string(mutants[0]["operation"]), HasSubstr(" of attention_decode_parts"));
  const Answer mutant = tilewright(line + "--json --mutant 0");
  EXPECT_EQ(mutant.status, 1);
  EXPECT_EQ(mutant.json()["mutant"], mutants[0]);
  EXPECT_NE(mutant.json()["simulator"], "");
}

TEST(SimulateOperation, TunesAndExplainsPrograms) {
  const TemporaryFolder folder;
  const Answer tuned = tilewright(
      "tune attention_decode --target sm_90a --model-only --sizes keys=256,4096 --json --out " +
      (folder / "rules.txt"));
  EXPECT_EQ(tuned.status, 0) << tuned.output;
  EXPECT_EQ(tuned.json()["variants"], 1);
  EXPECT_THAT(read_text(folder / "rules.txt"), HasSubstr("else: schedule=tile"));
  const WithoutNvrtc without;
  const std::string page = folder / "page.html";
  const Answer explained = tilewright("explain attention_decode --target sm_90a --html " + page +
                                      " --layouts " + (folder / "layouts"));
  EXPECT_EQ(explained.status, 3);  // no cubin
  EXPECT_THAT(explained.output, HasSubstr("  2 launch attention_decode_join {P, L, O, LSE}"));
  const std::string text = read_text(page);
  EXPECT_TRUE(text.find("\"text\":\"launch attention_decode_join") != text.npos);
  EXPECT_TRUE(text.find("program-steps") != text.npos);
  EXPECT_FALSE(read_text(folder / "layouts/attention_decode_parts/tilewright-explain.txt").empty());
}

// What a rank reads or writes of another one's tensors lies between that one's begin and end of the
// run: in each schedule, beside callers that use all tensors between the runs.
class OverRanks : public testing::TestWithParam<std::string> {};
TEST_P(OverRanks, TheirTensorsAreTheCallersBetweenRuns) {
  const Json kernel = tilewright("list " + GetParam() + " --json").json()["kernels"][0];
  // Of three ranks and more some hand on what another one has sent. What computes takes long.
  const bool computes = GetParam().find("gemm") != std::string::npos ||
                        GetParam().find("attention") != std::string::npos;
  const std::string ranks = computes ? "2" : "4";
  for (const Json& schedule : kernel["schedules"]) {
    const std::string line =
        "simulate " + GetParam() + " --target sm_90a --set ranks=" + ranks +
        " --shrunken --control-only --set schedule=" + schedule["name"].get<std::string>();
    const Answer answer = tilewright(line);
    EXPECT_EQ(answer.status, 0) << line << "\n" << answer.output;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Operations, OverRanks,
    testing::Values("gemm_reduce_scatter", "all_gather_gemm", "sequence_parallel_attention",
                    "sequence_parallel_attention_backward", "sequence_parallel_varlen_attention",
                    "all_to_all", "all_to_all_back", "all_to_all_varlen", "all_to_all_varlen_back",
                    "all_gather", "reduce_scatter", "all_reduce", "broadcast"),
    [](const auto& info) { return info.param; });

// Of two ranks with one CTA each every schedule with at most two delays.
TEST(OverTwoRanks, AllSchedulesWithTwoDelaysAreClean) {
  const Json json = tilewright(
                        "simulate broadcast --target sm_90a --set ranks=2 --set count=8 "
                        "--set schedule=one_shot --launches 1 --multiprocessors 1 "
                        "--control-only --search delays --schedules 100000 --json")
                        .json();
  EXPECT_EQ(json["ok"], true);
  ASSERT_GT(json["cases"][0]["possible"], 5000);
  EXPECT_EQ(json["schedules"], json["cases"][0]["possible"]);
}

// A core's program that divides its work has a size in which it does so, and one schedule of each.
TEST(SimulateOperationOfCores, RunsInManyPartsAndInOneSchedule) {
  const Json json = tilewright(
                        "simulate attention_decode --target incore --set schedule=tile "
                        "--set dim=16 --set group=1 --shrunken --one-for-all "
                        "--control-only --schedules 9 --json")
                        .json();
  std::vector<std::string> sizes;
  for (const Json& each : json["cases"]) {
    EXPECT_EQ(each.value("one_for_all", false), true) << each;
    sizes.push_back(each["sizes"]);
  }
  EXPECT_THAT(sizes, Contains(HasSubstr(", 64 multiprocessors")));
  EXPECT_THAT(sizes, Contains(HasSubstr(", 2 multiprocessors")));
}

// A row is longer than a block of it, though it be short as it stands; and of rows there are more
// than blocks in the most parts that sums are divided into.
TEST(SimulateOperationOfCores, SizesComeToTheSecondBlock) {
  const auto sizes_of = [](const std::string& name, const std::string& target = "incore") {
    const Json json = tilewright("simulate " + name + " --target " + target +
                                 " --set schedule=tile --shrunken --one-for-all --control-only "
                                 "--json")
                          .json();
    std::vector<std::string> sizes;
    for (const Json& each : json["cases"]) sizes.push_back(each["sizes"]);
    return sizes;
  };
  EXPECT_THAT(sizes_of("softmax"), Contains(HasSubstr("rows=19 columns=2050")));
  EXPECT_THAT(sizes_of("column_sums"), Contains(HasSubstr("rows=5186")));
  // One block is the first and the last, and its last position is the table's.
  EXPECT_THAT(sizes_of("kv_append --set page=1 --set rotary=true"),
              Contains(HasSubstr("tokens=1 batch=1 pages=1 max_pages=1")));
  // Sequences of several steps of a page, in room for all of them.
  EXPECT_THAT(sizes_of("attention_paged --set page=256 --set csr=true"),
              Contains(HasSubstr("pages=11 keys=81")));
  // What no tensor but a vector has: its blocks are the vector's.
  EXPECT_THAT(sizes_of("attention_paged_plan"), Contains(HasSubstr("batch=130")));
  // Heads that are taken one by one, and of one vector all at once.
  EXPECT_THAT(
      sizes_of("ring_attention_backward --set dim=16 --set sinks=true", "incore_partitions"),
      Contains(HasSubstr("heads=2 queries=33")));
}

// What a kernel of a program's file reads beyond its mask shows on no inputs, far from zero or not.
TEST_F(SimulateProgram, FaultsOfCoresAreHeldAgainstUnusualInputs) {
  Kernel kernel("masked_sums");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 64}), Y = kernel.out("Y", f32, {rows, 1});
  const Scalar n = kernel.scalar("n", i32);
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(i, 16);
  store(Y(own, all), reduce_sum(load(X(own, Block(0, 64, Index(n)))) + 1, 1));
  Program program("masked");
  const Buffer x = program.in("x", f32, {16, 64}), y = program.out("y", f32, {16, 1});
  program.rank(0).stream().launch(kernel, {x, y}, {33});
  write_text(folder_ / "masked.twp", ir::to_text(program.finish()));
  const std::string line = "simulate " + (folder_ / "masked.twp") + " --target incore --faults ";
  std::string numbers;
  for (const Json& each : tilewright(line + "--list-mutants").json()) {
    if (each["kind"] == 55 && each["change"] == "ends one later on axis 1") {
      numbers += (numbers.empty() ? "" : ",") + std::to_string(each["number"].get<int>());
    }
  }
  const Json json = tilewright(line + "--json --mutants " + numbers).json();
  std::vector<std::string> reasons;
  for (const Json& each : json["mutants"]) reasons.push_back(each.value("why", ""));
  EXPECT_THAT(reasons, Contains(HasSubstr("also of inputs far from zero"))) << json["mutants"];
}

}  // namespace
}  // namespace tilewright::test
