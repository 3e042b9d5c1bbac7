#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <string_view>

#include "ptx/launch_test_kernel.h"

// What instructions do, lane by lane.
namespace tilewright::ptx {
namespace {

using test::kernel_text;
using test::ordered;
using test::run;
using test::run_body;

std::uint32_t result(const std::string& body, std::size_t lane = 3) {
  const test::Ran ran = run_body(body);
  EXPECT_TRUE(ran.report.faults.empty()) << ran.report.faults[0].message;
  return ran.out[lane];
}
float real(const std::string& body) { return std::bit_cast<float>(result(body)); }

TEST(PtxExecute, Integers) {
  EXPECT_EQ(result("sub.s32 %r1, %r0, 5;"), static_cast<std::uint32_t>(-2));
  EXPECT_EQ(result("mov.u32 %r2, -7; div.s32 %r1, %r2, 2;"), static_cast<std::uint32_t>(-3));
  EXPECT_EQ(result("mov.u32 %r2, -7; rem.s32 %r1, %r2, 2;"), static_cast<std::uint32_t>(-1));
  EXPECT_EQ(result("mov.u32 %r2, -7; shr.s32 %r1, %r2, 1;"), static_cast<std::uint32_t>(-4));
  EXPECT_EQ(result("mov.u32 %r2, -7; shr.u32 %r1, %r2, 40;"), 0u);
  EXPECT_EQ(result("mov.u32 %r2, 0x80000001; mul.hi.u32 %r1, %r2, 6;"), 3u);
  EXPECT_EQ(result("mov.u32 %r2, 5; mad.lo.s32 %r1, %r2, %r0, -1;"), 14u);
  EXPECT_EQ(result("mov.u32 %r2, 0x33221100; prmt.b32 %r1, %r2, 0x77665544, 0x7150;"), 0x77115500u);
  EXPECT_EQ(result("mov.u32 %r2, 0x80; prmt.b32 %r1, %r2, 0, 0x8888;"), 0xffffffffu);
  EXPECT_EQ(result("mov.u32 %r2, 0xff00; bfe.s32 %r1, %r2, 8, 8;"), 0xffffffffu);
  EXPECT_EQ(result("mov.u32 %r2, 0xff00; bfe.u32 %r1, %r2, 8, 8;"), 0xffu);
  EXPECT_EQ(result("mov.u32 %r2, 1; mov.u32 %r3, 2; shf.l.wrap.b32 %r1, %r2, %r3, 33;"), 4u);
  EXPECT_EQ(result("mov.u32 %r2, 0xff; popc.b32 %r1, %r2;"), 8u);
  // The first and not the second, whatever the third.
  EXPECT_EQ(result("mov.u32 %r2, 0xff00; mov.u32 %r3, 0xf0f0; lop3.b32 %r1, %r2, %r3, %r0, 0x30;"),
            0x0f00u);
  EXPECT_EQ(result("setp.lt.s32 %p1, %r0, 5; selp.b32 %r1, 1, 2, %p1;"), 1u);
  EXPECT_EQ(result("mov.u32 %r2, -1; setp.lt.u32 %p1, %r2, 5; selp.b32 %r1, 1, 2, %p1;"), 2u);
}

TEST(PtxExecute, IntegersAtTheirEdges) {
  EXPECT_EQ(result("mov.u32 %r2, -7; shr.u32 %r1, %r2, 32;"), 0u);
  EXPECT_EQ(result("mov.u32 %r2, -7; shr.s32 %r1, %r2, 32;"), 0xffffffffu);
  EXPECT_EQ(result("mov.u32 %r2, -7; rem.s32 %r1, %r2, -1;"), 0u);
  const auto funnel = [](const char* how) {
    return result(
        fmt::format("mov.u32 %r2, 1; mov.u32 %r3, 2; shf.{}.b32 %r1, %r2, %r3, 33;", how));
  };
  EXPECT_EQ(funnel("l.clamp"), 1u);
  EXPECT_EQ(funnel("r.clamp"), 2u);
  EXPECT_EQ(funnel("r.wrap"), 0u);
}

TEST(PtxExecute, FloatsAndConversions) {
  EXPECT_EQ(real("mov.f32 %f1, 0f40000000; fma.rn.f32 %f2, %f1, %f1, %f1; mov.b32 %r1, %f2;"), 6);
  EXPECT_EQ(result("mov.f32 %f1, 0f7fc00000; mov.f32 %f2, 0f3f800000; max.f32 %f3, %f1, %f2; "
                   "mov.b32 %r1, %f3;"),
            0x3f800000u);
  EXPECT_EQ(result("mov.f32 %f1, 0f7fc00000; setp.ne.f32 %p1, %f1, %f1; selp.b32 %r1, 1, 2, %p1;"),
            2u);
  EXPECT_EQ(result("mov.f32 %f1, 0f7fc00000; setp.neu.f32 %p1, %f1, %f1; selp.b32 %r1, 1, 2, %p1;"),
            1u);
  EXPECT_EQ(result("mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40000000; "
                   "cvt.rn.bf16x2.f32 %r1, %f1, %f2;"),
            0x3f804000u);
  EXPECT_EQ(real("mov.f32 %f1, 0fc0200000; abs.f32 %f2, %f1; mov.b32 %r1, %f2;"), 2.5f);
  // What is flushed to zero keeps its sign.
  EXPECT_EQ(result("mov.f32 %f1, 0f80000001; cvt.rzi.ftz.f32.f32 %f2, %f1; mov.b32 %r1, %f2;"),
            0x80000000u);
  EXPECT_EQ(result("mov.f32 %f1, 0f80000000; abs.f32 %f2, %f1; mov.b32 %r1, %f2;"), 0u);
  EXPECT_EQ(result("mov.f32 %f1, 0f00000000; neg.f32 %f2, %f1; mov.b32 %r1, %f2;"), 0x80000000u);
  // Of two halves both signs turn, and of one its own.
  for (const std::string type : {"f16", "bf16"}) {
    EXPECT_EQ(result("mov.b32 %r2, 0x3c00bc01; neg." + type + "x2 %r1, %r2;"), 0xbc003c01u);
    EXPECT_EQ(result("mov.b16 %h0, 0x3c01; neg." + type + " %h1, %h0; cvt.u32.u16 %r1, %h1;"),
              0xbc01u);
  }
  EXPECT_EQ(result("mov.f32 %f1, 0f40200000; cvt.rni.s32.f32 %r1, %f1;"), 2u);
  EXPECT_EQ(result("mov.f32 %f1, 0fc3480000; cvt.rni.sat.s8.f32 %r1, %f1;"), 0xffffff80u);
  EXPECT_EQ(result("mov.f32 %f1, 0f00000001; ex2.approx.ftz.f32 %f2, %f1; mov.b32 %r1, %f2;"),
            0x3f800000u);
  EXPECT_EQ(result("mov.f32 %f1, 0fc3200000; ex2.approx.ftz.f32 %f2, %f1; mov.b32 %r1, %f2;"), 0u);
  // 2^24 - 1/4 is no float: downwards it is 2^24 - 1.
  EXPECT_EQ(real("mov.f32 %f1, 0f4b800000; mov.f32 %f2, 0fbe800000; add.rm.f32 %f3, %f1, %f2; "
                 "mov.b32 %r1, %f3;"),
            16777215);
  // Two at a time: 1 * 2 + 1 and 3 * 2 + 3, of which the second comes out.
  EXPECT_EQ(real("mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40000000; "
                 "mov.b64 %rd3, {%f1, %f2}; mov.b64 %rd2, {%f3, %f3}; "
                 "fma.rn.f32x2 %rd3, %rd3, %rd2, %rd3; mov.b64 {%f1, %f2}, %rd3; "
                 "mov.b32 %r1, %f2;"),
            9.0f);
  // 2^24 + 1 is no float: to nearest it is 2^24, and 2^24 + 1.5 towards zero is 2^24 too.
  EXPECT_EQ(real("mov.f32 %f1, 0f4b800000; mov.f32 %f2, 0f3fc00000; add.rz.f32 %f3, %f1, %f2; "
                 "mov.b32 %r1, %f3;"),
            16777216.0f);
  EXPECT_EQ(real("mov.f32 %f1, 0f4b800000; mov.f32 %f2, 0f3fc00000; add.rn.f32 %f3, %f1, %f2; "
                 "mov.b32 %r1, %f3;"),
            16777218.0f);
}

// Ties, zeros of both signs, and what a format of 16 bits rounds once.
TEST(PtxExecute, RoundingAndZeros) {
  const auto two = [](const char* operation, std::uint32_t a, std::uint32_t b) {
    return result(
        fmt::format("mov.f32 %f1, 0f{:08x}; mov.f32 %f2, 0f{:08x}; {} %f3, %f1, %f2; "
                    "mov.b32 %r1, %f3;",
                    a, b, operation));
  };
  const std::uint32_t zero = 0, minus_zero = 0x80000000;
  EXPECT_EQ(two("min.f32", zero, minus_zero), minus_zero);
  EXPECT_EQ(two("min.f32", minus_zero, zero), minus_zero);
  EXPECT_EQ(two("max.f32", zero, minus_zero), zero);
  EXPECT_EQ(two("max.f32", minus_zero, zero), zero);
  // (1 + 2^-23)^2 = 1 + 2^-22 + 2^-46, and (1 + 3 2^-23)^2 is nearer to what lies above.
  EXPECT_EQ(two("mul.rz.f32", 0x3f800001, 0x3f800001), 0x3f800002u);
  EXPECT_EQ(two("mul.rz.f32", 0x3f800fff, 0x3f800fff), 0x3f801fffu);
  EXPECT_EQ(two("mul.rn.f32", 0x3f800fff, 0x3f800fff), 0x3f801fffu + 1);
  EXPECT_EQ(result("mov.f32 %f1, 0fc0200000; cvt.rzi.s32.f32 %r1, %f1;"),
            static_cast<std::uint32_t>(-2));
  EXPECT_EQ(result("mov.f32 %f1, 0fc0200000; cvt.rmi.s32.f32 %r1, %f1;"),
            static_cast<std::uint32_t>(-3));
  EXPECT_EQ(result("mov.u32 %r2, 300; cvt.sat.u8.u32 %r1, %r2;"), 255u);
  EXPECT_EQ(result("mov.u32 %r2, 300; cvt.sat.s8.s32 %r1, %r2;"), 127u);
  const auto half_of = [](const char* number) {
    return run_body(
        fmt::format("mov.f64 %d1, {}; cvt.rn.f16.f64 %h1, %d1; cvt.u32.u16 %r1, %h1;", number), 32,
        ".reg .f64 %d<2>;");
  };
  EXPECT_EQ(half_of("0d3ff8000000000000").out[3], 0x3e00u);
  // 1 + 2^-11 + 2^-40 lies above the middle, and 1 + 2^-11, which f32 makes of it, in the middle.
  EXPECT_EQ(half_of("0d3ff0020000001000").fault(), "unsupported");
  // The largest number, twice: towards zero no sum of numbers is infinite.
  EXPECT_EQ(two("add.rz.f32", 0x7f7fffff, 0x7f7fffff), 0x7f7fffffu);
  EXPECT_EQ(two("add.rz.f32", 0xff7fffff, 0xff7fffff), 0xff7fffffu);
  EXPECT_EQ(two("mul.rz.f32", 0xff7fffff, 0x7f7fffff), 0xff7fffffu);
  EXPECT_EQ(two("add.rz.f32", 0xff800000, 0x7f7fffff), 0xff800000u);
  EXPECT_EQ(result("mov.u32 %r2, -300; cvt.sat.s8.s32 %r1, %r2;"),
            static_cast<std::uint32_t>(-128));
  // The lower of two 8-bit floats comes first: 1 and 2.
  EXPECT_EQ(result("mov.b16 %h0, 0x4038; cvt.rn.f16x2.e4m3x2 %r1, %h0;"), 0x40003c00u);
  // 7 * 37 = 259 lies between 258 and 260 of bf16, and 2^-30 decides, which a float would not keep.
  const auto fused = [](std::uint32_t addend) {
    return result(
        fmt::format("mov.b32 %r2, 0x40e040e0; mov.b32 %r3, 0x42144214;\n"
                    "mov.b32 %r4, {:#x}; fma.rn.bf16x2 %r1, %r2, %r3, %r4;",
                    addend));
  };
  EXPECT_EQ(fused(0xb0803080), 0x43814382u);
  EXPECT_EQ(fused(0x3080b080), 0x43824381u);
  EXPECT_EQ(result("setp.lt.s32 %p1, %r0, 5; setp.lt.or.s32 %p2, %r0, 0, %p1;\n"
                   "selp.b32 %r1, 1, 2, %p2;"),
            1u);
  EXPECT_EQ(result("setp.lt.s32 %p1, %r0, 5; setp.lt.or.s32 %p2, %r0, 5, %p1;\n"
                   "selp.b32 %r1, 1, 2, %p2;"),
            1u);
  EXPECT_EQ(result("setp.lt.s32 %p1, %r0, 5; setp.lt.and.s32 %p2, %r0, 0, %p1;\n"
                   "selp.b32 %r1, 1, 2, %p2;"),
            2u);
}

// What 8 becomes in each lane's word, and that the old value comes back.
TEST(PtxExecute, AtomicsOfIntegers) {
  const auto becomes = [](const std::string& how, const std::string& operands) {
    return result(
        fmt::format("mov.u32 %r2, 8; st.global.u32 [%rd1], %r2;\n"
                    "atom.global.{} %r3, [%rd1], {};\nld.global.u32 %r1, [%rd1];\n"
                    "setp.ne.u32 %p1, %r3, 8; @%p1 trap;",
                    how, operands));
  };
  EXPECT_EQ(becomes("add.u32", "5"), 13u);
  EXPECT_EQ(becomes("min.s32", "-5"), static_cast<std::uint32_t>(-5));
  EXPECT_EQ(becomes("min.u32", "-5"), 8u);
  EXPECT_EQ(becomes("max.s32", "-5"), 8u);
  EXPECT_EQ(becomes("max.u32", "-5"), static_cast<std::uint32_t>(-5));
  EXPECT_EQ(becomes("exch.b32", "5"), 5u);
  EXPECT_EQ(becomes("cas.b32", "8, 5"), 5u);
  EXPECT_EQ(becomes("cas.b32", "7, 5"), 8u);
  EXPECT_EQ(becomes("and.b32", "12"), 8u);
  EXPECT_EQ(becomes("or.b32", "3"), 11u);
  EXPECT_EQ(becomes("xor.b32", "12"), 4u);
  // Counts from 0 to the operand, and back.
  EXPECT_EQ(becomes("inc.u32", "9"), 9u);
  EXPECT_EQ(becomes("inc.u32", "8"), 0u);
  EXPECT_EQ(becomes("dec.u32", "8"), 7u);
  EXPECT_EQ(becomes("dec.u32", "5"), 5u);
}

TEST(PtxExecute, LoadsOfBytesKeepTheirSign) {
  const std::string stored = "mov.u32 %r2, 0x8080; st.global.u32 [%rd1], %r2;\n";
  EXPECT_EQ(result(stored + "ld.global.s8 %r1, [%rd1];"), 0xffffff80u);
  EXPECT_EQ(result(stored + "ld.global.u8 %r1, [%rd1];"), 0x80u);
  EXPECT_EQ(result(stored + "ld.global.s16 %r1, [%rd1];"), 0xffff8080u);
  EXPECT_EQ(result(stored + "ld.global.u16 %r1, [%rd1];"), 0x8080u);
  EXPECT_EQ(result(stored + "ld.global.cs.u16 %r1, [%rd1];"), 0x8080u);
}

// Of lane 3, and of the lane that has no other to read from.
TEST(PtxExecute, WhatLanesDoTogether) {
  const std::string up = "shfl.sync.up.b32 %r1|%p1, %r0, 1, 0, -1;\n@!%p1 mov.u32 %r1, 99;";
  EXPECT_EQ(result(up), 2u);
  EXPECT_EQ(result(up, 0), 99u);
  EXPECT_EQ(result(up, 1), 0u);
  const std::string down = "shfl.sync.down.b32 %r1|%p1, %r0, 1, 31, -1;\n@!%p1 mov.u32 %r1, 99;";
  EXPECT_EQ(result(down), 4u);
  EXPECT_EQ(result(down, 31), 99u);
  // Segments of 8 lanes.
  EXPECT_EQ(result("shfl.sync.idx.b32 %r1, %r0, 2, 0x181f, -1;", 13), 10u);
  EXPECT_EQ(result("redux.sync.min.s32 %r1, %r0, -1;"), 0u);
  EXPECT_EQ(result("redux.sync.max.s32 %r1, %r0, -1;"), 31u);
  EXPECT_EQ(result("redux.sync.add.u32 %r1, %r0, -1;"), 31u * 32 / 2);
  const auto votes = [](const char* mode, int below) {
    return result(
        fmt::format("setp.lt.s32 %p1, %r0, {}; vote.sync.{}.pred %p2, %p1, -1;\n"
                    "selp.b32 %r1, 1, 0, %p2;",
                    below, mode));
  };
  EXPECT_EQ(votes("all", 32), 1u);
  EXPECT_EQ(votes("all", 31), 0u);
  EXPECT_EQ(votes("any", 1), 1u);
  EXPECT_EQ(votes("any", 0), 0u);
  EXPECT_EQ(votes("uni", 32), 1u);
  EXPECT_EQ(votes("uni", 0), 1u);
  EXPECT_EQ(votes("uni", 7), 0u);
}

// Matrices of 8 rows of 16 bytes; element c of row r is 16 r + c.
TEST(PtxExecute, MatricesAreTransposed) {
  const auto loaded = [](const char* transposed, std::size_t lane) {
    const std::string body = fmt::format(R"(
shr.u32 %r2, %r0, 2;
shl.b32 %r2, %r2, 4;
and.b32 %r3, %r0, 3;
shl.b32 %r3, %r3, 1;
add.u32 %r2, %r2, %r3;
add.u32 %r3, %r2, 1;
shl.b32 %r3, %r3, 16;
or.b32 %r2, %r2, %r3;
mov.u32 %r4, s;
shl.b32 %r5, %r0, 2;
add.u32 %r5, %r5, %r4;
st.shared.u32 [%r5], %r2;
bar.warp.sync -1;
and.b32 %r5, %r0, 7;
shl.b32 %r5, %r5, 4;
add.u32 %r5, %r5, %r4;
ldmatrix.sync.aligned.m8n8.x1{}.shared.b16 {{%r1}}, [%r5];)",
                                         transposed);
    const test::Ran ran = run_body(body, 32, ".shared .align 128 .b8 s[128];");
    EXPECT_EQ(ran.fault(), "");
    return ran.out[lane];
  };
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t along = lane % 4 * 2, across = lane / 4;
    EXPECT_EQ(loaded("", lane), (16 * across + along) | (16 * across + along + 1) << 16);
    EXPECT_EQ(loaded(".trans", lane), (16 * along + across) | (16 * (along + 1) + across) << 16);
  }
}

