#include "simulator/machine/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simulator/machine/world.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {

void PhasesInTime::note(const Instruction& instruction, std::uint64_t phase, bool is_unsure) {
  const auto same = std::find_if(arrivals.begin(), arrivals.end(), [&](const Arrival& each) {
    return each.instruction == &instruction;
  });
  if (same == arrivals.end()) return arrivals.push_back({&instruction, phase, is_unsure});
  same->is_unsure = same->is_unsure || is_unsure;
}

void PhasesInTime::note_last(int agent, std::uint64_t phase, Epoch time) {
  const auto same = std::find_if(last.begin(), last.end(),
                                 [&](const LastArrivals& each) { return each.agent == agent; });
  if (same == last.end()) return last.push_back({agent, phase, time, 0});
  if (same->phase < phase) same->before = same->last;
  same->phase = phase;
  same->last = time;
}

bool PhasesInTime::knows_all_before(std::uint64_t phase, const Clock& known) const {
  return by_arrivals_alone && std::all_of(last.begin(), last.end(), [&](const auto& each) {
           return known[each.agent] >= (each.phase < phase ? each.last : each.before);
         });
}

void ArrivalsInTime::join(const ArrivalsInTime& other) {
  unsure.insert(other.unsure.begin(), other.unsure.end());
  counted.insert(other.counted.begin(), other.counted.end());
  awaited.insert(other.awaited.begin(), other.awaited.end());
}

std::string ArrivalsInTime::never_awaited() const {
  for (const auto& [place, what] : unsure) {
    if (awaited.count(place) == 0) return what + ", for which no size waits";
  }
  return {};
}

bool ArrivalsInTime::all_awaited() const {
  return std::includes(awaited.begin(), awaited.end(), counted.begin(), counted.end());
}

int Timing::agent(const Cta& cta, int barrier) const {
  return launch_.order.agents().at(cta.cluster_rank(), Agents::Kind::phases, barrier);
}

int Timing::own_agent(const Warp& warp, bool elected) const {
  return launch_.order.agents().at(warp.cta->cluster_rank(),
                                   elected ? Agents::Kind::elected_lane : Agents::Kind::lanes,
                                   warp.index);
}

void Timing::tell(SourceLocation where, const std::string& what) const {
  if (!launch_.report.timing.empty()) return;
  launch_.report.timing = fmt::format("{} at {}", what, format_location(where));
}

void Timing::start(Warp& warp) const {
  if (!enabled_) return;
  warp.lanes.timed = warp.elected.timed = Clock(launch_.order.agents().count());
}

void Timing::count(const Clock& known, const Instruction& instruction, Cta& cta,
                   int barrier) const {
  Mbarrier& state = cta.barriers[barrier];
  PhasesInTime& in_time = state.in_time;
  const bool aware = std::all_of(in_time.waits.begin(), in_time.waits.end(), [&](const auto& wait) {
    return known[wait.first] >= wait.second;
  });
  if (!aware) in_time.unaware = state.phase + 1;
  const Epoch complete = known[agent(cta, barrier)];
  const bool is_unsure = complete < state.phase && !in_time.knows_all_before(state.phase, known);
  if (is_unsure && complete < in_time.unsure) {
    in_time.unsure = complete;
    in_time.arrival = &instruction;
  }
  in_time.note(instruction, state.phase, is_unsure);
}

void Timing::arrive(Warp& warp, const Instruction& instruction, Cta& cta, int barrier,
                    std::int64_t expected) const {
  if (!enabled_) return;
  Mbarrier& state = cta.barriers[barrier];
  Clock& known = warp.view(instruction.elected).timed;
  count(known, instruction, cta, barrier);
  const int own = own_agent(warp, instruction.elected);
  const Epoch time = ++known[own];
  // What one lane does behind an arrival of all lanes comes behind it in time.
  warp.elected.timed[own] = std::max(warp.elected.timed[own], time);
  state.in_time.note_last(own, state.phase, time);
  if (expected == 0) return;
  state.in_time.by_arrivals_alone = false;
  state.expects.push_back({own, time, expected});
}

void Timing::commit(const Clock& known, const Instruction& instruction, Cta& cta,
                    int barrier) const {
  if (!enabled_) return;
  count(known, instruction, cta, barrier);
  cta.barriers[barrier].in_time.by_arrivals_alone = false;
}

Clock Timing::issue(const Warp& warp, const Instruction& instruction, Cta& cta, int barrier,
                    std::int64_t bytes, bool multicast) const {
  if (!enabled_) return {};
  Mbarrier& state = cta.barriers[barrier];
  state.in_time.by_arrivals_alone = false;
  const Clock& known = warp.view(instruction.elected).timed;
  if (known[agent(cta, barrier)] < state.phase) {
    tell(instruction.where(),
         fmt::format("the phase of {} that a copy counts for", launch_.barrier_name(barrier)));
  }
  // Copies of other CTAs may end before their bytes are expected.
  if (multicast) return known;
  std::int64_t expected = 0;
  for (const ExpectedBytes& each : state.expects) {
    if (known[each.agent] >= each.time) expected += each.bytes;
  }
  state.issued += bytes;
  if (state.issued > expected) {
    tell(instruction.where(), fmt::format("whether {} expects a copy's bytes when it ends",
                                          launch_.barrier_name(barrier)));
  }
  return known;
}

