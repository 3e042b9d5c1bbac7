#include "api/program_ranks.h"

#include <fmt/format.h>

#include <string>

#include "api/program_watch.h"
#include "api/word_release.h"
#include "runtime/peers.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

class RanksOfThisProcess final : public ProgramRanks {
 public:
  explicit RanksOfThisProcess(std::vector<const runtime::Device*> devices)
      : ProgramRanks(std::move(devices)) {}

  void require_usable() const override {}
  void allocate(const ir::Program& bound) override {
    releases_.clear();
    buffers_.clear();
    for (int rank = 0; rank < count(); ++rank) {
      std::vector<runtime::DeviceBuffer>& own = buffers_.emplace_back();
      for (std::size_t i = 0; i < bound.buffers.size(); ++i) {
        own.emplace_back(device(rank), static_cast<std::size_t>(bound.buffers[i].bytes()),
                         name_of(bound, static_cast<int>(i), rank));
      }
    }
    const auto address = [this](int buffer, int rank) { return at(buffer, rank); };
    for (int rank = 0; rank < count(); ++rank) {
      releases_.push_back(
          std::make_unique<WordRelease>(device(rank), words_of(bound, rank, address)));
    }
  }
  std::byte* at(int buffer, int rank) const override {
    return static_cast<std::byte*>(
        buffers_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)].data());
  }
  void meet(std::string_view) override {}
  void rest(const Streams& streams) override {
    for (const runtime::Stream* stream : streams) stream->synchronize();
  }
  void note_queued(std::int64_t, const Streams&) override {}
  void finish(std::int64_t, const Streams& streams, const ProgramWatch* watch) override {
    if (watch) wait_watched(streams, *watch);
    rest(streams);
  }

 private:
  // What stands still is brought to an end, so that memory may be given back.
  void wait_watched(const Streams& streams, const ProgramWatch& watch) {
    try {
      watch.wait_for(streams);
    } catch (const Error&) {
      end_waits(releases_, streams);
      throw;
    }
  }

  std::vector<std::vector<runtime::DeviceBuffer>> buffers_;  // of each rank
  std::vector<std::unique_ptr<WordRelease>> releases_;       // of each rank
};

}  // namespace

std::vector<int> ProgramRanks::own() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < count(); ++rank) {
    if (runs(rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::unique_ptr<ProgramRanks> ranks_of_this_process(const ir::Program& recorded, int device) {
  if (runtime::Device::count() < recorded.ranks) {
    Diagnostic(recorded.where,
               fmt::format("program {} has {} ranks, and there are {} GPUs", recorded.name,
                           recorded.ranks, runtime::Device::count()),
               ErrorKind::unavailable)
        .fix("a machine with a GPU for each rank, or simulate() the program, which needs none")
        .raise();
  }
  std::vector<const runtime::Device*> devices;
  for (int rank = 0; rank < recorded.ranks; ++rank) {
    devices.push_back(&runtime::Device::get(recorded.ranks == 1 ? device : rank));
  }
  for (const runtime::Device* one : devices) {
    for (const runtime::Device* other : devices) runtime::reach_peer(*one, *other);
  }
  return std::make_unique<RanksOfThisProcess>(std::move(devices));
}

}  // namespace tilewright
