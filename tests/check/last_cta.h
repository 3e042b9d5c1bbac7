#pragma once

#include "tilewright/hopper.h"
#include "tilewright/kernel.h"
#include "tilewright/ranks.h"

namespace tilewright::test {

// The CTA that comes last stores what the first one has left. A relaxed atomic is a race where that
// is the other one, and nothing at all where it is the same: half of the schedules.
inline Kernel last_cta() {
  Kernel kernel("last");
  const Tensor X = kernel.in("X", bf16, {16, 32}), C = kernel.out("C", bf16, {16, 32});
  const Tensor met = kernel.workspace("met", 1);
  const Tensor left = kernel.scratch("left", 16, 32);
  kernel.ctas(2);
  kernel.roles({role("math", warps(1), registers(64), [&] {
    when(cta_index() == 0, [&] { store(left(all, all), load(X(all, all)).cast(f32)); });
    warp_sync();
    const Index before = atomic_add(met(0), 1, {Semantics::acq_rel, Scope::gpu});
    warp_sync();
    when(before == 1, [&] {
      store(C(all, all), load(left(all, all)).cast(bf16));
      atomic_add(met(0), -2, {Semantics::relaxed, Scope::gpu});
    });
  })});
  return kernel;
}

}  // namespace tilewright::test
