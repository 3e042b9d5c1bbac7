#pragma once

#include <string>

namespace tilewright {

// Makes the folder and those above it where they are missing. What fails is a usage error that
// names the folder.
void make_folder(const std::string& folder);

}  // namespace tilewright
