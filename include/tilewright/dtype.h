#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright {

// Element types of tensors, tiles and scalars. `boolean` is the result of comparisons, and never
// lies in a tensor. i8, u8 and u32 are formats of memory: tiles of them are
// loaded, stored, rearranged, cast, and those of u32 added to memory (ranks.h); other arithmetic
// takes what they are cast to.
enum class DType : std::uint8_t { f32, f16, bf16, f8e4m3, i32, i64, i8, u8, u32, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType f8e4m3 = DType::f8e4m3;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType i8 = DType::i8;
inline constexpr DType u8 = DType::u8;
inline constexpr DType u32 = DType::u32;

// Bytes of one element; 1 for `boolean`.
int size_of(DType type);
bool is_float(DType type);
bool is_integer(DType type);
bool is_byte_integer(DType type);   // i8 or u8
bool is_memory_format(DType type);  // i8, u8 or u32

// "f32", "bf16", ...; `parse_dtype` raises a usage error that lists the known names.
std::string_view name_of(DType type);
DType parse_dtype(std::string_view name);

}  // namespace tilewright
