#include "library/rule_expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "support/diagnostic.h"

namespace tilewright::library {
namespace {

constexpr std::size_t kDepth = 32;

bool is_word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::int64_t limit(bool negative) { return negative ? INT64_MIN : INT64_MAX; }

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? limit(a < 0) : result;
}

std::int64_t difference(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_sub_overflow(a, b, &result) ? limit(a < 0) : result;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? limit((a < 0) != (b < 0)) : result;
}

// Toward minus infinity.
std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b <= 0) return 0;
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace

std::int64_t RuleExpression::of_one(Code code, std::int64_t a) {
  return code == Code::negate ? difference(0, a) : static_cast<std::int64_t>(a == 0);
}

std::int64_t RuleExpression::of_two(Code code, std::int64_t a, std::int64_t b) {
  switch (code) {
    case Code::add:
      return sum(a, b);
    case Code::subtract:
      return difference(a, b);
    case Code::multiply:
      return product(a, b);
    case Code::divide:
      return quotient(a, b);
    case Code::remainder:
      return b <= 0 ? 0 : a - quotient(a, b) * b;
    case Code::ceil_div:
      return quotient(sum(a, b - 1), b);
    case Code::minimum:
      return std::min(a, b);
    case Code::maximum:
      return std::max(a, b);
    case Code::less:
      return a < b;
    case Code::less_equal:
      return a <= b;
    case Code::equal:
      return a == b;
    case Code::not_equal:
      return a != b;
    case Code::both:
      return a != 0 && b != 0;
    case Code::number:
    case Code::value:
    case Code::negate:
    case Code::invert:
    case Code::and_then:
    case Code::or_else:
      break;  // not of two
  }
  return a;
}

std::int64_t RuleExpression::evaluate(const std::int64_t* values) const {
  std::array<std::int64_t, kDepth> stack;
  std::size_t top = 0;  // where the next value goes
  const Instruction* const end = program_.data() + program_.size();
  for (const Instruction* next = program_.data(); next != end;) {
    const Instruction& instruction = *next++;
    if (instruction.code <= Code::value) {
      stack[top++] = instruction.code == Code::number
                         ? instruction.operand
                         : values[static_cast<std::size_t>(instruction.operand)];
      continue;
    }
    if (instruction.code <= Code::invert) {
      stack[top - 1] = of_one(instruction.code, stack[top - 1]);
      continue;
    }
    const std::int64_t b = stack[--top];
    if (instruction.code >= Code::and_then) {  // what decides stays, and its other side is skipped
      const bool decides = (b != 0) == (instruction.code == Code::or_else);
      if (decides) {
        ++top;
        next += instruction.operand;
      }
      continue;
    }
    stack[top - 1] = of_two(instruction.code, stack[top - 1], b);
  }
  return stack[0];
}

std::optional<std::int64_t> RuleExpression::evaluate_known(
    const std::optional<std::int64_t>* values) const {
  struct Side {  // right of an `and` or `or` whose left side is not known
    std::size_t end;
    bool is_and;
  };
  std::vector<std::optional<std::int64_t>> stack;
  std::vector<Side> sides;
  const auto close = [&](std::size_t at) {
    for (; !sides.empty() && sides.back().end == at; sides.pop_back()) {
      const bool is_false = sides.back().is_and && stack.back() == 0;
      if (!is_false) stack.back().reset();
    }
  };
  for (std::size_t at = 0; at < program_.size(); ++at) {
    close(at);
    const Instruction& instruction = program_[at];
    if (instruction.code == Code::number) {
      stack.emplace_back(instruction.operand);
      continue;
    }
    if (instruction.code == Code::value) {
      stack.push_back(values[static_cast<std::size_t>(instruction.operand)]);
      continue;
    }
    if (instruction.code <= Code::invert) {
      if (stack.back()) stack.back() = of_one(instruction.code, *stack.back());
      continue;
    }
    const std::optional<std::int64_t> b = stack.back();
    if (instruction.code >= Code::and_then) {
      const bool is_and = instruction.code == Code::and_then;
      const auto length = static_cast<std::size_t>(instruction.operand);
      if (b && (*b != 0) != is_and) {
        at += length;
        continue;
      }
      stack.pop_back();
      if (!b) sides.push_back({at + 1 + length, is_and});
      continue;
    }
    stack.pop_back();
    std::optional<std::int64_t>& a = stack.back();
    a = a && b ? std::optional(of_two(instruction.code, *a, *b)) : std::nullopt;
  }
  close(program_.size());
  return stack.back();
}

