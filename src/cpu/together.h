#pragma once

#include <cstdint>
#include <vector>

#include "cpu/engine.h"
#include "cpu/program.h"
#include "cpu/shared_packs.h"

namespace tilewright::cpu {

// The first loop of a program's body whose products read tensors for few rows, if blocks may run in
// any order; else null.
const For* loop_over_tensors(const Program& program);

// Whether rows that it reads in tensors are of a page each.
bool goes_over_pages(const For& loop, const Arguments& arguments);

// What a thread runs blocks with. Several of them go over memory together where they read parts of
// the same pages with few rows, as heads do that lie side by side: each round of the loop is run
// for all of them before the next one. The first block finds a page, and the others find it there.
class Together {
 public:
  // So many blocks at most.
  static constexpr std::int64_t kMost = 16;

  // Its thread has one at a time: the memory is the thread's. `loop` is null where blocks go one
  // after the other.
  Together(const Launch& launch, const For* loop);
  // What is thrown is the failure of the first block that fails.
  void run(std::int64_t begin, std::int64_t end);
  // As many as have gone together.
  std::size_t went_together() const { return went_together_; }
  // Number i of those that go together. All before it are there.
  Engine& engine(std::size_t i);

 private:
  // The first blocks of these, together where they may. The one behind them.
  std::int64_t run_some(std::int64_t begin, std::int64_t end);

  const Launch& launch_;
  const For* const loop_;
  std::size_t most_;
  std::size_t went_together_ = 1;
  std::byte* const scratch_;
  std::byte* const arenas_;
  SharedPacks packs_;
  std::vector<Engine> engines_;  // it has room for all, and moves none
};

}  // namespace tilewright::cpu
