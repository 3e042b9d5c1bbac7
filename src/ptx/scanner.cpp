#include "ptx/scanner.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "support/diagnostic.h"
#include "support/intern.h"

namespace tilewright::ptx {
namespace {

bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}
bool continues_word(char c) {
  return starts_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

Scanner::Scanner(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)), interned_(intern(file_)) {
  advance();
}

void Scanner::fail(int line, const std::string& message, const std::string& fix) const {
  std::size_t begin = 0;
  for (int i = 1; i < line && begin != std::string_view::npos; ++i) {
    begin = text_.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  Diagnostic diagnostic({interned_, line}, message);
  if (begin < text_.size()) {
    const std::string_view rest = text_.substr(begin);
    diagnostic.line(std::string(rest.substr(0, std::min(rest.find('\n'), std::size_t{160}))), 0);
  }
  if (!fix.empty()) diagnostic.fix(fix);
  diagnostic.raise();
}

void Scanner::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) fail(line_, "a comment that does not end");
      for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
    } else {
      return;
    }
  }
}

// Decimal, 0x..., 0f... with the bits of a float, 0d... with those of a double.
void Scanner::scan_number() {
  std::size_t end = at_;
  int base = 10;
  std::size_t digits = at_;
  const char second = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
  if (text_[at_] == '0' && std::isalpha(static_cast<unsigned char>(second)) != 0 && second != 'U') {
    const char letter = static_cast<char>(std::tolower(second));
    if (letter != 'x' && letter != 'f' && letter != 'd' && letter != 'b') {
      fail(line_, fmt::format("a number that begins with 0{}", second));
    }
    base = letter == 'b' ? 2 : 16;
    digits = at_ + 2;
  } else if (text_[at_] == '0' && is_digit(second)) {
    base = 8;
    digits = at_ + 1;
  }
  end = digits;
  while (end < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[end])) != 0) ++end;
  const auto [stop, error] =
      std::from_chars(text_.data() + digits, text_.data() + end, next_.bits, base);
  if (error != std::errc() || stop != text_.data() + end) {
    fail(line_, fmt::format("{} is no number", text_.substr(at_, end - at_)));
  }
  if (end < text_.size() && text_[end] == 'U') ++end;
  next_.kind = Token::Kind::number;
  next_.text = text_.substr(at_, end - at_);
  at_ = end;
}

void Scanner::advance() {
  skip_space();
  next_ = {};
  next_.line = line_;
  if (at_ >= text_.size()) return;
  const char c = text_[at_];
  if (is_digit(c)) return scan_number();
  std::size_t end = at_ + 1;
  if (starts_word(c)) {
    // `shared::cta` is a part of a word, `again:` a word before a sign.
    while (end < text_.size() && (continues_word(text_[end]) || text_.substr(end, 2) == "::")) {
      end += text_[end] == ':' ? 2 : 1;
    }
    next_.kind = Token::Kind::word;
  } else if (c == '"') {
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') ++end;
    if (end == text_.size() || text_[end] != '"') fail(line_, "a text that does not end");
    ++end;
    next_.kind = Token::Kind::text;
  } else {
    next_.kind = Token::Kind::sign;
  }
  next_.text = text_.substr(at_, end - at_);
  at_ = end;
}

Token Scanner::take() {
  const Token token = next_;
  advance();
  return token;
}

bool Scanner::accept(std::string_view what) {
  if (!next_.is(what)) return false;
  advance();
  return true;
}

void Scanner::expect(std::string_view what) {
  if (accept(what)) return;
  fail(next_.line, fmt::format("expected {}, not {}", what,
                               next_.kind == Token::Kind::end ? std::string("the end")
                                                              : std::string(next_.text)));
}

std::string_view Scanner::word(std::string_view what) {
  if (next_.kind != Token::Kind::word) {
    fail(next_.line,
         fmt::format("expected {}, not {}", what, next_.text.empty() ? "the end" : next_.text));
  }
  return take().text;
}

std::int64_t Scanner::integer(std::string_view what) {
  const bool negative = accept("-");
  if (next_.kind != Token::Kind::number) {
    fail(next_.line,
         fmt::format("expected {}, not {}", what, next_.text.empty() ? "the end" : next_.text));
  }
  const auto value = static_cast<std::int64_t>(take().bits);
  return negative ? -value : value;
}

void Scanner::skip_line(int line) {
  while (next_.kind != Token::Kind::end && next_.line == line) advance();
}

}  // namespace tilewright::ptx
