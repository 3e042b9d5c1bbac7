#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "simulator/machine/machine.h"
#include "simulator/machine/matrix_descriptor.h"
#include "simulator/machine/order.h"
#include "simulator/machine/program.h"
#include "simulator/machine/provenance.h"
#include "simulator/machine/random.h"
#include "simulator/machine/recorder.h"
#include "simulator/machine/schedule.h"
#include "simulator/machine/shared_memory.h"

// The state of the virtual GPU. What each instruction does to it lies in one file a unit:
// synchronisation.cpp, copies.cpp, products.cpp, registers.cpp, stores.cpp.
namespace tilewright::simulator {

inline constexpr int kLanes = 32;

struct Cta;
struct Warp;

// Thrown when a fault ends the run.
struct Stopped {};

class FaultLog {
 public:
  FaultLog(MachineReport& report, bool stop_at_first)
      : report_(report), stop_at_first_(stop_at_first) {}
  // The same kind at the same two places is kept once.
  void add(Fault fault);

 private:
  MachineReport& report_;
  bool stop_at_first_;
};

struct Mbarrier {
  bool initialised = false;
  std::uint64_t phase = 0;  // the one that is not complete
  int expected = 0;
  int pending = 0;
  std::int64_t tx = 0;
  // What its arrivals hand on: those of the phases that are complete, and all of them.
  View completed, accumulated;
  // Who initialised it, and whether a fence_barrier_init of his makes that known to copies and to
  // other CTAs.
  int initialiser = 0;
  Epoch initialised_at = 0;
  bool published = false;
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

struct NamedBarrier {
  std::int64_t threads = 0;  // 0: nobody has arrived
  std::int64_t arrived = 0;
  SourceLocation first;
  std::vector<Warp*> waiting;
  View handed;
};

// A register array of one warp, [element][lane]: floating elements (narrow ones as the rounded
// float), integers, or booleans.
struct RegisterArray {
  std::vector<float> f;
  std::vector<std::int64_t> i;
  std::vector<std::uint8_t> b;
  std::vector<std::uint8_t> written;  // of each element
  int unwritten = 0;
  int in_flight = 0;    // products that have it as accumulator or A
  bool touched = true;  // since the last wgmma_fence

