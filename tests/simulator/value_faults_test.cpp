#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ir/text.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/seeded_subjects.h"

// Faults of what is computed, and of who computes what.
namespace tilewright::simulator {
namespace {

// Every row of C is that of X without its last 15 elements.
Subject masked(bool or_equal = false) {
  XToC made("masked", kSize, kSize);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Tile x = load(X(all, all)).cast(f32);
    const Tile column = iota({kSize, kSize}, 1);
    const Tile seen = or_equal ? column <= kSize - 16 : column < kSize - 15;
    store(C(all, all), where(seen, x, 0.0).cast(bf16));
  })});
  return made.subject(5);
}

// C = X exp(X).
Subject weighted() {
  XToC made("weighted", kSize, kSize);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Tile x = load(X(all, all)).cast(f32);
    store(C(all, all), (x * exp2(x)).cast(bf16));
  })});
  return made.subject(5);
}

// Blocks of X {8, 64, 64} that a number chooses, copied one after the other.
Subject chosen_blocks(
    const char* name,
    const std::function<TensorView(const Tensor&, const Index&, const Tensor&)>& choose,
    const std::vector<double>& table) {
  Kernel kernel(name);
  const int blocks = static_cast<int>(table.size());
  const Tensor X = kernel.in("X", bf16, {8, kSize, kSize});
  const Tensor numbers_of = kernel.in("table", i32, {blocks});
  const Tensor C = kernel.out("C", bf16, {blocks * kSize, kSize});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(2), {{bf16, kSize, kSize}});
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       for (Index i : range(blocks)) {
                         const TensorView block = choose(X, i, numbers_of);
                         ring.produce(
                             [&](const tilewright::Slot& slot) { tma_load(block, slot[0]); });
                       }
                     }),
                role("math", warpgroups(1), registers(240), [&] {
                  for (Index i : range(blocks)) {
                    const tilewright::Slot slot = ring.consume();
                    store(C(Dim(blocks * kSize).block(i, kSize), all), load(slot[0]));
                    fence_proxy_async();
                    warp_sync();
                    ring.release(slot);
                  }
                })});
  return {lowered(kernel),
          {numbers({8, kSize, kSize}, 7), HostTensor::from_values(i32, {blocks}, table)},
          {"X", "table"},
          {blocks * kSize, kSize}};
}

// A table says where the pages of a sequence lie: never side by side, or always.
Subject pages(const std::vector<double>& table) {
  return chosen_blocks(
      "pages",
      [](const Tensor& X, const Index& i, const Tensor& table) {
        return X(load_index(table(i)), all, all);
      },
      table);
}

// Four heads of queries for each of keys.
Subject groups() {
  return chosen_blocks(
      "groups", [](const Tensor& X, const Index& i, const Tensor&) { return X(i / 4, all, all); },
      {0, 0, 0, 0, 0, 0, 0, 0});
}

// The same of keys that end within the block, which have a map for blocks outside as well.
Subject packed_groups() {
  return chosen_blocks("packed_groups",
                       [](const Tensor& X, const Index& i, const Tensor&) {
                         return X(i / 4, Block(0, kSize, Index(kSize - 8)), all);
                       },
                       {0, 0, 0, 0, 0, 0, 0, 0});
}

TEST(ValueFaults, SubjectsAreClean) {
  for (const Subject& subject : {masked(), weighted()}) {
    EXPECT_EQ(symptom(subject, subject.machine), "") << subject.machine.name;
  }
}

TEST(ValueFaults, AbsentMask) { EXPECT_EQ(expect_found(25, masked()).caught, 1); }

