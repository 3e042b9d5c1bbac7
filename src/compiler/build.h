#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/repeated_stores.h"
#include "codegen/print.h"
#include "compiler/compile_to_machine.h"
#include "ir/ir.h"
#include "runtime/cubin_cache.h"

// From a machine form to a cubin.
namespace tilewright::compiler {

// A machine form as CUDA C++.
struct GpuProgram {
  ir::Kernel machine;
  codegen::CudaSource source;
  std::map<std::string, int> applied = {};  // how often each rewrite was, by the pass's name
  std::vector<Decision> decisions = {};
  std::vector<analysis::RepeatedStore> repeated_stores = {};  // of the kernel that it was made of
  std::vector<schedules::ChosenField> schedule = {};          // MachineForm::schedule
  std::optional<MachineOptions> otherwise = {};  // of the form that ships if this one is refused
  bool checked = false;  // or watched, or delayed: not the form that ships, and it may be slow
};

// How a kernel is built: CompileOptions without the device.
struct BuildOptions {
  MachineOptions machine = {};
  bool allow_stack_frame = false;
  bool afresh = false;
  std::optional<std::uint64_t> delays = {};  // the seed of delays that are injected
  bool epoch_words = false;                  // launches find their epochs in memory
};

// The seed that TILEWRIGHT_DELAYS has, from which all kernels of a process are delayed; nothing
// where that is not set. Raises a usage error where it is no such number.
std::optional<std::uint64_t> delays_seed();

GpuProgram print(MachineForm form);
// The first of the kernel's machine forms, printed, whatever an assembler says of it.
GpuProgram translate(const ir::Kernel& kernel, std::string_view target,
                     const MachineOptions& options = {}, const StageObserver& observer = {});

// The form that ships: the first that the assembler has the registers for, or the last. Where no
// assembler is here the first one is taken, and a decision names what may ship instead. `restart`
// is called before the stages of a further form.
GpuProgram choose_form(const ir::Kernel& kernel, std::string_view target,
                       MachineOptions options = {}, const StageObserver& observer = {},
                       const std::function<void()>& restart = {}, bool afresh = false);

// The cubin of the program, from the cache when it was built before, but where it is to be built
// afresh. `build` checks nothing but what ptxas calls fatal of what ships; `assemble` also raises
// where the author's claims do not hold, and for a stack frame that the policy does not allow.
// Neither is asked of a checked form, which is not the one that ships.
runtime::Build build(const GpuProgram& program, const std::string& arch, bool afresh = false);
// The PTX of the program, which no assembler has seen.
std::string build_ptx(const GpuProgram& program, const std::string& arch);
runtime::Build assemble(const GpuProgram& program, const std::string& arch,
                        const runtime::ResourcePolicy& policy = {}, bool afresh = false);
// An author who wrote out the roles is told of spilled registers by an error. Who left the schedule
// to the compiler could not help it: such a kernel runs, slower, and explain says by how much.
runtime::ResourcePolicy resource_policy(const ir::Kernel& traced, bool allow_stack_frame = false);

// The form that ships, assembled, and held against the claims. With injected delays, or epochs in
// memory, it is another one, of which neither claims nor the policy are asked.
struct BuiltKernel {
  GpuProgram program;
  runtime::Build build;
};
BuiltKernel build_kernel(const ir::Kernel& traced, const std::string& arch,
                         const BuildOptions& options = {});
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
