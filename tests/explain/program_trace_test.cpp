#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/programs.h"
#include "common/ranks_kernels.h"
#include "explain/report/trace_json.h"
#include "explain/report/trace_page.h"
#include "library/program_simulation.h"
#include "simulator/machine/trace_recorder.h"

// What streams and launches of several ranks did, on one time axis.
namespace tilewright::explanations {
namespace {

using simulator::Trace;
using simulator::TraceSlice;
using simulator::TraceStream;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

const TraceOrigin kOrigin{"push", "sm_90a", 0, "tilewright simulate push.twp"};

// Of the first schedule with a fault of the kind, or, for no kind, of a clean one.
Trace trace_of(const Program& program, const std::string& kind) {
  const std::vector<ir::Kernel> machine =
      library::machine_forms(program.finish(), ir::default_target()).front();
  const ProgramMemory memory(program);
  simulator::MachineOptions options;
  options.multiprocessors = options.resident = 8;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    simulator::TraceRecorder recorder;
    options.recorder = &recorder;
    const simulator::MachineReport report =
        library::simulate_program(program.finish(), machine, memory.tensors, nullptr, options, 2);
    const std::string found = report.ok() ? "" : report.faults[0].kind;
    if (found == kind) return recorder.take();
  }
  ADD_FAILURE() << "no schedule shows it";
  return {};
}

const TraceStream& stream_of(const Trace& trace, const std::string& name) {
  return *std::find_if(trace.streams.begin(), trace.streams.end(),
                       [&](const TraceStream& stream) { return stream.name == name; });
}

const TraceSlice& slice_of(const Trace& trace, const TraceStream& stream, const std::string& name,
                           const std::string& run) {
  const auto found =
      std::find_if(stream.slices.begin(), stream.slices.end(), [&](const TraceSlice& slice) {
        return trace.texts[slice.name] == name && trace.texts[slice.iteration] == run;
      });
  if (found == stream.slices.end()) throw std::runtime_error("no " + name + " in " + stream.name);
  return *found;
}

TEST(ProgramTraceTest, StreamsWaitForWhatOtherRanksDo) {
  const test::Push push(true);
  const Trace trace = trace_of(push.program, "");
  ASSERT_EQ(trace.streams.size(), 6u);
  for (const TraceStream& stream : trace.streams) {
    EXPECT_FALSE(stream.slices.empty()) << stream.name;
    std::int64_t end = 0;
    for (const TraceSlice& slice : stream.slices) {
      EXPECT_GE(slice.start, end) << stream.name << ": " << trace.texts[slice.name];
      end = slice.end;
    }
    EXPECT_LE(end, trace.end);
  }
  // Each launch of rank r lies behind the write of the word by rank r - 1, in each run.
  for (const int rank : {0, 1, 2}) {
    for (const std::string run : {"run 1", "run 2"}) {
      const int from = (rank + 2) % 3;
      const TraceSlice& write =
          slice_of(trace, stream_of(trace, "stream push of rank " + std::to_string(from)),
                   "writes arrived of rank " + std::to_string(rank) + "[0]", run);
      const TraceSlice& launch = slice_of(
          trace, stream_of(trace, "stream math of rank " + std::to_string(rank)), "scale", run);
      EXPECT_GE(launch.start, write.end) << rank << ", " << run;
    }
  }
  const TraceSlice& wait = slice_of(trace, stream_of(trace, "stream math of rank 1"),
                                    "waits for arrived of rank 1[0]", "run 1");
  EXPECT_EQ(wait.kind, TraceSlice::Kind::wait);
  EXPECT_THAT(trace.texts[wait.detail], StartsWith("stream push of rank 0 writes it"));
  // The word takes its time to the other GPU.
  const TraceSlice& write = slice_of(trace, stream_of(trace, "stream push of rank 0"),
                                     "writes arrived of rank 1[0]", "run 1");
  EXPECT_GT(wait.end, write.end);
}

TEST(ProgramTraceTest, LaunchesLieWhereTheirStreamHasThem) {
  const test::Push push(true);
  const Trace trace = trace_of(push.program, "");
  ASSERT_EQ(trace.launches.size(), 6u);
  std::set<std::string> names;
  for (const simulator::TraceLaunch& launch : trace.launches) {
    names.insert(launch.name);
    EXPECT_FALSE(launch.roles.empty());
  }
  EXPECT_EQ(names.size(), 6u);
  EXPECT_EQ(names.count("scale of rank 2, run 1"), 1u);
  ASSERT_EQ(trace.ctas.size(), 6u * 4);
  for (const simulator::TraceCta& cta : trace.ctas) {
    const simulator::TraceLaunch& launch = trace.launches[cta.launch];
    const std::string run = launch.name.substr(launch.name.find("run"));
    const TraceSlice& slice =
        slice_of(trace, stream_of(trace, "stream math of rank " + std::to_string(launch.rank)),
                 "scale", run);
    EXPECT_GE(cta.start, slice.start) << launch.name;
    EXPECT_LE(cta.end, slice.end) << launch.name;
    EXPECT_LT(cta.start, cta.end) << launch.name;
  }
}

TEST(ProgramTraceTest, AKernelWaitsForAnotherRanksWord) {
  const Trace trace = trace_of(test::message_in_each_rank(), "");
  int waits = 0;
  for (const simulator::TraceCta& cta : trace.ctas) {
    for (const simulator::TraceLane& lane : cta.lanes) {
      for (const TraceSlice& slice : lane.slices) {
        if (slice.kind != TraceSlice::Kind::wait) continue;
        if (trace.texts[slice.name].find("message.ready of rank 1") == std::string::npos) continue;
        ++waits;
        EXPECT_EQ(trace.launches[cta.launch].rank, 1);
        EXPECT_THAT(trace.texts[slice.detail], HasSubstr("of message of rank 0 writes it"));
      }
    }
  }
  EXPECT_GT(waits, 0);
}

TEST(ProgramTraceTest, MarksAFaultInStreamAndWarp) {
  const test::Push push(false);
  const Trace trace = trace_of(push.program, "race");
  ASSERT_EQ(trace.faults.size(), 1u);
  const simulator::TraceFault& fault = trace.faults[0];
  ASSERT_EQ(fault.marks.size(), 2u);
  int streams = 0;
  for (const simulator::TraceMark& mark : fault.marks) {
    if (mark.stream >= 0) {
      ++streams;
      EXPECT_THAT(fault.fault.message, HasSubstr(trace.streams[mark.stream].name + ", run"));
    } else {
      const simulator::TraceLaunch& launch = trace.launches[trace.ctas[mark.cta].launch];
      EXPECT_THAT(fault.fault.message,
                  HasSubstr("of scale of rank " + std::to_string(launch.rank)));
    }
  }
  EXPECT_EQ(streams, 1);
  const Json events = Json::parse(trace_events(trace, kOrigin));
  int marks = 0;
  for (const Json& event : events["traceEvents"]) marks += event.value("cat", "") == "fault";
  EXPECT_EQ(marks, 2);
}

TEST(ProgramTraceTest, DrawsWhatADeadlockWaitsFor) {
  const Trace trace = trace_of(test::no_wait_is_over(), "deadlock");
  for (const TraceStream& stream : trace.streams) {
    ASSERT_EQ(stream.slices.size(), 1u);
    EXPECT_EQ(stream.slices[0].kind, TraceSlice::Kind::wait);
    EXPECT_EQ(trace.texts[stream.slices[0].detail], "which did not come");
  }
  ASSERT_EQ(trace.faults.size(), 1u);
  EXPECT_GE(trace.faults[0].marks.size(), 1u);
}

TEST(ProgramTraceTest, ThePageHasStreamsAndLaunches) {
  const std::string page = trace_page(trace_of(test::Push(false).program, "race"), kOrigin);
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t start = page.find(begin) + begin.size();
  const Json data = Json::parse(page.substr(start, page.find("</script>", start) - start));
  EXPECT_EQ(data["streams"].size(), 6u);
  for (const Json& stream : data["streams"]) EXPECT_EQ(stream["slices"].size() % 8, 0u);
  for (const Json& cta : data["ctas"]) {
    EXPECT_LT(cta["launch"].get<std::size_t>(), data["launches"].size());
  }
}

}  // namespace
}  // namespace tilewright::explanations
