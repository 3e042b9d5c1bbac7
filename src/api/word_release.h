#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "api/program_ranks.h"
#include "ir/program.h"
#include "runtime/device.h"

namespace tilewright {

// Overwrites the words of a rank, so that whoever waits for one of them goes on and its stream
// comes to its end. What it computes is of no use. Waits for a certain number do not end so. All
// that it needs is there before anybody waits: a driver may not give it while kernels run.
class WordRelease {
 public:
  struct Words {
    std::byte* at;
    std::size_t bytes;
  };
  WordRelease(const runtime::Device& device, std::vector<Words> words);

  // By the copy engine, since waiting kernels may fill the GPU. Returns when it is done.
  void write() const;

 private:
  const std::vector<Words> words_;
  const runtime::Stream stream_;
  const runtime::PinnedBuffer ending_;
};

// The words of a program's buffers in a rank.
std::vector<WordRelease::Words> words_of(const ir::Program& bound, int rank,
                                         const ir::BufferAddress& address);

// Writes them again and again, since others may still write, until the streams have ended, some
// seconds at most. Whether they have.
bool end_waits(const std::vector<std::unique_ptr<WordRelease>>& ranks,
               const ProgramRanks::Streams& streams) noexcept;

}  // namespace tilewright
