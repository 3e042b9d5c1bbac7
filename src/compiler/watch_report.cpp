#include "compiler/watch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/check_report.h"
#include "ir/memory_order.h"
#include "support/counted.h"
#include "support/diagnostic.h"

namespace tilewright::compiler {
namespace {

using Wait = codegen::WatchReport::Wait;

// The waits of a kernel by their numbers, with how many loops are around them.
struct WatchedWait {
  const ir::Operation* operation = nullptr;
  int loops = 0;
};

void find_waits(const ir::Block& block, int loops, std::map<std::int64_t, WatchedWait>& waits) {
  for (const ir::Operation& operation : block.body) {
    if (operation.attributes.has(ir::Key::watched)) {
      waits[operation.attributes.integer(ir::Key::watched)] = {&operation, loops};
    }
    const int inside = loops + (operation.op == ir::Op::for_loop ? 1 : 0);
    for (const ir::Block& inner : operation.blocks) find_waits(inner, inside, waits);
  }
}

// "arrived[5] >= 7, which is 6"; "the barrier full[2] parity 1".
std::string what_of(const ir::Operation& wait, const Wait& record, const ir::Kernel& machine) {
  if (wait.op == ir::Op::wait_flag) {
    return fmt::format("{}[{}] {} {}, which is {}", machine.parameter_of(wait.operands[0])->name,
                       record.index, ir::sign_of(ir::compare_of(wait)), record.value, record.found);
  }
  std::string name = "mbarriers";
  ir::for_each(machine.body, [&](const ir::Operation& place) {
    if (place.op == ir::Op::mbarriers && place.results[0] == wait.operands[0]) {
      name = place.attributes.text(ir::Key::name);
    }
  });
  return fmt::format("the barrier {}[{}], parity {}", name, record.index, record.value);
}

// " (in the loop: 12)"; of several the outermost index, which counts tiles, and the innermost.
std::string loops_of(const Wait& record, int loops) {
  if (loops == 0) return {};
  if (loops == 1) return fmt::format(" (in turn {} of its loop)", record.outer);
  return fmt::format(" (in turn {} of the outermost loop, {} of the innermost)", record.outer,
                     record.inner);
}

// The lines of the kernel that change the parameter's words, in this rank or in others.
std::string own_writers(const ir::Kernel& machine, const ir::Parameter& parameter) {
  std::set<std::string> lines;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const ir::OpInfo& record = ir::info(operation.op);
    const bool accesses =
        record.family == ir::Family::word || record.family == ir::Family::global_access;
    if (!accesses || !record.writes(ir::Memory::global)) return;
    if (machine.parameter_of(operation.operands[0]) != &parameter) return;
    lines.insert(fmt::format("\n  {} is written at {}, in {} itself", parameter.name,
                             format_location(operation.where), machine.name));
  });
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

std::optional<double> watch_seconds() {
  const char* const text = std::getenv("TILEWRIGHT_WATCH");
  if (text == nullptr || *text == 0) return {};
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  constexpr double kMost = 86400;
  if (*end == 0 && seconds > 0 && seconds <= kMost) return seconds;
  Diagnostic({}, fmt::format("TILEWRIGHT_WATCH is \"{}\"", text))
      .fix("the seconds that a wait may last, such as 10; or leave it unset")
      .raise();
}

std::string standstill(const codegen::WatchReport& report, const ir::Kernel& machine, int rank,
                       const WordWriters& writers) {
  std::map<std::int64_t, WatchedWait> waits;
  find_waits(machine.body, 0, waits);
  std::string lines, written;
  std::set<const ir::Parameter*> parameters;
  for (const Wait& record : report.waits) {
    const auto found = waits.find(record.number);
    if (record.written == 0 || found == waits.end()) continue;
    const ir::Operation& wait = *found->second.operation;
    lines +=
        fmt::format("\n  {}{}  {}  waits for {}{}", warp_text(record.cta, record.warp, machine),
                    rank < 0 ? "" : fmt::format(" of rank {}", rank), format_location(wait.where),
                    what_of(wait, record, machine), loops_of(record, found->second.loops));
    if (wait.op != ir::Op::wait_flag) continue;
    const ir::Parameter* const words = machine.parameter_of(wait.operands[0]);
    if (!parameters.insert(words).second) continue;
    written += own_writers(machine, *words);
    if (writers) written += writers(words->name);
  }
  if (lines.empty()) return {};
  const std::int64_t more = report.taken - codegen::WatchReport::kWaits;
  if (more > 0)
    lines += fmt::format("\n  and {} more", counted(static_cast<std::size_t>(more), "wait"));
  return fmt::format("{} stands still: no wait here ended within {} s{}{}", machine.name,
                     static_cast<double>(report.nanoseconds) * 1e-9, lines, written);
}

namespace {

// Those of the process, in the order in which they were made.
class LiveReports {
 public:
  void add(const WatchReports* reports) {
    const std::lock_guard lock(mutex_);
    all_.push_back(reports);
  }
  void remove(const WatchReports* reports) {
    const std::lock_guard lock(mutex_);
    all_.erase(std::find(all_.begin(), all_.end(), reports));
  }
  template <typename Visit>
  void for_each(const Visit& visit) {
    const std::lock_guard lock(mutex_);
    for (const WatchReports* each : all_) visit(*each);
  }

 private:
  std::mutex mutex_;
  std::vector<const WatchReports*> all_;
};

LiveReports& live_reports() {
  static auto& reports = *new LiveReports;  // kernels may be statics of other files
  return reports;
}

}  // namespace

WatchReports::WatchReports(const runtime::Device& device, const ir::Kernel& machine, double seconds)
    : machine_(machine),
      memory_(device, sizeof(codegen::WatchReport)),
      reporter_([this] { raise(); }) {
  new (memory_.data()) codegen::WatchReport;
  address()->nanoseconds = static_cast<std::int64_t>(seconds * 1e9);
  live_reports().add(this);
}

WatchReports::~WatchReports() { live_reports().remove(this); }

codegen::WatchReport* WatchReports::address() const {
  return static_cast<codegen::WatchReport*>(memory_.data());
}

void WatchReports::raise() const {
  std::string text;
  live_reports().for_each([&text](const WatchReports& each) {
    const std::string own = each.text();
    if (!own.empty()) text += (text.empty() ? "" : "\n") + own;
  });
  if (text.empty()) return;
  Diagnostic(machine_.where, text, ErrorKind::result)
      .fix(
          "simulate() finds who waits for whom before a GPU does; this process can no longer use "
          "the GPU and must be restarted")
      .raise();
}

}  // namespace tilewright::compiler
