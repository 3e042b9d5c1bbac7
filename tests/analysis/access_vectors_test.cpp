#include "analysis/access_vectors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {
namespace {

int at_once(const char* layout, std::vector<std::int64_t> sizes, DType dtype) {
  ir::Operation access;
  access.op = ir::Op::load_registers;
  access.attributes.set(ir::Key::layout, ir::RegisterLayout::parse(layout));
  access.attributes.set(ir::Key::sizes, std::move(sizes));
  return elements_at_once(access, dtype);
}

// Neighbours along the tensor's last axis, from 4 bytes to 16, of elements of at most 4.
TEST(AccessVectors, AreNeighboursInMemory) {
  const char* const eight = "[32x8|r:8@1:1|l:32@0:1]";
  EXPECT_EQ(at_once(eight, {32, 8}, bf16), 8);
  EXPECT_EQ(at_once(eight, {32, 8}, f32), 4);
  EXPECT_EQ(at_once(eight, {32, 8}, f8e4m3), 8);
  EXPECT_EQ(at_once(eight, {32, 8}, i64), 1);
  const char* const two = "[32x2|r:2@1:1|l:32@0:1]";
  EXPECT_EQ(at_once(two, {32, 2}, bf16), 2);
  EXPECT_EQ(at_once(two, {32, 2}, f8e4m3), 1) << "2 bytes are less than a register";
  EXPECT_EQ(at_once("[32x6|r:6@1:1|l:32@0:1]", {32, 6}, bf16), 2) << "4 do not divide 6";
  EXPECT_EQ(at_once("[8x32|r:8@0:1|l:32@1:1]", {8, 32}, bf16), 1) << "neighbours along a column";
  EXPECT_EQ(at_once("[32x64|r:2@1:32|l:32@1:1|w:32@0:1]", {32, 64}, bf16), 1) << "32 apart";
  EXPECT_EQ(at_once("[8|r:8@0:1|l:32*]", {8, 0}, bf16), 1) << "along an axis that is not the last";
  EXPECT_EQ(at_once("[8|r:8@0:1|l:32*]", {0, 8}, bf16), 8);
}

}  // namespace
}  // namespace tilewright::analysis
