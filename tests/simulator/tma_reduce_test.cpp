#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ir/text.h"
#include "passes/pipeline.h"
#include "simulator/faults/fault_kinds.h"
#include "simulator/machine/machine.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// TMA's reduction to global memory: what it computes, in any order, and what orders it.
namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRows = 64, kColumns = 64, kCtas = 3;

// What a kernel leaves out, or does beside its reductions.
enum class Mistake { none, fence, read_wait, plain_load, plain_store, tma_store };

// Every CTA adds its 64 rows of X to Y, or takes the smaller or larger elements.
Kernel accumulate(DType dtype, Reduction how, int columns, Mistake mistake = Mistake::none) {
  Kernel kernel("accumulate");
  const Tensor X = kernel.in("X", dtype, {kCtas * kRows, columns});
  const Tensor Y = kernel.inout("Y", dtype, {kRows, columns});
  const Tensor D = kernel.out("D", dtype, {kCtas * kRows, columns});
  kernel.ctas(kCtas);
  const SharedTile staging(kernel, "staging", dtype, kRows, columns);
  NamedBarrier written(kernel, 128);
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Block own = Dim(kCtas * kRows).block(cta_index(), kRows);
    const Tile tile = load(X(own, all));
    store(staging, tile);
    if (mistake != Mistake::fence) fence_proxy_async();
    written.sync();
    when(warp_index() == 0, [&] {
      tma_reduce(Y(all, all), staging, how);
      bulk_commit();
      if (mistake != Mistake::read_wait) bulk_wait_read(0);
      warp_sync();
    });
    written.sync();
    // The staging buffer is used again.
    store(staging, tile + tile);
    fence_proxy_async();
    written.sync();
    when(warp_index() == 0, [&] {
      if (mistake == Mistake::tma_store) {
        tma_store(Y(all, all), staging);
      } else {
        tma_store(D(own, all), staging);
      }
      bulk_commit();
      bulk_wait(0);
    });
    when(cta_index() == 1, [&] {
      if (mistake == Mistake::plain_store) store(Y(all, all), tile);
      if (mistake == Mistake::plain_load) store(D(own, all), load(Y(all, all)));
    });
  })});
  return kernel;
}

ir::Kernel lowered(const Kernel& kernel) {
  ir::Kernel machine = kernel.finish();
  passes::lower_to_machine(machine);
  return machine;
}

struct Execution {
  simulator::MachineReport report;
  HostTensor X, before, Y;
};

Execution execute(const ir::Kernel& machine, std::uint64_t seed, HostTensor X, HostTensor Y) {
  Execution run{{}, std::move(X), Y, std::move(Y)};
  HostTensor D = HostTensor::zeros(run.X.dtype(), run.X.shape());
  Arguments arguments;
  const char* names[] = {"X", "Y", "D"};
  HostTensor* tensors[] = {&run.X, &run.Y, &D};
  for (int i = 0; i < 3; ++i) {
    HostTensor& tensor = *tensors[i];
    arguments.tensors.push_back(
        {names[i], tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
  }
  simulator::MachineOptions options;
  options.seed = seed;
  run.report = simulator::run_machine(machine, arguments, options);
  return run;
}

HostTensor numbers(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
  if (is_float(dtype)) return HostTensor::random_normal(dtype, std::move(shape), seed);
  HostTensor made = HostTensor::zeros(dtype, std::move(shape));
  for (std::int64_t i = 0; i < made.elements(); ++i) {
    made.set_flat(
        i, static_cast<double>((i * 7919 + static_cast<std::int64_t>(seed) * 31) % 2001 - 1000));
  }
  return made;
}

Execution execute(const ir::Kernel& machine, DType dtype, int columns, std::uint64_t seed) {
  return execute(machine, seed, numbers(dtype, {kCtas * kRows, columns}, 1),
                 numbers(dtype, {kRows, columns}, 2));
}

double combined(Reduction how, double a, double b) {
  switch (how) {
    case Reduction::add:
      return a + b;
    case Reduction::min:
      return std::fmin(a, b);
    case Reduction::max:
      return std::fmax(a, b);
  }
  return a;
}

void expect_result(const Execution& run, Reduction how, int columns, double unit) {
  ASSERT_TRUE(run.report.ok()) << run.report.faults.front().message;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double wanted = run.before.at({row, column}), magnitude = std::abs(wanted);
      for (std::int64_t cta = 0; cta < kCtas; ++cta) {
        const double x = run.X.at({cta * kRows + row, column});
        wanted = combined(how, wanted, x);
        magnitude += std::abs(x);
      }
      ASSERT_NEAR(run.Y.at({row, column}), wanted,
                  how == Reduction::add ? kCtas * unit * magnitude : 0)
          << row << ", " << column;
    }
  }
}

struct Case {
  DType dtype;
  Reduction how;
  int columns;
  double unit;  // of rounding
};

