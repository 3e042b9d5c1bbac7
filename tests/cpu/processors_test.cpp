#include "cpu/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/temporary_folder.h"
#include "cpu/pool.h"

namespace tilewright::cpu {
namespace {

namespace fs = std::filesystem;

class ProcessorsTest : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    const fs::path path = folder_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  unsigned quota(const std::string& groups) const { return quota_processors(groups, folder_ / ""); }
  test::TemporaryFolder folder_;
};

TEST_F(ProcessorsTest, TakesTheLeastOfAGroupAndThoseAroundIt) {
  const std::string group = "0::/user/job\n";
  EXPECT_EQ(quota(group), 0u);
  write("user/job/cpu.max", "max 100000");
  EXPECT_EQ(quota(group), 0u);
  write("user/cpu.max", "350000 100000");
  EXPECT_EQ(quota(group), 4u) << "of the group around it, rounded up";
  write("user/job/cpu.max", "50000 100000");
  EXPECT_EQ(quota(group), 1u);
  EXPECT_EQ(quota("0::/user\n"), 4u);
  EXPECT_EQ(quota("0::/\n"), 0u);
}

// A container sees the host's path, and its own group at the root.
TEST_F(ProcessorsTest, TheRootIsTheGroupWhereItsPathIsNotThere) {
  write("cpu.max", "200000 100000");
  EXPECT_EQ(quota("0::/docker/0123\n"), 2u);
}

TEST_F(ProcessorsTest, KnowsTheControllersOfVersion1) {
  const std::string groups = "5:memory:/other\n4:cpu,cpuacct:/user/job\n3:cpuset:/\n";
  EXPECT_EQ(quota(groups), 0u);
  write("cpu,cpuacct/user/job/cpu.cfs_quota_us", "-1");
  write("cpu,cpuacct/user/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(groups), 0u);
  write("cpu/user/cpu.cfs_quota_us", "150000");
  write("cpu/user/cpu.cfs_period_us", "50000");
  EXPECT_EQ(quota(groups), 3u);
  EXPECT_EQ(quota("4:cpuacct:/user/job\n"), 0u) << "another controller's";
}

TEST_F(ProcessorsTest, WhatIsNoQuotaCountsForNothing) {
  for (const char* text : {"", "x y", "0 100000", "100000 0", "100000"}) {
    write("cpu.max", text);
    EXPECT_EQ(quota("0::/\n"), 0u) << text;
  }
  EXPECT_EQ(quota("nothing of this kind\n:\n"), 0u);
}

TEST_F(ProcessorsTest, TakesTheCacheOfTheHighestLevel) {
  write("caches/index0/level", "1");
  write("caches/index0/size", "32K");
  write("caches/index1/level", "3");
  write("caches/index1/size", "32768K");
  write("caches/index2/level", "2");
  write("caches/index2/size", "1024K");
  EXPECT_EQ(last_level_cache(folder_ / "caches"), std::int64_t{32} << 20);
  EXPECT_EQ(last_level_cache(folder_ / "nothing"), 0);
}

// Also when it changes between two launches.
TEST_F(ProcessorsTest, ThreadsFollowTheAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(allowed_processors(), 1u);
  unsetenv("TILEWRIGHT_THREADS");
  EXPECT_EQ(thread_count(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(allowed_processors(), static_cast<unsigned>(CPU_COUNT(&before)));
}

}  // namespace
}  // namespace tilewright::cpu
