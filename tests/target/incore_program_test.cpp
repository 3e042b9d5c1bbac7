#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "check/core_proof.h"
#include "common/error_text.h"
#include "compiler/simulation.h"
#include "examples/example.h"
#include "examples/incore_paged_kernels.h"
#include "library/program_simulation.h"
#include "simulator/machine/trace_recorder.h"
#include "tilewright/incore.h"
#include "tilewright/library.h"
#include "tilewright/library_executable.h"
#include "tilewright/program.h"

#define main run_example
namespace paged_example {
#include "examples/incore_paged_attention.cpp"
}  // namespace paged_example
#undef main

// Programs of kernels for cores with explicit memories.
namespace tilewright {
namespace {

using examples::paged::kPage;
using paged_example::Data;
using testing::AllOf;
using testing::HasSubstr;

// Weights and results are rounded to bf16.
constexpr double kAllowed = 5e-3;

std::vector<int> lengths() { return {0, 1, kPage + 1, 3 * kPage - 2, 2 * kPage}; }

void put(const Program& program, ProgramMemory& memory, const Data& data) {
  const std::vector<const HostTensor*> tensors{&data.Q, &data.K, &data.V, &data.table,
                                               &data.lengths};
  for (std::size_t i = 0; i < tensors.size(); ++i) memory.tensors[0][i] = *tensors[i];
  ASSERT_EQ(program.finish().buffers[4].name, "lengths");
}

DimValues sizes_of(const Data& data) {
  return {{"batch", data.Q.shape()[0]},
          {"heads", data.Q.shape()[1]},
          {"pages", data.K.shape()[0]},
          {"most", data.table.shape()[1]}};
}

TEST(IncoreProgram, PagedAttentionIsRightOnEveryTarget) {
  Data data = paged_example::make_data(19, lengths());
  const Program tiles = paged_example::paged_attention(examples::paged::tile_kernels());
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a", "sim:incore", "sim:incore_unified",
                             "sim:incore_partitions"}) {
    EXPECT_LT(paged_example::error_of(tiles, target, data), kAllowed) << target;
  }
  EXPECT_LT(paged_example::error_of_fused("sim:incore", data), kAllowed);
}

// The explicit kernels, under several schedules; modelled time is the same in each.
TEST(IncoreProgram, InCoreKernelsAreRightUnderEverySchedule) {
  const Data data = paged_example::make_data(19, lengths());
  const Program program = paged_example::paged_attention(examples::paged::core_kernels());
  std::int64_t cycles = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    ProgramMemory memory(program, sizes_of(data));
    put(program, memory, data);
    SimulationOptions options;
    options.seed = seed;
    options.runs = 1;
    const SimulationReport report = simulate(program, memory, options);
    ASSERT_TRUE(report.ok()) << report.faults.front().text;
    EXPECT_LT(examples::relative_error(memory.tensors[0][5], data.wanted), kAllowed);
    EXPECT_GT(report.cycles, 0);
    if (seed == 0) cycles = report.cycles;
    EXPECT_EQ(report.cycles, cycles);
  }
}

// The trace has the launches of the stream, and each instruction of the units, one after the other.
TEST(IncoreProgram, IsTraced) {
  const Data data = paged_example::make_data(3, {kPage + 1});
  const Program program = paged_example::paged_attention(examples::paged::core_kernels());
  ProgramMemory memory(program, sizes_of(data));
  put(program, memory, data);
  ir::Program bound = ir::bind_program(program.finish(), memory.sizes(), 2,
                                       ir::contents_of(memory.tensors.front()));
  const std::vector<ir::Kernel> kernels = library::machine_forms(bound, "incore").front();
  ir::add_owned(bound, kernels);
  const compiler::TracedRun run = compiler::trace_run(
      [&](const simulator::MachineOptions& options) {
        return library::simulate_program(bound, kernels, memory.tensors, nullptr, options, 1);
      },
      {});
  ASSERT_TRUE(run.report.ok());
  std::map<std::string, std::size_t> slices;
  for (const auto& stream : run.trace.streams) slices[stream.name] = stream.slices.size();
  // A pair: three kernels, three copies, and the last one.
  EXPECT_EQ(slices["stream main"], 7u);
  EXPECT_GT(slices["M of core 0"], 3u);
  EXPECT_GT(slices["V 1 of core 0"], 5u);
  for (const auto& stream : run.trace.streams) {
    for (const auto& slice : stream.slices) EXPECT_LE(slice.end, run.report.cycles + 1000);
  }
}

