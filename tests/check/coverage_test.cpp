#include "check/coverage.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "check/shrunken_sizes.h"
#include "compiler/compile_to_machine.h"
#include "library/library_build.h"
#include "tilewright/library.h"

// What sizes come to, and which are chosen for it.
namespace tilewright::checks {
namespace {

class CoverageTest : public testing::Test {
 protected:
  CoverageTest() : entry_(find_kernel("gemm")) {
    const Kernel traced = library::trace_entry(entry_, resolve_options(entry_, kSettings),
                                               compiler::parse_target("sm_90a"));
    machine_ = compiler::compile_to_machine(traced.finish(), "sm_90a").kernel;
  }
  std::function<library::Workload()> maker(std::vector<std::string> sizes) const {
    sizes.insert(sizes.end(), kSettings.begin(), kSettings.end());
    return [this, sizes] { return library::make_workload(entry_, sizes, {}, 0); };
  }
  Coverage of(const std::vector<std::string>& sizes) const {
    library::Workload workload = maker(sizes)();
    std::int64_t operations = 0;
    return coverage_of(machine_, workload.arguments(), 1, 0, operations);
  }

  static inline const std::vector<std::string> kSettings = {"schedule=64x96"};
  const LibraryKernel& entry_;
  ir::Kernel machine_;
};

const std::vector<std::string> kNothing = {"m=64", "n=96", "k=0"};
const std::vector<std::string> kStep = {"m=64", "n=96", "k=64"};
const std::vector<std::string> kMany = {"m=200", "n=304", "k=1000"};

TEST_F(CoverageTest, NamesTheOperationsThatNoSizeComesTo) {
  const auto products = [&](const Coverage& coverage) {
    int count = 0;
    for (const ir::Operation* operation : coverage.missing(machine_)) {
      count += ir::info(operation->op).family == ir::Family::product;
    }
    return count;
  };
  EXPECT_GT(products(of(kNothing)), 0);
  EXPECT_EQ(products(of(kMany)), 0);
}

// One arrival of so many that is missing from each phase adds up to a phase.
TEST_F(CoverageTest, WantsAPhaseForEachArrival) {
  EXPECT_EQ(Coverage::phases_wanted(1), 4u);
  EXPECT_EQ(Coverage::phases_wanted(12), 14u);
  const Coverage step = of(kStep), many = of(kMany);
  EXPECT_NE(step.phases, step.wanted);
  EXPECT_GT(step.gain(many), 0u);
  EXPECT_EQ(many.gain(many), 0u);
}

TEST_F(CoverageTest, ChoosesWhatAddsMostAndNothingTwice) {
  const std::vector<std::function<library::Workload()>> makers = {maker(kNothing), maker(kStep),
                                                                  maker(kMany), maker(kMany)};
  EXPECT_THAT(covering(machine_, makers, 1, 0, 1'000'000, {}), testing::ElementsAre(2, 1, 0));
  EXPECT_THAT(covering(machine_, makers, 1, 0, 1'000'000, {}, 1), testing::ElementsAre(2));
  Coverage all = of(kMany);
  all.add(of(kNothing));
  all.add(of(kStep));
  EXPECT_THAT(covering(machine_, makers, 1, 0, 1'000'000, all), testing::IsEmpty());
  // The budget of operations is spent by the first one.
  EXPECT_THAT(covering(machine_, makers, 1, 0, 1, {}), testing::ElementsAre(0));
}

// A split that loses its remainder computes what is right wherever there is none.
TEST_F(CoverageTest, TellsDivisionsWithARemainderFromThoseWithout) {
  const auto met = [](const Coverage& coverage, Edges edge) {
    return std::count_if(coverage.edges.begin(), coverage.edges.end(),
                         [&](std::uint32_t edges) { return (edges & edge) != 0; });
  };
  const Coverage step = of(kStep), many = of(kMany);
  EXPECT_GT(met(step, kDivides), 0);
  EXPECT_GT(met(many, kRemainder), met(step, kRemainder));
  EXPECT_GT(met(many, kManyParts), met(step, kManyParts));
  EXPECT_GT(met(step, kEqual), 0);
}

// A window is an edge: some candidates lie at it, one off, and several times as far.
TEST(CandidateSizes, LieAtTheEdgeOfAWindow) {
  const LibraryKernel& entry = find_kernel("attention_forward");
  const std::vector<std::string> settings = {"schedule=sm90", "causal=true", "window=150",
                                             "batch=1", "heads=1"};
  const OptionValues options = resolve_options(entry, settings);
  const Kernel traced = library::trace_entry(entry, options, compiler::parse_target("sm_90a"));
  const ir::Kernel machine = compiler::compile_to_machine(traced.finish(), "sm_90a").kernel;
  const auto candidates = shrunken_sizes(entry, settings, options, machine, Sizes::candidates);
  for (const char* keys : {"keys=149", "keys=150", "keys=151"}) {
    EXPECT_THAT(candidates, testing::Contains(std::vector<std::string>{"queries=150", keys}));
  }
}

// A launch refuses tensor maps whose rows do not begin at multiples of 16 bytes.
TEST(CandidateSizes, HaveRowsThatTmaCanCopy) {
  const LibraryKernel& entry = find_kernel("gemm");
  const std::vector<std::string> settings = {"schedule=tile"};
  const OptionValues options = resolve_options(entry, settings);
  const Kernel traced = library::trace_entry(entry, options, compiler::parse_target("sm_90a"));
  const ir::Kernel machine = compiler::compile_to_machine(traced.finish(), "sm_90a").kernel;
  bool stores_other_rows = false;
  for (const Sizes which : {Sizes::usual, Sizes::further, Sizes::candidates}) {
    for (const auto& sizes : shrunken_sizes(entry, settings, options, machine, which)) {
      EXPECT_EQ(resolve_options(entry, sizes).integer("k") % 8, 0);
      stores_other_rows = stores_other_rows || resolve_options(entry, sizes).integer("n") % 8 != 0;
    }
  }
  // Those it stores from registers.
  EXPECT_TRUE(stores_other_rows);
}

// Of tiles so large that a few of each axis are more than a run is worth, contractions are shorter:
// by whole steps, and one is left. The usual sizes hang on the kernel's stages alone.
TEST(FurtherSizes, HaveNoMoreMultiplicationsThanARunIsWorth) {
  const LibraryKernel& entry = find_kernel("gemm");
  const std::vector<std::string> settings = {"schedule=128x256"};
  const OptionValues options = resolve_options(entry, settings);
  const Kernel traced = library::trace_entry(entry, options, compiler::parse_target("sm_90a"));
  const ir::Kernel machine = compiler::compile_to_machine(traced.finish(), "sm_90a").kernel;
  constexpr std::int64_t kMost = 500'000'000;
  std::int64_t most = 0, least_steps = INT64_MAX;
  for (const auto& sizes : shrunken_sizes(entry, settings, options, machine, Sizes::further)) {
    const OptionValues set = resolve_options(entry, sizes);
    const std::int64_t k = set.integer("k");
    EXPECT_LE(set.integer("m") * set.integer("n") * k, kMost) << testing::PrintToString(sizes);
    EXPECT_GT(k, 0);
    most = std::max(most, set.integer("m") * set.integer("n") * k);
    least_steps = std::min(least_steps, k);
  }
  // Some are cut to it.
  EXPECT_GT(most, kMost / 2);
  EXPECT_GT(least_steps, 0);
}

}  // namespace
}  // namespace tilewright::checks