// All that come to a named barrier say the same number of threads.
TEST(PtxExecute, ThreadsOfANamedBarrierAgree) {
  const auto fault = [](int second) {
    return run_body(fmt::format("setp.lt.u32 %p1, %r0, 32; @%p1 bra first;\n"
                                "bar.sync 1, {};\nbra end;\nfirst: bar.sync 1, 64;\nend:",
                                second),
                    64)
        .fault();
  };
  EXPECT_EQ(fault(64), "");
  EXPECT_EQ(fault(96), "named_barrier");
}

TEST(PtxExecute, LanesPartAndMeetAgain) {
  // Odd lanes take one way, and loops differ in length.
  const test::Ran ran = run_body(
      "and.b32 %r2, %r0, 1; setp.eq.s32 %p1, %r2, 1; mov.u32 %r1, 0;\n"
      "@%p1 bra odd;\nadd.s32 %r1, %r1, 100;\nbra met;\nodd: add.s32 %r1, %r1, 200;\nmet:\n"
      "mov.u32 %r3, 0;\nagain: add.s32 %r1, %r1, 1; add.s32 %r3, %r3, 1;\n"
      "setp.lt.s32 %p2, %r3, %r0; @%p2 bra again;\n"
      "bar.warp.sync -1;\nshfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\nadd.s32 %r1, %r1, %r4;");
  ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
  EXPECT_EQ(ran.out[4], 100u + 4 + 200 + 5);
  EXPECT_EQ(ran.report.events[0].at(0).text(), "warp_sync() by lanes 0xffffffff");
}

