#pragma once

#include <string>
#include <string_view>

#include "ir/program.h"

// A program as text, with its kernels in between (ir/text.h):
//
//   program "layer" 2 ranks @"layer.cpp":10
//   dim rows multiple_of(8)
//   scalar "factor": f32 @"layer.cpp":10
//   tensor "x": bf16[rows, 128] @"layer.cpp":11
//   zeroed "sums": f32[rows] @"layer.cpp":11
//   signals "made": i32[2] @"layer.cpp":12
//   stream "math" of 0 @"layer.cpp":14
//   kernel "relu" tile @"layer.cpp":3
//   ...
//   zero "math" of 0 "sums" of 0 [0] [rows]
//   launch "math" of 0 kernel 0 ("x" of 0 [0, 0] [rows, 128], ...) scalars (2 + 0 run) epochs 1 of
//   1 copy "pull" of 1 to "x" of 1 [0, 0] [64, 128] from "x" of 0 [0, 0] [64, 128] @"layer.cpp":20
//   write "math" of 0 "made" of 1 [0] [1] value 0 + 1 run
//   wait "pull" of 1 "made" of 1 [0] [1] value 0 + 1 run
//   record "pull" of 1 event 0
//   wait_event "math" of 1 event 0
//
// The two lists behind a buffer are where its box starts and how large it is; the number of a run
// counts from 1. A number may have terms more, "1 + 0 run + 2 dim (rows // 8) + 1 scalar "factor"".
// Kernels are counted from 0, in their order.
namespace tilewright::ir {

std::string to_text(const Program& program);

// The form that to_text writes, whatever the hand that wrote it: names, numbers and shapes are
// checked, and so is that kernels take what launches give them. Each kernel is held against
// `verify`, as in read_verified; without one against the rules that hold for all targets.
Program parse_program(std::string_view text, std::string_view file_name,
                      const std::function<void(const Kernel&)>& verify = {});

}  // namespace tilewright::ir
