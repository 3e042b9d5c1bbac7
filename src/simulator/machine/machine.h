#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "support/arguments.h"

// The virtual GPU: executes the machine form of a kernel with concurrent warps and asynchronous
// copies and products, whose order and instants a seed draws.
namespace tilewright::simulator {

class Recorder;
class Timekeeper;

struct Fault {
  // deadlock, uninitialised, race, proxy, out_of_bounds, mbarrier, named_barrier, wgmma, bulk,
  // capacity, registers, tensor_map, exit, workspace, provenance
  std::string kind;
  SourceLocation first, second;
  std::string message;  // what is wrong with which object, then one line for each access
  std::string missing;  // what the kernel lacks; empty when that is not known
};

// How the order of warps and asynchronous work follows from the seed (schedule.h).
enum class Search : std::uint8_t {
  random,  // the seed draws it: uniformly, or by priorities
  delays,  // the seed counts through schedules with at most two delays
  held,    // the seed is the number of an arrival or access to a word; its warp stays before it
  handed,  // atomic additions come last, and the seed's digits say whose is the next one
  time,    // MachineOptions::timekeeper says it
};

// Of the seed of Search::handed, for each choice, from the lowest on. The highest stand for all
// further ones.
constexpr int kBitsOfHanded = 4;

// What the runtime keeps for a kernel from launch to launch: workspaces, signals, scratch memory.
struct OwnedMemory {
  std::vector<std::vector<std::int32_t>> buffers;
};

struct MachineOptions {
  std::uint64_t seed = 0;
  // Its number among launches in a row, each of which draws a schedule of its own.
  std::uint64_t launch = 0;
  // Launch 0 makes it anew, and each one behind finds what the one before left; null: each is the
  // first.
  OwnedMemory* owned = nullptr;
  Search search = Search::random;
  std::int64_t multiprocessors = 132;
  // CTAs at a time, rounded up to whole clusters. Those that wait for each other have all places of
  // the GPU.
  std::int64_t resident = 1;
  // In random search those that count in global words have them too where seed + launch is odd.
  bool counting_fills_gpu = true;
  // How many places of others a cluster takes over (launch control), as long as there are some;
  // none: the seed draws it. Which ones the seed draws in any case.
  std::optional<std::int64_t> takes = {};
  bool stop_at_first = true;
  bool check_order = true;  // races and missing proxy fences
  // Also proxy fences between threads' reads and asynchronous writes where an mbarrier, or another
  // launch, stands between the two: most pipelines leave those out.
  bool strict = false;
  // Products in tensor memory of one thread follow each other, whatever their shapes: programs of
  // others rely on it. PTX orders only those of one shape on one result.
  bool issue_order = false;
  // Without arithmetic on tiles: control flow, scalars, addresses, synchronisation and every check
  // are executed, values in registers only where a condition needs them, and outputs are left
  // alone. A condition that depends on a product or on tiles in shared memory becomes a choice that
  // the seed draws, so that schedules are covered which no data leads to. A kernel that reads an
  // index out of what it computed itself is refused.
  bool control_only = false;
  // Also what depends on the order that the seed draws (MachineReport::timing).
  bool timing = false;
  // Also which bytes of its outputs the kernel writes (MachineReport::written). Wants check_order.
  bool note_written = false;
  // Also where the elements of products come from (provenance.h): faults of kind provenance. It
  // asks that both operands of a sum advance together, which is not every kernel's way.
  bool provenance = false;
  // A run that executes more ends with Error(result): a kernel may never come to its end.
  std::int64_t max_operations = INT64_MAX;
  // exp, exp2, log, sin and cos as the printed kernel computes them, bit by bit where the
  // instructions themselves are the host's functions.
  bool by_instructions = false;
  Recorder* recorder = nullptr;  // is told what happens (recorder.h)
  // What is first goes first; null: the seed draws it (schedule.h).
  Timekeeper* timekeeper = nullptr;
};

// Arrivals on mbarriers, with MachineOptions::timing. One that may count for another phase than it
// did is no matter of the order where nobody waits for it (timing.h). Whether somebody does where
// there are more turns, other sizes tell: those that wait for a phase of the same arrival.
struct ArrivalsInTime {
  using Instruction =
      std::pair<std::string, std::size_t>;    // the kernel's name, a place in its code
  std::map<Instruction, std::string> unsure;  // with what may be otherwise
  std::set<Instruction> counted, awaited;     // all of them; those with a phase that is awaited
  void join(const ArrivalsInTime& other);
  // What may be otherwise of an arrival of which no run waits for a phase; empty where there is
  // none.
  std::string never_awaited() const;
  bool all_awaited() const;
};

// A unit of a core with explicit memories, over the modelled time of a launch, for all cores and
// all of its instances together.
struct UnitUse {
  std::string name;
  std::int64_t instances = 0;
  std::int64_t instructions = 0;
  std::int64_t busy = 0;                // cycles
  std::int64_t conflicts = 0;           // of these, in which operands waited for each other's banks
  std::int64_t short_moves = 0;         // instructions that move less than their way is made for
  std::vector<std::int64_t> over_time;  // the same of each of as many equal parts of the time
};

struct MachineReport {
  std::vector<Fault> faults;
  std::int64_t operations = 0;                       // executed by warps
  std::int64_t choices = 0;                          // of the schedule, among several
  std::map<std::string, std::int64_t> instructions;  // of these, by the IR's name
  // With MachineOptions::timing: the first thing that may be otherwise in another schedule. Empty,
  // as `words` is: nothing is, so that a run without faults stands for all schedules (timing.h).
  std::string timing;
  // The first access to a word whose place among other warps' accesses may be another one.
  std::string words;
  // Whether Search::handed takes all such accesses one after the other, so that with each order of
  // these a run stands for all schedules (timing.h).
  bool is_handed_out = true;
  // With Search::handed: of each choice among warps before atomic additions, how many there were.
  std::vector<std::uint8_t> stood;
  ArrivalsInTime arrivals;
  std::int64_t taken = 0;  // places of others that one cluster took over, at most
  // With MachineOptions::timing, of a program: buffers and ranks in which somebody has read, or
  // added to, what one of its streams had set to zero and nobody had written since.
  std::set<std::pair<int, int>> zeros_read;
  // With MachineOptions::note_written, of each output: of every 16 bytes of its memory, which ones
  // have been written.
  std::vector<std::vector<std::uint16_t>> written;
  // Of a core with explicit memories.
  std::vector<UnitUse> units;
  std::int64_t cycles = 0;  // of modelled time, all cores beside each other
  bool ok() const { return faults.empty(); }
};

// The computations on registers that a run without arithmetic leaves out: what they make decides no
// condition that it evaluates. By their numbers in the order of ir::for_each.
std::vector<bool> computations_left_out(const ir::Kernel& kernel, const Arguments& arguments,
                                        std::int64_t multiprocessors);

MachineReport run_machine(const ir::Kernel& kernel, const Arguments& arguments,
                          const MachineOptions& options = {});

}  // namespace tilewright::simulator
