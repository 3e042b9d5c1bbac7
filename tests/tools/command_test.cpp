#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/temporary_folder.h"
#include "runtime/nvrtc_available.h"
#include "runtime/process.h"
#include "runtime/runtime_test.h"
#include "support/file.h"
#include "support/npy.h"
#include "tilewright/compile.h"
#include "tools/run_command.h"

namespace tilewright::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr const char* kSmallGemm = "run gemm --target interpreter --set m=5 --set n=6 --set k=7 ";

TEST(CommandTest, ListsKernels) {
  const Json kernels = tilewright("list --json").json()["kernels"];
  std::vector<std::string> names;
  for (const Json& kernel : kernels) names.push_back(kernel["name"]);
  EXPECT_THAT(
      names,
      testing::ElementsAre(
          "attention_forward", "attention_forward_fp8", "attention_varlen_forward",
          "attention_backward", "attention_varlen_backward", "attention_decode",
          "gemm_reduce_scatter", "all_gather_gemm", "sequence_parallel_attention",
          "sequence_parallel_varlen_attention", "sequence_parallel_attention_backward",
          "sequence_parallel_varlen_attention_backward", "ring_attention", "ring_varlen_attention",
          "ring_attention_backward", "ring_varlen_attention_backward", "gemm", "gemm_nt", "gemm_nn",
          "gemm_tn", "gemm_tt", "gemm_fp8", "activation_backward", "column_sums", "attention_paged",
          "attention_paged_fp8", "attention_paged_mla", "attention_paged_plan", "kv_append",
          "kv_append_fp8", "kv_append_mla", "merge_states", "rms_norm", "rms_norm_backward",
          "layer_norm", "layer_norm_backward", "softmax", "softmax_backward", "cross_entropy",
          "cross_entropy_backward", "rotary", "all_to_all", "all_to_all_back", "all_to_all_varlen",
          "all_to_all_varlen_back", "projection_all_to_all", "projection_all_to_all_varlen",
          "all_gather", "reduce_scatter", "all_reduce", "broadcast", "all_gather_nodes",
          "reduce_scatter_nodes", "all_to_all_nodes"));
  const std::string readme = read_text(TILEWRIGHT_SOURCE_DIR "/README.md");
  for (const std::string& name : names) EXPECT_THAT(readme, HasSubstr("`" + name + "`"));
  EXPECT_THAT(tilewright("list").output,
              AllOf(HasSubstr("kv_heads"), HasSubstr("schedule=tile"), HasSubstr("schedule=sm90")));
  EXPECT_THAT(tilewright("list attention_forward --target sm_100a").output,
              AllOf(HasSubstr("schedule=sm100_ts"), Not(HasSubstr("schedule=sm90 "))));
}

TEST(CommandTest, RunsAndChecks) {
  const Answer answer = tilewright(std::string(kSmallGemm) + "--check --json");
  EXPECT_EQ(answer.status, 0);
  const Json json = answer.json();
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["outputs"][0]["name"], "C");
  EXPECT_LE(json["outputs"][0]["error"]["whole"], json["outputs"][0]["allowed"]["whole"]);
  EXPECT_GT(json["seconds"], 0);
  EXPECT_THAT(tilewright(std::string(kSmallGemm) + "--check").output,
              AllOf(HasSubstr("gemm on interpreter"), HasSubstr("ok")));
  EXPECT_FALSE(tilewright(std::string(kSmallGemm) + "--json").json().contains("outputs"));
}

// What is infinite in f16 is none in float64.
TEST(CommandTest, AResultThatIsWrongEndsWith1) {
  const std::string run =
      std::string(kSmallGemm) + "--set dtype=f16 --in A=full:60000 --in B=full:60000 ";
  EXPECT_EQ(tilewright(run).status, 0);
  const Answer answer = tilewright(run + "--check --json");
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.json()["ok"], false);
  EXPECT_EQ(tilewright(run + "--check").status, 1);
}

