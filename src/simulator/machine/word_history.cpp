#include "simulator/machine/word_history.h"

#include <algorithm>

namespace tilewright::simulator {
namespace {

bool are_of_one_warp(const WordStep& one, const WordStep& other) {
  return one.by.cluster == other.by.cluster && one.by.cta == other.by.cta &&
         one.by.warp == other.by.warp;
}

}  // namespace

bool WordHistory::add(WordStep step, const std::function<bool(const WordStep&)>& is_ordered) {
  Step added{std::move(step)};
  std::vector<bool> ordered(steps_.size());
  added.needs = added.first_open = steps_.size();
  for (std::size_t i = steps_.size(); i-- > 0;) {
    ordered[i] = is_ordered(steps_[i]);
    if (!ordered[i] && steps_[i].changes) added.first_open = i;
    // One lane leaves, and the others may not yet have come as far.
    if (!ordered[i] && are_of_one_warp(steps_[i], added)) added.leaves_for_all = false;
  }
  if (added.for_so_much) {
    // What has come too late to be needed.
    for (std::size_t i = steps_.size(); i-- > 0;) {
      const Step& last = steps_[i];
      if (last.changes && !ordered[i]) {
        if (last.added <= 0 || last.releases || added.spare < last.added) break;
        added.spare -= last.added;
      }
      added.needs = i;
    }
  }
  bool is_choice = false;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    is_choice = is_choice || (!ordered[i] && !commute(i, added));
  }
  if (added.lanes_meet) {
    for (Step& earlier : steps_) {
      if (!earlier.waits || !are_of_one_warp(earlier, added)) continue;
      earlier.by.agent = added.by.agent;
      earlier.by.epoch = added.by.epoch;
      earlier.time = added.time;
    }
  }
  steps_.push_back(std::move(added));
  return is_choice;
}

bool WordHistory::is_of_additions() const {
  return std::all_of(steps_.begin(), steps_.end(),
                     [](const Step& step) { return step.is_atomic_addition; });
}

Clock WordHistory::known_by_needed() const {
  Clock known;
  const Step& last = steps_.back();
  if (!last.for_so_much) return known;
  for (std::size_t i = 0; i < last.needs; ++i) {
    const Step& step = steps_[i];
    if (step.changes && step.by.cluster == last.by.cluster) known.join(step.known);
  }
  return known;
}

bool WordHistory::commute(std::size_t number, const Step& later) const {
  const Step& earlier = steps_[number];
  if (later.takes_back) return !earlier.takes_back;  // looked at in the end
  if (!earlier.changes && !later.changes) return true;
  if (!earlier.looks() && !later.looks()) return earlier.adds && later.adds;
  if (later.for_so_much) {
    if (number >= later.needs) return earlier.first_open >= later.needs;
    return earlier.added > 0 && later.spare < earlier.added;
  }
  if (earlier.for_so_much) return later.added > 0 && later.first_open >= earlier.needs;
  return false;
}

bool WordHistory::hangs_on_who_is_last() const {
  const auto leaves = [](const Step& step) { return step.leaves; };
  if (std::none_of(steps_.begin(), steps_.end(), leaves)) return false;
  if (steps_.size() < 2) return true;
  const Step &back = steps_.back(), &last = steps_[steps_.size() - 2];
  if (!back.takes_back || !last.leaves || !are_of_one_warp(last, back)) return true;
  for (auto step = steps_.begin(); step != steps_.end() - 1; ++step) {
    if (step->changes && step->added != last.added) return true;
    if (step->leaves && step->last_finds != last.last_finds) return true;
    const bool goes = std::any_of(step, steps_.end() - 1, [&](const Step& later) {
      return later.leaves && later.leaves_for_all && are_of_one_warp(*step, later);
    });
    if (!goes) return true;
  }
  return last.added <= 0;
}

}  // namespace tilewright::simulator