  template <typename T>
  T* row(int element) {
    if constexpr (std::is_same_v<T, float>) return f.data() + element * kLanes;
    if constexpr (std::is_same_v<T, std::int64_t>) return i.data() + element * kLanes;
    if constexpr (std::is_same_v<T, std::uint8_t>) return b.data() + element * kLanes;
  }
};

// A product from its issue to its wgmma_wait.
struct PendingProduct {
  const Instruction* instruction = nullptr;
  std::int64_t a = 0, b = 0;  // start addresses
  bool accumulate = false;
  bool done = false;
  std::uint64_t sequence = 0;
  std::int64_t group = -1;  // -1: not committed
};

// A product that not all four warps of its warpgroup have issued.
struct SharedIssue {
  Access access;              // of the first that has
  std::int64_t a = 0, b = 0;  // start addresses
  int warps = 0;              // bits of those that have
};

// A bulk store from its issue until it is written and waited for.
struct Store {
  enum class Stage : std::uint8_t { issued, read, written };
  const Instruction* instruction = nullptr;
  std::int64_t address = 0;
  std::array<std::int64_t, 5> coordinates{};
  Stage stage = Stage::issued;
  std::int64_t group = -1;
  bool freed = false;           // a bulk_wait has covered it: the source may change
  std::vector<std::byte> data;  // once read
};

// What an asynchronous unit does at an instant that the scheduler draws.
struct Event {
  enum class Kind : std::uint8_t { load, store, products };
  Kind kind = Kind::load;
  Warp* issuer = nullptr;
  const Instruction* instruction = nullptr;
  // load: one for each CTA that receives the box
  Cta* destination = nullptr;
  std::int64_t address = 0;
  std::array<std::int64_t, 5> coordinates{};
  Access access;  // the copy's write
  int barrier = 0;
  std::uint64_t phase = 0;  // of the barrier when the copy was issued
  std::shared_ptr<Store> store;
  std::uint64_t sequence = 0;  // of the last product
  std::uint64_t rank = 0;      // of the schedule; 0: none yet
};

struct Warp {
  enum class State : std::uint8_t { runnable, mbarrier, named, cluster, pool, ended };
  Cta* cta = nullptr;
  int index = 0;
  int role = 0;
  int pc = 0;
  State state = State::runnable;
  std::uint64_t rank = 0;  // of the schedule; 0: none yet
  std::vector<Scalar> scalars;
  std::vector<RegisterArray> arrays;
  std::vector<ArrayOrigin> origins;  // of the arrays; empty until something is known
  // While it waits.
  const Instruction* waits_at = nullptr;
  int barrier = 0;  // of the CTA: mbarrier or named barrier
  std::int64_t parity = 0;
  std::uint64_t awaited_phase = 0;
  // Asynchronous work.
  std::deque<PendingProduct> products;
  std::uint64_t product_sequence = 0;
  std::int64_t product_groups = 0;
  int product_timing = 0;
  std::vector<std::shared_ptr<Store>> stores;
  std::int64_t store_groups = 0;
  int registers = 0;
  // What the lanes together know, and what one of them may know before the others.
  View lanes, elected;

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
  Cta(const Program& program, std::int64_t index, Cluster* cluster);
  std::int64_t index = 0;
  Cluster* cluster = nullptr;
  std::int64_t rank() const { return index % size; }
  std::int64_t size = 1;  // CTAs of the cluster
  SharedMemory shared;
  std::vector<ShadowBlock> shadow;
  std::vector<Origin> origins;  // of each 16 bytes; empty until something is known
  std::vector<ForeignUse> foreign_uses;
  View left;  // what the warps that have ended knew
  std::vector<Mbarrier> barriers;
  std::array<NamedBarrier, 16> named;
  int register_pool = 0;
  int live = 0;  // warps that have not ended
  std::vector<Warp> warps;
  std::vector<std::vector<DecodedOperand>> decoded;  // of each product A, then B
  std::vector<std::deque<SharedIssue>> issues;       // of each warpgroup
};

struct Cluster {
  std::vector<std::unique_ptr<Cta>> ctas;
  std::uint32_t number = 0;    // in the order of their start
  std::vector<Warp*> waiting;  // for the cluster barrier
  View handed;                 // to it
  int live = 0;
};

class Gpu {
 public:
  Gpu(const Program& program, const Arguments& arguments, const MachineOptions& options,
      MachineReport& report);

  void run();
  // Into the report, once the run is over.
  void count_instructions() const;

  const Program& program;
  const Arguments& arguments;
  MachineReport& report;
  FaultLog log;
  Random random;
  Recorder* recorder;  // null when nobody watches
  std::vector<Event> events;
  Order order;
  Footprints footprints;
  std::optional<Provenance> provenance;  // where MachineOptions ask for it

  void block(Warp& warp, Warp::State state, const Instruction& instruction);
  void wake(Warp& warp);

  // "math warp 2", "math warp 2 of CTA 5".
  std::string describe(const Warp& warp) const;
  std::string describe(int role, int warp, std::int64_t cta) const;
  // "full[1]" for the CTA's barrier of that number.
  std::string barrier_name(int barrier) const;
  const BarrierArray& barrier_array(int barrier) const;
  // A line of a fault: "  read   wgmma_ss  attention.cpp:57  math warp 0".
  std::string access(std::string verb, const Instruction& instruction, const Warp& warp) const;
  std::string access_line(std::string verb, const Access& access) const;
  // The index of the innermost loop around the instruction, or -1.
  std::int32_t iteration(const Warp& warp, const Instruction& instruction) const;

  // Whether the bytes lie inside the allocation; else a fault. The caller then leaves them alone.
  bool inside(const Warp& warp, const Instruction& instruction, int allocation,
              std::int64_t address, std::int64_t bytes);
  // Faults when the bytes hold nothing.
  void check_held(const Warp& warp, const Instruction& instruction, const Cta& cta, int allocation,
                  std::int64_t address, std::int64_t bytes);

 private:
  void launch_next();
  void run_warp(Warp& warp);
  void execute(Warp& warp, const Instruction& instruction);
  void finish(Warp& warp);
  void check_exit(const Cta& cta);
  void happen(std::size_t event);

