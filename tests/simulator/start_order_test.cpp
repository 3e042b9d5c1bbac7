#include "simulator/machine/start_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/error_text.h"
#include "simulator/machine_kernels.h"

namespace tilewright::simulator {
namespace {

// As a list of all numbers is shuffled, which a large grid has no memory for.
std::vector<std::int64_t> shuffled(std::int64_t count, Random& random) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
  std::reverse(list.begin(), list.end());
  return list;
}

TEST(StartOrder, IsThatOfAShuffledList) {
  for (const std::int64_t count : {0, 1, 2, 3, 7, 100}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Random list_random(seed), order_random(seed);
      const std::vector<std::int64_t> expected = shuffled(count, list_random);
      StartOrder order(count, order_random);
      EXPECT_EQ(order_random.next(), list_random.next()) << "what is drawn afterwards";
      std::vector<std::int64_t> drawn;
      while (order.count() > 0) drawn.push_back(order.draw());
      EXPECT_EQ(drawn, expected) << count;
    }
  }
}

TEST(StartOrder, TakesMemoryForWhatIsDrawnAlone) {
  Random random(1);
  StartOrder order(std::int64_t{1} << 40, random);
  std::vector<std::int64_t> drawn;
  for (int i = 0; i < 1000; ++i) drawn.push_back(order.draw());
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::unique(drawn.begin(), drawn.end()), drawn.end());
}

TEST(MaxOperations, EndsAKernelThatNeverEnds) {
  const std::string text = R"(kernel "endless" machine
inout X: i32[64] = %0
grid (1)
threads 128
body () {
  %1: bool = constant {value = 1}
  while_loop %1 () {
    yield %1
  }
}
)";
  MachineTensor x("X", DType::i32, {64});
  MachineOptions options;
  options.max_operations = 10'000;
  try {
    run(text, {&x}, options);
    ADD_FAILURE() << "it came to an end";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::result);
    EXPECT_NE(error.message().find("10000 operations"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tilewright::simulator
