#pragma once

#include <functional>

#include "tilewright/incore.h"

namespace tilewright {

// C = A B^T in blocks of 32 x 48, k in steps of 64, double buffered, by units that have sequencers
// of their own, and memories of partitions: A and B are transposed as they are loaded. Of the other
// cores examples/incore_gemm.cpp has it.
inline Kernel partitions_product() {
  Kernel kernel("product");
  kernel.target("incore_partitions");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", bf16, {m, n});
  CoreMemory a(kernel, "SBUF", "a", bf16, 64, 32, stages(2));
  CoreMemory b(kernel, "SBUF", "b", bf16, 64, 48, stages(2));
  CoreMemory c(kernel, "SBUF", "c", bf16, 32, 48, stages(2));
  CoreMemory sums(kernel, "PSUM", "sums", f32, 32, 48, stages(2));
  CoreRing loaded(kernel, "load", "tensor", stages(2));
  CoreRing summed(kernel, "tensor", "vector", stages(2));
  CoreRing copied(kernel, "vector", "store", stages(2));
  const Dim columns = ceil_div(n, 48), tiles = ceil_div(m, 32) * columns;
  kernel.ctas(min(multiprocessors(), tiles));
  const auto each_block = [&](const std::function<void(const Block&, const Block&)>& body) {
    for (Index number : range(cta_index(), tiles, cta_count())) {
      body(m.block(number / columns, 32), n.block(number % columns, 48));
    }
  };
  kernel.roles({sequencer("load",
                          [&] {
                            each_block([&](const Block& rows, const Block& cols) {
                              for (Block depth : blocks(k, 64)) {
                                loaded.produce([&](const Index& stage) {
                                  move(a[stage].T(), A(rows, depth));
                                  move(b[stage].T(), B(cols, depth));
                                });
                              }
                            });
                          }),
                sequencer("tensor",
                          [&] {
                            each_block([&](const Block&, const Block&) {
                              summed.produce([&](const Index& sum) {
                                for (Index step : range(ceil_div(k, 64))) {
                                  loaded.consume([&](const Index& stage) {
                                    matmul(sums[sum], a[stage].T(), b[stage], step > 0,
                                           min(Index(k) - step * 64, 64));
                                  });
                                }
                              });
                            });
                          }),
                sequencer("vector",
                          [&] {
                            each_block([&](const Block&, const Block&) {
                              summed.consume([&](const Index& sum) {
                                copied.produce(
                                    [&](const Index& slot) { move(c[slot], sums[sum]); });
                              });
                            });
                          }),
                sequencer("store", [&] {
                  each_block([&](const Block& rows, const Block& cols) {
                    copied.consume([&](const Index& slot) { move(C(rows, cols), c[slot]); });
                  });
                })});
  return kernel;
}

}  // namespace tilewright
