#include "lesson.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::tutorial {
namespace {

Kernel one_head_asynchronous() {
  Kernel kernel("one_head_asynchronous");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {queries, 64}), K = kernel.in("K", bf16, {keys, 64});
  const Tensor V = kernel.in("V", bf16, {keys, 64}), O = kernel.out("O", bf16, {queries, 64});
  kernel.ctas(ceil_div(queries, 64));
  Ring q_ring(kernel, "q", stages(1), {{bf16, 64, 64}});
  Ring kv_ring(kernel, "kv", stages(2), {{bf16, 64, 64}, {bf16, 64, 64}});

  const auto load_role = [&] {
    const Block rows = queries.block(cta_index(), 64);
    q_ring.produce([&](const Slot& slot) { tma_load(Q(rows, all), slot); });
    for (Block cols : blocks(keys, 64)) {
      kv_ring.produce([&](const Slot& slot) {
        tma_load(K(cols, all), slot[0]);
        tma_load(V(cols, all), slot[1]);
      });
    }
  };

  const auto math_role = [&] {
    const Block rows = queries.block(cta_index(), 64);
    const Slot q = q_ring.consume();
    kernels::OnlineSoftmax softmax(rows, 0.125);
    Var acc{zeros({rows, 64})};
    for (Block cols : blocks(keys, 64)) {
      const Slot slot = kv_ring.consume();
      const Tile scores = everything().apply(wait(wgmma(q, slot[0].T())), rows, cols);
      const auto [weights, rescale] = softmax.step(scores);
      acc = wait(wgmma(weights.cast(bf16), slot[1], acc * rescale));
      kv_ring.release(slot);
    }
    q_ring.release(q);
    store(O(rows, all), (acc * softmax.normaliser()).cast(bf16));
  };

  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(1), registers(240), math_role)});
  return kernel;
}

}  // namespace

Lesson asynchronous_attention() {
  Lesson lesson = attention();
  lesson.kernel = one_head_asynchronous();
  lesson.target = "sim:sm_90a";
  return lesson;
}

}  // namespace tilewright::tutorial
