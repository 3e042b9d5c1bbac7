#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "codegen/print.h"
#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "ir/text.h"
#include "passes/pipeline.h"
#include "schedules/schedule.h"
#include "simulator/machine/machine.h"
#include "target/target.h"
#include "target/verify.h"
#include "tilewright/asynchronous.h"

// Machines that are records and nothing else: what plans, verifies, allocates and executes follows
// what they say.
namespace tilewright::target {
namespace {

using ir::Family;
using ir::Memory;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return test::without_source_lines(error.what());
  }
  return "no error";
}

// sm_90a with less shared memory.
Target smaller(const std::string& name, std::int64_t shared_bytes) {
  Target target = find_target("sm_90a");
  target.name = name;
  target.limits.shared_bytes = shared_bytes;
  for (Space& space : target.spaces) {
    if (space.memory == Memory::shared) space.bytes = shared_bytes;
  }
  return target;
}

ir::Kernel product() {
  Kernel kernel("product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", f32, {m, n});
  const auto [i, j] = kernel.grid(ceil_div(m, 128), ceil_div(n, 128));
  const Block rows = m.block(i, 128), columns = n.block(j, 128);
  Var sum{zeros({rows, columns})};
  for (Block depth : blocks(k, 64)) {
    sum = sum + dot(load(A(rows, depth)), load(B(columns, depth)).T());
  }
  store(C(rows, columns), sum);
  return kernel.finish();
}

ir::Kernel sums() {
  Kernel kernel("sums");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", f32, {m, 256});
  const Tensor Y = kernel.out("Y", f32, {m, 1});
  const auto [i] = kernel.grid(ceil_div(m, 16));
  const Block rows = m.block(i, 16);
  store(Y(rows, all), reduce_sum(load(X(rows, all)), 1));
  return kernel.finish();
}

ir::Kernel compiled(ir::Kernel kernel, const std::string& target) {
  passes::Rewrites rewrites;
  passes::prepare_for_schedule(kernel, target, {}, rewrites);
  kernel = schedules::schedule_for_target(kernel).kernel;
  passes::lower_to_machine(kernel, {}, rewrites);
  return kernel;
}

std::int64_t stages_of(const ir::Kernel& machine) {
  std::int64_t stages = 0;
  for (const ir::Operation& o : machine.body.body) {
    if (o.op != ir::Op::shared) continue;
    stages = std::max(stages, o.attributes.integer(ir::Key::stages));
  }
  return stages;
}

// What is scarcest decides: registers, shared memory, threads.
TEST(MachinesTest, AMultiprocessorHoldsAsManyCtasAsAllOfItsResourcesAllow) {
  ir::Kernel machine;
  machine.target = "sm_90a";
  machine.threads = 128;
  machine.resident = 8;
  EXPECT_EQ(target::resident_ctas(machine), 8);
  machine.shared_bytes = 80 << 10;
  EXPECT_EQ(target::resident_ctas(machine), 2);
  machine.shared_bytes = 227 << 10;
  EXPECT_EQ(target::resident_ctas(machine), 1);
  machine.shared_bytes = 0;
  machine.threads = 1024;
  machine.resident = 2;
  EXPECT_EQ(target::resident_ctas(machine), 2);
  machine.resident = 1;  // whose threads may take twice as many registers
  EXPECT_EQ(target::resident_ctas(machine), 1);
  machine.threads = 1;  // a warp has all of its lanes
  machine.resident = 64;
  EXPECT_EQ(target::resident_ctas(machine), 64);
  machine.threads = 96;  // 2,048 of them, though there are registers for 28 such CTAs
  machine.resident = 22;
  EXPECT_EQ(target::resident_ctas(machine), 21);
  // Each CTA has 1 KiB of shared memory more than it asks for.
  machine.threads = 128;
  machine.resident = 4;
  machine.shared_bytes = (228 << 10) / 4 - 512;
  EXPECT_EQ(target::resident_ctas(machine), 3);
  machine.shared_bytes -= 512;
  EXPECT_EQ(target::resident_ctas(machine), 4);
}

