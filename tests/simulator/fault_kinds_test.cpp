#include "simulator/faults/fault_kinds.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/text.h"
#include "simulator/faults/sites.h"
#include "simulator/seeded_subjects.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

// Each kind of fault, seeded into a small kernel and found.
namespace tilewright::simulator {
namespace {

// C {128, 64} = A B^T by one persistent CTA: a ring of two stages, tiles of 64 rows from a counter,
// C by TMA through a staging tile that is written again for the second one.
Kernel pipeline() {
  Kernel kernel("pipeline");
  const Tensor A = kernel.in("A", bf16, {2 * kSize, 2 * kSize});
  const Tensor B = kernel.in("B", bf16, {kSize, 2 * kSize});
  const Tensor C = kernel.out("C", bf16, {2 * kSize, kSize});
  const Tensor next = kernel.workspace("next", 1);
  kernel.ctas(1);
  Ring tiles(kernel, "tile", stages(1), {});
  tiles.numbered();
  Ring ring(kernel, "ab", stages(2), {{bf16, kSize, kSize}, {bf16, kSize, kSize}});
  const SharedTile staging(kernel, "staging", bf16, kSize, kSize);
  const auto load_role = [&] {
    for ([[maybe_unused]] Index turn : range(2)) {
      const Index tile = atomic_add(next(0), 1);
      when(tile == 1, [&] { atomic_add(next(0), -2); });
      tiles.produce(tile);
      for (Block depth : blocks(2 * kSize, kSize)) {
        ring.produce([&](const Slot& slot) {
          tma_load(A(Dim(2 * kSize).block(tile, kSize), depth), slot[0]);
          tma_load(B(all, depth), slot[1]);
        });
      }
    }
  };
  const auto math_role = [&] {
    for ([[maybe_unused]] Index turn : range(2)) {
      const Slot number = tiles.consume();
      const Index tile = number.number();
      tiles.release(number);
      Var acc{zeros({kSize, kSize})};
      for ([[maybe_unused]] Index step : range(2)) {
        const Slot slot = ring.consume();
        acc = wait(wgmma(slot[0], slot[1].T(), acc));
        ring.release(slot);
      }
      const Tile sum = acc;
      bulk_wait_read(0);
      warp_sync();
      store(staging, sum.cast(bf16));
      fence_proxy_async();
      warp_sync();
      tma_store(C(Dim(2 * kSize).block(tile, kSize).part(warp_index(), 16), all),
                staging.rows(16 * warp_index(), 16));
      bulk_commit();
    }
    bulk_wait(0);
  };
  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(1), registers(240), math_role)});
  return kernel;
}

Subject pipeline_subject() {
  return {lowered(pipeline()),
          {numbers({2 * kSize, 2 * kSize}, 1), numbers({kSize, 2 * kSize}, 2)},
          {"A", "B"},
          {2 * kSize, kSize}};
}

// C {128, 64} = X f(X): f(X) is computed by two warpgroups, which meet before they read all of it.
Subject computed_operand() {
  XToC made("computed", 2 * kSize, 2 * kSize);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  Ring ring(kernel, "x", stages(1), {{bf16, 2 * kSize, 2 * kSize}});
  const SharedTile computed(kernel, "computed", bf16, 2 * kSize, 2 * kSize);
  NamedBarrier written(kernel, 256);
  kernel.roles(
      {role("load", warps(1), registers(24),
            [&] { ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot[0]); }); }),
       role("math", warpgroups(2), registers(200), [&](const Index& group) {
         const Slot slot = ring.consume();
         const Tile own = load(slot[0].rows(kSize * group, kSize));
         store(computed.rows(kSize * group, kSize), own * 2);
         fence_proxy_async();
         written.sync();
         const Tile product = wait(wgmma(slot[0].rows(kSize * group, kSize), computed));
         ring.release(slot);
         store(C(Dim(2 * kSize).block(0, 2 * kSize).part(group, kSize), all), product.cast(bf16));
       })});
  return made.subject(3);
}

