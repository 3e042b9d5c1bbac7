#include "library/schedule_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "support/diagnostic.h"
#include "support/file.h"
#include "support/intern.h"

namespace tilewright::library {
namespace {

constexpr const char* kMultiprocessors = "multiprocessors";
constexpr const char* kVersion = "v1";

// Without what follows a #, and without spaces at its ends.
std::string stripped(std::string line) {
  line = line.substr(0, line.find('#'));
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

std::int64_t value_of(const KernelOption& option, const OptionValues& options) {
  const std::string& text = options.text(option.name);
  switch (option.kind) {
    case KernelOption::Kind::integer:
      return std::stoll(text);
    case KernelOption::Kind::boolean:
      return text == "true" ? 1 : 0;
    case KernelOption::Kind::dtype:
    case KernelOption::Kind::choice:
      break;
  }
  return std::find(option.choices.begin(), option.choices.end(), text) - option.choices.begin();
}

std::string first_schedule(const LibraryKernel& kernel, std::string_view target) {
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (schedule.target == target) return schedule.name;
  }
  return kTile;
}

}  // namespace

const std::vector<ScheduleParameter>& parameters_of(const LibraryKernel& kernel,
                                                    const std::string& schedule) {
  for (const LibrarySchedule& known : kernel.schedules) {
    if (known.name == schedule) return known.parameters;
  }
  return kernel.parameters;
}

CompiledRules::CompiledRules(const LibraryKernel& kernel, std::string schedule)
    : kernel_(&kernel), standard_(std::move(schedule)) {
  std::vector<std::string> known;
  for (const KernelOption& option : kernel.options) {
    names_[option.name] = {static_cast<int>(facts_++), option.is_length, option.choices};
    known.push_back(option.name);
  }
  names_[kMultiprocessors] = {static_cast<int>(facts_++), false, {}};
  known.emplace_back(kMultiprocessors);
  known_ = fmt::format("{}", fmt::join(known, ", "));
  Rule rule;
  rule.is_unconditional = true;
  rule.schedule = standard_;
  rules_.push_back(std::move(rule));
}

CompiledRules::CompiledRules(const LibraryKernel& kernel, const ScheduleRules& rules,
                             std::string standard)
    : CompiledRules(kernel, std::move(standard)) {
  rules_.clear();
  std::istringstream text(rules.text);
  const char* file = intern(rules.file);
  bool has_header = false;
  SourceLocation last{file, 1};
  std::string content;
  for (std::string read; std::getline(text, read);) {
    content = stripped(read);
    const SourceLocation where{file, last.line++};
    if (content.empty()) continue;
    RuleLine line(content, where);
    if (!has_header) {
      add_header(line, rules);
      has_header = true;
      continue;
    }
    if (!rules_.empty() && rules_.back().is_unconditional) {
      line.fail(0, "this rule is never reached: the one before it holds always",
                "move it before the last rule");
    }
    const std::size_t position = line.position();
    const std::string word = line.word("let, when or else");
    if (word == "let") {
      add_let(line);
    } else if (word == "when" || word == "else") {
      add_rule(line, word == "when");
    } else {
      line.fail(position, fmt::format("expected let, when or else, and found '{}'", word),
                "write `when CONDITION: NAME=VALUE ...`");
    }
  }
  if (rules_.empty() || !rules_.back().is_unconditional) {
    RuleLine(content, {file, last.line - 1})
        .fail(0, "the last rule does not hold always: some sizes have no schedule",
              "end the file with `else: NAME=VALUE ...`");
  }
}

void CompiledRules::add_header(RuleLine& line, const ScheduleRules& rules) {
  const std::string wanted = fmt::format("{} {} {}", kernel_->name, rules.target, kVersion);
  if (line.text() == wanted) return;
  line.fail(0, fmt::format("the first line is not `{}`", wanted),
            fmt::format("these are rules for the kernel {}, target {}, in version {}: write that, "
                        "or tune the kernel again",
                        kernel_->name, rules.target, kVersion));
}

RuleExpression CompiledRules::expression(RuleLine& line) const {
  return parse_rule_expression(
      line,
      [this](const std::string& name) {
        const auto found = names_.find(name);
        return found == names_.end() ? nullptr : &found->second;
      },
      known_);
}

void CompiledRules::add_let(RuleLine& line) {
  const std::size_t position = line.position();
  const std::string name = line.word("a name");
  if (names_.count(name) != 0) {
    line.fail(position, fmt::format("'{}' is defined already", name), "give it another name");
  }
  line.expect("=");
  lets_.push_back(expression(line));
  if (!line.at_end()) line.fail(line.position(), "expected the end of the line", "remove this");
  names_[name] = {static_cast<int>(value_count() - 1), false, {}};
}

void CompiledRules::add_rule(RuleLine& line, bool conditional) {
  Rule rule;
  rule.where = line.where();
  rule.text = line.text();
  rule.schedule = standard_;
  rule.is_unconditional = !conditional;
  if (conditional) rule.condition = expression(line);
  line.expect(":");
  add_settings(line, rule);
  rules_.push_back(std::move(rule));
}

void CompiledRules::add_settings(RuleLine& line, Rule& rule) {
  bool is_first = true;
  for (; !line.at_end(); is_first = false) {
    const std::size_t position = line.position();
    const std::string name = line.word("a parameter");
    line.expect("=");
    const std::size_t value_position = line.position();
    if (name == "schedule") {
      if (!is_first) line.fail(position, "schedule stands first in a rule", "move it to the front");
      rule.schedule = line.name("a schedule");
      std::vector<std::string> known = {kTile};
      for (const LibrarySchedule& schedule : kernel_->schedules) known.push_back(schedule.name);
      if (std::count(known.begin(), known.end(), rule.schedule) == 0) {
        line.fail(value_position, fmt::format("there is no schedule '{}'", rule.schedule),
                  fmt::format("name one of: {}", fmt::join(known, ", ")));
      }
      continue;
    }
    std::vector<std::string> known;
    const ScheduleParameter* parameter = nullptr;
    for (const ScheduleParameter& other : parameters_of(*kernel_, rule.schedule)) {
      known.push_back(other.name);
      if (other.name == name) parameter = &other;
    }
    if (parameter == nullptr) {
      line.fail(position, fmt::format("schedule {} has no parameter '{}'", rule.schedule, name),
                known.empty() ? "name another schedule before it: schedule=NAME"
                              : fmt::format("name one of: {}", fmt::join(known, ", ")));
    }
    const std::int64_t value = line.number();
    if (std::count(parameter->values.begin(), parameter->values.end(), value) == 0) {
      line.fail(value_position, fmt::format("{} is never {}", name, value),
                fmt::format("write one of: {}", fmt::join(parameter->values, ", ")));
    }
    if (!rule.parameters.emplace(name, value).second) {
      line.fail(position, fmt::format("{} is set twice", name), "set it once");
    }
  }
}

void CompiledRules::keep_schedule(const std::string& schedule) {
  std::erase_if(rules_, [&](const Rule& rule) { return rule.schedule != schedule; });
  if (!rules_.empty() && rules_.back().is_unconditional) return;
  Rule rule;
  rule.is_unconditional = true;
  rule.schedule = schedule;
  rules_.push_back(std::move(rule));
}

std::vector<std::int64_t> CompiledRules::values_of(const OptionValues& options,
                                                   int multiprocessors) const {
  std::vector<std::int64_t> values;
  for (const KernelOption& option : kernel_->options) values.push_back(value_of(option, options));
  values.push_back(multiprocessors);
  values.resize(value_count());
  return values;
}

std::size_t CompiledRules::match(std::int64_t* values) const {
  for (std::size_t i = 0; i < lets_.size(); ++i) values[facts_ + i] = lets_[i].evaluate(values);
  std::size_t i = 0;
  while (!rules_[i].is_unconditional && rules_[i].condition.evaluate(values) == 0) ++i;
  return i;
}

std::optional<std::int64_t> CompiledRules::value(const std::string& name,
                                                 const std::vector<std::int64_t>& values) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return std::nullopt;
  return values[static_cast<std::size_t>(found->second.value)];
}

