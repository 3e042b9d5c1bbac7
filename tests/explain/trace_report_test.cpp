#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "check/breakage.h"
#include "compiler/compile_to_machine.h"
#include "explain/report/trace_json.h"
#include "explain/report/trace_page.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "simulator/machine/trace_recorder.h"
#include "simulator/machine_kernels.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::explanations {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

const TraceOrigin kTextOrigin{"gemm", "sm_90a", 7, "tilewright simulate gemm </script>"};

// With a race where `text` has one.
simulator::Trace trace_of_text(const std::string& text) {
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    simulator::GemmTensors tensors(128, 128, 384);
    simulator::TraceRecorder recorder;
    simulator::MachineOptions options;
    options.seed = seed;
    options.recorder = &recorder;
    const auto report = simulator::run(text, {&tensors.a, &tensors.b, &tensors.c}, options);
    const bool races = !report.ok() && report.faults[0].kind == "race";
    if (races || text == simulator::gemm_text()) return recorder.take();
  }
  ADD_FAILURE() << "no schedule shows the race";
  return {};
}

std::string racing() {
  return simulator::changed(simulator::gemm_text(), "      mbarrier_wait %14, %65, %66\n", "");
}

TEST(TraceEventsTest, LanesDoNotOverlapAndAsynchronousEventsPair) {
  const Json json = Json::parse(trace_events(trace_of_text(simulator::gemm_text()), kTextOrigin));
  EXPECT_EQ(json["otherData"]["seed"], 7);
  EXPECT_THAT(json["otherData"]["axis"].get<std::string>(), HasSubstr("not a measurement"));
  std::map<std::pair<int, int>, double> ends;
  std::map<std::string, std::vector<std::pair<std::string, double>>> pairs;
  std::map<std::string, int> phases, names, turns;
  for (const Json& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    ++phases[phase];
    if (phase == "M") ++names[event["args"].value("name", "")];
    if (event.contains("args")) ++turns[event["args"].value("iteration", "")];
    if (phase == "X") {
      double& end = ends[{event["pid"], event["tid"]}];
      EXPECT_GE(event["ts"].get<double>(), end - 1e-9) << event;
      end = event["ts"].get<double>() + event["dur"].get<double>();
    }
    if (phase == "b" || phase == "e") {
      pairs[event["cat"].get<std::string>() + event["id"].dump()].push_back(
          {phase, event["ts"].get<double>()});
    }
  }
  EXPECT_GT(phases["X"], 100);
  EXPECT_GT(phases["i"], 10);
  EXPECT_EQ(pairs.size(), 2u * (12 + 6));
  for (const auto& [id, events] : pairs) {
    ASSERT_EQ(events.size(), 2u) << id;
    EXPECT_EQ(events[0].first, "b");
    EXPECT_EQ(events[1].first, "e");
    EXPECT_LT(events[0].second, events[1].second);
  }
  EXPECT_GT(turns["0"], 100);
  EXPECT_GT(turns["5"], 100);
  EXPECT_EQ(names["CTA 0"], 1);
  EXPECT_EQ(names["math warp 3"], 2);
  EXPECT_EQ(names["load warp 0"], 2);
  EXPECT_EQ(names["mbarriers full"], 2);
}

TEST(TraceEventsTest, MarkAFault) {
  const std::string text = racing();
  const Json json = Json::parse(trace_events(trace_of_text(text), kTextOrigin));
  std::vector<std::string> places;
  for (const Json& event : json["traceEvents"]) {
    if (event.value("cat", "") != "fault") continue;
    EXPECT_EQ(event["name"], "FAULT: race");
    EXPECT_THAT(event["args"]["missing"].get<std::string>(), HasSubstr("full["));
    places.push_back(event["args"]["source"]);
  }
  const auto at = [&](const std::string& passage) {
    return "kernel.tw:" + std::to_string(simulator::line_of(text, passage));
  };
  ASSERT_EQ(places.size(), 2u);
  EXPECT_TRUE(places[0] == at("tma_load %10") || places[0] == at("tma_load %11")) << places[0];
  EXPECT_EQ(places[1], at("wgmma_ss"));
}