// Each CTA of a cluster of two gives its rows to the other, which stores them.
Subject exchange() {
  XToC made("exchange", 2 * kSize, kSize, 2);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  SharedFragments parts(kernel, "parts", 1, kSize);
  ClusterBarrier given(kernel, "given");
  const SharedTile tile(kernel, "tile", bf16, kSize, kSize);  // into the layout of a fragment
  NamedBarrier written(kernel, 128);
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Dim rows = Dim(2 * kSize);
    store(tile, load(X(rows.block(cluster_rank(), kSize), all)));
    written.sync();
    parts.store(0, load(tile).cast(f32));
    given.arrive();
    given.wait();
    store(C(rows.block(1 - cluster_rank(), kSize), all),
          parts.load(0, 1 - cluster_rank()).cast(bf16));
  })});
  return made.subject(4);
}

TEST(FaultKinds, AreTheOnesOfTheList) {
  int last = 0;
  for (const FaultKind& each : fault_kinds()) {
    EXPECT_GT(each.number, last);
    last = each.number;
    EXPECT_NE(each.seed, nullptr);
    EXPECT_FALSE(each.absent.empty());
    EXPECT_FALSE(each.classes.empty());
  }
}

TEST(FaultKinds, SubjectsAreClean) {
  for (const Subject& subject : {pipeline_subject(), computed_operand(), exchange()}) {
    EXPECT_EQ(symptom(subject, subject.machine), "") << subject.machine.name;
  }
}

class OfPipeline : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Numbers, OfPipeline,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15, 18, 19, 23, 24,
                                         38, 39));

TEST_P(OfPipeline, IsFound) {
  const Count count = expect_found(GetParam(), pipeline_subject());
  EXPECT_EQ(count.rejected, GetParam() == 13 ? 2 : 0);  // barriers of no arrivals
  EXPECT_GT(count.caught, 0);
  EXPECT_EQ(count.equivalent, 0);
}

TEST(FaultKinds, CountsSitesOfThePipeline) {
  const Subject subject = pipeline_subject();
  const auto mutants = [&](int number) { return mutants_of(kind(number), subject.machine).size(); };
  EXPECT_EQ(mutants(2), 2u);  // tile_full, ab_full
  EXPECT_EQ(mutants(3), 2u);  // tile_empty, ab_empty
  EXPECT_EQ(mutants(4), 2u);  // left out, and one group more
  EXPECT_EQ(mutants(5), 2u);  // of ab, by each role; tile has a single stage
  EXPECT_EQ(mutants(6), 4u);
  EXPECT_EQ(mutants(7), 1u);
  EXPECT_EQ(mutants(8), 0u);
  EXPECT_EQ(mutants(15), 2u);  // left out, and one group more
  EXPECT_EQ(mutants(20), 0u);
  EXPECT_EQ(mutants(22), 0u);
  EXPECT_EQ(mutants(25), 0u);
  EXPECT_EQ(mutants(38), 12u);  // of what a line makes in a block, one
}

TEST(FaultKinds, ReadWaitIsEnoughAtTheEnd) {
  const Count count = expect_found(16, pipeline_subject());
  EXPECT_EQ(count.equivalent, 1);
  EXPECT_EQ(count.caught, 0);
}

TEST(FaultKinds, UnfencedOperandOfAProduct) {
  EXPECT_EQ(expect_found(8, computed_operand()).caught, 1);
}

TEST(FaultKinds, NamedBarrierThatDoesNotMeet) {
  const Count count = expect_found(20, computed_operand());
  EXPECT_EQ(count.caught, 2);  // too many threads, and no meeting at all
  // Another number, for all who meet, is but another name.
  EXPECT_EQ(count.mutants, 2);
}

