#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/temporary_folder.h"
#include "runtime/nvrtc_available.h"
#include "tools/run_command.h"

// What the command does on the simulated GPU, and with kernels that are broken on purpose.
namespace tilewright::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

TEST(CommandTest, Simulates) {
  const Answer answer = tilewright(
      "simulate attention_forward --target sm_90a --set heads=1 --set queries=130 --schedules 2 "
      "--launches 2 --json");
  EXPECT_EQ(answer.status, 0) << answer.output;
  const Json json = answer.json();
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["schedules"], 2);
  EXPECT_TRUE(json["faults"].empty());
  EXPECT_EQ(json["outputs"].size(), 2u);
  EXPECT_EQ(json["outputs"][1]["ok"], true);
}

TEST(CommandTest, Fuzzes) {
  const Answer answer = tilewright("fuzz --count 6 --seed 40 --threads 1 --json");
  EXPECT_EQ(answer.status, 0) << answer.output;
  const Json json = answer.json();
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["kernels"], 6);
  EXPECT_TRUE(json["failures"].empty());
  EXPECT_GT(json["elements"], 1000);
  expect_failure("fuzz --target passes:sm_90a", 2,
                 {"target passes:sm_90a is not compared by fuzz"});
  expect_failure("fuzz --target gpu", 2,
                 {"there is no target 'gpu'", "sim:sm_100a, sim:sm_110a, sim:incore"});
}

TEST(CommandTest, StressSimulatesAndAssemblesWithoutAGpu) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const std::string line = "stress gemm --target sm_90a --set schedule=64x96 ";
  const Json clean = tilewright(line + "--json").json();
  EXPECT_TRUE(clean["ok"]);
  EXPECT_EQ(clean["simulator"], "");
  EXPECT_TRUE(clean["assembled"]);
  EXPECT_GE(clean["sizes"].size(), 3u);
  const Json mutants = tilewright(line + "--list-mutants").json();
  ASSERT_GT(mutants.size(), 20u);
  const Answer mutant = tilewright(line + "--mutant 0 --json");
  EXPECT_EQ(mutant.status, 1);
  EXPECT_EQ(mutant.json()["mutant"], mutants[0]);
  EXPECT_NE(mutant.json()["simulator"], "");
  expect_failure(line + "--mutant 100000", 2, {"--mutant 100000", "--list-mutants"});
  expect_failure("stress gemm --target interpreter", 2, {"no timing", "--target cuda"});
}

// One that the assembler refuses is noticed: the answer says so, and what the simulator found.
TEST(CommandTest, StressAnswersForAMutantThatIsNotAssembled) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const std::string line = "stress attention_forward --target sm_90a --set schedule=sm90 --json ";
  const Json mutants = tilewright(line + "--list-mutants").json();
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    const bool is_read_early =
        mutants[i]["kind"] == 4 && mutants[i]["change"] == "leaves 1 groups instead of 0";
    if (!is_read_early) continue;
    const Answer answer = tilewright(line + "--mutant " + std::to_string(i));
    EXPECT_EQ(answer.status, 1) << answer.output;
    EXPECT_EQ(answer.json()["simulator"], "wgmma");
    EXPECT_THAT(std::string(answer.json()["gpu"]["error"]), HasSubstr("serialized"));
    return;
  }
  FAIL() << "no mutant of kind 4";
}

TEST(CommandTest, ProvesAPartOfTheFaults) {
  const std::string line =
      "simulate gemm --target sm_90a --set schedule=64x96 --set m=40 --set n=112 "
      "--set k=112 --faults --more-schedules 2 --json --part ";
  std::size_t mutants = 0;
  for (const char* part : {"1/3", "2/3", "3/3"}) {
    const Answer answer = tilewright(line + part);
    ASSERT_LE(answer.status, 1) << answer.output;  // so small a size leaves some unreached
    mutants += answer.json()["mutants"].size();
  }
  const Json all =
      tilewright("stress gemm --target sm_90a --set schedule=64x96 --list-mutants").json();
  EXPECT_EQ(mutants, all.size());
  expect_failure(line + "4/3", 2, {"--part 4/3", "the second of three"});
  expect_failure(line + "half", 2, {"--part half"});
}

