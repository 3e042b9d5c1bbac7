#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/launch_test_kernel.h"

// Copies that threads begin and wait for: cp.async, and bulk copies of boxes and of bytes in a row.
namespace tilewright::ptx {
namespace {

using test::kernel_text;
using test::run;
using test::run_body;

constexpr std::string_view kShared = ".shared .align 128 .b8 s[1024];\n.shared .align 8 .b8 b[16];";

std::string without(std::string text, std::string_view part) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.erase(at, part.size());
}
std::string replaced(std::string text, std::string_view part, std::string_view by) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), by);
}

LaunchInput input_of(std::uint64_t seed) {
  LaunchInput input;
  input.seed = seed;
  input.timing = seed % 2 == 0 ? Timing::early : Timing::late;
  input.check_order = true;
  return input;
}

constexpr std::uint64_t kSeeds = 8;

// What a seed finds; "" where all are clean and leave `wanted` in each thread's word.
template <typename Wanted>
std::string fault_of(std::string_view body, std::int64_t threads, const Wanted& wanted) {
  SCOPED_TRACE(body);
  std::string found;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const test::Ran ran = run_body(body, threads, kShared, input_of(seed));
    if (!ran.fault().empty()) {
      found = ran.fault();
      continue;
    }
    for (std::size_t i = 0; i < ran.out.size(); ++i) EXPECT_EQ(ran.out[i], wanted(i)) << i;
  }
  return found;
}
std::string fault_of(std::string_view body, std::int64_t threads = 64) {
  return fault_of(body, threads, [](std::size_t i) { return 3u * static_cast<unsigned>(i ^ 32); });
}

// Each thread copies its word, and reads that of the other warp.
constexpr const char* kNeighbours = R"(
mul.lo.u32 %r2, %r0, 3;
st.global.u32 [%rd1], %r2;
mov.u32 %r3, s;
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r3;
cp.async.ca.shared.global [%r4], [%rd1], 4;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
xor.b32 %r5, %r0, 32;
shl.b32 %r5, %r5, 2;
add.u32 %r5, %r5, %r3;
ld.shared.u32 %r1, [%r5];)";

TEST(PtxCopies, AreThereOnceTheirGroupIsWaitedFor) {
  EXPECT_EQ(fault_of(kNeighbours), "");
  EXPECT_EQ(fault_of(replaced(kNeighbours, "wait_group 0", "wait_all")), "");
  EXPECT_EQ(fault_of(without(replaced(kNeighbours, "wait_group 0", "wait_all"),
                             "cp.async.commit_group;")),
            "");
}

TEST(PtxCopies, WithoutAWaitTheyRace) {
  // Seeds find races, or that what is read has not been written.
  EXPECT_NE(fault_of(without(kNeighbours, "cp.async.wait_group 0;")), "");
  EXPECT_NE(fault_of(replaced(kNeighbours, "wait_group 0", "wait_group 1")), "");
  EXPECT_NE(fault_of(without(kNeighbours, "cp.async.commit_group;")), "");
  EXPECT_NE(fault_of(without(kNeighbours, "bar.sync 0;")), "");
  // A wait behind the barrier is known to its own warp alone.
  EXPECT_NE(fault_of(replaced(without(kNeighbours, "cp.async.wait_group 0;"), "bar.sync 0;",
                              "bar.sync 0;\ncp.async.wait_group 0;")),
            "");
  // The thread's own word is no safer.
  const std::string own = replaced(kNeighbours, "xor.b32 %r5, %r0, 32;", "mov.u32 %r5, %r0;");
  EXPECT_NE(fault_of(without(own, "cp.async.wait_group 0;"), 32), "");
}

// Two groups under way: of the first one the word is read while the second may not have come.
TEST(PtxCopies, GroupsEndInTheirOrder) {
  const std::string two = replaced(kNeighbours, "cp.async.wait_group 0;",
                                   "cp.async.ca.shared.global [%r4+512], [%rd1], 4;\n"
                                   "cp.async.commit_group;\ncp.async.wait_group 1;");
  EXPECT_EQ(fault_of(two), "");
  EXPECT_NE(fault_of(replaced(two, "[%r5]", "[%r5+512]")), "");
}

