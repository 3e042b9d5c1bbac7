#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "check/ptx_file.h"
#include "simulate_printed.h"
#include "support/diagnostic.h"
#include "support/file.h"

namespace tilewright::tools {
namespace {

std::string line_of_ptx(const std::string& text, int number) {
  std::istringstream lines(text);
  std::string line;
  for (int at = 0; at < number && std::getline(lines, line); ++at) {
  }
  return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
}

}  // namespace

int simulate_ptx(const Request& request) {
  const std::string& file = request.kernel;
  const std::string launch_file =
      request.launch.empty() ? file.substr(0, file.rfind('.')) + ".json" : request.launch;
  const std::string text = read_text(file);
  const ptx::Module module = ptx::parse(text, file);
  std::error_code error;
  if (request.launch.empty() && !std::filesystem::exists(launch_file, error)) {
    Diagnostic(
        {}, fmt::format("{}: nothing says how it is launched: there is no {}", file, launch_file))
        .fix(
            "write its grid, block and arguments there (docs/debugging.md), or name another file "
            "with --launch")
        .raise();
  }
  const checks::PtxLaunch launch = checks::read_ptx_launch(
      read_text(launch_file), launch_file, request.input_seed.value_or(request.seed));
  std::vector<HostTensor> first;
  std::string fault, shown;
  std::int64_t operations = 0, schedules = 0;
  for (; schedules < request.schedules && fault.empty(); ++schedules) {
    const checks::PtxRun run =
        checks::run_ptx(module, launch, request.seed + static_cast<std::uint64_t>(schedules),
                        std::min(checks::kMostPtxOperations, request.max_operations - operations));
    operations += run.report.operations;
    if (!run.report.faults.empty()) {
      const ptx::Fault& found = run.report.faults.front();
      fault = fmt::format("{}:{}: {}", file, found.line, found.message);
      Diagnostic diagnostic({file.c_str(), found.line}, found.message);
      diagnostic.line(line_of_ptx(text, found.line), 0);
      if (found.kind == "unsupported") diagnostic.raise();
      shown = diagnostic.render();
      break;
    }
    if (first.empty()) first = run.tensors;
    for (std::size_t i = 0; i < first.size() && fault.empty(); ++i) {
      if (!checks::is_another_result(first[i], run.tensors[i])) continue;
      fault = fmt::format("{}: the schedule of seed {} leaves another {} than the first", file,
                          request.seed + static_cast<std::uint64_t>(schedules), launch.names[i]);
    }
  }
  const bool ok = fault.empty();
  if (request.json) {
    const nlohmann::ordered_json json = {
        {"ok", ok}, {"schedules", schedules}, {"operations", operations}, {"fault", fault}};
    fmt::print("{}\n", json.dump(2));
  } else if (ok) {
    fmt::print("{}: {} schedules, {} instructions of warps, 0 faults\n", file, schedules,
               operations);
  } else {
    fmt::print("{}\n", shown.empty() ? "error: " + fault : shown);
  }
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
