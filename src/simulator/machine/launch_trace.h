#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/machine/launch.h"
#include "simulator/machine/link_times.h"
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
  bool draws = true;  // else clocks alone are kept: no bars, and no texts
  LinkTimes links;
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
  std::int64_t end() const { return end_; }
  std::int64_t clock_of(const Warp& warp) { return state_of(warp).clock; }
  // Of the product in tensor memory, or the commit, that the warp issued last.
  std::int64_t tensor_work_end(const Warp& warp) {
    return std::max(state_of(warp).clock, state_of(warp).product_end);
  }
  // Of the load that was issued last.
  std::int64_t load_end() const { return load_end_; }
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
    std::size_t flight = 0;               // where flights are drawn
  };
  // The commit of products in tensor memory, and when it arrives.
  struct Commit {
    const Instruction* instruction = nullptr;
    std::int64_t end = 0;
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
    std::deque<Commit> commits;     // that have not arrived
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
    TraceSignal now;          // of the phase that is not complete
    std::int64_t phases = 0;  // so many are
    TraceSignal last;         // of these
  };
  struct LoadInFlight {
    const Instruction* instruction = nullptr;
    std::int64_t address = 0;
    std::int64_t end = 0;
    std::size_t flight = 0;  // where flights are drawn
  };
  struct CtaState {
    std::size_t trace = 0;  // in trace_.ctas
    std::vector<WarpState> warps;
    std::vector<BarrierState> barriers;
    std::array<Meeting, 16> named;
    TraceSignal pool;
    Timetable port;   // of what comes to shared memory, and leaves it
    Timetable asked;  // of L2, by the multiprocessor
    Timetable to_peers;
    std::int64_t arrived = 0;  // in other ranks' memory, of all that it has sent there
    std::vector<LoadInFlight> loads;
    Timetable product_unit;
    std::map<std::pair<int, std::uint64_t>, std::int64_t> products;  // warpgroup, sequence: end
    std::map<std::pair<int, std::int64_t>, std::size_t> groups;      // warpgroup, group: flight
  };

  CtaState& state_of(const Cta& cta);
  WarpState& state_of(const Warp& warp) { return state_of(*warp.cta).warps[warp.index]; }
  TraceCta& trace_of(const WarpState& warp) { return trace_.ctas[warp.cta]; }
  std::int64_t start_time(const Cta& cta);
  // The number of the words; where nothing is drawn they are not made.
  template <typename Words>
  int text(Words words) {
    return context_.draws ? context_.text(words()) : 0;
  }
  int iteration_text(const WarpState& warp, int pc);
  void count_iterations(WarpState& warp, const Instruction& instruction);

  void slice(WarpState& warp, TraceSlice::Kind kind, const Instruction& instruction, int name,
             int detail, std::int64_t cycles);
  void merge(WarpState& warp, TraceSlice::Kind kind, const Instruction& instruction, int detail);
  void merge(WarpState& warp, TraceSlice::Kind kind, const Instruction& instruction, int detail,
             std::int64_t cycles);
  void wait_until(WarpState& warp, const Instruction& instruction, int name,
                  const TraceSignal& signal);
  void step(const Warp& warp, WarpState& state, const Instruction& instruction);
  void step_mbarrier(const Warp& warp, WarpState& state, const Instruction& instruction);
  void pass_mbarrier(const Warp& warp, WarpState& state, const Instruction& instruction);
  void join(Meeting& meeting, WarpState& state, const Instruction& instruction, std::int64_t wanted,
            const std::function<std::string()>& name);
  void change_registers(const Warp& warp, WarpState& state, const Instruction& instruction);
  void issue_product(const Warp& warp, WarpState& state, const Instruction& instruction);
  void issue_tensor_product(const Warp& warp, WarpState& state, const Instruction& instruction);
  void wait_for_products(const Warp& warp, WarpState& state, const Instruction& instruction);
  void issue_copy(const Warp& warp, WarpState& state, const Instruction& instruction);
  void wait_for_groups(const Warp& warp, WarpState& state, const Instruction& instruction);
  void wait_for_stores(const Warp& warp, WarpState& state, const Instruction& instruction);
  void end_cta(const Cta& cta);
  void pass_word(const Warp& warp, WarpState& state, const Instruction& instruction);
  void ends_at(std::int64_t time) { end_ = std::max(end_, time); }
  TraceFlight flight_of(const Event& load, std::int64_t end);
  // Its number among the CTA's flights.
  std::size_t draw(const CtaState& cta, const TraceFlight& flight);

  // launch_links.cpp: what it costs that memory is another rank's.
  bool has_peers() const { return context_.links.ranks() > 1; }
  // The rank whose memory is meant, unless it is this one's: -1.
  int peer_with(const Warp& warp, const TensorArgument& tensor, Slot rank) const;
  int peer_with(const std::byte* address) const;
  std::int64_t access_cycles(const Warp& warp, CtaState& cta, WarpState& state,
                             const Instruction& instruction);
  std::int64_t word_cycles(const Warp& warp, const CtaState& cta, const WarpState& state,
                           const Instruction& instruction) const;
  std::int64_t fence_cycles(const CtaState& cta, const WarpState& state,
                            const Instruction& instruction) const;
  // What an operation of the system's scope waits for: all that has been sent.
  std::int64_t release_cycles(const CtaState& cta, const WarpState& state) const;
  // When the bytes have left, and their source may change.
  std::int64_t push(CtaState& cta, int peer, std::int64_t bytes, bool adds, std::int64_t from);
  // When L2 has sent what the load's issuer asks for.
  std::int64_t ask(const Event& load);
  // When bytes that are asked for at the time are here.
  std::int64_t pull(int peer, std::int64_t bytes, std::int64_t from);

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
  std::int64_t end_ = 0, load_end_ = 0;
  // The copy that was asked for last: it is, once, for all CTAs that receive it.
  struct Asked {
    const Warp* issuer = nullptr;
    const Instruction* instruction = nullptr;
    std::int64_t clock = 0, end = 0;
  };
  Asked asked_;
  // While it is executed: the warp's instruction, of which the clock is at the start.
  const Warp* current_warp_ = nullptr;
  const Instruction* current_ = nullptr;
  std::optional<TraceMark> cut_short_;  // the access with which a fault ended the run
};

}  // namespace tilewright::simulator
