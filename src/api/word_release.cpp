#include "api/word_release.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "runtime/peers.h"
#include "tilewright/error.h"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

// More than any word that is waited for, by the sign of the difference, in the first 10^9 runs.
constexpr unsigned char kByteThatEndsWaits = 0x3F;
// Another rank may still write its words over these, so that a round lets go of some waits alone.
// On a busy machine rounds take longer, and no fewer are needed.
constexpr std::chrono::seconds kForWhatIsReleased{5};
constexpr int kRounds = 2000;

std::size_t most_bytes(const std::vector<WordRelease::Words>& words) {
  std::size_t most = 0;
  for (const WordRelease::Words& each : words) most = std::max(most, each.bytes);
  return most;
}

// The first failure is the one to report: of what fails behind it nothing is said.
template <typename Do>
bool quietly(const Do& action) noexcept {
  try {
    return action();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

WordRelease::WordRelease(const runtime::Device& device, std::vector<Words> words)
    : words_(std::move(words)), stream_(device), ending_(device, most_bytes(words_)) {
  if (ending_.size() > 0) std::memset(ending_.data(), kByteThatEndsWaits, ending_.size());
}

void WordRelease::write() const {
  for (const Words& each : words_) {
    runtime::copy_async(each.at, ending_.data(), each.bytes, stream_);
  }
  stream_.synchronize();
}

std::vector<WordRelease::Words> words_of(const ir::Program& bound, int rank,
                                         const ir::BufferAddress& address) {
  std::vector<WordRelease::Words> words;
  for (std::size_t i = 0; i < bound.buffers.size(); ++i) {
    if (bound.buffers[i].kind != ir::ProgramBuffer::Kind::signals) continue;
    words.push_back(
        {address(static_cast<int>(i), rank), static_cast<std::size_t>(bound.buffers[i].bytes())});
  }
  return words;
}

bool end_waits(const std::vector<std::unique_ptr<WordRelease>>& ranks,
               const ProgramRanks::Streams& streams) noexcept {
  const Clock::time_point deadline = Clock::now() + kForWhatIsReleased;
  // Of a GPU on which a kernel has failed nothing more ends.
  const auto all_ended = [&streams] {
    return std::all_of(streams.begin(), streams.end(), [](const runtime::Stream* each) {
      return quietly([each] { return runtime::is_idle(*each); });
    });
  };
  for (int round = 0; !all_ended(); ++round) {
    if (round >= kRounds && Clock::now() > deadline) return false;
    for (const auto& rank : ranks) {
      quietly([&rank] {
        rank->write();
        return true;
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace tilewright
