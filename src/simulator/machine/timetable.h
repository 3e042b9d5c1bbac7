#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace tilewright::simulator {

// What a unit that does one thing at a time is busy with. Requests need not come in the order of
// their times: a warp that the execution drew later may ask for an earlier gap.
class Timetable {
 public:
  // The start of the first gap of `cycles` from `earliest` on, which is busy from now on.
  std::int64_t reserve(std::int64_t earliest, std::int64_t cycles) {
    if (cycles <= 0) return earliest;
    auto next = busy_.upper_bound(earliest);
    std::int64_t start = earliest;
    if (next != busy_.begin() && std::prev(next)->second > start) start = std::prev(next)->second;
    for (; next != busy_.end() && next->first < start + cycles; ++next) start = next->second;
    insert(start, start + cycles);
    return start;
  }

  // The end of what takes the first `cycles` that are free from `earliest` on, in pieces.
  std::int64_t fill(std::int64_t earliest, std::int64_t cycles) {
    std::int64_t at = earliest;
    while (cycles > 0) at = take(at, INT64_MAX, cycles);
    return at;
  }
  // When it is free again, of what is busy without a gap at that time.
  std::int64_t free_from(std::int64_t at) const {
    const auto next = busy_.upper_bound(at);
    return next == busy_.begin() ? at : std::max(at, std::prev(next)->second);
  }
  // Busy from start to end, whatever else is there.
  void hold(std::int64_t start, std::int64_t end) {
    std::int64_t all = INT64_MAX;
    while (start < end) start = take(start, end, all);
  }

 private:
  // Of the first gap from `at` to `end`, what is wanted: where that ends.
  std::int64_t take(std::int64_t at, std::int64_t end, std::int64_t& wanted) {
    const auto next = busy_.upper_bound(at);
    if (next != busy_.begin()) at = std::max(at, std::prev(next)->second);
    std::int64_t gap_end = next == busy_.end() ? end : std::min(end, next->first);
    if (at >= gap_end) return at;
    if (wanted < gap_end - at) gap_end = at + wanted;
    wanted -= gap_end - at;
    insert(at, gap_end);
    return gap_end;
  }
  // Neighbours become one.
  void insert(std::int64_t start, std::int64_t end) {
    auto next = busy_.lower_bound(start);
    if (next != busy_.end() && next->first == end) {
      end = next->second;
      next = busy_.erase(next);
    }
    if (next != busy_.begin() && std::prev(next)->second == start) {
      std::prev(next)->second = end;
    } else {
      busy_.emplace(start, end);
    }
  }

  std::map<std::int64_t, std::int64_t> busy_;  // start, end
};

}  // namespace tilewright::simulator