TEST(PtxCopies, WhatIsReadIsNotOverwritten) {
  const std::string again = std::string(kNeighbours) +
                            "\nbar.sync 0;\ncp.async.ca.shared.global [%r4], [%rd1], 4;\n"
                            "cp.async.commit_group;\ncp.async.wait_group 0;";
  EXPECT_EQ(fault_of(again), "");
  const std::size_t second = again.rfind("bar.sync 0;");
  EXPECT_EQ(fault_of(std::string(again).erase(second, 11)), "race");
  // Two copies to one place, of which nobody knows which comes last.
  EXPECT_EQ(fault_of(replaced(kNeighbours, "cp.async.commit_group;",
                              "cp.async.ca.shared.global [%r4], [%rd1], 4;\n"
                              "cp.async.commit_group;")),
            "race");
}

// Of 16 bytes 8 are read, or none; zeros stand for the others.
TEST(PtxCopies, ZerosBehindWhatIsRead) {
  const auto body = [](std::string_view read) {
    return fmt::format(
        "st.global.u32 [%rd1], 7;\nbar.sync 0;\nmov.u32 %r3, s;\nshl.b32 %r4, %r0, 2;\n"
        "setp.eq.u32 %p1, %r0, 0;\nsetp.eq.u32 %p2, %r0, 0;\nmov.u32 %r6, 8;\n"
        "add.u32 %r5, %r4, %r3;\nst.shared.u32 [%r5], 9;\nbar.sync 0;\n"
        "@%p1 cp.async.cg.shared.global [%r3], [%rd0], 16, {};\ncp.async.wait_all;\nbar.sync 0;\n"
        "add.u32 %r4, %r4, %r3;\nld.shared.u32 %r1, [%r4];",
        read);
  };
  const auto below = [](std::size_t count) {
    return [count](std::size_t i) { return i < count ? 7u : 0u; };
  };
  EXPECT_EQ(fault_of(body("%r6"), 4, below(2)), "");
  EXPECT_EQ(fault_of(body("0"), 4, below(0)), "");
  EXPECT_EQ(fault_of(body("%p2"), 4, below(0)), "");
  EXPECT_EQ(fault_of(body("!%p2"), 4, below(4)), "");
  EXPECT_EQ(fault_of(body("17"), 4), "copy");
}

TEST(PtxCopies, PlacesThatDoNotFit) {
  const auto fault = [](std::string_view copy) {
    return run_body(
               fmt::format("mov.u32 %r3, s;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 {}\nmov.u32 %r1, 0;",
                           copy),
               8, kShared, input_of(0))
        .fault();
  };
  EXPECT_EQ(fault("cp.async.cg.shared.global [%r3+8], [%rd0], 16;"), "misaligned");
  EXPECT_EQ(fault("cp.async.cg.shared.global [%r3], [%rd0+4], 16;"), "misaligned");
  EXPECT_EQ(fault("cp.async.cg.shared.global [%r3], [%rd0+32], 16;"), "out_of_bounds");
  EXPECT_EQ(fault("cp.async.cg.shared.global [%r3], [%rd0+32], 16, 0;\ncp.async.wait_all;"), "");
  EXPECT_EQ(fault("cp.async.cg.shared.global [%r3+2048], [%rd0], 16;"), "out_of_bounds");
  EXPECT_EQ(fault("cp.async.cg.shared.global [%r3], [%rd0], 8;"), "unsupported");
}

