#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "check/fuzz/campaign.h"
#include "check/fuzz/envelope.h"
#include "check/fuzz/faults.h"
#include "check/fuzz/shrink.h"
#include "compiler/compile_to_machine.h"

namespace tilewright::checks::fuzz {
namespace {

// scripts/mutate_compiler takes as many.
constexpr std::int64_t kTestedKernels = 300;

TEST(FuzzTest, RandomKernelsComputeWhatTheySay) {
  CampaignOptions options;
  options.count = kTestedKernels;
  const CampaignReport report = run_campaign(options);
  for (const Failure& failure : report.failures) {
    ADD_FAILURE() << "seed " << failure.seed << ", " << failure.verdict.stage << ": "
                  << failure.shrunken.text << "\n"
                  << text_of(failure.recipe);
  }
  EXPECT_EQ(report.kernels, options.count);
  // Most are taken, of every style, and have numbers to compare.
  EXPECT_GT(report.agreed, options.count * 8 / 10);
  EXPECT_EQ(report.styles.size(), 3u);
  EXPECT_GT(report.checked, 1000 * report.agreed);
}

// A slice that lies behind what exists has rows and no columns. Reshaped, it has its rows still.
TEST(FuzzTest, AReshapedTileWithoutColumnsKeepsItsRows) {
  CampaignOptions options;
  options.seed = 5550054;
  options.count = 1;
  const CampaignReport report = run_campaign(options);
  EXPECT_EQ(report.failures.size(), 0u);
  EXPECT_EQ(report.agreed, 1);
}

// A product that is added to larger numbers: its sum may begin with them, and then each of its
// terms is rounded as they are.
TEST(FuzzTest, ASumMayBeginWithWhatAProductIsAddedTo) {
  CampaignOptions options;
  options.target = Target::cpu;
  options.seed = 841826;
  options.count = 1;
  const CampaignReport report = run_campaign(options);
  EXPECT_EQ(report.failures.size(), 0u);
  EXPECT_EQ(report.agreed, 1);
}

// The sums of a loop around a loop were zeros that nobody had written when the inner loop ended,
// and began with what the arena held. No kernel of those before had a loop within a loop with sums
// of both.
TEST(FuzzTest, SumsOfALoopAroundALoop) {
  CampaignOptions options;
  options.target = Target::cpu;
  options.seed = 2400049;
  options.count = 1;
  const CampaignReport report = run_campaign(options);
  EXPECT_EQ(report.failures.size(), 0u);
  EXPECT_EQ(report.agreed, 1);
}

// Whether the block has a product, and whether it has a loop that does, for which `fits` holds.
bool multiplies(const ir::Block& block) {
  return std::any_of(block.body.begin(), block.body.end(),
                     [](const ir::Operation& each) { return each.op == ir::Op::dot; });
}
template <typename Fits>
bool has_loop(const ir::Block& block, const Fits& fits) {
  return std::any_of(block.body.begin(), block.body.end(), [&](const ir::Operation& each) {
    const bool is_one = each.op == ir::Op::for_loop && multiplies(each.blocks[0]);
    return is_one && fits(each.blocks[0]);
  });
}

TEST(FuzzTest, RandomKernelsHaveSumsOfLoopsWithinLoops) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < kTestedKernels; ++seed) {
    const Recipe recipe = random_recipe(seed);
    if (recipe.style != Recipe::Style::products) continue;
    const ir::Kernel kernel = trace(recipe).kernel.finish();
    found += has_loop(kernel.body, [](const ir::Block& outer) {
      return has_loop(outer, [](const ir::Block&) { return true; });
    });
  }
  EXPECT_GE(found, 8);
}

// Random kernels for a target whose products leave their results in tensor memory. It has none of
// the explicit level's products.
TEST(FuzzTest, RandomKernelsForTensorMemory) {
  CampaignOptions options;
  options.machine = "sm_100a";
  options.seed = 100;  // products of two kinds on one result, and tiles that warps send
  options.count = 110;
  const CampaignReport report = run_campaign(options);
  for (const Failure& failure : report.failures) {
    ADD_FAILURE() << "seed " << failure.seed << ", " << failure.verdict.stage << ": "
                  << failure.shrunken.text << "\n"
                  << text_of(failure.recipe);
  }
  EXPECT_EQ(report.kernels, options.count);
  EXPECT_GT(report.agreed, options.count * 7 / 10);
}

