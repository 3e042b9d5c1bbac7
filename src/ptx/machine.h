#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ptx/launch.h"
#include "ptx/module.h"
#include "ptx/record.h"
#include "support/random.h"

namespace tilewright::ptx {

// Where shared memory, and in clusters each CTA's, begins; what lies below is the system's.
inline constexpr std::int64_t kSharedBase = 1024;
inline constexpr int kRankShift = 24;
inline constexpr std::uint64_t kSharedMask = (std::uint64_t{1} << kRankShift) - 1;
// Generic addresses of the other spaces; those of global memory are the host's own.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{0x7a} << 56;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{0x7b} << 56;
inline constexpr std::uint64_t kParamWindow = std::uint64_t{0x7c} << 56;
inline constexpr std::uint64_t kWindowMask = ~(std::uint64_t{0xff} << 56);

struct Cta;
struct Cluster;
struct Warp;

// What a warp knows of each agent of each warp of the launch, agent by agent. Of threads' accesses:
// how often the warp had released when it did what is known. Of products and bulk stores: how many
// groups have been waited for. Empty where the launch does not ask.
using Clock = std::vector<std::uint32_t>;
enum class Agent : std::uint8_t {
  threads,
  products,     // reads of operands
  bulk_stores,  // reads of what is stored
  // Of threads' accesses: those behind which a proxy fence stands, of shared memory and of global.
  fenced,
  fenced_global,
};
constexpr std::size_t kAgents = 5, kReaders = 3;

struct Mbarrier {
  std::uint64_t phase = 0;
  std::int64_t expected = 0, pending = 0, bytes = 0;
  Clock arriving = {}, complete = {};  // of all that has arrived, and of the phases that are over
};

struct NamedBarrier {
  std::int64_t threads = 0, arrived = 0;
  std::uint64_t generation = 0;
  Clock arriving = {}, complete = {};
};

// What lanes were answered where they asked for a word or a barrier that others change.
struct Poll {
  int pc = 0;
  std::uint32_t lanes = 0;
  std::uint64_t seen = 0;  // a hash of it
};

// Lanes that are at the same place. Where they part, each part has a path of its own until it comes
// to `join`, where the path above goes on.
struct Path {
  std::uint32_t lanes = 0;
  int pc = 0;
  int join = 0;
  int above = -1;
  int below = 0;             // paths that this one waits for
  bool over = false;         // its place is free
  std::uint64_t ticket = 0;  // of a barrier at which it has arrived; 0: none
};

// What a bulk copy moves: a tensor's box, or bytes that lie in a row.
struct Piece {
  const TensorMap* map = nullptr;       // none: bytes in a row
  std::array<std::int64_t, 5> start{};  // of the box
  std::uint64_t outside = 0;            // global address, or in `from`, of bytes in a row
  Cta* from = nullptr;                  // whose shared memory is read; none: global memory
  std::int64_t bytes = 0;
};

// A bulk store of a lane, from its issue until it is written.
struct Store {
  const Instruction* instruction = nullptr;
  int lane = 0;
  std::int64_t group = -1;  // -1: not committed
  Piece piece;
  std::uint64_t address = 0;  // in the CTA's shared memory
  bool read = false, written = false;
  bool waited = false;  // its group is, so that its source is free
  std::vector<std::byte> data;
};

// A bulk load to one CTA.
struct Load {
  const Instruction* instruction = nullptr;
  Cta* to = nullptr;
  Piece piece;
  std::uint64_t address = 0, barrier = 0;
  Cta* signalled = nullptr;  // whose barrier; none: that of `to`
  Clock known = {};          // what its barrier hands on
};

// A copy of a few bytes to shared memory by a thread (cp.async), until it is waited for.
struct ThreadCopy {
  const Instruction* instruction = nullptr;
  int lane = 0;
  std::int64_t group = -1;           // -1: not committed
  std::uint64_t to = 0, from = 0;    // in the CTA's shared memory, and in global memory
  std::int64_t bytes = 0, read = 0;  // behind those that are read are zeros
  bool copied = false;
};

// What ends late: `finish` does it.
struct UnderWay {
  Cta* to = nullptr;
  const Instruction* instruction = nullptr;
  std::function<void()> finish;
};

struct Warp {
  Cta* cta = nullptr;
  int index = 0;
  std::uint32_t live = 0;
  std::vector<Path> paths;
  std::vector<Poll> polls;
  std::vector<Lanes> registers;
  // Of each register: the group of the product that writes it or reads it, 0 for none.
  std::vector<std::int64_t> product_of;
  std::int64_t product_groups = 1, groups_over = 0;  // the group that is open
  std::int64_t last_product = 0;                     // the group of the last one
  int product_line = 0;                              // and where it stands
  // wgmma.fence so far, and of each register how many there will be once one follows its last
  // write that is no product's.
  std::int64_t product_fences = 0;
  std::vector<std::int64_t> fence_of;
  std::array<std::int64_t, kLanes> store_groups{}, copy_groups{};
  std::vector<Store> stores;
  std::vector<std::shared_ptr<ThreadCopy>> copies;
  std::uint64_t cluster_ticket = 0;
  std::vector<std::vector<std::byte>> local;  // of each lane
  std::vector<Event>* events = nullptr;
  int number = 0;         // in its cluster
  int launch_number = 0;  // in the launch
  Clock clock;
  // By scope: what the warp knew at its last fence, and what a fence would let it know.
  std::array<Clock, 4> fenced;
  std::array<Clock, 3> observed;
};

// An access to some of 4 bytes of global memory.
struct TouchedBytes {
  int warp = -1;  // in the launch
  std::uint32_t epoch = 0;
  int line = 0;
  std::uint8_t mask = 0;  // a bit a byte
  bool strong = false;
  int scope = 0;
  bool bulk = false;       // by a bulk copy
  bool in_flight = false;  // whose group has not been waited for
  bool reduces = false;
};
struct TouchedWord {
  TouchedBytes write, read;  // the last ones
};

// What a CTA's writes of a word hand on to those whom the scope includes.
struct Handed {
  std::int64_t cta = 0;
  int scope = 0;
  Clock clock;
};

// The last write of a byte of shared memory, and when each reader of each warp read it since.
struct Touched {
  int writer = -1;
  std::uint32_t epoch = 0;
  int write_line = 0, read_line = 0;
  bool by_copy = false;
  bool in_flight = false;  // a thread's copy to it has not been waited for
};

struct Cta {
  std::int64_t index = 0, rank = 0;
  Cluster* cluster = nullptr;
  std::vector<std::byte> shared;
  std::vector<std::uint8_t> held;  // of each byte: whether it has been written
  std::map<std::uint64_t, Mbarrier> barriers;
  std::array<NamedBarrier, 16> named{};
  std::vector<Warp> warps;
  std::int64_t live = 0;
  std::vector<Touched> touched;      // of each byte; empty where the launch does not ask
  std::vector<std::uint32_t> reads;  // of each byte by each reader of each warp of the cluster
  // Tensor memory, made when columns are taken: column by column of 128 lanes, what has been
  // written, and the first columns of what is held, with how many.
  std::vector<std::uint32_t> tensor;
  std::vector<std::uint8_t> tensor_written;
  std::map<int, int> tensor_held;
};

struct Cluster {
  std::int64_t number = 0;
  std::size_t asked = 0;  // for clusters to take over
  std::vector<std::unique_ptr<Cta>> ctas;
  std::int64_t arrived = 0;
  std::uint64_t generation = 1;
  std::int64_t live = 0;  // lanes
  Clock arriving = {}, complete = {};
};

class Machine;

// What ends an execution.
struct Failure {
  Fault fault;
};

// One instruction of one path.
struct Execution {
  Machine& machine;
  Warp& warp;
  Path& path;
  const Instruction& instruction;
  std::uint32_t lanes;  // whose guard holds
  bool again = false;   // it waits, and is executed anew
  bool ends = false;    // its lanes do
  int next = 0;

