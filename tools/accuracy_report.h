#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "library/accuracy.h"

// How the command tells of results that were compared.
namespace tilewright::tools {

// A line for each output, and below one that is wrong its worst element.
void print_comparison(const library::Comparison& comparison);

// Why a kernel that is wrong may pass: of inputs integers that are all zero, as those of a file are
// where nobody says more, and of outputs wanted numbers that are all the same or are NaN. Of
// several runs what is so in all of them; one without a reference says nothing.
class WeakData {
 public:
  void add(const library::Workload& workload, const library::Reference& reference);
  std::vector<std::string> texts() const;

 private:
  std::optional<std::map<std::string, std::string>> in_all_;  // by the tensors' names
};

// On stderr.
void warn_of(const std::vector<std::string>& weaknesses,
             const std::string& fix = "say what inputs hold, such as --in X=uniform:0:8");

// Of each output its errors and what is allowed; null is an infinite error.
nlohmann::ordered_json json_of(const library::Comparison& comparison);

}  // namespace tilewright::tools