// A role that meets twice at one barrier, by itself, could do so at any other.
TEST(FaultKinds, NamedBarrierOfOneRoleAlone) {
  XToC made("two_meetings", 2 * kSize, kSize);
  const Tensor &X = made.X, &C = made.C;
  const SharedTile tile(made.kernel, "tile", bf16, 2 * kSize, kSize);
  NamedBarrier met(made.kernel, 128);
  made.kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Block rows = Dim(2 * kSize).block(0, 2 * kSize);
    for (int time = 0; time < 2; ++time) {
      store(tile, load(X(rows, all)));
      met.sync();
      store(C(rows, all), load(tile));
    }
  })});
  for (const Mutant& mutant : mutants_of(kind(20), made.subject(5).machine)) {
    EXPECT_THAT(mutant.change, testing::Not(testing::HasSubstr("meets at barrier")));
  }
}

TEST(FaultKinds, BudgetsThatAreExceeded) {
  const Count count = expect_found(21, computed_operand());
  EXPECT_EQ(count.caught, 2);    // registers of each role
  EXPECT_EQ(count.rejected, 2);  // the ring and the computed tile
}

TEST(FaultKinds, CtaThatEndsBeforeItsPeerHasRead) {
  EXPECT_EQ(expect_found(22, exchange()).caught, 1);
}

TEST(FaultKinds, SignalOfACluster) { EXPECT_GE(expect_found(23, exchange()).caught, 3); }

// What is written before a release is not what it tells of.
TEST(FaultKinds, ReleasesAnnounceNoData) {
  EXPECT_TRUE(mutants_of(kind(23), computed_operand().machine).empty());
}

// C = X X^T + X X^T: the second product adds to the first, which is waited for in between without
// need, and its wait is for both.
Subject chained() {
  XToC made("chained", kSize, kSize);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  Ring ring(kernel, "x", stages(1), {{bf16, kSize, kSize}});
  kernel.roles(
      {role("load", warps(1), registers(24),
            [&] { ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot[0]); }); }),
       role("math", warpgroups(1), registers(200), [&] {
         const Slot slot = ring.consume();
         const Tile first = wait(wgmma(slot[0], slot[0].T()));
         const Tile sum = wait(wgmma(slot[0], slot[0].T(), first));
         ring.release(slot);
         store(C(all, all), sum.cast(bf16));
       })});
  return made.subject(8);
}

TEST(FaultKinds, WaitThatAnotherOneMakesNeedless) {
  const Count waits = expect_found(4, chained());
  EXPECT_EQ(waits.equivalent, 2);
  EXPECT_EQ(waits.caught, 2);
  const Count commits = expect_found(11, chained());
  EXPECT_EQ(commits.equivalent, 1);
  EXPECT_EQ(commits.caught, 1);
}

// Groups are done in their order: a wait for the second is one for the first too.
TEST(FaultKinds, WaitForTheFirstOfTwoBeforeTheSecond) {
  XToC made("two_sums", 2 * kSize, kSize);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  Ring ring(kernel, "x", stages(1), {{bf16, 2 * kSize, kSize}});
  kernel.roles(
      {role("load", warps(1), registers(24),
            [&] { ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot[0]); }); }),
       role("math", warpgroups(1), registers(200), [&] {
         const Slot slot = ring.consume();
         const Tile held = load(slot[0].rows(kSize, kSize));
         const Pending first = wgmma(slot[0].rows(0, kSize), slot[0].rows(0, kSize).T());
         const Pending second = wgmma(held, slot[0].rows(0, kSize).T());
         const Tile a = wait(first);
         const Tile b = wait(second);
         ring.release(slot);
         store(C(Dim(2 * kSize).block(0, kSize), all), a.cast(bf16));
         store(C(Dim(2 * kSize).block(1, kSize), all), b.cast(bf16));
       })});
  const Subject subject = made.subject(9);
  const Count waits = expect_found(4, subject);
  EXPECT_EQ(waits.equivalent, 2);
  EXPECT_EQ(waits.caught, 2);
  // So that the first may as well belong to the second's group.
  const Count commits = expect_found(11, subject);
  EXPECT_EQ(commits.equivalent, 1);
  EXPECT_EQ(commits.caught, 1);
}