TEST(CommandTest, InputsHaveASeedOfTheirOwn) {
  const auto errors = [](const std::string& seeds) {
    return tilewright(
               "simulate gemm --target sm_90a --set m=8 --set n=64 --set k=64 --json "
               "--schedules 1 " +
               seeds)
        .json()["outputs"][0]["error"];
  };
  const Json usual = errors("--seed 1 --input-seed 5");
  EXPECT_EQ(errors("--seed 2 --input-seed 5"), usual);
  EXPECT_EQ(errors("--seed 5"), usual);
  EXPECT_NE(errors("--seed 1 --input-seed 6"), usual);
}

TEST(CommandTest, TimesARun) {
  const Json times =
      tilewright("bench gemm --target interpreter --set m=8 --set n=8 --set k=8 --json").json();
  ASSERT_GT(times["runs"], 1);
  EXPECT_LE(times["minimum_seconds"], times["seconds"]);
  EXPECT_LE(times["seconds"], times["maximum_seconds"]);
  EXPECT_LT(times["minimum_seconds"], times["maximum_seconds"]);
}

// On the GPU that is here, else on the CPU.
TEST(CommandTest, RunsOnThisMachineWhereNoTargetIsNamed) {
  const std::string target(default_target());
  const std::string sizes = " gemm --set m=8 --set n=8 --set k=8 --json";
  const Json run = tilewright("run" + sizes + " --check").json();
  EXPECT_EQ(run["target"], target);
  EXPECT_EQ(run["ok"], true);
  EXPECT_EQ(tilewright("bench" + sizes).json()["target"], target);
}

TEST(CommandTest, RunsAttentionOfEveryKind) {
  for (const char* options :
       {"", "--set causal=true", "--set causal=1 --set window=9", "--set kv_heads=1",
        "--set dtype=f16", "--set dtype=f32 --set dim_v=24", "--set keys=50 --set causal=true",
        "--set keys=5 --set causal=true", "--set keys=0", "--set queries=0", "--set batch=0"}) {
    SCOPED_TRACE(options);
    const std::string sizes = "--set heads=2 --set dim=16 ";
    const std::string queries =
        std::string(options).find("queries") == std::string::npos ? "--set queries=33 " : "";
    const Answer answer = tilewright("run attention_forward --target interpreter --check " + sizes +
                                     queries + options);
    EXPECT_EQ(answer.status, 0) << answer.output;
  }
}

