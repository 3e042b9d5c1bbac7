#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "common/processes.h"
#include "common/temporary_folder.h"
#include "tilewright/distributed.h"

namespace tilewright::test {

// Long enough for a machine that is busy with other things.
constexpr std::chrono::milliseconds kPatience{60'000};
// What takes ranks milliseconds where processors are free takes far longer where many processes
// wait for each of them: so many times.
inline int waits_for_a_processor() {
  double load = 0;
  getloadavg(&load, 1);
  return std::clamp(static_cast<int>(load / std::thread::hardware_concurrency()), 1, 10);
}
// Where a test waits for it to be over. Known before the test forks, so that all ranks have the
// same.
inline const std::chrono::milliseconds kShortPatience =
    std::chrono::milliseconds{1'500} * waits_for_a_processor();

inline GroupOptions rank_of(int rank, int size, std::chrono::milliseconds patience = kPatience) {
  GroupOptions options;
  options.rank = rank;
  options.size = size;
  options.patience = patience;
  options.silence = kPatience;
  return options;
}

// "2: 0 1 2": who this is, and what all ranks have given.
inline std::string roll_call(const Group& group) {
  const auto all = group.all_gather(std::to_string(group.rank()), "roll call");
  return fmt::format("{}: {}", group.rank(), fmt::join(all, " "));
}

// As errors print it: "1.5 s".
inline std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1e3);
}

inline void wait_until_there(const std::string& path) {
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Ranks that meet by a file of the test's own.
class FileRanks {
 public:
  std::string path() const { return (folder_.path() / "rendezvous").string(); }
  Group join(int rank, int size, std::chrono::milliseconds patience = kPatience) const {
    return Group(Rendezvous::file(path()), rank_of(rank, size, patience));
  }
  Group join(const GroupOptions& options) const { return Group(Rendezvous::file(path()), options); }
  bool left_nothing() const { return std::filesystem::is_empty(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

inline int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// Of these the ones that a program has, too, which this process starts.
inline int inherited_descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int flags = fcntl(std::stoi(entry.path().filename().string()), F_GETFD);
    count += flags >= 0 && (flags & FD_CLOEXEC) == 0;
  }
  return count;
}

}  // namespace tilewright::test
