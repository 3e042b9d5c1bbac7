#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/additions.h"
#include "compiler/build.h"
#include "compiler/claims.h"
#include "compiler/dump.h"
#include "compiler/rewrites.h"
#include "compiler/target.h"
#include "explain/cpu_list.h"
#include "explain/roofline.h"
#include "explain/sass.h"
#include "explain/tiers.h"
#include "ir/program.h"
#include "ir/text_diff.h"
#include "library/tuning/schedule_report.h"
#include "library/workload.h"
#include "tilewright/kernel.h"

namespace tilewright::explanations {

// What a kernel takes of a memory of a core.
struct MemoryUse {
  std::string name, space, shape;
  std::int64_t stages = 1, bytes = 0, of = 0;  // bytes in each partition, of what the space has
  SourceLocation where;
};

// A field is -1 where nothing states it.
struct Resources {
  int registers = -1;
  int stack_bytes = -1;
  int spill_bytes = -1;
  std::int64_t shared_bytes = -1;
  std::int64_t tensor_columns = -1;  // of tensor memory, where the target has it
};

struct ExplainedStage : compiler::Stage {
  std::string text;                // the kernel behind it; empty where it did not change
  std::vector<ir::DiffLine> diff;  // from the stage before; values may be renumbered
};

struct AppliedRewrite {
  const compiler::Rewrite* rewrite = nullptr;
  bool allowed = true;
  int count = 0;
};

// What a kernel is compiled to, and how.
struct Explanation {
  std::string kernel, target;
  std::vector<ExplainedStage> stages;
  double front_end_milliseconds = 0;  // from the first line of the trace to the source
  double build_milliseconds = 0;      // of the assembler; 0 when it did not run
  bool from_cache = false;
  Resources resources;
  std::vector<compiler::SharedUse> shared;
  std::vector<MemoryUse> memories;                   // of a core with explicit ones
  std::map<std::string, std::int64_t> instructions;  // operations of the last form, by name
  std::map<std::string, std::int64_t> units;         // how many of them each unit executes
  std::vector<AppliedRewrite> rewrites;              // none for the interpreter, which has none
  std::vector<compiler::Approximation> approximations;
  std::vector<compiler::CheckedClaim> claims;
  std::vector<compiler::Decision> decisions;   // of the compiler
  std::vector<schedules::ChosenField> fields;  // of the schedule of a tile-level kernel
  std::vector<compiler::Addition> additions;   // to memory; those in any order may change last bits
  std::uint64_t form = 0;                      // ir::form_hash of the machine form
  std::vector<std::string> warnings;
  // Why it would not be compiled: claims that do not hold, a stack frame.
  std::vector<std::string> failures;
  // Why there is no cubin, where that is no fault of the kernel: NVRTC is missing or too old.
  std::optional<std::string> no_cubin;

  ir::Kernel last;                      // the machine form, for the interpreter the tile form
  std::optional<ir::Kernel> scheduled;  // with layouts assigned
  std::vector<Tiers> tiers;
  std::string cuda, ptx, cubin, log;
  Sass sass;
  std::optional<CpuList> cpu;                       // on the target cpu
  std::optional<Work> work;                         // of the sizes that were set
  std::optional<library::ScheduleReport> schedule;  // of a kernel of the library
};

// `trace` makes the kernel: its time counts.
Explanation explain(const std::function<Kernel()>& trace, const compiler::Target& target,
                    const compiler::MachineOptions& options = {});
// Of one that was made before.
Explanation explain(const Kernel& kernel, const compiler::Target& target,
                    const compiler::MachineOptions& options = {});

Explanation explain(const ir::Kernel& traced, const compiler::Target& target,
                    const compiler::MachineOptions& options = {});

// What a program is compiled to: its kernels, each once, and what it queues, in order.
// Of a rank of a program, what no caller passes.
struct OwnMemory {
  std::string name;
  std::int64_t bytes = 0;
};

struct ProgramExplanation {
  struct Step {
    std::string text;  // "launch scale {x, y}, stream main of rank 0"
    int kernel = -1;   // the number of the kernel that is launched
    std::string where;
  };
  std::string program, target;
  std::vector<Step> steps;
  std::vector<Explanation> kernels;
  std::vector<OwnMemory> memory;                    // that no caller passes, at the sizes of `work`
  std::optional<Work> work;                         // as of a kernel
  std::optional<library::ScheduleReport> schedule;  // of a program of the library
  // A name for the kernel's files: its own, with its number where another has the same.
  std::string folder(std::size_t kernel) const;
};

ProgramExplanation explain(const ir::Program& program, const compiler::Target& target,
                           const compiler::MachineOptions& options = {});

// What a program of the library has of its own, at the options' sizes.
std::vector<OwnMemory> own_memory(const ir::Program& program, const LibraryKernel& kernel,
                                  const OptionValues& options);

// Of one on the target cpu: runs it, and measures each kernel's first launch.
void measure(ProgramExplanation& explanation, const ir::Program& program,
             library::Workload workload);
// The list of the kernel that takes longest; null on other targets, and where nothing was measured.
const CpuList* longest_list(const ProgramExplanation& explanation);

// The stages that changed the kernel, with their differences, the source, PTX, cubin and SASS, and
// what it takes.
std::vector<compiler::DumpFile> dump_files(const Explanation& explanation);

}  // namespace tilewright::explanations
