#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/arguments.h"
#include "tilewright/host_tensor.h"
#include "tilewright/library.h"

namespace tilewright::library {

// A kernel of the library with options and tensors: inputs from files or random, outputs poisoned.
struct Workload {
  const LibraryKernel* kernel = nullptr;
  OptionValues options;
  std::vector<HostTensor> tensors;  // in the order of the kernel's parameters

  std::vector<HostTensor> inputs() const;
  void poison_outputs();
  Arguments arguments();
};

// The number of the tensor; an unknown name is a usage error that lists the known ones.
std::size_t find_tensor(const LibraryKernel& kernel, const std::string& name, bool is_output);

// `files` maps inputs to their files. Sizes that are not set are those of the files.
Workload make_workload(const LibraryKernel& kernel, const std::vector<std::string>& settings,
                       const std::map<std::string, std::string>& files, std::uint64_t seed);

struct Comparison {
  double max_relative_error = 0;  // infinite when something is not a number
  std::string worst;              // where, and both values
};

// The float64 reference of the workload's inputs.
std::vector<std::vector<double>> reference_of(const Workload& workload);
// Relative to the largest of the wanted element and the root mean squares of its row and of the
// wanted tensor: the first rows of causal attention are far larger than the others.
Comparison compare(const Workload& workload, const std::vector<std::vector<double>>& reference);
// The same of one tensor, added to `result`: "Y[0, 3] is 1, and 2 `of_what`".
void compare_tensor(const HostTensor& tensor, const std::vector<double>& wanted,
                    const std::string& name, const std::string& of_what, Comparison& result);
// Roundings of the coarsest of the dtypes, a few of them.
double tolerance_of(const std::vector<DType>& dtypes);

}  // namespace tilewright::library
