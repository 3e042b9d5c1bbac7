#include "runtime/process.h"

#include "runtime/runtime_test.h"

namespace tilewright::runtime {
namespace {

TEST(Process, GivesOutputAndStatus) {
  const ProcessResult result = run_process({"sh", "-c", "echo out; echo error >&2; cat; exit 3"});
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "out\nerror\n");
  EXPECT_EQ(run_process({"printf", "x"}).output, "x");
}

TEST(Process, ReportsTheSignalThatEndedIt) {
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}).status, 128 + 9);
}

TEST(Process, ReadsMoreThanAPipeHolds) {
  const ProcessResult result = run_process({"head", "-c", "1000000", "/dev/zero"});
  EXPECT_EQ(result.output.size(), 1000000U);
}

TEST(Process, OneThatNeverEndsIsEnded) {
  const ProcessResult result =
      run_process({"sh", "-c", "echo begun; sleep 1000"}, std::chrono::milliseconds(200));
  EXPECT_EQ(result.status, 128 + 9);
  EXPECT_THAT(result.output, testing::HasSubstr("took longer than 0.2 s"));
  EXPECT_THAT(result.output, testing::HasSubstr("begun"));
}

TEST(Process, AMissingProgramIsNamed) {
  expect_error(ErrorKind::unavailable, {"/nonexistent/compiler", "install it"},
               [] { run_process({"/nonexistent/compiler"}); });
}

TEST(FindProgram, SearchesThePath) {
  EXPECT_THAT(find_program("sh"), testing::Optional(testing::EndsWith("/sh")));
  EXPECT_EQ(find_program("no_such_program_anywhere"), std::nullopt);
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_EQ(find_program("/nonexistent/sh"), std::nullopt);
  const ScopedVariable path("PATH", "/nonexistent:");
  EXPECT_EQ(find_program("sh"), std::nullopt);
}

}  // namespace
}  // namespace tilewright::runtime
