#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "common/processes.h"
#include "distributed/ranks.h"
#include "runtime/runtime_test.h"
#include "support/file_descriptor.h"

// What lies where ranks are to meet: another job's file, another user's, and no ticket at all.
namespace tilewright {
namespace {

using test::FileRanks;
using test::Processes;
using test::rank_of;
using test::roll_call;
using test::Voice;
using test::wait_until_there;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(RendezvousFile, OfAnotherUserIsNotBelieved) {
  const FileRanks job;
  std::string path = job.path();
  if (geteuid() == 0) {
    std::ofstream(path) << "local:nobody\na word\n";
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  } else {
    path = "/etc/passwd";
  }
  Processes ranks(1, [&](int, const Voice&) { Group(Rendezvous::file(path), rank_of(1, 2)); });
  EXPECT_THAT(ranks.said(0),
              AllOf(StartsWith("usage: error: the file " + path),
                    HasSubstr("belongs to user " + std::to_string(geteuid() == 0 ? 12345 : 0))));
  if (geteuid() == 0) std::filesystem::remove(path);
}

TEST(RendezvousFile, OfTwoJobs) {
  const FileRanks job;
  Processes first(1, [&](int, const Voice& voice) { voice.say(roll_call(job.join(0, 2))); });
  wait_until_there(job.path());
  Processes second(1, [&](int, const Voice&) { job.join(0, 2); });
  EXPECT_THAT(second.said(0), AllOf(HasSubstr("usage: error: the file " + job.path()),
                                    HasSubstr("rank 0 of another job waits there")));
  Processes rest(1, [&](int, const Voice& voice) { voice.say(roll_call(job.join(1, 2))); });
  EXPECT_EQ(first.said(0), "0: 0 1");
  EXPECT_EQ(rest.said(0), "1: 0 1");
}

// Three ranks 0 at one instant: one has put its file where the old one was, and a second looks at
// it under its lock. The third waited for the old one, and leaves the new one alone until it is
// free.
TEST(RendezvousFile, ThatIsNewMeanwhileIsLockedFirst) {
  const FileRanks job;
  {
    Processes killed(1, [&](int, const Voice&) { job.join(0, 2); });
    wait_until_there(job.path());
  }
  // Forked before there is a lock, of which it would have a share.
  const std::string begin = job.path() + ".begin";
  Processes zero(1, [&](int, const Voice& voice) {
    wait_until_there(begin);
    voice.say(roll_call(job.join(0, 2)));
  });
  const auto opened = [&] {
    FileDescriptor file(::open(job.path().c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(::flock(file.get(), LOCK_EX), 0);
    return file;
  };
  const auto number = [&] {
    struct stat status {};
    return ::stat(job.path().c_str(), &status) == 0 ? status.st_ino : 0;
  };
  // Until somebody waits for the lock of this file, where the system tells it.
  const auto wait_for_waiter = [&](ino_t file) {
    const std::string name = ":" + std::to_string(file) + " ";
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    for (bool found = false;
         !found && number() == file && std::chrono::steady_clock::now() < end;) {
      std::ifstream locks("/proc/locks");
      for (std::string line; std::getline(locks, line);) {
        found =
            found || (line.find("->") != std::string::npos && line.find(name) != std::string::npos);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::optional<FileDescriptor> old(opened());
  std::ofstream(begin) << "now";
  wait_for_waiter(number());
  std::filesystem::copy_file(job.path(), job.path() + ".new");
  std::filesystem::rename(job.path() + ".new", job.path());
  std::optional<FileDescriptor> newer(opened());
  const ino_t kept = number();
  old.reset();
  wait_for_waiter(kept);
  EXPECT_EQ(number(), kept);
  newer.reset();
  Processes one(1, [&](int, const Voice& voice) { voice.say(roll_call(job.join(1, 2))); });
  EXPECT_EQ(zero.said(0), "0: 0 1");
  EXPECT_EQ(one.said(0), "1: 0 1");
}

TEST(RendezvousFile, OfSomethingElseStays) {
  const FileRanks job;
  const auto expect_refused = [&](int rank) {
    runtime::expect_error(ErrorKind::usage, {job.path(), "not one of a rendezvous"},
                          [&] { job.join(rank, 2); });
  };
  std::ofstream(job.path()) << "a diary";
  for (const int rank : {0, 1}) expect_refused(rank);
  EXPECT_EQ(std::filesystem::file_size(job.path()), 7U);
  std::filesystem::remove(job.path());
  std::filesystem::create_directory(job.path());
  for (const int rank : {0, 1}) expect_refused(rank);
  std::filesystem::remove(job.path());
  std::filesystem::create_symlink(job.path() + ".of_nobody", job.path());
  expect_refused(0);
  std::filesystem::remove(job.path());
}

}  // namespace
}  // namespace tilewright
