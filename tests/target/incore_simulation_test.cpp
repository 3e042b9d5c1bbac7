#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "compiler/simulation.h"
#include "incore_products.h"
#include "ir/text.h"
#include "simulator/machine/machine.h"
#include "support/arguments.h"
#include "target/core.h"
#include "target/target.h"
#include "tilewright/host_tensor.h"
#include "tilewright/incore.h"

// Cores with explicit memories, simulated: what is right under every schedule gives the result, and
// what two units do to one place in no order is found.
namespace tilewright::simulator {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(IncoreSimulation, ProductsAreRightUnderEverySchedule) {
  for (const ir::Kernel& machine : explicit_products()) {
    SCOPED_TRACE(machine.target);
    // Tails on every axis, one element, several blocks of a core, an odd number of steps.
    for (const auto& [m, n, k] :
         {std::tuple{70, 50, 100}, {1, 1, 1}, {64, 96, 64}, {33, 49, 130}}) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        Product product(m, n, k);
        const MachineReport report = run_product(machine, product, seed);
        ASSERT_TRUE(report.ok()) << report.faults.front().message;
        EXPECT_TRUE(product.is_right()) << m << " " << n << " " << k << ": " << product.error();
      }
    }
  }
}

TEST(IncoreSimulation, TheTextParsesBack) {
  for (const ir::Kernel& machine : explicit_products()) {
    EXPECT_TRUE(ir::equal(ir::parse_text(ir::to_text(machine), ""), machine));
  }
}

TEST(IncoreSimulation, UnitsWorkBesideEachOther) {
  const ir::Kernel machine = example_product("incore", "cube");
  Product product(128, 96, 512);
  const MachineReport report = run_product(machine, product, 1);
  ASSERT_TRUE(report.ok());
  std::int64_t busy = 0;
  constexpr std::int64_t kCores = 2;
  for (const UnitUse& unit : report.units) {
    std::int64_t parts = 0;
    for (const std::int64_t part : unit.over_time) parts += part;
    EXPECT_EQ(parts, unit.busy) << unit.name;
    EXPECT_LE(unit.busy, report.cycles * unit.instances);
    busy += unit.busy;
  }
  EXPECT_GT(busy, report.cycles * kCores);  // what one after the other could not
  // Whatever the order that the seed draws, the modelled time is the same.
  Product again(128, 96, 512);
  EXPECT_EQ(run_product(machine, again, 2).cycles, report.cycles);
}

// A product whose negative elements become 0: the matrix core hands on what it has stored, and each
// vector core takes its own half of the rows.
Kernel handed_on() {
  Kernel kernel("handed_on");
  kernel.target("incore");
  const Dim m = kernel.dim("m");
  const Tensor A = kernel.in("A", bf16, {m, 64}), B = kernel.in("B", bf16, {48, 64});
  const Tensor T = kernel.out("T", f32, {m, 48}), Y = kernel.out("Y", f32, {m, 48});
  kernel.ctas(1);
  CoreMemory a(kernel, "Mat", "a", bf16, 32, 64), b(kernel, "Mat", "b", bf16, 48, 64);
  CoreMemory left(kernel, "Left", "left", bf16, 32, 64),
      right(kernel, "Right", "right", bf16, 64, 48);
  CoreMemory sums(kernel, "Acc", "sums", f32, 32, 48), x(kernel, "Vec", "x", f32, 16, 48);
  CoreEvent loaded(kernel, "MTE2", "MTE1"), fed(kernel, "MTE1", "M"), summed(kernel, "M", "FIX");
  CoreEvent stored(kernel, "FIX", "VMTE2");  // to both vector cores
  CoreEvent taken(kernel, "VMTE2", "V"), made(kernel, "V", "VMTE3");
  kernel.roles({sequencer("cube",
                          [&] {
                            move(a, A(m.block(0, 32), all));
                            move(b, B(all, all));
                            loaded.set();
                            loaded.wait();
                            move(left, a);
                            move(right, CoreWindow(b).T());
                            fed.set();
                            fed.wait();
                            matmul(sums, left, right, false);
                            summed.set();
                            summed.wait();
                            move(T(m.block(0, 32), all), sums);
                            stored.set();
                          }),
                sequencer("vector", [&](const Index& instance) {
                  stored.wait();
                  move(x, T(m.block(instance, 16), all));
                  taken.set();
                  taken.wait();
                  vector(VectorFunction::maximum, x, {x, 0});
                  made.set();
                  made.wait();
                  move(Y(m.block(instance, 16), all), x);
                })});
  return kernel;
}

