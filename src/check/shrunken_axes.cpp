#include "check/shrunken_axes.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "analysis/cluster_values.h"

namespace tilewright::checks {
namespace {

// The coordinates of copies that belong to one step, for each axis of the tensor: into one stage,
// or, of stores, in one block of the program.
class Copies {
 public:
  explicit Copies(const SizedKernel& kernel)
      : kernel_(kernel), machine_(*kernel.machine), across_cluster_(machine_) {
    const ir::Kernel& machine = machine_;
    ir::for_each(machine.body, [&](const ir::Operation& operation) {
      if (operation.op == ir::Op::tensor_map) maps_[operation.results[0]] = &operation;
      // Those that one is chosen from are alike.
      if (ir::info(operation.op).family == ir::Family::map_choice) {
        maps_[operation.results[0]] = maps_.at(operation.operands[0]);
      }
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
      const ir::OpInfo& record = ir::info(operation.op);
      if (record.family == ir::Family::bulk_copy &&
          record.touches(ir::Memory::global, ir::Proxy::async)) {
        add(operation, number);
      }
      if (ir::info(operation.op).family == ir::Family::global_access) {
        const bool loads = !ir::info(operation.op).writes(ir::Memory::global);
        const LibraryTensor* tensor = tensor_of(operation.operands[loads ? 1 : 0]);
        if (tensor) {
          elements_.emplace_back(tensor, operation.attributes.integers(ir::Key::sizes));
        }
      }
      for (const ir::Block& inner : operation.blocks) visit(inner);
    }
  }
  void add(const ir::Operation& copy, std::size_t block) {
    const ir::ValueId map = maps_.at(copy.operands[0])->results[0];
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
    return parameter ? kernel_.tensor(parameter->name) : nullptr;
  }

  using Step = std::array<std::size_t, 4>;  // block, map, barriers, stage
  const SizedKernel& kernel_;
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

}  // namespace

Axes axes_of(const LibraryKernel& kernel, const std::vector<SizedKernel>& launched) {
  Axes axes;
  for (const LibraryTensor& tensor : kernel.tensors) {
    for (const std::string& extent : tensor.shape) {
      Axis& axis = axes[parse_axis(extent).option];
      axis.is_output = axis.is_output || tensor.is_output;
    }
  }
  for (const SizedKernel& each : launched) Copies(each).add_to(axes);
  axes.erase("");
  // Lengths that no axis is alone, such as of a grid of groups * 128 blocks.
  for (const SizedKernel& each : launched) {
    for (const std::vector<Dim>* extents : {&each.machine->grid, &each.machine->tile_grid}) {
      for (const Dim& extent : *extents) add_lengths(kernel, extent, axes);
    }
  }
  return axes;
}

std::vector<std::set<std::string>> options_of_one_dim(const std::vector<SizedKernel>& launched) {
  std::vector<std::set<std::string>> same;
  for (const SizedKernel& each : launched) {
    std::map<std::string, std::set<std::string>> of_kernel;
    for (const ir::Parameter& parameter : each.machine->parameters) {
      const LibraryTensor* tensor = each.tensor(parameter.name);
      if (tensor) note_options(parameter.shape, *tensor, of_kernel);
    }
    const auto add = [&](const std::map<std::string, std::set<std::string>>& options_of_dims) {
      for (const auto& [dim, options] : options_of_dims) {
        if (options.size() > 1) same.push_back(options);
      }
    };
    add(of_kernel);
    add(each.options_of_dims);
  }
  return same;
}

}  // namespace tilewright::checks