void Timing::complete(const Cta& cta, int barrier, const PassedWait& wait) const {
  if (!enabled_) return;
  if (cta.barriers[barrier].accumulated.timed[wait.agent] >= wait.time) return;
  tell(wait.instruction->where(),
       fmt::format("whether a wait for {} looks before the next phase is over",
                   launch_.barrier_name(barrier)));
}

void Timing::know(Warp& warp, bool elected, int barrier, std::uint64_t phases) const {
  if (!enabled_) return;
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    Epoch& known = warp.view(lane).timed[agent(*warp.cta, barrier)];
    known = std::max(known, static_cast<Epoch>(phases));
  }
}

void Timing::pass(Warp& warp, const Instruction& instruction, int barrier, PassedWait& wait) const {
  if (!enabled_) return;
  know(warp, instruction.elected, barrier, warp.cta->barriers[barrier].phase);
  wait.agent = own_agent(warp, instruction.elected);
  wait.time = ++warp.view(instruction.elected).timed[wait.agent];
  // What one lane does behind a wait of all comes behind it in time.
  warp.elected.timed[wait.agent] = std::max(warp.elected.timed[wait.agent], wait.time);
  Mbarrier& state = warp.cta->barriers[barrier];
  state.in_time.waited = state.phase;
  // It comes behind arrivals for the next phase.
  if (state.pending < state.expected) state.in_time.unaware = state.phase + 1;
  auto& waits = state.in_time.waits;
  const auto same = std::find_if(waits.begin(), waits.end(),
                                 [&](const auto& each) { return each.first == wait.agent; });
  if (same == waits.end()) {
    waits.emplace_back(wait.agent, wait.time);
  } else {
    same->second = wait.time;
  }
}

void Timing::meet(Warp& warp, const Instruction& instruction, NamedBarrier& barrier) const {
  if (!enabled_) return;
  Clock& known = warp.lanes.timed;
  for (const NamedBarrier::Arrival& each : barrier.before) {
    if (each.warp == &warp || known[own_agent(*each.warp, false)] >= each.time) continue;
    tell(instruction.where(), "the use of a named barrier that an arrival counts for");
  }
  const int own = own_agent(warp, /*elected=*/false);
  barrier.arrivals.push_back({&warp, ++known[own]});
  warp.elected.timed[own] = known[own];  // what one lane does behind it comes behind it in time
}

void Timing::end(const Cta& cta) {
  if (!enabled_) return;
  for (const Warp& each : cta.warps) find_who_left(each);
  for (std::size_t i = 0; i < cta.barriers.size(); ++i) {
    const Mbarrier& state = cta.barriers[i];
    const int barrier = static_cast<int>(i);
    find_unsure(state, barrier);
    note_arrivals(state, barrier);
    // What bytes are expected an arrival has said, and what comes unexpected is a fault.
    if (!state.initialised || state.pending == state.expected) continue;
    tell(launch_.barrier_array(barrier).where,
         fmt::format("a phase of {} that is not over when its CTA ends",
                     launch_.barrier_name(barrier)));
  }
}

void Timing::find_unsure(const Mbarrier& state, int barrier) const {
  const PhasesInTime& in_time = state.in_time;
  if (!in_time.arrival) return;
  if (in_time.waited <= in_time.unsure && in_time.unaware <= in_time.unsure) return;
  if (launch_.report.timing.empty()) {
    launch_.report.timing = phase_of(*in_time.arrival, barrier);
  }
}

std::string Timing::phase_of(const Instruction& arrival, int barrier) const {
  return fmt::format("the phase of {} that an arrival counts for at {}",
                     launch_.barrier_name(barrier), format_location(arrival.where()));
}

void Timing::note_arrivals(const Mbarrier& state, int barrier) {
  // In a kernel without a wait for it no launch has one.
  if (launch_.barrier_array(barrier).waiters.empty()) return;
  const PreparedKernel& kernel = launch_.kernel;
  for (const PhasesInTime::Arrival& each : state.in_time.arrivals) {
    const ArrivalsInTime::Instruction place(
        kernel.source->name, static_cast<std::size_t>(each.instruction - kernel.code.data()));
    ArrivalsInTime& arrivals = launch_.report.arrivals;
    arrivals.counted.insert(place);
    if (each.first < state.in_time.waited) arrivals.awaited.insert(place);
    if (each.is_unsure) arrivals.unsure.emplace(place, phase_of(*each.instruction, barrier));
  }
}

