#include "kernels/attention_backward_sm100.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "codegen/print.h"
#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "kernels/attention_backward_places.h"
#include "kernels/expect_no_stack.h"
#include "kernels/library_case.h"
#include "kernels/one_multiprocessor.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/kernels/attention.h"

// The gradients of attention for sm_100a, on the virtual GPU and up to their cubin. No such GPU has
// run them.
namespace tilewright::kernels {
namespace {

using testing::HasSubstr;

void expect_gradients(std::vector<std::string> settings, const char* schedule = "sm100") {
  settings.push_back(std::string("schedule=") + schedule);
  test::expect_right({"attention_backward", settings}, "sim:sm_100a");
}

TEST(AttentionBackwardSm100Test, OfAllLengths) {
  for (const char* length : {"0", "1", "130"}) {
    expect_gradients({"heads=1", std::string("queries=") + length, "keys=140"});
    expect_gradients({"heads=1", "causal=true", "queries=140", std::string("keys=") + length});
  }
}

// P^T and dQ in columns of their own and in those of S^T and dP^T, and rows that are padded.
TEST(AttentionBackwardSm100Test, OfAllDims) {
  struct Dims {
    const char *dim, *dim_v, *dtype;
  };
  for (const Dims& d : std::vector<Dims>{{"128", "128", "bf16"}, {"80", "48", "f16"}}) {
    expect_gradients({"heads=1", "queries=140", "keys=140", "causal=true",
                      std::string("dim=") + d.dim, std::string("dim_v=") + d.dim_v,
                      std::string("dtype=") + d.dtype});
  }
}

TEST(AttentionBackwardSm100Test, HeadsWindowsCapsAndSinks) {
  expect_gradients({"heads=4", "kv_heads=2", "batch=2", "queries=40", "keys=150"});
  expect_gradients({"heads=2", "kv_heads=1", "queries=150", "keys=150", "causal=true", "window=40",
                    "softcap=5", "sinks=true", "lse_gradient=true"});
  expect_gradients({"heads=2", "kv_heads=1", "queries=150", "keys=270"}, "sm100_atomic");
}

// Behind the last key scores are 0. Beside those of some rows the weight would be infinite.
TEST(AttentionBackwardSm100Test, ScoresFarBelowZero) {
  for (const char* schedule : {"sm100", "sm100_split", "sm100_pairs"}) {
    expect_gradients({"heads=2", "kv_heads=1", "queries=128", "keys=3", "scale=20"}, schedule);
  }
}

// A CTA, or a pair, has all blocks of keys one after the other: dS of the next one goes where
// copies of dK and dV read.
TEST(AttentionBackwardSm100Test, SeveralBlocksOfACta) {
  for (const auto& [schedule, keys] : {std::pair("sm100", "140"), {"sm100_pairs", "270"}}) {
    SCOPED_TRACE(schedule);
    library::ProgramWorkload work;
    work.workload = library::make_workload(
        find_kernel("attention_backward"),
        {std::string("schedule=") + schedule, "heads=1", "queries=40", std::string("keys=") + keys},
        {}, 7);
    test::simulate_on_one_multiprocessor(work, "sm_100a");
    const library::Comparison comparison =
        library::compare(work.workload, library::reference_of(work.workload));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

// Each head of two that share keys is a part: dK and dV are summed in memory.
TEST(AttentionBackwardSm100Test, PartsOfSharedHeads) {
  for (const char* schedule : {"sm100", "sm100_atomic", "sm100_split"}) {
    expect_gradients(
        {"heads=2", "kv_heads=1", "queries=130", "keys=140", "causal=true", "dim=80", "dim_v=48"},
        schedule);
  }
  expect_gradients({"heads=2", "kv_heads=1", "queries=130", "keys=140"}, "sm100_pairs_atomic");
}

// Two CTAs for 256 keys, of which the second one may have none.
TEST(AttentionBackwardSm100Test, PairsThatExchangeScores) {
  for (const char* length : {"0", "1", "130"}) {
    expect_gradients({"heads=1", std::string("queries=") + length, "keys=140"}, "sm100_pairs");
    expect_gradients({"heads=1", "causal=true", "queries=140", std::string("keys=") + length},
                     "sm100_pairs");
  }
  expect_gradients({"heads=2", "kv_heads=1", "queries=150", "keys=270", "causal=true", "window=40",
                    "softcap=5", "sinks=true", "lse_gradient=true"},
                   "sm100_pairs");
  expect_gradients({"heads=1", "queries=140", "keys=300", "dim=128", "dim_v=128"},
                   "sm100_pairs_atomic");
  expect_gradients({"heads=1", "queries=40", "keys=140", "dim=128", "dim_v=64"}, "sm100_pairs");
}

TEST(AttentionBackwardSm100Test, OfPackedSequences) {
  for (const char* schedule : {"schedule=sm100", "schedule=sm100_pairs"}) {
    test::expect_right({"attention_varlen_backward",
                        {schedule, "causal=true", "heads=2", "kv_heads=1", "batch=4",
                         "lengths_q=130,0,1,60", "lengths_k=140,5,1,0"}},
                       "sim:sm_100a");
  }
}

TEST(AttentionBackwardSm100Test, BecomesACubin) {
  if (const std::string why = runtime::why_no_nvrtc("sm_100a"); !why.empty()) GTEST_SKIP() << why;
  Attention a;
  a.dim = a.dim_v = 128;
  a.causal = true;
  a.heads = 2;
  a.kv_heads = 1;
  const auto expect_cubin = [](const Attention& attention, auto make) {
    const Sm100BackwardPlan plan =
        sm100_backward_plan(attention, Order::blocks, KeySums::in_turn, {"gradients", {}});
    const ir::Kernel machine =
        compiler::compile_to_machine(make(attention, plan, "gradients").finish(), "sm_100a").kernel;
    test::expect_no_stack(codegen::print(machine), "sm_100a");
  };
  expect_cubin(with_sm100_backward_blocks(a), gradients_sm100<Batch>);
  expect_cubin(with_sm100_backward_pair_blocks(a), pair_gradients_sm100<Batch>);
}

TEST(AttentionBackwardSm100Test, RefusesWhatItDoesNotTake) {
  const auto refused = [](const auto& change) {
    Attention a;
    change(a);
    return test::usage_error_of([&] { attention_backward_sm100(a); });
  };
  EXPECT_THAT(refused([](Attention& a) { a.dim = 144; }), HasSubstr("dim is 144"));
  EXPECT_THAT(refused([](Attention& a) { a.dim_v = 72; }), HasSubstr("dim_v is 72"));
  EXPECT_THAT(refused([](Attention& a) { a.dtype = f32; }), HasSubstr("dtype is f32"));
  EXPECT_THAT(refused([](Attention& a) { a.block_q = 64; }), HasSubstr("block_q is 64"));
  EXPECT_THAT(refused([](Attention& a) { a.block_k = 64; }), HasSubstr("block_k 64"));
  EXPECT_THAT(refused([](Attention& a) {
                a = with_sm100_backward_pair_blocks(a);
                a.dim = 96;
              }),
              HasSubstr("pairs of CTAs have 64 or 128"));
}

}  // namespace
}  // namespace tilewright::kernels
