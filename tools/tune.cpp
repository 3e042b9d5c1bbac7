#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "compiler/compile_traced.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/kernel_source.h"
#include "library/schedule_rules.h"
#include "library/tuning/estimate_fit.h"
#include "library/tuning/schedule_family.h"
#include "library/tuning/tuner.h"
#include "runtime/device.h"
#include "size_axes.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "support/escape.h"
#include "support/file.h"
#include "support/progress.h"
#include "tilewright/compile.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using library::TunedAxis;
using library::TuneEntry;
using library::TuneResult;
using Json = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& message, const std::string& fix) {
  Diagnostic({}, message).fix(fix).raise();
}

// What was set and a build depends on: the rules hold for that alone.
std::string facts_of(const LibraryKernel& kernel, const Request& request) {
  std::vector<std::string> facts;
  for (const std::string& setting : request.settings) {
    const std::size_t at = setting.find('=');
    const std::string name = setting.substr(0, at);
    for (const KernelOption& option : kernel.options) {
      if (option.name != name || option.is_length) continue;
      if (option.kind == KernelOption::Kind::boolean) {
        const std::string value = setting.substr(at + 1);
        facts.push_back(value == "true" || value == "1" ? name : "not " + name);
      } else {
        facts.push_back(fmt::format("{} == {}", name, setting.substr(at + 1)));
      }
    }
  }
  return fmt::format("{}", fmt::join(facts, " and "));
}

void print(const TuneResult& result, const std::vector<std::string>& sizes) {
  fmt::print(
      "{}: {} measured or ranked, {} too slow by the model, {} not for these options, {} "
      "failed\n",
      sizes.empty() ? "the sizes set" : fmt::format("{}", fmt::join(sizes, " ")),
      result.entries.size() - result.slow - result.refused - result.failed, result.slow,
      result.refused, result.failed);
  for (const TuneEntry& entry : result.entries) {
    if (!entry.skipped.empty()) continue;
    const std::string measured =
        entry.measured > 0 ? fmt::format("{:9.2f} us", entry.measured * 1e6) : "";
    const bool by_rules = entry.name == result.standard && entry.name != library::kCompilersChoice;
    fmt::print("  {:<40} {}  by the model {:9.2f} us{}\n", entry.name, measured,
               entry.predicted * 1e6, by_rules ? "  (the rules' choice)" : "");
  }
}

Json json_of(const TuneResult& result, const std::vector<std::string>& sizes) {
  Json entries = Json::array();
  for (const TuneEntry& entry : result.entries) {
    Json json = {{"name", entry.name}};
    if (entry.predicted < 1e30) json["predicted_seconds"] = entry.predicted;
    if (entry.measured > 0) json["seconds"] = entry.measured;
    if (!entry.skipped.empty()) json["skipped"] = entry.skipped;
    entries.push_back(std::move(json));
  }
  return {{"sizes", sizes}, {"standard", result.standard}, {"variants", entries}};
}

bool is_measured(const compiler::Target& target, bool model_only) {
  const bool is_gpu = !target.arch.empty() && !compiler::has_explicit_memories(target);
  if (model_only && is_gpu) return false;
  if (!model_only && target.kind == compiler::Target::Kind::cuda) return true;
  Diagnostic({}, fmt::format("target {} is not measured", target.name), ErrorKind::unavailable)
      .fix(!is_gpu || model_only
               ? "use cuda (the GPU that is here), or sm_90a or sm_100a with --model-only, which "
                 "ranks by the model"
               : fmt::format("use cuda (the GPU that is here), or --model-only, which ranks by the "
                             "model of {}",
                             target.arch))
      .raise();
}

// The times of one kernel say nothing of the others that its rules serve.
void check_rules_file(const Request& request, const LibraryKernel& kernel,
                      const std::string& target) {
  const std::string& file = request.rules_file;
  const std::string why = file.empty() ? "" : why_not_writable(file);
  if (!why.empty()) {
    fail(fmt::format("--out {}: the rules cannot be written there: {}", file, why),
         "name a file in a folder that exists and that you may write to");
  }
  const std::vector<std::string> kernels =
      library::kernels_of({target, file, try_read_text(file).value_or("")});
  if (kernels.size() < 2) return;
  fail(fmt::format("--out {}: these rules serve {}, and what is tuned is {} alone", file,
                   fmt::join(kernels, ", "), kernel.name),
       "name another file");
}

