#include "simulator/core/core_functions.h"

#include <algorithm>

#include "simulator/evaluate_elementwise.h"
#include "simulator/matrix_product.h"

namespace tilewright::simulator {
namespace {

template <typename T>
std::vector<T>& elements_of(CoreValues& values) {
  if constexpr (std::is_same_v<T, float>) {
    return values.real;
  } else {
    return values.whole;
  }
}
template <typename T>
const std::vector<T>& elements_of(const CoreValues& values) {
  return elements_of<T>(const_cast<CoreValues&>(values));
}

// An element that is as good as the worst of those it is made of.
void worsen(std::uint8_t& origin, std::uint8_t other) {
  if (origin == 0) origin = other;
}

// Of an operand, stretched to the result's shape.
template <typename T>
std::vector<T> stretched(const CoreOperandValue& operand, CoreValues& result) {
  std::vector<T> made(result.size());
  if (operand.values == nullptr) {
    if constexpr (std::is_same_v<T, float>) {
      std::fill(made.begin(), made.end(), operand.number.real);
    } else {
      std::fill(made.begin(), made.end(), operand.number.whole);
    }
    return made;
  }
  const CoreValues& from = *operand.values;
  const std::vector<T>& elements = elements_of<T>(from);
  for (std::int64_t row = 0; row < result.extent.rows; ++row) {
    for (std::int64_t column = 0; column < result.extent.columns; ++column) {
      const std::int64_t source = (from.extent.rows == 1 ? 0 : row) * from.extent.columns +
                                  (from.extent.columns == 1 ? 0 : column);
      const std::int64_t target = row * result.extent.columns + column;
      made[target] = elements[source];
      worsen(result.origin[target], from.origin[source]);
    }
  }
  return made;
}

template <typename T>
void apply_to(const Elementwise& how, const std::vector<CoreOperandValue>& operands,
              CoreValues& result) {
  std::vector<std::vector<T>> values;
  values.reserve(operands.size());
  for (const CoreOperandValue& operand : operands) values.push_back(stretched<T>(operand, result));
  std::vector<const T*> pointers;
  for (const std::vector<T>& each : values) pointers.push_back(each.data());
  evaluate(how, result.size(), pointers.data(), elements_of<T>(result).data());
}

template <typename T>
void reduce_to(const Elementwise& how, std::int64_t axis, const CoreValues& values,
               CoreValues& result) {
  std::vector<T>& sums = elements_of<T>(result);
  const std::vector<T>& elements = elements_of<T>(values);
  std::fill(sums.begin(), sums.end(), reduce_identity<T>(how.op, how.dtype));
  for (std::int64_t row = 0; row < values.extent.rows; ++row) {
    for (std::int64_t column = 0; column < values.extent.columns; ++column) {
      const std::int64_t source = row * values.extent.columns + column;
      const std::int64_t target = axis == 0 ? column : row;
      const T* const pair[] = {&sums[target], &elements[source]};
      evaluate(how, 1, pair, &sums[target]);
      worsen(result.origin[target], values.origin[source]);
    }
  }
}

// What nobody has written may have no result, such as a quotient. That it is used is another fault.
bool is_unwritten(const CoreValues& values) {
  return std::any_of(values.origin.begin(), values.origin.end(),
                     [](std::uint8_t origin) { return origin != 0; });
}

}  // namespace

CoreValues converted(const CoreValues& values, DType dtype, SourceLocation where) {
  if (values.dtype == dtype) return values;
  CoreValues result(values.extent, dtype);
  result.origin = values.origin;
  const Elementwise how{ir::Op::cast, dtype, where, is_unwritten(values)};
  const auto into = [&](const auto& source) {
    if (result.is_real()) {
      convert(how, values.size(), source.data(), result.real.data());
    } else {
      convert(how, values.size(), source.data(), result.whole.data());
    }
  };
  values.is_real() ? into(values.real) : into(values.whole);
  return result;
}

void multiply(const CoreValues& left, const CoreValues& right, std::int64_t k, CoreValues& result) {
  const std::int64_t m = result.extent.rows, n = result.extent.columns;
  multiply_add<float>(m, n, k, {left.real.data(), left.extent.columns},
                      {right.real.data(), right.extent.columns}, {result.real.data(), n});
  std::vector<std::uint8_t> rows(m, 0), columns(n, 0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < k; ++j) worsen(rows[i], left.origin[i * left.extent.columns + j]);
  }
  for (std::int64_t j = 0; j < k; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      worsen(columns[i], right.origin[j * right.extent.columns + i]);
    }
  }
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      worsen(result.origin[i * n + j], rows[i]);
      worsen(result.origin[i * n + j], columns[j]);
    }
  }
}

