#include "schedules/model.h"

#include <algorithm>
#include <utility>

#include "schedules/timeline.h"
#include "target/target.h"

namespace tilewright::schedules {
namespace {

// CTAs that are followed, spread over the grid: all do much the same.
constexpr std::int64_t kSamples = 8;
// Of what is not the bottleneck, that shows where a pipeline fills and drains: an assumption, which
// ranks equals.
constexpr double kExposed = 0.1;

double tensor_bytes(const ir::Kernel& machine, const ir::Binding& binding) {
  double total = 0;
  for (const ir::Parameter& parameter : machine.parameters) {
    if (!parameter.is_tensor() || parameter.is_owned()) continue;
    double bytes = size_of(parameter.dtype);
    for (const Dim& extent : parameter.shape) {
      bytes *= static_cast<double>(binding.evaluate(extent));
    }
    total += bytes;
  }
  return total;
}

struct Samples {
  CtaTimeline mean, largest;
};

Samples follow_samples(const ir::Kernel& machine, const ir::Binding& binding, std::int64_t ctas,
                       const target::Device& device) {
  Samples samples;
  const std::int64_t count = std::min(ctas, kSamples);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t cta = count == 1 ? 0 : i * (ctas - 1) / (count - 1);
    const CtaTimeline one = follow_cta(machine, binding, cta, ctas, device);
    for (const auto field : {&CtaTimeline::products, &CtaTimeline::issue, &CtaTimeline::chain,
                             &CtaTimeline::load_bytes}) {
      samples.mean.*field += one.*field / static_cast<double>(count);
      samples.largest.*field = std::max(samples.largest.*field, one.*field);
    }
  }
  return samples;
}

std::int64_t ctas_of(const ir::Kernel& machine, const ir::Binding& binding) {
  return machine.grid.empty() ? 1 : std::max<std::int64_t>(0, binding.evaluate(machine.grid[0]));
}

}  // namespace

double product_flops(const ir::Kernel& machine, const ir::Binding& binding,
                     const target::Device& device) {
  bool has_products = false;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const ir::Family family = ir::info(operation.op).family;
    has_products =
        has_products || family == ir::Family::product || family == ir::Family::tensor_product;
  });
  const std::int64_t ctas = has_products ? ctas_of(machine, binding) : 0;
  double fma = 0;
  for (std::int64_t cta = 0; cta < ctas; ++cta) {
    fma += follow_cta(machine, binding, cta, ctas, device).fma;
  }
  return 2 * fma;
}

Estimate estimate(const ir::Kernel& machine, const ir::Binding& binding,
                  const target::Device& device) {
  const target::Target& target = target::target_of(machine);
  Estimate result;
  result.shared_bytes = machine.shared_bytes;
  result.ctas = ctas_of(machine, binding);
  result.resident = target::resident_ctas(machine);
  result.seconds = device.reached.launch_seconds;
  if (result.ctas == 0) return result;
  const Samples samples = follow_samples(machine, binding, result.ctas, device);

  // The busiest multiprocessor: of CTAs that all run at once the slowest, of many the mean.
  const auto rounded_up = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>((a + b - 1) / b);
  };
  const std::int64_t places = device.multiprocessors * result.resident;
  const CtaTimeline& cta = result.ctas <= places ? samples.largest : samples.mean;
  const double each = rounded_up(result.ctas, device.multiprocessors);
  const double rounds = rounded_up(result.ctas, places);
  const double second = 1 / device.reached.clock;
  result.products = each * cta.products * second;
  result.instructions = each * cta.issue * second;
  result.loads = each * cta.load_bytes / device.reached.l2_bytes * second;
  result.chain = rounds * cta.chain * second;
  result.memory = tensor_bytes(machine, binding) / device.reached.memory_bytes;

  const bool by_warpgroups = target.has(ir::info(ir::Op::wgmma_ss));
  const std::string& unit =
      target.unit_of(by_warpgroups ? ir::Family::product : ir::Family::tensor_product).name;
  const std::pair<double, std::string> bounds[] = {{result.products, unit},
                                                   {result.instructions, "instructions"},
                                                   {result.loads, "loads from L2"},
                                                   {result.chain, "a warp's own chain"},
                                                   {result.memory, "memory"}};
  const auto largest = *std::max_element(std::begin(bounds), std::end(bounds));
  result.bound = largest.second;
  double others = -largest.first;
  for (const auto& [seconds, name] : bounds) others += seconds;
  result.seconds += largest.first + kExposed * others + rounds * target.rates.copy_latency * second;
  return result;
}

}  // namespace tilewright::schedules
