#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/error_text.h"
#include "run_command.h"
#include "tilewright/library_executable.h"

// The fields of a schedule on the command line, and as options of the library.
namespace tilewright::test {
namespace {

const std::string kGemm = "gemm --target sm_90a --set schedule=tile ";

nlohmann::json fields_of(const std::string& line) {
  const Answer answer = tilewright("explain " + line + " --json");
  // Without NVRTC the JSON is followed by what is missing.
  return nlohmann::json::parse(answer.output.substr(0, answer.output.rfind("\n}") + 2))
      .at("schedule_fields");
}

TEST(ScheduleOption, EveryCommandTakesIt) {
  const WithoutNvrtc none;
  const nlohmann::json fields = fields_of(kGemm + "--schedule stages=2,ctas=1");
  EXPECT_EQ(fields["stages"]["value"], "A 2, B 2");
  EXPECT_EQ(fields["stages"]["by"], "author");
  EXPECT_EQ(fields["warpgroups"]["by"], "compiler");
  EXPECT_EQ(fields_of(kGemm + "--set schedule.stages=2 --set schedule.ctas=1"), fields);
  const std::string small = "--set m=64 --set n=64 --set k=64 --set schedule=tile ";
  for (const char* line : {"run gemm --target sim:sm_90a --check ",
                           "simulate gemm --target sm_90a --multiprocessors 2 "}) {
    const Answer answer = tilewright(line + small + "--schedule stages=2");
    EXPECT_EQ(answer.status, 0) << answer.output;
  }
}

TEST(ScheduleOption, TheCpuHasNoFields) {
  for (const char* line :
       {"run gemm --target cpu --set m=64 --set n=64 --set k=64 --schedule stages=2",
        "explain gemm --target cpu --set schedule.ctas=2",
        "run attention_backward --target cpu --schedule stages=2"}) {
    const Answer answer = tilewright(line);
    EXPECT_EQ(answer.status, 2) << line;
    EXPECT_THAT(answer.output,
                testing::AllOf(testing::HasSubstr("the target cpu has no fields of a schedule"),
                               testing::HasSubstr("fix: ")))
        << line;
  }
}

TEST(ScheduleOption, AFileKeepsIt) {
  const WithoutNvrtc none;
  const std::string folder = (std::filesystem::temp_directory_path() / "stated_schedule").string();
  tilewright("explain " + kGemm + "--schedule stages=2 --dump " + folder);
  const std::string file = folder + "/01-trace.tw --target sm_90a ";
  EXPECT_EQ(fields_of(file)["stages"]["value"], "A 2, B 2");
  EXPECT_EQ(fields_of(file + "--schedule stages=1")["stages"]["value"], "A 1, B 1");
  std::filesystem::remove_all(folder);
}

TEST(ScheduleOption, WhatCannotBeIsNamed) {
  expect_failure("explain " + kGemm + "--schedule stages", 2, {"--schedule stages: no field"});
  expect_failure("explain " + kGemm + "--schedule waves=2", 2,
                 {"there is no field 'waves'", "state one of: stages, warpgroups"});
  expect_failure("explain " + kGemm + "--schedule stages=16", 2,
                 {"schedule: stages = 16: tiles of", "fix: state at most"});
  expect_failure("explain gemm --target sm_90a --schedule stages=2", 2,
                 {"is written at the explicit level", "schedule=tile"});
  expect_failure("explain attention_backward --target sm_90a --schedule stages=2", 2,
                 {"attention_backward_sm90 has no kernel of the tile level", "set schedule=tile"});
}

// Of a program whose kernel has to be named where several may be meant.
TEST(ScheduleOption, NamesAKernelOfAProgram) {
  const WithoutNvrtc none;
  const std::string backward = "attention_backward --target sm_90a --set schedule=tile ";
  const std::string named = "--schedule attention_backward_keys.stages=2";
  const Answer answer = tilewright("explain " + backward + named);
  EXPECT_NE(answer.output.find("Q 2, dO 2, L 2, D 2"), std::string::npos) << answer.output;
  const std::string small =
      "--set queries=64 --set keys=64 --set heads=1 --set batch=1 --set dim=64 ";
  const Answer run = tilewright(
      "run attention_backward --target sim:sm_90a --check --set schedule=tile " + small + named);
  EXPECT_EQ(run.status, 0) << run.output;
  expect_failure("explain " + backward + "--schedule stages=2", 2,
                 {"schedule: stages = 2: attention_backward has 2 kernels of the tile level with",
                  "name one of attention_backward_queries", "attention_backward_keys",
                  "set schedule.attention_backward_queries.stages=2"});
  expect_failure("explain " + backward + "--schedule attention_backward_main.stages=2", 2,
                 {"attention_backward has no kernel 'attention_backward_main' of the tile level"});
  expect_failure(
      "explain " + kGemm + "--schedule gemm.stages=2", 2,
      {"it names a kernel of a program, and this is no program", "state schedule.stages"});
}

TEST(ScheduleOption, TuneSearchesTheFields) {
  const Answer answer = tilewright("tune " + kGemm +
                                   "--model-only --json --sizes m=n=k=512,2048 "
                                   "--schedule partition=rows");
  ASSERT_EQ(answer.status, 0) << answer.output;
  const nlohmann::json json = answer.json();
  ASSERT_EQ(json["points"].size(), 2u);
  const nlohmann::json& variants = json["points"][0]["variants"];
  const auto has = [&](const std::string& name) {
    for (const nlohmann::json& each : variants) {
      if (each["name"] == name) return each["predicted_seconds"].get<double>() > 0;
    }
    return false;
  };
  EXPECT_TRUE(has("the compiler's choice")) << answer.output;
  EXPECT_TRUE(has("stages=1")) << answer.output;
  bool too_many = false;
  for (const nlohmann::json& each : json["refused"]) {
    too_many |= each["name"] == "stages=8";
    EXPECT_EQ(each["name"].get<std::string>().find("partition"), std::string::npos);
  }
  EXPECT_TRUE(too_many) << answer.output;
  expect_failure("tune " + kGemm + "--model-only --out rules.txt", 2, {"Kernel::schedule"});
}

// What the C interface makes of its list of options.
TEST(ScheduleOption, IsAnOptionOfEveryKernelOfTheLibrary) {
  const LibraryKernel& gemm = find_kernel("gemm");
  const auto build = [&](const std::string& stages) {
    compile(gemm, resolve_options(gemm, {"schedule=tile", "schedule.stages=" + stages}),
            "sim:sm_90a");
  };
  EXPECT_NO_THROW(build("2"));
  EXPECT_THAT(usage_error_of([&] { build("16"); }), testing::HasSubstr("stages = 16: tiles of"));
  EXPECT_THAT(usage_error_of([&] { build("many"); }), testing::HasSubstr("'many' is not a number"));
}

}  // namespace
}  // namespace tilewright::test