WordStep Timing::step_of(Warp& warp, const Access& access, const std::byte* word) const {
  const Instruction& instruction = *access.instruction;
  const WordAccess& detail = launch_.kernel.words[instruction.detail];
  WordStep step;
  step.by = access;
  // All lanes load, and then meet to take what the elected one has found.
  step.lanes_meet = instruction.code == Code::word && !access.write;
  if (step.lanes_meet) {
    step.by.agent = own_agent(warp, /*elected=*/true);
    step.by.epoch = access.issued;
  }
  // That of all lanes one lane knows of once they have met.
  View& view = warp.view(instruction.elected || step.lanes_meet);
  step.time = ++view.timed[step.by.agent];
  step.known = view.timed;
  step.takes = detail.takes;
  step.waits = instruction.code == Code::word_wait;
  step.changes = access.write;
  step.adds = step.changes && ir::info(instruction.op).reads(ir::Memory::global);
  step.is_atomic_addition = instruction.op == ir::Op::atomic_add;
  if (step.adds) step.added = static_cast<std::int32_t>(warp.integer(detail.value));
  step.leaves = detail.last_finds != ir::kNoValue;
  step.takes_back = detail.takes_back;
  const Semantics semantics = detail.order.semantics;
  step.releases = semantics == Semantics::release || semantics == Semantics::acq_rel ||
                  (warp.fences && !warp.fences->released.empty());
  step.for_so_much = step.waits && detail.compare == Compare::ge;
  if (step.for_so_much) {
    std::int32_t value = 0;
    std::memcpy(&value, word, sizeof(value));
    step.spare = std::int64_t{value} - static_cast<std::int32_t>(warp.integer(detail.value));
  }
  return step;
}

bool Timing::meets_others(const Warp& warp, const Access& access, const std::byte* word) const {
  const auto address = reinterpret_cast<std::uint64_t>(word);
  const std::uint64_t block = address - address % ShadowBlock::kBytes;
  const Bytes bytes{std::uint64_t{1} << (address - block) / ShadowBlock::kCell,
                    static_cast<std::uint16_t>(0xf << address % ShadowBlock::kCell)};
  bool meets = false;
  launch_.world.memory.shadow(block).for_conflicts(access, bytes, [&](const Access& earlier) {
    const Code code = earlier.instruction->code;
    const bool is_own = (code == Code::word || code == Code::word_wait) &&
                        launch_.world.actor(earlier.cluster).launch == &launch_;
    meets = meets || (!is_own && !launch_.order.is_ordered(warp, earlier, access));
  });
  return meets;
}

void Timing::word(Warp& warp, const Access& access, const std::byte* word) {
  if (!enabled_ || (!launch_.report.words.empty() && !launch_.report.is_handed_out)) return;
  const SourceLocation where = access.instruction->where();
  // Of a tile's element nothing is known: any step may find something else in another order.
  if (access.instruction->code == Code::global_access) return tell_of_words(where, false);
  find_who_left(warp);
  const WordStep step = step_of(warp, access, word);
  WordHistory& history = words_[word];
  if (step.leaves) {
    const WordAccess& detail = launch_.kernel.words[access.instruction->detail];
    left_.push_back({&warp, &history, history.count(), detail.last_finds});
  }
  const auto is_ordered = [&](const WordStep& other) {
    return (other.by.cluster == step.by.cluster && step.known[other.by.agent] >= other.time) ||
           launch_.order.is_ordered(warp, other.by, access);
  };
  const bool is_choice = history.add(step, is_ordered);
  if (meets_others(warp, access, word)) return tell_of_words(where, false);
  if (is_choice) {
    tell_of_words(where, is_alone() && history.is_of_additions());
    if (!launch_.report.is_handed_out) return;
  }
  const Clock known = history.known_by_needed();
  for (const bool lane : {true, false}) {
    if (access.instruction->elected && !lane) continue;
    warp.view(lane).timed.join(known);
  }
}

void Timing::find_who_left(const Warp& warp) {
  const auto is_found = [&](const Left& each) {
    if (each.warp != &warp) return false;
    each.word->set_last_finds(each.step, warp.integer(each.last_finds));
    return true;
  };
  left_.erase(std::remove_if(left_.begin(), left_.end(), is_found), left_.end());
}

void Timing::end() {
  if (!enabled_) return;
  for (const auto& [word, history] : words_) {
    if (!history.hangs_on_who_is_last()) continue;
    tell_of_words(launch_.kernel.source->where, is_alone() && history.is_of_additions());
  }
}

bool Timing::is_alone() const { return launch_.kernel.ctas <= launch_.kernel.cluster; }

void Timing::tell_of_words(SourceLocation where, bool is_handed_out) const {
  if (!is_handed_out) launch_.report.is_handed_out = false;
  if (!launch_.report.words.empty()) return;
  launch_.report.words =
      fmt::format("what a word of global memory holds at {}", format_location(where));
}

void Timing::take_over() const {
  if (!enabled_ || is_alone()) return;
  launch_.report.is_handed_out = false;
  if (!launch_.report.words.empty()) return;
  launch_.report.words =
      fmt::format("whose place a cluster of {} takes over at {}", launch_.kernel.name,
                  format_location(launch_.kernel.source->where));
}

void Timing::registers(const Warp& warp, const Instruction& instruction) const {
  if (enabled_ && warp.registers != launch_.kernel.launch_registers) {
    tell(instruction.where(), "who gets the registers that are left");
  }
}

}  // namespace tilewright::simulator
