#include "check/fault_proof.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "check/last_cta.h"
#include "check/library_machine.h"
#include "check/shrunken_sizes.h"
#include "common/temporary_folder.h"
#include "compiler/compile_to_machine.h"
#include "library/kernel_source.h"
#include "library/library_build.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/kernel.h"

// Whole kernels: whatever is wrong with them is found.
namespace tilewright::checks {
namespace {

using test::machine_of;
using Verdict = MutantResult::Verdict;

struct Subject {
  ir::Kernel machine;
  std::vector<library::Workload> workloads;
};

Subject subject_of(const std::string& name, const std::vector<std::string>& settings) {
  const LibraryKernel& entry = find_kernel(name);
  Subject subject{machine_of(entry, settings), {}};
  for (const std::vector<std::string>& sizes : shrunken_sizes(
           entry, settings, resolve_options(entry, settings), subject.machine, Sizes::usual)) {
    std::vector<std::string> all = settings;
    all.insert(all.end(), sizes.begin(), sizes.end());
    subject.workloads.push_back(library::make_workload(entry, all, {}, 0));
  }
  return subject;
}

std::string text_of(const MutantResult& result) {
  return std::to_string(result.kind->number) + " " + format_location(result.mutant.where) + " " +
         result.mutant.operation + " " + result.mutant.change + ": " + result.fault.message;
}

// None is missed, nearly all name what is wrong and both places; at most so many stand in code that
// no workload executes. Undecided are but changes to values of which small sizes show nothing.
// Wrong results have no lines, and are not counted among those that need some.
void expect_all_found(const std::vector<MutantResult>& results, int most_unreached) {
  int caught = 0, right_class = 0, both_lines = 0, unreached = 0, undecided = 0;
  for (const MutantResult& result : results) {
    unreached += result.verdict == Verdict::unreached;
    if (result.verdict == Verdict::undecided) {
      const auto& classes = result.kind->classes;
      ++undecided;
      EXPECT_TRUE(std::find(classes.begin(), classes.end(), "mismatch") != classes.end())
          << text_of(result) << result.reason;
    }
    const bool judged =
        result.verdict == Verdict::equivalent || result.verdict == Verdict::undecided;
    EXPECT_EQ(judged, !result.reason.empty()) << text_of(result);
    if (!result.mutant.equivalent.empty()) {
      EXPECT_EQ(result.verdict, Verdict::equivalent) << text_of(result);
    }
    if (result.verdict != Verdict::caught || result.fault.kind == "mismatch") continue;
    ++caught;
    both_lines += result.both_lines;
    right_class += result.right_class;
  }
  EXPECT_GT(caught, 30);
  EXPECT_LE(unreached, most_unreached);
  EXPECT_LE(undecided, 0.12 * static_cast<double>(results.size()));
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
  options.parts = 3;
  expect_all_found(prove_by_faults(subject.machine, subject.workloads, options), 0);
}

// A kernel of a file in one size.
Subject subject_of(const Kernel& kernel, const std::vector<std::string>& sizes,
                   const library::KernelSource& source) {
  Subject subject{compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel, {}};
  subject.workloads.push_back(library::make_workload(source.entry(), sizes, {}, 0));
  return subject;
}

// The mutants of one kind.
std::vector<MutantResult> of_kind(int kind, const Kernel& kernel,
                                  const std::vector<std::string>& sizes, ProofOptions options,
                                  const std::vector<std::string>& candidate = {},
                                  const std::vector<std::string>& further = {}) {
  const test::TemporaryFolder folder;
  setenv("TILEWRIGHT_DUMP", folder.path().c_str(), 1);
  compile(kernel, "sim:sm_90a");
  unsetenv("TILEWRIGHT_DUMP");
  const library::KernelSource source =
      library::KernelSource::of_file(folder / (kernel.name() + ".tw"));
  const Subject subject = subject_of(kernel, sizes, source);
  const auto made = [&](const std::vector<std::string>& settings) {
    return [&] { return library::make_workload(source.entry(), settings, {}, 0); };
  };
  if (!candidate.empty()) options.candidates = {made(candidate)};
  if (!further.empty()) options.further = {made(further)};
  std::vector<MutantResult> results;
  for (MutantResult& result : prove_by_faults(subject.machine, subject.workloads, options)) {
    if (result.kind->number == kind) results.push_back(std::move(result));
  }
  return results;
}

std::vector<MutantResult> of_masks(const Kernel& kernel, const std::vector<std::string>& sizes) {
  ProofOptions options;
  options.schedules = options.launches = 1;
  options.more = 0;
  return of_kind(25, kernel, sizes, options);
}

// Zeros behind the end of a row that take part in its maximum shift the exponentials, which changes
// nothing until all of them underflow.
TEST(FaultProof, FindsAMaskOfAMaximumByInputsFarFromZero) {
  Kernel kernel("softmax");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns}), Y = kernel.out("Y", f32, {rows, columns});
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(x, 16);
  Var maximum{full({own, 1}, -1e30)}, sum{zeros({own, 1})};
  for (Block cols : blocks(columns, 32)) {
    maximum = max(maximum, reduce_max(load(X(own, cols)), 1));
  }
  for (Block cols : blocks(columns, 32)) {
    sum = sum + reduce_sum(exp(load(X(own, cols)) - maximum), 1);
  }
  for (Block cols : blocks(columns, 32)) {
    store(Y(own, cols), exp(load(X(own, cols)) - maximum) / sum);
  }
  const std::vector<MutantResult> masks = of_masks(kernel, {"rows=24", "columns=72"});
  ASSERT_EQ(masks.size(), 2u);
  for (const MutantResult& mask : masks) {
    EXPECT_EQ(mask.verdict, Verdict::caught) << text_of(mask);
    EXPECT_TRUE(mask.right_class);
  }
}

