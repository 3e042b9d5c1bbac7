#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::ir {
struct Program;
}

namespace tilewright::compiler {

// A text of the compilation, as `explain --dump` writes it: "03-bufferise.tw", "kernel.cu".
struct DumpFile {
  std::string name;
  std::string text;
};

// Lists what write_dump wrote into a folder, a name a line.
inline constexpr const char* kDumpManifest = "tilewright-explain.txt";

// The name as one of a file in a folder: letters, digits, _ and - as they are.
std::string file_name(std::string name);

// Writes the files into the folder, which is made where it is missing. What an earlier dump wrote
// there, and no file else, is removed first: a stage of another kernel would mislead.
void write_dump(const std::string& folder, const std::vector<DumpFile>& files);

// Where the environment names a folder in TILEWRIGHT_DUMP: writes the kernel there, as NAME.tw; the
// program, as NAME.twp, or NAME-3ranks.twp where there are several ranks. Where this process, or
// one that runs beside it, has written another one of that name, as NAME-2.tw.
void dump_traced(const ir::Kernel& kernel);
void dump_program(const ir::Program& program);

}  // namespace tilewright::compiler
