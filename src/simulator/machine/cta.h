#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/machine/clock.h"
#include "simulator/machine/global_memory.h"
#include "simulator/machine/prepared_kernel.h"
#include "simulator/machine/provenance.h"
#include "simulator/machine/shadow.h"
#include "simulator/machine/shared_memory.h"
#include "simulator/machine/tensor_memory.h"
#include "tilewright/memory_order.h"

// What one cluster of CTAs holds while it is executed: warps, barriers, memory, and asynchronous
// work.
namespace tilewright::simulator {

inline constexpr int kLanes = 32;

struct Cta;
struct Warp;
class Launch;

struct Instruction;

// A wait that has passed, by its warp's epochs when it did.
struct PassedWait {
  const Instruction* instruction = nullptr;
  const Warp* warp = nullptr;
  Epoch lanes = 0, elected = 0;
  int agent = 0;  // and in time (timing.h)
  Epoch time = 0;
};

// What an expect_tx adds to its phase, with its agent's time.
struct ExpectedBytes {
  int agent = 0;
  Epoch time = 0;
  std::int64_t bytes = 0;
};

// Of an mbarrier: what tells whether it matters that an arrival may count for another phase.
struct PhasesInTime {
  struct Arrival {
    const Instruction* instruction = nullptr;
    std::uint64_t first = 0;  // phase that it counted for
    bool is_unsure = false;
  };
  // The last arrival of an agent, with its phase, and the last one for an earlier phase.
  struct LastArrivals {
    int agent = 0;
    std::uint64_t phase = 0;
    Epoch last = 0, before = 0;
  };
  std::vector<std::pair<int, Epoch>> waits;  // the last one that has passed, of each agent
  std::vector<LastArrivals> last;            // of each agent
  bool by_arrivals_alone = true;             // neither bytes nor products count for a phase
  std::uint64_t waited = 0;                  // so many phases a wait has found complete
  std::uint64_t unaware = 0;          // of so many an arrival did not know of all waits before it
  std::uint64_t unsure = UINT64_MAX;  // the first phase that an unsure arrival may count for
  const Instruction* arrival = nullptr;  // this one
  std::vector<Arrival> arrivals;         // by each instruction
  void note(const Instruction& instruction, std::uint64_t phase, bool is_unsure);
  void note_last(int agent, std::uint64_t phase, Epoch time);
  // Who knows of all arrivals for the phases before this one knows that these are complete.
  bool knows_all_before(std::uint64_t phase, const Clock& known) const;
};

struct Mbarrier {
  bool initialised = false;
  std::uint64_t phase = 0;  // the one that is not complete
  int expected = 0;
  int pending = 0;
  std::int64_t tx = 0;
  // What its arrivals hand on: those of the phases that are complete, and all of them.
  View completed, accumulated;
  // Who initialised it, and to whom besides threads of this CTA a fence of his makes that known: a
  // fence_barrier_init to copies and to other CTAs, a fence_proxy_async to this CTA's copies alone.
  int initialiser = 0;
  Epoch initialised_at = 0;
  bool published = false, seen_by_copies = false;
  // Of the last complete phase: each warp's. Before the next one is complete they have to be over.
  std::vector<PassedWait> waits;
  bool has_remote_arrivals = false;  // in the current phase
  // Of the current phase, while timing is looked at: bytes of copies that are issued, and expected.
  std::int64_t issued = 0;
  std::vector<ExpectedBytes> expects;
  PhasesInTime in_time;
};

// What needs a CTA's shared memory from outside of its warps: copies into it, arrivals and reads of
// other CTAs. It is over for whoever knows of the access, or of the barrier's phase.
struct ForeignUse {
  Access access;
  std::string verb;
  int barrier = -1;  // an agent; -1: none
  Epoch phase = 0;
  bool by_access = true;  // the issuer's going on shows that it is over
};

// The last use by each agent for each barrier, in the order in which they had their first.
class ForeignUses {
 public:
  void add(ForeignUse use) {
    const auto key = static_cast<std::uint64_t>(use.access.agent) << 32 |
                     static_cast<std::uint32_t>(use.barrier);
    const auto [place, is_first] = places_.try_emplace(key, uses_.size());
    if (is_first) {
      uses_.push_back(std::move(use));
    } else {
      uses_[place->second] = std::move(use);
    }
  }
  auto begin() const { return uses_.begin(); }
  auto end() const { return uses_.end(); }

