#include "library/schedule_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "support/diagnostic.h"
#include "support/file.h"
#include "support/intern.h"
#include "support/nearest_name.h"
#include "target/target.h"

namespace tilewright::library {
namespace {

// Facts beside the options, in the order of their values.
constexpr const char* kFacts[] = {"multiprocessors", "element_bytes"};
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
    case KernelOption::Kind::number:
    case KernelOption::Kind::lengths:
      return 0;  // no rule has a name for them
    case KernelOption::Kind::dtype:
    case KernelOption::Kind::choice:
      break;
  }
  return std::find(option.choices.begin(), option.choices.end(), text) - option.choices.begin();
}

}  // namespace

std::string rule_header(const std::string& kernel, std::string_view target) {
  return fmt::format("{} {} {}", kernel, target, kVersion);
}

std::vector<std::string> kernels_of(const ScheduleRules& rules) {
  std::istringstream text(rules.text);
  std::string line;
  while (line.empty() && std::getline(text, line)) line = stripped(line);
  std::istringstream header(line);
  std::vector<std::string> words;
  for (std::string word; header >> word;) words.push_back(word);
  const bool fits =
      words.size() > 2 && words.back() == kVersion && words[words.size() - 2] == rules.target;
  words.resize(fits ? words.size() - 2 : 0);
  return words;
}

std::string first_schedule(const LibraryKernel& kernel, std::string_view target) {
  for (const LibrarySchedule& schedule : kernel.schedules) {
    if (target::takes_kernels(target, schedule.target)) return schedule.name;
  }
  return kTile;
}

CompiledRules::CompiledRules(const LibraryKernel& kernel) : kernel_(&kernel) {
  std::vector<std::string> known;
  for (const KernelOption& option : kernel.options) {
    const int number = static_cast<int>(facts_++);
    if (option.kind == KernelOption::Kind::lengths) continue;
    names_[option.name] = {number, option.is_length, option.choices};
    known.push_back(option.name);
  }
  for (const char* fact : kFacts) {
    names_[fact] = {static_cast<int>(facts_++), false, {}};
    known.emplace_back(fact);
  }
  known_ = fmt::format("{}", fmt::join(known, ", "));
}

CompiledRules::CompiledRules(const LibraryKernel& kernel, std::string schedule)
    : CompiledRules(kernel) {
  Rule rule;
  rule.is_unconditional = true;
  rule.schedule = std::move(schedule);
  rules_.push_back(std::move(rule));
}

CompiledRules::CompiledRules(const LibraryKernel& kernel, const ScheduleRules& rules)
    : CompiledRules(kernel) {
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
      check_header(line, rules);
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
                "write `when CONDITION: schedule=NAME`");
    }
  }
  if (rules_.empty() || !rules_.back().is_unconditional) {
    RuleLine(content, {file, last.line - 1})
        .fail(0, "the last rule does not hold always: some sizes have no schedule",
              "end the file with `else: schedule=NAME`");
  }
}

