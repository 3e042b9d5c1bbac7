#include <gtest/gtest.h>

#include <array>

#include "codegen/print.h"
#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "kernels/execution.h"
#include "kernels/expect_no_stack.h"
#include "kernels/library_case.h"
#include "kernels/products.h"
#include "runtime/nvrtc_available.h"
#include "simulator/faults/fault_kinds.h"
#include "target/target.h"
#include "tilewright/blackwell.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/gemm.h"

// gemm for sm_100a, on the virtual GPU and up to its cubin. No such GPU has run it.
namespace tilewright::kernels {
namespace {

using test::Padded;
using test::products;

ir::Kernel machine_of(const Kernel& kernel, std::string_view target = "sm_100a") {
  return compiler::compile_to_machine(kernel.finish(), target).kernel;
}

struct ProductSizes {
  std::int64_t m, n, k;
};

void check(const ir::Kernel& machine, const ProductSizes& sizes,
           simulator::MachineOptions options = {}) {
  SCOPED_TRACE(testing::Message() << sizes.m << " x " << sizes.n << " x " << sizes.k << ", seed "
                                  << options.seed);
  Padded a = Padded::normal(bf16, {sizes.m, sizes.k}, 1),
         b = Padded::normal(bf16, {sizes.n, sizes.k}, 2), c(bf16, {sizes.m, sizes.n});
  Arguments arguments;
  arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
  const simulator::MachineReport report = simulator::run_machine(machine, arguments, options);
  ASSERT_TRUE(report.ok()) << report.faults[0].message << "\n" << report.faults[0].missing;
  EXPECT_LT(test::relative_error(c, products(a, b)), test::kTolerance);
  EXPECT_EQ(c.written_outside(), 0);
}

Gemm narrow() {
  Gemm g;
  g.block_n = 64;
  return g;
}

// All of A and B into a stage.
RoleSpec loads_all(Ring& ring, const Tensor& a, const Tensor& b) {
  return role("load", warps(1), registers(64), [&ring, &a, &b] {
    ring.produce([&](const Slot& slot) {
      tma_load(a(all, all), slot[0]);
      tma_load(b(all, all), slot[1]);
    });
  });
}

// C of a run of a kernel of A B^T is right.
void check_small(const Kernel& kernel, std::array<std::int64_t, 3> sizes) {
  const auto [m, n, k] = sizes;
  Padded a = Padded::normal(bf16, {m, k}, 1), b = Padded::normal(bf16, {n, k}, 2), c(f32, {m, n});
  Arguments arguments;
  arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
  const simulator::MachineReport report = simulator::run_machine(machine_of(kernel), arguments, {});
  ASSERT_TRUE(report.ok()) << report.faults[0].message << "\n" << report.faults[0].missing;
  EXPECT_LT(test::relative_error(c, products(a, b)), test::kTolerance);
}

// Operands that begin inside of the tiles that were copied: the halves of a depth of two panels.
TEST(GemmSm100Test, PartsOfTheDepthOfOperands) {
  constexpr int kRows = 128, kColumns = 64, kDepth = 128, kHalf = 64, kThreads = 32 + 128;
  Kernel kernel("halves");
  kernel.target("sm_100a");
  const Tensor A = kernel.in("A", bf16, {kRows, kDepth}),
               B = kernel.in("B", bf16, {kColumns, kDepth});
  const Tensor C = kernel.out("C", f32, {kRows, kColumns});
  kernel.ctas(1);
  Ring ring(kernel, "ab", stages(1), {{bf16, kRows, kDepth}, {bf16, kColumns, kDepth}});
  Ring sums(kernel, "sums", stages(1), {});
  const TensorMemory memory(kernel, "tensor_memory", kColumns);
  NamedBarrier allocated(kernel, kThreads), stored(kernel, kThreads);
  kernel.roles({loads_all(ring, A, B),
                role("multiply", warps(1), registers(64),
                     [&] {
                       memory.allocate();
                       allocated.sync();
                       const TensorColumns to = memory.attach();
                       const Slot sum = sums.reserve();
                       const Slot slot = ring.consume();
                       for (const int at : {kHalf, 0}) {
                         mma(to, slot[0].columns(at, kHalf), slot[1].columns(at, kHalf).T(),
                             Index(at) == 0);
                       }
                       ring.release_behind_products(slot);
                       sums.commit(sum);
                       relinquish_tensor_memory();
                       stored.sync();
                       memory.free();
                     }),
                role("store", warpgroups(1), registers(200), [&] {
                  allocated.sync();
                  const TensorColumns from = memory.attach();
                  const Slot sum = sums.consume();
                  const Tile tile = load(from);
                  sums.release(sum);
                  store(C(all, all), tile);
                  stored.sync();
                })});
  check_small(kernel, {kRows, kColumns, kDepth});
}

// activation(A B^T + bias) + residual, and what the activation was given.
TEST(GemmSm100Test, WhatFollowsTheSums) {
  Gemm g = narrow();
  g.bias = g.residual = g.keep_sums = true;
  g.activation = Activation::relu;
  constexpr std::int64_t kM = 130, kN = 72, kK = 40;
  Padded a = Padded::normal(bf16, {kM, kK}, 1), b = Padded::normal(bf16, {kN, kK}, 2),
         bias = Padded::normal(bf16, {kN}, 3), residual = Padded::normal(bf16, {kM, kN}, 4),
         c(bf16, {kM, kN}), z(bf16, {kM, kN});
  Arguments arguments;
  arguments.tensors = {a.argument("A"),       b.argument("B"),
                       bias.argument("bias"), residual.argument("residual"),
                       c.argument("C"),       z.argument("Z")};
  const simulator::MachineReport report =
      simulator::run_machine(machine_of(gemm_sm100(g)), arguments, {});
  ASSERT_TRUE(report.ok()) << report.faults[0].message << "\n" << report.faults[0].missing;
  std::vector<double> sums = products(a, b), results;
  for (std::int64_t i = 0; i < kM * kN; ++i) {
    sums[i] += bias.at({i % kN});
    results.push_back(std::max(sums[i], 0.0) + residual.at({i / kN, i % kN}));
  }
  EXPECT_LT(test::relative_error(z, sums), test::kTolerance);
  EXPECT_LT(test::relative_error(c, results), test::kTolerance);
}

// In narrower tiles, which a rule of the library takes for few of them.
TEST(GemmSm100Test, TilesOfFewerColumns) {
  for (const char* schedule :
       {"schedule=sm100_128", "schedule=sm100_64", "schedule=sm100_pairs_128"}) {
    test::expect_right({"gemm", {schedule, "m=130", "n=200", "k=72"}}, "sim:sm_100a");
  }
}

// Operands of 8 bits, whose products take twice as many of them, and one factor of all sums.
TEST(GemmSm100Test, OperandsOfEightBits) {
  for (const char* schedule :
       {"schedule=sm100", "schedule=sm100_pairs", "schedule=sm100_one_tile"}) {
    test::expect_right({"gemm_fp8", {schedule, "m=130", "n=72", "k=144"}}, "sim:sm_100a");
  }
}

class GemmSm100 : public testing::TestWithParam<GemmRoles> {};
INSTANTIATE_TEST_SUITE_P(Roles, GemmSm100,
                         testing::Values(GemmRoles::one_tile, GemmRoles::persistent,
                                         GemmRoles::pairs, GemmRoles::handed_out),
                         [](const auto& info) {
                           switch (info.param) {
                             case GemmRoles::one_tile:
                               return "OneTile";
                             case GemmRoles::persistent:
                               return "Persistent";
                             case GemmRoles::pairs:
                               return "Pairs";
                             case GemmRoles::handed_out:
                               return "HandedOut";
                           }
                           return "";
                         });

// CTAs that have a tile together.
int ctas_of(GemmRoles roles) {
  return roles == GemmRoles::pairs || roles == GemmRoles::handed_out ? 2 : 1;
}

TEST_P(GemmSm100, OfAllLengths) {
  const ir::Kernel machine = machine_of(gemm_sm100(narrow(), GetParam()));
  simulator::MachineOptions options;
  options.multiprocessors = 2;
  check(machine, {100, 72, 24}, options);
  check(machine, {129, 136, 200}, options);
  check(machine, {1, 8, 8}, options);
  check(machine, {0, 64, 64}, options);
  check(machine, {136, 72, 0}, options);
  // Several tiles of a CTA, each in several parts: whoever gives back what is not read yet is seen.
  options.multiprocessors = ctas_of(GetParam());
  for (const int block_n : {128, 256}) {
    for (const int block_k : {64, 128}) {
      Gemm wide;
      wide.block_n = block_n;
      wide.block_k = block_k;
      check(machine_of(gemm_sm100(wide, GetParam())), {130, 2 * block_n + 8, 136}, options);
    }
  }
}

// Whoever runs late or early, and whenever products and copies are over.
TEST_P(GemmSm100, UnderAdversarialSchedules) {
  const ir::Kernel machine = machine_of(gemm_sm100(narrow(), GetParam()));
  for (const auto search :
       {simulator::Search::random, simulator::Search::delays, simulator::Search::held}) {
    simulator::MachineOptions options;
    options.search = search;
    options.multiprocessors = ctas_of(GetParam());
    options.strict = true;
    for (options.seed = 0; options.seed < 2; ++options.seed) {
      check(machine, {136, 136, 136}, options);
    }
  }
}

// Control alone follows the address that an allocation leaves; a trace draws products and commits.
TEST_P(GemmSm100, IsTracedAndFollowedWithoutValues) {
  const ir::Kernel machine = machine_of(gemm_sm100(narrow(), GetParam()));
  Padded a = Padded::normal(bf16, {136, 200}, 1), b = Padded::normal(bf16, {72, 200}, 2),
         c(bf16, {136, 72});
  Arguments arguments;
  arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
  simulator::MachineOptions options;
  options.control_only = true;
  EXPECT_TRUE(simulator::run_machine(machine, arguments, options).ok());
  options.control_only = false;
  const compiler::TracedRun traced = compiler::trace_run(
      [&](const simulator::MachineOptions& with) {
        return simulator::run_machine(machine, arguments, with);
      },
      options);
  EXPECT_TRUE(traced.report.ok());
  std::size_t products = 0;
  for (const simulator::TraceCta& cta : traced.trace.ctas) {
    for (const auto& product : cta.products) {
      ++products;
      EXPECT_EQ(product.end - product.start, 128 * 64 * 16 / 4096);
    }
  }
  // Of a pair the first CTA has both rows of tiles.
  EXPECT_EQ(products, 2u / ctas_of(GetParam()) * 2 * 4 * 4) << "tiles, blocks of k, steps";
}

TEST_P(GemmSm100, BecomesACubin) {
  const char* const target = GetParam() == GemmRoles::one_tile ? "sm_110a" : "sm_100a";
  if (const std::string why = runtime::why_no_nvrtc(target); !why.empty()) GTEST_SKIP() << why;
  test::expect_no_stack(codegen::print(machine_of(gemm_sm100({}, GetParam()))), target);
}

// Results are taken out of tensor memory behind a wait for their products, and without it too
// early.
TEST(GemmSm100Test, TheWaitForProductsIsSeededAndNoticed) {
  const ir::Kernel machine = machine_of(gemm(narrow()));
  const simulator::FaultKind& kind = simulator::fault_kinds()[3];
  ASSERT_EQ(kind.number, 4);
  const std::vector<simulator::Mutant> mutants = simulator::mutants_of(kind, machine);
  ASSERT_FALSE(mutants.empty());
  Padded a = Padded::normal(bf16, {130, 72}, 1), b = Padded::normal(bf16, {64, 72}, 2),
         c(bf16, {130, 64});
  Arguments arguments;
  arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
  for (const simulator::Mutant& mutant : mutants) {
    EXPECT_THAT(mutant.operation, testing::StartsWith("mbarrier_wait"));
    EXPECT_FALSE(simulator::run_machine(mutant.apply(machine), arguments, {}).ok());
  }
}

// Products of one line on columns beside each other, none of which waits for another one.
TEST(GemmSm100Test, ProductsOfOneLineOnSeveralColumns) {
  Kernel kernel("beside");
  kernel.target("sm_100a");
  const Tensor A = kernel.in("A", bf16, {128, 64}), B = kernel.in("B", bf16, {128, 64}),
               C = kernel.out("C", f32, {128, 128});
  kernel.ctas(1);
  Ring ring(kernel, "ab", stages(1), {{bf16, 128, 64}, {bf16, 128, 64}});
  Ring sums(kernel, "sums", stages(1), {});
  const TensorMemory memory(kernel, "memory", 128);
  NamedBarrier allocated(kernel, 160), freed(kernel, 160);
  kernel.roles({loads_all(ring, A, B),
                role("multiply", warps(1), registers(64),
                     [&] {
                       memory.allocate();
                       allocated.sync();
                       const TensorColumns to = memory.attach();
                       const Slot sum = sums.reserve(), slot = ring.consume();
                       for (const int first : {0, 64}) {
                         mma(to.columns(first, 64), slot[0], slot[1].rows(first, 64).T(), false);
                       }
                       sums.commit(sum);
                       ring.release_behind_products(slot);
                       freed.sync();
                       memory.free();
                     }),
                role("store", warpgroups(1), registers(200), [&] {
                  allocated.sync();
                  const Slot sum = sums.consume();
                  store(C(all, all), load(memory.attach()));
                  sums.release(sum);
                  freed.sync();
                })});
  check_small(kernel, {128, 128, 64});
}

}  // namespace
}  // namespace tilewright::kernels
