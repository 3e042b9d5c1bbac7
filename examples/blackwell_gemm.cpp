// C = A B^T at the explicit level for sm_100a: a warp fills a ring by TMA, another one multiplies
// into tensor memory, and a warpgroup stores. Executed on a simulated GPU: none has run it.

#include <cmath>
#include <cstdio>

#include "tilewright/blackwell.h"
#include "tilewright/compile.h"

using namespace tilewright;

namespace {

Kernel gemm() {
  Kernel kernel("gemm");
  kernel.target("sm_100a");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k", at_least(1));
  const Tensor A = kernel.in("A", bf16, {m, k});
  const Tensor B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", bf16, {m, n});

  // One CTA for each tile of 128 x 64; steps of 64 along k.
  const Dim columns = ceil_div(n, 64);
  kernel.ctas(ceil_div(m, 128) * columns);
  Ring ring(kernel, "ab", stages(4), {{bf16, 128, 64}, {bf16, 64, 64}});
  const TensorMemory memory(kernel, "sums", 64);
  const Barrier multiplied(kernel, "multiplied", 1);  // one commit completes it
  NamedBarrier allocated(kernel, 32 + 128), stored(kernel, 32 + 128);

  const auto load_role = [&] {
    const Block rows = m.block(cta_index() / columns, 128);
    const Block cols = n.block(cta_index() % columns, 64);
    for (Block depth : blocks(k, 64)) {
      ring.produce([&](const Slot& slot) {  // waits until the stage is empty
        tma_load(A(rows, depth), slot[0]);
        tma_load(B(cols, depth), slot[1]);
      });
    }
  };

  const auto multiply_role = [&] {
    memory.allocate();
    allocated.sync();
    const TensorColumns sums = memory.attach();
    for (Index step : range(ceil_div(k, 64))) {
      const Slot slot = ring.consume();  // waits until the stage is full
      mma(sums, slot[0], slot[1].T(), step > 0);
      ring.release_behind_products(slot);  // when they have read it
    }
    multiplied.commit();  // when all of them are over
    stored.sync();
    memory.free();
  };

  const auto store_role = [&] {
    allocated.sync();
    const TensorColumns sums = memory.attach();
    multiplied.wait();
    const Tile tile = load(sums);  // a row in each thread
    store(C(m.block(cta_index() / columns, 128), n.block(cta_index() % columns, 64)),
          tile.cast(bf16));
    stored.sync();
  };

  kernel.roles({role("load", warps(1), registers(64), load_role),
                role("multiply", warps(1), registers(64), multiply_role),
                role("store", warpgroups(1), registers(128), store_role)});
  return kernel;
}

}  // namespace

int main() {
  // Neither m nor n nor k is a multiple of its block.
  constexpr std::int64_t kM = 200, kN = 72, kK = 136;
  HostTensor A = HostTensor::random_normal(bf16, {kM, kK}, 1);
  HostTensor B = HostTensor::random_normal(bf16, {kN, kK}, 2);
  HostTensor C = HostTensor::poisoned(bf16, {kM, kN});
  try {
    compile(gemm(), "sim:sm_100a").run({ref(A), ref(B), ref(C)});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
  double worst = 0;  // against half an ulp of bf16, 2^-8, and what f32 sums round
  for (std::int64_t i = 0; i < kM; ++i) {
    for (std::int64_t j = 0; j < kN; ++j) {
      double wanted = 0;
      for (std::int64_t d = 0; d < kK; ++d) wanted += A.at({i, d}) * B.at({j, d});
      const double error = std::abs(C.at({i, j}) - wanted);
      worst = std::fmax(worst, std::isnan(error) ? 1 : error / (std::abs(wanted) / 256 + 1e-4));
    }
  }
  std::printf("blackwell_gemm: %.2f of what rounding explains, on simulated sm_100a\n", worst);
  return worst <= 1 ? 0 : 1;
}
