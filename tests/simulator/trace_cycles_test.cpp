#include <gtest/gtest.h>

#include <cmath>

#include "simulator/litmus.h"
#include "simulator/machine/cycle_costs.h"
#include "simulator/machine/trace_recorder.h"
#include "target/devices.h"
#include "target/target.h"

// The simulator's clock, instruction by instruction: what a target's rates say of each by hand.
namespace tilewright::simulator {
namespace {

const target::Rates& rates() { return target::find_target("sm_90a").rates; }

// From the start of the launch to its end.
std::int64_t end_of(const std::string& text) {
  TraceRecorder recorder(TraceRecorder::Keeps::clocks);
  MachineOptions options;
  options.recorder = &recorder;
  options.timekeeper = &recorder;
  options.check_order = false;
  const MachineReport report = run_litmus(text, options);
  EXPECT_TRUE(report.ok()) << first_message(report);
  return recorder.take().end;
}

// What these instructions of one warp take.
std::int64_t cycles(const std::string& body, LitmusSetup setup = {}) {
  const auto end = [&](const std::string& of) {
    return end_of(litmus(role("a", 0, 1, of), setup));
  };
  return end(body) - end("");
}

const std::string kTile =
    "%0, %0, %16, %16 {sizes = [16, 16], layout = "
    "register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1]}\n";

TEST(Cycles, SharedMemory) {
  EXPECT_EQ(cycles(kStore), rates().issue_scalar);
  EXPECT_EQ(cycles(kLoad), rates().shared_latency);
  const std::int64_t matrices = 512 / rates().shared_bytes;
  EXPECT_EQ(cycles(store_tile()), matrices);
  EXPECT_EQ(cycles(load_tile()), matrices + rates().shared_latency);
}

// What gives a result is waited for.
TEST(Cycles, GlobalMemory) {
  const std::int64_t bytes = 8 * 32 * 2 / rates().l2_port_bytes;  // of a warp's registers
  EXPECT_EQ(cycles("    load_registers %30, %92, " + kTile), bytes + rates().global_latency);
  EXPECT_EQ(cycles("    store_registers %92, %30, " + kTile), bytes);
  EXPECT_EQ(cycles("    %61: i32 = load_index %90, %3\n"), rates().global_latency);
  EXPECT_EQ(cycles("    %61: i32 = atomic_add %90, %3, %1\n"), rates().global_latency);
  EXPECT_EQ(cycles("    store_index %90, %3, %7 {semantics = \"relaxed\"}\n"),
            rates().issue_asynchronous);
}

TEST(Cycles, Arithmetic) {
  const auto function = [](const char* name) {
    return cycles(
        fmt::format("    compute %31, %31 {{function = {}, maps = maps[[1:4:1]]}}\n", name));
  };
  EXPECT_EQ(function("neg"), 4 * rates().issue_float);
  EXPECT_EQ(function("exp2"), 4 * rates().issue_special);
  EXPECT_EQ(function("sin"), 4 * (rates().issue_special + 4 * rates().issue_float));
  EXPECT_EQ(function("erf"), 4 * (rates().issue_special + 16 * rates().issue_float));
  EXPECT_EQ(cycles("    reduce_lanes %31 {function = add, masks = [1, 2, 4]}\n"),
            4 * 3 * (rates().issue_shuffle + rates().issue_float));
}

// Those of bytes take half as long.
TEST(Cycles, Products) {
  PreparedKernel kernel;
  kernel.target = &target::find_target("sm_90a");
  Product product;
  product.n = 128;
  product.k = 16;
  const std::int64_t half = 64 * 128 * 16 / rates().fma;
  EXPECT_EQ(product_cycles(kernel, product), half);
  product.k = 32;
  product.dtype = DType::f8e4m3;
  EXPECT_EQ(product_cycles(kernel, product), half);
}

// What a device was seen to reach. Rows that begin in the middle of a line or a sector take longer,
// and few CTAs get more of L2 each.
TEST(Cycles, CopiesFromL2) {
  const target::Device& device = target::device_of("sm_90a");
  PreparedKernel kernel;
  kernel.target = &target::find_target("sm_90a");
  kernel.ctas = device.multiprocessors;
  TensorMap map;
  map.rank = 2;
  map.strides = {2, 4096 * 2};
  constexpr std::int64_t kBytes = 1 << 20;
  const std::int64_t all = l2_cycles(kernel, map, kBytes);
  const double slower = device.reached.product_clock / device.reached.clock;
  EXPECT_EQ(all, std::llround(kBytes / device.reached.l2_bytes * slower));
  map.strides[1] = 4104 * 2;
  EXPECT_NEAR(l2_cycles(kernel, map, kBytes), (1 + device.reached.longer_in_rows(4104 * 2)) * all,
              1);
  map.strides[1] = 4112 * 2;
  EXPECT_NEAR(l2_cycles(kernel, map, kBytes), (1 + device.reached.longer_in_rows(4112 * 2)) * all,
              1);
  map.strides[1] = 4096 * 2;
  kernel.ctas = 1;
  EXPECT_NEAR(l2_cycles(kernel, map, kBytes), device.reached.l2_idle * all, 1);
}

// A CTA begins where another one has ended, once every multiprocessor has one.
TEST(Cycles, CtasBehindEachOther) {
  const int multiprocessors = target::device_of("sm_90a").multiprocessors;
  const auto grid = [](int ctas) { return end_of(litmus(role("a", 0, 1, kLoad), {.grid = ctas})); };
  const std::int64_t one = grid(1);
  EXPECT_EQ(grid(multiprocessors), one);
  EXPECT_EQ(grid(multiprocessors + 1), 2 * one);
  EXPECT_EQ(grid(2 * multiprocessors), 2 * one);
  EXPECT_EQ(grid(2 * multiprocessors + 1), 3 * one);
}

// The cluster's barrier is passed when the last of all its CTAs has come: the other one goes on
// only then.
TEST(Cycles, AClusterWaitsForItsLastCta) {
  const auto load = [](const char* result) {
    return fmt::format("      {}: i32 = load_index %90, %3\n", result);
  };
  const auto end = [](const std::string& of_first, const std::string& of_second) {
    return end_of(litmus("  %40: i32 = cluster_rank\n  %42: bool = eq %40, %0\n" +
                             role("a", 0, 1,
                                  "    if_then %42 () {\n" + of_first +
                                      "      yield\n    } () {\n      yield\n    }\n"
                                      "    cluster_sync\n"
                                      "    if_then %42 () {\n      yield\n    } () {\n" +
                                      of_second + "      yield\n    }\n"),
                         {1, 32, 2}));
  };
  // But for jumps.
  EXPECT_NEAR(static_cast<double>(end(load("%61"), load("%62")) - end("", "")),
              2.0 * rates().global_latency, 4);
}

// An increase waits for the registers that others give back.
TEST(Cycles, RegistersThatAreGivenBack) {
  const std::string long_way =
      "    %63: i32 = load_index %90, %3\n    %64: i32 = load_index %90, %3\n"
      "    %65: i32 = load_index %90, %3\n";
  const auto late = [&](const std::string& before) {
    return end_of(litmus(
        role("less", 0, 4, before + "    set_max_registers {count = 160, increase = 0}\n") +
            role("more", 4, 4, "    set_max_registers {count = 176, increase = 1}\n" + long_way),
        {1, 384}));
  };
  EXPECT_EQ(late("    %61: i32 = load_index %90, %3\n    %62: i32 = load_index %90, %3\n") -
                late("    %61: i32 = load_index %90, %3\n"),
            rates().global_latency);
}

}  // namespace
}  // namespace tilewright::simulator
