#include "simulator/machine/schedule.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/machine/launch.h"

namespace tilewright::simulator {
namespace {

// Late, even and eager completion each hide other bugs.
constexpr std::uint64_t kEventShares[] = {1, 8, 15};
constexpr std::uint64_t kLongestTurn = 32;
// Priorities fall at instants up to 2^6 ... 2^14 choices: kernels differ in length.
constexpr std::uint64_t kShortestReach = 6, kReaches = 9;
constexpr std::uint64_t kShortestStreamReach = 3, kStreamReaches = 6;
constexpr std::uint64_t kHighPriorities = std::uint64_t{1} << 32;

// The n-th pair i <= j, in order of j: two instants, or one where they are the same.
std::pair<std::int64_t, std::int64_t> pair_of(std::uint64_t n) {
  std::int64_t j = 0;
  while (static_cast<std::uint64_t>(j + 1) * (j + 2) / 2 <= n) ++j;
  return {static_cast<std::int64_t>(n) - j * (j + 1) / 2, j};
}

// Whether the next thing that others see of the warp is an arrival on an mbarrier, or an access to
// a word of global memory.
bool comes_to_handover(const Warp& warp) {
  const std::vector<Instruction>& code = warp.cta->cluster->launch->kernel.code;
  auto next = code.begin() + warp.pc;
  while (next->code == Code::move || next->code == Code::function) ++next;
  return next->op == ir::Op::mbarrier_arrive || next->code == Code::word;
}

const Instruction& next_of(const Warp& warp) {
  return warp.cta->cluster->launch->kernel.code[warp.pc];
}

bool is_stream(const Schedule::Choice& choice, const std::vector<Event>& events) {
  return choice.event && events[choice.index].kind == Event::Kind::stream;
}

}  // namespace

Schedule::Schedule(Search search, std::uint64_t seed) : random_(seed), stream_random_(~seed) {
  if (search == Search::held) {
    kind_ = Kind::held;
    held_ = seed;
    return;
  }
  if (search == Search::handed) {
    kind_ = Kind::handed;
    digits_ = seed;
    return;
  }
  if (search == Search::time) {
    kind_ = Kind::time;
    return;
  }
  if (search == Search::delays) {
    kind_ = Kind::delays;
    // The first schedule has no delay.
    if (seed == 0) {
      instants_ = {-1, -1};
    } else {
      std::tie(instants_[0], instants_[1]) = pair_of(seed - 1);
    }
    return;
  }
  kind_ = random_.below(2) == 0 ? Kind::uniform : Kind::priorities;
  event_share_ = kEventShares[random_.below(3)];
  for (std::int64_t& instant : stream_instants_) {
    const std::uint64_t reach = std::uint64_t{1}
                                << (kShortestStreamReach + stream_random_.below(kStreamReaches));
    instant = static_cast<std::int64_t>(stream_random_.below(reach));
  }
  for (std::int64_t& instant : instants_) {
    const std::uint64_t reach = std::uint64_t{1} << (kShortestReach + random_.below(kReaches));
    instant = static_cast<std::int64_t>(random_.below(reach));
  }
}

// Calls `visit(choice, rank of the agent)` for all that can go next. A stream is one agent,
// whatever it is at.
template <typename Visit>
void Schedule::for_candidates(std::vector<Warp*>& warps, std::vector<Event>& events, Visit visit) {
  for (std::size_t i = 0; i < warps.size(); ++i) {
    visit(Choice{false, i}, warps[i]->rank);
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const bool of_stream = events[i].kind == Event::Kind::stream;
    visit(Choice{true, i}, of_stream ? streams_[events[i].stream] : events[i].rank);
  }
}

Schedule::Choice Schedule::next(std::vector<Warp*>& warps, std::vector<Event>& events) {
  Choice choice;
  switch (kind_) {
    case Kind::uniform:
      choice = uniform(warps, events);
      break;
    case Kind::priorities:
      choice = by_priority(warps, events);
      break;
    case Kind::delays:
      choice = in_order(warps, events);
      break;
    case Kind::held:
      return but_for_one(warps, events);
    case Kind::handed:
      return additions_last(warps, events);
    case Kind::time:  // World::first_in_time
      break;
  }
  if (warps.size() + events.size() > 1) ++choices_;
  return choice;
}

std::uint64_t Schedule::turn() {
  return kind_ == Kind::uniform ? 1 + random_.below(kLongestTurn) : UINT64_MAX;
}

bool Schedule::is_instant() const { return choices_ == instants_[0] || choices_ == instants_[1]; }

Schedule::Choice Schedule::uniform(const std::vector<Warp*>& warps,
                                   const std::vector<Event>& events) {
  const bool event =
      !events.empty() && (warps.empty() || random_.below(std::uint64_t{16}) < event_share_);
  return {event, random_.below(event ? events.size() : warps.size())};
}

Schedule::Choice Schedule::by_priority(std::vector<Warp*>& warps, std::vector<Event>& events) {
  Choice best;
  std::uint64_t* highest = nullptr;
  const auto find = [&] {
    highest = nullptr;
    for_candidates(warps, events, [&](Choice choice, std::uint64_t& rank) {
      if (rank == 0) {
        // Every other stream stands below all warps: it lags behind what whole launches do.
        rank = is_stream(choice, events) ? 2 + stream_random_.below(2 * kHighPriorities)
                                         : kHighPriorities + random_.below(kHighPriorities);
      }
      if (highest && rank <= *highest) return;
      highest = &rank;
      best = choice;
    });
  };
  find();
  if (is_instant()) {
    // Below all others, and below what fell before.
    *highest = kHighPriorities - ++lowest_;
    find();
  }
  // A program has few operations beside those of its launches: instants among them alone. The
  // stream then stays where it is until nothing else can go on.
  while (is_stream(best, events)) {
    const std::int64_t number = stream_choices_++;
    if (number != stream_instants_[0] && number != stream_instants_[1]) break;
    *highest = 1;
    find();
  }
  return best;
}

Schedule::Choice Schedule::in_order(std::vector<Warp*>& warps, std::vector<Event>& events) {
  Choice first, following;
  std::uint64_t first_rank = 0, following_rank = 0;
  const auto find = [&] {
    first_rank = following_rank = UINT64_MAX;
    for_candidates(warps, events, [&](Choice choice, std::uint64_t& rank) {
      if (rank == 0) rank = ++drawn_;
      if (rank < first_rank) {
        first_rank = rank;
        first = choice;
      }
      if (rank >= current_ && rank < following_rank) {
        following_rank = rank;
        following = choice;
      }
    });
    // Behind the last one the first comes again.
    if (following_rank == UINT64_MAX) {
      following_rank = first_rank;
      following = first;
    }
  };
  find();
  if (is_instant()) {
    current_ = following_rank + 1;
    find();
  }
  current_ = following_rank;
  return following;
}

Schedule::Choice Schedule::but_for_one(std::vector<Warp*>& warps, std::vector<Event>& events) {
  Choice first;
  const auto find = [&] {
    std::uint64_t lowest = 0;
    for_candidates(warps, events, [&](Choice choice, std::uint64_t& rank) {
      if (rank == 0) rank = ++drawn_;
      if (lowest != 0 && rank >= lowest) return;
      lowest = rank;
      first = choice;
    });
  };
  find();
  if (first.event || !comes_to_handover(*warps[first.index])) return first;
  if (static_cast<std::uint64_t>(choices_++) != held_) return first;
  warps[first.index]->rank = UINT64_MAX;
  find();
  return first;
}

Schedule::Choice Schedule::additions_last(std::vector<Warp*>& warps, std::vector<Event>& events) {
  Choice first;
  std::uint64_t lowest = 0;
  std::vector<std::pair<std::uint64_t, Choice>> stand;
  for_candidates(warps, events, [&](Choice choice, std::uint64_t& rank) {
    if (rank == 0) rank = ++drawn_;
    if (!choice.event && stays_before(next_of(*warps[choice.index]))) {
      stand.emplace_back(rank, choice);
    } else if (lowest == 0 || rank < lowest) {
      lowest = rank;
      first = choice;
    }
  });
  if (lowest != 0) return first;
  if (stand.size() == 1) return stand.front().second;
  std::sort(stand.begin(), stand.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  const std::size_t place =
      std::min<std::size_t>(stood_.size() * kBitsOfHanded, 64 - kBitsOfHanded);
  const std::uint64_t digit = digits_ >> place & ((1 << kBitsOfHanded) - 1);
  stood_.push_back(static_cast<std::uint8_t>(std::min<std::size_t>(stand.size(), UINT8_MAX)));
  return stand[std::min<std::size_t>(digit, stand.size() - 1)].second;
}

bool Schedule::stays_before(const Instruction& instruction) const {
  return kind_ == Kind::handed && instruction.op == ir::Op::atomic_add;
}

bool is_seen(const Instruction& instruction) {
  switch (instruction.code) {
    case Code::move:
    case Code::jump:
    case Code::loop_test:
    case Code::loop_next:
    case Code::branch_unless:
    case Code::parted:
    case Code::enter_role:
    case Code::leave_role:
    case Code::function:
    case Code::array:
    case Code::computation:
    case Code::check:
    case Code::product_fence:
      return false;
    case Code::end:
    case Code::global_access:
    case Code::matrix_access:
    case Code::element_access:
    case Code::fragment_access:
    case Code::shared_word:
    case Code::word:
    case Code::word_wait:
    case Code::mbarrier:
    case Code::named_barrier:
    case Code::cta_barrier:
    case Code::cluster_barrier:
    case Code::fence:
    case Code::lane_order:
    case Code::commit:
    case Code::group_wait:
    case Code::bulk_copy:
    case Code::product:
    case Code::tensor_allocation:
    case Code::tensor_access:
    case Code::tensor_wait:
    case Code::tensor_product:
    case Code::tensor_copy:
    case Code::tensor_commit:
    case Code::tensor_fence:
    case Code::launch_control:
    case Code::register_budget:
      break;
  }
  return true;
}

}  // namespace tilewright::simulator
