#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/characters.h"
#include "support/diagnostic.h"
#include "support/escape.h"
#include "support/intern.h"
#include "tilewright/dtype.h"

namespace tilewright::ir {

inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Some editors begin a file of UTF-8 with it.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Characters, words and numbers, with the position that errors point at.
class Scanner {
 public:
  // So many lines of the file stand before the text. Without `takes_places` location_or gives the
  // text's own lines, whatever it says there.
  Scanner(std::string_view text, std::string_view file, int lines_before = 0,
          bool takes_places = true)
      : text_(text.substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0)),
        file_(file.empty() ? nullptr : intern(file)),
        takes_places_(takes_places),
        lines_before_(lines_before) {}

  [[noreturn]] void fail(std::size_t position, std::string message,
                         const std::string& fix = {}) const {
    const std::size_t newline = position == 0 ? text_.npos : text_.rfind('\n', position - 1);
    std::size_t begin = newline == text_.npos ? 0 : newline + 1;
    const std::size_t end = std::min(text_.find('\n', position), text_.size());
    while (begin < position && (text_[begin] == ' ' || text_[begin] == '\t')) ++begin;
    Diagnostic error(location(position), std::move(message));
    error.line(std::string(text_.substr(begin, end - begin)), position - begin);
    if (!fix.empty()) error.fix(fix);
    error.raise();
  }

  [[noreturn]] void expected(std::string_view what) {
    skip();
    fail(at_, fmt::format("expected {}, found {}", what, found()));
  }

  // Runs `parse` on text that begins at `begin`; its errors get the position.
  template <typename Parse>
  auto within(std::size_t begin, Parse parse) const {
    try {
      return parse();
    } catch (const Error& error) {
      fail(begin, error.message());
    }
  }

  SourceLocation location(std::size_t position) const {
    const auto lines = std::count(text_.begin(), text_.begin() + position, '\n');
    return {file_, lines_before_ + static_cast<int>(lines) + 1};
  }

  // The location of the next token; called with growing positions, counts each line once.
  SourceLocation next_location() {
    skip();
    lines_ += static_cast<int>(std::count(text_.begin() + counted_, text_.begin() + at_, '\n'));
    counted_ = at_;
    return {file_, lines_before_ + lines_ + 1};
  }

  std::size_t position() {
    skip();
    return at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  bool next_is(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  // As next_is, but without leaving the line.
  bool line_continues_with(char c) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) expected(fmt::format("'{}'", c));
  }

  std::string_view peek_word() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  bool accept_word(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }
  void expect_word(std::string_view word) {
    if (!accept_word(word)) expected(fmt::format("\"{}\"", word));
  }
  std::string_view word(std::string_view what) {
    const std::string_view result = peek_word();
    if (result.empty() || is_digit(result[0])) expected(what);
    at_ += result.size();
    return result;
  }

  DType dtype() {
    const std::size_t begin = position();
    const std::string_view name = word("a dtype");
    return within(begin, [&] { return parse_dtype(name); });
  }

  template <typename Integer = std::int64_t>
  Integer integer(std::string_view what = "an integer", int base = 10) {
    skip();
    Integer value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, base);
    if (error == std::errc::result_out_of_range) fail(at_, "the integer is out of range");
    if (error != std::errc{}) expected(what);
    at_ += end - begin;
    return value;
  }

  std::string quoted(std::string_view what) {
    if (!next_is('"')) expected(what);
    const std::size_t begin = at_++;
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      if (text_[at_] != '\\') {
        result += text_[at_++];
        continue;
      }
      const char escape = at_ + 1 < text_.size() ? text_[at_ + 1] : '\n';
      at_ += 2;
      if (escape == 'n') {
        result += '\n';
      } else if (escape == '"' || escape == '\\') {
        result += escape;
      } else if (escape == 'x') {
        result += static_cast<char>(hexadecimal_byte());
      } else {
        fail(at_ - 2, "unknown escape: expected \\n, \\\", \\\\ or \\x and two digits");
      }
    }
    if (at_ >= text_.size() || text_[at_] == '\n') fail(begin, "the text has no closing '\"'");
    ++at_;
    if (find_control(result) != result.npos) {
      fail(begin, "the text holds a line break or another control character");
    }
    return result;
  }

  // Up to the first of `ends` outside parentheses.
  std::string_view until(std::string_view ends) {
    skip();
    const std::size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (depth == 0 && ends.find(text_[at_]) != ends.npos) break;
      if (text_[at_] == '(') ++depth;
      if (text_[at_] == ')') --depth;
    }
    return text_.substr(begin, at_ - begin);
  }

  // A number with a point or an exponent, as opposed to an integer.
  bool next_is_number() {
    skip();
    std::size_t end = at_;
    if (end < text_.size() && text_[end] == '-') ++end;
    if (text_.substr(end, 3) == "inf") return true;
    if (end >= text_.size() || !is_digit(text_[end])) return false;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    return end < text_.size() && (text_[end] == '.' || text_[end] == 'e');
  }
  double number() {
    skip();
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail(at_, "the number is out of range");
    if (error != std::errc{}) expected("a number");
    at_ += end - begin;
    return value;
  }

  // What stands between the brackets, each but the first behind a comma.
  template <typename Each>
  void list(char begin, char end, Each each) {
    expect(begin);
    if (accept(end)) return;
    do each();
    while (accept(','));
    expect(end);
  }
  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> result;
    list('[', ']', [&] { result.push_back(integer()); });
    return result;
  }

  // `@"file":line` at the end of the line, if it is there.
  SourceLocation location_or(SourceLocation otherwise) {
    if (!line_continues_with('@')) return otherwise;
    expect('@');
    const char* file = intern_claimed(quoted("a file's name in quotes"));
    expect(':');
    const SourceLocation named{file, integer<int>("a line number")};
    return takes_places_ ? named : otherwise;
  }

  // All up to the end of the next line that is the given one, and how many lines stand before.
  struct Passage {
    std::string_view text;
    int lines = 0;
  };
  Passage through_line(std::string_view line) {
    const int lines = next_location().line - 1;
    const std::size_t begin = at_;
    for (std::size_t end = text_.find('\n', begin); end != text_.npos;
         end = text_.find('\n', end + 1)) {
      at_ = end + 1;
      const std::size_t next = text_.find('\n', at_);
      if (text_.substr(at_, next == text_.npos ? next : next - at_) != line) continue;
      at_ += line.size();
      break;
    }
    return {text_.substr(begin, at_ - begin), lines};
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  std::string found() {
    if (at_ >= text_.size()) return "the end of the text";
    const std::string_view next = peek_word();
    if (!next.empty()) return fmt::format("\"{}\"", next.substr(0, 40));
    return std::isprint(static_cast<unsigned char>(text_[at_])) != 0
               ? fmt::format("'{}'", text_[at_])
               : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(text_[at_]));
  }

  int hexadecimal_byte() {
    int value = 0;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + 2) {
      fail(std::min(at_, text_.size()), "expected two hexadecimal digits");
    }
    at_ += 2;
    return value;
  }

  std::string_view text_;
  const char* file_;
  bool takes_places_;
  int lines_before_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;
  int lines_ = 0;
};

}  // namespace tilewright::ir