Arguments with_results(Product& product, std::vector<float>& t, std::vector<float>& y) {
  Arguments arguments = product.arguments();
  arguments.tensors.pop_back();
  for (const auto& [name, values] : {std::pair{"T", &t}, {"Y", &y}}) {
    arguments.tensors.push_back(
        {name, f32, {27, 48}, {}, reinterpret_cast<std::byte*>(values->data()), {}});
  }
  return arguments;
}

TEST(IncoreSimulation, CoresHandOnThroughGlobalMemory) {
  const ir::Kernel machine = machine_form(handed_on());
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Product product(27, 48, 64);  // the second vector core has fewer rows
    std::vector<float> t(27 * 48, NAN), y(27 * 48, NAN);
    const Arguments arguments = with_results(product, t, y);
    MachineOptions options;
    options.seed = seed;
    const MachineReport report = run_machine(machine, arguments, options);
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    for (std::int64_t i = 0; i < 27; ++i) {
      for (std::int64_t j = 0; j < 48; ++j) {
        double wanted = 0;
        for (std::int64_t d = 0; d < 64; ++d) {
          wanted += product.A.at({i, d}) * product.B.at({j, d});
        }
        EXPECT_NEAR(y[i * 48 + j], std::max(wanted, 0.0), 1e-3);
      }
    }
  }
  // Nobody sets what both wait for; nobody waits either.
  for (const bool waits : {false, true}) {
    ir::Kernel mutant = machine;
    for (const Op op : {Op::event_set, Op::event_wait}) {
      if (op == Op::event_wait && waits) continue;
      EXPECT_TRUE(drop(mutant, 0, [&](const Operation& o) {
        return o.op == op && o.attributes.text(Key::to) == "VMTE2";
      }));
    }
    Product product(27, 48, 64);
    std::vector<float> t(27 * 48, NAN), y(27 * 48, NAN);
    const Arguments arguments = with_results(product, t, y);
    const MachineReport report = run_machine(mutant, arguments, {});
    ASSERT_FALSE(report.ok());
    const std::string& kind = report.faults.front().kind;
    EXPECT_TRUE(waits ? kind == "deadlock" : kind == "race" || kind == "uninitialised") << kind;
  }
}

// Blocks run in no order: what two of them store has no value.
TEST(IncoreSimulation, BlocksThatStoreOneElementAreFound) {
  for (const bool apart : {true, false}) {
    Kernel kernel("stored");
    kernel.target("incore");
    const Dim m = kernel.dim("m");
    const Tensor X = kernel.in("X", f32, {m, 48}), Y = kernel.out("Y", f32, {m, 48});
    kernel.ctas(2);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 48);
    CoreEvent taken(kernel, "VMTE2", "VMTE3");
    kernel.roles({sequencer("vector", [&](const Index& instance) {
      const Block rows = m.block(apart ? cta_index() * 2 + instance : instance, 16);
      move(x, X(rows, all));
      taken.set();
      taken.wait();
      move(Y(rows, all), x);
    })});
    std::vector<float> from(64 * 48, 1.0F), to(64 * 48, NAN);
    Arguments arguments;
    for (const auto& [name, values] : {std::pair{"X", &from}, {"Y", &to}}) {
      arguments.tensors.push_back(
          {name, f32, {64, 48}, {}, reinterpret_cast<std::byte*>(values->data()), {}});
    }
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_EQ(report.ok(), apart);
    if (apart) continue;
    EXPECT_EQ(report.faults.front().kind, "race");
    EXPECT_THAT(report.faults.front().message, HasSubstr("touch one element of Y"));
  }
}

