#include "schedules/model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "schedules/timeline.h"
#include "target/target.h"

namespace tilewright::schedules {
namespace {

// CTAs that are followed, spread over the grid: all do much the same.
constexpr std::int64_t kSamples = 8;
// Times of what goes on at once: their norm of such a degree. Fitted, each.
constexpr double kCopies = 5;  // of products and what feeds them
constexpr double kLoads = 4;   // of a port to L2 and of what arrives in shared memory
// Warps wait for products and compute in turn, so that neither hides all of the other.
constexpr double kUnits = 2.25;
constexpr double kMemory = 1.6;  // of a multiprocessor's work and of memory

// Of the part of the time in which the tensor cores multiply: how fast their power falls with it.
constexpr double kPower = 16;

double norm(double degree, std::initializer_list<double> parts) {
  double sum = 0;
  for (const double part : parts) sum += std::pow(part, degree);
  return std::pow(sum, 1 / degree);
}

// Every tensor once, as bytes that are read.
double tensor_bytes(const ir::Kernel& machine, const ir::Binding& binding,
                    const target::Device::Reached& reached) {
  double total = 0;
  for (const ir::Parameter& parameter : machine.parameters) {
    if (!parameter.is_tensor() || parameter.is_owned()) continue;
    double bytes = size_of(parameter.dtype);
    for (const Dim& extent : parameter.shape) {
      bytes *= static_cast<double>(binding.evaluate(extent));
    }
    if (parameter.kind == ir::Parameter::Kind::out && !parameter.shape.empty()) {
      bytes *= reached.written_in_rows(binding.evaluate(parameter.shape.back()) *
                                       size_of(parameter.dtype));
    }
    total += bytes;
  }
  return total;
}

struct Samples {
  CtaTimeline mean, largest;
  CtaTimeline last;  // who ends last of those that take tiles in their turn
  std::vector<CtaTimeline> all;
};

// By how many cycles the last CTA ends later than the longest one, since others add to a sum before
// it. Whoever multiplies less ends the sooner.
double behind_turns(const Samples& samples, double turn) {
  double most = 0;
  for (const CtaTimeline& one : samples.all) {
    const double share = one.products / std::max(samples.largest.products, 1.0);
    most = std::max(most, one.turns * turn - samples.largest.chain * (1 - share));
  }
  return most;
}

// CTAs take tiles from one list, each the next one about when it has loaded the last, or ahead, as
// it begins that. When the last CTA ends, by the time when all would end if tiles could be divided.
double end_by_mean(const std::vector<CtaTimeline>& ctas) {
  std::vector<double> list;
  std::size_t turns = 0;
  for (const CtaTimeline& cta : ctas) {
    if (static_cast<std::int64_t>(cta.tiles.size()) > cta.taken) return 1;  // several at a time
    turns = std::max(turns, cta.tiles.size());
  }
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (const CtaTimeline& cta : ctas) {
      if (turn < cta.tiles.size()) list.push_back(cta.tiles[turn]);
    }
  }
  struct Busy {
    double takes = -1, ends = 0;  // its first tile is its own
  };
  std::vector<Busy> busy(ctas.size());
  double all = 0, last = 0;
  for (const double tile : list) {
    Busy& cta = *std::min_element(busy.begin(), busy.end(),
                                  [](const Busy& a, const Busy& b) { return a.takes < b.takes; });
    cta = {ctas.front().takes_ahead ? cta.ends : cta.ends + tile, cta.ends + tile};
    all += tile;
    last = std::max(last, cta.ends);
  }
  return all == 0 ? 1 : last * static_cast<double>(ctas.size()) / all;
}

constexpr double CtaTimeline::*kFields[] = {
    &CtaTimeline::products,       &CtaTimeline::special,       &CtaTimeline::arithmetic,
    &CtaTimeline::shared,         &CtaTimeline::tensor_memory, &CtaTimeline::loads,
    &CtaTimeline::received_bytes, &CtaTimeline::stages,        &CtaTimeline::product_waits,
    &CtaTimeline::pauses,         &CtaTimeline::exposed,       &CtaTimeline::shared_zeros,
    &CtaTimeline::added_bytes,    &CtaTimeline::chain};

Samples follow_samples(const ir::Kernel& machine, const ir::Binding& binding, std::int64_t ctas,
                       const target::Device& device) {
  Samples samples;
  const std::int64_t count = std::min(ctas, kSamples);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t cta = count == 1 ? 0 : i * (ctas - 1) / (count - 1);
    if (machine.cta_pairs) cta -= cta % 2;  // it issues the products of both
    if (samples.largest.counts_for_cluster) cta -= cta % machine.cluster;
    const CtaTimeline one = follow_cta(machine, binding, cta, ctas, device);
    for (const auto field : kFields) {
      samples.mean.*field += one.*field / static_cast<double>(count);
      samples.largest.*field = std::max(samples.largest.*field, one.*field);
    }
    samples.all.push_back(one);
    samples.largest.counts_tiles = one.counts_tiles;
    samples.largest.counts_for_cluster = one.counts_for_cluster;
  }
  samples.last = samples.mean;
  const double longer = end_by_mean(samples.all);
  for (const auto field : kFields) samples.last.*field *= longer;
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
  // CTAs of a cluster that are told their tiles work as the one that asks. A pair's products are
  // issued by its first CTA, and each has half of them.
  CtaTimeline one;
  for (std::int64_t cta = 0; cta < ctas; ++cta) {
    const std::int64_t alike = one.counts_for_cluster ? machine.cluster : machine.cta_pairs ? 2 : 1;
    if (cta % alike == 0) one = follow_cta(machine, binding, cta, ctas, device);
    fma += one.fma;
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

  // The busiest multiprocessor: of CTAs that all run at once the slowest, and of many the mean.
  const auto rounded_up = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>((a + b - 1) / b);
  };
  const target::Device::Reached& reached = device.reached;
  const std::int64_t places = device.multiprocessors * result.resident;
  const CtaTimeline& cta = result.ctas > places           ? samples.mean
                           : samples.largest.counts_tiles ? samples.last
                                                          : samples.largest;
  const double each = rounded_up(result.ctas, device.multiprocessors);
  const double rounds = rounded_up(result.ctas, places);
  const double second = 1 / reached.clock;
  // Of all multiprocessors, that work; of these, of their time.
  const double busy =
      std::min(1.0, static_cast<double>(result.ctas) / static_cast<double>(device.multiprocessors));
  const double used = cta.products > 0 ? busy * samples.mean.products / cta.products : busy;
  result.products = each * cta.products * second * (1 - reached.power * (1 - used));
  result.special = each * cta.special * second;
  result.arithmetic = each * cta.arithmetic * second;
  result.shared = each * cta.shared * second;
  result.tensor_memory = each * cta.tensor_memory * second;
  result.loads = each * second *
                 norm(kLoads, {cta.loads * std::max(busy, reached.l2_idle),
                               cta.received_bytes / reached.received_bytes});
  result.zeros = static_cast<double>(result.ctas) * samples.mean.shared_zeros * second /
                 reached.shared_zero_bytes;
  result.additions = each * cta.added_bytes / reached.added_bytes * second;
  result.stages = each * cta.stages * reached.stage_latency * second;
  result.exposed = cta.products > 0 ? rounds * cta.pauses * second +
                                          each * cta.product_waits * reached.product_wait * second
                                    : rounds * cta.exposed * second;
  result.turns = behind_turns(samples, reached.turn) * second;
  result.memory = tensor_bytes(machine, binding, reached) / reached.memory_bytes;

