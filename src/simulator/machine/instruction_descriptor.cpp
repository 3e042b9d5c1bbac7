#include "simulator/machine/instruction_descriptor.h"

#include <fmt/format.h>

#include <optional>

namespace tilewright::simulator {
namespace {

std::uint64_t field(std::uint64_t bits, int first, int last) {
  return bits >> first & ((std::uint64_t{1} << (last - first + 1)) - 1);
}

// Bits 7-9 and 10-12.
std::optional<DType> type_of(std::uint64_t code, int element_bytes) {
  if (element_bytes == 2 && code == 0) return DType::f16;
  if (element_bytes == 2 && code == 1) return DType::bf16;
  if (element_bytes == 1 && code == 0) return DType::f8e4m3;
  return std::nullopt;
}

std::string find_problem(std::uint32_t bits, int element_bytes, int m, int n, int ctas) {
  const auto a = type_of(field(bits, 7, 9), element_bytes);
  const auto b = type_of(field(bits, 10, 12), element_bytes);
  if (field(bits, 0, 2) != 0) return "bits 0 to 2 ask for sparse operands";
  if (field(bits, 3, 3) != 0) return "bit 3 saturates, which integers alone have";
  if (field(bits, 4, 5) != 1) {
    return fmt::format("bits 4 and 5 say sums {}, and f32 are 1", field(bits, 4, 5));
  }
  if (field(bits, 6, 6) != 0) return "bit 6 is reserved";
  if (!a || !b) {
    return fmt::format("bits 7 to 12 say types {} and {} of {} bytes", field(bits, 7, 9),
                       field(bits, 10, 12), element_bytes);
  }
  if (field(bits, 13, 14) != 0) return "bits 13 and 14 negate operands";
  if (element_bytes == 1 && field(bits, 15, 16) != 0) {
    return "bits 15 and 16: an operand of 8-bit elements is not MN-major here";
  }
  if (field(bits, 23, 23) != 0) return "bit 23 is reserved";
  if (field(bits, 29, 31) != 0) return "bits 29 to 31 shift, which .ws alone has";
  if (ctas == 2) {
    if (m != 128 && m != 256) {
      return fmt::format("bits 24 to 28 say m = {}, not 128 or 256 of two CTAs", m);
    }
    if (n < 32 || n > 256 || n % 32 != 0) {
      return fmt::format("bits 17 to 22 say n = {}, not 32 to 256 in steps of that", n);
    }
    return {};
  }
  if (m != 64 && m != 128) return fmt::format("bits 24 to 28 say m = {}, not 64 or 128", m);
  if (n < 8 || n > 256 || (m == 128 && n % 16 != 0)) {
    return fmt::format("bits 17 to 22 say n = {}, not {} to 256 in steps of that", n,
                       m == 128 ? 16 : 8);
  }
  return {};
}

}  // namespace

InstructionDescriptor decode_instruction(std::uint32_t bits, int element_bytes, int ctas) {
  InstructionDescriptor decoded;
  decoded.n = static_cast<int>(field(bits, 17, 22) << 3);
  decoded.m = static_cast<int>(field(bits, 24, 28) << 4);
  decoded.problem = find_problem(bits, element_bytes, decoded.m, decoded.n, ctas);
  if (!decoded.problem.empty()) return decoded;
  decoded.a = *type_of(field(bits, 7, 9), element_bytes);
  decoded.b = *type_of(field(bits, 10, 12), element_bytes);
  decoded.a_is_mn_major = field(bits, 15, 15) != 0;
  decoded.b_is_mn_major = field(bits, 16, 16) != 0;
  return decoded;
}

std::string problem_of_descriptor(std::uint64_t descriptor) {
  if (field(descriptor, 14, 15) != 0 || field(descriptor, 30, 31) != 0) {
    return "bits 14, 15, 30 and 31 are reserved";
  }
  if (field(descriptor, 46, 48) != 1) {
    return fmt::format("bits 46 to 48 are {}, and have to be 1", field(descriptor, 46, 48));
  }
  if (field(descriptor, 49, 51) != 0) {
    return fmt::format("bits 49 to 51 say base offset {}; patterns start at aligned addresses here",
                       field(descriptor, 49, 51));
  }
  if (field(descriptor, 52, 52) != 0) return "bit 52 says an absolute address, which K = 96 has";
  if (field(descriptor, 53, 60) != 0) return "bits 53 to 60 are reserved";
  const std::uint64_t swizzle = field(descriptor, 61, 63);
  if (swizzle % 2 != 0) {
    return fmt::format(
        "bits 61 to 63 say swizzle {}, expected 0, 2, 4 or 6 for none, 128, 64 or "
        "32 bytes",
        swizzle);
  }
  return {};
}

}  // namespace tilewright::simulator
