#include "ir/tensor_descriptor.h"

#include <fmt/format.h>

#include "support/diagnostic.h"

// PTX ISA 9.0, "instruction descriptor" and "shared memory descriptor" of tcgen05.
namespace tilewright::ir {
namespace {

// Of A and of B in the fields of three bits: those of .kind::f16 and .kind::f8f6f4.
std::uint32_t type_field(DType element) { return element == DType::bf16 ? 1 : 0; }

}  // namespace

std::string problem_of(const TensorProductShape& shape) {
  const int bytes = size_of(shape.element);
  if (!is_float(shape.element) || (bytes != 2 && bytes != 1)) {
    return fmt::format("of {}, expected bf16, f16 or f8e4m3", name_of(shape.element));
  }
  if (shape.ctas == 2) {
    if (shape.m != 128 && shape.m != 256) {
      return fmt::format("m is {}, expected 128 or 256 of two CTAs", shape.m);
    }
  } else if (shape.m != 64 && shape.m != 128) {
    return fmt::format("m is {}, expected 64 or 128", shape.m);
  }
  // PTX takes multiples of 8 with m = 128 as well; public kernels do not, and 8-bit operands may
  // not.
  const std::int64_t unit = (shape.m == 64 && bytes == 2 ? 8 : 16) * shape.ctas;
  if (shape.n < unit || shape.n > 256 || shape.n % unit != 0) {
    return fmt::format("n is {}, expected a multiple of {} up to 256", shape.n, unit);
  }
  if (bytes != 2 && (shape.a != Major::k || shape.b != Major::k)) {
    return fmt::format("an operand of {} whose k is not contiguous", name_of(shape.element));
  }
  return {};
}

std::int64_t result_columns(const TensorProductShape& shape) {
  return shape.ctas == 2 && shape.m == 128 ? shape.n / 2 : shape.n;
}

std::uint32_t instruction_descriptor(const TensorProductShape& shape, SourceLocation where) {
  if (const std::string problem = problem_of(shape); !problem.empty()) {
    Diagnostic(where, "tcgen05.mma: " + problem).raise();
  }
  constexpr std::uint32_t kSumsInF32 = 1;
  return kSumsInF32 << 4 | type_field(shape.element) << 7 | type_field(shape.element) << 10 |
         std::uint32_t{shape.a == Major::mn} << 15 | std::uint32_t{shape.b == Major::mn} << 16 |
         static_cast<std::uint32_t>(shape.n >> 3) << 17 |
         static_cast<std::uint32_t>(shape.m >> 4) << 24;
}

WgmmaOperand tensor_operand(const SharedLayout& layout, int k_axis, SourceLocation where) {
  constexpr std::uint64_t kVersion = std::uint64_t{1} << 46;
  WgmmaOperand operand = wgmma_operand(layout, k_axis, where);
  operand.high_bits |= kVersion;
  return operand;
}

}  // namespace tilewright::ir
