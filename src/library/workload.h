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

}  // namespace tilewright::library