// Of a sum the mask puts zeros where TMA has put zeros: no rule says so, and no input shows it.
TEST(FaultProof, DoesNotDecideOnAMaskThatPutsWhatIsThere) {
  Kernel kernel("sums");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {64, k});
  const Tensor Y = kernel.out("Y", f32, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 64));
  const Block rows = m.block(i, 64);
  Var acc{zeros({rows, 64})}, sum{zeros({rows, 1})};
  for (Block depth : blocks(k, 64)) {
    const Tile x = load(X(rows, depth));
    sum = sum + reduce_sum(x.cast(f32), 1);
    acc = acc + dot(x, load(W(all, depth)).T());
  }
  store(Y(rows, all), acc + sum);
  const std::vector<MutantResult> masks = of_masks(kernel, {"m=40", "k=88"});
  ASSERT_EQ(masks.size(), 1u);
  EXPECT_EQ(masks[0].verdict, Verdict::undecided) << text_of(masks[0]);
  EXPECT_THAT(masks[0].reason, testing::HasSubstr("no result differs by a bit"));
}

TEST(FaultProof, LooksAtManySchedulesWhereOneIsNotAll) {
  const Kernel kernel = test::last_cta();
  ProofOptions options;
  options.schedules = options.launches = 1;
  int first = 0, later = 0, undecided = 0;
  for (options.seed = 0; options.seed < 8; ++options.seed) {
    for (const std::int64_t more : {0, 64}) {
      options.more = more;
      const std::vector<MutantResult> results = of_kind(35, kernel, {}, options);
      ASSERT_EQ(results.size(), 1u);
      const bool caught = results[0].verdict == Verdict::caught;
      EXPECT_TRUE(caught || more == 0) << results[0].reason;
      if (caught) {
        (results[0].seed == options.seed ? first : later) += 1;
        continue;
      }
      // Clean in what was run, but that is not all.
      EXPECT_EQ(results[0].verdict, Verdict::undecided);
      EXPECT_THAT(results[0].reason, testing::HasSubstr("what a word of global memory holds"));
      ++undecided;
    }
  }
  EXPECT_GT(first, 0);
  EXPECT_GT(later, 0);
  EXPECT_GT(undecided, 0);
}

