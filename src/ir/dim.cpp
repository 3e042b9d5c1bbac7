#include "tilewright/dim.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "ir/dim_values.h"
#include "support/characters.h"
#include "support/diagnostic.h"

namespace tilewright {

using Lookup = FunctionRef<std::int64_t(const std::string&)>;

struct Dim::Node {
  // Values of parts that several others share, each in the place that its address has: a part that
  // takes the place of another one is computed again.
  struct Known {
    const Node* node = nullptr;
    std::int64_t value = 0;
  };
  using Memory = std::array<Known, 64>;
  static std::int64_t evaluate(const std::shared_ptr<const Node>& node, Lookup lookup,
                               Memory& memory);

  Kind kind = Kind::constant;
  std::int64_t value = 0;
  std::string name;
  DimFacts facts;  // of the whole expression
  std::int64_t operations = 0;
  std::shared_ptr<const Node> lhs, rhs;
};

namespace {

// Printing, checking and evaluating go through an expression as it is written, so that one that
// doubles a dimension again and again would take them forever.
constexpr std::int64_t kMaximumOperations = 10000;

[[noreturn]] void overflow(std::int64_t a, std::int64_t b) {
  Diagnostic({}, "a dimension overflows 64 bits: operands " + std::to_string(a) + " and " +
                     std::to_string(b))
      .raise();
}

constexpr const char* kZeroDivisorFix = "where the divisor may be 0 divide by max(divisor, 1)";

[[noreturn]] void divided_by_zero(const std::string& dividend, SourceLocation where = {},
                                  const char* token = "") {
  Diagnostic(where, "a dimension is divided by zero: " + dividend + " by 0")
      .token(token)
      .fix(kZeroDivisorFix)
      .raise();
}

// Of numbers whose quotient 64 bits hold.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

std::int64_t ceiling_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = floor_div(a, b);
  return a % b == 0 ? q : q + 1;
}

enum class Failure : std::uint8_t { overflow, zero_divisor };

// Why there is no result.
std::optional<Failure> failure_of(Dim::Kind kind, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (kind) {
    case Dim::Kind::add:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Dim::Kind::sub:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Dim::Kind::mul:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Dim::Kind::floordiv:
    case Dim::Kind::ceildiv:
    case Dim::Kind::mod:
      if (b == 0) return Failure::zero_divisor;
      overflows = kind != Dim::Kind::mod && a == INT64_MIN && b == -1;
      break;
    case Dim::Kind::min:
    case Dim::Kind::max:
    case Dim::Kind::constant:  // these have no operands
    case Dim::Kind::symbol:
      break;
  }
  return overflows ? std::optional(Failure::overflow) : std::nullopt;
}

// Of operands without a failure.
std::int64_t apply(Dim::Kind kind, std::int64_t a, std::int64_t b) {
  switch (kind) {
    case Dim::Kind::add:
      return a + b;
    case Dim::Kind::sub:
      return a - b;
    case Dim::Kind::mul:
      return a * b;
    case Dim::Kind::min:
      return std::min(a, b);
    case Dim::Kind::max:
      return std::max(a, b);
    case Dim::Kind::floordiv:
      return floor_div(a, b);
    case Dim::Kind::ceildiv:
      return ceiling_div(a, b);
    case Dim::Kind::mod:
      return b == -1 ? 0 : a - floor_div(a, b) * b;
    case Dim::Kind::constant:
    case Dim::Kind::symbol:
      break;
  }
  return 0;
}

std::int64_t apply_constants(Dim::Kind kind, std::int64_t a, std::int64_t b) {
  const std::optional<Failure> failure = failure_of(kind, a, b);
  if (failure == Failure::overflow) overflow(a, b);
  if (failure == Failure::zero_divisor) divided_by_zero(std::to_string(a));
  return apply(kind, a, b);
}

std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
  return r;
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return a < 0 ? INT64_MIN : INT64_MAX;
  return r;
}

std::int64_t saturating_negative(std::int64_t a) { return a == INT64_MIN ? INT64_MAX : -a; }

// Infix operators; the other kinds print as functions.
const char* infix(Dim::Kind kind) {
  switch (kind) {
    case Dim::Kind::add:
      return " + ";
    case Dim::Kind::sub:
      return " - ";
    case Dim::Kind::mul:
      return " * ";
    case Dim::Kind::floordiv:
      return " // ";
    case Dim::Kind::mod:
      return " % ";
    case Dim::Kind::constant:
    case Dim::Kind::symbol:
    case Dim::Kind::ceildiv:
    case Dim::Kind::min:
    case Dim::Kind::max:
      break;
  }
  return nullptr;
}

