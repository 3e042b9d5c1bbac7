#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "library/rule_expression.h"
#include "tilewright/library.h"

// Which variant of a kernel serves which sizes: the text of docs/schedules.md, compiled.
namespace tilewright::library {

// The schedule that the compiler makes of a kernel of the tile level.
inline constexpr const char* kTile = "tile";
// The option that names a schedule.
inline constexpr const char* kSchedule = "schedule";

struct Rule {
  bool is_unconditional = false;
  RuleExpression condition;
  std::string schedule;  // "tile", or a schedule of the kernel
  SourceLocation where;
  std::string text;
};

// What conditions may name: the kernel's options in their order, then the multiprocessors and the
// bytes of an element of the kernel's first tensor, then what let defines. A boolean is 0 or 1, a
// dtype or choice its number among the choices.
class CompiledRules {
 public:
  CompiledRules(const LibraryKernel& kernel, const ScheduleRules& rules);
  // A single rule, which chooses `schedule`.
  CompiledRules(const LibraryKernel& kernel, std::string schedule);

  const std::vector<Rule>& rules() const { return rules_; }
  // Of each value behind the facts: how it follows from those before it.
  const std::vector<RuleExpression>& lets() const { return lets_; }
  std::size_t fact_count() const { return facts_; }
  std::size_t value_count() const { return facts_ + lets_.size(); }
  // The values of all but the lets, which are 0.
  std::vector<std::int64_t> values_of(const OptionValues& options, int multiprocessors) const;
  std::size_t multiprocessors() const { return facts_ - 2; }  // the number of that value
  std::string name_of(std::size_t value) const;
  // The number of the first rule that holds; fills in the lets.
  std::size_t match(std::int64_t* values) const;
  // Of each rule, whether it holds for some lengths and multiprocessors, as far as the other
  // options say.
  std::vector<bool> reachable(const OptionValues& options) const;
  // Of what conditions may name, behind match(); nothing for a name that they may not.
  std::optional<std::int64_t> value(const std::string& name,
                                    const std::vector<std::int64_t>& values) const;

 private:
  explicit CompiledRules(const LibraryKernel& kernel);
  void check_header(RuleLine& line, const ScheduleRules& rules) const;
  void add_let(RuleLine& line);
  void add_rule(RuleLine& line, bool conditional);
  RuleExpression expression(RuleLine& line) const;

  const LibraryKernel* kernel_;
  std::map<std::string, RuleName> names_;
  std::string known_;
  std::size_t facts_ = 0;
  std::vector<RuleExpression> lets_;
  std::vector<Rule> rules_;
};

// The first line of rules for one kernel.
std::string rule_header(const std::string& kernel, std::string_view target);
// The kernels that the first line names; none where it is of another target or version.
std::vector<std::string> kernels_of(const ScheduleRules& rules);

// What serves all sizes of a kernel without rules: "tile" where it has no schedule for the target.
std::string first_schedule(const LibraryKernel& kernel, std::string_view target);

// The kernel's rules for the target: from `folder`, else from the environment's, else its own;
// nothing where it has none.
std::optional<ScheduleRules> find_rules(const LibraryKernel& kernel, std::string_view target,
                                        const std::string& folder);
CompiledRules load_rules(const LibraryKernel& kernel, std::string_view target,
                         const std::string& folder);

}  // namespace tilewright::library
