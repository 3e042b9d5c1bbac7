#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "api/node_transfers.h"
#include "api/program_ranks.h"
#include "api/program_watch.h"
#include "api/word_release.h"
#include "distributed/members.h"
#include "ir/program_text.h"
#include "runtime/peers.h"
#include "support/diagnostic.h"
#include "support/hash.h"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

// The driver queues about a thousand operations of a stream. A further call blocks, and would block
// for ever if a rank has died. So the queue is kept shorter.
constexpr std::int64_t kMostOperations = 512;
constexpr std::int64_t kMostRuns = 64;

// Yields at first, since a run may be short, and then sleeps.
class Pause {
 public:
  void operator()() {
    if (++times_ < 1000) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  int times_ = 0;
};

bool has_nodes(const Group& group) {
  const std::vector<int>& nodes = group.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](int node) { return node != 0; });
}

// The line of each text in which they first differ; "no more" for a text that ends there.
std::pair<std::string, std::string> first_lines_that_differ(std::string_view one,
                                                            std::string_view other) {
  const auto at = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  const auto line = [](std::string_view text, std::size_t place) -> std::string {
    if (place >= text.size()) return "no more";
    const std::size_t start = place == 0 ? 0 : text.rfind('\n', place - 1) + 1;
    return std::string(text.substr(start, text.find('\n', place) - start));
  };
  const auto place = static_cast<std::size_t>(at.first - one.begin());
  return {line(one, place), line(other, place)};
}

class RankOfGroup final : public ProgramRanks {
 public:
  RankOfGroup(std::vector<const runtime::Device*> devices, const Group& group,
              const ir::Program& recorded)
      : ProgramRanks(std::move(devices)),
        group_(group),
        name_("program " + recorded.name),
        own_(device(group.rank())) {
    if (has_nodes(group)) nodes_ = std::make_unique<NodeTransfers>(recorded, group, own_);
  }
  ~RankOfGroup() override {
    // What still runs on the GPU uses the memory, so it is leaked: the process has to end anyway.
    if (is_stuck_) new std::optional<SymmetricArena>(std::move(arena_));
  }

  const Group* group() const override { return &group_; }

  void require_usable() const override {
    group_.members()->links().require_own_process(name_);
    if (failure_) throw *failure_;
  }

  void allocate(const ir::Program& bound) override {
    require_same(bound);
    releases_.clear();
    arena_.reset();
    offsets_.clear();
    std::size_t end = 0;
    for (const ir::ProgramBuffer& buffer : bound.buffers) {
      constexpr std::size_t kAlignment = 1024;
      const std::size_t start = (end + kAlignment - 1) / kAlignment * kAlignment;
      const auto bytes = static_cast<std::size_t>(buffer.bytes());
      offsets_.push_back(start);
      end = start + bytes;
    }
    arena_.emplace(group_, std::max(end, std::size_t{1}), name_, SymmetricArena::Memory::gpu,
                   own_.ordinal());
    releases_.push_back(std::make_unique<WordRelease>(
        own_,
        words_of(bound, group_.rank(), [this](int buffer, int rank) { return at(buffer, rank); })));
    const auto operations = static_cast<std::int64_t>(bound.operations.size());
    runs_in_flight_.resize(static_cast<std::size_t>(std::clamp(
        kMostOperations / std::max(operations, std::int64_t{1}), std::int64_t{1}, kMostRuns)));
    for (std::vector<runtime::Event>& events : runs_in_flight_) events.clear();
  }

  std::byte* at(int buffer, int rank) const override {
    if (!group_.members()->shares_memory(rank)) return nullptr;
    return arena_->at(rank) + offsets_[static_cast<std::size_t>(buffer)];
  }
  const NodeTransfers* nodes() const override { return nodes_.get(); }

  void meet(std::string_view where) override {
    require_usable();
    group_.barrier(fmt::format("{} of {}", where, name_));
  }

  // NCCL's work may be queued behind a wait for a word, or such a wait behind NCCL's work. So both
  // are ended at the same time.
  void give_up(const Error& error, const Streams& streams) override {
    failure_ = error;
    std::thread aborting([nodes = nodes_.get()] {
      if (nodes) nodes->abort();
    });
    is_stuck_ = !end_waits(releases_, streams);
    if (is_stuck_) {
      aborting.detach();
      static_cast<void>(nodes_.release());  // it is still at work
    } else {
      aborting.join();
    }
  }

  void rest(const Streams& streams) override {
    require_usable();
    wait_until("the end of what is queued of " + name_, streams, [&streams] {
      return std::all_of(streams.begin(), streams.end(),
                         [](const runtime::Stream* stream) { return runtime::is_idle(*stream); });
    });
    meet("the end of what is queued");
  }

  void note_queued(std::int64_t run, const Streams& streams) override {
    require_usable();
    std::vector<runtime::Event>& events = events_of(run);
    if (events.empty()) {
      for (const runtime::Stream* stream : streams)
        events.emplace_back(stream->device(), runtime::Event::Timing::off);
    } else {
      wait_for(run - static_cast<std::int64_t>(runs_in_flight_.size()), events, streams);
    }
    for (std::size_t i = 0; i < streams.size(); ++i) events[i].record(*streams[i]);
  }

  void finish(std::int64_t run, const Streams& streams, const ProgramWatch* watch) override {
    watch_ = watch;
    wait_for(run, events_of(run), streams);
    for (const runtime::Stream* stream : streams) stream->synchronize();
    meet(fmt::format("the end of run {}", run));
  }

