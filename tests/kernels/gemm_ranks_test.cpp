#include "tilewright/kernels/gemm_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/execution.h"
#include "kernels/reference_vectors.h"
#include "library/accuracy.h"
#include "tilewright/library_executable.h"

// Matrix products over ranks, on simulated GPUs and on the interpreter.
namespace tilewright::kernels {
namespace {

using testing::HasSubstr;

GemmReduceScatter small_tiles(int ranks) {
  GemmReduceScatter o;
  o.gemm.block_m = 64;
  o.gemm.block_n = 32;
  o.gemm.warpgroups = 1;
  o.ranks = ranks;
  o.scale = o.bias = true;
  return o;
}

struct Sizes {
  std::int64_t m = 70, n = 40, k = 72;
};

std::vector<double> values_of(const HostTensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.flat(i));
  return values;
}

// Of rows of `depth` elements.
double dot(const std::vector<double>& a, std::int64_t row_of_a, const std::vector<double>& b,
           std::int64_t row_of_b, std::int64_t depth) {
  return product_of_rows(a.data() + row_of_a * depth, b.data() + row_of_b * depth, depth);
}

// Relative; infinite where an element is not a number.
struct Difference {
  double squares = 0, wanted_squares = 0;
  void add(double got, double wanted) {
    const double error = std::isfinite(got) ? got - wanted : INFINITY;
    squares += error * error;
    wanted_squares += wanted * wanted;
  }
  double relative() const { return std::sqrt(squares / std::max(wanted_squares, 1e-30)); }
};

// Where C stands in ProgramMemory::tensors.
std::size_t place_of_result(const GemmReduceScatter& o) { return 2 + o.scale + o.bias; }

// Of all ranks' C.
double error_of(const GemmReduceScatter& o, const ProgramMemory& memory) {
  const std::size_t at = place_of_result(o);
  const std::int64_t m = memory.tensors[0][at].shape()[0], n = memory.tensors[0][at].shape()[1];
  const std::int64_t k = memory.tensors[0][1].shape()[1];
  std::vector<std::vector<double>> a, b;
  for (const std::vector<HostTensor>& own : memory.tensors) {
    a.push_back(values_of(own[0]));
    b.push_back(values_of(own[1]));
  }
  Difference error;
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    const std::vector<HostTensor>& own = memory.tensors[rank];
    for (std::int64_t i = 0; i < m * n; ++i) {
      double wanted = 0;
      for (std::size_t from = 0; from < a.size(); ++from) {
        wanted += dot(a[from], static_cast<std::int64_t>(rank) * m + i / n, b[from], i % n, k);
      }
      if (o.scale) wanted *= own[2].flat(0);
      if (o.bias) wanted += own[at - 1].flat(i % n);
      error.add(own[at].flat(i), wanted);
    }
  }
  return error.relative();
}

ProgramMemory memory_of(const Program& program, const Sizes& sizes) {
  return ProgramMemory(program, {{"m", sizes.m}, {"n", sizes.n}, {"k", sizes.k}}, 7);
}

struct How {
  std::uint64_t seed = 0;
  int schedules = 1, runs = 3, multiprocessors = 3;
};

Sizes more_than_a_tile(const Gemm& g) { return {g.block_m * g.share_b + 17, g.block_n + 24, 72}; }
How two_clusters(const Gemm& g) {
  return {.runs = 2, .multiprocessors = 2 * g.share_a * g.share_b};
}

// C, before poisoned, behind the last of several runs under each of several schedules.
void run(const Program& program, ProgramMemory& memory, const How& how) {
  SimulationOptions options;
  options.seed = how.seed;
  options.schedules = how.schedules;
  options.runs = how.runs;
  options.multiprocessors = how.multiprocessors;
  const SimulationReport report = simulate(program, memory, options);
  ASSERT_TRUE(report.ok()) << report.faults.front().text;
}

void check(const GemmReduceScatter& o, const Sizes& sizes, const How& how = {}) {
  SCOPED_TRACE(testing::Message() << o.ranks << " ranks, " << sizes.m << " x " << sizes.n << " x "
                                  << sizes.k << ", parts " << name_of(o.parts));
  const Program program = gemm_reduce_scatter_sm90(o);
  ProgramMemory memory = memory_of(program, sizes);
  run(program, memory, how);
  EXPECT_LT(error_of(o, memory), test::kTolerance);
}

