#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "codegen/print.h"
#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "kernels/attention_case.h"
#include "kernels/expect_no_stack.h"
#include "kernels/library_case.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"

// Attention for sm_100a, on the virtual GPU and up to its cubin. No such GPU has run it.
namespace tilewright::kernels {
namespace {

using test_attention::Problem;
using test_attention::reference;
using test_attention::Reference;
using test_attention::Tensors;
using testing::HasSubstr;

class AttentionSm100 : public testing::TestWithParam<AttentionRoles> {
 protected:
  static ir::Kernel machine_of(const Attention& a) {
    return compiler::compile_to_machine(attention_forward_sm100(a, GetParam()).finish(), "sm_100a")
        .kernel;
  }
  // With the blocks that ship, unless some are given.
  static Problem problem(std::int64_t queries, std::int64_t keys, bool causal = false) {
    Problem p;
    p.options.heads = p.options.kv_heads = 1;
    p.options.causal = causal;
    p.options.block_q = p.options.block_k = 0;
    p.queries = queries;
    p.keys = keys;
    return p;
  }
  static void check(Problem p, simulator::MachineOptions options = {}) {
    SCOPED_TRACE(testing::Message() << p.queries << " queries, " << p.keys << " keys, causal "
                                    << p.options.causal << ", dims " << p.options.dim << " and "
                                    << p.options.dim_v << ", seed " << options.seed);
    if (p.options.block_q == 0) p.options = with_sm100_blocks(p.options, GetParam());
    Tensors t(p);
    const simulator::MachineReport report =
        simulator::run_machine(machine_of(p.options), t.arguments(), options);
    ASSERT_TRUE(report.ok()) << report.faults[0].message << "\n" << report.faults[0].missing;
    const Reference r = reference(p, t);
    EXPECT_LT(test::relative_error(t.o, r.o), test::kTolerance);
    EXPECT_LT(test::relative_error(t.lse, r.lse), test::kLseTolerance);
    EXPECT_EQ(t.o.written_outside(), 0);
    EXPECT_EQ(t.lse.written_outside(), 0);
  }
  static simulator::MachineOptions one_cta() {
    simulator::MachineOptions options;
    options.multiprocessors = 1;
    return options;
  }
};
std::string name_of_roles(AttentionRoles roles) {
  switch (roles) {
    case AttentionRoles::ping_pong:
      return "PingPong";
    case AttentionRoles::one_tile:
      return "OneTile";
    case AttentionRoles::one_tile_shared:
      return "OneTileShared";
  }
  return "";
}
INSTANTIATE_TEST_SUITE_P(Roles, AttentionSm100,
                         testing::Values(AttentionRoles::ping_pong, AttentionRoles::one_tile,
                                         AttentionRoles::one_tile_shared),
                         [](const auto& info) { return name_of_roles(info.param); });

TEST_P(AttentionSm100, OfAllLengths) {
  for (const bool causal : {false, true}) {
    for (const std::int64_t length : {0, 1, 129, 300}) {
      check(problem(length, 140, causal), one_cta());
      check(problem(140, length, causal), one_cta());
    }
  }
}

// Several tiles of a CTA, whose maxima rise by far from block to block: sums are rescaled.
TEST_P(AttentionSm100, SumsAreRescaled) {
  for (const int dim : {64, 128}) {
    Problem p = problem(270, 520, true);
    p.options.scale = 3;
    p.options.dim = p.options.dim_v = dim;
    check(p, one_cta());
  }
}

// Weights in columns of their own and in those of the scores, and rows that are padded.
TEST_P(AttentionSm100, OfAllDims) {
  struct Dims {
    int dim, dim_v;
  };
  for (const Dims dims : std::vector<Dims>{{128, 128}, {192, 128}, {80, 48}, {16, 16}, {64, 240}}) {
    Problem p = problem(140, 270, true);
    p.options.dim = dims.dim;
    p.options.dim_v = dims.dim_v;
    p.options.dtype = dims.dim == 192 ? f16 : bf16;
    check(p);
  }
}

// Exponentials by a polynomial, of all keys, of none, and of what ships: with rows of which nothing
// is visible in some parts, and scores far below the maximum.
TEST_P(AttentionSm100, ExponentialsByAPolynomial) {
  Problem p = problem(140, 300, true);
  p.options.scale = 4;
  p.options = with_sm100_blocks(p.options, GetParam());
  const bool in_registers = GetParam() != AttentionRoles::one_tile_shared;
  EXPECT_EQ(p.options.polynomial_keys > 0, in_registers);
  for (const int keys : {0, p.options.block_k}) {
    p.options.polynomial_keys = in_registers ? keys : 0;
    check(p);
  }
}

TEST_P(AttentionSm100, HeadsWindowsCapsAndSinks) {
  struct Heads {
    int heads, kv_heads, window;
  };
  for (const Heads& h : std::vector<Heads>{{32, 1, 0}, {6, 2, 50}, {3, 3, 150}}) {
    Problem p = problem(40, 300, true);
    p.batch = 2;
    p.options.heads = h.heads;
    p.options.kv_heads = h.kv_heads;
    p.options.window = h.window;
    p.options.softcap = h.window > 100 ? 5 : 0;
    p.options.sinks = h.window > 0;
    check(p);
  }
}

TEST_P(AttentionSm100, NothingVisibleIsZeroAndMinusInfinity) {
  Problem p = problem(130, 5, true);
  p.options = with_sm100_blocks(p.options, GetParam());
  Tensors t(p);
  ASSERT_TRUE(simulator::run_machine(machine_of(p.options), t.arguments(), {}).ok());
  for (const std::int64_t row : {0, 64, 124}) {
    EXPECT_EQ(t.lse.at({0, 0, row}), -std::numeric_limits<double>::infinity());
    for (std::int64_t d = 0; d < 64; ++d) EXPECT_EQ(t.o.at({0, row, 0, d}), 0);
  }
}

// Whoever runs late or early, and whenever products and copies are over. With dim_v of 128, scores
// lie where the weights of the block before did.
TEST_P(AttentionSm100, UnderAdversarialSchedules) {
  for (const auto search :
       {simulator::Search::random, simulator::Search::delays, simulator::Search::held}) {
    for (const int dim_v : {64, 128}) {
      Problem p = problem(150, 260, true);
      p.options.dim_v = dim_v;
      p.options.scale = 2;
      simulator::MachineOptions options = one_cta();
      options.search = search;
      options.strict = true;
      for (options.seed = 0; options.seed < 2; ++options.seed) check(p, options);
    }
  }
}

TEST_P(AttentionSm100, OfPackedSequences) {
  const char* const schedules[] = {"schedule=sm100", "schedule=sm100_ts", "schedule=sm100_ss"};
  for (const char* causal : {"causal=false", "causal=true"}) {
    test::expect_right({"attention_varlen_forward",
                        {schedules[static_cast<int>(GetParam())], causal, "heads=2", "kv_heads=1",
                         "batch=4", "lengths_q=130,0,1,60", "lengths_k=140,5,1,0"}},
                       "sim:sm_100a");
  }
}

TEST_P(AttentionSm100, BecomesACubin) {
  if (const std::string why = runtime::why_no_nvrtc("sm_100a"); !why.empty()) GTEST_SKIP() << why;
  Attention a;
  a.dim = a.dim_v = 128;
  a.causal = true;
  const codegen::CudaSource source = codegen::print(machine_of(with_sm100_blocks(a, GetParam())));
  test::expect_no_stack(source, "sm_100a");
}

TEST_P(AttentionSm100, RefusesWhatItDoesNotTake) {
  const auto refused = [](const auto& change) {
    Attention a;
    a.block_q = GetParam() == AttentionRoles::ping_pong ? 256 : 128;
    change(a);
    return test::usage_error_of([&] { attention_forward_sm100(a, GetParam()); });
  };
  EXPECT_THAT(refused([](Attention& a) { a.dim = 72; }), HasSubstr("dim is 72"));
  EXPECT_THAT(refused([](Attention& a) { a.dtype = f32; }), HasSubstr("dtype is f32"));
  EXPECT_THAT(refused([](Attention& a) { a.block_q = 192; }), HasSubstr("block_q is 192"));
  EXPECT_THAT(refused([](Attention& a) { a.block_k = 144; }), HasSubstr("block_k is 144"));
  EXPECT_THAT(refused([](Attention& a) { a.in_pairs = true; }), HasSubstr("in_pairs is set"));
  EXPECT_THAT(refused([](Attention& a) { a.polynomial_keys = 24; }),
              HasSubstr("polynomial_keys is 24"));
  EXPECT_THAT(refused([](Attention& a) { a.polynomial_keys = 144; }),
              HasSubstr("polynomial_keys is 144"));
  EXPECT_THAT(refused([](Attention& a) { a.dim = a.dim_v = 256; }),
              testing::AnyOf(HasSubstr("do not fit 512 columns of tensor memory"),
                             HasSubstr("bytes of shared memory")));
}

TEST(AttentionSm100Test, WhatTwoTilesDoNotServeNamesTheScheduleThatDoes) {
  Attention a;
  a.dim_v = 256;
  const std::string error =
      test::usage_error_of([&] { attention_forward_sm100(with_sm100_blocks(a)); });
  EXPECT_THAT(error, HasSubstr("blocks of 16 keys and sums of 256 columns of 2 tiles"));
  EXPECT_THAT(error, HasSubstr("schedule sm100_ts"));
  // The library's rule takes it there.
  test::expect_right({"attention_forward", {"heads=1", "queries=70", "keys=70", "dim_v=256"}},
                     "sim:sm_100a");
}

// Either GPU's kernel is an error for the other.
TEST(AttentionSm100Test, KernelsAreThoseOfTheirTarget) {
  const auto error_of = [](const Kernel& kernel, const char* target) {
    return test::usage_error_of([&] { compiler::compile_to_machine(kernel.finish(), target); });
  };
  const Attention a;
  EXPECT_THAT(error_of(attention_forward_sm100(with_sm100_blocks(a)), "sm_90a"),
              HasSubstr("sm_90a"));
  EXPECT_THAT(error_of(attention_forward_sm90(a), "sm_100a"), HasSubstr("sm_100a"));
}

// Jetson Thor lacks nothing that the kernels are written with.
TEST(AttentionSm100Test, ThorTakesThemToo) {
  const Attention a = with_sm100_blocks({});
  const ir::Kernel traced = attention_forward_sm100(a).finish();
  const ir::Kernel machine = compiler::compile_to_machine(traced, "sm_110a").kernel;
  EXPECT_EQ(machine.target, "sm_110a");
  test::expect_right(
      {"attention_forward", {"schedule=sm100", "heads=1", "queries=40", "keys=40", "causal=true"}},
      "sim:sm_110a");
  test::expect_right({"gemm", {"m=130", "n=40", "k=40"}}, "sim:sm_110a");
  // A kernel for it may use what sm_100a lacks.
  Kernel kernel("thor");
  kernel.target("sm_110a");
  kernel.ctas(1);
  kernel.roles({role("nothing", warps(1), registers(64), [] {})});
  const std::string error =
      test::usage_error_of([&] { compiler::compile_to_machine(kernel.finish(), "sm_100a"); });
  EXPECT_THAT(error, HasSubstr("kernel thor is written for sm_110a"));
}

}  // namespace
}  // namespace tilewright::kernels
