#include "tilewright/explain.h"

#include "explain/explanation.h"
#include "explain/report/explanation_json.h"
#include "explain/report/page.h"

namespace tilewright {
namespace {

compiler::MachineOptions options_of(const Numerics& numerics, const Schedule& schedule) {
  compiler::MachineOptions options{numerics};
  options.schedule = schedule;
  return options;
}

}  // namespace

std::string explain_json(const Kernel& kernel, std::string_view target, const Numerics& numerics,
                         const Schedule& schedule) {
  return explanations::explanation_json(explanations::explain(
      kernel, compiler::parse_target(target), options_of(numerics, schedule)));
}

std::string explain_page(const Kernel& kernel, std::string_view target, const Numerics& numerics,
                         const Schedule& schedule) {
  return explanations::page(explanations::explain(kernel, compiler::parse_target(target),
                                                  options_of(numerics, schedule)));
}

std::string explain_json(const Program& program, std::string_view target,
                         const Numerics& numerics) {
  return explanations::explanation_json(
      explanations::explain(program.finish(), compiler::parse_target(target), {numerics}));
}

std::string explain_page(const Program& program, std::string_view target,
                         const Numerics& numerics) {
  return explanations::page(
      explanations::explain(program.finish(), compiler::parse_target(target), {numerics}));
}

}  // namespace tilewright
