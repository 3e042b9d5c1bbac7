#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/error.h"

namespace tilewright::library {

// An integer expression over numbered values, as a program of a stack machine: it is evaluated at
// every launch. Truth is any number but 0. What does not fit into 64 bits is the largest that does;
// a quotient by what is not positive is 0.
class RuleExpression {
 public:
  std::int64_t evaluate(const std::int64_t* values) const;
  // The same where some values are not known: nothing where the result may depend on them.
  std::optional<std::int64_t> evaluate_known(const std::optional<std::int64_t>* values) const;
  // The same in C, of values `v[number]`, by functions named tw_rule_add and so on.
  std::string c_text() const;

 private:
  friend class RuleExpressionParser;
  enum class Code : std::uint8_t {
    number,
    value,  // push
    negate,
    invert,  // of the uppermost
    add,
    subtract,
    multiply,
    divide,
    remainder,
    ceil_div,
    minimum,
    maximum,  // of the two uppermost
    less,
    less_equal,
    equal,
    not_equal,
    both,
    and_then,  // drops the uppermost, or keeps it and jumps over so many instructions
    or_else,
  };
  struct Instruction {
    Code code;
    std::int64_t operand = 0;  // the number, or the number of the value
  };
  static std::int64_t of_one(Code code, std::int64_t a);
  static std::int64_t of_two(Code code, std::int64_t a, std::int64_t b);
  std::vector<Instruction> program_;
};

// A line of rules, read from left to right.
class RuleLine {
 public:
  RuleLine(std::string text, SourceLocation where);

  const std::string& text() const { return text_; }
  SourceLocation where() const { return where_; }
  bool at_end();
  std::string_view peek_word();         // empty when what comes is none
  bool accept(std::string_view token);  // a word, or punctuation
  void expect(std::string_view token);
  void expect_end();
  std::string word(const std::string& what);
  // Letters, digits and _, in any order: "128x256".
  std::string name(const std::string& what);
  std::int64_t number();
  bool at_number();
  std::size_t position();
  // Raises, with the caret at `position`.
  [[noreturn]] void fail(std::size_t position, const std::string& message, const std::string& fix);

 private:
  void skip_spaces();
  std::string text_;
  SourceLocation where_;
  std::size_t at_ = 0;
};

// What a name means in an expression.
struct RuleName {
  int value = -1;                    // its number
  bool is_length = false;            // a size that a launch binds
  std::vector<std::string> choices;  // of a dtype or choice: the words that it is compared with
};

// or, and, not; < <= > >= == !=, also chained; + - * / %; ceil_div, min, max; names, numbers,
// parentheses. `lookup` gives null for a name that is not known; `known` lists the others.
RuleExpression parse_rule_expression(
    RuleLine& line, const std::function<const RuleName*(const std::string&)>& lookup,
    const std::string& known);

}  // namespace tilewright::library
