#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "ir/text.h"
#include "kernels/execution.h"
#include "library/accuracy.h"
#include "library/schedule_choice.h"
#include "library/workload.h"
#include "tilewright/blackwell.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/library.h"
#include "tilewright/library_executable.h"

// Faults that reviewers found in published attention programs for Blackwell, rows 21 to 28 of
// their list. Here none of them is: a test for each. No Blackwell GPU has run any of it.
namespace tilewright {
namespace {

using test::Padded;
using test::usage_error_of;
using testing::AllOf;
using testing::HasSubstr;

// Where O is read, of a kernel whose O = round(Q K^T) V has two products.
enum class Reading { behind_its_product, behind_the_first_product };

constexpr int kQueryRows = 128, kKeyRows = 64, kHeadDim = 64, kTensorThreads = 32 + 128;

class TwoProducts {
 public:
  explicit TwoProducts(Reading reading) : kernel_("two_products"), reading_(reading) {
    kernel_.target("sm_100a");
    const Tensor Q = kernel_.in("Q", bf16, {kQueryRows, kHeadDim}),
                 K = kernel_.in("K", bf16, {kKeyRows, kHeadDim}),
                 V = kernel_.in("V", bf16, {kKeyRows, kHeadDim}),
                 O = kernel_.out("O", f32, {kQueryRows, kHeadDim});
    kernel_.ctas(1);
    record(Q, K, V, O);
  }

  ir::Kernel machine() const {
    return compiler::compile_to_machine(kernel_.finish(), "sm_100a").kernel;
  }

 private:
  void record(const Tensor& Q, const Tensor& K, const Tensor& V, const Tensor& O) {
    Ring ring(
        kernel_, "qkv", stages(1),
        {{bf16, kQueryRows, kHeadDim}, {bf16, kKeyRows, kHeadDim}, {bf16, kKeyRows, kHeadDim}});
    Ring scores(kernel_, "scores", stages(1), {}), outputs(kernel_, "outputs", stages(1), {});
    const TensorMemory memory(kernel_, "tensor_memory", 128);
    NamedBarrier allocated(kernel_, kTensorThreads), weights(kernel_, kTensorThreads),
        read(kernel_, kTensorThreads);
    const auto load_role = [&] {
      ring.produce([&](const Slot& slot) {
        tma_load(Q(all, all), slot[0]);
        tma_load(K(all, all), slot[1]);
        tma_load(V(all, all), slot[2]);
      });
    };
    const auto multiply = [&] {
      memory.allocate();
      allocated.sync();
      const TensorColumns columns = memory.attach();
      const Slot slot = ring.consume(), score = scores.reserve();
      mma(columns.columns(0, kKeyRows), slot[0], slot[1].T(), Index(0) > 0);
      scores.commit(score);
      weights.sync();
      const Slot output = outputs.reserve();
      mma(columns.columns(64, kHeadDim), columns.columns(0, kKeyRows / 2), slot[2], Index(0) > 0);
      outputs.commit(output);
      ring.release_behind_products(slot);
      relinquish_tensor_memory();
      read.sync();
      memory.free();
    };
    const auto soften = [&] {
      allocated.sync();
      const TensorColumns columns = memory.attach();
      const Slot score = scores.consume();
      store(columns.columns(0, kKeyRows / 2), load(columns.columns(0, kKeyRows)).cast(bf16));
      scores.release(score);
      weights.sync();
      if (reading_ == Reading::behind_its_product) {
        const Slot output = outputs.consume();
        store(O(all, all), load(columns.columns(64, kHeadDim)));
        outputs.release(output);
      } else {
        store(O(all, all), load(columns.columns(64, kHeadDim)));
        const Slot output = outputs.consume();
        outputs.release(output);
      }
      read.sync();
    };
    kernel_.roles({role("load", warps(1), registers(64), load_role),
                   role("multiply", warps(1), registers(64), multiply),
                   role("soften", warpgroups(1), registers(200), soften)});
  }

  Kernel kernel_;
  Reading reading_;
};

struct TwoProductsRun {
  Padded q = Padded::normal(bf16, {kQueryRows, kHeadDim}, 1),
         k = Padded::normal(bf16, {kKeyRows, kHeadDim}, 2),
         v = Padded::normal(bf16, {kKeyRows, kHeadDim}, 3), o{f32, {kQueryRows, kHeadDim}};
  simulator::MachineReport report;

  TwoProductsRun(const ir::Kernel& machine, std::uint64_t seed) {
    Arguments arguments;
    arguments.tensors = {q.argument("Q"), k.argument("K"), v.argument("V"), o.argument("O")};
    simulator::MachineOptions options;
    options.seed = seed;
    report = simulator::run_machine(machine, arguments, options);
  }

  std::vector<double> wanted() const {
    return product(product(q.values(), k.values(), {kHeadDim, 1}), v.values(), {1, kHeadDim});
  }