// Of the machine forms of random kernels, how many have what compilers get wrong.
struct Reached {
  int one = 0;             // conversion of layouts, or more
  int conversions = 0;     // of two sizes or more
  int reductions = 0;      // over several warps
  int exchanges = 0;       // between warpgroups
  int parts_along_mn = 0;  // of an operand in shared memory, not from its beginning
  int parts_along_k = 0;
  int owned = 0;  // memory that one launch leaves to the next
};
void note(const ir::Kernel& machine, Reached& reached) {
  std::set<std::int64_t> converted;
  bool reduces = false, exchanges = false, mn = false, k = false;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::shared) {
      const std::string& name = o.attributes.text(ir::Key::name);
      if (o.attributes.has(ir::Key::scratch)) {
        converted.insert(o.attributes.shared_layout().size_bytes());
      }
      reduces = reduces || name.rfind("reduction", 0) == 0;
      exchanges = exchanges || name.rfind("operand", 0) == 0 || name.rfind("vector", 0) == 0;
    }
    if (o.op != ir::Op::wgmma_ss && o.op != ir::Op::wgmma_rs) return;
    // The first step of a product does not add to what is there, or to what another left.
    const bool turned = o.attributes.integer_or(ir::Key::transpose_b, 0) != 0;
    const std::int64_t step = o.attributes.integer_or(ir::Key::step_b, 0);
    mn = mn || (turned && step >= 8192);
    k = k || (!turned && step > 0);
  });
  reached.conversions += converted.size() > 1;
  reached.one += !converted.empty();
  reached.reductions += reduces;
  reached.exchanges += exchanges;
  reached.parts_along_mn += mn;
  reached.parts_along_k += k;
  reached.owned += machine.has_owned();
}

TEST(FuzzTest, RandomKernelsReachWhatCompilersGetWrong) {
  Reached reached;
  for (std::uint64_t seed = 0; seed < kTestedKernels; ++seed) {
    const Recipe recipe = random_recipe(seed);
    const bool is_explicit = recipe.style == Recipe::Style::explicit_level;
    try {
      const ir::Kernel kernel = is_explicit ? trace_explicit(recipe, ir::default_target()).finish()
                                            : trace(recipe).kernel.finish();
      note(compiler::compile_to_machine(kernel, ir::default_target()).kernel, reached);
    } catch (const Error&) {  // refused, as some are
    }
  }
  EXPECT_GE(reached.one, 20);
  EXPECT_GE(reached.conversions, 1);
  EXPECT_GE(reached.reductions, 30);
  EXPECT_GE(reached.exchanges, 5);
  EXPECT_GE(reached.parts_along_mn, 3);
  EXPECT_GE(reached.parts_along_k, 20);
  EXPECT_GE(reached.owned, 10);
}

// What a compiler could get wrong is noticed within few kernels. Of fences between the proxies the
// simulated GPU knows nothing.
TEST(FuzzTest, SeededFaultsAreNoticed) {
  for (const TimeToKill& found : time_to_kill(1, 12, ir::default_target())) {
    if (found.fault->name == std::string("no_proxy_fence")) continue;
    EXPECT_TRUE(found.killed) << found.fault->name << ", planted in " << found.planted << " of "
                              << found.kernels << " kernels";
    EXPECT_NE(found.how.find(": "), std::string::npos) << "what noticed it, and what that says";
  }
}

bool has(const std::vector<Step>& steps, Step::Kind kind) {
  for (const Step& step : steps) {
    if (step.kind == kind || has(step.inner, kind)) return true;
  }
  return false;
}

TEST(FuzzTest, ShrinksToWhatFails) {
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Recipe recipe = random_recipe(seed);
    if (!has(recipe.steps, Step::Kind::reduce)) continue;
    const Recipe small = shrunken(recipe, [](const Recipe& candidate) {
      return has(candidate.steps, Step::Kind::reduce) && candidate.sizes.rows >= 1;
    });
    EXPECT_EQ(steps_of(small), 1) << seed;
    EXPECT_EQ(small.sizes.rows, 1) << seed;
    ++shrunk;
  }
  EXPECT_GT(shrunk, 10);
}

TEST(FuzzTest, ASeedMakesTheSameKernelAgain) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(text_of(random_recipe(seed)), text_of(random_recipe(seed)));
  }
  EXPECT_NE(text_of(random_recipe(1)), text_of(random_recipe(2)));
}

// A loop's variable began as one half of a tile and took on the other, which ends 16 columns
// earlier: how much of it exists, and so its kernel's result, hung on the turn.
TEST(FuzzTest, VariablesDoNotTakeOnTilesThatEndEarlier) {
  const Verdict verdict = judge(random_recipe(710004744), Target::simulator, ir::default_target());
  EXPECT_FALSE(verdict.failed()) << verdict.text;
}

