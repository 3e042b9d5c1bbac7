#include "tilewright/kernels/gemm.h"

#include <gtest/gtest.h>

#include <optional>

#include "common/error_text.h"
#include "kernels/execution.h"
#include "kernels/products.h"

namespace tilewright::kernels {

void PrintTo(const GemmVariant& variant, std::ostream* out) { *out << variant.name; }

namespace {

using test::Execution;
using test::kTolerance;
using test::Padded;
using test::products;

struct GemmTensors {
  GemmTensors(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = bf16)
      : a(Padded::normal(dtype, {m, k}, 1)),
        b(Padded::normal(dtype, {n, k}, 2)),
        c(dtype, {m, n}) {}
  Arguments arguments() {
    Arguments arguments;
    arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
    return arguments;
  }
  Padded a, b, c;
};

std::vector<double> reference(const GemmTensors& t) { return products(t.a, t.b); }

void check(std::int64_t m, std::int64_t n, std::int64_t k, const Execution& execution,
           DType dtype = bf16) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
  GemmTensors t(m, n, k, dtype);
  Gemm g;
  g.dtype = dtype;
  ASSERT_TRUE(test::execute(execution.machine ? gemm_sm90(g) : gemm(g), t.arguments(), execution));
  EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
  EXPECT_EQ(t.c.written_outside(), 0);
}

class GemmLengths : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Forms, GemmLengths, testing::Bool(),
                         [](const auto& info) { return info.param ? "Sm90" : "Tile"; });

TEST_P(GemmLengths, OfRows) {
  for (const std::int64_t m : {0, 1, 17, 100, 129, 300}) check(m, 72, 64, {.machine = GetParam()});
}
TEST_P(GemmLengths, OfColumns) {
  for (const std::int64_t n : {0, 8, 24, 104, 136, 304}) check(72, n, 64, {.machine = GetParam()});
}
TEST_P(GemmLengths, OfTheSum) {
  for (const std::int64_t k : {0, 8, 24, 64, 104, 136, 304})
    check(72, 40, k, {.machine = GetParam()});
}
TEST_P(GemmLengths, HalfPrecision) { check(72, 40, 104, {.machine = GetParam()}, f16); }

TEST(GemmTest, OddLengthsOfTheTileForm) {
  for (const std::int64_t n : {1, 17, 100, 129, 300}) check(72, n, n, {});
}

// Two CTAs share B's tiles; the last row of tiles has only one of them inside.
TEST(GemmTest, ClustersShareTiles) {
  for (const std::int64_t m : {100, 256, 300}) {
    GemmTensors t(m, 264, 104);
    Gemm g;
    g.share_b = 2;
    ASSERT_TRUE(test::execute(gemm_sm90(g), t.arguments(),
                              {.machine = true, .seed = 3, .multiprocessors = 4}));
    EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
    EXPECT_EQ(t.c.written_outside(), 0);
  }
}

// Four CTAs share A's tiles with the one beside them and B's with the one below, alone and where
// pairs of such groups divide k; groups of which one row, one column or one tile is inside.
TEST(GemmTest, ClustersShareTilesOfBothOperands) {
  Gemm g;
  g.block_m = 64;
  g.block_n = 32;
  g.warpgroups = 1;
  g.share_a = 2;
  g.share_b = 2;
  for (const int split : {1, 2}) {
    g.split = split;
    for (const auto& [m, n] : {std::pair{60, 24}, {60, 72}, {130, 24}, {200, 136}}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << ", split " << split);
      GemmTensors t(m, n, 200);
      ASSERT_TRUE(test::execute(gemm_sm90(g), t.arguments(),
                                {.machine = true, .seed = 3, .multiprocessors = 4 * split}));
      EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
      EXPECT_EQ(t.c.written_outside(), 0);
    }
  }
}

// Two whole bands of eight rows of tiles and a part of one, in another order than the launch's.
TEST(GemmTest, TilesGoInBandsOfRows) {
  Gemm g;
  g.block_m = 64;
  g.block_n = 16;
  g.warpgroups = 1;
  for (const std::int64_t m : {64 * 8, 64 * 16 + 64 * 3 - 5}) {
    GemmTensors t(m, 40, 24);
    ASSERT_TRUE(test::execute(gemm_sm90(g), t.arguments(),
                              {.machine = true, .seed = 3, .multiprocessors = 5}));
    EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
  }
}

