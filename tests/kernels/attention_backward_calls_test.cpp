#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/error_text.h"
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

// Of all calls, those that are enough here: every option with every schedule and with every dims,
// but not with each pair of them, and of the pairs of dims one in three. `scripts/prove` and GPUs
// have all.
std::vector<test::GradientCall> simulated_calls() {
  std::vector<test::GradientCall> calls;
  std::size_t pairs = 0;
  for (test::GradientCall& call : test::gradient_calls()) {
    const bool is_pair_of_dims = call.name.find("And") != std::string::npos;
    const bool is_enough =
        is_pair_of_dims ? pairs++ % 3 == 0 : (call.option + call.column) % 2 == 0;
    if (is_enough) calls.push_back(std::move(call));
  }
  return calls;
}

INSTANTIATE_TEST_SUITE_P(Calls, SimulatedGradients, testing::ValuesIn(simulated_calls()),
                         [](const auto& info) { return info.param.name; });

// The kernels for Hopper as callers use them: what the forward pass has written, the backward pass
// reads, also LSE of rows that see nothing.
TEST(SimulatedGradients, ReadWhatTheForwardPassHasWritten) {
  const std::vector<std::string> dims = {"heads=2", "kv_heads=1", "causal=true"};
  const std::vector<std::string> more_queries = {"batch=1", "queries=200", "keys=70"};
  const std::vector<std::string> packed = {"lengths_q=129,1,0,77", "lengths_k=70,1,30,0"};
  for (const auto& [forward, backward, sizes] :
       {std::tuple("attention_forward", "attention_backward", more_queries),
        {"attention_varlen_forward", "attention_varlen_backward", packed}}) {
    for (const char* sinks : {"sinks=false", "sinks=true"}) {
      SCOPED_TRACE(std::string(backward) + " " + sinks);
      std::vector<std::string> settings = dims;
      settings.insert(settings.end(), sizes.begin(), sizes.end());
      settings.emplace_back(sinks);
      library::Workload work = library::make_workload(find_kernel(backward), settings, {}, 5);
      const auto tensor = [&](const std::string& name) -> HostTensor& {
        for (std::size_t i = 0; i < work.tensors.size(); ++i) {
          if (work.name_of(i) == name) return work.tensors[i];
        }
        throw std::out_of_range(name);
      };
      for (const char* name : {"O", "LSE"}) {
        tensor(name) = HostTensor::poisoned(tensor(name).dtype(), tensor(name).shape());
      }
      const LibraryKernel& entry = find_kernel(forward);
      const OptionValues options = resolve_options(entry, settings);
      std::vector<TensorRef> of_forward, of_backward;
      for (const LibraryTensor* each : tensors_of(entry, options)) {
        of_forward.push_back(ref(tensor(each->name)));
      }
      for (HostTensor& each : work.tensors) of_backward.push_back(ref(each));
      compile(entry, options, "sim:sm_90a").run(of_forward);
      if (sizes == more_queries && sinks == std::string("sinks=false")) {
        EXPECT_EQ(tensor("LSE").at({0, 0, 129}), -std::numeric_limits<double>::infinity());
        EXPECT_TRUE(std::isfinite(tensor("LSE").at({0, 0, 130})));
      }
      // Its LSE is float64's own.
      const library::Reference reference = library::reference_of(work);
      compile(find_kernel(backward), work.options, "sim:sm_90a").run(of_backward);
      const library::Comparison comparison = library::compare(work, reference);
      EXPECT_TRUE(comparison.ok()) << comparison.text();
    }
  }
}