// The sum of a row's squares, or of `terms` in their place, below the bound.
std::string masked_sum(const std::string& bound, const std::string& terms) {
  return R"(kernel "sums" machine @"sums.cpp":1
dim rows
dim columns at_most(4096)
in X: f32[rows, columns] = %0 @"sums.cpp":2
out Y: f32[rows] = %1 @"sums.cpp":3
grid (rows)
threads 128
body () {
  role {name = "rows", first_warp = 0, warps = 4, registers = 128, threads = 128} @"sums.cpp":4 (%4: i32) {
    %6: registers<i32, 32> = registers {name = "r1"} @"sums.cpp":4
    %7: registers<i32, 32> = registers {name = "r2"} @"sums.cpp":4
    %8: registers<bool, 32> = registers {name = "r3"} @"sums.cpp":4
    %9: registers<f32, 32> = registers {name = "r4"} @"sums.cpp":4
    %10: registers<f32, 32> = registers {name = "r5"} @"sums.cpp":4
    %11: registers<f32, 32> = registers {name = "r6"} @"sums.cpp":4
    %12: registers<f32, 1> = registers {name = "r7"} @"sums.cpp":4
    %24: f32 = constant {value = 0.0} @"sums.cpp":5
    %23: f32 = constant {value = 1.0} @"sums.cpp":5
    coordinate %6 {axis = 1, layout = register_layout[1x4096|r:8@1:1,4@1:1024|l:32@1:8|w:4@1:256]} @"sums.cpp":5
    %25: i32 = dim {dim = dim(columns)} @"sums.cpp":5
    %26: i32 = cta_index @"sums.cpp":5
    %27: i32 = constant {value = 0} @"sums.cpp":5
    %28: i32 = dim {dim = dim(rows)} @"sums.cpp":5
    fill %7, )" +
         bound + R"( @"sums.cpp":6
    compute %8, %6, %7 {function = lt, maps = maps[[1:32:1], [1:32:1]]} @"sums.cpp":6
    load_registers %9, %0, %26, %27, %28, %25 {sizes = [1, 4096], layout = register_layout[1x4096|r:8@1:1,4@1:1024|l:32@1:8|w:4@1:256]} @"sums.cpp":7
    )" + terms +
         R"( @"sums.cpp":8
    compute %11, %8, %10, %24 {function = select, maps = maps[[1:32:1], [1:32:1], []]} @"sums.cpp":9
    reduce_registers %12, %11 {function = add, maps = maps[[]]} @"sums.cpp":9
    store_registers %1, %12, %26, %28 {sizes = [1], layout = register_layout[1|l:32*|w:4*]} @"sums.cpp":10
    yield @"sums.cpp":4
  }
}
)";
}

bool hides_zeros_alone(const std::string& text) {
  const ir::Kernel kernel = ir::parse_text(text, "sums.tw");
  for (const FaultKind& kind : fault_kinds()) {
    if (kind.number != 25) continue;
    const std::vector<Mutant> mutants = mutants_of(kind, kernel);
    EXPECT_EQ(mutants.size(), 1u);
    return mutants.size() == 1 && !mutants.front().equivalent.empty();
  }
  return false;
}

TEST(ValueFaults, MaskOfWhatNoLoadFinds) {
  const std::string squares =
      "compute %10, %9, %9 {function = mul, maps = maps[[1:32:1], [1:32:1]]}";
  EXPECT_TRUE(hides_zeros_alone(masked_sum("%25", squares)));
  // Of another limit, of other elements, and of what is not zero where nothing was found.
  EXPECT_FALSE(hides_zeros_alone(masked_sum("%28", squares)));
  EXPECT_FALSE(hides_zeros_alone(
      masked_sum("%25", "compute %10, %9, %9 {function = mul, maps = maps[[4:32:1], [4:32:1]]}")));
  EXPECT_FALSE(hides_zeros_alone(
      masked_sum("%25", "compute %10, %9, %23 {function = add, maps = maps[[1:32:1], []]}")));
  EXPECT_FALSE(hides_zeros_alone(
      masked_sum("%25", "compute %10, %9 {function = exp2, maps = maps[[1:32:1]]}")));
}

// The same with one element in each register array, which the load has by `layout`.
std::string masked_sum_of_one(const std::string& layout) {
  std::string text = masked_sum("%25", "compute %10, %9, %9 {function = mul, maps = maps[[], []]}");
  const std::string by_lanes = "1x128|l:32@1:1|w:4@1:32";
  const auto replace = [&](std::size_t begin, const std::string& from, const std::string& to) {
    for (std::size_t at = begin; (at = text.find(from, at)) != std::string::npos;) {
      text.replace(at, from.size(), to);
      at += to.size();
    }
  };
  const std::string whole = "1x4096|r:8@1:1,4@1:1024|l:32@1:8|w:4@1:256";
  replace(text.find("load_registers"), whole, layout);
  replace(0, whole, by_lanes);
  replace(0, ", 32> = registers", ", 1> = registers");
  replace(0, "[1:32:1]", "[]");
  replace(0, "4096", "128");
  return text;
}