class GemmVariants : public testing::TestWithParam<GemmVariant> {};
INSTANTIATE_TEST_SUITE_P(All, GemmVariants, testing::ValuesIn(gemm_variants()),
                         [](const auto& info) { return info.param.name; });

// Tiles that are cut in each direction, more of them than CTAs, and sums shorter than the split.
TEST_P(GemmVariants, Tails) {
  const GemmVariant& v = GetParam();
  const Gemm g = with_variant({}, v);
  const int cluster = v.share_a * v.share_b * v.split;
  // Clusters of a grid split, whose parts have four steps or more.
  const int clusters = v.grid_split ? 5 : 1, parts = v.grid_split ? 8 : v.split;
  struct Sizes {
    std::int64_t m, n, k;
  };
  const int below = v.block_m * v.share_b, beside = v.block_n * v.share_a;
  // Of tiles that CTAs share two groups are enough, one below the other.
  const int columns = cluster == 1 && !v.grid_split ? beside + 24 : beside - 24;
  for (const Sizes& s :
       {Sizes{0, 8, 8}, Sizes{3, 40, 0}, Sizes{below + 17, columns, v.block_k * parts + 8}}) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k);
    GemmTensors t(s.m, s.n, s.k);
    ASSERT_TRUE(test::execute(gemm_sm90(g), t.arguments(),
                              {.machine = true,
                               .seed = static_cast<std::uint64_t>(s.m),
                               .multiprocessors = cluster * clusters}));
    EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
    EXPECT_EQ(t.c.written_outside(), 0);
  }
}

// One tile among 7 clusters, of which 16 steps occupy 4; two, three to each; 9 and 15, of which 2
// and 1 are left over; 8 and 12, of which 1 is, or too many to divide. The parts are summed in one
// order, whoever comes first.
TEST(GemmTest, GridSplitsDivideTheTilesOfTheLastWave) {
  Gemm g;
  g.block_m = 64;
  g.block_n = 64;
  g.block_k = 32;
  g.warpgroups = 1;
  g.grid_split = true;
  for (const auto& [m, n] :
       {std::pair{40, 24}, {70, 40}, {150, 168}, {300, 192}, {250, 104}, {200, 192}}) {
    for (const bool exchanged : {false, true}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << (exchanged ? ", exchanged" : ""));
      g.exchanged = exchanged;
      std::optional<GemmTensors> first;
      for (const std::uint64_t seed : {1, 2, 3}) {
        GemmTensors t(m, n, 504);
        ASSERT_TRUE(test::execute(gemm_sm90(g), t.arguments(),
                                  {.machine = true, .seed = seed, .multiprocessors = 7}));
        EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
        EXPECT_EQ(t.c.written_outside(), 0);
        if (!first) first.emplace(t);
        t.c.each([&](const auto& index) { ASSERT_EQ(t.c.at(index), first->c.at(index)); });
      }
    }
  }
}

// The parts of a split are summed in the order of the CTAs, whatever order they arrive in; so also
// where pairs of them share tiles.
TEST(GemmTest, SplitsGiveTheSameBitsInAnyOrder) {
  std::optional<GemmTensors> first;
  for (const int share_b : {1, 2}) {
    Gemm g;
    g.block_m = 64;
    g.block_n = 64;
    g.warpgroups = 1;
    g.split = 4;
    g.share_b = share_b;
    for (const std::uint64_t seed : {1, 2, 3}) {
      GemmTensors t(70, 136, 600);
      ASSERT_TRUE(test::execute(gemm_sm90(g), t.arguments(),
                                {.machine = true, .seed = seed, .multiprocessors = 8}));
      EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
      if (!first) first.emplace(t);
      t.c.each([&](const auto& index) { ASSERT_EQ(t.c.at(index), first->c.at(index)); });
    }
  }
}

// Some of the CTAs then have nothing to add, behind others' first step and before it.
TEST(GemmTest, SplitsOfFewerStepsThanParts) {
  Gemm g;
  g.block_m = g.block_n = 64;
  g.warpgroups = 1;
  g.split = 4;
  for (const std::int64_t k : {40, 72, 136}) {
    SCOPED_TRACE(k);
    GemmTensors t(70, 136, k);
    ASSERT_TRUE(
        test::execute(gemm_sm90(g), t.arguments(), {.machine = true, .multiprocessors = 8}));
    EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
  }
}