// Y = X[n], one vector core's, in parts of four rows: in each loop one more of where they begin.
// The number of the event is a scalar too.
Kernel taken_apart() {
  Kernel kernel("taken_apart");
  kernel.target("incore");
  const Tensor X = kernel.in("X", f32, {3, 16, 48}), Y = kernel.out("Y", f32, {16, 48});
  const Index n(kernel.scalar("n", i32)), event(kernel.scalar("event", i32));
  kernel.ctas(1);
  CoreMemory x(kernel, "Vec", "x", f32, 16, 48);
  CoreEvent taken(kernel, "VMTE2", "VMTE3");
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    when(instance == 0, [&] {
      move(x, X(n, all, all));
      taken.set(event);
      taken.wait(event);
      for (Index half : range(2)) {
        for (Index part : range(2)) {
          const Index first = half * 8 + part * 4;
          move(Y(Dim(16).block(first / 4, 4), all),
               CoreWindow(x).part(half * 8, 0, 8, 48).part(part * 4, 0, 4, 48));
        }
      }
    });
  })});
  return kernel;
}

TEST(IncoreSimulation, NumbersThatARunSays) {
  const ir::Kernel machine = machine_form(taken_apart());
  std::vector<float> x(4 * 16 * 48), y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const auto run_with = [&](int n, int event) {
    y.assign(16 * 48, NAN);
    Arguments arguments;
    // A fourth one lies behind those that the tensor has.
    arguments.tensors = {{"X", f32, {3, 16, 48}, {}, reinterpret_cast<std::byte*>(x.data()), {}},
                         {"Y", f32, {16, 48}, {}, reinterpret_cast<std::byte*>(y.data()), {}}};
    arguments.scalars = {static_cast<double>(n), static_cast<double>(event)};
    return run_machine(machine, arguments, {});
  };
  const MachineReport report = run_with(2, 0);
  ASSERT_TRUE(report.ok()) << report.faults.front().message;
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[2 * 16 * 48 + i]) << i;
  for (const int n : {-1, 3}) {
    const MachineReport outside = run_with(n, 0);
    ASSERT_FALSE(outside.ok());
    EXPECT_EQ(outside.faults.front().kind, "out_of_bounds");
    EXPECT_THAT(outside.faults.front().message,
                HasSubstr("index " + std::to_string(n) + " on axis 0 of X, whose size is 3"));
    EXPECT_THAT(compiler::diagnostic_of(outside.faults.front()).render(),
                AllOf(HasSubstr("the memory is declared at "), Not(HasSubstr("the other place"))));
  }
  const int ids = target::find_target("incore").core->event("VMTE2", "VMTE3")->ids;
  EXPECT_TRUE(run_with(1, ids - 1).ok());
  for (const int event : {-1, ids}) {
    const MachineReport none = run_with(1, event);
    ASSERT_FALSE(none.ok()) << event;
    EXPECT_EQ(none.faults.front().kind, "out_of_bounds") << none.faults.front().message;
  }
}

// A loop whose end is read, and is nowhere near, or which has none.
TEST(IncoreSimulation, LoopsWithoutAnEndAreToldWithTheirLine) {
  for (const bool issues : {true, false}) {
    Kernel kernel("endless");
    kernel.target("incore_unified");
    const Tensor X = kernel.in("X", f32, {16, 32}), N = kernel.in("N", i32, {1});
    const Tensor Y = kernel.out("Y", f32, {16, 32});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 32);
    kernel.roles({sequencer("core", [&] {
      Cell<Condition> more(true);
      if (issues) {
        for (Index i : range(load_index(N(0)))) {
          (void)i;
          move(x, X(all, all));
        }
      } else {
        repeat_while(more, [&] { more = load_index(N(0)) > 0; });
      }
      move(Y(all, all), x);
    })});
    std::vector<float> from(16 * 32, 1.0F), to(16 * 32, NAN);
    std::vector<std::int32_t> n(1, INT32_MAX);
    Arguments arguments;
    arguments.tensors = {{"X", f32, {16, 32}, {}, reinterpret_cast<std::byte*>(from.data()), {}},
                         {"N", i32, {1}, {}, reinterpret_cast<std::byte*>(n.data()), {}},
                         {"Y", f32, {16, 32}, {}, reinterpret_cast<std::byte*>(to.data()), {}}};
    MachineOptions options;
    options.max_operations = 1000;
    try {
      run_machine(machine_form(kernel), arguments, options);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::result);
      EXPECT_THAT(test::without_source_lines(error.what()), HasSubstr("and does not end"));
      EXPECT_THAT(test::without_source_lines(error.what()),
                  HasSubstr("incore_simulation_test.cpp:"));
    }
  }
}

