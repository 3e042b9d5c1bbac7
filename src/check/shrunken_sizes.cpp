#include "check/shrunken_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "analysis/cluster_values.h"

namespace tilewright::checks {
namespace {

struct Axis {
  std::int64_t box = 0;   // the largest of those of its copies; 0: there are none
  std::int64_t span = 0;  // what the CTAs of a cluster copy for one step, or for one tile
  bool is_output = false;
};
using Axes = std::map<std::string, Axis>;

// The coordinates of copies that belong to one step, for each axis of the tensor: into one stage,
// or, of stores, in one block of the program.
class Copies {
 public:
  Copies(const LibraryKernel& kernel, const ir::Kernel& machine)
      : kernel_(kernel), machine_(machine), across_cluster_(machine) {
    ir::for_each(machine.body, [&](const ir::Operation& operation) {
      if (operation.op == ir::Op::tensor_map) maps_[operation.results[0]] = &operation;
    });
    visit(machine.body);
  }

  void add_to(Axes& axes) const {
    for (const auto& [step, coordinates] : steps_) {
      const ir::Operation& map = *maps_.at(step[1]);
      const LibraryTensor* tensor = tensor_of(map.operands[0]);
      if (!tensor) continue;
      const std::vector<std::int64_t>& box = map.attributes.integers(ir::Key::box);
      for (std::size_t i = 0; i < tensor->shape.size(); ++i) {
        Axis& axis = axes[parse_axis(tensor->shape[i]).option];
        std::int64_t across = 1;
        for (const ir::ValueId at : coordinates[i]) {
          across = std::max(across, across_cluster_.different(at));
        }
        const auto in_step = static_cast<std::int64_t>(coordinates[i].size());
        axis.box = std::max(axis.box, box[i]);
        axis.span = std::max(axis.span, box[i] * in_step * across);
      }
    }
    for (const auto& [tensor, sizes] : elements_) {
      for (std::size_t i = 0; i < tensor->shape.size(); ++i) {
        Axis& axis = axes[parse_axis(tensor->shape[i]).option];
        if (axis.span != 0 || sizes[i] <= 1) continue;
        axis.box = axis.span = sizes[i];
      }
    }
  }

 private:
  void visit(const ir::Block& block) {
    ++block_;
    const std::size_t number = block_;
    for (const ir::Operation& operation : block.body) {
      if (ir::info(operation.op).family == ir::Family::bulk_copy) {
        add(operation, number);
      }
      if (ir::info(operation.op).family == ir::Family::global_access) {
        const bool loads = ir::info(operation.op).reads(ir::Memory::global);
        const LibraryTensor* tensor = tensor_of(operation.operands[loads ? 1 : 0]);
        if (tensor) {
          elements_.emplace_back(tensor, operation.attributes.integers(ir::Key::sizes));
        }
      }
      for (const ir::Block& inner : operation.blocks) visit(inner);
    }
  }
  void add(const ir::Operation& copy, std::size_t block) {
    const ir::ValueId map = copy.operands[0];
    const bool loads = ir::info(copy.op).writes(ir::Memory::shared);
    const Step step = {block, map, loads ? copy.operands[3] : ir::kNoValue,
                       loads ? copy.operands[4] : ir::kNoValue};
    const std::size_t axes = maps_.at(map)->attributes.integers(ir::Key::box).size();
    std::vector<std::set<ir::ValueId>>& coordinates = steps_[step];
    coordinates.resize(axes);
    // A ragged map has one more, the outermost.
    for (std::size_t i = 0; i < axes; ++i) {
      coordinates[axes - 1 - i].insert(copy.operands[(loads ? 5 : 3) + i]);
    }
  }
  const LibraryTensor* tensor_of(ir::ValueId value) const {
    const ir::Parameter* parameter = machine_.parameter_of(value);
    for (const LibraryTensor& tensor : kernel_.tensors) {
      if (parameter && tensor.name == parameter->name) return &tensor;
    }
    return nullptr;
  }

