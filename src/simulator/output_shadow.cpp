#include "simulator/output_shadow.h"

#include <algorithm>
#include <string>

#include "analysis/data_dependence.h"
#include "simulator/machine/global_memory.h"
#include "simulator/machine/shadow.h"
#include "simulator/tile_value.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

// Calls `visit(store, decided)` for each store of the block. `decided`: whether it is made, and
// how often, follows from sizes alone.
template <typename Visit>
void for_stores(const ir::Block& block, const std::vector<bool>& sized, bool decided,
                const Visit& visit) {
  for (const Operation& operation : block.body) {
    if (operation.op == Op::store) visit(operation, decided);
    if (operation.blocks.empty()) continue;
    const std::size_t conditions = operation.op == Op::for_loop ? 3 : 1;
    // A while_loop's condition is computed anew in every turn.
    bool inside = decided && operation.op != Op::while_loop;
    for (std::size_t i = 0; i < conditions; ++i) inside = inside && sized[operation.operands[i]];
    for (const ir::Block& inner : operation.blocks) for_stores(inner, sized, inside, visit);
  }
}

// Calls `visit(element)` for what of the box lies inside of its tensor; elements are numbered by
// `strides`.
template <typename Visit>
void for_elements(const Box& box, const std::vector<std::int64_t>& extents,
                  const std::vector<std::int64_t>& strides, const Visit& visit) {
  std::int64_t origin = 0;
  std::vector<std::int64_t> counts, steps;
  for (std::size_t i = 0, axis = 0; i < box.sizes.size(); ++i) {
    const bool block = box.sizes[i] != 0;
    const std::int64_t first = block ? std::max<std::int64_t>(0, box.starts[i]) : box.starts[i];
    origin += first * strides[i];
    if (!block) continue;
    const std::int64_t end = std::min(box.starts[i] + extents[axis++], box.tensor->shape[i]);
    if (end <= first) return;
    counts.push_back(end - first);
    steps.push_back(strides[i]);
  }
  const std::int64_t row = counts.empty() ? 1 : counts.back();
  const std::int64_t step = steps.empty() ? 1 : steps.back();
  if (!counts.empty()) counts.pop_back();
  std::vector<std::int64_t> index(counts.size());
  do {
    std::int64_t element = origin;
    for (std::size_t i = 0; i < index.size(); ++i) element += index[i] * steps[i];
    for (std::int64_t i = 0; i < row; ++i) visit(element + i * step);
  } while (advance(index, counts));
}

std::string text_of(std::int64_t element, const std::vector<std::int64_t>& strides) {
  std::string text = "{";
  for (const std::int64_t stride : strides) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(element / stride);
    element %= stride;
  }
  return text + "}";
}

}  // namespace

OutputShadow::OutputShadow(const ir::Kernel& kernel, const Arguments& arguments, bool concurrent)
    : kernel_(kernel), concurrent_(concurrent) {
  std::size_t next = 0;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor()) continue;
    const TensorArgument& tensor = arguments.tensors[next++];
    if (parameter.kind != ir::Parameter::Kind::out) continue;
    Output& output = outputs_[parameter.value];
    output.parameter = &parameter;
    output.tensor = &tensor;
    output.strides.resize(tensor.shape.size());
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      output.strides[axis] = output.elements;
      output.elements *= tensor.shape[axis];
    }
    output.blocks =
        std::make_unique<std::atomic<std::uint32_t>[]>(static_cast<std::size_t>(output.elements));
  }
  std::vector<bool> sized = analysis::data_dependent(kernel);
  sized.flip();
  // Blocks that are loaded may end where data says, and so may what is made of them.
  bool loads_sized = true;
  ir::for_each(kernel.body, [&](const Operation& operation) {
    if (operation.op != Op::load) return;
    const std::vector<std::int64_t>& sizes = operation.attributes.integers(ir::Key::sizes);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      loads_sized =
          loads_sized && (sizes[i] == 0 || (sized[operation.operands[1 + i]] &&
                                            sized[operation.operands[1 + sizes.size() + i]]));
    }
  });
  for_stores(kernel.body, sized, loads_sized, [&](const Operation& operation, bool decided) {
    const auto at = outputs_.find(operation.operands[0]);
    if (at == outputs_.end()) return;
    at->second.stores.push_back(&operation);
    for (std::size_t i = 2; i < operation.operands.size(); ++i) {
      decided = decided && sized[operation.operands[i]];
    }
    at->second.by_sizes = at->second.by_sizes && decided;
  });
}

