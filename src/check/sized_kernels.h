#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "ir/program.h"
#include "tilewright/library.h"

namespace tilewright::checks {

// A machine form that is launched, and what the options make of its tensors: by the names of its
// parameters, with the options that axes are as long as.
struct SizedKernel {
  const ir::Kernel* machine = nullptr;
  std::vector<LibraryTensor> tensors;
  std::vector<Dim> dims;  // what is asked of options, by their names
  // The options that a dim of its program stands for.
  std::map<std::string, std::set<std::string>> options_of_dims = {};
  // Null where there is none of this name.
  const LibraryTensor* tensor(const std::string& name) const;
};
// The options that the tensor's axes are as long as, of each dim that these are in `shape`.
void note_options(const std::vector<Dim>& shape, const LibraryTensor& tensor,
                  std::map<std::string, std::set<std::string>>& options_of_dims);
// Of the program of an entry, not bound: of each launch, of which `machine` has the kernels' forms.
// They are in use as long as the answer.
std::vector<SizedKernel> sized_kernels(const LibraryKernel& kernel, const ir::Program& program,
                                       const std::vector<ir::Kernel>& machine);

}  // namespace tilewright::checks