TEST(PtxExecute, VotesAndElection) {
  EXPECT_EQ(result("setp.lt.s32 %p1, %r0, 4; vote.sync.ballot.b32 %r1, %p1, -1;"), 0xfu);
  EXPECT_EQ(result("elect.sync _|%p1, -1; selp.b32 %r1, 1, 0, %p1;", 0) +
                result("elect.sync _|%p1, -1; selp.b32 %r1, 1, 0, %p1;", 1),
            1u);
}

struct Faulty {
  const char* name;
  const char* declarations;
  const char* body;
  const char* kind;
};

// Each is silent without the check that it names.
TEST(PtxExecute, Faults) {
  const char* const shared = ".shared .align 8 .b8 s[64];";
  const Faulty cases[] = {
      {"beyond a tensor", "", "ld.global.u32 %r1, [%rd1+4096];", "out_of_bounds"},
      {"not aligned", "", "ld.global.u32 %r1, [%rd1+2];", "misaligned"},
      {"beyond shared memory", shared, "mov.u32 %r2, s; ld.shared.u32 %r1, [%r2+64];",
       "out_of_bounds"},
      {"never written", shared, "mov.u32 %r2, s; ld.shared.u32 %r1, [%r2];", "uninitialised"},
      {"no barrier", shared, "mov.u32 %r2, s; mbarrier.arrive.shared::cta.b64 _, [%r2];",
       "mbarrier"},
      {"nobody comes", shared,
       "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0; mov.u32 %r1, 1;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], %r1;\nbar.warp.sync -1;\n"
       "w: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra w;",
       "deadlock"},
      {"too many come", shared,
       "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0; mov.u32 %r1, 5;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], %r1;\nbar.warp.sync -1;\n"
       "setp.lt.s32 %p1, %r0, 4; @%p1 mbarrier.arrive.shared::cta.b64 _, [%r2];\n"
       "mbarrier.arrive.shared::cta.b64 _, [%r2], 2;",
       "mbarrier"},
      {"a barrier twice", shared,
       "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;",
       "mbarrier"},
      {"a barrier of nobody", shared,
       "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], 0;",
       "mbarrier"},
      {"a parity that is none", shared,
       "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\nbar.warp.sync -1;\n"
       "w: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 2; @!%p2 bra w;",
       "mbarrier"},
      {"more bytes than a barrier counts", shared,
       "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n"
       "@%p1 mbarrier.expect_tx.shared::cta.b64 [%r2], 1048576;",
       "mbarrier"},
      {"several barriers at once", shared,
       "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2+8], 1;\n"
       "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r2];\n"
       "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r2+8];\nbar.warp.sync -1;\n"
       "setp.lt.s32 %p1, %r0, 4; @%p1 add.s32 %r2, %r2, 8;\n"
       "w: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra w;",
       "divergence"},
      {"several barriers at once, the first lane's first", shared,
       "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2+8], 1;\n"
       "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r2];\n"
       "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r2+8];\nbar.warp.sync -1;\n"
       "setp.gt.s32 %p1, %r0, 4; @%p1 add.s32 %r2, %r2, 8;\n"
       "w: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra w;",
       "divergence"},
      {"a barrier for some lanes", "", "setp.lt.s32 %p1, %r0, 4; @%p1 bar.sync 0;", "divergence"},
      {"a barrier of other threads", "", "bar.sync 1, 48;", "named_barrier"},
      {"a barrier that others do not reach", "", "bar.sync 1, 64;", "deadlock"},
      {"another CTA than there is", shared, "mapa.shared::cluster.u32 %r1, %r0, 1;",
       "out_of_bounds"},
      {"a shuffle without its lane", "",
       "setp.lt.s32 %p1, %r0, 4; @%p1 shfl.sync.idx.b32 %r1, %r0, 9, 31, -1;", "divergence"},
      {"a shuffle from a lane that it does not name", "",
       "setp.lt.s32 %p1, %r0, 4; @%p1 shfl.sync.idx.b32 %r1, %r0, 9, 31, 15;", "divergence"},
      {"a division by 0 in one lane", "", "sub.s32 %r2, %r0, 9; div.s32 %r1, %r0, %r2;",
       "division"},
      {"a remainder by 0 in one lane", "", "rem.u32 %r1, %r0, %r0;", "division"},
      {"a trap", "", "trap;", "trap"},
      {"no end", "", "l: add.s32 %r1, %r1, 1; bra l;", "hang"},
  };
  for (const Faulty& faulty : cases) {
    SCOPED_TRACE(faulty.name);
    const test::Ran ran = run_body(faulty.body, 32, faulty.declarations);
    EXPECT_EQ(ran.fault(), faulty.kind);
    EXPECT_GT(ran.report.faults.at(0).line, 0);
  }
}

