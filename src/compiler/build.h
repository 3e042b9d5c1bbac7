#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/print.h"
#include "ir/ir.h"
#include "passes/pipeline.h"
#include "runtime/cubin_cache.h"

// From a traced kernel to a cubin.
namespace tilewright::compiler {

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
// gets the automatic schedule first. Neither holds the author's claims against what it makes.
ir::Kernel lower(const ir::Kernel& kernel, passes::Rewrites& rewrites,
                 const StageObserver& observer = {});
GpuProgram translate(const ir::Kernel& kernel, passes::Rewrites& rewrites,
                     const StageObserver& observer = {});
GpuProgram translate(const ir::Kernel& kernel);

// Where a kernel of the tile form had products overlapped and spills registers for it, or has its
// products serialised: why, for whoever asks; it is then to be translated without
// (passes::Rewrites::overlap_products). Nothing where no assembler is here to say.
std::optional<std::string> why_not_overlapped(const GpuProgram& program,
                                              const passes::Rewrites& rewrites,
                                              const std::string& arch);

// The cubin of the program, from the cache when it was built before. `build` checks nothing but
// what ptxas calls fatal; `assemble` also raises where the author's claims do not hold, and for a
// stack frame that the policy does not allow.
runtime::Build build(const GpuProgram& program, const std::string& arch);
runtime::Build assemble(const GpuProgram& program, const std::string& arch,
                        const runtime::ResourcePolicy& policy = {});
// An author who wrote out the roles is told of spilled registers by an error. Who left the schedule
// to the compiler could not help it: such a kernel runs, slower, and explain says by how much.
runtime::ResourcePolicy resource_policy(const ir::Kernel& traced, bool allow_stack_frame = false);
// All of it for one architecture: lowered, printed, assembled, and held against the claims.
struct BuiltKernel {
  GpuProgram program;
  runtime::Build build;
};
BuiltKernel build_kernel(const ir::Kernel& traced, const std::string& arch,
                         const Numerics& numerics = {}, bool allow_stack_frame = false);
// What a build is called in errors: "gemm for sm_90a".
std::string build_name(const GpuProgram& program, const std::string& arch);

// Bytes of a shared tile in all its stages, or of an array of barriers.
std::int64_t bytes_of(const ir::Kernel& kernel, const ir::Operation& operation);

// Bytes of each place in shared memory, in the order of declaration.
struct SharedUse {
  std::string name;
  std::int64_t bytes = 0;
  SourceLocation where;
};
std::vector<SharedUse> shared_use(const ir::Kernel& kernel);

// Tiles that pass through shared memory since they are needed in two register layouts, in a kernel
// of the machine form: in which place, how many bytes, and at which line of the author's.
struct Converted {
  std::int64_t place = 0, bytes = 0;
  SourceLocation where;
};
std::vector<Converted> conversions_in(const ir::Kernel& kernel);

}  // namespace tilewright::compiler
