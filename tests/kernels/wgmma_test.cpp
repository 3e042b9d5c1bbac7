#include <gtest/gtest.h>

#include "kernels/wgmma_product.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

using test::WgmmaCase;
using test::WgmmaData;

class WgmmaOnTheSimulator : public testing::TestWithParam<WgmmaCase> {};
INSTANTIATE_TEST_SUITE_P(Shapes, WgmmaOnTheSimulator,
                         testing::Values(WgmmaCase{bf16, 8, 64}, WgmmaCase{f16, 24, 64},
                                         WgmmaCase{bf16, 200, 64}, WgmmaCase{f16, 256, 64},
                                         WgmmaCase{bf16, 48, 16}, WgmmaCase{bf16, 40, 32},
                                         WgmmaCase{f16, 72, 80}, WgmmaCase{bf16, 64, 192},
                                         WgmmaCase{f8e4m3, 24, 32}, WgmmaCase{f8e4m3, 96, 128}),
                         [](const auto& info) { return info.param.name(); });

TEST_P(WgmmaOnTheSimulator, MultipliesExactly) {
  WgmmaData data(GetParam());
  HostTensor c = HostTensor::poisoned(
      f32, {static_cast<std::int64_t>(GetParam().products().size()), 64, GetParam().n});
  compile(test::wgmma_products(GetParam()), "sim:sm_90a")
      .run({ref(data.a), ref(data.b), ref(data.at), ref(data.bt), ref(c)});
  EXPECT_EQ(test::wrong_products(GetParam(), data, c), "");
}

// The comparison sees one wrong element.
TEST(WgmmaProducts, AWrongElementShows) {
  const WgmmaCase one{bf16, 8, 16};
  const WgmmaData data(one);
  std::vector<double> values;
  for (std::size_t i = 0; i < one.products().size(); ++i) {
    values.insert(values.end(), data.product.begin(), data.product.end());
  }
  HostTensor c = HostTensor::from_values(f32, {6, 64, 8}, values);
  EXPECT_EQ(test::wrong_products(one, data, c), "");
  c.set({3, 5, 7}, c.at({3, 5, 7}) + 1);
  EXPECT_NE(test::wrong_products(one, data, c).find("registers a x b: row 5, column 7"),
            std::string::npos);
}

}  // namespace
}  // namespace tilewright
