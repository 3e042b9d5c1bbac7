#include "ptx/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace tilewright::ptx {
namespace {

constexpr std::uint64_t kHandle = 0x70616d2d78747054u;

[[noreturn]] void raise(std::string kind, int line, std::string message) {
  throw Failure{{std::move(kind), line, std::move(message)}};
}

// Each warp has a clock of all of them.
constexpr std::int64_t kMostWarps = 1 << 20;

}  // namespace

std::int64_t volume(const std::array<std::int64_t, 3>& extents) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  std::int64_t product = 1;
  for (const std::int64_t extent : extents)
    product = std::min(product * std::min(extent, kMost), kMost);
  return product;
}

std::array<std::byte, 128> handle_of(std::size_t map) {
  std::array<std::byte, 128> handle{};
  const std::uint64_t words[] = {kHandle, map, ~std::uint64_t{map}};
  std::memcpy(handle.data(), words, sizeof(words));
  return handle;
}

const Lanes& Execution::read_other(const Operand& operand, std::size_t number) {
  Lanes& scratch = machine.scratch[number % machine.scratch.size()];
  switch (operand.kind) {
    case Operand::Kind::reg: {
      const std::int64_t group = warp.product_of[operand.index];
      if (group > warp.groups_over && instruction.record->name != "mov") {
        fail("wgmma", "reads a register of a product before a wait_group that covers it");
      }
      const Lanes& value = warp.registers[operand.index];
      if (!operand.negated) return value;
      for (int lane = 0; lane < kLanes; ++lane) scratch[lane] = value[lane] ^ 1;
      return scratch;
    }
    case Operand::Kind::constant:
      return machine.kernel.constants[operand.index];
    case Operand::Kind::symbol:
      scratch.fill(machine.address_of(warp, operand.index));
      return scratch;
    case Operand::Kind::special:
      break;
    case Operand::Kind::address:
    case Operand::Kind::vector:
    case Operand::Kind::sink:
    case Operand::Kind::label:
      unsupported();
  }
  const LaunchInput& input = machine.input;
  const auto coordinate = [](std::int64_t at, const std::array<std::int64_t, 3>& extent, int axis) {
    const std::int64_t parts[] = {at % extent[0], at / extent[0] % extent[1],
                                  at / (extent[0] * extent[1])};
    return static_cast<std::uint64_t>(parts[axis]);
  };
  const auto grid = [&](int axis) { return coordinate(cta().index, input.grid, axis); };
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto thread = [&](int axis) {
      return coordinate(warp.index * kLanes + lane, input.block, axis);
    };
    std::uint64_t& value = scratch[lane];
    switch (static_cast<Special>(operand.index)) {
      case Special::tid_x:
      case Special::tid_y:
      case Special::tid_z:
        value = thread(operand.index - static_cast<int>(Special::tid_x));
        break;
      case Special::ntid_x:
      case Special::ntid_y:
      case Special::ntid_z:
        value = input.block[operand.index - static_cast<int>(Special::ntid_x)];
        break;
      case Special::ctaid_x:
      case Special::ctaid_y:
      case Special::ctaid_z:
        value = grid(operand.index - static_cast<int>(Special::ctaid_x));
        break;
      case Special::nctaid_x:
      case Special::nctaid_y:
      case Special::nctaid_z:
        value = input.grid[operand.index - static_cast<int>(Special::nctaid_x)];
        break;
      case Special::laneid:
        value = lane;
        break;
      case Special::warpid:
        value = warp.index;
        break;
      case Special::clusterid_x:
        value = cta().index / input.cluster;
        break;
      case Special::nclusterid_x:
        value = input.grid[0] / input.cluster;
        break;
      case Special::cluster_ctarank:
        value = cta().rank;
        break;
      case Special::cluster_nctarank:
        value = input.cluster;
        break;
      case Special::clock:
      case Special::clock64:
      case Special::globaltimer:
        value = machine.report.operations & 0xffffffff;
        break;
      case Special::smid:
        value = 0;
        break;
    }
  }
  return scratch;
}

