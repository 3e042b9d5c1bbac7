#include "structure/include_directions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "common/temporary_folder.h"

namespace tilewright::structure {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(IncludeDirectionsTest, TheRepositoryKeepsItsTable) {
  std::ifstream file(TILEWRIGHT_INCLUDE_RULES);
  std::ostringstream text;
  text << file.rdbuf();
  const IncludeRules rules = read_include_rules(text.str());
  ASSERT_TRUE(rules.count("src/support")) << "no rules in " << TILEWRIGHT_INCLUDE_RULES;
  for (const std::string& violation : include_violations(TILEWRIGHT_SOURCE_DIR, rules)) {
    ADD_FAILURE() << violation;
  }
}

// A small tree of its own, to show that each kind of violation is found.
class IncludeCheckerTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::vector<std::string> violations() const {
    return include_violations(root_, read_include_rules("src/support\n"
                                                        "src/ir support\n"
                                                        "src/language ir support\n"
                                                        "src/simulator ir support !descriptor\n"
                                                        "kernels\n"
                                                        "tools ir\n"));
  }

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(IncludeCheckerTest, AllowedIncludesPass) {
  write("include/tilewright/dim.h", "#include <string>\n#include \"tilewright/error.h\"\n");
  write("src/ir/dim.cpp", "#include \"tilewright/dim.h\"\n#include \"support/hash.h\"\n");
  write(
      "src/simulator/memory.cpp",
      "#include \"ir/node.h\"\n#include \"simulator/descriptor.h\"\n#include <nlohmann/json.hpp>");
  write("kernels/gemm.cpp", "#include \"tilewright/dim.h\"\n#include \"kernels/common.h\"\n");
  write("tools/main.cpp", "#include \"options.h\"\n#include \"ir/node.h\"\n");
  write("tools/options.h", "");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(IncludeCheckerTest, AnUpwardIncludeIsNamedWithItsLine) {
  write("src/ir/node.cpp", "#include <string>\n  #  include \"simulator/memory.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("src/ir/node.cpp:2: src/ir may not include simulator "
                          "(\"simulator/memory.h\"); it may include: include/, support"));
}

TEST_F(IncludeCheckerTest, APublicHeaderOfAnUpperLayerIsAnUpwardInclude) {
  write("include/tilewright/kernel.h", "");
  write("src/language/kernel.cpp", "#include \"tilewright/kernel.h\"\n");
  write("src/simulator/memory.cpp", "#include \"tilewright/kernel.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("src/simulator/memory.cpp:1: src/simulator may not include language, "
                          "which \"tilewright/kernel.h\" belongs to (src/language/kernel.cpp); it "
                          "may include: include/, ir, support"));
}

TEST_F(IncludeCheckerTest, ARefusedHeaderOfAnAllowedFolder) {
  write("src/simulator/memory.cpp", "#include \"ir/layout_descriptor.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("src/simulator/memory.cpp:1: src/simulator may not include "
                          "\"ir/layout_descriptor.h\": headers named *descriptor* of other folders "
                          "are refused to it"));
}

TEST_F(IncludeCheckerTest, APathThatIsRelativeToTheFile) {
  write("src/ir/node.cpp", "#include \"node.h\"\n#include \"../support/hash.h\"\n");
  EXPECT_THAT(violations(),
              ElementsAre("src/ir/node.cpp:1: \"node.h\" is written neither relative to src/ nor "
                          "to include/",
                          "src/ir/node.cpp:2: \"../support/hash.h\" is written neither relative to "
                          "src/ nor to include/"));
}

TEST_F(IncludeCheckerTest, KernelsSeePublicHeadersOnly) {
  write("src/support/hash.h", "");
  write("kernels/gemm.cpp", "#include \"support/hash.h\"\n#include \"../src/support/hash.h\"\n");
  EXPECT_THAT(violations(), testing::Contains("kernels/gemm.cpp:1: kernels may not include support "
                                              "(\"support/hash.h\"); it may include: include/"));
  EXPECT_THAT(violations(), testing::SizeIs(2));
}

TEST_F(IncludeCheckerTest, PublicHeadersNeedNothingButTheStandardLibrary) {
  write("include/tilewright/gpu.h",
        "#include <cuda.h>\n#include <fmt/core.h>\n#include \"ir/node.h\"\n#include <stdint.h>\n");
  EXPECT_THAT(violations(),
              ElementsAre("include/tilewright/gpu.h:1: a public header includes <cuda.h>, which is "
                          "not of the C++ standard: a consumer may not have it",
                          "include/tilewright/gpu.h:2: a public header includes <fmt/core.h>, "
                          "which is not of the C++ standard: a consumer may not have it",
                          "include/tilewright/gpu.h:3: a public header includes \"ir/node.h\"; it "
                          "may include \"tilewright/...\" only"));
}

TEST_F(IncludeCheckerTest, AHeavyIncludeInAHeader) {
  write("src/ir/node.h", "#include <iostream>\n");
  write("src/ir/node.cpp", "#include <iostream>\n");
  EXPECT_THAT(violations(), ElementsAre("src/ir/node.h:1: a header includes <iostream>, which is "
                                        "slow to compile; include it in a .cpp"));
}

TEST_F(IncludeCheckerTest, AFolderThatTheTableDoesNotName) {
  write("src/extra/a.cpp", "");
  EXPECT_THAT(violations(),
              ElementsAre("src/extra:0: the folder is not listed in src/CMakeLists.txt"));
}

}  // namespace
}  // namespace tilewright::structure
