#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::ptx {

struct Token {
  enum class Kind : std::uint8_t { word, number, text, sign, end };
  Kind kind = Kind::end;
  std::string_view text;
  int line = 0;
  std::uint64_t bits = 0;  // of a number
  bool is(std::string_view what) const { return text == what && kind != Kind::text; }
};

// Words, numbers, quoted text and signs of PTX, without its comments.
class Scanner {
 public:
  Scanner(std::string_view text, std::string file);

  const Token& peek() const { return next_; }
  Token take();
  bool accept(std::string_view what);
  void expect(std::string_view what);
  std::string_view word(std::string_view what);  // `what` it stands for, in errors
  std::int64_t integer(std::string_view what);
  // Leaves out what stands in the token's line.
  void skip_line(int line);
  [[noreturn]] void fail(int line, const std::string& message, const std::string& fix = {}) const;

 private:
  void advance();
  void skip_space();
  void scan_number();

  std::string_view text_;
  std::string file_;
  const char* interned_ = nullptr;  // the file's name, which outlives the process
  std::size_t at_ = 0;
  int line_ = 1;
  Token next_;
};

}  // namespace tilewright::ptx
