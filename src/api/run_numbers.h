#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "api/program_ranks.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "ir/program.h"
#include "runtime/device.h"
#include "tilewright/kernel.h"
#include "tilewright/memory_order.h"

namespace tilewright {

// Write the second tensor's word to the first one's, and wait until this compares so with it. What
// a stream has done before it writes is known behind the wait.
Kernel write_counted_word();
Kernel wait_for_counted_word(Compare compare);

// Whether the kernel of a launch waits for words that streams write.
bool waits_for_streams(const ir::Program& program, const ir::ProgramOperation& operation);
// Whether that is one of these kernels: a copy engine writes words of other GPUs.
bool is_word_kernel(const ir::Program& program, const ir::ProgramOperation& operation);

// Kernels by which runs find their numbers in memory, of each rank of this process.
class CountKernels {
 public:
  // Raises a usage error, at the launch's line, for a scalar that depends on the number of the run,
  // and for a kernel that would stand in the way of the words that it waits for.
  CountKernels(const ir::Program& recorded, const ProgramRanks& ranks,
               compiler::BuildOptions options);

  // The program's own, whose epoch is a word.
  const compiler::CompiledKernel& launched(int rank, int kernel) const {
    return *launched_.at({rank, kernel});
  }
  // Adds `step` to `now`, vectors of i32.
  const compiler::CompiledKernel& count(int rank) const { return *counts_.at(rank); }
  const compiler::CompiledKernel& write(int rank) const { return *writes_.at(rank); }
  const compiler::CompiledKernel& wait(int rank, Compare compare) const {
    return *waits_.at({rank, compare});
  }

 private:
  using Compiled = std::unique_ptr<compiler::CompiledKernel>;
  std::map<std::pair<int, int>, Compiled> launched_;
  std::map<int, Compiled> counts_, writes_;
  std::map<std::pair<int, Compare>, Compiled> waits_;
};

// What counts up with the runs of a bound program, kept on the GPUs: a run adds to it before
// anything else. So a run is queued as the one before, and a CUDA graph of one is as many as it is
// launched.
class RunNumbers {
 public:
  // As behind so many runs. All arguments outlive it.
  RunNumbers(const ir::Program& bound, const ProgramRanks& ranks, const CountKernels& kernels,
             std::int64_t runs);

  const CountKernels& kernels() const { return kernels_; }
  // The next run has begun, for what is behind it in the rank's streams.
  void count(int rank, const runtime::Stream& stream) const;
  // Of a launch.
  const std::int32_t* epoch(const ir::ProgramOperation& launch) const;
  // A write of the word, or a wait for it.
  void queue(const ir::ProgramOperation& operation, std::byte* word,
             const runtime::Stream& stream) const;

 private:
  struct Numbers {
    std::int64_t count = 0;
    runtime::DeviceBuffer now, step;
  };
  std::byte* word_of(const ir::ProgramOperation& operation) const;

  const ir::Program& program_;
  const CountKernels& kernels_;
  std::map<int, Numbers> numbers_;                                // of each rank
  std::map<const ir::ProgramOperation*, std::size_t> positions_;  // in its rank's numbers
};

}  // namespace tilewright
