#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "simulator/machine/clock.h"
#include "simulator/machine/global_memory.h"
#include "simulator/machine/shadow.h"
#include "tilewright/memory_order.h"

// Happens-before on the virtual GPU: who knows of what, and whether accesses to the same bytes are
// ordered by what the kernel says, whatever order this run drew. The rules are those of the PTX
// memory model, with the async proxy; where it leaves a case open, the stricter reading.
namespace tilewright::simulator {

struct Allocation;
struct Cta;
struct Instruction;
struct MachineOptions;
struct PreparedKernel;
struct Warp;
class Launch;

// An access to a word of global memory with an order. One that is not weak is atomic.
struct WordUse {
  const std::byte* word = nullptr;
  std::int64_t bytes = 4;
  MemoryOrder order{Semantics::weak, Scope::gpu};
  bool reads = false, writes = false;
};

// Which accesses to shared or global memory an instruction makes.
struct AccessKind {
  bool write = false;
  bool async = false;
  bool atomic = false;
};

class Order {
 public:
  Order(Launch& launch, const MachineOptions& options);

  const Agents& agents() const { return agents_; }
  bool enabled() const { return enabled_; }
  void start(Warp& warp) const;
  View nothing() const { return View(enabled_ ? agents_.count() : 0); }

  // What the warp, or its elected lane, hands on; it counts up.
  View release(Warp& warp, bool elected) const;
  void release_into(View& to, Warp& warp, bool elected) const;
  // By an arrival on an mbarrier.
  void announce_into(View& to, Warp& warp, bool elected) const;
  // The same to threads outside of the scope of who hands on: what threads of this CTA have
  // accessed, only where a fence of cluster scope stands before.
  void release_beyond_into(View& to, Warp& warp, bool elected) const;
  // By an operation of that scope.
  void acquire(Warp& warp, bool elected, const View& view, Scope scope) const;
  // The lanes of the warp wait for each other.
  void meet(Warp& warp) const;
  // Every lane has handed on what it did.
  void count_up(Warp& warp) const;
  void fence_proxy(Warp& warp, bool elected) const;
  void fence_cluster(Warp& warp, bool elected) const;
  // `count` groups or phases of asynchronous work of the warp's CTA are over.
  void complete(Warp& warp, bool elected, Agents::Kind kind, int index, std::int64_t count) const;
  // Whether the warp knows of an epoch of an agent of its cluster.
  bool knows(const Warp& warp, bool elected, int agent, Epoch epoch) const;

  // By the threads that execute the instruction, now.
  Access by_threads(const Warp& warp, const Instruction& instruction, AccessKind kind) const;
  // By asynchronous work that the instruction issues.
  Access by_unit(const Warp& warp, const Instruction& instruction, AccessKind kind, int agent,
                 Epoch epoch) const;

  // Faults where an earlier access of the bytes is not known to be over.
  void shared(const Warp& warp, const Access& access, Cta& cta, int allocation,
              std::int64_t address, std::int64_t bytes);
  void shared(const Warp& warp, const Access& access, Cta& cta, int allocation, ByteSet& bytes);
  void shared(const Warp& warp, const Access& access, Cta& cta, int allocation,
              const BlockRun& run);
  // tensor_order.cpp
  // Faults where an earlier access of the windows of columns is not known to be over.
  void tensor(const Warp& warp, const Access& access, Cta& cta, ByteSet& windows);
  // So many of the warp's accesses to tensor memory are over, as it knows itself.
  void wait_for_tensor(Warp& warp, Agents::Kind kind, Epoch count) const;
  // The warp, or one lane, hands on from now on what it has waited for; its next accesses to tensor
  // memory come behind what it has acquired.
  void fence_before(Warp& warp, bool elected) const;
  void fence_after(Warp& warp, bool elected) const;
  // Faults where an access to the word races with another one; then what the warp acquires and
  // what it hands on, as PTX has it: where both sides' scopes have the other's thread.
  void word(Warp& warp, const Instruction& instruction, const WordUse& use);
  // Whether the earlier access to global memory is over for who makes this one.
  bool is_ordered(const Warp& warp, const Access& earlier, const Access& access) const {
    return judge(warp, earlier, access, /*global=*/true) != Verdict::race;
  }
  // acq_rel: relaxed reads of words before it acquire, relaxed writes behind it release.
  void fence(Warp& warp, bool elected, Scope scope);
  void fence_proxy_global(Warp& warp, bool elected) const;

  // Whether the kernel may write the tensor's memory; accesses to inputs are not looked at.
  bool is_written(const std::byte* data) const;
  void global(const Warp& warp, const Access& access, ByteSet& bytes);

  // For the accesses of one instruction; empty between them.
  ByteSet bytes;

 private:
  // The threads of the warp, or its elected lane.
  int own_agent(const Warp& warp, bool elected) const;
  enum class Verdict : std::uint8_t { ordered, race, proxy };
  Verdict judge(const Warp& warp, const Access& earlier, const Access& access, bool global) const;
  Verdict judge_beyond(const Beyond* beyond, const Access& earlier, const Access& access) const;
  bool fenced_globally(const View& view, const Access& earlier) const;
  // All that the warp knows, for others to acquire.
  std::shared_ptr<const Beyond> known(const Warp& warp, bool elected) const;
  void acquire_beyond(Warp& warp, bool elected, const std::shared_ptr<const Beyond>& known) const;
  void read_word(Warp& warp, bool elected, const Access& access, const WordUse& use) const;
  void write_word(Warp& warp, bool elected, const Access& access, const WordUse& use) const;
  void report(const Warp& warp, const Access& earlier, const Access& access, Verdict verdict,
              const std::string& what, std::int64_t stage) const;
  // What would order the access behind the earlier one; `stage` is that of a shared allocation.
  std::string missing(const Warp& warp, const Access& earlier, const Access& access,
                      std::int64_t stage) const;
  std::string missing_fence(const Access& earlier, const Access& access, std::int64_t stage) const;
  std::string missing_beyond(const Warp& warp, const Access& earlier, const Access& access) const;
  std::string missing_barrier(const Warp& warp, const Access& earlier, std::int64_t stage) const;
  bool is_ordered_in_tensor_memory(const Warp& warp, const Access& earlier,
                                   const Access& access) const;
  std::string missing_in_tensor_memory(const Warp& warp, const Access& earlier,
                                       const Access& access) const;
  std::string describe_global(std::uint64_t block, Bytes bytes) const;

  Launch& launch_;
  bool strict_, enabled_;
  bool issue_order_;  // of products of one thread
  bool announces_;    // whether threads read what copies overwrite
  Agents agents_;
};

}  // namespace tilewright::simulator
