#include <gtest/gtest.h>

#include "compiler/device_tensors.h"
#include "kernels/gpu.h"
#include "kernels/wgmma_product.h"

namespace tilewright {
namespace {

using test::WgmmaCase;
using test::WgmmaData;

std::vector<WgmmaCase> every_n() {
  std::vector<WgmmaCase> cases;
  for (const DType dtype : {bf16, f16}) {
    for (int n = 8; n <= 256; n += 8) cases.push_back({dtype, n, 64});
    for (const int k : {16, 32, 48, 80, 128, 192}) cases.push_back({dtype, 72, k});
  }
  for (const int n : {8, 24, 96, 256}) cases.push_back({f8e4m3, n, 128});
  for (const int k : {32, 64, 96}) cases.push_back({f8e4m3, 40, k});
  return cases;
}

class WgmmaOnTheGpu : public test::HopperTest, public testing::WithParamInterface<WgmmaCase> {};
INSTANTIATE_TEST_SUITE_P(Shapes, WgmmaOnTheGpu, testing::ValuesIn(every_n()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(WgmmaOnTheGpu, MultipliesExactly) {
  const WgmmaData data(GetParam());
  std::vector<HostTensor> tensors = {
      data.a, data.b, data.at, data.bt,
      HostTensor::poisoned(
          f32, {static_cast<std::int64_t>(GetParam().products().size()), 64, GetParam().n})};
  const Executable executable = compile(test::wgmma_products(GetParam()), "cuda");
  const compiler::DeviceTensors on_gpu(tensors);
  executable.run(on_gpu.refs());
  on_gpu.download(tensors);
  EXPECT_EQ(test::wrong_products(GetParam(), data, tensors[4]), "");
}

}  // namespace
}  // namespace tilewright
