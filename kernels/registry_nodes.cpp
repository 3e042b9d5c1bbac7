#include <cstdint>
#include <string>
#include <vector>

#include "kernels/nodes_check.h"
#include "kernels/reference_exchanges.h"
#include "kernels/registry_options.h"
#include "kernels/registry_ranks.h"
#include "kernels/schedule_rules.h"

namespace tilewright::kernels {
namespace {

NodeCollective node_collective_of(const OptionValues& options) {
  return {{options.dtype("dtype"), static_cast<int>(options.integer("ranks"))},
          static_cast<int>(options.integer("nodes"))};
}

using Meaning = Program (*)(const Collective&, SourceLocation);
using OverNodes = Program (*)(const NodeCollective&, SourceLocation);
using Reference = std::vector<std::vector<double>> (*)(const std::vector<HostTensor>&);

LibraryKernel node_entry(const char* name, const char* description, Meaning meaning,
                         OverNodes over_nodes, Reference reference) {
  LibraryKernel kernel;
  kernel.name = name;
  kernel.over_ranks = true;
  kernel.description = std::string(description) + "; between nodes by NCCL";
  kernel.options = {
      count_option("ranks", "GPUs that run it together", "4", 8, {"4", "2"}),
      count_option("nodes", "of the ranks, a divisor; those of a node follow each other", "2", 8,
                   {"2"}),
      length_option("count", "elements of a vector", "65536"), dtype_option()};
  kernel.options[0].minimum = 2;
  kernel.tensors = {{"X", {"ranks", "count"}, false, {}}, {"Y", {"ranks", "count"}, true, {}}};
  LibrarySchedule schedule{"two_levels", "sm_90a",
                           "in each node, by copy engines, and between nodes", nullptr};
  schedule.build_program = [over_nodes](const OptionValues& options) {
    return over_nodes(node_collective_of(options), {});
  };
  kernel.schedules.push_back(std::move(schedule));
  kernel.rules = schedule_rules(kernel.name);
  kernel.build_program = [meaning](const OptionValues& options) {
    return meaning(node_collective_of(options).vectors, {});
  };
  kernel.check = [name](const OptionValues& options) {
    check_nodes(node_collective_of(options), {name, {}});
  };
  kernel.reference = [reference](const OptionValues&, const std::vector<HostTensor>& inputs) {
    return reference(inputs);
  };
  kernel.floating_operations = [](const OptionValues&, const std::vector<HostTensor>&) {
    return 0.0;
  };
  return kernel;
}

}  // namespace

std::vector<LibraryKernel> node_entries() {
  std::vector<LibraryKernel> entries = {
      node_entry("all_gather_nodes", "Y[s] = X of rank s, in each rank", all_gather,
                 all_gather_nodes, gathered_reference),
      node_entry("reduce_scatter_nodes",
                 "Y = sum over the ranks s of X_s[rank]; the same bits in every run",
                 reduce_scatter, reduce_scatter_nodes, parts_summed_reference),
      node_entry("all_to_all_nodes", "Y[s] = X_s[rank]", vector_all_to_all, vector_all_to_all_nodes,
                 exchanged_reference)};
  entries[0].tensors[0].shape = {"count"};
  entries[1].tensors[1].shape = {"count"};
  entries[1].floating_operations = [](const OptionValues& options, const std::vector<HostTensor>&) {
    const auto ranks = static_cast<double>(options.integer("ranks"));
    return (ranks - 1) * ranks * static_cast<double>(options.integer("count"));
  };
  return entries;
}

}  // namespace tilewright::kernels