// A unit finds what a thread has copied behind a proxy fence that stands behind the wait.
TEST(PtxCopies, UnitsFindThemBehindAProxyFence) {
  const std::string body = R"(
st.global.u32 [%rd1], 5;
bar.sync 0;
setp.eq.u32 %p1, %r0, 0;
mov.u32 %r3, s;
@%p1 cp.async.cg.shared.global [%r3], [%rd0], 16;
cp.async.commit_group;
fence.proxy.async.global;
cp.async.wait_group 0;
fence.proxy.async.shared::cta;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd0+16], [%r3], 16;
@%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group 0;
bar.warp.sync 0xffffffff;
ld.global.u32 %r1, [%rd1];)";
  const auto fives = [](std::size_t) { return 5u; };
  EXPECT_EQ(fault_of(body, 32, fives), "");
  EXPECT_EQ(fault_of(without(body, "fence.proxy.async.shared::cta;"), 32, fives), "proxy");
  EXPECT_EQ(fault_of(without(body, "fence.proxy.async.global;"), 32, fives), "proxy");
  const std::string early = without(body, "fence.proxy.async.shared::cta;");
  EXPECT_EQ(fault_of(replaced(early, "cp.async.wait_group 0;",
                              "fence.proxy.async.shared::cta;\ncp.async.wait_group 0;"),
                     32, fives),
            "proxy");
  EXPECT_NE(fault_of(without(body, "@%p1 cp.async.bulk.wait_group 0;"), 32, fives), "");
  EXPECT_EQ(fault_of(replaced(body, "bulk.wait_group 0", "bulk.wait_group.read 0"), 32, fives),
            "race");
}

// The barrier follows the copies of all threads.
constexpr const char* kFollowed = R"(
mul.lo.u32 %r2, %r0, 3;
st.global.u32 [%rd1], %r2;
mov.u32 %r3, s;
mov.u32 %r6, b;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared.b64 [%r6], 64;
bar.sync 0;
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r3;
cp.async.ca.shared.global [%r4], [%rd1], 4;
cp.async.mbarrier.arrive.noinc.shared.b64 [%r6];
again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@%p2 bra end;
bra again;
end:
xor.b32 %r5, %r0, 32;
shl.b32 %r5, %r5, 2;
add.u32 %r5, %r5, %r3;
ld.shared.u32 %r1, [%r5];)";

TEST(PtxCopies, BarriersFollowThem) {
  EXPECT_EQ(fault_of(kFollowed), "");
  // Counted besides: the arrivals that the barrier expects are others.
  const std::string counted =
      replaced(kFollowed, "cp.async.mbarrier.arrive.noinc.shared.b64 [%r6];",
               "cp.async.mbarrier.arrive.shared.b64 [%r6];\n"
               "mbarrier.arrive.shared.b64 _, [%r6];");
  EXPECT_EQ(fault_of(counted), "");
  EXPECT_NE(fault_of(replaced(kFollowed, "[%r6], 64", "[%r6], 63")), "");
  EXPECT_NE(fault_of(replaced(kFollowed, "@%p2 bra end;", "bra end;")), "");
  // An arrival of its own does not follow the copies.
  EXPECT_NE(fault_of(replaced(kFollowed, "cp.async.mbarrier.arrive.noinc.shared.b64 [%r6]",
                              "mbarrier.arrive.shared.b64 _, [%r6]")),
            "");
}

// A thread copies 128 bytes, which all read.
constexpr const char* kRow = R"(
mul.lo.u32 %r2, %r0, 3;
st.global.u32 [%rd1], %r2;
mov.u32 %r3, s;
mov.u32 %r6, b;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared.b64 [%r6], 1;
fence.proxy.async;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 256;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd0], 256, [%r6];
again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@%p2 bra end;
bra again;
end:
xor.b32 %r5, %r0, 32;
shl.b32 %r5, %r5, 2;
add.u32 %r5, %r5, %r3;
ld.shared.u32 %r1, [%r5];)";