// What TMA does not take of a caller's tensors is refused, and the tensor is named. (PyTorch's
// operators copy it.)
TEST(SimulatedGradients, StridesThatTheyDoNotTakeAreNamed) {
  library::Workload work = library::make_workload(
      find_kernel("attention_backward"), {"batch=1", "queries=70", "heads=2", "dim=64"}, {}, 3);
  const LibraryExecutable executable =
      compile(find_kernel("attention_backward"), work.options, "sim:sm_90a");
  // Room for what a case moves or widens.
  std::vector<HostTensor> rooms;
  for (const HostTensor& each : work.tensors) {
    rooms.push_back(HostTensor::zeros(each.dtype(), {each.elements() * 2}));
  }
  const auto refused = [&](const std::string& name, const std::vector<std::int64_t>& strides,
                           std::size_t moved) {
    std::vector<TensorRef> refs;
    for (std::size_t i = 0; i < work.tensors.size(); ++i) {
      refs.push_back(ref(work.tensors[i]));
      if (work.name_of(i) != name) continue;
      refs[i].data = static_cast<std::byte*>(ref(rooms[i]).data) + moved * sizeof(std::uint16_t);
      refs[i].strides = strides;
    }
    return test::usage_error_of([&] { executable.run(refs); });
  };
  for (const std::string name : {"Q", "dO", "dQ", "dK", "dV"}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(
        refused(name, {70 * 2 * 65, 2 * 65, 65, 1}, 0),
        testing::AllOf(testing::HasSubstr("tensor " + name + ": the stride of axis 2 is 65"),
                       testing::HasSubstr("fix: pad axis 3 to 72 elements")));
    EXPECT_THAT(refused(name, {70 * 2 * 64, 2 * 64, 64, 1}, 1),
                testing::AllOf(testing::HasSubstr("tensor map of " + name + ": its base address"),
                               testing::HasSubstr("pass a copy of it that lies so")));
    EXPECT_THAT(refused(name, {70 * 2 * 64, 2 * 64, 1, 2}, 0),
                testing::HasSubstr("axis 3 of " + name + " has stride 2, expected 1"));
    EXPECT_THAT(
        refused(name, {0, 0, 0, 1}, 0),
        testing::AllOf(testing::HasSubstr("of " + name + " has stride 0, expected a positive one"),
                       testing::HasSubstr(name == "Q" || name == "dO"
                                              ? "copy " + name + " to a contiguous tensor"
                                              : "pass a contiguous tensor as " + name)));
  }
}

// By dim.
class SimulatedGradientsDefault : public testing::TestWithParam<const char*> {
 protected:
  // Simulates the default, or the schedule, under orders that differ; `body` takes the buffers
  // behind each, of which the first are those of seed 0.
  static void simulate(const std::vector<std::string>& settings, std::uint64_t seeds,
                       bool control_only,
                       const std::function<void(const library::ProgramTensors& first,
                                                const library::ProgramTensors& after)>& body,
                       std::int64_t multiprocessors = simulator::MachineOptions().multiprocessors,
                       const std::string& schedule = "ordered") {
    std::vector<std::string> all = {"dtype=f16", std::string("dim=") + GetParam()};
    all.insert(all.end(), settings.begin(), settings.end());
    if (schedule != "ordered") all.push_back("schedule=" + schedule);
    library::Workload work = library::make_workload(find_kernel("attention_backward"), all, {}, 3);
    const ScheduleChoice choice = choose_schedule(*work.kernel, work.options, "sm_90a");
    ASSERT_TRUE(choice.schedule != nullptr);
    EXPECT_EQ(choice.schedule->name, schedule);
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
        // Beside products a load from shared memory may take longer than the copy behind it.
        options.strict = true;
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
  simulate({"batch=1", "queries=200", "keys=700", "heads=4", "kv_heads=2"}, 3, false,
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

// Three blocks of keys of two multiprocessors leave some of their steps to two parts more.
class SimulatedParts : public SimulatedGradientsDefault {};
TEST_P(SimulatedParts, FillTheLastWave) {
  simulate(
      {"batch=1", "queries=500", "keys=300", "heads=9", "kv_heads=1"}, 2, false,
      [](const library::ProgramTensors&, const library::ProgramTensors&) {}, 2, "atomic");
}
INSTANTIATE_TEST_SUITE_P(Dims, SimulatedParts, testing::Values("128"));

// The third block of keys is the last wave of two multiprocessors.
TEST_P(SimulatedParts, OfTheLastWaveOfOwnHeads) {
  simulate(
      {"batch=1", "queries=1400", "keys=100", "heads=3", "kv_heads=3"}, 2, false,
      [](const library::ProgramTensors&, const library::ProgramTensors&) {}, 2, "atomic");
}

// A window is short beside the keys: what a span of a group's blocks of keys has summed is
// converted by the next span, while other blocks of the same heads still add. The first span has
// fewer.
class SimulatedWindows : public SimulatedGradientsDefault {};
TEST_P(SimulatedWindows, RowsAreConvertedSpanBySpan) {
  simulate(
      {"batch=1", "queries=700", "keys=650", "heads=2", "kv_heads=1", "causal=true", "window=60"},
      2, false, [](const library::ProgramTensors&, const library::ProgramTensors&) {}, 2);
}
INSTANTIATE_TEST_SUITE_P(Dims, SimulatedWindows, testing::Values("64", "128", "256"));

}  // namespace
}  // namespace tilewright
