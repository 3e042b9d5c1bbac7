#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/file_descriptor.h"
#include "tilewright/error.h"

namespace tilewright::test {

// What one of several processes of a test says to the test.
class Voice {
 public:
  explicit Voice(int to) : to_(to) {}
  void say(const std::string& text) const {
    [[maybe_unused]] const ssize_t written = write(to_, text.data(), text.size());
  }
  // What the action raises, if anything.
  template <typename Action>
  void say_error_of(const Action& action) const {
    try {
      action();
    } catch (const Error& error) {
      say(error.what());
    }
  }

 private:
  int to_;
};

// Processes that each run the body with their number, and then end without what a test program does
// at its end. What they say is what the test looks at: failed expectations in them are not seen.
class Processes {
 public:
  using Body = std::function<void(int number, const Voice& voice)>;

  Processes(int count, const Body& body) {
    for (int number = 0; number < count; ++number) start(number, body);
  }
  ~Processes() {
    for (Process& process : processes_) end(process);
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  pid_t process(int number) const { return processes_[number].id; }
  void signal(int number, int which) const { kill(processes_[number].id, which); }

  // Until the process has said so, among other things.
  void wait_for(int number, const std::string& text) {
    Process& process = processes_[number];
    while (process.said.find(text) == std::string::npos) {
      if (hear(process)) continue;
      ADD_FAILURE() << "process " << number << " never said \"" << text << "\", but \""
                    << process.said << "\"";
      return;
    }
  }

  const std::string& said_so_far(int number) const { return processes_[number].said; }
  // All that it says before its end.
  const std::string& said(int number) {
    Process& process = processes_[number];
    while (hear(process)) {
    }
    return process.said;
  }

 private:
  struct Process {
    pid_t id;
    FileDescriptor voice;
    std::string said;
  };

  void start(int number, const Body& body) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t id = fork();
    ASSERT_GE(id, 0);
    if (id == 0) {
      close(ends[0]);
      run(number, body, Voice(ends[1]));
      _exit(0);
    }
    close(ends[1]);
    processes_.push_back({id, FileDescriptor(ends[0]), ""});
  }

  static void run(int number, const Body& body, const Voice& voice) {
    try {
      body(number, voice);
    } catch (const Error& error) {
      voice.say(error.kind() == ErrorKind::usage ? "usage: " : "unavailable: ");
      voice.say(error.what());
    } catch (const std::exception& error) {
      voice.say(std::string("exception: ") + error.what());
    }
  }

  // False at its end, and for a process that says nothing for so long that it hangs.
  static bool hear(Process& process) {
    constexpr std::chrono::milliseconds kPatience{90'000};
    pollfd wanted{process.voice.get(), POLLIN, 0};
    if (poll(&wanted, 1, static_cast<int>(kPatience.count())) <= 0) {
      process.said += "[hangs]";
      return false;
    }
    char bytes[4096];
    const ssize_t count = read(process.voice.get(), bytes, sizeof bytes);
    if (count <= 0) return false;
    process.said.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  static void end(const Process& process) {
    kill(process.id, SIGKILL);
    waitpid(process.id, nullptr, 0);
  }

  std::vector<Process> processes_;
};

}  // namespace tilewright::test
