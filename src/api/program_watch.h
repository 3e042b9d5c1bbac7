#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/program_ranks.h"
#include "ir/program.h"
#include "runtime/device.h"

namespace tilewright {

// How far the streams of a program have come, so that one that stands still can say at which of its
// operations, and for what it waits. For TILEWRIGHT_WATCH.
class ProgramWatch {
 public:
  // `bound` outlives it.
  ProgramWatch(const ir::Program& bound, const ProgramRanks& ranks, double seconds);

  // Queued behind each operation of this process's streams, in their order.
  void note(const ir::ProgramOperation& operation, const runtime::Stream& stream);
  // Returns when the streams have ended; raises where none of them has gone on for so long.
  void wait_for(const ProgramRanks::Streams& streams) const;
  // What each stream that has not ended waits for, and who ends that: each in a line of its own.
  std::string text() const;
  // Who writes the words of a kernel's parameter, beside the kernel itself.
  std::string writers_of(const ir::ProgramOperation& launch, const std::string& parameter) const;

 private:
  struct Stream {
    std::vector<const ir::ProgramOperation*> operations;  // of a run
    std::uint32_t queued = 0;                             // of all runs, modulo 2^32
  };

  // What asks for a word in a rank while its streams stand still.
  struct Asks {
    explicit Asks(const runtime::Device& device)
        : stream(device), found(device, sizeof(std::int32_t)) {}
    const runtime::Stream stream;
    const runtime::PinnedBuffer found;
  };

  std::uint32_t done(std::size_t stream) const;
  std::string line(std::size_t stream) const;
  std::string wait_text(const ir::ProgramOperation& wait, std::int64_t run) const;
  std::string writers_of(const ir::ProgramPart& words) const;

  const ir::Program& program_;
  const ProgramRanks& ranks_;
  const double seconds_;
  std::vector<Stream> streams_;  // of the program, by their numbers
  std::map<int, Asks> asks_;
  runtime::PinnedBuffer counts_;  // how many operations of each are over
};

}  // namespace tilewright