  Cta& cta() const { return *warp.cta; }
  bool has(std::size_t operand) const { return operand < instruction.operands.size(); }
  const Operand& operand(std::size_t number) const { return instruction.operands[number]; }
  const Lanes& read(std::size_t number) { return read(operand(number), number); }
  const Lanes& read(const Operand& operand, std::size_t scratch) {
    const bool is_plain = operand.kind == Operand::Kind::reg && !operand.negated &&
                          warp.product_of[operand.index] <= warp.groups_over;
    return is_plain ? warp.registers[operand.index] : read_other(operand, scratch);
  }
  Lanes& target(std::size_t number) { return target(operand(number)); }
  Lanes& target(const Operand& operand) {
    if (operand.kind != Operand::Kind::reg) return target_other(operand);
    warp.product_of[operand.index] = 0;
    warp.fence_of[operand.index] = warp.product_fences + 1;
    return warp.registers[operand.index];
  }
  // The value that is the same in all lanes.
  std::uint64_t uniform(std::size_t number);
  // The addresses of an operand, before its coordinates.
  const Lanes& addresses(const Operand& operand);
  std::uint32_t first_lane() const { return static_cast<std::uint32_t>(std::countr_zero(lanes)); }
  // Raises unless every lane of the warp is here.
  void need_whole_warp() const;
  void record(EventKind kind, std::vector<std::int64_t> values = {}) const;
  [[noreturn]] void fail(const std::string& kind, const std::string& what) const;
  [[noreturn]] void unsupported() const;

