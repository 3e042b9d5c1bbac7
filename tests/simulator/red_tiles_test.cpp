#include "simulator/red_tiles_kernel.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "kernels/wgmma_product.h"
#include "passes/pipeline.h"
#include "simulator/machine/machine.h"

// Tiles that are added to memory from registers: what is added, where, and what orders it.
namespace tilewright {
namespace {

using test::Beside;
using ::testing::AllOf;
using ::testing::HasSubstr;

ir::Kernel machine_of(const Kernel& kernel) {
  ir::Kernel machine = kernel.finish();
  passes::lower_to_machine(machine);
  return machine;
}

simulator::MachineReport simulate(const ir::Kernel& machine, const std::vector<TensorRef>& tensors,
                                  std::uint64_t seed) {
  Arguments arguments;
  const std::vector<std::string> names = {"X", "Y", "D", "E", "F"};
  for (const TensorRef& tensor : tensors) {
    arguments.tensors.push_back({names.at(arguments.tensors.size()), tensor.dtype, tensor.shape,
                                 tensor.strides, static_cast<std::byte*>(tensor.data)});
  }
  simulator::MachineOptions options;
  options.seed = seed;
  return simulator::run_machine(machine, arguments, options);
}

std::string first_fault(const simulator::MachineReport& report) {
  return report.ok() ? "" : report.faults.front().kind + ": " + report.faults.front().message;
}

// The first element in which the two differ.
std::string first_difference(const HostTensor& got, const HostTensor& wanted) {
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    if (got.flat(i) == wanted.flat(i)) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(got.flat(i)) + ", not " +
           std::to_string(wanted.flat(i));
  }
  return "";
}

TEST(RedTiles, AddWhatAllWarpsBringAndNothingElsewhere) {
  for (const test::SumPlace& place : test::sum_places()) {
    SCOPED_TRACE(testing::Message()
                 << place.columns << " columns, Y {" << place.rows << ", " << place.width
                 << "} from " << place.base << " by " << place.stride);
    const ir::Kernel machine = machine_of(test::add_tiles(place));
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      test::SumData data(place);
      HostTensor D = HostTensor::zeros(f32, {test::kAddedRows, place.columns});
      EXPECT_EQ(first_fault(simulate(machine, {ref(data.X), data.Y(place), ref(D)}, seed)), "");
      ASSERT_EQ(first_difference(data.memory, data.wanted), "");
    }
  }
}

// Additions are atomic to each other, and to nothing else.
TEST(RedTiles, RaceWithPlainAccesses) {
  const test::SumPlace place{32, 17, 32, 0, 32};
  for (const auto& [beside, other] : {std::pair(Beside::plain_store, "store_registers"),
                                      std::pair(Beside::plain_load, "load_registers")}) {
    SCOPED_TRACE(other);
    const ir::Kernel machine = machine_of(test::add_tiles(place.columns, false, beside));
    test::SumData data(place);
    HostTensor D = HostTensor::zeros(f32, {test::kAddedRows, place.columns});
    const simulator::MachineReport report =
        simulate(machine, {ref(data.X), data.Y(place), ref(D)}, 1);
    ASSERT_FALSE(report.ok());
    const simulator::Fault& fault = report.faults.front();
    EXPECT_EQ(fault.kind, "race") << fault.message;
    EXPECT_THAT(fault.message,
                AllOf(HasSubstr("global Y"), HasSubstr("red_registers"), HasSubstr(other)));
    EXPECT_GT(fault.first.line, 0);
    EXPECT_GT(fault.second.line, 0);
  }
}

constexpr int kDepth = 64;

// Two CTAs add the same product of 64 rows, in the order of its registers.
Kernel add_fragments(int columns) {
  Kernel kernel("add_fragments");
  const Tensor A = kernel.in("A", bf16, {64, kDepth}), B = kernel.in("B", bf16, {columns, kDepth});
  const Tensor sums = kernel.inout("sums", f32, {columns / 2, 128});
  kernel.ctas(2);
  test::multiply_once(kernel, A, B, columns, kDepth, [&](const Tile& product) {
    atomic_add(sums(all, all), fragments(product).reshape({columns / 2, 128}));
  });
  return kernel;
}