namespace {

// Elements of bool are whole numbers in a core's memories.
std::vector<std::uint8_t> bits_of(const CoreOperandValue& operand, CoreValues& result) {
  const std::vector<std::int64_t> whole = stretched<std::int64_t>(operand, result);
  return {whole.begin(), whole.end()};
}

void set_bits(const std::vector<std::uint8_t>& bits, CoreValues& result) {
  std::copy(bits.begin(), bits.end(), result.whole.begin());
}

template <typename T>
void compare_to(const Elementwise& how, const std::vector<CoreOperandValue>& operands,
                CoreValues& result) {
  const std::vector<T> a = stretched<T>(operands[0], result), b = stretched<T>(operands[1], result);
  std::vector<std::uint8_t> bits(result.size());
  compare<T>(how, result.size(), a.data(), b.data(), bits.data());
  set_bits(bits, result);
}

// Each element is as good as its condition and what is chosen: the other one may be anything.
template <typename T>
void select_to(const std::vector<CoreOperandValue>& operands, CoreValues& result) {
  const std::vector<std::uint8_t> condition = bits_of(operands[0], result);
  CoreValues of[2] = {{result.extent, result.dtype}, {result.extent, result.dtype}};
  const std::vector<T> a = stretched<T>(operands[1], of[0]), b = stretched<T>(operands[2], of[1]);
  select(result.size(), condition.data(), a.data(), b.data(), elements_of<T>(result).data());
  for (std::size_t i = 0; i < result.size(); ++i) {
    worsen(result.origin[i], of[condition[i] != 0 ? 0 : 1].origin[i]);
  }
}

void logic_to(const Elementwise& how, const std::vector<CoreOperandValue>& operands,
              CoreValues& result) {
  std::vector<std::vector<std::uint8_t>> values;
  std::vector<const std::uint8_t*> pointers;
  for (const CoreOperandValue& operand : operands) values.push_back(bits_of(operand, result));
  for (const auto& each : values) pointers.push_back(each.data());
  std::vector<std::uint8_t> bits(result.size());
  evaluate(how, result.size(), pointers.data(), bits.data());
  set_bits(bits, result);
}

DType dtype_of(const CoreOperandValue& operand) {
  return operand.values != nullptr ? operand.values->dtype : operand.dtype;
}

}  // namespace

void apply(ir::Op function, const std::vector<CoreOperandValue>& operands, CoreValues& result,
           SourceLocation where) {
  if (function == ir::Op::cast) {
    const CoreOperandValue& only = operands.front();
    CoreValues source(result.extent, only.values != nullptr ? only.values->dtype : only.dtype);
    if (source.is_real()) {
      source.real = stretched<float>(only, source);
    } else {
      source.whole = stretched<std::int64_t>(only, source);
    }
    result = converted(source, result.dtype, where);
    return;
  }
  const bool unwritten =
      std::any_of(operands.begin(), operands.end(), [](const CoreOperandValue& each) {
        return each.values != nullptr && is_unwritten(*each.values);
      });
  const Elementwise how{function, result.dtype, where, unwritten};
  if (function == ir::Op::select) {
    return result.is_real() ? select_to<float>(operands, result)
                            : select_to<std::int64_t>(operands, result);
  }
  if (ir::info(function).is_comparison()) {
    return is_float(dtype_of(operands[0])) ? compare_to<float>(how, operands, result)
                                           : compare_to<std::int64_t>(how, operands, result);
  }
  if (result.dtype == DType::boolean && function != ir::Op::cast) {
    return logic_to(how, operands, result);
  }
  if (result.is_real()) {
    apply_to<float>(how, operands, result);
  } else {
    apply_to<std::int64_t>(how, operands, result);
  }
}

void reduce_along(ir::Op function, std::int64_t axis, const CoreValues& values, CoreValues& result,
                  SourceLocation where) {
  const Elementwise how{function, result.dtype, where, is_unwritten(values)};
  if (result.is_real()) {
    reduce_to<float>(how, axis, values, result);
  } else {
    reduce_to<std::int64_t>(how, axis, values, result);
  }
}

}  // namespace tilewright::simulator
