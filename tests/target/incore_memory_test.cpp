#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "incore_products.h"
#include "simulator/machine/machine.h"
#include "target/target.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Tile kernels on cores with explicit memories, and where tensors and their parts lie: blocks that
// loaded numbers place, stores over stores, tensors that share memory.
namespace tilewright::simulator {
namespace {

using Tensors = std::vector<TensorArgument>;

// Each core's report of the kernel.
void report_of_cores(const Kernel& kernel, const std::function<Tensors()>& tensors,
                     const std::function<void(const MachineReport&)>& check) {
  for (const target::Target* target : target::targets()) {
    if (!target->core) continue;
    SCOPED_TRACE(target->name);
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target->name).kernel;
    Arguments arguments;
    arguments.tensors = tensors();
    MachineOptions options;
    options.multiprocessors = 2;
    check(run_machine(machine, arguments, options));
  }
}

// Where two units fill a memory the kernel names one: what loads fills what a tail leaves, in its
// own order. Another one would need an event.
TEST(IncoreMemory, AFillIsOfTheUnitThatIsNamed) {
  for (const std::string unit : {"VMTE2", ""}) {
    Kernel kernel("filled_tail");
    kernel.target("incore");
    const Tensor X = kernel.in("X", f32, {10, 32}), Y = kernel.out("Y", f32, {16, 32});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 32);
    CoreEvent loaded(kernel, "VMTE2", "VMTE3");
    kernel.roles({sequencer("vector", [&](const Index& core) {
      when(core == 0, [&] {
        unit.empty() ? fill(x, 3) : fill(x, 3, unit);
        unit_barrier("VMTE2");
        move(x, X(Block(0, 16, 10), all));
        loaded.set();
        loaded.wait();
        move(Y(all, all), x);
      });
    })});
    HostTensor from = HostTensor::random_normal(f32, {10, 32}, 1);
    HostTensor to = HostTensor::poisoned(f32, {16, 32});
    Arguments arguments;
    arguments.tensors = {given("X", from), given("Y", to)};
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_EQ(report.ok(), !unit.empty());
    if (!report.ok()) {
      EXPECT_EQ(report.faults.front().kind, "race");
      continue;
    }
    for (std::int64_t at = 0; at < to.elements(); ++at) {
      EXPECT_EQ(to.flat(at), at < 10 * 32 ? from.flat(at) : 3) << at;
    }
  }
}

// Sums of the rows between two offsets, as of packed sequences. `pieces`: rows of two axes more
// than a move takes, which go one after the other.
void expect_offsets_checked(bool pieces) {
  Kernel kernel("packed");
  const Dim rows = kernel.dim("rows"), parts = kernel.dim("parts");
  const Tensor X = pieces ? kernel.in("X", f32, {rows, 2, 2, 16}) : kernel.in("X", f32, {rows, 32});
  const Tensor offsets = kernel.in("offsets", i32, {parts + 1});
  const Tensor Y =
      pieces ? kernel.out("Y", f32, {parts, 2, 2, 16}) : kernel.out("Y", f32, {parts, 32});
  const auto [i] = kernel.grid(parts);
  const Index low = load_index(offsets(i)), high = load_index(offsets(i + 1));
  Var sum{pieces ? zeros({1, 2, 2, 16}) : zeros({1, 32})};
  int line = 0;
  for (Index at : range(low, high, 16)) {
    const Block own(at, 16, high);
    line = __LINE__ + 1;
    const Tile x = pieces ? load(X(own, all, all, all)) : load(X(own, all));
    sum = sum + reduce_sum(x, 0);
  }
  pieces ? store(Y(i, all, all, all), Tile(sum).reshape({2, 2, 16}))
         : store(Y(i, all), Tile(sum).reshape({32}));
  struct Case {
    std::vector<double> offsets;
    std::string found;  // none where all is well
  };
  for (const Case& each :
       {Case{{0, 7, 20}, ""}, Case{{0, 0, 20}, ""}, Case{{20, 20, 20}, ""}, Case{{0, 7, 25}, "25"},
        Case{{0, 30, 60}, "30"}, Case{{-5, 3, 20}, "-5"}}) {
    SCOPED_TRACE(testing::PrintToString(each.offsets));
    HostTensor x = pieces ? HostTensor::random_normal(f32, {20, 2, 2, 16}, 1)
                          : HostTensor::random_normal(f32, {20, 32}, 1);
    HostTensor numbers = HostTensor::from_values(i32, {3}, each.offsets);
    HostTensor y =
        pieces ? HostTensor::poisoned(f32, {2, 2, 2, 16}) : HostTensor::poisoned(f32, {2, 32});
    const auto tensors = [&] {
      return Tensors{given("X", x), given("offsets", numbers), given("Y", y)};
    };
    report_of_cores(kernel, tensors, [&](const MachineReport& report) {
      ASSERT_EQ(report.ok(), each.found.empty());
      if (report.ok()) return;
      const Fault& fault = report.faults.front();
      EXPECT_EQ(fault.kind, "out_of_bounds");
      EXPECT_EQ(fault.first.line, line);
      if (!pieces) {
        EXPECT_THAT(fault.message, testing::HasSubstr(each.found));
      }
      EXPECT_THAT(fault.message, testing::HasSubstr("on axis 0 of X"));
    });
  }
}

