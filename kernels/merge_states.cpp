#include "tilewright/kernels/merge_states.h"

#include "kernels/attention_join.h"
#include "kernels/caller.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {

namespace {

Kernel merging_kernel(const MergeStates& m) {
  Kernel kernel("merge_states");
  const Dim parts = kernel.dim("parts"), rows = kernel.dim("rows");
  const Tensor O_parts = kernel.in("O_parts", m.dtype, {parts, rows, m.heads, m.dim});
  const Tensor LSE_parts = kernel.in("LSE_parts", f32, {parts, rows, m.heads});
  const Tensor O = kernel.out("O", m.dtype, {rows, m.heads, m.dim});
  const Tensor LSE = kernel.out("LSE", f32, {rows, m.heads});
  const int size = rows_to_join(m.heads, m.dim);
  const auto [x, r] = kernel.grid(ceil_div(Dim(m.heads), Dim(size)), rows);
  const Index row = r;
  const Block heads = Dim(m.heads).block(x, size);

  // One pass: the sums so far are rescaled where a part has a larger one.
  Var top{full({heads, 1}, kNone)}, sum{zeros({heads, 1})}, acc{zeros({heads, m.dim})};
  for (Index part : range(parts)) {
    const Tile of_part = load(LSE_parts(part, row, heads)).reshape({size, 1});
    const Tile next = max(Tile(top), of_part);
    // While no part has seen a key, nothing is shifted: -inf - -inf is no number.
    const Tile shift = where(next == kNone, 0, next);
    const Tile kept = exp2((Tile(top) - shift) * kLog2e);
    const Tile weight = exp2((of_part - shift) * kLog2e);
    const Tile output = load(O_parts(part, row, heads, all)).cast(f32);
    sum = sum * kept + weight;
    // An empty part's output may be NaN.
    acc = acc * kept + where(of_part == kNone, 0, output * weight);
    top = next;
  }
  const Tile total = sum, largest = top;
  store(O(row, heads, all), (Tile(acc) * where(total == 0, 0, 1 / total)).cast(m.dtype));
  const Tile sums = where(total == 0, kNone, largest + log2(total) * kLn2).reshape({size});
  store(LSE(row, heads), sums);
  return kernel;
}

}  // namespace

Kernel merge_states(const MergeStates& m, SourceLocation where) {
  const Caller caller{"merge_states", where};
  caller.check_positive("heads", m.heads);
  caller.check_positive("dim", m.dim);
  return merging_kernel(m);
}

}  // namespace tilewright::kernels