// Stages, places and depths that the kernel computes are held where they are used.
TEST(IncoreSimulation, ComputedPlacesAreHeld) {
  Kernel kernel("computed");
  kernel.target("incore_unified");
  const Tensor A = kernel.in("A", bf16, {16, 64}), B = kernel.in("B", bf16, {16, 64});
  const Tensor C = kernel.out("C", f32, {16, 16});
  const Index stage(kernel.scalar("stage", i32)), column(kernel.scalar("column", i32)),
      depth(kernel.scalar("depth", i32));
  kernel.ctas(1);
  CoreMemory a(kernel, "Mat", "a", bf16, 16, 64, stages(2)), b(kernel, "Mat", "b", bf16, 16, 64);
  CoreMemory left(kernel, "Left", "left", bf16, 16, 16),
      right(kernel, "Right", "right", bf16, 16, 16);
  CoreMemory sums(kernel, "Acc", "sums", f32, 16, 16);
  CoreEvent loaded(kernel, "MTE2", "MTE1"), fed(kernel, "MTE1", "M"), summed(kernel, "M", "FIX");
  kernel.roles({sequencer("core", [&] {
    move(a[stage], A(all, all));
    move(b, B(all, all));
    loaded.set();
    loaded.wait();
    move(left, a[stage].part(0, column, 16, 16));
    move(right, CoreWindow(b).part(0, column, 16, 16).T());
    fed.set();
    fed.wait();
    matmul(sums, left, right, false, depth);
    summed.set();
    summed.wait();
    move(C(all, all), sums);
  })});
  const ir::Kernel machine = machine_form(kernel);
  HostTensor x = HostTensor::random_normal(bf16, {16, 64}, 1);
  HostTensor y = HostTensor::random_normal(bf16, {16, 64}, 2);
  const auto run_with = [&](double at, double first, double k) {
    HostTensor c = HostTensor::poisoned(f32, {16, 16});
    Arguments arguments;
    for (const auto& [name, tensor] : {std::pair{"A", &x}, {"B", &y}, {"C", &c}}) {
      arguments.tensors.push_back({name,
                                   tensor->dtype(),
                                   tensor->shape(),
                                   {},
                                   static_cast<std::byte*>(tensor->data()),
                                   {}});
    }
    arguments.scalars = {at, first, k};
    return run_machine(machine, arguments, {});
  };
  const MachineReport right_one = run_with(1, 48, 16);
  EXPECT_TRUE(right_one.ok()) << right_one.faults.front().message;
  struct Case {
    double stage, column, depth;
    const char *kind, *says;
  };
  for (const Case& each : {Case{2, 0, 16, "out_of_bounds", "stage 2 of a, which has 2"},
                           {-1, 0, 16, "out_of_bounds", "stage -1 of a"},
                           {0, 56, 16, "out_of_bounds", "columns 56 to 71 of a, which is 16 x 64"},
                           {0, 49, 16, "out_of_bounds", "columns 49 to 64 of a"},
                           {0, -16, 16, "out_of_bounds", "columns -16 to -1 of a"},
                           {0, 8, 16, "misaligned", "row 0, column 8 lies at byte 16 of a"},
                           {0, 0, 17, "out_of_bounds", "k is 17, and the operands have 16"},
                           {0, 0, -1, "out_of_bounds", "k is -1, and the operands have 16"}}) {
    SCOPED_TRACE(each.says);
    const MachineReport report = run_with(each.stage, each.column, each.depth);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.faults.front().kind, each.kind);
    EXPECT_THAT(report.faults.front().message, HasSubstr(each.says));
    EXPECT_GT(report.faults.front().first.line, 0);
    EXPECT_FALSE(report.faults.front().missing.empty());
  }
}

