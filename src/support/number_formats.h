#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tilewright/dtype.h"

// Conversions between float and the storage formats f16, bf16 and f8e4m3: to the nearest, ties to
// even, subnormals exact. Overflow gives infinity in f16 and bf16 and +-448 in e4m3, which has no
// infinity (as cvt.rn.satfinite.e4m3x2.f32). NaN becomes the format's canonical NaN, as PTX's cvt.
namespace tilewright {
namespace number_formats_internal {

// Rounds a finite or infinite magnitude to a format of `mantissa_bits` bits and exponent bias
// `bias`; the result does not stop at the format's largest value.
template <int mantissa_bits, int bias>
inline std::uint32_t encode_magnitude(std::uint32_t magnitude) {
  constexpr int shift = 23 - mantissa_bits;
  constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(127 - bias + 1) << 23;
  // Adding 2^e, whose unit in the last place is the format's smallest subnormal, rounds to it.
  constexpr std::uint32_t aligner = static_cast<std::uint32_t>(127 + shift - bias + 1) << 23;
  const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(aligner);
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - aligner;
  const std::uint32_t half = (1u << (shift - 1)) - 1 + ((magnitude >> shift) & 1);
  const std::uint32_t normal =
      ((magnitude + half) >> shift) - (static_cast<std::uint32_t>(127 - bias) << mantissa_bits);
  return magnitude < smallest_normal ? subnormal : normal;
}

// The float of a finite magnitude in the format.
template <int mantissa_bits, int bias>
inline float decode_magnitude(std::uint32_t magnitude) {
  constexpr float scale = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 127 - bias) << 23);
  // As the bits of a float it is too small by 2^(127 - bias), also when subnormal.
  return std::bit_cast<float>(magnitude << (23 - mantissa_bits)) * scale;
}

}  // namespace number_formats_internal

inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

inline float f16_to_float(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fff;
  const std::uint32_t special = 0x7f800000 | (magnitude & 0x3ff) << 13;
  const float finite = number_formats_internal::decode_magnitude<10, 15>(magnitude);
  const std::uint32_t result = magnitude >= 0x7c00 ? special : std::bit_cast<std::uint32_t>(finite);
  return std::bit_cast<float>(result | static_cast<std::uint32_t>(bits & 0x8000) << 16);
}

inline std::uint16_t float_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t rounded =
      std::min<std::uint32_t>(number_formats_internal::encode_magnitude<10, 15>(magnitude), 0x7c00);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  return static_cast<std::uint16_t>(magnitude > 0x7f800000 ? 0x7fff : sign | rounded);
}

inline float f8e4m3_to_float(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7f;
  const float finite = number_formats_internal::decode_magnitude<3, 7>(magnitude);
  const std::uint32_t result =
      magnitude == 0x7f ? 0x7fc00000 : std::bit_cast<std::uint32_t>(finite);
  return std::bit_cast<float>(result | static_cast<std::uint32_t>(bits & 0x80) << 24);
}

inline std::uint8_t float_to_f8e4m3(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t rounded =
      std::min<std::uint32_t>(number_formats_internal::encode_magnitude<3, 7>(magnitude), 0x7e);
  const std::uint32_t sign = bits >> 24 & 0x80;
  return static_cast<std::uint8_t>(magnitude > 0x7f800000 ? 0x7f : sign | rounded);
}

// `count` contiguous elements of a floating dtype, f32 included. `source` and `target` need no
// alignment on the bytes' side and do not overlap.
void to_float(DType dtype, const std::byte* source, float* target, std::size_t count);
void from_float(DType dtype, const float* source, std::byte* target, std::size_t count);

// An integer dtype's least and greatest number.
struct IntegerRange {
  std::int64_t low, high;
};
IntegerRange range_of(DType integer);

// One element of an integer dtype, which holds the value.
std::int64_t to_integer(DType dtype, const std::byte* source);
void from_integer(DType dtype, std::int64_t value, std::byte* target);

// The largest relative error of rounding to the nearest; 0 of an integer dtype.
double unit_roundoff(DType dtype);

// The nearest value that the floating dtype can hold.
float round_to(DType dtype, float value);
void round_to(DType dtype, float* values, std::size_t count);

}  // namespace tilewright