void OutputShadow::store(const Operation& operation, const Box& box,
                         const std::vector<std::int64_t>& extents, std::int64_t block) {
  const auto at = outputs_.find(operation.operands[0]);
  if (at == outputs_.end()) return;
  const Output& output = at->second;
  const auto mine = static_cast<std::uint32_t>(block + 1);
  for_elements(box, extents, output.strides, [&](std::int64_t element) {
    std::atomic<std::uint32_t>& cell = output.blocks[static_cast<std::size_t>(element)];
    std::uint32_t before = cell.load(std::memory_order_relaxed);
    if (before == mine) return;
    if (before == 0 && !concurrent_) return cell.store(mine, std::memory_order_relaxed);
    // Where another block is faster, `before` becomes its number.
    if (before == 0 && cell.compare_exchange_strong(before, mine, std::memory_order_relaxed))
      return;
    refuse_second(output, operation, element, block, std::int64_t{before} - 1);
  });
}

void OutputShadow::store_written(const std::vector<std::vector<std::uint16_t>>& written) {
  constexpr std::uint64_t kCell = ShadowBlock::kCell;
  std::size_t next = 0;
  for (const ir::Parameter& parameter : kernel_.parameters) {
    const auto at = outputs_.find(parameter.value);
    if (at == outputs_.end()) continue;
    const Output& output = at->second;
    const std::vector<std::uint16_t>& cells = written[next++];
    if (output.elements == 0) continue;
    TensorArgument tensor = *output.tensor;
    if (tensor.strides.empty()) tensor.strides = row_major_strides(tensor.shape);
    const auto address = [](const std::byte* data) {
      return reinterpret_cast<std::uint64_t>(data);
    };
    const std::uint64_t first = address(GlobalMemory::range_of(tensor).begin) / kCell;
    std::vector<std::int64_t> index(tensor.shape.size());
    std::int64_t element = 0;
    do {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        offset += index[axis] * tensor.strides[axis];
      }
      const std::uint64_t place = address(tensor.data + offset * size_of(tensor.dtype));
      if (cells[place / kCell - first] >> place % kCell & 1) output.blocks[element] = 1;
      ++element;
    } while (advance(index, tensor.shape));
  }
}

void OutputShadow::refuse_second(const Output& output, const Operation& operation,
                                 std::int64_t element, std::int64_t block,
                                 std::int64_t before) const {
  const std::string& name = output.tensor->name;
  Diagnostic diagnostic(operation.where, "store: element " + text_of(element, output.strides) +
                                             " of " + name + " is stored by two blocks of the " +
                                             "grid, " + std::to_string(std::min(block, before)) +
                                             " and " + std::to_string(std::max(block, before)));
  diagnostic.token(name);
  for (const Operation* other : output.stores) {
    if (other != &operation) diagnostic.note(other->where, "it is also stored to");
  }
  diagnostic
      .fix("let each element belong to one block; blocks come in any order, and at the same time")
      .raise();
}

void OutputShadow::check_complete(bool has_blocks) const {
  for (const auto& [value, output] : outputs_) {
    if (!output.by_sizes) continue;
    const auto* first = output.blocks.get();
    const auto* end = first + output.elements;
    const auto* missing =
        std::find_if(first, end, [](const auto& cell) { return cell.load() == 0; });
    if (missing == end) continue;
    const std::string& name = output.tensor->name;
    const auto count = std::count_if(first, end, [](const auto& cell) { return cell.load() == 0; });
    Diagnostic diagnostic(output.parameter->where,
                          kernel_.name + ": element " + text_of(missing - first, output.strides) +
                              " of " + name + " is stored by no block of the grid" +
                              (has_blocks ? "" : ", which has none") + "; of its " +
                              std::to_string(output.elements) + " elements " +
                              std::to_string(count) + " are not");
    diagnostic.token(name);
    for (const Operation* store : output.stores) diagnostic.note(store->where, "it is stored to");
    diagnostic
        .fix(
            "make the grid and the blocks cover it, or declare it with Kernel::inout, which "
            "keeps what is not stored")
        .raise();
  }
}

}  // namespace tilewright::simulator