TEST(ValueFaults, MaskOfOneElementOfALane) {
  EXPECT_TRUE(hides_zeros_alone(masked_sum_of_one("1x128|l:32@1:1|w:4@1:32")));
  EXPECT_FALSE(hides_zeros_alone(masked_sum_of_one("1x128|l:32@1:4|w:4@1:1")));
}

// Whether a factor on the exponentials is told to change nothing, where `more` is made of them: %10
// has them, and %12 is their sum. What is stored is made of %10 then.
bool factor_cancels(const std::string& more) {
  const ir::Kernel kernel = ir::parse_text(
      masked_sum("%25",
                 R"(compute %10, %9 {function = exp2, maps = maps[[1:32:1]]} @"sums.cpp":8
    reduce_registers %12, %10 {function = add, maps = maps[[]]} @"sums.cpp":8
    )" + more),
      "sums.tw");
  for (const FaultKind& kind : fault_kinds()) {
    if (kind.number != 33) continue;
    const std::vector<Mutant> mutants = mutants_of(kind, kernel);
    EXPECT_FALSE(mutants.empty());
    return !mutants.empty() && !mutants.front().equivalent.empty();
  }
  return false;
}

TEST(ValueFaults, FactorOfWhatIsDividedAndOfTheDivisor) {
  const std::string divide = "compute %10, %10, %12 {function = div, maps = maps[[1:32:1], []]}";
  const std::string at = " @\"sums.cpp\":8\n    ";
  EXPECT_TRUE(factor_cancels(divide));
  // By one over the sum, and of numbers that are still the larger ones.
  EXPECT_TRUE(factor_cancels("compute %12, %23, %12 {function = div, maps = maps[[], []]}" + at +
                             "compute %10, %10, %12 {function = mul, maps = maps[[1:32:1], []]}"));
  EXPECT_TRUE(factor_cancels("compute %10, %10, %24 {function = max, maps = maps[[1:32:1], []]}" +
                             at + divide));
  // Of neither, of the divisor twice, of a part of the sum, and where something else is made of it.
  EXPECT_FALSE(factor_cancels("compute %10, %10 {function = neg, maps = maps[[1:32:1]]}"));
  EXPECT_FALSE(factor_cancels(divide + at + divide));
  EXPECT_FALSE(
      factor_cancels("compute %12, %12, %23 {function = add, maps = maps[[], []]}" + at + divide));
  EXPECT_FALSE(factor_cancels("compute %10, %10, %23 {function = max, maps = maps[[1:32:1], []]}" +
                              at + divide));
  EXPECT_FALSE(
      factor_cancels("compute %10, %10 {function = exp2, maps = maps[[1:32:1]]}" + at + divide));
}

// Numbers of blocks: of nothing there are none.
std::string masked_blocks(std::int64_t more, const std::string& limit, const std::string& bound) {
  std::string text = masked_sum(
      "%42",
      fmt::format("compute %10, %9, %40 {{function = add, maps = maps[[1:32:1], []]}}\n"
                  "    compute %10, %10, %41 {{function = div, maps = maps[[1:32:1], []]}}"));
  const auto replace = [&text](const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  };
  for (const char* type : {"f32, 32", "f32, 1", "f32[rows, columns]", "f32[rows]", "f32 ="}) {
    replace(type, "i32" + std::string(type + 3));
  }
  replace("value = 0.0", "value = 0"), replace("value = 1.0", "value = 1");
  replace("    fill %7",
          fmt::format("    %40: i32 = constant {{value = {}}} @\"sums.cpp\":5\n"
                      "    %41: i32 = constant {{value = 64}} @\"sums.cpp\":5\n"
                      "    %43: i32 = add %26, %23 @\"sums.cpp\":5\n"
                      "    %44: i32 = dim {{dim = dim((columns + 1))}} @\"sums.cpp\":5\n"
                      "    %42: i32 = sub {} @\"sums.cpp\":5\n    fill %7",
                      more, bound));
  replace("%26, %27, %28, %25 {sizes = [1, 4096]", "%26, " + limit + " {sizes = [1, 4096]");
  return text;
}

