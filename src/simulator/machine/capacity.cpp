#include <fmt/format.h>

#include <algorithm>

#include "simulator/machine/gpu.h"

namespace tilewright::simulator {
namespace {

constexpr std::int64_t kSharedLimit = 232448;  // of a CTA on sm_90 and sm_100
constexpr std::int64_t kBarrierBytes = 8;

struct Place {
  std::string name;
  std::int64_t begin = 0, end = 0;
  SourceLocation where;
};

std::vector<Place> barrier_places(const Program& program) {
  std::vector<Place> places;
  for (const BarrierArray& array : program.barrier_arrays) {
    places.push_back(
        {array.name, array.offset, array.offset + array.count * kBarrierBytes, array.where});
  }
  return places;
}

std::vector<Place> allocation_places(const Program& program) {
  std::vector<Place> places;
  for (const Allocation& allocation : program.allocations) {
    places.push_back({allocation.name, allocation.offset, allocation.offset + allocation.bytes(),
                      allocation.where});
  }
  return places;
}

void check_shared(const Program& program, const std::vector<Place>& places, FaultLog& log) {
  std::string list;
  for (const Place& place : places) {
    list += fmt::format("\n  {:#x}..{:#x}  {}", place.begin, place.end - 1, place.name);
  }
  if (program.shared_bytes > kSharedLimit) {
    log.add({"capacity",
             places.empty() ? SourceLocation{} : places.front().where,
             {},
             fmt::format("capacity: {} asks for {} bytes of shared memory, a CTA has {}{}",
                         program.kernel, program.shared_bytes, kSharedLimit, list),
             {}});
  }
  for (const Place& place : places) {
    if (place.begin >= 0 && place.end <= program.shared_bytes) continue;
    log.add({"capacity",
             place.where,
             {},
             fmt::format("capacity: {} lies at {:#x}..{:#x}, the kernel has {:#x} bytes of shared "
                         "memory{}",
                         place.name, place.begin, place.end - 1, program.shared_bytes, list),
             {}});
  }
}

// Allocations may share bytes when their lives do not meet; barriers share with nothing.
void check_barriers(const std::vector<Place>& barriers, const std::vector<Place>& allocations,
                    FaultLog& log) {
  const auto refuse = [&](const Place& barrier, const Place& other) {
    if (barrier.begin >= other.end || other.begin >= barrier.end) return;
    log.add({"capacity",
             barrier.where,
             other.where,
             fmt::format("capacity: barriers {} at {:#x}..{:#x} overlap {} at {:#x}..{:#x}",
                         barrier.name, barrier.begin, barrier.end - 1, other.name, other.begin,
                         other.end - 1),
             {}});
  };
  for (std::size_t i = 0; i < barriers.size(); ++i) {
    for (const Place& other : allocations) refuse(barriers[i], other);
    for (std::size_t j = i + 1; j < barriers.size(); ++j) refuse(barriers[i], barriers[j]);
  }
}

// What the warp holds in the end. Warps in no role do as the roles of their warpgroup do.
int registers_of(const Program& program, int warp) {
  int registers = program.roles[program.role_of_warp[warp]].registers;
  for (int other = warp / 4 * 4; other < std::min(warp / 4 * 4 + 4, program.warps); ++other) {
    if (registers == 0) registers = program.roles[program.role_of_warp[other]].registers;
  }
  return registers ? registers : program.launch_registers;
}

void check_registers(const Program& program, FaultLog& log) {
  int wanted = 0;
  std::string list;
  std::vector<const Role*> roles;  // those that ask for most first
  for (int warp = 0; warp < program.warps; ++warp) {
    wanted += kLanes * registers_of(program, warp);
  }
  for (std::size_t i = 1; i < program.roles.size(); ++i) {
    const Role& role = program.roles[i];
    list += fmt::format("\n  {}: {} warps of {} registers a thread", role.name, role.warps,
                        registers_of(program, role.first_warp));
    roles.push_back(&role);
  }
  std::stable_sort(roles.begin(), roles.end(), [](const Role* a, const Role* b) {
    return a->warps * a->registers > b->warps * b->registers;
  });
  const int held = program.warps * kLanes * program.launch_registers;
  if (wanted <= held) return;
  log.add({"capacity",
           roles.empty() ? SourceLocation{} : roles[0]->where,
           roles.size() < 2 ? SourceLocation{} : roles[1]->where,
           fmt::format("capacity: the warps of {} ask for {} registers, its {} threads hold {} ({} "
                       "each){}",
                       program.kernel, wanted, program.warps * kLanes, held,
                       program.launch_registers, list),
           {}});
}

}  // namespace

void check_capacity(const Program& program, FaultLog& log) {
  const std::vector<Place> barriers = barrier_places(program);
  std::vector<Place> places = allocation_places(program);
  check_barriers(barriers, places, log);
  places.insert(places.end(), barriers.begin(), barriers.end());
  check_shared(program, places, log);
  check_registers(program, log);
}

}  // namespace tilewright::simulator
