#include "tilewright/plan_case.h"

namespace tilewright {
namespace {

thread_local PlanCases* innermost_cases = nullptr;

}  // namespace

PlanCases::PlanCases() : before_(innermost_cases) { innermost_cases = this; }

PlanCases::~PlanCases() { innermost_cases = before_; }

bool plan_case(std::string_view name, bool holds) {
  if (innermost_cases) {
    innermost_cases->names_.insert((holds ? "" : "not ") + std::string(name));
  }
  return holds;
}

}  // namespace tilewright