  std::int64_t resident_clusters_;
  Schedule schedule_;
  std::vector<std::int64_t> to_start_;  // clusters that have not started, last first
  std::uint32_t started_ = 0;           // clusters that have
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<Warp*> runnable_;
  std::vector<Scalar> moved_;                 // by the move being executed
  std::array<std::int64_t, 256> executed_{};  // by ir::Op
};

// synchronisation.cpp
void init_mbarriers(Gpu& gpu, Warp& warp, const Instruction& instruction);
void expect_tx(Gpu& gpu, Warp& warp, const Instruction& instruction);
void arrive(Gpu& gpu, Warp& warp, const Instruction& instruction);
void wait_mbarrier(Gpu& gpu, Warp& warp, const Instruction& instruction);
void complete_tx(Gpu& gpu, const Event& event, std::int64_t bytes);
// Makes the barriers that the warp has initialised known to copies and to other CTAs.
void publish_barriers(Gpu& gpu, Warp& warp);
void add_use(Cta& cta, ForeignUse use);
// Whether the barrier is initialised, and the warp knows it; else a fault. Copies and other CTAs
// learn of it through fence_barrier_init.
bool usable(Gpu& gpu, const Warp& warp, const Instruction& instruction, const Cta& cta,
            int barrier);
void named_barrier(Gpu& gpu, Warp& warp, const Instruction& instruction, bool sync);
void cluster_sync(Gpu& gpu, Warp& warp, const Instruction& instruction);
void set_max_registers(Gpu& gpu, Warp& warp, const Instruction& instruction);

// copies.cpp
void issue_load(Gpu& gpu, Warp& warp, const Instruction& instruction);
void finish_load(Gpu& gpu, const Event& event);
void issue_store(Gpu& gpu, Warp& warp, const Instruction& instruction);
// Moves the store on until it has reached the stage.
void advance_store(Gpu& gpu, Warp& warp, Store& store, Store::Stage stage);
void bulk_commit(Warp& warp);
void bulk_wait(Gpu& gpu, Warp& warp, const Instruction& instruction);

// products.cpp
void issue_product(Gpu& gpu, Warp& warp, const Instruction& instruction);
void run_products(Gpu& gpu, Warp& warp, std::uint64_t last);
void commit_products(Gpu& gpu, Warp& warp);
void wait_products(Gpu& gpu, Warp& warp, const Instruction& instruction);
// Faults when a warp has ended without a product that another one of its warpgroup has issued.
void check_issues(Gpu& gpu, const Warp& ended);

// registers.cpp
// Marks elements as read (written) by other than a product; faults when they are in flight.
void read_registers(Gpu& gpu, Warp& warp, const Instruction& instruction, int array,
                    const int* elements, std::size_t count);
void write_registers(Gpu& gpu, Warp& warp, const Instruction& instruction, int array,
                     const int* elements, std::size_t count);
// Faults when one of the elements holds nothing.
void check_written(Gpu& gpu, Warp& warp, const Instruction& instruction, int array, int first,
                   int count);
void read_all(Gpu& gpu, Warp& warp, const Instruction& instruction, int array);
void write_all(Gpu& gpu, Warp& warp, const Instruction& instruction, int array);
void declare_registers(Gpu& gpu, Warp& warp, const Instruction& instruction);
void execute_registers(Gpu& gpu, Warp& warp, const Instruction& instruction);
void execute_scalar(Gpu& gpu, Warp& warp, const Instruction& instruction);

// stores.cpp
void access_global(Gpu& gpu, Warp& warp, const Instruction& instruction);
void move_matrix(Gpu& gpu, Warp& warp, const Instruction& instruction);
void access_elements(Gpu& gpu, Warp& warp, const Instruction& instruction);
void move_words(Gpu& gpu, Warp& warp, const Instruction& instruction);
void shared_scalar(Gpu& gpu, Warp& warp, const Instruction& instruction);
void atomic_add(Gpu& gpu, Warp& warp, const Instruction& instruction);
void load_index(Gpu& gpu, Warp& warp, const Instruction& instruction);

// deadlock.cpp
Fault deadlock(const Gpu& gpu, const std::vector<std::unique_ptr<Cluster>>& clusters);
// capacity.cpp
void check_capacity(const Program& program, FaultLog& log);

}  // namespace tilewright::simulator