TEST(CommandTest, ReadsAndWritesNpy) {
  const TemporaryFolder folder;
  const std::string a = folder / "a.npy", c = folder / "c.npy";
  write_npy(a, {"<f4", {2, 3}, std::vector<std::byte>(24)});
  const Answer answer =
      tilewright("run gemm --target interpreter --set n=4 --in A=" + a + " --out C=" + c);
  EXPECT_EQ(answer.status, 0) << answer.output;
  const NpyArray result = read_npy(c);
  EXPECT_EQ(result.descr, "<f4");
  EXPECT_EQ(result.shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(result.data, std::vector<std::byte>(32));
}

TEST(CommandTest, SameSeedSameBits) {
  const TemporaryFolder folder;
  const auto result_of = [&](int seed) {
    tilewright(std::string(kSmallGemm) + "--seed " + std::to_string(seed) +
               " --out C=" + (folder / "c.npy"));
    return read_npy(folder / "c.npy").data;
  };
  EXPECT_EQ(result_of(3), result_of(3));
  EXPECT_NE(result_of(3), result_of(4));
}

TEST(CommandTest, ListsTheCasesOfASetting) {
  const std::string list = "list attention_forward --cases --set schedule=sm90 --set causal=";
  const std::string text = tilewright(list + "true").output;
  EXPECT_THAT(text, HasSubstr("\ncausal\n"));
  EXPECT_THAT(text, HasSubstr("\nnot window\n"));
  const Json cases = tilewright(list + "false --json").json()["cases"];
  EXPECT_NE(std::find(cases.begin(), cases.end(), "not causal"), cases.end());
  EXPECT_EQ(std::find(cases.begin(), cases.end(), "causal"), cases.end());
}

TEST(CommandTest, BadUsageEndsWith2) {
  expect_failure("", 2, {"Subcommands:", "simulate"});
  expect_failure("run gemm --taget cuda", 2,
                 {"error: tilewright run: there is no option '--taget'", "run --help"});
  expect_failure("run gemm --target cuda --set m 5", 2, {"nothing is expected where '5' stands"});
  expect_failure("simulate gemm", 2, {"error: tilewright simulate: --target is required"});
  expect_failure("run gemm --target=", 2, {"--target: no value stands behind it"});
  expect_failure("list gemm --seed x", 2, {"--seed: 'x' is no value that it takes"});
  expect_failure("simulate gemm --target sm_90a --schedules 0", 2,
                 {"--schedules: '0' is no number from 1 to "});
  const auto unnamed = runtime::run_process({TILEWRIGHT_COMMAND, "run", "gemm", "--target", ""});
  EXPECT_EQ(unnamed.status, 2);
  EXPECT_THAT(unnamed.output, HasSubstr("--target: no target is named"));
  expect_failure("--frobnicate", 2, {"error: tilewright: there is no option '--frobnicate'"});
  expect_failure("walk gemm --target cuda", 2, {"there is no command 'walk'", "list, run"});
  expect_failure("run gemm --target interpreter --fast", 2, {"--fast"});
  expect_failure("run gemm --target interpreter --seed x", 2, {"--seed"});
  expect_failure("run gemm --target interpreter --seed -1", 2, {"--seed: -1 is negative"});
  expect_failure("run gemm --target interpreter --in A=", 2,
                 {"--in A=: no tensor and file", "write --in NAME=file.npy"});
  expect_failure("run gem --target interpreter", 2,
                 {"there is no kernel 'gem'; the nearest name is gemm\n"});
  expect_failure("list gem --cases", 2, {"there is no kernel 'gem'"});
  expect_failure("list gemm_fp8 --cases --target incore --set schedule=tile", 2,
                 {"incore does not take gemm_fp8 with these settings"});
  expect_failure("run gemm --target gpu", 2, {"there is no target 'gpu'", "interpreter"});
  expect_failure("run gemm --target interpreter --set q=1", 2, {"gemm has no option 'q'"});
  expect_failure("run gemm --target interpreter --set dtype=i7", 2, {"dtype = 'i7'"});
  expect_failure("run gemm --target interpreter --set m=-4", 2, {"m = '-4' is outside"});
  expect_failure("run gemm --target interpreter --set m=2147483647 --set k=2147483647", 2,
                 {"GB of memory"});
  expect_failure("run attention_forward --target interpreter --set heads=8 --set kv_heads=3", 2,
                 {"heads 8", "kv_heads 3"});
  expect_failure("run gemm --target interpreter --set schedule=128x256", 2,
                 {"schedule 128x256 is for"});
  expect_failure("simulate gemm --target interpreter", 2, {"is not simulated"});
  expect_failure("simulate gemm --target sm_90a --trace t.txt", 2, {"t.txt", ".html", ".json"});
  expect_failure("simulate gemm --target sm_90a --break glass", 2, {"glass", "use: release"});
  expect_failure("simulate gemm --target sm_90a --schedules 0", 2, {"--schedules"});
  for (const char* option : {"--part 1/2", "--mutants 1", "--more-schedules 9", "--threads 2"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    expect_failure("simulate gemm --target sm_90a " + std::string(option), 2,
                   {name + " requires --faults"});
  }
}

TEST(CommandTest, UnavailableTargetsEndWith3) {
  expect_failure("run gemm --target sm_103a", 3, {"sm_103a is not available"});
  expect_failure("run gemm --target sm_100a", 3, {"compiled for and not run on"});
  expect_failure("run gemm --target sm_90a", 3, {"compiled for and not run on"});
  expect_failure("bench gemm --target sm_90a", 3, {"compiled for and not run on"});
  expect_failure("explain gemm --target sm_103a", 3, {"sm_103a is not available"});
}

TEST(CommandTest, NoDriverEndsWith3) {
  setenv("TILEWRIGHT_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
  expect_failure("run gemm --target cuda", 3, {"libcuda.so.1", "fix:"});
  expect_failure("tune gemm --target cuda --sizes m=16", 3, {"libcuda.so.1", "fix:"});
  unsetenv("TILEWRIGHT_CUDA_DRIVER");
}

TEST(CommandTest, BadFilesAreNamed) {
  const TemporaryFolder folder;
  const std::string run = "run gemm --target interpreter ";
  const auto in = [&](const std::string& name) { return run + "--in A=" + (folder / name); };
  expect_failure(in("none.npy"), 2, {"none.npy: cannot read"});
  expect_failure(run + "--in A", 2, {"--in A: no tensor and file", "NAME=file.npy"});
  expect_failure(run + "--in =x.npy", 2, {"no tensor and file"});
  expect_failure(run + "--in D=x.npy", 2, {"gemm has no input 'D'", "A, B"});
  expect_failure(run + "--in A=x.npy --in A=y.npy", 2, {"tensor A is already x.npy"});

  write_npy(folder / "i.npy", {"<i4", {2, 3}, std::vector<std::byte>(24)});
  expect_failure(in("i.npy"), 2, {"i.npy: holds <i4, and tensor A is bf16"});
  write_npy(folder / "one.npy", {"<f4", {6}, std::vector<std::byte>(24)});
  expect_failure(in("one.npy"), 2, {"one.npy: has shape {6}, and tensor A has 2 axes"});
  write_npy(folder / "a.npy", {"<f4", {2, 3}, std::vector<std::byte>(24)});
  expect_failure(in("a.npy") + " --set k=4", 2, {"has shape {2, 3}", "{2, 4}"});
  std::filesystem::resize_file(folder / "a.npy", 140);
  expect_failure(in("a.npy"), 2, {"a.npy: "});
  std::ofstream(folder / "text.npy") << "hello";
  expect_failure(in("text.npy"), 2, {"is not a .npy file"});
}

TEST(CommandTest, UnwritableOutputsAreFoundFirstAndOldOnesStay) {
  const TemporaryFolder folder;
  expect_failure(std::string(kSmallGemm) + "--out C=" + (folder / "none/c.npy"), 2,
                 {"output C cannot be written there", "there is no folder"});
  expect_failure(std::string(kSmallGemm) + "--out A=" + (folder / "a.npy"), 2,
                 {"gemm has no output 'A'", "C"});
  expect_failure(std::string(kSmallGemm) + "--out C=" + (folder / "c.safetensors"), 2,
                 {"output C is written as .npy"});
  expect_failure("run attention_forward --target interpreter --set queries=4 --out O=" +
                     (folder / "o.npy") + " --out LSE=" + (folder / "./o.npy"),
                 2, {"both LSE and O would be written there"});
  std::ofstream(folder / "c.npy") << "old";
  expect_failure(
      "run gemm --target interpreter --in A=/nonexistent.npy --out C=" + (folder / "c.npy"), 2,
      {"/nonexistent.npy"});
  std::ifstream stream(folder / "c.npy");
  std::string text;
  stream >> text;
  EXPECT_EQ(text, "old");
}

TEST(CommandTest, BenchTimes) {
  const Json json = tilewright(
                        "bench gemm --target interpreter --set m=32 --set n=32 --set k=32 "
                        "--json")
                        .json();
  EXPECT_GE(json["runs"], 3);
  EXPECT_LE(json["minimum_seconds"], json["seconds"]);
  EXPECT_GT(json["tflops"], 0);
}

TEST(CommandTest, TuneByTheModelWritesRulesThatAreTaken) {
  const TemporaryFolder folder;
  const std::string file = folder / "gemm.sm_90a.txt";
  const Answer answer = tilewright(
      "tune gemm --target sm_90a --model-only --json --sizes m=16,8192 --set n=4096 --set k=4096 "
      "--ranges --out " +
      file);
  ASSERT_EQ(answer.status, 0) << answer.output;
  const Json json = answer.json();
  EXPECT_EQ(json["points"].size(), 2u);
  EXPECT_GE(json["variants"], 2) << "one tile for 16 rows and for 8192?";
  EXPECT_LE(json["worst_ratio"], 1.02 + 1e-9);
  for (const Json& point : json["points"]) {
    EXPECT_GT(point["variants"][0]["predicted_seconds"], 0);
  }
  std::ifstream written(file);
  std::string first;
  std::getline(written, first);
  EXPECT_EQ(first, "gemm sm_90a v1");

  const runtime::ScopedVariable rules("TILEWRIGHT_SCHEDULES", folder.path().string());
  EXPECT_THAT(tilewright("list").output, HasSubstr("variants: " + json["variants"].dump()));
  EXPECT_EQ(tilewright("simulate gemm --target sm_90a --set m=20 --set n=72 --set k=64").status, 0);
}

TEST(CommandTest, TuneRefitsRulesThatCompareEstimates) {
  const TemporaryFolder folder;
  const std::string file = folder / "gemm.sm_90a.txt";
  const Answer answer = tilewright(
      "tune gemm --target sm_90a --model-only --json --sizes m=16,512 --set n=4096 --set k=4096 "
      "--out " +
      file);
  ASSERT_EQ(answer.status, 0) << answer.output;
  EXPECT_GE(answer.json()["fitted"], 8) << answer.output;
  std::ifstream written(file);
  std::stringstream text;
  text << written.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("by the model, not measured; m=16,512"));
  EXPECT_THAT(text.str(), HasSubstr("let time_128x256 = "));
  const runtime::ScopedVariable rules("TILEWRIGHT_SCHEDULES", folder.path().string());
  EXPECT_EQ(tilewright("simulate gemm --target sm_90a --set m=20 --set n=72 --set k=64").status, 0);
}

TEST(CommandTest, TuneRefusesWhatItCannotMeasure) {
  expect_failure("tune gemm --target sm_90a --sizes m=16", 3, {"is not measured", "--model-only"});
  expect_failure("tune gemm --target interpreter --model-only", 3, {"is not measured"});
  expect_failure("tune gemm --target incore --model-only", 3, {"is not measured", "sm_90a"});
  const std::string tune = "tune gemm --target sm_90a --model-only ";
  // Before anything is measured.
  expect_failure(
      tune + "--sizes m=16 --out /nowhere/rules.txt", 2,
      {"--out /nowhere/rules.txt: the rules cannot be written there", "fix: name a file"});
  expect_failure(tune + "--sizes m", 2, {"no length and sizes", "m=16,64,128"});
  expect_failure(tune + "--sizes m=16,x", 2, {"'x' is no size"});
  expect_failure(tune + "--sizes dtype=16", 2, {"has no length 'dtype'", "m, n, k", "--set"});
  expect_failure(tune + "--sizes m=16 --sizes m=n=32", 2, {"m comes twice"});
  expect_failure(tune + "--sizes m=16 --set m=3", 2, {"m is set twice"});

  const TemporaryFolder folder;
  const std::string file = folder / "both.txt";
  std::ofstream(file) << "gemm gemm_fp8 sm_90a v1\nelse: schedule=128x256\n";
  expect_failure(tune + "--sizes m=16 --out " + file, 2,
                 {"these rules serve gemm, gemm_fp8, and what is tuned is gemm alone"});
}

TEST(CommandTest, DoctorSaysWhatIsHere) {
  const Answer answer = tilewright("doctor --json");
  EXPECT_EQ(answer.status, 0);
  const Json json = answer.json();
  for (const char* key : {"cpu", "compilers", "gpus", "missing"}) EXPECT_TRUE(json.contains(key));
  for (const Json& part : json["missing"]) EXPECT_NE(part["how_to_get_it"], "");
  EXPECT_EQ(json["default_target"], std::string(default_target()));
  EXPECT_GE(json["cpu"]["used_threads"], 1);
  EXPECT_EQ(json["cpu"]["instruction_set"], json["cpu"]["instruction_sets"].back());
  const std::string text = tilewright("doctor").output;
  EXPECT_THAT(text, HasSubstr("cpu "));
  if (!json["nvrtc"].is_null()) {
    EXPECT_THAT(text, HasSubstr("NVRTC      " + json["nvrtc"]["version"].get<std::string>()));
  }
  const runtime::ScopedVariable level("TILEWRIGHT_CPU_ISA", "v9");
  const runtime::ScopedVariable threads("TILEWRIGHT_THREADS", "0");
  const Answer refused = tilewright("doctor");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(tilewright("doctor --json").status, 2);
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("in use none"), HasSubstr("TILEWRIGHT_CPU_ISA is \"v9\""),
                    HasSubstr("no launch is possible"), HasSubstr("TILEWRIGHT_THREADS is \"0\"")));
}

