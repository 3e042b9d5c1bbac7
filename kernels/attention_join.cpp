#include "kernels/attention_join.h"

#include <algorithm>
#include <bit>

#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

JoinedRows join(const SoftmaxParts& parts, const std::optional<Tile>& sinks) {
  const auto sums_of = [&](const Index& part) {
    return load(parts.sums(part)).reshape({parts.rows, 1});
  };
  Var top{full({parts.rows, 1}, kNone)};
  if (sinks) top = top + *sinks;
  for (Index part : range(parts.count)) top = max(top, sums_of(part));
  // A row that sees no key has -inf in every part.
  const Tile shift = where(Tile(top) == kNone, 0, Tile(top));
  Var sum{zeros({parts.rows, 1})}, acc{zeros({parts.rows, parts.columns})};
  if (sinks) sum = exp2((*sinks - shift) * kLog2e);
  for (Index part : range(parts.count)) {
    const Tile weight = exp2((sums_of(part) - shift) * kLog2e);
    sum = sum + weight;
    acc = acc + weight * load(parts.outputs(part));
  }
  return {Tile(acc) * where(Tile(sum) == 0, 0, 1 / Tile(sum)), shift + log2(Tile(sum)) * kLn2};
}

int rows_to_join(int rows) {
  const int size = std::min(16, static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows))));
  plan_case("heads in several blocks", rows > size);
  plan_case("heads fill their blocks", rows % size == 0);
  return size;
}

}  // namespace tilewright::kernels
