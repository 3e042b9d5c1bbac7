#include "check/any_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "library/accuracy.h"
#include "library/differences.h"
#include "library/kernel_source.h"
#include "library/program_simulation.h"
#include "simulator/tma_reduce_kernel.h"
#include "tilewright/hopper.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// Sums of terms that come in any order: whose last bits may differ, and what is no order.
namespace tilewright::checks {
namespace {

using testing::ElementsAre;

struct Gradients {
  explicit Gradients(const std::string& schedule, const char* kernel = "attention_backward",
                     const std::string& kv_heads = "kv_heads=2") {
    const std::vector<std::string> settings = {"schedule=" + schedule, "heads=2",  kv_heads,
                                               "queries=400",          "keys=640", "dim=64"};
    const LibraryKernel& entry = find_kernel(kernel);
    const ir::Program recorded = library::KernelSource(entry).program(
        resolve_options(entry, settings), compiler::parse_target("sm_90a"));
    machine = library::machine_forms(recorded, ir::default_target()).front();
    made.workload = library::make_workload(entry, settings, {}, 0);
    made.program = library::bind_workload(recorded, made.workload, 4);
    ir::add_owned(made.program, machine);
  }
  // Outputs whose last bits may differ.
  std::set<std::string> in_any_order() const {
    std::set<std::string> outputs;
    const std::set<std::string> left = left_by_any_order(made.program, machine);
    for (const LibraryTensor* tensor : made.workload.parameters) {
      if (tensor->is_output && left.count(tensor->name) > 0) outputs.insert(tensor->name);
    }
    return outputs;
  }
  library::Workload simulated(std::uint64_t seed) const {
    library::ProgramWorkload run = made;
    simulator::MachineOptions how;
    how.multiprocessors = how.resident = 4;
    how.seed = seed;
    library::ProgramTensors after;
    const simulator::MachineReport report =
        library::simulate_program(run.program, machine, run.before(), &after, how, 1);
    EXPECT_TRUE(report.ok()) << report.faults.front().message;
    run.take(after);
    return run.workload;
  }
  // The first addition to memory that several CTAs share, and the operations beside it.
  template <typename Change>
  void change_addition(const Change& change) {
    for (ir::Kernel& kernel : machine) {
      if (!added_in_any_order(kernel).empty() && change_in(kernel.body, change)) return;
    }
    FAIL() << "no addition";
  }

  library::ProgramWorkload made;
  std::vector<ir::Kernel> machine;

