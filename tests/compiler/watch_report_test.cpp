#include "compiler/watch_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/print.h"
#include "compiler/build.h"
#include "compiler/compile_to_machine.h"
#include "runtime/kernels.h"
#include "runtime/nvrtc_available.h"
#include "runtime/runtime_test.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

// What waits of a kernel that stands still say, and that only watched kernels have them.
namespace tilewright::compiler {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Exchange {
  Exchange() : kernel("exchange") {
    const Tensor X = kernel.in("X", f32, {8, 64, 32});
    const Signals arrived = kernel.signals("arrived", 8);
    const Index turn = kernel.epoch();
    kernel.ctas(2);
    Ring ring(kernel, "x", stages(2), {{f32, 64, 32}});
    kernel.roles({role("load", warps(1), registers(24),
                       [&] {
                         for (Index tile : range(4)) {
                           signal_line = here().line + 1;
                           signal(arrived.at(1 - kernel.rank()), tile, turn);
                           wait_line = here().line + 1;
                           wait_flag(arrived, tile, Compare::ge, turn);
                           ring.produce(
                               [&](const Slot& slot) { tma_load(X(tile, all, all), slot); });
                         }
                       }),
                  role("math", warpgroups(1), registers(128), [&] {
                    for ([[maybe_unused]] Index tile : range(4)) ring.release(ring.consume());
                  })});
  }
  Kernel kernel;
  unsigned signal_line = 0, wait_line = 0;
};

MachineForm form_of(const Kernel& kernel, bool watched) {
  MachineOptions options;
  options.watched = watched;
  return compile_to_machine(kernel.finish(), "sm_90a", options);
}

TEST(Watch, IsNoPartOfAKernelWithoutIt) {
  const Exchange exchange;
  const GpuProgram plain = print(form_of(exchange.kernel, false));
  const GpuProgram watched = print(form_of(exchange.kernel, true));
  EXPECT_THAT(plain.source.text,
              AllOf(Not(HasSubstr("report_wait")), Not(HasSubstr("globaltimer"))));
  EXPECT_THAT(watched.source.text, AllOf(HasSubstr("report_wait"), HasSubstr("globaltimer")));
  // It is what the cache asks, so that neither is taken for the other.
  EXPECT_NE(plain.source.text, watched.source.text);
  EXPECT_FALSE(plain.checked);
  EXPECT_TRUE(watched.checked);  // claims are of what ships
  if (runtime::why_no_nvrtc().empty()) build(watched, "sm_90a");
}

// Reports take registers: products that they leave no room for follow each other, and are right.
TEST(Watch, IsBuiltWhereProductsAreSerialised) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  GpuProgram watched = print(form_of(Exchange().kernel, true));
  watched.source.text = runtime::kWgmmaSource;
  watched.source.text.replace(watched.source.text.find("BETWEEN"), 7, "x[step] = d[0];");
  EXPECT_NO_THROW(build(watched, "sm_90a"));
  watched.checked = false;
  runtime::expect_error(ErrorKind::usage, {"C7514"}, [&] { build(watched, "sm_90a"); });
}

codegen::WatchReport::Wait wait(std::int64_t number, std::int64_t cta, std::int64_t warp,
                                std::int64_t index, std::int64_t value, std::int64_t found,
                                std::int64_t turn) {
  return {1, number, cta, warp, index, value, found, turn, turn};
}

