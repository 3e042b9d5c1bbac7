#pragma once

#include <set>
#include <string>
#include <string_view>

// The cases of a kernel's plan: the facts, decided when it is built, that make it different code.
namespace tilewright {

// `holds`, noted as the case "name" or "not name" for whoever lists what a kernel's options lead to
// (PlanCases). A kernel asks through it where it branches on its options:
//
//   if (plan_case("operands exchanged", g.exchanged)) ...
//
// `tilewright list --cases` draws settings until each case, and each pair of cases that go
// together, is in one of them; these are what `scripts/prove` runs.
bool plan_case(std::string_view name, bool holds);

// What this thread notes while it lives; of several at once the innermost.
class PlanCases {
 public:
  PlanCases();
  ~PlanCases();
  PlanCases(const PlanCases&) = delete;
  PlanCases& operator=(const PlanCases&) = delete;
  const std::set<std::string>& names() const { return names_; }

 private:
  friend bool plan_case(std::string_view name, bool holds);
  std::set<std::string> names_;
  PlanCases* const before_;
};

}  // namespace tilewright
