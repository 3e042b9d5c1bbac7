#include "explain/cpu_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "support/counted.h"
#include "support/diagnostic.h"

namespace tilewright::explanations {
namespace {

// So long blocks run.
constexpr double kSeconds = 0.05;
// A reason with a smaller share of the time is not worth a line.
constexpr double kSmallShare = 0.03;

// The product that computes most; none where nothing multiplies.
const cpu::Multiply* largest_product(const CpuList& list) {
  const cpu::ListedOperation* largest = nullptr;
  for (const cpu::ListedOperation& each : list.operations) {
    if (each.product && (!largest || each.flops > largest->flops)) largest = &each;
  }
  return largest ? largest->product : nullptr;
}

std::string kibibytes(std::int64_t bytes) {
  return fmt::format("{:.0f} KiB", static_cast<double>(bytes) / 1024);
}

// What each execution is said to take beside: "1.2 us x 64".
std::string time_of(const cpu::Cost& cost) {
  if (cost.count == 0) return "not run";
  return fmt::format("{:.4g} us x {}", cost.shortest * 1e6, cost.count);
}

std::string line_of(const cpu::ListedOperation& each, double all_seconds) {
  const std::string name = std::string(2 * each.depth, ' ') + each.text;
  if (each.is_block)
    return fmt::format("  {:<58}{:>38}  {}", name, "", format_location(each.where));
  std::string measured;
  if (all_seconds > 0) {
    measured = fmt::format("{:>5.1f}% {:>18}", each.cost.seconds() / all_seconds * 100,
                           time_of(each.cost));
  }
  return fmt::format(
      "  {:<58}{:>25} {:>12}  {}", name, measured,
      each.flops > 0 ? fmt::format("{:.4g} flop", each.flops) : fmt::format("{:.4g} B", each.bytes),
      format_location(each.where));
}

}  // namespace

CpuList list_for_cpu(std::shared_ptr<const cpu::CompiledKernel> compiled) {
  CpuList list{std::move(compiled), {}, {}, {}};
  list.operations = cpu::list_operations(list.compiled->program());
  return list;
}

void measure(CpuList& list, const Arguments& arguments) {
  list.measurement = list.compiled->measure(arguments, kSeconds);
  list.operations = cpu::list_operations(list.compiled->program(), list.measurement->profile);
  const cpu::Multiply* const product = largest_product(list);
  list.peaks =
      cpu::measure_peaks(list.compiled->kernels(), product ? product->element : cpu::Element::f32,
                         product ? product->rounding : cpu::Rounding::fused);
}

double seconds_of(const CpuList& list) {
  double seconds = 0;
  for (const cpu::ListedOperation& each : list.operations) {
    if (!each.is_block) seconds += each.cost.seconds();
  }
  return seconds;
}

std::vector<std::string> slow_parts(const CpuList& list) {
  const double all = seconds_of(list);
  std::map<cpu::Slow, std::pair<double, std::set<std::string>>> reasons;
  for (const cpu::ListedOperation& each : list.operations) {
    if (each.slow == cpu::Slow::no) continue;
    auto& [seconds, lines] = reasons[each.slow];
    seconds += each.cost.seconds();
    lines.insert(format_location(each.where));
  }
  std::vector<std::string> parts;
  for (const auto& [reason, found] : reasons) {
    const auto& [seconds, lines] = found;
    // What waits for other blocks takes nothing where there are none.
    const bool always = reason == cpu::Slow::in_turn;
    if (!always && (all == 0 ? reason == cpu::Slow::tiny : seconds < kSmallShare * all)) continue;
    const std::string share =
        all > 0 && !always ? fmt::format("{:.0f}% of the time: ", seconds / all * 100) : "";
    parts.push_back(
        fmt::format("{}{} ({})", share, cpu::reason_of(reason), fmt::join(lines, ", ")));
  }
  const cpu::Program& program = list.compiled->program();
  const std::int64_t bytes = program.arena_bytes + program.scratch_bytes;
  const std::int64_t cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (cache > 0 && bytes > cache) {
    parts.push_back(fmt::format(
        "tiles and packed operands of a block take {}, and a core's second-level cache holds {}: "
        "smaller blocks stay in it",
        kibibytes(bytes), kibibytes(cache)));
  }
  return parts;
}

CpuRoofline roofline(const cpu::Peaks& peaks, const Work& work) {
  CpuRoofline line;
  line.ridge = peaks.flops_per_second / peaks.bytes_per_second;
  line.memory_bound = work.intensity() < line.ridge;
  line.flops_per_second =
      std::min(peaks.flops_per_second, work.intensity() * peaks.bytes_per_second);
  line.seconds = std::max(work.flops / peaks.flops_per_second, work.bytes / peaks.bytes_per_second);
  return line;
}

std::string text_of(const cpu::Peaks& peaks, const std::optional<Work>& work) {
  std::string text = fmt::format("this processor, {}: {:.4g} GFLOP/s in products, {:.4g} GB/s\n",
                                 counted(peaks.threads, "thread"), peaks.flops_per_second / 1e9,
                                 peaks.bytes_per_second / 1e9);
  if (!work) return text;
  const CpuRoofline line = roofline(peaks, *work);
  return text +
         fmt::format("  bound by {} (ridge {:.0f}): at most {:.4g} GFLOP/s, at least {:.4g} ms\n",
                     line.memory_bound ? "memory" : "arithmetic", line.ridge,
                     line.flops_per_second / 1e9, line.seconds * 1e3);
}

std::string text_of(const CpuList& list, const std::optional<Work>& work) {
  const cpu::Program& program = list.compiled->program();
  std::string text = fmt::format("instruction set {}, arena {} a thread, of which {} for packing",
                                 list.compiled->kernels().name,
                                 kibibytes(program.arena_bytes + program.scratch_bytes),
                                 kibibytes(program.scratch_bytes));
  if (program.packs_bytes > 0) {
    text +=
        fmt::format("; {} for packed operands that blocks share", kibibytes(program.packs_bytes));
  }
  text += "\n";
  const double seconds = seconds_of(list);
  for (const cpu::ListedOperation& each : list.operations) text += line_of(each, seconds) + "\n";
  if (list.measurement && list.measurement->measured > 0) {
    const cpu::Measurement& made = *list.measurement;
    const double block = made.seconds / static_cast<double>(made.measured);
    text += fmt::format(
        "measured: {} of {} blocks on one thread, {:.4g} us a block: {:.4g} ms of one thread in "
        "all\n",
        made.measured, made.blocks, block * 1e6, block * static_cast<double>(made.blocks) * 1e3);
  }
  if (list.peaks) text += text_of(*list.peaks, work);
  for (const std::string& part : slow_parts(list)) text += "slow: " + part + "\n";
  return text;
}

}  // namespace tilewright::explanations
