#include "compiler/compile_to_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/print.h"
#include "common/temporary_folder.h"
#include "compiler/build.h"
#include "compiler/simulation.h"
#include "ir/text.h"
#include "runtime/nvrtc_available.h"
#include "runtime/runtime_test.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/require.h"

namespace tilewright::compiler {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

// Scores of 96 keys beside an accumulator of 256 columns and the weights of the block before are
// more registers than a thread has.
Kernel wide_attention() {
  kernels::Attention a;
  a.dim = a.dim_v = 256;
  a.causal = true;
  a.block_k = 96;
  return kernels::attention_forward(a);
}

std::vector<std::uint64_t> hashes(const std::vector<ir::Kernel>& forms) {
  std::vector<std::uint64_t> all;
  for (const ir::Kernel& form : forms) all.push_back(ir::form_hash(form));
  return all;
}

TEST(CompileToMachine, AFormThatAnAssemblerMayRefuseHasAnother) {
  const Kernel kernel = wide_attention();
  const std::vector<MachineForm> forms = machine_forms(kernel.finish(), "sm_90a");
  ASSERT_EQ(forms.size(), 2u);
  EXPECT_GT(forms[0].applied.at("overlap_products"), 0);
  EXPECT_EQ(forms[1].applied.count("overlap_products"), 0u);
  EXPECT_NE(ir::form_hash(forms[0].kernel), ir::form_hash(forms[1].kernel));
  EXPECT_THAT(forms[0].decisions, Contains(Field(&Decision::what, "overlap_products")));
}

TEST(CompileToMachine, WhatShipsIsAmongWhatIsSimulated) {
  const Kernel kernel = wide_attention();
  const std::vector<std::uint64_t> simulated = hashes(simulated_forms(kernel.finish(), "sm_90a"));
  const GpuProgram ships = choose_form(kernel.finish(), "sm_90a");
  EXPECT_THAT(simulated, Contains(ir::form_hash(ships.machine)));
}

// The first form's claim does not hold of the second, and the other way round.
TEST(CompileToMachine, ClaimsHoldOfOneFormAtLeast) {
  for (const int products : {18, 12}) {
    Kernel kernel = wide_attention();
    kernel.require({instructions("wgmma_rs") == products});
    EXPECT_EQ(simulated_forms(kernel.finish(), "sm_90a").size(), 2u);
  }
  Kernel kernel = wide_attention();
  kernel.require({instructions("wgmma_rs") == 5});
  EXPECT_THROW(simulated_forms(kernel.finish(), "sm_90a"), Error);
}

TEST(CompileToMachine, AHashIsOfWhatTheFormDoes) {
  const Kernel plain = kernels::gemm_sm90({});
  Kernel claimed = kernels::gemm_sm90({});
  claimed.require({shared_bytes <= 232448});
  const auto hash = [](const Kernel& kernel) {
    return ir::form_hash(compile_to_machine(kernel.finish(), "sm_90a").kernel);
  };
  EXPECT_EQ(hash(plain), hash(claimed));
  kernels::Gemm other;
  other.block_n = 128;
  EXPECT_NE(hash(plain), hash(kernels::gemm_sm90(other)));
}

TEST(CompileToMachine, AnotherTargetThanAKernelIsWrittenForIsRefusedAtTheKernel) {
  ir::Kernel kernel = kernels::gemm_sm90({}).finish();
  kernel.target = "sm_100a";
  try {
    compile_to_machine(kernel, "sm_90a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("is written for sm_100a, and is compiled for sm_90a"));
  }
}

// Without products a kernel becomes a cubin for each machine that has a record.
TEST(CompileToMachine, RowsAreBuiltForEveryTarget) {
  Kernel kernel("row_sums");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", f32, {m, 256}), Y = kernel.out("Y", f32, {m, 1});
  const auto [i] = kernel.grid(ceil_div(m, 16));
  const Block rows = m.block(i, 16);
  store(Y(rows, all), reduce_sum(load(X(rows, all)), 1));
  for (const target::Target* target : target::targets()) {
    if (target->printer.empty()) continue;
    SCOPED_TRACE(target->name);
    const ir::Kernel machine = compile_to_machine(kernel.finish(), target->name).kernel;
    const codegen::CudaSource source = codegen::print(machine);
    if (!runtime::why_no_nvrtc(target->name).empty()) continue;
    runtime::CompileRequest request;
    request.name = source.entry;
    request.source = source.text;
    request.arch = target->name;
    EXPECT_FALSE(runtime::Nvrtc::get().compile(request).cubin.empty());
  }
}

// Conversions of a place share its memory, which the largest of them needs.
TEST(CompileToMachine, APlaceOfConversionsIsAsLargeAsTheLargest) {
  const ir::Kernel kernel = ir::parse_text(R"(kernel "converts" machine
grid (1)
threads 128
shared_bytes 2048
body () {
  %1: shared<f32, 1x1x64> = shared {name = "c", layout = shared_layout[1x64*4|64@1:4], stages = 1, offset = 0, scratch = 0}
  %2: shared<f32, 1x1x128> = shared {name = "c", layout = shared_layout[1x128*4|128@1:4], stages = 1, offset = 0, scratch = 0}
  %3: shared<f32, 1x1x32> = shared {name = "c", layout = shared_layout[1x32*4|32@1:4], stages = 1, offset = 0, scratch = 0}
  %4: shared<f32, 1x1x16> = shared {name = "c", layout = shared_layout[1x16*4|16@1:4], stages = 1, offset = 512, scratch = 1}
}
)",
                                           "converts.tw");
  std::vector<std::int64_t> bytes;
  for (const SharedUse& use : shared_use(kernel)) bytes.push_back(use.bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(512, 64));
}

TEST(CompileToMachine, WhatIsBuiltAfreshIsNotTakenFromTheCache) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const test::TemporaryFolder folder;
  const runtime::ScopedVariable cache("TILEWRIGHT_CACHE", folder.path().string());
  Kernel kernel("nothing");
  kernel.grid(1);
  const Tensor Y = kernel.out("Y", f32, {1});
  store(Y(all), zeros({1}));
  const GpuProgram program = translate(kernel.finish(), "sm_90a");
  EXPECT_FALSE(build(program, "sm_90a").from_cache);
  EXPECT_TRUE(build(program, "sm_90a").from_cache);
  EXPECT_FALSE(build(program, "sm_90a", /*afresh=*/true).from_cache);
}

// An observer that sees the form of the machine goes through the same stages as the result.
TEST(CompileToMachine, ObserversSeeWhatIsReturned) {
  const Kernel kernel = wide_attention();
  ir::Kernel last;
  const MachineForm form = compile_to_machine(
      kernel.finish(), "sm_90a", {}, [&](const Stage&, const ir::Kernel& after) { last = after; });
  EXPECT_TRUE(ir::equal(last, form.kernel));
}

}  // namespace
}  // namespace tilewright::compiler
