#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"
#include "tilewright/blackwell.h"
#include "tilewright/hopper.h"

// What is stored into columns of tensor memory has their shape.
namespace tilewright {
namespace {

TEST(TensorColumns, TakeATileOfTheirShape) {
  const auto refused = [](int columns, DType dtype) {
    return test::usage_error_of([&] {
      Kernel kernel("stores");
      kernel.target("sm_100a");
      kernel.ctas(1);
      const TensorMemory memory(kernel, "sums", 64);
      kernel.roles({role("math", warpgroups(1), registers(128), [&] {
        store(memory.attach(), full({128, columns}, 1).cast(dtype));
      })});
    });
  };
  EXPECT_THAT(refused(32, f32), testing::HasSubstr("store: the tile is"));
  EXPECT_THAT(refused(64, bf16), testing::HasSubstr("the columns are 64 of 128 rows and 32 bits"));
}

}  // namespace
}  // namespace tilewright
