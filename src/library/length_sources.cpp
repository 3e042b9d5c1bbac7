#include "library/length_sources.h"

#include <optional>
#include <string>

namespace tilewright::library {
namespace {

std::optional<LengthSource> source_of(std::size_t option, const std::string& name,
                                      const std::vector<const LibraryTensor*>& parameters) {
  for (std::size_t tensor = 0; tensor < parameters.size(); ++tensor) {
    const std::vector<std::string>& shape = parameters[tensor]->shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const bool is_longer = shape[axis] == name + " + 1";
      if (shape[axis] == name || is_longer) {
        return LengthSource{option, tensor, axis, is_longer ? 1 : 0};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<LengthSource> length_sources(const LibraryKernel& kernel,
                                         const std::vector<const LibraryTensor*>& parameters) {
  std::vector<LengthSource> sources;
  for (std::size_t i = 0; i < kernel.options.size(); ++i) {
    if (!kernel.options[i].is_length) continue;
    if (const auto source = source_of(i, kernel.options[i].name, parameters)) {
      sources.push_back(*source);
    }
  }
  return sources;
}

}  // namespace tilewright::library