TEST(CommandTest, ProvesTheFaultsOfTheseNumbers) {
  const std::string line =
      "simulate gemm --target sm_90a --set schedule=64x96 --set m=40 --set n=112 "
      "--set k=112 --faults --more-schedules 2 --json ";
  const Json all = tilewright(line + "--list-mutants").json();
  const Json some = tilewright(line + "--mutants 7,2").json()["mutants"];
  ASSERT_EQ(some.size(), 2u);
  for (const char* word : {"kind", "where", "operation", "change"}) {
    EXPECT_EQ(some[0][word], all[2][word]);
    EXPECT_EQ(some[1][word], all[7][word]);
  }
  expect_failure(line + "--mutants 100000", 2, {"--mutants 100000", "--list-mutants"});
}

// Two schedules leave some changes undecided, of which tools/undecided.def knows some.
TEST(CommandTest, FailsForUndecidedChangesThatAreNew) {
  const std::string line =
      "simulate attention_paged_plan --target sm_90a --faults --more-schedules 2 ";
  std::string masks;
  for (const Json& mutant : tilewright(line + "--list-mutants").json()) {
    const int kind = mutant["kind"];
    if (kind == 25 || kind == 32) masks += fmt::format(",{}", mutant["number"].get<int>());
  }
  ASSERT_FALSE(masks.empty());
  const std::string of_masks = line + "--mutants ";
  const Json all = tilewright(of_masks + masks.substr(1) + " --json").json();
  EXPECT_FALSE(all["ok"]);
  std::map<bool, std::string> numbers;
  std::istringstream list(masks);
  list.get();
  for (const Json& mutant : all["mutants"]) {
    std::string number;
    std::getline(list, number, ',');
    if (mutant["verdict"] == "undecided") numbers[mutant["new"]] += "," + number;
  }
  ASSERT_EQ(numbers.size(), 2u);
  const Answer known = tilewright(of_masks + numbers[false].substr(1));
  EXPECT_EQ(known.status, 0) << known.output;
  EXPECT_THAT(known.output, AllOf(HasSubstr("undecided, and why:"), Not(HasSubstr("new: "))));
  const Answer unknown = tilewright(of_masks + numbers[true].substr(1));
  EXPECT_EQ(unknown.status, 1) << unknown.output;
  EXPECT_THAT(unknown.output, HasSubstr("new: no result is wrong"));
}

TEST(CommandTest, NamesSeededFaultsThatItMisses) {
  // One kernel for each is too few for some.
  const Answer answer = tilewright("fuzz --seeded-faults --count 1 --seed 7 --json");
  EXPECT_EQ(answer.status, 1) << answer.output;
  int missed = 0;
  const Json faults = answer.json()["faults"];
  for (const Json& fault : faults) missed += fault["killed"] == false;
  EXPECT_GT(missed, 0);
  EXPECT_LT(missed, static_cast<int>(faults.size()) / 2);
}

TEST(CommandTest, RunsBeforeAndAfterEveryPass) {
  const Answer answer = tilewright(
      "run gemm --target passes:sm_90a --set schedule=tile --set m=5 --set n=8 --set k=24 --check");
  EXPECT_EQ(answer.status, 0) << answer.output;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CommandTest, ShowsTheRaceOfABrokenKernelAndTracesIt) {
  const TemporaryFolder folder;
  const std::string page = folder / "t.html", events = folder / "t.json";
  const std::string broken =
      "simulate attention_forward --target sm_90a --set heads=1 --set queries=64 --set keys=1024 "
      "--set dim=64 --set schedule=sm90 --break release";
  const Answer answer =
      tilewright(broken + " --schedules 3 --trace " + page + " --trace " + events);
  EXPECT_EQ(answer.status, 1) << answer.output;
  EXPECT_THAT(
      answer.output,
      AllOf(HasSubstr("attention_forward is broken at"), HasSubstr("mbarrier_arrive kv_empty"),
            HasSubstr("race: shared kv0["), HasSubstr("read   wgmma_ss"),
            HasSubstr("write  tma_load"), HasSubstr("fix: wait or retire of this product")));
  // The schedule that is named shows it again.
  const std::string replay = "replay the first with ";
  const std::size_t at = answer.output.find(replay);
  ASSERT_NE(at, std::string::npos) << answer.output;
  const std::size_t start = at + replay.size();
  const Answer again = tilewright(
      broken + " --json " + answer.output.substr(start, answer.output.find('\n', at) - start));
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_EQ(again.json()["faults"][0]["kind"], "race");
  EXPECT_THAT(answer.output, HasSubstr(again.json()["faults"][0]["message"].get<std::string>()));

  EXPECT_THAT(contents(page), HasSubstr("attention_forward_sm90"));
  const Json trace = Json::parse(contents(events));
  int marks = 0;
  for (const Json& event : trace["traceEvents"]) marks += event.value("cat", "") == "fault";
  EXPECT_EQ(marks, 2);
}

