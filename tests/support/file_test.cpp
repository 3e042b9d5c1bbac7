#include "support/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <future>
#include <iterator>
#include <string_view>
#include <thread>

#include "common/error_text.h"
#include "common/temporary_folder.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using test::usage_error_of;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t count_files(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(InputFileTest, ReadsAnyRange) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "0123456789";
  const InputFile file(folder / "a");
  EXPECT_EQ(file.size(), 10);
  std::string text(4, '\0');
  file.read(3, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "3456");
}

constexpr const char* kReadable = "\n  fix: name a file that exists and that you may read";

TEST(InputFileTest, NamesTheFileThatCannotBeRead) {
  const TemporaryFolder folder;
  const std::string gone = folder / "gone";
  EXPECT_EQ(usage_error_of([&] { InputFile file(gone); }),
            "error: " + gone + ": cannot read: No such file or directory" + kReadable);
  EXPECT_EQ(usage_error_of([&] { InputFile file(folder.path().string()); }),
            "error: " + folder.path().string() + ": cannot read: not a regular file" + kReadable);
}

TEST(InputFileTest, APipeIsRefusedRatherThanWaitedFor) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(usage_error_of([&] { InputFile file(pipe); }),
            "error: " + pipe + ": cannot read: not a regular file" + kReadable);
}

TEST(InputFileTest, AFileThatShrinksWhileItIsRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  std::ofstream(path) << "0123456789";
  const InputFile file(path);
  fs::resize_file(path, 5);
  std::string text(10, '\0');
  EXPECT_EQ(usage_error_of([&] { file.read(0, std::as_writable_bytes(std::span(text))); }),
            "error: " + path + ": ends at byte 5 while it is read: another program is writing it");
}

TEST(WriteFileTest, WritesThePartsInOrderAndReplaces) {
  const TemporaryFolder folder;
  write_file(folder / "a", {bytes_of("one "), bytes_of("two")});
  EXPECT_EQ(content(folder / "a"), "one two");
  write_file(folder / "a", {bytes_of("3")});
  EXPECT_EQ(content(folder / "a"), "3");
  EXPECT_EQ(count_files(folder.path()), 1u);
}

