#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright {

// Element types of tensors, tiles and scalars. `boolean` is the result of comparisons; it has no
// place in memory and therefore no size.
enum class DType : std::uint8_t { f32, f16, bf16, f8e4m3, i32, i64, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType f8e4m3 = DType::f8e4m3;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;

// Bytes of one element; a boolean counts as one.
int size_of(DType type);
bool is_float(DType type);
bool is_integer(DType type);

// "f32", "bf16", ...; `parse_dtype` raises a usage error that lists the known names.
std::string_view name_of(DType type);
DType parse_dtype(std::string_view name);

}  // namespace tilewright
