#include "runtime/cubin_cache.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/temporary_folder.h"
#include "runtime/build_cache.h"
#include "runtime/kernels.h"
#include "runtime/nvrtc_available.h"
#include "runtime/runtime_test.h"
#include "support/messages.h"

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;

class CubinCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
    compiler_ = &Nvrtc::get();
  }

  Build build(const CompileRequest& request, const ResourcePolicy& policy = {}) const {
    return build_cubin(request, policy, *compiler_, cache_);
  }

  test::TemporaryFolder scratch_;
  BuildCache cache_{scratch_.path()};
  const Nvrtc* compiler_ = nullptr;
  CompileRequest request_ = {"scale", kScaleSource, "sm_90a", {}};
};

TEST_F(CubinCacheTest, TheSecondBuildIsTheFirst) {
  const Build first = build(request_);
  const Build second = build(request_);
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.kernel.cubin, first.kernel.cubin);
  EXPECT_EQ(second.kernel.ptx, first.kernel.ptx);
  EXPECT_EQ(second.kernel.log, first.kernel.log);
  ASSERT_NE(second.kernel.report.find("scale"), nullptr);
  EXPECT_EQ(second.kernel.report.find("scale")->registers,
            first.kernel.report.find("scale")->registers);
}

TEST_F(CubinCacheTest, SaysWhatItBuildsAndWhatItFinds) {
  std::string said;
  send_messages_to([&](Message, const std::string& text) { said += text + "\n"; });
  build(request_);
  EXPECT_THAT(said, testing::HasSubstr("scale for sm_90a: compiled by NVRTC "));
  said.clear();
  build(request_);
  send_messages_to({});
  EXPECT_EQ(said, "scale for sm_90a: from " + scratch_.path().string() + "\n");
}

// Processes that start at once on an empty cache, as those of all ranks do.
TEST_F(CubinCacheTest, WhatManyNeedAtOnceIsBuiltOnce) {
  constexpr int kProcesses = 3;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(build(request_).from_cache ? 1 : 0);
    children.push_back(child);
  }
  int builders = 0;
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    builders += WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  EXPECT_EQ(builders, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch_.path()), {}), 1) << "a turn is left";
}

TEST_F(CubinCacheTest, EveryInputIsPartOfTheKey) {
  build(request_);
  CompileRequest other = request_;
  other.options = {"--use_fast_math"};
  EXPECT_FALSE(build(other).from_cache);
  other = request_;
  other.arch = "sm_80";
  EXPECT_FALSE(build(other).from_cache);
  other = request_;
  other.source += " ";
  EXPECT_FALSE(build(other).from_cache);
  EXPECT_TRUE(build(request_).from_cache);
}

TEST_F(CubinCacheTest, WhatIsBuiltAfreshIsKept) {
  build(request_);
  CompileRequest afresh = request_;
  afresh.afresh = true;
  EXPECT_FALSE(build(afresh).from_cache);
  EXPECT_TRUE(build(request_).from_cache);
}

TEST_F(CubinCacheTest, ADamagedEntryIsBuiltAgain) {
  const std::string cubin = build(request_).kernel.cubin;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file << "damage";
  }
  const Build again = build(request_);
  EXPECT_FALSE(again.from_cache);
  EXPECT_EQ(again.kernel.cubin, cubin);
  EXPECT_TRUE(build(request_).from_cache);
}

TEST_F(CubinCacheTest, ACachedBuildFailsAsTheFirstDid) {
  const CompileRequest indexed = {
      "indexed", kIndexedRegistersSource, "sm_90a", {}, {"no_such_kernel.cpp", 12}};
  for (int i = 0; i < 2; ++i) {
    expect_error(ErrorKind::usage,
                 {"no_such_kernel.cpp:12: error: indexed for sm_90a", "stack frame"},
                 [&] { build(indexed); });
  }
  ResourcePolicy policy;
  policy.allow_stack_frame = true;
  const Build allowed = build(indexed, policy);
  EXPECT_TRUE(allowed.from_cache);
  EXPECT_EQ(allowed.kernel.report.find("indexed")->stack_bytes, 128);
}

TEST_F(CubinCacheTest, TheDefaultsUseTheEnvironmentsFolder) {
  const ScopedVariable folder("TILEWRIGHT_CACHE", scratch_.path().string());
  EXPECT_FALSE(build_cubin(request_).from_cache);
  EXPECT_TRUE(build_cubin(request_).from_cache);
  EXPECT_TRUE(build(request_).from_cache);
}

// Of another machine's compiler, which is not asked for.
TEST(ShippedCubinsTest, AreFoundWithoutACompiler) {
  test::TemporaryFolder scratch;
  const BuildCache built(scratch / "built"), shipped(scratch / "shipped");
  CompileRequest request = {"scale", kScaleSource, "sm_90a", {"--option"}};
  std::ifstream file(TILEWRIGHT_SOURCE_DIR "/tests/fuzz_files/corpus/cubin/kernel.cubin",
                     std::ios::binary);
  const std::string cubin((std::istreambuf_iterator<char>(file)), {}), log = "Used 42 registers\n";
  built.store({"cubin", "a compiler", "sm_90a", "scale", kScaleSource, "--option"},
              {cubin, "its PTX", "Compile time = 3 ms\n" + log + "Compile time = 4 ms"});
  built.store({"ptx", "a compiler", "sm_90a", "scale", kScaleSource}, {"PTX"});
  EXPECT_FALSE(shipped_cubin(request, {}, shipped).has_value());
  EXPECT_EQ(ship_cubins(built, shipped), 1);
  EXPECT_THROW(ship_cubins(built, BuildCache("/dev/null/shipped")), Error);
  const std::optional<Build> build = shipped_cubin(request, {}, shipped);
  ASSERT_TRUE(build);
  EXPECT_EQ(build->kernel.cubin, cubin);
  EXPECT_TRUE(build->from_cache);
  EXPECT_EQ(build->kernel.log, log);
  const auto expect_other = [&](const auto& change) {
    CompileRequest other = request;
    change(other);
    EXPECT_FALSE(shipped_cubin(other, {}, shipped).has_value());
  };
  expect_other([](CompileRequest& other) { other.source += " "; });
  expect_other([](CompileRequest& other) { other.arch = "sm_100a"; });
  expect_other([](CompileRequest& other) { other.options.clear(); });
  expect_other([](CompileRequest& other) { other.afresh = true; });
}

}  // namespace
}  // namespace tilewright::runtime
