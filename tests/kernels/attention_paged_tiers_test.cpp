#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "explain/tiers.h"
#include "ir/program.h"
#include "ir/verifier.h"
#include "kernels/paged_alone.h"
#include "kernels/paged_runs.h"
#include "library/accuracy.h"
#include "passes/join_copies.h"
#include "passes/pipeline.h"
#include "tilewright/compile.h"
#include "tilewright/library_executable.h"

// Pages that follow each other in memory are copied together. Each such tier has the bits of pages
// in any order, which are copied one by one.
namespace tilewright {
namespace {

using testing::HasSubstr;

struct TierCase {
  const char* kernel;
  const char* schedule;
  std::vector<std::string> settings;
  const char* target = "sim:sm_90a";
};
std::ostream& operator<<(std::ostream& out, const TierCase& each) {
  out << each.kernel << " on " << each.target << " schedule=" << each.schedule;
  for (const std::string& setting : each.settings) out << " " << setting;
  return out;
}

library::Workload tier_workload(const TierCase& c) {
  std::vector<std::string> settings = c.settings;
  settings.emplace_back(std::string("schedule=") + c.schedule);
  return library::make_workload(find_kernel(c.kernel), settings, {}, 5);
}

void run_tiers(library::Workload& work, const char* target = "sim:sm_90a") {
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, target).run(tensors);
}

class AttentionPagedTiers : public testing::TestWithParam<TierCase> {};

TEST_P(AttentionPagedTiers, HaveTheBitsOfPagesInAnyOrder) {
  library::Workload shuffled = tier_workload(GetParam());
  for (const std::int64_t run : {8, 4, 2}) {
    SCOPED_TRACE(run);
    library::Workload work = test::in_runs(shuffled, run);
    run_tiers(work, GetParam().target);
    const library::Comparison comparison = library::compare(work, library::reference_of(work));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
    if (run == 8) run_tiers(shuffled, GetParam().target);
    for (std::size_t i = test::kFirstCache; i < work.tensors.size(); ++i) {
      if (test::is_cache(work, i)) continue;
      EXPECT_EQ(work.tensors[i], shuffled.tensors[i]) << i;
    }
  }
}

std::vector<TierCase> tier_cases() {
  const std::vector<std::string> decode = {"dim=64",       "heads=4",  "kv_heads=2", "keys=250",
                                           "max_pages=32", "pages=99", "batch=3",    "page=8"};
  const std::vector<std::string> chunks = {"dim=64",          "heads=4",    "kv_heads=2", "page=16",
                                           "max_pages=17",    "pages=80",   "keys=250",   "batch=2",
                                           "lengths_q=20,70", "causal=true"};
  const std::vector<std::string> latent = {"dim=192",      "dim_v=128", "heads=4", "keys=250",
                                           "max_pages=16", "pages=40",  "batch=2", "page=16"};
  const std::vector<std::string> large = {"dim=64",      "heads=4",  "kv_heads=2", "keys=500",
                                          "max_pages=8", "pages=40", "batch=2",    "page=64"};
  const std::vector<std::string> paged = {"dim=64",       "heads=4",  "kv_heads=2", "keys=250",
                                          "max_pages=17", "pages=80", "batch=2",    "page=16"};
  return {{"attention_paged", "tile", chunks},
          {"attention_paged", "tile", paged},
          {"attention_paged", "tile", paged, "sim:sm_100a"},
          {"attention_paged_mla", "tile", latent},
          {"attention_paged", "sm90", decode},
          {"attention_paged", "sm90_planned", chunks},
          {"attention_paged", "sm90_chunks", chunks},
          {"attention_paged_fp8", "sm90_split", decode},
          {"attention_paged_fp8", "sm90_keys", paged},
          {"attention_paged_fp8", "sm90_keys", large},
          {"attention_paged_mla", "sm90_planned", latent}};
}
INSTANTIATE_TEST_SUITE_P(Schedules, AttentionPagedTiers, testing::ValuesIn(tier_cases()));

// -1 is in front of page 0, and nothing behind the last page: neither makes a run.
TEST(AttentionPagedTiersTest, WhatIsNoPageIsNoNeighbour) {
  library::Workload work = tier_workload(
      {"attention_paged", "sm90", {"dim=64", "heads=2", "keys=64", "max_pages=4", "batch=1"}});
  HostTensor& table = work.tensors[test::kPagesOfKeys];
  for (const std::size_t i : {test::kFirstCache, test::kFirstCache + 1}) {
    work.tensors[i] =
        HostTensor::random_normal(work.tensors[i].dtype(), work.tensors[i].shape(), 3);
  }
  for (std::int64_t column = 0; column < 4; ++column) {
    table.set({0, column}, static_cast<double>(column - 1));
  }
  run_tiers(work);
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
  for (std::int64_t column = 0; column < 4; ++column) {
    table.set({0, column}, static_cast<double>(work.options.integer("pages") - 3 + column));
  }
  std::string text;
  try {
    run_tiers(work);
  } catch (const Error& error) {
    text = test::without_source_lines(error.what());
  }
  EXPECT_THAT(text, HasSubstr("index 64 on axis 0 of K, which has 64"));
}

// From page size and block: what may be copied together. `explain` names it.
TEST(AttentionPagedTiersTest, ExplainNamesThem) {
  struct Named {
    const char* page;
    std::vector<std::string> ways;
  };
  for (const Named& named :
       {Named{"page=8", {"x8", "x4", "x2", "x1", "x1"}}, Named{"page=32", {"x2", "x1", "x1"}},
        Named{"page=64", {"x1", "x1"}}, Named{"page=24", {"x1", "x1"}}}) {
    SCOPED_TRACE(named.page);
    const LibraryKernel& kernel = find_kernel("attention_paged");
    const auto options = resolve_options(kernel, {named.page, "schedule=sm90"});
    const Program program = build_program(kernel, choose_schedule(kernel, options, "sm_90a"));
    ir::Kernel scheduled = *program.finish().kernels[0];
    passes::simplify_kernel(scheduled);
    passes::join_copies(scheduled);
    ir::verify(scheduled);
    std::vector<std::string> ways;
    const auto tiers = explanations::tiers_in(scheduled);
    for (const explanations::Tiers& each : tiers) {
      if (each.ring != "keys0") continue;
      for (const auto& way : each.ways) ways.push_back("x" + std::to_string(way.together));
    }
    EXPECT_EQ(ways, named.ways);
    if (named.page != std::string("page=8")) continue;
    EXPECT_EQ(tiers[0].ways[0].copies, "1 of K_8x8x64, 1 of V_8x8x64");
    EXPECT_EQ(tiers[0].ways[3].copies, "8 of K_8x64, 8 of V_8x64");
    EXPECT_EQ(tiers[0].ways[4].copies, "8 of K_8x64 (cut), 8 of V_8x64 (cut)");
  }
}

// Of pages that are too small for copies.
TEST(AttentionPagedTiersTest, ExplainNamesWhatThreadsGather) {
  const LibraryKernel& kernel = find_kernel("attention_paged");
  const auto options = resolve_options(kernel, {"page=4", "schedule=sm90_keys"});
  const Program program = build_program(kernel, choose_schedule(kernel, options, "sm_90a"));
  const auto tiers = explanations::tiers_in(*program.finish().kernels[0]);
  ASSERT_EQ(tiers.size(), 2);
  EXPECT_EQ(tiers[0].ring, "keys0");
  EXPECT_TRUE(tiers[0].by_threads);
  ASSERT_EQ(tiers[0].ways.size(), 1);
  EXPECT_EQ(tiers[0].ways[0].copies, "16 of K_4x128, 16 of V_4x128");
}

// What a kernel of the tile level is compiled to says of its pages.
struct SaidOfPages {
  std::vector<std::string> ways;  // of stages of joined steps
  std::vector<std::string> decisions;
};
SaidOfPages said_of_pages(const char* name, const std::vector<std::string>& settings,
                          const char* target = "sm_90a") {
  const LibraryKernel& kernel = find_kernel(name);
  std::vector<std::string> all = settings;
  all.emplace_back("schedule=tile");
  const auto options = resolve_options(kernel, all);
  const Program program = build_program(kernel, choose_schedule(kernel, options, target));
  SaidOfPages said;
  const compiler::MachineForm form = compiler::compile_to_machine(
      *program.finish().kernels[0], target, {},
      [&](const compiler::Stage& stage, const ir::Kernel& now) {
        if (stage.name != "join_copies") return;
        for (const explanations::Tiers& each : explanations::tiers_in(now)) {
          for (const auto& way : each.ways) said.ways.push_back(each.ring + " " + way.copies);
        }
      });
  for (const compiler::Decision& each : form.decisions) {
    if (each.what.rfind("tiers", 0) == 0) said.decisions.push_back(each.what + ": " + each.why);
  }
  return said;
}

// At the tile level steps are joined, and copies of theirs too.
TEST(AttentionPagedTiersTest, StepsOfTheTileLevelAreJoined) {
  const SaidOfPages said = said_of_pages("attention_paged", {"page=16"});
  EXPECT_THAT(said.ways, testing::ElementsAre("K_x4 1 of K_4x16x64", "K_x4 2 of K_2x16x64",
                                              "K_x4 4 of K_16x64", "K_x4 4 of K_16x64 (cut)",
                                              "V_x4 1 of V_4x16x64", "V_x4 2 of V_2x16x64",
                                              "V_x4 4 of V_16x64", "V_x4 4 of V_16x64 (cut)"));
  EXPECT_THAT(said.decisions,
              testing::ElementsAre(
                  testing::AllOf(HasSubstr("tiers: 4 steps of the loop at "),
                                 HasSubstr("kernels/attention_paged.cpp:"),
                                 HasSubstr("load one stage of K"), HasSubstr("bits are the same")),
                  HasSubstr("load one stage of V")));
  EXPECT_EQ(said_of_pages("attention_paged", {"page=16"}, "sm_100a").ways, said.ways);
  EXPECT_THAT(said_of_pages("attention_paged", {"page=16", "csr=true"}).ways,
              testing::Contains("K_x4 1 of K_4x16x64"));
  EXPECT_THAT(said_of_pages("attention_paged", {"page=32"}).ways,
              testing::Contains("V_x2 1 of V_2x32x64"));
  EXPECT_THAT(said_of_pages("attention_paged_mla", {"page=16"}).ways,
              testing::Contains("KV_x2 1 of KV_2x16x64"));
}

// Where a step takes one page, the loop's line says why.
TEST(AttentionPagedTiersTest, StepsThatAreNotJoinedSayWhy) {
  const auto says = [](const char* kernel, const char* page, const char* why) {
    SCOPED_TRACE(page);
    const SaidOfPages said = said_of_pages(kernel, {page});
    EXPECT_THAT(said.ways, testing::IsEmpty());
    EXPECT_THAT(said.decisions,
                testing::Contains(testing::AllOf(
                    HasSubstr("tiers: a step of the loop at "),
                    HasSubstr("kernels/attention_paged.cpp:"), HasSubstr("the number that"),
                    HasSubstr("kernels/attention_paged_parameters.cpp:"), HasSubstr(why))));
  };
  says("attention_paged", "page=64", "a block has 64 rows");
  says("attention_paged", "page=48", "differ in more than a number");
  says("attention_paged_fp8", "page=16", "not products alone read it");
  says("attention_paged_mla", "page=32", "too little shared memory");
}

// What stages of several pages leave too little room for takes a page a step.
TEST(AttentionPagedTiersTest, StepsAreNotJoinedWhereTheirStagesDoNotFit) {
  constexpr int kRows = 64, kDim = 896, kMore = 320, kSlots = 16;
  Kernel kernel("crowded");
  const Dim pages = kernel.dim("pages"), steps = kernel.dim("steps");
  const Tensor T = kernel.in("T", i32, {steps});
  const Tensor Q = kernel.in("Q", bf16, {kRows, kDim}), W = kernel.in("W", bf16, {kRows, kMore});
  const Tensor K = kernel.in("K", bf16, {pages, kSlots, kDim});
  const Tensor Y = kernel.out("Y", f32, {kRows, kRows});
  kernel.grid(1);
  const Tile q = load(Q(all, all)), w = load(W(all, all));
  Var sum{zeros({kRows, kSlots})};
  for (Index i : range(steps)) {
    sum = sum * 0.5 + dot(q, load(K(load_index(T(i)), all, all)).T());
  }
  store(Y(all, all), dot(w, w.T()) + reduce_sum(sum, 1));
  std::vector<std::string> said;
  for (const compiler::Decision& each :
       compiler::compile_to_machine(kernel.finish(), "sm_90a").decisions) {
    if (each.what.rfind("tiers", 0) == 0) said.push_back(each.what + ": " + each.why);
  }
  EXPECT_THAT(said, testing::ElementsAre(testing::AllOf(
                        HasSubstr("each step loads its blocks by itself"),
                        HasSubstr("joined steps do not fit"), HasSubstr("shared memory"))));
}

}  // namespace
}  // namespace tilewright
