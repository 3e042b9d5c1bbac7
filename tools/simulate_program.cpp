#include "simulate_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "accuracy_report.h"
#include "check/breakage.h"
#include "check/program_proof.h"
#include "check/shrunken_sizes.h"
#include "compiler/build.h"
#include "compiler/rewrites.h"
#include "library/program_simulation.h"
#include "library/program_source.h"
#include "library/stated_input.h"
#include "library/tensor_file.h"
#include "operation.h"
#include "schedules.h"
#include "simulate_faults.h"
#include "simulate_printed.h"
#include "simulation_report.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

constexpr int kUsualRanks = 2;
constexpr std::int64_t kUsualRuns = 2;
constexpr std::uint64_t kInputsOfFaults = 6;

// A program that is executed, and of which sizes.
struct Cut {
  ir::Program program;
  std::string sizes;
  library::ProgramTensors before;
  // What it was bound from, and how.
  ir::Program recorded = {};
  simulator::Rebind rebind = {};
};

[[noreturn]] void refuse(const std::string& option, const std::string& why,
                         const std::string& fix) {
  Diagnostic({}, fmt::format("{}: {}", option, why)).fix(fix).raise();
}

// What neither programs nor kernels of several ranks take.
void refuse_kernel_options(const Request& request) {
  if (!request.breakage.empty()) {
    refuse("--break " + request.breakage, "it breaks a kernel that runs alone",
           "--faults seeds faults into a program, and into the signals of its kernels");
  }
}

// What --set says of the program's dims.
DimValues sizes_of(const Request& request, const ir::Program& program) {
  if (program.dims.empty()) {
    constexpr const char* kWhy = "a program without dims has the sizes with which it was recorded";
    constexpr const char* kFix =
        "record it with dims, or with other sizes, with TILEWRIGHT_DUMP set";
    if (!request.settings.empty()) refuse("--set " + request.settings.front(), kWhy, kFix);
    if (request.shrunken) refuse("--shrunken", kWhy, kFix);
  }
  if (request.shrunken) {
    refuse("--shrunken", "a program's file does not say which sizes fit together",
           "--set name=value for each of its dims");
  }
  DimValues sizes;
  for (const std::string& setting : request.settings) {
    const std::size_t at = setting.find('=');
    const char* const end = setting.data() + setting.size();
    std::int64_t value = 0;
    if (at == std::string::npos ||
        std::from_chars(setting.data() + at + 1, end, value) != std::from_chars_result{end, {}}) {
      refuse("--set " + setting, "no size", "--set name=value with a dim of the program");
    }
    sizes[setting.substr(0, at)] = value;
  }
  return sizes;
}

int ranks_of(const Request& request) {
  const std::int64_t ranks = request.ranks.value_or(kUsualRanks);
  if (ranks < 1 || ranks > ir::kMaximumRanks) {
    refuse(fmt::format("--ranks {}", ranks), "no number of ranks",
           fmt::format("1 to {}", ir::kMaximumRanks));
  }
  return static_cast<int>(ranks);
}

ir::Program read_program(const Request& request) {
  ir::Program program = library::read_program(request.kernel);
  if (!request.ranks) return program;
  const int ranks = ranks_of(request);
  if (ranks != program.ranks) {
    Diagnostic(program.where,
               fmt::format("--ranks {}: {} holds program {} as recorded for {}", ranks,
                           request.kernel, program.name, ir::ranks_text(program.ranks)))
        .fix(fmt::format("record it for {}, with TILEWRIGHT_DUMP set", ir::ranks_text(ranks)))
        .raise();
  }
  return program;
}

