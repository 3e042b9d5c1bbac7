#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "simulator/machine/world.h"
#include "support/diagnostic.h"
#include "support/same_line.h"

namespace tilewright::simulator {
namespace {

std::vector<const Warp*> blocked_warps(const World& world) {
  std::vector<const Warp*> warps;
  for (const Launch* launch : world.active()) {
    for (const auto& cluster : launch->clusters()) {
      for (const auto& cta : cluster->ctas) {
        for (const Warp& warp : cta->warps) {
          if (warp.state != Warp::State::ended) warps.push_back(&warp);
        }
      }
    }
  }
  return warps;
}

const Launch& launch_of(const Warp& warp) { return *warp.cta->cluster->launch; }

// The columns of other CTAs on the multiprocessor of the warp's, or of its peer's.
std::vector<TakenColumns::Run> columns_of_others(const Warp& warp) {
  std::vector<TakenColumns::Run> runs;
  std::vector<const Cta*> ctas{warp.cta};
  if (launch_of(warp).kernel.cta_pairs) ctas.push_back(&warp.cta->peer());
  for (const Cta* cta : ctas) {
    const std::vector<TakenColumns::Run>& taken = cta->tensor->taken->runs;
    std::copy_if(taken.begin(), taken.end(), std::back_inserter(runs),
                 [&](const TakenColumns::Run& run) { return run.cta != cta->index; });
  }
  return runs;
}

std::string columns_text(const Warp& warp) {
  const TensorAllocation& memory = launch_of(warp).kernel.tensor_memories[warp.waits_at->value];
  std::string text = fmt::format("{} columns for {}: of {} on its multiprocessor", memory.columns,
                                 memory.name, TensorMemory::kColumns);
  const char* before = " ";
  for (const TakenColumns::Run& run : columns_of_others(warp)) {
    text += fmt::format("{}CTA {} has {}", std::exchange(before, ", "), run.cta, run.count);
  }
  return text;
}

// What a warp waits for, without the warp.
std::string wait_text(const Warp& warp) {
  const Launch& launch = launch_of(warp);
  switch (warp.state) {
    case Warp::State::mbarrier: {
      const Mbarrier& barrier = warp.cta->barriers[warp.barrier];
      return fmt::format(
          "{} parity {}: phase {} is not complete, {} of {} arrivals and {} bytes "
          "pending",
          launch.barrier_name(warp.barrier), warp.parity, barrier.phase, barrier.pending,
          barrier.expected, barrier.tx);
    }
    case Warp::State::named: {
      const NamedBarrier& barrier = warp.cta->named[warp.barrier];
      return fmt::format("named barrier {}: {} of {} threads have arrived", warp.barrier,
                         barrier.arrived, barrier.threads);
    }
    case Warp::State::cluster:
      return fmt::format("the cluster barrier: {} of {} warps have arrived",
                         warp.cta->cluster->waiting.size(),
                         warp.cta->cluster->ctas.size() * launch.kernel.warps);
    case Warp::State::pair:
      return fmt::format("CTA {} of its pair to execute the same", warp.cta->peer().index);
    case Warp::State::columns:
      return columns_text(warp);
    case Warp::State::word:
      return launch.world.wait_text(warp.word);
    case Warp::State::pool:
      return fmt::format("{} registers a thread: {} has {}, {} are free for a warp",
                         warp.waits_at->value, launch.describe(warp), warp.registers,
                         warp.cta->register_pool / kLanes);
    case Warp::State::runnable:  // these wait for nothing
    case Warp::State::ended:
      break;
  }
  return {};
}

// In which of its roles the warp comes to the named barrier.
std::optional<int> role_at_named(const Warp& warp, int number) {
  const PreparedKernel& kernel = launch_of(warp).kernel;
  const std::vector<int>& roles = kernel.named_users[number];
  const auto role = std::find_if(roles.begin(), roles.end(),
                                 [&](int each) { return kernel.roles[each].has(warp.index); });
  return role == roles.end() ? std::nullopt : std::optional(*role);
}

// Whether `other` could end the wait, as far as the program's text tells.
bool could_signal(const Warp& other, const Warp& warp) {
  const Launch& launch = launch_of(warp);
  if (warp.state == Warp::State::columns) {
    const std::vector<TakenColumns::Run> taken = columns_of_others(warp);
    return &launch_of(other) == &launch &&
           std::any_of(taken.begin(), taken.end(),
                       [&](const TakenColumns::Run& run) { return run.cta == other.cta->index; });
  }
  if (other.cta->cluster != warp.cta->cluster) return false;
  const bool same_place = other.state == warp.state && other.barrier == warp.barrier;
  switch (warp.state) {
    case Warp::State::mbarrier: {
      const std::vector<int>& roles = launch.barrier_array(warp.barrier).signallers;
      return std::any_of(roles.begin(), roles.end(),
                         [&](int role) { return launch.kernel.roles[role].has(other.index); });
    }
    case Warp::State::named:
      return other.cta == warp.cta && !same_place && role_at_named(other, warp.barrier);
    case Warp::State::cluster:
      return other.state != Warp::State::cluster;
    case Warp::State::pair:
      return other.cta == &warp.cta->peer() && other.state != Warp::State::pair;
    case Warp::State::columns:  // above
    case Warp::State::word:
      return false;  // whose work it is shows only when it is done
    case Warp::State::pool:
      return other.cta == warp.cta && &other != &warp;
    case Warp::State::runnable:
    case Warp::State::ended:
      break;
  }
  return false;
}

// Warps each of which waits for the next and the last for the first; empty when there are none.
class CycleSearch {
 public:
  explicit CycleSearch(const std::vector<const Warp*>& warps) : warps_(warps) {
    state_.assign(warps.size(), State::fresh);
  }
  std::vector<const Warp*> find() {
    for (std::size_t i = 0; i < warps_.size(); ++i) {
      if (state_[i] == State::fresh && visit(i)) return cycle_;
    }
    return {};
  }

