#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ahead/exported.h"

namespace tilewright::ahead {

// Of one operation for one architecture or several, of which a GPU's own is chosen when it is
// loaded: NAME.h, NAME.c (C99, also C++17), NAME.json, NAME.cmake and NAME.pc: names and what they
// hold. With the CPU libtilewright.so's kernel may be chosen too, which is then loaded at run time.
// Raises a usage error where a name of the operation is a word of C.
std::vector<std::pair<std::string, std::string>> c_files(const std::vector<Exported>& all,
                                                         bool with_cpu = false);

}  // namespace tilewright::ahead