TEST(MachinesTest, LessSharedMemoryIsPlannedFor) {
  const AddedTarget added(smaller("sm_90a_small", 80 << 10));
  const ir::Kernel usual = compiled(product(), "sm_90a");
  const ir::Kernel small = compiled(product(), "sm_90a_small");
  EXPECT_EQ(small.target, "sm_90a_small");
  EXPECT_EQ(stages_of(usual), 4);
  EXPECT_EQ(stages_of(small), 2);
  EXPECT_LE(small.shared_bytes, 80 << 10);
  EXPECT_GT(usual.shared_bytes, 80 << 10);
  // It is printed and simulated like any other, since its record says how.
  EXPECT_THAT(codegen::print(small).text, HasSubstr("wgmma"));
  EXPECT_THAT(ir::to_text(small), HasSubstr("target \"sm_90a_small\""));
  EXPECT_TRUE(ir::equal(ir::parse_text(ir::to_text(small), ""), small));
}

TEST(MachinesTest, TilesThatDoNotFitNameTheLimitOfTheRecord) {
  const AddedTarget added(smaller("sm_90a_tiny", 20 << 10));
  const std::string message = error_of([] { compiled(product(), "sm_90a_tiny"); });
  EXPECT_THAT(message, HasSubstr("schedule for sm_90a_tiny: tiles of 32768 bytes"));
  EXPECT_THAT(message, HasSubstr("a CTA has 19456 bytes"));
}

TEST(MachinesTest, OtherRecordsAreNotFound) {
  EXPECT_THAT(error_of([] { compiled(product(), "sm_90a_small"); }),
              HasSubstr("there is no target 'sm_90a_small'"));
}

// A core with a buffer of its own, into which tiles are copied and of which they are computed, and
// nothing else: no products, no loads by threads.
Target core(std::int64_t buffer_bytes) {
  Target t;
  t.name = "core";
  t.chips = "a core with explicit memories";
  t.limits = find_target("sm_90a").limits;
  t.limits.shared_bytes = buffer_bytes;
  t.limits.cluster = 1;
  t.limits.threads = 128;
  t.limits.named_barriers = 1;
  t.limits.product_columns = 0;
  t.spaces = {{Memory::global, "the device's memory", "a device", 0},
              {Memory::shared, "the unified buffer", "a core", buffer_bytes},
              {Memory::registers, "vector registers", "a core", 64 << 10}};
  t.moves = {{Memory::global, Memory::shared},
             {Memory::shared, Memory::global},
             {Memory::shared, Memory::registers},
             {Memory::registers, Memory::shared}};
  t.operations = {Family::constant,      Family::control,     Family::place,
                  Family::function,      Family::mbarrier,    Family::cta_barrier,
                  Family::fence,         Family::lane_order,  Family::commit,
                  Family::group_wait,    Family::view,        Family::shared_tile,
                  Family::tile_copy,     Family::tile_access, Family::position,
                  Family::array,         Family::computation, Family::element_access,
                  Family::global_access, Family::bulk_copy,   Family::prefetch};
  t.units = {{"matrix unit", {Family::product}, {}},
             {"copy engine", {Family::bulk_copy}, {}},
             {"vector unit",
              {Family::computation},
              {ir::Pipe::arithmetic, ir::Pipe::integer, ir::Pipe::conversion, ir::Pipe::special,
               ir::Pipe::reduced_special, ir::Pipe::polynomial, ir::Pipe::split_exponent}}};
  t.lowering = {"assign_layouts", "bufferise", "allocate_shared", "simplify_addresses",
                "eliminate_dead_addresses"};
  return t;
}

