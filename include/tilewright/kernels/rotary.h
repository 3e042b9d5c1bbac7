#pragma once

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// Rotary position embedding: the first 2 `half` elements of each head are pairs, which are turned
// by the angles of the token's position. Y has the shape of X, {batch, length, heads, dim}; `cos`
// and `sin` are f32 {positions, half}. What the function refuses is a usage error at its caller's
// line, `where`.
struct Rotary {
  int heads = 1, dim = 128, half = 64;
  DType dtype = bf16;
  bool interleaved = false;  // pairs are neighbours; else element i belongs to i + half
  bool positions = false;    // i32 {batch, length} stands before Y; else a token's place is it
  bool inverse = false;      // turns back, as the gradient does
};
Kernel rotary(const Rotary& rotary, SourceLocation where = here());

}  // namespace tilewright::kernels
