#include "tilewright/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "compiler/build.h"
#include "ir/ir.h"
#include "ir/program.h"
#include "kernels/attention_case.h"
#include "kernels/attention_sm90_plan.h"
#include "kernels/expect_no_stack.h"
#include "runtime/nvrtc_available.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/recorder.h"
#include "tilewright/kernels/attention_ranks.h"

namespace tilewright::kernels {
namespace {

using test::Execution;
using test::kLseTolerance;
using test::kTolerance;
using test_attention::Problem;
using test_attention::Reference;
using test_attention::reference;
using test_attention::Tensors;

void check(const Problem& p, const Execution& execution) {
  Tensors t(p);
  ASSERT_TRUE(test::execute(
      execution.machine ? attention_forward_sm90(p.options) : attention_forward(p.options),
      t.arguments(), execution));
  const Reference r = reference(p, t);
  EXPECT_LT(test::relative_error(t.o, r.o), kTolerance);
  EXPECT_LT(test::relative_error(t.lse, r.lse), kLseTolerance);
  EXPECT_EQ(t.o.written_outside(), 0);
  EXPECT_EQ(t.lse.written_outside(), 0);
}

Attention small() {
  Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 64;
  a.block_q = 128;
  a.block_k = 128;
  return a;
}
Problem problem(std::int64_t queries, std::int64_t keys, bool causal = false, int window = 0) {
  Problem p{small()};
  p.queries = queries;
  p.keys = keys;
  p.options.causal = causal;
  p.options.window = window;
  return p;
}

class AttentionLengths : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Tails, AttentionLengths,
                         testing::Values(0, 1, 17, 64, 100, 128, 129, 200, 300));

TEST_P(AttentionLengths, OfQueries) { check(problem(GetParam(), 100), {}); }
TEST_P(AttentionLengths, OfKeys) { check(problem(100, GetParam()), {}); }
TEST_P(AttentionLengths, Causal) {
  check(problem(GetParam(), 129, true), {});
  check(problem(129, GetParam(), true), {});
}
TEST_P(AttentionLengths, OfQueriesSm90) { check(problem(GetParam(), 129), {.machine = true}); }
TEST_P(AttentionLengths, OfKeysSm90) { check(problem(100, GetParam()), {.machine = true}); }
TEST_P(AttentionLengths, CausalSm90) {
  check(problem(GetParam(), 129, true), {.machine = true});
  check(problem(129, GetParam(), true), {.machine = true});
}

Problem in_pairs(Problem p) {
  p.options.in_pairs = true;
  return p;
}
TEST_P(AttentionLengths, InPairs) {
  for (const bool causal : {false, true}) {
    check(in_pairs(problem(GetParam(), 129, causal)), {.machine = true});
    check(in_pairs(problem(129, GetParam(), causal)), {.machine = true});
  }
}

// Several rounds, of which the last is not full, and a tile that has no other beside it.
TEST(AttentionTest, PairsComeToEveryTileOnce) {
  for (const int multiprocessors : {2, 8}) {
    for (const bool causal : {false, true}) {
      Problem p = in_pairs(problem(600, 150, causal));
      p.options.heads = p.options.kv_heads = 3;
      SCOPED_TRACE(std::to_string(multiprocessors) + " multiprocessors");
      check(p, {.machine = true, .seed = 3, .multiprocessors = multiprocessors});
    }
  }
}

TEST(AttentionTest, PairsWithAWindowAreRefused) {
  const Attention a = in_pairs(problem(100, 100, true, 40)).options;
  const std::string error = test::usage_error_of([&] { attention_forward_sm90(a); });
  EXPECT_NE(error.find("in_pairs is set and window is 40"), std::string::npos) << error;
  const std::string packed = test::usage_error_of([&] { attention_varlen_forward_sm90(a); });
  EXPECT_NE(packed.find("in_pairs is set"), std::string::npos) << packed;
}

// Of three tiles for two CTAs, of five for four and of five for ten those have two, four and two
// parts that fill no round. Under a mask some rows see nothing of a part, or of any.
TEST(AttentionTest, LastTilesInParts) {
  struct Tiles {
    std::int64_t queries, keys;
    int heads, multiprocessors;
  };
  for (const bool causal : {false, true}) {
    for (const Tiles& each : std::vector<Tiles>{
             {190, 280, 1, 2}, {150, 600, 2, 4}, {260, 420, 1, 10}, {300, 280, 1, 10}}) {
      for (const std::uint64_t seed : {1, 2}) {
        Problem p = problem(each.queries, each.keys, causal);
        p.options.in_parts = true;
        p.options.sinks = seed == 2;
        p.options.heads = each.heads;
        p.options.kv_heads = 1;
        p.options.dim = p.options.dim_v = p.options.block_k = 16;
        p.options.block_q = 64;
        SCOPED_TRACE(std::to_string(each.queries) + " queries, causal " + std::to_string(causal));
        check(p, {.machine = true, .seed = seed, .multiprocessors = each.multiprocessors});
      }
    }
  }
}

// Nine heads come in two groups under a mask, of which the last has one head fewer.
TEST(AttentionTest, TheLastGroupOfHeadsIsSmaller) {
  Problem p = problem(150, 150, true);
  p.options.heads = p.options.kv_heads = 9;
  p.options.dim = p.options.dim_v = 16;
  check(p, {.machine = true, .multiprocessors = 4});
}

TEST(AttentionTest, FewTiles) {
  for (const bool causal : {false, true}) {
    for (const int multiprocessors : {1, 3}) {
      Problem p = problem(500, 300, causal);
      p.options.heads = 2;
      p.options.kv_heads = 1;
      p.options.few_tiles = true;
      p.options = with_sm90_blocks(p.options);
      EXPECT_EQ(p.options.block_q, 128);
      check(p, {.machine = true, .seed = 1, .multiprocessors = multiprocessors});
    }
  }
}

// Each order of tiles, in one GPU's memory and over ranks.
enum class TileOrder { heads, pairs, parts, few, ranks };
class AttentionCubins : public testing::TestWithParam<std::tuple<TileOrder, int>> {};
INSTANTIATE_TEST_SUITE_P(Narrow, AttentionCubins,
                         testing::Combine(testing::Values(TileOrder::heads, TileOrder::pairs,
                                                          TileOrder::parts, TileOrder::few,
                                                          TileOrder::ranks),
                                          testing::Values(16, 80, 128)));
INSTANTIATE_TEST_SUITE_P(Wide, AttentionCubins,
                         testing::Combine(testing::Values(TileOrder::heads, TileOrder::pairs,
                                                          TileOrder::few, TileOrder::ranks),
                                          testing::Values(144, 208, 256)));

TEST_P(AttentionCubins, HaveNoStackAndSpillNothing) {
  if (const std::string why = runtime::why_no_nvrtc("sm_90a"); !why.empty()) GTEST_SKIP() << why;
  const auto [order, dim] = GetParam();
  SequenceParallelAttention o;
  Attention& a = o.attention;
  a.dim = a.dim_v = dim;
  a.causal = order != TileOrder::ranks;  // without a mask those have parts
  a.in_pairs = order == TileOrder::pairs;
  a.in_parts = order == TileOrder::parts;
  a.few_tiles = order == TileOrder::few;
  a = with_sm90_blocks(a);
  const auto expect = [](const ir::Kernel& kernel) {
    SCOPED_TRACE(kernel.name);
    test::expect_no_stack(compiler::choose_form(kernel, "sm_90a").source, "sm_90a");
  };
  if (order != TileOrder::ranks) return expect(attention_forward_sm90(a).finish());
  o.ranks = 2;
  const Program program = sequence_parallel_attention_sm90(o);
  for (const auto& kernel : program.finish().kernels) expect(*kernel);
}

// How many copies one CTA issues before, between and behind the additions by which it takes tiles.
class CopiesBetweenTiles : public simulator::Recorder {
 public:
  std::vector<int> counts{0};
  using Recorder::executed;
  void executed(const simulator::Warp&, const simulator::Instruction& instruction) override {
    if (instruction.op == ir::Op::tma_load) ++counts.back();
    // The last one of all is followed by another one, which sets the counter back.
    if (instruction.op == ir::Op::atomic_add && counts.back() > 0) counts.push_back(0);
  }
};

// Two tiles. Of each there are copies of Q and of the last block's K. Then come, at a time, V of a
// block and K of the one before, and last of all V.
TEST(AttentionTest, TilesAreTakenNearTheEndOfTheOneBefore) {
  const auto copies_of = [](std::int64_t blocks, bool parts) {
    Problem p = problem(384, 128 * blocks);
    p.options.in_parts = parts;
    p.options = with_sm90_blocks(p.options);
    Tensors t(p);
    ir::Kernel machine = attention_forward_sm90(p.options).finish();
    passes::lower_to_machine(machine);
    CopiesBetweenTiles copies;
    simulator::MachineOptions options;
    options.multiprocessors = options.resident = 1;
    options.recorder = &copies;
    EXPECT_TRUE(simulator::run_machine(machine, t.arguments(), options).ok());
    return copies.counts;
  };
  for (const bool parts : {false, true}) {
    EXPECT_EQ(copies_of(1, parts), (std::vector{2, 1 + 2, 1}));
    EXPECT_EQ(copies_of(3, parts), (std::vector{2, 5 + 2, 5}));
    EXPECT_EQ(copies_of(9, parts), (std::vector{10, 9 + 10, 9})) << "of a tile's last four blocks";
  }
}

// The rules of attention_forward count these blocks.
TEST(AttentionTest, BlocksOfNarrowDimsAreThoseOfTheRules) {
  for (int dim = 16; dim <= 128; dim += 16) {
    for (int dim_v = 16; dim_v <= 128; dim_v += 16) {
      Attention a;
      a.dim = dim;
      a.dim_v = dim_v;
      a = with_sm90_blocks(a);
      EXPECT_EQ(a.block_q, 192) << dim << " and " << dim_v;
      EXPECT_EQ(a.block_k, dim_v <= 64 ? 128 : 64) << dim << " and " << dim_v;
    }
  }
}

TEST(AttentionTest, PartsOfWindowsAndWideDimsAreRefused) {
  const auto refused = [](const Attention& a, bool packed) {
    return test::usage_error_of(
        [&] { packed ? attention_varlen_forward_sm90(a) : attention_forward_sm90(a); });
  };
  Attention a = problem(100, 100, true, 40).options;
  a.in_parts = true;
  EXPECT_NE(refused(a, false).find("in_parts is set and window is 40"), std::string::npos);
  a.window = 0;
  EXPECT_NE(refused(a, true).find("in_parts is set"), std::string::npos);
  a.dim_v = 144;
  EXPECT_NE(refused(a, false).find("in_parts is set, dim is 64 and dim_v 144"), std::string::npos);
  a.in_parts = false;
  a.few_tiles = true;
  EXPECT_NE(refused(a, true).find("few_tiles is set"), std::string::npos);
}

TEST(AttentionTest, NothingVisibleIsZeroAndMinusInfinity) {
  // With fewer keys than queries the first queries see none.
  for (const bool machine : {false, true}) {
    const Problem p = problem(130, 5, true);
    Tensors t(p);
    ASSERT_TRUE(
        test::execute(machine ? attention_forward_sm90(p.options) : attention_forward(p.options),
                      t.arguments(), {.machine = machine}));
    for (const std::int64_t row : {0, 64, 124}) {
      EXPECT_EQ(t.lse.at({0, 0, row}), -std::numeric_limits<double>::infinity());
      for (std::int64_t d = 0; d < 64; ++d) EXPECT_EQ(t.o.at({0, row, 0, d}), 0);
    }
    EXPECT_TRUE(std::isfinite(t.lse.at({0, 0, 125})));
  }
}

TEST(AttentionTest, Window) {
  for (const bool machine : {false, true}) {
    for (const int window : {1, 60, 128, 1000}) {
      check(problem(200, 300, true, window), {.machine = machine});
    }
  }
}

TEST(AttentionTest, SharedHeads) {
  for (const bool machine : {false, true}) {
    for (const int kv_heads : {1, 2, 4}) {
      Problem p = problem(65, 150);
      p.batch = 2;
      p.options.heads = 4;
      p.options.kv_heads = kv_heads;
      check(p, {.machine = machine});
    }
  }
}

struct Dims {
  int dim, dim_v;
};
class AttentionDims : public testing::TestWithParam<Dims> {};
INSTANTIATE_TEST_SUITE_P(Multiples, AttentionDims,
                         testing::Values(Dims{16, 16}, Dims{80, 80}, Dims{96, 96}, Dims{112, 112},
                                         Dims{128, 128}, Dims{160, 160}, Dims{192, 128},
                                         Dims{192, 192}, Dims{256, 256}, Dims{64, 256},
                                         Dims{208, 48}),
                         [](const auto& info) {
                           return std::to_string(info.param.dim) + "_" +
                                  std::to_string(info.param.dim_v);
                         });
void PrintTo(const Dims& dims, std::ostream* out) { *out << dims.dim << ", " << dims.dim_v; }

// With the blocks that ship for the dims: more blocks of keys than stages, and tiles that follow
// each other in a CTA.
TEST_P(AttentionDims, Sm90) {
  for (const bool causal : {false, true}) {
    Problem p = problem(200, 300, causal);
    p.options.dim = GetParam().dim;
    p.options.dim_v = GetParam().dim_v;
    p.options = with_sm90_blocks(p.options);
    check(p, {.machine = true, .seed = 1, .multiprocessors = 1});
    check(in_pairs(p), {.machine = true, .seed = 1, .multiprocessors = 2});
  }
}

TEST(AttentionTest, DimsThatTheMatrixUnitDoesNotTakeAreRefused) {
  for (const int dim : {0, 72, 272}) {
    Attention a = small();
    a.dim = dim;
    const std::string error =
        test::usage_error_of([&] { attention_forward_sm90(with_sm90_blocks(a)); });
    EXPECT_NE(error.find("dim is " + std::to_string(dim)), std::string::npos) << error;
    EXPECT_NE(error.find("multiple of 16 up to 256"), std::string::npos) << error;
  }
}

// Heads that share keys lie beside each other in the rows of a tile, as many as divide 16.
TEST(AttentionTest, PackedHeads) {
  for (const auto& [heads, kv_heads] :
       std::vector<std::pair<int, int>>{{16, 1}, {24, 1}, {6, 2}, {8, 2}, {32, 1}}) {
    for (const int window : {0, 50}) {
      Problem p = problem(37, 150, true, window);
      p.options.heads = heads;
      p.options.kv_heads = kv_heads;
      p.options.sinks = window > 0;
      p.options = with_sm90_blocks(p.options);
      SCOPED_TRACE(std::to_string(heads) + " heads of " + std::to_string(kv_heads));
      check(p, {.machine = true, .seed = 2});
    }
  }
}

// The window cuts the block in which the diagonal ends.
TEST(AttentionTest, WindowWithinOneBlock) {
  for (const int queries : {1, 2, 65}) {
    check(problem(queries, 128, true, 60), {.machine = true});
  }
}

TEST(AttentionTest, InterpretedDims) {
  Problem p = problem(100, 150);
  p.options.dim = 96;
  p.options.dim_v = 32;
  check(p, {});
}

TEST(AttentionTest, BlocksThatDoNotFitAreRefused) {
  Attention a = small();
  a.dim = a.dim_v = 256;
  const std::string error = test::usage_error_of([&] { attention_forward_sm90(a); });
  EXPECT_NE(error.find("128 rows and 128 keys of 256"), std::string::npos) << error;
  EXPECT_NE(error.find("with_sm90_blocks"), std::string::npos) << error;
}

TEST(AttentionTest, HalfPrecisionAndScale) {
  for (const bool machine : {false, true}) {
    Problem p = problem(100, 150);
    p.options.dtype = f16;
    p.options.scale = 0.5;
    check(p, {.machine = machine});
  }
}

TEST(AttentionTest, SoftCap) {
  for (const bool machine : {false, true}) {
    for (const double softcap : {1.0, 30.0}) {
      Problem p = problem(130, 150, true);
      p.options.softcap = softcap;
      check(p, {.machine = machine});
    }
  }
}

Problem with_sinks(std::int64_t queries, std::int64_t keys, bool causal) {
  Problem p = problem(queries, keys, causal);
  p.options.heads = p.options.kv_heads = 3;
  p.options.sinks = true;
  return p;
}

TEST(AttentionTest, Sinks) {
  for (const bool machine : {false, true}) {
    check(with_sinks(100, 150, false), {.machine = machine});
    check(with_sinks(130, 5, true), {.machine = machine});  // rows that see nothing but the sink
    check(with_sinks(17, 0, false), {.machine = machine});
    Problem capped = with_sinks(65, 129, true);
    capped.options.softcap = 2;
    capped.options.window = 20;
    check(capped, {.machine = machine});
  }
}

// The sink outweighs every score by far, or is far below: the sum must neither overflow nor lose
// it.
TEST(AttentionTest, SinksOfAnySize) {
  for (const bool machine : {false, true}) {
    for (const double sink : {300.0, -300.0, -std::numeric_limits<double>::infinity()}) {
      Problem p = with_sinks(70, 80, false);
      Tensors t(p);
      for (std::int64_t h = 0; h < 3; ++h) t.sinks.set({h}, sink);
      ASSERT_TRUE(
          test::execute(machine ? attention_forward_sm90(p.options) : attention_forward(p.options),
                        t.arguments(), {.machine = machine}));
      if (sink > 0) {
        t.lse.each([&](const auto& index) { EXPECT_NEAR(t.lse.at(index), 300, 1e-3); });
        t.o.each([&](const auto& index) { EXPECT_EQ(t.o.at(index), 0); });
        continue;
      }
      p.options.sinks = false;
      const Reference r = reference(p, t);
      EXPECT_LT(test::relative_error(t.o, r.o), kTolerance);
      EXPECT_LT(test::relative_error(t.lse, r.lse), kLseTolerance);
    }
  }
}

// The order in which warps and copies go must not show.
TEST(AttentionTest, AnyOrderGivesTheSameBits) {
  const Problem p = problem(200, 300, true);
  Tensors first(p);
  ASSERT_TRUE(
      test::execute(attention_forward_sm90(p.options), first.arguments(), {.machine = true}));
  for (const std::uint64_t seed : {1, 2, 3}) {
    Tensors t(p);
    ASSERT_TRUE(test::execute(attention_forward_sm90(p.options), t.arguments(),
                              {.machine = true, .seed = seed, .multiprocessors = 1}));
    t.o.each([&](const auto& index) { ASSERT_EQ(t.o.at(index), first.o.at(index)); });
    t.lse.each([&](const auto& index) { ASSERT_EQ(t.lse.at(index), first.lse.at(index)); });
  }
}

// Two Q fit beside the stages of K and V only because O leaves through them: of several tiles in a
// row, some have rows or keys for only some of the warpgroups. Rows of 96 leave out of wider ones.
TEST(AttentionTest, OutputLeavesThroughItsQuery) {
  for (const int dim : {96, 128}) {
    for (const int window : {0, 70}) {
      Problem p = problem(450, 260, true, window);
      p.options.heads = p.options.kv_heads = 2;
      p.options.dim = p.options.dim_v = dim;
      p.options = with_sm90_blocks(p.options);
      SCOPED_TRACE("dim " + std::to_string(dim) + ", window " + std::to_string(window));
      for (const std::uint64_t seed : {1, 2}) {
        check(p, {.machine = true, .seed = seed, .multiprocessors = 1});
      }
    }
  }
}

// One CTA takes neighbouring tiles in a row, whose blocks of keys stay in their stages for the
// next: runs of several lengths, of several heads, with rows or keys for only some of the
// warpgroups, keys shifted against the queries, and windows as wide as the stages and wider.
TEST(AttentionTest, NeighboursShareTheirKeys) {
  struct Lengths {
    std::int64_t queries, keys;
  };
  // In blocks of 16 a warpgroup's keys of the next tile end below all keys of this one.
  const std::vector<std::pair<int, int>> windows = {{70, 64},  {129, 64}, {193, 64}, {256, 64},
                                                    {257, 64}, {40, 16},  {100, 16}};
  std::uint64_t seed = 0;
  for (const auto& [window, block_k] : windows) {
    for (const Lengths& l : std::vector<Lengths>{
             {0, 70}, {1, 1}, {70, 0}, {449, 449}, {600, 664}, {600, 401}, {410, 540}}) {
      Problem p = problem(l.queries, l.keys, true, window);
      p.options.heads = p.options.kv_heads = 2;
      p.options.dim = 16;
      p.options.dim_v = 80;
      p.options.block_q = 192;
      p.options.block_k = block_k;
      SCOPED_TRACE("window " + std::to_string(window) + ", " + std::to_string(l.queries) +
                   " queries, " + std::to_string(l.keys) + " keys");
      ++seed;
      check(p, {.machine = true,
                .seed = seed,
                .multiprocessors = 1 + static_cast<std::int64_t>(seed % 3)});
    }
  }
}

// Where they do: by counting the blocks that two tiles see, wherever the second one's keys begin.
TEST(AttentionTest, NeighboursShareWhatTheStagesHold) {
  int slide = 0;
  for (const auto& [window, block_k, heads] :
       std::vector<std::tuple<int, int, int>>{{2, 16, 2},
                                              {17, 16, 2},
                                              {18, 16, 2},
                                              {64, 64, 2},
                                              {65, 64, 4},
                                              {66, 64, 2},
                                              {128, 128, 4},
                                              {193, 64, 2},
                                              {194, 64, 4},
                                              {255, 64, 2},
                                              {321, 64, 2}}) {
    Problem p = problem(600, 600, true, window);
    p.options.heads = heads;
    p.options.kv_heads = 2;
    p.options.dim = 16;
    p.options.dim_v = 80;
    p.options.block_q = 192;
    p.options.block_k = block_k;
    const kernels::Sm90Plan plan = kernels::sm90_plan(p.options, true, {"attention", here()});
    const auto most_at = [&](int step) {
      int most = 0;
      for (int own = 4096; own < 4096 + block_k; own += step) {
        int both = 0;  // blocks with one of the window - 1 keys below the second tile's own
        for (int first = 0; first < own; first += block_k)
          both += first + block_k > own - window + 1;
        most = std::max(most, both);
      }
      return most;
    };
    const int step = std::gcd(p.options.block_q / plan.packed_heads, block_k);
    const int multiple = most_at(1) <= plan.kv_stages ? 1 : step;
    EXPECT_EQ(plan.slide_multiple, multiple) << window << " in blocks of " << block_k;
    EXPECT_EQ(plan.slides, most_at(step) > 1 && most_at(multiple) <= plan.kv_stages)
        << window << " in blocks of " << block_k;
    slide += plan.slides;
  }
  EXPECT_GT(slide, 2);
}

// The same with the blocks that ship, and heads that share their keys.
TEST(AttentionTest, NeighboursShareTheirKeysInBlocksThatShip) {
  for (const int dim : {96, 128}) {
    for (const int kv_heads : {1, 2}) {
      Problem p = problem(450, 514, true, 128);
      p.options.heads = 2;
      p.options.kv_heads = kv_heads;
      p.options.dim = p.options.dim_v = dim;
      p.options = with_sm90_blocks(p.options);
      check(p, {.machine = true, .multiprocessors = 1});
    }
  }
}

// Scores whose exponents grow by hundreds from block to block, or lie hundreds below zero for rows
// that see nothing of the first blocks: weights by an old maximum would overflow or vanish.
TEST(AttentionTest, ScoresOfAnySize) {
  const auto run = [](int dim, bool causal, const auto& key) {
    SCOPED_TRACE("dim " + std::to_string(dim) + (causal ? ", causal" : ""));
    Problem p = problem(200, 232, causal);
    p.options.dim = p.options.dim_v = dim;
    p.options.scale = 1.0 / dim;
    p.options = with_sm90_blocks(p.options);
    Tensors t(p);
    t.q.each([&](const auto& index) { t.q.set(index, 1); });
    t.k.each([&](const auto& index) { t.k.set(index, key(index[1])); });
    ASSERT_TRUE(test::execute(attention_forward_sm90(p.options), t.arguments(), {.machine = true}));
    const Reference r = reference(p, t);
    EXPECT_LT(test::relative_error(t.o, r.o), kTolerance);
    EXPECT_LT(test::relative_error(t.lse, r.lse), kLseTolerance);
  };
  for (const int dim : {64, 96, 128, 160}) {
    for (const bool causal : {false, true}) {
      run(dim, causal, [](std::int64_t key) { return 500.0 - 4 * static_cast<double>(key); });
      run(dim, causal, [](std::int64_t key) { return -300.0 + static_cast<double>(key % 2); });
    }
  }
}

// The bounds of these tests see one key that is left out, one that is seen too much, a wrong scale
// and an element that is not written.
TEST(AttentionTest, ToleranceSeesWrongResults) {
  const Problem right = problem(100, 200, true, 20);
  Tensors t(right);
  ASSERT_TRUE(test::execute(attention_forward(right.options), t.arguments(), {}));
  const Reference r = reference(right, t);
  Problem windowed = right, wider = right;
  windowed.options.window = 19;
  wider.options.scale = 1.02 / 8;
  Problem capped = right, sunk = right;
  capped.options.softcap = 5;
  sunk.options.sinks = true;
  for (const Problem& wrong : {windowed, wider, capped, sunk}) {
    const Reference other = reference(wrong, t);
    EXPECT_GT(test::relative_error(t.o, other.o), kTolerance);
    EXPECT_GT(test::relative_error(t.lse, other.lse), kLseTolerance);
  }
  t.o.set({0, 3, 0, 3}, std::nan(""));
  EXPECT_GT(test::relative_error(t.o, r.o), kTolerance);
}

}  // namespace
}  // namespace tilewright::kernels
