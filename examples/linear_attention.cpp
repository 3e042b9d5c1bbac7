// Causal linear attention, O_i = sum over j <= i of (q_i . k_j) v_j: no softmax, so that everything
// before a chunk of rows fits in one matrix K^T V, and time grows with the length, not its square.

#include "example.h"

using namespace tilewright;

namespace {

constexpr int kDim = 128, kHeads = 2;

// One block of the grid walks along the length of one head, a chunk at a time.
Kernel linear_attention(int heads, int dim) {
  Kernel kernel("linear_attention");
  const Dim batch = kernel.dim("batch"), length = kernel.dim("length");
  const Tensor Q = kernel.in("Q", bf16, {batch, length, heads, dim});
  const Tensor K = kernel.in("K", bf16, {batch, length, heads, dim});
  const Tensor V = kernel.in("V", bf16, {batch, length, heads, dim});
  const Tensor O = kernel.out("O", bf16, {batch, length, heads, dim});
  const auto [h, b] = kernel.grid(heads, batch);

  Var state{zeros({dim, dim})};  // K^T V of the rows before
  for (Block rows : blocks(length, 128)) {
    const Tile q = load(Q(b, rows, h, all));
    const Tile k = load(K(b, rows, h, all));
    const Tile v = load(V(b, rows, h, all));
    const Tile before = state;
    const Tile scores = where(rows.as_row() <= rows.as_column(), dot(q, k.T()), 0);
    store(O(b, rows, h, all), dot(q, before.cast(bf16)) + dot(scores.cast(bf16), v));
    state = before + dot(k.T(), v);
  }
  return kernel;
}

// The definition, without chunks.
std::vector<double> reference(const HostTensor& Q, const HostTensor& K, const HostTensor& V) {
  std::vector<double> O(static_cast<std::size_t>(Q.elements()));
  const std::int64_t length = Q.shape()[1];
  for (std::int64_t b = 0; b < Q.shape()[0]; ++b) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const auto at = [&](std::int64_t row, std::int64_t d) {
        return ((b * length + row) * kHeads + h) * kDim + d;
      };
      for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) {
          double score = 0;
          for (int d = 0; d < kDim; ++d) score += Q.flat(at(i, d)) * K.flat(at(j, d));
          for (int d = 0; d < kDim; ++d) {
            O[static_cast<std::size_t>(at(i, d))] += score * V.flat(at(j, d));
          }
        }
      }
    }
  }
  return O;
}

double error_at(const Executable& executable, std::int64_t batch, std::int64_t length) {
  const std::vector<std::int64_t> shape{batch, length, kHeads, kDim};
  HostTensor Q = HostTensor::random_normal(bf16, shape, 1);
  HostTensor K = HostTensor::random_normal(bf16, shape, 2);
  HostTensor V = HostTensor::random_normal(bf16, shape, 3);
  HostTensor O = HostTensor::poisoned(bf16, shape);
  executable.run({ref(Q), ref(K), ref(V), ref(O)});
  return examples::relative_error(O, reference(Q, K, V));
}

}  // namespace

// For bench/gpu_examples.py, which loads this file as a shared library.
extern "C" int example_launch(const tilewright_tensor* tensors, std::int32_t count, void* stream) {
  return examples::launch([] { return linear_attention(16, kDim); }, tensors, count, stream);
}

int main(int argc, char** argv) {
  // bf16 rounds the scores, the state and the result, each by 2^-9 = 2e-3 at most.
  return examples::run(argc, argv, linear_attention(kHeads, kDim), 4e-3,
                       {[](const Executable& e) { return error_at(e, 1, 300); },
                        [](const Executable& e) { return error_at(e, 2, 128); },
                        [](const Executable& e) { return error_at(e, 1, 1); }});
}