// Two tiles leave through places of their own. The first wait leaves no store under way, so that
// the second one, which lets one be, waits for nothing: both under the condition that one warp
// stores.
TEST(FaultKinds, WaitForFewerStoresThanAreUnderWay) {
  XToC made("two_stores", 2 * kSize, kSize);
  Kernel& kernel = made.kernel;
  const Tensor &X = made.X, &C = made.C;
  const SharedTile first(kernel, "first", bf16, kSize, kSize);
  const SharedTile second(kernel, "second", bf16, kSize, kSize);
  NamedBarrier met(kernel, 128);
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Condition stores = warp_index() == 0;
    const auto leave = [&](const SharedTile& through, int block, int under_way) {
      when(stores, [&] { bulk_wait_read(under_way); });
      met.sync();
      store(through, load(X(Dim(2 * kSize).block(block, kSize), all)));
      fence_proxy_async();
      met.sync();
      when(stores, [&] {
        tma_store(C(Dim(2 * kSize).block(block, kSize), all), through);
        bulk_commit();
      });
    };
    leave(first, 0, 0);
    leave(second, 1, 1);
    when(stores, [&] { bulk_wait(0); });
  })});
  const Subject subject = made.subject(10);
  int needless = 0;
  for (const Mutant& mutant : mutants_of(kind(15), subject.machine)) {
    needless += !mutant.equivalent.empty();
    EXPECT_EQ(symptom(subject, mutant.apply(subject.machine)), "") << mutant.change;
  }
  EXPECT_EQ(needless, 2);  // of the second wait: left out, and one group more
}

// Blocks of rows, and a number behind them that says that there are no more: what is released then
// nobody fills again.
TEST(FaultKinds, TheLastArrivalOfARole) {
  constexpr int kBlocks = 3;
  XToC made("ends", kBlocks * kSize, kSize);
  Kernel& kernel = made.kernel;
  Ring ring(kernel, "x", stages(1), {{bf16, kSize, kSize}});
  ring.numbered();
  const auto block = [](const Index& number) { return Dim(kBlocks * kSize).block(number, kSize); };
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       for (Index number : range(kBlocks)) {
                         ring.produce(number, [&](const Slot& slot) {
                           tma_load(made.X(block(number), all), slot[0]);
                         });
                       }
                       ring.produce(-1);
                     }),
                role("math", warpgroups(1), registers(240), [&] {
                  Cell<Condition> more(true);
                  repeat_while(more, [&] {
                    const Slot slot = ring.consume();
                    when(
                        slot.number() >= 0,
                        [&] {
                          store(made.C(block(slot.number()), all), load(slot[0]));
                          ring.release(slot);
                          more = true;
                        },
                        [&] {
                          ring.release(slot);
                          more = false;
                        });
                  });
                })});
  const Subject subject = made.subject(12);
  int last = 0, others = 0;
  for (const Mutant& mutant : mutants_of(kind(13), subject.machine)) {
    if (mutant.operation.find("mbarrier_arrive x_empty") == std::string::npos) continue;
    const std::string found = symptom(subject, mutant.apply(subject.machine));
    ++(mutant.equivalent.empty() ? others : last);
    EXPECT_EQ(found.empty(), !mutant.equivalent.empty()) << mutant.change << ": " << found;
  }
  EXPECT_EQ(last, 2);  // left out, and twice
  EXPECT_EQ(others, 2);
}

// Of its two, one orders reads by all lanes with what one of them hands on.
TEST(FaultKinds, LanesThatDoNotWaitForEachOther) {
  EXPECT_GE(expect_found(34, pipeline_subject()).caught, 1);
}

