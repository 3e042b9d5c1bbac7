#include "compiler/target.h"
#include "common/error_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "target/target.h"
#include "tilewright/error.h"

namespace tilewright::compiler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(std::string_view name, ErrorKind kind) {
  try {
    parse_target(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return test::without_source_lines(error.what());
  }
  return "no error";
}

TEST(CompilerTargetTest, EachRecordHasThreeNames) {
  for (const target::Target* record : target::targets()) {
    EXPECT_EQ(parse_target(record->name).kind, Target::Kind::architecture);
    EXPECT_EQ(parse_target("sim:" + record->name).kind, Target::Kind::simulator);
    EXPECT_EQ(parse_target("passes:" + record->name).kind, Target::Kind::passes);
    EXPECT_EQ(parse_target("sim:" + record->name).arch, record->name);
  }
  EXPECT_EQ(parse_target("interpreter").arch, "");
  EXPECT_EQ(parse_target("cpu").kind, Target::Kind::cpu);
}

TEST(CompilerTargetTest, ARecordIsEnough) {
  target::Target copy = target::find_target("sm_90a");
  copy.name = "sm_90x";
  EXPECT_THAT(error_of("sim:sm_90x", ErrorKind::usage),
              HasSubstr("there is no target 'sim:sm_90x'; the nearest name is sim:sm_90a\n"));
  const target::AddedTarget added(copy);
  EXPECT_EQ(parse_target("sim:sm_90x").arch, "sm_90x");
  EXPECT_THAT(
      error_of("gpu", ErrorKind::usage),
      HasSubstr("use one of: interpreter, cpu, sim:sm_90a, sim:sm_100a, sim:sm_110a, sim:incore, "
                "sim:incore_unified, sim:incore_partitions, sim:sm_90x, cuda, sm_90a, sm_100a, "
                "sm_110a, incore, incore_unified, incore_partitions, sm_90x, passes:sm_90a, "
                "passes:sm_100a, passes:sm_110a, passes:incore, passes:incore_unified, "
                "passes:incore_partitions, passes:sm_90x"));
}

// Who has another GPU is told which it is, what is served, and what runs without.
TEST(CompilerTargetTest, AnotherGpuIsNamed) {
  EXPECT_THAT(
      error_of("sm_80", ErrorKind::unavailable),
      AllOf(HasSubstr("sm_80 (A100, A30) has no record"),
            HasSubstr("these have: sm_90a (NVIDIA Hopper: H100, H200, GH200), sm_100a (NVIDIA "
                      "Blackwell: B200, GB200)"),
            HasSubstr("use cpu, interpreter or sim:sm_90a, which need no GPU")));
  EXPECT_THAT(error_of("sim:sm_89", ErrorKind::unavailable), HasSubstr("GeForce RTX 40"));
}

}  // namespace
}  // namespace tilewright::compiler
