#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"
#include "simulator/machine/clock.h"
#include "simulator/machine/word_history.h"
#include "tilewright/error.h"

// Whether what happens on the virtual GPU depends on the order that the seed drew.
//
// Where nothing does, one run without a fault stands for every schedule of its launch. The argument
// goes over the steps of another schedule, in their order. Suppose that all steps so far are steps
// of this run, each behind what it was ordered behind here. Then the next one is such a step too:
//
// - A warp's next instruction follows from its program and from what it has read. Reads that are
//   ordered with all writes of the same bytes find what they found here. Without a race all are,
//   but for words that may be written at the same time: those are told here.
// - An arrival, an expect_tx or a copy counts for phase p of its mbarrier, as it did here. Its warp
//   knows that p phases are complete, so that it cannot come earlier: from a wait, or since it
//   knows of all arrivals for them, where nothing but arrivals counts. And the phase cannot end
//   without it, since its arrivals and its bytes are those that the phase had here. Where its warp
//   knows of fewer, it may count for a phase behind these. That is all the same if no wait is for
//   one of them, and no arrival for them may come before a wait for an earlier one: behind the last
//   turn of a ring. That is so in this launch. Of one with more turns it says nothing, unless
//   some launch waits for a phase that the same instruction arrives for (ArrivalsInTime).
// - So it is with a commit of products in tensor memory, which arrives once these are over: what
// its
//   thread knew when it committed is what counts. Its products come before it in any order, and
//   what is committed is over before the CTA ends.
// - A wait for phase p finds that phase: the order's own checks hold it to the phase, and phase
//   p + 1 cannot end before the wait is over, since one of its arrivals knows of the wait. A warp's
//   instructions come one behind the other, also where one lane executes the later ones. So who
//   knows of what that lane did behind a wait of all lanes knows, in time, that the wait is over.
// - A barrier of warps has the same warps at each use, since each of them knows, in time, that the
//   use before is over. Registers are only ever given back before others ask for more. Columns of
//   tensor memory are the last free ones, whichever CTA asks.
//
// So each step has here and there the same steps before it, and the clocks of all views are the
// same. A race, a missing fence and a use of what is in flight follow from these clocks and from
// the order within a warp. A deadlock would have a first step that never comes, but all that it
// waits for does.
namespace tilewright::simulator {

struct Cta;
struct Instruction;
struct Mbarrier;
struct NamedBarrier;
struct PassedWait;
struct Warp;
class Launch;

// Words that CTAs change at the same time, such as a counter from which each takes the number of
// its next tile, stand in the report by themselves, and so do places that clusters take over: given
// what each access finds, the argument holds. A wait until a word that only grows is large enough
// is none of them, nor is who comes last to a word that counts (word_history.h). A launch of one
// cluster may have few orders of such accesses, as of two roles that take the numbers of their
// tiles from a counter. Where all of them are atomic additions, Search::handed executes one of
// these orders after the other. Then nothing else is left that depends on the order.
//
// Keeps clocks of what has happened in time: also by way of copies, which order nothing but what
// they write. Says in the report what depends on the order, the first such thing alone.
class Timing {
 public:
  Timing(Launch& launch, bool enabled) : launch_(launch), enabled_(enabled) {}

  bool enabled() const { return enabled_; }
  void start(Warp& warp) const;
  // Before an arrival on the mbarrier of a CTA, which may expect bytes.
  void arrive(Warp& warp, const Instruction& instruction, Cta& cta, int barrier,
              std::int64_t expected) const;
  // Before a commit of products in tensor memory arrives, of which the thread knew so much.
  void commit(const Clock& known, const Instruction& instruction, Cta& cta, int barrier) const;
  // Before a copy to the CTA; what its issuer knows, for the barrier.
  Clock issue(const Warp& warp, const Instruction& instruction, Cta& cta, int barrier,
              std::int64_t bytes, bool multicast) const;
  // Before the barrier's phase ends, to which the wait for the one before must not look any more.
  void complete(const Cta& cta, int barrier, const PassedWait& wait) const;
  void pass(Warp& warp, const Instruction& instruction, int barrier, PassedWait& wait) const;
  // The warp, or its elected lane, knows that so many phases are over.
  void know(Warp& warp, bool elected, int barrier, std::uint64_t phases) const;
  // Before the warp comes to a barrier of warps.
  void meet(Warp& warp, const Instruction& instruction, NamedBarrier& barrier) const;
  // The CTA ends. A phase that has begun and is not over may be one that a longer launch waits for.
  void end(const Cta& cta);
  // The launch is over, or cannot go on.
  void end();
  // Before the access to a word, which others may read or change at the same time.
  void word(Warp& warp, const Access& access, const std::byte* word);
  // A cluster asks for the place of one that has not started: which one it gets is drawn.
  void take_over() const;
  // Asks for registers, or gives some back, once more.
  void registers(const Warp& warp, const Instruction& instruction) const;

 private:
  // Notes for which phase it counts, and whether it may count for another.
  void count(const Clock& known, const Instruction& instruction, Cta& cta, int barrier) const;
  // Whether it matters that an arrival may count for another phase of the barrier.
  void find_unsure(const Mbarrier& state, int barrier) const;
  void note_arrivals(const Mbarrier& state, int barrier);
  std::string phase_of(const Instruction& arrival, int barrier) const;
  int agent(const Cta& cta, int barrier) const;
  int own_agent(const Warp& warp, bool elected) const;
  void tell(SourceLocation where, const std::string& what) const;
  WordStep step_of(Warp& warp, const Access& access, const std::byte* word) const;
  // Whether other launches, streams or copies touch the word, and nothing orders the access with
  // them.
  bool meets_others(const Warp& warp, const Access& access, const std::byte* word) const;

  // What the warp has left, and since then compares with what it has found.
  void find_who_left(const Warp& warp);
  bool is_alone() const;  // one cluster is all of the launch
  void tell_of_words(SourceLocation where, bool is_handed_out) const;

  struct Left {
    const Warp* warp = nullptr;
    WordHistory* word = nullptr;
    std::size_t step = 0;
    ir::ValueId last_finds = ir::kNoValue;
  };
  Launch& launch_;
  bool enabled_;
  std::unordered_map<const std::byte*, WordHistory> words_;
  std::vector<Left> left_;
};

}  // namespace tilewright::simulator