TEST(Watch, SaysWhichWarpWaitsForWhatAndWhoWritesIt) {
  const Exchange exchange;
  const ir::Kernel machine = form_of(exchange.kernel, true).kernel;
  std::int64_t word = -1, full = -1;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (!o.attributes.has(ir::Key::watched)) return;
    const std::int64_t number = o.attributes.integer(ir::Key::watched);
    if (o.op == ir::Op::wait_flag) word = number;
    // The last one is of the role that multiplies.
    if (o.op == ir::Op::mbarrier_wait) full = number;
  });
  codegen::WatchReport report;
  report.nanoseconds = 10'000'000'000;
  report.taken = 2;
  EXPECT_EQ(standstill(report, machine, 1, {}), "");  // nothing is written yet
  std::int64_t first = -1;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::role && o.attributes.text(ir::Key::name) == "math") {
      first = o.attributes.integer(ir::Key::first_warp);
    }
  });
  report.waits[0] = wait(word, 1, 0, 2, 7, 6, 2);
  report.waits[1] = wait(full, 1, first + 3, 1, 0, 0, 2);
  const std::string text = standstill(
      report, machine, 1, [](const std::string& words) { return "\n  and who writes " + words; });
  const std::string line = "watch_report_test.cpp:";
  EXPECT_THAT(text,
              AllOf(HasSubstr("exchange stands still: no wait here ended within 10 s"),
                    HasSubstr("load warp 0 of CTA 1 of rank 1  "),
                    HasSubstr(line + std::to_string(exchange.wait_line)),
                    HasSubstr("waits for arrived[2] >= 7, which is 6 (in turn 2 of its loop)"),
                    HasSubstr("math warp 3 of CTA 1 of rank 1  "),
                    HasSubstr("waits for the barrier x"), HasSubstr("arrived is written at "),
                    HasSubstr(line + std::to_string(exchange.signal_line)),
                    HasSubstr("in exchange itself"), HasSubstr("and who writes arrived")));
  // Of words that several wait for it is said once.
  report.taken = 3;
  report.waits[2] = wait(word, 0, 0, 1, 7, 6, 1);
  const std::string again = standstill(
      report, machine, 1, [](const std::string& words) { return "\n  and who writes " + words; });
  EXPECT_THAT(again, HasSubstr("waits for arrived[1] >= 7"));
  EXPECT_EQ(again.find("and who writes arrived"), again.rfind("and who writes arrived"));
}

TEST(Watch, OfSeveralLoopsTheOutermostAndTheInnermostAreCounted) {
  Kernel kernel("nested");
  const Signals arrived = kernel.signals("arrived", 1);
  const Index turn = kernel.epoch();
  kernel.ctas(1);
  kernel.roles({role("wait", warps(1), registers(24), [&] {
    for ([[maybe_unused]] Index tile : range(4)) {
      for ([[maybe_unused]] Index step : range(3)) wait_flag(arrived, 0, Compare::ge, turn);
    }
  })});
  const ir::Kernel machine = form_of(kernel, true).kernel;
  codegen::WatchReport report;
  report.taken = 1;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op != ir::Op::wait_flag) return;
    report.waits[0] = {1, o.attributes.integer(ir::Key::watched), 0, 0, 0, 1, 0, 3, 2};
  });
  EXPECT_THAT(standstill(report, machine, -1, {}),
              HasSubstr("(in turn 3 of the outermost loop, 2 of the innermost)"));
}

TEST(Watch, MoreWaitsThanThereAreRecords) {
  const ir::Kernel machine = form_of(Exchange().kernel, true).kernel;
  codegen::WatchReport report;
  report.taken = codegen::WatchReport::kWaits + 2;
  for (codegen::WatchReport::Wait& each : report.waits) each = wait(0, 0, 0, 0, 1, 0, 0);
  EXPECT_THAT(standstill(report, machine, -1, {}), HasSubstr("and 2 waits more"));
  report.taken = codegen::WatchReport::kWaits;
  EXPECT_THAT(standstill(report, machine, -1, {}), Not(HasSubstr("more")));
}

TEST(Watch, ItsTimeIsInSeconds) {
  const auto seconds = [](const char* text) {
    const runtime::ScopedVariable variable("TILEWRIGHT_WATCH", text);
    return watch_seconds();
  };
  EXPECT_EQ(seconds("2.5"), 2.5);
  EXPECT_EQ(seconds(""), std::nullopt);
  for (const char* wrong : {"0", "-1", "ten", "1 s", "nan", "1e9"}) {
    EXPECT_THROW(seconds(wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace tilewright::compiler