TEST(PtxExecute, ArrivalsOfSeveralCountAsSoMany) {
  const auto run_with = [](const char* count) {
    const std::string body =
        "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0;\n"
        "@%p1 mbarrier.init.shared::cta.b64 [%r2], 5;\nbar.warp.sync -1;\n"
        "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r2], 3;\n"
        "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r2], " +
        std::string(count) +
        ";\nw: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra w;\n"
        "mov.u32 %r1, 7;";
    return run_body(body, 32, ".shared .align 8 .b8 s[64];");
  };
  const test::Ran all = run_with("2");
  EXPECT_EQ(all.fault(), "");
  EXPECT_EQ(all.out[9], 7u);
  EXPECT_EQ(run_with("1").fault(), "deadlock");
}

// Warp 1 waits at the barrier for what warp 0 writes before it.
TEST(PtxExecute, BarriersOrderWarps) {
  const std::string body =
      "mov.u32 %r2, s; setp.eq.s32 %p1, %r0, 0; mov.u32 %r1, 42;\n"
      "@%p1 st.shared.u32 [%r2], %r1;\nbar.sync 0;\nld.shared.u32 %r1, [%r2];";
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    LaunchInput input;
    input.seed = seed;
    const test::Ran ran = run_body(body, 96, ".shared .align 8 .b8 s[64];", input);
    ASSERT_EQ(ran.fault(), "");
    EXPECT_EQ(ran.out[70], 42u);
  }
}

