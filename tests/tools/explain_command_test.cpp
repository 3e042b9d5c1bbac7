#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "common/temporary_folder.h"
#include "tools/run_command.h"

namespace tilewright::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

TEST(CommandTest, ExplainsTheTileLevel) {
  const Answer answer = tilewright("explain gemm --target interpreter --json");
  EXPECT_EQ(answer.status, 0) << answer.output;
  const Json json = answer.json();
  EXPECT_EQ(json["stages"][0]["name"], "trace");
  EXPECT_EQ(json["instructions"]["dot"], 1);
  EXPECT_TRUE(json["resources"]["registers"].is_null());
}

// The list of operations on whole tiles, as some blocks took them.
TEST(CommandTest, ExplainsTheCpu) {
  const std::string explain =
      "explain gemm --target cpu --set m=200 --set n=100 --set k=70 --set dtype=f32 ";
  const Json json = tilewright(explain + "--json").json();
  const Json cpu = json["cpu"];
  const auto product = std::find_if(
      cpu["operations"].begin(), cpu["operations"].end(),
      [](const Json& each) { return each["text"].get<std::string>().starts_with("dot f32 {"); });
  ASSERT_NE(product, cpu["operations"].end()) << cpu;
  EXPECT_GT((*product)["seconds"], 0);
  EXPECT_GT((*product)["flops"], 0);
  EXPECT_THAT((*product)["where"].get<std::string>(), HasSubstr("kernels/gemm.cpp:"));
  EXPECT_GT(cpu["measured"]["measured"], 0);
  EXPECT_GT(cpu["peaks"]["flops_per_second"], 1e9);
  EXPECT_GT(cpu["roofline"]["seconds"], 0);
  EXPECT_EQ(json["numerics"]["rewrites"]["contract_fma"]["count"], 1);
  EXPECT_THAT(tilewright(explain).output,
              AllOf(HasSubstr("instruction set "), HasSubstr("measured: "),
                    HasSubstr("this processor, "), HasSubstr("bound by ")));
  EXPECT_THAT(tilewright(explain + "--numerics strict").output, HasSubstr("slow: "))
      << "multiplications and additions apart";
  EXPECT_THAT(tilewright("explain gemm --target cpu --set m=0 --set n=100 --set k=70").output,
              Not(HasSubstr("measured: ")));
}

TEST(CommandTest, ExplainsWhatIsCompiled) {
  const TemporaryFolder folder;
  setenv("TILEWRIGHT_CACHE", (folder / "cache").c_str(), 1);
  const Answer answer =
      tilewright("explain attention_forward --target sm_90a --json --dump " + (folder / "dump"));
  unsetenv("TILEWRIGHT_CACHE");
  ASSERT_TRUE(answer.status == 0 || answer.status == 3) << answer.output;
  EXPECT_TRUE(std::filesystem::exists(folder / "dump/kernel.cu"));
  EXPECT_TRUE(std::filesystem::exists(folder / "dump/01-trace.tw"));
  EXPECT_TRUE(std::filesystem::exists(folder / "dump/resources.txt"));
  if (answer.status == 3) GTEST_SKIP() << "there is no NVRTC here";
  const Json json = answer.json();
  EXPECT_GT(json["instructions"]["wgmma"], 0);
  EXPECT_GT(json["instructions"]["tma_load"], 0);
  EXPECT_EQ(json["resources"]["stack_bytes"], 0);
  EXPECT_EQ(json["resources"]["spill_bytes"], 0);
  EXPECT_GT(json["resources"]["registers"], 0);
  EXPECT_GT(json["resources"]["shared_bytes"], 0);
  EXPECT_GT(json["front_end_milliseconds"], 0);
}

TEST(CommandTest, EveryStageHasAName) {
  const WithoutNvrtc without_nvrtc;
  for (const char* kernel : {"attention_forward", "attention_forward --set schedule=tile"}) {
    const Answer answer = tilewright("explain " + std::string(kernel) + " --target sm_90a --json");
    // The error that there is no NVRTC follows the answer.
    const Json json = Json::parse(answer.output.substr(0, answer.output.rfind('}') + 1));
    std::set<std::string> names;
    for (const Json& stage : json["stages"]) {
      EXPECT_TRUE(names.insert(stage["name"]).second) << stage["name"] << " names two stages";
    }
    EXPECT_EQ(names.count("bufferise"), 1u);
    EXPECT_GT(json["numerics"]["rewrites"]["sink_partial_sums"]["count"], 0);
    EXPECT_EQ(json["roofline"]["devices"][0]["device"], "H200 SXM");
    EXPECT_GT(json["roofline"]["flops_per_byte"], 0);
  }
}