// Twice a tile: copied in, doubled, copied out.
std::string doubled(const std::string& more = "") {
  return R"(kernel "doubled" scheduled
target "core"
in X: f32[64, 32] = %0
out Y: f32[64, 32] = %1
grid (1)
threads 128
body () {
  %3: shared<f32, 1x64x32> = shared {name = "tile", layout = shared_layout[64x32*4|64@0:128,32@1:4|x3.4.3], stages = 1}
  %4: mbarriers<1> = mbarriers {name = "full", arrivals = 1}
  %5: tensor_map = tensor_map %0 {name = "X", box = [64, 32], swizzle = 128}
  %6: tensor_map = tensor_map %1 {name = "Y", box = [64, 32], swizzle = 128}
  role {name = "all", first_warp = 0, warps = 4, registers = 128} (%7: i32) {
    %8: i32 = constant {value = 0}
    %9: i32 = warp_index
    %10: bool = eq %9, %8
    %11: view<f32, 64x32> = view %3, %8, %8 {column = 0, transposed = 0}
    if_then %10 () {
      elect () {
        mbarrier_expect_tx %4, %8 {bytes = 8192}
        tma_load_tile %5, %11, %4, %8, %8, %8 {cache = 0}
        yield
      }
      yield
    } () {
      yield
    }
    mbarrier_wait %4, %8, %8
    %12: tile<f32, 64x32> = load_tile %11
    %13: tile<f32, 64x32> = add %12, %12
)" + more +
         R"(    store_tile %13, %11
    fence_proxy_async
    cta_sync
    if_then %10 () {
      elect () {
        tma_store_tile %6, %11, %8, %8
        bulk_commit
        bulk_wait {count = 0, read = 0}
        yield
      }
      yield
    } () {
      yield
    }
    yield
  }
}
)";
}

ir::Kernel lowered(const std::string& text) {
  ir::Kernel kernel = ir::parse_text(text, "doubled.tw");
  passes::lower_to_machine(kernel);
  return kernel;
}

TEST(MachinesTest, ACoreWithExplicitMemoriesExecutes) {
  const AddedTarget added(core(64 << 10));
  const ir::Kernel machine = lowered(doubled());
  EXPECT_EQ(machine.form, ir::Form::machine);
  std::vector<float> x(64 * 32), y(64 * 32, -1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) - 40;
  Arguments arguments;
  arguments.tensors = {{"X", f32, {64, 32}, {32, 1}, reinterpret_cast<std::byte*>(x.data())},
                       {"Y", f32, {64, 32}, {32, 1}, reinterpret_cast<std::byte*>(y.data())}};
  const simulator::MachineReport report = simulator::run_machine(machine, arguments, {});
  ASSERT_TRUE(report.ok()) << report.faults.front().message;
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]) << i;
  EXPECT_THAT(error_of([&] { codegen::print(machine); }),
              HasSubstr("core is simulated only: nothing prints its kernels"));
}

TEST(MachinesTest, ItsBufferHasACapacity) {
  const AddedTarget added(core(8 << 10));
  const std::string message = error_of([] { lowered(doubled()); });
  EXPECT_THAT(message,
              HasSubstr("needs 8200 bytes of the unified buffer; a core has 8192 on core"));
  EXPECT_THAT(message, HasSubstr("8192 bytes: tile"));
}

