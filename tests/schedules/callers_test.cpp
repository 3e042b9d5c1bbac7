#include <gmock/gmock.h>

#include <string>

#include "common/error_text.h"
#include "tilewright/called_from.h"
#include "tilewright/check.h"
#include "tilewright/kernel.h"
#include "tilewright/kernels/softmax.h"

// Errors of what a library's helper records show the line that called it.
namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Scores whose end is decided in a loop that has ended when the softmax reduces them.
Kernel late_softmax(int& line) {
  Kernel kernel("late_softmax");
  const Dim rows = kernel.dim("rows"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {rows, 64}), K = kernel.in("K", bf16, {keys, 64});
  const Tensor Y = kernel.out("Y", f32, {rows, 1});
  const auto [i] = kernel.grid(ceil_div(rows, 64));
  const Block own = rows.block(i, 64);
  const Tile q = load(Q(own, all));
  Var scores{zeros({64, 64})};
  for (Block cols : blocks(keys, 64)) scores = dot(q, load(K(cols, all)).T());
  kernels::OnlineSoftmax softmax(64, 1);
  line = __LINE__ + 1;
  softmax.step(scores);
  store(Y(own, all), softmax.normaliser());
  return kernel;
}

TEST(Callers, TheLineThatCalledTheLibraryStandsFirst) {
  int line = 0;
  const Kernel kernel = late_softmax(line);
  try {
    check(kernel, "sm_90a");
    FAIL() << "nothing is refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.location().line, line);
    EXPECT_THAT(error.location().file, ::testing::EndsWith("callers_test.cpp"));
    EXPECT_THAT(std::string(error.what()),
                AllOf(HasSubstr("callers_test.cpp:" + std::to_string(line) + ": error: "),
                      HasSubstr("\n    softmax.step(scores);\n"), HasSubstr("\n  in "),
                      HasSubstr("kernels/softmax.h:")));
  }
}

Tile helper(const Tile& x, SourceLocation where = here()) {
  const CalledFrom called(where);
  return x + zeros({7, 3});
}
Tile outer_helper(const Tile& x, SourceLocation where = here()) {
  const CalledFrom called(where);
  return helper(x);
}

// What is refused while it is recorded, by one helper in another.
TEST(Callers, OfSeveralHelpersTheOutermostCounts) {
  Kernel kernel("nested");
  kernel.grid(1);
  const Tile x = zeros({4, 4});
  int line = 0;
  const std::string text = test::whole_usage_error_of([&] {
    line = __LINE__ + 1;
    outer_helper(x);
  });
  EXPECT_THAT(text, AllOf(HasSubstr("callers_test.cpp:" + std::to_string(line) + ": error: "),
                          HasSubstr("outer_helper(x);"), HasSubstr("\n  in ")));
  // Behind the helper lines are the caller's own again.
  const std::string own = test::usage_error_of([&] { x + zeros({7, 3}); });
  EXPECT_EQ(own.find("\n  in "), std::string::npos) << own;
}

Kernel with_rows(int rows) {
  Kernel kernel("with_rows");
  const Tensor X = kernel.in("X", bf16, {rows, 64}), Y = kernel.out("Y", f32, {rows, rows});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  store(Y(all, all), dot(x, x.T()));
  return kernel;
}

TEST(Callers, CheckSaysWhatCompilingWould) {
  EXPECT_NO_THROW(check(with_rows(64), "sm_90a"));
  EXPECT_NO_THROW(check(with_rows(64), "cuda"));  // whether a GPU is here or not
  EXPECT_NO_THROW(check(with_rows(40), "interpreter"));
  for (const char* target : {"sm_90a", "sim:sm_90a", "cuda"}) {
    EXPECT_THAT(test::usage_error_of([&] { check(with_rows(40), target); }), HasSubstr("dot"));
  }
  EXPECT_THAT(test::usage_error_of([] { check(with_rows(64), "nonsense"); }),
              HasSubstr("there is no target 'nonsense'"));
}

}  // namespace
}  // namespace tilewright