// The CTA that comes last stores what both have left in scratch memory.
TEST(FaultKinds, RelaxedAtomic) {
  Kernel kernel("last");
  const Tensor X = kernel.in("X", bf16, {32, 32}), C = kernel.out("C", bf16, {32, 32});
  const Tensor met = kernel.workspace("met", 1);
  const Tensor left = kernel.scratch("left", 32, 32);
  kernel.ctas(2);
  const auto rows = [](const Index& block) { return Dim(32).block(block, 16); };
  kernel.roles({role("math", warps(1), registers(64), [&] {
    store(left(rows(cta_index()), all), load(X(rows(cta_index()), all)).cast(f32));
    warp_sync();
    const Index before = atomic_add(met(0), 1, {Semantics::acq_rel, Scope::gpu});
    warp_sync();
    when(before == 1, [&] {
      for (const int block : {0, 1}) {
        store(C(rows(block), all), load(left(rows(block), all)).cast(bf16));
      }
      atomic_add(met(0), -2, {Semantics::relaxed, Scope::gpu});
    });
  })});
  const Subject subject{lowered(kernel), {numbers({32, 32}, 11)}, {"X"}, {32, 32}};
  EXPECT_EQ(expect_found(35, subject).caught, 1);
  EXPECT_EQ(expect_found(39, subject).caught, 1);
}

// Blocks of 16 rows of X, of which those from 24 on do not exist. Only of the first block it is
// known that it is not wholly outside.
TEST(FaultKinds, TheOtherOfTwoMaps) {
  Kernel kernel("cut");
  const Tensor X = kernel.in("X", bf16, {48, kSize}), C = kernel.out("C", bf16, {48, kSize});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(1), {{bf16, 16, kSize}});
  const auto load_block = [&](const Index& first) {
    ring.produce([&](const Slot& slot) { tma_load(X(Block(first, 16, Index(24)), all), slot[0]); });
  };
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       load_block(0);
                       for (const Index i : range(1, 3)) load_block(16 * i);
                     }),
                role("store", warps(1), registers(24), [&] {
                  for (const Index i : range(0, 3)) {
                    const Slot slot = ring.consume();
                    tma_store(C(Dim(48).block(i, 16), all), slot[0]);
                    bulk_commit();
                    bulk_wait(0);
                    ring.release(slot);
                  }
                })});
  const Subject subject{lowered(kernel), {numbers({48, kSize}, 11)}, {"X"}, {48, kSize}};
  const Sites sites(subject.machine);
  std::vector<bool> is_known;
  for (const Site* choice : sites.of(ir::Op::ragged_map)) {
    is_known.push_back(sites.definition(choice->operation->operands[1])->op() == ir::Op::constant);
  }
  EXPECT_THAT(is_known, testing::ElementsAre(true, false));
  EXPECT_EQ(expect_found(40, subject).caught, 2);
}

// Of two barriers of all threads only the one behind the initialisation publishes it.
TEST(FaultKinds, ABarrierBeforeTheInitialisationPublishesNothing) {
  const auto sites_of = [](const ir::Kernel& machine) {
    std::vector<std::size_t> found;
    for (const Mutant& mutant : mutants_of(kind(19), machine)) found.push_back(mutant.site);
    return found;
  };
  ir::Kernel machine = pipeline_subject().machine;
  std::vector<std::size_t> wanted = sites_of(machine);
  ASSERT_EQ(wanted.size(), 2u);  // the fence, and the barrier
  for (std::size_t& site : wanted) ++site;
  std::vector<ir::Operation>& body = machine.body.body;
  body.insert(body.begin(), ir::Operation{ir::Op::cta_sync, {}, {}, {}, {}, body.front().where});
  EXPECT_EQ(sites_of(machine), wanted);
}

