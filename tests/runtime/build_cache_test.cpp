#include "runtime/build_cache.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "common/temporary_folder.h"
#include "runtime/runtime_test.h"

namespace tilewright::runtime {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder)) files.push_back(file.path());
  return files;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class BuildCacheTest : public testing::Test {
 protected:
  test::TemporaryFolder scratch_;
  BuildCache cache_{scratch_.path() / "deep" / "cache"};
  std::string key_ = BuildCache::key({"a source", "its options"});
  std::vector<std::string> parts_ = {std::string("binary\0\n\xff", 9), "", "text\n"};
};

TEST_F(BuildCacheTest, ReturnsWhatWasStored) {
  EXPECT_FALSE(cache_.load(key_));
  cache_.store(key_, parts_);
  EXPECT_THAT(cache_.load(key_), testing::Optional(parts_));
  EXPECT_FALSE(cache_.load(BuildCache::key({"another source"})));
}

TEST_F(BuildCacheTest, TheKeyKeepsInputsApart) {
  EXPECT_NE(BuildCache::key({"ab", "c"}), BuildCache::key({"a", "bc"}));
  EXPECT_NE(BuildCache::key({"a", ""}), BuildCache::key({"a"}));
  EXPECT_NE(BuildCache::key({"a", "b"}), BuildCache::key({"b", "a"}));
  EXPECT_EQ(BuildCache::key({"a", "b"}), BuildCache::key({"a", "b"}));
}

TEST_F(BuildCacheTest, EveryDamagedByteDropsTheEntry) {
  cache_.store(key_, parts_);
  const fs::path path = files_in(cache_.folder()).at(0);
  const std::string whole = read(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_FALSE(cache_.load(key_)) << "byte " << i;
    EXPECT_FALSE(fs::exists(path)) << "byte " << i;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_FALSE(cache_.load(key_)) << "cut to " << size;
  }
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_TRUE(cache_.load(key_));
}

TEST_F(BuildCacheTest, AnEntryOfAnotherKeyIsNotTaken) {
  cache_.store(key_, parts_);
  const std::string other = BuildCache::key({"other"});
  fs::rename(files_in(cache_.folder()).at(0), cache_.folder() / (other + ".build"));
  EXPECT_FALSE(cache_.load(other));
}

TEST_F(BuildCacheTest, ThreadsAndProcessesPublishAtOnce) {
  const mode_t mask_before = umask(0);
  umask(mask_before);
  constexpr int kProcesses = 3;
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  const std::vector<std::string> parts = {std::string(100000, 'x'), "tail"};
  // The number of wrong results: an entry is either absent or whole.
  const auto work = [&] {
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int round = 0; round < kRounds; ++round) {
          cache_.store(key_, parts);
          if (cache_.load(key_) != parts) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return wrong.load();
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(work() == 0 ? 0 : 1);
    children.push_back(child);
  }
  EXPECT_EQ(work(), 0);
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files_in(cache_.folder()).size(), 1U) << "no temporary file is left";
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(mask, mask_before) << "the process's umask was lost";
}

TEST_F(BuildCacheTest, AFolderThatCannotBeWrittenWarnsOnce) {
  const fs::path file = scratch_.path() / "file";
  std::ofstream(file) << "in the way";
  const BuildCache blocked(file / "cache");
  testing::internal::CaptureStderr();
  blocked.store(key_, parts_);
  blocked.store(key_, parts_);
  const std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warnings, testing::HasSubstr((file / "cache").string()));
  EXPECT_THAT(warnings, testing::HasSubstr("TILEWRIGHT_CACHE"));
  EXPECT_EQ(warnings.find("warning:"), warnings.rfind("warning:"));
  EXPECT_FALSE(blocked.load(key_));
}

TEST(BuildCacheFolder, FollowsTheEnvironment) {
  const ScopedVariable home("HOME", "/home/someone");
  const ScopedVariable xdg("XDG_CACHE_HOME", "");
  const ScopedVariable own("TILEWRIGHT_CACHE", "");
  EXPECT_EQ(BuildCache::default_folder(), "/home/someone/.cache/tilewright");
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(BuildCache::default_folder(), "/caches/tilewright");
  setenv("TILEWRIGHT_CACHE", "/mine", 1);
  EXPECT_EQ(BuildCache::default_folder(), "/mine");
}

}  // namespace
}  // namespace tilewright::runtime