// What the buffers of the program hold before the first run: drawn, unless --in says it.
library::ProgramTensors tensors_of(const Request& request, const ir::Program& program,
                                   const DimValues& sizes, std::uint64_t further = 0) {
  const std::uint64_t seed = request.input_seed.value_or(request.seed) + 1 + further;
  library::ProgramTensors tensors = ir::initial_tensors(program, sizes, seed);
  for (const auto& [name, text] : parse_files(request.inputs, "--in")) {
    const auto buffer = std::find_if(
        program.buffers.begin(), program.buffers.end(),
        [&, wanted = name](const auto& each) { return each.is_passed() && each.name == wanted; });
    if (buffer == program.buffers.end()) {
      std::vector<std::string> known;
      for (const ir::ProgramBuffer& each : program.buffers) {
        if (each.is_passed()) known.push_back(each.name);
      }
      refuse("--in " + name, "no buffer that a caller passes",
             fmt::format("name one of: {}", fmt::join(known, ", ")));
    }
    for (std::vector<HostTensor>& of_rank : tensors) {
      HostTensor& tensor = of_rank[static_cast<std::size_t>(buffer - program.buffers.begin())];
      const std::vector<std::int64_t> shape = tensor.shape();
      const auto stated = library::StatedInput::parse(text, name);
      tensor = stated ? stated->values(tensor.dtype(), shape, seed)
                      : library::read_tensor(text, name, tensor.dtype());
      if (tensor.shape() == shape) continue;
      refuse("--in " + name,
             fmt::format("{} has the shape {{{}}}, and the buffer {{{}}}", text,
                         fmt::join(tensor.shape(), ", "), fmt::join(shape, ", ")),
             "--set the sizes of the file, or give another one");
    }
  }
  return tensors;
}

std::int64_t runs_of(const Request& request) { return request.launches.value_or(kUsualRuns); }

std::int64_t launches_of(const ir::Program& program) {
  return std::count_if(program.operations.begin(), program.operations.end(),
                       [](const ir::ProgramOperation& each) {
                         return each.kind == ir::ProgramOperation::Kind::launch;
                       });
}

std::int64_t bytes_of(const library::ProgramTensors& tensors) {
  std::int64_t bytes = 0;
  for (const std::vector<HostTensor>& of_rank : tensors) {
    for (const HostTensor& tensor : of_rank)
      bytes += static_cast<std::int64_t>(tensor.size_bytes());
  }
  return bytes;
}

// The results of later schedules are compared with those of the first one.
Simulated simulated(const Request& request, const Cut& cut,
                    const std::vector<ir::Kernel>& machine) {
  Simulated made;
  made.sizes = cut.sizes;
  const auto before = std::make_shared<library::ProgramTensors>(cut.before);
  const auto after = std::make_shared<library::ProgramTensors>();
  ir::Program program = cut.program;
  ir::add_owned(program, machine);
  made.launch = [&machine, program, before, after,
                 runs = runs_of(request)](const simulator::MachineOptions& options) {
    return library::simulate_program(program, machine, *before, after.get(), options, runs);
  };
  made.bytes = bytes_of(*before);
  made.has_conditions = std::any_of(machine.begin(), machine.end(), checks::draws_conditions);
  if (request.control_only) return made;
  made.compare = [&cut, after, first = std::make_shared<library::ProgramTensors>()] {
    if (first->empty()) *first = *after;
    return library::compare_buffers(cut.program, *after, *first);
  };
  return made;
}

int simulate_cuts(const Request& request, std::vector<Cut> cuts, const compiler::Target& target) {
  const std::vector<std::vector<ir::Kernel>> forms =
      library::machine_forms(cuts.front().program, target.arch, compilation_of(request));
  const ir::Program program = cuts.front().program;
  Title title{program.name, program.name, target.name, program.ranks};
  title.launches = launches_of(program);
  title.runs = runs_of(request);
  const simulator::MachineOptions options = program_machine_options(request);
  if (request.faults) {
    std::vector<checks::ProgramCase> cases;
    std::vector<std::string> sizes;
    for (Cut& cut : cuts) {
      checks::ProgramCase& of = cases.emplace_back();
      of.program = std::move(cut.program);
      of.machine = options;
      of.before = std::move(cut.before);
      of.recorded = std::move(cut.recorded);
      of.rebind = std::move(cut.rebind);
      sizes.push_back(cuts.size() > 1 ? cut.sizes : "");
    }
    return compiler::has_explicit_memories(target)
               ? simulate_core_faults(request, cases, sizes, forms.front(), target)
               : simulate_program_faults(request, cases, forms, title, sizes);
  }
  Outcome outcome;
  outcome.seed = request.seed;
  std::vector<Execution> all;
  for (const std::vector<ir::Kernel>& machine : forms) {
    for (const Cut& cut : cuts) all.push_back({simulated(request, cut, machine), options});
  }
  execute(request, all, outcome);
  title.forms = forms.size();
  return report(request, outcome, title);
}