TEST(PtxCopies, RowsOfBytes) {
  EXPECT_EQ(fault_of(kRow), "");
  EXPECT_NE(fault_of(replaced(kRow, "@%p2 bra end;", "bra end;")), "");
  EXPECT_EQ(fault_of(replaced(kRow, "[%r6], 256", "[%r6], 128")), "deadlock");
  // Nobody waits: the copy may come when the CTA has ended.
  const std::string ends = std::string(kRow).substr(0, std::string(kRow).find("again:"));
  const test::Ran late = run(kernel_text(kShared, ends), 64, input_of(1));
  EXPECT_EQ(late.fault(), "exit");
  EXPECT_EQ(fault_of(without(kRow, "fence.proxy.async;")), "proxy");
  EXPECT_EQ(fault_of(replaced(kRow, "[%rd0], 256", "[%rd0], 248")), "misaligned");
  EXPECT_EQ(fault_of(replaced(kRow, "[%rd0], 256", "[%rd0+4], 240")), "misaligned");
  EXPECT_EQ(fault_of(replaced(kRow, "[%rd0], 256", "[%rd0+16], 256")), "out_of_bounds");
}

// What lay there before is gone while the copy is under way, also where nobody looks at the order.
TEST(PtxCopies, RowsUnderWayLeaveNothingToRead) {
  std::string body = replaced(kRow, "fence.proxy.async;",
                              "shl.b32 %r4, %r0, 2;\nadd.u32 %r4, %r4, %r3;\n"
                              "st.shared.u32 [%r4], 7;\nfence.proxy.async;");
  body = replaced(body, "again:",
                  "shl.b32 %r4, %r0, 2;\nadd.u32 %r4, %r4, %r3;\n"
                  "ld.shared.u32 %r7, [%r4];\nagain:");
  LaunchInput input;
  input.timing = Timing::late;
  EXPECT_EQ(run_body(body, 64, kShared, input).fault(), "uninitialised");
}

// Thread 0 stores four words of shared memory twice, to words 0 and 4; `wait` stands behind both.
std::string stored_twice(std::string_view wait) {
  return fmt::format(R"(
st.global.u32 [%rd1], 5;
mov.u32 %r3, s;
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r3;
st.shared.u32 [%r4], %r0;
fence.proxy.async;
bar.sync 0;
setp.ne.u32 %p1, %r0, 0;
@%p1 bra end;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 16;
cp.async.bulk.commit_group;
cp.async.bulk.global.shared::cta.bulk_group [%rd0+16], [%r3], 16;
cp.async.bulk.commit_group;
{}
end:)",
                     wait);
}

TEST(PtxCopies, StoresAreOverBehindTheWaitForTheirGroup) {
  const auto fault_behind = [](const std::string& wait) {
    const std::string text = kernel_text(kShared, stored_twice(wait));
    const std::string early = run(text, 32, input_of(0)).fault();
    EXPECT_EQ(early, run(text, 32, input_of(1)).fault()) << wait;
    return early;
  };
  const std::string all = "cp.async.bulk.wait_group 0;\n", first = "cp.async.bulk.wait_group 1;\n";
  EXPECT_EQ(fault_behind(all), "");
  EXPECT_EQ(fault_behind(first + "ld.global.u32 %r1, [%rd0+4];\n" + all), "");
  EXPECT_EQ(fault_behind(first + "ld.global.u32 %r1, [%rd0+20];\n" + all), "race");
  // Until then they read shared memory.
  const std::string read = "cp.async.bulk.wait_group.read 0;\n";
  EXPECT_EQ(fault_behind(read + "st.shared.u32 [%r3], 9;\n" + all), "");
  EXPECT_EQ(fault_behind("st.shared.u32 [%r3], 9;\n" + all), "race");
  // Nobody waits for the second group, so that its shared memory may be gone.
  EXPECT_EQ(fault_behind(first), "bulk");
}

