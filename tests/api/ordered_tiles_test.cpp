#include "common/ordered_tiles_kernel.h"

#include <gmock/gmock.h>

#include <map>

#include "common/error_text.h"
#include "common/schedules.h"
#include "compiler/compile_to_machine.h"
#include "compiler/compiled.h"
#include "ir/memory_order.h"
#include "simulator/machine/machine.h"
#include "tilewright/program.h"

// Elements of tiles in an order of PTX: what is added and found, and what the order hands on.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(OrderedTiles, AddAndFindWhatWasThereBefore) {
  for (const DType dtype : {i32, u32, i64, f32, f16, bf16}) {
    std::map<int, ir::Kernel> machine;  // by the columns
    for (const int columns : {32, 2, 1}) {
      const Kernel kernel = test::add_in_order(dtype, columns);
      machine[columns] = compiler::compile_to_machine(kernel.finish(), "sm_90a").kernel;
    }
    for (const test::OrderedPlace& place : test::ordered_places()) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << place.columns << " columns of "
                                      << place.width << " from " << place.base);
      for (std::uint64_t seed = 0; seed < 2; ++seed) {
        test::OrderedSums sums(dtype, place);
        simulator::MachineOptions options;
        options.seed = seed;
        const Arguments arguments = compiler::make_arguments(
            machine.at(place.columns), {ref(sums.X), sums.Y(), ref(sums.before)}, {});
        const auto report = simulator::run_machine(machine.at(place.columns), arguments, options);
        ASSERT_TRUE(report.ok()) << report.faults.front().message;
        ASSERT_EQ(sums.mistake(), "");
      }
    }
  }
}

// What several warps hold each of them would add.
TEST(OrderedTiles, ElementsThatSeveralWarpsHoldAreNotAddedByAll) {
  Kernel kernel("adds");
  const Tensor Y = kernel.inout("Y", i32, {32}), Z = kernel.out("Z", i32, {32});
  kernel.ctas(1);
  kernel.roles({role("all", warpgroups(1), registers(64), [&] {
    const Tile lanes = iota({32}, 0);
    store(Z(all), atom_add(Y(all), lanes, {Semantics::relaxed, Scope::gpu}));
  })});
  EXPECT_THAT(
      test::usage_error_of([&] { compiler::compile_to_machine(kernel.finish(), "sm_90a"); }),
      AllOf(HasSubstr("ordered_tiles_test.cpp"),
            HasSubstr("several warps of the role hold the same elements of the tile")));
}

// Integers run over: 2^32 - 1 + 2 is 1, and of i64 the carry goes on.
TEST(OrderedTiles, IntegersRunOver) {
  for (const DType dtype : {i32, u32, i64}) {
    Kernel kernel("run_over");
    const Tensor Y = kernel.inout("Y", dtype, {1});
    kernel.ctas(1);
    kernel.roles({role("add", warps(1), registers(64), [&] {
      red(Y(0), 2, {Semantics::relaxed, Scope::gpu});
    })});
    HostTensor y = HostTensor::zeros(dtype, {1});
    y.set_flat(0, dtype == i32 ? -1 : 4294967295.0);
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "sm_90a").kernel;
    ASSERT_TRUE(
        simulator::run_machine(machine, compiler::make_arguments(machine, {ref(y)}, {}), {}).ok());
    EXPECT_EQ(y.flat(0), dtype == i64 ? 4294967297.0 : 1.0) << name_of(dtype);
  }
}

// How rank 0 says that rank 1's box is full, and how rank 1 looks.
enum class Says { st, red, atom_add };
struct Letter {
  Says says = Says::st;
  MemoryOrder sent{Semantics::release, Scope::system}, seen{Semantics::acquire, Scope::system};
  bool looks = false;  // the wait is relaxed, and a load of the word behind it has the order
};

