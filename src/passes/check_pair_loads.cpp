#include "passes/check_pair_loads.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/cluster_values.h"
#include "analysis/definitions.h"
#include "support/diagnostic.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;

constexpr std::size_t kPair = 2;

std::string list(const std::vector<std::int64_t>& numbers) {
  return std::to_string(numbers[0]) + " and " + std::to_string(numbers[1]);
}

// `starts`: of the block on the axis, by rank.
void check_axis(const ir::Parameter& tensor, const Operation& copy, std::size_t axis,
                std::int64_t size, const std::vector<std::int64_t>& starts) {
  const std::int64_t extent = tensor.shape[axis].constant();
  for (std::size_t first = 0; first + kPair <= starts.size(); first += kPair) {
    const std::vector<std::int64_t> own(
        starts.begin() + static_cast<std::ptrdiff_t>(first),
        starts.begin() + static_cast<std::ptrdiff_t>(first + kPair));
    const bool outside = std::all_of(own.begin(), own.end(), [&](std::int64_t start) {
      return start >= extent || start + size <= 0;
    });
    if (!outside) continue;
    const auto rank = static_cast<std::int64_t>(first);
    Diagnostic(copy.where, "tma_load: CTAs " + list({rank, rank + 1}) +
                               " of each cluster load nothing of " + tensor.name +
                               ": their blocks begin at " + list(own) + " on axis " +
                               std::to_string(axis) + ", which has " + std::to_string(extent))
        .token("tma_load")
        .note(tensor.where, tensor.name + " is declared")
        .fix(
            "the halves that a pair shares are numbered by cluster_rank() % 2, and pairs by "
            "cluster_rank() / 2")
        .raise();
  }
}

}  // namespace

void check_pair_loads(ir::Kernel& kernel) {
  if (kernel.cluster == 1) return;
  const std::vector<const Operation*> definitions = analysis::definitions(kernel);
  const analysis::ClusterValues values(kernel);
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op != Op::tma_load_tile || !o.attributes.has(Key::pair)) return;
    // Of what several CTAs share each brings a part, and parts may lie behind the tensor.
    if (o.attributes.has(Key::multicast)) return;
    const Operation& map = *definitions[o.operands[0]];
    if (map.op != Op::tensor_map || map.attributes.has(Key::ragged)) return;
    const ir::Parameter& tensor = *kernel.parameter_of(map.operands[0]);
    const std::vector<std::int64_t>& box = map.attributes.integers(Key::box);
    constexpr std::size_t kBesideStarts = 4;
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      if (!tensor.shape[axis].is_constant()) continue;
      check_axis(tensor, o, axis, box[axis], values.by_rank(o.operands[kBesideStarts + axis]));
    }
  });
}

}  // namespace tilewright::passes
