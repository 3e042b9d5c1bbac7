#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/machine/access_places.h"
#include "simulator/machine/cta.h"
#include "simulator/machine/fault_log.h"
#include "simulator/machine/machine.h"
#include "simulator/machine/matrix_descriptor.h"
#include "simulator/machine/order.h"
#include "simulator/machine/prepared_kernel.h"
#include "simulator/machine/provenance.h"
#include "simulator/machine/recorder.h"
#include "simulator/machine/start_order.h"
#include "simulator/machine/timing.h"
#include "support/random.h"

// One launch of a kernel on the virtual GPU. What each instruction does lies in one file a unit:
// synchronisation.cpp, copies.cpp, products.cpp, registers.cpp, stores.cpp.
namespace tilewright::simulator {

class World;

// What a launch is in the world that executes it.
struct LaunchPlace {
  int rank = 0;      // whose device executes it
  std::string name;  // "gemm of rank 1, run 2"; empty for a launch alone
  // Behind a warp's name, such as " of gemm of rank 1"; empty for a launch alone.
  std::string label;
  // Behind an access: ", launched at program.cpp:30 in stream main, run 2".
  std::string launched;
  // In its stream, and what that stream knows before it.
  int stream = 0;
  std::int64_t run = 0;
  Epoch position = 0;
  std::shared_ptr<const Beyond> known;
};

class Launch {
 public:
  // `kernel` and `arguments` must outlive the world.
  Launch(World& world, const PreparedKernel& kernel, const Arguments& arguments,
         const MachineOptions& options, LaunchPlace place = {});

  World& world;
  const PreparedKernel& kernel;
  const Arguments& arguments;
  const LaunchPlace place;
  MachineReport& report;
  FaultLog& log;
  Random& random;
  Recorder* const recorder;  // null when nobody watches
  Order order;
  Timing timing;
  Footprints footprints;
  std::optional<Provenance> provenance;  // where MachineOptions ask for it
  PlacesOfWarps<SharedPlaces> shared_places;
  PlacesOfWarps<TensorPlaces> tensor_places;

  // Clusters that have not started, and those that are executed.
  bool all_started() const { return to_start_.count() == 0; }
  const std::vector<std::unique_ptr<Cluster>>& clusters() const { return clusters_; }
  std::int64_t live_ctas() const;
  std::int64_t waiting_ctas() const;
  // Whether clusters have ended that nothing asynchronous needs any more; forgets them.
  bool can_retire() const { return ended_ > 0 && under_way_ == 0; }
  void retire();
  bool is_over() const { return to_start_.count() == 0 && clusters_.empty(); }
  // What its warps have acquired, once it is over; its own work is not among it.
  const std::shared_ptr<const Beyond>& left() const { return left_.beyond; }
  void start_next();
  // The first CTA of a cluster that has not started, and now will not; -1 if there is none.
  std::int64_t take_over(Cluster& cluster);
  void run_warp(Warp& warp);
  // Asynchronous work of the launch, which is the world's from here on.
  void add_event(Event event);
  void happen(std::size_t event);  // of the world's
  // Into the report, once the run is over.
  void count_instructions() const;

  // Blocks the warp until the word changes. The instruction is then executed again.
  void wait_for_word(Warp& warp, const Instruction& instruction, WordWait wait);
  void block(Warp& warp, Warp::State state, const Instruction& instruction);
  // Blocks a warp that allocates, and has stepped on, until a CTA gives columns back. It then tries
  // again.
  void wait_for_columns(Warp& warp, const Instruction& instruction);
  void look_for_columns();
  void wake(Warp& warp);
  // Whether a wait for an mbarrier has not passed, blocked or not.
  bool looks_again(const Warp& warp, const Instruction& instruction) const {
    return instruction.code == Code::mbarrier && &kernel.code[warp.pc] == &instruction;
  }

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

