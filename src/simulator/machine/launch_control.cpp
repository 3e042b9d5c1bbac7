#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "simulator/machine/launch.h"

// Cluster launch control (PTX ISA 9.0): a cluster that runs takes over the place of one that has
// not started. What the answer is drawn from are the clusters that have not, and that there are
// none.
namespace tilewright::simulator {
namespace {

constexpr std::int64_t kBytes = 16;  // of an answer

// Which bits an answer has is not known but to query_cancel.
std::array<std::int32_t, 4> bits_of(std::int64_t cta) {
  return {cta >= 0 ? 1 : 0, static_cast<std::int32_t>(cta >= 0 ? cta : 0x5a5a5a5a), 0, 0};
}

void refuse(Launch& launch, const Warp& warp, const Instruction& instruction,
            const std::string& what, std::string missing) {
  launch.log.add(
      {"launch_control",
       instruction.where(),
       {},
       fmt::format("launch control: {}\n{}", what, launch.access("issue", instruction, warp)),
       std::move(missing)});
}

// -1 after a fault.
std::int64_t place_of(Launch& launch, const Warp& warp, const Instruction& instruction) {
  const std::int64_t address =
      launch.kernel.allocations[instruction.object].offset + 4 * warp.integer(instruction.a);
  const bool usable = launch.inside(warp, instruction, instruction.object, address, kBytes) &&
                      launch.aligned(warp, instruction, instruction.object, address, kBytes);
  return usable ? address : -1;
}

void request(Launch& launch, Warp& warp, const Instruction& instruction) {
  if (warp.cta->cluster->has_seen_none) {
    return refuse(launch, warp, instruction, "asks again after an answer of none",
                  "a condition: no try_cancel behind a query_cancel that gave -1");
  }
  const std::int64_t address = place_of(launch, warp, instruction);
  const int barrier =
      find_barrier(launch, warp, instruction, instruction.detail, warp.integer(instruction.b));
  if (address < 0 || barrier < 0) return;
  const auto answer = std::make_shared<std::optional<std::int64_t>>();
  for (const auto& cta : warp.cta->cluster->ctas) {
    if (cta->live == 0) {
      refuse(launch, warp, instruction,
             fmt::format("an answer to CTA {}, which has ended", cta->index),
             "cluster_sync before the kernel ends");
      continue;
    }
    if (!usable(launch, warp, instruction, *cta, barrier)) continue;
    const int agent = launch.order.agents().at(cta->cluster_rank(), Agents::Kind::phases, barrier);
    const auto epoch = static_cast<Epoch>(cta->barriers[barrier].phase + 1);
    const Access access =
        launch.order.by_unit(warp, instruction, {true, /*async=*/true, false}, agent, epoch);
    launch.order.shared(warp, access, *cta, instruction.object, address, kBytes);
    ForeignUse use;
    use.access = access;
    use.verb = "write";
    use.barrier = agent;
    use.phase = epoch;
    use.by_access = false;
    cta->foreign_uses.add(std::move(use));
    cta->shared.poison(address, kBytes);
    Event event;
    event.kind = Event::Kind::answer;
    event.issuer = &warp;
    event.instruction = &instruction;
    event.destination = event.signalled = cta.get();
    event.address = address;
    event.access = access;
    event.barrier = barrier;
    event.phase = cta->barriers[barrier].phase;
    event.timed =
        launch.timing.issue(warp, instruction, *cta, barrier, kBytes, launch.kernel.cluster > 1);
    event.answer = answer;
    launch.add_event(std::move(event));
  }
}

void look(Launch& launch, Warp& warp, const Instruction& instruction) {
  Cta& cta = *warp.cta;
  std::int64_t taken = -1;
  const std::int64_t address = place_of(launch, warp, instruction);
  if (address >= 0) {
    launch.order.shared(warp, launch.order.by_threads(warp, instruction, {}), cta,
                        instruction.object, address, kBytes);
    launch.check_held(warp, instruction, cta, instruction.object, address, kBytes);
    std::array<std::int32_t, 4> bits{};
    std::memcpy(bits.data(), cta.shared.at(address), kBytes);
    if (bits[0] == 1) taken = bits[1];
  }
  if (taken < 0) cta.cluster->has_seen_none = true;
  warp.scalars[instruction.b] = {taken, static_cast<double>(taken)};
}

}  // namespace

void answer_cancel(Launch& launch, const Event& event) {
  if (!*event.answer) *event.answer = launch.take_over(*event.issuer->cta->cluster);
  const std::array<std::int32_t, 4> bits = bits_of(**event.answer);
  event.destination->shared.write(event.address, reinterpret_cast<const std::byte*>(bits.data()),
                                  kBytes);
  complete_tx(launch, event, kBytes, launch.kernel.cluster > 1);
}

void control_launch(Launch& launch, Warp& warp, const Instruction& instruction) {
  switch (ir::as<ir::LaunchControlOp>(instruction.op)) {
    case ir::LaunchControlOp::try_cancel:
      return request(launch, warp, instruction);
    case ir::LaunchControlOp::query_cancel:
      return look(launch, warp, instruction);
  }
}

}  // namespace tilewright::simulator
