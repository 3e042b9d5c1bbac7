#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <vector>

#include "simulator/seeded_subjects.h"

// Faults of what is computed, and of who computes what.
namespace tilewright::simulator {
namespace {

// Every row of C is that of X without its last 15 elements.
Subject masked() {
  XToC made("masked", kSize, kSize);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Tile x = load(X(all, all)).cast(f32);
    store(C(all, all), where(iota({kSize, kSize}, 1) < kSize - 15, x, 0.0).cast(bf16));
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

TEST(ValueFaults, MaskOffByOne) { EXPECT_EQ(expect_found(32, masked()).caught, 1); }

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
