#include "simulate_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/simulation.h"
#include "library/program_timing.h"
#include "operation.h"
#include "support/diagnostic.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using library::PredictedTime;

// Of a whole GPU.
Request on_all_multiprocessors(Request request) {
  request.control_only = true;
  if (!request.multiprocessors) request.multiprocessors = 132;
  return request;
}

PredictedTime time_of_operation(const Request& request, const library::KernelSource& source,
                                const compiler::Target& target) {
  Operation operation = operation_of(request, source, target, OperationSizes::set);
  const OperationCut& cut = operation.cuts.front();
  return library::time_program(cut.made.program, operation.forms.front(), cut.made.workload.tensors,
                               cut.options, request.launches.value_or(1));
}

PredictedTime time_of_kernel(const Request& request, const library::KernelSource& source,
                             const compiler::Target& target) {
  library::Workload workload =
      library::make_workload(source.entry(), request.settings, parse_files(request.inputs, "--in"),
                             request.seed, library::Drawn::zeros);
  const ir::Kernel kernel = source.traced(workload.options, target);
  const std::vector<ir::Kernel> forms =
      compiler::simulated_forms(kernel, target.arch, compilation_of(request));
  return library::time_kernel(forms.front(), workload, program_machine_options(request));
}

PredictedTime time_of(const Request& request, const library::KernelSource& source,
                      const compiler::Target& target) {
  return source.entry().is_program() ? time_of_operation(request, source, target)
                                     : time_of_kernel(request, source, target);
}

// What one rank computes, by itself: another operation with these settings.
struct Share {
  std::string operation;
  std::vector<std::string> settings;
  void set(const std::string& name, const std::string& value) {
    settings.push_back(name + "=" + value);
  }
};

// All ranks' rows by what the rank has of the other operand.
Share product_share(const OptionValues& options) {
  Share share{"gemm", {}};
  share.set("m", std::to_string(options.integer("ranks") * options.integer("m")));
  for (const char* same : {"n", "k", "dtype"}) share.set(same, options.text(same));
  return share;
}

// All rows of a rank's share of the heads.
Share attention_share(const OptionValues& options) {
  Share share{"attention_forward", {}};
  const std::int64_t ranks = options.integer("ranks");
  for (const char* divided : {"heads", "kv_heads"}) {
    share.set(divided, std::to_string(std::max<std::int64_t>(options.integer(divided) / ranks, 1)));
  }
  for (const char* length : {"queries", "keys"}) {
    share.set(length, std::to_string(ranks * options.integer(length)));
  }
  for (const char* same : {"batch", "dim", "dim_v", "causal", "window", "dtype"}) {
    share.set(same, options.text(same));
  }
  return share;
}

// Of the operations over ranks that compute.
const std::map<std::string, Share (*)(const OptionValues&)> kShares = {
    {"gemm_reduce_scatter", product_share},
    {"all_gather_gemm", product_share},
    {"sequence_parallel_attention", attention_share},
};

// The arithmetic of one rank by itself.
std::optional<PredictedTime> time_of_share(const Request& request, const LibraryKernel& entry,
                                           const compiler::Target& target) {
  const auto found = kShares.find(entry.name);
  if (found == kShares.end()) return {};
  const Share share = found->second(resolve_options(entry, request.settings));
  Request alone = request;
  alone.kernel = share.operation;
  alone.settings = share.settings;
  alone.inputs.clear();
  return time_of(alone, open_kernel(share.operation), target);
}

void print_time(const LibraryKernel& entry, const PredictedTime& whole,
                const std::optional<PredictedTime>& share) {
  const auto line = [](const char* what, double seconds) {
    fmt::print("  {:<44} {:10.1f} us\n", what, seconds * 1e6);
  };
  fmt::print("{} by the simulator's clock, a model\n", entry.name);
  line("predicted time", whole.seconds);
  if (!entry.over_ranks) return;
  fmt::print("  {:<44} {:10.2f} MB\n", "leave a rank", static_cast<double>(whole.sent) * 1e-6);
  line("that long on the wire", whole.wire);
  if (!share) return;
  line("arithmetic of a rank alone", share->seconds);
  const double bound = std::max(whole.wire, share->seconds);
  line("bound, the longer of the two", bound);
  fmt::print("  {:<44} {:10.3f}\n", "ratio to bound", whole.seconds / bound);
}

void print_time_json(const LibraryKernel& entry, const PredictedTime& whole,
                     const std::optional<PredictedTime>& share) {
  nlohmann::ordered_json json = {{"kernel", entry.name}, {"seconds", whole.seconds}};
  if (entry.over_ranks) {
    json["sent_bytes"] = whole.sent;
    json["wire_seconds"] = whole.wire;
  }
  if (share) {
    const double bound = std::max(whole.wire, share->seconds);
    json["alone_seconds"] = share->seconds;
    json["bound_seconds"] = bound;
    json["ratio"] = whole.seconds / bound;
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

int simulate_time(const Request& given, const library::KernelSource& source,
                  const compiler::Target& target) {
  const Request request = on_all_multiprocessors(given);
  const PredictedTime whole = time_of(request, source, target);
  if (!whole.faults.empty()) compiler::diagnostic_of(whole.faults.front()).raise();
  const std::optional<PredictedTime> share = time_of_share(request, source.entry(), target);
  (request.json ? print_time_json : print_time)(source.entry(), whole, share);
  return 0;
}

}  // namespace tilewright::tools
