#include "library/tuning/schedule_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "library/library_build.h"
#include "library/schedule_choice.h"
#include "library/tuning/family.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "target/devices.h"

namespace tilewright::library {
namespace {

constexpr std::size_t kShown = 6;

std::string cost_text(const schedules::Estimate& e, double product_flops) {
  return fmt::format(
      "{:9.4g} us  {}; {:.4g} GFLOP in products, {}, {} a multiprocessor, {} of shared memory\n",
      e.seconds * 1e6, e.bound, product_flops / 1e9, counted(e.ctas, "CTA"), e.resident,
      counted(e.shared_bytes, "byte"));
}

// What each unit would take alone.
std::string units_text(const schedules::Estimate& e) {
  std::string text;
  for (const schedules::EstimatePart& part : schedules::kEstimateParts) {
    const double seconds = e.*part.seconds;
    if (seconds <= 0) continue;
    text +=
        fmt::format("{}{} {:.4g}", text.empty() ? "  units, us  " : ", ", part.name, seconds * 1e6);
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

ScheduleReport report_schedule(const LibraryKernel& kernel, const OptionValues& options,
                               const compiler::Target& target) {
  ScheduleReport report;
  const ScheduleChoice choice =
      fitting(kernel, choose_schedule(kernel, options, target.scheduled_for()), target);
  report.chosen = name_of(choice);
  report.why = choice.why;
  if (target.arch.empty()) {
    report.variants = 1;
    report.no_estimate = "the model is of a GPU";
    return report;
  }
  report.variants = variant_names(kernel, options, target.arch).size();
  const std::vector<const target::Device*> devices = target::devices_of(target.arch);
  const int multiprocessors = multiprocessors_of(target.arch);
  if (!devices.empty() && !devices.front()->has_run) report.untried = devices.front()->name;
  OptionValues free;  // without the schedule, if one is set
  for (const KernelOption& option : kernel.options) {
    free.set(option.name, options.text(option.name));
  }
  for (FamilyMember& member : family_of(kernel, free, target.arch)) {
    // With the fields that are stated for it.
    if (member.name == report.chosen) member.choice = choice;
    try {
      const schedules::Estimate cost = estimate(kernel, member, options, multiprocessors);
      const double flops = product_flops(kernel, member, options, multiprocessors);
      if (member.name == report.chosen) {
        report.estimate = cost;
        report.product_flops = flops;
      } else {
        report.alternatives.push_back({member.name, cost, flops});
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      ++report.refused;
      if (member.name == report.chosen) report.no_estimate = error.message();
    }
  }
  std::stable_sort(
      report.alternatives.begin(), report.alternatives.end(),
      [](const auto& a, const auto& b) { return a.estimate.seconds < b.estimate.seconds; });
  return report;
}

std::string to_text(const ScheduleReport& report) {
  std::string text = fmt::format("schedule     {}\n  because    {}\n", report.chosen, report.why);
  text += fmt::format("  variants   {} for all lengths\n", report.variants);
  if (!report.no_estimate.empty()) return text;
  text += "  by the model" + cost_text(report.estimate, report.product_flops);
  text += units_text(report.estimate);
  if (!report.untried.empty()) {
    text += fmt::format(
        "  error      {:.0f} % for kernels of an H200 that the model was not fitted to; no {} has "
        "run "
        "this\n",
        100 * schedules::kHeldOutError, report.untried);
  }
  const std::size_t shown = std::min(kShown, report.alternatives.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const ScheduleReport::Alternative& other = report.alternatives[i];
    text += fmt::format("  {:<36} {}", other.name, cost_text(other.estimate, other.product_flops));
  }
  if (report.alternatives.size() > shown || report.refused > 0) {
    text += fmt::format("  slower by the model: {}; not for these options: {}\n",
                        counted(report.alternatives.size() - shown, "other"),
                        counted(report.refused, "variant"));
  }
  return text;
}

}  // namespace tilewright::library
