#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "ptx/launch_test_kernel.h"

// What orders accesses to global memory: releases and acquires, fences and barriers, by their
// scopes.
namespace tilewright::ptx {
namespace {

using test::kernel_text;
using test::ordered;
using test::run;
using testing::HasSubstr;

// Thread 0 of CTA 0 writes a word that thread 0 of CTA 1 reads, with `writes` and `reads` between.
std::string handed_on(std::string_view writes, std::string_view reads,
                      std::string_view read = "ld.global.u32 %r3, [%rd0];") {
  return kernel_text("", fmt::format("setp.ne.u32 %p0, %r0, 0;\n@%p0 bra end;\n"
                                     "mov.u32 %r2, %ctaid.x;\nsetp.ne.u32 %p1, %r2, 0;\n"
                                     "@%p1 bra reader;\nst.global.u32 [%rd0], 7;\n{}\nbra end;\n"
                                     "reader:\n{}\n{}\nst.global.u32 [%rd0+8], %r3;\nend:",
                                     writes, reads, read));
}

std::string fault_between(std::string_view writes, std::string_view reads,
                          std::int64_t cluster = 1) {
  LaunchInput input = ordered(2);
  input.cluster = cluster;
  return run(handed_on(writes, reads), 32, input).fault();
}

TEST(PtxOrder, RacesOfCtasInGlobalMemory) {
  const test::Ran both =
      run(kernel_text("", "mov.u32 %r1, 1;\nst.global.u32 [%rd1], %r1;"), 32, ordered(2));
  ASSERT_EQ(both.fault(), "race");
  EXPECT_THAT(both.report.faults[0].message,
              HasSubstr("out +0x0, which warp 0 of CTA 0 writes in line"));
  EXPECT_EQ(run(handed_on("", ""), 32, ordered(2)).fault(), "race");
  // Strong accesses of the same word do not race.
  EXPECT_EQ(
      run(handed_on("", "", "ld.relaxed.gpu.global.u32 %r3, [%rd0];"), 32, ordered(2)).fault(),
      "race");
  EXPECT_EQ(run(kernel_text("", "red.global.add.u32 [%rd0], 1;"), 32, ordered(3)).fault(), "");
  EXPECT_EQ(fault_between("ld.relaxed.gpu.global.u32 %r4, [%rd0+4]; bra end;",
                          "st.relaxed.gpu.global.u32 [%rd0+4], 1; bra end;"),
            "");
  // Bytes of a word are apart.
  EXPECT_EQ(fault_between("st.global.u8 [%rd0+4], 1; ld.global.u8 %r4, [%rd0+5]; bra end;",
                          "st.global.u8 [%rd0+6], 1; bra end;"),
            "");
  EXPECT_EQ(
      fault_between("ld.global.u8 %r4, [%rd0+5]; bra end;", "st.global.u8 [%rd0+5], 1; bra end;"),
      "race");
}

// The same of two warps of one CTA.
std::string fault_between_warps(std::string_view writes, std::string_view reads) {
  std::string text = handed_on(writes, reads);
  const std::string_view by_cta = "mov.u32 %r2, %ctaid.x;", first = "setp.ne.u32 %p0, %r0, 0;";
  text.replace(text.find(by_cta), by_cta.size(), "shr.u32 %r2, %r0, 5;");
  text.replace(text.find(first), first.size(), "and.b32 %r2, %r0, 31; setp.ne.u32 %p0, %r2, 0;");
  return run(text, 64, ordered(1)).fault();
}

TEST(PtxOrder, ReleasesAndFencesHandOn) {
  const std::string release = "st.release.gpu.global.u32 [%rd0+4], 1;",
                    relaxed = "st.relaxed.gpu.global.u32 [%rd0+4], 1;",
                    acquire = "ld.acquire.gpu.global.u32 %r4, [%rd0+4];",
                    read = "ld.relaxed.gpu.global.u32 %r4, [%rd0+4];",
                    add = "atom.relaxed.gpu.global.add.u32 %r4, [%rd0+4], 1;",
                    both = "atom.acq_rel.gpu.global.add.u32 %r4, [%rd0+4], 1;",
                    fence = "fence.acq_rel.gpu;", membar = "membar.gl;";
  EXPECT_EQ(fault_between(release, acquire), "");
  EXPECT_EQ(fault_between(both, both), "");
  EXPECT_EQ(fault_between(fence + relaxed, acquire), "");
  EXPECT_EQ(fault_between(membar + relaxed, acquire), "");
  EXPECT_EQ(fault_between(release, read + fence), "");
  EXPECT_EQ(fault_between(membar + add, add + membar), "");
  // Either half alone hands on nothing, and neither does a fence on the wrong side.
  EXPECT_EQ(fault_between(relaxed, acquire), "race");
  EXPECT_EQ(fault_between(release, read), "race");
  EXPECT_EQ(fault_between(add, add), "race");
  EXPECT_EQ(fault_between(relaxed + fence, acquire), "race");
  EXPECT_EQ(fault_between(release, fence + read), "race");
  // Another word does not, nor one that is written anew.
  EXPECT_EQ(fault_between(release, "ld.acquire.gpu.global.u32 %r4, [%rd0+12];"), "race");
  EXPECT_EQ(fault_between(release + relaxed, acquire), "race");
  EXPECT_EQ(fault_between(release + add, acquire), "");
}

TEST(PtxOrder, ScopesIncludeEachOther) {
  const std::string release = "st.release.gpu.global.u32 [%rd0+4], 1;",
                    acquire = "ld.acquire.gpu.global.u32 %r4, [%rd0+4];";
  EXPECT_EQ(fault_between("st.release.cta.global.u32 [%rd0+4], 1;", acquire), "race");
  EXPECT_EQ(fault_between(release, "ld.acquire.cta.global.u32 %r4, [%rd0+4];"), "race");
  EXPECT_EQ(fault_between("fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%rd0+4], 1;", acquire),
            "race");
  EXPECT_EQ(fault_between(release, "ld.relaxed.gpu.global.u32 %r4, [%rd0+4]; membar.cta;"), "race");
  for (const std::int64_t cluster : {1, 2}) {
    EXPECT_EQ(fault_between("st.release.cluster.global.u32 [%rd0+4], 1;",
                            "ld.acquire.cluster.global.u32 %r4, [%rd0+4];", cluster),
              cluster == 2 ? "" : "race");
  }
  EXPECT_EQ(fault_between("st.release.cta.global.u32 [%rd0+4], 1;",
                          "ld.acquire.cta.global.u32 %r4, [%rd0+4];", 2),
            "race");
  // Within a CTA the narrowest is enough.
  EXPECT_EQ(fault_between_warps("st.release.cta.global.u32 [%rd0+4], 1;",
                                "ld.acquire.cta.global.u32 %r4, [%rd0+4];"),
            "");
  EXPECT_EQ(fault_between_warps("fence.acq_rel.cta; st.relaxed.cta.global.u32 [%rd0+4], 1;",
                                "ld.relaxed.cta.global.u32 %r4, [%rd0+4]; fence.acq_rel.cta;"),
            "");
  EXPECT_EQ(fault_between_warps("st.relaxed.cta.global.u32 [%rd0+4], 1;",
                                "ld.relaxed.cta.global.u32 %r4, [%rd0+4];"),
            "race");
  // Strong accesses of one CTA are weak to another.
  for (const auto& [written, read] :
       {std::pair("gpu", "gpu"), {"cta", "gpu"}, {"gpu", "cta"}, {"cta", "cta"}}) {
    const bool include = std::string_view(written) == "gpu" && std::string_view(read) == "gpu";
    EXPECT_EQ(fault_between(fmt::format("st.relaxed.{}.global.u32 [%rd0+4], 1; bra end;", written),
                            fmt::format("ld.relaxed.{}.global.u32 %r4, [%rd0+4]; bra end;", read)),
              include ? "" : "race");
  }
  EXPECT_EQ(fault_between("st.relaxed.gpu.global.u32 [%rd0+4], 1; bra end;",
                          "ld.global.u32 %r4, [%rd0+4]; bra end;"),
            "race");
  // What a narrower fence has seen does not go with a wider one.
  const std::string add = "red.relaxed.gpu.global.add.u32 [%rd0+4], 1;";
  const std::string two =
      "fence.acq_rel.gpu;" + add + "st.global.u32 [%rd0+16], 7; fence.acq_rel.cta;" + add;
  EXPECT_EQ(fault_between(two, acquire), "");
  EXPECT_EQ(fault_between(two, acquire + "ld.global.u32 %r5, [%rd0+16];"), "race");
  // Atomics of one CTA are none to another.
  const std::string numbers = "red.relaxed.{}.global.add.u32 [%rd0], 1;";
  const auto sums = [&](const char* scope) {
    return run(kernel_text("", fmt::format(fmt::runtime(numbers), scope)), 32, ordered(2)).fault();
  };
  EXPECT_EQ(sums("gpu"), "");
  EXPECT_EQ(sums("cta"), "race");
  const std::string vectors = "red.relaxed.{}.global.add.v2.f32 [%rd0], {{%f0, %f1}};";
  const auto vector_sums_of = [&](const char* scope) {
    return run(kernel_text("", fmt::format(fmt::runtime(vectors), scope)), 32, ordered(2)).fault();
  };
  EXPECT_EQ(vector_sums_of("gpu"), "");
  EXPECT_EQ(vector_sums_of("cta"), "race");
}

// CTAs of two clusters hand on by one word. A fence of the cluster lets the last CTA know of its
// neighbour alone.
TEST(PtxOrder, EachClusterHandsOnToItsOwn) {
  const auto fault = [](int writer) {
    LaunchInput input = ordered(4);
    input.cluster = 2;
    return run(kernel_text("", fmt::format(R"(
setp.ne.u32 %p0, %r0, 0;
@%p0 bra end;
mov.u32 %r2, %ctaid.x;
setp.eq.u32 %p1, %r2, 3;
@%p1 bra reader;
setp.eq.u32 %p2, %r2, {};
@%p2 st.global.u32 [%rd0], 7;
fence.acq_rel.cluster;
red.relaxed.gpu.global.add.u32 [%rd0+4], 1;
bra end;
reader:
ld.relaxed.gpu.global.u32 %r4, [%rd0+4];
fence.acq_rel.cluster;
ld.global.u32 %r3, [%rd0];
end:)",
                                           writer)),
               32, input)
        .fault();
  };
  EXPECT_EQ(fault(2), "");
  EXPECT_EQ(fault(0), "race");
}

TEST(PtxOrder, BarriersOrderClusters) {
  const std::string arrive = "barrier.cluster.arrive.release.aligned;\n",
                    wait = "barrier.cluster.wait.acquire.aligned;\n";
  const auto fault = [](const std::string& before, const std::string& behind) {
    LaunchInput input = ordered(2);
    input.cluster = 2;
    return run(kernel_text("", fmt::format(R"(
mov.u32 %r2, %cluster_ctarank;
setp.eq.u32 %p0, %r0, 0;
setp.eq.and.u32 %p1, %r2, 0, %p0;
setp.eq.and.u32 %p2, %r2, 1, %p0;
{}
@%p1 st.global.u32 [%rd0], 7;
{}
@%p2 ld.global.u32 %r3, [%rd0];)",
                                           before, behind)),
               32, input)
        .fault();
  };
  EXPECT_EQ(fault("", arrive + wait), "");
  EXPECT_EQ(fault(arrive, wait), "race");
  EXPECT_EQ(fault(arrive + wait, ""), "race");
}

TEST(PtxOrder, RacesOfWarpsInGlobalMemory) {
  const auto exchanged = [](std::string_view between) {
    return kernel_text("", fmt::format("st.global.u32 [%rd1], %r0;\n{}\nxor.b32 %r2, %r0, 32;\n"
                                       "mul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd2, %rd0, %rd2;\n"
                                       "ld.global.u32 %r3, [%rd2];",
                                       between));
  };
  EXPECT_EQ(run(exchanged(""), 64, ordered(1)).fault(), "race");
  EXPECT_EQ(run(exchanged("bar.sync 0;"), 64, ordered(1)).fault(), "");
}

}  // namespace
}  // namespace tilewright::ptx