TEST(GemmReduceScatterTest, OfTwoFourAndEightRanks) {
  check(small_tiles(2), {}, {.schedules = 3});
  check(small_tiles(4), {});
  check(small_tiles(8), {70, 24, 24}, {.runs = 2, .multiprocessors = 2});
}

// A rank without a row in the last tile, several tiles of a CTA, and one row of each rank.
TEST(GemmReduceScatterTest, TilesOfAllRanksRows) {
  GemmReduceScatter o = small_tiles(4);
  o.join_ranks = true;
  check(o, {35, 40, 72}, {.schedules = 2});
  check(o, {1, 8, 136}, {.runs = 4});
  o.ranks = 2;
  o.parts = f32;
  check(o, {35, 40, 72}, {.schedules = 2});
  o.gemm.share_b = 2;
  EXPECT_THAT(test::usage_error_of([&] { gemm_reduce_scatter_sm90(o); }),
              HasSubstr("tiles of all ranks' rows share B"));
}

TEST(GemmReduceScatterTest, PartsOfF32) {
  GemmReduceScatter o = small_tiles(3);
  o.parts = f32;
  check(o, {}, {.schedules = 2});
}

// Blocks with and without tiles, more bands of rows than one, runs that leave late, and parts that
// the warp that loads fetches.
TEST(GemmReduceScatterTest, PartsByCopyEngines) {
  GemmReduceScatter o = small_tiles(3);
  o.parts_by = PartsBy::copies;
  check(o, {}, {.schedules = 2});
  check(o, {1, 8, 8}, {.runs = 2});
  o.ranks = 2;
  check(o, {530, 72, 24}, {.schedules = 2, .multiprocessors = 5});
  o.gemm.block_n = 128;
  check(o, {70, 264, 72});
  o.parts = f32;
  check(o, {70, 40, 0});
}

// By TMA, with runs that leave late.
TEST(GemmReduceScatterTest, PartsThatAreAddedWhereTheyBelong) {
  GemmReduceScatter o = small_tiles(2);
  o.parts_by = PartsBy::reduction;
  check(o, {}, {.schedules = 3});
  check(o, {1, 8, 8}, {.runs = 2});
  o.parts = f32;
  o.gemm.block_n = 256;
  check(o, {70, 304, 72}, {.schedules = 2});
}

TEST(GemmReduceScatterTest, HalfPrecisionWithoutScaleAndBias) {
  GemmReduceScatter o = small_tiles(2);
  o.gemm.dtype = o.parts = f16;
  o.scale = o.bias = false;
  check(o, {});
}

// More tiles than CTAs, tails of each axis, a depth of nothing.
TEST(GemmReduceScatterTest, Tails) {
  for (const Sizes& sizes :
       {Sizes{1, 8, 8}, Sizes{64, 32, 64}, Sizes{130, 72, 136}, Sizes{65, 200, 8}}) {
    check(small_tiles(2), sizes, {.seed = 3});
  }
  GemmReduceScatter o = small_tiles(2);
  o.scale = false;  // C is the bias then
  check(o, {70, 40, 0});
}

// Two CTAs that take tiles below each other share B's; of the last pair one has none.
TEST(GemmReduceScatterTest, ClustersShareTiles) {
  GemmReduceScatter o = small_tiles(2);
  o.gemm.share_b = 2;
  check(o, {150, 40, 72}, {.multiprocessors = 4});
}

// Tiles of which two runs leave beside the products of the next one, with tails of both axes.
TEST(GemmReduceScatterTest, RunsThatLeaveLate) {
  GemmReduceScatter o = small_tiles(2);
  o.gemm.block_n = 256;
  check(o, {150, 520, 136}, {.schedules = 2});
  o.ranks = 3;
  o.parts = f32;
  check(o, {70, 304, 136}, {.runs = 2});
}

// Others' parts come through the ring of the operands, several in a stage. Own tiles begin beside
// the last ones of others.
TEST(GemmReduceScatterTest, PartsThroughTheRing) {
  GemmReduceScatter o = small_tiles(2);
  o.gemm.block_n = 128;
  check(o, {150, 264, 136}, {.schedules = 2});
  o.ranks = 4;
  check(o, {150, 136, 72}, {.schedules = 2});
  o.ranks = 8;
  check(o, {70, 136, 24}, {.runs = 2, .multiprocessors = 2});
}