namespace {

std::string c_number(std::int64_t number) {
  if (number == INT64_MIN) return "INT64_MIN";
  return number > INT32_MAX || number < INT32_MIN ? fmt::format("INT64_C({})", number)
                                                  : std::to_string(number);
}

}  // namespace

std::string RuleExpression::c_text() const {
  struct Side {  // of `and` and `or`, whose right side ends before an instruction
    std::size_t end;
    const char* function;
    std::string left;
  };
  std::vector<std::string> stack;
  std::vector<Side> sides;
  const auto pop = [&] {
    std::string top = std::move(stack.back());
    stack.pop_back();
    return top;
  };
  const auto close = [&](std::size_t at) {
    while (!sides.empty() && sides.back().end == at) {
      const std::string right = pop();
      stack.push_back(fmt::format("{}({}, {})", sides.back().function, sides.back().left, right));
      sides.pop_back();
    }
  };
  for (std::size_t at = 0; at < program_.size(); ++at) {
    close(at);
    const Instruction& instruction = program_[at];
    const auto call = [&](const char* function) {
      const std::string b = pop(), a = pop();
      stack.push_back(fmt::format("{}({}, {})", function, a, b));
    };
    const auto infix = [&](const char* sign) {
      const std::string b = pop(), a = pop();
      stack.push_back(fmt::format("({} {} {})", a, sign, b));
    };
    switch (instruction.code) {
      case Code::number:
        stack.push_back(c_number(instruction.operand));
        break;
      case Code::value:
        stack.push_back(fmt::format("v[{}]", instruction.operand));
        break;
      case Code::negate:
        stack.push_back(fmt::format("tw_rule_sub(0, {})", pop()));
        break;
      case Code::invert:
        stack.push_back(fmt::format("({} == 0)", pop()));
        break;
      case Code::add:
        call("tw_rule_add");
        break;
      case Code::subtract:
        call("tw_rule_sub");
        break;
      case Code::multiply:
        call("tw_rule_mul");
        break;
      case Code::divide:
        call("tw_rule_div");
        break;
      case Code::remainder:
        call("tw_rule_mod");
        break;
      case Code::ceil_div:
        call("tw_rule_ceil_div");
        break;
      case Code::minimum:
        call("tw_min");
        break;
      case Code::maximum:
        call("tw_max");
        break;
      case Code::less:
        infix("<");
        break;
      case Code::less_equal:
        infix("<=");
        break;
      case Code::equal:
        infix("==");
        break;
      case Code::not_equal:
        infix("!=");
        break;
      case Code::both:
        infix("&&");
        break;
      case Code::and_then:
      case Code::or_else:
        sides.push_back({at + 1 + static_cast<std::size_t>(instruction.operand),
                         instruction.code == Code::and_then ? "tw_rule_and" : "tw_rule_or", pop()});
        break;
    }
  }
  close(program_.size());
  return stack.back();
}

RuleLine::RuleLine(std::string text, SourceLocation where)
    : text_(std::move(text)), where_(where) {}

void RuleLine::skip_spaces() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
}

bool RuleLine::at_end() {
  skip_spaces();
  return at_ == text_.size();
}

std::size_t RuleLine::position() {
  skip_spaces();
  return at_;
}

std::string_view RuleLine::peek_word() {
  std::size_t end = position();
  if (end == text_.size() || !is_word_start(text_[end])) return {};
  while (end < text_.size() && (is_word_start(text_[end]) || is_digit(text_[end]))) ++end;
  return std::string_view(text_).substr(at_, end - at_);
}

bool RuleLine::accept(std::string_view token) {
  const std::string_view word = peek_word();
  const bool found = is_word_start(token[0])
                         ? word == token
                         : std::string_view(text_).substr(at_, token.size()) == token;
  if (found) at_ += token.size();
  return found;
}

void RuleLine::expect(std::string_view token) {
  if (accept(token)) return;
  fail(position(), fmt::format("expected '{}'", token), fmt::format("write '{}' here", token));
}

void RuleLine::expect_end() {
  if (!at_end()) fail(at_, "expected the end of the line", "remove this");
}

