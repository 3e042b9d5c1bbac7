#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/faults/sites.h"

// Rules by which a mutant cannot be told from its kernel. Each returns the reason, empty where it
// does not hold.
namespace tilewright::simulator {

// The operation stands in a loop without turns.
std::string never_executed(const Sites& sites, const Site& site);

// What the wait's stores have written is read by nobody before the kernel ends.
std::string nothing_reads_stores(const Sites& sites, const Site& wait);

// So few groups are under way that the wait lets all of them be.
std::string nothing_to_wait_for(const Sites& sites, const Site& wait);

// The products that the wgmma_wait waits for, or the wgmma_commit makes a group of, are waited for
// farther on, and nothing between the two uses their registers or says that they are done.
std::string awaited_behind(const Sites& sites, const Site& site);

// Without the fence too, no product meets a register that was used since the last fence.
std::string nothing_touched(const Sites& sites, const Site& fence);

// That holds for the first turn of the loop around it, so that a second one is needed to tell.
bool touched_in_later_turns_alone(const Sites& sites, const Site& fence);

// Its loop has one turn at most.
std::string never_in_later_turns(const Sites& sites, const Site& site);

// The values are carried into a turn of the loop that does not come, and used nowhere else.
std::string loop_ends(const Sites& sites, const std::vector<Use>& uses);

// The arrival is the last thing that its role does to the barrier, in the turn that ends the role's
// loop. Who waits for that phase fills what no warp of the role reads; a kernel that reads all that
// it fills has no such wait.
std::string ends_with_arrival(const Sites& sites, const Site& arrive);

// Before it ends, every CTA waits for whatever its peers do to its shared memory.
std::string peers_are_awaited(const Sites& sites);

// The parameter that a map or a peer is of; else the value itself.
ir::ValueId tensor_behind(const Sites& sites, ir::ValueId value);

// Lanes wait for each other at other places too, and between those of before and behind the
// warp_sync none does what another one's acts have to be in order with (lane_equivalence.cpp).
std::string lanes_meet_anyway(const Sites& sites, const Site& sync);

// The dividend is less than the divisor already, so that a larger one makes no difference.
std::string below_divisor(const Sites& sites, const Site& division);

// Whatever its result is, two loops make the same turns together: it is where the first one ends
// and the second, which does the same, goes on (loop_split.cpp).
std::string splits_like_loops(const Sites& sites, const Site& division);

// Each of the masks puts zeros where there are zeros (masked_zeros.cpp).
std::string hides_zeros(const Sites& sites, const std::vector<std::size_t>& selects);

// Whatever the computation makes is multiplied by zeros (masked_zeros.cpp).
std::string meets_zeros(const Sites& sites, const Site& computation);

// A factor on what the computation makes is one of what divides it, too (cancelled_scale.cpp).
std::string scale_cancels(const Sites& sites, const Site& computation);

// What the computations on registers can make at all, from the constants that arrays are filled
// with.
class SpecialValues {
 public:
  explicit SpecialValues(const Sites& sites);
  // A factor changes nothing of the computation's results.
  std::string never_finite(const Site& computation) const;

 private:
  class Walk;
  std::map<std::size_t, std::uint8_t> made_;  // sorts of numbers, by the operation's number
};

// `dividend` by the operation's divisor leaves no remainder.
std::string divides_evenly(const Sites& sites, const Site& division, ir::ValueId dividend);

}  // namespace tilewright::simulator
