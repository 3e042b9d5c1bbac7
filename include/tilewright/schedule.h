#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/error.h"

// How a kernel of the tile level is compiled, as far as somebody says it. It changes nothing of
// what the kernel computes.
namespace tilewright {

// A value, or the compiler's choice. Notes the line that states it.
template <typename T>
class ScheduleField {
 public:
  ScheduleField() = default;
  ScheduleField(T value, SourceLocation where = here()) : value_(value), where_(where) {}
  bool is_set() const { return value_.has_value(); }
  const T& value() const { return *value_; }  // of one that is set
  T value_or(T otherwise) const { return value_.value_or(otherwise); }
  SourceLocation where() const { return where_; }

 private:
  std::optional<T> value_;
  SourceLocation where_;
};

// What each warpgroup, or each warp of a kernel without products, has of the tiles that they share.
enum class Partition : std::uint8_t {
  rows,     // rows of its own, with all of their columns
  columns,  // columns of its own, of all rows
};

// A field that is not set is the compiler's choice. One that the kernel cannot be compiled with, or
// on which nothing of the kernel depends, is an error at its line, with what would mend it.
//
//   kernel.schedule({.stages = 3, .warpgroups = 2});                        // the author's default
//   compile(kernel, "cuda", Schedule{.stages = 4});                         // before the default
//
// The two are merged field by field.
// docs/schedules.md says what each changes, and `tilewright tune` searches them.
struct Schedule {
  // Turns of a loop whose tiles lie in shared memory at once, loaded ahead or being read: 1 to 16,
  // as many as fit. Of loops that load what products read. As num_stages elsewhere.
  ScheduleField<int> stages = {};
  // Of 4 warps that compute: 1 to 8. With products each has 64 rows of their results, or a part of
  // their columns; one more warp loads. Without, 1, 2, 4 or 8. num_warps elsewhere is 4 times it.
  ScheduleField<int> warpgroups = {};
  ScheduleField<Partition> partition = {};
  // CTAs for which each multiprocessor has registers and shared memory: 1 to 16.
  ScheduleField<int> ctas = {};
  // Whether a product runs while the operand of the one behind it is computed, which takes
  // registers for both.
  ScheduleField<bool> overlap = {};
};

}  // namespace tilewright
