#include <gtest/gtest.h>

#include "tilewright/blackwell.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"

// Tiles that CTAs take over while the kernel runs, on the simulator.
namespace tilewright {
namespace {

// They come a cluster at a time: the body gets the cluster's first CTA.
TEST(HandedOutTiles, OfAClusterBeginWithItsFirstCta) {
  Kernel kernel("handed_out");
  kernel.target("sm_100a");
  const Tensor Y = kernel.inout("Y", i32, {10});
  kernel.ctas(10, 2);
  GridTiles tiles(kernel, "tiles", stages(1));
  const auto count = [&](const Index& cta) { atomic_add(Y(cta + cluster_rank()), 1); };
  kernel.roles({role("ask", warps(1), registers(64), [&] { tiles.ask(); }),
                role("count", warps(1), registers(64), [&] { tiles.each(count); })});
  HostTensor y = HostTensor::zeros(i32, {10});
  compile(kernel, "sim:sm_100a").run({ref(y)});
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(y.at({i}), 1) << i;
}

}  // namespace
}  // namespace tilewright