Lanes& Execution::target_other(const Operand& operand) {
  static Lanes nowhere;
  if (operand.kind != Operand::Kind::sink) unsupported();
  return nowhere;
}

std::uint64_t Execution::uniform(std::size_t number) {
  const Lanes& value = read(number);
  const std::uint64_t first = value[first_lane()];
  for_lanes(lanes, [&](int lane) {
    if (value[lane] != first)
      fail("divergence", fmt::format("operand {} differs from lane to lane", number));
  });
  return first;
}

const Lanes& Execution::addresses(const Operand& operand) {
  const Operand& base = operand.parts.at(0);
  const Lanes& from = read(base, 7);
  const bool narrow =
      base.kind == Operand::Kind::reg && size_of(machine.kernel.register_types[base.index]) == 4;
  Lanes& sum = machine.scratch[6];
  for (int lane = 0; lane < kLanes; ++lane) {
    sum[lane] = from[lane] + static_cast<std::uint64_t>(operand.offset);
    if (narrow) sum[lane] &= 0xffffffff;
  }
  return sum;
}

void Execution::need_whole_warp() const {
  if (lanes == warp.live) return;
  fail("divergence", fmt::format("is executed by lanes {:#x} of {:#x} alone", lanes, warp.live));
}

void Execution::record(EventKind kind, std::vector<std::int64_t> values) const {
  warp.events->push_back({kind, lanes, instruction.line, std::move(values)});
}

void Execution::fail(const std::string& kind, const std::string& what) const {
  raise(kind, instruction.line,
        fmt::format("{}: {} {}, {}", kind, instruction.record->name, what, machine.describe(warp)));
}

void Execution::unsupported() const {
  fail("unsupported", "of these types, modifiers or operands is not executed here");
}

Machine::Machine(const Kernel& kernel, const LaunchInput& input, LaunchReport& report)
    : kernel(kernel), input(input), report(report), random(input.seed), memory_(input.memory) {
  parameters.resize(static_cast<std::size_t>(kernel.parameter_bytes));
  const auto refuse = [&](const std::string& what) {
    raise("launch", kernel.line, "launch: " + what);
  };
  if (input.parameters.size() != kernel.parameters.size()) {
    refuse(fmt::format("{} has {} parameters, and {} are given", kernel.name,
                       kernel.parameters.size(), input.parameters.size()));
  }
  for (std::size_t i = 0; i < input.parameters.size(); ++i) {
    const Variable& parameter = kernel.parameters[i];
    if (static_cast<std::int64_t>(input.parameters[i].size()) != parameter.bytes) {
      refuse(fmt::format("{} has {} bytes, and {} are given", parameter.name, parameter.bytes,
                         input.parameters[i].size()));
    }
    std::copy(input.parameters[i].begin(), input.parameters[i].end(),
              parameters.begin() + parameter.offset);
  }
  const std::int64_t threads = volume(input.block);
  const std::int64_t most = volume(kernel.most_threads);
  if (threads < 1 || threads > 1024 || (most > 0 && threads > most)) {
    refuse(fmt::format("{} threads a CTA", threads));
  }
  const std::int64_t ctas = volume(input.grid);
  if (ctas * ((threads + kLanes - 1) / kLanes) > kMostWarps) {
    refuse(fmt::format("a grid of more than {} warps", kMostWarps));
  }
  if (ctas < 1 || input.cluster < 1 || input.cluster > 16 || ctas % input.cluster != 0) {
    refuse(fmt::format("{} CTAs in clusters of {}", ctas, input.cluster));
  }
  for (const WordTurn& turn : input.turns) turns[turn.address].push_back(turn);
  std::int64_t alignment = 1;
  for (const Variable& symbol : kernel.symbols) {
    std::vector<std::byte> bytes;
    if (symbol.space == Space::global) {
      bytes = symbol.initial;
      bytes.resize(static_cast<std::size_t>(symbol.bytes));
    }
    if (symbol.space == Space::shared) alignment = std::max(alignment, symbol.alignment);
    variables_.push_back(std::move(bytes));
    if (symbol.space != Space::global) continue;
    const auto begin = reinterpret_cast<std::uint64_t>(variables_.back().data());
    memory_.push_back({symbol.name, begin, begin + static_cast<std::uint64_t>(symbol.bytes)});
  }
  std::sort(memory_.begin(), memory_.end(),
            [](const Region& a, const Region& b) { return a.begin < b.begin; });
  shared_bytes_ = (kernel.static_shared_bytes + alignment - 1) / alignment * alignment +
                  input.dynamic_shared_bytes;
  report.events.resize(static_cast<std::size_t>(ctas * ((threads + kLanes - 1) / kLanes)));
}