TEST(TracePageTest, HoldsTheTraceAndNeedsNothingElse) {
  const std::string page = trace_page(trace_of_text(racing()), kTextOrigin);
  for (const char* outside : {"http:", "https:", "src=", "href=", "@import", "fetch(", "url("}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t start = page.find(begin) + begin.size();
  const Json data = Json::parse(page.substr(start, page.find("</script>", start) - start));
  EXPECT_EQ(data["command"], kTextOrigin.command);
  EXPECT_THAT(data["axis"].get<std::string>(), HasSubstr("not a measurement"));
  ASSERT_EQ(data["faults"].size(), 1u);
  EXPECT_EQ(data["faults"][0]["marks"].size(), 2u);
  EXPECT_THAT(data["faults"][0]["text"].get<std::string>(), HasSubstr("race: shared "));
  const Json& cta = data["ctas"][data["faults"][0]["marks"][0]["cta"].get<std::size_t>()];
  EXPECT_EQ(cta["lanes"].size(), 8u);
  EXPECT_EQ(cta["flights"].size() % 9, 0u);
  EXPECT_GT(cta["flights"].size(), 0u);
  for (const Json& lane : cta["lanes"]) EXPECT_EQ(lane["slices"].size() % 8, 0u);
  std::vector<std::string> barriers;
  for (const Json& barrier : data["launches"][0]["barriers"]) {
    const Json& array = data["launches"][0]["arrays"][barrier["array"].get<std::size_t>()];
    barriers.push_back(barrier["name"].get<std::string>() + " of " + array.get<std::string>());
  }
  EXPECT_THAT(barriers, testing::ElementsAre("full[0] of full", "full[1] of full",
                                             "empty[0] of empty", "empty[1] of empty"));
  // Every mark of the page's template was filled in.
  EXPECT_THAT(page, Not(ContainsRegex("/\\*[a-z_]+\\*/")));
}

TEST(BreakageTest, MovesAReleaseBeforeTheWaitForItsReaders) {
  const Kernel kernel = kernels::attention_forward_sm90(kernels::with_sm90_blocks({.dim = 128}));
  ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  const auto count = [&](ir::Op op) {
    int found = 0;
    ir::for_each(machine.body, [&](const ir::Operation& each) { found += each.op == op; });
    return found;
  };
  // How many waits stand before the arrivals of each line.
  const auto waits_before = [&] {
    std::map<int, std::vector<int>> of_line;
    int before = 0;
    ir::for_each(machine.body, [&](const ir::Operation& each) {
      before += each.op == ir::Op::wgmma_wait;
      if (each.op == ir::Op::mbarrier_arrive) of_line[each.where.line].push_back(before);
    });
    return of_line;
  };
  const int arrivals = count(ir::Op::mbarrier_arrive), waits = count(ir::Op::wgmma_wait);
  const std::map<int, std::vector<int>> old_lines = waits_before();
  const std::string before = ir::to_text(machine);
  const checks::Breakage breakage = checks::break_kernel(machine, "release");
  EXPECT_THAT(breakage.what, ContainsRegex("mbarrier_arrive (q|k|v|kv)_empty"));
  EXPECT_THAT(breakage.where.file, HasSubstr("attention_sm90_forward.h"));
  EXPECT_EQ(count(ir::Op::mbarrier_arrive), arrivals);
  EXPECT_EQ(count(ir::Op::wgmma_wait), waits);
  EXPECT_NE(ir::to_text(machine), before);
  ir::verify(machine);
  // One line of the source.
  int changed = 0;
  for (const auto& [line, old] : old_lines) changed += waits_before().at(line) != old;
  EXPECT_EQ(changed, 1);
}

TEST(BreakageTest, TakesTheWarpSyncsFromBeforeArrivals) {
  const Kernel kernel = kernels::attention_forward_sm90(kernels::with_sm90_blocks({.dim = 64}));
  ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  const auto syncs = [&] {
    int found = 0;
    ir::for_each(machine.body,
                 [&](const ir::Operation& each) { found += each.op == ir::Op::warp_sync; });
    return found;
  };
  const int before = syncs();
  EXPECT_THAT(checks::break_kernel(machine, "warp_sync").where.file,
              HasSubstr("attention_sm90_forward.h"));
  EXPECT_EQ(syncs(), before - 4);
  ir::verify(machine);
}

TEST(BreakageTest, RefusesWhatItCannotBreak) {
  ir::Kernel kernel =
      ir::parse_text("kernel \"empty\" machine\ngrid (1)\nthreads 32\nbody () {\n}\n", "k.tw");
  const auto message = [&](const std::string& name) -> std::string {
    try {
      checks::break_kernel(kernel, name);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("release"), HasSubstr("nothing to break"));
  EXPECT_THAT(message("warp_sync"), HasSubstr("nothing to break"));
  EXPECT_THAT(message("glass"), HasSubstr("use: release"));
}

}  // namespace
}  // namespace tilewright::explanations
