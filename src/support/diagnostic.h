#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/error.h"

namespace tilewright {

// Builds one error text and throws it. Control characters in what it is given print as \x and two
// digits, line breaks and tabs aside:
//
//   attention.cpp:41: error: dot: inner dimensions differ: q {128, 64} x k {128, 96}
//       Tile s = dot(q, k.T());
//                ^
//     q is loaded at attention.cpp:33
//     fix: load k with 64 columns
class Diagnostic {
 public:
  explicit Diagnostic(SourceLocation where, std::string message, ErrorKind kind = ErrorKind::usage);
  ~Diagnostic();

  // The caret goes under the token's first occurrence in the line, else under the line's start.
  Diagnostic& token(std::string_view token);
  // The line to print, and where its caret goes, for text that may not be in a file.
  Diagnostic& line(std::string text, std::size_t column);
  // " at file:line" is appended to the text when `where` names a file.
  Diagnostic& note(SourceLocation where, std::string text);
  Diagnostic& fix(std::string text);

  std::string render() const;
  [[noreturn]] void raise() const;

 private:
  struct Note {
    SourceLocation where;
    std::string text;
  };

  SourceLocation where_;
  std::string message_;
  ErrorKind kind_;
  std::string token_;
  std::string line_;
  std::size_t column_ = 0;
  std::vector<Note> notes_;
  std::vector<std::string> fixes_;
};

// "file:line" as the diagnostics print it: relative to the current directory when below it.
std::string format_location(SourceLocation where);

// The source's text, where it may be shown. A place that a file names, such as a .tw file's, may
// name any other file. Of those only sources are read: regular files with a source's ending that
// belong to the user or stand below the current folder.
std::optional<std::string> try_read_source(const char* file);

}  // namespace tilewright
