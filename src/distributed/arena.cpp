#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed/members.h"
#include "distributed/packing.h"
#include "distributed/shared_block.h"
#include "distributed/shared_failure.h"
#include "support/diagnostic.h"
#include "support/held.h"
#include "tilewright/distributed.h"

namespace tilewright {
namespace {

using distributed::Frame;
using distributed::SharedBlock;
using distributed::SharedFailure;
using distributed::SharedHandle;
using distributed::SharedMemory;

std::string of_rank(const std::string& name, int rank) {
  return fmt::format("{} of rank {}", name, rank);
}

// What each rank asks for is what this one does.
void require_same(const Group& group, const std::string& operation, const std::string& asked,
                  const std::vector<std::string>& all) {
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string& other = all[static_cast<std::size_t>(rank)];
    if (other == asked) continue;
    Diagnostic({}, fmt::format("{}: rank {} asks for {}, and rank {} for {}", operation, rank,
                               other, group.rank(), asked))
        .fix("the same in all ranks")
        .raise();
  }
}

// Makes this rank's block, and maps those of the others of its node.
std::vector<std::unique_ptr<SharedBlock>> share(const Group& group, const SharedMemory& memory,
                                                std::size_t bytes, const std::string& name) {
  const std::string operation = "arena " + name;
  const std::string asked = fmt::format("{} bytes", bytes);
  const int own = group.rank();
  std::vector<std::unique_ptr<SharedBlock>> blocks(static_cast<std::size_t>(group.size()));
  std::unique_ptr<SharedBlock>& own_block = blocks[static_cast<std::size_t>(own)];
  SharedHandle shared;
  SharedFailure making;
  making.attempt([&] {
    own_block = memory.make(bytes, of_rank(name, own));
    shared = own_block->share();
  });
  std::vector<Frame> frames = group.members()->exchange(
      distributed::pack({asked, making.text(), shared.bytes}), operation, shared.descriptor.get());

  std::vector<std::string> sizes, failures, handles;
  for (const Frame& frame : frames) {
    auto fields = distributed::unpack(frame.payload).value_or(std::vector<std::string>());
    fields.resize(3);
    sizes.push_back(fields[0]);
    failures.push_back(fields[1]);
    handles.push_back(fields[2]);
  }
  require_same(group, operation, asked, sizes);
  making.raise_any(failures);

  SharedFailure mapping;
  mapping.attempt([&] {
    for (int rank = 0; rank < group.size(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      if (rank == own || !group.members()->shares_memory(rank)) continue;
      blocks[at] =
          memory.map({std::move(frames[at].attached), handles[at]}, bytes, of_rank(name, rank));
    }
  });
  mapping.raise_any(group.all_gather(mapping.text(), operation));
  return blocks;
}

// In the way that all ranks can.
std::unique_ptr<SharedMemory> memory_of(const Group& group, SymmetricArena::Memory memory,
                                        int device, const std::string& name) {
  if (memory == SymmetricArena::Memory::host) return distributed::host_memory();
  const std::string kDescriptors = "descriptors", kHandles = "handles";
  std::string own;
  SharedFailure asking;
  asking.attempt(
      [&] { own = distributed::shares_by_descriptors(device) ? kDescriptors : kHandles; });
  std::vector<std::string> ways, failures;
  for (const std::string& text : group.all_gather(distributed::pack({own, asking.text()}),
                                                  "how arena " + name + " is shared")) {
    auto fields = distributed::unpack(text).value_or(std::vector<std::string>());
    fields.resize(2);
    ways.push_back(fields[0]);
    failures.push_back(fields[1]);
  }
  asking.raise_any(failures);
  const bool all = std::all_of(ways.begin(), ways.end(),
                               [&](const std::string& way) { return way == kDescriptors; });
  return all ? distributed::device_memory(device) : distributed::ipc_memory(device);
}

}  // namespace

struct SymmetricArena::State {
  State(const Group& of, std::string called, std::size_t size,
        std::vector<std::unique_ptr<SharedBlock>> shared)
      : group(of), name(std::move(called)), bytes(size), blocks(std::move(shared)) {
    std::vector<std::byte*> places;
    for (const auto& block : blocks) places.push_back(block ? block->data() : nullptr);
    region = group.members()->regions().add(name, std::move(places), group.rank(), bytes);
  }
  ~State() { group.members()->regions().remove(region); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Group group;
  const std::string name;
  const std::size_t bytes;
  const std::vector<std::unique_ptr<SharedBlock>> blocks;
  std::int64_t region = 0;
  std::size_t used = 0;
};

SymmetricArena::SymmetricArena(const Group& group, std::size_t bytes, std::string name,
                               Memory memory, int device) {
  if (bytes == 0) {
    Diagnostic({}, fmt::format("arena {}: 0 bytes", name)).fix("at least one byte").raise();
  }
  auto blocks = share(group, *memory_of(group, memory, device, name), bytes, name);
  state_ = std::make_unique<State>(group, std::move(name), bytes, std::move(blocks));
}

SymmetricArena::~SymmetricArena() = default;
SymmetricArena::SymmetricArena(SymmetricArena&&) noexcept = default;
SymmetricArena& SymmetricArena::operator=(SymmetricArena&&) noexcept = default;

std::size_t SymmetricArena::size() const { return held(state_, "SymmetricArena").bytes; }
const Group& SymmetricArena::group() const { return held(state_, "SymmetricArena").group; }

std::byte* SymmetricArena::at(int rank) const {
  const State& state = held(state_, "SymmetricArena");
  if (rank < 0 || rank >= state.group.size()) {
    Diagnostic({},
               fmt::format("arena {}: rank {} of {} ranks", state.name, rank, state.group.size()))
        .fix(fmt::format("a rank from 0 to {}", state.group.size() - 1))
        .raise();
  }
  state.group.members()->links().require_own_process(state.name);
  const auto& block = state.blocks[static_cast<std::size_t>(rank)];
  if (block) return block->data();
  const std::vector<int>& nodes = state.group.nodes();
  const int own = state.group.rank();
  Diagnostic({}, fmt::format("arena {}: rank {} is on node {}, and rank {} on node {}", state.name,
                             rank, nodes[static_cast<std::size_t>(rank)], own,
                             nodes[static_cast<std::size_t>(own)]))
      .fix("only ranks of one node reach each other's memory: Stream::exchange sends between nodes")
      .raise();
}

std::size_t SymmetricArena::allocate(std::size_t bytes, std::string_view name,
                                     std::size_t alignment) {
  State& state = held(state_, "SymmetricArena");
  const std::string operation = fmt::format("{} of arena {}", name, state.name);
  if (!std::has_single_bit(alignment)) {
    Diagnostic({}, fmt::format("{}: an alignment of {}", operation, alignment))
        .fix("a power of two")
        .raise();
  }
  const std::string asked = fmt::format("{} bytes at multiples of {}", bytes, alignment);
  require_same(state.group, operation, asked, state.group.all_gather(asked, operation));
  const std::size_t offset = (state.used + alignment - 1) / alignment * alignment;
  if (offset > state.bytes || bytes > state.bytes - offset) {
    Diagnostic({}, fmt::format("{} asks for {}, and of {} bytes {} are left", operation, asked,
                               state.bytes, state.bytes - state.used))
        .fix("a larger arena, or multiples of less")
        .raise();
  }
  state.used = offset + bytes;
  return offset;
}

}  // namespace tilewright
