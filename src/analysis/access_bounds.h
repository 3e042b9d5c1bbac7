#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/loaded_integers.h"
#include "ir/ir.h"

namespace tilewright::analysis {

// How one axis of an access is held against its tensor. Blocks may begin before a tensor and reach
// beyond it, as a halo does. Integers that the launch gives are believed less.
struct AxisCheck {
  std::size_t axis = 0;
  std::int64_t size = 0;  // of the block; 0: an index
  // The start is negative only where an integer is that the launch gives; and such integers alone
  // decide it.
  bool counted = false, placed = false;
  // The end is computed from such an integer, and cuts the block.
  bool loaded_end = false;
  ir::ValueId source = ir::kNoValue;  // that integer
};

// The checks of an access whose operands from `first` on are a start for each axis, and then, of
// tiles, a limit for each. An axis that needs none is left out.
std::vector<AxisCheck> axis_checks(const ir::Operation& access, std::size_t first,
                                   const LoadedIntegers& integers);
// Of a copy by TMA whose operands from `first` on are a coordinate for each axis, the last axis
// first, and whose tensor map is given.
std::vector<AxisCheck> coordinate_checks(const ir::Operation& copy, std::size_t first,
                                         const ir::Operation& map, const LoadedIntegers& integers);
// Of a word whose operands from 1 on are an index for each of `rank` axes.
std::vector<AxisCheck> word_checks(const ir::Operation& word, std::size_t rank,
                                   const LoadedIntegers& integers);

// What is said of an index that is loaded (Counted).
struct IndexClaim {
  explicit IndexClaim(const ir::Operation& load_index);
  bool counted, ascending;
  std::optional<Dim> at_most;
};
// An element of i32 that is loaded so.
struct LoadedIndex {
  std::string_view tensor;
  std::vector<std::int64_t> at;
  const std::byte* element = nullptr;
  std::int64_t stride = 0;  // of a vector that ascends: elements to the next one
  std::optional<std::int64_t> at_most = {};
};
// What is wrong with it, such as "offsets{2} is 25, and may be 20 at most"; empty: nothing.
std::string describe_fault(const IndexClaim& claim, const LoadedIndex& index);
std::string fix_of(const IndexClaim& claim, const LoadedIndex& index);

// What may be wrong with an axis.
enum class BoundsFault : std::uint8_t { index, begin, end };
// Such as "index {} on axis 0 of X, which has {}". The numbers that fill it are the start, for an
// end also the limit, and the extent.
std::string bounds_message(BoundsFault fault, std::size_t axis, std::string_view tensor);
// What follows where the integer is known that it is made of.
std::string_view source_message();
// Each {} of the message replaced by the next of the numbers.
std::string fill(std::string_view message, const std::vector<std::int64_t>& numbers);

// What is wrong with the axis, such as "index 9 on axis 0 of X, which has 2"; empty: nothing.
// `limit` is where what exists of the block ends.
std::string describe_fault(const AxisCheck& check, std::int64_t start, std::int64_t limit,
                           std::int64_t extent, std::string_view tensor);

}  // namespace tilewright::analysis