// By interval and divisibility arithmetic.
DimFacts facts_of(Dim::Kind kind, const Dim& lhs, const Dim& rhs) {
  const DimFacts a = lhs.range(), b = rhs.range();
  const std::int64_t common = std::gcd(a.multiple, b.multiple);
  switch (kind) {
    case Dim::Kind::add:
      return {common, saturating_add(a.minimum, b.minimum), saturating_add(a.maximum, b.maximum)};
    case Dim::Kind::sub:
      return {common, saturating_add(a.minimum, saturating_negative(b.maximum)),
              saturating_add(a.maximum, saturating_negative(b.minimum))};
    case Dim::Kind::mul: {
      const std::int64_t corners[] = {
          saturating_mul(a.minimum, b.minimum), saturating_mul(a.minimum, b.maximum),
          saturating_mul(a.maximum, b.minimum), saturating_mul(a.maximum, b.maximum)};
      std::int64_t multiple = 0;
      if (__builtin_mul_overflow(a.multiple, b.multiple, &multiple)) multiple = a.multiple;
      return {multiple, *std::min_element(corners, corners + 4),
              *std::max_element(corners, corners + 4)};
    }
    case Dim::Kind::min:
      return {common, std::min(a.minimum, b.minimum), std::min(a.maximum, b.maximum)};
    case Dim::Kind::max:
      return {common, std::max(a.minimum, b.minimum), std::max(a.maximum, b.maximum)};
    case Dim::Kind::constant:
    case Dim::Kind::symbol:
    case Dim::Kind::floordiv:
    case Dim::Kind::ceildiv:
    case Dim::Kind::mod:
      break;
  }
  // Division and remainder: bounds only for a known positive divisor.
  if (b.minimum <= 0) return {1, INT64_MIN, INT64_MAX};
  if (kind == Dim::Kind::mod) return {1, 0, b.maximum - 1};
  const bool up = kind == Dim::Kind::ceildiv;
  const auto divide = [up](std::int64_t x, std::int64_t y) {
    return up ? ceiling_div(x, y) : floor_div(x, y);
  };
  const std::int64_t low = divide(a.minimum, a.minimum < 0 ? b.minimum : b.maximum);
  const std::int64_t high = divide(a.maximum, a.maximum < 0 ? b.maximum : b.minimum);
  const bool exact = rhs.is_constant() && a.multiple % rhs.constant() == 0;
  return {exact ? std::max<std::int64_t>(1, a.multiple / rhs.constant()) : 1, low, high};
}

}  // namespace

Dim::Dim(std::int64_t constant) {
  auto node = std::make_shared<Node>();
  node->value = constant;
  const std::int64_t multiple = constant == 0           ? INT32_MAX
                                : constant == INT64_MIN ? 1
                                                        : std::abs(constant);
  node->facts = {multiple, constant, constant};
  node_ = std::move(node);
}

Dim Dim::symbol(std::string name, DimFacts facts) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::symbol;
  node->name = std::move(name);
  node->facts = facts;
  return Dim(std::move(node));
}

Dim::Kind Dim::kind() const { return node_->kind; }
std::int64_t Dim::constant() const { return node_->value; }
const std::string& Dim::name() const { return node_->name; }
const DimFacts& Dim::facts() const { return node_->facts; }
Dim Dim::lhs() const { return Dim(node_->lhs); }
Dim Dim::rhs() const { return Dim(node_->rhs); }

bool operator==(const Dim& a, const Dim& b) {
  if (a.node_ == b.node_) return true;
  if (a.kind() != b.kind()) return false;
  if (a.kind() == Dim::Kind::constant) return a.constant() == b.constant();
  if (a.kind() == Dim::Kind::symbol) return a.name() == b.name();
  return a.lhs() == b.lhs() && a.rhs() == b.rhs();
}

