#include "support/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace tilewright {
namespace {

std::string read_available(int descriptor) {
  std::string text(4096, '\0');
  const ssize_t count = read(descriptor, text.data(), text.size());
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

// A terminal 60 characters wide, whose other end the test reads.
class ProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TERM", "xterm", 1);
    reader_ = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    ASSERT_GE(reader_, 0);
    ASSERT_EQ(grantpt(reader_), 0);
    ASSERT_EQ(unlockpt(reader_), 0);
    terminal_ = open(ptsname(reader_), O_RDWR | O_NOCTTY);
    ASSERT_GE(terminal_, 0);
    set_width(60);
  }
  void TearDown() override {
    close(terminal_);
    close(reader_);
  }
  void set_width(unsigned short columns) const {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    ASSERT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
  }

  int reader_ = -1;
  int terminal_ = -1;
};

TEST_F(ProgressTest, DrawsOnATerminalAndClearsItsLine) {
  {
    ProgressBar bar("schedules", 4, terminal_);
    EXPECT_EQ(read_available(reader_), "\r\033[Kschedules [....................] 0/4");
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    const auto start = std::chrono::steady_clock::now();
    bar.advance();
    EXPECT_EQ(read_available(reader_), "\r\033[Kschedules [#####...............] 1/4");
    bar.advance();
    // A machine that is busy elsewhere may take longer than the interval between two drawings.
    if (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(100)) {
      EXPECT_EQ(read_available(reader_), "") << "drawn again at once";
    } else {
      read_available(reader_);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    bar.advance(10);
    EXPECT_EQ(read_available(reader_), "\r\033[Kschedules [####################] 4/4");
  }
  EXPECT_EQ(read_available(reader_), "\r\033[K");
}

TEST_F(ProgressTest, ALongLineIsCutToTheTerminal) {
  set_width(20);
  const ProgressBar bar("schedules", 4, terminal_);
  EXPECT_EQ(read_available(reader_), "\r\033[Kschedules [........");
}

TEST_F(ProgressTest, NothingOnADumbTerminal) {
  setenv("TERM", "dumb", 1);
  { ProgressBar bar("schedules", 4, terminal_); }
  EXPECT_EQ(read_available(reader_), "");
}

TEST_F(ProgressTest, NothingOnAPipe) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  {
    ProgressBar bar("schedules", 4, ends[1]);
    bar.advance(4);
  }
  EXPECT_EQ(read_available(ends[0]), "");
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ProgressTest, ManyThreadsAndNoSteps) {
  ProgressBar bar("schedules", 0, terminal_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&bar] {
      for (int i = 0; i < 1000; ++i) bar.advance();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_available(reader_).substr(0, 4), "\r\033[K");
}

}  // namespace
}  // namespace tilewright