 private:
  enum class State : std::uint8_t { fresh, on_path, left };

  bool visit(std::size_t at) {
    state_[at] = State::on_path;
    path_.push_back(at);
    for (std::size_t next = 0; next < warps_.size(); ++next) {
      if (state_[next] == State::left || !could_signal(*warps_[next], *warps_[at])) continue;
      if (state_[next] == State::on_path) {
        auto start = std::find(path_.begin(), path_.end(), next);
        for (; start != path_.end(); ++start) cycle_.push_back(warps_[*start]);
        return true;
      }
      if (visit(next)) return true;
    }
    path_.pop_back();
    state_[at] = State::left;
    return false;
  }

  const std::vector<const Warp*>& warps_;
  std::vector<State> state_;
  std::vector<std::size_t> path_;
  std::vector<const Warp*> cycle_;
};

// One line for the warps of a role that wait at the same place for the same thing: those of a CTA,
// and of all of them those that wait for a word.
std::string lines(const std::vector<const Warp*>& warps) {
  std::string text;
  std::vector<bool> told(warps.size(), false);
  for (std::size_t i = 0; i < warps.size(); ++i) {
    if (told[i]) continue;
    const Warp& warp = *warps[i];
    const std::string what = wait_text(warp);
    std::size_t alike = 0;
    for (std::size_t j = i; j < warps.size(); ++j) {
      const Warp& other = *warps[j];
      const bool beside = other.cta == warp.cta || (warp.state == Warp::State::word &&
                                                    &launch_of(other) == &launch_of(warp));
      if (!beside || other.role != warp.role || other.waits_at != warp.waits_at ||
          wait_text(other) != what) {
        continue;
      }
      told[j] = true;
      ++alike;
    }
    text += fmt::format("\n  {}{}  {}  waits for {}", launch_of(warp).describe(warp),
                        alike > 1 ? fmt::format(" and {} more", alike - 1) : "",
                        format_location(warp.waits_at->where()), what);
  }
  return text;
}

std::string cycle_text(const std::vector<const Warp*>& cycle) {
  if (cycle.empty()) return {};
  std::string text = "\n  cycle: ";
  for (const Warp* warp : cycle) text += launch_of(*warp).describe(*warp) + " waits for ";
  return text + launch_of(*cycle.front()).describe(*cycle.front());
}

// "8 warps wait", "1 stream waits", "1 warp and 2 streams wait".
std::string who_waits(std::size_t warps, std::size_t streams) {
  const auto counted = [](std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const char* const verb = warps + streams == 1 ? "waits" : "wait";
  if (streams == 0) return fmt::format("{} {}", counted(warps, "warp"), verb);
  if (warps == 0) return fmt::format("{} {}", counted(streams, "stream"), verb);
  return fmt::format("{} and {} {}", counted(warps, "warp"), counted(streams, "stream"), verb);
}

std::string stream_lines(const std::vector<Streams::Waiting>& streams) {
  std::string text;
  for (const Streams::Waiting& stream : streams) text += "\n  " + stream.text;
  return text;
}

// Launches of which CTAs wait for others to end.
std::string not_started(const World& world) {
  std::string text;
  for (const Launch* launch : world.active()) {
    if (launch->all_started()) continue;
    text += fmt::format("\n  {} of {} CTAs{} have not started: all places of the device are taken",
                        launch->waiting_ctas(), launch->kernel.ctas, launch->place.label);
  }
  return world.streams ? text : std::string();
}

// A wait in the second CTA of a pair for what copies announce in the first one.
std::string missing_in_second(const Warp& warp) {
  const Launch& launch = launch_of(warp);
  const PreparedKernel& kernel = launch.kernel;
  if (warp.state != Warp::State::mbarrier || !kernel.cta_pairs || warp.cta->is_first()) return {};
  const BarrierArray* const array = &launch.barrier_array(warp.barrier);
  const bool announced =
      std::any_of(kernel.transfers.begin(), kernel.transfers.end(), [&](const Transfer& each) {
        return each.pair && each.barriers >= 0 && &kernel.barrier_arrays[each.barriers] == array;
      });
  if (!announced) return {};
  return fmt::format(
      "a wait for {} in the first CTA of the pair alone, which issues products: copies of both "
      "complete it there",
      launch.barrier_name(warp.barrier));
}

// Some have arrived: the others have not.
std::string missing_arrivals(const Warp& warp) {
  if (warp.state != Warp::State::mbarrier) return {};
  const Mbarrier& barrier = warp.cta->barriers[warp.barrier];
  if (barrier.pending == 0 || barrier.pending >= barrier.expected) return {};
  return fmt::format("{} of the {} arrivals of {} phase {}", barrier.pending, barrier.expected,
                     launch_of(warp).barrier_name(warp.barrier), barrier.phase);
}

// Another warp of the CTA that comes to the named barrier where this one waits, as far as the
// program's text tells: of those that wait elsewhere, or of those that have ended.
const Warp* other_for_named(const Warp& warp, bool has_ended) {
  const std::vector<Warp>& warps = warp.cta->warps;
  const auto found = std::find_if(warps.begin(), warps.end(), [&](const Warp& other) {
    return (other.state == Warp::State::ended) == has_ended && could_signal(other, warp);
  });
  return found == warps.end() ? nullptr : &*found;
}

// Of a wait at a named barrier: who else could come there.
std::string missing_threads(const Warp& warp) {
  if (warp.state != Warp::State::named) return {};
  const NamedBarrier& barrier = warp.cta->named[warp.barrier];
  const std::string fewer =
      fmt::format("{} threads for named barrier {}", barrier.arrived, warp.barrier);
  if (!other_for_named(warp, false)) {
    const std::string more =
        fmt::format("an arrival at named barrier {} of {} more threads: ", warp.barrier,
                    barrier.threads - barrier.arrived);
    if (const Warp* const ended = other_for_named(warp, true)) {
      return fmt::format("{}{} has ended, and came less often", more,
                         launch_of(warp).describe(*role_at_named(*ended, warp.barrier),
                                                  ended->index, ended->cta->index));
    }
    return fmt::format("{}no other warp comes there; or {}", more, fewer);
  }
  return fmt::format(
      "an arrival at named barrier {} of {} more threads, before they wait for what these threads "
      "do behind it; or {}, if no others belong there",
      warp.barrier, barrier.threads - barrier.arrived, fewer);
}

// What is wrong with the wait of one warp, if that shows.
std::string missing_for(const Warp& warp) {
  const Launch& launch = launch_of(warp);
  if (warp.state == Warp::State::word) return launch.world.missing_value(warp.word);
  if (warp.state == Warp::State::columns && !warp.cta->tensor->held.empty()) {
    return "one tcgen05_alloc of all columns, before a CTA holds any that another one waits for";
  }
  if (warp.state != Warp::State::mbarrier) return {};
  const Mbarrier& barrier = warp.cta->barriers[warp.barrier];
  const std::string name = launch.barrier_name(warp.barrier);
  const BarrierArray& array = launch.barrier_array(warp.barrier);
  if (barrier.pending == 0) {
    return fmt::format("copies of {} bytes onto {}: its expect_tx announces more than is copied",
                       barrier.tx, name);
  }
  const std::string nobody =
      array.signallers.empty()
          ? fmt::format("an arrival on {}: nothing in the kernel arrives there; or ", name)
          : std::string();
  if (barrier.phase == 0 && barrier.pending == barrier.expected && !array.transactions) {
    return fmt::format(
        "{}a first wait for parity 1 on {}: a fresh barrier passes parity 1 at once and parity 0 "
        "only after a phase; or an arrival there that none of these waits holds up",
        nobody, name);
  }
  return missing_arrivals(warp);
}

// Nobody is about to complete the phase, and no warp waits for another one in a circle.
std::string missing_turn(const Warp& warp) {
  if (warp.state != Warp::State::mbarrier) return {};
  const std::uint64_t phase = warp.cta->barriers[warp.barrier].phase;
  return fmt::format(
      "as many phases of {} as waits for them: {} came, and this waits for one more (of a ring, "
      "produce and consume equally often on every path)",
      launch_of(warp).barrier_name(warp.barrier), phase);
}

// Where nobody waits in a circle: a warp at a named barrier where no warp comes that has not ended.
// Others may wait for this one.
const Warp* left_alone(const std::vector<const Warp*>& warps) {
  const auto found = std::find_if(warps.begin(), warps.end(), [](const Warp* warp) {
    return warp->state == Warp::State::named && !other_for_named(*warp, false);
  });
  return found == warps.end() ? nullptr : *found;
}

// Where what the first warp waits for might come from: another warp's wait, else the barrier's own
// place.
SourceLocation other_place(const Warp& first, const std::vector<const Warp*>& cycle,
                           const std::vector<const Warp*>& warps) {
  const SourceLocation here = first.waits_at->where();
  for (const auto* list : {&cycle, &warps}) {
    for (const Warp* warp : *list) {
      const SourceLocation there = warp->waits_at->where();
      if (!same_line(there, here)) return there;
    }
  }
  if (first.state != Warp::State::mbarrier) return {};
  return launch_of(first).barrier_array(first.barrier).where;
}

}  // namespace

Fault deadlock(const World& world) {
  const std::vector<const Warp*> warps = blocked_warps(world);
  const std::vector<const Warp*> cycle = CycleSearch(warps).find();
  std::vector<Streams::Waiting> streams;
  if (world.streams) streams = world.streams->waiting();
  Fault fault;
  fault.kind = "deadlock";
  const std::vector<const Warp*>& named = cycle.empty() ? warps : cycle;
  const Warp* const alone = cycle.empty() ? left_alone(warps) : nullptr;
  if (!named.empty()) {
    const Warp& first = alone ? *alone : *named.front();
    fault.first = first.waits_at->where();
    fault.second = other_place(first, cycle, warps);
  }
  for (const Streams::Waiting& stream : streams) {
    SourceLocation& place = fault.first.file ? fault.second : fault.first;
    if (!place.file) place = stream.where;
  }
  fault.message = fmt::format("deadlock: {} and nothing is pending{}{}{}{}",
                              who_waits(warps.size(), streams.size()), lines(warps),
                              stream_lines(streams), not_started(world), cycle_text(cycle));
  const auto cause = std::find_if(streams.begin(), streams.end(),
                                  [](const Streams::Waiting& stream) { return stream.is_cause; });
  if (cause != streams.end()) {
    fault.missing = cause->missing;
    if (!same_line(fault.first, cause->where)) fault.second = fault.first;
    fault.first = cause->where;
  }
  for (const Warp* warp : warps) {
    if (fault.missing.empty()) fault.missing = missing_in_second(*warp);
  }
  if (fault.missing.empty() && alone) fault.missing = missing_threads(*alone);
  if (fault.missing.empty() && !cycle.empty()) fault.missing = missing_threads(*cycle.front());
  for (const auto* list : {&cycle, &warps}) {
    for (const Warp* warp : *list) {
      if (fault.missing.empty()) fault.missing = missing_arrivals(*warp);
    }
  }
  for (const auto* list : {&cycle, &warps}) {
    for (const Warp* warp : *list) {
      if (fault.missing.empty()) fault.missing = missing_for(*warp);
    }
  }
  for (const Streams::Waiting& stream : streams) {
    if (fault.missing.empty()) fault.missing = stream.missing;
  }
  for (const Warp* warp : warps) {
    if (fault.missing.empty() && cycle.empty()) fault.missing = missing_turn(*warp);
  }
  for (const Warp* warp : warps) {
    if (fault.missing.empty()) fault.missing = missing_threads(*warp);
  }
  return fault;
}

}  // namespace tilewright::simulator