Dim Dim::binary(Kind kind, const Dim& a, const Dim& b) {
  const bool right = b.is_constant();
  if (a.is_constant() && right) return apply_constants(kind, a.constant(), b.constant());
  switch (kind) {
    case Kind::add:
      if (right && b.constant() == 0) return a;
      if (a.is_constant()) return binary(kind, b, a);
      break;
    case Kind::sub:
      if (right && b.constant() == 0) return a;
      if (a == b) return 0;
      break;
    case Kind::mul:
      if (a.is_constant()) return binary(kind, b, a);
      if (right && b.constant() == 1) return a;
      if (right && b.constant() == 0) return 0;
      break;
    case Kind::floordiv:
    case Kind::ceildiv:
      if (right && b.constant() == 1) return a;
      if (right && b.constant() == 0) divided_by_zero(a.to_string());
      if (kind == Kind::ceildiv && right && a.range().multiple % b.constant() == 0) {
        return binary(Kind::floordiv, a, b);
      }
      if (right && a.kind() == Kind::mul && a.rhs().is_constant() && b.constant() > 0 &&
          a.rhs().constant() % b.constant() == 0) {
        return binary(Kind::mul, a.lhs(), a.rhs().constant() / b.constant());
      }
      break;
    case Kind::mod:
      if (right && b.constant() == 0) divided_by_zero(a.to_string());
      if (right && a.range().multiple % b.constant() == 0) return 0;
      break;
    case Kind::min:
      if (a == b || a.range().maximum <= b.range().minimum) return a;
      if (b.range().maximum <= a.range().minimum) return b;
      break;
    case Kind::max:
      if (a == b || a.range().minimum >= b.range().maximum) return a;
      if (b.range().minimum >= a.range().maximum) return b;
      break;
    case Kind::constant:
    case Kind::symbol:
      break;
  }
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->operations = a.node_->operations + b.node_->operations + 1;
  if (node->operations > kMaximumOperations) {
    Diagnostic({}, "a dimension is computed by more than " + std::to_string(kMaximumOperations) +
                       " operations")
        .fix("compute it before the launch, and give the kernel a dim of that size")
        .raise();
  }
  node->facts = facts_of(kind, a, b);
  node->lhs = a.node_;
  node->rhs = b.node_;
  return Dim(std::move(node));
}

DimFacts Dim::range() const { return node_->facts; }

namespace {

// Where an expression has no value.
[[noreturn]] void fail(const Dim& dim, Failure failure, Lookup lookup) {
  const char* const what =
      failure == Failure::overflow ? " overflows 64 bits: " : " divides by zero: ";
  Diagnostic diagnostic({}, dim.to_string() + what + ir::values_text(dim, lookup));
  if (failure == Failure::zero_divisor) diagnostic.fix(kZeroDivisorFix);
  diagnostic.raise();
}

}  // namespace

std::int64_t Dim::Node::evaluate(const std::shared_ptr<const Node>& node, Lookup lookup,
                                 Memory& memory) {
  if (node->kind == Kind::constant) return node->value;
  const bool is_shared = node.use_count() > 1;
  Known& known =
      memory[reinterpret_cast<std::uintptr_t>(node.get()) / sizeof(Node) % memory.size()];
  if (is_shared && known.node == node.get()) return known.value;
  std::int64_t value = 0;
  if (node->kind == Kind::symbol) {
    value = lookup(node->name);
  } else {
    const std::int64_t a = evaluate(node->lhs, lookup, memory);
    const std::int64_t b = evaluate(node->rhs, lookup, memory);
    if (const auto failure = failure_of(node->kind, a, b)) fail(Dim(node), *failure, lookup);
    value = apply(node->kind, a, b);
  }
  if (is_shared) known = {node.get(), value};
  return value;
}

std::int64_t Dim::evaluate(Lookup lookup) const {
  if (kind() == Kind::constant) return constant();
  if (kind() == Kind::symbol) return lookup(name());
  Node::Memory memory{};
  return Node::evaluate(node_, lookup, memory);
}

std::string Dim::to_string() const {
  if (kind() == Kind::constant) return std::to_string(constant());
  if (kind() == Kind::symbol) return name();
  if (const char* op = infix(kind())) {
    return "(" + lhs().to_string() + op + rhs().to_string() + ")";
  }
  const char* function = kind() == Kind::ceildiv ? "ceil_div" : kind() == Kind::min ? "min" : "max";
  return std::string(function) + "(" + lhs().to_string() + ", " + rhs().to_string() + ")";
}

namespace {

// Far more than a kernel writes, few enough that hostile text cannot exhaust the stack.
constexpr int kMaximumNesting = 500;

bool is_alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Reads what Dim::to_string writes, and the same without the parentheses that precedence makes
// needless.
class DimParser {
 public:
  DimParser(std::string_view text, const std::vector<Dim>& known) : text_(text), known_(known) {}

