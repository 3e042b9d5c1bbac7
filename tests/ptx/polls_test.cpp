#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ptx/launch_test_kernel.h"

// Loops that ask for a word or a barrier until it changes: they wait, and keep nobody else from
// what comes late.
namespace tilewright::ptx {
namespace {

using test::kernel_text;
using test::Ran;
using test::run;

constexpr std::string_view kCopied =
    ".shared .align 128 .b8 s[256];\n.shared .align 8 .b8 b[16];\n";

// So many CTAs at a time, whose copies are over when all else waits.
LaunchInput late(std::int64_t ctas, std::uint64_t seed = 0) {
  LaunchInput input;
  input.grid = {ctas, 1, 1};
  input.resident = ctas;
  input.timing = Timing::late;
  input.seed = seed;
  return input;
}

// Thread 0 of CTA 0 writes the word behind the first one, 5, once a copy to its shared memory has
// come. CTA 1 asks for it as `asks` says, and then writes it to the first word.
std::string behind_a_copy(std::string_view asks) {
  return kernel_text(kCopied, fmt::format(R"(
setp.eq.u32 %p1, %r0, 0;
mov.u32 %r3, s; mov.u32 %r6, b;
mov.u32 %r2, %ctaid.x;
setp.ne.u32 %p2, %r2, 0;
@%p2 bra asker;
@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
bar.warp.sync -1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 64;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd0+64], 64, [%r6];
copied: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6], 0;
@!%p3 bra copied;
@%p1 st.release.gpu.global.u32 [%rd0+4], 5;
bra end;
asker:
{}
@%p1 st.global.u32 [%rd0], %r4;
end:)",
                                          asks));
}

TEST(PtxPolls, LetWhatComesLateCome) {
  const std::string_view ways[] = {
      "w: ld.acquire.gpu.global.u32 %r4, [%rd0+4]; setp.ne.u32 %p4, %r4, 5; @%p4 bra w;",
      "w: ld.volatile.global.u32 %r4, [%rd0+4]; nanosleep.u32 40; setp.ne.u32 %p4, %r4, 5; "
      "@%p4 bra w;",
      // As a lock that is free once it is 5.
      "w: atom.acquire.gpu.global.cas.b32 %r4, [%rd0+4], 5, 5; setp.ne.u32 %p4, %r4, 5; @%p4 bra "
      "w;",
      "w: atom.acquire.gpu.global.or.b32 %r4, [%rd0+4], 0; setp.ne.u32 %p4, %r4, 5; @%p4 bra w;",
      // One lane asks and tells the others.
      "w: @!%p1 bra told; ld.acquire.gpu.global.u32 %r4, [%rd0+4];\n"
      "told: shfl.sync.idx.b32 %r4, %r4, 0, 31, -1; setp.ne.u32 %p4, %r4, 5; @%p4 bra w;",
      // Either of two words.
      "w: ld.acquire.gpu.global.u32 %r4, [%rd0+4]; setp.eq.u32 %p4, %r4, 5; @%p4 bra met;\n"
      "ld.acquire.gpu.global.u32 %r4, [%rd0+8]; setp.ne.u32 %p4, %r4, 5; @%p4 bra w;\nmet:",
  };
  for (const std::string_view asks : ways) {
    SCOPED_TRACE(asks);
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Ran ran = run(behind_a_copy(asks), 32, late(2, seed));
      ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
      EXPECT_EQ(ran.out[0], 5u);
      EXPECT_LT(ran.report.operations, 200);
      for (const auto& events : ran.report.events) EXPECT_LT(events.size(), 20u);
    }
  }
}

// A loop that tests one barrier after the other.
TEST(PtxPolls, TestsOfSeveralBarriersWaitToo) {
  const std::string body = R"(
setp.eq.u32 %p1, %r0, 0;
mov.u32 %r3, s; mov.u32 %r6, b;
@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;
@%p1 mbarrier.init.shared::cta.b64 [%r6+8], 1;
bar.warp.sync -1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6+8], 64;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd0+64], 64, [%r6+8];
w: mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r6], 0;
@%p3 bra end;
mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r6+8], 0;
@!%p3 bra w;
end:)";
  const Ran ran = run(kernel_text(kCopied, body), 32, late(1));
  ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
  EXPECT_LT(ran.report.operations, 100);
}

// Found as soon as all has been as it is, and not after the most instructions that a launch has.
TEST(PtxPolls, OfWhatNobodyWritesAreADeadlock) {
  const std::string_view ways[] = {
      "w: ld.relaxed.gpu.global.u32 %r4, [%rd0+4]; setp.ne.u32 %p4, %r4, 5; @%p4 bra w;",
      "w: atom.relaxed.gpu.global.cas.b32 %r4, [%rd0+4], 5, 6; setp.ne.u32 %p4, %r4, 5; @%p4 bra "
      "w;",
      "w: ld.relaxed.gpu.global.u32 %r4, [%rd0+4]; setp.eq.u32 %p4, %r4, 5; @%p4 bra met;\n"
      "ld.relaxed.gpu.global.u32 %r4, [%rd0+8]; setp.ne.u32 %p4, %r4, 5; @%p4 bra w;\nmet:",
      // All is as it was every third time.
      "mov.u32 %r5, 0;\nw: ld.relaxed.gpu.global.u32 %r4, [%rd0+4]; add.u32 %r5, %r5, 1;\n"
      "setp.eq.u32 %p3, %r5, 3; @%p3 mov.u32 %r5, 0; setp.ne.u32 %p4, %r4, 5; @%p4 bra w;",
  };
  for (const std::string_view asks : ways) {
    SCOPED_TRACE(asks);
    const Ran ran = run(kernel_text("", asks), 64, late(2));
    EXPECT_EQ(ran.fault(), "deadlock");
    EXPECT_LT(ran.report.operations, 500);
  }
}

// A word that changes while it is asked for, to what nobody waits for.
TEST(PtxPolls, OfAWordThatHasChangedAreADeadlockToo) {
  const std::string_view asks =
      "mov.u32 %r2, %ctaid.x; setp.eq.u32 %p3, %r2, 1;\n"
      "@%p3 st.relaxed.gpu.global.u32 [%rd0+4], 1;\n"
      "w: ld.relaxed.gpu.global.u32 %r4, [%rd0+4]; setp.ne.u32 %p4, %r4, 5; @%p4 bra w;";
  const Ran ran = run(kernel_text("", asks), 32, late(2));
  EXPECT_EQ(ran.fault(), "deadlock");
  EXPECT_LT(ran.report.operations, 500);
}

// A loop that gives up may do so, and its CTA's copies come before that.
TEST(PtxPolls, MayCountTheirTries) {
  const std::string asks =
      "mov.u32 %r5, 0;\nw: ld.relaxed.gpu.global.u32 %r4, [%rd0+8]; add.u32 %r5, %r5, 1;\n"
      "setp.lt.u32 %p4, %r5, 1000; @%p4 bra w;\nld.relaxed.gpu.global.u32 %r4, [%rd0+4];";
  const Ran ran = run(behind_a_copy(asks), 32, late(2));
  ASSERT_EQ(ran.fault(), "") << ran.report.faults[0].message;
  EXPECT_EQ(ran.out[0], 5u);
}

}  // namespace
}  // namespace tilewright::ptx