 private:
  std::vector<ForeignUse> uses_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // by agent and barrier
};

struct NamedBarrier {
  std::int64_t threads = 0;  // 0: nobody has arrived
  std::int64_t arrived = 0;
  SourceLocation first;
  std::vector<Warp*> waiting;
  View handed;
  struct Arrival {
    const Warp* warp = nullptr;
    Epoch time = 0;  // of the warp's lanes
  };
  std::vector<Arrival> arrivals, before;  // at this use, and at the one before
};

// A register array of one warp, [element][lane]: floating elements (narrow ones as the rounded
// float), integers, or booleans.
struct RegisterArray {
  std::vector<std::uint8_t> written;  // of each element
  int unwritten = 0;
  int in_flight = 0;  // products that have it as accumulator or A
  // How many wgmma_fences of the warp came before the last use by other instructions.
  std::int64_t used_behind = 0;
  const Instruction* loading = nullptr;  // tcgen05_ld that has not been waited for
  // The last product that it is the accumulator of, and how many came before that.
  const Instruction* product = nullptr;
  std::int64_t product_behind = 0;

  // Of so many elements, which are 0 until they are written.
  void declare(int elements) {
    written.assign(elements, 0);
    unwritten = elements;
    std::apply([](auto&... values) { (values.clear(), ...); }, values_);
  }
  // Memory is taken at the first use: most CTAs of a small launch come to no use of most arrays.
  template <typename T>
  T* row(int element) {
    std::vector<T>& values = std::get<std::vector<T>>(values_);
    if (values.empty()) values.resize(written.size() * kLanes);
    return values.data() + element * kLanes;
  }

 private:
  std::tuple<std::vector<float>, std::vector<std::int64_t>, std::vector<std::uint8_t>> values_;
};

// A product from its issue to its wgmma_wait.
struct PendingProduct {
  const Instruction* instruction = nullptr;
  std::int64_t a = 0, b = 0;  // start addresses
  bool accumulate = false;
  std::uint64_t sequence = 0;
  std::int64_t group = -1;  // -1: not committed
};

// A product that not all four warps of its warpgroup have issued.
struct SharedIssue {
  Access access;              // of the first that has
  std::int64_t a = 0, b = 0;  // start addresses
  int warps = 0;              // bits of those that have
};

// The products of a warpgroup that some of its warps have issued and others have not.
struct SharedIssues {
  std::uint64_t first = 1;  // the number of the front: each warp counts its products from 1 on
  std::deque<SharedIssue> issues;
};

// A product or copy in tensor memory, or the commit of those before it, from its issue until it is
// over.
struct TensorWork {
  const Instruction* instruction = nullptr;
  std::uint64_t sequence = 0;
  // Of a product.
  std::int64_t address = 0, a_address = 0;  // in tensor memory
  std::int64_t a = 0, b = 0;                // start addresses in shared memory; b: of a copy too
  bool accumulate = false;
  // Of a commit: on whose barriers it arrives, a bit for each CTA of the cluster; what the thread
  // knew, and how many commits it had made with it.
  int barrier = -1;
  std::uint64_t receivers = 0;
  View known;
  Epoch commits = 0;
};

// A bulk store from its issue until it is written and waited for.
struct Store {
  enum class Stage : std::uint8_t { issued, read, written };
  const Instruction* instruction = nullptr;
  std::int64_t address = 0;
  std::byte* to = nullptr;  // element 0 of the tensor
  std::array<std::int64_t, 5> coordinates{};
  Stage stage = Stage::issued;
  std::int64_t group = -1;
  bool freed = false;           // a bulk_wait has covered it: the source may change
  std::vector<std::byte> data;  // once read
};

// What an asynchronous unit does at an instant that the scheduler draws.
struct Event {
  enum class Kind : std::uint8_t { load, store, products, tensor_work, answer, stream };
  Kind kind = Kind::load;
  Warp* issuer = nullptr;
  const Instruction* instruction = nullptr;
  // load: one for each CTA that receives the box
  Cta* destination = nullptr;
  Cta* signalled = nullptr;  // whose barrier completes
  std::int64_t address = 0;
  std::int64_t source = 0;    // in the issuer's shared memory, of what comes from there
  std::byte* data = nullptr;  // element 0 of the tensor
  std::array<std::int64_t, 5> coordinates{};
  Access access;  // the copy's write
  int barrier = 0;
  std::uint64_t phase = 0;  // of the barrier when the copy was issued
  Clock timed;              // what the issuer knew then
  std::shared_ptr<Store> store;
  std::shared_ptr<std::optional<std::int64_t>> answer;  // that all CTAs of a cluster get
  std::uint64_t sequence = 0;  // of the last product, or of the last work in tensor memory
  int stream = 0;              // whose next step it is, of a program
  std::uint64_t rank = 0;      // of the schedule; 0: none yet
  std::int64_t time = 0;       // where a timekeeper says it
};

// What a warp or a stream waits for.
struct WordWait {
  const std::byte* word = nullptr;  // an i32
  Compare compare = Compare::ge;
  std::int32_t value = 0;
};

// What fences have made of a warp's relaxed accesses to words of global memory.
struct FenceState {
  struct Released {
    Scope scope = Scope::gpu;
    bool by_all = false;  // lanes, not by the elected one alone
    std::shared_ptr<const Beyond> all, elected;
  };
  std::vector<Released> released;  // the last of each scope: what a relaxed write behind hands on
  std::vector<Handed> seen;        // by relaxed reads, for a fence behind them
  std::vector<Handed> missed;      // what has been read and not acquired
};

struct Warp {
  // pair: for the other CTA of its pair to execute the same; columns: of tensor memory.
  enum class State : std::uint8_t {
    runnable,
    mbarrier,
    named,
    cluster,
    pair,
    columns,
    pool,
    word,
    ended
  };
  Cta* cta = nullptr;
  int index = 0;
  int role = 0;
  int pc = 0;
  State state = State::runnable;
  std::uint64_t rank = 0;  // of the schedule; 0: none yet
  bool queued = false;     // by time (world.h)
  std::vector<Scalar> scalars;
  std::vector<RegisterArray> arrays;
  std::vector<ArrayOrigin> origins;  // of the arrays; empty until something is known
  // While it waits.
  const Instruction* waits_at = nullptr;
  int barrier = 0;  // of the CTA: mbarrier or named barrier
  std::int64_t parity = 0;
  std::uint64_t awaited_phase = 0;
  WordWait word;
  // Asynchronous work.
  std::deque<PendingProduct> products;
  std::size_t products_done = 0;  // so many of these, from the front on
  std::uint64_t product_sequence = 0;
  std::int64_t product_groups = 0;
  int product_timing = 0;
  std::int64_t wgmma_fences = 0;
  std::deque<TensorWork> tensor_work;
  std::uint64_t tensor_sequence = 0;
  Epoch tensor_commits = 0, tensor_load_waits = 0, tensor_store_waits = 0;
  const Instruction* uncommitted = nullptr;  // a product in tensor memory behind the last commit
  std::vector<std::shared_ptr<Store>> stores;
  std::int64_t store_groups = 0;
  int registers = 0;
  // What the lanes together know, and what one of them may know before the others.
  View lanes, elected;
  // What words of global memory have to do with fences; null until one is used with an order.
  std::unique_ptr<FenceState> fences;