// The first lane of warp 0 copies four words to global memory, of warp 1 does as `other` says.
// Both meet twice behind the copy's issue, and once the copy is over word 8 says so.
std::string fault_of_two_warps(std::string_view copy, std::string_view other) {
  const std::string body = fmt::format(R"(
st.global.u32 [%rd1], 0;
mov.u32 %r3, s;
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r3;
st.shared.u32 [%r4], %r0;
fence.proxy.async;
bar.sync 0;
and.b32 %r5, %r0, 31;
setp.ne.u32 %p1, %r5, 0;
setp.ge.u32 %p2, %r0, 32;
@%p2 bra other;
@!%p1 {0} [%rd0], [%r3], 16;
@!%p1 cp.async.bulk.commit_group;
bar.sync 0;
bar.sync 0;
@!%p1 cp.async.bulk.wait_group 0;
@!%p1 st.relaxed.gpu.global.u32 [%rd0+32], 1;
@!%p1 ld.global.u32 %r6, [%rd0];
bra end;
other:
{1}
end:)",
                                       copy, other);
  return run(kernel_text(kShared, body), 64, input_of(0)).fault();
}

TEST(PtxCopies, WhatOneWarpWaitsForIsOverForThatWarp) {
  const std::string store = "cp.async.bulk.global.shared::cta.bulk_group",
                    sum = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32";
  const std::string met = "bar.sync 0;\n";
  const std::string asks =
      "ask: ld.relaxed.gpu.global.u32 %r6, [%rd0+32]; setp.eq.u32 %p3, %r6, 0; "
      "@%p3 bra ask;\n";
  const std::string reads = "@!%p1 ld.global.u32 %r7, [%rd0];";
  EXPECT_EQ(fault_of_two_warps(store, met + met), "");
  // The barrier is before the wait, and a relaxed word orders nothing.
  EXPECT_EQ(fault_of_two_warps(store, met + met + asks + reads), "race");
  // Its sum is over, the other's is not.
  const std::string also = "@!%p1 " + sum +
                           " [%rd0], [%r3], 16;\n@!%p1 "
                           "cp.async.bulk.commit_group;\n";
  EXPECT_EQ(fault_of_two_warps(sum, met + met), "");
  const std::string wait = "@!%p1 cp.async.bulk.wait_group 0;";
  EXPECT_EQ(fault_of_two_warps(sum, met + also + met + asks + wait), "race");
  // Nor where this one knows much of what the other has done.
  std::string releases;
  for (int i = 0; i < 4; ++i) releases += "@!%p1 st.release.gpu.global.u32 [%rd0+64], 1;\n";
  EXPECT_EQ(fault_of_two_warps(sum, met + also + releases + met + asks + wait), "race");
  // Additions of threads mind a store, and no sum.
  const std::string adds = "@!%p1 red.relaxed.gpu.global.add.u32 [%rd0], 1;\n";
  EXPECT_EQ(fault_of_two_warps(store, met + adds + met), "race");
  EXPECT_EQ(fault_of_two_warps(sum, met + adds + met), "");
  // A bulk copy finds what another has left, with no fence.
  EXPECT_EQ(fault_of(R"(
st.global.u32 [%rd1], 0;
mov.u32 %r3, s;
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r3;
mov.u32 %r2, 3;
st.shared.u32 [%r4], %r2;
fence.proxy.async;
bar.sync 0;
setp.ne.u32 %p1, %r0, 0;
@%p1 bra end;
cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [%r3], 128;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
end: bar.sync 0;
ld.global.u32 %r1, [%rd1];)",
                     32, [](std::size_t) { return 6u; }),
            "");
}

