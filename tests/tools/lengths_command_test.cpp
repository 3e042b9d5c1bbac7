#include <gtest/gtest.h>

#include <string>

#include "run_command.h"

// Lengths of packed sequences on the command line.
namespace tilewright::test {
namespace {

// --set lengths_q=128,77,0, of every command that makes tensors.
TEST(PackedLengths, AreSetOnTheCommandLine) {
  const WithoutNvrtc none;
  const std::string few = "--set heads=1 --set lengths_q=12,0,7 --set lengths_k=1,20,2 ";
  const Answer run = tilewright("run attention_varlen_forward --target interpreter --check " + few);
  EXPECT_EQ(run.status, 0) << run.output;
  const Answer simulated =
      tilewright("simulate attention_varlen_forward --target sm_90a --json " + few);
  EXPECT_EQ(simulated.status, 0) << simulated.output;
  const Answer faults =
      tilewright("simulate attention_varlen_forward --target sm_90a --shrunken --json " + few);
  EXPECT_EQ(faults.status, 0) << faults.output;
  const Answer bench = tilewright("bench attention_varlen_forward --target interpreter " + few);
  EXPECT_EQ(bench.status, 0) << bench.output;
  const Answer gradients = tilewright("check-gradients attention_varlen_backward " + few);
  EXPECT_EQ(gradients.status, 0) << gradients.output;
}

// The roofline counts the scores that there are: 1000 * 1000 + 24 * 24, not 2 * 512 * 512.
TEST(PackedLengths, ChangeTheRoofline) {
  const auto intensity = [](const std::string& settings) {
    const Answer answer =
        tilewright("explain attention_varlen_forward --target interpreter --json " + settings);
    EXPECT_EQ(answer.status, 0) << answer.output;
    return answer.json()["roofline"]["flops"].get<double>();
  };
  EXPECT_NEAR(intensity("--set lengths_q=1000,24") / intensity("--set lengths_q=512,512"),
              (1000.0 * 1000 + 24 * 24) / (2 * 512 * 512), 1e-9);
}

TEST(PackedLengths, ThatAreWrongAreNamed) {
  const std::string command = "run attention_varlen_forward --target interpreter ";
  expect_failure(command + "--set lengths_q=12,x", 2, {"'x' is no length", "lengths_q"});
  expect_failure(command + "--set lengths_q=12,3 --set batch=3", 2,
                 {"batch is 3 by what is set, and 2 by lengths_q = '12,3'"});
  expect_failure(
      "run attention_forward --target interpreter --set lengths_q=12", 2,
      {"attention_forward has no option 'lengths_q'", "take the kernel of packed", "varlen"});
  expect_failure(command + "--set lengths_q=", 2, {"lengths_q has no value", "leave it out"});
  expect_failure(command + "--set =", 2, {"'=' names nothing", "NAME=VALUE"});
}

}  // namespace
}  // namespace tilewright::test