TEST(CommandTest, TracesALaunchThatDoesNothing) {
  const TemporaryFolder folder;
  const std::string events = folder / "t.json";
  EXPECT_EQ(tilewright("simulate attention_forward --target sm_90a --set queries=0 --trace " +
                       events + " --trace " + (folder / "t.html"))
                .status,
            0);
  EXPECT_TRUE(Json::parse(contents(events))["traceEvents"].empty());
}

TEST(CommandTest, SimulatesControlAlone) {
  for (const std::string kernel :
       {"attention_forward --set heads=1 --set queries=200 --set causal=true",
        "attention_forward --set heads=1 --set queries=200 --set schedule=tile",
        "attention_varlen_forward --set heads=1 --set batch=3",
        "gemm --set m=200 --set n=136 --set k=264",
        "gemm_fp8 --set m=200 --set n=136 --set k=256"}) {
    const Answer answer =
        tilewright("simulate " + kernel + " --target sm_90a --control-only --schedules 5 --json");
    EXPECT_EQ(answer.status, 0) << answer.output;
    const Json json = answer.json();
    EXPECT_EQ(json["control_only"], true);
    EXPECT_GT(json["operations"], 1000);
    EXPECT_FALSE(json.contains("outputs")) << "there is no result to compare";
  }
}

// CTAs that take numbers from a word, and conditions that a seed draws, have many schedules.
TEST(CommandTest, OneScheduleStandsForAllWhereNothingHangsOnIt) {
  const auto run = [](const std::string& kernel, const std::string& how) {
    return tilewright("simulate " + kernel + " --target sm_90a --schedules 5 --json " + how).json();
  };
  const std::string gemm = "gemm --set schedule=64x96 --set m=64 --set n=64 --set k=64";
  const Json one = run(gemm, "--one-for-all"), all = run(gemm, "");
  EXPECT_EQ(one["cases"][0]["one_for_all"], true);
  EXPECT_EQ(one["schedules"], 5);
  EXPECT_LT(4 * one["operations"].get<std::int64_t>(), all["operations"].get<std::int64_t>());
  int alone = 0, several = 0;
  std::int64_t of_several = 0;
  const Json shared = run("attention_backward --set schedule=ordered --set heads=2",
                          "--one-for-all --shrunken --control-only");
  for (const Json& each : shared["cases"]) {
    (each.contains("one_for_all") ? alone : several) += 1;
    if (!each.contains("one_for_all")) of_several += each["schedules"].get<std::int64_t>();
  }
  EXPECT_GT(alone, 0);
  EXPECT_GT(several, 0);
  // These have five between them, but for what is rounded up.
  EXPECT_GE(of_several, 5);
  EXPECT_LE(of_several, 5 + several);
  // The smallest one alone has values; the results of it are those that are told.
  const Json limited =
      run("gemm --set schedule=64x96", "--one-for-all --shrunken --valued-operations 1");
  int valued = 0;
  for (const Json& each : limited["cases"]) valued += !each.contains("without_values");
  EXPECT_EQ(valued, 1);
  EXPECT_GT(limited["cases"].size(), 1u);
  EXPECT_EQ(limited["outputs"].size(), 1u);
  const std::string attention =
      "attention_forward --set schedule=sm90 --set heads=1 "
      "--set queries=64 --set keys=64";
  EXPECT_FALSE(run(attention, "--one-for-all --control-only")["cases"][0].contains("one_for_all"));
}

// A sequence has pages for more steps than a ring has stages, so that who keeps a stage is noticed.
TEST(CommandTest, RingsOfPagesWrapAround) {
  const std::string faults =
      "simulate attention_paged --target sm_90a --set schedule=sm90_split --set heads=2 "
      "--set kv_heads=1 --set dim=64 --faults --json ";
  std::string number;
  for (const Json& each : tilewright(faults + "--list-mutants").json()) {
    const auto operation = each["operation"].get<std::string>();
    if (each["change"] == "left out" && operation.rfind("mbarrier_arrive keys0_empty", 0) == 0) {
      number = std::to_string(each["number"].get<int>());
    }
  }
  ASSERT_FALSE(number.empty());
  const Json found = tilewright(faults + "--threads 1 --mutants " + number).json();
  ASSERT_EQ(found["mutants"].size(), 1u);
  EXPECT_EQ(found["mutants"][0]["verdict"], "caught");
  EXPECT_EQ(found["mutants"][0]["fault"], "deadlock");
}

