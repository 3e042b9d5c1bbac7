#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "check/fault_proof.h"
#include "check/library_machine.h"
#include "check/program_proof.h"
#include "common/programs.h"
#include "common/ranks_kernels.h"
#include "library/program_simulation.h"
#include "library/workload.h"
#include "tilewright/hopper.h"
#include "tilewright/library.h"
#include "tilewright/ranks.h"

// Which faults are equivalent where CTAs share words of memory.
namespace tilewright::checks {
namespace {

using testing::HasSubstr;
using Verdict = MutantResult::Verdict;

constexpr MemoryOrder kRelease{Semantics::release, Scope::gpu};
constexpr MemoryOrder kAcquire{Semantics::acquire, Scope::gpu};
constexpr MemoryOrder kBoth{Semantics::acq_rel, Scope::gpu};

// A kernel of X and C alone as a program, and how many multiprocessors execute each case.
std::vector<MutantResult> prove(const Kernel& kernel, int kind, const std::vector<int>& counts,
                                ProofOptions options) {
  Program program(kernel.name());
  const Buffer x = program.buffer("x", bf16, {64, 32}), c = program.buffer("c", bf16, {64, 32});
  program.rank(0).stream("main").launch(kernel, {x, c});
  const ir::Program recorded = program.finish();
  const std::vector<ir::Kernel> machine =
      library::machine_forms(recorded, ir::default_target()).front();
  std::vector<ProgramCase> cases;
  for (const int count : counts) {
    ir::Program bound = ir::bind_program(recorded, DimValues(), count);
    ir::add_owned(bound, machine);
    simulator::MachineOptions how;
    how.multiprocessors = how.resident = count;
    cases.push_back(program_case(bound, how, 0));
    cases.back().one_cluster = count == 1;
  }
  const auto listed = list_mutants(cases.front().program, machine, /*all_of_kernels=*/true);
  options.mutants.emplace();
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i].kind->number == kind) options.mutants->insert(i);
  }
  return prove_program(cases, machine, options, {}, {}, /*all_of_kernels=*/true);
}

// CTA 1 reads what a warp of CTA 0 has left, and has waited for two words. The first one says that
// this warp has come, or another one: without the second wait it depends on who is first. No
// schedule in which it is the right one makes an equivalent of that.
TEST(WordProof, AWaitThatHangsOnWhoIsFirstIsNoEquivalent) {
  Kernel kernel("either");
  const Tensor X = kernel.in("X", bf16, {64, 32}), C = kernel.out("C", bf16, {64, 32});
  const Tensor met = kernel.workspace("met", 1), told = kernel.workspace("told", 1);
  const Tensor left = kernel.scratch("left", 16, 32);
  const Block own = Dim(64).block(0, 16);
  kernel.ctas(2);
  kernel.roles({role("math", warps(1), registers(64),
                     [&] {
                       when(
                           cta_index() == 0,
                           [&] {
                             store(left(all, all), load(X(own, all)).cast(f32));
                             warp_sync();
                             atomic_add(met(0), 1, kRelease);
                             atomic_add(told(0), 1, kRelease);
                           },
                           [&] {
                             wait_flag(met(0), Compare::ge, 1, kAcquire);
                             wait_flag(told(0), Compare::ge, 1, kAcquire);
                             store(C(own, all), load(left(all, all)).cast(bf16));
                             wait_flag(met(0), Compare::ge, 2, kAcquire);
                             warp_sync();
                             atomic_add(met(0), -2);
                             atomic_add(told(0), -1);
                           });
                     }),
                role("other", warps(1), registers(64),
                     [&] { when(cta_index() == 0, [&] { atomic_add(met(0), 1, kRelease); }); })});
  ProofOptions options;
  options.schedules = options.launches = options.few = 1;
  options.more = 0;
  std::map<Verdict, int> verdicts;
  for (options.seed = 0; options.seed < 16; ++options.seed) {
    for (const MutantResult& result : prove(kernel, 23, {2}, options)) {
      if (result.mutant.change != "left out") continue;
      if (result.mutant.operation.find("told") == std::string::npos) continue;
      ++verdicts[result.verdict];
      EXPECT_NE(result.verdict, Verdict::equivalent) << result.reason;
      if (result.verdict != Verdict::undecided) continue;
      EXPECT_THAT(result.reason, HasSubstr("what a word of global memory holds"));
    }
  }
  EXPECT_GT(verdicts[Verdict::caught], 0);
  EXPECT_GT(verdicts[Verdict::undecided], 0);
}