// Every operation of a sort is a site, as is every stage and phase that is carried on.
TEST(FaultKinds, LeaveNoSiteOut) {
  for (const Subject& subject : {pipeline_subject(), computed_operand(), exchange()}) {
    SCOPED_TRACE(subject.machine.name);
    const Sites all(subject.machine);
    const auto sites = [&](std::initializer_list<int> numbers) {
      std::set<std::size_t> found;
      for (const int number : numbers) {
        for (const Mutant& mutant : mutants_of(kind(number), subject.machine)) {
          found.insert(mutant.site);
        }
      }
      return found;
    };
    const auto expect_all = [&](std::initializer_list<int> numbers, ir::Op op) {
      const std::set<std::size_t> found = sites(numbers);
      for (const Site* site : all.of(op)) {
        EXPECT_EQ(found.count(site->number), 1u) << ir::info(op).name << " " << site->number;
      }
    };
    expect_all({2, 3}, ir::Op::mbarrier_wait);
    expect_all({4}, ir::Op::wgmma_wait);
    expect_all({7, 8}, ir::Op::fence_proxy_async);
    expect_all({11}, ir::Op::wgmma_commit);
    expect_all({11}, ir::Op::bulk_commit);
    expect_all({13}, ir::Op::mbarrier_init);
    expect_all({13}, ir::Op::mbarrier_arrive);
    expect_all({14}, ir::Op::mbarrier_expect_tx);
    expect_all({15, 16}, ir::Op::bulk_wait);
    expect_all({18}, ir::Op::wgmma_fence);
    expect_all({19}, ir::Op::fence_barrier_init);
    expect_all({20}, ir::Op::named_sync);
    expect_all({21}, ir::Op::shared);
    expect_all({21}, ir::Op::set_max_registers);
    expect_all({34}, ir::Op::warp_sync);
  }
}

TEST(FaultKinds, ProbeTellsWhetherASiteIsExecuted) {
  Kernel kernel("dead");
  const Dim turns = kernel.dim("turns");
  kernel.in("X", bf16, {turns, kSize});
  const Tensor C = kernel.out("C", bf16, {kSize, kSize});
  kernel.ctas(1);
  NamedBarrier met(kernel, 128);
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    for ([[maybe_unused]] Index turn : range(turns)) met.sync();
    store(C(all, all), zeros({kSize, kSize}).cast(bf16));
  })});
  const ir::Kernel machine = lowered(kernel);
  const Mutant mutant = mutants_of(kind(20), machine).front();
  for (const int rows : {0, 2}) {
    const Subject subject{machine, {numbers({rows, kSize}, 6)}, {"X"}, {kSize, kSize}};
    EXPECT_EQ(symptom(subject, mutant.probe(machine)), rows > 0 ? "named_barrier" : "");
  }
}

// Of CTAs 0, 1 and 2 the last one by 2 and by 3, and the last two by 2 and by 1.
TEST(FaultKinds, ProbeOfADivisorTellsWhetherItsNumberIsAnother) {
  Kernel kernel("quotients");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 64}), C = kernel.out("C", bf16, {n, 64});
  kernel.ctas(ceil_div(n, 16));
  kernel.roles({role("math", warps(1), registers(64), [&] {
    const Block rows = n.block(cta_index(), 16), columns = Dim(64).block(cta_index() / 2, 32);
    store(C(rows, columns), load(X(rows, columns)));
  })});
  const ir::Kernel machine = lowered(kernel);
  Mutant mutant = mutants_of(kind(36), machine).front();
  ASSERT_EQ(mutant.change, "divides by one more");
  const auto tells = [&](Mutant::Division division, std::int64_t ctas) {
    mutant.division = division;
    const Subject subject{machine, {numbers({16 * ctas, 64}, 6)}, {"X"}, {16 * ctas, 64}};
    return symptom(subject, mutant.probe_number(machine)) == "named_barrier";
  };
  EXPECT_TRUE(tells(Mutant::Division::by_one_more, 3));
  EXPECT_FALSE(tells(Mutant::Division::by_one_more, 2));
  EXPECT_TRUE(tells(Mutant::Division::by_one_less, 2));
  EXPECT_FALSE(tells(Mutant::Division::by_one_less, 1));
}

}  // namespace
}  // namespace tilewright::simulator
