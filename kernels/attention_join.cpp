#include "kernels/attention_join.h"

#include <algorithm>
#include <bit>

#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

constexpr int kRowsOfBlock = 4;
constexpr int kElementsOfStep = 8192;  // in registers

// Parts that are read at a time, since each read takes as long as memory takes to answer. Of wide
// rows that would be one row a block, and a block takes long to begin.
int parts_of_step(int columns) { return plan_case("wide rows", columns > 256) ? 4 : 16; }

}  // namespace

JoinedSoftmax join(const SoftmaxParts& parts, int rows, int columns,
                   const std::optional<Tile>& sinks) {
  const int together = parts_of_step(columns);
  const Index steps = ceil_div(parts.count, together);
  const auto of_step = [&](const Index& step) {
    return Block(step * together, together, parts.count);
  };
  Var top{full({1, rows}, kNone)};
  if (sinks) top = max(top, *sinks);
  for (Index step : range(steps)) {
    top = max(top, reduce_max(load(parts.sums(of_step(step))), 0));
  }
  // A row that sees no key has -inf in every part.
  const Tile shift = where(Tile(top) == kNone, 0, Tile(top));
  Var sum{zeros({1, rows})}, acc{zeros({rows, columns})};
  if (sinks) sum = exp2((*sinks - shift) * kLog2e);
  for (Index step : range(steps)) {
    const Tile weights = exp2((load(parts.sums(of_step(step))) - shift) * kLog2e);
    sum = sum + reduce_sum(weights, 0);
    const Tile outputs = load(parts.outputs(of_step(step)));
    const Tile weighted = outputs * weights.reshape({together, rows, 1});
    acc = acc + reduce_sum(weighted, 0).reshape({rows, columns});
  }
  const Tile normaliser = where(Tile(sum) == 0, 0, 1 / Tile(sum));
  return {Tile(acc) * normaliser.reshape({rows, 1}), shift + log2(Tile(sum)) * kLn2};
}

int rows_to_join(int rows, int columns) {
  const int fit = std::max(kElementsOfStep / (parts_of_step(columns) * columns), 1);
  const int most = std::min(kRowsOfBlock, static_cast<int>(std::bit_floor(unsigned(fit))));
  const int size = std::min(most, static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows))));
  plan_case("heads in several blocks", rows > size);
  plan_case("heads fill their blocks", rows % size == 0);
  return size;
}

}  // namespace tilewright::kernels