TEST(TmaReduce, CombinesWhatAllCtasBring) {
  // 64 columns of f32 are two panels with a swizzle of 128 bytes; 4 of them have none.
  const Case cases[] = {{f32, Reduction::add, 64, 0x1p-24}, {f32, Reduction::add, 4, 0x1p-24},
                        {f32, Reduction::add, 32, 0x1p-24}, {f16, Reduction::add, 64, 0x1p-11},
                        {bf16, Reduction::add, 64, 0x1p-8}, {i32, Reduction::add, 32, 0},
                        {f16, Reduction::min, 64, 0},       {bf16, Reduction::max, 64, 0},
                        {i32, Reduction::min, 32, 0},       {i32, Reduction::max, 32, 0}};
  for (const Case& each : cases) {
    SCOPED_TRACE(std::string(name_of(each.dtype)) + " " + std::to_string(each.columns));
    const ir::Kernel machine = lowered(accumulate(each.dtype, each.how, each.columns));
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      expect_result(execute(machine, each.dtype, each.columns, seed), each.how, each.columns,
                    each.unit);
    }
  }
}

TEST(TmaReduce, PassesNaNOver) {
  const ir::Kernel machine = lowered(accumulate(bf16, Reduction::max, kColumns));
  HostTensor X = numbers(bf16, {kCtas * kRows, kColumns}, 1),
             Y = numbers(bf16, {kRows, kColumns}, 2);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  X.set({kRows + 3, 5}, kNaN);
  Y.set({7, 9}, kNaN);
  const Execution run = execute(machine, 1, std::move(X), std::move(Y));
  expect_result(run, Reduction::max, kColumns, 0);
  EXPECT_FALSE(std::isnan(run.Y.at({3, 5})));
  EXPECT_FALSE(std::isnan(run.Y.at({7, 9})));
}

TEST(TmaReduce, SurvivesItsText) {
  for (const ir::Kernel& kernel : {accumulate(f32, Reduction::add, kColumns).finish(),
                                   lowered(accumulate(f16, Reduction::min, kColumns))}) {
    const std::string text = ir::to_text(kernel);
    EXPECT_THAT(text, AnyOf(HasSubstr("tma_reduce_tile"), HasSubstr("{function = min, step = 0}")));
    EXPECT_EQ(ir::to_text(ir::parse_text(text, "again.tw")), text);
  }
}

// The first fault of some schedules.
simulator::Fault fault_of(const ir::Kernel& machine) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Execution run = execute(machine, f32, kColumns, seed);
    if (!run.report.ok()) return run.report.faults.front();
  }
  return {};
}

simulator::Fault fault_of(Mistake mistake) {
  return fault_of(lowered(accumulate(f32, Reduction::add, kColumns, mistake)));
}

TEST(TmaReduce, IsOrderedByFencesWaitsAndNothingElse) {
  EXPECT_EQ(fault_of(Mistake::none).kind, "") << fault_of(Mistake::none).message;
  const simulator::Fault unfenced = fault_of(Mistake::fence);
  EXPECT_EQ(unfenced.kind, "proxy") << unfenced.message;
  EXPECT_THAT(unfenced.message, HasSubstr("read   tma_reduce"));
  EXPECT_THAT(unfenced.missing, HasSubstr("fence_proxy_async"));
  const simulator::Fault reused = fault_of(Mistake::read_wait);
  EXPECT_EQ(reused.kind, "race") << reused.message;
  EXPECT_THAT(reused.message,
              AllOf(HasSubstr("read   tma_reduce"), HasSubstr("write  store_elements")));
  EXPECT_THAT(reused.missing, HasSubstr("bulk_wait {count, read = 1}"));
}

// Reductions of one element are atomic to each other, and to nothing else.
TEST(TmaReduce, RacesWithPlainAccesses) {
  for (const auto& [mistake, other] : {std::pair(Mistake::plain_load, "load_registers"),
                                       std::pair(Mistake::plain_store, "store_registers"),
                                       std::pair(Mistake::tma_store, "tma_store")}) {
    const simulator::Fault fault = fault_of(mistake);
    EXPECT_EQ(fault.kind, "race") << fault.message;
    EXPECT_THAT(fault.message,
                AllOf(HasSubstr("global Y"), HasSubstr("tma_reduce"), HasSubstr(other)));
    EXPECT_GT(fault.first.line, 0);
    EXPECT_GT(fault.second.line, 0);
  }
}

// Faults that are seeded into any kernel with copies out of shared memory.
TEST(TmaReduce, SeededFaultsAreFound) {
  const ir::Kernel machine = lowered(accumulate(f32, Reduction::add, kColumns));
  int found = 0;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (const simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
      if (!mutant.equivalent.empty() ||
          (mutant.operation != "fence_proxy_async" && mutant.operation != "bulk_wait"))
        continue;
      ++found;
      EXPECT_NE(fault_of(mutant.apply(machine)).kind, "") << kind.name << ": " << mutant.change;
    }
  }
  EXPECT_GE(found, 3);
}

}  // namespace
}  // namespace tilewright
