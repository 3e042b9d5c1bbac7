#include "explain/sass.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/temporary_folder.h"

namespace tilewright::explanations {
namespace {

constexpr const char* kListing =
    ".text.gemm:\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;  /* 0x00000a00ff017b82 */\n"
    "                                                           /* 0x000fe20000000800 */\n"
    "        /*0010*/              @!P0 HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4] ;\n"
    "        /*0020*/         @UP0 UTMALDG.2D [UR8], [UR4] ;\n"
    ".L_x_3:\n"
    "        /*0030*/                   HGMMA.64x128x16.F32.BF16 R24, R88, gdesc[UR8], R24 ;\n";

TEST(SassTest, CountsInstructionsWithoutModifiers) {
  const std::map<std::string, std::int64_t> wanted = {{"HGMMA", 2}, {"LDC", 1}, {"UTMALDG", 1}};
  EXPECT_EQ(count_sass(kListing), wanted);
  EXPECT_TRUE(count_sass("").empty());
}

// A PATH with one folder in it.
class DisassemblerTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::getenv("PATH");
    setenv("PATH", folder_.path().c_str(), 1);
    setenv("CUDA_HOME", (folder_ / "toolkit").c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    unsetenv("CUDA_HOME");
  }
  void install(const std::string& path, const std::string& script) const {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  test::TemporaryFolder folder_;
  std::string path_;
};

TEST_F(DisassemblerTest, ListsTheCubinThatItIsGiven) {
  // What it is given is its listing.
  install("nvdisasm", "while read line; do echo \"$line\"; done < \"$1\"\n");
  const Sass sass = disassemble("/*0000*/ EXIT ;\n");
  EXPECT_EQ(sass.text, "/*0000*/ EXIT ;\n");
  EXPECT_EQ(sass.instructions.at("EXIT"), 1);
  EXPECT_EQ(sass.missing, "");
}

TEST_F(DisassemblerTest, IsLookedForInTheToolkit) {
  install("toolkit/bin/cuobjdump", "echo \"/*0000*/ $1 ;\"\n");
  EXPECT_EQ(disassemble("cubin").text, "/*0000*/ -sass ;\n");
}

TEST_F(DisassemblerTest, SaysWhyThereIsNoListing) {
  if (std::filesystem::exists("/usr/local/cuda/bin/nvdisasm")) GTEST_SKIP() << "there is a toolkit";
  EXPECT_NE(disassemble("cubin").missing.find("no disassembler is here"), std::string::npos);
  install("nvdisasm", "echo broken cubin\nexit 1\n");
  const Sass sass = disassemble("cubin");
  EXPECT_NE(sass.missing.find("failed: broken cubin"), std::string::npos) << sass.missing;
  EXPECT_EQ(sass.text, "");
}

}  // namespace
}  // namespace tilewright::explanations
