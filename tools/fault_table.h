#pragma once

#include <fstream>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "check/fault_proof.h"

// The table of `simulate --faults`, kind by kind.
namespace tilewright::tools {

using Kinds = std::vector<const simulator::FaultKind*>;

// The file of `--judged`; without a name there is none.
class JudgedFile {
 public:
  JudgedFile(const std::string& path, std::vector<std::string> sizes);
  void add(const checks::MutantResult& result);  // from any thread

 private:
  std::mutex mutex_;
  std::ofstream file_;
  const std::vector<std::string> sizes_;
};

// Whether no mutant is undecided but those of undecided.def.
bool is_proven(const std::vector<checks::MutantResult>& results);
void print_table(const Kinds& kinds, const std::vector<checks::MutantResult>& results);
// "kinds" and "mutants"; `sizes` of each workload, if there are several.
nlohmann::ordered_json table_json(const Kinds& kinds,
                                  const std::vector<checks::MutantResult>& results,
                                  const std::vector<std::string>& sizes);

}  // namespace tilewright::tools