// Threads t, t + 8, t + 16, ... add t + 1, t + 2, ... to the words of one vector of `words`.
std::string vector_sums(int words) {
  std::string text = "mov.u32 %r1, 0f41200000;\nst.global.u32 [%rd1], %r1;\nbar.sync 0;\n";
  std::string registers;
  for (int i = 0; i < words; ++i) {
    text += fmt::format("add.s32 %r2, %r0, {};\ncvt.rn.f32.s32 %f{}, %r2;\n", i + 1, i);
    registers += fmt::format("{}%f{}", i == 0 ? "" : ", ", i);
  }
  text += "and.b32 %r3, %r0, 7;\n";
  text += fmt::format("mul.wide.u32 %rd2, %r3, {};\nadd.s64 %rd2, %rd0, %rd2;\n", 4 * words);
  text += fmt::format("red.relaxed.gpu.global.add.v{}.f32 [%rd2], {{{}}};", words, registers);
  return kernel_text("", text);
}

// f32 holds these sums exactly, so that no order of the warps shows.
TEST(PtxExecute, VectorsAreAddedElementByElement) {
  constexpr int kThreads = 96;
  for (const int words : {2, 4}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      LaunchInput input = ordered(1);
      input.seed = seed;
      const test::Ran ran = run(vector_sums(words), kThreads, input);
      ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
      for (int word = 0; word < kThreads; ++word) {
        float wanted = 10;  // what each thread has stored to its own
        for (int t = word / words; word < 8 * words && t < kThreads; t += 8) {
          wanted += static_cast<float>(t + 1 + word % words);
        }
        EXPECT_EQ(std::bit_cast<float>(ran.out[static_cast<std::size_t>(word)]), wanted)
            << words << ", " << word;
      }
    }
  }
}