std::optional<ScheduleRules> find_rules(const LibraryKernel& kernel, std::string_view target,
                                        const std::string& folder) {
  namespace fs = std::filesystem;
  const char* variable = std::getenv("TILEWRIGHT_SCHEDULES");
  const std::string place = folder.empty() && variable != nullptr ? variable : folder;
  if (!place.empty() && !target.empty()) {
    if (!fs::is_directory(place)) {
      Diagnostic({}, fmt::format("{}: is no folder", place))
          .fix("name a folder of files KERNEL.TARGET.txt: TILEWRIGHT_SCHEDULES, or rules_folder")
          .raise();
    }
    const fs::path path = fs::path(place) / fmt::format("{}.{}.txt", kernel.name, target);
    if (fs::exists(path)) {
      return ScheduleRules{std::string(target), path.string(), read_text(path.string())};
    }
  }
  for (const ScheduleRules& rules : kernel.rules) {
    if (rules.target == target) return rules;
  }
  return std::nullopt;
}

CompiledRules load_rules(const LibraryKernel& kernel, std::string_view target,
                         const std::string& folder) {
  const std::string standard = first_schedule(kernel, target);
  const std::optional<ScheduleRules> rules = find_rules(kernel, target, folder);
  return rules ? CompiledRules(kernel, *rules, standard) : CompiledRules(kernel, standard);
}

}  // namespace tilewright::library