TEST(CommandTest, ExplainShowsWhatEachStageChanged) {
  const std::string plain = tilewright("explain gemm --target interpreter").output;
  const std::string diff = tilewright("explain gemm --target interpreter --diff").output;
  EXPECT_EQ(plain.find("\n+ "), std::string::npos) << plain;
  EXPECT_THAT(diff, AllOf(HasSubstr("hoist"), HasSubstr("\n+ "), HasSubstr("\n- ")));
}

TEST(CommandTest, ADumpReplacesTheOneBefore) {
  const WithoutNvrtc without_nvrtc;
  const TemporaryFolder folder;
  const std::string dump = folder / "dump";
  std::filesystem::create_directories(dump);
  const auto write = [&](const std::string& name) { std::ofstream(dump + "/" + name) << "mine"; };
  // Stages are numbered; the rest of a name is the stage's.
  const auto exists = [&](const std::string& ending) {
    for (const auto& entry : std::filesystem::directory_iterator(dump)) {
      if (entry.path().filename().string().ends_with(ending)) return true;
    }
    return false;
  };
  write("99-notes.tw");
  tilewright("explain attention_forward --target sm_90a --dump " + dump);
  EXPECT_TRUE(exists("-bufferise.tw"));
  EXPECT_TRUE(exists("-bufferise.diff"));
  EXPECT_TRUE(exists("kernel.cu"));
  write("my.cu");
  tilewright("explain gemm --target interpreter --dump " + dump);
  EXPECT_TRUE(exists("01-trace.tw"));
  for (const char* gone : {"-bufferise.tw", "-bufferise.diff", "kernel.cu", "resources.txt"}) {
    EXPECT_FALSE(exists(gone)) << gone;
  }
  EXPECT_TRUE(exists("99-notes.tw"));
  EXPECT_TRUE(exists("my.cu"));
}

TEST(CommandTest, WritesThePageAndTheLayouts) {
  const WithoutNvrtc without_nvrtc;
  const TemporaryFolder folder;
  tilewright("explain attention_forward --target sm_90a --set schedule=sm90 --html " +
             (folder / "page.html") + " --layouts " + (folder / "layouts"));
  std::ifstream stream(folder / "page.html");
  std::string first;
  std::getline(stream, first);
  EXPECT_EQ(first, "<!DOCTYPE html>");
  EXPECT_TRUE(std::filesystem::exists(folder / "layouts/shared-kv0.svg"));
  expect_failure("explain gemm --target interpreter --html " + (folder / "none/page.html"), 2,
                 {"none/page.html"});
}

TEST(CommandTest, RewritesCanBeSwitchedOff) {
  const WithoutNvrtc without_nvrtc;
  const std::string explain = "explain attention_forward --target sm_90a --set schedule=tile ";
  EXPECT_THAT(tilewright(explain + "--numerics contract_fma=off").output,
              AllOf(testing::ContainsRegex("numerics contract_fma +off"),
                    testing::ContainsRegex("numerics sink_partial_sums +[1-9]")));
  const std::string strict = tilewright(explain + "--numerics strict").output;
  for (const char* name : {"fold_accumulators", "skip_hidden", "contract_fma", "sink_partial_sums",
                           "sink_partial_maxima"}) {
    EXPECT_THAT(strict, testing::ContainsRegex("numerics " + std::string(name) + " +off"));
    EXPECT_EQ(strict.find("\n" + std::string(name)), std::string::npos) << "a stage all the same";
  }
  expect_failure(explain + "--numerics fma=off", 2, {"there is no rewrite 'fma'", "contract_fma"});
  expect_failure(explain + "--numerics contract_fma", 2, {"'' is neither on nor off"});

  const std::string simulate =
      "simulate attention_forward --target sm_90a --set schedule=tile --set heads=1 "
      "--set queries=130 --json ";
  const Answer answer = tilewright(simulate + "--numerics strict");
  EXPECT_EQ(answer.status, 0) << answer.output;
}