 private:
  // Of what is no register, or one of a product.
  const Lanes& read_other(const Operand& operand, std::size_t scratch);
  Lanes& target_other(const Operand& operand);
};

class Machine {
 public:
  Machine(const Kernel& kernel, const LaunchInput& input, LaunchReport& report);

  const Kernel& kernel;
  const LaunchInput& input;
  LaunchReport& report;
  Random random;
  std::vector<std::byte> parameters;
  std::vector<UnderWay> under_way;
  std::array<Lanes, 8> scratch{};
  // Of words whose additions have an order: who is next, and who comes then.
  std::map<std::uint64_t, std::deque<WordTurn>> turns;
  // Of global memory, by address / 4: who has touched it, and what its strong accesses hand on.
  std::unordered_map<std::uint64_t, TouchedWord> touched;
  std::unordered_map<std::uint64_t, std::vector<Handed>> handed;

  void run();
  std::uint64_t address_of(const Warp& warp, int symbol) const;
  // Where bytes of memory are, after a check of bounds and alignment. `lane` is whose they are.
  std::byte* memory(Execution& by, Space space, std::uint64_t address, std::int64_t bytes,
                    int lane);
  // Of global memory; null where no region has all of it.
  std::byte* find(std::uint64_t address, std::int64_t bytes) const;
  // "x +0x40".
  std::string describe_global(std::uint64_t address) const;
  std::string describe_outside(std::uint64_t address, std::int64_t bytes) const;
  // The CTA whose shared memory the address is in, and where in it; for `bytes` of it.
  std::pair<Cta*, std::uint64_t> shared(Execution& by, std::uint64_t address, std::int64_t bytes);
  std::string describe(const Warp& warp) const;
  // The first CTA of a cluster that the cluster gets when it asks; -1: there is none.
  std::int64_t take_over(Cluster& cluster) const;

