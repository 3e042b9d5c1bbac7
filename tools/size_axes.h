#pragma once

#include <string>
#include <vector>

#include "library/tuning/tuner.h"
#include "tilewright/library.h"

// What --sizes names: "m=16,64,128", or "m=n=k=512,1024" for lengths that change together.
namespace tilewright::tools {

std::vector<library::TunedAxis> parse_axes(const LibraryKernel& kernel,
                                           const std::vector<std::string>& sizes);
// All combinations of the axes' values, the last axis fastest.
std::vector<std::vector<std::size_t>> places_of(const std::vector<library::TunedAxis>& axes);
// One of them as settings.
std::vector<std::string> sizes_at(const std::vector<library::TunedAxis>& axes,
                                  const std::vector<std::size_t>& place);

}  // namespace tilewright::tools
