#include "compiler/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/build.h"
#include "compiler/compile_to_machine.h"
#include "ir/text.h"
#include "language/misuse.h"
#include "runtime/nvrtc.h"
#include "runtime/nvrtc_available.h"
#include "schedules/warpgroups.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright {
namespace {

using test::misuse;

void compile_simulated(const Kernel& kernel) { (void)compile(kernel, "sim:sm_90a"); }

TEST(ClaimsTest, TrueClaimsChangeNothing) {
  Kernel plain = kernels::gemm_sm90({}), claimed = kernels::gemm_sm90({});
  claimed.require({wgmma_ss, instructions("wgmma_rs") == 0, instructions("wgmma") >= 4,
                   shared_bytes <= 232448, stages("ab") >= 2, stages("ab0") >= 2});
  compile_simulated(claimed);
  EXPECT_EQ(compiler::translate(plain.finish(), ir::default_target()).source.text,
            compiler::translate(claimed.finish(), ir::default_target()).source.text);
}

TEST(ClaimsTest, FalseClaimsAreErrorsAtTheirLine) {
  misuse("wgmma_rs",
         {"require: gemm_sm90: instructions(\"wgmma_rs\") >= 1, and it is 0",
          "fix: a product takes its first operand from registers"},
         [] {
           Kernel kernel = kernels::gemm_sm90({});
           kernel.require({wgmma_rs});
           compile_simulated(kernel);
         });
  misuse(
      "tma_load",
      {"instructions(\"tma_load\") == 0, and it is ", "fix: see where each operation comes from"},
      [] {
        Kernel kernel = kernels::gemm_sm90({});
        kernel.require({instructions("tma_load") == 0});
        compile_simulated(kernel);
      });
  misuse("shared_bytes <= 1000", {"shared_bytes <= 1000, and it is ", "fix: fewer"}, [] {
    Kernel kernel = kernels::gemm_sm90({});
    kernel.require({
        wgmma_ss,
        shared_bytes <= 1000,
    });
    compile_simulated(kernel);
  });
}

TEST(ClaimsTest, UnknownNamesAreErrors) {
  misuse("wgmma_sr", {"there is no instruction \"wgmma_sr\""}, [] {
    Kernel kernel = kernels::gemm_sm90({});
    kernel.require({instructions("wgmma_sr") >= 1});
  });
  // An operation that is gone by the time there are instructions.
  misuse("dot", {"there is no instruction \"dot\""}, [] {
    Kernel kernel = kernels::gemm({});
    kernel.require({instructions("dot") >= 1});
  });
  misuse("weights", {"has no ring or shared tile named \"weights\"", "A, B"}, [] {
    Kernel kernel = kernels::gemm({});
    kernel.require({stages("weights") >= 2});
    compile_simulated(kernel);
  });
}

TEST(ClaimsTest, HoldOfWhatTheAutomaticScheduleMakes) {
  Kernel kernel = kernels::gemm({});
  kernel.require({stages("A") >= 2, wgmma_ss});
  compile_simulated(kernel);
  Kernel deeper = kernels::gemm({});
  misuse("A", {"stages(\"A\") >= 40, and it is "}, [&] {
    deeper.require({stages("A") >= 40});
    compile_simulated(deeper);
  });
}

TEST(ClaimsTest, TheInterpreterIgnoresThem) {
  Kernel kernel = kernels::gemm({});
  kernel.require({wgmma_rs, registers <= 1});
  EXPECT_EQ(compile(kernel, "interpreter").target(), "interpreter");
}

TEST(ClaimsTest, TravelThroughTextAndPasses) {
  Kernel kernel = kernels::gemm({});
  kernel.require({registers <= 168, stages("A") >= 2, no_stack, instructions("tma_load") == 2});
  const ir::Kernel& traced = kernel.finish();
  const ir::Kernel again = ir::parse_text(ir::to_text(traced), "again.tw");
  EXPECT_TRUE(ir::equal(traced, again));
  EXPECT_EQ(ir::to_text(again), ir::to_text(traced));
  ir::Kernel other = again;
  other.claims[0].bound = 200;
  EXPECT_FALSE(ir::equal(other, again));

  const ir::Kernel machine = compiler::compile_to_machine(traced, ir::default_target()).kernel;
  std::string text;
  for (const Claim& claim : machine.claims) text += claim.to_string() + "; ";
  EXPECT_EQ(text,
            "registers <= 168; stages(\"A\") >= 2; stack_bytes == 0; "
            "instructions(\"tma_load\") == 2; ");
  EXPECT_STREQ(again.claims[0].where.file, traced.claims[0].where.file);
  EXPECT_EQ(again.claims[0].where.line, traced.claims[0].where.line);
}

// Where roles are written out, their author can give them more registers.
TEST(ClaimsTest, ASpillIsAnErrorForWhoWroteTheSchedule) {
  EXPECT_FALSE(compiler::resource_policy(kernels::gemm_sm90({}).finish()).allow_stack_frame);
  EXPECT_TRUE(compiler::resource_policy(kernels::gemm_sm90({}).finish(), true).allow_stack_frame);
  EXPECT_TRUE(compiler::resource_policy(kernels::gemm({}).finish()).allow_stack_frame);
}

TEST(ClaimsTest, AreHeldAgainstTheAssemblersReport) {
  Kernel kernel = kernels::gemm_sm90({});
  kernel.require({no_stack, no_spills, registers <= 200, stack_bytes <= 8, spill_bytes == 4});
  const ir::Kernel machine =
      compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  const auto holds = [&](const runtime::FunctionResources* resources) {
    std::string text;
    for (const compiler::CheckedClaim& each : compiler::check_claims(machine, resources)) {
      text += !each.found ? '?' : each.holds() ? '+' : '-';
    }
    return text;
  };
  runtime::FunctionResources resources;
  EXPECT_EQ(holds(nullptr), "?????");
  EXPECT_EQ(holds(&resources), "?????");
  resources.registers = 200;
  resources.stack_bytes = 0;
  resources.spill_store_bytes = resources.spill_load_bytes = 0;
  EXPECT_EQ(holds(&resources), "++++-");
  resources.registers = 201;
  resources.stack_bytes = 16;
  resources.spill_store_bytes = 4;
  EXPECT_EQ(holds(&resources), "----+");
  EXPECT_THROW(compiler::enforce_claims(machine, &resources), Error);
  EXPECT_NO_THROW(compiler::enforce_claims(machine, nullptr));
}

// So are kernels of the library built that are launched: another assembler may need a few bytes.
TEST(ClaimsTest, OfAStackAreToldWhereAStackFrameIsAllowed) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  compiler::BuildOptions allowed;
  allowed.allow_stack_frame = true;
  Kernel kernel = kernels::gemm_sm90({});
  kernel.require({stack_bytes >= 8});
  EXPECT_THROW(compiler::build_kernel(kernel.finish(), "sm_90a"), Error);
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(compiler::build_kernel(kernel.finish(), "sm_90a", allowed));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("stack_bytes >= 8, and it is 0"));
  Kernel other = kernels::gemm_sm90({});
  other.require({registers <= 1});
  EXPECT_THROW(compiler::build_kernel(other.finish(), "sm_90a", allowed), Error);
}

TEST(ClaimsTest, RegistersAreCheckedOnceAssembled) {
  try {
    runtime::Nvrtc::get().require_arch("sm_90a");
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  Kernel kept = kernels::gemm_sm90({});
  kept.require({no_stack, no_spills, registers <= 255});
  EXPECT_EQ(compile(kept, "sm_90a").target(), "sm_90a");
  misuse("registers", {"registers <= 32, and it is 168", "fix: a smaller tile"}, [] {
    Kernel kernel = kernels::gemm_sm90({});
    kernel.require({registers <= 32});
    (void)compile(kernel, "sm_90a");
  });
}

}  // namespace
}  // namespace tilewright
