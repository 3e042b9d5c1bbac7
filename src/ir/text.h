#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/ir.h"

// The IR as text, one syntax for every operation:
//
//   kernel "copy" tile @"copy.cpp":3
//   dim rows multiple_of(8) at_most(4096)
//   in X: bf16[rows, 128] = %0
//   out Y: bf16[rows, 128] = %1
//   grid (ceil_div(rows, 64))
//   body (%2: i32) {
//     %3: i32 = constant {value = 64} @"copy.cpp":8
//     ...
//     %9: tile<bf16, 64x128> = load %0, %4, %5, %6, %7 {sizes = [64, 128]} @"copy.cpp":9
//     %10: i32 = for_loop %5, %3, %4, %5 (%11: i32, %12: i32) {
//       yield %12
//     }
//   }
//
// After the parameters come cluster, threads and shared_bytes where they are not the default, the
// author's claims, such as `require stages("K") >= 2 @"copy.cpp":5`, and in the tile form what is
// said of its schedule, as `schedule stages = 3 @"copy.cpp":6`. Attributes are integers (4),
// numbers (4.0, inf, nan), texts ("k"), lists ([1, 2]), functions (add), dim(rows + 1),
// register_layout[...], shared_layout[...] and maps[[1:64:1], []], whose terms are
// divisor:modulus:stride.
namespace tilewright::ir {

struct TextOptions {
  bool locations = true;
  bool claims = true;
};

std::string to_text(const Kernel& kernel, const TextOptions& options = {});

// The form that to_text writes. It checks syntax and names only: verify() does the rest. An
// operation without a location gets its line of the text.
Kernel parse_text(std::string_view text, std::string_view file_name);

// The kernel of a file that somebody has written: parsed, and held against `verify`, whose errors
// name the lines of this text rather than those that the text says it comes from. So many lines of
// the file stand before it.
Kernel read_verified(std::string_view text, std::string_view file_name,
                     const std::function<void(const Kernel&)>& verify, int lines_before = 0);

// Same kernel, apart from source locations and the numbering of values.
bool equal(const Kernel& a, const Kernel& b);

// Of what a kernel of the machine form does: its text without locations and without claims. Equal
// forms have equal hashes, whatever built Tilewright; a cubin carries that of the form that it was
// printed from.
std::uint64_t form_hash(const Kernel& machine);

}  // namespace tilewright::ir
