#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::explanations {

// Instructions of one line of a role on columns of tensor memory that they use together.
struct TensorUse {
  std::string role, operation, memory;
  bool reads = false, writes = false;
  std::int64_t begin = 0;               // the memory's first column, of all
  std::int64_t first = 0, columns = 0;  // behind that
  std::string beyond;                   // what is added to `first`: "256 a stage"
  std::int64_t count = 0;               // of instructions
  SourceLocation where;
};

// Of a kernel of the machine form: who uses which columns, in the order of each role's program.
// None where it has no tensor memory.
std::vector<TensorUse> tensor_uses(const ir::Kernel& machine);

// The same as a map: a line for each of them, of which a bar stands for all of the columns.
std::string tensor_memory_text(const ir::Kernel& machine);

}  // namespace tilewright::explanations