// CTAs of a cluster have the same columns for different ranks: some wait for what others send.
TEST(GemmReduceScatterTest, RanksShareTiles) {
  GemmReduceScatter o = small_tiles(2);
  o.gemm.share_b = 2;
  o.share_ranks = true;
  check(o, {150, 72, 72}, {.schedules = 3, .multiprocessors = 4});
  o = small_tiles(3);
  o.gemm.share_a = 2;
  o.gemm.share_b = 3;
  o.gemm.block_n = 48;
  o.share_ranks = true;
  check(o, {70, 104, 72}, {.multiprocessors = 6});
}

// Rules and files of measurements tell schedules apart by their names alone.
TEST(RankGemmVariants, NamesDiffer) {
  for (const auto* variants : {&reduce_scatter_variants(), &all_gather_variants()}) {
    std::set<std::string> names;
    for (const RankGemmVariant& variant : *variants) {
      EXPECT_TRUE(names.insert(variant.name()).second) << variant.name();
    }
  }
}

TEST(GemmReduceScatterTest, TilesOfTheLibrary) {
  for (const RankGemmVariant& variant : reduce_scatter_variants()) {
    SCOPED_TRACE(variant.name());
    GemmReduceScatter o;
    o.bias = true;
    o = with_variant(o, variant);
    check(o, more_than_a_tile(o.gemm), two_clusters(o.gemm));
  }
}

// Sums are in the order of the ranks: whatever comes first, and in every run, C has the same bits.
TEST(GemmReduceScatterTest, AnyOrderGivesTheSameBits) {
  for (const DType parts : {bf16, f32}) {
    GemmReduceScatter o = small_tiles(3);
    o.parts = parts;
    const Program program = gemm_reduce_scatter_sm90(o);
    std::optional<ProgramMemory> first;
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      ProgramMemory memory = memory_of(program, {});
      run(program, memory, {.seed = seed, .runs = static_cast<int>(seed)});
      if (!first) first.emplace(memory);
      for (std::size_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(memory.tensors[rank][4], first->tensors[rank][4]) << rank;
      }
    }
  }
}

// The meaning has the explicit form's bits where all sums are exact: whole numbers. The parts are
// not, so that each rank's is rounded, its own as well.
TEST(GemmReduceScatterTest, IsWhatTheInterpreterComputes) {
  const LibraryKernel& entry = find_kernel("gemm_reduce_scatter");
  for (const char* parts : {"bf16", "f32"}) {
    GemmReduceScatter o = small_tiles(3);
    o.parts = parts == std::string("f32") ? f32 : bf16;
    const Program program = gemm_reduce_scatter_sm90(o);
    ProgramMemory memory = memory_of(program, {});
    std::vector<TensorRef> tensors;
    std::vector<HostTensor> copies;
    for (std::vector<HostTensor>& of_rank : memory.tensors) {
      for (std::size_t number = 0; number <= place_of_result(o); ++number) {
        HostTensor& tensor = of_rank[number];
        for (std::int64_t i = 0; i < tensor.elements(); ++i) {
          tensor.set_flat(i, std::nearbyint(5 * tensor.flat(i)));
        }
        copies.push_back(tensor);
      }
    }
    tensors.reserve(copies.size());
    for (HostTensor& tensor : copies) tensors.push_back(ref(tensor));
    run(program, memory, {});
    const OptionValues options = resolve_options(
        entry, {"ranks=3", "scale=true", "bias=true", std::string("parts=") + parts});
    compile(build_program(entry, {nullptr, options, {}}), "interpreter").run(tensors);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(memory.tensors[rank][4], copies[5 * rank + 4]) << rank << ", parts " << parts;
    }
  }
}

TEST(GemmReduceScatterTest, ToleranceSeesAPartThatIsLeftOut) {
  GemmReduceScatter o = small_tiles(2);
  o.scale = o.bias = false;
  const Program program = gemm_reduce_scatter_sm90(o);
  ProgramMemory memory = memory_of(program, {});
  run(program, memory, {});
  ASSERT_LT(error_of(o, memory), test::kTolerance);
  for (std::int64_t i = 0; i < 70; ++i) memory.tensors[1][0].set({0, i, 5}, 0);
  EXPECT_GT(error_of(o, memory), test::kTolerance);
}

