#pragma once

#include <cstddef>
#include <vector>

#include "ir/ir.h"
#include "support/arguments.h"

namespace tilewright::compiler {

// The tensors of a launch that the kernel writes, and what they held when this was made.
class WrittenTensors {
 public:
  WrittenTensors(const ir::Kernel& kernel, const Arguments& arguments);

  void restore() const;
  const std::vector<const TensorArgument*>& tensors() const { return tensors_; }
  // Elements from the first to one past the last.
  static std::int64_t span(const TensorArgument& tensor);

 private:
  std::vector<const TensorArgument*> tensors_;
  std::vector<std::vector<std::byte>> initial_;
};

}  // namespace tilewright::compiler
