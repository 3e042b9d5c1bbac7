#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_command.h"

// tilewright check-gradients.
namespace tilewright::test {
namespace {

using testing::ElementsAre;

std::vector<std::string> gradients_of(const nlohmann::json& answer) {
  std::vector<std::string> names;
  for (const nlohmann::json& each : answer["gradients"]) names.push_back(each["gradient"]);
  return names;
}

TEST(CheckGradientsCommand, EachGradientHasItsLine) {
  const Answer answer =
      tilewright("check-gradients attention_backward --set heads=2 --set dim=16 --set queries=20");
  EXPECT_EQ(answer.status, 0) << answer.output;
  for (const char* line :
       {"attention_backward against attention_forward, on cpu", "dQ, the gradient of Q: ok",
        "dK, the gradient of K: ok", "dV, the gradient of V: ok", "in float64: relative error",
        "that rounding explains"}) {
    EXPECT_THAT(answer.output, testing::HasSubstr(line));
  }
}

TEST(CheckGradientsCommand, AnswersInJson) {
  const Answer answer = tilewright(
      "check-gradients attention_varlen_backward --set heads=4 --set kv_heads=2 --set dim=16 "
      "--set causal=true --set window=5 --set softcap=2 --set sinks=true --set lse_gradient=true "
      "--directions 1 --seed 3 --json");
  ASSERT_EQ(answer.status, 0) << answer.output;
  const nlohmann::json json = answer.json();
  EXPECT_EQ(json["kernel"], "attention_varlen_backward");
  EXPECT_EQ(json["forward"], "attention_varlen_forward");
  EXPECT_EQ(json["ok"], true);
  EXPECT_THAT(gradients_of(json), ElementsAre("dQ", "dK", "dV", "dsinks"));
  for (const nlohmann::json& each : json["gradients"]) {
    EXPECT_LE(each["error"], each["allowed"]);
    EXPECT_GT(each["own_error"], 1e-4) << "bf16 rounds";
    EXPECT_LE(each["own_error"], each["own_allowed"]);
  }
}

TEST(CheckGradientsCommand, TheForwardPassNamesThePairToo) {
  const Answer answer =
      tilewright("check-gradients attention_forward --set heads=1 --set dim=16 --json");
  ASSERT_EQ(answer.status, 0) << answer.output;
  EXPECT_EQ(answer.json()["kernel"], "attention_backward");
}

TEST(CheckGradientsCommand, PairsAreListed) {
  EXPECT_THAT(tilewright("list attention_backward").output,
              testing::HasSubstr("gradients of attention_forward"));
  EXPECT_THAT(tilewright("list attention_forward").output,
              testing::Not(testing::HasSubstr("gradients of")));
  const Answer json = tilewright("list attention_varlen_backward --json");
  EXPECT_EQ(json.json()["kernels"][0]["backward_of"], "attention_varlen_forward");
}

// What the compiler makes of the same gradients, in their own types.
TEST(CheckGradientsCommand, RunsOnASimulatedGpu) {
  const WithoutNvrtc none;
  const Answer answer = tilewright(
      "check-gradients attention_backward --target sim:sm_90a --set heads=1 --set dim=64 "
      "--set queries=20 --directions 1 --json");
  ASSERT_EQ(answer.status, 0) << answer.output;
  EXPECT_EQ(answer.json()["target"], "sim:sm_90a");
}

TEST(CheckGradientsCommand, NamesWhatItDoesNotTake) {
  expect_failure("check-gradients gemm", 2,
                 {"gemm has no kernel that computes its gradients",
                  "attention_backward, attention_varlen_backward", "--backward"});
  expect_failure("check-gradients own.tw", 2, {"own.tw is a file", "--backward FILE.tw"});
  expect_failure("check-gradients nothing", 2, {"there is no kernel 'nothing'"});
  expect_failure("check-gradients attention_backward --set nothing=1", 2, {"nothing"});
  expect_failure("check-gradients attention_backward --set heads=3 --set kv_heads=2", 2,
                 {"heads 3 is not a multiple of kv_heads 2"});
  expect_failure("check-gradients attention_backward --directions 0", 2, {"directions"});
  expect_failure("check-gradients attention_backward --target nowhere", 2, {"nowhere"});
  expect_failure("check-gradients", 2, {"kernel"});
}

}  // namespace
}  // namespace tilewright::test
