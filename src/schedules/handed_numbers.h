#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "schedules/followed_scalars.h"

namespace tilewright::schedules {

// Numbers that one role hands to another through shared memory, such as the tiles that it has
// taken: as a role finds them that is followed behind the one that wrote them. A reader's next
// number is the one behind that which it read before it last waited for the number's stage.
class HandedNumbers {
 public:
  using Element = std::pair<ir::ValueId, std::int64_t>;            // of an array in shared memory
  using Written = std::map<Element, std::vector<FollowedScalar>>;  // by all roles, in their order

  explicit HandedNumbers(Written& written) : written_(written) {}

  void store(const Element& element, FollowedScalar value) { written_[element].push_back(value); }

  // `index` is the value that says which element it is.
  FollowedScalar load(const Element& element, ir::ValueId index) {
    Read& read = reads_[element];
    if (!read.stage) read.stage = stage_of(index);
    const std::int64_t waits = waits_[*read.stage];
    if (read.waits != waits) {
      if (read.waits >= 0) ++read.next;
      read.waits = waits;
    }
    const auto found = written_.find(element);
    const bool is_there = found != written_.end() && read.next < found->second.size();
    return is_there ? found->second[read.next] : FollowedScalar{};
  }

  // For the barrier of this number, which `index` has said.
  void wait(ir::ValueId barriers, ir::ValueId index, std::int64_t number) {
    indices_[index] = {barriers, number};
    last_wait_ = {barriers, number};
    ++waits_[last_wait_];
  }

  // A value is computed from this operand: if that depends on an index that was waited for, so does
  // the value. Of a stage with several numbers, the element's place is such a value.
  void compute(ir::ValueId value, ir::ValueId operand) {
    const ir::ValueId index = index_of(operand);
    if (indices_.count(index) != 0) computed_from_[value] = index;
  }

 private:
  // A barrier's mbarriers, and the number of one of them.
  using Stage = std::pair<ir::ValueId, std::int64_t>;
  struct Read {
    std::optional<Stage> stage;  // that its reader waits for
    std::size_t next = 0;
    std::int64_t waits = -1;  // for the stage, when it was read last
  };

  ir::ValueId index_of(ir::ValueId value) const {
    const auto found = computed_from_.find(value);
    return indices_.count(value) != 0 || found == computed_from_.end() ? value : found->second;
  }

  // In a ring of one stage an element depends on no index. It is read behind the wait for it.
  Stage stage_of(ir::ValueId element) const {
    const auto found = indices_.find(index_of(element));
    return found == indices_.end() ? last_wait_ : found->second;
  }

  Written& written_;
  std::map<Stage, std::int64_t> waits_;
  Stage last_wait_ = {ir::kNoValue, 0};
  std::unordered_map<ir::ValueId, Stage> indices_;  // that were waited for
  std::unordered_map<ir::ValueId, ir::ValueId> computed_from_;
  std::map<Element, Read> reads_;
};

}  // namespace tilewright::schedules
