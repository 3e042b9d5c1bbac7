#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "check/golden_manifest.h"
#include "check/golden_sizes.h"
#include "library/kernel_source.h"
#include "library/workload.h"

// Golden data: inputs and results in files, that any implementation may be held against
// (docs/golden.md).
namespace tilewright::checks {

struct GoldenData {
  GoldenCase description;
  library::Workload workload;
  std::vector<std::vector<double>> expected;  // of each output, in float64
};

// Draws the inputs, except for what `inputs` says of them (library/workload.h), poisons what nobody
// reads, and computes the results.
GoldenData make_golden(const library::KernelSource& source, const GoldenSizes& sizes,
                       const std::map<std::string, std::string>& inputs, std::uint64_t seed);

// Writes the manifest and the files that it names. The folder is made where there is none.
void write_golden(const std::string& folder, const library::KernelSource& source,
                  const std::vector<GoldenData>& all);

// A folder as it stands, whoever has written it. `find` finds a kernel of the library by its name.
// What is damaged in the folder, or does not fit the kernel, is a usage error.
class GoldenFolder {
 public:
  GoldenFolder(std::string folder,
               const std::function<const LibraryKernel&(std::string_view)>& find);
  const GoldenManifest& manifest() const { return manifest_; }
  const library::KernelSource& source() const { return source_; }
  GoldenData read(const GoldenCase& of) const;
  // Of a file of the folder. A link that leads out of it is refused: whoever has made the folder
  // has no say in what else is read.
  std::string path(const std::string& file) const { return path_in(folder_, file); }

 private:
  static std::string path_in(const std::string& folder, const std::string& file);
  std::string input_words(const GoldenCase& of, const GoldenInput& input) const;
  void check_tensors(const GoldenCase& of, const library::Workload& workload) const;
  std::string folder_;
  GoldenManifest manifest_;
  library::KernelSource source_;
};

// What the data is weak in, beside what its author knows of.
std::vector<std::string> new_weaknesses(const library::KernelSource& source,
                                        const GoldenData& data);

// The outputs of the workload against the data's results, each within the bounds of the manifest.
library::Comparison compare(const GoldenData& data);
// Reads the outputs from the file into the workload.
void read_outputs(const std::string& file, GoldenData& data);

}  // namespace tilewright::checks
