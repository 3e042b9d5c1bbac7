#pragma once

#include <set>
#include <string>
#include <vector>

#include "tilewright/library.h"

namespace tilewright::library {

// The options that the settings decide: those that are set, and what lengths say of others.
std::set<std::string> decided_options(const LibraryKernel& kernel,
                                      const std::vector<std::string>& settings);

}  // namespace tilewright::library
