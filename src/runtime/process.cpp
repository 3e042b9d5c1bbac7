#include "runtime/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "support/diagnostic.h"

namespace tilewright::runtime {

std::optional<std::string> find_program(std::string_view name) {
  if (name.find('/') != std::string_view::npos) {
    std::string path(name);
    if (access(path.c_str(), X_OK) == 0) return path;
    return std::nullopt;
  }
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
    if (folder.empty()) continue;
    std::string path = fmt::format("{}/{}", folder, name);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

namespace {

using Clock = std::chrono::steady_clock;

// Whether there is something to read, or its end; false once the time is over.
bool wait_for_output(int end, Clock::time_point deadline) {
  for (;;) {
    int milliseconds = -1;
    if (deadline != Clock::time_point::max()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return false;
      milliseconds = static_cast<int>(std::min<std::int64_t>(left, 1 << 30));
    }
    pollfd wanted{end, POLLIN, 0};
    const int ready = poll(&wanted, 1, milliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments,
                          std::chrono::milliseconds patience) {
  const auto refuse = [&](int error) {
    Diagnostic({}, fmt::format("{} cannot be started: {}", arguments.at(0), std::strerror(error)),
               ErrorKind::unavailable)
        .fix("install it, or put it on the PATH")
        .raise();
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) refuse(errno);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t process = 0;
  const int error = posix_spawnp(&process, argv.at(0), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  // Our copy of the writing end: while it is open the reading below would never end.
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    refuse(error);
  }

  ProcessResult result;
  char buffer[4096];
  const auto deadline = patience == kForever ? Clock::time_point::max() : Clock::now() + patience;
  bool late = false;
  for (;;) {
    if (!wait_for_output(ends[0], deadline)) {
      late = true;
      kill(process, SIGKILL);
      break;
    }
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    result.output.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (late) {
    result.output = fmt::format("it took longer than {} s and was ended\n",
                                static_cast<double>(patience.count()) / 1e3) +
                    result.output;
  }
  return result;
}

}  // namespace tilewright::runtime