// A single tile of two steps wraps no ring, so that no run tells how many arrivals are enough.
// Clusters share out their places in some order. A run for each number that one takes over stands
// for all of these.
TEST(FaultProof, DecidesWhereClustersTakeOverPlaces) {
  const LibraryKernel& entry = find_kernel("gemm");
  const std::vector<std::string> settings = {"schedule=sm100_handed_out", "m=400", "n=400", "k=72"};
  const Kernel kernel = library::trace_entry(entry, resolve_options(entry, settings),
                                             compiler::parse_target("sm_100a"));
  Subject subject{compiler::compile_to_machine(kernel.finish(), "sm_100a").kernel, {}};
  subject.workloads.push_back(library::make_workload(entry, settings, {}, 0));
  constexpr int kOtherParity = 2, kKeptPhase = 6, kWarpSync = 34;
  ProofOptions options;
  options.schedules = options.launches = options.drawn = 1;
  options.more = 0;
  options.mutants.emplace();
  const std::vector<MutantResult> all = list_mutants(subject.machine);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int kind = all[i].kind->number;
    const bool keeps = kind == kKeptPhase && all[i].mutant.change == "keeps its phase";
    if (kind == kOtherParity || kind == kWarpSync || keeps) options.mutants->insert(i);
  }
  int equivalent = 0, by_all = 0, by_one = 0;
  for (const MutantResult& result : prove_by_faults(subject.machine, subject.workloads, options)) {
    EXPECT_NE(result.verdict, Verdict::undecided) << text_of(result) << result.reason;
    equivalent += result.verdict == Verdict::equivalent;
    by_all += result.fault.message.find("takes over all places") != std::string::npos;
    by_one += result.fault.message.find("takes over 1 place") != std::string::npos;
  }
  EXPECT_GT(equivalent, 0);
  EXPECT_GT(by_all, 0);
  EXPECT_GT(by_one, 0);
}

TEST(FaultProof, TakesNoSurvivorForAnEquivalent) {
  const Subject subject = subject_of("gemm", {"schedule=64x96", "m=40", "n=112", "k=112"});
  ProofOptions options;
  options.schedules = options.launches = 1;
  options.more = 2;
  int undecided = 0;
  for (const MutantResult& result :
       prove_by_faults(subject.machine, {subject.workloads.front()}, options)) {
    if (result.kind->number != 13) continue;
    EXPECT_NE(result.verdict, Verdict::equivalent) << text_of(result);
    undecided += result.verdict == Verdict::undecided;
  }
  EXPECT_GT(undecided, 0);
}

// Two warps arrive three times, and wait behind the first. Of a loop's instruction some turn is
// waited for. Where none is, a longer launch may tell what this one does not.
TEST(FaultProof, TakesNoArrivalThatNoSizeWaitsForAsItIs) {
  for (const bool in_one_loop : {true, false}) {
    Kernel kernel("meets");
    const Tensor Y = kernel.out("Y", f32, {32});
    kernel.ctas(1);
    ClusterBarrier met(kernel, "met");
    NamedBarrier both(kernel, 64);
    kernel.roles({role("math", warps(2), registers(64), [&] {
      for (Index i : range(in_one_loop ? 3 : 1)) {
        met.arrive();
        when(i == 0, [&] {
          met.wait();
          both.sync();
        });
      }
      for (int i = 0; !in_one_loop && i < 2; ++i) met.arrive();
      warp_sync();
      when(warp_index() == 0, [&] { store(Y(all), zeros({32})); });
    })});
    ProofOptions options;
    options.schedules = options.launches = 1;
    std::vector<MutantResult> last = of_kind(34, kernel, {}, options);
    ASSERT_FALSE(last.empty());
    EXPECT_EQ(last.back().verdict, in_one_loop ? Verdict::equivalent : Verdict::undecided);
    EXPECT_EQ(last.back().reason.find("for which no size waits") == std::string::npos, in_one_loop)
        << last.back().reason;
  }
}