 private:
  template <typename Change>
  static bool change_in(ir::Block& block, const Change& change) {
    for (auto at = block.body.begin(); at != block.body.end(); ++at) {
      if (at->op == ir::Op::red_registers) {
        change(block.body, at);
        return true;
      }
      for (ir::Block& inner : at->blocks) {
        if (change_in(inner, change)) return true;
      }
    }
    return false;
  }
};

TEST(AnyOrder, OutputsThatFollowFromTheSums) {
  const char* const packed = "attention_varlen_backward";
  EXPECT_THAT(Gradients("atomic", packed).in_any_order(), ElementsAre("dQ"));
  EXPECT_THAT(Gradients("atomic", packed, "kv_heads=1").in_any_order(),
              ElementsAre("dK", "dQ", "dV"));
  EXPECT_THAT(Gradients("atomic").in_any_order(), ElementsAre("dK", "dQ", "dV"));
  EXPECT_THAT(Gradients("ordered").in_any_order(), ElementsAre());
  EXPECT_THAT(Gradients("split", packed, "kv_heads=1").in_any_order(), ElementsAre());
}

std::set<std::string> left_by(const Kernel& kernel) {
  return left_by_any_order(compiler::compile_to_machine(kernel.finish(), "sm_90a").kernel);
}

// A kernel whose CTAs add to `sums`, which it also loads or does not.
Kernel adding(bool loads_sums) {
  Kernel kernel("adding");
  const Tensor sums = kernel.inout("sums", f32, {64}), Y = kernel.out("Y", f32, {64});
  kernel.ctas(2);
  kernel.roles({role("all", warps(4), registers(40), [&] {
    atomic_add(sums(all), full({64}, 1));
    when(cta_index() == 0, [&] { store(Y(all), loads_sums ? load(sums(all)) : zeros({64})); });
  })});
  return kernel;
}

TEST(AnyOrder, WhatAKernelLoadsOfItsSumsGoesOn) {
  EXPECT_THAT(left_by(adding(false)), ElementsAre("sums"));
  EXPECT_THAT(left_by(adding(true)), ElementsAre("Y", "sums"));
}

TEST(AnyOrder, TmaLoadsToo) {
  Kernel kernel("adding");
  const Tensor sums = kernel.inout("sums", f32, {64, 32}), Y = kernel.out("Y", f32, {64, 32});
  Ring ring(kernel, "read", stages(1), {{f32, 64, 32}});
  kernel.ctas(2);
  kernel.roles(
      {role("load", warps(1), registers(24),
            [&] { ring.produce([&](const Slot& slot) { tma_load(sums(all, all), slot); }); }),
       role("math", warpgroups(1), registers(240), [&] {
         const Slot slot = ring.consume();
         const Tile before = load(slot);
         ring.release(slot);
         atomic_add(sums(all, all), before);
         when(cta_index() == 0, [&] { store(Y(all, all), before); });
       })});
  EXPECT_THAT(left_by(kernel), ElementsAre("Y", "sums"));
}

// To add by TMA is not to load.
TEST(AnyOrder, AdditionsByTmaAreNoLoads) {
  EXPECT_THAT(left_by(accumulate(f32, Reduction::add, 32)), ElementsAre("Y"));
  EXPECT_THAT(left_by(accumulate(f32, Reduction::add, 32, Mistake::plain_load)),
              ElementsAre("D", "Y"));
}

TEST(AnyOrder, CopiesOfSumsAreSums) {
  Program program("copies");
  const Buffer kept = program.zeroed("kept", f32, {64}), X = program.in("X", f32, {64});
  const Buffer Y = program.scratch("Y", f32, {64});
  const Buffer copied = program.out("copied", f32, {64}), other = program.out("other", f32, {64});
  const Stream stream = program.rank(0).stream();
  stream.launch(adding(false), {kept, Y});
  stream.copy(copied, kept);
  stream.copy(other, X);
  const ir::Program recorded = program.finish();
  EXPECT_THAT(
      left_by_any_order(recorded, library::machine_forms(recorded, ir::default_target()).front()),
      ElementsAre("copied", "kept"));
}

// What was in memory before an addition depends on who came first, as the sum does.
TEST(AnyOrder, WhatAnAdditionGivesBackFollowsFromTheSums) {
  Kernel kernel("adding");
  const Tensor sums = kernel.inout("sums", f32, {64}), Y = kernel.out("Y", f32, {64});
  kernel.ctas(2);
  kernel.roles({role("all", warps(1), registers(40), [&] {
    const Tile before = atom_add(sums(all), full({64}, 1), {Semantics::relaxed, Scope::gpu});
    when(cta_index() == 0, [&] { store(Y(all), before); });
  })});
  EXPECT_THAT(left_by(kernel), ElementsAre("Y", "sums"));
}

TEST(AnyOrder, OtherOrdersAreNoDifferenceAndOtherSumsAre) {
  const Gradients right("atomic");
  const std::set<std::string> names = right.in_any_order();
  const library::Workload first = right.simulated(0);
  std::size_t other_bits = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const library::Workload again = right.simulated(seed);
    other_bits += library::first_difference(again, first, "before").empty() ? 0 : 1;
    EXPECT_EQ(library::first_difference(again, first, "before", names), "");
  }
  EXPECT_GT(other_bits, 0u);

  using Operations = std::vector<ir::Operation>;
  Gradients left_out("atomic"), doubled("atomic");
  left_out.change_addition([](Operations& all, Operations::iterator at) { all.erase(at); });
  doubled.change_addition(
      [](Operations& all, Operations::iterator at) { all.insert(at, ir::Operation(*at)); });
  for (const Gradients* wrong : {&left_out, &doubled}) {
    EXPECT_THAT(library::first_difference(wrong->simulated(0), first, "before", names),
                testing::HasSubstr("] is "));
  }
}

}  // namespace
}  // namespace tilewright::checks
