#include <fmt/format.h>

#include <algorithm>

#include "simulator/machine/launch.h"

namespace tilewright::simulator {
namespace {

struct Place {
  std::string name;
  std::int64_t begin = 0, end = 0;
  SourceLocation where;
};

std::vector<Place> barrier_places(const PreparedKernel& kernel) {
  std::vector<Place> places;
  const std::int64_t bytes = kernel.target->limits.barrier_bytes;
  for (const BarrierArray& array : kernel.barrier_arrays) {
    places.push_back({array.name, array.offset, array.offset + array.count * bytes, array.where});
  }
  return places;
}

std::vector<Place> allocation_places(const PreparedKernel& kernel) {
  std::vector<Place> places;
  for (const Allocation& allocation : kernel.allocations) {
    places.push_back({allocation.name, allocation.offset, allocation.offset + allocation.bytes(),
                      allocation.where});
  }
  return places;
}

void check_shared(const PreparedKernel& kernel, const std::vector<Place>& places, FaultLog& log) {
  const target::Space& space = kernel.target->space(ir::Memory::shared);
  std::string list;
  for (const Place& place : places) {
    list += fmt::format("\n  {:#x}..{:#x}  {}", place.begin, place.end - 1, place.name);
  }
  if (kernel.shared_bytes > space.bytes) {
    log.add({"capacity",
             places.empty() ? SourceLocation{} : places.front().where,
             {},
             fmt::format("capacity: {} asks for {} bytes of {}, {} has {}{}", kernel.name,
                         kernel.shared_bytes, space.name, space.owner, space.bytes, list),
             {}});
  }
  for (const Place& place : places) {
    if (place.begin >= 0 && place.end <= kernel.shared_bytes) continue;
    log.add({"capacity",
             place.where,
             {},
             fmt::format("capacity: {} lies at {:#x}..{:#x}, the kernel has {:#x} bytes of shared "
                         "memory{}",
                         place.name, place.begin, place.end - 1, kernel.shared_bytes, list),
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

// What the warp holds in the end.
int registers_of(const PreparedKernel& kernel, int warp) {
  const int registers = kernel.registers_of_warp[warp];
  return registers ? registers : kernel.launch_registers;
}

void check_registers(const PreparedKernel& kernel, FaultLog& log) {
  int wanted = 0;
  std::string list;
  std::vector<const Role*> roles;  // those that ask for most first
  for (int warp = 0; warp < kernel.warps; ++warp) {
    wanted += kLanes * registers_of(kernel, warp);
  }
  for (std::size_t i = 1; i < kernel.roles.size(); ++i) {
    const Role& role = kernel.roles[i];
    list += fmt::format("\n  {}: {} warps of {} registers a thread", role.name, role.warps,
                        registers_of(kernel, role.first_warp));
    roles.push_back(&role);
  }
  std::stable_sort(roles.begin(), roles.end(), [&](const Role* a, const Role* b) {
    return a->warps * registers_of(kernel, a->first_warp) >
           b->warps * registers_of(kernel, b->first_warp);
  });
  const int held = kernel.warps * kLanes * kernel.launch_registers;
  if (wanted <= held) return;
  log.add(
      {"capacity",
       roles.empty() ? SourceLocation{} : roles[0]->where,
       roles.size() < 2 ? SourceLocation{} : roles[1]->where,
       fmt::format("capacity: the warps of {} ask for {} registers, its {} threads hold {} ({} "
                   "each){}",
                   kernel.name, wanted, kernel.warps * kLanes, held, kernel.launch_registers, list),
       {}});
}

}  // namespace

void check_capacity(const PreparedKernel& kernel, FaultLog& log) {
  const std::vector<Place> barriers = barrier_places(kernel);
  std::vector<Place> places = allocation_places(kernel);
  check_barriers(barriers, places, log);
  places.insert(places.end(), barriers.begin(), barriers.end());
  check_shared(kernel, places, log);
  check_registers(kernel, log);
}

}  // namespace tilewright::simulator