// What a launch before has stored there is not its result: one part of three is left out.
TEST(FaultProof, MissesWhatALaunchDoesNotStore) {
  Kernel kernel("parts");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 32}), C = kernel.out("C", bf16, {n, 32});
  const Tensor next = kernel.workspace("next", 1);
  kernel.ctas(1);
  kernel.roles({role("math", warps(1), registers(64), [&] {
    // Always 0, but that is not known.
    const Index none = atomic_add(next(0), 0);
    for (Index part : range((none + 40 + 15) / 16)) {
      const Block rows = n.block(part, 16);
      store(C(rows, all), load(X(rows, all)));
    }
  })});
  ProofOptions options;
  options.schedules = options.launches = 1;
  options.more = 0;
  const std::vector<MutantResult> results = of_kind(36, kernel, {"n=40"}, options);
  int dropped = 0;
  for (const MutantResult& result : results) {
    if (result.mutant.change != "drops the remainder") continue;
    ++dropped;
    EXPECT_EQ(result.verdict, Verdict::caught) << text_of(result);
    EXPECT_EQ(result.fault.kind, "mismatch");
    // Seen without values.
    // Of the first row that is left out.
    EXPECT_NE(result.fault.message.find("nothing writes all of the 16 bytes +0x800, "),
              std::string::npos)
        << result.fault.message;
  }
  EXPECT_EQ(dropped, 1);
}

// A step of (cta_index() + 2) / 2 is one of 0 where the divisor is 3: the loop has no end.
// Where there is no time for all arrivals, those that are held lie all over the run.
TEST(FaultProof, HoldsArrivalsAllOverARun) {
  std::vector<std::uint64_t> held;
  const auto run = [&](const simulator::MachineOptions& options) {
    held.push_back(options.seed);
    simulator::MachineReport report;
    report.choices = 100;
    report.operations = 7;
    return report;
  };
  EXPECT_EQ(run_held(35, run).fault.kind, "");
  EXPECT_EQ(held, (std::vector<std::uint64_t>{UINT64_MAX, 0, 20, 40, 60, 80}));
}

TEST(FaultProof, EndsWhereAMutantDoesNot) {
  Kernel kernel("endless");
  const Tensor X = kernel.in("X", bf16, {64, 32}), C = kernel.out("C", bf16, {64, 32});
  kernel.ctas(1);
  kernel.roles({role("math", warps(1), registers(64), [&] {
    Cell<Index> block{cta_index()};
    Cell<Condition> more{block < 4};
    repeat_while(more, [&] {
      const Block rows = Dim(64).block(block, 16);
      store(C(rows, all), load(X(rows, all)));
      block = block + (cta_index() + 2) / 2;
      more = block < 4;
    });
  })});
  int endless = 0;
  for (const MutantResult& result : of_kind(36, kernel, {}, {})) {
    EXPECT_EQ(result.verdict, Verdict::caught) << text_of(result);
    if (result.fault.message.find("without an end") == std::string::npos) continue;
    EXPECT_EQ(result.fault.kind, "deadlock");
    ++endless;
  }
  EXPECT_EQ(endless, 1);
}

// A quotient that is 0 by one more as well, in this size: its run is the kernel's own. That it
// matters at all, a quotient that is one more shows.
TEST(FaultProof, LeavesOutSizesInWhichAQuotientIsTheSame) {
  Kernel kernel("same");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 32}), C = kernel.out("C", bf16, {n, 32});
  kernel.ctas(ceil_div(n, 16));
  kernel.roles({role("math", warps(1), registers(64), [&] {
    // Which bytes are written does not depend on it, so that values alone show it.
    const Block from = n.block(cta_index() / 1000 * 1000 + cta_index() % 1000, 16);
    store(C(n.block(cta_index(), 16), all), load(X(from, all)));
  })});
  const auto verdicts = [&](const char* size, const std::vector<std::string>& candidate = {},
                            const std::vector<std::string>& further = {}) {
    int caught = 0, same = 0;
    for (const MutantResult& result : of_kind(36, kernel, {size}, {}, candidate, further)) {
      if (result.mutant.change != "divides by one more") continue;
      if (result.verdict != Verdict::caught) continue;
      (result.shown_by == "its result is one more" ? same : caught) += 1;
    }
    return std::pair(caught > 0, same > 0);
  };
  EXPECT_EQ(verdicts("n=48"), std::pair(false, true));
  EXPECT_EQ(verdicts("n=16032"), std::pair(true, false));
  EXPECT_EQ(verdicts("n=48", {"n=16032"}), std::pair(true, false));
  EXPECT_EQ(verdicts("n=48", {}, {"n=16032"}), std::pair(true, false));
}

