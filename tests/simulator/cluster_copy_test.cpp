#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "ir/text.h"
#include "passes/pipeline.h"
#include "simulator/cluster_copy_kernel.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"
#include "target/target.h"

// Copies between the shared memories of a cluster: what arrives, and what orders it.
namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ir::Kernel lowered(const Kernel& kernel) {
  ir::Kernel machine = kernel.finish();
  passes::lower_to_machine(machine);
  return machine;
}

struct Execution {
  simulator::MachineReport report;
  HostTensor X, Y;
};

Execution execute(const ir::Kernel& machine, std::uint64_t seed) {
  const std::vector<std::int64_t> shape{kPairedCtas * kTurns * kExchangedRows, kExchangedColumns};
  Execution run{{}, HostTensor::random_normal(bf16, shape, 1), HostTensor::poisoned(bf16, shape)};
  Arguments arguments;
  arguments.tensors.push_back({"X", bf16, shape, run.X.strides(), run.X.data()});
  arguments.tensors.push_back({"Y", bf16, shape, run.Y.strides(), run.Y.data()});
  simulator::MachineOptions options;
  options.seed = seed;
  run.report = simulator::run_machine(machine, arguments, options);
  return run;
}

TEST(ClusterCopy, BringsThePeersTiles) {
  const ir::Kernel machine = lowered(exchange());
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Execution run = execute(machine, seed);
    ASSERT_TRUE(run.report.ok()) << run.report.faults.front().message;
    expect_exchanged(run.X, run.Y);
  }
}

TEST(ClusterCopy, SurvivesItsText) {
  for (const auto& [kernel, name] : {std::pair(exchange().finish(), "cluster_copy_tile %"),
                                     std::pair(lowered(exchange()), "cluster_copy %")}) {
    const std::string text = ir::to_text(kernel);
    EXPECT_THAT(text, HasSubstr(name));
    EXPECT_EQ(ir::to_text(ir::parse_text(text, "again.tw")), text);
  }
}

// The first fault of some schedules; "mismatch" where the results differ alone.
simulator::Fault fault_of(const ir::Kernel& machine) {
  const HostTensor wanted = execute(lowered(exchange()), 0).Y;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Execution run = execute(machine, seed);
    if (!run.report.ok()) return run.report.faults.front();
    if (run.Y != wanted) return {"mismatch", {}, {}, "", ""};
  }
  return {};
}

TEST(ClusterCopy, IsOrderedByFencesAndTheStagesConsumption) {
  const auto of = [](ExchangeMistake mistake) { return fault_of(lowered(exchange(mistake))); };
  EXPECT_EQ(of(ExchangeMistake::none).kind, "") << of(ExchangeMistake::none).message;
  const simulator::Fault unfenced = of(ExchangeMistake::written_fence);
  EXPECT_EQ(unfenced.kind, "proxy") << unfenced.message;
  EXPECT_THAT(unfenced.message, HasSubstr("read   cluster_copy"));
  const simulator::Fault reused = of(ExchangeMistake::second_source);
  EXPECT_EQ(reused.kind, "race") << reused.message;
  EXPECT_THAT(reused.message, AllOf(HasSubstr("read   cluster_copy"), HasSubstr("shared own")));
  const simulator::Fault overwritten = of(ExchangeMistake::read_fence);
  EXPECT_EQ(overwritten.kind, "race") << overwritten.message;
  EXPECT_THAT(overwritten.message,
              AllOf(HasSubstr("write  cluster_copy"), HasSubstr("shared others")));
}

// Waits, arrivals, bytes and CTAs, and the meeting before the end.
TEST(ClusterCopy, SeededFaultsAreFound) {
  const ir::Kernel machine = lowered(exchange());
  int copies = 0, found = 0;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (const simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
      const bool is_copy = mutant.operation.starts_with("cluster_copy");
      const bool concerns = is_copy || kind.number == 9 || kind.number == 14 || kind.number == 22;
      if (!concerns || !mutant.equivalent.empty()) continue;
      const simulator::Fault fault = fault_of(mutant.apply(machine));
      EXPECT_NE(fault.kind, "") << kind.name << ": " << mutant.change;
      EXPECT_NE(std::find(kind.classes.begin(), kind.classes.end(), fault.kind), kind.classes.end())
          << kind.name << ": " << mutant.change << " is found as " << fault.kind;
      copies += is_copy ? 1 : 0;
      ++found;
    }
  }
  EXPECT_EQ(copies, 2);  // to the other CTA, with fewer bytes
  EXPECT_GE(found, 6);
}

}  // namespace
}  // namespace tilewright