// Words of 5 in memory become the function of them and of what is brought.
TEST(PtxCopies, ReductionsOfRows) {
  const auto reduced = [](const char* how, std::uint32_t memory, std::uint32_t brought,
                          const char* unawaited = "") {
    const std::string body = fmt::format(R"(
st.global.u32 [%rd1], {1:#x};
mov.u32 %r3, s;
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r3;
st.shared.u32 [%r4], {2:#x};
fence.proxy.async;
bar.sync 0;
setp.ne.u32 %p1, %r0, 0;
@%p1 bra end;
cp.reduce.async.bulk.global.shared::cta.bulk_group.{0} [%rd0], [%r3], 16;
cp.async.bulk.commit_group;
{3}
cp.async.bulk.wait_group 0;
end:)",
                                         how, memory, brought, unawaited);
    const test::Ran ran = run(kernel_text(kShared, body), 32, input_of(1));
    const bool races = std::string_view(unawaited).starts_with("ld");
    EXPECT_EQ(ran.fault(), races ? "race" : "") << how;
    if (races) return memory;
    EXPECT_EQ(ran.out[4], memory);
    return ran.out[3];
  };
  const std::uint32_t minus_one = 0xffffffff;
  EXPECT_EQ(reduced("add.u32", 5, 7), 12u);
  EXPECT_EQ(reduced("min.s32", 5, minus_one), minus_one);
  EXPECT_EQ(reduced("min.u32", 5, minus_one), 5u);
  EXPECT_EQ(reduced("max.s32", 5, minus_one), 5u);
  EXPECT_EQ(reduced("max.u32", 5, minus_one), minus_one);
  EXPECT_EQ(reduced("add.f32", 0x3f800000, 0x40000000), 0x40400000u);         // 1 + 2
  EXPECT_EQ(reduced("add.noftz.bf16", 0x3f803f80, 0x40003f80), 0x40404000u);  // 1 + 2, 1 + 1
  EXPECT_EQ(reduced("add.noftz.f16", 0x3c003c00, 0x40003c00), 0x42004000u);
  reduced("add.u32", 5, 7, "ld.global.u32 %r1, [%rd0+4];");
  // Additions do not mind each other.
  EXPECT_EQ(reduced("add.u32", 5, 7, "red.relaxed.gpu.global.add.u32 [%rd0+12], 1;"), 13u);
}

constexpr int kBoxRows = 8, kBoxStride = 160;  // bytes

std::vector<std::uint32_t> boxed_tensor() {
  std::vector<std::uint32_t> tensor(kBoxRows * kBoxStride / 4);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = 1000 + static_cast<unsigned>(i);
  return tensor;
}

struct BoxLoad {
  int width = 128;         // bytes of a row
  int place = 0;           // in shared memory
  int column = 0;          // where the box begins
  std::int64_t shift = 0;  // bytes that the map begins before the tensor
  bool stores = false;     // instead, what nobody has written
  std::size_t map = 0;     // the only one is 0
  bool spoils_handle = false;
};

constexpr const char* kLoadBox =
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], "
    "[%rd5, {%r7, %r8}], [%r6];";
constexpr const char* kStoreBox =
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd5, {%r7, %r8}], [%r3];";

// What comes of a box of 8 rows of the tensor, as it lies in shared memory.
test::Ran load_box(const std::vector<std::uint32_t>& tensor, const BoxLoad& load) {
  const auto base = reinterpret_cast<std::uint64_t>(tensor.data());
  std::string text = kernel_text(".shared .align 1024 .b8 s[2048];\n.shared .align 8 .b8 b[16];",
                                 fmt::format(R"(
mov.b64 %rd4, k_param_1;
cvta.param.u64 %rd5, %rd4;
mov.u32 %r3, s;
add.u32 %r3, %r3, {};
mov.u32 %r6, b;
mov.u32 %r7, {};
mov.u32 %r8, 0;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared.b64 [%r6], 1;
fence.proxy.async;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], {};
@%p1 {}
again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;
@%p2 bra end;
bra again;
end:
shl.b32 %r4, %r0, 2;
add.u32 %r4, %r4, %r3;
ld.shared.u32 %r1, [%r4];
st.global.u32 [%rd1], %r1;)",
                                             load.place, load.column, kBoxRows * load.width,
                                             load.stores ? kStoreBox : kLoadBox));
  text = replaced(text, ".param .u64 k_param_0",
                  ".param .u64 k_param_0, .param .align 64 .b8 k_param_1[128]");
  LaunchInput input = input_of(1);
  TensorMap map;
  map.name = "tensor";
  map.base = base - static_cast<std::uint64_t>(load.shift);
  map.rank = 2;
  map.sizes = {kBoxStride / 4, kBoxRows};
  map.strides = {4, kBoxStride};
  map.box = {load.width / 4, kBoxRows};
  map.type = Type::u32;
  map.swizzle = load.width;
  input.maps = {map};
  std::array<std::byte, 128> handle = handle_of(load.map);
  if (load.spoils_handle) handle[0] ^= std::byte{1};
  input.parameters = {{handle.begin(), handle.end()}};
  input.memory = {{"tensor", base, base + 4 * tensor.size()}};
  return run(text, kBoxRows * load.width / 4, input);
}