// A length or a page beside the one that is meant, a turn more or less, a condition that holds
// elsewhere; and a sample of what the kernels may lack.
TEST(IncoreProgram, SeededFaultsAreFound) {
  const Program program = paged_example::paged_attention(examples::paged::core_kernels());
  const ir::Program& recorded = program.finish();
  std::vector<ir::Kernel> kernels;
  std::vector<checks::CoreCase> cases;
  checks::ProgramChanges changes;
  // Pages of other sequences, of both tiers, full and not, and a sequence without keys.
  for (const std::vector<int>& each :
       {std::vector<int>{kPage, 0, 3 * kPage - 2}, {2 * kPage + 1, kPage + 1, 4 * kPage, 3}}) {
    const auto data = std::make_shared<const Data>(paged_example::make_data(19, each));
    const auto memory = std::make_shared<ProgramMemory>(program, sizes_of(*data));
    put(program, *memory, *data);
    const simulator::Rebind rebind = [&, memory](const auto& change) {
      ir::Program changed = recorded;
      change(changed);
      ir::Program bound =
          ir::bind_program(changed, memory->sizes(), 2, ir::contents_of(memory->tensors.front()));
      if (kernels.empty()) kernels = library::machine_forms(bound, "incore").front();
      ir::add_owned(bound, kernels);
      return bound;
    };
    const ir::Program bound = rebind([](ir::Program&) {});
    if (cases.empty()) changes = simulator::program_mutants(bound, recorded);
    cases.push_back([=](const std::vector<ir::Kernel>& forms, simulator::MachineOptions options,
                        const simulator::ProgramMutant* change) {
      options.multiprocessors = 2;
      library::ProgramTensors after;
      checks::CoreRun run;
      run.report = library::simulate_program(change ? change->apply(bound, rebind) : bound, forms,
                                             memory->tensors, &after, options, 1);
      run.bits = checks::bits_of(after.front());
      const double error = examples::relative_error(after.front()[5], data->wanted);
      if (!(error < kAllowed)) run.mismatch = "O";
      return run;
    });
  }
  checks::ProofOptions how;
  how.schedules = 1;  // each finds the same
  how.threads = 1;
  how.mutants.emplace();
  const auto listed = checks::list_core_mutants(kernels, changes);
  std::set<int> kinds;
  constexpr std::size_t kSample = 40;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const bool is_of_program = listed[i].subject == kernels.size();
    if (is_of_program) kinds.insert(listed[i].kind->number);
    // A whole page is summed in whole pieces, which one less does not change.
    const bool is_depth = listed[i].kind->number == 53;
    if (is_of_program || is_depth || i % kSample == 0) how.mutants->insert(i);
  }
  EXPECT_EQ(kinds, (std::set<int>{31, 58, 59, 60}));
  using Verdict = checks::MutantResult::Verdict;
  for (const checks::MutantResult& result : checks::prove_cores(kernels, cases, {}, how, changes)) {
    SCOPED_TRACE(std::to_string(result.kind->number) + " " + result.mutant.operation + " " +
                 result.mutant.change);
    EXPECT_NE(result.verdict, Verdict::undecided) << result.reason;
    EXPECT_NE(result.verdict, Verdict::unreached);
    if (result.subject < kernels.size()) continue;
    EXPECT_EQ(result.verdict, Verdict::caught);
  }
}

// Two streams that nothing orders touch one part of a tensor, or parts of their own.
TEST(IncoreProgram, UnorderedLaunchesRace) {
  for (const bool apart : {false, true}) {
    Program program("two_streams");
    const Buffer O = program.in("O", f32, {32, examples::paged::kDim}),
                 L = program.in("L", f32, {32, 1});
    const Buffer Y = program.out("Y", bf16, {1, 32, examples::paged::kDim});
    const Kernel finish = examples::paged::core_finish();
    for (int i = 0; i < 2; ++i) {
      const Stream stream = program.rank(0).stream(i == 0 ? "a" : "b");
      const Part y = Part(Y).box({0, apart ? 16 * i : 8 * i, 0}, {1, 16, examples::paged::kDim});
      stream.launch(finish, {O.rows(16 * i, 16), L.rows(16 * i, 16), y});
    }
    const SimulationReport report = simulate(program);
    EXPECT_EQ(report.ok(), apart);
    if (apart) continue;
    EXPECT_THAT(report.faults.front().text, HasSubstr("race: global Y"));
  }
}

// A page that there is not, at the line that takes it.
TEST(IncoreProgram, ATableIsHeldAgainstTheCache) {
  Data data = paged_example::make_data(3, {kPage + 1});
  data.table.set({0, 1}, 2);
  const Program program = paged_example::paged_attention(examples::paged::core_kernels());
  EXPECT_THAT(test::usage_error_of([&] { paged_example::error_of(program, "sim:incore", data); }),
              AllOf(HasSubstr("incore_paged_attention.cpp"),
                    HasSubstr("are not inside of K {2, 32, 48}"), HasSubstr("page_2 = 2")));
}

}  // namespace
}  // namespace tilewright