TEST(IncoreMemory, BlocksThatOffsetsPlaceOutsideAreNamed) { expect_offsets_checked(false); }

TEST(IncoreMemory, RowsThatOffsetsPlaceOutsideAreNamed) { expect_offsets_checked(true); }

// The second store stands, in each turn and behind the loop.
TEST(IncoreMemory, TheLastStoreStands) {
  Kernel kernel("twice");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 24});
  const Tensor Y = kernel.out("Y", f32, {rows, 24}), Z = kernel.out("Z", f32, {24});
  kernel.grid(1);
  for (Block own : blocks(rows, 16)) {
    const Tile x = load(X(own, all));
    store(Y(own, all), x);
    store(Y(own, all), x * 2);
    store(Z(all), reduce_sum(x, 0).reshape({24}));
  }
  HostTensor x = HostTensor::random_normal(f32, {37, 24}, 1);
  HostTensor y = HostTensor::poisoned(f32, {37, 24}), z = HostTensor::poisoned(f32, {24});
  const auto tensors = [&] { return Tensors{given("X", x), given("Y", y), given("Z", z)}; };
  report_of_cores(kernel, tensors, [&](const MachineReport& report) {
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    for (std::int64_t c = 0; c < 24; ++c) {
      double sum = 0;
      for (std::int64_t r = 0; r < 37; ++r) {
        ASSERT_EQ(y.at({r, c}), 2 * x.at({r, c}));
        if (r >= 32) sum += x.at({r, c});
      }
      ASSERT_NEAR(z.at({c}), sum, 1e-5);
    }
  });
}

// Each block of columns beside the one before, as it was loaded.
TEST(IncoreMemory, ALoadedTileIsCarried) {
  Kernel kernel("carried");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns}), Y = kernel.out("Y", f32, {rows, columns});
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(i, 16);
  Var before{zeros({own, 32})};
  for (Index step : range(ceil_div(columns, 32))) {
    const Block part = columns.block(step, 32);
    const Tile x = load(X(own, part));
    store(Y(own, part), x - Tile(before) * 3);
    before = x;
  }
  HostTensor x = HostTensor::random_normal(f32, {21, 128}, 1);
  HostTensor y = HostTensor::poisoned(f32, {21, 128});
  const auto tensors = [&] { return Tensors{given("X", x), given("Y", y)}; };
  report_of_cores(kernel, tensors, [&](const MachineReport& report) {
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    for (std::int64_t r = 0; r < 21; ++r) {
      for (std::int64_t c = 0; c < 128; ++c) {
        const double before = c < 32 ? 0 : x.at({r, c - 32});
        ASSERT_NEAR(y.at({r, c}), x.at({r, c}) - 3 * before, 1e-5) << r << " " << c;
      }
    }
  });
}

// Input and output in one memory: each element may go from its load to its own store.
TEST(IncoreMemory, SharedMemoryIsFollowed) {
  const auto rows_kernel = [](bool reversed) {
    Kernel kernel("rows");
    const Dim rows = kernel.dim("rows"), count = ceil_div(rows, 4);
    const Tensor X = kernel.in("X", f32, {rows, 32}), Y = kernel.out("Y", f32, {rows, 32});
    const auto [i] = kernel.grid(count);
    const Block own = rows.block(i, 4), from = rows.block(reversed ? Index(count) - 1 - i : i, 4);
    store(Y(own, all), load(X(from, all)) * 2);
    return kernel;
  };
  for (const bool reversed : {false, true}) {
    HostTensor x = HostTensor::random_normal(f32, {20, 32}, 1);
    const auto tensors = [&] {
      TensorArgument y = given("Y", x);
      return Tensors{given("X", x), y};
    };
    report_of_cores(rows_kernel(reversed), tensors, [&](const MachineReport& report) {
      ASSERT_EQ(report.ok(), !reversed);
      if (report.ok()) return;
      EXPECT_EQ(report.faults.front().kind, "race");
      EXPECT_THAT(report.faults.front().message, testing::HasSubstr("memory that"));
      EXPECT_THAT(report.faults.front().message, testing::HasSubstr("share"));
    });
  }
}

