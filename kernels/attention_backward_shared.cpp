#include "kernels/attention_backward_shared.h"

namespace tilewright::kernels {

template <typename Sequences>
Kernel key_gradients_of_sums(const Attention& a, const std::string& name) {
  constexpr int kKeys = SharedSumsShape::kKeys, kLine = SharedSumsShape::kLine;
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::keys);
  const Dim parts = kernel.dim("parts", at_least(1));
  const SharedSumsShape shape(a, sequences.kept_key_blocks(a.block_k), parts, Order::blocks,
                              KeySums::apart);
  const Tensor sums = kernel.in("key_sums", f32, shape.sums());
  const Tensor dK = kernel.inout("dK", a.dtype, sequences.of_keys(a.dim));
  const Tensor dV = kernel.inout("dV", a.dtype, sequences.of_keys(a.dim_v));
  // Of one part there are no sums.
  const auto at = sequences.block_of_keys(kernel, a.block_k, min(parts - 1, 1));
  const Index block = sequences.kept_keys(at, at.head, at.number, a.block_k);
  const auto put = [&](const Tensor& to, bool of_keys, double scale) {
    for (int warpgroup = 0; warpgroup < SharedSumsShape::kWarpgroups; ++warpgroup) {
      const Block lines = shape.place(block, warpgroup, of_keys);
      Var sum{zeros({lines.size(), kLine})};
      for (Index part : range(parts)) sum = sum + load(sums(part, lines, all));
      const Tile tile = from_fragments((sum * scale).reshape({lines.size() * kLine}),
                                       lines.size() * kLine / kKeys);
      store(at.rows(to, at.block.part(warpgroup, kKeys), at.head), tile.cast(a.dtype));
    }
  };
  put(dV, false, 1);
  put(dK, true, AttentionScores(a).product_scale);
  return kernel;
}
template Kernel key_gradients_of_sums<Batch>(const Attention&, const std::string&);
template Kernel key_gradients_of_sums<Packed>(const Attention&, const std::string&);

}  // namespace tilewright::kernels
