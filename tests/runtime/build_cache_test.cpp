#include "runtime/build_cache.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
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
  fs::path entry(const BuildCache::Inputs& inputs) const {
    return cache_.folder() / (BuildCache::key(inputs) + ".build");
  }

  test::TemporaryFolder scratch_;
  BuildCache cache_{scratch_.path() / "deep" / "cache"};
  BuildCache::Inputs inputs_ = {"a source", "its options"};
  std::vector<std::string> parts_ = {std::string("binary\0\n\xff", 9), "", "text\n"};
};

TEST_F(BuildCacheTest, ReturnsWhatWasStored) {
  EXPECT_FALSE(cache_.load(inputs_));
  cache_.store(inputs_, parts_);
  EXPECT_THAT(cache_.load(inputs_), testing::Optional(parts_));
  EXPECT_FALSE(cache_.load({"another source"}));
}

TEST_F(BuildCacheTest, TheKeyKeepsInputsApart) {
  EXPECT_NE(BuildCache::key({"ab", "c"}), BuildCache::key({"a", "bc"}));
  EXPECT_NE(BuildCache::key({"a", ""}), BuildCache::key({"a"}));
  EXPECT_NE(BuildCache::key({"a", "b"}), BuildCache::key({"b", "a"}));
  EXPECT_EQ(BuildCache::key({"a", "b"}), BuildCache::key({"a", "b"}));
}

TEST_F(BuildCacheTest, EveryDamagedByteDropsTheEntry) {
  cache_.store(inputs_, parts_);
  const fs::path path = files_in(cache_.folder()).at(0);
  const std::string whole = read(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_FALSE(cache_.load(inputs_)) << "byte " << i;
    EXPECT_FALSE(fs::exists(path)) << "byte " << i;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_FALSE(cache_.load(inputs_)) << "cut to " << size;
  }
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_TRUE(cache_.load(inputs_));
}

TEST_F(BuildCacheTest, AnEntryOfAnotherKeyIsNotTaken) {
  cache_.store(inputs_, parts_);
  const BuildCache::Inputs other = {"other"};
  fs::rename(files_in(cache_.folder()).at(0), entry(other));
  EXPECT_FALSE(cache_.load(other));
}

// As if both hashes were equal: the inputs themselves are compared.
TEST_F(BuildCacheTest, AnEntryOfOtherInputsWithTheSameHashIsNotTaken) {
  cache_.store({"a source", "its option!"}, parts_);
  fs::rename(files_in(cache_.folder()).at(0), entry(inputs_));
  EXPECT_FALSE(cache_.load(inputs_));
}

TEST_F(BuildCacheTest, WhatIsMadeIsTheUsersAlone) {
  const mode_t mask = umask(0);
  cache_.store(inputs_, parts_);
  umask(mask);
  EXPECT_EQ(fs::status(cache_.folder()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(entry(inputs_)).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(BuildCacheTest, AFolderThatOthersMayWriteIsNotBelieved) {
  cache_.store(inputs_, parts_);
  for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(cache_.folder(), fs::perms::owner_all | others);
    testing::internal::CaptureStderr();
    EXPECT_FALSE(cache_.load(inputs_));
    testing::internal::GetCapturedStderr();
    EXPECT_THAT(cache_.state().unusable, testing::HasSubstr("others may write"));
  }
  fs::permissions(cache_.folder(), fs::perms::owner_all);
  EXPECT_TRUE(cache_.load(inputs_));
}

TEST_F(BuildCacheTest, AFolderOfSomebodyElseIsNotBelieved) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives a folder away";
  cache_.store(inputs_, parts_);
  ASSERT_EQ(chown(cache_.folder().c_str(), 12345, 12345), 0);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(cache_.load(inputs_));
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(cache_.state().unusable, testing::HasSubstr("belongs to user 12345"));
  expect_error(ErrorKind::usage, {"belongs to user 12345"}, [&] { cache_.clear(); });
  ASSERT_EQ(chown(cache_.folder().c_str(), geteuid(), getegid()), 0);
  ASSERT_EQ(chown(entry(inputs_).c_str(), 12345, 12345), 0);
  EXPECT_FALSE(cache_.load(inputs_)) << "an entry of somebody else";
}

TEST_F(BuildCacheTest, AnEntryThatOthersMayWriteIsNotTaken) {
  cache_.store(inputs_, parts_);
  fs::permissions(entry(inputs_), fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache_.load(inputs_));
}

// A pipe that nobody writes would wait for ever.
TEST_F(BuildCacheTest, WhatIsNoFileIsAnEntryThatIsRebuilt) {
  cache_.store(inputs_, parts_);
  const fs::path path = entry(inputs_), elsewhere = scratch_.path() / "elsewhere";
  fs::rename(path, elsewhere);
  const std::function<void()> in_the_way[] = {
      [&] { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); },
      [&] { fs::create_directory(path); },
      [&] { fs::create_symlink(elsewhere, path); },
      [&] { fs::create_symlink("/dev/zero", path); },
  };
  for (const auto& put : in_the_way) {
    put();
    EXPECT_FALSE(cache_.load(inputs_));
    cache_.store(inputs_, parts_);
    EXPECT_THAT(cache_.load(inputs_), testing::Optional(parts_));
    fs::remove(path);
  }
}