// Chunk c of row r, of 16 bytes, is the row's chunk c ^ r % 8 with a swizzle of 128 bytes,
// c ^ r / 2 % 4 with one of 64, c ^ r / 4 % 2 with one of 32.
TEST(PtxCopies, BoxesAreSwizzled) {
  constexpr int kFirst = 4;
  const std::vector<std::uint32_t> tensor = boxed_tensor();
  for (const int width : {32, 64, 128}) {
    SCOPED_TRACE(width);
    const test::Ran ran = load_box(tensor, {.width = width, .column = kFirst});
    ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
    const int chunks = width / 16, rows_together = 8 / chunks;
    for (int row = 0; row < kBoxRows; ++row) {
      for (int word = 0; word < width / 4; ++word) {
        const int chunk = (word / 4) ^ (row / rows_together % chunks);
        const int at = row * width / 4 + chunk * 4 + word % 4;
        ASSERT_EQ(ran.out[static_cast<std::size_t>(at)],
                  tensor[static_cast<std::size_t>(row * kBoxStride / 4 + kFirst + word)])
            << row << ", " << word;
      }
    }
    // Patterns repeat every 8 rows of a swizzle of 32 bytes, and begin there.
    EXPECT_EQ(load_box(tensor, {.width = width, .place = 4 * width, .column = kFirst}).fault(),
              "misaligned");
  }
}

// Neither a number that no map has, nor other bytes in its place.
TEST(PtxCopies, BoxesAreOfMapsThatThereAre) {
  for (const bool spoiled : {false, true}) {
    const test::Ran ran =
        load_box(boxed_tensor(), {.map = spoiled ? 0u : 1u, .spoils_handle = spoiled});
    ASSERT_EQ(ran.fault(), "tensor_map") << spoiled;
    EXPECT_THAT(ran.report.faults[0].message, testing::HasSubstr("where no tensor map is"));
  }
}

// Of a box of which nothing exists hardware brings zeros, and touches where its map begins.
TEST(PtxCopies, BoxesOutsideTouchTheBaseOfTheirMap) {
  const std::vector<std::uint32_t> tensor = boxed_tensor();
  for (const int column : {-32, 40, 4000}) {
    const test::Ran zeros = load_box(tensor, {.column = column});
    ASSERT_EQ(zeros.fault(), "") << zeros.report.faults[0].message;
    EXPECT_EQ(std::count(zeros.out.begin(), zeros.out.end(), 0u),
              static_cast<std::ptrdiff_t>(zeros.out.size()));
    const test::Ran before = load_box(tensor, {.column = column, .shift = 64});
    ASSERT_EQ(before.fault(), "out_of_bounds");
    EXPECT_THAT(before.report.faults[0].message,
                testing::HasSubstr(
                    "of a box that begins before tensor or lies outside of it, whose map begins"));
  }
}

// Also where part of the box lies in the tensor.
TEST(PtxCopies, StoresThatBeginBeforeTheirTensorAreNotExecuted) {
  const test::Ran before = load_box(boxed_tensor(), {.column = -4, .stores = true});
  ASSERT_EQ(before.fault(), "out_of_bounds");
  EXPECT_THAT(before.report.faults[0].message,
              testing::HasSubstr("of a store that begins before tensor"));
}

}  // namespace
}  // namespace tilewright::ptx
