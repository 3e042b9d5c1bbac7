#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "support/arguments.h"

namespace tilewright::ir {

// A tensor that a launch passes for a parameter. Strides count elements; none means row-major.
struct TensorShape {
  std::string name;  // for messages
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

// The values of a kernel's dimension symbols at one launch.
class Binding {
 public:
  Binding() = default;
  // `where`: the line that errors name.
  explicit Binding(std::map<std::string, std::int64_t> values, SourceLocation where = {})
      : values_(std::move(values)), where_(where) {}

  // Raise usage errors: when a symbol has no value, where an expression overflows 64 bits or
  // divides by zero.
  std::int64_t value(const std::string& symbol) const;
  std::int64_t evaluate(const Dim& dim) const;
  const std::map<std::string, std::int64_t>& values() const { return values_; }

 private:
  std::map<std::string, std::int64_t> values_;
  SourceLocation where_;
};

// Solves the symbols from the tensors, one for each tensor parameter in order: an axis that is a
// symbol binds it, an axis that is an expression is checked. `given` holds the symbols that no axis
// names alone, and may repeat the others; there is one rank unless it says otherwise. Raises a
// usage error for whatever disagrees: ranks, sizes, dtypes, facts, strides.
Binding bind(const Kernel& kernel, const std::vector<TensorShape>& shapes,
             std::int64_t multiprocessors, const std::map<std::string, std::int64_t>& given = {});

// The same for what holds whatever the axes of this size are: ranks, dtypes, and sizes that are
// known on both sides.
inline constexpr std::int64_t kUnknownSize = -1;
void check_known(const Kernel& kernel, const std::vector<TensorShape>& shapes);

// What bind is given for a launch on so many ranks: nothing where the kernel does not ask.
std::map<std::string, std::int64_t> given_ranks(const Kernel& kernel, std::int64_t ranks);

// Raises a usage error unless there is a number for each scalar parameter, which one of i32 can be.
void check_scalars(const Kernel& kernel, const std::vector<double>& scalars);

// Raises a usage error for a tensor whose elements have no memory, or do not begin at a multiple of
// their size.
void check_memory(const Parameter& parameter, const TensorArgument& tensor);
void check_memory(const Kernel& kernel, const std::vector<TensorArgument>& tensors);

// Raises a usage error where a tensor that is stored to has elements of another one: which of them
// blocks read before others store nobody knows.
void check_aliases(const Kernel& kernel, const std::vector<TensorArgument>& tensors);

}  // namespace tilewright::ir