// The rules that are there, with their estimates refitted; nothing where there are none to fit, or
// where facts ask for rules of their own.
std::optional<library::FittedRules> refit(const Request& request, const LibraryKernel& entry,
                                          const compiler::Target& target,
                                          const std::vector<TuneResult>& results,
                                          const std::vector<library::TunedPoint>& points,
                                          int multiprocessors, const std::string& remark) {
  if (request.ranges) return std::nullopt;
  std::optional<ScheduleRules> rules = library::find_rules(entry, target.arch, "");
  if (auto text = try_read_text(request.rules_file); text && !text->empty()) {
    rules = ScheduleRules{target.arch, request.rules_file, *std::move(text)};
  }
  if (!rules) return std::nullopt;
  std::vector<library::MeasuredLaunch> launches;
  for (std::size_t i = 0; i < results.size(); ++i) {
    launches.push_back({results[i].options, points[i].seconds});
  }
  return library::fit_estimates(entry, *rules, launches, multiprocessors, remark);
}

void write_rules(const Request& request, const std::string& text) {
  if (request.rules_file.empty()) return;
  write_text(request.rules_file, text);
  if (!request.json) fmt::print("written to {}\n", escaped_lines(request.rules_file));
}

void report_fitted(const Request& request, const library::FittedRules& fitted, Json report) {
  if (request.json) {
    report["fitted"] = fitted.variants;
    report["worst_ratio"] = fitted.worst;
    fmt::print("{}\n", json_text(report));
  } else {
    fmt::print("\nrules: the estimates of {} fitted; at worst {:.3f} of the best's time\n",
               counted(fitted.variants, "variant"), fitted.worst);
  }
}

void report_rules(const Request& request, const library::TunedRules& rules, Json report) {
  if (request.json) {
    report["rules"] = rules.lines;
    report["variants"] = rules.variants;
    report["worst_ratio"] = rules.worst;
    fmt::print("{}\n", json_text(report));
  } else {
    fmt::print("\nrules: {}; at worst {:.3f} of the best's time\n",
               counted(rules.variants, "variant"), rules.worst);
    for (const std::string& line : rules.lines) fmt::print("  {}\n", line);
  }
}

// A variant on the tensors of a launch, on the default stream.
library::Launch built(const LibraryKernel& entry, const ScheduleChoice& choice) {
  const auto launch = [](auto executable) -> library::Launch {
    return [shared = std::make_shared<const decltype(executable)>(std::move(executable))](
               const std::vector<TensorRef>& tensors) { shared->run(tensors); };
  };
  return entry.is_program() ? launch(compile(build_program(entry, choice), "cuda"))
                            : launch(compile(build_choice(entry, choice), "cuda"));
}

// A file's kernel has one variant, and the tile-level definition is one.
bool tunes_fields(const Request& request, const library::KernelSource& source) {
  const auto& settings = request.settings;
  return source.is_file() || std::count(settings.begin(), settings.end(), "schedule=tile") != 0;
}

void check_fields(const Request& request, const library::KernelSource& source) {
  if (source.entry().is_program() || source.reaches_ranks()) {
    fail(fmt::format("{} is a program of several kernels", source.entry().name),
         "tune each of its kernels: name its .tw file");
  }
  if (!request.rules_file.empty()) {
    fail("--out: rules choose variants, and what is tuned is the schedule of one kernel",
         "leave it out, and state the best fields with the kernel: Kernel::schedule");
  }
}

