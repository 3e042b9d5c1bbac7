#include "kernels/attention_backward_shared.h"

#include <algorithm>

#include "kernels/attention_backward_divided_sm90.h"
#include "kernels/attention_backward_pair_sm90.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_backward_wide_parts.h"
#include "kernels/attention_backward_wide_sm90.h"

namespace tilewright::kernels {

KeyTiles KeyTiles::of(const Attention& a) {
  constexpr int kAll = 128;
  if (!is_wide_backward(a)) return {2, 1, a.dim, a.dim_v, kAll};
  if (is_divided_backward(a)) {
    return {wide_backward_ctas(a), 1, wide::kHalves * wide::half_of(a.dim),
            wide::kHalves * wide::half_of(a.dim_v), kDividedPanel};
  }
  return {wide::kHalves * wide_backward_ctas(a), wide::kHalves, wide::half_of(a.dim),
          wide::half_of(a.dim_v), is_paired_backward(a) ? paired_panel(a) : kAll};
}

template <typename Sequences>
Kernel key_gradients_of_sums(const Attention& a, const KeyTiles& tiles, const std::string& name) {
  constexpr int kLine = SharedSumsShape::kLine;
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::keys);
  const Dim parts = kernel.dim("parts", at_least(1));
  const SharedSumsShape shape(tiles, sequences.kept_key_blocks(a.block_k), parts, Order::blocks,
                              KeySums::apart);
  const Tensor sums = kernel.in("key_sums", f32, shape.sums());
  const Tensor dK = kernel.inout("dK", a.dtype, sequences.of_keys(a.dim));
  const Tensor dV = kernel.inout("dV", a.dtype, sequences.of_keys(a.dim_v));
  // Of one part there are no sums.
  const auto at = sequences.block_of_keys(kernel, a.block_k, min(parts - 1, 1));
  const Index block = sequences.kept_keys(at, at.head, at.number, a.block_k);
  const auto put = [&](const Tensor& to, int dim, bool of_keys, double scale) {
    const int width = shape.piece(of_keys), pieces = shape.width(of_keys) / width;
    for (int piece = 0; piece < tiles.tiles * pieces; ++piece) {
      const int tile = piece / pieces, of_row = tile % tiles.of_keys * pieces + piece % pieces;
      const int columns = tiles.in_fragments ? width : std::min(width, dim - of_row * width);
      if (columns <= 0) continue;
      const Block lines = shape.place(block, tile, of_keys, piece % pieces * width, columns);
      Var sum{zeros({lines.size(), kLine})};
      for (Index part : range(parts)) sum = sum + load(sums(part, lines, all));
      const Block keys = at.block.part(tile / tiles.of_keys, tiles.keys);
      store(at.rows(to, keys, at.head, Block(of_row * width, columns, Index(dim))),
            shape.tile_of(sum * scale).cast(a.dtype));
    }
  };
  put(dV, a.dim_v, false, 1);
  put(dK, a.dim, true, AttentionScores(a).product_scale);
  return kernel;
}
template Kernel key_gradients_of_sums<Batch>(const Attention&, const KeyTiles&, const std::string&);
template Kernel key_gradients_of_sums<Packed>(const Attention&, const KeyTiles&,
                                              const std::string&);

}  // namespace tilewright::kernels