// Another divisor of the first makes no difference in this size, and 1 - 1 divides nothing.
TEST(FaultProof, FindsWhatDividesByZero) {
  Kernel kernel("zero");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 32}), C = kernel.out("C", bf16, {n, 32});
  kernel.ctas(ceil_div(n, 16));
  kernel.roles({role("math", warps(1), registers(64), [&] {
    const Index group = cta_index() / 1000;
    store(C(n.block(cta_index(), 16), all), load(X(n.block(cta_index() / (1 - group), 16), all)));
  })});
  int refused = 0;
  for (const MutantResult& result : of_kind(36, kernel, {"n=48"}, {})) {
    EXPECT_EQ(result.verdict, Verdict::caught) << text_of(result);
    if (result.fault.kind != "refused") continue;
    EXPECT_TRUE(result.right_class);
    EXPECT_EQ(result.shown_by, "its result is one more");
    EXPECT_NE(result.fault.message.find("is divided by zero"), std::string::npos);
    ++refused;
  }
  EXPECT_EQ(refused, 1);
}

// A loop that begins a turn early does nothing in it, and one that begins late leaves out a block.
TEST(FaultProof, ChangesADivisorTheOtherWayWhereOneDoesNoHarm) {
  Kernel kernel("early");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 32}), C = kernel.out("C", bf16, {n, 32});
  const Tensor next = kernel.workspace("next", 1);
  kernel.ctas(1);
  kernel.roles({role("math", warps(1), registers(64), [&] {
    // Always 0, but that is not known. 135 is 8 times 16, 7 times 17 and 9 times 15, and a rest.
    const Index none = atomic_add(next(0), 0);
    for (Index block : range((none + 135) / 16, 10)) {
      when(block >= 8, [&] {
        const Block rows = n.block(block - 8, 16);
        store(C(rows, all), load(X(rows, all)));
      });
    }
  })});
  const std::vector<MutantResult> results = of_kind(36, kernel, {"n=32"}, {});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].verdict, Verdict::caught);
  EXPECT_EQ(results[0].shown_by, "divides by one less");
}

// They are large, and few mutants need them.
TEST(FaultProof, MakesFurtherWorkloadsWhereTheyAreNeeded) {
  const Subject small = subject_of("gemm", {"schedule=64x96", "m=40", "n=112", "k=112"});
  const Subject large = subject_of("gemm", {"schedule=64x96"});
  ProofOptions options;
  options.schedules = options.launches = 1;
  options.more = 0;
  options.threads = 1;
  int made = 0;
  options.further = {[&] {
    ++made;
    return large.workloads.front();
  }};
  // One tile of two steps has no second turn.
  const std::vector<MutantResult> results =
      prove_by_faults(small.machine, small.workloads, options);
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(std::none_of(results.begin(), results.end(), [](const MutantResult& result) {
    return result.verdict == Verdict::unreached;
  }));
  EXPECT_TRUE(std::any_of(results.begin(), results.end(), [](const MutantResult& result) {
    return result.verdict == Verdict::caught && result.workload == 1;
  }));
}

