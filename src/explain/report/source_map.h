#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"

// Which line of the kernel's source each line of the printed CUDA came from.
namespace tilewright::explanations {

// Empty where there is no such source, or it may not be shown (try_read_source).
std::vector<std::string> source_lines(const char* file);

struct SourceFile {
  std::string path;
  std::vector<std::string> lines;  // empty where the file is not here
};

struct SourceMap {
  std::vector<SourceFile> files;
  struct Place {
    int file = -1;  // into `files`; -1 for what no line of the kernel made
    int line = 0;
  };
  std::vector<std::string> cuda;  // line by line
  std::vector<Place> from;        // of each
  int kernel_line = 0;            // where the kernel begins behind the functions that it uses
};
// `cuda` names its places by comments such as "// attention.cpp:15", which hold until the next.
SourceMap source_map(const ir::Kernel& machine, std::string_view cuda);

}  // namespace tilewright::explanations