// A unit of 256 bytes a cycle takes a whole one for the 32 bytes that are left.
TEST(IncoreSimulation, WhatIsLeftTakesACycle) {
  Kernel kernel("left_over");
  kernel.target("incore_unified");
  const Tensor Y = kernel.out("Y", f32, {1, 72});
  kernel.ctas(1);
  CoreMemory y(kernel, "Vec", "y", f32, 1, 72);
  CoreEvent made(kernel, "V", "MTE3");
  kernel.roles({sequencer("core", [&] {
    fill(y, 1, "V");
    made.set();
    made.wait();
    move(Y(all, all), y);
  })});
  std::vector<float> to(72, NAN);
  Arguments arguments;
  arguments.tensors = {{"Y", f32, {1, 72}, {}, reinterpret_cast<std::byte*>(to.data()), {}}};
  const MachineReport report = run_machine(machine_form(kernel), arguments, {});
  ASSERT_TRUE(report.ok()) << report.faults.front().message;
  for (const UnitUse& unit : report.units) {
    if (unit.name == "V") {
      EXPECT_EQ(unit.busy, 2);
    }
  }
}

// What a sequencer still has to issue stands behind a queue that is full: with a place less it
// would have come to the set.
TEST(IncoreSimulation, AFullQueueHoldsItsSequencerUp) {
  const int depth = target::find_target("incore_unified").core->unit("V")->depth;
  for (const bool fits : {true, false}) {
    Kernel kernel("full");
    kernel.target("incore_unified");
    const Tensor X = kernel.inout("X", f32, {16, 64});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 64);
    CoreEvent loaded(kernel, "MTE2", "V"), made(kernel, "V", "MTE3");
    kernel.roles({sequencer("core", [&] {
      move(x, X(all, all));
      loaded.wait();
      for ([[maybe_unused]] Index i : range(fits ? depth - 1 : depth)) {
        vector(VectorFunction::add, x, {x, 1});
      }
      loaded.set();
      made.set();
      made.wait();
      move(X(all, all), x);
    })});
    std::vector<float> values(16 * 64, 0.0F);
    Arguments arguments;
    arguments.tensors = {{"X", f32, {16, 64}, {}, reinterpret_cast<std::byte*>(values.data()), {}}};
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_EQ(report.ok(), fits);
    if (fits) {
      EXPECT_EQ(values.front(), static_cast<float>(depth - 1));
      continue;
    }
    EXPECT_EQ(report.faults.front().kind, "deadlock");
    EXPECT_THAT(report.faults.front().message, HasSubstr("core has no room in the queue of V"));
  }
}

// Two memories that share a place: what the one holds the other writes over; and an instruction
// that writes over what it still reads.
TEST(IncoreSimulation, WhatAnotherMemoryHasLeftIsNoResult) {
  for (const bool in_place : {false, true}) {
    Kernel kernel("shared_place");
    kernel.target("incore_unified");
    const Tensor X = kernel.in("X", f32, {16, 64});
    const Tensor Y = kernel.out("Y", in_place ? bf16 : f32, {16, 64});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 64);
    CoreMemory y(kernel, "Vec", "y", in_place ? bf16 : f32, 16, 64);
    CoreEvent loaded(kernel, "MTE2", "V"), made(kernel, "V", "MTE3");
    kernel.roles({sequencer("core", [&] {
      move(x, X(all, all));
      loaded.set();
      loaded.wait();
      if (in_place) {
        vector(VectorFunction::convert, y, {x});
      } else {
        fill(y, 1);
        unit_barrier("V");
        vector(VectorFunction::add, y, {x, 1});
      }
      made.set();
      made.wait();
      move(Y(all, all), y);
    })});
    std::vector<float> from(16 * 64, 1.0F), to(16 * 64, NAN);
    Arguments arguments;
    arguments.tensors = {
        {"X", f32, {16, 64}, {}, reinterpret_cast<std::byte*>(from.data()), {}},
        {"Y", in_place ? bf16 : f32, {16, 64}, {}, reinterpret_cast<std::byte*>(to.data()), {}}};
    ir::Kernel machine = machine_form(kernel);
    ASSERT_TRUE(run_machine(machine, arguments, {}).ok());
    ir::for_each(machine.body, [](Operation& o) {
      if (o.op == Op::memory) o.attributes.set(Key::offset, std::int64_t{0});
    });
    const MachineReport report = run_machine(machine, arguments, {});
    ASSERT_FALSE(report.ok());
    const Fault& fault = report.faults.front();
    EXPECT_EQ(fault.kind, in_place ? "overlap" : "uninitialised");
    EXPECT_THAT(fault.message, HasSubstr(in_place ? "writes y over a part of x, which it reads"
                                                  : "of x (Vec), over which y has been written"));
  }
}

