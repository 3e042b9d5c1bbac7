#include "ir/descriptor.h"

#include <gtest/gtest.h>

#include <string>

namespace tilewright::ir {
namespace {

constexpr std::uint32_t kBase = 0x2c00;  // a multiple of 1024

// The fields of PTX's matrix descriptor.
struct Fields {
  std::uint32_t start = 0;
  std::uint32_t leading = 0;
  std::uint32_t stride = 0;
  std::uint32_t base_offset = 0;
  std::uint32_t swizzle = 0;
};

Fields decode(std::uint64_t descriptor) {
  const auto bits = [descriptor](int low, int high) {
    return static_cast<std::uint32_t>(descriptor >> low & ((1ull << (high - low + 1)) - 1));
  };
  EXPECT_EQ(bits(14, 15), 0u);
  EXPECT_EQ(bits(30, 31), 0u);
  EXPECT_EQ(bits(46, 48), 0u);
  EXPECT_EQ(bits(52, 61), 0u);
  return {bits(0, 13) * 16, bits(16, 29) * 16, bits(32, 45) * 16, bits(49, 51), bits(62, 63)};
}

std::uint32_t swizzled(std::uint32_t address, std::uint32_t mode) {
  switch (mode) {
    case 1:
      return address ^ (address & 0x380) >> 3;
    case 2:
      return address ^ (address & 0x180) >> 3;
    case 3:
      return address ^ (address & 0x080) >> 3;
    default:
      return address;
  }
}

// The address of element (mn, k) of one wgmma's operand by PTX's canonical layouts; T elements make
// 16 bytes, w chunks of 16 bytes make a swizzled row:
//   K-major, none:      ((8,m),(T,2)) : ((1T,SBO),(1,LBO))
//   K-major, swizzled:  ((8,m),(T,2)) : ((wT,SBO),(1,T))
//   MN-major, none:     ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO))
//   MN-major, swizzled: ((T,w,m),(8,k)) : ((1,T,LBO),(wT,SBO))
std::uint32_t hardware_address(std::uint64_t descriptor, bool mn_major, std::uint32_t mn,
                               std::uint32_t k, std::uint32_t bytes) {
  const Fields fields = decode(descriptor);
  EXPECT_EQ(fields.base_offset, 0u);
  const std::uint32_t t = 16 / bytes;
  const std::uint32_t chunks[] = {1, 8, 4, 2};
  const std::uint32_t w = chunks[fields.swizzle];
  std::uint32_t address = fields.start;
  if (!mn_major) {
    address += mn % 8 * (16 * w) + mn / 8 * fields.stride + k % t * bytes;
    address += k / t * (fields.swizzle == 0 ? fields.leading : 16);
  } else if (fields.swizzle == 0) {
    address += mn % t * bytes + mn / t * fields.stride + k % 8 * 16 + k / 8 * fields.leading;
  } else {
    address += mn % t * bytes + mn / t % w * 16 + mn / (t * w) * fields.leading;
    address += k % 8 * (16 * w) + k / 8 * fields.stride;
  }
  return swizzled(address, fields.swizzle);
}

// Compares where hardware reads every element of `count` rows (or columns) from `first` on with
// where the layout puts it. The layout's axes are (M or N, K).
void expect_reads_the_layout(const SharedLayout& layout, std::int64_t first, std::int64_t count) {
  const WgmmaOperand operand = wgmma_operand(layout, 1);
  const std::int64_t slice = wgmma_slice_offset(layout, 1, first);
  const std::int64_t step = 32 / layout.element_bytes;
  ASSERT_EQ(static_cast<std::int64_t>(operand.k_steps.size()) * step, layout.shape[1]);
  for (std::size_t s = 0; s < operand.k_steps.size(); ++s) {
    const auto start = static_cast<std::uint32_t>(kBase + slice + operand.k_steps[s]);
    ASSERT_EQ(start % 16, 0u);
    const std::uint64_t descriptor = operand.encode(start);
    for (std::int64_t mn = 0; mn < count; ++mn) {
      for (std::int64_t k = 0; k < step; ++k) {
        const std::uint32_t address = hardware_address(
            descriptor, operand.major == Major::mn, static_cast<std::uint32_t>(mn),
            static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(layout.element_bytes));
        ASSERT_EQ(address - kBase,
                  layout.offset(first + mn, static_cast<std::int64_t>(s) * step + k))
            << layout.to_string() << " k-step " << s << " element " << mn << ", " << k;
      }
    }
  }
}

TEST(WgmmaOperand, KMajorReadsEveryElement) {
  for (const int swizzle : {0, 32, 64, 128}) {
    for (const int bytes : {1, 2, 4}) {
      for (const std::int64_t k_bytes : {32, 64, 128, 192, 256}) {
        if (swizzle != 0 && k_bytes % swizzle != 0) continue;
        for (const std::int64_t mn : {8, 16, 24, 40, 64, 72, 128, 200, 256}) {
          const SharedLayout layout = SharedLayout::panels(mn, k_bytes / bytes, bytes, swizzle);
          EXPECT_EQ(wgmma_operand(layout, 1).major, Major::k);
          expect_reads_the_layout(layout, 0, mn);
        }
        const SharedLayout tile = SharedLayout::panels(256, k_bytes / bytes, bytes, swizzle);
        for (std::int64_t first = 64; first < 256; first += 64) {
          expect_reads_the_layout(tile, first, 64);
        }
      }
    }
  }
}

TEST(WgmmaOperand, MnMajorReadsEveryElement) {
  for (const int swizzle : {0, 32, 64, 128}) {
    const std::int64_t span = swizzle == 0 ? 8 : swizzle / 2;
    for (const std::int64_t k : {16, 64, 80, 128, 256}) {
      for (std::int64_t mn = span; mn <= 256; mn += span) {
        const SharedLayout layout = SharedLayout::panels(k, mn, 2, swizzle).transposed();
        EXPECT_EQ(wgmma_operand(layout, 1).major, Major::mn);
        expect_reads_the_layout(layout, 0, mn);
      }
      const SharedLayout tile = SharedLayout::panels(k, 256, 2, swizzle).transposed();
      for (std::int64_t first = 64; first < 256; first += 64) {
        expect_reads_the_layout(tile, first, 64);
      }
    }
  }
}

// Values of kernels that run correctly on hardware, and the position of each field.
TEST(WgmmaOperand, FieldsOfA128By128Tile) {
  const SharedLayout tile = SharedLayout::panels(128, 128, 2, 128);
  const WgmmaOperand k_major = wgmma_operand(tile, 1);
  EXPECT_EQ(k_major.major, Major::k);
  EXPECT_EQ(k_major.leading_byte_offset, 16);
  EXPECT_EQ(k_major.stride_byte_offset, 1024);
  EXPECT_EQ(k_major.k_steps,
            (std::vector<std::int64_t>{0, 32, 64, 96, 16384, 16416, 16448, 16480}));
  EXPECT_EQ(k_major.high_bits, 1ull << 62 | 64ull << 32 | 1ull << 16);
  EXPECT_EQ(k_major.encode(0x2c20), k_major.high_bits | 0x2c2);
  EXPECT_EQ(wgmma_slice_offset(tile, 1, 64), 64 * 128);

  const WgmmaOperand mn_major = wgmma_operand(tile, 0);
  EXPECT_EQ(mn_major.major, Major::mn);
  EXPECT_EQ(mn_major.leading_byte_offset, 16384);
  EXPECT_EQ(mn_major.stride_byte_offset, 1024);
  EXPECT_EQ(mn_major.k_steps,
            (std::vector<std::int64_t>{0, 2048, 4096, 6144, 8192, 10240, 12288, 14336}));
  EXPECT_EQ(mn_major.high_bits, 1ull << 62 | 64ull << 32 | 1024ull << 16);
  EXPECT_EQ(wgmma_slice_offset(tile, 0, 64), 16384);

  EXPECT_EQ(wgmma_operand(SharedLayout::panels(64, 64, 2, 64), 1).high_bits >> 62, 2u);
  EXPECT_EQ(wgmma_operand(SharedLayout::panels(64, 64, 2, 32), 1).high_bits >> 62, 3u);
  EXPECT_EQ(wgmma_operand(SharedLayout::panels(64, 64, 2, 0), 1).high_bits >> 62, 0u);
}

template <typename Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.message();
  }
  return {};
}

