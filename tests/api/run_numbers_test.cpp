#include "api/run_numbers.h"

#include <gtest/gtest.h>

#include "tilewright/program.h"

namespace tilewright {
namespace {

// Whoever has waited for a word by such a kernel knows what was done before one wrote it.
TEST(RunNumbers, WordsHandOnWhatWasDone) {
  constexpr std::int64_t kCount = 64;
  Program program("handed_on");
  const Buffer x = program.buffer("x", f32, {kCount}), y = program.buffer("y", f32, {kCount});
  const Buffer z = program.buffer("z", f32, {kCount});
  const Buffer word = program.buffer("word", i32, {1}), value = program.buffer("value", i32, {1});
  const Rank rank = program.rank(0);
  const Stream first = rank.stream("first"), second = rank.stream("second");
  first.copy(y, x);
  first.launch(write_counted_word(), {word, value});
  second.launch(wait_for_counted_word(Compare::ge), {word, value});
  second.copy(z, y);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    ProgramMemory memory(program);
    memory.at(value).set_flat(0, 1);
    for (std::int64_t i = 0; i < kCount; ++i) memory.at(x).set_flat(i, static_cast<double>(i));
    SimulationOptions options;
    options.seed = seed;
    options.runs = 1;
    const SimulationReport report = simulate(program, memory, options);
    ASSERT_TRUE(report.ok()) << report.faults.front().text;
    for (std::int64_t i = 0; i < kCount; ++i) EXPECT_EQ(memory.at(z).flat(i), i);
  }
}

}  // namespace
}  // namespace tilewright
