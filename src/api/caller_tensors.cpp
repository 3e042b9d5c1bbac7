#include "api/caller_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <string>
#include <vector>

#include "support/counted.h"
#include "support/diagnostic.h"

namespace tilewright {
ir::Kernel signature_of_rank(const ir::Program& recorded) {
  ir::Program alone = recorded;
  alone.ranks = 1;
  return ir::signature_of(alone);
}

void require_count(const ir::Program& recorded, const ir::Kernel& signature, std::size_t given) {
  std::vector<std::string> names;
  for (const ir::Parameter& parameter : signature.parameters) {
    if (parameter.is_tensor()) names.push_back(parameter.name);
  }
  if (names.size() == given) return;
  Diagnostic(recorded.where, fmt::format("program {} takes {} of a rank's, and {} given",
                                         recorded.name, counted(names.size(), "tensor"),
                                         given == 1 ? "1 is" : fmt::format("{} are", given)))
      .fix(fmt::format("pass this rank's {}", fmt::join(names, ", ")))
      .raise();
}

std::vector<std::int64_t> sizes_of(const Arguments& arguments) {
  std::vector<std::int64_t> sizes;
  for (const TensorArgument& tensor : arguments.tensors) {
    sizes.push_back(static_cast<std::int64_t>(tensor.shape.size()));
    sizes.insert(sizes.end(), tensor.shape.begin(), tensor.shape.end());
    sizes.insert(sizes.end(), tensor.strides.begin(), tensor.strides.end());
  }
  for (const double scalar : arguments.scalars) {
    sizes.push_back(std::bit_cast<std::int64_t>(scalar));
  }
  return sizes;
}

}  // namespace tilewright