  // Of a long run's power: none where other units keep the tensor cores waiting.
  const double hindered = norm(kUnits, {result.products, result.special, result.arithmetic});
  if (result.products > 0) {
    result.products *= 1 + reached.slowing * std::pow(result.products / hindered, kPower) *
                               result.products / (result.products + reached.slows_in);
  }

  const bool by_warpgroups = target.has(ir::info(ir::Op::wgmma_ss));
  const std::string& unit =
      target.unit_of(by_warpgroups ? ir::Family::product : ir::Family::tensor_product).name;
  const std::pair<double, std::string> bounds[] = {{result.products, unit},
                                                   {result.special, "special function units"},
                                                   {result.arithmetic, "arithmetic units"},
                                                   {result.tensor_memory, "tensor memory"},
                                                   {result.loads, "loads from L2"},
                                                   {result.zeros, "copies of what no tensor has"},
                                                   {result.additions, "additions to memory"},
                                                   {result.stages, "stages of a ring"},
                                                   {result.exposed, "a warp's own latencies"},
                                                   {result.turns, "turns of a sum"},
                                                   {result.memory, "memory"}};
  result.bound = std::max_element(std::begin(bounds), std::end(bounds))->second;
  // Copies and products go on by themselves. Shared memory is in the products' time; what copies
  // write to it beside was not seen to count.
  const double asynchronous =
      norm(kCopies, {result.products, result.loads, result.zeros, result.stages,
                     result.tensor_memory, result.additions});
  const double work =
      norm(kUnits, {asynchronous, result.special, result.arithmetic}) + result.exposed;
  if (machine.cluster > 1) result.seconds += reached.cluster_seconds;
  result.seconds += norm(kMemory, {work, result.memory}) + result.turns +
                    rounds * target.rates.copy_latency * second;
  return result;
}

}  // namespace tilewright::schedules
