#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// Vector clocks of the virtual GPU: who has done what, as far as somebody knows.
namespace tilewright::simulator {

using Epoch = std::uint32_t;

// The agents of a cluster, each of which counts its own epochs. Threads count up whenever they hand
// on what they did. Asynchronous work is counted by what announces its end: copies by the phases of
// their mbarrier, products and bulk stores by their groups. So an access of epoch e is over for
// whoever knows that its agent has reached e.
struct Agents {
  enum class Kind : std::uint8_t {
    lanes,         // of a warp: what it does as a whole
    elected_lane,  // of a warp: what one lane does
    products,      // of a warp: groups that wgmma_wait has seen
    store_reads,   // of a warp: groups that bulk_wait {read = 1} has seen
    store_writes,  // of a warp: groups that bulk_wait has seen
    // In kernels with tensor memory alone.
    tensor_products,  // of a warp: its tcgen05_commits
    tensor_loads,     // of a warp: its tcgen05_wait_ld
    tensor_stores,    // of a warp: its tcgen05_wait_st
    phases,           // of an mbarrier: those that are complete
  };
  static constexpr int kUsual = 5, kWithTensorMemory = 8;  // kinds of a warp
  int warps = 0, barriers = 0, ctas = 1;                   // warps and barriers of a CTA
  int kinds = kUsual;

  int of_warps() const { return kinds * warps; }
  int per_cta() const { return of_warps() + barriers; }
  int count() const { return ctas * per_cta(); }
  // The agent's place in a Clock; `index` is the warp or the barrier of CTA `rank`.
  int at(std::int64_t rank, Kind kind, int index) const {
    const int first = kind == Kind::phases ? of_warps() : static_cast<int>(kind) * warps;
    return static_cast<int>(rank) * per_cta() + first + index;
  }
  Kind kind(int agent) const {
    const int within = agent % per_cta();
    return within < of_warps() ? static_cast<Kind>(within / warps) : Kind::phases;
  }
  // Threads, whose accesses go through the generic proxy: the first so many agents of each CTA.
  int threads() const { return 2 * warps; }
  // The warp of a CTA, or its barrier.
  int index(int agent) const {
    const int within = agent % per_cta();
    return within < of_warps() ? within % warps : within - of_warps();
  }
};

class Clock {
 public:
  Clock() = default;
  explicit Clock(int agents) : epochs_(agents, 0) {}
  Epoch operator[](int agent) const {
    return static_cast<std::size_t>(agent) < epochs_.size() ? epochs_[agent] : 0;
  }
  Epoch& operator[](int agent) { return epochs_[agent]; }
  // Of the same agents; but a clock of none knows nothing.
  void join(const Clock& other) { join(other, 0, static_cast<int>(other.size())); }
  // Of the agents first ... first + count - 1 alone.
  void join(const Clock& other, int first, int count) {
    if (other.size() == 0) return;
    if (size() < other.size()) epochs_.resize(other.size(), 0);
    raise(count, other.epochs_.data() + first, epochs_.data() + first);
  }
  std::size_t size() const { return epochs_.size(); }
  // Whether it knows all that the other one does.
  bool covers(const Clock& other) const;

 private:
  // Each of `to` to what `least` has.
  static void raise(std::size_t count, const Epoch* least, Epoch* to);
  std::vector<Epoch> epochs_;
};

// What is known of what lies beyond a cluster: of other clusters, of any launch and rank, and of
// the streams of all ranks. It does not change once it is known.
struct Beyond {
  struct Cluster {
    std::uint32_t number = 0;
    Clock known;   // seen by loads and stores of threads
    Clock fenced;  // of these, what the async proxy sees too
  };
  std::vector<Cluster> clusters;  // by number
  Clock streams;                  // operations of each that are over
  Clock fenced_streams;

  void join(const Beyond& other);
  bool covers(const Beyond& other) const;
  const Cluster* find(std::uint32_t cluster) const;
  Cluster& at(std::uint32_t cluster);
  // The async proxy sees whatever threads do: as behind a kernel's end.
  void fence();
  // Nothing is known to the async proxy.
  void forget_fences();
};

// What an agent knows to have happened.
struct View {
  View() = default;
  explicit View(int agents) : generic(agents) {}
  Clock generic;  // seen by loads and stores of threads
  // The others are of no agents until fences or other CTAs bring something.
  Clock async;  // of threads' accesses to shared memory: those behind which a proxy fence stands
  Clock announced;  // of threads' accesses: those that an arrival on an mbarrier has handed on
  Clock cluster;    // of threads' accesses: those behind which a fence of cluster scope stands
  Clock remote;     // acquired from other CTAs, but not yet by a fence of cluster scope
  Clock timed;      // what has happened in time (timing.h); of no agents unless that is asked for
  // Of accesses to tensor memory: those behind which the next one of this thread comes. Threads do
  // not hand it on.
  Clock tensor;
  // Of threads: so much has happened before what was committed. It says which waits are over, and
  // orders no memory.
  Clock passed;
  // Null until words of global memory or what came before the launch hand something on.
  std::shared_ptr<const Beyond> beyond;

  void join(const View& other) {
    if (other.beyond && other.beyond != beyond) join_beyond(other.beyond);
    generic.join(other.generic);
    async.join(other.async);
    announced.join(other.announced);
    cluster.join(other.cluster);
    remote.join(other.remote);
    timed.join(other.timed);
    passed.join(other.passed);
  }
  void join_beyond(const std::shared_ptr<const Beyond>& other);
};

}  // namespace tilewright::simulator
