#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "ptx/launch_test_kernel.h"

// Tensor memory as PTX states it, by kernels that we do not print.
namespace tilewright::ptx {
namespace {

using test::Ran;
using test::run_body;

constexpr const char* kDeclarations =
    ".shared .align 16 .b32 place;\n.shared .align 1024 .b8 b[512];";

// %r3 becomes the address of so many columns.
std::string allocated(int columns) {
  return fmt::format(
      "mov.u32 %r2, place;\nsetp.ge.u32 %p1, %r0, 32;\n@%p1 bra joined;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], {};\njoined:\n"
      "bar.sync 0;\nld.shared.u32 %r3, [%r2];\n",
      columns);
}

std::string registers(int first, int count) {
  std::string list = "{";
  for (int i = 0; i < count; ++i) list += fmt::format("{}%r{}", i > 0 ? ", " : "", first + i);
  return list + "}";
}

std::string access(const char* operation, const std::string& shape, int count, const char* at) {
  const std::string list = registers(12, count), place = fmt::format("[{}]", at);
  const bool loads = operation[0] == 'l';
  return fmt::format(
      "tcgen05.{0}.sync.aligned.{1}.b32 {2}, {3};\ntcgen05.wait::{0}.sync.aligned;\n", operation,
      shape, loads ? list : place, loads ? place : list);
}

// Lane l has 100 l + i in column i of 16.
std::string filled() {
  std::string text = allocated(32) + "mul.lo.u32 %r4, %r0, 100;\n";
  for (int i = 0; i < 16; ++i) text += fmt::format("add.u32 %r{}, %r4, {};\n", 12 + i, i);
  return text + access("st", "32x32b.x16", 16, "%r3");
}

Ran run_of(const std::string& body, std::int64_t threads = 32) {
  return run_body(body, threads, kDeclarations);
}

TEST(PtxTensorMemory, EachShapeHasItsPlaces) {
  struct Case {
    const char* shape;
    int count, number;
    std::size_t thread;
    std::uint32_t lane, column;
  };
  const Case cases[] = {
      {"32x32b.x8", 8, 5, 7, 7, 5},   {"16x128b.x2", 4, 0, 1, 0, 1},
      {"16x128b.x2", 4, 0, 4, 1, 0},  {"16x128b.x2", 4, 1, 6, 9, 2},
      {"16x128b.x2", 4, 2, 31, 7, 7}, {"16x256b.x2", 8, 0, 1, 0, 2},
      {"16x256b.x2", 8, 1, 4, 1, 1},  {"16x256b.x2", 8, 2, 31, 15, 6},
      {"16x256b.x2", 8, 5, 2, 0, 13}, {"16x256b.x2", 8, 7, 8, 10, 9},
  };
  for (const Case& each : cases) {
    const Ran ran = run_of(filled() + access("ld", each.shape, each.count, "%r3") +
                           fmt::format("mov.u32 %r1, %r{};", 12 + each.number));
    ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
    EXPECT_EQ(ran.out[each.thread], 100 * each.lane + each.column)
        << each.shape << ", register " << each.number << " of thread " << each.thread;
  }
  // The second half of a warp's lanes, which windows of 32 have not.
  const std::string half = filled() + "add.u32 %r5, %r3, 0x100000;\n";
  EXPECT_EQ(run_of(half + access("ld", "16x128b.x1", 2, "%r5") + "mov.u32 %r1, %r12;").out[4],
            1700u);
  EXPECT_EQ(run_of(half + access("ld", "32x32b.x1", 1, "%r5")).fault(), "tensor_memory");
}

TEST(PtxTensorMemory, WhatIsNotThereIsFound) {
  const std::string ends = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, {};\n";
  const auto ended = [&](int columns) { return fmt::format(fmt::runtime(ends), columns); };
  EXPECT_EQ(run_of(allocated(64) + ended(64)).fault(), "");
  EXPECT_EQ(run_of(allocated(64) + ended(32)).fault(), "tensor_memory");
  EXPECT_EQ(run_of(allocated(64) + "add.u32 %r3, %r3, 0x10000;\n" + ended(64)).fault(),
            "tensor_memory");
  EXPECT_EQ(run_of(allocated(32) + access("ld", "32x32b.x1", 1, "%r3")).fault(), "uninitialised");
  const std::string behind = "add.u32 %r5, %r3, 24;\n";
  EXPECT_EQ(run_of(allocated(32) + behind + access("st", "32x32b.x8", 8, "%r5")).fault(), "");
  EXPECT_EQ(run_of(allocated(32) + behind + access("st", "32x32b.x16", 16, "%r5")).fault(),
            "tensor_memory");
  EXPECT_EQ(run_of(allocated(32) + behind + access("st", "16x256b.x2", 8, "%r5")).fault(),
            "tensor_memory");
  // Lanes of another warp.
  EXPECT_EQ(
      run_of(allocated(32) + "add.u32 %r5, %r3, 0x200000;\n" + access("st", "32x32b.x1", 1, "%r5"))
          .fault(),
      "tensor_memory");
  // What was there before.
  const std::string again =
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;\n"
      "ld.shared.u32 %r3, [%r2];\n";
  EXPECT_EQ(run_of(filled() + ended(32) + again + access("ld", "32x32b.x1", 1, "%r3")).fault(),
            "uninitialised");
}

// Sums of a product with the unit matrix, whose left operand lies in tensor memory, two elements
// of f16 in a column.
std::string product(int rows, bool accumulates) {
  std::string text = allocated(64);
  // b[n][k] of f16 in core matrices of 8 rows of 16 bytes.
  text +=
      "shl.b32 %r4, %r0, 2;\nmov.u32 %r5, b;\nadd.u32 %r4, %r4, %r5;\nmov.u32 %r6, 0;\n"
      "st.shared.u32 [%r4], %r6;\nbar.sync 0;\n";
  text +=
      "setp.lt.u32 %p2, %r0, 16;\nshr.u32 %r6, %r0, 3;\nand.b32 %r7, %r0, 7;\n"
      "mul.lo.u32 %r8, %r6, 384;\nmad.lo.u32 %r8, %r7, 18, %r8;\nadd.u32 %r8, %r8, %r5;\n"
      "mov.b16 %h1, 0x3c00;\n@%p2 st.shared.b16 [%r8], %h1;\n";
  // a[row][2 i + 1] = 1 in column i, where i is the row's number modulo 8; 2 in all even columns.
  text += "and.b32 %r9, %r0, 7;\n";
  for (int i = 0; i < 8; ++i) {
    text += fmt::format("setp.eq.u32 %p3, %r9, {0};\nselp.b32 %r{1}, 0x3c004000, 0x4000, %p3;\n", i,
                        12 + i);
  }
  text +=
      "and.b32 %r10, %r0, 0x60;\nshl.b32 %r10, %r10, 16;\nadd.u32 %r10, %r10, %r3;\n"
      "add.u32 %r11, %r10, 32;\n";
  text += access("st", "32x32b.x8", 8, "%r11");
  text += fmt::format(
      "bar.sync 0;\nadd.u32 %r11, %r3, 32;\nshr.u32 %r4, %r5, 4;\nand.b32 %r4, %r4, 0x3fff;\n"
      "cvt.u64.u32 %rd3, %r4;\nmov.u64 %rd4, {};\nor.b64 %rd3, %rd3, %rd4;\nmov.u32 %r6, {};\n"
      "setp.ne.u32 %p4, %r0, %r0;\n{}setp.eq.u32 %p5, %r0, 0;\n"
      "@%p5 tcgen05.mma.cta_group::1.kind::f16 [%r3], [%r11], %rd3, %r6, %p4;\nbar.sync 0;\n",
      std::int64_t{1} << 46 | std::int64_t{256 >> 4} << 32 | std::int64_t{128 >> 4} << 16,
      1 << 4 | (16 >> 3) << 17 | (rows >> 4) << 24,
      accumulates ? "setp.eq.u32 %p4, %r0, %r0;\n" : "");
  return text + access("ld", "32x32b.x16", 16, "%r10");
}

TEST(PtxTensorMemory, ProductsTakeTheirLeftOperandFromIt) {
  for (int column = 0; column < 16; ++column) {
    const Ran ran =
        run_of(product(128, false) + fmt::format("mov.u32 %r1, %r{};", 12 + column), 128);
    ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
    for (std::size_t lane : {0u, 1u, 37u, 127u}) {
      const std::uint32_t odd = column / 2 == static_cast<int>(lane % 8) ? 0x3f800000u : 0u;
      EXPECT_EQ(ran.out[lane], column % 2 == 0 ? 0x40000000u : odd) << lane << ", " << column;
    }
  }
  EXPECT_EQ(run_of(product(128, true), 128).fault(), "uninitialised");
  // Of 64 rows a warp has 16, and its other lanes have none.
  const Ran few = run_of(product(64, false), 128);
  ASSERT_EQ(few.fault(), "uninitialised");
  EXPECT_NE(few.report.faults[0].message.find("lane 16,"), std::string::npos)
      << few.report.faults[0].message;
}

// Columns that were given back still have what was in them: the first half of 64, of which the
// second is taken again.
TEST(PtxTensorMemory, ProductsTakeNoOperandFromColumnsThatAreFree) {
  std::string text = product(128, false);
  const auto replace = [&](std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("add.u32 %r11, %r10, 32;", "mov.u32 %r11, %r10;");
  replace("add.u32 %r11, %r3, 32;", "mov.u32 %r11, %r3;");
  replace("@%p5 tcgen05.mma",
          "@%p1 bra kept;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\n"
          "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;\nkept:\n"
          "bar.sync 0;\nld.shared.u32 %r3, [%r2];\nadd.u32 %r10, %r10, 32;\n@%p5 tcgen05.mma");
  const Ran ran = run_of(text, 128);
  ASSERT_EQ(ran.fault(), "tensor_memory");
  EXPECT_NE(ran.report.faults[0].message.find("does not hold"), std::string::npos)
      << ran.report.faults[0].message;
}

TEST(PtxTensorMemory, AnAllocationIsAPowerOfTwo) {
  for (const int columns : {16, 96, 1024}) {
    EXPECT_EQ(run_of(allocated(columns)).fault(), "tensor_memory") << columns;
  }
}

// Of 128 threads, each in its own lane: 100 l + i as above. %r10 is the address of their windows.
std::string filled_windows() {
  std::string text = allocated(32) + "mul.lo.u32 %r4, %r0, 100;\n";
  for (int i = 0; i < 16; ++i) text += fmt::format("add.u32 %r{}, %r4, {};\n", 12 + i, i);
  return text +
         "and.b32 %r10, %r0, 0x60;\nshl.b32 %r10, %r10, 16;\nadd.u32 %r10, %r10, %r3;\n"
         "setp.eq.u32 %p5, %r0, 0;\n" +
         access("st", "32x32b.x16", 16, "%r10") + "bar.sync 0;\n";
}

// What column `column` has behind the instructions. %p5: of thread 0.
Ran behind(const std::string& instructions, int column) {
  return run_of(filled_windows() + instructions + "\nbar.sync 0;\n" +
                    access("ld", "32x32b.x16", 16, "%r10") +
                    fmt::format("mov.u32 %r1, %r{};", 12 + column),
                128);
}

TEST(PtxTensorMemory, AShiftMovesEightColumnsDown) {
  for (const int column : {0, 3, 7, 8, 15}) {
    const Ran ran = behind("@%p5 tcgen05.shift.cta_group::1.down [%r3];", column);
    ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
    for (std::size_t lane = 0; lane < 128; ++lane) {
      const std::size_t from = column < 8 && lane > 0 ? lane - 1 : lane;
      ASSERT_EQ(ran.out[lane], 100 * from + column) << lane << ", " << column;
    }
  }
  EXPECT_EQ(
      behind("add.u32 %r3, %r3, 0x10000;\n@%p5 tcgen05.shift.cta_group::1.down [%r3];", 0).fault(),
      "tensor_memory");
  // Of 16 columns that were written, and of those behind them.
  for (const int first : {0, 1, 8, 9, 16, 24}) {
    const std::string shift = "add.u32 %r3, %r3, {};\n@%p5 tcgen05.shift.cta_group::1.down [%r3];";
    EXPECT_EQ(behind(fmt::format(fmt::runtime(shift), first), 0).fault(),
              first <= 8 ? "" : "uninitialised")
        << first;
  }
}

// 32 rows of 16 bytes, in core matrices of 128, of which word w has the number w.
Ran copied(const std::string& shape, const std::string& before = "",
           std::int64_t descriptor = std::int64_t{1} << 46, int column = 0) {
  return behind(
      "shl.b32 %r4, %r0, 2;\nmov.u32 %r5, b;\nadd.u32 %r4, %r4, %r5;\n"
      "st.shared.u32 [%r4], %r0;\nbar.sync 0;\nshr.u32 %r4, %r5, 4;\n"
      "cvt.u64.u32 %rd3, %r4;\n" +
          fmt::format("mov.u64 %rd4, {};\nor.b64 %rd3, %rd3, %rd4;\n",
                      descriptor | std::int64_t{128 >> 4} << 32 | 128 >> 4 << 16) +
          before + "@%p5 tcgen05.cp.cta_group::1." + shape + " [%r3], %rd3;",
      column);
}

TEST(PtxTensorMemory, ACopyOf32RowsGoesToEachWindow) {
  for (const int column : {0, 3, 4}) {
    const Ran ran = copied("32x128b.warpx4", "", std::int64_t{1} << 46, column);
    ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
    for (std::size_t lane = 0; lane < 128; ++lane) {
      ASSERT_EQ(ran.out[lane], column < 4 ? 4 * (lane % 32) + column : 100 * lane + column);
    }
  }
  EXPECT_EQ(copied("32x128b").fault(), "unsupported");
  EXPECT_EQ(copied("32x128b.warpx4", "add.u32 %r3, %r3, 0x200000;\n").fault(), "tensor_memory");
  EXPECT_EQ(copied("32x128b.warpx4", "", std::int64_t{1} << 47).fault(), "descriptor");
}

// A commit of CTA 0 of four arrives at the CTAs of the mask, each of which waits for its own.
Ran committed(int mask) {
  const std::string body = fmt::format(R"(
mov.u32 %r2, place;
mov.u32 %r4, %cluster_ctarank;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared.b64 [%r2], 1;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
setp.ne.u32 %p2, %r4, 0;
@%p2 bra committed;
mov.b16 %h1, {};
@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r2], %h1;
committed:
again: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
@%p3 bra over;
bra again;
over:
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;)",
                                       mask);
  LaunchInput input;
  input.grid = {4, 1, 1};
  input.cluster = 4;
  return run_body(body, 32, kDeclarations, input);
}

TEST(PtxTensorMemory, ACommitArrivesAtEachCtaOfItsMask) {
  EXPECT_EQ(committed(0b1111).fault(), "");
  for (int cta = 0; cta < 4; ++cta) EXPECT_NE(committed(0b1111 & ~(1 << cta)).fault(), "") << cta;
}

TEST(PtxTensorMemory, NoPairMultipliesOfWhichOneHasEnded) {
  LaunchInput input;
  input.grid = {2, 1, 1};
  input.cluster = 2;
  const std::string body =
      "mov.u32 %r4, %cluster_ctarank;\nsetp.ne.u32 %p1, %r4, 0;\n"
      "barrier.cluster.arrive.release.aligned;\n@%p1 bra end;\n"
      "barrier.cluster.wait.acquire.aligned;\n"
      "mov.u32 %r3, 0;\nmov.u64 %rd3, 0x4000404000010000;\nmov.u32 %r6, 0x10100490;\n"
      "setp.ne.u32 %p4, %r0, %r0;\nsetp.eq.u32 %p5, %r0, 0;\n"
      "@%p5 tcgen05.mma.cta_group::2.kind::f16 [%r3], %rd3, %rd3, %r6, %p4;\nend:";
  EXPECT_EQ(run_body(body, 32, kDeclarations, input).fault(), "exit");
}

// Of each pair of a cluster the first CTA alone multiplies.
TEST(PtxTensorMemory, TheSecondCtaOfAPairIssuesNoProduct) {
  for (const int rank : {1, 3}) {
    LaunchInput input;
    input.grid = {4, 1, 1};
    input.cluster = 4;
    const Ran ran = run_body(fmt::format(R"(
mov.u32 %r4, %cluster_ctarank;
setp.ne.u32 %p1, %r4, {};
@%p1 bra end;
mov.u32 %r3, 0;
mov.u64 %rd3, 0x4000404000010000;
mov.u32 %r6, 0x10100490;
setp.ne.u32 %p4, %r0, %r0;
setp.eq.u32 %p5, %r0, 0;
@%p5 tcgen05.mma.cta_group::2.kind::f16 [%r3], %rd3, %rd3, %r6, %p4;
end:)",
                                         rank),
                             32, kDeclarations, input);
    ASSERT_EQ(ran.fault(), "tensor_memory") << rank;
    EXPECT_NE(ran.report.faults[0].message.find("by the second CTA of a pair"), std::string::npos)
        << ran.report.faults[0].message;
  }
}

}  // namespace
}  // namespace tilewright::ptx
