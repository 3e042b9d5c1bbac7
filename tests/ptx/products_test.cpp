#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "ptx/launch_test_kernel.h"

// Products of one warp, and of a warpgroup.
namespace tilewright::ptx {
namespace {

using test::run_body;

// A(row, k) = 3 row + k, B(k, column) = k - 2 column, C(row, column) = 100 row + column, as
// registers of lane l: two elements of f16 each.
constexpr const char* kFragments = R"(
shr.u32 %r2, %r0, 2;
and.b32 %r3, %r0, 3;
shl.b32 %r3, %r3, 1;
)";
std::string pack(int to, int factor, int rows, int depth) {
  std::string text;
  for (int e = 0; e < 2; ++e) {
    text += fmt::format(
        "add.u32 %r4, %r2, {};\nmul.lo.s32 %r4, %r4, {};\nadd.s32 %r5, %r3, {};\n"
        "add.s32 %r4, %r4, %r5;\ncvt.rn.f16.s32 %h{}, %r4;\n",
        rows, factor, depth + e, e);
  }
  return text + fmt::format("mov.b32 %r{}, {{%h0, %h1}};\n", to);
}

float wanted(int row, int column, int depth) {
  float sum = static_cast<float>(100 * row + column);
  for (int k = 0; k < depth; ++k) sum += static_cast<float>((3 * row + k) * (k - 2 * column));
  return sum;
}

// Register `number` of the result of each lane.
void check_warp_product(int depth, int number) {
  std::string body = kFragments;
  std::string a, b;
  for (int j = 0; j < depth / 4; ++j) {
    body += pack(10 + j, 3, 8 * (j % 2), 8 * (j / 2));
    a += fmt::format("{}%r{}", j == 0 ? "" : ", ", 10 + j);
  }
  for (int j = 0; j < depth / 8; ++j) {
    body += pack(14 + j, -2, 0, 8 * j);
    b += fmt::format("{}%r{}", j == 0 ? "" : ", ", 14 + j);
  }
  for (int i = 0; i < 4; ++i) {
    body += fmt::format(
        "add.u32 %r4, %r2, {};\nmad.lo.s32 %r4, %r4, 100, %r3;\nadd.s32 %r4, %r4, {};\n"
        "cvt.rn.f32.s32 %f{}, %r4;\n",
        i / 2 * 8, i % 2, i);
  }
  body += fmt::format(
      "mma.sync.aligned.m16n8k{}.row.col.f32.f16.f16.f32 {{%f4, %f5, %f6, %f7}}, {{{}}}, {{{}}}, "
      "{{%f0, %f1, %f2, %f3}};\nmov.b32 %r1, %f{};",
      depth, a, b, 4 + number);
  const test::Ran ran = run_body(body);
  ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
  for (int lane = 0; lane < 32; ++lane) {
    const int row = lane / 4 + number / 2 * 8, column = lane % 4 * 2 + number % 2;
    EXPECT_EQ(std::bit_cast<float>(ran.out[static_cast<std::size_t>(lane)]),
              wanted(row, column, depth))
        << lane;
  }
}

TEST(PtxProducts, OfAWarp) {
  for (const int depth : {8, 16}) {
    for (int number = 0; number < 4; ++number) check_warp_product(depth, number);
  }
}

// A product takes zeros from shared memory, and adds to 5.
std::string of_warpgroup(std::string_view fence, std::string_view between = "") {
  return fmt::format(
      "mov.u32 %r2, s;\nshl.b32 %r3, %r0, 5;\nadd.u32 %r3, %r3, %r2;\nmov.b64 %rd2, 0;\n"
      "st.shared.v2.u64 [%r3], {{%rd2, %rd2}};\nst.shared.v2.u64 [%r3+16], {{%rd2, %rd2}};\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
      "mov.f32 %f0, 0f40a00000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\n"
      "shr.u32 %r2, %r2, 4;\ncvt.u64.u32 %rd3, %r2;\n"
      "mov.b64 %rd4, 0x0000000800080000;\nor.b64 %rd3, %rd3, %rd4;\nsetp.eq.u32 %p1, 0, 0;\n"
      "{}\n{}\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %rd3, %rd3, %p1, "
      "1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
      "mov.b32 %r1, %f2;",
      fence, between);
}

TEST(PtxProducts, RegistersAreFenced) {
  const auto fault = [](const std::string& body) {
    const test::Ran ran = run_body(body, 128, ".shared .align 128 .b8 s[4096];");
    if (ran.fault().empty()) {
      EXPECT_EQ(std::bit_cast<float>(ran.out[77]), 5);
    }
    return ran.fault();
  };
  const char* const fence = "wgmma.fence.sync.aligned;";
  EXPECT_EQ(fault(of_warpgroup(fence)), "");
  EXPECT_EQ(fault(of_warpgroup("")), "wgmma");
  EXPECT_EQ(fault(of_warpgroup(fence, "mov.f32 %f3, 0f40a00000;")), "wgmma");
  // Of a product's own results the next one needs none.
  std::string twice = of_warpgroup(fence);
  const std::size_t first = twice.find("wgmma.mma_async"), end = twice.find("mov.b32 %r1, %f2;");
  twice.insert(end, twice.substr(first, end - first));
  EXPECT_EQ(fault(twice), "");
}

// So are those that A lies in.
TEST(PtxProducts, OperandsInRegistersAreFenced) {
  const auto fault = [](std::string_view before, std::string_view behind) {
    std::string body = of_warpgroup(fmt::format("mov.u32 %r4, 0;\nmov.u32 %r5, 0;\n"
                                                "mov.u32 %r6, 0;\nmov.u32 %r7, 0;\n{}",
                                                before),
                                    behind);
    const std::string_view shared = "%rd3, %rd3, %p1, 1, 1, 0, 0;";
    body.replace(body.find(shared), shared.size(), "{%r4, %r5, %r6, %r7}, %rd3, %p1, 1, 1, 0;");
    const test::Ran ran = run_body(body, 128, ".shared .align 128 .b8 s[4096];");
    if (ran.fault().empty()) {
      EXPECT_EQ(std::bit_cast<float>(ran.out[77]), 5);
    }
    return ran.fault();
  };
  const char* const fence = "wgmma.fence.sync.aligned;";
  EXPECT_EQ(fault(fence, ""), "");
  EXPECT_EQ(fault(fence, "mov.u32 %r7, 0;"), "wgmma");
}

// The first of two groups is there when one may be pending, the second is not.
TEST(PtxProducts, AreThereOnceTheirGroupIsWaitedFor) {
  const auto fault = [](std::string_view pending, int number) {
    std::string body = of_warpgroup("wgmma.fence.sync.aligned;");
    const std::size_t first = body.find("wgmma.mma_async"), wait = body.find("wgmma.wait_group");
    std::string second = body.substr(first, wait - first);
    for (int r = 3; r >= 0; --r) {
      const std::string name = fmt::format("%f{}", r);
      second.replace(second.find(name), name.size(), fmt::format("%f{}", r + 4));
    }
    body.replace(body.find("mov.f32 %f1, %f0;"), 0,
                 "mov.f32 %f4, %f0;\nmov.f32 %f5, %f0;\n"
                 "mov.f32 %f6, %f0;\nmov.f32 %f7, %f0;\n");
    const std::size_t end = body.find("wgmma.wait_group");
    body.erase(end);
    body += second + fmt::format(
                         "wgmma.wait_group.sync.aligned {};\nadd.f32 %f8, %f{}, %f{};\n"
                         "wgmma.wait_group.sync.aligned 0;\nmov.b32 %r1, %f8;",
                         pending, number, number);
    const test::Ran ran = run_body(body, 128, ".shared .align 128 .b8 s[4096];");
    if (ran.fault().empty()) {
      EXPECT_EQ(std::bit_cast<float>(ran.out[77]), 10);
    }
    return ran.fault();
  };
  EXPECT_EQ(fault("0", 2), "");
  EXPECT_EQ(fault("0", 6), "");
  EXPECT_EQ(fault("1", 2), "");
  EXPECT_EQ(fault("1", 6), "wgmma");
  EXPECT_EQ(fault("2", 2), "wgmma");
  // What is over stays so.
  EXPECT_EQ(fault("0; wgmma.wait_group.sync.aligned 1", 6), "");
}

// What is moved to another register before the wait is no result there either.
TEST(PtxProducts, AreNotThereWhereTheyWereMoved) {
  const auto fault = [](bool waited) {
    std::string body = of_warpgroup("wgmma.fence.sync.aligned;");
    const std::string_view wait = "wgmma.wait_group.sync.aligned 0;\n",
                           move = "mov.f32 %f8, %f2;\n";
    body.insert(body.find(wait), move);
    body.insert(body.find(wait) + (waited ? wait.size() : 0), "add.f32 %f8, %f8, %f8;\n");
    const std::string_view last = "mov.b32 %r1, %f2;";
    body.replace(body.find(last), last.size(), "mov.b32 %r1, %f8;");
    const test::Ran ran = run_body(body, 128, ".shared .align 128 .b8 s[4096];");
    if (ran.fault().empty()) {
      EXPECT_EQ(std::bit_cast<float>(ran.out[77]), 10);
    }
    return ran.fault();
  };
  EXPECT_EQ(fault(true), "");
  EXPECT_EQ(fault(false), "wgmma");
}

// Until its group is waited for, a product reads its operands.
TEST(PtxProducts, OperandsAreLeftAloneUntilTheWait) {
  const auto fault = [](bool behind) {
    std::string body = of_warpgroup("wgmma.fence.sync.aligned;");
    const std::string_view wait = "wgmma.wait_group.sync.aligned 0;\n";
    const std::size_t at = body.find(wait) + (behind ? wait.size() : 0);
    body.insert(at, "bar.sync 0;\nst.shared.u32 [%r3], 7;\n");
    LaunchInput input;
    input.check_order = true;
    return run_body(body, 128, ".shared .align 128 .b8 s[4096];", input).fault();
  };
  EXPECT_EQ(fault(true), "");
  EXPECT_EQ(fault(false), "race");
}

// A warp does not end before its products do.
TEST(PtxProducts, AreWaitedForBeforeTheEnd) {
  std::string body = of_warpgroup("wgmma.fence.sync.aligned;");
  body.erase(body.find("wgmma.wait_group"));
  EXPECT_EQ(run_body(body + "mov.u32 %r1, 0;", 128, ".shared .align 128 .b8 s[4096];").fault(),
            "wgmma");
}

// Patterns start where an address says, which is a multiple of 1024: of another one a field says
// how far it is off, and nothing here makes such addresses.
TEST(PtxProducts, NoBaseOffset) {
  std::string body = of_warpgroup("wgmma.fence.sync.aligned;");
  const std::string plain = "0x0000000800080000";
  const test::Ran ran = run_body(body.replace(body.find(plain), plain.size(), "0x0002000800080000"),
                                 128, ".shared .align 128 .b8 s[4096];");
  ASSERT_EQ(ran.fault(), "wgmma");
  EXPECT_NE(ran.report.faults[0].message.find("base offset"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::ptx
