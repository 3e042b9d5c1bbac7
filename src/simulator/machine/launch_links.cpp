#include <algorithm>

#include "simulator/machine/cycle_costs.h"
#include "simulator/machine/launch_trace.h"

// What it costs that memory is another rank's.
namespace tilewright::simulator {

int LaunchTrace::peer_with(const std::byte* address) const {
  if (!has_peers()) return -1;
  const int rank = context_.links.rank_of(address);
  return rank == launch_->place.rank ? -1 : rank;
}

int LaunchTrace::peer_with(const Warp& warp, const TensorArgument& tensor, Slot rank) const {
  if (rank == ir::kNoValue || tensor.peers.empty()) return peer_with(tensor.data);
  const std::int64_t number = warp.integer(rank);
  if (number < 0 || number >= static_cast<std::int64_t>(tensor.peers.size())) return -1;
  return peer_with(tensor.peers[static_cast<std::size_t>(number)]);
}

// A multiprocessor's bytes leave one after the other, and what comes behind them waits for the wire
// as well.
std::int64_t LaunchTrace::push(CtaState& cta, int peer, std::int64_t bytes, bool adds,
                               std::int64_t from) {
  LinkTimes& links = context_.links;
  const auto own = static_cast<std::int64_t>(static_cast<double>(bytes) / links.link().sent);
  const std::int64_t start = cta.to_peers.reserve(from, own);
  const std::int64_t on_wire = links.send(launch_->place.rank, peer, bytes,
                                          adds ? links.link().reduced : links.link().stored, start);
  const std::int64_t end = std::max(start + own, on_wire);
  cta.to_peers.hold(start + own, end);
  cta.arrived = std::max(cta.arrived, end + links.cycles(links.link().arrival));
  ends_at(cta.arrived);
  return end;
}

// The question takes as long as the answer's way.
std::int64_t LaunchTrace::pull(int peer, std::int64_t bytes, std::int64_t from) {
  LinkTimes& links = context_.links;
  const std::int64_t way = links.cycles(links.link().answer) / 2;
  return links.send(peer, launch_->place.rank, bytes, links.link().loaded, from + way) + way;
}

std::int64_t LaunchTrace::access_cycles(const Warp& warp, CtaState& cta, WarpState& state,
                                        const Instruction& instruction) {
  const PreparedKernel& kernel = launch_->kernel;
  const std::int64_t cycles = issue_cycles(kernel, instruction);
  const GlobalAccess& access = kernel.global_accesses[instruction.detail];
  const int peer = peer_with(warp, *access.tensor, access.rank);
  if (peer < 0) return cycles;
  const std::int64_t bytes = warp_bytes(kernel.registers[access.array]);
  if (ir::info(instruction.op).writes(ir::Memory::registers)) {
    return std::max(cycles, pull(peer, bytes, state.clock) - state.clock);
  }
  // What has no place on its way keeps the warp.
  const std::int64_t end = push(cta, peer, bytes, access.atomic, state.clock);
  const auto own =
      static_cast<std::int64_t>(static_cast<double>(bytes) / context_.links.link().sent);
  return std::max(cycles, end - own - state.clock);
}

// A release asks the others whether what its CTA has sent is there. The question goes the same way
// out, behind what all multiprocessors have sent.
std::int64_t LaunchTrace::release_cycles(const CtaState& cta, const WarpState& state) const {
  const LinkTimes& links = context_.links;
  const std::int64_t left = links.left(launch_->place.rank, state.clock);
  const std::int64_t asked = left == state.clock ? left : left + links.cycles(links.link().arrival);
  return std::max(cta.arrived, asked) - state.clock + links.cycles(links.link().release);
}

std::int64_t LaunchTrace::word_cycles(const Warp& warp, const CtaState& cta, const WarpState& state,
                                      const Instruction& instruction) const {
  std::int64_t cycles = issue_cycles(launch_->kernel, instruction);
  if (!has_peers()) return cycles;
  const WordAccess& access = launch_->kernel.words[instruction.detail];
  const Semantics semantics = access.order.semantics;
  const bool releases = semantics == Semantics::release || semantics == Semantics::acq_rel;
  if (releases && access.order.scope == Scope::system &&
      ir::info(instruction.op).writes(ir::Memory::global)) {
    cycles += release_cycles(cta, state);
  }
  const TensorArgument& tensor = launch_->arguments.tensors[access.tensor];
  if (access.takes && peer_with(warp, tensor, access.rank) >= 0) {
    cycles += context_.links.cycles(context_.links.link().answer);
  }
  return cycles;
}

std::int64_t LaunchTrace::fence_cycles(const CtaState& cta, const WarpState& state,
                                       const Instruction& instruction) const {
  const std::int64_t cycles = issue_cycles(launch_->kernel, instruction);
  const bool of_system = ir::as<ir::FenceOp>(instruction.op) == ir::FenceOp::fence &&
                         static_cast<Scope>(instruction.value) == Scope::system;
  return has_peers() && of_system ? cycles + release_cycles(cta, state) : cycles;
}

}  // namespace tilewright::simulator
