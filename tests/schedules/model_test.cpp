#include "schedules/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "ir/text.h"
#include "schedules/followed_scalars.h"
#include "schedules/timeline.h"
#include "target/target.h"
#include "tilewright/blackwell.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/ranks.h"

namespace tilewright::schedules {
namespace {

const target::Device& kDevice = target::device_of("sm_90a");

ir::Kernel machine_of(const Kernel& kernel, std::string_view target = ir::default_target()) {
  return compiler::compile_to_machine(kernel.finish(), target).kernel;
}

kernels::Gemm tiles(int m, int n, int split = 1) {
  kernels::Gemm gemm;
  gemm.block_m = m;
  gemm.warpgroups = m / 64;
  gemm.block_n = n;
  gemm.split = split;
  return gemm;
}

ir::Binding gemm_sizes(std::int64_t m, std::int64_t n, std::int64_t k) {
  return ir::Binding({{"m", m}, {"n", n}, {"k", k}, {"multiprocessors", 132}});
}

double seconds(const kernels::Gemm& gemm, std::int64_t m, std::int64_t n, std::int64_t k) {
  return estimate(machine_of(kernels::gemm_sm90(gemm)), gemm_sizes(m, n, k), kDevice).seconds;
}

// All CTAs of a grid together.
CtaTimeline follow_all(const ir::Kernel& machine, const ir::Binding& binding, std::int64_t ctas) {
  CtaTimeline total;
  for (std::int64_t cta = 0; cta < ctas; ++cta) {
    const CtaTimeline one = follow_cta(machine, binding, cta, ctas, kDevice);
    total.fma += one.fma;
    total.load_bytes += one.load_bytes;
    total.store_bytes += one.store_bytes;
  }
  return total;
}

// As the kernel computes them: quotients are rounded down, whatever the sign.
TEST(ModelTest, ScalarsOfNegativeNumbers) {
  const auto number = [](ir::Op op, std::int64_t a, std::int64_t b) {
    const FollowedScalar result = evaluate_scalar(op, a, b);
    EXPECT_TRUE(result.known);
    return result.value;
  };
  EXPECT_EQ(number(ir::Op::div, -7, 2), -4);
  EXPECT_EQ(number(ir::Op::div, -8, 2), -4);
  EXPECT_EQ(number(ir::Op::div, 7, 2), 3);
  EXPECT_EQ(number(ir::Op::mod, -7, 3), 2);
  EXPECT_EQ(number(ir::Op::ceildiv, -7, 2), -3);
  EXPECT_EQ(number(ir::Op::ceildiv, 7, 2), 4);
  EXPECT_EQ(number(ir::Op::abs, -7, 0), 7);
  EXPECT_EQ(number(ir::Op::min, -7, 2), -7);
  EXPECT_FALSE(evaluate_scalar(ir::Op::div, 7, 0).known);
}

TEST(ModelTest, TheCtasOfAGemmDoItsWorkOnce) {
  const ir::Kernel machine = machine_of(kernels::gemm_sm90(tiles(128, 256)));
  // 3 x 70 tiles, which 132 CTAs take in turn; 50 steps, of which most are not followed.
  const CtaTimeline total = follow_all(machine, gemm_sizes(384, 70 * 256, 3200), 132);
  EXPECT_DOUBLE_EQ(total.fma, 384.0 * 70 * 256 * 3200);
  EXPECT_DOUBLE_EQ(total.load_bytes, 3.0 * 70 * 50 * (128 + 256) * 64 * 2);
  EXPECT_DOUBLE_EQ(total.store_bytes, 384.0 * 70 * 256 * 2);
}

TEST(ModelTest, TilesFromACounterAreDoneOnceToo) {
  kernels::Attention attention;
  attention.dim = attention.dim_v = 128;
  attention = kernels::with_sm90_blocks(attention);
  const std::int64_t length = 22 * attention.block_q;
  const auto work = [&](bool causal) {
    attention.causal = causal;
    const ir::Kernel machine = machine_of(kernels::attention_forward_sm90(attention));
    const ir::Binding sizes(
        {{"batch", 1}, {"queries", length}, {"keys", length}, {"multiprocessors", 132}});
    return follow_all(machine, sizes, 132).fma;
  };
  const double full = 8.0 * static_cast<double>(length * length) * (128 + 128);
  EXPECT_DOUBLE_EQ(work(false), full);
  EXPECT_NEAR(work(true), 0.5 * full, 0.03 * full) << "the blocks on the diagonal are whole";
}

// A ring of one stage has constants for elements, which other barriers have for indices.
TEST(ModelTest, NumbersOfASingleStageAreFollowed) {
  kernels::Attention a;
  a.heads = 4;
  a.kv_heads = 2;
  a.dim = a.dim_v = 64;
  const ir::Program program =
      kernels::attention_backward_sm90(kernels::with_sm90_backward_blocks(a)).finish();
  const ir::Kernel machine =
      compiler::compile_to_machine(*program.kernels[1], ir::default_target()).kernel;
  const auto work = [&](std::int64_t queries, std::int64_t keys) {
    const ir::Binding sizes(
        {{"batch", 3}, {"queries", queries}, {"keys", keys}, {"multiprocessors", 5}, {"parts", 1}});
    const double flops = product_flops(machine, sizes, kDevice);
    EXPECT_DOUBLE_EQ(flops, 2 * follow_all(machine, sizes, 5).fma);
    return flops;
  };
  EXPECT_DOUBLE_EQ(work(640, 1024), 2.0 * 3 * 4 * 640 * 1024 * 5 * 64);
  EXPECT_DOUBLE_EQ(work(128, 128), 2.0 * 3 * 4 * 128 * 128 * 5 * 64);
}

// A pair takes a number for both of its CTAs, and one of them tells the other.
TEST(ModelTest, BlocksOfPairsAreDoneOnceToo) {
  kernels::Attention a;
  a.heads = a.kv_heads = 2;
  a.dim = a.dim_v = 64;
  const ir::Program program =
      kernels::attention_backward_sm100(kernels::with_sm100_backward_pair_blocks(a)).finish();
  const ir::Kernel machine = compiler::compile_to_machine(*program.kernels[1], "sm_100a").kernel;
  const auto flops = [&](std::int64_t queries, std::int64_t keys, std::int64_t multiprocessors) {
    const ir::Binding sizes({{"batch", 3},
                             {"queries", queries},
                             {"keys", keys},
                             {"multiprocessors", multiprocessors},
                             {"parts", 1}});
    return product_flops(machine, sizes, target::device_of("sm_100a"));
  };
  EXPECT_DOUBLE_EQ(flops(256, 2048, 148), 2.0 * 3 * 2 * 256 * 2048 * 5 * 64);
  EXPECT_DOUBLE_EQ(flops(256, 2048, 4), flops(256, 2048, 148)) << "12 numbers a pair";
}

// Warpgroups that compute between products come out of step, and hide each other's pauses: those
// of the first tile alone are seen, and what comes behind the last.
TEST(ModelTest, WarpgroupsOutOfStepHidePauses) {
  const auto pauses = [](const ir::Kernel& machine, std::int64_t tiles) {
    const ir::Binding sizes(
        {{"batch", tiles}, {"queries", 192}, {"keys", 1024}, {"multiprocessors", 1}, {"parts", 1}});
    return follow_cta(machine, sizes, 0, 1, kDevice).pauses;
  };
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 64;
  const ir::Kernel forward =
      machine_of(kernels::attention_forward_sm90(kernels::with_sm90_blocks(a)));
  EXPECT_GT(pauses(forward, 1), 3000);
  EXPECT_LT(pauses(forward, 8), 1.2 * pauses(forward, 1));
  // Those of the gradients meet in each turn.
  const ir::Program program =
      kernels::attention_backward_sm90(kernels::with_sm90_backward_blocks(a)).finish();
  const ir::Kernel backward =
      compiler::compile_to_machine(*program.kernels[1], ir::default_target()).kernel;
  EXPECT_GT(pauses(backward, 8), 7 * pauses(backward, 1));
}

// Heads whose keys and values lie in L2 together come in groups: of three heads two, and the last.
TEST(ModelTest, TheLastGroupOfHeadsIsDoneOnceToo) {
  const auto work = [](int heads) {
    kernels::Attention attention;
    attention.heads = attention.kv_heads = heads;
    attention.causal = true;
    const ir::Kernel machine = machine_of(kernels::attention_forward(attention));
    const std::int64_t length = 49152;  // 12.6 MB of a head
    const ir::Binding sizes(
        {{"batch", 1}, {"queries", length}, {"keys", length}, {"multiprocessors", 132}});
    return follow_all(machine, sizes, 132).fma;
  };
  EXPECT_DOUBLE_EQ(work(3), 3 * work(1));
}

TEST(ModelTest, TheSlowestResourceBinds) {
  const ir::Kernel machine = machine_of(kernels::gemm_sm90(tiles(128, 256)));
  const Estimate large = estimate(machine, gemm_sizes(8192, 8192, 8192), kDevice);
  EXPECT_EQ(large.bound, "tensor cores");
  EXPECT_EQ(large.ctas, 132);
  EXPECT_EQ(large.resident, 1);
  EXPECT_EQ(large.shared_bytes, machine.shared_bytes);
  const Estimate thin = estimate(machine_of(kernels::gemm_sm90(tiles(64, 128, 4))),
                                 gemm_sizes(16, 8192, 8192), kDevice);
  EXPECT_EQ(thin.bound, "memory");
  EXPECT_GT(thin.seconds, 8192.0 * 8192 * 2 / 4.8e12);
}

// Measured on one H200: docs/log/2026-11-21-gemm-first-form.md.
TEST(ModelTest, EstimatesAreNearWhatWasMeasured) {
  const auto ratio = [](double size, double tflops) {
    const auto n = static_cast<std::int64_t>(size);
    return seconds(tiles(128, 256), n, n, n) / (2 * size * size * size / (tflops * 1e12));
  };
  EXPECT_NEAR(ratio(2048, 610), 1, 0.25);
  EXPECT_NEAR(ratio(4096, 780), 1, 0.25);
  EXPECT_NEAR(ratio(8192, 809), 1, 0.25);
}

TEST(ModelTest, ShapesRankVariantsDifferently) {
  EXPECT_LT(seconds(tiles(64, 128, 4), 16, 4096, 4096), seconds(tiles(128, 256), 16, 4096, 4096));
  EXPECT_LT(seconds(tiles(128, 256), 8192, 8192, 8192), seconds(tiles(64, 64), 8192, 8192, 8192));
  EXPECT_LT(seconds(tiles(128, 256), 8192, 8192, 8192), seconds(tiles(64, 256), 8192, 8192, 8192));
  // 132 tiles of 128 x 128 are one wave, of 128 x 256 half a wave.
  EXPECT_LT(seconds(tiles(128, 128), 1408, 1536, 4096), seconds(tiles(128, 256), 1408, 1536, 4096));
}

// By published measurements of a B200: a product of 128 x 128 x 128 takes 512 cycles of the tensor
// cores, as many of shared memory for its operands, and as many for their copies to it; exp2 of
// 128 x 128 elements takes 1024. Each tile that is added to and read crosses the port of tensor
// memory. Nothing of it has run.
TEST(ModelTest, UnitsOfBlackwellHavePublishedCycles) {
  kernels::Gemm gemm;
  gemm.block_n = gemm.block_k = 128;
  const ir::Kernel machine =
      compiler::compile_to_machine(kernels::gemm_sm100(gemm, kernels::GemmRoles::one_tile).finish(),
                                   "sm_100a")
          .kernel;
  const target::Device& device = target::device_of("sm_100a");
  const auto follow = [&](std::int64_t k) {
    return follow_cta(machine, gemm_sizes(128, 128, k), 0, 1, device);
  };
  const CtaTimeline one = follow(128), two = follow(256);
  EXPECT_NEAR((two.products - one.products) * device.reached.product_share, 512, 1e-6);
  EXPECT_DOUBLE_EQ(two.shared - one.shared, 512 + 512);
  const double sums = 128 * 128 * 4 / device.reached.tensor_bytes;
  EXPECT_NEAR(two.tensor_memory - one.tensor_memory, 8 * sums, 1e-6) << "a step of k adds once";
  EXPECT_NEAR(one.tensor_memory, 8 * sums + sums, 1e-6) << "and the epilogue reads once";
  const target::Rates& rates = target::find_target("sm_100a").rates;
  EXPECT_EQ(128 * 128 * rates.issue_special / (4 * 32), 1024);
}

// Each CTA of a pair reads its rows and half of b, and half of a tile's products are its own: per
// tile of 256 x 128 by steps of 128 half as many bytes of b as two CTAs alone.
TEST(ModelTest, ACtaOfAPairReadsHalfOfTheColumns) {
  kernels::Gemm gemm;
  gemm.block_n = gemm.block_k = 128;
  const ir::Kernel machine =
      compiler::compile_to_machine(kernels::gemm_sm100(gemm, kernels::GemmRoles::pairs).finish(),
                                   "sm_100a")
          .kernel;
  const target::Device& device = target::device_of("sm_100a");
  const auto follow = [&](std::int64_t k, std::int64_t cta) {
    return follow_cta(machine, gemm_sizes(256, 128, k), cta, 2, device);
  };
  const CtaTimeline one = follow(128, 0), two = follow(256, 0);
  // 128 rows and 64 columns of 256 bytes, by 128 bytes a cycle; and their copies.
  EXPECT_DOUBLE_EQ(two.shared - one.shared, 2 * (128 + 64) * 256.0 / 128);
  EXPECT_NEAR((two.products - one.products) * device.reached.product_share, 512, 1e-6);
  const CtaTimeline deep = follow(1 << 16, 0), deeper = follow(1 << 17, 0);
  EXPECT_NEAR((deeper.chain - deep.chain) / (deeper.products - deep.products), 1, 0.05);
  // The first CTA issues the products of both.
  EXPECT_EQ(follow(256, 1).products, 0);
  const Estimate whole = estimate(machine, gemm_sizes(4096, 4096, 4096), device);
  EXPECT_GE(whole.products, 2.0 * 4096 * 4096 * 4096 / device.half_flops);
  EXPECT_DOUBLE_EQ(product_flops(machine, gemm_sizes(256, 256, 128), device),
                   2.0 * 256 * 256 * 128);
}

// Of CTAs that take over places the mean counts: that of the first CTAs of pairs.
TEST(ModelTest, PairsThatTakeOverPlacesMultiplyAsLong) {
  const target::Device& device = target::device_of("sm_100a");
  const auto products = [&](kernels::GemmRoles roles) {
    kernels::Gemm gemm;
    const ir::Kernel machine = machine_of(kernels::gemm_sm100(gemm, roles), "sm_100a");
    return estimate(machine, gemm_sizes(8192, 8192, 4096), device).products;
  };
  const double all = products(kernels::GemmRoles::pairs);
  EXPECT_NEAR(products(kernels::GemmRoles::handed_out), all, 0.2 * all);
}

TEST(ModelTest, ASlowPortOfTensorMemoryIsWaitedFor) {
  target::Device device = target::device_of("sm_100a");
  device.reached.tensor_bytes = 10;
  const Estimate slow = estimate(machine_of(kernels::gemm_sm100({}), "sm_100a"),
                                 gemm_sizes(2048, 2048, 2048), device);
  EXPECT_EQ(slow.bound, "tensor memory");
  EXPECT_GT(slow.seconds, slow.tensor_memory);
}

// An operand that lies in tensor memory crosses its port, and 64 rows take as long as 128.
TEST(ModelTest, OperandsInTensorMemoryCrossItsPort) {
  const auto follow = [](int rows, bool from_shared) {
    Kernel kernel("one");
    kernel.target("sm_100a");
    kernel.ctas(1);
    (void)kernel.out("C", f32, {rows, 64});
    const SharedTile a(kernel, "a", bf16, rows, 64), b(kernel, "b", bf16, 64, 64);
    const TensorMemory sums(kernel, "sums", 64), operand(kernel, "operand", 32);
    kernel.roles({role("multiply", warps(1), registers(64), [&] {
      sums.allocate();
      operand.allocate();
      const TensorColumns to = rows == 128 ? sums.attach() : sums.attach().half(0);
      const TensorColumns from = rows == 128 ? operand.attach() : operand.attach().half(0);
      if (from_shared) {
        mma(to, a, b.T(), false);
      } else {
        mma(to, from, b.T(), false);
      }
    })});
    return follow_cta(compiler::compile_to_machine(kernel.finish(), "sm_100a").kernel,
                      ir::Binding(std::map<std::string, std::int64_t>{}), 0, 1,
                      target::device_of("sm_100a"));
  };
  const double a_bytes = 128 * 64 * 2;
  const CtaTimeline shared = follow(128, true), tensor = follow(128, false);
  EXPECT_NEAR(tensor.tensor_memory - shared.tensor_memory,
              a_bytes / target::device_of("sm_100a").reached.tensor_bytes, 1e-6);
  EXPECT_NEAR(follow(64, false).products, tensor.products, 1e-6);
}

// A run of products of many milliseconds lowers the clock, a short one does not. Each
// multiprocessor has as many tiles.
TEST(ModelTest, LongRunsOfProductsAreSlower) {
  const std::int64_t m = std::int64_t{128} * kDevice.multiprocessors;
  const auto seconds_a_tile = [&](std::int64_t tiles_each) {
    const Estimate each = estimate(machine_of(kernels::gemm_sm90(tiles(128, 256))),
                                   gemm_sizes(m, 256 * tiles_each, 4096), kDevice);
    return each.products / static_cast<double>(tiles_each);
  };
  EXPECT_NEAR(seconds_a_tile(3000) / seconds_a_tile(1), 1 + kDevice.reached.slowing, 0.02);
}

// Of eight CTAs that share operands seven load rows of A for two of them that no tensor has.
TEST(ModelTest, RowsBehindTheEndThatCtasShareAreCounted) {
  constexpr int kClusters = 15, kSteps = 10, kCtas = 8 * kClusters;
  kernels::Gemm gemm = tiles(128, 96);
  gemm.share_a = 2;
  gemm.share_b = 4;
  const double part = 64 * gemm.block_k * 2;
  const auto zeros = [&](const kernels::Gemm& of, std::int64_t m, int ctas) {
    const ir::Kernel machine = machine_of(kernels::gemm_sm90(of));
    const ir::Binding sizes = gemm_sizes(m, kClusters * 2 * gemm.block_n, kSteps * gemm.block_k);
    double sum = 0;
    for (int cta = 0; cta < ctas; ++cta) {
      sum += follow_cta(machine, sizes, cta, ctas, kDevice).shared_zeros;
    }
    const double clocks = estimate(machine, sizes, kDevice).zeros * kDevice.reached.clock;
    EXPECT_NEAR(clocks * kDevice.reached.shared_zero_bytes, sum, 0.01 * sum);
    return sum;
  };
  EXPECT_EQ(zeros(gemm, 64, kCtas), 7 * kClusters * kSteps * part);
  EXPECT_EQ(zeros(gemm, 32, kCtas), 7.5 * kClusters * kSteps * part);
  EXPECT_EQ(zeros(gemm, 512, kCtas), 0);
  EXPECT_EQ(zeros(tiles(128, 96), 64, 30), 0) << "each has its own copies";
}

TEST(ModelTest, RowsThatBeginBetweenLinesTakeLonger) {
  const ir::Kernel machine = machine_of(kernels::gemm_sm90(tiles(128, 96)));
  const auto of_a_byte = [&](std::int64_t k) {
    const CtaTimeline one = follow_cta(machine, gemm_sizes(1024, 960, k), 0, 80, kDevice);
    return one.loads / one.load_bytes * kDevice.reached.l2_bytes;
  };
  EXPECT_NEAR(of_a_byte(1024), 1, 1e-9);
  // Every second row of 2112 bytes begins on a line, and every fourth one of 2080.
  const double lines = kDevice.reached.between_lines, sectors = kDevice.reached.between_sectors;
  EXPECT_NEAR(of_a_byte(1056), 1 + lines / 2, 1e-9);
  EXPECT_NEAR(of_a_byte(1040), 1 + lines * 3 / 4, 1e-9);
  EXPECT_NEAR(of_a_byte(1032), 1 + lines * 7 / 8 + sectors / 2, 1e-9);
}

TEST(ModelTest, WhatIsWrittenHasATimeOfItsOwn) {
  const ir::Kernel machine = machine_of(kernels::gemm_sm90(tiles(128, 96)));
  const auto bytes = [&](std::int64_t n) {
    const double seconds = estimate(machine, gemm_sizes(1024, n, 512), kDevice).memory;
    return seconds * kDevice.reached.memory_bytes - 2 * 512 * (1024 + static_cast<double>(n));
  };
  const double written = kDevice.reached.written;
  EXPECT_NEAR(bytes(960) / (2 * 1024 * 960), written, 1e-9);
  EXPECT_NEAR(bytes(968) / (2 * 1024 * 968),
              written * (1 + kDevice.reached.written_between_sectors / 2), 1e-9);
}

TEST(ModelTest, WhatGoesToAnotherRankIsStoredToo) {
  const auto stored = [](bool to_other) {
    Kernel kernel("sent");
    kernel.ranks();
    const Tensor box = kernel.symmetric("box", bf16, {64, 64});
    const SharedTile tile(kernel, "tile", bf16, 64, 64);
    kernel.ctas(1);
    kernel.roles({role("send", warps(1), registers(240), [&] {
      to_other ? tma_store(box.at(1)(all, all), tile) : tma_store(box(all, all), tile);
      bulk_commit();
      bulk_wait(0);
    })});
    const ir::Binding sizes({{"ranks", 2}, {"multiprocessors", 132}});
    return follow_cta(machine_of(kernel), sizes, 0, 1, kDevice).store_bytes;
  };
  EXPECT_GT(stored(false), 0);
  EXPECT_DOUBLE_EQ(stored(true), stored(false));
}

// Twice a tile: until the parts of the sum are there, and until all have read them. Meanwhile a
// store may come to its end that was waited for before.
TEST(ModelTest, CtasThatShareASumWaitForEachOther) {
  constexpr std::int64_t kTiles = 3;
  target::Device in_step = kDevice;
  in_step.reached.cluster_wait = in_step.reached.cluster_wait_each = 0;
  for (const int split : {1, 2, 8}) {
    const double wait = kDevice.reached.cluster_wait + split * kDevice.reached.cluster_wait_each;
    const ir::Kernel machine = machine_of(kernels::gemm_sm90(tiles(64, 64, split)));
    const ir::Binding binding = gemm_sizes(64, 64 * kTiles, 4096);
    const double waited = follow_cta(machine, binding, 0, split, kDevice).pauses -
                          follow_cta(machine, binding, 0, split, in_step).pauses;
    EXPECT_NEAR(waited, split == 1 ? 0 : 2 * kTiles * wait, kDevice.reached.store_read_latency);
  }
}

// Blocks of keys that begin together add to the same sums of dQ, one after the other.
TEST(ModelTest, WhoAddsInTurnWaitsForThoseBefore) {
  constexpr int kHeads = 2, kBlocks = 8, kCtas = kHeads * kBlocks;
  kernels::Attention a;
  a.heads = a.kv_heads = kHeads;
  a.dim = a.dim_v = 64;
  a = kernels::with_sm90_backward_blocks(a);
  const ir::Binding sizes({{"batch", 1},
                           {"queries", 1024},
                           {"keys", std::int64_t{kBlocks} * a.block_k},
                           {"multiprocessors", kCtas},
                           {"parts", 1}});
  const auto gradients = [&](Order order) {
    const ir::Program program = kernels::attention_backward_sm90(a, false, order).finish();
    return compiler::compile_to_machine(*program.kernels[1], ir::default_target()).kernel;
  };
  const auto turns = [&](const ir::Kernel& machine, int cta) {
    return follow_cta(machine, sizes, cta, kCtas, kDevice).turns;
  };
  const ir::Kernel ordered = gradients(Order::blocks);
  const ir::Kernel atomic = gradients(Order::any);
  for (int cta = 0; cta < kCtas; ++cta) {
    EXPECT_EQ(turns(ordered, cta), cta / kHeads) << cta;
    EXPECT_EQ(turns(atomic, cta), 0) << cta;
  }
  target::Device at_once = kDevice;
  at_once.reached.turn = 0;
  at_once.multiprocessors = kCtas;
  target::Device in_turn = at_once;
  in_turn.reached.turn = kDevice.reached.turn;
  EXPECT_GT(kDevice.reached.turn, 1000);
  EXPECT_NEAR(estimate(ordered, sizes, in_turn).seconds - estimate(ordered, sizes, at_once).seconds,
              (kBlocks - 1) * kDevice.reached.turn / kDevice.reached.clock, 1e-12);
}

// Each block of keys adds to dQ of all queries, but for one, which stores.
TEST(ModelTest, AdditionsToMemoryTakeTheirTime) {
  constexpr int kBlocks = 4, kQueries = 1024;
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 64;
  a = kernels::with_sm90_backward_blocks(a);
  const ir::Binding sizes({{"batch", 1},
                           {"queries", kQueries},
                           {"keys", std::int64_t{kBlocks} * a.block_k},
                           {"multiprocessors", kBlocks},
                           {"parts", 1}});
  target::Device device = kDevice;
  device.multiprocessors = kBlocks;
  const ir::Program program = kernels::attention_backward_sm90(a).finish();
  const ir::Kernel machine =
      compiler::compile_to_machine(*program.kernels[1], ir::default_target()).kernel;
  const Estimate result = estimate(machine, sizes, device);
  const double bytes = double{kQueries} * a.dim * size_of(f32) * (kBlocks - 1) / kBlocks;
  EXPECT_NEAR(result.additions, bytes / device.reached.added_bytes / device.reached.clock, 1e-12);
  device.reached.added_bytes /= 4;
  const Estimate slow = estimate(machine, sizes, device);
  EXPECT_EQ(slow.bound, "additions to memory");
  EXPECT_GT(slow.seconds, 1.2 * result.seconds);
}

// Of divided keys the last part joins the others, which have left theirs. It adds to no sum.
TEST(ModelTest, WhoJoinsPartsHasNoTurn) {
  constexpr int kCtas = 8;
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 64;
  a = kernels::with_sm90_blocks(a);
  a.in_parts = true;
  const ir::Kernel machine = machine_of(kernels::attention_forward_sm90(a));
  const ir::Binding sizes(
      {{"batch", 1},
       {"queries", 3 * a.block_q},  // so that some join one tile and leave another
       {"keys", std::int64_t{64} * a.block_k},
       {"multiprocessors", kCtas}});
  for (int cta = 0; cta < kCtas; ++cta) {
    EXPECT_EQ(follow_cta(machine, sizes, cta, kCtas, kDevice).turns, 0) << cta;
  }
}

// Where tiles are as long, five of them take four CTAs as long as eight.
TEST(ModelTest, TheLastTilesAreWaitedFor) {
  constexpr int kCtas = 4;
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 128;
  a = kernels::with_sm90_blocks(a);
  target::Device device = kDevice;
  device.multiprocessors = kCtas;
  device.reached.power = 0;  // fewer products at a time have a higher clock
  const ir::Kernel machine = machine_of(kernels::attention_forward_sm90(a));
  const auto seconds_of = [&](int tiles) {
    const ir::Binding sizes({{"batch", 1},
                             {"queries", std::int64_t{tiles} * a.block_q},
                             {"keys", std::int64_t{64} * a.block_k},
                             {"multiprocessors", kCtas}});
    return estimate(machine, sizes, device).seconds - device.reached.launch_seconds;
  };
  EXPECT_NEAR(seconds_of(5), seconds_of(8), 0.03 * seconds_of(8));
  EXPECT_NEAR(seconds_of(4), 0.5 * seconds_of(8), 0.05 * seconds_of(8));
}

// Of a causal mask the longest tiles come first, and who ends first takes the next. So twelve tiles
// take eight CTAs as long as the longest one alone.
TEST(ModelTest, WhoEndsFirstTakesTheNextTile) {
  constexpr int kCtas = 8, kTiles = 12;
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 128;
  a.causal = true;
  a = kernels::with_sm90_blocks(a);
  target::Device device = kDevice;
  device.multiprocessors = kCtas;
  device.reached.power = device.reached.slowing = 0;
  const ir::Kernel machine = machine_of(kernels::attention_forward_sm90(a));
  const auto products_of = [&](int tiles) {
    const ir::Binding sizes({{"batch", 1},
                             {"queries", std::int64_t{tiles} * a.block_q},
                             {"keys", std::int64_t{kTiles} * a.block_q},
                             {"multiprocessors", kCtas}});
    return estimate(machine, sizes, device).products;
  };
  EXPECT_NEAR(products_of(kTiles), products_of(1), 0.15 * products_of(1));
}

// The automatic schedule does so as it begins a tile. Of a loop of 600 turns the one that takes the
// next tile is followed, and not many of the others.
TEST(ModelTest, WhenTheNextTileIsTaken) {
  kernels::Attention a;
  a.heads = a.kv_heads = 1;
  a.dim = a.dim_v = 128;
  a.causal = true;
  const ir::Binding sizes(
      {{"batch", 1}, {"queries", 1536}, {"keys", 600 * 64}, {"multiprocessors", 4}});
  const CtaTimeline at_begin =
      follow_cta(machine_of(kernels::attention_forward(a)), sizes, 0, 4, kDevice);
  EXPECT_TRUE(at_begin.counts_tiles);
  EXPECT_TRUE(at_begin.takes_ahead);
  a = kernels::with_sm90_blocks(a);
  const CtaTimeline near_end =
      follow_cta(machine_of(kernels::attention_forward_sm90(a)), sizes, 0, 4, kDevice);
  EXPECT_TRUE(near_end.counts_tiles);
  EXPECT_FALSE(near_end.takes_ahead);
  EXPECT_EQ(near_end.tiles.size(), 2U) << "of eight";
}

// What stands outside the roles each warpgroup of the CTA does, one beside the other.
TEST(ModelTest, WhatAllWarpsDoTakesAsLongAsThereAreWarps) {
  const auto cycles = [](int threads) {
    std::string text = fmt::format(
        "kernel \"common\" machine\ntarget \"sm_90a\"\ngrid (1)\nthreads {}\nbody () {{\n",
        threads);
    for (int i = 0; i < 8; ++i) text += "  warp_sync\n";
    return follow_cta(ir::parse_text(text + "}\n", "common.tw"), ir::Binding(), 0, 1, kDevice)
        .chain;
  };
  EXPECT_GT(cycles(128), 0);
  EXPECT_NEAR(cycles(512), 4 * cycles(128), 0.1 * cycles(512));
}

TEST(ModelTest, NothingToDoTakesALaunch) {
  const ir::Kernel machine = machine_of(kernels::gemm_sm90(tiles(128, 256)));
  EXPECT_LT(estimate(machine, gemm_sizes(0, 512, 512), kDevice).seconds,
            kDevice.reached.launch_seconds + 2e-6);
}

}  // namespace
}  // namespace tilewright::schedules
