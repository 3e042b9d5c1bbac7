#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"

// Who moves what through shared memory: the machine form seen from its roles.
namespace tilewright::explanations {

struct GraphRole {
  std::string name;
  std::int64_t first_warp = 0, warps = 0;
  std::int64_t registers = 0;  // its budget; 0 where it has none
  SourceLocation where;
};

// A ring or tile of shared memory, or barriers.
struct GraphPlace {
  enum class Kind : std::uint8_t { data, barriers };
  Kind kind = Kind::data;
  std::string name;
  std::string contents;     // "bf16 128x64", "mbarrier"
  std::int64_t stages = 1;  // barriers: how many
  std::int64_t bytes = 0;   // of all stages
  std::int64_t offset = 0;
  std::int64_t arrivals = 0;  // of a phase
  SourceLocation where;
};

struct GraphTensor {
  std::string name, kind, contents;  // "in", "bf16[batch, queries, 16, 128]"
};

// One role's operations of one kind on one place (or, without a place, on one tensor).
struct GraphFlow {
  std::size_t role = 0;
  std::string operation;
  int place = -1, tensor = -1;         // into the graph's lists; -1 for none
  bool reads = false, writes = false;  // the place; without one, the tensor
  int count = 0;
  std::vector<SourceLocation> where;  // each line once
};

struct PipelineGraph {
  std::vector<GraphRole> roles;
  std::vector<GraphPlace> places;  // in the order of declaration
  std::vector<GraphTensor> tensors;
  std::vector<GraphFlow> flows;
  std::int64_t shared_bytes = 0, threads = 0, cluster = 1;
};
PipelineGraph pipeline_graph(const ir::Kernel& machine);

}  // namespace tilewright::explanations
