#include "check/sized_kernels.h"

#include <algorithm>
#include <map>

namespace tilewright::checks {
namespace {

// How a LibraryTensor writes an axis of what a launch is given: no expression is an option's.
std::string axis_text(const Dim& size) {
  return size.is_constant() || size.kind() == Dim::Kind::symbol ? size.to_string() : "1";
}

}  // namespace

void note_options(const std::vector<Dim>& shape, const LibraryTensor& tensor,
                  std::map<std::string, std::set<std::string>>& options_of_dims) {
  for (std::size_t i = 0; i < std::min(shape.size(), tensor.shape.size()); ++i) {
    const LibraryAxis axis = parse_axis(tensor.shape[i]);
    const bool is_plain = axis.option == tensor.shape[i];
    if (shape[i].kind() != Dim::Kind::symbol || !is_plain) continue;
    options_of_dims[shape[i].name()].insert(axis.option);
  }
}

const LibraryTensor* SizedKernel::tensor(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const LibraryTensor& each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::vector<SizedKernel> sized_kernels(const LibraryKernel& kernel, const ir::Program& program,
                                       const std::vector<ir::Kernel>& machine) {
  std::map<int, const LibraryTensor*> passed;  // by the buffer's number
  std::map<std::string, std::set<std::string>> options_of_dims;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (!program.buffers[i].is_passed()) continue;
    const auto tensor = std::find_if(
        kernel.tensors.begin(), kernel.tensors.end(),
        [&](const LibraryTensor& each) { return each.name == program.buffers[i].name; });
    if (tensor == kernel.tensors.end()) continue;
    passed.emplace(static_cast<int>(i), &*tensor);
    note_options(program.buffers[i].shape, *tensor, options_of_dims);
  }
  std::vector<SizedKernel> launched;
  for (const ir::ProgramOperation& operation : program.operations) {
    if (operation.kind != ir::ProgramOperation::Kind::launch) continue;
    SizedKernel& made = launched.emplace_back();
    made.machine = &machine[operation.kernel];
    made.dims = program.dims;
    made.options_of_dims = options_of_dims;
    std::size_t next = 0;
    for (const ir::Parameter& parameter : program.kernels[operation.kernel]->parameters) {
      if (!parameter.is_tensor()) continue;
      LibraryTensor& tensor = made.tensors.emplace_back();
      tensor.name = parameter.name;
      const ir::ProgramPart& part = operation.tensors[next++];
      const std::vector<Dim>& sizes = part.sizes;
      const auto entry = passed.find(part.buffer);
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const bool is_whole = sizes[i] == program.buffers[part.buffer].shape[i];
        tensor.shape.push_back(entry != passed.end() && is_whole ? entry->second->shape[i]
                                                                 : axis_text(sizes[i]));
        const Dim& asked = parameter.shape[i];
        if (sizes[i].kind() != Dim::Kind::symbol || asked.kind() != Dim::Kind::symbol) continue;
        made.dims.push_back(Dim::symbol(sizes[i].name(), asked.facts()));
      }
    }
  }
  return launched;
}

}  // namespace tilewright::checks