TEST(FaultProof, PartsAreAllOfIt) {
  const Subject subject = subject_of("gemm", {"schedule=64x96", "m=40", "n=112", "k=112"});
  ProofOptions options;
  options.schedules = options.launches = 1;
  options.more = 0;
  const auto texts = [&] {
    std::multiset<std::string> result;
    for (const MutantResult& mutant :
         prove_by_faults(subject.machine, subject.workloads, options)) {
      result.insert(text_of(mutant));
    }
    return result;
  };
  const std::multiset<std::string> all = texts();
  std::multiset<std::string> parts;
  options.parts = 3;
  for (options.part = 0; options.part < options.parts; ++options.part) {
    const std::multiset<std::string> part = texts();
    EXPECT_GT(part.size(), all.size() / 5);
    parts.insert(part.begin(), part.end());
  }
  EXPECT_EQ(parts, all);
}

TEST(FaultProof, JudgesTheMutantsThatItsListNumbers) {
  const Subject subject = subject_of("gemm", {"schedule=64x96", "m=40", "n=112", "k=112"});
  const std::vector<MutantResult> listed = list_mutants(subject.machine);
  ProofOptions options;
  options.schedules = options.launches = 1;
  options.more = 0;
  options.mutants = {3, listed.size() - 2};
  const std::vector<MutantResult> results =
      prove_by_faults(subject.machine, subject.workloads, options);
  ASSERT_EQ(results.size(), 2u);
  const std::size_t numbers[] = {3, listed.size() - 2};
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].mutant.site, listed[numbers[i]].mutant.site);
    EXPECT_EQ(results[i].mutant.change, listed[numbers[i]].mutant.change);
    EXPECT_EQ(results[i].kind, listed[numbers[i]].kind);
  }
}

// And not one of the library that the kernel is written with, or of C++.
TEST(FaultProof, NamesTheKernelsLines) {
  for (const auto& [name, schedule] :
       {std::pair("gemm", "schedule=128x128"), std::pair("attention_forward", "schedule=sm90")}) {
    const ir::Kernel machine = machine_of(find_kernel(name), {schedule});
    for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
      for (const simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
        const std::string file = mutant.where.file;
        EXPECT_TRUE(file.find("kernels/") != std::string::npos) << file << " " << mutant.operation;
      }
    }
  }
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

// A size that only mutants run has shown nothing of the kernel before: a kernel that is as wrong
// there without a change is refused, and its mutants are not called caught or rejected.
TEST(FaultProof, RefusesAKernelThatIsWrongInAFurtherSize) {
  Subject small = subject_of("gemm", {"schedule=64x96", "m=40", "n=112", "k=112"});
  LibraryKernel wrong = find_kernel("gemm");
  const auto right = wrong.reference;
  wrong.reference = [right](const OptionValues& options, const std::vector<HostTensor>& inputs) {
    auto results = right(options, inputs);
    results.front().front() += 1000;
    return results;
  };
  ProofOptions options;
  options.schedules = options.launches = 1;
  options.more = 0;
  options.threads = 1;
  options.further = {[&] {
    return library::make_workload(wrong, {"schedule=64x96", "m=200", "n=304", "k=1000"}, {}, 0);
  }};
  EXPECT_THROW(prove_by_faults(small.machine, small.workloads, options), Error);
}

// Bounds of 64 rows' window cut two blocks at most, one of which stands before the loop: also where
// lengths are read from memory.
TEST(FaultProof, ProvesThatALoopOfAWindowHasOneTurnAtMost) {
  for (const char* schedule : {"schedule=tile", "schedule=sm90"}) {
    const ir::Kernel machine = machine_of(find_kernel("attention_varlen_forward"),
                                          {schedule, "causal=true", "window=450"});
    const simulator::FaultKind& fences = simulator::fault_kinds()[17];
    ASSERT_EQ(fences.number, 18);
    const std::vector<simulator::Mutant> mutants = simulator::mutants_of(fences, machine);
    EXPECT_EQ(std::count_if(mutants.begin(), mutants.end(),
                            [](const simulator::Mutant& mutant) {
                              return mutant.equivalent.find("has one at most") != std::string::npos;
                            }),
              1)
        << schedule;
  }
}

}  // namespace
}  // namespace tilewright::checks
