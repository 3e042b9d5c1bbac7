#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/machine/launch.h"
#include "simulator/machine/timetable.h"
#include "simulator/machine/trace.h"

namespace tilewright::simulator {

// When something is there, and what made it so: a text.
struct TraceSignal {
  std::int64_t time = 0;
  int cause = 0;
  void add(const TraceSignal& other) {
    if (other.time >= time) *this = other;
  }
};

// What the launches of a world share.
struct TraceContext {
  Trace trace;
  std::map<const std::byte*, TraceSignal> words;  // of global memory, by their last writes
  int text(const std::string& words);

 private:
  std::unordered_map<std::string, int> numbers_;
};

// Puts a launch on the time axis. Every warp has a clock, which its instructions move on by what
// they cost (cycle_costs.h) and its waits to the instant at which what they wait for is there. The
// order in which the execution happened decides what a wait waits for; its instants mean nothing.
class LaunchTrace {
 public:
  // The launch begins at `start`.
  LaunchTrace(TraceContext& context, const Launch& launch, std::int64_t start);

  // As of a Recorder.
  void starts(const Warp& warp, const Instruction& instruction);
  void executed(const Warp& warp, const Instruction& instruction);
  void load_issued(const Event& event);
  void load_finished(const Event& event);
  void arrived(const Warp& warp, const Cta& cta, int barrier);
  void phase_completed(const Cta& cta, int barrier);
  // By the instruction that is being executed.
  void changed(const std::byte* first, std::int64_t bytes);

  // When all that it has done so far is over.
  std::int64_t end() const;
  // The run is over. First of all launches, what waits is drawn to the trace's end; then marks.
  void finish_cut_short();
  void end_open_waits(std::int64_t end);
  // The access with which a fault ended the run, if it is of this launch.
  const std::optional<TraceMark>& cut_short() const { return cut_short_; }
  // How well an access fits what the fault tells of the one at `where`, and the mark of the best.
  using Score = std::tuple<int, int, std::int64_t>;
  Score find_access(const Fault& fault, SourceLocation where, TraceMark& mark) const;

 private:
  // Instructions from the target of a jump back to the jump.
  struct Loop {
    int first = 0, last = 0;
  };
  // Work of a unit that its warp waits for in groups.
  struct Pending {
    std::int64_t group = 0;
    std::int64_t first_end = 0, end = 0;  // of a store: its source is read, its bytes are written
    std::size_t flight = 0;
  };
  struct WarpState {
    std::size_t cta = 0;  // in trace_.ctas
    int index = 0;
    std::int64_t clock = 0;
    std::vector<int> iterations;  // of each loop
    std::uint64_t jumps_back = 0;
    std::uint64_t slice_jumps_back = 0;  // when the last slice began
    std::int64_t product_end = 0;
    std::vector<Pending> products, stores;
    const Warp* waiting = nullptr;  // itself, while it is blocked
  };
  struct Arrival {
    WarpState* warp = nullptr;
    const Instruction* instruction = nullptr;
  };
  // A named barrier, or the cluster's.
  struct Meeting {
    std::int64_t arrived = 0;
    TraceSignal last;
    std::vector<Arrival> waiting;
  };
  struct BarrierState {
    TraceSignal now;                  // of the phase that is not complete
    std::vector<TraceSignal> phases;  // complete ones
  };
  struct CtaState {
    std::size_t trace = 0;  // in trace_.ctas
    std::vector<WarpState> warps;
    std::vector<BarrierState> barriers;
    std::array<Meeting, 16> named;
    TraceSignal pool;
    Timetable port;
    Timetable product_unit;
    std::map<std::pair<int, std::uint64_t>, std::int64_t> products;  // warpgroup, sequence: end
    std::map<std::pair<int, std::int64_t>, std::size_t> groups;      // warpgroup, group: flight
  };
  struct LoadInFlight {
    const Instruction* instruction = nullptr;
    std::int64_t cta = 0, address = 0;
    std::size_t flight = 0;
  };

  CtaState& state_of(const Cta& cta);
  WarpState& state_of(const Warp& warp) { return state_of(*warp.cta).warps[warp.index]; }
  TraceCta& trace_of(const WarpState& warp) { return trace_.ctas[warp.cta]; }
  std::int64_t start_time(const Cta& cta);
  int text(const std::string& words) { return context_.text(words); }
  int iteration_text(const WarpState& warp, int pc);
  void count_iterations(WarpState& warp, const Instruction& instruction);

  TraceSlice& slice(WarpState& warp, TraceSlice::Kind kind, const Instruction& instruction,
                    int name, int detail, std::int64_t cycles);
  void merge(WarpState& warp, TraceSlice::Kind kind, const Instruction& instruction, int detail);
  void wait_until(WarpState& warp, const Instruction& instruction, int name,
                  const TraceSignal& signal);
  void step(const Warp& warp, WarpState& state, const Instruction& instruction);
  void step_mbarrier(const Warp& warp, WarpState& state, const Instruction& instruction);
  void pass_mbarrier(const Warp& warp, WarpState& state, const Instruction& instruction);
  void join(Meeting& meeting, WarpState& state, const Instruction& instruction, std::int64_t wanted,
            const std::string& name);
  void change_registers(const Warp& warp, WarpState& state, const Instruction& instruction);
  void issue_product(const Warp& warp, WarpState& state, const Instruction& instruction);
  void wait_for_products(const Warp& warp, WarpState& state, const Instruction& instruction);
  void issue_copy(const Warp& warp, WarpState& state, const Instruction& instruction);
  void wait_for_groups(const Warp& warp, WarpState& state, const Instruction& instruction);
  void wait_for_stores(const Warp& warp, WarpState& state, const Instruction& instruction);
  void end_cta(const Cta& cta);
  void pass_word(const Warp& warp, WarpState& state, const Instruction& instruction);

  int barrier_of(const Warp& warp, const Instruction& instruction) const;
  std::string place_of(int allocation, std::int64_t address) const;
  std::string coordinates(const std::array<std::int64_t, 5>& at, int rank) const;
  std::string who(const TraceCta& cta, int warp) const;

  TraceContext& context_;
  Trace& trace_;
  const Launch* const launch_;
  const int number_;  // in trace_.launches
  const std::int64_t start_;
  std::vector<Loop> loops_;
  std::map<std::int64_t, std::unique_ptr<CtaState>> ctas_;  // by index
  std::map<std::int64_t, std::int64_t> cluster_starts_;
  std::multimap<std::int64_t, std::int64_t> free_from_;  // when a place is free: CTAs of it
  std::map<const Cluster*, Meeting> cluster_meetings_;
  std::vector<LoadInFlight> loads_;
  // While it is executed: the warp's instruction, of which the clock is at the start.
  const Warp* current_warp_ = nullptr;
  const Instruction* current_ = nullptr;
  std::optional<TraceMark> cut_short_;  // the access with which a fault ended the run
};

}  // namespace tilewright::simulator