// CTAs take their tiles from a counter, and wait for the others' parts. Without the wait they are
// still executed beside each other: one that ran alone would take all tiles.
TEST(WordProof, WithoutItsOnlyWaitAKernelStillHasAllItsCtas) {
  const std::vector<std::string> settings = {"schedule=sm90_parts", "heads=5", "batch=1",
                                             "queries=168", "keys=3072"};
  const LibraryKernel& entry = find_kernel("attention_forward");
  const ir::Kernel machine = test::machine_of(entry, settings);
  const std::vector<MutantResult> all = list_mutants(machine);
  ProofOptions options;
  options.mutants.emplace();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool waits = all[i].mutant.operation.find("wait_flag") != std::string::npos;
    if (waits && all[i].mutant.change == "left out") options.mutants->insert(i);
  }
  ASSERT_EQ(options.mutants->size(), 1u);
  const auto results =
      prove_by_faults(machine, {library::make_workload(entry, settings, {}, 0)}, options);
  EXPECT_EQ(results.front().verdict, Verdict::caught) << results.front().reason;
  EXPECT_EQ(results.front().fault.kind, "race");
}

// What is said of words that streams write and wait for; nothing is where what a wait finds depends
// on no order.
std::string told_of_streams(
    const std::function<void(const Stream&, const Stream&, const Buffer&)>& use) {
  Program program("streams");
  const Buffer word = program.signals("word", 2);
  use(program.rank(0).stream("first"), program.rank(0).stream("second"), word);
  const ir::Program recorded = program.finish();
  simulator::MachineOptions how;
  how.timing = true;
  const simulator::MachineReport report = library::simulate_program(
      recorded, {}, program_case(recorded, how, 0).before, nullptr, how, 1);
  EXPECT_TRUE(report.ok());
  return report.words;
}

TEST(WordProof, WhatAStreamFindsInAWord) {
  EXPECT_EQ(told_of_streams([](const Stream& first, const Stream& second, const Buffer& word) {
              first.write(word[0], 1);
              first.write(word[0], 2);
              second.wait(word[0], 2);
            }),
            "");
  const auto hangs_on_the_order = HasSubstr("what a wait finds in a word");
  // A value that goes down may be gone before somebody waits for it, wherever he comes this time.
  EXPECT_THAT(told_of_streams([](const Stream& first, const Stream& second, const Buffer& word) {
                first.write(word[0], 2);
                first.write(word[0], 1);
                first.write(word[1], 1);
                second.wait(word[1], 1);
                second.wait(word[0], 1);
              }),
              hangs_on_the_order);
  // Two streams write.
  EXPECT_THAT(told_of_streams([](const Stream& first, const Stream& second, const Buffer& word) {
                first.write(word[0], 2);
                second.write(word[0], 2);
                second.wait(word[0], 2);
              }),
              hangs_on_the_order);
}

// Two ranks' kernels signal each other: no launch knows of all that comes to the words.
TEST(WordProof, WhatAnotherLaunchAddsHangsOnTheOrder) {
  const Program program = test::message_in_each_rank();
  const std::vector<ir::Kernel> machine =
      library::machine_forms(program.finish(), ir::default_target()).front();
  ir::Program owned = program.finish();
  ir::add_owned(owned, machine);
  simulator::MachineOptions how;
  how.timing = true;
  const simulator::MachineReport report = library::simulate_program(
      owned, machine, program_case(owned, how, 0).before, nullptr, how, 2);
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(report.words, HasSubstr("what a word of global memory holds"));
}

// CTAs take numbers from a counter, which need not order anything.
TEST(WordProof, OneClusterTakesAllNumbersInTheirOrder) {
  Kernel kernel("shared_out");
  const Tensor X = kernel.in("X", bf16, {64, 32}), C = kernel.out("C", bf16, {64, 32});
  const Tensor next = kernel.workspace("next", 1), seldom = kernel.workspace("seldom", 1);
  kernel.ctas(multiprocessors());
  kernel.roles({role("math", warps(1), registers(64), [&] {
    // In no run of one cluster.
    when(cta_index() == 1, [&] {
      atomic_add(seldom(0), 1, kBoth);
      atomic_add(seldom(0), -1);
    });
    Cell<Index> number(cta_index());
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Index now = number;
      more = now < 4;
      when(now < 4, [&] {
        const Block rows = Dim(64).block(now, 16);
        store(C(rows, all), load(X(rows, all)));
        const Index fetched = atomic_add(next(0), 1, kBoth);
        when(fetched == 3, [&] { atomic_add(next(0), -4); });
        number = fetched + cta_count();
      });
    });
  })});
  ProofOptions options;
  options.schedules = options.launches = 2;
  options.more = 4;
  const auto verdicts = [&](const std::vector<int>& counts) {
    std::map<std::string, Verdict> of_words;
    for (const MutantResult& result : prove(kernel, 35, counts, options)) {
      const bool is_next = result.mutant.operation.find("next") != std::string::npos;
      of_words[is_next ? "next" : "seldom"] = result.verdict;
    }
    return of_words;
  };
  using Verdicts = std::map<std::string, Verdict>;
  EXPECT_EQ(verdicts({2}),
            (Verdicts{{"next", Verdict::undecided}, {"seldom", Verdict::undecided}}));
  EXPECT_EQ(verdicts({2, 1}),
            (Verdicts{{"next", Verdict::equivalent}, {"seldom", Verdict::undecided}}));
}

