#include "library/tuning/estimate_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "library/schedule_rules.h"

namespace tilewright::library {
namespace {

// So many measurements that say "as before" stand beside those of a variant: one alone shifts it
// half the way.
constexpr double kKept = 1;

// `let time_NAME = FACTOR * (...`, cut around its factor.
struct EstimateLine {
  std::string name, before, factor, behind;
};

std::optional<EstimateLine> read_estimate(const std::string& line) {
  constexpr std::string_view kStart = "let time_", kEquals = " = ";
  const std::size_t equals = line.find(kEquals);
  if (!line.starts_with(kStart) || equals == std::string::npos) return std::nullopt;
  const std::size_t begin = equals + kEquals.size();
  const std::size_t end = std::min(line.find_first_not_of("0123456789", begin), line.size());
  if (end == begin || line.compare(end, 4, " * (") != 0) return std::nullopt;
  return EstimateLine{line.substr(kStart.size(), equals - kStart.size()), line.substr(0, begin),
                      line.substr(begin, end - begin), line.substr(end)};
}

// The logarithm of measured over estimated, by variant; the mean over all of them taken away, since
// the unit of the estimates is their own affair.
std::map<std::string, std::vector<double>> deviations(const CompiledRules& rules,
                                                      const std::vector<MeasuredLaunch>& launches,
                                                      int multiprocessors) {
  std::map<std::string, std::vector<double>> by_variant;
  double sum = 0;
  std::size_t count = 0;
  for (const MeasuredLaunch& launch : launches) {
    std::vector<std::int64_t> values = rules.values_of(launch.options, multiprocessors);
    rules.match(values.data());
    for (const auto& [name, seconds] : launch.seconds) {
      const std::optional<std::int64_t> estimate = rules.value("time_" + name, values);
      if (!estimate || *estimate <= 0 || seconds <= 0) continue;
      by_variant[name].push_back(std::log(seconds / static_cast<double>(*estimate)));
      sum += by_variant[name].back();
      ++count;
    }
  }
  for (auto& [name, of_variant] : by_variant) {
    for (double& deviation : of_variant) deviation -= sum / static_cast<double>(count);
  }
  return by_variant;
}

double worst_choice(const CompiledRules& rules, const std::vector<MeasuredLaunch>& launches,
                    int multiprocessors) {
  double worst = 1;
  for (const MeasuredLaunch& launch : launches) {
    std::vector<std::int64_t> values = rules.values_of(launch.options, multiprocessors);
    const auto chosen = launch.seconds.find(rules.rules()[rules.match(values.data())].schedule);
    if (chosen == launch.seconds.end()) continue;
    for (const auto& [name, seconds] : launch.seconds) {
      worst = std::max(worst, chosen->second / seconds);
    }
  }
  return worst;
}

}  // namespace

std::optional<FittedRules> fit_estimates(const LibraryKernel& kernel, const ScheduleRules& rules,
                                         const std::vector<MeasuredLaunch>& launches,
                                         int multiprocessors, const std::string& remark) {
  const CompiledRules before(kernel, rules);
  const auto by_variant = deviations(before, launches, multiprocessors);
  FittedRules fitted;
  constexpr const char* kRemark = "# factors by tilewright tune: ";
  std::istringstream in(rules.text);
  bool has_header = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(kRemark, 0) == 0) continue;
    if (const std::optional<EstimateLine> parts = read_estimate(line)) {
      const auto found = by_variant.find(parts->name);
      if (found != by_variant.end()) {
        double sum = 0;
        for (const double deviation : found->second) sum += deviation;
        const double shift = sum / (static_cast<double>(found->second.size()) + kKept);
        line = fmt::format("{}{}{}", parts->before,
                           std::max(std::llround(std::stod(parts->factor) * std::exp(shift)), 1LL),
                           parts->behind);
        ++fitted.variants;
      }
    }
    if (!has_header && !line.empty() && line[0] != '#') {
      has_header = true;
      line = fmt::format("{}\n{}{}", rule_header(kernel.name, rules.target), kRemark, remark);
    }
    fitted.text += line + "\n";
  }
  if (fitted.variants == 0) return std::nullopt;
  fitted.worst =
      worst_choice({kernel, {rules.target, rules.file, fitted.text}}, launches, multiprocessors);
  return fitted;
}

}  // namespace tilewright::library