TEST_F(BuildCacheTest, AFolderThatCannotBeMadeIsNotUsed) {
  EXPECT_EQ(cache_.state().unusable, "") << "it is made where there is none";
  EXPECT_THAT(BuildCache("/proc/no_such_folder").state().unusable,
              testing::HasSubstr("it cannot be made"));
}

TEST_F(BuildCacheTest, ShowsAndClears) {
  EXPECT_EQ(cache_.state().entries, 0);
  cache_.store(inputs_, parts_);
  cache_.store({"another"}, parts_);
  std::ofstream(cache_.folder() / ".tilewright.1.1") << "of a process that was killed";
  std::ofstream(cache_.folder() / "notes.txt") << "the user's own";
  fs::permissions(cache_.folder(), fs::perms::all);
  EXPECT_EQ(cache_.state().entries, 2);
  EXPECT_GT(cache_.state().bytes, 20);
  EXPECT_EQ(cache_.clear().entries, 2);
  EXPECT_EQ(cache_.state().entries, 0);
  EXPECT_EQ(cache_.state().unusable, "");
  EXPECT_THAT(files_in(cache_.folder()), testing::ElementsAre(cache_.folder() / "notes.txt"));
}

// A folder that is no cache, named by mistake, stays as it is for those who use it.
TEST_F(BuildCacheTest, AFolderOfOtherFilesKeepsItsMode) {
  cache_.store(inputs_, parts_);
  cache_.clear();
  std::ofstream(cache_.folder() / "passwd") << "of others";
  const auto mode = [&](unsigned mode) {
    fs::permissions(cache_.folder(), static_cast<fs::perms>(mode));
  };
  mode(0755);
  cache_.clear();
  EXPECT_EQ(fs::status(cache_.folder()).permissions(), static_cast<fs::perms>(0755));
  mode(0775);
  expect_error(ErrorKind::usage, {"it holds passwd and no built kernels"}, [&] { cache_.clear(); });
  EXPECT_EQ(fs::status(cache_.folder()).permissions(), static_cast<fs::perms>(0775));
}

TEST_F(BuildCacheTest, ASharedFolderStaysShared) {
  cache_.store(inputs_, parts_);
  const fs::perms shared = fs::perms::all | fs::perms::sticky_bit;
  fs::permissions(cache_.folder(), shared);
  expect_error(ErrorKind::usage, {"its sticky bit is set", "fix: set TILEWRIGHT_CACHE"},
               [&] { cache_.clear(); });
  EXPECT_EQ(fs::status(cache_.folder()).permissions(), shared);
  EXPECT_EQ(cache_.state().entries, 1);
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
          cache_.store(inputs_, parts);
          if (cache_.load(inputs_) != parts) ++wrong;
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
  blocked.store(inputs_, parts_);
  blocked.store(inputs_, parts_);
  const std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warnings, testing::HasSubstr((file / "cache").string()));
  EXPECT_THAT(warnings, testing::HasSubstr("TILEWRIGHT_CACHE"));
  EXPECT_EQ(warnings.find("warning:"), warnings.rfind("warning:"));
  EXPECT_FALSE(blocked.load(inputs_));
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
  EXPECT_FALSE(BuildCache::is_off());
  setenv("TILEWRIGHT_CACHE", "off", 1);
  EXPECT_TRUE(BuildCache::is_off());
  EXPECT_EQ(BuildCache::default_folder(), "");
  testing::internal::CaptureStderr();
  const BuildCache none(BuildCache::default_folder());
  none.store({"a source"}, {"a part"});
  EXPECT_FALSE(none.load({"a source"}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tilewright::runtime