Kernel read_fragments(int columns) {
  Kernel kernel("read_fragments");
  const Tensor sums = kernel.in("sums", f32, {columns / 2, 128});
  const Tensor C = kernel.out("C", f32, {64, columns});
  kernel.ctas(1);
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Tile flat = load(sums(all, all)).reshape({64 * columns});
    store(C(all, all), from_fragments(flat, columns));
  })});
  return kernel;
}

TEST(RedTiles, FragmentsLieInTheOrderOfTheRegisters) {
  for (const int columns : {8, 24, 64}) {
    SCOPED_TRACE(columns);
    test::WgmmaData data({bf16, columns, kDepth});
    HostTensor sums = HostTensor::zeros(f32, {columns / 2, 128});
    for (std::int64_t i = 0; i < sums.elements(); ++i) {
      sums.set_flat(i, static_cast<double>(i % 13));
    }
    const HostTensor before = sums;
    ASSERT_EQ(first_fault(simulate(machine_of(add_fragments(columns)),
                                   {ref(data.a), ref(data.b), ref(sums)}, 1)),
              "");
    for (int row = 0; row < 64; ++row) {
      for (int column = 0; column < columns; ++column) {
        const int warp = row / 16, lane = row % 8 * 4 + column % 8 / 2;
        const int number = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
        const int at = (warp * (columns / 8) + number / 4) * 128 + lane * 4 + number % 4;
        const auto element = static_cast<std::size_t>(row * columns + column);
        ASSERT_EQ(sums.flat(at), before.flat(at) + 2 * data.product[element])
            << row << ", " << column;
      }
    }
  }
}

// The next launch reads what two CTAs have added.
TEST(RedTiles, FragmentsComeBackAsTheProduct) {
  for (const int columns : {8, 64}) {
    SCOPED_TRACE(columns);
    test::WgmmaData data({bf16, columns, kDepth});
    HostTensor sums = HostTensor::zeros(f32, {columns / 2, 128});
    ASSERT_EQ(first_fault(simulate(machine_of(add_fragments(columns)),
                                   {ref(data.a), ref(data.b), ref(sums)}, 1)),
              "");
    HostTensor C = HostTensor::poisoned(f32, {64, columns});
    ASSERT_EQ(first_fault(simulate(machine_of(read_fragments(columns)), {ref(sums), ref(C)}, 1)),
              "");
    for (std::int64_t i = 0; i < C.elements(); ++i) {
      ASSERT_EQ(C.flat(i), 2 * data.product[static_cast<std::size_t>(i)]) << i;
    }
  }
}

// Beside a product, what comes from fragments lies as the product does: it can be cut as that can.
TEST(RedTiles, FragmentsBesideAProductAreCutByColumns) {
  constexpr int kColumns = 96, kCut = 64;
  Kernel kernel("cut_fragments");
  const Tensor A = kernel.in("A", bf16, {64, kDepth}), B = kernel.in("B", bf16, {kColumns, kDepth});
  const Tensor sums = kernel.in("sums", f32, {kColumns / 2, 128});
  const Tensor P = kernel.out("P", f32, {64, kColumns}), C = kernel.out("C", f32, {64, kCut});
  kernel.ctas(1);
  test::multiply_once(kernel, A, B, kColumns, kDepth, [&](const Tile& product) {
    store(P(all, all), product);
    const Tile whole = from_fragments(load(sums(all, all)).reshape({64 * kColumns}), kColumns);
    store(C(all, all), whole.slice({0, 0}, {64, kCut}));
  });
  test::WgmmaData data({bf16, kColumns, kDepth});
  HostTensor summed = HostTensor::zeros(f32, {kColumns / 2, 128});
  ASSERT_EQ(first_fault(simulate(machine_of(add_fragments(kColumns)),
                                 {ref(data.a), ref(data.b), ref(summed)}, 1)),
            "");
  HostTensor product = HostTensor::poisoned(f32, {64, kColumns});
  HostTensor cut = HostTensor::poisoned(f32, {64, kCut});
  ASSERT_EQ(
      first_fault(simulate(machine_of(kernel),
                           {ref(data.a), ref(data.b), ref(summed), ref(product), ref(cut)}, 1)),
      "");
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < kCut; ++column) {
      const auto element = static_cast<std::size_t>(row * kColumns + column);
      ASSERT_EQ(cut.flat(row * kCut + column), 2 * data.product[element]) << row << ", " << column;
    }
  }
}

}  // namespace
}  // namespace tilewright
