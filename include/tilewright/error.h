#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace tilewright {

// A line of the user's source. `file` outlives the process: a literal, or an interned string.
struct SourceLocation {
  const char* file = nullptr;
  int line = 0;
};

// The caller's place: the default of every recording function.
constexpr SourceLocation here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {file, line};
}

// What records raises `usage` at its caller's line. The value is the exit status of `tilewright`.
enum class ErrorKind {
  result = 1,       // a result falls short: a mismatch, a fault found by the simulator
  usage = 2,        // the user's program, options or input are wrong
  unavailable = 3,  // a device, driver or tool is not here, or memory has run out
  internal = 4,     // a bug of Tilewright
};

// what() is the whole text for a person: place, message, the source line with a caret, notes, fix.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, SourceLocation location, std::string message, const std::string& rendered,
        std::string fix = {})
      : std::runtime_error(rendered),
        kind_(kind),
        location_(location),
        message_(std::move(message)),
        fix_(std::move(fix)) {}

  ErrorKind kind() const noexcept { return kind_; }
  SourceLocation location() const noexcept { return location_; }
  const std::string& message() const noexcept { return message_; }
  // What would mend it; empty where nothing is known to.
  const std::string& fix() const noexcept { return fix_; }

 private:
  ErrorKind kind_;
  SourceLocation location_;
  std::string message_;
  std::string fix_;
};

// For functions that make kernels: an error of their caller, with his line and a caret under
// `token`, usually the function's name. `where` comes from a parameter whose default is here().
[[noreturn]] void raise_usage(SourceLocation where, const std::string& token,
                              const std::string& message, const std::string& fix);

}  // namespace tilewright
