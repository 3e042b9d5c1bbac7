#include "operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <set>
#include <utility>

#include "check/shrunken_sizes.h"
#include "compiler/build.h"
#include "compiler/rewrites.h"
#include "core_sizes.h"
#include "schedules.h"
#include "simulate_faults.h"
#include "support/counted.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

std::vector<std::vector<ir::Kernel>> forms_of(const Request& request, const ir::Program& recorded,
                                              const compiler::Target& target) {
  const compiler::MachineOptions options = compilation_of(request);
  if (target.kind != compiler::Target::Kind::cuda) {
    return library::machine_forms(recorded, target.arch, options);
  }
  std::vector<ir::Kernel> shipped;
  for (const auto& kernel : recorded.kernels) {
    shipped.push_back(compiler::choose_form(*kernel, target.arch, options).machine);
  }
  return {std::move(shipped)};
}

}  // namespace

simulator::MachineOptions program_machine_options(const Request& request) {
  simulator::MachineOptions options = machine_options(request);
  options.multiprocessors = request.multiprocessors.value_or(SimulationOptions().multiprocessors);
  options.resident = options.multiprocessors;
  return options;
}

OperationCut operation_cut(const Request& request, const LibraryKernel& entry,
                           const ir::Program& recorded, const std::vector<std::string>& sizes,
                           std::int64_t multiprocessors, library::Drawn drawn) {
  std::vector<std::string> settings = request.settings;
  settings.insert(settings.end(), sizes.begin(), sizes.end());
  const auto workload = [&entry, settings, files = parse_files(request.inputs, "--in"),
                         seed = request.input_seed.value_or(request.seed)](library::Drawn how) {
    return library::make_workload(entry, settings, files, seed, how);
  };
  OperationCut cut;
  cut.made.workload = workload(drawn);
  cut.made.program = library::bind_workload(recorded, cut.made.workload, multiprocessors);
  if (drawn == library::Drawn::zeros) {
    cut.valued = [workload, program = cut.made.program] {
      return library::ProgramWorkload{workload(library::Drawn::normal), program}.before();
    };
  }
  cut.options = program_machine_options(request);
  cut.options.multiprocessors = cut.options.resident = static_cast<int>(multiprocessors);
  if (!sizes.empty()) {
    cut.sizes =
        fmt::format("{}, {}", fmt::join(sizes, " "), counted(multiprocessors, "multiprocessor"));
  }
  return cut;
}

Operation operation_of(const Request& request, const library::KernelSource& source,
                       const compiler::Target& target, OperationSizes wanted) {
  const LibraryKernel& entry = source.entry();
  Operation made;
  const auto build = [&](const std::vector<std::string>& settings) {
    made.recorded = source.program(resolve_options(entry, settings), target);
    made.forms = forms_of(request, made.recorded, target);
  };
  build(request.settings);
  const auto shrunken = [&](checks::Sizes which) {
    return checks::shrunken_sizes(entry, request.settings, resolve_options(entry, request.settings),
                                  checks::sized_kernels(entry, made.recorded, made.forms.front()),
                                  which);
  };
  std::vector<std::vector<std::string>> choices{{}};
  std::optional<CoreSizes> of_cores;
  std::vector<std::int64_t> multiprocessors{program_machine_options(request).multiprocessors};
  if (wanted == OperationSizes::shrunken && compiler::has_explicit_memories(target)) {
    of_cores = core_sizes(request, entry, [&](const std::vector<std::string>& settings) {
      build(settings);
      return made.forms.front();
    });
    choices.clear();
  } else if (wanted != OperationSizes::set) {
    choices = shrunken(checks::Sizes::usual);
    // What is no length is the same in all choices, and the build depends on it.
    std::vector<std::string> built = request.settings;
    for (const std::string& size : choices.front()) {
      if (!is_length(entry, size)) built.push_back(size);
    }
    if (built.size() > request.settings.size()) build(built);
    if (!request.multiprocessors) {
      multiprocessors = checks::shrunken_multiprocessors(made.recorded, made.forms.front(),
                                                         multiprocessors.front());
    }
  }
  std::set<std::pair<std::vector<std::string>, std::int64_t>> known;
  const auto add = [&](const std::vector<std::string>& sizes, std::int64_t count) {
    if (!known.emplace(sizes, count).second) return;
    const bool no_values =
        wanted == OperationSizes::further || request.control_only || request.list_mutants;
    const library::Drawn drawn = no_values ? library::Drawn::zeros : library::Drawn::normal;
    made.cuts.push_back(operation_cut(request, entry, made.recorded, sizes, count, drawn));
    made.cuts.back().one_cluster = count == checks::largest_cluster(made.forms.front());
  };
  // With values each size has one number of multiprocessors: what leaves all accesses in order
  // leaves the results, and the order is that of the schedules without values.
  const bool takes_turns = request.one_for_all && !request.control_only;
  if (of_cores) {
    for (const auto& [sizes, count] : sizes_on_cores(*of_cores, made.recorded)) {
      add(sizes, request.multiprocessors.value_or(count));
    }
  }
  for (std::size_t i = 0; i < multiprocessors.size(); ++i) {
    for (std::size_t size = 0; size < choices.size(); ++size) {
      if (takes_turns && size % multiprocessors.size() != i) continue;
      add(choices[size], multiprocessors[i]);
    }
  }
  if (wanted != OperationSizes::further) return made;
  const std::size_t usual = made.cuts.size();
  // More tiles than rings have stages, for each CTA.
  for (const std::vector<std::string>& sizes : shrunken(checks::Sizes::further)) {
    add(sizes, multiprocessors.front());
  }
  for (const std::vector<std::string>& sizes : shrunken(checks::Sizes::shared)) {
    add(sizes, *std::max_element(multiprocessors.begin(), multiprocessors.end()));
  }
  for (std::size_t i = usual; i < made.cuts.size(); ++i) made.cuts[i].further = true;
  for (const std::vector<std::string>& sizes : shrunken(checks::Sizes::candidates)) {
    const auto cut = [&request, &entry, recorded = made.recorded, sizes,
                      count = multiprocessors.front(),
                      one_cluster = checks::largest_cluster(made.forms.front())] {
      OperationCut of_sizes =
          operation_cut(request, entry, recorded, sizes, count, library::Drawn::normal);
      of_sizes.one_cluster = count == one_cluster;
      return of_sizes;
    };
    made.candidates.emplace_back(fmt::format("{}", fmt::join(sizes, " ")), cut);
  }
  return made;
}

}  // namespace tilewright::tools
