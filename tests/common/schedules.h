#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tilewright/program.h"

// A program under several schedules, each from fresh memory.
namespace tilewright::test {

struct Schedules {
  int seeds = 6;
  int runs = 3;
};

inline SimulationReport simulate_seed(const Program& program, std::uint64_t seed, int runs,
                                      ProgramMemory& memory) {
  SimulationOptions options;
  options.seed = seed;
  options.runs = runs;
  return simulate(program, memory, options);
}

inline std::string text_of(const SimulationReport& report) {
  return report.ok() ? std::string() : report.faults.front().text;
}

// `check` looks at what the memory holds in the end.
inline void expect_clean(const Program& program, const Schedules& schedules,
                         const std::function<void(ProgramMemory&)>& check = {}) {
  for (int seed = 0; seed < schedules.seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ProgramMemory memory(program);
    const SimulationReport report =
        simulate_seed(program, static_cast<std::uint64_t>(seed), schedules.runs, memory);
    ASSERT_TRUE(report.ok()) << text_of(report);
    if (check) check(memory);
  }
}

inline void expect_fault(const SimulationReport& report, const std::string& kind,
                         const testing::Matcher<std::string>& text) {
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults.front().kind, kind);
  EXPECT_THAT(text_of(report), text);
}

// Under every seed, whichever access comes first in it.
inline void expect_fault(const Program& program, const Schedules& schedules,
                         const std::string& kind, const testing::Matcher<std::string>& text) {
  for (int seed = 0; seed < schedules.seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ProgramMemory memory(program);
    expect_fault(simulate_seed(program, static_cast<std::uint64_t>(seed), schedules.runs, memory),
                 kind, text);
  }
}

// Under some seeds: a rank that falls far behind may find all that it waits for in order.
inline void expect_fault_in_some(const Program& program, const Schedules& schedules,
                                 const std::string& kind,
                                 const testing::Matcher<std::string>& text) {
  int found = 0;
  for (int seed = 0; seed < schedules.seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ProgramMemory memory(program);
    const SimulationReport report =
        simulate_seed(program, static_cast<std::uint64_t>(seed), schedules.runs, memory);
    if (report.ok()) continue;
    ++found;
    expect_fault(report, kind, text);
  }
  EXPECT_GT(found, 0);
}

}  // namespace tilewright::test
