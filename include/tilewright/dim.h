#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/error.h"
#include "tilewright/function_ref.h"

namespace tilewright {

class Block;
class Index;

// What is known of a symbolic dimension, in elements, before a launch binds it. A launch for which
// it does not hold raises Error(usage). The facts are part of the compiled variant's key.
struct DimFacts {
  std::int64_t multiple = 1;
  std::int64_t minimum = 0;
  std::int64_t maximum = INT32_MAX;
};

inline DimFacts multiple_of(std::int64_t n) { return {n, 0, INT32_MAX}; }
inline DimFacts at_least(std::int64_t n) { return {1, n, INT32_MAX}; }
inline DimFacts at_most(std::int64_t n) { return {1, 0, n}; }

// An integer expression over constants and the symbolic dimensions of a kernel. It is evaluated on
// the host when a launch binds the symbols; arithmetic simplifies as it is written.
class Dim {
 public:
  enum class Kind : std::uint8_t {
    constant,
    symbol,
    add,
    sub,
    mul,
    floordiv,
    ceildiv,
    mod,
    min,
    max
  };

  Dim(std::int64_t constant = 0);  // implicit: a number is a dimension
  static Dim symbol(std::string name, DimFacts facts = {});
  static Dim binary(Kind kind, const Dim& a, const Dim& b);

  Kind kind() const;
  bool is_constant() const { return kind() == Kind::constant; }
  std::int64_t constant() const;    // of a constant
  const std::string& name() const;  // of a symbol
  const DimFacts& facts() const;    // of a symbol
  Dim lhs() const;                  // of a binary expression
  Dim rhs() const;

  // Facts of the whole expression, by interval and divisibility arithmetic.
  DimFacts range() const;
  // Empty when `lookup` does not know a symbol. Overflow of 64 bits and division by zero raise.
  std::int64_t evaluate(FunctionRef<std::int64_t(const std::string&)> lookup) const;
  std::string to_string() const;
  // Symbols that `known` does not list are usage errors.
  static Dim parse(std::string_view text, const std::vector<Dim>& known);

  // The rows [index * size, index * size + size) of this dimension, of which those below the
  // dimension exist.
  Block block(const Index& index, int size,
              SourceLocation where = {__builtin_FILE(), __builtin_LINE()}) const;

  friend bool operator==(const Dim& a, const Dim& b);

 private:
  struct Node;
  explicit Dim(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

// What a dimension is divided by, and on which line: 0 is an error there.
struct DimDivisor {
  DimDivisor(const Dim& dim, SourceLocation where = here()) : dim(dim), where(where) {}
  DimDivisor(std::int64_t value, SourceLocation where = here()) : dim(value), where(where) {}
  Dim dim;
  SourceLocation where;
};

// `/` is floor division, as `//` of Python; `%` has the sign of the divisor.
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim operator/(const Dim& a, const DimDivisor& b);
Dim operator/(std::int64_t a, const DimDivisor& b);
Dim operator%(const Dim& a, const DimDivisor& b);
Dim operator%(std::int64_t a, const DimDivisor& b);
Dim ceil_div(const Dim& a, const Dim& b, SourceLocation where = here());
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);

}  // namespace tilewright