std::string Machine::describe(const Warp& warp) const {
  return fmt::format("warp {} of CTA {}", warp.index, warp.cta->index);
}

void Machine::start_warp(Warp& warp) {
  const std::int64_t threads = input.block[0] * input.block[1] * input.block[2];
  const std::int64_t lanes = std::min<std::int64_t>(threads - warp.index * kLanes, kLanes);
  warp.live = lanes == kLanes ? ~std::uint32_t{0} : (std::uint32_t{1} << lanes) - 1;
  Path path;
  path.lanes = warp.live;
  path.join = -1;
  warp.paths.push_back(path);
  // What nobody writes is a NaN, and no address.
  Lanes nothing;
  nothing.fill(0x7fc0dead7fc0dead);
  warp.registers.assign(static_cast<std::size_t>(kernel.registers), nothing);
  for (int i = 0; i < kernel.registers; ++i) {
    const int bytes = size_of(kernel.register_types[i]);
    const std::uint64_t mask = kernel.register_types[i] == Type::pred ? 1
                               : bytes >= 8                           ? ~std::uint64_t{0}
                                            : (std::uint64_t{1} << bytes * 8) - 1;
    for (std::uint64_t& lane : warp.registers[i]) lane &= mask;
  }
  warp.product_of.assign(static_cast<std::size_t>(kernel.registers), 0);
  warp.fence_of.assign(static_cast<std::size_t>(kernel.registers), 1);
  warp.local.resize(kernel.local_bytes > 0 ? kLanes : 0);
  for (auto& bytes : warp.local) bytes.resize(static_cast<std::size_t>(kernel.local_bytes));
}

void Machine::start(std::int64_t number) {
  auto cluster = std::make_unique<Cluster>();
  cluster->number = number;
  const std::int64_t threads = input.block[0] * input.block[1] * input.block[2];
  const std::int64_t warps = (threads + kLanes - 1) / kLanes;
  for (std::int64_t rank = 0; rank < input.cluster; ++rank) {
    auto cta = std::make_unique<Cta>();
    cta->index = number * input.cluster + rank;
    cta->rank = rank;
    cta->cluster = cluster.get();
    cta->shared.resize(static_cast<std::size_t>(shared_bytes_));
    cta->held.resize(static_cast<std::size_t>(shared_bytes_));
    if (input.check_order) {
      cta->touched.resize(cta->shared.size());
      cta->reads.resize(cta->shared.size() * static_cast<std::size_t>(warps * input.cluster) *
                        kReaders);
    }
    cta->live = threads;
    cta->warps.resize(static_cast<std::size_t>(warps));
    for (std::size_t w = 0; w < cta->warps.size(); ++w) {
      Warp& warp = cta->warps[w];
      warp.cta = cta.get();
      warp.index = static_cast<int>(w);
      warp.number = static_cast<int>(rank * warps) + warp.index;
      warp.launch_number = static_cast<int>(number * input.cluster * warps) + warp.number;
      if (input.check_order) {
        const std::int64_t ctas = input.grid[0] * input.grid[1] * input.grid[2];
        warp.clock.assign(static_cast<std::size_t>(ctas * warps) * kAgents, 0);
        warp.clock[static_cast<std::size_t>(warp.launch_number)] = 1;
      }
      warp.events = &report.events[static_cast<std::size_t>(cta->index * warps) + w];
      start_warp(warp);
    }
    cluster->live += threads;
    cluster->ctas.push_back(std::move(cta));
  }
  clusters_.push_back(std::move(cluster));
}

