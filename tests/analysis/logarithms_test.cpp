#include "analysis/logarithms.h"

#include <gmock/gmock.h>

#include "tilewright/kernel.h"

namespace tilewright::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Y of the rows of X, by `of`.
template <typename Of>
std::set<std::string> logarithms_of_rows(const Of& of) {
  Kernel kernel("rows");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, 64});
  const Tensor Y = kernel.out("Y", f32, {n, 64}), Z = kernel.out("Z", f32, {n, 64});
  const auto [row] = kernel.grid(ceil_div(n, 16));
  const Block rows = n.block(row, 16);
  const Tile x = load(X(rows, all));
  store(Y(rows, all), of(x));
  store(Z(rows, all), x * 2);
  return stored_logarithms(kernel.finish());
}

TEST(StoredLogarithms, AreThoseOfWhatIsComputed) {
  EXPECT_THAT(logarithms_of_rows([](const Tile& x) { return log(exp(x)) * 3 - x; }),
              ElementsAre("Y"));
  EXPECT_THAT(logarithms_of_rows([](const Tile& x) { return x + log2(reduce_sum(exp(x), 1)); }),
              ElementsAre("Y"));
  // One that is rounded once and is no sum, and one that something else is made of.
  EXPECT_THAT(logarithms_of_rows([](const Tile& x) { return log(x) + 1; }), IsEmpty());
  EXPECT_THAT(logarithms_of_rows([](const Tile& x) { return exp(log(exp(x))); }), IsEmpty());
}

}  // namespace
}  // namespace tilewright::analysis