void expect_mentions(const std::string& message, const std::string& text) {
  EXPECT_NE(message.find(text), std::string::npos) << "in: " << message;
}

TEST(WgmmaOperand, WhatHardwareLacksIsAnError) {
  const auto operand = [](const SharedLayout& layout, int k_axis) {
    return message_of([&] { wgmma_operand(layout, k_axis); });
  };
  expect_mentions(operand(SharedLayout::panels(64, 128, 1, 128), 0),
                  "K is axis 0 but axis 1 is contiguous, which only elements of 2 bytes may have, "
                  "not of 1");
  expect_mentions(operand(SharedLayout::panels(64, 64, 4, 128), 0), "not of 4");
  expect_mentions(operand(SharedLayout::panels(64, 16, 8, 128), 1), "elements of 8 bytes");
  expect_mentions(operand(SharedLayout::row_major({64, 64}, 2), 1),
                  "panels must be 16 bytes wide, not 128");
  expect_mentions(operand(SharedLayout::panels(64, 8, 2, 0), 1),
                  "a K of 8 elements of 2 bytes is not a multiple of 32");
  expect_mentions(operand(SharedLayout::panels(24, 64, 2, 128), 0),
                  "a K of 24 elements of 2 bytes is not a multiple of 32");
  expect_mentions(operand(SharedLayout::parse("[12x16*2|12@0:16,8@1:2,2@1:256]"), 1),
                  "axis 0 has 12 elements, not a multiple of 8");
  expect_mentions(operand(SharedLayout::parse("[64x64*2|64@0:144,64@1:2]"), 1),
                  "not made of panels");
  expect_mentions(operand(SharedLayout::parse("[8x192*2|8@0:128,64@1:2,3@1:1536|x3.4.3]"), 1),
                  "panels 1536 bytes apart, not a multiple of 1024");
  expect_mentions(operand(SharedLayout::panels(4096, 128, 2, 128), 0), "524288 bytes");
  expect_mentions(
      message_of([] { wgmma_slice_offset(SharedLayout::panels(64, 128, 2, 128), 0, 32); }),
      "a slice of axis 1 cannot start at 32, only at a multiple of 64 below 128");
  expect_mentions(
      message_of([] { wgmma_slice_offset(SharedLayout::panels(64, 128, 2, 128), 1, 64); }),
      "a slice of axis 0 cannot start at 64, only at a multiple of 8 below 64");
}

}  // namespace
}  // namespace tilewright::ir