std::int64_t Machine::take_over(Cluster& cluster) const {
  const auto taken = input.taken.find(cluster.number);
  const std::size_t asked = cluster.asked++;
  return taken != input.taken.end() && asked < taken->second.size() ? taken->second[asked] : -1;
}

void Machine::run() {
  const std::int64_t count = input.grid[0] * input.grid[1] * input.grid[2] / input.cluster;
  std::vector<std::int64_t> order = input.order;
  if (order.empty()) {
    order.resize(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
  }
  std::int64_t room = input.resident;
  for (std::size_t next = 0;;) {
    while (next < order.size() && static_cast<std::int64_t>(clusters_.size()) < room) {
      start(order[next++]);
    }
    if (clusters_.empty()) return;
    const bool by_chance = input.seed != 0;
    const bool any = run_round(by_chance);
    std::erase_if(clusters_, [](const auto& cluster) { return cluster->live == 0; });
    if (any || clusters_.empty()) continue;
    if (by_chance && run_round(false)) continue;  // nobody had a turn
    if (finish_one()) continue;
    if (next < order.size() && room < input.most_resident && polls_memory()) {
      ++room;
    } else if (!poll_again()) {
      deadlock();
    }
  }
}

// What other CTAs write: no other one comes to a barrier of these.
bool Machine::polls_memory() const {
  const auto reads_memory = [this](const Poll& poll) {
    return !kernel.instructions[static_cast<std::size_t>(poll.pc)].record->name.starts_with(
        "mbarrier");
  };
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      for (const Warp& warp : cta->warps) {
        if (warp.live != 0 && std::any_of(warp.polls.begin(), warp.polls.end(), reads_memory)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool Machine::run_round(bool by_chance) {
  constexpr std::int64_t kTurn = 4096;
  bool any = false;
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      for (Warp& warp : cta->warps) {
        std::int64_t turn = kTurn;
        if (by_chance) {
          if (random.below(2) == 0) continue;
          // Short turns and long ones, so that any warp may be far ahead of any other.
          turn = 1 + random.below(random.below(2) == 0 ? 8 : 128);
        }
        any = run_warp(warp, turn) || any;
      }
    }
  }
  return any;
}

bool Machine::finish_one() {
  if (under_way.empty()) return false;
  const std::size_t which = input.seed == 0 ? 0 : random.below(under_way.size());
  const UnderWay next_over = under_way[which];
  under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
  next_over.finish();
  return true;
}

void Machine::deadlock() {
  constexpr int kShown = 8, kShownOfCta = 2;
  std::string text = "deadlock: nothing can go on";
  int line = 0, shown = 0, more = 0;
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      int of_cta = 0;
      for (const Warp& warp : cta->warps) {
        for (const Path& path : warp.paths) {
          if (path.over || path.below > 0) continue;
          const Instruction& instruction = kernel.instructions[path.pc];
          if (line == 0) line = instruction.line;
          if (of_cta == kShownOfCta || shown == kShown) {
            ++more;
            continue;
          }
          ++of_cta, ++shown;
          text += fmt::format("\n  {}, lanes {:#x}: {} in line {}", describe(warp), path.lanes,
                              instruction.record->name, instruction.line);
        }
      }
    }
  }
  if (more > 0) text += fmt::format("\n  and {} more", more);
  raise("deadlock", line, text);
}

bool Machine::run_warp(Warp& warp, std::int64_t turn) {
  bool any = false;
  for (std::size_t p = warp.paths.size(); p-- > 0;) {
    for (std::int64_t i = 0; i < turn; ++i) {
      if (p >= warp.paths.size() || warp.paths[p].over || warp.paths[p].below > 0) break;
      const std::int64_t before = report.operations;
      step(warp, p);
      if (report.operations == before) break;
      any = true;
    }
  }
  return any;
}