// The results are held against float64: `reference` is the cut's, of which all machine forms have
// one.
Simulated simulated(const Request& request, OperationCut& cut,
                    const std::vector<ir::Kernel>& machine, library::Reference& reference,
                    std::int64_t runs) {
  Simulated made;
  made.sizes = cut.sizes;
  library::Workload& workload = cut.made.workload;
  ir::Program program = library::with_callers(cut.made.program);
  ir::add_owned(program, machine);
  const auto after = std::make_shared<library::ProgramTensors>();
  made.launch = [&machine, program, before = cut.made.before(), after,
                 runs](const simulator::MachineOptions& options) {
    return library::simulate_program(program, machine, before, after.get(), options, runs);
  };
  made.bytes = bytes_of(cut.made.before());
  made.has_conditions = std::any_of(machine.begin(), machine.end(), checks::draws_conditions);
  if (request.control_only) return made;
  made.compare = [&cut, &workload, &reference, after] {
    if (reference.values.empty()) reference = library::reference_of(workload);
    cut.made.take(*after);
    return library::compare(cut.made.workload, reference);
  };
  return made;
}

}  // namespace

bool is_program_file(const std::string& name) { return name.ends_with(".twp"); }

void refuse_program_options(const Request& request, std::string_view kernel) {
  if (request.ranks) {
    refuse(fmt::format("--ranks {}", *request.ranks),
           fmt::format("{} runs alone: it reaches no other rank", kernel),
           "name a program's file, NAME.twp, or the file of a kernel with symmetric tensors");
  }
  if (request.multiprocessors && request.faults) {
    refuse(fmt::format("--multiprocessors {}", *request.multiprocessors),
           "--faults runs on as many as the shrunken sizes need", "leave it out");
  }
}

int simulate_program(const Request& request, const compiler::Target& target) {
  refuse_kernel_options(request);
  const ir::Program program = read_program(request);
  const DimValues sizes = sizes_of(request, program);
  // What a run does depends on what it reads: one of each seed, for faults.
  const bool reads = !program.reads.empty() && request.faults;
  std::vector<Cut> cuts;
  for (std::uint64_t seed = 0; seed < (reads ? kInputsOfFaults : 1); ++seed) {
    library::ProgramTensors before = tensors_of(request, program, sizes, seed);
    const simulator::Rebind rebind = [&program, &sizes, &request,
                                      before](const std::function<void(ir::Program&)>& change) {
      ir::Program changed = program;
      change(changed);
      return ir::bind_program(changed, sizes, program_machine_options(request).multiprocessors,
                              ir::contents_of(before.front()));
    };
    ir::Program bound = rebind([](ir::Program&) {});
    const std::uint64_t own = request.input_seed.value_or(request.seed) + seed;
    std::string text = reads ? fmt::format("inputs of seed {}", own) : ir::values_text(sizes);
    cuts.push_back({std::move(bound), std::move(text), std::move(before), program, rebind});
  }
  return simulate_cuts(request, std::move(cuts), target);
}

int simulate_ranks(const Request& request, const library::KernelSource& source,
                   const compiler::Target& target) {
  refuse_kernel_options(request);
  const int ranks = ranks_of(request);
  const LibraryKernel& entry = source.entry();
  const auto options_with = [&](const std::vector<std::string>& sizes) {
    std::vector<std::string> settings = request.settings;
    settings.insert(settings.end(), sizes.begin(), sizes.end());
    OptionValues options = resolve_options(entry, settings);
    entry.check(options);
    return options;
  };
  const OptionValues options = options_with({});
  const ir::Kernel kernel = source.traced(options, target);
  std::vector<std::vector<std::string>> sizes{{}};
  if (request.shrunken) {
    const compiler::MachineForm form =
        compiler::compile_to_machine(kernel, target.arch, compilation_of(request));
    sizes =
        checks::shrunken_sizes(entry, request.settings, options, form.kernel, checks::Sizes::usual);
  }
  std::vector<Cut> cuts;
  for (const std::vector<std::string>& each : sizes) {
    ir::Program program = library::program_of(kernel, ranks, options_with(each));
    library::ProgramTensors before = tensors_of(request, program, {});
    cuts.push_back(
        {std::move(program), fmt::format("{}", fmt::join(each, " ")), std::move(before)});
  }
  return simulate_cuts(request, std::move(cuts), target);
}