 private:
  // Else the ranks' words would mean different things. Only where they differ they send each other
  // the whole, so that what differs is shown.
  void require_same(const ir::Program& bound) {
    const std::string own = to_text(bound), what = "the sizes of " + name_;
    const std::vector<std::string> all = group_.all_gather(content_hash(own), what);
    if (std::count(all.begin(), all.end(), all.front()) == group_.size()) return;
    const std::vector<std::string> texts = group_.all_gather(own, what);
    const auto other = std::find_if(texts.begin(), texts.end(),
                                    [&own](const std::string& text) { return text != own; });
    raise_other(bound, static_cast<int>(other - texts.begin()), *other, own);
  }
  [[noreturn]] void raise_other(const ir::Program& bound, int rank, const std::string& text,
                                const std::string& own) const {
    const auto [of_rank, of_own] = first_lines_that_differ(text, own);
    Diagnostic(bound.where, fmt::format("{}: rank {} has recorded another one than rank {}, or for "
                                        "other sizes or another GPU ({})",
                                        name_, rank, group_.rank(), ir::values_text(bound.bound)))
        .note({}, fmt::format("rank {} has: {}", rank, of_rank))
        .note({}, fmt::format("rank {} has: {}", group_.rank(), of_own))
        .fix(
            "the same program, options, sizes and build of Tilewright in all ranks, and GPUs of "
            "one kind")
        .raise();
  }

  std::vector<runtime::Event>& events_of(std::int64_t run) {
    return runs_in_flight_[static_cast<std::size_t>(run) % runs_in_flight_.size()];
  }

  void wait_for(std::int64_t run, const std::vector<runtime::Event>& events,
                const Streams& streams) {
    wait_until(fmt::format("the end of run {} of {}", run, name_), streams, [&events] {
      return std::all_of(events.begin(), events.end(),
                         [](const runtime::Event& event) { return event.has_come(); });
    });
  }

  // Polls, since nothing else ends a wait for the word of a rank that has died.
  template <typename Done>
  void wait_until(const std::string& what, const Streams& streams, const Done& is_done) {
    const Clock::time_point deadline = Clock::now() + group_.patience();
    try {
      Pause pause;
      while (!is_done()) {
        group_.require_all(what);
        if (nodes_) nodes_->require_sound();
        if (Clock::now() >= deadline) raise_late(what);
        pause();
      }
    } catch (const Error& error) {
      give_up(error, streams);
      throw;
    }
  }

  [[noreturn]] void raise_late(const std::string& what) const {
    Diagnostic({},
               fmt::format("{} has not come in rank {} within the group's patience of {} ms, "
                           "and no rank has died{}",
                           what, group_.rank(), group_.patience().count(),
                           watch_ ? watch_->text() : std::string()),
               ErrorKind::unavailable)
        .fix(
            "as many runs in all ranks; simulate() the program, which finds deadlocks; or raise "
            "the patience")
        .raise();
  }

  const Group group_;
  const std::string name_;
  const runtime::Device& own_;
  std::unique_ptr<NodeTransfers> nodes_;  // null: there is one node alone
  std::optional<SymmetricArena> arena_;
  std::vector<std::size_t> offsets_;                         // of the buffers
  std::vector<std::unique_ptr<WordRelease>> releases_;       // of this rank
  std::vector<std::vector<runtime::Event>> runs_in_flight_;  // the ends of the streams of each
  std::optional<Error> failure_;                             // behind it nothing runs
  const ProgramWatch* watch_ = nullptr;
  bool is_stuck_ = false;
};

void require_ranks(const ir::Program& recorded, const Group& group) {
  if (recorded.ranks == group.size()) return;
  Diagnostic(recorded.where, fmt::format("program {} has {} ranks, and the group {}", recorded.name,
                                         recorded.ranks, group.size()))
      .fix("as many processes as the program has ranks")
      .raise();
}

// Two ranks of one GPU would wait for each other's kernels, of which one may not run. Those of
// different nodes, which are on one GPU in tests, must not exchange with each other: NCCL takes no
// GPU twice.
void require_own_device(const ir::Program& recorded, const Group& group,
                        const runtime::Device& device) {
  const std::vector<std::string> all =
      group.all_gather(runtime::unique_name(device), "compile of program " + recorded.name);
  const std::vector<int>& nodes = group.nodes();
  const std::vector<int> exchanging = communicators(recorded, nodes);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      const bool meet = nodes[rank] == nodes[other] || exchanging[rank] == exchanging[other];
      if (all[rank] != all[other] || !meet) continue;
      Diagnostic(recorded.where, fmt::format("program {}: ranks {} and {} are on the same GPU, {}",
                                             recorded.name, other, rank, all[rank]))
          .fix(
              "CompileOptions::device: in each process the number of its own GPU, such as "
              "rank_environment()->local_rank")
          .raise();
    }
  }
}

}  // namespace

std::unique_ptr<ProgramRanks> rank_of_group(const ir::Program& recorded, const Group& group,
                                            int device) {
  require_ranks(recorded, group);
  check_nodes(recorded, group.nodes());
  const runtime::Device& own = runtime::Device::get(device);
  require_own_device(recorded, group, own);
  std::vector<const runtime::Device*> devices(static_cast<std::size_t>(group.size()));
  devices[static_cast<std::size_t>(group.rank())] = &own;
  return std::make_unique<RankOfGroup>(std::move(devices), group, recorded);
}

}  // namespace tilewright