TEST(WriteFileTest, KeepsTheModeOfAnOldFileAndGivesANewOneTheUsual) {
  const TemporaryFolder folder;
  const mode_t mask = umask(022);
  write_file(folder / "a", {bytes_of("1")});
  umask(mask);
  struct stat status {};
  ASSERT_EQ(stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
  ASSERT_EQ(chmod((folder / "a").c_str(), 0640), 0);
  write_file(folder / "a", {bytes_of("2")});
  ASSERT_EQ(stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(WriteFileTest, NobodyRunsItAsItsOldOwner) {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  ASSERT_EQ(chmod((folder / "a").c_str(), 06755), 0);
  write_text(folder / "a", "new");
  struct stat status {};
  ASSERT_EQ(stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755u);
}

TEST(TemporaryFileTest, GoesWithTheObjectUnlessItWasRenamed) {
  const TemporaryFolder folder;
  {
    TemporaryFile file(folder.path().string(), 0600, ".cubin");
    file.write({bytes_of("a"), bytes_of("b")});
    EXPECT_EQ(file.error(), 0);
    EXPECT_TRUE(file.path().ends_with(".cubin"));
    EXPECT_EQ(content(file.path()), "ab");
  }
  EXPECT_EQ(count_files(folder.path()), 0u);
  {
    TemporaryFile file(folder.path().string(), 0600);
    file.write({bytes_of("c")});
    file.rename(folder / "kept");
  }
  EXPECT_EQ(content(folder / "kept"), "c");
  EXPECT_EQ(count_files(folder.path()), 1u);
  const TemporaryFile none(folder / "missing", 0600);
  EXPECT_EQ(none.error(), ENOENT);
}

TEST(TemporaryFileTest, ASignalLeavesNoneBehind) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const TemporaryFolder folder;
    const pid_t child = fork();
    if (child == 0) {
      remove_temporaries_on_signals();
      const TemporaryFile one(folder.path().string(), 0600), two(folder.path().string(), 0600);
      if (count_files(folder.path()) == 2) raise(number);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_EQ(count_files(folder.path()), 0u);
  }
}

TEST(TextFileTest, OneThatNoTextFillsIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "x";
  fs::resize_file(folder / "a", kMaximumText + 1);
  EXPECT_NE(usage_error_of([&] { read_text(folder / "a"); }).find("256 MiB"), std::string::npos);
  EXPECT_EQ(try_read_text(folder / "a"), std::nullopt);
}

TEST(WriteFileTest, WritesThroughALink) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "old";
  fs::create_symlink("a", folder / "link");
  write_file(folder / "link", {bytes_of("new")});
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(content(folder / "a"), "new");
}

TEST(WriteFileTest, AFailureLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  std::ofstream(path) << "old";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string text =
      usage_error_of([&] { write_file(path, {bytes_of(std::string(4096, 'x'))}); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(text, "error: " + path +
                      ": cannot write: File too large\n  fix: make room there, or name a file "
                      "elsewhere");
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(count_files(folder.path()), 1u);
}

const std::string kOtherFile =
    "\n  fix: name a file in a folder that exists and that you may write to";

TEST(WriteFileTest, AReadOnlyFileIsNotReplaced) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write any file";
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  std::ofstream(path) << "old";
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  EXPECT_EQ(usage_error_of([&] { write_file(path, {bytes_of("new")}); }),
            "error: " + path + ": cannot write: Permission denied" + kOtherFile);
  EXPECT_EQ(content(path), "old");
}

TEST(WriteFileTest, NamesTheFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "gone/a";
  EXPECT_EQ(
      usage_error_of([&] { write_file(path, {}); }),
      "error: " + path + ": cannot write into its folder: No such file or directory" + kOtherFile);
  EXPECT_EQ(usage_error_of([&] { write_file(folder.path().string(), {}); }),
            "error: " + folder.path().string() + ": cannot write: Is a directory" + kOtherFile);
}

TEST(WriteFileTest, ADeviceIsWrittenToAndNotReplaced) {
  write_file("/dev/null", {bytes_of("x")});
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(usage_error_of([&] { write_file("/dev/full", {bytes_of("x")}); }),
            "error: /dev/full: cannot write: No space left on device\n  fix: make room there, or "
            "name a file elsewhere");
}

TEST(WriteFileTest, APipeThatNobodyReadsIsRefused) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(usage_error_of([&] { write_file(pipe, {bytes_of("x")}); }),
            "error: " + pipe +
                ": cannot write: nobody reads the pipe\n"
                "  fix: begin to read it first, or name a file");
  // With a reader, who comes a little later, even more than a pipe holds is written.
  const std::string large(1 << 20, 'y');
  std::future<std::string> reader = std::async(std::launch::async, content, pipe);
  for (bool written = false; !written;) {
    try {
      write_file(pipe, {bytes_of(large)});
      written = true;
    } catch (const Error&) {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(reader.get(), large);
}

TEST(TextFileTest, IsWrittenAndReadWhole) {
  const test::TemporaryFolder folder;
  for (const std::string& text : {std::string(), std::string("a\nb"), std::string(100000, 'x')}) {
    write_text(folder / "a", text);
    EXPECT_EQ(read_text(folder / "a"), text);
    EXPECT_EQ(try_read_text(folder / "a"), text);
  }
  EXPECT_NE(usage_error_of([&] { read_text(folder / "b"); }).find("No such file"),
            std::string::npos);
  EXPECT_EQ(try_read_text(folder / "b"), std::nullopt);
  EXPECT_EQ(try_read_text(folder.path().string()), std::nullopt);
  EXPECT_NE(try_read_text("/proc/cpuinfo").value_or("").size(), 0u);  // whose size is said to be 0
}

TEST(TextFileTest, LinesGoWithoutTheirEnds) {
  using Lines = std::vector<std::string_view>;
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("a"), Lines{"a"});
  EXPECT_EQ(lines_of("a\n\nb\n"), (Lines{"a", "", "b"}));
}

}  // namespace
}  // namespace tilewright