Kernel post(const Letter& letter) {
  Kernel kernel("post");
  const Tensor X = kernel.in("X", f32, {8, 32}), Y = kernel.out("Y", f32, {8, 32});
  const Tensor box = kernel.symmetric("box", f32, {8, 32});
  const Tensor flag = kernel.symmetric("flag", i32, {1});
  kernel.ctas(1);
  kernel.roles({role("post", warps(1), registers(128), [&] {
    when(kernel.rank() == 0, [&] {
      store(box.at(1)(all, all), load(X(all, all)));
      const TensorView word = flag.at(1)(0);
      if (letter.says == Says::st) st(word, 1, letter.sent);
      if (letter.says == Says::red) red(word, 1, letter.sent);
      if (letter.says == Says::atom_add) atom_add(word, 1, letter.sent);
    });
    when(kernel.rank() == 1, [&] {
      wait_flag(flag(0), Compare::ge, 1,
                letter.looks ? MemoryOrder{Semantics::relaxed, Scope::system} : letter.seen);
      if (letter.looks) ld(flag(0), letter.seen);
      store(Y(all, all), load(box(all, all)));
    });
  })});
  return kernel;
}

struct Post {
  explicit Post(const Letter& letter) : program("post", 2) {
    x = program.buffer("x", f32, {8, 32});
    y = program.buffer("y", f32, {8, 32});
    const Buffer box = program.buffer("box", f32, {8, 32}), flag = program.buffer("flag", i32, {1});
    program.on_each_rank([&](const Rank& rank) {
      rank.stream().launch(post(letter), {x, y, box, flag});
    });
  }
  Program program;
  Buffer x, y;
};

// Whether each of the kernel's accesses in that order has the lanes meet directly before it, or
// behind it: a release or an acquire is each lane's own.
bool lanes_meet(const ir::Block& block, Semantics semantics, int distance) {
  bool all = true;
  for (int i = 0; i < static_cast<int>(block.body.size()); ++i) {
    const ir::Operation& o = block.body[i];
    for (const ir::Block& inner : o.blocks) all = all && lanes_meet(inner, semantics, distance);
    if (ir::info(o.op).family != ir::Family::global_access) continue;
    if (ir::order_of(o).semantics != semantics) continue;
    const int other = i + distance;
    all = all && other >= 0 && other < static_cast<int>(block.body.size()) &&
          block.body[other].op == ir::Op::warp_sync;
  }
  return all;
}

TEST(OrderedTiles, LanesMeetBeforeTheyReleaseAndBehindWhatTheyAcquire) {
  Letter letter;
  letter.looks = true;
  const ir::Kernel machine = compiler::compile_to_machine(post(letter).finish(), "sm_90a").kernel;
  EXPECT_TRUE(lanes_meet(machine.body, Semantics::release, -1));
  EXPECT_TRUE(lanes_meet(machine.body, Semantics::acquire, 1));
  EXPECT_FALSE(lanes_meet(machine.body, Semantics::weak, 1));  // there are others
}

TEST(OrderedTiles, AReleaseHandsOnWhatCameBefore) {
  for (const Says says : {Says::st, Says::red, Says::atom_add}) {
    for (const bool looks : {false, true}) {
      Letter letter{says};
      letter.looks = looks;
      Post post(letter);
      test::expect_clean(post.program, {4, 1}, [&](ProgramMemory& memory) {
        EXPECT_EQ(memory.at(post.y, 1), memory.at(post.x, 0));
      });
    }
  }
}

TEST(OrderedTiles, ARelaxedOneDoesNot) {
  for (const Says says : {Says::st, Says::red, Says::atom_add}) {
    test::expect_fault(
        Post({says, {Semantics::relaxed, Scope::system}}).program, {4, 1}, "race",
        AllOf(HasSubstr("race: global box of rank 1"), HasSubstr("release instead of relaxed")));
  }
  Letter letter;
  letter.looks = true;
  letter.seen.semantics = Semantics::relaxed;
  test::expect_fault(Post(letter).program, {4, 1}, "race", HasSubstr("race: global box of rank 1"));
}

TEST(OrderedTiles, TheScopeHasToHaveTheOtherRank) {
  Letter letter;
  letter.sent.scope = Scope::gpu;
  test::expect_fault(Post(letter).program, {4, 1}, "race",
                     AllOf(HasSubstr("race: global flag of rank 1"), HasSubstr("store_registers")));
}

}  // namespace
}  // namespace tilewright