TEST(GemmReduceScatterTest, WhatItDoesNotTake) {
  const auto refused = [](const std::function<void(GemmReduceScatter&)>& change) {
    GemmReduceScatter o = small_tiles(2);
    change(o);
    return test::usage_error_of([&] { gemm_reduce_scatter_sm90(o); });
  };
  EXPECT_THAT(refused([](auto& o) { o.ranks = 9; }), HasSubstr("9 ranks"));
  EXPECT_THAT(refused([](auto& o) { o.parts = f16; }),
              HasSubstr("parts of f16 beside operands of bf16"));
  EXPECT_THAT(refused([](auto& o) { o.gemm.split = 2; }), HasSubstr("k is divided among CTAs"));
  EXPECT_THAT(refused([](auto& o) { o.gemm.exchanged = true; }),
              HasSubstr("the operands are exchanged"));
  EXPECT_THAT(refused([](auto& o) { o.gemm.dtype = f8e4m3; }), HasSubstr("operands of f8e4m3"));
  EXPECT_THAT(refused([](auto& o) { o.share_ranks = true; }),
              HasSubstr("1 CTAs share the tiles of B of 2 ranks"));
  EXPECT_THAT(refused([](auto& o) {
                o.parts_by = PartsBy::copies;
                o.gemm.share_b = 2;
              }),
              HasSubstr("whose parts are not sent by TMA alone"));
  EXPECT_THAT(refused([](auto& o) {
                o.parts_by = PartsBy::reduction;
                o.ranks = 4;
              }),
              HasSubstr("several GPUs would add to one element"));
}

// Who passed what.
TEST(GemmReduceScatterTest, RanksWhoseTensorsDiffer) {
  const LibraryKernel& entry = find_kernel("gemm_reduce_scatter");
  const ProgramExecutable executable =
      compile(build_program(entry, {nullptr, resolve_options(entry, {}), {}}), "interpreter");
  HostTensor A = HostTensor::zeros(bf16, {2, 4, 8}), B = HostTensor::zeros(bf16, {16, 8});
  HostTensor C = HostTensor::zeros(bf16, {4, 16}), longer = HostTensor::zeros(bf16, {24, 8});
  HostTensor C_of_one = HostTensor::zeros(bf16, {4, 16});
  const auto refused = [&](const std::vector<TensorRef>& tensors) {
    return test::usage_error_of([&] { executable.run(tensors); });
  };
  EXPECT_THAT(refused({ref(A), ref(B), ref(C), ref(A), ref(longer), ref(C_of_one)}),
              HasSubstr("the dim n is 16 by axis 0 of B of rank 0, but 24 by axis 0 of B of rank "
                        "1"));
  EXPECT_THAT(refused({ref(A), ref(B), ref(C)}), HasSubstr("A of rank 1"));
}

AllGatherGemm small_gather(int ranks) {
  AllGatherGemm o;
  o.gemm.block_m = 64;
  o.gemm.block_n = 32;
  o.gemm.warpgroups = 1;
  o.ranks = ranks;
  return o;
}

double gather_error_of(const ProgramMemory& memory) {
  Difference error;
  for (const std::vector<HostTensor>& own : memory.tensors) {
    const std::vector<double> b = values_of(own[1]);
    const std::int64_t n = own[1].shape()[0], k = own[1].shape()[1];
    std::int64_t next = 0;
    for (const std::vector<HostTensor>& from : memory.tensors) {
      const std::vector<double> a = values_of(from[0]);
      for (std::int64_t i = 0; i < from[0].shape()[0] * n; ++i) {
        error.add(own[2].flat(next++), dot(a, i / n, b, i % n, k));
      }
    }
  }
  return error.relative();
}

void check(const AllGatherGemm& o, const Sizes& sizes, const How& how = {}) {
  SCOPED_TRACE(testing::Message() << o.ranks << " ranks, " << sizes.m << " x " << sizes.n << " x "
                                  << sizes.k);
  const Program program = all_gather_gemm_sm90(o);
  ProgramMemory memory = memory_of(program, sizes);
  run(program, memory, how);
  EXPECT_LT(gather_error_of(memory), test::kTolerance);
}

TEST(AllGatherGemmTest, OfTwoFourAndEightRanks) {
  check(small_gather(2), {}, {.schedules = 3});
  // So many CTAs that each has tiles of some ranks alone: it knows of no others' rows.
  check(small_gather(4), {}, {.runs = 2, .multiprocessors = 8});
  check(small_gather(8), {70, 24, 24}, {.runs = 2, .multiprocessors = 2});
}

// Fewer rows than a block has, blocks without any, all four, and a tail in each of several blocks.
TEST(AllGatherGemmTest, Tails) {
  for (const Sizes& sizes : {Sizes{1, 8, 8}, Sizes{64, 32, 64}, Sizes{300, 72, 136},
                             Sizes{200, 24, 264}, Sizes{65, 200, 8}}) {
    check(small_gather(2), sizes, {.seed = 3});
  }
  check(small_gather(2), {70, 40, 0});
}