  using Step = std::array<std::size_t, 4>;  // block, map, barriers, stage
  const LibraryKernel& kernel_;
  const ir::Kernel& machine_;
  const analysis::ClusterValues across_cluster_;
  std::map<ir::ValueId, const ir::Operation*> maps_;
  std::map<Step, std::vector<std::set<ir::ValueId>>> steps_;
  std::vector<std::pair<const LibraryTensor*, std::vector<std::int64_t>>> elements_;
  std::size_t block_ = 0;
};

void add_lengths(const LibraryKernel& kernel, const Dim& extent, Axes& axes) {
  if (extent.is_constant()) return;
  if (extent.kind() != Dim::Kind::symbol) {
    add_lengths(kernel, extent.lhs(), axes);
    add_lengths(kernel, extent.rhs(), axes);
    return;
  }
  for (const KernelOption& option : kernel.options) {
    if (option.name == extent.name() && option.is_length) axes.try_emplace(option.name);
  }
}

Axes axes_of(const LibraryKernel& kernel, const ir::Kernel& machine) {
  Axes axes;
  for (const LibraryTensor& tensor : kernel.tensors) {
    for (const std::string& extent : tensor.shape) {
      Axis& axis = axes[parse_axis(extent).option];
      axis.is_output = axis.is_output || tensor.is_output;
    }
  }
  Copies(kernel, machine).add_to(axes);
  axes.erase("");
  // Lengths that no axis is alone, such as of a grid of groups * 128 blocks.
  for (const std::vector<Dim>* extents : {&machine.grid, &machine.tile_grid}) {
    for (const Dim& extent : *extents) add_lengths(kernel, extent, axes);
  }
  return axes;
}

// The next size that the option takes; at the least one whose rows TMA can copy.
std::int64_t allowed(const ir::Kernel& machine, const KernelOption& option, std::int64_t size) {
  constexpr std::int64_t kRowMultiple = 8;
  if (size < option.minimum) {
    size = (option.minimum + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
  }
  size = std::min(size, option.maximum);
  for (const Dim& dim : machine.dims) {
    if (dim.name() != option.name) continue;
    const std::int64_t multiple = dim.facts().multiple;
    size = (size + multiple - 1) / multiple * multiple;
  }
  return size;
}

std::int64_t most_stages(const ir::Kernel& machine) {
  std::int64_t stages = 1;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    if (operation.op != ir::Op::shared) return;
    stages = std::max(stages, operation.attributes.integer_or(ir::Key::stages, 1));
  });
  return stages;
}

}  // namespace

std::vector<std::vector<std::string>> shrunken_sizes(const LibraryKernel& kernel,
                                                     const std::vector<std::string>& settings,
                                                     const OptionValues& options,
                                                     const ir::Kernel& machine, bool further) {
  const std::int64_t steps = most_stages(machine) + 1;
  const bool cooperative = ir::is_cooperative(machine);
  const std::int64_t few = machine.cluster > 1 || cooperative ? 2 : 3;
  const std::int64_t parts = cooperative ? 2 : 1;
  // Of the last block all rows but these: some of each warpgroup's, or of the first one's alone.
  // The tails differ from those of contractions, so that diagonals cross blocks.
  const auto small_tail = [](std::int64_t) { return std::int64_t{24}; };
  const auto large_tail = [](std::int64_t box) { return box * 3 / 4 / 16 * 16 - 8; };
  constexpr std::int64_t kContractionTail = 16;
  struct Choice {
    std::int64_t contraction, other;
    std::int64_t (*tail)(std::int64_t box);
    std::int64_t batch = 1;
  };
  const std::vector<Choice> usual = {{steps, few, small_tail},
                                     {steps + 1, 2 * few - 1, large_tail},
                                     {steps + 2, few + 1, small_tail},
                                     {1, few, small_tail},
                                     {0, few, small_tail},
                                     // The next tile begins in the stages of this one's begin.
                                     {steps - 1, 2 * few - 1, large_tail}};
  const std::vector<Choice> others = {{steps + 3, few + 2, large_tail, 2},
                                      {2 * steps + 1, 2 * few, small_tail, 3},
                                      {3 * steps, few + 1, large_tail, 1},
                                      {2, 4 * few, small_tail, 1},
                                      {3 * steps + 2, 4 * few, small_tail, 2},
                                      {5 * steps, 3 * few, large_tail, 3},
                                      {1, 1, small_tail, 1}};
  const std::vector<Choice>& choices = further ? others : usual;
  std::set<std::string> is_set;
  for (const std::string& setting : settings) is_set.insert(setting.substr(0, setting.find('=')));
  const std::map<std::string, Axis> axes = axes_of(kernel, machine);
  // Sequences of a packed batch share the lengths.
  std::int64_t sequences = 1;
  for (const KernelOption& option : kernel.options) {
    const auto axis = axes.find(option.name);
    if (option.is_length && axis != axes.end() && axis->second.box == 0) sequences = 2;
  }
  std::vector<std::vector<std::string>> result;
  for (const Choice& choice : choices) {
    std::vector<std::string>& sizes = result.emplace_back();
    for (const KernelOption& option : kernel.options) {
      const auto found = axes.find(option.name);
      if (found == axes.end() || is_set.count(option.name) != 0) continue;
      const Axis& axis = found->second;
      std::int64_t size = 0;
      if (option.is_length && axis.box > 1) {
        const std::int64_t block = axis.span * sequences;
        size = axis.is_output ? choice.other * block - choice.tail(axis.box)
                              : std::max<std::int64_t>(
                                    choice.contraction * parts * block - kContractionTail, 0);
      } else if (option.is_length) {
        size = sequences * choice.batch;
      } else if (axis.box == 1 && !options.has(option.standard)) {
        size = 2;
      } else {
        continue;
      }
      sizes.push_back(fmt::format("{}={}", option.name, allowed(machine, option, size)));
    }
  }
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::int64_t shrunken_multiprocessors(const ir::Kernel& machine, bool further) {
  if (!ir::is_cooperative(machine)) return machine.cluster;
  // Of 9 tiles one is left over for two clusters, of 16 one for five. Of larger clusters one more:
  // a kernel may count on GPCs whose multiprocessors they do not divide evenly.
  const std::int64_t clusters = (further ? 5 : 2) + (machine.cluster > 2 ? 1 : 0);
  return clusters * machine.cluster;
}

}  // namespace tilewright::checks