TEST(ValueFaults, MaskOfBlocksOfNothing) {
  // What lies from `cta_index` on, and the same of one more on both sides.
  const std::string load = "%26, %28, %25", own = "%25, %26", other = "%44, %43";
  EXPECT_TRUE(hides_zeros_alone(masked_blocks(63, load, own)));
  EXPECT_TRUE(hides_zeros_alone(masked_blocks(63, load, other)));
  EXPECT_TRUE(hides_zeros_alone(masked_blocks(0, "%43, %28, %44", own)));
  // A remainder that makes a block, another limit, and another beginning.
  EXPECT_FALSE(hides_zeros_alone(masked_blocks(64, load, own)));
  EXPECT_FALSE(hides_zeros_alone(masked_blocks(-1, load, own)));
  EXPECT_FALSE(hides_zeros_alone(masked_blocks(63, load, "%44, %26")));
  EXPECT_FALSE(hides_zeros_alone(masked_blocks(63, load, "%25, %43")));
}

TEST(ValueFaults, MaskOffByOne) {
  for (const bool or_equal : {false, true}) {
    EXPECT_EQ(expect_found(32, masked(or_equal)).caught, 1) << or_equal;
  }
}

TEST(ValueFaults, WeightOffByHalfAPercent) {
  EXPECT_EQ(expect_found(33, weighted()).caught, 2);  // the exponential, and the product with it
}

// The exponential of -inf is 0 or no number, and so is what is multiplied by it.
TEST(ValueFaults, WeightThatIsZeroWhateverHappens) {
  XToC made("rescaled", kSize, kSize);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Tile x = load(X(all, all)).cast(f32);
    const Var none{full({kSize, kSize}, -std::numeric_limits<double>::infinity())};
    store(C(all, all), (x * exp2(none - x)).cast(bf16));
  })});
  const Count count = expect_found(33, made.subject(5));
  EXPECT_EQ(count.mutants, 2);
  EXPECT_EQ(count.equivalent, 2);
}

// As where the first block of a softmax rescales sums of nothing.
TEST(ValueFaults, WeightThatMeetsZerosAlone) {
  const auto count = [](const std::function<Tile(const Tile& nothing, const Tile& weight)>& of) {
    XToC made("rescaled", kSize, kSize);
    made.kernel.roles({role("math", warpgroups(1), registers(240), [&] {
      const Tile x = load(made.X(all, all)).cast(f32);
      const Var nothing{zeros({kSize, kSize})};
      store(made.C(all, all), of(nothing, exp2(x)).cast(bf16));
    })});
    return expect_found(33, made.subject(5));
  };
  const Count alone =
      count([](const Tile& nothing, const Tile& weight) { return nothing * weight; });
  EXPECT_EQ(alone.mutants, 2);
  EXPECT_EQ(alone.equivalent, 2);
  const Count elsewhere =
      count([](const Tile& nothing, const Tile& weight) { return nothing * weight + weight; });
  EXPECT_EQ(elsewhere.caught, 1);
  EXPECT_EQ(elsewhere.equivalent, 0);
}

TEST(ValueFaults, PagesTakenForNeighbours) {
  EXPECT_EQ(expect_found(25, pages({3, 6, 0, 5})).caught, 1);
  // Where they are neighbours the page that lies behind the first one's is the right one.
  const Subject beside = pages({4, 5, 0, 1});
  const std::vector<Mutant> mutants = mutants_of(kind(25), beside.machine);
  ASSERT_EQ(mutants.size(), 1u);
  EXPECT_EQ(symptom(beside, mutants[0].apply(beside.machine)), "");
}

TEST(ValueFaults, HeadsOfAnotherGroup) {
  EXPECT_EQ(expect_found(25, groups()).caught, 1);
  EXPECT_EQ(expect_found(25, packed_groups()).caught, 1);
}

