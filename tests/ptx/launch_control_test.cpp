#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ptx/launch_test_kernel.h"

// Cluster launch control, by the PTX ISA 9.0: nothing here was seen on a GPU.
namespace tilewright::ptx {
namespace {

constexpr std::string_view kAnswer =
    ".shared .align 16 .b8 s[32];\n.shared .align 8 .b8 b[8];\n.reg .b128 %q<1>;";

// A warp asks once; %r1 is the first CTA of the cluster that it takes over, `first` says when it
// reads which.
std::string asking(std::string_view first, std::string_view bytes = "16",
                   std::string_view place = "[%r3]") {
  return "mov.u32 %r3, s;\nmov.u32 %r6, b;\nsetp.eq.u32 %p1, %r0, 0;\n"
         "@%p1 mbarrier.init.shared.b64 [%r6], 1;\nfence.proxy.async;\nbar.sync 0;\n"
         "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], " +
         std::string(bytes) +
         ";\n@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
         ".b128 " +
         std::string(place) +
         ", [%r6];\nagain: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;\n"
         "@%p2 bra end;\nbra again;\nend:\nld.shared.b128 %q0, [%r3];\n"
         "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;\nmov.s32 %r1, 77;\n" +
         std::string(first) +
         "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q0;";
}

test::Ran run_asking(const std::string& body, bool has_one) {
  LaunchInput input;
  input.grid = {2, 1, 1};
  if (has_one) {
    input.taken[0] = {1};
    input.order = {0};
  }
  return test::run_body(body, 32, kAnswer, input);
}

TEST(PtxLaunchControl, AnAnswerNamesAClusterOrNone) {
  const test::Ran one = run_asking(asking("@%p3 "), true);
  EXPECT_EQ(one.fault(), "");
  EXPECT_EQ(one.out[0], 1u);
  const test::Ran none = run_asking(asking("@%p3 "), false);
  EXPECT_EQ(none.fault(), "");
  EXPECT_EQ(none.out[0], 77u);
}

TEST(PtxLaunchControl, NobodyAsksAnAnswerOfNoneForACta) {
  EXPECT_EQ(run_asking(asking(""), true).fault(), "");
  EXPECT_EQ(run_asking(asking(""), false).fault(), "launch_control");
}

TEST(PtxLaunchControl, AnAnswerHas16Bytes) {
  EXPECT_EQ(run_asking(asking("@%p3 ", "32"), true).fault(), "deadlock");
  EXPECT_EQ(run_asking(asking("@%p3 ", "16", "[%r3+8]"), true).fault(), "misaligned");
}

// The first CTA of a cluster asks for both, each of which waits for the answer.
TEST(PtxLaunchControl, AnAnswerForAllIsInEachCta) {
  const auto run = [](std::string_view to) {
    LaunchInput input;
    input.grid = {2, 1, 1};
    input.cluster = 2;
    const std::string text =
        "mov.u32 %r3, s;\nmov.u32 %r6, b;\nmov.u32 %r7, %cluster_ctarank;\n"
        "setp.eq.u32 %p1, %r0, 0;\nsetp.eq.u32 %p4, %r7, 0;\nand.pred %p4, %p4, %p1;\n"
        "@%p1 mbarrier.init.shared.b64 [%r6], 1;\n"
        "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], 16;\n"
        "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
        "@%p4 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes" +
        std::string(to) +
        ".b128 [%r3], [%r6];\nagain: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], 0;\n"
        "@%p2 bra end;\nbra again;\nend:\nld.shared.b128 %q0, [%r3];\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q0;\n"
        "selp.b32 %r1, 1, 0, %p3;\nbarrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;";
    return test::run_body(text, 32, kAnswer, input).fault();
  };
  EXPECT_EQ(run(".multicast::cluster::all"), "");
  EXPECT_EQ(run(""), "deadlock");
}

}  // namespace
}  // namespace tilewright::ptx
