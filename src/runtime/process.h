#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// The program's path, searched for in $PATH; a name with a slash is taken as it is.
std::optional<std::string> find_program(std::string_view name);

constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

struct ProcessResult {
  int status = 0;      // the exit status, or 128 + the signal that ended it
  std::string output;  // standard output and error together
};

// Runs a program without a shell and waits for it; its input is empty. Throws Error(unavailable)
// when it cannot be started. One that takes longer than `patience` is killed: status 128 + 9, and
// the output says so.
ProcessResult run_process(const std::vector<std::string>& arguments,
                          std::chrono::milliseconds patience = kForever);

}  // namespace tilewright::runtime