// What each product multiplies belongs together in everything that ships: no false alarms.
TEST(CommandTest, FollowsWhereOperandsComeFrom) {
  for (const std::string kernel :
       {"attention_forward --set heads=4 --set kv_heads=2 --set queries=200 --set causal=true",
        "attention_forward --set heads=1 --set queries=100 --set keys=300 --set dim=256",
        "attention_forward --set heads=2 --set queries=200 --set schedule=tile",
        "attention_varlen_forward --set heads=2 --set kv_heads=1 --set batch=3",
        "attention_varlen_forward --set heads=1 --set batch=2 --set schedule=tile",
        "gemm --set m=200 --set n=136 --set k=264 --set schedule=tile",
        "gemm --set m=300 --set n=200 --set k=520 --set schedule=48x64x128_t_split6",
        "gemm --set m=300 --set n=200 --set k=520 --set schedule=64x64x128_a2_b2_split4",
        "gemm_fp8 --set m=200 --set n=136 --set k=256"}) {
    const Answer answer = tilewright("simulate " + kernel +
                                     " --target sm_90a --provenance --control-only --schedules 3");
    EXPECT_EQ(answer.status, 0) << answer.output;
    EXPECT_THAT(answer.output, HasSubstr("3 schedules"));
    EXPECT_THAT(answer.output, HasSubstr(" 0 faults"));
  }
  expect_failure("simulate gemm --target sm_90a --provenance --faults", 2, {"--faults"});
}

TEST(CommandTest, SearchesAmongSchedulesWithFewDelays) {
  const std::string gemm = "simulate gemm --target sm_90a --set schedule=64x96 --control-only ";
  const std::string some =
      gemm + "--set m=64 --set n=64 --set k=64 --search delays --schedules 10 --seed 5 ";
  const Json json = tilewright(some + "--json").json();
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["cases"][0]["schedules"], 10);
  const std::string possible = json["cases"][0]["possible"].dump();
  EXPECT_THAT(tilewright(some).output,
              HasSubstr("10 of " + possible + " schedules with at most two delays"));
  EXPECT_THAT(tilewright(gemm + "--set m=0 --search delays --schedules 10").output,
              HasSubstr("all 1 schedule with at most two delays"));
  expect_failure(gemm + "--search luck", 2, {"luck", "random", "delays"});

  const Json shrunken = tilewright(gemm + "--shrunken --strict --schedules 2 --json").json();
  EXPECT_EQ(shrunken["ok"], true);
  EXPECT_EQ(shrunken["strict"], true);
  // Six sizes of steps and tails, and others at the edges of what decides.
  EXPECT_GT(shrunken["cases"].size(), 6u);
  EXPECT_EQ(shrunken["schedules"], 2 * shrunken["cases"].size());
}

// Twice so little L2 has keys of two heads: of five heads the last one is a group of its own.
TEST(CommandTest, SimulatesTheLastGroupOfHeads) {
  const Answer answer = tilewright(
      "simulate attention_forward --target sm_90a --set schedule=sm90 --set heads=5 "
      "--set queries=200 --set keys=200 --set causal=true --set l2_bytes=55000");
  EXPECT_EQ(answer.status, 0) << answer.output;
}

// Of many keys, those of a tile that is left over are divided: two parts cost less than a whole one
// from 28 blocks of them on.
TEST(CommandTest, SimulatesTilesWhoseKeysAreDivided) {
  const Json json = tilewright(
                        "simulate attention_forward --target sm_90a --set schedule=sm90_parts "
                        "--set dim=128 --shrunken --control-only --schedules 1 --launches 1 --json")
                        .json();
  EXPECT_EQ(json["ok"], true);
  constexpr int kMultiprocessors = 5, kRows = 192, kKeys = 64;
  bool divides = false;
  for (const Json& each : json["cases"]) {
    int batch = 0, heads = 0, queries = 0, keys = 0;
    ASSERT_EQ(std::sscanf(each["sizes"].get<std::string>().c_str(),
                          "batch=%d heads=%d queries=%d keys=%d", &batch, &heads, &queries, &keys),
              4);
    const int left = batch * heads * ((queries + kRows - 1) / kRows) % kMultiprocessors;
    divides = divides || (keys >= 28 * kKeys && (left == 1 || left == 2));
  }
  EXPECT_TRUE(divides) << json["cases"];
}