void Machine::end_lanes(Warp& warp, std::uint32_t lanes) {
  warp.live &= ~lanes;
  const int count = std::popcount(lanes);
  warp.cta->live -= count;
  warp.cta->cluster->live -= count;
  Cluster& cluster = *warp.cta->cluster;
  if (cluster.arrived > 0 && cluster.arrived >= cluster.live) {  // what has ended is not waited for
    cluster.arrived = 0;
    cluster.complete = cluster.arriving;
    ++cluster.generation;
  }
  for (Path& path : warp.paths) path.lanes &= warp.live;
  if (warp.live != 0) return;
  if (warp.last_product > warp.groups_over) {
    raise("wgmma", warp.product_line,
          "wgmma: a product is in flight when its warp ends, " + describe(warp));
  }
  finish_copies(*this, warp);
  finish_all_stores(*this, warp);
  if (warp.cta->live != 0) return;
  for (const UnderWay& each : under_way) {
    if (each.to != warp.cta) continue;
    raise("exit", each.instruction->line,
          fmt::format("exit: a copy to CTA {} is under way when it ends", warp.cta->index));
  }
}

// The path is over where it meets the one above it, or has no lanes left.
void Machine::arrive_at_join(Warp& warp, std::size_t number) {
  for (int at = static_cast<int>(number); at >= 0;) {
    Path& path = warp.paths[at];
    if (path.over || path.below > 0) break;
    if (path.lanes != 0 && path.pc != path.join) break;
    path.over = true;
    at = path.above;
    if (at >= 0) --warp.paths[at].below;
  }
  while (!warp.paths.empty() && warp.paths.back().over) warp.paths.pop_back();
}

void Machine::step(Warp& warp, std::size_t number) {
  const auto end = static_cast<int>(kernel.instructions.size());
  if (warp.paths[number].pc >= end) {
    end_lanes(warp, warp.paths[number].lanes);
    ++report.operations;
    return arrive_at_join(warp, number);
  }
  const Instruction& instruction = kernel.instructions[warp.paths[number].pc];
  std::uint32_t lanes = warp.paths[number].lanes;
  if (instruction.guard >= 0) {
    const Lanes& guard = warp.registers[instruction.guard];
    std::uint32_t holds = 0;
    for_lanes(lanes, [&](int lane) {
      holds |= static_cast<std::uint32_t>((guard[lane] & 1) != instruction.guard_negated) << lane;
    });
    lanes = holds;
  }
  if (++report.operations > input.most_operations) {
    raise(
        "hang", instruction.line,
        fmt::format("hang: more than {} instructions, {}", input.most_operations, describe(warp)));
  }
  if (instruction.target >= 0) {
    Path& path = warp.paths[number];
    const std::uint32_t others = path.lanes & ~lanes;
    const int next = path.pc + 1;
    if (lanes == 0 || others == 0) {
      path.pc = lanes == 0 ? next : instruction.target;
      return arrive_at_join(warp, number);
    }
    path.pc = instruction.join;
    for (const auto& [part, pc] : {std::pair(others, next), std::pair(lanes, instruction.target)}) {
      if (pc == instruction.join) continue;
      ++warp.paths[number].below;
      Path part_path;
      part_path.lanes = part;
      part_path.pc = pc;
      part_path.join = instruction.join;
      part_path.above = static_cast<int>(number);
      warp.paths.push_back(part_path);
    }
    return;
  }
  if (lanes == 0) {
    ++warp.paths[number].pc;
    return arrive_at_join(warp, number);
  }
  Execution execution{*this, warp, warp.paths[number], instruction, lanes};
  execution.next = warp.paths[number].pc + 1;
  instruction.record->execute(execution);
  if (execution.again) {
    --report.operations;
    return;
  }
  Path& path = warp.paths[number];
  path.pc = execution.next;
  if (execution.ends) end_lanes(warp, lanes);
  arrive_at_join(warp, number);
}

LaunchReport execute(const Kernel& kernel, const LaunchInput& input) {
  LaunchReport report;
  try {
    Machine(kernel, input, report).run();
  } catch (const Failure& failure) {
    report.faults.push_back(failure.fault);
  }
  return report;
}

}  // namespace tilewright::ptx
