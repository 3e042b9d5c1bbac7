#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"
#include "kernels/execution.h"
#include "passes/pipeline.h"
#include "simulator/machine/machine.h"
#include "tilewright/hopper.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// CTAs of one launch that wait for each other at a word of a workspace.
namespace tilewright {
namespace {

using testing::HasSubstr;

struct Meeting {
  bool waits = true, resets = true, stores = true;
  Semantics arrival = Semantics::release;
  int ctas = 4;
};

// Each CTA leaves its number in scratch memory and stores what the next one has left.
Kernel meeting(const Meeting& how) {
  Kernel kernel("meeting");
  const Tensor Y = kernel.out("Y", f32, {how.ctas * 16, 32});
  const Tensor met = kernel.workspace("met", 1);
  const Tensor left = kernel.scratch("left", how.ctas * 16, 32);
  const auto rows = [&](const Index& cta) { return Dim(how.ctas * 16).block(cta, 16); };
  kernel.ctas(how.ctas);
  kernel.roles({role("math", warps(1), registers(64), [&] {
    const Index own = cta_index(), next = (own + 1) % how.ctas;
    if (how.stores) store(left(rows(own), all), Tile({16, 32}, own).cast(f32));
    warp_sync();
    atomic_add(met(0), 1, {how.arrival, Scope::gpu});
    if (how.waits) {
      wait_flag(met(0), Compare::ge, how.ctas, {Semantics::acquire, Scope::gpu});
    }
    store(Y(rows(own), all), load(left(rows(next), all)));
    const Index before = atomic_add(met(0), 1, {Semantics::relaxed, Scope::gpu});
    if (!how.resets) return;
    when(before == 2 * how.ctas - 1, [&] {
      atomic_add(met(0), -2 * how.ctas, {Semantics::relaxed, Scope::gpu});
    });
  })});
  return kernel;
}

Kernel numbers() {
  Kernel kernel("numbers");
  const Tensor Y = kernel.out("Y", f32, {96, 32});
  kernel.ctas(6);
  kernel.roles({role("math", warps(1), registers(64), [&] {
    store(Y(Dim(96).block(cta_index(), 16), all), Tile({16, 32}, cta_index()).cast(f32));
  })});
  return kernel;
}

simulator::MachineReport run(const Kernel& kernel, test::Padded& y, std::uint64_t seed,
                             std::int64_t multiprocessors = 4) {
  ir::Kernel lowered = kernel.finish();
  passes::lower_to_machine(lowered);
  Arguments arguments;
  arguments.tensors = {y.argument("Y")};
  simulator::MachineOptions options;
  options.seed = seed;
  options.multiprocessors = multiprocessors;
  return simulator::run_machine(lowered, arguments, options);
}

std::string faults_of(const Meeting& how, std::int64_t multiprocessors = 4) {
  std::string text;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    test::Padded y(f32, {how.ctas * 16, 32});
    for (const auto& fault : run(meeting(how), y, seed, multiprocessors).faults) {
      text += fault.kind + ": " + fault.message + "\n" + fault.missing + "\n";
    }
  }
  return text;
}

TEST(MeetingTest, EachCtaReadsWhatAnotherHasLeft) {
  EXPECT_EQ(faults_of({}), "");
  test::Padded y(f32, {64, 32});
  ASSERT_TRUE(run(meeting({}), y, 3).ok());
  y.each([&](const auto& at) { EXPECT_EQ(y.at(at), static_cast<double>((at[0] / 16 + 1) % 4)); });
  EXPECT_EQ(y.written_outside(), 0);
}

TEST(MeetingTest, WithoutWaitingOrReleaseItIsARace) {
  EXPECT_THAT(faults_of({.waits = false}), HasSubstr("race: global left"));
  EXPECT_THAT(faults_of({.arrival = Semantics::relaxed}), HasSubstr("race: global left"));
}

TEST(MeetingTest, TheWordIsLeftZero) {
  EXPECT_THAT(faults_of({.resets = false}), HasSubstr("workspace met[0] is 8 after the launch"));
}

// The one that has no place waits for the others to end, which wait for it. Registers leave a
// multiprocessor room for eight.
TEST(MeetingTest, MoreCtasThanRunAtOnceWaitForever) {
  EXPECT_EQ(faults_of({.ctas = 9}, 2), "");
  EXPECT_THAT(faults_of({.ctas = 9}, 1), HasSubstr("deadlock"));
}

TEST(MeetingTest, WordsThatACallerPassesAreMetAtToo) {
  Kernel kernel("passed");
  const Tensor met = kernel.inout("met", i32, {1});
  kernel.ctas(4);
  kernel.roles({role("math", warps(1), registers(64), [&] {
    atomic_add(met(0), 1, {Semantics::release, Scope::gpu});
    wait_flag(met(0), Compare::ge, 4, {Semantics::acquire, Scope::gpu});
  })});
  test::Padded words(i32, {1});
  words.set({0}, 0);
  ir::Kernel lowered = kernel.finish();
  passes::lower_to_machine(lowered);
  Arguments arguments;
  arguments.tensors = {words.argument("met")};
  simulator::MachineOptions options;
  options.multiprocessors = 4;
  EXPECT_TRUE(simulator::run_machine(lowered, arguments, options).ok());
  EXPECT_EQ(words.at({0}), 4);
}

TEST(MeetingTest, ScratchMemoryHoldsNothing) {
  test::Padded y(f32, {64, 32});
  ASSERT_TRUE(run(meeting({.stores = false}), y, 1).ok());
  y.each([&](const auto& at) { EXPECT_TRUE(std::isnan(y.at(at))); });
}

TEST(MeetingTest, StreamsOfAProgramHaveScratchMemoryOfTheirOwn) {
  Program program("meets");
  // Its CTAs end one after the other, and leave their places to both.
  program.rank(0).stream("before").launch(numbers(), {program.buffer("y", f32, {96, 32})});
  for (const char* name : {"one", "other"}) {
    const Buffer y = program.buffer(name, f32, {64, 32});
    const Stream stream = program.rank(0).stream(name);
    for (int launch = 0; launch < 2; ++launch) stream.launch(meeting({}), {y});
  }
  // Either has all of its CTAs' places, or waits for the other to end.
  SimulationOptions options;
  options.multiprocessors = 6;
  options.schedules = 40;
  const SimulationReport report = simulate(program, options);
  for (const auto& fault : report.faults) ADD_FAILURE() << fault.kind << ": " << fault.text;
}

TEST(MeetingTest, TheTextNamesScratchMemory) {
  const ir::Kernel traced = meeting({}).finish();
  const std::string text = ir::to_text(traced);
  EXPECT_THAT(text, HasSubstr("scratch left: f32[64, 32]"));
  EXPECT_EQ(ir::to_text(ir::parse_text(text, "meeting.tw")), text);
}

}  // namespace
}  // namespace tilewright
