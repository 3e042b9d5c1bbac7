#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/ranks_kernels.h"
#include "compiler/compile_to_machine.h"
#include "examples/all_reduce.h"
#include "library/program_simulation.h"
#include "simulator/faults/fault_kinds.h"
#include "target/verify.h"
#include "tilewright/program.h"

// Faults of signals between ranks, seeded at every site of kernels of several ranks, and found.
namespace tilewright::checks {
namespace {

// One launch a rank and run.
struct RanksSubject {
  RanksSubject(const Kernel& kernel, int ranks, DType dtype,
               const std::vector<std::vector<Dim>>& shapes)
      : program("faults", ranks) {
    std::vector<Part> parts;
    for (const auto& shape : shapes) {
      parts.push_back(program.buffer("t" + std::to_string(parts.size()), dtype, shape));
    }
    program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, parts); });
    machine = compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  }

  // The kind of fault that shows in one schedule of some runs; "" for none.
  std::string symptom(const ir::Kernel& mutant, std::uint64_t seed, int runs) const {
    simulator::MachineOptions options;
    options.seed = seed;
    options.multiprocessors = options.resident = 8;
    const simulator::MachineReport report = library::simulate_program(
        program.finish(), {mutant}, ProgramMemory(program).tensors, nullptr, options, runs);
    return report.ok() ? "" : report.faults[0].kind;
  }

  // Every mutant of the kind is refused, equivalent by a rule, or found as what it is in some
  // schedule.
  int expect_found(int number, int runs) const {
    const std::vector<simulator::FaultKind>& kinds = simulator::fault_kinds();
    const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const auto& each) { return each.number == number; });
    int found = 0;
    for (const simulator::Mutant& mutant : simulator::mutants_of(*kind, machine)) {
      SCOPED_TRACE(mutant.operation + " " + mutant.change);
      const ir::Kernel changed = mutant.apply(machine);
      try {
        target::verify(changed);
      } catch (const Error&) {
        continue;
      }
      if (!mutant.equivalent.empty()) continue;
      std::string symptom;
      for (std::uint64_t seed = 0; seed < 12 && symptom.empty(); ++seed) {
        symptom = this->symptom(changed, seed, runs);
      }
      EXPECT_NE(std::find(kind->classes.begin(), kind->classes.end(), symptom), kind->classes.end())
          << "found as '" << symptom << "'";
      ++found;
    }
    return found;
  }

  Program program;
  ir::Kernel machine;
};

TEST(RanksFaults, OfAnAllReduce) {
  const RanksSubject subject(examples::all_reduce(), 2, f32, {{100, 64}, {100, 64}, {4, 100, 64}});
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    ASSERT_EQ(subject.symptom(subject.machine, seed, 3), "");
  }
  // The signal: relaxed, of the GPU alone, early; the wait: relaxed, of the GPU alone, left out.
  EXPECT_EQ(subject.expect_found(23, 3), 6);
  EXPECT_EQ(subject.expect_found(24, 3), 1);
}

// Whatever is seeded elsewhere is found in kernels of several ranks too.
TEST(RanksFaults, OfAllKinds) {
  const RanksSubject reduce(examples::all_reduce(), 2, f32, {{100, 64}, {100, 64}, {4, 100, 64}});
  const RanksSubject copied(test::Copied{}.kernel(), 2, bf16, {{64, 64}, {64, 64}, {64, 64}});
  int found = 0;
  for (int number = 1; number <= 25; ++number) {
    SCOPED_TRACE(number);
    found += reduce.expect_found(number, 2) + copied.expect_found(number, 2);
  }
  EXPECT_GT(found, 30);
}

TEST(RanksFaults, OfCopiesThroughTma) {
  const RanksSubject subject(test::Copied{}.kernel(), 2, bf16, {{64, 64}, {64, 64}, {64, 64}});
  ASSERT_EQ(subject.symptom(subject.machine, 0, 1), "");
  // As of the all-reduce, and the proxy fence left out.
  EXPECT_EQ(subject.expect_found(23, 1), 7);
  EXPECT_EQ(subject.expect_found(16, 1), 1);
}

}  // namespace
}  // namespace tilewright::checks