TEST(CommandTest, DoctorDrawsTheLinks) {
  const runtime::ScopedVariable driver("TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA);
  const runtime::ScopedVariable devices("FAKE_CUDA_DEVICES", "3");
  const runtime::ScopedVariable links("FAKE_NVML_LINKS", "18");
  {
    const runtime::ScopedVariable nvml("TILEWRIGHT_NVML", TILEWRIGHT_FAKE_NVML);
    EXPECT_THAT(tilewright("doctor").output,
                AllOf(HasSubstr("links      by NVML 580.65.06\n"),
                      HasSubstr("         1    NV18       X    NV18  00000000:11:00.0\n"),
                      HasSubstr("NV18: by NVLink, 18 links, 450 GB/s each way\n"),
                      HasSubstr("ring: 0 1 2\n")));
    const Json topology = tilewright("doctor --json").json()["topology"];
    EXPECT_EQ(topology["source"], "NVML 580.65.06");
    EXPECT_EQ(topology["links"][0][2]["nvlinks"], 18);
    EXPECT_EQ(topology["links"][2][0]["reaches"], true);
    EXPECT_EQ(topology["ring"], Json({0, 1, 2}));
  }
  const runtime::ScopedVariable none("TILEWRIGHT_NVML", "/nonexistent/libnvidia-ml.so");
  EXPECT_THAT(tilewright("doctor").output,
              AllOf(HasSubstr("links      by the driver's peer attributes (/nonexistent"),
                    HasSubstr("NV: by NVLink\n")));
}

// The fake driver copies, and executes no kernel: what kernels move is not there.
TEST(CommandTest, BenchLinkMeasuresAndChecksWhatComes) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const runtime::ScopedVariable driver("TILEWRIGHT_CUDA_DRIVER", TILEWRIGHT_FAKE_CUDA);
  const runtime::ScopedVariable nvml("TILEWRIGHT_NVML", TILEWRIGHT_FAKE_NVML);
  const runtime::ScopedVariable devices("FAKE_CUDA_DEVICES", "3");
  const runtime::ScopedVariable links("FAKE_NVML_LINKS", "18");
  const Answer answer = tilewright("bench link --gpus 2,0 --mib 4 --json");
  EXPECT_EQ(answer.status, 1);
  const Json json = answer.json();
  EXPECT_EQ(json["gpus"], Json({2, 0}));
  EXPECT_NEAR(json["allowed"].get<double>(), 450e9, 1e9);
  for (const Json& rate : json["rates"]) {
    const std::string name = rate["name"];
    const bool is_copied = name.find("SMs") == std::string::npos;
    EXPECT_EQ(rate["ok"], is_copied) << name;
    EXPECT_GT(rate["one_way"], 0) << name;
  }
  EXPECT_EQ(json["rates"].size(), 7U);
  EXPECT_EQ(json["latencies"].size(), 2U);
  EXPECT_THAT(tilewright("bench link --gpus 0,3").output, HasSubstr("sees 3 GPUs"));
}

TEST(CommandTest, HelpAndVersion) {
  EXPECT_EQ(tilewright("--help").status, 0);
  // Each --set takes one value.
  EXPECT_THAT(tilewright("run --help").output,
              AllOf(HasSubstr("--check"), HasSubstr("--set NAME=VALUE (repeatable)"),
                    Not(HasSubstr(" ..."))));
  EXPECT_THAT(tilewright("--version").output, testing::StartsWith("0."));
}

}  // namespace
}  // namespace tilewright::test