TEST(MachinesTest, TheSimulatorHoldsTheCapacityToo) {
  ir::Kernel machine;
  {
    const AddedTarget added(core(64 << 10));
    machine = lowered(doubled());
  }
  const AddedTarget added(core(8 << 10));
  std::vector<float> x(64 * 32), y(64 * 32);
  Arguments arguments;
  arguments.tensors = {{"X", f32, {64, 32}, {32, 1}, reinterpret_cast<std::byte*>(x.data())},
                       {"Y", f32, {64, 32}, {32, 1}, reinterpret_cast<std::byte*>(y.data())}};
  const simulator::MachineReport report = simulator::run_machine(machine, arguments, {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults.front().kind, "capacity");
  EXPECT_THAT(report.faults.front().message,
              HasSubstr("8200 bytes of the unified buffer, a core has 8192"));
}

TEST(MachinesTest, AnOperationThatItLacksIsRefused) {
  const AddedTarget added(core(64 << 10));
  EXPECT_THAT(error_of([] { lowered(doubled("    named_sync %8 {first = 1, threads = 128}\n")); }),
              HasSubstr("named_sync: core has no such operation"));
}

TEST(MachinesTest, AMoveThatItLacksIsRefused) {
  const AddedTarget added(core(64 << 10));
  const std::string load =
      "    %20: i32 = constant {value = 64}\n"
      "    %21: tile<f32, 64x32> = load %0, %8, %8, %20, %20 {sizes = [64, 32]}\n"
      "    store_tile %21, %11\n";
  EXPECT_THAT(error_of([&] { lowered(doubled(load)); }),
              HasSubstr("core moves nothing from the device's memory to vector registers"));
}

// The same through the public way: one role copies in, another computes and copies out.
Target core_with_roles() {
  Target t = core(64 << 10);
  t.limits.threads = 256;
  t.limits.registers = 32 << 10;
  t.limits.named_barriers = 2;
  t.operations.push_back(Family::named_barrier);
  t.lowering.push_back("order_lanes");  // one lane releases what all have read
  return t;
}

Kernel written_for_core() {
  Kernel kernel("doubled");
  kernel.target("core");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {m, n}), Y = kernel.out("Y", f32, {m, n});
  kernel.ctas(1);
  Ring in(kernel, "in", stages(2), {{f32, 64, 32}});
  SharedTile out(kernel, "out", f32, 64, 32);
  NamedBarrier written(kernel, 128);
  const auto rows = [&](const Index& i) { return m.block(i, 64); };
  kernel.roles({role("copy", warps(1), registers(128),
                     [&] {
                       for (Index i : range(ceil_div(m, 64))) {
                         in.produce(
                             [&](const Slot& slot) { tma_load(X(rows(i), n.block(0, 32)), slot); });
                       }
                     }),
                role("compute", warpgroups(1), registers(128), [&] {
                  for (Index i : range(ceil_div(m, 64))) {
                    const Slot slot = in.consume();
                    const Tile x = load(slot);
                    in.release(slot);
                    store(out, x + x);
                    fence_proxy_async();
                    written.sync();
                    when(warp_index() == 0, [&] {
                      elect([&] {
                        tma_store(Y(rows(i), n.block(0, 32)), out);
                        bulk_commit();
                        bulk_wait_read(0);
                      });
                    });
                    written.sync();
                  }
                })});
  return kernel;
}

TEST(MachinesTest, AnExplicitKernelIsWrittenForIt) {
  const AddedTarget added(core_with_roles());
  const ir::Kernel written = written_for_core().finish();
  EXPECT_EQ(written.target, "core");
  EXPECT_THAT(ir::to_text(written), HasSubstr("target \"core\""));
  const ir::Kernel machine = compiler::compile_to_machine(written, "core").kernel;
  EXPECT_EQ(machine.target, "core");
  const int m = 150;
  std::vector<float> x(m * 32), y(m * 32, -1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) - 40;
  Arguments arguments;
  arguments.tensors = {{"X", f32, {m, 32}, {32, 1}, reinterpret_cast<std::byte*>(x.data())},
                       {"Y", f32, {m, 32}, {32, 1}, reinterpret_cast<std::byte*>(y.data())}};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    simulator::MachineOptions options;
    options.seed = seed;
    const simulator::MachineReport report = simulator::run_machine(machine, arguments, options);
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]) << i;
  }
  // Its own units do the work.
  std::set<std::string> units;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    units.insert(target_of(machine).unit_of(operation).name);
  });
  EXPECT_THAT(units, testing::UnorderedElementsAre("", "copy engine", "vector unit"));
  EXPECT_THAT(error_of([&] { compiler::compile_to_machine(written, "sm_90a"); }),
              HasSubstr("doubled is written for core, and is compiled for sm_90a"));
}

TEST(MachinesTest, OfOneWithLessSharedMemoryToo) {
  const AddedTarget added(smaller("sm_90a_small", 80 << 10));
  const auto copies = [](int stage_count) {
    Kernel kernel("copies");
    kernel.target("sm_90a_small");
    const Tensor X = kernel.in("X", f32, {64, 32});
    kernel.ctas(1);
    Ring ring(kernel, "ring", stages(stage_count), {{f32, 64, 32}});
    kernel.roles(
        {role("load", warps(1), registers(24),
              [&] { ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot); }); }),
         role("read", warpgroups(1), registers(128), [&] { ring.release(ring.consume()); })});
    return compiler::compile_to_machine(kernel.finish(), "sm_90a_small").kernel;
  };
  EXPECT_EQ(copies(4).target, "sm_90a_small");
  EXPECT_THAT(error_of([&] { copies(12); }), HasSubstr("a CTA has 81920"));
}