namespace {

checks::ProgramCase case_of(const OperationCut& cut) {
  return {cut.made.program, cut.options, cut.made.before(),   cut.valued,
          cut.one_cluster,  cut.further, /*has_callers=*/true};
}

Candidates candidates_of(const Operation& operation) {
  Candidates made;
  for (const auto& [sizes, cut] : operation.candidates) {
    made.sizes.push_back(sizes);
    made.cases.push_back([&cut = cut] { return case_of(cut()); });
  }
  return made;
}

void check_operation(const Request& request, const LibraryKernel& entry) {
  if (request.ranks) {
    refuse(fmt::format("--ranks {}", *request.ranks),
           entry.over_ranks ? entry.name + " has an option for it"
                            : "this operation of the library has one rank",
           entry.over_ranks ? fmt::format("--set ranks={}", *request.ranks) : "leave it out");
  }
  if (entry.over_ranks && request.printed) {
    refuse("--printed", entry.name + " runs on several ranks, and printed text on one GPU",
           "leave it out");
  }
}

}  // namespace

int simulate_operation(const Request& request, const library::KernelSource& source,
                       const compiler::Target& target) {
  check_operation(request, source.entry());
  Operation operation =
      operation_of(request, source, target,
                   request.faults && !request.list_mutants ? OperationSizes::further
                   : request.faults                        ? OperationSizes::shrunken
                   : request.shrunken                      ? OperationSizes::shrunken
                                                           : OperationSizes::set);
  Title title{source.entry().name, operation.recorded.name, target.name, operation.recorded.ranks};
  title.launches = launches_of(operation.recorded);
  title.runs = runs_of(request);
  title.against_reference = true;
  if (request.faults) {
    std::vector<checks::ProgramCase> cases;
    std::vector<std::string> sizes;
    for (const OperationCut& cut : operation.cuts) {
      cases.push_back(case_of(cut));
      sizes.push_back(cut.sizes);
    }
    const Candidates candidates = candidates_of(operation);
    // Over ranks those about signals: the pieces of the kernels are proven in kernels of one GPU.
    return simulate_program_faults(request, cases, operation.forms, title, sizes,
                                   /*all_of_kernels=*/operation.recorded.ranks == 1, candidates);
  }
  if (request.printed) {
    OperationCut& cut = operation.cuts.front();
    return simulate_printed_program(request, cut.made.program, operation.forms,
                                    cut.made.before().front(), cut.options.multiprocessors);
  }
  std::optional<checks::Breakage> breakage;
  Outcome outcome;
  outcome.seed = request.seed;
  title.forms = operation.forms.size();
  std::vector<Execution> all;
  std::vector<library::Reference> references(operation.cuts.size());
  for (std::vector<ir::Kernel>& machine : operation.forms) {
    if (!request.breakage.empty()) breakage = checks::break_one_of(machine, request.breakage);
    for (std::size_t i = 0; i < operation.cuts.size(); ++i) {
      OperationCut& cut = operation.cuts[i];
      all.push_back({simulated(request, cut, machine, references[i], title.runs), cut.options});
    }
  }
  execute(request, all, outcome);
  WeakData weak;
  for (std::size_t i = 0; i < operation.cuts.size(); ++i) {
    weak.add(operation.cuts[i].made.workload, references[i]);
  }
  title.weak = weak.texts();
  return report(request, outcome, title, breakage);
}

}  // namespace tilewright::tools