// The fields of a Schedule for a kernel of the tile level: a table for each of the sizes.
int tune_fields(const Request& request, const library::KernelSource& source,
                const compiler::Target& target, bool on_gpu, const std::vector<TunedAxis>& axes) {
  check_fields(request, source);
  const LibraryKernel& entry = source.entry();
  library::ScheduleFamily family =
      library::schedule_family(source, resolve_options(entry, request.settings), target);
  library::TuneOptions how;
  how.keep = static_cast<std::size_t>(request.keep);
  how.seed = request.seed;
  library::Tuner tuner(entry, request.settings, target, how, std::move(family.members),
                       library::kCompilersChoice);
  std::vector<TuneResult> results;
  for (const std::vector<std::size_t>& place : places_of(axes)) {
    results.push_back(tuner.rank(sizes_at(axes, place)));
  }
  const auto build = [&](const ScheduleChoice& choice) -> library::Launch {
    const auto executable = std::make_shared<const Executable>(
        compile_traced(source.traced(choice.options, target), "cuda", {}));
    const std::vector<double> scalars = library::scalars_of(entry, choice.options);
    return [executable, scalars](const std::vector<TensorRef>& tensors) {
      executable->run(tensors, scalars);
    };
  };
  if (on_gpu) {
    ProgressBar bar("building", static_cast<std::int64_t>(tuner.count_builds(results)));
    tuner.build(results, build, [&] { bar.advance(); });
  }
  Json json = Json::array();
  const std::vector<std::vector<std::size_t>> places = places_of(axes);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (on_gpu) tuner.measure(results[i]);
    const std::vector<std::string> sizes = sizes_at(axes, places[i]);
    if (request.json) {
      json.push_back(json_of(results[i], sizes));
    } else {
      print(results[i], sizes);
    }
  }
  if (request.json) {
    Json refused = Json::array();
    for (const auto& [name, why] : family.refused)
      refused.push_back({{"name", name}, {"why", why}});
    fmt::print("{}\n", json_text(Json{{"kernel", entry.name},
                                      {"target", target.name},
                                      {"points", json},
                                      {"refused", refused}}));
    return 0;
  }
  fmt::print("\n{} cannot be compiled for this kernel{}\n",
             counted(family.refused.size(), "schedule"),
             family.refused.empty() ? "" : " (--json says why)");
  return 0;
}

}  // namespace

int tune(const Request& request) {
  const library::KernelSource source = open_kernel(request.kernel);
  const LibraryKernel& entry = source.entry();
  const compiler::Target target = compiler::parse_target(request.target);
  if (entry.over_ranks) {
    fail(fmt::format("{} runs on several ranks, and tune measures one GPU", entry.name),
         "--set schedule=NAME chooses a variant");
  }
  const bool on_gpu = is_measured(target, request.model_only);
  const std::vector<TunedAxis> axes = parse_axes(entry, request.sizes);
  if (tunes_fields(request, source)) return tune_fields(request, source, target, on_gpu, axes);
  check_rules_file(request, entry, target.arch);
  library::TuneOptions how;
  how.keep = static_cast<std::size_t>(request.keep);
  how.seed = request.seed;
  library::Tuner tuner(entry, request.settings, target, how);

  std::vector<library::TunedPoint> points;
  std::vector<TuneResult> results;
  for (const std::vector<std::size_t>& place : places_of(axes)) {
    points.push_back({place, {}});
    results.push_back(tuner.rank(sizes_at(axes, place)));
  }
  if (on_gpu) {
    ProgressBar bar("building", static_cast<std::int64_t>(tuner.count_builds(results)));
    tuner.build(
        results, [&](const ScheduleChoice& choice) { return built(entry, choice); },
        [&] { bar.advance(); });
  }
  Json json = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::vector<std::string> sizes = sizes_at(axes, points[i].place);
    if (on_gpu) tuner.measure(results[i]);
    for (const TuneEntry& each : results[i].entries) {
      if (!each.skipped.empty()) continue;
      points[i].seconds[each.name] = on_gpu ? each.measured : each.predicted;
    }
    if (request.json) {
      json.push_back(json_of(results[i], sizes));
    } else {
      print(results[i], sizes);
    }
  }

  const std::string facts = facts_of(entry, request);
  const std::string remark = fmt::format(
      "{}; {}", on_gpu ? runtime::Device::get(0).info().name : "by the model, not measured",
      request.sizes.empty() ? "one size" : fmt::format("{}", fmt::join(request.sizes, ", ")));
  const Json report = {{"kernel", entry.name}, {"target", target.name}, {"points", json}};
  if (facts.empty()) {
    if (const auto fitted =
            refit(request, entry, target, results, points, tuner.multiprocessors(), remark)) {
      report_fitted(request, *fitted, report);
      write_rules(request, fitted->text);
      return 0;
    }
  }
  const library::TunedRules rules = library::make_rules(axes, points, facts, request.tolerance);
  report_rules(request, rules, report);
  write_rules(request, library::update_rules(try_read_text(request.rules_file).value_or(""), entry,
                                             target.arch, rules, facts, remark));
  return 0;
}

}  // namespace tilewright::tools