// Two warps of a CTA take numbers. Who comes second reads what the other one has left behind, so
// that one of the orders shows an addition that acquires nothing, whatever the seed draws. Where
// nobody reads it, no order does.
TEST(WordProof, WarpsOfAClusterTakeNumbersInEachOrder) {
  for (const bool reads : {true, false}) {
    Kernel kernel("by_two");
    const Tensor X = kernel.in("X", bf16, {64, 32}), C = kernel.out("C", bf16, {64, 32});
    const Tensor next = kernel.workspace("next", 1);
    const Tensor left = kernel.scratch("left", 16, 32);
    const Block own = Dim(64).block(0, 16), other = Dim(64).block(16, 16);
    kernel.ctas(multiprocessors());
    kernel.roles({role("reads", warps(1), registers(64),
                       [&] {
                         const Index fetched = atomic_add(next(0), 1, kBoth);
                         warp_sync();
                         when(fetched == 1, [&] {
                           atomic_add(next(0), -2);
                           if (reads) store(C(other, all), load(left(all, all)).cast(bf16));
                         });
                       }),
                  role("leaves", warps(1), registers(64), [&] {
                    store(left(all, all), load(X(own, all)).cast(f32));
                    warp_sync();
                    const Index fetched = atomic_add(next(0), 1, kBoth);
                    when(fetched == 1, [&] { atomic_add(next(0), -2); });
                  })});
    ProofOptions options;
    options.schedules = options.launches = options.few = 1;
    options.more = 0;
    for (options.seed = 0; options.seed < 4; ++options.seed) {
      int caught = 0, equivalent = 0;
      for (const MutantResult& result : prove(kernel, 35, {1}, options)) {
        caught += result.verdict == Verdict::caught;
        equivalent += result.verdict == Verdict::equivalent;
      }
      EXPECT_EQ(caught, reads ? 2 : 0) << "seed " << options.seed;
      EXPECT_EQ(equivalent, reads ? 0 : 2) << "seed " << options.seed;
    }
  }
}

// The ring of two stages is filled once: nobody waits for a stage that is given back, so that no
// order says what an arrival is for that does not come, or comes before the lanes have read.
TEST(WordProof, ARingThatIsNeverFullSaysNothing) {
  Kernel kernel("never_full");
  const Tensor X = kernel.in("X", bf16, {64, 32}), C = kernel.out("C", bf16, {64, 32});
  const Tensor next = kernel.workspace("next", 1);
  Ring ring(kernel, "tile", stages(2), {{bf16, 64, 32}});
  const auto take = [&] {
    const Index fetched = atomic_add(next(0), 1, kBoth);
    when(fetched == 1, [&] { atomic_add(next(0), -2); });
  };
  kernel.ctas(multiprocessors());
  kernel.roles({role("load", warps(1), registers(64),
                     [&] {
                       take();
                       for ([[maybe_unused]] const Index turn : range(1)) {
                         ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot[0]); });
                       }
                     }),
                role("take", warps(1), registers(64), take),
                role("math", warpgroups(1), registers(64), [&] {
                  for ([[maybe_unused]] const Index turn : range(1)) {
                    const Slot slot = ring.consume();
                    const Tile tile = load(slot[0]);
                    warp_sync();
                    ring.release(slot);
                    store(C(all, all), tile);
                  }
                })});
  ProofOptions options;
  options.schedules = options.launches = options.few = 1;
  options.more = 0;
  const auto why = [&](int kind, const std::string& operation) {
    for (const MutantResult& result : prove(kernel, kind, {1}, options)) {
      if (result.mutant.change != "left out") continue;
      if (result.mutant.operation.find(operation) != 0) continue;
      EXPECT_EQ(result.verdict, Verdict::undecided);
      return result.reason;
    }
    return std::string("there is none");
  };
  EXPECT_THAT(why(13, "mbarrier_arrive tile_empty"), HasSubstr("phases of its mbarriers are"));
  EXPECT_THAT(why(34, "warp_sync"), HasSubstr("for whose phases nothing waits"));
}

}  // namespace
}  // namespace tilewright::checks
