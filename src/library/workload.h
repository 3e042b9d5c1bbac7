#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/arguments.h"
#include "tilewright/host_tensor.h"
#include "tilewright/library.h"

namespace tilewright::library {

// A kernel of the library with options and tensors: inputs from files or random, outputs poisoned
// unless they are inputs too.
struct Workload {
  const LibraryKernel* kernel = nullptr;
  OptionValues options;
  // Those that are there with these options, of each rank.
  std::vector<const LibraryTensor*> parameters;
  std::vector<HostTensor> tensors;  // of each of them
  int ranks = 1;
  // What those that are inputs and outputs were given, by their places among the tensors.
  std::map<std::size_t, HostTensor> given = {};

  // "C", or "C of rank 1".
  std::string name_of(std::size_t parameter) const;
  std::vector<HostTensor> inputs() const;
  // Those that are inputs too hold again what they were given.
  void poison_outputs();
  // Raises Error(usage) for a name that is none of the kernel's outputs, or of one that the options
  // leave out; `file` is where it was to go.
  const HostTensor& output(const std::string& name, const std::string& file) const;
  Arguments arguments();
};

// What a launch is given beside the tensors.
std::vector<double> scalars_of(const LibraryKernel& kernel, const OptionValues& options);

// How many ranks run the kernel.
int ranks_of(const LibraryKernel& kernel, const OptionValues& options);

// One that a launch writes, or one that it is given. Unknown names are a usage error that lists the
// known ones.
const LibraryTensor& find_tensor(const LibraryKernel& kernel, const std::string& name,
                                 bool is_output);

// What floating inputs are that no file gives.
enum class Drawn : std::uint8_t {
  normal,  // where the kernel gives none
  zeros,   // for runs that no element matters to
};

// `inputs` maps their names to files, or says what they hold (stated_input.h). Sizes that are not
// set are those of the files.
Workload make_workload(const LibraryKernel& kernel, const std::vector<std::string>& settings,
                       const std::map<std::string, std::string>& inputs, std::uint64_t seed,
                       Drawn drawn = Drawn::normal);

}  // namespace tilewright::library
