#include "schedules/core_routes.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>

namespace tilewright::schedules {

using target::Core;
using target::CoreMove;

namespace {

bool tell_each_other(const Core& core, const std::string& a, const std::string& b) {
  return a == b || (core.event(a, b) != nullptr && core.event(b, a) != nullptr);
}

}  // namespace

// `before` and `after`: the units that make the value and take it; none where that is memory.
std::optional<CoreWay> find_way(const Core& core, const std::string& from,
                                const std::string& before, const std::vector<std::string>& goals,
                                const std::string& after, bool turns) {
  struct State {
    std::string at, unit;
    bool turned;
    CoreWay way;
  };
  const auto is_goal = [&](const State& state) {
    return state.turned == turns &&
           std::find(goals.begin(), goals.end(), state.at) != goals.end() &&
           (after.empty() || tell_each_other(core, state.unit, after));
  };
  std::deque<State> next{{from, before, false, {{}, SIZE_MAX}}};
  std::set<std::tuple<std::string, std::string, bool>> known;
  while (!next.empty()) {
    const State state = next.front();
    next.pop_front();
    if (is_goal(state)) return state.way;
    // A tensor is not left again.
    if (before.empty() && state.at.empty() && !state.way.moves.empty()) continue;
    for (const CoreMove& move : core.moves) {
      if (move.from != state.at) continue;
      if (!state.unit.empty() && !tell_each_other(core, state.unit, move.unit)) continue;
      for (const bool turn : {false, true}) {
        if (turn && (!move.transposes || state.turned)) continue;
        State longer{move.to, move.unit, state.turned || turn, state.way};
        if (turn) longer.way.turn = longer.way.moves.size();
        longer.way.moves.push_back(&move);
        if (known.insert({longer.at, longer.unit, longer.turned}).second) next.push_back(longer);
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> find_order(const Core& core, const std::string& from,
                                    const std::string& to, bool crosses) {
  struct State {
    std::vector<std::string> units;
    bool crossed;
  };
  std::deque<State> next{{{from}, false}};
  std::set<std::pair<std::string, bool>> known;
  while (!next.empty()) {
    const State state = next.front();
    next.pop_front();
    const std::string& at = state.units.back();
    if (at == to && (state.crossed || !crosses)) return state.units;
    for (const target::CoreEventPair& pair : core.events) {
      if (pair.from != at || core.event(pair.to, at) == nullptr) continue;
      State longer = state;
      longer.units.push_back(pair.to);
      longer.crossed = state.crossed || core.unit(at)->sequencer != core.unit(pair.to)->sequencer;
      if (known.insert({pair.to, longer.crossed}).second) next.push_back(longer);
    }
  }
  return {};
}

}  // namespace tilewright::schedules