// Elements of two sizes in one memory, the smaller ones read or written.
TEST(IncoreMemory, SharedMemoryOfOtherDtypesIsFollowed) {
  for (const bool halves : {false, true}) {
    const DType from = halves ? f32 : bf16, to = halves ? bf16 : f32;
    Kernel kernel("halves");
    const Dim rows = kernel.dim("rows");
    const Tensor X = kernel.in("X", from, {rows, 32}), Y = kernel.out("Y", to, {rows, 32});
    const auto [i] = kernel.grid(rows);
    const Block own(i, 1, rows);
    store(Y(own, all), load(X(own, all)).cast(to));
    HostTensor memory = HostTensor::random_normal(bf16, {64, 32}, 1);
    // The second half of an element of four bytes is another block's.
    const auto tensors = [&] {
      TensorArgument x = given("X", memory), y = given("Y", memory);
      x.shape = y.shape = {16, 32};
      x.dtype = from;
      y.dtype = to;
      if (halves) y.data += 31 * 2;
      return Tensors{x, y};
    };
    report_of_cores(kernel, tensors, [&](const MachineReport& report) {
      ASSERT_FALSE(report.ok());
      EXPECT_EQ(report.faults.front().kind, "race");
    });
  }
}

// What a sequencer reads as an index no event orders: in memory that the kernel writes it is a
// fault, whichever of the two comes first.
TEST(IncoreMemory, IndicesOfWrittenMemoryAreNamed) {
  Kernel kernel("listed");
  const Dim rows = kernel.dim("rows");
  const Tensor table = kernel.in("table", i32, {rows}), X = kernel.in("X", i32, {rows, 16});
  const Tensor Y = kernel.out("Y", i32, {rows, 16});
  const auto [i] = kernel.grid(rows);
  const Index page = load_index(table(i));
  store(Y(Block(i, 1, rows), all), load(X(Block(page, 1, rows), all)));
  HostTensor x = HostTensor::zeros(i32, {8, 16});
  // Y begins at row 1 of a memory: the table lies in front, or in a row that is written before it
  // is read, by another core, or in one that is written later.
  for (const std::int64_t first : {0, 15, 16 * 8}) {
    HostTensor memory = HostTensor::zeros(i32, {9, 16});
    const auto tensors = [&] {
      TensorArgument y = given("Y", memory), list = given("table", memory);
      const std::int64_t rows = first == 15 ? 2 : 8;
      TensorArgument from = given("X", x);
      from.shape = {rows, 16};
      y.shape = {rows, 16};
      y.data += 16 * 4;
      list.shape = {rows};
      list.data += first * 4;
      return Tensors{list, from, y};
    };
    report_of_cores(kernel, tensors, [&](const MachineReport& report) {
      ASSERT_EQ(report.ok(), first == 0);
      if (report.ok()) return;
      EXPECT_EQ(report.faults.front().kind, "race");
      EXPECT_THAT(report.faults.front().message, testing::HasSubstr("reads memory of Y that"));
    });
  }
}

// A turn of a loop begins with what the one before has left: two matrices share a place where a
// barrier stands between them, and between one turn and the next.
TEST(IncoreMemory, MatricesOfALoopSharePlacesBehindBarriers) {
  enum class Stands { always, not_again, in_some_turns };  // the barrier behind the second one
  for (const Stands stands : {Stands::always, Stands::not_again, Stands::in_some_turns}) {
    const bool again = stands == Stands::always;
    Kernel kernel("turns");
    kernel.target("incore");
    const Tensor Y = kernel.out("Y", f32, {16, 1});
    kernel.ctas(1);
    CoreMemory x(kernel, "Vec", "x", f32, 16, 2048), y(kernel, "Vec", "y", f32, 16, 2048);
    CoreMemory sum(kernel, "Vec", "sum", f32, 16, 1), all_of(kernel, "Vec", "all", f32, 16, 1);
    CoreEvent made(kernel, "V", "VMTE3");
    kernel.roles({sequencer("vector", [&](const Index& core) {
      when(core == 0, [&] {
        fill(all_of, 0);
        unit_barrier("V");
        for (Index turn : range(3)) {
          for (const CoreMemory* each : {&x, &y}) {
            fill(*each, 1);
            unit_barrier("V");
            reduce(Reduction::add, sum, *each, 1);
            if (each == &x || again) unit_barrier("V");
          }
          if (stands == Stands::in_some_turns) when(turn > 0, [] { unit_barrier("V"); });
          if (again) {
            vector(VectorFunction::add, all_of, {all_of, sum});
            unit_barrier("V");
          }
        }
        made.set();
        made.wait();
        move(Y(all, all), all_of);
      });
    })});
    if (!again) {
      EXPECT_THROW(machine_form(kernel), Error);
      continue;
    }
    HostTensor to = HostTensor::poisoned(f32, {16, 1});
    Arguments arguments;
    arguments.tensors = {given("Y", to)};
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    EXPECT_EQ(to.flat(0), 3 * 2048);
  }
}

}  // namespace
}  // namespace tilewright::simulator