TEST(MachinesTest, WhatItLacksIsRefusedAtTheLine) {
  const AddedTarget added(core_with_roles());
  const auto refused = [](const std::function<void(Kernel&, const Tensor&)>& body) {
    return error_of([&] {
      Kernel kernel("refused");
      kernel.target("core");
      const Tensor X = kernel.in("X", f32, {64, 32});
      kernel.ctas(1);
      body(kernel, X);
    });
  };
  const auto in_role = [&](const std::function<void(const Tensor&)>& body) {
    return refused([&](Kernel& kernel, const Tensor& X) {
      kernel.roles({role("all", warpgroups(1), registers(128), [&] { body(X); })});
    });
  };
  std::string line = std::to_string(__LINE__ + 1);
  std::string message = in_role([](const Tensor&) { cluster_sync(); });
  EXPECT_THAT(message, HasSubstr("machines_test.cpp:" + line));
  EXPECT_THAT(message, HasSubstr("cluster_sync: core has no such operation"));
  EXPECT_THAT(message, HasSubstr("core is named at"));
  line = std::to_string(__LINE__ + 1);
  message = in_role([](const Tensor& X) { load(X(all, all)); });
  EXPECT_THAT(message, HasSubstr("machines_test.cpp:" + line));
  EXPECT_THAT(message,
              HasSubstr("load: core moves nothing from the device's memory to vector registers"));
  message = refused([](Kernel& kernel, const Tensor&) {
    kernel.roles({role("few", warps(1), registers(24), [] {}),
                  role("many", warpgroups(1), registers(240), [] {})});
  });
  EXPECT_THAT(message, HasSubstr("core gives all threads 128, and lets no role have more"));
  message = refused([](Kernel& kernel, const Tensor&) {
    kernel.roles({role("all", warpgroups(3), registers(40), [] {})});
  });
  EXPECT_THAT(message, HasSubstr("384 threads of 256"));
}

TEST(MachinesTest, TheTargetIsNamedOnceAndFirst) {
  const std::string line = std::to_string(__LINE__ + 1);
  std::string message = error_of([] { Kernel("k").target("sm_80"); });
  EXPECT_THAT(message, HasSubstr("machines_test.cpp:" + line));
  EXPECT_THAT(message, HasSubstr("there is no target 'sm_80'"));
  EXPECT_THAT(message, HasSubstr("use one of: sm_90a"));
  message = error_of([] {
    Kernel kernel("k");
    kernel.target("sm_90a");
    kernel.target("sm_90a");
  });
  EXPECT_THAT(message, HasSubstr("the target of \"k\" is named twice"));
  message = error_of([] {
    Kernel kernel("k");
    kernel.ctas(1);
    kernel.target("sm_90a");
  });
  EXPECT_THAT(message, HasSubstr("\"k\" is written for sm_90a so far"));
  EXPECT_THAT(message, HasSubstr("its first explicit operation stands at"));
  message = error_of([] {
    Kernel kernel("k");
    kernel.target("sm_90a");
    kernel.grid(1);
  });
  EXPECT_THAT(message, HasSubstr("a grid is of the tile level, which has no target"));
}

TEST(MachinesTest, AKernelThatNoScheduleTakesSaysSo) {
  const AddedTarget added(core(64 << 10));
  EXPECT_THAT(error_of([] { compiled(product(), "core"); }),
              HasSubstr("\"product\": core has no schedule for it"));
}

// What records name, the layers have.
TEST(MachinesTest, EveryNameIsKnown) {
  for (const Target* target : targets()) {
    if (target->core) continue;  // incore_simulation_test.cpp
    SCOPED_TRACE(target->name);
    for (const std::string_view schedule : target->schedules) {
      const ir::Kernel machine =
          compiled(schedule == "warpgroups" ? product() : sums(), target->name);
      EXPECT_FALSE(codegen::print(machine).text.empty());
    }
  }
}

}  // namespace
}  // namespace tilewright::target
