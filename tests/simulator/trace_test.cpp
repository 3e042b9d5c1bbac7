#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "simulator/litmus.h"
#include "simulator/machine/timetable.h"
#include "simulator/machine/trace_recorder.h"
#include "simulator/machine_kernels.h"

namespace tilewright::simulator {
namespace {

using testing::HasSubstr;

struct Traced {
  MachineReport report;
  Trace trace;
};

Traced trace_of(const std::string& text, Tensors tensors, std::uint64_t seed = 0) {
  TraceRecorder recorder;
  MachineOptions options;
  options.seed = seed;
  options.recorder = &recorder;
  Traced traced;
  traced.report = run(text, tensors, options);
  traced.trace = recorder.take();
  return traced;
}

// GEMM with six stages' worth of k through two stages, in two CTAs.
const Trace& gemm() {
  static const Trace trace = [] {
    GemmTensors tensors(128, 128, 384);
    Traced traced = trace_of(gemm_text(), {&tensors.a, &tensors.b, &tensors.c});
    EXPECT_TRUE(traced.report.ok());
    return std::move(traced.trace);
  }();
  return trace;
}

std::vector<TraceFlight> flights(const TraceCta& cta, TraceFlight::Kind kind) {
  std::vector<TraceFlight> found;
  for (const TraceFlight& flight : cta.flights) {
    if (flight.kind == kind) found.push_back(flight);
  }
  return found;
}

const TraceSlice* find_slice(const Trace& trace, const TraceLane& lane, const std::string& name) {
  for (const TraceSlice& slice : lane.slices) {
    if (trace.texts[slice.name].find(name) != std::string::npos) return &slice;
  }
  return nullptr;
}

TEST(TimetableTest, FillsTheFirstGapThatIsWideEnough) {
  Timetable table;
  EXPECT_EQ(table.reserve(100, 50), 100);
  EXPECT_EQ(table.reserve(120, 10), 150);
  EXPECT_EQ(table.reserve(0, 60), 0);
  EXPECT_EQ(table.reserve(50, 30), 60);   // 60 to 100 is free
  EXPECT_EQ(table.reserve(50, 30), 160);  // 90 to 100 is too narrow
  EXPECT_EQ(table.reserve(50, 10), 90);
}

TEST(TraceTest, SlicesOfALaneFollowEachOther) {
  ASSERT_EQ(gemm().ctas.size(), 2u);
  for (const TraceCta& cta : gemm().ctas) {
    ASSERT_EQ(cta.lanes.size(), 8u);
    for (const TraceLane& lane : cta.lanes) {
      std::int64_t end = cta.start;
      for (const TraceSlice& slice : lane.slices) {
        EXPECT_GE(slice.start, end);
        EXPECT_GT(slice.end, slice.start);
        end = slice.end;
      }
      EXPECT_LE(end, gemm().end);
    }
    std::int64_t end = cta.start;
    for (const TraceProduct& product : cta.products) {
      EXPECT_GE(product.start, end);
      end = product.end;
    }
  }
}

TEST(TraceTest, AsynchronousWorkBeginsAndEnds) {
  for (const TraceCta& cta : gemm().ctas) {
    const auto loads = flights(cta, TraceFlight::Kind::load);
    ASSERT_EQ(loads.size(), 12u);  // A and B of six steps
    for (const TraceFlight& load : loads) {
      EXPECT_TRUE(load.complete);
      EXPECT_GT(load.end, load.issue);
      EXPECT_EQ(load.issuer, 4);
    }
    EXPECT_EQ(gemm().texts[loads[3].name], "B to B[stage 1]");
    EXPECT_THAT(gemm().texts[loads[3].detail], HasSubstr("16384 bytes, completes full[1] phase 0"));
    EXPECT_EQ(gemm().texts[loads[3].iteration], "1");
    // One group of four products for each step, of the warpgroup as one.
    const auto products = flights(cta, TraceFlight::Kind::products);
    ASSERT_EQ(products.size(), 6u);
    EXPECT_EQ(cta.products.size(), 24u);
    for (std::size_t i = 0; i < products.size(); ++i) {
      EXPECT_TRUE(products[i].complete);
      // When the unit has done the last of its four.
      EXPECT_GE(products[i].end, cta.products[4 * i + 3].end);
    }
  }
}

TEST(TraceTest, ABulkStoreIsOfTheWarpThatIssuesIt) {
  TraceRecorder recorder;
  MachineOptions options;
  options.recorder = &recorder;
  ASSERT_TRUE(run_litmus(litmus(role("reader", 0, 1, "") +
                                role("storer", 1, 1, copy_tile_out() + kBulkWait)),
                         options)
                  .ok());
  const Trace trace = recorder.take();
  const auto stores = flights(trace.ctas[0], TraceFlight::Kind::store);
  ASSERT_EQ(stores.size(), 1u);
  EXPECT_EQ(stores[0].issuer, 1);
}

// However few instructions a loop has.
TEST(TraceTest, TurnsOfASmallLoopAreCounted) {
  TraceRecorder recorder;
  MachineOptions options;
  options.recorder = &recorder;
  const std::string add =
      "    for_loop %0, %3, %1 (%60: i32) {\n      %61: i32 = atomic_add %90, %2, %1\n      "
      "yield\n    }\n";
  ASSERT_TRUE(run_litmus(litmus(role("one", 0, 1, add)), options).ok());
  const Trace trace = recorder.take();
  std::set<std::string> turns;
  for (const TraceLane& lane : trace.ctas[0].lanes) {
    for (const TraceSlice& slice : lane.slices) {
      const bool adds = trace.texts[slice.name].find("atomic_add") != std::string::npos;
      if (adds) turns.insert(trace.texts[slice.iteration]);
      // Its name says all.
      if (slice.kind == TraceSlice::Kind::memory) {
        EXPECT_EQ(trace.texts[slice.detail], "");
      }
    }
  }
  EXPECT_THAT(turns, testing::ElementsAre("0", "1", "2"));
}

TEST(TraceTest, WaitsEndWhenWhatTheyWaitForIsThere) {
  const TraceCta& cta = gemm().ctas[0];
  const auto loads = flights(cta, TraceFlight::Kind::load);
  // full[0] phase 0: both copies of the first step.
  ASSERT_FALSE(cta.flips.empty());
  const auto first = std::find_if(cta.flips.begin(), cta.flips.end(), [](const TraceFlip& flip) {
    return gemm().launches[0].barriers[flip.barrier].name == "full[0]" && flip.phase == 0;
  });
  ASSERT_NE(first, cta.flips.end());
  EXPECT_EQ(first->time, std::max(loads[0].end, loads[1].end));
  EXPECT_THAT(gemm().texts[first->cause], HasSubstr("the copy B to B[stage 0] ends (kernel.tw:"));
  for (const TraceLane& lane : cta.lanes) {
    if (gemm().launches[0].roles[lane.role] != "math") continue;
    const TraceSlice* wait = find_slice(gemm(), lane, "waits for full[0] phase 0");
    ASSERT_NE(wait, nullptr);
    EXPECT_EQ(wait->kind, TraceSlice::Kind::wait);
    EXPECT_EQ(wait->end, first->time);
    EXPECT_EQ(wait->detail, first->cause);
    EXPECT_EQ(wait->where.line, line_of(gemm_text(), "mbarrier_wait %14"));
  }
  // The producer fills a stage again only once it was released.
  const auto released = std::find_if(cta.flips.begin(), cta.flips.end(), [](const TraceFlip& flip) {
    return gemm().launches[0].barriers[flip.barrier].name == "empty[0]" && flip.phase == 0;
  });
  ASSERT_NE(released, cta.flips.end());
  EXPECT_GE(loads[4].issue, released->time);
  EXPECT_LT(loads[2].issue, released->time);
}

TEST(TraceTest, ChangesNothingAndIsTheSameEachTime) {
  const auto once = [] {
    GemmTensors tensors(128, 128, 384);
    return trace_of(gemm_text(), {&tensors.a, &tensors.b, &tensors.c}, 3);
  };
  const Traced first = once(), second = once();
  GemmTensors tensors(128, 128, 384);
  const MachineReport plain = run_seed(gemm_text(), {&tensors.a, &tensors.b, &tensors.c}, 3);
  EXPECT_EQ(first.report.operations, plain.operations);
  EXPECT_EQ(first.report.instructions, plain.instructions);
  EXPECT_EQ(first.trace.end, second.trace.end);
  EXPECT_EQ(first.trace.texts, second.trace.texts);
  EXPECT_LT(tensors.error(), 1e-6);
}

TEST(TraceTest, ControlAloneTakesTheSameTime) {
  TraceRecorder recorder;
  MachineOptions options;
  options.recorder = &recorder;
  options.control_only = true;
  GemmTensors tensors(128, 128, 384);
  ASSERT_TRUE(run(gemm_text(), {&tensors.a, &tensors.b, &tensors.c}, options).ok());
  const Trace trace = recorder.take();
  EXPECT_EQ(trace.end, gemm().end);
  for (const TraceCta& cta : trace.ctas) {
    for (const TraceFlight& flight : cta.flights) EXPECT_TRUE(flight.complete);
  }
}

TEST(TraceTest, MarksBothAccessesOfARace) {
  const std::string text = changed(gemm_text(), "      mbarrier_wait %14, %65, %66\n", "");
  int races = 0;
  for (std::uint64_t seed = 0; seed < 64 && races < 6; ++seed) {
    GemmTensors tensors(128, 128, 384);
    const Traced traced = trace_of(text, {&tensors.a, &tensors.b, &tensors.c}, seed);
    ASSERT_EQ(traced.trace.faults.size(), traced.report.faults.size());
    if (traced.report.ok() || traced.report.faults[0].kind != "race") continue;
    const TraceFault& fault = traced.trace.faults[0];
    ASSERT_EQ(fault.marks.size(), 2u);
    EXPECT_EQ(fault.marks[0].where.line, fault.fault.first.line);
    EXPECT_EQ(fault.marks[1].where.line, fault.fault.second.line);
    EXPECT_EQ(fault.marks[0].cta, fault.marks[1].cta);
    const TraceCta& cta = traced.trace.ctas[fault.marks[0].cta];
    EXPECT_THAT(fault.fault.message, HasSubstr(" of CTA " + std::to_string(cta.index)));
    ASSERT_GE(fault.marks[0].flight, 0);
    const TraceFlight& first = cta.flights[fault.marks[0].flight];
    EXPECT_THAT(first.kind, testing::AnyOf(TraceFlight::Kind::load, TraceFlight::Kind::products));
    EXPECT_EQ(first.where.line, fault.marks[0].where.line);
    EXPECT_EQ(first.issue, fault.marks[0].time);
    // That with which the run ended.
    const std::vector<TraceSlice>& slices = cta.lanes[fault.marks[1].warp].slices;
    EXPECT_EQ(slices.back().start, fault.marks[1].time);
    EXPECT_EQ(slices.back().where.line, fault.marks[1].where.line);
    ++races;
  }
  EXPECT_EQ(races, 6);
}

TEST(TraceTest, DrawsADeadlockAsWaitsThatDoNotEnd) {
  const std::string text = changed(gemm_text(), "      mbarrier_arrive %15, %65\n", "");
  GemmTensors tensors(64, 128, 384);
  const Traced traced = trace_of(text, {&tensors.a, &tensors.b, &tensors.c});
  ASSERT_FALSE(traced.report.ok());
  ASSERT_EQ(traced.report.faults[0].kind, "deadlock");
  EXPECT_GE(traced.trace.faults[0].marks.size(), 1u);
  const Trace& trace = traced.trace;
  const TraceSlice& last = trace.ctas[0].lanes[4].slices.back();
  EXPECT_EQ(last.kind, TraceSlice::Kind::wait);
  EXPECT_EQ(last.end, trace.end);
  EXPECT_EQ(trace.texts[last.name], "waits for empty[0] phase 0");
  EXPECT_EQ(trace.texts[last.detail], "which did not come");
}

}  // namespace
}  // namespace tilewright::simulator
