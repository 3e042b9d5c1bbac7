#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"
#include "ir/verifier.h"

namespace tilewright::test {

// A kernel of the tile form around the operations of one block; %2 is the block's index.
inline std::string tile_kernel(const std::string& body) {
  return "kernel \"case\" tile\n"
         "dim n multiple_of(8) at_least(8) at_most(4096)\n"
         "in X: f32[n, 64] = %0\n"
         "inout Y: f32[n, 64] = %1\n"
         "grid (n)\n"
         "body (%2: i32) {\n" +
         body + "}\n";
}

// The same, once it is known for which target.
inline std::string planned(std::string kernel) {
  return kernel.insert(kernel.find('\n') + 1, "target \"sm_90a\"\n");
}

// One of the scheduled form: the operations are those of its only role. %3 is a shared tile of two
// stages, %4 its barriers.
inline std::string role_kernel(const std::string& body) {
  return "kernel \"case\" scheduled\n"
         "dim n multiple_of(8) at_least(8) at_most(4096)\n"
         "in X: bf16[n, 64] = %0\n"
         "inout Y: f32[n, 64] = %1\n"
         "grid (n)\n"
         "threads 128\n"
         "body () {\n"
         "  %3: shared<bf16, 2x64x64> = shared {name = \"tiles\", "
         "layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 2}\n"
         "  %4: mbarriers<2> = mbarriers {name = \"full\", arrivals = 1}\n"
         "  role {name = \"math\", first_warp = 0, warps = 4, registers = 240} (%2: i32) {\n" +
         body + "    yield\n  }\n}\n";
}

inline ir::Kernel parsed(const std::string& text) {
  ir::Kernel kernel = ir::parse_text(text, "case.tw");
  ir::canonicalise(kernel);
  ir::verify(kernel);
  return kernel;
}

// Checks what the pass makes of a kernel, up to the numbering of values.
template <typename Pass>
void expect_pass(Pass&& pass, const std::string& input, const std::string& expected) {
  ir::Kernel kernel = parsed(input);
  pass(kernel);
  ir::canonicalise(kernel);
  ir::verify(kernel);
  EXPECT_EQ(ir::to_text(kernel, {.locations = false}),
            ir::to_text(parsed(expected), {.locations = false}));
}
template <typename Pass>
void expect_unchanged(Pass&& pass, const std::string& input) {
  expect_pass(std::forward<Pass>(pass), input, input);
}

}  // namespace tilewright::test
