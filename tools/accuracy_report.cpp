#include "accuracy_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tilewright::tools {

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
