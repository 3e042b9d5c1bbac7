#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ir/ir.h"

namespace tilewright::checks::fuzz {

// What a value may be in any evaluation that the numerics contract allows: lo <= x <= hi. NaN
// bounds say nothing of it. Integers have lo == hi but where a cast from floats may go either way;
// booleans are 0, 1, or [0, 1] where both may be.
struct Interval {
  double lo = 0, hi = 0;
  bool anything() const { return std::isnan(lo) || std::isnan(hi); }
  bool exact() const { return lo == hi; }
  double magnitude() const { return std::max(std::abs(lo), std::abs(hi)); }
  double middle() const { return exact() ? lo : lo + (hi - lo) / 2; }
};
inline constexpr Interval kAnything{std::numeric_limits<double>::quiet_NaN(),
                                    std::numeric_limits<double>::quiet_NaN()};

// How much each kind of evaluation errs, relative to the result.
struct Precision {
  double arithmetic = 0x1p-23;  // a sum or product in f32, also when fused with another
  double function = 0x1p-22;    // exp and its like
  double exponent = 0;          // of exp2's and exp's argument
  double tanh = 0x1p-22;
  double angle = 0x1p-23;       // of sin and cos, absolute
  double sum = 0x1p-24;         // of one addition in a sum, relative to the sum of magnitudes
  double narrow_sum = 0x1p-24;  // the same in a product of 8-bit operands
  static Precision of_gpu();    // the approximate instructions and the tensor core
};

// `x` with a relative error more, as an element of the dtype: rounded to it, or (by the float64
// interpreter) not.
Interval widened(Interval x, double relative, DType dtype);
Interval hull(Interval a, Interval b);
Interval evaluate(ir::Op op, const Interval* x, DType dtype, const Precision& precision);

// Thrown where a decision of the kernel depends on rounding.
struct Undecided {};

}  // namespace tilewright::checks::fuzz