TEST(CommandTest, ReplaysAFaultFromTheSeedThatItPrints) {
  for (const std::string search : {"random", "delays"}) {
    const std::string line =
        "simulate attention_forward --target sm_90a --control-only --break warp_sync "
        "--multiprocessors 1 "
        "--set heads=2 --set queries=552 --set keys=112 --json --search " +
        search;
    const Answer answer = tilewright(line + " --schedules 3");
    EXPECT_EQ(answer.status, 1) << answer.output;
    const Json json = answer.json(), fault = json["faults"][0];
    EXPECT_THAT(fault["missing"].get<std::string>(), HasSubstr("warp_sync in math warp"));
    const Json again = tilewright(line + " " + json["replay"].get<std::string>()).json();
    for (const char* key : {"kind", "first", "second"}) {
      EXPECT_EQ(again["faults"][0][key], fault[key]);
    }
  }
}

TEST(CommandTest, ShowsWhichSeededFaultsAreFound) {
  const std::string line =
      "simulate gemm --target sm_90a --set schedule=64x96 --set n=112 --faults";
  const Answer answer = tilewright(line + " --json");
  EXPECT_EQ(answer.status, 0) << answer.output;
  const Json json = answer.json();
  EXPECT_EQ(json["ok"], true);
  EXPECT_GE(json["sizes"].size(), 8u);  // some are for what the others do not execute
  ASSERT_EQ(json["kinds"].size(), 34u);
  EXPECT_EQ(json["kinds"][11]["absent"], "no site here: no products in tensor memory");
  std::size_t mutants = 0;
  for (const Json& kind : json["kinds"]) {
    if (kind.contains("absent")) continue;
    mutants += kind["mutants"].get<std::size_t>();
    EXPECT_EQ(kind["caught"], kind["right_class"]) << kind;
  }
  EXPECT_EQ(json["mutants"].size(), mutants);
  // What replays a fault.
  for (const Json& mutant : json["mutants"]) {
    EXPECT_EQ(mutant.contains("seed"), mutant["verdict"] == "caught");
    // A single column of tiles leaves divisions that no size tells from others.
    const bool undecided = mutant["verdict"] == "undecided";
    EXPECT_TRUE(!undecided || (mutant["kind"] == 36 && mutant["new"] == false)) << mutant;
  }
  EXPECT_THAT(tilewright(line).output,
              AllOf(HasSubstr("7 no proxy fence before a TMA store"), HasSubstr("all"),
                    HasSubstr("shrunken sizes"), testing::Not(HasSubstr("new: "))));
  expect_failure(line + " --control-only", 2, {"--faults"});
}

TEST(CommandTest, RunsOnTheSimulatedGpu) {
  const Answer answer = tilewright(
      "run attention_forward --target sim:sm_90a --set heads=1 --set queries=70 --check --json");
  EXPECT_EQ(answer.status, 0) << answer.output;
  EXPECT_EQ(answer.json()["ok"], true);
}

TEST(CommandTest, ALaunchFileIsOfPtxAlone) {
  expect_failure("simulate gemm --target sm_90a --launch gemm.json", 2,
                 {"--launch gemm.json is of a FILE.ptx, and gemm is none", "fix: "});
}

// What PTX of other compilers does not have is refused, rather than left out.
TEST(CommandTest, OfPtxOnlySomeOptionsAre) {
  for (const char* option :
       {"--set n=3", "--launches 3", "--ranks 2", "--multiprocessors 4", "--numerics strict",
        "--faults", "--control-only", "--provenance", "--printed", "--trace t.html",
        "--break release", "--search held", "--one-for-all", "--issue-order", "--strict",
        "--shrunken", "--checked"}) {
    const std::string said = option;
    expect_failure("simulate made.ptx --target sm_90a " + said, 2,
                   {said.substr(0, said.find(' ')), "made.ptx was made by another compiler",
                    "fix: leave it out"});
  }
  expect_failure("simulate made.ptx --target incore", 2, {"--target incore", "made.ptx", "fix: "});
  expect_failure("simulate made.ptx --target sm_90a", 2, {"made.ptx: cannot read", "fix: "});
  const TemporaryFolder folder;
  const std::string alone = folder / "alone.ptx";
  std::ofstream(alone) << ".version 8.0\n.target sm_90a\n.address_size 64\n"
                          ".visible .entry k() { ret; }\n";
  expect_failure("simulate " + alone + " --target sm_90a", 2,
                 {"alone.ptx: nothing says how it is launched", "alone.json", "--launch"});
}

TEST(CommandTest, SimulatesEmptyLaunches) {
  EXPECT_EQ(tilewright("simulate attention_forward --target sm_90a --set queries=0").status, 0);
}

}  // namespace
}  // namespace tilewright::test
