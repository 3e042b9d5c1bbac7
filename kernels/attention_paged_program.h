#pragma once

#include "kernels/attention_paged_parameters.h"

namespace tilewright::kernels {

struct PagedProgram {
  KeyParts keys;
  PagedRows tile;
  Dim places;  // tiles, or parts of them, that the GPU computes at a time
};
// The program of attention_paged whose tiles `kernel` computes. Parts are joined by a second
// kernel.
Program paged_program(const char* name, const PagedAttention& a, const Kernel& kernel,
                      const PagedProgram& how);

// attention_paged at the tile level, in tiles of so many rows and no more keys, whose keys nobody
// divides: one kernel.
Program attention_paged_undivided(const PagedAttention& a, int rows, SourceLocation where);

}  // namespace tilewright::kernels
