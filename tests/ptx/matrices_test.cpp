#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ptx/launch_test_kernel.h"

// Where products of a warpgroup find their operands in shared memory, by the PTX manual's canonical
// layouts: https://docs.nvidia.com/cuda/parallel-thread-execution, "Strides" of wgmma.
namespace tilewright::ptx {
namespace {

using test::kernel_text;

constexpr int kM = 64, kN = 128;
constexpr int kHalf = 32768;  // of shared memory, for each operand

// How a descriptor says that an operand lies.
struct Layout {
  const char* name;
  bool transposed;  // M or N is contiguous, not K
  int row;          // bytes of a row of the swizzle; 16 without one
  int leading, stride;
  int element = 2;  // bytes

  // In bytes from the operand's start.
  int place(int mn, int k) const {
    int at = 0;
    if (row == 16) {  // matrices of 8 rows of 16 bytes
      at = transposed
               ? mn % 8 * 2 + mn / 8 * stride + k % 8 * 16 + k / 8 * leading
               : mn % 8 * 16 + mn / 8 * stride + k * element % 16 + k * element / 16 * leading;
    } else if (transposed) {
      const int wide = row / 2;
      at = mn % wide * 2 + mn / wide * leading + k % 8 * row + k / 8 * stride;
    } else {
      at = mn % 8 * row + mn / 8 * stride + k * element;
    }
    return at ^ (at / 128 % (row / 16)) * 16;
  }
  std::uint64_t descriptor() const {
    const std::uint64_t swizzle = row == 128 ? 1 : row == 64 ? 2 : row == 32 ? 3 : 0;
    return static_cast<std::uint64_t>(leading) >> 4 << 16 |
           static_cast<std::uint64_t>(stride) >> 4 << 32 | swizzle << 62;
  }
};

const Layout kLayouts[] = {
    {"K-major", false, 16, 4096, 256},
    {"K-major, other strides", false, 16, 128, 512},
    {"K-major, 32 bytes", false, 32, 16, 512},
    {"K-major, 64 bytes", false, 64, 16, 1024},
    {"K-major, 128 bytes", false, 128, 16, 2048},
    {"MN-major", true, 16, 8192, 384},
    {"MN-major, other strides", true, 16, 128, 512},
    {"MN-major, 32 bytes", true, 32, 768, 8192},
    {"MN-major, 64 bytes", true, 64, 1536, 8192},
    {"MN-major, 128 bytes", true, 128, 3072, 8192},
};

// What lies in element `i` of shared memory.
int value_at(int i) { return i * 73 % 31 - 15; }

// Two bytes, word r3 of shared memory, as %h0: elements of so many bytes.
std::string fill(int element) {
  std::string text;
  const int count = 2 / element;
  for (int e = 0; e < count; ++e) {
    text += fmt::format(
        "mad.lo.u32 %r4, %r3, {}, {}; rem.u32 %r4, %r4, 31; sub.s32 %r4, %r4, 15;\n"
        "cvt.rn.f16.s32 %h0, %r4; cvt.rn.f32.s32 %f{}, %r4;\n",
        73 * count, 73 * e, e);
  }
  return element == 2 ? text : text + "cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f0;";
}

// Of A in registers: lane l has of register j two elements of row l / 4 + 8 (j % 2) of its warp.
int value_of(int row, int k) { return 3 * row % 31 - k; }
std::string in_registers() {
  std::string text =
      "shr.u32 %r6, %r0, 5; shl.b32 %r6, %r6, 4; shr.u32 %r7, %r0, 2;\n"
      "and.b32 %r7, %r7, 7; add.u32 %r6, %r6, %r7;\n"
      "and.b32 %r7, %r0, 3; shl.b32 %r7, %r7, 1;\n";
  for (int j = 0; j < 4; ++j) {
    for (int e = 0; e < 2; ++e) {
      text += fmt::format(
          "add.u32 %r8, %r6, {}; mul.lo.u32 %r8, %r8, 3; rem.u32 %r8, %r8, 31;\n"
          "sub.s32 %r8, %r8, %r7; sub.s32 %r8, %r8, {}; cvt.rn.f16.s32 %h{}, %r8;\n",
          j % 2 * 8, j / 2 * 8 + e, e);
    }
    text += fmt::format("mov.b32 %r{}, {{%h0, %h1}};\n", 10 + j);
  }
  return text;
}

// Fills shared memory, multiplies, and stores register r of thread t to word 128 r + t of the
// results. A lies in registers where it has no layout.
std::string product_text(const Layout* a, const Layout& b, const float* results) {
  std::string registers, stores;
  for (int r = 0; r < kN / 2; ++r) {
    registers += fmt::format("{}%d{}", r == 0 ? "" : ", ", r);
    stores += fmt::format("st.global.f32 [%rd5+{}], %d{};\n", 512 * r, r);
  }
  std::string majors;  // which operands of 16 bits alone may choose
  if (b.element == 2 && a) majors += fmt::format(", {:d}", a->transposed);
  if (b.element == 2) majors += fmt::format(", {:d}", b.transposed);
  return kernel_text(
      fmt::format(".shared .align 1024 .b8 s[{}];\n.reg .f32 %d<{}>;", 2 * kHalf, kN / 2),
      fmt::format(R"(
mov.u32 %r2, s;
mov.u32 %r3, %r0;
fill:
{}
shl.b32 %r5, %r3, 1; add.u32 %r5, %r5, %r2;
st.shared.b16 [%r5], %h0;
add.u32 %r3, %r3, 128; setp.lt.u32 %p1, %r3, {};
@%p1 bra fill;
{}
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r4, %r2, 4; cvt.u64.u32 %rd3, %r4;
mov.u64 %rd4, {:#x}; or.b64 %rd2, %rd3, %rd4;
add.u64 %rd3, %rd3, {}; mov.u64 %rd4, {:#x}; or.b64 %rd3, %rd3, %rd4;
setp.ne.u32 %p1, 0, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{} {{{}}}, {}, %rd3, %p1, 1, 1{};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mov.u64 %rd5, {:#x};
mul.wide.u32 %rd4, %r0, 4; add.u64 %rd5, %rd5, %rd4;
{})",
                  fill(b.element), kHalf, a ? "" : in_registers(), a ? a->descriptor() : 0,
                  kHalf / 16, b.descriptor(), kN, 32 / b.element,
                  b.element == 2 ? "f16.f16" : "e4m3.e4m3", registers,
                  a ? "%rd2" : "{%r10, %r11, %r12, %r13}", majors,
                  reinterpret_cast<std::uint64_t>(results), stores));
}

void expect_product(const Layout* a, const Layout& b) {
  std::vector<float> results(std::size_t{kM} * kN, -1.0f);
  LaunchInput input;
  const auto begin = reinterpret_cast<std::uint64_t>(results.data());
  input.memory.push_back({"results", begin, begin + results.size() * sizeof(float)});
  const test::Ran ran = test::run(product_text(a, b, results.data()), 128, input);
  ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      float wanted = 0;
      for (int k = 0; k < 32 / b.element; ++k) {
        const int left = a ? value_at(a->place(row, k) / a->element) : value_of(row, k);
        wanted += static_cast<float>(left * value_at((kHalf + b.place(column, k)) / b.element));
      }
      const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
      const int number = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
      ASSERT_EQ(results[static_cast<std::size_t>(128 * number + thread)], wanted)
          << row << ", " << column;
    }
  }
}

TEST(PtxMatrices, LieAsDescriptorsSay) {
  const Layout& plain = kLayouts[0];
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    expect_product(&layout, plain);
    expect_product(&plain, layout);
    expect_product(nullptr, layout);
  }
}

TEST(PtxMatrices, OfBytesAreKMajor) {
  for (Layout layout : kLayouts) {
    if (layout.transposed) continue;
    SCOPED_TRACE(layout.name);
    layout.element = 1;
    expect_product(&layout, layout);
  }
}

}  // namespace
}  // namespace tilewright::ptx