  // Whether the start of the axis, and the limit that its block has, lie as they must; else a
  // fault.
  bool fits(const Warp& warp, const Instruction& instruction, const TensorArgument& tensor,
            const analysis::AxisCheck& check, std::int64_t start, std::int64_t limit);
  // A check that the kernel itself has (operations.def).
  void check_numbers(const Warp& warp, const Instruction& instruction);
  // Whether the bytes lie inside the allocation; else a fault. The caller then leaves them alone.
  bool inside(const Warp& warp, const Instruction& instruction, int allocation,
              std::int64_t address, std::int64_t bytes);
  // Whether the address is a multiple of the bytes of one access; else a fault.
  bool aligned(const Warp& warp, const Instruction& instruction, int allocation,
               std::int64_t address, std::int64_t bytes);
  // Faults when the bytes hold nothing.
  void check_held(const Warp& warp, const Instruction& instruction, const Cta& cta, int allocation,
                  std::int64_t address, std::int64_t bytes);

 private:
  void execute(Warp& warp, const Instruction& instruction);
  void finish(Warp& warp);
  void check_exit(const Cta& cta);
  [[noreturn]] void raise_too_long() const;
  std::shared_ptr<TakenColumns> place_in_tensor_memory(std::int64_t rank);

  const std::int64_t max_operations_;
  const std::optional<std::int64_t> takes_;
  // CTAs that may share a multiprocessor. Time is told for CTAs that do not.
  const std::int64_t on_one_ = 1;
  // Of multiprocessors, by the rank of the CTAs that they have: those of a cluster share none.
  std::vector<std::vector<std::weak_ptr<TakenColumns>>> taken_columns_;
  std::vector<Warp*> wait_for_columns_;
  StartOrder to_start_;  // clusters that have not started
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::size_t ended_ = 0;                     // of these, clusters without a warp that is left
  std::int64_t under_way_ = 0;                // events
  View left_;                                 // of which the part beyond clusters counts
  std::vector<Scalar> moved_;                 // by the move being executed
  std::array<std::int64_t, 256> executed_{};  // by ir::Op
};

// synchronisation.cpp
void execute_mbarrier(Launch& launch, Warp& warp, const Instruction& instruction);
// `early`: the bytes may come before they are expected.
void complete_tx(Launch& launch, const Event& event, std::int64_t bytes, bool early);
// The number in the CTA of a barrier of the array, or -1 after a fault.
int find_barrier(Launch& launch, const Warp& warp, const Instruction& instruction, int array,
                 std::int64_t index);
// Whether the barrier is initialised, and the warp knows it; else a fault. Copies and other CTAs
// learn of it through fence_barrier_init, copies of the CTA through fence_proxy_async as well.
bool usable(Launch& launch, const Warp& warp, const Instruction& instruction, const Cta& cta,
            int barrier);
void named_barrier(Launch& launch, Warp& warp, const Instruction& instruction);
void cluster_sync(Launch& launch, Warp& warp, const Instruction& instruction);
void set_max_registers(Launch& launch, Warp& warp, const Instruction& instruction);

void execute_fence(Launch& launch, Warp& warp, const Instruction& instruction);
// Of copies or of products.
void commit_group(Launch& launch, Warp& warp, const Instruction& instruction);
void wait_for_groups(Launch& launch, Warp& warp, const Instruction& instruction);

// copies.cpp
void issue_copy(Launch& launch, Warp& warp, const Instruction& instruction);
void finish_load(Launch& launch, const Event& event);
// Moves the store on until it has reached the stage.
void advance_store(Launch& launch, Warp& warp, Store& store, Store::Stage stage);
void bulk_commit(Warp& warp);
void bulk_wait(Launch& launch, Warp& warp, const Instruction& instruction);

// products.cpp
void issue_product(Launch& launch, Warp& warp, const Instruction& instruction);
void run_products(Launch& launch, Warp& warp, std::uint64_t last);
void commit_products(Launch& launch, Warp& warp);
void wait_products(Launch& launch, Warp& warp, const Instruction& instruction);
// Faults when a warp has ended without a product that another one of its warpgroup has issued.
void check_issues(Launch& launch, const Warp& ended);

// Counts an arrival of the phase in that CTA, by what the issuing warp has committed: all of `work`
// is over.
void arrive_by_commit(Launch& launch, Warp& warp, const TensorWork& work, Cta& receiver);

// launch_control.cpp
void control_launch(Launch& launch, Warp& warp, const Instruction& instruction);
void answer_cancel(Launch& launch, const Event& event);

// tensor_memory.cpp
// Steps on by itself, since a CTA of a pair waits for the other one.
void allocate_tensor_memory(Launch& launch, Warp& warp, const Instruction& instruction);
void access_tensor_memory(Launch& launch, Warp& warp, const Instruction& instruction);
void wait_for_tensor_memory(Launch& launch, Warp& warp, const Instruction& instruction);
void fence_tensor_memory(Launch& launch, Warp& warp, const Instruction& instruction);
// The CTA's allocation of the columns from the address on; null after a fault.
const TensorMemory::Held* find_columns(Launch& launch, const Warp& warp,
                                       const Instruction& instruction, const Cta& cta, int memory,
                                       std::int64_t address, int columns);
// The results of products in the part are no longer there: faults for those that nobody has read.
void replace_results(Launch& launch, const Warp& warp, const Instruction& instruction, Cta& cta,
                     const TensorMemory::Part& part);
// Of the CTA or of its pair.
void note_read(Launch& launch, Cta& cta, const TensorMemory::Part& part);
// Faults where the CTA that has ended still holds columns.
void check_tensor_memory(Launch& launch, const Cta& cta);
// tensor_products.cpp
void issue_tensor_product(Launch& launch, Warp& warp, const Instruction& instruction);
void issue_tensor_copy(Launch& launch, Warp& warp, const Instruction& instruction);
void commit_tensor_products(Launch& launch, Warp& warp, const Instruction& instruction);
void run_tensor_work(Launch& launch, Warp& warp, std::uint64_t last);

// registers.cpp
// Marks elements as read (written) by other than a product; faults when they are in flight.
void read_registers(Launch& launch, Warp& warp, const Instruction& instruction, int array,
                    const int* elements, std::size_t count);
void write_registers(Launch& launch, Warp& warp, const Instruction& instruction, int array,
                     const int* elements, std::size_t count);
// Faults when one of the elements holds nothing.
void check_written(Launch& launch, Warp& warp, const Instruction& instruction, int array, int first,
                   int count);
void read_all(Launch& launch, Warp& warp, const Instruction& instruction, int array);
void write_all(Launch& launch, Warp& warp, const Instruction& instruction, int array);
void declare_registers(Launch& launch, Warp& warp, const Instruction& instruction);
void execute_registers(Launch& launch, Warp& warp, const Instruction& instruction);
void execute_scalar(Launch& launch, Warp& warp, const Instruction& instruction);

// stores.cpp
void access_global(Launch& launch, Warp& warp, const Instruction& instruction);
void move_matrix(Launch& launch, Warp& warp, const Instruction& instruction);
void access_elements(Launch& launch, Warp& warp, const Instruction& instruction);
void move_words(Launch& launch, Warp& warp, const Instruction& instruction);
void shared_scalar(Launch& launch, Warp& warp, const Instruction& instruction);

// signals.cpp
// Element 0 of the tensor in the rank that the slot holds, or in this one; null after a fault.
std::byte* data_in_rank(Launch& launch, const Warp& warp, const Instruction& instruction,
                        const TensorArgument& tensor, Slot rank);
void access_word(Launch& launch, Warp& warp, const Instruction& instruction);
void wait_flag(Launch& launch, Warp& warp, const Instruction& instruction);

// deadlock.cpp
Fault deadlock(const World& world);
// capacity.cpp
void check_capacity(const PreparedKernel& kernel, FaultLog& log);

}  // namespace tilewright::simulator