  View& view(bool of_elected) { return of_elected ? elected : lanes; }
  const View& view(bool of_elected) const { return of_elected ? elected : lanes; }
  std::int64_t integer(Slot slot) const { return scalars[slot].i; }
};

// Rows of a product's operand in shared memory as floats, kept for the warps that read the same
// ones.
struct DecodedOperand {
  std::int64_t address = 0;  // start address
  int row = 0;               // the first one
  bool valid = false;
  std::int64_t first = 0, last = 0;  // bytes read
  std::uint64_t time = 0;
  std::vector<float> values;
};

struct Cluster;

struct Cta {
  Cta(const PreparedKernel& kernel, std::int64_t index, Cluster* cluster);
  std::int64_t index = 0;
  Cluster* cluster = nullptr;
  std::int64_t cluster_rank() const { return index % size; }
  // Of its pair.
  bool is_first() const { return cluster_rank() % 2 == 0; }
  Cta& peer() const;
  std::int64_t size = 1;  // CTAs of the cluster
  SharedMemory shared;
  ShadowMemory shadow;
  std::vector<Origin> origins;  // of each 16 bytes; empty until something is known
  ForeignUses foreign_uses;
  View left;  // what the warps that have ended knew
  std::vector<Mbarrier> barriers;
  std::array<NamedBarrier, 16> named;
  int register_pool = 0;
  int live = 0;  // warps that have not ended
  std::vector<Warp> warps;
  std::vector<std::vector<DecodedOperand>> decoded;  // of each product A, then B
  std::vector<SharedIssues> issues;                  // of each warpgroup
  std::unique_ptr<TensorMemory> tensor;              // in kernels that have some
  std::deque<Warp*> in_step;                         // these wait for the other CTA of the pair
};

struct Cluster {
  std::vector<std::unique_ptr<Cta>> ctas;
  std::uint32_t number = 0;    // in the order of their start
  std::vector<Warp*> waiting;  // for the cluster barrier
  View handed;                 // to it
  int live = 0;
  std::int64_t taken = 0;      // places of others
  bool has_seen_none = false;  // a warp has seen that there is no cluster to take over
  Launch* launch = nullptr;
};

inline Cta& Cta::peer() const { return *cluster->ctas[cluster_rank() ^ 1]; }

}  // namespace tilewright::simulator