 private:
  // Of 128 x 64 and 64 x 64 elements; the second's element of row i of the sum and of a column lies
  // at these steps.
  struct Steps {
    int column, inner;
  };
  static std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                                     Steps steps) {
    std::vector<double> result;
    for (int row = 0; row < kQueryRows; ++row) {
      for (int column = 0; column < kHeadDim; ++column) {
        double sum = 0;
        for (int i = 0; i < kHeadDim; ++i) {
          sum += a[row * kHeadDim + i] * b[column * steps.column + i * steps.inner];
        }
        result.push_back(sum);
      }
    }
    return result;
  }
};

// Row 21, "the groups of heads are none, or do not divide them".
TEST(ReviewedBlackwellFaults, Row21HeadsAreAMultipleOfTheirGroups) {
  for (const char* name : {"attention_forward", "attention_backward"}) {
    EXPECT_THAT(usage_error_of([&] {
                  build_program(
                      find_kernel(name),
                      choose_schedule(find_kernel(name),
                                      resolve_options(find_kernel(name), {"heads=6", "kv_heads=4"}),
                                      "sm_100a"));
                }),
                AllOf(HasSubstr("heads 6 is not a multiple of kv_heads 4"), HasSubstr("fix: ")))
        << name;
    EXPECT_THAT(usage_error_of([&] {
                  resolve_options(find_kernel(name), {"heads=6", "kv_heads=0"});
                }),
                HasSubstr("kv_heads"))
        << name;
  }
}

// Row 22, "gradients are compared nowhere, and success is printed". Whatever has gradients here has
// float64 references for itself and for them.
TEST(ReviewedBlackwellFaults, Row22GradientsHaveReferences) {
  std::size_t gradients = 0;
  for (const LibraryKernel& entry : kernel_library()) {
    EXPECT_TRUE(static_cast<bool>(entry.reference)) << entry.name;
    gradients += !entry.backward_of.empty();
  }
  EXPECT_GE(gradients, 2u);
}

// Row 23, "the assertion of correctness is a comment". One wrong element fails the comparison.
TEST(ReviewedBlackwellFaults, Row23AWrongElementFailsTheComparison) {
  library::Workload work =
      library::make_workload(find_kernel("gemm"), {"m=8", "n=16", "k=24"}, {}, 1);
  const auto reference = library::reference_of(work);
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, "interpreter").run(tensors);
  EXPECT_TRUE(library::compare(work, reference).ok());
  HostTensor& c = work.tensors.back();
  c.set_flat(77, c.flat(77) + 0.5);
  EXPECT_FALSE(library::compare(work, reference).ok());
}

// Row 24, "tensor memory is read before the barrier of the second product". Reading it behind that
// of the first is found in every order; behind its own the result is right.
TEST(ReviewedBlackwellFaults, Row24AResultIsReadBehindItsOwnProduct) {
  const ir::Kernel right = TwoProducts(Reading::behind_its_product).machine();
  const ir::Kernel wrong = TwoProducts(Reading::behind_the_first_product).machine();
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const TwoProductsRun run(right, seed);
    ASSERT_TRUE(run.report.ok()) << run.report.faults[0].message;
    // The weights are rounded to bf16 on their way.
    EXPECT_LT(test::relative_error(run.o, run.wanted()), 4e-3);
    const TwoProductsRun early(wrong, seed);
    ASSERT_FALSE(early.report.ok()) << "seed " << seed;
    EXPECT_THAT(early.report.faults[0].message, HasSubstr("tensor memory"));
    EXPECT_THAT(early.report.faults[0].first.file, HasSubstr("reviewed_blackwell_faults_test.cpp"));
  }
}

// Row 25, "448 KiB of shared memory are asked for".
TEST(ReviewedBlackwellFaults, Row25SharedMemoryBeyondTheCapacityIsListed) {
  const std::string message = usage_error_of([] {
    Kernel kernel("wide");
    kernel.target("sm_100a");
    kernel.ctas(1);
    const Tensor Q = kernel.in("Q", bf16, {128, 128}), K = kernel.in("K", bf16, {128, 128});
    Ring queries(kernel, "queries", stages(2), {{bf16, 128, 128}});
    Ring keys(kernel, "keys", stages(12), {{bf16, 128, 128}});
    kernel.roles({role("load", warps(1), registers(64),
                       [&] {
                         queries.produce([&](const Slot& slot) { tma_load(Q(all, all), slot); });
                         keys.produce([&](const Slot& slot) { tma_load(K(all, all), slot); });
                       }),
                  role("read", warps(1), registers(64), [&] {
                    queries.release(queries.consume());
                    keys.release(keys.consume());
                  })});
    compiler::compile_to_machine(kernel.finish(), "sm_100a");
  });
  EXPECT_THAT(message, AllOf(HasSubstr("queries"), HasSubstr("keys"), HasSubstr("232448")));
}