// Operands that begin in the same groups of banks take twice as long, and the report says so; a
// move of less than its way is made for is called short.
TEST(IncoreSimulation, BanksAndShortMovesAreReported) {
  std::int64_t cycles[2] = {};
  for (const bool apart : {false, true}) {
    Kernel kernel("banks");
    kernel.target("incore");
    const Tensor X = kernel.in("X", f32, {64, 64}), Y = kernel.out("Y", f32, {64, 64});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 64, 64),
        between(kernel, "Vec", "between", f32, 1, apart ? 64 : 128);
    CoreMemory y(kernel, "Vec", "y", f32, 64, 64), z(kernel, "Vec", "z", f32, 64, 64);
    CoreEvent loaded(kernel, "VMTE2", "V"), made(kernel, "V", "VMTE3");
    kernel.roles({sequencer("vector", [&](const Index& instance) {
      when(instance == 0, [&] {
        move(x, X(all, all));
        move(y, X(all, all));
        loaded.set();
        loaded.wait();
        vector(VectorFunction::add, z, {x, y});
        unit_barrier("V");
        vector(VectorFunction::multiply, z, {z, 2});
        made.set();
        made.wait();
        for (const int row : {0, 1}) move(Y(row, all), CoreWindow(z).part(row, 0, 1, 64));
      });
    })});
    std::vector<float> from(64 * 64, 1.0F), to(64 * 64, NAN);
    Arguments arguments;
    arguments.tensors = {{"X", f32, {64, 64}, {}, reinterpret_cast<std::byte*>(from.data()), {}},
                         {"Y", f32, {64, 64}, {}, reinterpret_cast<std::byte*>(to.data()), {}}};
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    cycles[apart] = report.cycles;
    for (const UnitUse& unit : report.units) {
      constexpr std::int64_t kSteps = 64 * 64 * 4 / 256;
      if (unit.name == "V") {
        EXPECT_EQ(unit.conflicts, apart ? 0 : kSteps);
        EXPECT_EQ(unit.busy, 2 * kSteps + unit.conflicts);
      }
      EXPECT_EQ(unit.short_moves, unit.name == "VMTE3" ? 2 : 0) << unit.name;
    }
  }
  EXPECT_GT(cycles[false], cycles[true]);
}