std::string RuleLine::word(const std::string& what) {
  const std::string word(peek_word());
  if (word.empty()) fail(position(), "expected " + what, "write " + what + " here");
  at_ += word.size();
  return word;
}

std::string RuleLine::name(const std::string& what) {
  const std::size_t start = position();
  while (at_ < text_.size() && (is_word_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
  if (at_ == start) fail(start, "expected " + what, "write " + what + " here");
  return text_.substr(start, at_ - start);
}

bool RuleLine::at_number() {
  const std::size_t at = position();
  return at < text_.size() && is_digit(text_[at]);
}

std::int64_t RuleLine::number() {
  const std::size_t start = position();
  std::int64_t value = 0;
  const auto [end, code] =
      std::from_chars(text_.data() + start, text_.data() + text_.size(), value);
  if (code != std::errc()) fail(start, "expected a number of at most 64 bits", "write one here");
  at_ = static_cast<std::size_t>(end - text_.data());
  return value;
}

void RuleLine::fail(std::size_t position, const std::string& message, const std::string& fix) {
  Diagnostic(where_, message).line(text_, position).fix(fix).raise();
}

class RuleExpressionParser {
 public:
  using Lookup = std::function<const RuleName*(const std::string&)>;
  RuleExpressionParser(RuleLine& line, const Lookup& lookup, const std::string& known)
      : line_(line), lookup_(lookup), known_(known) {}

  RuleExpression run() {
    disjunction();
    check_depth();
    return std::move(expression_);
  }

 private:
  using Code = RuleExpression::Code;
  using Instruction = RuleExpression::Instruction;

  std::vector<Instruction>& program() { return expression_.program_; }
  void push(Code code, std::int64_t operand) { program().push_back({code, operand}); }
  void combine(Code code) { program().push_back({code, 0}); }

  [[noreturn]] void fail_depth() {
    line_.fail(line_.position(), "the expression is nested too deep", "name parts of it by let");
  }

  void check_depth() {
    std::size_t depth = 0;
    for (const Instruction& instruction : program()) {
      if (instruction.code <= Code::value && ++depth > kDepth) fail_depth();
      if (instruction.code > Code::invert) --depth;
    }
  }

  template <typename Action>
  void nested(const Action& action) {
    if (++nesting_ > kDepth) fail_depth();
    action();
    --nesting_;
  }

  template <typename Action>
  void guarded(Code code, const Action& other_side) {
    const std::size_t guard = program().size();
    combine(code);
    other_side();
    program()[guard].operand = static_cast<std::int64_t>(program().size() - guard - 1);
  }

  void disjunction() {
    conjunction();
    while (line_.accept("or")) {
      guarded(Code::or_else, [this] { conjunction(); });
    }
  }

  void conjunction() {
    inversion();
    while (line_.accept("and")) {
      guarded(Code::and_then, [this] { inversion(); });
    }
  }

  void inversion() {
    if (!line_.accept("not")) return comparison();
    nested([this] { inversion(); });
    combine(Code::invert);
  }

  // Of the operators that begin alike, the longer one stands first.
  bool accept_comparison(std::string& found) {
    for (const char* text : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!line_.accept(text)) continue;
      found = text;
      return true;
    }
    return false;
  }

  void comparison() {
    if (choice_comparison()) return;
    const std::size_t position = line_.position();
    std::size_t start = program().size();
    arithmetic();
    std::vector<Instruction> last;
    std::string symbol;
    for (bool chained = false; accept_comparison(symbol); chained = true) {
      if (chained) {  // a < b < c is a < b and b < c
        start = program().size();
        program().insert(program().end(), last.begin(), last.end());
      }
      const auto middle = static_cast<std::ptrdiff_t>(program().size());
      arithmetic();
      last.assign(program().begin() + middle, program().end());
      check_is_no_size(symbol, start, static_cast<std::size_t>(middle), position);
      compare(symbol);
      if (chained) combine(Code::both);
    }
  }

  void compare(const std::string& symbol) {
    if (symbol == "<=" || symbol == "<" || symbol == "==" || symbol == "!=") {
      combine(symbol == "<=" ? Code::less_equal
                             : (symbol == "<" ? Code::less
                                              : (symbol == "==" ? Code::equal : Code::not_equal)));
      return;
    }
    // a > b is not a <= b.
    combine(symbol == ">" ? Code::less_equal : Code::less);
    combine(Code::invert);
  }

  // dtype == bf16: the words mean something beside their option only.
  bool choice_comparison() {
    const RuleName* name = lookup_(std::string(line_.peek_word()));
    if (name == nullptr || name->choices.empty()) return false;
    const std::string option = line_.word("an option");
    const bool equal = line_.accept("==");
    if (!equal) line_.expect("!=");
    const std::size_t position = line_.position();
    const std::string word =
        line_.word("one of " + fmt::format("{}", fmt::join(name->choices, ", ")));
    const auto found = std::find(name->choices.begin(), name->choices.end(), word);
    if (found == name->choices.end()) {
      line_.fail(position, fmt::format("{} is never '{}'", option, word),
                 fmt::format("write one of: {}", fmt::join(name->choices, ", ")));
    }
    push(Code::value, name->value);
    push(Code::number, found - name->choices.begin());
    combine(equal ? Code::equal : Code::not_equal);
    return true;
  }

  // Rules hold for ranges: one that names a single size would be of no use for any other.
  void check_is_no_size(const std::string& symbol, std::size_t start, std::size_t middle,
                        std::size_t position) {
    if (symbol != "==" && symbol != "!=") return;
    if (middle - start != 1 || program().size() - middle != 1) return;
    const Instruction& a = program()[start];
    const Instruction& b = program()[middle];
    const bool first = is_length(a) && b.code == Code::number;
    const bool second = is_length(b) && a.code == Code::number;
    const std::int64_t number = first ? b.operand : a.operand;
    if ((!first && !second) || number <= 1) return;
    line_.fail(
        position, fmt::format("a length is compared with the single size {}", number),
        fmt::format("compare with a range (<= {}), or with a fact (% {} == 0)", number, number));
  }

  bool is_length(const Instruction& instruction) const {
    return instruction.code == Code::value &&
           std::count(lengths_.begin(), lengths_.end(), instruction.operand) != 0;
  }

  void arithmetic() {
    term();
    for (;;) {
      if (line_.accept("+")) {
        term();
        combine(Code::add);
      } else if (line_.accept("-")) {
        term();
        combine(Code::subtract);
      } else {
        return;
      }
    }
  }

  void term() {
    factor();
    for (;;) {
      const Code code = line_.accept("*")   ? Code::multiply
                        : line_.accept("/") ? Code::divide
                        : line_.accept("%") ? Code::remainder
                                            : Code::number;
      if (code == Code::number) return;
      factor();
      combine(code);
    }
  }

  void factor() {
    if (line_.at_number()) return push(Code::number, line_.number());
    if (line_.accept("-")) {
      nested([this] { factor(); });
      combine(Code::negate);
      return;
    }
    if (line_.accept("(")) {
      nested([this] { disjunction(); });
      return line_.expect(")");
    }
    const std::size_t position = line_.position();
    const std::string word = line_.word("a name or a number");
    if (word == "ceil_div") return call(Code::ceil_div);
    if (word == "min") return call(Code::minimum);
    if (word == "max") return call(Code::maximum);
    const RuleName* name = lookup_(word);
    if (name == nullptr) {
      line_.fail(position, fmt::format("there is no '{}'", word),
                 "name one of: " + known_ + ", or what a let before it defines");
    }
    if (!name->choices.empty()) {
      line_.fail(position, fmt::format("{} is no number", word),
                 fmt::format("compare it: {} == {}", word, name->choices.front()));
    }
    if (name->is_length) lengths_.push_back(name->value);
    push(Code::value, name->value);
  }

  void call(Code code) {
    line_.expect("(");
    nested([this] { arithmetic(); });
    line_.expect(",");
    nested([this] { arithmetic(); });
    line_.expect(")");
    combine(code);
  }

  RuleLine& line_;
  const Lookup& lookup_;
  const std::string& known_;
  RuleExpression expression_;
  std::vector<std::int64_t> lengths_;  // the numbers of those that came
  std::size_t nesting_ = 0;
};

RuleExpression parse_rule_expression(RuleLine& line, const RuleExpressionParser::Lookup& lookup,
                                     const std::string& known) {
  return RuleExpressionParser(line, lookup, known).run();
}

}  // namespace tilewright::library