TEST(CommandTest, ExplainWithoutNvrtcShowsTheRestAndEndsWith3) {
  setenv("TILEWRIGHT_NVRTC", "/nonexistent/libnvrtc.so", 1);
  expect_failure("explain attention_forward --target sm_90a", 3,
                 {"print_cuda", "wgmma", "/nonexistent/libnvrtc.so"});
  const std::string text = tilewright("explain gemm --target sm_90a").output;
  EXPECT_EQ(text.find("/nonexistent"), text.rfind("/nonexistent")) << text;
  unsetenv("TILEWRIGHT_NVRTC");
}

TEST(CommandTest, ExplainSaysWhyAScheduleWasChosen) {
  const Answer answer = tilewright("explain gemm --target sm_90a --set m=16");
  EXPECT_THAT(answer.output, AllOf(HasSubstr("because    kernels/schedules/gemm.sm_90a.txt:"),
                                   HasSubstr("for all lengths"), HasSubstr("by the model"),
                                   HasSubstr("slower by the model: ")));
}

TEST(CommandTest, ExplainSaysHowSumsAreAdded) {
  const WithoutNvrtc without_nvrtc;
  const std::string explain = "explain attention_backward --target sm_90a --set dim=128 ";
  EXPECT_THAT(
      tilewright(explain).output,
      AllOf(HasSubstr("sums added in the order of blocks: sums by 2 of red.global.add.v4.f32"),
            HasSubstr("sums added in any order: none\n"), HasSubstr("GFLOP in products"),
            testing::Not(HasSubstr("in any order: sums"))));
  const std::string atomic = explain + "--set schedule=atomic ";
  EXPECT_THAT(tilewright(atomic).output,
              testing::ContainsRegex("sums added in any order: sums by [0-9]+ of [a-z.0-9]+ [(]"));
  const Answer answer = tilewright(atomic + "--json");
  const Json json = Json::parse(answer.output.substr(0, answer.output.rfind("\n}") + 2));
  EXPECT_EQ(json["kernels"][1]["additions"][0]["tensor"], "sums");
  EXPECT_EQ(json["kernels"][1]["additions"][0]["any_order"], true);
  EXPECT_EQ(json["kernels"][2]["additions"].size(), 0u);
  // Of 8 heads of 1024 rows: dQ in f32, and two numbers for each row.
  EXPECT_EQ(json["memory"]["sums"], 8 * 1024 * 128 * 4);
  EXPECT_EQ(json["memory"]["D"], 8 * 1024 * 4);
  EXPECT_THAT(tilewright(explain).output,
              testing::ContainsRegex("memory beside the tensors 426[0-9]+ bytes"));
  // The tile level computes the scores twice.
  const Json& others = json["schedule"]["alternatives"];
  const auto tile = std::find_if(others.begin(), others.end(),
                                 [](const Json& other) { return other["name"] == "tile"; });
  ASSERT_NE(tile, others.end());
  EXPECT_GT((*tile)["product_flops"], json["schedule"]["product_flops"]);
}

TEST(CommandTest, ExplainSaysSoInItsJsonAndItsPage) {
  const WithoutNvrtc without_nvrtc;
  const TemporaryFolder folder;
  const Answer answer =
      tilewright("explain gemm --target sm_90a --set m=16 --json --html " + (folder / "page.html"));
  const Json schedule =
      Json::parse(answer.output.substr(0, answer.output.rfind('}') + 1))["schedule"];
  EXPECT_THAT(schedule["because"].get<std::string>(),
              testing::StartsWith("kernels/schedules/gemm.sm_90a.txt:"));
  EXPECT_GT(schedule["cost"]["seconds"], 0);
  EXPECT_EQ(schedule["cost_missing"], "");
  ASSERT_GT(schedule["alternatives"].size(), 6u);  // all, not the first few
  double before = 0;
  for (const Json& other : schedule["alternatives"]) {
    EXPECT_NE(other["name"], schedule["chosen"]);
    EXPECT_GE(other["cost"]["seconds"], before);
    before = other["cost"]["seconds"];
  }
  std::ifstream stream(folder / "page.html");
  const std::string page(std::istreambuf_iterator<char>(stream), {});
  EXPECT_THAT(page, HasSubstr("\"chosen\":" + schedule["chosen"].dump()));
  EXPECT_THAT(page, HasSubstr("<table id=\"schedule-table\">"));
}

}  // namespace
}  // namespace tilewright::test