TEST(AllGatherGemmTest, ClustersAndExchangedOperands) {
  AllGatherGemm o = small_gather(2);
  o.gemm.share_b = 2;
  check(o, {150, 40, 72}, {.multiprocessors = 4});
  o = small_gather(2);
  o.gemm.dtype = f16;
  o.gemm.exchanged = true;
  o.gemm.block_m = 32;
  o.gemm.block_n = 64;
  check(o, {});
}

// Two parts of the depth, and pieces that end with the rows, the depth, or before both.
TEST(AllGatherGemmTest, PushedByWarps) {
  AllGatherGemm o = small_gather(2);
  o.push = true;
  for (const Sizes& sizes : {Sizes{}, Sizes{1, 8, 8}, Sizes{35, 24, 1112}, Sizes{70, 40, 0}}) {
    check(o, sizes, {.schedules = 2});
  }
  o.ranks = 4;
  o.gemm.warpgroups = 2;
  o.gemm.block_m = 128;
  check(o, {150, 40, 264}, {.runs = 4});
}

TEST(AllGatherGemmTest, RanksShareTiles) {
  AllGatherGemm o = small_gather(2);
  o.share_ranks = true;
  o.gemm.share_b = 2;
  check(o, {150, 72, 72}, {.multiprocessors = 4});
  o.push = true;
  check(o, {150, 72, 328}, {.schedules = 2, .multiprocessors = 4});
}

// A rank without a row in the last tile, a depth that ends in the second of sixteen parts or the
// ninth, one row of each, and tiles of which the grid divides the depth, a part of it or a whole
// wave before.
TEST(AllGatherGemmTest, TilesOfAllRanksRows) {
  AllGatherGemm o = small_gather(4);
  o.join_ranks = true;
  for (const Sizes& sizes : {Sizes{35, 40, 72}, Sizes{1, 8, 1048}}) {
    check(o, sizes, {.schedules = 2});
  }
  o.gemm.grid_split = true;
  check(o, {35, 40, 1048}, {.schedules = 2, .multiprocessors = 7});
  o.ranks = 2;
  o.gemm.share_b = 2;
  check(o, {70, 40, 584}, {.multiprocessors = 10});
}

TEST(AllGatherGemmTest, TilesOfTheLibrary) {
  for (const RankGemmVariant& variant : all_gather_variants()) {
    SCOPED_TRACE(variant.name());
    const AllGatherGemm o = with_variant(AllGatherGemm{}, variant);
    check(o, more_than_a_tile(o.gemm), two_clusters(o.gemm));
  }
}

TEST(AllGatherGemmTest, WhatItDoesNotTake) {
  AllGatherGemm o = small_gather(2);
  o.gemm.split = 2;
  EXPECT_THAT(test::usage_error_of([&] { all_gather_gemm_sm90(o); }),
              HasSubstr("k is divided among CTAs"));
  o = small_gather(3);
  o.join_ranks = true;
  EXPECT_THAT(test::usage_error_of([&] { all_gather_gemm_sm90(o); }),
              HasSubstr("block_m is 64, with as many rows of 3 ranks each"));
  o = small_gather(1);
  EXPECT_THAT(test::usage_error_of([&] { all_gather_gemm(o); }), HasSubstr("1 ranks"));
}

// The entries' own meanings, references and tensors, on the interpreter.
TEST(OperationsOverRanks, AgreeWithFloat64OnTheInterpreter) {
  for (const char* name : {"gemm_reduce_scatter", "all_gather_gemm"}) {
    for (const char* ranks : {"ranks=2", "ranks=3"}) {
      SCOPED_TRACE(testing::Message() << name << " " << ranks);
      library::Workload work =
          library::make_workload(find_kernel(name), {ranks, "m=70", "n=40", "k=72"}, {}, 1);
      std::vector<TensorRef> tensors;
      for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
      compile(*work.kernel, work.options, "interpreter").run(tensors);
      const library::Comparison comparison = library::compare(work, library::reference_of(work));
      EXPECT_TRUE(comparison.ok()) << comparison.text();
      EXPECT_THAT(work.name_of(work.tensors.size() - 1), HasSubstr("C of rank "));
    }
  }
}

}  // namespace
}  // namespace tilewright::kernels
