#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "library/accuracy.h"
#include "library/workload.h"
#include "tilewright/library_executable.h"

// Kernels of the library by their names and settings, against their float64 references.
namespace tilewright::test {

struct LibraryCase {
  const char* kernel;
  std::vector<std::string> settings;
};

inline void run(const LibraryExecutable& executable, library::Workload& work) {
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  executable.run(tensors);
}

// Outputs are poisoned before.
inline void expect_right(const LibraryCase& each, const char* target) {
  SCOPED_TRACE(std::string(each.kernel) + " on " + target + ", " +
               testing::PrintToString(each.settings));
  const LibraryKernel& entry = find_kernel(each.kernel);
  library::Workload work = library::make_workload(entry, each.settings, {}, 7);
  run(compile(entry, work.options, target), work);
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

// On every target without a GPU.
inline void expect_right_everywhere(const LibraryCase& each) {
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) expect_right(each, target);
}

}  // namespace tilewright::test
