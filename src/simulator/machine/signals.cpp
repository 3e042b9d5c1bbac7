#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simulator/machine/world.h"

// Words of global memory, and which rank's memory is meant. What words hand on is in
// order_words.cpp.
namespace tilewright::simulator {
namespace {

// The word that the access names; null after a fault.
std::byte* word_at(Launch& launch, const Warp& warp, const Instruction& instruction,
                   const WordAccess& access) {
  const TensorArgument& tensor = launch.arguments.tensors[access.tensor];
  std::byte* const data = data_in_rank(launch, warp, instruction, tensor, access.rank);
  if (!data) return nullptr;
  std::int64_t element = 0;
  for (std::size_t axis = 0; axis < access.coordinates.size(); ++axis) {
    const std::int64_t at = warp.integer(access.coordinates[axis]);
    if (!launch.fits(warp, instruction, tensor, access.checks[axis], at, at + 1)) return nullptr;
    element += at * tensor.strides[axis];
  }
  return data + element * static_cast<std::int64_t>(sizeof(std::int32_t));
}

std::int32_t read(const std::byte* word) {
  std::int32_t value = 0;
  std::memcpy(&value, word, sizeof(value));
  return value;
}

void write(Launch& launch, std::byte* word, std::int32_t value) {
  std::memcpy(word, &value, sizeof(value));
  launch.world.changed(word, sizeof(value));
}

const WordAccess& access_of(const Launch& launch, const Instruction& instruction) {
  return launch.kernel.words[instruction.detail];
}

// Whether a wait for so much may have been over before, and is not over any more.
bool takes_away(Compare compare, std::int32_t before, std::int32_t after) {
  return compare == Compare::ge ? after < before : after != before;
}

// All lanes of a warp look at a word until it is what they wait for. When one of them has seen it
// and goes on, the others may not have.
void check_lanes_have_seen(Launch& launch, const Warp& warp, const Instruction& instruction,
                           const std::byte* word, std::int32_t before, std::int32_t after) {
  if (!launch.order.enabled() || !instruction.elected || before == after) return;
  const Access change = launch.order.by_threads(warp, instruction, {/*write=*/true});
  const auto address = reinterpret_cast<std::uint64_t>(word);
  const std::uint64_t block = address - address % ShadowBlock::kBytes;
  const Bytes bytes{std::uint64_t{1} << (address - block) / ShadowBlock::kCell,
                    static_cast<std::uint16_t>(0xf << address % ShadowBlock::kCell)};
  const Access* looks = nullptr;
  launch.world.memory.shadow(block).for_conflicts(change, bytes, [&](const Access& earlier) {
    if (earlier.instruction->code != Code::word_wait || earlier.instruction->elected) return;
    const bool is_own = earlier.cluster == change.cluster && earlier.cta == change.cta &&
                        earlier.warp == change.warp;
    if (!is_own || launch.order.knows(warp, true, earlier.agent, earlier.epoch)) return;
    if (takes_away(access_of(launch, *earlier.instruction).compare, before, after)) {
      looks = &earlier;
    }
  });
  if (!looks) return;
  launch.log.add(
      {"deadlock", looks->instruction->where(), instruction.where(),
       fmt::format("deadlock: one lane changes a word at which the others of its warp "
                   "may still look, and would not find what they wait for\n{}\n{}",
                   launch.access_line("wait", *looks), launch.access_line("write", change)),
       "warp_sync between them"});
}

// What is loaded against what is said of it. The program goes on.
void check_claim(Launch& launch, const Warp& warp, const Instruction& instruction,
                 const WordAccess& access, const std::byte* element) {
  if (!access.claim || !access.claim->counted) return;
  const TensorArgument& tensor = launch.arguments.tensors[access.tensor];
  if (std::count(tensor.shape.begin(), tensor.shape.end(), 0) != 0) return;
  analysis::LoadedIndex index{tensor.name, {}, element, tensor.strides[0], access.at_most};
  for (const Slot at : access.coordinates) index.at.push_back(warp.integer(at));
  const std::string fault = analysis::describe_fault(*access.claim, index);
  if (fault.empty()) return;
  launch.log.add(
      {"out_of_bounds",
       instruction.where(),
       {},
       fmt::format("out of bounds: {}\n{}", fault, launch.access("read", instruction, warp)),
       analysis::fix_of(*access.claim, index)});
}

}  // namespace

std::byte* data_in_rank(Launch& launch, const Warp& warp, const Instruction& instruction,
                        const TensorArgument& tensor, Slot rank) {
  // A tensor without elements may have no memory. Nothing of it is accessed, and what is loaded is
  // zero.
  alignas(16) static std::byte nothing[16];
  if (std::count(tensor.shape.begin(), tensor.shape.end(), 0) != 0) return nothing;
  if (rank == ir::kNoValue) return tensor.data;
  const std::int64_t number = warp.integer(rank);
  if (number < 0 || number >= launch.arguments.ranks) {
    launch.log.add(
        {"out_of_bounds",
         instruction.where(),
         {},
         fmt::format("out of bounds: {} of rank {}, and there are {}\n{}", tensor.name, number,
                     launch.arguments.ranks, launch.access("use", instruction, warp)),
         {}});
    return nullptr;
  }
  return tensor.peers.empty() ? tensor.data : tensor.peers[static_cast<std::size_t>(number)];
}

void access_word(Launch& launch, Warp& warp, const Instruction& instruction) {
  const WordAccess& access = access_of(launch, instruction);
  const ir::OpInfo& record = ir::info(instruction.op);
  const bool reads = record.reads(ir::Memory::global), writes = record.writes(ir::Memory::global);
  std::byte* const at = word_at(launch, warp, instruction, access);
  if (!at) return;
  check_claim(launch, warp, instruction, access, at);
  const std::int32_t old = read(at);
  std::int32_t fresh = old;
  if (writes) {
    const auto value = static_cast<std::uint32_t>(warp.integer(access.value));
    fresh = static_cast<std::int32_t>((reads ? static_cast<std::uint32_t>(old) : 0) + value);
  }
  check_lanes_have_seen(launch, warp, instruction, at, old, fresh);
  launch.order.word(warp, instruction, {at, sizeof(old), access.order, reads, writes});
  if (writes) write(launch, at, fresh);
  if (access.result != ir::kNoValue) {
    warp.scalars[access.result] = {old, static_cast<double>(old)};
  }
}

void wait_flag(Launch& launch, Warp& warp, const Instruction& instruction) {
  const WordAccess& access = access_of(launch, instruction);
  const std::byte* const at = word_at(launch, warp, instruction, access);
  if (at) {
    const WordWait wait{at, access.compare, static_cast<std::int32_t>(warp.integer(access.value))};
    warp.word = wait;
    if (!launch.world.holds(wait)) return launch.wait_for_word(warp, instruction, wait);
    launch.order.word(warp, instruction,
                      {at, sizeof(std::int32_t), access.order, /*reads=*/true, /*writes=*/false});
  }
  warp.waits_at = nullptr;
  ++warp.pc;
}

}  // namespace tilewright::simulator
