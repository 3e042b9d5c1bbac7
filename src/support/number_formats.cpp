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
    case DType::i32:
    case DType::i64:
    case DType::i8:
    case DType::u8:
    case DType::u32:
    case DType::boolean:
      break;
  }
  not_floating(dtype);
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

IntegerRange range_of(DType integer) {
  switch (integer) {
    case DType::i8:
      return {INT8_MIN, INT8_MAX};
    case DType::u8:
      return {0, UINT8_MAX};
    case DType::u32:
      return {0, UINT32_MAX};
    case DType::i32:
      return {INT32_MIN, INT32_MAX};
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::i64:
    case DType::boolean:
      break;
  }
  return {INT64_MIN, INT64_MAX};
}

std::int64_t to_integer(DType dtype, const std::byte* source) {
  const auto read = [source](auto bits) -> std::int64_t {
    std::memcpy(&bits, source, sizeof(bits));
    return bits;
  };
  switch (dtype) {
    case DType::i8:
      return read(std::int8_t{});
    case DType::u8:
    case DType::boolean:
      return read(std::uint8_t{});
    case DType::u32:
      return read(std::uint32_t{});
    case DType::i32:
      return read(std::int32_t{});
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::i64:
      break;
  }
  return read(std::int64_t{});
}

void from_integer(DType dtype, std::int64_t value, std::byte* target) {
  std::memcpy(target, &value, static_cast<std::size_t>(size_of(dtype)));  // little endian
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    case DType::f8e4m3:
      return 0x1p-4;
    case DType::f32:
      return 0x1p-24;
    case DType::i32:
    case DType::i64:
    case DType::i8:
    case DType::u8:
    case DType::u32:
    case DType::boolean:
      return 0;
  }
  return 0;
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
