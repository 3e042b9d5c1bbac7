#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "distributed/entrance.h"
#include "distributed/members.h"
#include "distributed/packing.h"
#include "distributed/way.h"
#include "support/diagnostic.h"

namespace tilewright {

using distributed::Clock;
using distributed::Frame;

namespace {

constexpr int kMostRanks = 1024;

// Who this process is: by the options, or by the rendezvous, or by the launcher.
Rendezvous::Way::Place place_of(Rendezvous::Way& way, const GroupOptions& options) {
  const bool is_said = options.rank != -1 || options.size != -1;
  if (is_said && (options.rank == -1 || options.size == -1)) {
    Diagnostic({}, options.rank == -1
                       ? fmt::format("a group of {} ranks, and which of them this process is was "
                                     "not said",
                                     options.size)
                       : fmt::format("rank {} of a group whose size was not said", options.rank))
        .fix("both rank and size; or neither, where torchrun, mpirun or MPI says them")
        .raise();
  }
  Rendezvous::Way::Place place{options.rank, options.size};
  if (!is_said) {
    if (const auto known = way.place()) {
      place = *known;
    } else if (const auto environment = rank_environment()) {
      place = {environment->rank, environment->size};
    } else {
      Diagnostic({}, "a group without rank and size, and no launcher has said them")
          .fix("GroupOptions::rank and size, or torchrun or mpirun")
          .raise();
    }
  }
  if (place.size < 1 || place.size > kMostRanks || place.rank < 0 || place.rank >= place.size) {
    Diagnostic({}, fmt::format("rank {} of {} ranks", place.rank, place.size))
        .fix(fmt::format("1 to {} ranks, of numbers from 0 on", kMostRanks))
        .raise();
  }
  return place;
}

void check_times(const GroupOptions& options) {
  constexpr std::chrono::milliseconds kShortestSilence{100};
  if (options.patience.count() <= 0 || options.silence < kShortestSilence) {
    Diagnostic({}, fmt::format("a group's patience of {} ms and silence of {} ms",
                               options.patience.count(), options.silence.count()))
        .fix("a patience above 0, and a silence of at least 100 ms")
        .raise();
  }
}

std::string node_of(const GroupOptions& options) {
  if (!options.node.empty()) return options.node;
  const char* const said = std::getenv("TILEWRIGHT_NODE");
  return said == nullptr ? "" : said;
}

// Ranks of one machine are of one node unless they say otherwise.
std::vector<int> numbered_nodes(const std::vector<distributed::Member>& members) {
  std::map<std::pair<std::string, std::string>, int> numbers;
  std::vector<int> nodes;
  for (const distributed::Member& member : members) {
    const auto next = static_cast<int>(numbers.size());
    nodes.push_back(numbers.try_emplace({member.machine, member.node}, next).first->second);
  }
  return nodes;
}

std::shared_ptr<Group::Members> join(Rendezvous::Way& way, const GroupOptions& options) {
  check_times(options);
  const Rendezvous::Way::Place place = place_of(way, options);
  const distributed::Lobby lobby{place.size, options.patience, Clock::now() + options.patience};
  distributed::Member own = distributed::introduce(place.rank, node_of(options));
  const distributed::Entrance entrance(own, options.address);
  distributed::Meeting meeting = meet(way, own, options.address, lobby);
  std::vector<FileDescriptor> connections = entrance.connect(meeting, place.rank, lobby);
  return std::make_shared<Group::Members>(std::move(meeting), place.rank, std::move(connections),
                                          options);
}

}  // namespace

Group::Members::Members(distributed::Meeting meeting, int rank,
                        std::vector<FileDescriptor> connections, const GroupOptions& options)
    : rank_(rank),
      patience_(options.patience),
      links_(std::move(meeting.members), rank, std::move(connections), options.silence),
      nodes_(numbered_nodes(links_.members())) {}

bool Group::Members::is_local(int rank) const {
  const auto machine = [this](int of) -> const std::string& {
    return list()[static_cast<std::size_t>(of)].machine;
  };
  return machine(rank) == machine(rank_);
}

bool Group::Members::shares_memory(int rank) const {
  return nodes_[static_cast<std::size_t>(rank)] == nodes_[static_cast<std::size_t>(rank_)];
}

std::vector<Frame> Group::Members::exchange(std::string_view own, std::string_view name,
                                            int attached) {
  links_.require_own_process(name);
  if (failure_) throw *failure_;
  try {
    return try_exchange(own, name, attached);
  } catch (const Error& error) {
    failure_ = error;
    throw;
  }
}

std::vector<Frame> Group::Members::try_exchange(std::string_view own, std::string_view name,
                                                int attached) {
  const auto deadline = Clock::now() + patience_;
  const std::string payload = distributed::pack({std::string(name), std::string(own)});
  if (payload.size() > distributed::kLongestFrame) {
    Diagnostic({}, fmt::format("{} bytes in {}", own.size(), name)).fix("at most 64 MiB").raise();
  }
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    links_.send(rank, payload, deadline, shares_memory(rank) ? attached : -1);
  }
  std::vector<Frame> frames;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == rank_) {
      frames.push_back({Frame::Kind::message, std::string(own), {}});
    } else {
      frames.push_back(receive(rank, name, deadline));
    }
  }
  return frames;
}

Frame Group::Members::receive(int from, std::string_view name, Clock::time_point until) {
  std::optional<Frame> frame = links_.receive(from, name, until);
  if (!frame) raise_not_come(from, name);
  auto fields = distributed::unpack(frame->payload);
  if (!fields || fields->size() != 2) {
    Diagnostic({}, fmt::format("rank {} sends what is no message", from), ErrorKind::internal)
        .raise();
  }
  if (fields->front() != name) {
    Diagnostic(
        {}, fmt::format("rank {} is at {}, and rank {} at {}", from, fields->front(), rank_, name))
        .fix("the same operations in all ranks, in the same order")
        .raise();
  }
  frame->payload = std::move(fields->back());
  return std::move(*frame);
}

// Those before `first` have come.
void Group::Members::raise_not_come(int first, std::string_view name) {
  std::vector<int> ranks;
  for (int rank = first; rank < size(); ++rank) {
    if (rank != rank_ && !links_.has_come(rank)) ranks.push_back(rank);
  }
  Diagnostic({},
             fmt::format("{} {} did not come to {} within {}, and rank {} waits there",
                         ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), name,
                         distributed::seconds_text(patience_), rank_),
             ErrorKind::unavailable)
      .fix("look what those ranks do, or raise the group's patience")
      .raise();
}

Group::Group(const Rendezvous& rendezvous, const GroupOptions& options)
    : members_(join(rendezvous.way(), options)) {}

int Group::rank() const { return members_->rank(); }
int Group::size() const { return members_->size(); }
std::chrono::milliseconds Group::patience() const { return members_->patience(); }

std::vector<int> Group::local_ranks() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (members_->is_local(rank)) ranks.push_back(rank);
  }
  return ranks;
}

const std::vector<int>& Group::nodes() const { return members_->nodes(); }

void Group::barrier(std::string_view name) const { members_->exchange({}, name); }

std::vector<std::string> Group::all_gather(std::string_view own, std::string_view name) const {
  std::vector<std::string> all;
  for (Frame& frame : members_->exchange(own, name)) all.push_back(std::move(frame.payload));
  return all;
}

std::vector<LostRank> Group::lost() const { return members_->links().lost(); }

void Group::require_all(std::string_view waiting_for) const {
  members_->links().require_all(waiting_for);
}

}  // namespace tilewright