// Of numbers below zero too.
TEST(FuzzTest, BoundsOfSingleFunctions) {
  const auto of = [](ir::Op op, DType dtype, Interval a, Interval b = {}) {
    const Interval operands[] = {a, b, {}};
    const Interval result = evaluate(op, operands, dtype, Precision());
    return std::pair(result.lo, result.hi);
  };
  const auto whole = [](double value) { return Interval{value, value}; };
  using Bounds = std::pair<double, double>;
  EXPECT_EQ(of(ir::Op::div, i32, whole(-7), whole(2)), Bounds(-4, -4));
  EXPECT_EQ(of(ir::Op::mod, i32, whole(-7), whole(2)), Bounds(1, 1));
  EXPECT_EQ(of(ir::Op::ceildiv, i32, whole(-7), whole(2)), Bounds(-3, -3));
  EXPECT_EQ(of(ir::Op::abs, i32, whole(-7)), Bounds(7, 7));
  EXPECT_EQ(of(ir::Op::abs, f32, {-3, -2}), Bounds(2, 3));
  EXPECT_EQ(of(ir::Op::abs, f32, {-3, 2}), Bounds(0, 3));
  EXPECT_EQ(of(ir::Op::abs, f32, {2, 3}), Bounds(2, 3));
  EXPECT_EQ(of(ir::Op::neg, f32, {-3, 2}), Bounds(-2, 3));
  EXPECT_EQ(of(ir::Op::min, f32, {-3, 2}, {-1, 1}), Bounds(-3, 1));
  EXPECT_EQ(of(ir::Op::max, f32, {-3, 2}, {-1, 1}), Bounds(-1, 2));
  // What may be anything may be no number, whichever operand it is.
  for (const ir::Op op : {ir::Op::min, ir::Op::max, ir::Op::add, ir::Op::mul}) {
    for (const auto& [a, b] : {std::pair(kAnything, whole(1)), {whole(1), kAnything}}) {
      const auto [lo, hi] = of(op, f32, a, b);
      EXPECT_TRUE(std::isnan(lo) && std::isnan(hi)) << ir::info(op).name;
    }
  }
}

// The bounds are as narrow as rounding is, and depend on what cancels.
TEST(FuzzTest, BoundsFollowFromTheKernel) {
  Kernel kernel("sums");
  const Tensor X = kernel.in("X", f32, {4, 64});
  const Tensor S = kernel.out("S", f32, {4, 1}), D = kernel.out("D", f32, {4, 64});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  store(S(all, all), reduce_sum(x, 1));
  store(D(all, all), x * 1000 - x * 999);
  Launch launch;
  launch.tensors.emplace_back("X", f32, std::vector<std::int64_t>{4, 64});
  launch.tensors.emplace_back("S", f32, std::vector<std::int64_t>{4, 1});
  launch.tensors.emplace_back("D", f32, std::vector<std::int64_t>{4, 64});
  launch.tensors[0].fill_randomly(1);
  const std::vector<TensorEnvelope> bounds = envelope_of(kernel.finish(), launch, Precision());
  for (std::int64_t row = 0; row < 4; ++row) {
    double sum = 0, magnitudes = 0;
    for (std::int64_t i = 0; i < 64; ++i) {
      const double value = launch.tensors[0].memory.at({row, i});
      sum += value;
      magnitudes += std::abs(value);
      const Interval difference =
          bounds[2].values[static_cast<std::size_t>(row * launch.tensors[2].memory.shape()[1] + i)];
      EXPECT_LE(difference.lo, value);
      EXPECT_GE(difference.hi, value);
      EXPECT_LT(difference.hi - difference.lo, 1e-3 * std::abs(value));
      EXPECT_GT(difference.hi - difference.lo, 1e-5 * std::abs(value));
    }
    const std::int64_t width = launch.tensors[1].memory.shape()[1];
    const Interval found = bounds[1].values[static_cast<std::size_t>(row * width)];
    EXPECT_LE(found.lo, sum);
    EXPECT_GE(found.hi, sum);
    EXPECT_LT(found.hi - found.lo, 64 * 0x1p-22 * magnitudes);
    // Behind the end of a row nothing is written.
    EXPECT_FALSE(bounds[1].written[static_cast<std::size_t>(row * width + 1)]);
  }
}

}  // namespace
}  // namespace tilewright::checks::fuzz
