#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "simulator/machine/machine.h"
#include "support/random.h"

namespace tilewright::simulator {

struct Event;
struct Instruction;
struct Warp;

// Who goes next on the virtual GPU: one of the warps that can, or of the asynchronous events that
// may happen. Five ways, each a function of the seed alone:
// - uniform: a warp for some instructions, or an event, at random, events seldom, evenly or
// eagerly.
// - priorities: who has the highest goes on; they are drawn at random, and at two instants the
//   highest falls to the lowest, and at two more a stream of a program does. It finds what needs
//   few, particular changes of order with a probability that is known (PCT: Burckhardt et al.,
//   ASPLOS 2010).
// - delays: one warp after the other in a fixed order, but for at most two instants at which the
//   next one is passed over. These schedules can be counted through (Emmi et al., POPL 2011).
// - held: a fixed order of preference. The warp that comes to the seed's arrival on an mbarrier
//   or access to a word stays before it until nothing else can go on: who counts on others may then
//   count for it.
// - handed: a fixed order of preference, in which a warp stays before each atomic_add until nothing
//   else can go on. The seed's digits say which of those that stand there goes. Every order of the
//   atomic additions comes so: what comes before one of them in some execution depends on no later
//   one, so that it has been executed when nothing else can go on.
class Schedule {
 public:
  Schedule(Search search, std::uint64_t seed);

  struct Choice {
    bool event = false;
    std::size_t index = 0;
  };
  // One of the lists is not empty.
  Choice next(std::vector<Warp*>& warps, std::vector<Event>& events);
  // How many instructions the warp may execute; with `until_seen`, as many as no other warp sees,
  // and one more.
  std::uint64_t turn();
  // Whether a wait that could pass looks once more first, as try_wait may return false at any time.
  // Under the other schedules a warp lags behind wherever it stands.
  bool times_out() { return kind_ == Kind::uniform && random_.below(kTimeOuts) == 0; }
  bool until_seen() const { return kind_ != Kind::uniform; }
  // Whether a warp's turn ends before the instruction.
  bool stays_before(const Instruction& instruction) const;
  const std::vector<std::uint8_t>& stood() const { return stood_; }
  // Choices among several so far; of `held`, arrivals on mbarriers.
  std::int64_t choices() const { return choices_; }

 private:
  enum class Kind : std::uint8_t { uniform, priorities, delays, held, handed, time };
  static constexpr std::uint64_t kTimeOuts = 16;
  Choice uniform(const std::vector<Warp*>& warps, const std::vector<Event>& events);
  Choice by_priority(std::vector<Warp*>& warps, std::vector<Event>& events);
  Choice in_order(std::vector<Warp*>& warps, std::vector<Event>& events);
  Choice but_for_one(std::vector<Warp*>& warps, std::vector<Event>& events);
  Choice additions_last(std::vector<Warp*>& warps, std::vector<Event>& events);
  bool is_instant() const;
  template <typename Visit>
  void for_candidates(std::vector<Warp*>& warps, std::vector<Event>& events, Visit visit);

  Kind kind_;
  Random random_;
  Random stream_random_;  // so that a launch alone has the same schedules, whatever programs need
  std::uint64_t event_share_ = 0;                  // of 16 turns
  std::array<std::int64_t, 2> instants_{};         // numbers of choices
  std::array<std::int64_t, 2> stream_instants_{};  // numbers of choices of streams
  std::int64_t choices_ = 0, stream_choices_ = 0;
  std::map<int, std::uint64_t> streams_;  // ranks; 0: none yet
  std::uint64_t drawn_ = 0, lowest_ = 0, current_ = 0;
  std::uint64_t held_ = 0;  // the arrival's number
  std::uint64_t digits_ = 0;
  std::vector<std::uint8_t> stood_;  // warps, at each choice among several before atomic additions
};

// Whether other warps or asynchronous work can tell that the instruction was executed.
bool is_seen(const Instruction& instruction);

}  // namespace tilewright::simulator