// Two groups apart of four are 256 bytes each: a row of 64 numbers, and any of these may meet.
TEST(IncoreSimulation, ConflictsAreOfAllThatIsRead) {
  struct Reads {
    int rows, columns, row, column;  // of the matrix, and where the second operand begins
    std::int64_t conflicts;
  };
  for (const Reads& reads : {Reads{4, 64, 1, 0, 0},
                             {4, 64, 2, 0, 1},
                             {1, 256, 0, 64, 0},
                             {1, 256, 0, 96, 1},
                             {1, 256, 0, 128, 1}}) {
    Kernel kernel("banks");
    kernel.target("incore");
    const Tensor X = kernel.in("X", f32, {reads.rows, reads.columns});
    const Tensor Y = kernel.out("Y", f32, {1, 64});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, reads.rows, reads.columns);
    CoreMemory y(kernel, "Vec", "y", f32, 1, 64);
    CoreEvent loaded(kernel, "VMTE2", "V"), made(kernel, "V", "VMTE3");
    kernel.roles({sequencer("vector", [&](const Index& instance) {
      when(instance == 0, [&] {
        move(x, X(all, all));
        loaded.set();
        loaded.wait();
        vector(
            VectorFunction::add, y,
            {CoreWindow(x).part(0, 0, 1, 64), CoreWindow(x).part(reads.row, reads.column, 1, 64)});
        made.set();
        made.wait();
        move(Y(all, all), y);
      });
    })});
    std::vector<float> from(reads.rows * reads.columns, 1.0F), to(64, NAN);
    Arguments arguments;
    arguments.tensors = {
        {"X", f32, {reads.rows, reads.columns}, {}, reinterpret_cast<std::byte*>(from.data()), {}},
        {"Y", f32, {1, 64}, {}, reinterpret_cast<std::byte*>(to.data()), {}}};
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    for (const UnitUse& unit : report.units) {
      if (unit.name != "V") continue;
      EXPECT_EQ(unit.conflicts, reads.conflicts) << reads.row << " " << reads.column;
    }
  }
}

// Whatever comes first in a run: what is missing is named in the order in which it was written.
TEST(IncoreSimulation, RacesAreToldInTheOrderOfTheProgram) {
  Kernel kernel("late");
  kernel.target("incore_unified");
  const Tensor X = kernel.in("X", f32, {16, 64}), Y = kernel.out("Y", f32, {16, 64});
  kernel.ctas(1);
  CoreMemory x(kernel, "Vec", "x", f32, 16, 64), y(kernel, "Vec", "y", f32, 16, 64);
  CoreEvent made(kernel, "V", "MTE3");
  kernel.roles({sequencer("core", [&] {
    move(x, X(all, all));
    vector(VectorFunction::add, y, {x, 1});
    made.set();
    made.wait();
    move(Y(all, all), y);
  })});
  const ir::Kernel machine = machine_form(kernel);
  std::vector<float> from(16 * 64, 1.0F), to(16 * 64, NAN);
  Arguments arguments;
  arguments.tensors = {{"X", f32, {16, 64}, {}, reinterpret_cast<std::byte*>(from.data()), {}},
                       {"Y", f32, {16, 64}, {}, reinterpret_cast<std::byte*>(to.data()), {}}};
  int races = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    MachineOptions options;
    options.seed = seed;
    for (const Fault& fault : run_machine(machine, arguments, options).faults) {
      if (fault.kind != "race") continue;
      ++races;
      EXPECT_THAT(fault.message, HasSubstr("(V) may read x (Vec) before core_load at "));
      EXPECT_THAT(fault.missing, HasSubstr("an event from MTE2, set behind the first, to V"));
    }
  }
  EXPECT_GT(races, 0);
}

// What has been read is written over by another unit.
TEST(IncoreSimulation, ReadersOfGlobalMemoryAreOverBeforeItIsWritten) {
  for (const bool waits : {true, false}) {
    Kernel kernel("overwritten");
    kernel.target("incore");
    const Tensor X = kernel.inout("X", f32, {16, 48});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 48), y(kernel, "Vec", "y", f32, 16, 48);
    CoreEvent taken(kernel, "VMTE2", "VMTE3"), made(kernel, "V", "VMTE3");
    kernel.roles({sequencer("vector", [&](const Index& instance) {
      when(instance == 0, [&] {
        move(x, X(all, all));
        if (waits) taken.set();
        fill(y, 1);
        made.set();
        made.wait();
        if (waits) taken.wait();
        move(X(all, all), y);
      });
    })});
    std::vector<float> values(16 * 48, 0.0F);
    Arguments arguments;
    arguments.tensors = {{"X", f32, {16, 48}, {}, reinterpret_cast<std::byte*>(values.data()), {}}};
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_EQ(report.ok(), waits);
    if (waits) continue;
    EXPECT_EQ(report.faults.front().kind, "race");
  }
}

}  // namespace
}  // namespace tilewright::simulator
