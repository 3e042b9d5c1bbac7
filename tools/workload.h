#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "command.h"
#include "compiler/compile_to_machine.h"
#include "compiler/target.h"
#include "library/kernel_source.h"
#include "library/workload.h"
#include "tilewright/library_executable.h"
#include "tilewright/tensor_ref.h"

// What `run`, `simulate` and `bench` share.
namespace tilewright::tools {

// "NAME=file" of --in or --out; raises for one that is not, and for a name that comes twice.
std::map<std::string, std::string> parse_files(const std::vector<std::string>& words,
                                               const char* option);

// What --target names; without it what runs on this machine.
compiler::Target target_of(const Request& request);

// Of the file, where the name ends in .tw; else of the library.
library::KernelSource open_kernel(const std::string& name);

// Runs the kernel on tensors, built for the target.
using Runnable = std::function<void(const std::vector<TensorRef>& tensors)>;
Runnable runnable_of(const Request& request, const library::KernelSource& source,
                     const OptionValues& options, const compiler::Target& target);
// Raises where nothing runs on the target.
compiler::Target runnable_target(const Request& request);
// Seconds of one run, which leaves the outputs in the workload.
double execute(const Runnable& run, const compiler::Target& target, library::Workload& workload);
// The same of an entry of the library, over the GPUs of its ranks too.
LibraryExecutable executable_of(const Request& request, const LibraryKernel& entry,
                                const OptionValues& options, const compiler::Target& target);
// Refuses options that name rewrites where the kernel is compiled already.
void check_numerics(const Request& request, const library::KernelSource& source);

// What --numerics and --checked say.
compiler::MachineOptions compilation_of(const Request& request);

library::Workload workload_of(const Request& request, const LibraryKernel& kernel);

}  // namespace tilewright::tools
