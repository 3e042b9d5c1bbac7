#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "api/caller_runs.h"
#include "api/caller_tensors.h"
#include "api/program_ranks.h"
#include "api/program_steps.h"
#include "api/run_numbers.h"
#include "api/word_waits.h"
#include "compiler/target.h"
#include "runtime/device.h"
#include "tilewright/program.h"

namespace tilewright {

// What is compiled of a program, and the memory and streams that it runs on.
struct ProgramExecutable::State {
  ir::Program recorded;
  ir::Kernel signature;  // what its callers see
  compiler::Target target;
  CompileOptions options;
  std::unique_ptr<CallerRuns> caller;  // once somebody calls
  std::mutex mutex;                    // of that, and of runs on callers' tensors
  std::vector<ir::Kernel> machine;
  std::optional<ir::Program> program;   // bound to the sizes of the memory that is loaded
  std::unique_ptr<ProgramRanks> ranks;  // null: on another target than cuda
  // Of each rank that this process runs; so are the streams and events, by their numbers.
  ProgramSteps::Kernels kernels;
  WordWaits waits;
  std::map<int, runtime::Stream> streams;
  std::map<int, runtime::Event> events;  // of the program
  std::map<int, runtime::Event> ends;    // of each stream's run
  std::map<int, runtime::Event> begins;  // of each rank's run on a caller's stream
  std::unique_ptr<ProgramWatch> watch;   // of its runs, if anybody asks
  std::unique_ptr<ProgramSteps> steps;   // of `program`, on the memory that it has
  std::int64_t runs = 0;                 // since load, or with a caller's sizes
  DimValues sizes;
  // A caller's tensors, of each rank each buffer's, and their sizes; empty: memory of its own.
  std::vector<std::vector<std::byte*>> passed;
  std::map<int, runtime::Stream> passed_streams;  // of the latest run, by rank
  std::optional<ir::Kernel> of_rank;              // once a run in a group has asked for it
  std::vector<std::int64_t> passed_sizes;
  std::unique_ptr<CountKernels> count_kernels;  // of runs on callers' tensors, once asked for
  std::unique_ptr<RunNumbers> numbers;          // of `program`, with these

  std::byte* at(int buffer, int rank) const {
    // What its kernels own comes behind the buffers that the program has as recorded.
    if (!passed.empty() && static_cast<std::size_t>(buffer) < recorded.buffers.size()) {
      std::byte* const own = passed.at(static_cast<std::size_t>(rank)).at(buffer);
      if (own != nullptr) return own;
    }
    return ranks->at(buffer, rank);
  }
  bool is_in_group() const { return ranks->group() != nullptr; }

  const CallerRuns& callers();
  void build();
  void make_streams();
  void run_on(std::unique_ptr<ProgramRanks> made);
  void require_devices() const;
  // Memory of these sizes, and launches that are known to fit it.
  void bind(const DimValues& sizes, const ir::ReadBuffer& contents = {});
  void require_memory();
  void clear(const ir::Program& of) const;  // all memory of its buffers to zeros
  // While nothing is queued: who waits for a launch that fails then would wait forever.
  void prepare_steps();
  void queue_steps(std::int64_t run, const ProgramRanks::Streams& queues) const;
  // On the memory that is loaded, and on the program's own streams.
  void queue_run(std::int64_t run) const;
  // Whether the stream's rank has another one.
  bool shares_rank(int stream) const;
  // What the buffers that are passed hold in each rank of this process, by `move`.
  template <typename Move>
  void for_each_tensor(const Move& move) const;

  // Runs on callers' tensors and streams, one of each rank: program_passed_runs.cpp.
  void run_passed(const Arguments& arguments, const std::vector<void*>& callers);
  void synchronize();  // all of them have ended
  // Whether the streams are captured in a CUDA graph, and the run can be.
  bool is_captured(const Arguments& arguments, const std::vector<void*>& callers) const;
  // The tensors of a run; memory beside them where their sizes are new.
  void pass(const Arguments& arguments);
  void bind_passed(const Arguments& arguments);
  // Where the other ranks have what they pass and this one reaches, or the other way round.
  void share_places(std::vector<std::vector<std::byte*>>& places,
                    const std::vector<TensorArgument>& own) const;
  runtime::Stream caller_stream(int rank, const std::vector<void*>& callers) const;
  // Whether a stream of the program may be the caller's.
  bool runs_on(const runtime::Stream& callers) const;
  void queue_run(std::int64_t run, const std::vector<void*>& callers, bool is_captured);
};

inline ProgramRanks::Streams streams_of(const std::map<int, runtime::Stream>& streams) {
  ProgramRanks::Streams all;
  for (const auto& [number, stream] : streams) all.push_back(&stream);
  return all;
}

}  // namespace tilewright