// Row 26, "empty barriers have to be primed". They have not: a fresh one passes the producer's
// first wait, which is for the phase before. The kernel above has three rings and arrives at none
// of them before its roles begin. What an arrival that primes would do is a litmus test
// (TensorMemoryTest.AFreshBarrierIsNotPrimed).
TEST(ReviewedBlackwellFaults, Row26AFreshRingIsNotPrimed) {
  const ir::Kernel machine = TwoProducts(Reading::behind_its_product).machine();
  std::size_t rings = 0;
  for (const ir::Operation& operation : machine.body.body) {
    EXPECT_NE(operation.op, ir::Op::mbarrier_arrive);
    rings += operation.op == ir::Op::mbarrier_init;
  }
  EXPECT_EQ(rings, 2u * 3) << "a full and an empty barrier each";
  EXPECT_TRUE(TwoProductsRun(machine, 0).report.ok());
}

// Row 27, "an alias builds another variant, and the fallback that is promised does not exist".
TEST(ReviewedBlackwellFaults, Row27AVariantIsWhatItsNameSays) {
  const LibraryKernel& gemm = find_kernel("gemm");
  EXPECT_THAT(usage_error_of([&] { resolve_options(gemm, {"schedule=sm100_ts"}); }),
              HasSubstr("there is no schedule 'sm100_ts'"));
  const auto choose = [&](const std::string& schedule, const char* target) {
    return choose_schedule(gemm, resolve_options(gemm, {"schedule=" + schedule}), target);
  };
  EXPECT_THAT(usage_error_of([&] { choose("128x256", "sm_100a"); }),
              HasSubstr("schedule 128x256 is for sm_90a, and the target is sm_100a"));
  EXPECT_THAT(usage_error_of([&] { choose("sm100", "sm_90a"); }),
              HasSubstr("schedule sm100 is for sm_100a, and the target is sm_90a"));
  std::vector<std::uint64_t> forms;
  for (const char* name : {"sm100", "sm100_one_tile"}) {
    const ScheduleChoice choice = choose(name, "sm_100a");
    EXPECT_EQ(library::name_of(choice), name);
    EXPECT_FALSE(choice.why.empty());
    forms.push_back(ir::form_hash(
        compiler::compile_to_machine(build_choice(gemm, choice).finish(), "sm_100a").kernel));
  }
  EXPECT_NE(forms[0], forms[1]);
}

// Row 28, "the address in tensor memory is that of the first warpgroup for all". Each of two reads
// its own columns; the simulator knows which lanes a warp reaches and where each element is.
TEST(ReviewedBlackwellFaults, Row28EachWarpgroupReadsItsOwnColumns) {
  constexpr int kGroups = 2, kColumns = 128, kAll = 32 + kGroups * 128;
  Kernel kernel("two_readers");
  kernel.target("sm_100a");
  const Tensor A = kernel.in("A", bf16, {kQueryRows, kHeadDim}),
               B = kernel.in("B", bf16, {kColumns, kHeadDim});
  const Tensor C = kernel.out("C", f32, {kQueryRows, kColumns});
  kernel.ctas(1);
  Ring ring(kernel, "ab", stages(1), {{bf16, kQueryRows, kHeadDim}, {bf16, kColumns, kHeadDim}});
  Ring sums(kernel, "sums", stages(1), {});
  const TensorMemory memory(kernel, "tensor_memory", kColumns);
  NamedBarrier allocated(kernel, kAll), read(kernel, kAll);
  kernel.roles({role("load", warps(1), registers(64),
                     [&] {
                       ring.produce([&](const Slot& slot) {
                         tma_load(A(all, all), slot[0]);
                         tma_load(B(all, all), slot[1]);
                       });
                     }),
                role("multiply", warps(1), registers(64),
                     [&] {
                       memory.allocate();
                       allocated.sync();
                       const Slot sum = sums.reserve(), slot = ring.consume();
                       mma(memory.attach(), slot[0], slot[1].T(), Index(0) > 0);
                       sums.commit(sum);
                       ring.release_behind_products(slot);
                       relinquish_tensor_memory();
                       read.sync();
                       memory.free();
                     }),
                role("store", warpgroups(kGroups), registers(128), [&](Index group) {
                  allocated.sync();
                  const TensorColumns from = memory.attach();
                  const Slot sum = sums.consume();
                  const Tile part = load(from.columns(group * 64, 64));
                  sums.release(sum);
                  store(C(all, Dim(kColumns).block(group, 64)), part);
                  read.sync();
                })});
  Padded a = Padded::normal(bf16, {kQueryRows, kHeadDim}, 1),
         b = Padded::normal(bf16, {kColumns, kHeadDim}, 2), c(f32, {kQueryRows, kColumns});
  Arguments arguments;
  arguments.tensors = {a.argument("A"), b.argument("B"), c.argument("C")};
  const simulator::MachineReport report = simulator::run_machine(
      compiler::compile_to_machine(kernel.finish(), "sm_100a").kernel, arguments, {});
  ASSERT_TRUE(report.ok()) << report.faults[0].message;
  std::vector<double> wanted;
  for (std::int64_t i = 0; i < kQueryRows; ++i) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (std::int64_t at = 0; at < kHeadDim; ++at) sum += a.at({i, at}) * b.at({j, at});
      wanted.push_back(sum);
    }
  }
  EXPECT_LT(test::relative_error(c, wanted), test::kTolerance);
}

}  // namespace
}  // namespace tilewright
