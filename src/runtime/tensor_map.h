#pragma once

#include <cstdint>
#include <string>

#include "tilewright/error.h"

namespace tilewright::runtime {

// Values are those of the driver.
enum class TensorMapType : int {
  u8 = 0,
  u16 = 1,
  u32 = 2,
  i32 = 3,
  u64 = 4,
  i64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  bf16 = 9,
  tf32 = 11,
};
enum class TensorMapSwizzle : int { none = 0, bytes32 = 1, bytes64 = 2, bytes128 = 3 };
enum class TensorMapPromotion : int { none = 0, bytes64 = 1, bytes128 = 2, bytes256 = 3 };
enum class TensorMapFill : int { zero = 0, nan = 1 };

int size_of(TensorMapType type);

// What a TMA copy moves: a box out of a tensor of up to 5 axes, the contiguous one first.
struct TensorMapSpec {
  std::string name;      // the tensor's, for errors
  SourceLocation where;  // of the copy or the tensor, for errors
  void* base = nullptr;
  TensorMapType type = TensorMapType::bf16;
  int rank = 0;
  uint64_t sizes[5] = {};    // elements
  uint64_t strides[4] = {};  // bytes, of axes 1 and up
  uint32_t box[5] = {};      // elements
  uint32_t element_strides[5] = {1, 1, 1, 1, 1};
  TensorMapSwizzle swizzle = TensorMapSwizzle::none;
  TensorMapPromotion promotion = TensorMapPromotion::bytes256;
  TensorMapFill fill = TensorMapFill::zero;
};

// Passed to kernels by value, as `const __grid_constant__`.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

// Throws Error(usage) for the first requirement of the hardware that the spec does not meet. Needs
// neither driver nor GPU.
void check(const TensorMapSpec& spec);

// Checks, then encodes.
TensorMap encode(const TensorMapSpec& spec);

}  // namespace tilewright::runtime
