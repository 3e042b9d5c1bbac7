// C = A B^T on a core with explicit memories: every matrix is placed, every move started, and every
// unit ordered here. No such core is in this machine, or was ever asked: it is a record, and the
// simulator executes what the compiler makes for it.

#include <cmath>
#include <cstdio>
#include <string>

#include "tilewright/compile.h"
#include "tilewright/incore.h"

using namespace tilewright;

namespace {

// Of C, and of k in a step, which the product takes in halves.
struct Blocks {
  int m = 64, n = 96, k = 128;
};

// The steps of one block of C. `cube` is the sequencer that has these units.
Kernel gemm(const std::string& target, const std::string& cube, Blocks block = {}) {
  Kernel kernel("gemm");
  kernel.target(target);
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k});
  const Tensor B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", bf16, {m, n});

  const int half = block.k / 2;
  CoreMemory a(kernel, "Mat", "a", bf16, block.m, block.k, stages(2));
  CoreMemory b(kernel, "Mat", "b", bf16, block.n, block.k, stages(2));
  CoreMemory left(kernel, "Left", "left", bf16, block.m, half, stages(2));
  CoreMemory right(kernel, "Right", "right", bf16, half, block.n, stages(2));
  CoreMemory sums(kernel, "Acc", "sums", f32, block.m, block.n, stages(2));
  CoreRing loaded(kernel, "MTE2", "MTE1", stages(2));
  CoreRing fed(kernel, "MTE1", "M", stages(2));
  CoreRing summed(kernel, "M", "FIX", stages(2));

  const auto product = [&](const Block& rows, const Block& cols, const Index& sum) {
    for (Index step : range(max(ceil_div(k, block.k), 1))) {  // of nothing the sum is 0
      const Block depth = k.block(step, block.k);
      loaded.produce([&](const Index& stage) {  // once MTE1 has read what was there
        move(a[stage], A(rows, depth));
        move(b[stage], B(cols, depth));
      });
      loaded.consume([&](const Index& stage) {  // once MTE2 has written it
        for (int first = 0; first < block.k; first += half) {
          fed.produce([&](const Index& slot) {
            move(left[slot], a[stage].part(0, first, block.m, half));
            move(right[slot], b[stage].part(0, first, block.n, half).T());
          });
          fed.consume([&](const Index& slot) {
            const Index rest = min(max(Index(k) - step * block.k - first, 0), half);
            const Condition adds = first > 0 ? Condition(true) : step > 0;
            matmul(sums[sum], left[slot], right[slot], adds, rest);
          });
        }
      });
    }
  };
  const Dim columns = ceil_div(n, block.n), blocks = ceil_div(m, block.m) * columns;
  kernel.ctas(min(multiprocessors(), blocks));
  kernel.roles({sequencer(cube, [&] {
    for (Index number : range(cta_index(), blocks, cta_count())) {
      const Block rows = m.block(number / columns, block.m);
      const Block cols = n.block(number % columns, block.n);
      summed.produce([&](const Index& sum) { product(rows, cols, sum); });
      summed.consume([&](const Index& sum) { move(C(rows, cols), sums[sum]); });
    }
  })});
  return kernel;
}

// Relative RMS error against float64.
double error_of(const HostTensor& A, const HostTensor& B, const HostTensor& C) {
  double squares = 0, squared_errors = 0;
  for (std::int64_t i = 0; i < C.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < C.shape()[1]; ++j) {
      double wanted = 0;
      for (std::int64_t d = 0; d < A.shape()[1]; ++d) wanted += A.at({i, d}) * B.at({j, d});
      const double error = C.at({i, j}) - wanted;
      squares += wanted * wanted;
      squared_errors += error * error;
    }
  }
  return std::sqrt(squared_errors / squares);
}

}  // namespace

int main() {
  // No size is a multiple of its block.
  HostTensor A = HostTensor::random_normal(bf16, {150, 200}, 1);
  HostTensor B = HostTensor::random_normal(bf16, {100, 200}, 2);
  bool good = true;
  for (const auto& [target, cube] : {std::pair{"incore", "cube"}, {"incore_unified", "core"}}) {
    HostTensor C = HostTensor::poisoned(bf16, {150, 100});
    try {
      compile(gemm(target, cube), "sim:" + std::string(target)).run({ref(A), ref(B), ref(C)});
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return static_cast<int>(error.kind());
    }
    const double error = error_of(A, B, C);
    std::printf("incore_gemm: relative RMS error %.2e against float64, on simulated %s\n", error,
                target);
    // Half an ulp of bf16 is 2^-9 = 2e-3; NaN, which an unwritten element holds, is not below it.
    good = good && error < 2.5e-3;
  }
  return good ? 0 : 1;
}
