#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/attention_backward_cases.h"
#include "library/program_simulation.h"
#include "tilewright/library_executable.h"

// What attention_backward_gpu_test.cpp calls on a GPU, on the simulated one.
namespace tilewright {
namespace {

class SimulatedGradients : public testing::TestWithParam<test::GradientCall> {};

TEST_P(SimulatedGradients, AgreeWithFloat64) {
  test::PaddedCall call(GetParam());
  const LibraryExecutable executable =
      compile(find_kernel(GetParam().kernel), call.workload().options, "sim:sm_90a");
  std::vector<TensorRef> refs;
  std::vector<const test::Padded*> tensors;
  for (std::size_t i = 0; i < call.size(); ++i) {
    const TensorArgument argument = call.tensor(i).argument("");
    refs.push_back({argument.data, argument.dtype, argument.shape, argument.strides});
    tensors.push_back(&call.tensor(i));
  }
  executable.run(refs);
  call.check(tensors, library::Executed::by_simulator);
}

INSTANTIATE_TEST_SUITE_P(Calls, SimulatedGradients, testing::ValuesIn(test::gradient_calls()),
                         [](const auto& info) { return info.param.name; });

// By dim.
class SimulatedGradientsDefault : public testing::TestWithParam<const char*> {
 protected:
  // Simulates the default under schedules that differ; `body` takes the buffers behind each, of
  // which the first are those of seed 0.
  static void simulate(const std::vector<std::string>& settings, std::uint64_t seeds,
                       bool control_only,
                       const std::function<void(const library::ProgramTensors& first,
                                                const library::ProgramTensors& after)>& body,
                       std::int64_t multiprocessors = simulator::MachineOptions().multiprocessors) {
    std::vector<std::string> all = {"dtype=f16", std::string("dim=") + GetParam()};
    all.insert(all.end(), settings.begin(), settings.end());
    library::Workload work = library::make_workload(find_kernel("attention_backward"), all, {}, 3);
    const ScheduleChoice choice = choose_schedule(*work.kernel, work.options, "sm_90a");
    ASSERT_TRUE(choice.schedule != nullptr);
    EXPECT_EQ(choice.schedule->name, "ordered");
    const Program program = build_program(*work.kernel, choice);
    const ir::Program recorded = program.finish();
    library::ProgramWorkload bound{work, library::bind_workload(recorded, work, multiprocessors)};
    const auto forms = library::machine_forms(bound.program, "sm_90a");
    library::Reference reference;
    if (!control_only) reference = library::reference_of(work);
    const ir::Program without_owned = bound.program;
    for (const std::vector<ir::Kernel>& machine : forms) {
      bound.program = without_owned;
      ir::add_owned(bound.program, machine);
      library::ProgramTensors first;
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        SCOPED_TRACE(seed);
        simulator::MachineOptions options;
        options.seed = seed;
        options.multiprocessors = multiprocessors;
        options.resident = 2 + static_cast<std::int64_t>(seed % 3);
        options.control_only = control_only;
        library::ProgramTensors after;
        const simulator::MachineReport report =
            library::simulate_program(bound.program, machine, bound.before(), &after, options, 1);
        ASSERT_TRUE(report.ok()) << report.faults.front().message;
        if (seed == 0) first = after;
        body(first, after);
        if (control_only) continue;
        library::ProgramWorkload got = bound;
        got.take(after);
        const library::Comparison comparison = library::compare(got.workload, reference);
        EXPECT_TRUE(comparison.ok()) << comparison.text();
      }
    }
  }
};

// Of so many elements some would differ in f16 if f32 sums did.
TEST_P(SimulatedGradientsDefault, EveryScheduleGivesTheSameBits) {
  simulate({"batch=2", "queries=200", "keys=700", "heads=4", "kv_heads=2"}, 3, false,
           [](const library::ProgramTensors& first, const library::ProgramTensors& after) {
             for (std::size_t i = 0; i < first[0].size(); ++i) {
               EXPECT_TRUE(after[0][i] == first[0][i]) << "buffer " << i;
             }
           });
}

// A warp that hands turns on may be late by any time. Many steps of few blocks of keys.
TEST_P(SimulatedGradientsDefault, EveryTurnEnds) {
  simulate({"batch=1", "queries=400", "keys=200", "heads=2", "kv_heads=1"}, 20, true,
           [](const library::ProgramTensors&, const library::ProgramTensors&) {});
}

// A CTA is handed more blocks of rows at the end than the ring has stages, through which their
// numbers come to the warpgroups.
TEST_P(SimulatedGradientsDefault, RowsThatFollowEachOtherAreConverted) {
  simulate(
      {"batch=1", "queries=1400", "keys=64", "heads=2", "kv_heads=1"}, 2, true,
      [](const library::ProgramTensors&, const library::ProgramTensors&) {}, 2);
}

// Each CTA, or pair of them, goes through several blocks of keys, so that every ring wraps between
// these, and what one leaves is what the next one finds.
TEST_P(SimulatedGradientsDefault, BlocksOfKeysFollowEachOther) {
  simulate(
      {"batch=1", "queries=130", "keys=400", "heads=2", "kv_heads=2", "causal=true"}, 2, false,
      [](const library::ProgramTensors&, const library::ProgramTensors&) {}, 2);
}

INSTANTIATE_TEST_SUITE_P(Dims, SimulatedGradientsDefault, testing::Values("128", "256"));

}  // namespace
}  // namespace tilewright
