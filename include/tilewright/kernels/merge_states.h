#pragma once

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// Joins attention to parts of the keys, however these were divided: a prefix that sequences share
// and what each has behind it, pages on several machines, or a long sequence's pieces.
struct MergeStates {
  int heads = 8, dim = 128;
  DType dtype = bf16;  // of the outputs, merged or not
};

// Of each part the output and the natural logarithm of the softmax's sum, LSE, as attention_paged
// gives them. A part in which a row has seen no key has LSE -inf there, and its
// output is not asked, whatever it holds. Where all parts are so, the row is 0 with -inf. What is
// merged may be merged again: in any grouping it is the same but for rounding. Sums are in f32 and
// follow the parts' order.
// in   O_parts [parts, rows, heads, dim], LSE_parts f32 [parts, rows, heads]
// out  O [rows, heads, dim], LSE f32 [rows, heads]
Kernel merge_states(const MergeStates& merge, SourceLocation where = here());

}  // namespace tilewright::kernels
