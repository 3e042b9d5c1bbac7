#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/node_transfers.h"
#include "api/program_ranks.h"
#include "api/program_watch.h"
#include "api/run_numbers.h"
#include "api/word_waits.h"
#include "compiler/compiled.h"
#include "ir/program.h"
#include "runtime/device.h"

namespace tilewright {

// What the ranks of this process queue in a run of a bound program. All that no run changes is
// found once, so that a run costs little beside the driver's own calls.
class ProgramSteps {
 public:
  // Of each rank, the program's kernels.
  using Kernels = std::map<int, std::vector<std::unique_ptr<compiler::CompiledKernel>>>;
  using Events = std::map<int, runtime::Event>;

  // Raises what a launch would raise before anything is queued. All arguments outlive it; there may
  // be no watch. With numbers, runs count there, and what is said of a run's number is not heard.
  ProgramSteps(const ir::Program& bound, const ProgramRanks& ranks, const Kernels& kernels,
               const WordWaits& waits, const Events& events, const ir::BufferAddress& address,
               ProgramWatch* watch, const RunNumbers* numbers = nullptr);

  // `streams`: of each of the program's streams that this process has, by its number, where its
  // steps go.
  void queue(std::int64_t run, const std::vector<const runtime::Stream*>& streams);

 private:
  struct Word {
    const ir::ProgramOperation* operation;
    std::byte* at;
  };
  struct Step {
    const ir::ProgramOperation* operation = nullptr;
    int rank = 0;
    const compiler::CompiledKernel* kernel = nullptr;
    std::optional<compiler::CompiledKernel::Ready> launch;  // none: its scalars depend on the run
    std::vector<ir::CopiedRows> rows;
    std::vector<Word> words;  // of operations that follow each other, by one of the driver's calls
    std::string about;        // the words, for errors
    const runtime::Event* event = nullptr;
    // Where runs are counted on the GPUs: recorded behind it, and what it waits for.
    std::optional<runtime::Event> ran;
    std::vector<const runtime::Event*> behind;
    NodeTransfers::Transfer transfer;  // behind it
    bool is_replaced = false;          // by the transfer of its exchange
  };

  Step prepared(const ir::ProgramOperation& operation, int rank, const Kernels& kernels,
                const Events& events) const;
  void queue(Step& step, const runtime::Stream& stream, std::int64_t run) const;
  void queue_own(Step& step, const runtime::Stream& stream, std::int64_t run) const;
  void queue_words(const Step& step, const runtime::Stream& stream, std::int64_t run) const;
  void join_words();
  void run_words_first(const ProgramRanks& ranks);
  static bool is_by_driver(const Step& step);

  const ir::Program& program_;
  const WordWaits& waits_;
  const NodeTransfers* const nodes_;
  ProgramWatch* const watch_;
  const RunNumbers* const numbers_;
  const ir::BufferAddress address_;
  std::vector<Step> steps_;
};

}  // namespace tilewright