void CompiledRules::check_header(RuleLine& line, const ScheduleRules& rules) const {
  const std::vector<std::string> kernels = kernels_of(rules);
  if (std::count(kernels.begin(), kernels.end(), kernel_->name) != 0) return;
  line.fail(0, fmt::format("the first line is not `{}`", rule_header(kernel_->name, rules.target)),
            fmt::format("name the kernel {} (other kernels may stand beside it), the target {} and "
                        "the version {}, or tune the kernel again",
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
  line.expect_end();
  names_[name] = {static_cast<int>(value_count() - 1), false, {}};
}

void CompiledRules::add_rule(RuleLine& line, bool conditional) {
  Rule rule;
  rule.where = line.where();
  rule.text = line.text();
  rule.is_unconditional = !conditional;
  if (conditional) rule.condition = expression(line);
  for (const char* token : {":", "schedule", "="}) line.expect(token);
  const std::size_t position = line.position();
  rule.schedule = line.name("a schedule");
  std::vector<std::string> known = {kTile};
  for (const LibrarySchedule& schedule : kernel_->schedules) known.push_back(schedule.name);
  if (std::count(known.begin(), known.end(), rule.schedule) == 0) {
    line.fail(position,
              fmt::format("there is no schedule '{}'{}", rule.schedule,
                          nearest_text(rule.schedule, known)),
              fmt::format("name one of: {}", fmt::join(known, ", ")));
  }
  line.expect_end();
  rules_.push_back(std::move(rule));
}

std::vector<std::int64_t> CompiledRules::values_of(const OptionValues& options,
                                                   int multiprocessors) const {
  std::vector<std::int64_t> values;
  for (const KernelOption& option : kernel_->options) values.push_back(value_of(option, options));
  values.push_back(multiprocessors);
  const std::vector<LibraryTensor>& tensors = kernel_->tensors;
  values.push_back(tensors.empty() ? 0 : size_of(dtype_of(tensors[0], options)));
  values.resize(value_count());
  return values;
}

std::string CompiledRules::name_of(std::size_t value) const {
  const auto found = std::find_if(names_.begin(), names_.end(), [&](const auto& each) {
    return each.second.value == static_cast<int>(value);
  });
  return found == names_.end() ? "" : found->first;
}

std::size_t CompiledRules::match(std::int64_t* values) const {
  for (std::size_t i = 0; i < lets_.size(); ++i) values[facts_ + i] = lets_[i].evaluate(values);
  std::size_t i = 0;
  while (!rules_[i].is_unconditional && rules_[i].condition.evaluate(values) == 0) ++i;
  return i;
}

std::vector<bool> CompiledRules::reachable(const OptionValues& options) const {
  const std::vector<std::int64_t> given = values_of(options, /*multiprocessors=*/0);
  std::vector<std::optional<std::int64_t>> values(given.begin(), given.end());
  for (std::size_t i = 0; i < kernel_->options.size(); ++i) {
    if (kernel_->options[i].is_length) values[i].reset();
  }
  values[multiprocessors()].reset();
  for (std::size_t i = 0; i < lets_.size(); ++i) {
    values[facts_ + i] = lets_[i].evaluate_known(values.data());
  }
  std::vector<bool> reached(rules_.size(), false);
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const std::optional<std::int64_t> holds =
        rules_[i].is_unconditional ? 1 : rules_[i].condition.evaluate_known(values.data());
    reached[i] = holds != 0;
    if (holds && *holds != 0) break;
  }
  return reached;
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
  std::optional<ScheduleRules> own;
  for (const ScheduleRules& rules : kernel.rules) {
    if (target::takes_kernels(target, rules.target)) own = rules;
  }
  if (!place.empty() && !target.empty()) {
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) {
      Diagnostic({}, fmt::format("{}: is no folder", place))
          .fix("name a folder of files KERNEL.TARGET.txt: TILEWRIGHT_SCHEDULES, or rules_folder")
          .raise();
    }
    const auto read = [&](const fs::path& name) -> std::optional<ScheduleRules> {
      const fs::path path = fs::path(place) / name;
      if (!fs::exists(path)) return std::nullopt;
      return ScheduleRules{std::string(target), path.string(), read_text(path.string())};
    };
    if (auto rules = read(fmt::format("{}.{}.txt", kernel.name, target))) return rules;
    if (own) {  // what it shares with another kernel has that one's name
      const auto shared = read(fs::path(own->file).filename());
      const auto kernels = shared ? kernels_of(*shared) : std::vector<std::string>();
      if (std::count(kernels.begin(), kernels.end(), kernel.name) != 0) return shared;
    }
  }
  return own;
}

CompiledRules load_rules(const LibraryKernel& kernel, std::string_view target,
                         const std::string& folder) {
  const std::optional<ScheduleRules> rules = find_rules(kernel, target, folder);
  return rules ? CompiledRules(kernel, *rules)
               : CompiledRules(kernel, first_schedule(kernel, target));
}

}  // namespace tilewright::library
