#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "simulator/machine/launch_trace.h"
#include "simulator/machine/recorder.h"
#include "simulator/machine/streams.h"
#include "simulator/machine/timekeeper.h"
#include "simulator/machine/trace.h"

namespace tilewright::simulator {

// Puts an execution on a time axis: each launch (launch_trace.h), and each stream of a program,
// whose clock launches, copies and waits move on.
class TraceRecorder : public Recorder, public Timekeeper {
 public:
  enum class Keeps : std::uint8_t { drawing, clocks };
  explicit TraceRecorder(Keeps keeps = Keeps::drawing) { context_.draws = keeps == Keeps::drawing; }
  std::int64_t time_of(const Warp& warp) override;
  std::int64_t time_of(const Event& event) override;

  void begin(const ir::Program& program, const std::vector<ir::Kernel>& kernels,
             const ir::BufferAddress& address, std::int64_t runs) override;
  void starts(const StreamOperation& operation) override;
  void executed(const StreamOperation& operation, bool over) override;
  void found_multiprocessor(int stream, const Launch& launch) override;
  void changed(const std::byte* first, std::int64_t bytes) override;
  void begin(const Launch& launch) override;
  void starts(const Warp& warp, const Instruction& instruction) override;
  void executed(const Warp& warp, const Instruction& instruction) override;
  void load_issued(const Event& event) override;
  void load_finished(const Event& event) override;
  void arrived(const Warp& warp, const Cta& cta, int barrier) override;
  void phase_completed(const Cta& cta, int barrier) override;
  void executed(const CoreSpan& span) override;
  void end(const std::vector<Fault>& faults) override;

  // Once the run is over.
  Trace take() { return std::move(context_.trace); }
  const LinkTimes& links() const { return context_.links; }

 private:
  struct StreamState {
    std::vector<const ir::ProgramOperation*> operations;  // of a run
    std::int64_t over = 0;                                // of all runs
    std::int64_t clock = 0;
    LaunchTrace* launch = nullptr;          // the last one
    const StreamOperation* copy = nullptr;  // that has been put on the wire
    std::int64_t copy_end = 0;
  };

  StreamState& state_of(const StreamOperation& operation) {
    return streams_[operation.source->stream];
  }
  LaunchTrace& of(const Launch& launch) { return *by_launch_.at(&launch); }
  LaunchTrace& of(const Cta& cta) { return of(*cta.cluster->launch); }
  LaunchTrace& of(const Warp& warp) { return of(*warp.cta); }
  std::string word_text(const ir::ProgramOperation& operation) const;
  // A bar on the stream's lane from its clock on.
  void slice(const StreamOperation& operation, TraceSlice::Kind kind, const std::string& name,
             int detail, std::int64_t end);
  void wait_until(const StreamOperation& operation, const TraceSignal& signal);
  void finish(const StreamOperation& operation);
  std::int64_t copy_end(const ir::ProgramOperation& copy, std::int64_t start);
  // Of a stream that waits when the run is over: to the end of the drawing.
  void end_open_wait(std::size_t stream, std::int64_t end);
  std::string wait_name(const ir::ProgramOperation& operation) const;

  std::optional<TraceMark> cut_short() const;
  TraceFault locate(const Fault& fault) const;
  LaunchTrace::Score find_in_streams(const Fault& fault, SourceLocation where,
                                     TraceMark& mark) const;

  TraceContext context_;
  std::vector<std::unique_ptr<LaunchTrace>> launches_;
  std::unordered_map<const Launch*, LaunchTrace*> by_launch_;
  const ir::Program* program_ = nullptr;
  std::int64_t runs_ = 0;
  std::vector<StreamState> streams_;
  std::vector<TraceSignal> events_;
  bool of_cores_ = false;
  std::int64_t core_begin_ = 0, core_end_ = 0;  // of the operation's instructions on a core
  std::map<std::pair<int, std::int64_t>, std::int64_t> run_ends_;  // of a rank and run
  // What is being executed, of either at most one.
  const StreamOperation* current_stream_ = nullptr;
  LaunchTrace* current_launch_ = nullptr;
  std::optional<TraceMark> stream_cut_short_;
};

}  // namespace tilewright::simulator
