#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/build.h"
#include "ir/program.h"
#include "library/kernel_source.h"
#include "library/length_sources.h"
#include "library/schedule_rules.h"

// What `tilewright build` writes as C: an operation with all that may serve it, built.
namespace tilewright::ahead {

// One program on one stream, and its kernels. A kernel alone is a program that launches it.
struct Variant {
  std::string name;        // "128x256"
  bool is_kernel = false;  // the program's dims are the kernel's
  ir::Program program;     // also with the memory that the built kernels ask for
  std::vector<compiler::BuiltKernel> kernels;
};

// Which variant serves which sizes.
struct Selector {
  library::CompiledRules rules;
  std::vector<std::int64_t> values;  // of what is no length
  std::vector<library::LengthSource> sources;
  std::vector<std::size_t> variant_of_rule;
};

struct Exported {
  std::string name, description, arch;
  std::vector<std::pair<std::string, std::string>> options;  // that it was built with
  std::string file_text;                                     // empty: it is one of the library
  std::vector<Variant> variants;
  std::optional<Selector> selector;  // nothing: there is one variant
};

// From a traced kernel to a cubin for the architecture: compiler::build_kernel.
using BuildKernel =
    std::function<compiler::BuiltKernel(const ir::Kernel&, const std::string& arch)>;

// `kept`: at which sizes variants are wanted, each as options; empty for all variants. Sizes that
// another variant would serve are served by that of the last. `built` is called with how many there
// are before the first, and then after each. Raises what building raises, and a usage error for
// what has no form in C: several ranks or streams, copies, what counts its launches.
Exported export_operation(const library::KernelSource& source, const OptionValues& options,
                          const std::string& arch, const std::vector<OptionValues>& kept,
                          const BuildKernel& build,
                          const std::function<void(std::size_t done, std::size_t all)>& built);

}  // namespace tilewright::ahead
