#include "driver/fault_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/library_build.h"
#include "driver/shrunken_sizes.h"
#include "support/diagnostic.h"

// Whole kernels: whatever is wrong with them is found.
namespace tilewright::driver {
namespace {

using Verdict = MutantResult::Verdict;

struct Subject {
  ir::Kernel machine;
  std::vector<Workload> workloads;
};

ir::Kernel machine_of(const LibraryKernel& entry, const std::vector<std::string>& settings) {
  passes::Rewrites rewrites;
  const Target target = parse_target("sm_90a");
  return lower(trace_entry(entry, resolve_options(entry, settings), target).finish(), rewrites);
}

Subject subject_of(const std::string& name, const std::vector<std::string>& settings) {
  const LibraryKernel& entry = find_kernel(name);
  Subject subject{machine_of(entry, settings), {}};
  for (const std::vector<std::string>& sizes :
       shrunken_sizes(entry, settings, resolve_options(entry, settings), subject.machine)) {
    std::vector<std::string> all = settings;
    all.insert(all.end(), sizes.begin(), sizes.end());
    subject.workloads.push_back(make_workload(entry, all, {}, 0));
  }
  return subject;
}

std::string text_of(const MutantResult& result) {
  return std::to_string(result.kind->number) + " " + format_location(result.mutant.where) + " " +
         result.mutant.operation + " " + result.mutant.change + ": " + result.fault.message;
}

// None is missed, nearly all name what is wrong and both places; at most so many stand in code that
// no workload executes.
void expect_all_found(const std::vector<MutantResult>& results, int most_unreached) {
  int caught = 0, right_class = 0, both_lines = 0, unreached = 0;
  for (const MutantResult& result : results) {
    EXPECT_NE(result.verdict, Verdict::survived) << text_of(result);
    unreached += result.verdict == Verdict::unreached;
    EXPECT_EQ(result.verdict == Verdict::equivalent, !result.mutant.equivalent.empty())
        << text_of(result);
    if (result.verdict != Verdict::caught) continue;
    ++caught;
    both_lines += result.both_lines;
    right_class += result.right_class;
  }
  EXPECT_GT(caught, 30);
  EXPECT_LE(unreached, most_unreached);
  EXPECT_GE(right_class, 0.95 * caught);
  EXPECT_GE(both_lines, 0.95 * caught);
}

TEST(FaultProof, FindsAllOfGemm) {
  const Subject subject = subject_of("gemm", {"schedule=128x128", "n=112"});
  const std::vector<MutantResult> results = prove_by_faults(subject.machine, subject.workloads, {});
  expect_all_found(results, 0);
  for (const int kind : {1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 18, 19, 21}) {
    EXPECT_TRUE(std::any_of(results.begin(), results.end(), [&](const MutantResult& result) {
      return result.kind->number == kind && result.verdict != Verdict::equivalent;
    })) << kind;
  }
}

TEST(FaultProof, FindsAllOfAutomaticCausalAttention) {
  const Subject subject =
      subject_of("attention_forward", {"schedule=tile", "causal=true", "heads=2"});
  ProofOptions options;
  options.schedules = 1;
  options.more = 60;
  expect_all_found(prove_by_faults(subject.machine, subject.workloads, options), 0);
}

TEST(FaultProof, IsTheSameWhateverTheThreads) {
  const Subject subject = subject_of("gemm", {"schedule=64x96", "m=40", "n=112", "k=560"});
  ProofOptions options;
  options.schedules = 2;
  options.more = 2;
  std::vector<std::string> texts[2];
  for (const unsigned threads : {1u, 3u}) {
    options.threads = threads;
    for (const MutantResult& result :
         prove_by_faults(subject.machine, subject.workloads, options)) {
      texts[threads / 2].push_back(text_of(result) + std::to_string(result.seed) +
                                   std::to_string(static_cast<int>(result.verdict)));
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(FaultProof, RefusesAKernelWithFaultsOfItsOwn) {
  Subject subject = subject_of("gemm", {"schedule=64x96", "m=40", "n=112", "k=112"});
  const simulator::FaultKind& proxy = simulator::fault_kinds()[6];
  subject.machine = simulator::mutants_of(proxy, subject.machine).front().apply(subject.machine);
  EXPECT_THROW(prove_by_faults(subject.machine, subject.workloads, {}), Error);
}

TEST(FaultProof, ShrinksOpenSizesToAFewBlocks) {
  const LibraryKernel& entry = find_kernel("attention_forward");
  const std::vector<std::string> settings = {"schedule=sm90", "batch=2", "heads=4"};
  const ir::Kernel machine = machine_of(entry, settings);
  // Blocks of 192 query and 128 key rows, rings of four stages.
  const std::vector<std::vector<std::string>> sizes =
      shrunken_sizes(entry, settings, resolve_options(entry, settings), machine);
  ASSERT_EQ(sizes.size(), 5u);
  EXPECT_EQ(sizes[0], (std::vector<std::string>{"queries=552", "keys=624"}));
  EXPECT_EQ(sizes[1], (std::vector<std::string>{"queries=824", "keys=752"}));
  EXPECT_EQ(sizes[2], (std::vector<std::string>{"queries=744", "keys=880"}));
  EXPECT_EQ(sizes[4], (std::vector<std::string>{"queries=552", "keys=0"}));
}

// Of a cluster's CTAs four share the rows of A, or take their turns at k, and each axis is as long
// as those that lie along it need.
TEST(FaultProof, ShrinksEachAxisByTheCtasAlongIt) {
  const LibraryKernel& entry = find_kernel("gemm");
  const auto sizes_of = [&](const std::string& schedule) {
    const std::vector<std::string> settings = {"schedule=" + schedule};
    return shrunken_sizes(entry, settings, resolve_options(entry, settings),
                          machine_of(entry, settings))
        .front();
  };
  // Tiles of 128 x 128 in rings of six stages; of 64 x 128, two of them below each other, in rings
  // of seven, of which each of four CTAs along k fills its own.
  EXPECT_EQ(sizes_of("128x128_a4"), (std::vector<std::string>{"m=232", "n=1000", "k=432"}));
  EXPECT_EQ(sizes_of("64x128_b2_split4"), (std::vector<std::string>{"m=232", "n=232", "k=2032"}));
}

}  // namespace
}  // namespace tilewright::driver