void check_scaled(const Gemm& g, std::int64_t m, std::int64_t k, const Execution& execution) {
  SCOPED_TRACE(testing::Message() << m << " x 40 x " << k);
  const std::int64_t n = 40;
  Padded a = Padded::normal(f8e4m3, {m, k}, 1), b = Padded::normal(f8e4m3, {n, k}, 2);
  Padded scale_a(f32, {1}), scale_b(f32, {1}), c(bf16, {m, n});
  scale_a.set({0}, 0.5);
  scale_b.set({0}, -3);
  Arguments arguments;
  arguments.tensors = {a.argument("A"), b.argument("B"), scale_a.argument("scale_a"),
                       scale_b.argument("scale_b"), c.argument("C")};
  ASSERT_TRUE(test::execute(execution.machine ? gemm_sm90(g) : gemm(g), arguments, execution));
  std::vector<double> wanted = products(a, b);
  for (double& sum : wanted) sum *= 0.5 * -3;
  EXPECT_LT(test::relative_error(c, wanted), kTolerance);
  EXPECT_EQ(c.written_outside(), 0);
}

// Both forms, against the float64 reference, with k no multiple of the block.
TEST(GemmTest, ScaledE4m3) {
  Gemm g;
  g.dtype = f8e4m3;
  g.block_k = 128;
  for (const bool machine : {false, true}) {
    for (const std::int64_t m : {1, 70, 130}) check_scaled(g, m, 144, {.machine = machine});
  }
}

// The parts of a sum are scaled once, when they are put together.
TEST(GemmTest, ScaledE4m3SplitAndShared) {
  for (const GemmVariant& variant : gemm_variants()) {
    const int group = variant.share_a * variant.share_b;
    if ((variant.split == 1 && !variant.grid_split) || group == 1) continue;
    SCOPED_TRACE(variant.name);
    Gemm g;
    g.dtype = f8e4m3;
    const int clusters = variant.grid_split ? 5 : 1;
    check_scaled(with_variant(g, variant), 70, variant.grid_split ? 16 * variant.block_k : 528,
                 {.machine = true, .multiprocessors = variant.split * group * clusters});
  }
}

// Copies move 16 bytes or more.
TEST(GemmTest, OddLengthsAreRefusedForSm90) {
  GemmTensors t(72, 40, 17);
  const std::string error = test::usage_error_of(
      [&] { (void)test::execute(gemm_sm90({}), t.arguments(), {.machine = true}); });
  EXPECT_NE(error.find("the dim k is 17"), std::string::npos) << error;
  EXPECT_NE(error.find("multiple of 8"), std::string::npos) << error;
}

// More tiles than CTAs, and more stages than the ring has.
TEST(GemmTest, PersistentLoop) {
  check(300, 520, 200, {.machine = true, .seed = 1, .multiprocessors = 4});
  check(520, 264, 104, {.machine = true, .seed = 2, .multiprocessors = 3});
}

TEST(GemmTest, AnyOrderGivesTheSameBits) {
  GemmTensors first(300, 264, 200);
  ASSERT_TRUE(test::execute(gemm_sm90({}), first.arguments(), {.machine = true}));
  for (const std::uint64_t seed : {1, 2, 3}) {
    GemmTensors t(300, 264, 200);
    ASSERT_TRUE(test::execute(gemm_sm90({}), t.arguments(),
                              {.machine = true, .seed = seed, .multiprocessors = 4}));
    t.c.each([&](const auto& index) { ASSERT_EQ(t.c.at(index), first.c.at(index)); });
  }
}

// The bound sees a term that is left out of the sums.
TEST(GemmTest, ToleranceSeesWrongResults) {
  GemmTensors t(72, 40, 200);
  ASSERT_TRUE(test::execute(gemm({}), t.arguments(), {}));
  EXPECT_LT(test::relative_error(t.c, reference(t)), kTolerance);
  for (std::int64_t i = 0; i < 72; ++i) t.a.set({i, 199}, 0);
  EXPECT_GT(test::relative_error(t.c, reference(t)), kTolerance);
}

}  // namespace
}  // namespace tilewright::kernels
