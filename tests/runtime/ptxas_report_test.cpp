#include "runtime/ptxas_report.h"

#include "runtime/runtime_test.h"

namespace tilewright::runtime {
namespace {

constexpr const char* kLog = R"(ptxas info    : 24 bytes gmem
ptxas info    : Compiling entry function 'calls' for 'sm_90a'
ptxas info    : Function properties for calls
ptxas         .     32 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 18 registers, used 0 barriers, 48 bytes cumulative stack size
ptxas info    : Compile time = 5.273 ms
ptxas info    : Function properties for callee
ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'shares' for 'sm_90a'
ptxas info    : Function properties for shares
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 7 barriers, 400 bytes smem
)";

PtxasReport report_with(int code) {
  return parse_ptxas_log("ptxas info    : (C" + std::to_string(code) + ") text of the code\n");
}

TEST(PtxasReport, ReadsEachFunctionOfTheLog) {
  const PtxasReport report = parse_ptxas_log(kLog);
  ASSERT_EQ(report.functions.size(), 3U);
  const FunctionResources* calls = report.find("calls");
  ASSERT_NE(calls, nullptr);
  EXPECT_TRUE(calls->is_kernel);
  EXPECT_EQ(calls->registers, 18);
  EXPECT_EQ(calls->barriers, 0);
  EXPECT_EQ(calls->stack_bytes, 48) << "the frames of called functions count";
  EXPECT_EQ(calls->spill_store_bytes, 4);
  EXPECT_EQ(calls->spill_load_bytes, 8);
  EXPECT_EQ(calls->shared_bytes, 0);
  const FunctionResources* callee = report.find("callee");
  ASSERT_NE(callee, nullptr);
  EXPECT_FALSE(callee->is_kernel);
  EXPECT_EQ(callee->stack_bytes, 16);
  EXPECT_EQ(callee->registers, -1);
  const FunctionResources* shares = report.find("shares");
  ASSERT_NE(shares, nullptr);
  EXPECT_EQ(shares->registers, 168);
  EXPECT_EQ(shares->barriers, 7);
  EXPECT_EQ(shares->shared_bytes, 400);
  EXPECT_EQ(shares->stack_bytes, 0);
  EXPECT_TRUE(report.messages.empty());
}

TEST(PtxasReport, IgnoresWhatIsNotOfTheAssembler) {
  const PtxasReport report = parse_ptxas_log(
      "kernel.cu(3): warning: 12 registers (C7514) are nice\nptxas info    : (Cxyz) 3 bytes\n\n");
  EXPECT_TRUE(report.functions.empty());
  EXPECT_TRUE(report.messages.empty());
}

TEST(PtxasReport, CodesOfSerialisedWgmmaAndIgnoredSetmaxnregFail) {
  for (int code = 7508; code <= 7516; ++code) {
    expect_error(ErrorKind::usage,
                 {"attention for sm_90a", "(C" + std::to_string(code) + ")", "fix:"},
                 [&] { check_report(report_with(code), {}, "attention for sm_90a"); });
    EXPECT_NO_THROW(check_report(report_with(code), {.allow_serialized = true}, "attention"));
  }
}

TEST(PtxasReport, InjectedWaitsAreOnlyReported) {
  for (const int code : {7507, 7517, 7519}) {
    const PtxasReport report = report_with(code);
    EXPECT_NO_THROW(check_report(report, {}, "attention"));
    EXPECT_THAT(warnings_of(report),
                testing::ElementsAre(testing::HasSubstr(std::to_string(code))));
  }
  EXPECT_TRUE(warnings_of(report_with(7514)).empty());
}

TEST(PtxasReport, AStackFrameFailsUnlessAllowed) {
  const PtxasReport report = parse_ptxas_log(kLog);
  expect_error(
      ErrorKind::usage,
      {"kernel calls", "stack frame of 48 bytes", "0 are allowed", "(8 bytes of registers"},
      [&] { check_report(report, {}, "x"); });
  PtxasReport small = report;
  small.functions.front().stack_bytes = 8;
  expect_error(ErrorKind::usage, {"stack frame of 8 bytes"}, [&] { check_report(small, {}, "x"); });
  ResourcePolicy policy;
  policy.allow_stack_frame = true;
  EXPECT_NO_THROW(check_report(report, policy, "x"));
}

}  // namespace
}  // namespace tilewright::runtime
