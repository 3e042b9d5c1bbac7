#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/cuda_printer.h"
#include "ir/ir.h"
#include "runtime/cubin_cache.h"

// From a traced kernel to a cubin.
namespace tilewright::driver {

struct Stage {
  std::string name;
  double milliseconds = 0;
  bool changed = false;
};

// Called after each stage with the kernel as the stage left it.
using StageObserver = std::function<void(const Stage&, const ir::Kernel&)>;

struct GpuProgram {
  ir::Kernel machine;
  codegen::CudaSource source;
};

// A traced kernel through the passes to the machine form, and on to CUDA C++; one of the tile form
// gets the automatic schedule first.
ir::Kernel lower(const ir::Kernel& kernel, const StageObserver& observer = {});
GpuProgram translate(const ir::Kernel& kernel, const StageObserver& observer = {});

// The cubin of the program, from the cache when it was built before.
runtime::Build assemble(const GpuProgram& program, const std::string& arch,
                        const runtime::ResourcePolicy& policy = {});

// Bytes of each place in shared memory, in the order of declaration.
struct SharedUse {
  std::string name;
  std::int64_t bytes = 0;
  SourceLocation where;
};
std::vector<SharedUse> shared_use(const ir::Kernel& kernel);

}  // namespace tilewright::driver
