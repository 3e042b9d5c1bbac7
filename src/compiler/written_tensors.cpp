#include "compiler/written_tensors.h"

#include <cstring>

namespace tilewright::compiler {

WrittenTensors::WrittenTensors(const ir::Kernel& kernel, const Arguments& arguments) {
  std::size_t next = 0;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor() || parameter.is_owned()) continue;
    // What does not fit the kernel is refused where it is launched.
    if (next == arguments.tensors.size()) break;
    const TensorArgument& tensor = arguments.tensors[next++];
    if (tensor.data == nullptr) continue;
    if (parameter.kind != ir::Parameter::Kind::in) tensors_.push_back(&tensor);
  }
  for (const TensorArgument* tensor : tensors_) {
    initial_.emplace_back(tensor->data, tensor->data + span(*tensor) * size_of(tensor->dtype));
  }
}

void WrittenTensors::restore() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (initial_[i].empty()) continue;
    std::memcpy(tensors_[i]->data, initial_[i].data(), initial_[i].size());
  }
}

std::int64_t WrittenTensors::span(const TensorArgument& tensor) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (tensor.shape[axis] == 0) return 0;
    last += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  return last + 1;
}

}  // namespace tilewright::compiler
