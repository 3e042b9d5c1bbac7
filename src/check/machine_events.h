#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ptx/launch.h"
#include "simulator/machine/recorder.h"

namespace tilewright::checks {

// Of a word of a launch's tensor: the same number wherever the tensor lies.
inline std::int64_t word_place(std::size_t tensor, std::int64_t bytes) {
  return (static_cast<std::int64_t>(tensor) << 40) + bytes;
}

// What a launch on the virtual GPU does that the execution of its PTX has to do too: the
// synchronising instructions of each warp, in the words of PTX.
class MachineEvents : public simulator::Recorder {
 public:
  // Of each warp of each CTA.
  std::vector<std::vector<ptx::Event>> events;
  std::vector<std::int64_t> clusters;  // in the order in which they started
  // Words that something was added to, by which warp, in this order.
  struct Addition {
    std::int64_t place = 0, cta = 0;
    int warp = 0;
  };
  std::vector<Addition> additions;
  // The first CTAs of the clusters that each cluster has taken over; -1 where there was none.
  std::map<std::int64_t, std::vector<std::int64_t>> taken;

  using Recorder::begin;
  using Recorder::executed;
  using Recorder::starts;
  void begin(const simulator::Launch& launch) override;
  void starts(const simulator::Warp& warp, const simulator::Instruction& instruction) override;
  void executed(const simulator::Warp& warp, const simulator::Instruction& instruction) override;

 private:
  void add(const simulator::Warp& warp, const simulator::Instruction& instruction,
           ptx::EventKind kind, std::vector<std::int64_t> values = {});
  void add_mbarrier(const simulator::Warp& warp, const simulator::Instruction& instruction);
  void add_copy(const simulator::Warp& warp, const simulator::Instruction& instruction);
  std::int64_t printed_map(const simulator::Warp& warp,
                           const simulator::Instruction& instruction) const;
  void add_product(const simulator::Warp& warp, const simulator::Instruction& instruction);
  void add_answer(const simulator::Warp& warp, std::int64_t first);
  void add_word(const simulator::Warp& warp, const simulator::Instruction& instruction);

  const simulator::Launch* launch_ = nullptr;
  std::map<std::pair<std::int64_t, int>, std::size_t> answers_;  // that a CTA's warp has seen
};

}  // namespace tilewright::checks