 private:
  void start(std::int64_t cluster);
  void start_warp(Warp& warp);
  bool run_warp(Warp& warp, std::int64_t turn);
  void step(Warp& warp, std::size_t path);
  void arrive_at_join(Warp& warp, std::size_t path);
  void end_lanes(Warp& warp, std::uint32_t lanes);
  // Each warp has its turn, or with `by_chance` perhaps. Whether any did something.
  bool run_round(bool by_chance);
  bool polls_memory() const;
  // Ends one of those that are under way; false where there is none.
  bool finish_one();
  // Answers those that wait for another answer once more (polls.cpp), since they may count their
  // tries. False where nobody does, or all has been as it is now: it would go on so for ever.
  bool poll_again();
  [[noreturn]] void deadlock();

  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<Region> memory_;                     // ascending
  std::vector<std::vector<std::byte>> variables_;  // of the module, by symbol
  std::int64_t shared_bytes_ = 0;
  // How often there was nothing but polls, and a hash of what was so at one of these times.
  std::uint64_t stuck_ = 0, stuck_state_ = 0;
};

// Bits of a value in a lane.
template <typename T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <typename T>
std::uint64_t to_bits(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// Calls `f(lane)` for each lane of the execution.
template <typename F>
void for_lanes(std::uint32_t lanes, F f) {
  if (lanes == ~std::uint32_t{0}) {  // which makes vectors of many
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
    return;
  }
  for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
}

// order.cpp
void join(Clock& to, const Clock& from);
// What the warp hands on; what it does then is later.
void release(Execution& x, Clock& to);
void acquire(Execution& x, const Clock& from);
// Who accesses shared memory: threads, or units of the async proxy.
enum class Accessor : std::uint8_t {
  load,
  store,
  thread_copy,
  bulk_load,
  bulk_store,
  bulk_source,
  product
};
// Faults where an earlier access of the bytes is not known to be over, or where a thread's write
// has no proxy fence between it and a unit's access.
void touch(Execution& x, Cta& cta, std::uint64_t at, std::int64_t bytes, Accessor by,
           std::uint32_t group = 0);
// A thread's copy is there, for who knows of its warp up to `epoch`.
void land(const Warp& warp, const ThreadCopy& copy, std::uint32_t epoch);
// What the warp does now is later than what it has handed on.
std::uint32_t epoch_of(const Warp& warp);
// Of all that the warp knows of: in shared memory (Agent::fenced), or in global memory.
void fence_accesses(Execution& x, Agent fenced);
// The first so many groups of the agent are over.
void complete_groups(Execution& x, Agent agent, std::int64_t groups);

// order_global.cpp
struct GlobalAccess {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  bool writes = false;
  bool strong = false;  // such accesses do not race with each other, as far as scopes include them
  int scope = 0;        // 0 CTA, 1 cluster, 2 GPU, 3 system
  bool bulk = false;    // by a bulk copy; what it writes is there once its group is waited for
  bool reduces = false;
};
void touch_global(Execution& x, const GlobalAccess& access);
// The group of the bulk copy that wrote there has been waited for.
void land_global(Execution& x, std::uint64_t address, std::int64_t bytes);
// What strong accesses of a word hand on.
struct WordOrder {
  bool acquires = false, releases = false;
  bool updates = false;  // the value is made of the one before
  int scope = 0;
};
void take_from_word(Execution& x, std::uint64_t address, const WordOrder& order);
void hand_on_by_word(Execution& x, std::uint64_t address, const WordOrder& order);
// A fence of this scope.
void fence_words(Execution& x, int scope);

// polls.cpp
// Whether the lanes have been answered the same by this instruction before: then they wait.
bool polls_in_vain(Execution& x, const void* answer, std::size_t bytes);

// mbarriers.cpp
struct BarrierPlace {
  Cta* cta = nullptr;
  std::uint64_t at = 0;
};
// The arrivals, and the bytes, that a phase counts at most.
constexpr std::int64_t kMostPending = (std::int64_t{1} << 20) - 1;
BarrierPlace barrier_place(Execution& x, const Operand& operand, int lane);
Mbarrier& barrier_at(Execution& x, BarrierPlace place);
void complete_if_due(Mbarrier& barrier);
// An arrival by what the warp has done.
void arrive_on(Execution& x, BarrierPlace place, std::int64_t count);

// bulk_copies.cpp
void finish_all_stores(Machine& machine, Warp& warp);

// copies.cpp
void finish_copies(Machine& machine, Warp& warp);

}  // namespace tilewright::ptx
