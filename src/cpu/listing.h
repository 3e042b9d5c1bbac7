#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpu/program.h"

// A program's list for its reader, with what each operation costs.
namespace tilewright::cpu {

// What an operation took where it was timed, a loop or a condition with all that is in it. Its
// shortest execution counts for each: longer ones were interrupted.
struct Cost {
  std::int64_t count = 0;
  double shortest = 0;
  void add(double seconds) { shortest = count++ == 0 ? seconds : std::min(shortest, seconds); }
  double seconds() const { return shortest * static_cast<double>(count); }
};
using Profile = std::unordered_map<const Operation*, Cost>;

// Seconds that it takes.
template <typename Work>
double timed(Work work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Why an operation takes longer than its elements do.
enum class Slow : std::uint8_t {
  no,
  tiny,
  wide_integers,
  integer_division,
  rounded_apart,
  in_turn
};
const char* reason_of(Slow slow);

struct ListedOperation {
  std::size_t depth = 0;  // loops and conditions around
  std::string text;       // "dot bf16 {128, 64} x {64, 128}"
  SourceLocation where;
  // Of one execution on whole tiles: arithmetic of floats, and what it reads and writes.
  double flops = 0, bytes = 0;
  Slow slow = Slow::no;
  bool is_block = false;              // a loop or a condition
  const Multiply* product = nullptr;  // of a product
  bool sums_in_parts = false;
  Cost cost;
};

// Those of scalars alone and copies that move nothing are left out.
std::vector<ListedOperation> list_operations(const Program& program, const Profile& profile = {});

}  // namespace tilewright::cpu
