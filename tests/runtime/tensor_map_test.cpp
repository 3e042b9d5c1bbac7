#include "runtime/tensor_map.h"

#include "runtime/runtime_test.h"

namespace tilewright::runtime {
namespace {

// Q of an attention: batch 2, 1024 rows, 8 heads of 128, bf16.
TensorMapSpec valid() {
  TensorMapSpec spec;
  spec.name = std::string("Q");
  spec.base = reinterpret_cast<void*>(0x7f0000000400);
  spec.type = TensorMapType::bf16;
  spec.rank = 4;
  const uint64_t sizes[] = {128, 8, 1024, 2};
  const uint64_t strides[] = {256, 2048, 2097152};
  const uint32_t box[] = {64, 1, 128, 1};
  std::copy(std::begin(sizes), std::end(sizes), spec.sizes);
  std::copy(std::begin(strides), std::end(strides), spec.strides);
  std::copy(std::begin(box), std::end(box), spec.box);
  spec.swizzle = TensorMapSwizzle::bytes128;
  return spec;
}

void expect_refused(const TensorMapSpec& spec, std::vector<std::string> parts) {
  parts.push_back("tensor map of Q");
  parts.push_back("fix:");
  expect_error(ErrorKind::usage, parts, [&] { check(spec); });
}

TEST(TensorMapCheck, AcceptsAnAttentionsQuery) { EXPECT_NO_THROW(check(valid())); }

TEST(TensorMapCheck, AcceptsTheLargestOfEverything) {
  TensorMapSpec spec = valid();
  spec.rank = 5;
  spec.sizes[1] = uint64_t{1} << 32;
  spec.sizes[4] = 1;
  spec.box[2] = 256;
  spec.box[4] = 1;
  spec.strides[3] = (uint64_t{1} << 40) - 16;
  spec.element_strides[2] = 8;
  EXPECT_NO_THROW(check(spec));
}

TEST(TensorMapCheck, NamesAMisalignedBase) {
  TensorMapSpec spec = valid();
  spec.base = reinterpret_cast<void*>(0x7f0000000402);
  expect_refused(spec, {"0x7f0000000402", "multiple of 16 bytes", "2 past one", "8 elements"});
  spec.base = reinterpret_cast<void*>(0x7f0000000408);
  expect_refused(spec, {"0x7f0000000408", "8 past one"});
  spec.base = nullptr;
  expect_refused(spec, {"null"});
}

TEST(TensorMapCheck, NamesABadStride) {
  TensorMapSpec spec = valid();
  spec.strides[1] = 2056;
  expect_refused(spec, {"stride of axis 2", "2056 bytes", "pad it to 2064 bytes", "pass a copy"});
  spec.strides[1] = uint64_t{1} << 40;
  expect_refused(spec, {"stride of axis 2", "1099511627776"});
  spec = valid();
  spec.strides[0] += 8;
  expect_refused(spec, {"stride of axis 1", "no multiple of 16"});
}

TEST(TensorMapCheck, IgnoresTheStridesOfAxesThatAreNotThere) {
  TensorMapSpec spec = valid();
  spec.rank = 1;
  spec.strides[0] = 3;
  EXPECT_NO_THROW(check(spec));
}

TEST(TensorMapCheck, NamesABadSize) {
  TensorMapSpec spec = valid();
  spec.sizes[2] = 0;
  expect_refused(spec, {"axis 2 has 0 elements", "empty"});
  spec.sizes[2] = (uint64_t{1} << 32) + 1;
  expect_refused(spec, {"axis 2 has 4294967297 elements", "4294967296"});
}

TEST(TensorMapCheck, NamesABadBox) {
  TensorMapSpec spec = valid();
  spec.box[2] = 257;
  expect_refused(spec, {"257 elements along axis 2", "256"});
  spec.box[2] = 0;
  expect_refused(spec, {"0 elements along axis 2"});
  spec = valid();
  spec.box[0] = 65;
  expect_refused(spec, {"130 bytes wide", "multiple of 16"});
}

TEST(TensorMapCheck, ABoxWiderThanItsSwizzleIsRefused) {
  const std::pair<TensorMapSwizzle, uint32_t> spans[] = {{TensorMapSwizzle::bytes32, 32},
                                                         {TensorMapSwizzle::bytes64, 64},
                                                         {TensorMapSwizzle::bytes128, 128}};
  for (const auto& [swizzle, bytes] : spans) {
    TensorMapSpec spec = valid();
    spec.swizzle = swizzle;
    spec.box[0] = bytes / 2;
    EXPECT_NO_THROW(check(spec));
    spec.box[0] = bytes / 2 + 8;
    expect_refused(
        spec, {std::to_string(bytes) + "-byte swizzle", std::to_string(bytes / 2) + " elements"});
  }
  TensorMapSpec spec = valid();
  spec.swizzle = TensorMapSwizzle::none;
  spec.box[0] = 128;
  EXPECT_NO_THROW(check(spec));
}

TEST(TensorMapCheck, NamesBadRanksElementStridesAndFills) {
  TensorMapSpec spec = valid();
  spec.rank = 6;
  expect_refused(spec, {"6 axes", "1 to 5"});
  spec.rank = 0;
  expect_refused(spec, {"0 axes"});
  spec = valid();
  spec.element_strides[1] = 9;
  expect_refused(spec, {"element stride of axis 1 is 9"});
  spec = valid();
  spec.fill = TensorMapFill::nan;
  EXPECT_NO_THROW(check(spec));
  spec.type = TensorMapType::u16;
  expect_refused(spec, {"NaN", "integer"});
}

TEST(TensorMapCheck, PointsAtTheUsersLine) {
  TensorMapSpec spec = valid();
  spec.where = {"no_such_kernel.cpp", 17};
  spec.rank = 7;
  expect_error(ErrorKind::usage, {"no_such_kernel.cpp:17: error:"}, [&] { check(spec); });
}

TEST(TensorMapCheck, HasTheDriversSize) {
  EXPECT_EQ(sizeof(TensorMap), 128U);
  EXPECT_EQ(alignof(TensorMap), 64U);
}

}  // namespace
}  // namespace tilewright::runtime
