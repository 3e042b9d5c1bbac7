#include <gmock/gmock.h>

#include <string>

#include "common/error_text.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Elements of outputs that no block of the grid stores, or two.
namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Stores the first `stored` rows of each block of `step` rows: Y = X.
Kernel copies_rows(int stored, int step, bool inout = false) {
  Kernel kernel("copies_rows");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 32});
  const Tensor Y = inout ? kernel.inout("Y", f32, {rows, 32}) : kernel.out("Y", f32, {rows, 32});
  const auto [i] = kernel.grid(ceil_div(rows, step));
  const Block own(i * step, stored, Index(rows));
  store(Y(own, all), load(X(own, all)));
  return kernel;
}

void run_on_rows(const Kernel& kernel, std::int64_t rows, const char* target = "interpreter") {
  HostTensor X = HostTensor::random_normal(f32, {rows, 32}, 1);
  HostTensor Y = HostTensor::poisoned(f32, {rows, 32});
  compile(kernel, target).run({ref(X), ref(Y)});
}

TEST(OutputCoverage, RowsThatNobodyStores) {
  for (const char* target : {"interpreter", "sim:sm_90a", "sim:sm_100a"}) {
    EXPECT_NO_THROW(run_on_rows(copies_rows(16, 16), 40, target)) << target;
    EXPECT_THAT(
        test::usage_error_of([&] { run_on_rows(copies_rows(15, 16), 40, target); }),
        AllOf(HasSubstr("copies_rows: element {15, 0} of Y is stored by no block of the grid"),
              HasSubstr("of its 1280 elements 64 are not"), HasSubstr("it is stored to at "),
              HasSubstr("Kernel::inout")))
        << target;
    // What nobody stores of these stays.
    EXPECT_NO_THROW(run_on_rows(copies_rows(15, 16, true), 40, target)) << target;
    EXPECT_NO_THROW(run_on_rows(copies_rows(16, 16), 0, target)) << target;
  }
}

// By their bytes, wherever they lie in memory.
TEST(OutputCoverage, ElementsOfATensorWithStrides) {
  Kernel kernel("strided");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", bf16, {rows, 32}), Y = kernel.out("Y", bf16, {rows, 32});
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(i, 16);
  store(Y(own, Block(0, 32, 31)), load(X(own, Block(0, 32, 31))));
  HostTensor x = HostTensor::random_normal(bf16, {20, 32}, 1);
  HostTensor memory = HostTensor::poisoned(bf16, {20, 41});
  const TensorRef y{memory.data() + 2, bf16, {20, 32}, {41, 1}};
  EXPECT_THAT(test::usage_error_of([&] {
                compile(kernel, "sim:sm_90a").run({ref(x), y});
              }),
              AllOf(HasSubstr("element {0, 31} of Y is stored by no block of the grid"),
                    HasSubstr("of its 640 elements 20 are not")));
}

// A grid that is empty stores nothing either: of an output that has elements that is as wrong.
TEST(OutputCoverage, AGridWithoutBlocks) {
  Kernel kernel("convolves");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 32});
  const Tensor after = kernel.out("after", f32, {32});
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  when(i == 0, [&] { store(after(all), load(X(i, all))); });
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    const auto run = [&](std::int64_t count) {
      HostTensor x = HostTensor::random_normal(f32, {count, 32}, 1);
      HostTensor state = HostTensor::poisoned(f32, {32});
      compile(kernel, target).run({ref(x), ref(state)});
    };
    EXPECT_NO_THROW(run(20)) << target;
    EXPECT_THAT(test::usage_error_of([&] { run(0); }),
                AllOf(HasSubstr("element {0} of after is stored by no block of the grid, which has "
                                "none; of its 32 elements 32 are not"),
                      HasSubstr("it is stored to at ")))
        << target;
  }
}

TEST(OutputCoverage, AnElementThatTwoBlocksStore) {
  EXPECT_THAT(test::whole_usage_error_of([] { run_on_rows(copies_rows(17, 16), 40); }),
              AllOf(HasSubstr("store: element {16, 0} of Y is stored by two blocks of the grid, 0 "
                              "and 1"),
                    HasSubstr("store(Y(own, all)"), HasSubstr("fix: ")));
}

// One block may store an element twice.
TEST(OutputCoverage, OneBlockMayStoreAgain) {
  Kernel kernel("again");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 32}), Y = kernel.out("Y", f32, {rows, 32});
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(i, 16);
  for ([[maybe_unused]] Index turn : range(2)) store(Y(own, all), load(X(own, all)));
  EXPECT_NO_THROW(run_on_rows(kernel, 40));
}

// Loaded numbers that say what is loaded, and not where it is stored, excuse nothing.
TEST(OutputCoverage, AHalfThatIsForgottenBehindALoadedIndex) {
  Kernel kernel("rotary");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 64}), table = kernel.in("table", f32, {rows, 32});
  const Tensor places = kernel.in("places", i32, {rows}), Y = kernel.out("Y", f32, {rows, 64});
  const auto [i] = kernel.grid(rows);
  const Block half(0, 32, 32);
  store(Y(i, half), load(X(i, half)) * load(table(load_index(places(i)), all)));
  HostTensor x = HostTensor::random_normal(f32, {5, 64}, 1), y = HostTensor::poisoned(f32, {5, 64});
  HostTensor turns = HostTensor::random_normal(f32, {5, 32}, 2);
  HostTensor at = HostTensor::from_values(i32, {5}, {4, 3, 2, 1, 0});
  EXPECT_THAT(test::usage_error_of([&] {
                compile(kernel, "interpreter").run({ref(x), ref(turns), ref(at), ref(y)});
              }),
              HasSubstr("element {0, 32} of Y is stored by no block of the grid"));
}

// What loaded numbers or data decide is not known to be forgotten; two blocks are still two.
TEST(OutputCoverage, PlacesThatDataDecides) {
  const auto scatter = [](bool by_condition) {
    Kernel kernel("scatter");
    const Dim rows = kernel.dim("rows"), count = kernel.dim("count");
    const Tensor to = kernel.in("to", i32, {count}), X = kernel.in("X", f32, {count, 32});
    const Tensor Y = kernel.out("Y", f32, {rows, 32});
    const auto [i] = kernel.grid(count);
    const Index row = load_index(to(i));
    if (by_condition) {
      when(row >= 0, [&] { store(Y(i, all), load(X(i, all))); });
    } else {
      store(Y(row, all), load(X(i, all)));
    }
    return kernel;
  };
  const auto launch = [](const Kernel& kernel, std::vector<double> rows) {
    HostTensor to = HostTensor::from_values(i32, {3}, rows);
    HostTensor X = HostTensor::random_normal(f32, {3, 32}, 1);
    HostTensor Y = HostTensor::poisoned(f32, {8, 32});
    compile(kernel, "interpreter").run({ref(to), ref(X), ref(Y)});
  };
  EXPECT_NO_THROW(launch(scatter(false), {7, 0, 3}));
  EXPECT_NO_THROW(launch(scatter(true), {7, -1, 3}));
  EXPECT_THAT(test::usage_error_of([&] {
                launch(scatter(false), {7, 3, 3});
              }),
              HasSubstr("element {3, 0} of Y is stored by two blocks of the grid, 1 and 2"));
}

}  // namespace
}  // namespace tilewright