// Additions are atomic to each other and to nothing else, and a vector lies where it fits.
TEST(PtxExecute, VectorsThatAreAdded) {
  const std::string v4 = "red.relaxed.gpu.global.add.v4.f32 [%rd0{}], {{%f0, %f1, %f2, %f3}};";
  const std::string numbers =
      "mov.f32 %f0, 0f3f800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; "
      "mov.f32 %f3, %f0;\n";
  const auto fault = [&](std::string_view offset, std::string_view beside = "") {
    return run(kernel_text("",
                           numbers + fmt::format(fmt::runtime(v4), offset) + std::string(beside)),
               32, ordered(3))
        .fault();
  };
  EXPECT_EQ(fault(""), "");
  EXPECT_EQ(fault("+4"), "misaligned");
  EXPECT_EQ(fault("+8"), "misaligned");
  EXPECT_EQ(fault("+128"), "out_of_bounds");
  EXPECT_EQ(fault("", "\nred.relaxed.gpu.global.add.f32 [%rd0+12], %f0;"), "");
  EXPECT_EQ(fault("", "\nst.global.f32 [%rd0+12], %f0;"), "race");
  EXPECT_EQ(fault("", "\nld.global.f32 %f4, [%rd0+12];"), "race");
  EXPECT_EQ(fault("", "\nld.global.f32 %f4, [%rd0+16];"), "");
}

}  // namespace
}  // namespace tilewright::ptx