  Dim parse_all() {
    const Dim result = expression();
    skip();
    if (at_ != text_.size()) fail("unexpected text");
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const {
    Diagnostic({},
               "dimension \"" + shown() + "\": " + what + " at column " + std::to_string(at_ + 1))
        .raise();
  }
  // What stands around the place, where the whole is too long to read.
  std::string shown() const {
    constexpr std::size_t kLongest = 120, kBefore = 40;
    if (text_.size() <= kLongest) return std::string(text_);
    const std::size_t begin = at_ > kBefore ? at_ - kBefore : 0;
    const std::string_view part = text_.substr(begin, kLongest);
    return (begin > 0 ? "..." : "") + std::string(part) +
           (begin + part.size() < text_.size() ? "..." : "");
  }
  void expect(std::string_view word) {
    if (!accept(word)) fail("expected \"" + std::string(word) + "\"");
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("an integer of more than 64 bits");
    if (error != std::errc{}) fail("expected a number");
    at_ = end - text_.data();
    return value;
  }

  Dim expression() {
    if (++depth_ > kMaximumNesting) fail("too deep an expression");
    Dim result = product();
    for (;;) {
      const bool adds = accept("+");
      if (!adds && !accept("-")) break;
      result = Dim::binary(adds ? Dim::Kind::add : Dim::Kind::sub, result, product());
    }
    --depth_;
    return result;
  }

  // The operators bind as in C++, and a division is one of integers, written / as there or //.
  // With `dividend`, both are the operands of the last operation, where that is a division.
  Dim product(std::optional<Dim>* dividend = nullptr, std::optional<Dim>* divisor = nullptr) {
    Dim result = operand();
    for (;;) {
      const std::optional<Dim::Kind> kind = accept("*")    ? std::optional(Dim::Kind::mul)
                                            : accept("//") ? std::optional(Dim::Kind::floordiv)
                                            : accept("/")  ? std::optional(Dim::Kind::floordiv)
                                            : accept("%")  ? std::optional(Dim::Kind::mod)
                                                           : std::nullopt;
      if (!kind) return result;
      const Dim right = operand();
      if (dividend) {
        const bool divides = kind == Dim::Kind::floordiv;
        *dividend = divides ? std::optional(result) : std::nullopt;
        *divisor = divides ? std::optional(right) : std::nullopt;
      }
      result = Dim::binary(*kind, result, right);
    }
  }

  // "ceil(a * b / c)" behind its parenthesis.
  Dim rounded_up() {
    std::optional<Dim> dividend, divisor;
    product(&dividend, &divisor);
    if (!divisor) fail("expected a division in ceil(), as in ceil(h / 16),");
    expect(")");
    return Dim::binary(Dim::Kind::ceildiv, *dividend, *divisor);
  }

  Dim operand() {
    skip();
    if (accept("(")) {
      const Dim inner = expression();
      if (!accept(")")) fail("expected an operator or \")\"");
      return inner;
    }
    const std::size_t begin = at_;
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '-')) return number();
    while (at_ < text_.size() && (is_alphanumeric(text_[at_]) || text_[at_] == '_')) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) fail("expected a dimension");
    if (word == "ceil" && accept("(")) return rounded_up();
    if (accept("(")) {
      const Dim a = expression();
      expect(",");
      const Dim b = expression();
      expect(")");
      if (word == "ceil_div") return Dim::binary(Dim::Kind::ceildiv, a, b);
      if (word == "min") return Dim::binary(Dim::Kind::min, a, b);
      if (word == "max") return Dim::binary(Dim::Kind::max, a, b);
      fail("unknown function \"" + std::string(word) + "\"");
    }
    for (const Dim& dim : known_) {
      if (dim.name() == word) return dim;
    }
    fail("unknown dimension \"" + std::string(word) + "\"");
  }

  std::string_view text_;
  const std::vector<Dim>& known_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dim Dim::parse(std::string_view text, const std::vector<Dim>& known) {
  return DimParser(text, known).parse_all();
}

Dim operator+(const Dim& a, const Dim& b) { return Dim::binary(Dim::Kind::add, a, b); }
Dim operator-(const Dim& a, const Dim& b) { return Dim::binary(Dim::Kind::sub, a, b); }
Dim operator*(const Dim& a, const Dim& b) { return Dim::binary(Dim::Kind::mul, a, b); }
Dim operator/(const Dim& a, const DimDivisor& b) {
  if (b.dim == 0) divided_by_zero(a.to_string(), b.where, "/");
  return Dim::binary(Dim::Kind::floordiv, a, b.dim);
}
Dim operator/(std::int64_t a, const DimDivisor& b) { return Dim(a) / b; }
Dim operator%(const Dim& a, const DimDivisor& b) {
  if (b.dim == 0) divided_by_zero(a.to_string(), b.where, "%");
  return Dim::binary(Dim::Kind::mod, a, b.dim);
}
Dim operator%(std::int64_t a, const DimDivisor& b) { return Dim(a) % b; }
Dim ceil_div(const Dim& a, const Dim& b, SourceLocation where) {
  if (b == 0) divided_by_zero(a.to_string(), where, "ceil_div");
  return Dim::binary(Dim::Kind::ceildiv, a, b);
}
Dim min(const Dim& a, const Dim& b) { return Dim::binary(Dim::Kind::min, a, b); }
Dim max(const Dim& a, const Dim& b) { return Dim::binary(Dim::Kind::max, a, b); }

}  // namespace tilewright