// Four CTAs share two blocks of rows and two of columns; each does all of its rows, whose number is
// read.
TEST(ValueFaults, TilesInAnotherOrder) {
  Kernel kernel("tiles");
  const Tensor X = kernel.in("X", bf16, {64, 64});
  const Tensor length = kernel.in("length", i32, {1});
  const Tensor C = kernel.out("C", bf16, {64, 64});
  kernel.ctas(4);
  kernel.roles({role("math", warps(1), registers(64), [&] {
    const Index row = cta_index() / 2, column = cta_index() % 2;
    for (Index part : range((load_index(length(0)) + 15) / 16)) {
      const Block rows = Dim(64).block(row * 2 + part, 16), columns = Dim(64).block(column, 32);
      store(C(rows, columns), load(X(rows, columns)));
    }
  })});
  const Subject subject{lowered(kernel),
                        {numbers({64, 64}, 12), HostTensor::from_values(i32, {1}, {20})},
                        {"X", "length"},
                        {64, 64}};
  const Count count = expect_found(36, subject);
  EXPECT_EQ(count.mutants, 3);  // div, mod, and the remainder of 20 by 16
  EXPECT_EQ(count.caught, 3);
}

// A loop up to the split and one from there, which counts `other`.
bool splits_like_loops_alone(const std::string& split, const std::string& other) {
  const ir::Kernel kernel = ir::parse_text(R"(kernel "loops" machine @"loops.cpp":1
dim rows
workspace turns: i32[1] = %0 @"loops.cpp":2
grid (multiprocessors)
threads 32
body () {
  role {name = "all", first_warp = 0, warps = 1, registers = 32} @"loops.cpp":3 (%1: i32) {
    %2: i32 = constant {value = 0} @"loops.cpp":4
    %3: i32 = constant {value = 1} @"loops.cpp":4
    %4: i32 = constant {value = 2} @"loops.cpp":4
    %5: i32 = dim {dim = dim(rows)} @"loops.cpp":4
    %6: i32 = cta_index @"loops.cpp":5
    %7: i32 = div %6, %4 @"loops.cpp":5
    %8: i32 = min %7, %5 @"loops.cpp":5
    %9: i32 = )" + split + R"( @"loops.cpp":5
    %10: i32 = for_loop %3, %9, %3, %2 @"loops.cpp":6 (%11: i32, %12: i32) {
      %13: i32 = add %12, %11 @"loops.cpp":7
      %14: i32 = atomic_add %0, %2, %13 @"loops.cpp":7
      yield %13 @"loops.cpp":7
    }
    %15: i32 = for_loop %9, %5, %3, %10 @"loops.cpp":8 (%16: i32, %17: i32) {
      %18: i32 = add %17, %16 @"loops.cpp":9
      %19: i32 = atomic_add %0, %2, )" + other +
                                               R"( @"loops.cpp":9
      yield %18 @"loops.cpp":9
    }
    yield @"loops.cpp":3
  }
}
)",
                                           "loops.tw");
  for (const FaultKind& kind : fault_kinds()) {
    if (kind.number != 36) continue;
    const std::vector<Mutant> mutants = mutants_of(kind, kernel);
    EXPECT_EQ(mutants.size(), 1u);
    return mutants.size() == 1 && !mutants.front().equivalent.empty();
  }
  return false;
}

TEST(ValueFaults, SplitOfLoopsThatDoTheSame) {
  EXPECT_TRUE(splits_like_loops_alone("max %3, %8", "%18"));
  // Loops that do something else, and splits that may lie before the first turn or behind the last.
  EXPECT_FALSE(splits_like_loops_alone("max %3, %8", "%16"));
  EXPECT_FALSE(splits_like_loops_alone("max %2, %8", "%18"));
  EXPECT_FALSE(splits_like_loops_alone("max %3, %7", "%18"));
}

// Each CTA of two loads half of the rows for both.
TEST(ValueFaults, MulticastToTooFew) {
  XToC made("multicast", kSize, kSize, 2);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  Ring ring(kernel, "x", stages(1), {{bf16, kSize, kSize}});
  ring.multicast();
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       ring.produce([&](const tilewright::Slot& slot) {
                         const Block half = Dim(kSize).block(cluster_rank(), kSize / 2);
                         tma_load(X(half, all), slot[0].rows(kSize / 2 * cluster_rank(), kSize / 2),
                                  {.multicast = true});
                       });
                     }),
                role("math", warpgroups(1), registers(200), [&] {
                  const tilewright::Slot slot = ring.consume();
                  const Tile x = load(slot[0]);
                  fence_proxy_async();
                  ring.release(slot);
                  when(cluster_rank() == 0, [&] { store(C(all, all), x); });
                })});
  EXPECT_EQ(expect_found(37, made.subject(13)).caught, 1);
}

}  // namespace
}  // namespace tilewright::simulator
