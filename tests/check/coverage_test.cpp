#include "check/coverage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "check/shrunken_sizes.h"
#include "compiler/compile_to_machine.h"
#include "ir/text.h"
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
  Coverage all, of_one, of_first;
  const auto chosen = [&](Coverage& reached, std::int64_t operations, std::size_t most = SIZE_MAX) {
    return covering(machine_, makers, 1, 0, operations, reached, most).chosen;
  };
  EXPECT_THAT(chosen(all, 1'000'000), testing::ElementsAre(2, 1, 0));
  EXPECT_THAT(chosen(of_one, 1'000'000, 1), testing::ElementsAre(2));
  EXPECT_EQ(of_one.turns, of(kMany).turns);
  // All of it is reached now.
  EXPECT_EQ(all.gain(of(kNothing)) + all.gain(of(kStep)) + all.gain(of(kMany)), 0u);
  EXPECT_THAT(chosen(all, 1'000'000), testing::IsEmpty());
  // The budget of operations is spent by the first one.
  EXPECT_THAT(chosen(of_first, 1), testing::ElementsAre(0));
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

// A kernel of two warps that computes one function of two numbers.
ir::Kernel kernel_of_function(const char* function, std::int64_t a, std::int64_t b) {
  return ir::parse_text(
      fmt::format("kernel \"edges\" machine\ngrid (1)\ncluster 1\nthreads 64\nresident 1\n"
                  "shared_bytes 0\nbody () {{\n  %0: i32 = constant {{value = {}}}\n"
                  "  %1: i32 = constant {{value = {}}}\n  %2: {} = {} %0, %1\n}}\n",
                  a, b, std::string_view(function) == "lt" ? "bool" : "i32", function),
      "");
}
Coverage of_function(const char* function, std::int64_t a, std::int64_t b) {
  std::int64_t operations = 0;
  return coverage_of(kernel_of_function(function, a, b), {}, 1, 0, operations);
}

TEST(Coverage, KnowsTheEdgesOfFunctions) {
  struct Case {
    const char* function;
    std::int64_t a, b;
    std::uint32_t edges;
  };
  for (const Case& each : std::vector<Case>{{"lt", 4, 4, kEqual},
                                            {"lt", 3, 4, kOneLess},
                                            {"min", 5, 4, kOneMore},
                                            {"max", 2, 4, kNoEdge},
                                            {"lt", 6, 4, kNoEdge},
                                            {"add", 4, 4, kNoEdge},
                                            {"div", 0, 7, kNoPart},
                                            {"div", 3, 7, kNoPart | kRemainder},
                                            {"div", 7, 7, kOnePart | kDivides},
                                            {"div", 8, 7, kOnePart | kRemainder | kOneMore},
                                            {"mod", 13, 7, kOnePart | kRemainder | kOneLess},
                                            {"div", 21, 7, kFewParts | kDivides},
                                            {"div", 5, 2, kFewParts | kRemainder},
                                            {"div", 28, 7, kManyParts | kDivides}}) {
    EXPECT_EQ(of_function(each.function, each.a, each.b).edges[2], each.edges)
        << each.a << " " << each.function << " " << each.b;
  }
}

// Whether a run shows that a divisor is one too large, or that a quotient is not rounded up.
TEST(Coverage, KnowsWhichNumbersTell) {
  const auto divisor_tells = [](const char* function, std::int64_t a, std::int64_t b) {
    return bool(of_function(function, a, b).divisor_tells[2]);
  };
  EXPECT_TRUE(divisor_tells("div", 28, 7)) << "4 and 3";
  EXPECT_FALSE(divisor_tells("div", 8, 7)) << "once both times";
  EXPECT_TRUE(divisor_tells("mod", 8, 7)) << "1 and 0";
  EXPECT_FALSE(divisor_tells("mod", 3, 7)) << "3 both times";
  const auto less_tells = [](const char* function, std::int64_t a, std::int64_t b) {
    return bool(of_function(function, a, b).less_tells[2]);
  };
  EXPECT_TRUE(less_tells("div", 6, 7)) << "none and one";
  EXPECT_FALSE(less_tells("div", 28, 7)) << "four both times";
  EXPECT_FALSE(less_tells("div", 3, 1)) << "the mutant divides by one at least";
  const auto remainder_tells = [](std::int64_t a, std::int64_t b) {
    return bool(of_function("div", a, b).remainder_tells[2]);
  };
  EXPECT_TRUE(remainder_tells(13 + 7, 8)) << "13 are two parts, and one whole one";
  EXPECT_FALSE(remainder_tells(16 + 7, 8)) << "16 are two parts either way";
  EXPECT_TRUE(remainder_tells(3, 8)) << "less than a whole one";
}

// What no run executes as such is not missed.
TEST(Coverage, MissesWhatIsExecutable) {
  const ir::Kernel machine = kernel_of_function("add", 1, 2);
  Coverage coverage = of_function("add", 1, 2);
  ASSERT_EQ(coverage.turns.size(), 3u);
  EXPECT_THAT(coverage.missing(machine), testing::IsEmpty());
  coverage.turns = {0, 0, 0};
  coverage.executable = {true, false, true};
  const std::vector<const ir::Operation*> missing = coverage.missing(machine);
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[1]->op, ir::Op::add);
}

// Each warp comes to it once. Another run adds what it has more of.
TEST(Coverage, CountsTheTurnsOfOneWarp) {
  const Coverage once = of_function("add", 1, 2);
  EXPECT_EQ(once.turns[2], 1u);
  Coverage often = once;
  often.turns[2] = 5;
  EXPECT_EQ(once.gain(often), 4u);
  EXPECT_EQ(often.gain(once), 0u);
  often.edges[2] |= kEqual | kOneLess;
  EXPECT_EQ(once.gain(often), 6u);
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
// by whole steps, and one is left. The usual sizes depend on the kernel's stages alone.
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
    EXPECT_NE(k % 64, 0);  // the last step of a contraction is a part of one
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
