#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "check/printed.h"
#include "codegen/print.h"
#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "kernels/execution.h"
#include "language/misuse.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/blackwell.h"

// Products of pairs of CTAs with 64 rows in each. No such GPU has run them.
namespace tilewright::kernels {
namespace {

using test::Padded;

// With 64 rows in each CTA of a pair the second half of the columns lies in the lanes below those
// of the first. `rows`: of A; `issuer`: which CTA of a pair issues products.
Kernel sixty_four_rows_each(int ctas = 2, int rows = 128, int issuer = 0) {
  Kernel kernel("sixty_four");
  kernel.target("sm_100a");
  const Tensor A = kernel.in("A", bf16, {rows, 64}), B = kernel.in("B", bf16, {64, 64}),
               C = kernel.out("C", f32, {128 * ctas, 32});
  kernel.ctas(ctas, ctas);
  Ring ring(kernel, "ab", stages(1), {{bf16, 64, 64}, {bf16, 32, 64}});
  Ring sums(kernel, "sums", stages(1), {});
  ring.pairs();
  sums.pairs();
  const TensorMemory memory(kernel, "memory", 32, CtaGroup::pair);
  NamedBarrier allocated(kernel, 160), stored(kernel, 160);
  ClusterBarrier met(kernel, "met");
  kernel.roles({role("load", warps(1), registers(64),
                     [&] {
                       ring.produce([&](const Slot& slot) {
                         tma_load(A(Dim(rows).block(cluster_rank(), 64), all), slot[0]);
                         tma_load(B(Dim(64).block(cluster_rank(), 32), all), slot[1]);
                       });
                       ring.reserve();
                     }),
                role("multiply", warps(1), registers(64),
                     [&] {
                       memory.allocate();
                       allocated.sync();
                       when(cluster_rank() % 2 == issuer, [&] {
                         const Slot sum = sums.reserve(), slot = ring.consume();
                         mma(memory.attach(), slot[0], slot[1].T(), false);
                         ring.release_behind_products(slot);
                         sums.commit(sum);
                       });
                       relinquish_tensor_memory();
                       stored.sync();
                       memory.free();
                     }),
                role("store", warpgroups(1), registers(128), [&] {
                  allocated.sync();
                  const Slot sum = sums.consume();
                  const Tile tile = load(memory.attach());
                  sums.release(sum);
                  store(C(Dim(128 * ctas).block(cluster_rank(), 128), all), tile);
                  met.arrive();
                  met.wait();
                  stored.sync();
                })});
  return kernel;
}

// On the virtual GPU, and as printed.
TEST(PairRowsTest, SixtyFourInEachCta) {
  Padded a = Padded::normal(bf16, {128, 64}, 1), b = Padded::normal(bf16, {64, 64}, 2),
         c(f32, {256, 32});
  Arguments arguments;
  arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
  const ir::Kernel machine =
      compiler::compile_to_machine(sixty_four_rows_each().finish(), "sm_100a").kernel;
  const simulator::MachineReport report = simulator::run_machine(machine, arguments, {});
  ASSERT_TRUE(report.ok()) << report.faults[0].message << "\n" << report.faults[0].missing;
  const std::vector<double> rows = a.values(), columns = b.values();
  std::vector<double> wanted;
  for (std::size_t lane = 0; lane < 256; ++lane) {
    const std::size_t row = lane / 128 * 64 + lane % 64, first = lane / 64 % 2 * 32;
    for (std::size_t i = first; i < first + 32; ++i) {
      const double* const of_row = rows.data() + row * 64;
      wanted.push_back(std::inner_product(of_row, of_row + 64, columns.data() + i * 64, 0.0));
    }
  }
  EXPECT_LT(test::relative_error(c, wanted), test::kTolerance);
  if (!runtime::why_no_nvrtc("sm_100a").empty()) return;
  const codegen::CudaSource source = codegen::print(machine);
  const checks::PrintedDifference difference =
      checks::compare_printed(machine, source.parameters, checks::printed_ptx(machine, source),
                              arguments, checks::PrintedOptions{});
  EXPECT_TRUE(difference.none()) << difference.message;
}

TEST(PairRowsTest, TheSecondCtaWaitsForNoCopies) {
  const ir::Kernel machine =
      compiler::compile_to_machine(sixty_four_rows_each(2, 128, 1).finish(), "sm_100a").kernel;
  Padded a = Padded::normal(bf16, {128, 64}, 1), b = Padded::normal(bf16, {64, 64}, 2),
         c(f32, {256, 32});
  Arguments arguments;
  arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
  const simulator::MachineReport report = simulator::run_machine(machine, arguments, {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "deadlock");
  EXPECT_EQ(report.faults[0].missing,
            "a wait for ab_full[0] in the first CTA of the pair alone, which issues products: "
            "copies of both complete it there");
}

// In a cluster of two pairs: a pair that has none of A's rows, and one that has none of B's, though
// one of its CTAs may be without rows of A.
TEST(PairRowsTest, APairThatLoadsNothingIsAnErrorAtItsLine) {
  const auto refuses = [](int rows, const std::vector<std::string>& parts) {
    test::misuse("tma_load", parts, [rows] {
      compiler::compile_to_machine(sixty_four_rows_each(4, rows).finish(), "sm_100a");
    });
  };
  refuses(128, {"tma_load: CTAs 2 and 3 of each cluster load nothing of A: their blocks begin at "
                "128 and 192 on axis 0, which has 128",
                "cluster_rank() % 2"});
  refuses(192, {"load nothing of B: their blocks begin at 64 and 96 on axis 0, which has 64"});
}

}  // namespace
}  // namespace tilewright::kernels
