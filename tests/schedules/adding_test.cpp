#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "compiler/additions.h"
#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "schedules/adding_kernels.h"
#include "simulator/machine/machine.h"
#include "tilewright/check.h"
#include "tilewright/compile.h"
#include "tilewright/program.h"

// Tiles that blocks of the grid add to a tensor, in their order and in any.
namespace tilewright {
namespace {

using test::AddingCase;
using testing::HasSubstr;

class Adding : public testing::TestWithParam<AddingCase> {
 protected:
  // What is added to, afterwards.
  static HostTensor run(Order order, const char* target) {
    std::vector<HostTensor> tensors = GetParam().tensors();
    std::vector<TensorRef> refs;
    for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
    compile(GetParam().kernel(order), target).run(refs);
    return tensors.back();
  }
  static void check(const HostTensor& got) {
    const std::vector<double> wanted = GetParam().wanted(GetParam().tensors());
    double error = 0, size = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double difference = got.flat(static_cast<std::int64_t>(i)) - wanted[i];
      ASSERT_TRUE(std::isfinite(difference)) << "element " << i;
      error += difference * difference;
      size += wanted[i] * wanted[i];
    }
    EXPECT_LE(std::sqrt(error), GetParam().bound * std::sqrt(size));
  }
  static ir::Kernel machine_of(Order order) {
    const ir::Kernel tile = GetParam().kernel(order).finish();
    return compiler::compile_to_machine(tile, ir::default_target()).kernel;
  }
  static std::vector<HostTensor> simulated(Order order, std::uint64_t seeds) {
    std::string fault;
    std::vector<HostTensor> results = simulated(machine_of(order), seeds, fault);
    EXPECT_EQ(fault, "");
    return results;
  }
  // Of each seed, until one finds a fault.
  static std::vector<HostTensor> simulated(const ir::Kernel& machine, std::uint64_t seeds,
                                           std::string& fault) {
    std::vector<HostTensor> results;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      std::vector<HostTensor> tensors = GetParam().tensors();
      Arguments arguments;
      for (HostTensor& tensor : tensors) {
        arguments.tensors.push_back(
            {"", tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
      }
      std::size_t next = 0;
      for (const ir::Parameter& parameter : machine.parameters) {
        if (next < tensors.size()) arguments.tensors[next++].name = parameter.name;
      }
      simulator::MachineOptions options;
      options.seed = seed;
      options.multiprocessors = 1 + static_cast<std::int64_t>(seed * 2);
      options.resident = options.multiprocessors;
      // The second launch finds the word of turns as the first one left it.
      simulator::OwnedMemory owned;
      options.owned = &owned;
      for (std::uint64_t launch = 0; launch < 2; ++launch) {
        options.launch = launch;
        const simulator::MachineReport report = compiler::simulate(machine, arguments, options);
        if (report.ok()) continue;
        fault = report.faults.front().kind + ": " + report.faults.front().message;
        return results;
      }
      results.push_back(tensors.back());
    }
    return results;
  }
};

INSTANTIATE_TEST_SUITE_P(Cases, Adding, testing::ValuesIn(test::adding_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Adding, AgreesWithFloat64) {
  for (const Order order : {Order::blocks, Order::any}) {
    SCOPED_TRACE(order == Order::any ? "any" : "blocks");
    check(run(order, "interpreter"));
    check(run(order, "sim:sm_90a"));
  }
}

TEST_P(Adding, InTheirOrderBlocksGiveTheSameBits) {
  const std::vector<HostTensor> results = simulated(Order::blocks, 4);
  ASSERT_EQ(results.size(), 4u);
  for (const HostTensor& result : results) EXPECT_TRUE(result == results.front());
}

using AddingOrder = Adding;
INSTANTIATE_TEST_SUITE_P(Some, AddingOrder, testing::ValuesIn([] {
                           std::vector<AddingCase> some;
                           for (const AddingCase& each : test::adding_cases()) {
                             if (each.name == "ColumnSums129x200" ||
                                 each.name == "Products129x77x640by128") {
                               some.push_back(each);
                             }
                           }
                           return some;
                         }()),
                         [](const auto& info) { return info.param.name; });

// Else the tests above could not fail.
TEST_P(AddingOrder, InAnyOrderTheyDoNot) {
  const std::vector<HostTensor> results = simulated(Order::any, 4);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_FALSE(results[1] == results[2] && results[2] == results[3]);
}

// Without the last operation of this kind.
ir::Kernel without(ir::Kernel machine, ir::Op op) {
  std::vector<ir::Operation>* last = nullptr;
  ir::for_each(machine.body, [&](ir::Operation& operation) {
    for (ir::Block& block : operation.blocks) {
      for (const ir::Operation& inner : block.body) {
        if (inner.op == op) last = &block.body;
      }
    }
  });
  if (last == nullptr) throw std::runtime_error("there is none");
  for (auto at = last->end(); at-- != last->begin();) {
    if (at->op != op) continue;
    last->erase(at);
    break;
  }
  return machine;
}

// Its blocks hand turns on without a release.
ir::Kernel relaxed(ir::Kernel machine) {
  ir::for_each(machine.body, [](ir::Operation& operation) {
    if (operation.op != ir::Op::atomic_add) return;
    operation.attributes.set(ir::Key::semantics, std::string("relaxed"));
  });
  return machine;
}

TEST_P(AddingOrder, WhatIsLeftOutShows) {
  const ir::Kernel machine = machine_of(Order::blocks);
  // Blocks that do not wait.
  std::string fault;
  simulated(without(machine, ir::Op::wait_flag), 8, fault);
  EXPECT_THAT(fault, testing::StartsWith("race"));
  // Blocks whose additions may become visible behind the turn that they hand on.
  simulated(relaxed(machine), 8, fault);
  EXPECT_THAT(fault, testing::StartsWith("race"));
  // A turn that ends before the block's other warps have had it: the last one sets the word back.
  simulated(without(machine, ir::Op::named_sync), 8, fault);
  EXPECT_THAT(fault, testing::StartsWith("deadlock"));
  // A turn that nobody gets.
  simulated(without(machine, ir::Op::atomic_add), 2, fault);
  EXPECT_THAT(fault, testing::StartsWith("deadlock"));
}

// Sums that begin with what was in memory: not a number, where nobody has written it.
TEST(AddingToNothing, Shows) {
  for (const bool zeroed : {true, false}) {
    Program program("sums");
    const Dim rows = program.dim("rows");
    const Buffer X = program.in("X", f32, {rows, 64}), Y = program.out("Y", f32, {64});
    const Buffer sums =
        zeroed ? program.zeroed("sums", f32, {64}) : program.scratch("sums", f32, {64});
    const Stream stream = program.rank(0).stream();
    stream.launch(test::add_column_sums(Order::blocks), {X, sums});
    Kernel copy("copy");
    const Tensor from = copy.in("from", f32, {64}), to = copy.out("to", f32, {64});
    copy.grid(1);
    store(to(all), load(from(all)));
    stream.launch(copy, {sums, Y});
    HostTensor x = HostTensor::random_normal(f32, {77, 64}, 1);
    HostTensor y = HostTensor::poisoned(f32, {64});
    for (const char* target : {"interpreter", "sim:sm_90a"}) {
      compile(program, target).run({ref(x), ref(y)});
      if (!zeroed) {
        EXPECT_TRUE(std::isnan(y.flat(0))) << target;
        continue;
      }
      for (std::int64_t j = 0; j < 64; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < 77; ++i) sum += x.at({i, j});
        EXPECT_NEAR(y.flat(j), sum, 1e-4);
      }
    }
  }
}

TEST_P(AddingOrder, TheMachineFormSaysWhich) {
  for (const Order order : {Order::blocks, Order::any}) {
    const ir::Kernel machine = machine_of(order);
    const std::vector<compiler::Addition> additions = compiler::additions_in(machine);
    ASSERT_EQ(additions.size(), 1u);
    EXPECT_EQ(additions[0].ordered, order == Order::blocks);
    EXPECT_THAT(additions[0].instruction, HasSubstr("red.global.add"));
  }
}

// One line of a machine form that is read may add both ways.
TEST(AddingBothWays, AreTwoAdditions) {
  Kernel kernel("both_ways");
  const Tensor X = kernel.in("X", f32, {64, 64}), sums = kernel.inout("sums", f32, {64});
  const auto [y] = kernel.grid(4);
  const Tile own = reduce_sum(load(X(Block(16 * y, 16, 16 * y + 16), all)), 0).reshape({64});
  for (int turn = 0; turn < 3; ++turn) add(sums(all), own, Order::any);
  ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "sm_90a").kernel;
  const auto found = [&] {
    std::vector<std::pair<bool, int>> orders;
    for (const compiler::Addition& each : compiler::additions_in(machine)) {
      orders.emplace_back(each.ordered, each.count);
    }
    return orders;
  };
  EXPECT_THAT(found(), testing::ElementsAre(std::pair(false, 3)));
  bool is_first = true;
  ir::for_each(machine.body, [&](ir::Operation& operation) {
    if (operation.op != ir::Op::red_registers) return;
    if (std::exchange(is_first, false)) operation.attributes.set(ir::Key::ordered, true);
  });
  EXPECT_THAT(found(), testing::ElementsAre(std::pair(true, 1), std::pair(false, 2)));
}

}  // namespace
}  // namespace tilewright
