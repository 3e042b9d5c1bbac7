#include <string>
#include <vector>

#include "kernels/attention_backward_recording.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {

template <typename Sequences>
Kernel query_gradient_of_sums(const Attention& a, const BackwardPlan& plan,
                              const std::string& name) {
  constexpr int kTileRows = BackwardPlan::kTileRows, kLine = BackwardPlan::kLine;
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::queries, a.block_q);
  const std::vector<Dim> shape = plan.sums(a, sequences.kept_blocks(a.block_q));
  const Tensor sums = kernel.in("sums", f32, shape);
  const Tensor dQ = kernel.out("dQ", a.dtype, sequences.of_queries(a.dim));
  const int tiles = plan.tiles(a), lines = plan.tile_lines(a), width = lines * kLine / kTileRows;
  const auto at = sequences.block_of_queries(kernel, a.block_q, tiles);
  const Index tile = sequences.kept_number(at, at.head, at.number, a.block_q) * tiles + at.part;
  const TensorView own = sums(Block(tile * lines, lines, shape[0]), all);
  // Of dQ^T a thread loads 16 bytes at a time, as they lie, and stores as many. In between they
  // pass through shared memory.
  const RegisterMap as_they_lie{{{4, 1, 1}, {8, 0, 1}}, {{32, 1, 4}}, {{4, 0, 8}}};
  const RegisterMap by_rows{{{8, 1, 1}, {4, 0, 16}}, {{8, 1, 8}, {4, 0, 1}}, {{4, 0, 4}}};
  const Tile loaded = plan.transposed ? load(own, as_they_lie) : load(own);
  const Tile sum = from_fragments(loaded.reshape({kTileRows * width}), width);
  const Block rows = plan.by_columns ? at.block : at.block.part(at.part, kTileRows);
  const Index columns = plan.by_columns ? at.part : Index(0);
  const TensorView to = at.rows(dQ, rows, at.head, Dim(a.dim).block(columns, width));
  const Tile dq = (sum * AttentionScores(a).product_scale).cast(a.dtype);
  store(to, plan.transposed ? in_registers(dq.T(), by_rows) : dq);
  return kernel;
}
template Kernel query_gradient_of_sums<Batch>(const Attention&, const BackwardPlan&,
                                              const std::string&);
template Kernel query_gradient_of_sums<Packed>(const Attention&, const BackwardPlan&,
                                               const std::string&);

}  // namespace tilewright::kernels
