#include "support/diagnostic.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "support/callers.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/intern.h"
#include "tilewright/function_ref.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

std::string shortened_path(std::string_view file) {
  const fs::path path(file);
  if (!path.is_absolute()) return std::string(file);
  std::error_code failed;
  const fs::path here = fs::current_path(failed);
  if (failed) return std::string(file);
  const fs::path relative = path.lexically_relative(here);
  if (relative.empty() || *relative.begin() == ".." || relative == ".") return std::string(file);
  return relative.string();
}

std::optional<std::string> source_line(SourceLocation where) {
  if (where.file == nullptr || where.line <= 0) return std::nullopt;
  const std::string text = try_read_source(where.file).value_or("");
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.size() < static_cast<size_t>(where.line)) return std::nullopt;
  const std::string_view line = lines[static_cast<size_t>(where.line) - 1];
  const auto first = line.find_first_not_of(" \t\r\f\v");
  if (first == std::string::npos) return std::nullopt;
  const auto last = line.find_last_not_of(" \t\r\f\v");
  return std::string(line.substr(first, last - first + 1));
}

bool is_source_name(const fs::path& path) {
  constexpr std::array<std::string_view, 16> kEndings = {
      ".c",   ".cc",  ".cpp", ".cxx", ".cu",  ".cuh", ".h",  ".hh",
      ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".py",  ".tw", ".twp"};
  return std::find(kEndings.begin(), kEndings.end(), path.extension().string()) != kEndings.end();
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto parted = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return parted.first == folder.end() && folder != folder.root_path();
}

// Behind links, so that a source's name does not lead elsewhere.
bool is_plausible_source(const char* file) {
  std::error_code failed;
  const fs::path path = fs::canonical(file, failed);
  if (failed || !is_source_name(path)) return false;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (status.st_uid == ::geteuid()) return true;
  const fs::path here = fs::current_path(failed);
  return !failed && is_below(path, here);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// A token that is a word is looked for as a word first, so that "dot" is not found in "dotted".
size_t token_offset(std::string_view line, std::string_view token) {
  if (token.empty()) return 0;
  for (auto at = line.find(token); at != std::string_view::npos; at = line.find(token, at + 1)) {
    const auto end = at + token.size();
    const bool joined_before = at > 0 && is_word(line[at - 1]) && is_word(token.front());
    const bool joined_after = end < line.size() && is_word(line[end]) && is_word(token.back());
    if (!joined_before && !joined_after) return at;
  }
  const auto anywhere = line.find(token);
  return anywhere == std::string_view::npos ? 0 : anywhere;
}

// Of a character of several UTF-8 bytes, one behind the first.
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Tabs are kept, and a character of several UTF-8 bytes counts once, so that the caret lines up.
std::string padding_under(std::string_view text) {
  std::string padding;
  for (const char c : text) {
    if (!is_continuation(c)) padding += c == '\t' ? '\t' : ' ';
  }
  return padding;
}

// What a person reads of a line: of a long one, what lies around the caret.
struct ShownLine {
  std::string before, from;  // of the caret
};

ShownLine shown(std::string_view line, std::size_t column) {
  constexpr std::size_t kBefore = 160, kFrom = 80;
  column = std::min(column, line.size());
  ShownLine part{std::string(line.substr(0, column)), std::string(line.substr(column))};
  if (line.size() <= kBefore + kFrom) return part;
  if (part.before.size() > kBefore) {
    std::size_t begin = part.before.size() - kBefore;
    while (begin < part.before.size() && is_continuation(part.before[begin])) ++begin;
    part.before = "..." + part.before.substr(begin);
  }
  if (part.from.size() > kFrom) {
    std::size_t end = kFrom;
    while (end < part.from.size() && is_continuation(part.from[end])) ++end;
    part.from = part.from.substr(0, end) + "...";
  }
  return part;
}

}  // namespace

std::optional<std::string> try_read_source(const char* file) {
  if (file == nullptr || (is_claimed(file) && !is_plausible_source(file))) return std::nullopt;
  return try_read_text(file);
}

std::string format_location(SourceLocation where) {
  if (where.file == nullptr) return {};
  std::string text = escaped_lines(shortened_path(where.file));
  if (where.line > 0) text += ':' + std::to_string(where.line);
  return text;
}

Diagnostic::Diagnostic(SourceLocation where, std::string message, ErrorKind kind)
    : where_(with_caller(where)), message_(escaped_lines(message)), kind_(kind) {}

Diagnostic::~Diagnostic() = default;

Diagnostic& Diagnostic::token(std::string_view token) {
  token_ = token;
  return *this;
}

Diagnostic& Diagnostic::line(std::string text, std::size_t column) {
  line_ = std::move(text);
  column_ = column;
  return *this;
}

Diagnostic& Diagnostic::note(SourceLocation where, std::string text) {
  notes_.push_back({where, escaped_lines(text)});
  return *this;
}

Diagnostic& Diagnostic::fix(std::string text) {
  fixes_.push_back(escaped_lines(text));
  return *this;
}

std::string Diagnostic::render() const {
  const std::optional<SourceLocation> caller = caller_of(where_);
  const SourceLocation first = caller.value_or(where_);
  std::string text = format_location(first);
  if (!text.empty()) text += ": ";
  text += "error: " + message_;
  const auto show = [&text](const std::string& line, std::size_t column) {
    const ShownLine part = shown(line, column);
    const std::string before = escaped_lines(part.before);
    text += "\n    " + before + escaped_lines(part.from) + "\n    " + padding_under(before) + '^';
  };
  if (!line_.empty()) {
    show(line_, column_);
  } else if (const auto line = source_line(first)) {
    show(*line, token_offset(*line, token_));
  }
  if (caller) text += "\n  in " + format_location(where_);
  for (const Note& note : notes_) {
    text += "\n  " + note.text;
    if (note.where.file != nullptr) text += " at " + format_location(note.where);
  }
  for (const std::string& fix : fixes_) text += "\n  fix: " + fix;
  return text;
}

void Diagnostic::raise() const {
  throw Error(kind_, caller_of(where_).value_or(where_), message_, render(),
              fixes_.empty() ? std::string() : fixes_.front());
}

void raise_usage(SourceLocation where, const std::string& token, const std::string& message,
                 const std::string& fix) {
  Diagnostic(where, message).token(token).fix(fix).raise();
}

void detail::raise_empty_callable() {
  raise_usage({}, "", "a callable that is to be called is empty",
              "pass a lambda, or a std::function that holds one");
}

}  // namespace tilewright
