#include "support/number_formats.h"

#include <cstring>
#include <string>

#include "support/diagnostic.h"

namespace tilewright {
namespace {

[[noreturn]] void not_floating(DType dtype) {
  Diagnostic({}, std::string(name_of(dtype)) + " is not a floating dtype", ErrorKind::internal)
      .raise();
}

// Calls `visit(bits, decode, encode)` with a zero of the dtype's bit pattern and its conversions.
template <typename Visit>
void with_format(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(
          float{}, [](float x) { return x; }, [](float x) { return x; });
    case DType::f16:
      return visit(
          std::uint16_t{}, [](std::uint16_t x) { return f16_to_float(x); },
          [](float x) { return float_to_f16(x); });
    case DType::bf16:
      return visit(
          std::uint16_t{}, [](std::uint16_t x) { return bf16_to_float(x); },
          [](float x) { return float_to_bf16(x); });
    case DType::f8e4m3:
      return visit(
          std::uint8_t{}, [](std::uint8_t x) { return f8e4m3_to_float(x); },
          [](float x) { return float_to_f8e4m3(x); });
    default:
      not_floating(dtype);
  }
}

}  // namespace

void to_float(DType dtype, const std::byte* source, float* target, std::size_t count) {
  with_format(dtype, [&](auto bits, auto decode, auto) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&bits, source + i * sizeof(bits), sizeof(bits));
      target[i] = decode(bits);
    }
  });
}

void from_float(DType dtype, const float* source, std::byte* target, std::size_t count) {
  with_format(dtype, [&](auto bits, auto, auto encode) {
    for (std::size_t i = 0; i < count; ++i) {
      bits = encode(source[i]);
      std::memcpy(target + i * sizeof(bits), &bits, sizeof(bits));
    }
  });
}

void round_to(DType dtype, float* values, std::size_t count) {
  with_format(dtype, [&](auto, auto decode, auto encode) {
    for (std::size_t i = 0; i < count; ++i) values[i] = decode(encode(values[i]));
  });
}

float round_to(DType dtype, float value) {
  round_to(dtype, &value, 1);
  return value;
}

}  // namespace tilewright
