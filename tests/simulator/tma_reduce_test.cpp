#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ir/text.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"
#include "simulator/one_launch.h"
#include "simulator/tma_reduce_kernel.h"

// TMA's reduction to global memory: what it computes, in any order, and what orders it.
namespace tilewright {
namespace {

using test::lowered;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Execution {
  simulator::MachineReport report;
  HostTensor X, before, Y;
};

Execution execute(const ir::Kernel& machine, std::uint64_t seed, HostTensor X, HostTensor Y) {
  Execution run{{}, std::move(X), Y, std::move(Y)};
  HostTensor D = HostTensor::zeros(run.X.dtype(), run.X.shape());
  run.report = test::launch_once(machine, {{"X", &run.X}, {"Y", &run.Y}, {"D", &D}}, seed);
  return run;
}

Execution execute(const ir::Kernel& machine, DType dtype, int columns, std::uint64_t seed) {
  return execute(machine, seed, numbers(dtype, {kCtas * kRows, columns}, 1),
                 numbers(dtype, {kRows, columns}, 2));
}

void expect_result(const Execution& run, const ReductionCase& each) {
  ASSERT_TRUE(run.report.ok()) << run.report.faults.front().message;
  expect_reduced(run.X, run.before, run.Y, each);
}

TEST(TmaReduce, CombinesWhatAllCtasBring) {
  for (const ReductionCase& each : reduction_cases()) {
    SCOPED_TRACE(std::string(name_of(each.dtype)) + " " + std::to_string(each.columns));
    const ir::Kernel machine = lowered(accumulate(each.dtype, each.how, each.columns));
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      expect_result(execute(machine, each.dtype, each.columns, seed), each);
    }
  }
}

TEST(TmaReduce, PassesNaNOver) {
  const ir::Kernel machine = lowered(accumulate(bf16, Reduction::max, kColumns));
  HostTensor X = numbers(bf16, {kCtas * kRows, kColumns}, 1),
             Y = numbers(bf16, {kRows, kColumns}, 2);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  X.set({kRows + 3, 5}, kNaN);
  Y.set({7, 9}, kNaN);
  const Execution run = execute(machine, 1, std::move(X), std::move(Y));
  expect_result(run, {bf16, Reduction::max, kColumns, 0});
  EXPECT_FALSE(std::isnan(run.Y.at({3, 5})));
  EXPECT_FALSE(std::isnan(run.Y.at({7, 9})));
}

TEST(TmaReduce, SurvivesItsText) {
  for (const ir::Kernel& kernel : {accumulate(f32, Reduction::add, kColumns).finish(),
                                   lowered(accumulate(f16, Reduction::min, kColumns))}) {
    const std::string text = ir::to_text(kernel);
    EXPECT_THAT(text, AnyOf(HasSubstr("tma_reduce_tile"), HasSubstr("{function = min, step = 0}")));
    EXPECT_EQ(ir::to_text(ir::parse_text(text, "again.tw")), text);
  }
}

// The first fault of some schedules.
simulator::Fault fault_of(const ir::Kernel& machine) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Execution run = execute(machine, f32, kColumns, seed);
    if (!run.report.ok()) return run.report.faults.front();
  }
  return {};
}

simulator::Fault fault_of(Mistake mistake) {
  return fault_of(lowered(accumulate(f32, Reduction::add, kColumns, mistake)));
}

TEST(TmaReduce, IsOrderedByFencesWaitsAndNothingElse) {
  EXPECT_EQ(fault_of(Mistake::none).kind, "") << fault_of(Mistake::none).message;
  const simulator::Fault unfenced = fault_of(Mistake::fence);
  EXPECT_EQ(unfenced.kind, "proxy") << unfenced.message;
  EXPECT_THAT(unfenced.message, HasSubstr("read   tma_reduce"));
  EXPECT_THAT(unfenced.missing, HasSubstr("fence_proxy_async"));
  const simulator::Fault reused = fault_of(Mistake::read_wait);
  EXPECT_EQ(reused.kind, "race") << reused.message;
  EXPECT_THAT(reused.message,
              AllOf(HasSubstr("read   tma_reduce"), HasSubstr("write  store_elements")));
  EXPECT_THAT(reused.missing, HasSubstr("bulk_wait_read between them"));
}

// Reductions of one element are atomic to each other, and to nothing else.
TEST(TmaReduce, RacesWithPlainAccesses) {
  for (const auto& [mistake, other] : {std::pair(Mistake::plain_load, "load_registers"),
                                       std::pair(Mistake::plain_store, "store_registers"),
                                       std::pair(Mistake::tma_store, "tma_store")}) {
    const simulator::Fault fault = fault_of(mistake);
    EXPECT_EQ(fault.kind, "race") << fault.message;
    EXPECT_THAT(fault.message,
                AllOf(HasSubstr("global Y"), HasSubstr("tma_reduce"), HasSubstr(other)));
    EXPECT_GT(fault.first.line, 0);
    EXPECT_GT(fault.second.line, 0);
  }
}

// Faults that are seeded into any kernel with copies out of shared memory.
TEST(TmaReduce, SeededFaultsAreFound) {
  const ir::Kernel machine = lowered(accumulate(f32, Reduction::add, kColumns));
  int found = 0;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (const simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
      if (!mutant.equivalent.empty() ||
          (mutant.operation != "fence_proxy_async" && mutant.operation != "bulk_wait"))
        continue;
      ++found;
      EXPECT_NE(fault_of(mutant.apply(machine)).kind, "") << kind.name << ": " << mutant.change;
    }
  }
  EXPECT_GE(found, 3);
}

}  // namespace
}  // namespace tilewright
