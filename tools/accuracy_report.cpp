#include "accuracy_report.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "check/data_weakness.h"

namespace tilewright::tools {
namespace {

bool are_zeros(const HostTensor& tensor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.flat(i) != 0) return false;
  }
  return true;
}

// By the tensors' names.
std::map<std::string, std::string> weaknesses_of_run(const library::Workload& workload,
                                                     const library::Reference& reference) {
  std::map<std::string, std::string> found;
  const auto add = [&](const std::string& name, const std::vector<std::string>& texts) {
    if (!texts.empty()) found.emplace(name, texts.front());
  };
  std::size_t output = 0;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    const HostTensor& tensor = workload.tensors[i];
    const std::string name = workload.name_of(i);
    if (workload.parameters[i]->is_output) {
      add(name, checks::weaknesses_of_result(name, reference.values[output++]));
    } else if (is_integer(tensor.dtype()) && are_zeros(tensor)) {
      add(name, checks::weaknesses_of({name, &tensor}));
    }
  }
  return found;
}

}  // namespace

void WeakData::add(const library::Workload& workload, const library::Reference& reference) {
  if (reference.values.empty()) return;
  const std::map<std::string, std::string> found = weaknesses_of_run(workload, reference);
  if (!in_all_) in_all_ = found;
  std::erase_if(*in_all_, [&](const auto& each) { return found.count(each.first) == 0; });
}

std::vector<std::string> WeakData::texts() const {
  std::vector<std::string> texts;
  if (!in_all_) return texts;
  for (const auto& [name, text] : *in_all_) texts.push_back(text);
  return texts;
}

void warn_of(const std::vector<std::string>& weaknesses, const std::string& fix) {
  for (const std::string& text : weaknesses) {
    std::fprintf(stderr, "warning: weak data: %s\n", text.c_str());
  }
  if (weaknesses.empty()) return;
  std::fprintf(stderr, "  fix: %s\n", fix.c_str());
}

void print_comparison(const library::Comparison& comparison) {
  for (const library::OutputComparison& output : comparison.outputs) {
    const library::Errors &errors = output.errors, &allowed = output.allowed;
    const bool ok = output.share() <= 1;
    fmt::print(
        "{}: relative error {:.2e} (rounding explains {:.2e}), worst row {:.2e} ({:.2e}), worst "
        "element {:.2e} ({:.2e}){}: {}\n",
        output.name, errors.whole, allowed.whole, errors.row, allowed.row, errors.element,
        allowed.element,
        std::isfinite(output.allowed_factor)
            ? fmt::format(", factor {:.2e} ({:.2e})", output.factor, output.allowed_factor)
            : "",
        ok ? "ok" : "too large");
    if (!ok) fmt::print("  {}\n", output.worst);
  }
}

nlohmann::ordered_json json_of(const library::Comparison& comparison) {
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  const auto errors_of = [](const library::Errors& errors) {
    return nlohmann::ordered_json{
        {"whole", errors.whole}, {"row", errors.row}, {"element", errors.element}};
  };
  for (const library::OutputComparison& output : comparison.outputs) {
    nlohmann::ordered_json& json = outputs.emplace_back();
    json = {{"name", output.name},
            {"ok", output.share() <= 1},
            {"error", errors_of(output.errors)},
            {"allowed", errors_of(output.allowed)}};
    if (std::isfinite(output.allowed_factor)) {
      json["error"]["factor"] = output.factor;
      json["allowed"]["factor"] = output.allowed_factor;
    }
    if (output.share() > 1) json["worst"] = output.worst;
  }
  return outputs;
}

}  // namespace tilewright::tools
