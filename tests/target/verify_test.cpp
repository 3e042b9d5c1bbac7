#include "target/verify.h"

#include <gtest/gtest.h>

#include <string>

#include "common/rejected_text.h"
#include "ir/samples.h"
#include "ir/text.h"
#include "target/target.h"

namespace tilewright::target {
namespace {

using Case = test::BrokenSample;
using test::with;

void expect_rejected(const std::string& text, const std::string& message, const std::string& what) {
  test::expect_rejected(text, message, what, [](const ir::Kernel& kernel) { verify(kernel); });
}

void expect_rejected(const std::string& sample, const Case& each) {
  expect_rejected(with(sample, each.from, each.to), each.message, each.to);
}

TEST(TargetVerifyTest, TheSamplesFit) {
  for (const char* sample : {ir::kTileSample, ir::kScheduledSample, ir::kMachineSample}) {
    EXPECT_NO_THROW(verify(ir::parse_text(sample, "")));
  }
}

TEST(TargetVerifyTest, RejectsWhatTheScheduledFormMayNotAskFor) {
  const Case cases[] = {
      {"threads 256", "threads 250", "250 threads, expected a multiple of 32"},
      {"threads 256", "threads 2048", "2048 threads, expected a multiple of 32 from 32 to 1024"},
      {"threads 256", "threads 160", "load has warps 4 to 7, but the CTA has 5"},
      {"threads 256", "cluster 17\nthreads 256", "a cluster of 17 CTAs, expected 1 to 16"},
      {"first_warp = 0", "first_warp = 2", "math works by warpgroups but has 4 warps from warp 2"},
      {"first_warp = 4, warps = 4", "first_warp = 5, warps = 4",
       "load has warps 5 to 8, but the CTA has 8"},
      {"first_warp = 0, warps = 4", "first_warp = 0, warps = 3",
       "math works by warpgroups but has 3 warps from warp 0"},
      {"first_warp = 0", "first_warp = 4", "math and load share warps: 4 to 7 and 4 to 7"},
      {"first_warp = 4, warps = 4", "first_warp = 3, warps = 4",
       "math and load share warps: 0 to 3 and 3 to 6"},
      {"registers = 240", "registers = 241", "241 registers a thread, expected a multiple of 8"},
      {"first = 1, threads = 128", "first = 16, threads = 128",
       "barriers 16 to 16, expected 1 to 15"},
      {"first = 1, threads = 128", "first = 8, count = 9, threads = 128",
       "barriers 8 to 16, expected 1 to 15"},
      {"named_sync %7 {first = 1", "named_sync %8 {first = 15", "barrier 15 + 1, expected 1 to 15"},
  };
  for (const Case& each : cases) expect_rejected(ir::kScheduledSample, each);
  std::string text = ir::kScheduledSample;
  text.insert(text.find('\n') + 1, "target \"sm_80\"\n");
  EXPECT_THROW(verify(ir::parse_text(text, "")), Error);
}

TEST(TargetVerifyTest, RejectsWhatTheMachineFormMayNotAskFor) {
  const Case cases[] = {
      {"threads 256", "threads 288", "a CTA of 288 threads, expected a multiple of 128"},
      {"shared_bytes 16400", "shared_bytes 16399",
       "full ends at byte 16400 of shared memory, which has 16399"},
      {"shared_bytes 16400", "shared_bytes 232449",
       "232449 bytes of shared memory, expected at most 232448"},
      {"offset = 16384}", "offset = 16376}", "full and tiles overlap: bytes 16376 to 16391"},
      {"offset = 0}\n  %4: mbarriers<2> = mbarriers {name = \"full\", arrivals = 1, offset = "
       "16384}",
       "offset = 0}\n  %4: mbarriers<2> = mbarriers {name = \"full\", arrivals = 1, offset = "
       "16384}\n"
       "  %90: mbarriers<1> = mbarriers {name = \"more\", arrivals = 1, offset = 16392}",
       "more and full overlap: bytes 16392 to 16399 and 16384 to 16399"},
      {"count = 24", "count = 25",
       "25 registers a thread, expected a multiple of 8 from 24 to 256"},
      {"count = 24", "count = 28",
       "28 registers a thread, expected a multiple of 8 from 24 to 256"},
      {"count = 24", "count = 16",
       "16 registers a thread, expected a multiple of 8 from 24 to 256"},
      {"increase = 0}", "increase = 0, first_warp = 4}",
       "in a role with first_warp, expected it before the roles"},
      {"  role {name = \"load\"",
       "  set_max_registers {count = 24, increase = 0, first_warp = 2}\n  role {name = \"load\"",
       "outside the roles with first_warp 2, expected the first warp of a warpgroup"},
      {"  role {name = \"load\"",
       "  set_max_registers {count = 24, increase = 0, first_warp = 8}\n  role {name = \"load\"",
       "outside the roles with first_warp 8, expected the first warp of a warpgroup"},
      {"resident 2", "resident 11",
       "11 CTAs of 256 threads share 65536 registers, expected at least 24 a thread"},
  };
  for (const Case& each : cases) expect_rejected(ir::kMachineSample, each);
  // Whichever of the two comes first.
  expect_rejected(
      with(ir::kMachineSample, "shared_bytes 16400", "shared_bytes 17408"),
      {"offset = 16384}",
       "offset = 16384}\n  %90: shared<bf16, 1x8x64> = shared {name = \"late\", layout = "
       "shared_layout[8x64*2|8@0:128,64@1:2], stages = 1, offset = 15872}",
       "late and full overlap: bytes 15872 to 16895 and 16384 to 16399"});
}

// The second role has registers, and with the first one's there are too many.
TEST(TargetVerifyTest, RejectsRolesThatTakeMoreRegistersThanThereAre) {
  const std::string text = with(with(ir::kScheduledSample, "threads 256", "threads 512"),
                                "first_warp = 4, warps = 4, registers = 24",
                                "first_warp = 4, warps = 8, registers = 136");
  EXPECT_NO_THROW(verify(ir::parse_text(text, "")));
  expect_rejected(text, {"registers = 136", "registers = 144",
                         "the roles so far take 67584 registers of 65536"});
}

TEST(TargetVerifyTest, RejectsCopiesOutsideTheirShapes) {
  const char* sample = R"(kernel "copies" scheduled
in A: bf16[512, 512] = %0
grid (1)
threads 128
body () {
  %1: tensor_map = tensor_map %0 {name = "A", box = [64, 64], swizzle = 0}
}
)";
  ASSERT_NO_THROW(verify(ir::parse_text(sample, "")));
  const Case cases[] = {
      {"box = [64, 64]", "box = [257, 64]", "an extent of 257, expected 1 to 256"},
      {"box = [64, 64]", "box = [64, 4]", "rows of 8 bytes, expected a multiple of 16"},
  };
  for (const Case& each : cases) expect_rejected(sample, each);
  expect_rejected(
      with(sample, "bf16[512, 512]", "bf16[8, 8, 8, 8, 8, 64]"),
      {"box = [64, 64]", "box = [1, 1, 1, 1, 8, 64]", "a box of rank 6, expected at most 5"});
}

TEST(TargetVerifyTest, RejectsProductsOutsideTheirShapes) {
  const char* sample = R"(kernel "products" scheduled
grid (1)
threads 128
body () {
  %0: shared<bf16, 1x64x64> = shared {name = "a", layout = shared_layout[64x64*2|64@0:128,64@1:2], stages = 1}
  %1: shared<bf16, 1x320x64> = shared {name = "b", layout = shared_layout[320x64*2|320@0:128,64@1:2], stages = 1}
  %2: i32 = constant {value = 0}
  %3: view<bf16, 64x64> = view %0, %2, %2
  %4: view<bf16, 256x64> = view %1, %2, %2 {transposed = 1}
  %5: pending<f32, 64x256> = wgmma %3, %4
}
)";
  ASSERT_NO_THROW(verify(ir::parse_text(sample, "")));
  const auto rejected = [&](const std::string& rows, const std::string& columns,
                            const char* message) {
    std::string text = sample;
    const auto replace = [&](const std::string& from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace("%3: view<bf16, 64x64>", "%3: view<bf16, " + rows + "x64>");
    replace("%4: view<bf16, 256x64>", "%4: view<bf16, " + columns + "x64>");
    replace("pending<f32, 64x256>", "pending<f32, " + rows + "x" + columns + ">");
    expect_rejected(text, message, rows + " x " + columns);
  };
  rejected("32", "256", "m is 32, expected a multiple of 64");
  rejected("64", "264", "n is 264, expected a multiple of 8 up to 256");
  rejected("64", "252", "n is 252, expected a multiple of 8");
}

TEST(TargetVerifyTest, RejectsInstructionsOutsideTheirShapes) {
  const char* sample = R"(kernel "instruction" machine
grid (1)
threads 128
shared_bytes 16384
body () {
  %0: shared<bf16, 2x64x64> = shared {name = "tiles", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 2, offset = 0}
  %1: i32 = constant {value = 0}
  %2: bool = constant {value = 0}
  role {name = "math", first_warp = 0, warps = 4} (%3: i32) {
    %4: registers<f32, 32> = registers {name = "sums"}
    wgmma_ss %4, %0, %1, %0, %1, %2 {n = 64, k = 16, descriptor_a = 70368744177665, descriptor_b = 70368744177665}
    yield
  }
}
)";
  ASSERT_NO_THROW(verify(ir::parse_text(sample, "")));
  expect_rejected(with(sample, "registers<f32, 32>", "registers<f32, 30>"),
                  {"n = 64", "n = 60", "n is 60, expected a multiple of 8 up to 256"});
}

// Which rows a warpgroup has is nothing that a kernel says before it knows that there are any.
TEST(TargetVerifyTest, OwnRowsComeWithATarget) {
  const std::string text = R"(kernel "rows" tile
in X: f32[64, 64] = %0
grid (1)
body (%1: i32) {
  %2: i32 = own_first {count = 64}
}
)";
  expect_rejected(text, "own_first: does not exist in the tile form", "own_first");
  std::string planned = text;
  planned.insert(planned.find('\n') + 1, "target \"sm_90a\"\n");
  const ir::Kernel kernel = ir::parse_text(planned, "");
  EXPECT_NO_THROW(verify(kernel));
  EXPECT_EQ(ir::to_text(kernel, {.locations = false}), planned);
}

}  // namespace
}  // namespace tilewright::target
