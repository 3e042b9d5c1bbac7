#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "check/program_proof.h"
#include "check/ranks_subject.h"
#include "common/ranks_kernels.h"
#include "examples/all_reduce.h"
#include "library/program_simulation.h"
#include "tilewright/kernels/attention_ranks.h"
#include "tilewright/kernels/gemm_ranks.h"
#include "tilewright/program.h"

// Faults of signals between ranks, seeded at every site of kernels of several ranks, and found.
namespace tilewright::checks {
namespace {

TEST(RanksFaults, OfAnAllReduce) {
  const RanksSubject subject(examples::all_reduce(), 2, f32, {{100, 64}, {100, 64}, {4, 100, 64}});
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    ASSERT_EQ(subject.symptom(subject.machine(), seed, 3), "");
  }
  // The signal: relaxed, of the GPU alone, early; the wait: relaxed, of the GPU alone, left out.
  EXPECT_EQ(subject.expect_found(23, 3), 6);
  EXPECT_EQ(subject.expect_found(24, 3), 1);
}

// Whatever is seeded elsewhere is found in kernels of several ranks too.
TEST(RanksFaults, OfAllKinds) {
  const RanksSubject reduce(examples::all_reduce(), 2, f32, {{100, 64}, {100, 64}, {4, 100, 64}});
  const RanksSubject copied(test::Copied{}.kernel(), 2, bf16, {{64, 64}, {64, 64}, {64, 64}});
  int found = 0;
  for (int number = 1; number <= 25; ++number) {
    SCOPED_TRACE(number);
    found += reduce.expect_found(number, 2) + copied.expect_found(number, 2);
  }
  EXPECT_GT(found, 30);
}

TEST(RanksFaults, OfCopiesThroughTma) {
  const RanksSubject subject(test::Copied{}.kernel(), 2, bf16, {{64, 64}, {64, 64}, {64, 64}});
  ASSERT_EQ(subject.symptom(subject.machine(), 0, 1), "");
  // As of the all-reduce, and the proxy fence left out.
  EXPECT_EQ(subject.expect_found(23, 1), 7);
  EXPECT_EQ(subject.expect_found(16, 1), 1);
}

// What is known to go wrong between scatter and reduce: a signal behind a wait for the copies'
// sources alone (16), a relaxed one or wait, one of the GPU alone, none at all (23), and words that
// do not count up with the runs (24). A rank may be a run ahead in each.
TEST(RanksFaults, OfAGemmWithReduceScatter) {
  kernels::GemmReduceScatter o;
  o.gemm.block_m = 64;
  o.gemm.block_n = 32;
  o.gemm.warpgroups = 1;
  // One CTA ends with a tile that it sends, another one sends a tile and then adds its own.
  const RanksSubject subject(kernels::gemm_reduce_scatter_sm90(o),
                             {{"m", 60}, {"n", 40}, {"k", 24}}, 3);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    ASSERT_EQ(subject.symptom(subject.machine(), seed, 3), "");
  }
  EXPECT_GT(subject.expect_found(23, 3), 4);
  EXPECT_EQ(subject.expect_found(24, 3), 4);
  EXPECT_GT(subject.expect_found(16, 1), 0);
}

// The same of parts that the warp that loads waits for, and that come through TMA: there is a fence
// before them too.
TEST(RanksFaults, OfPartsThroughTheRing) {
  kernels::GemmReduceScatter o;
  o.gemm.block_m = o.gemm.block_n = 64;
  o.gemm.warpgroups = 1;
  const RanksSubject subject(kernels::gemm_reduce_scatter_sm90(o),
                             {{"m", 60}, {"n", 72}, {"k", 24}}, 3);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    ASSERT_EQ(subject.symptom(subject.machine(), seed, 3), "");
  }
  EXPECT_GT(subject.expect_found(23, 3), 4);
  EXPECT_GT(subject.expect_found(16, 1), 1);
}

// Of each kind how many mutants of a program of ranks are caught, as what they are, and as kind
// kUndecided how many are left undecided.
constexpr int kUndecided = 0;
using Chosen = std::function<bool(const MutantResult&)>;
// `numbers`: what vectors of i32 hold in every rank.
std::map<int, int> caught_in(const ir::Program& program, int ctas, const Chosen& chosen = {},
                             const std::map<std::string, std::vector<double>>& numbers = {}) {
  simulator::MachineOptions how;
  how.multiprocessors = how.resident = ctas;
  ProofOptions options;
  options.launches = 3;
  options.more = 100;
  const std::vector<ir::Kernel> kernels =
      library::machine_forms(program, ir::default_target()).front();
  if (chosen) {
    options.mutants.emplace();
    const std::vector<MutantResult> all = list_mutants(program, kernels);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (chosen(all[i])) options.mutants->insert(i);
    }
  }
  ProgramCase each = program_case(program, how, 0);
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const auto held = numbers.find(program.buffers[i].name);
    if (held == numbers.end()) continue;
    for (std::vector<HostTensor>& of_rank : each.before) {
      of_rank[i] = HostTensor::from_values(i32, of_rank[i].shape(), held->second);
    }
  }
  std::map<int, int> caught;
  for (const MutantResult& result : prove_program({each}, kernels, options)) {
    SCOPED_TRACE(result.mutant.operation + " " + result.mutant.change);
    if (result.verdict == MutantResult::Verdict::undecided) {
      ++caught[kUndecided];
      std::cout << "undecided: " << result.mutant.operation << ", " << result.mutant.change << "\n";
    }
    if (result.verdict != MutantResult::Verdict::caught) continue;
    EXPECT_TRUE(result.right_class) << result.fault.message;
    ++caught[result.kind->number];
  }
  return caught;
}

// Of the kernel: a relaxed wait, one of the GPU alone, none, no fence before its copies. Of the
// program: words that nobody waits for, writes or counts up, and a rank that pushes the next run's
// rows while others read this one's.
TEST(RanksFaults, OfAnAllGatherWithGemm) {
  kernels::AllGatherGemm o;
  o.gemm.block_m = 64;
  o.gemm.block_n = 32;
  o.gemm.warpgroups = 1;
  const Program recorded = kernels::all_gather_gemm_sm90(o);
  // Something in each of the blocks of rows and parts of the last one that are pushed.
  const ir::Program program =
      ir::bind_program(recorded.finish(), DimValues{{"m", 250}, {"n", 24}, {"k", 200}}, 2);
  std::map<int, int> caught = caught_in(program, 2);
  for (const int kind : {23, 27, 29, 30}) EXPECT_GT(caught[kind], 0) << kind;
  EXPECT_EQ(caught[kUndecided], 0);
}

// The same of parts that copy engines take from where the kernel has left them, and of parts that
// TMA adds to a sum that is zero when its owner has begun.
TEST(RanksFaults, OfPartsThatAreCopiedOrAdded) {
  kernels::GemmReduceScatter o;
  o.gemm.block_m = 64;
  o.gemm.block_n = 32;
  o.gemm.warpgroups = 1;
  for (const auto by : {kernels::PartsBy::copies, kernels::PartsBy::reduction}) {
    o.parts_by = by;
    // Of a block that is copied two CTAs have a tile each, and one CTA ends with a tile that it
    // sends.
    const Program recorded = kernels::gemm_reduce_scatter_sm90(o);
    const RanksSubject subject(recorded, {{"m", 60}, {"n", 72}, {"k", 24}}, 4);
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      ASSERT_EQ(subject.symptom(subject.machine(), seed, 3), "");
    }
    EXPECT_GT(subject.expect_found(23, 3), 2);
    EXPECT_GT(subject.expect_found(24, 3), 0);
    EXPECT_GT(subject.expect_found(16, 1), 0);
    if (by != kernels::PartsBy::copies) continue;
    // All of its four blocks have tiles.
    const ir::Program program =
        ir::bind_program(recorded.finish(), DimValues{{"m", 513}, {"n", 40}, {"k", 8}}, 2);
    std::map<int, int> caught = caught_in(program, 2);
    for (const int kind : {27, 29, 30}) EXPECT_GT(caught[kind], 0) << kind;
    EXPECT_EQ(caught[kUndecided], 0);
  }
}

// Of one head, under a mask.
kernels::SequenceParallelAttention small_attention() {
  kernels::SequenceParallelAttention o;
  o.attention.heads = o.attention.kv_heads = 1;
  o.attention.dim = o.attention.dim_v = 16;
  o.attention.block_q = 64;
  o.attention.block_k = 16;
  o.attention.causal = true;
  o.shards = Shards::zig_zag;
  return o;
}

// The same of keys that warps of the kernel push while attention runs: none of them is read before
// it is there, nor overwritten while others still read it.
TEST(RanksFaults, OfSequenceParallelAttention) {
  // So many keys that every rank sees something of each piece, and waits for its word.
  const ir::Program program =
      ir::bind_program(kernels::sequence_parallel_attention_sm90(small_attention()).finish(),
                       DimValues{{"batch", 1}, {"queries", 20}, {"keys", 104}}, 2);
  std::map<int, int> caught = caught_in(program, 2);
  for (const int kind : {23, 24}) EXPECT_GT(caught[kind], 2) << kind;
  // Whether a fence is needed before what others have read is written depends on who takes which
  // tile.
  EXPECT_LE(caught[kUndecided], 1);
}

// The same where copy engines bring keys: they may come before what came last is read, or be read
// before they have come.
TEST(RanksFaults, OfKeysThatAreCopied) {
  const ir::Program program =
      ir::bind_program(kernels::sequence_parallel_attention_copied_sm90(small_attention()).finish(),
                       DimValues{{"batch", 1}, {"queries", 20}, {"keys", 104}}, 2);
  std::map<int, int> caught = caught_in(program, 2, [](const MutantResult& mutant) {
    const std::string& what = mutant.mutant.operation;
    return what.find("arrived") != what.npos || what.find("taken") != what.npos;
  });
  EXPECT_EQ(caught[23],
            6);  // of pieces below and above those that are there: relaxed, of the GPU, none
  for (const int kind : {27, 29, 30}) EXPECT_GT(caught[kind], 0) << kind;
  EXPECT_EQ(caught[kUndecided], 0);
}

// Of parts of a tile's keys, in a kernel of one GPU: what a part leaves is read before it is there,
// or the word is not set back for the next launch. A third tile has two parts for two CTAs.
TEST(RanksFaults, OfPartsOfATile) {
  kernels::Attention a = small_attention().attention;
  a.causal = false;
  a.in_parts = true;
  Program program("parts", 1);
  const Dim all_keys = program.dim("all_keys");
  const Buffer rows = program.buffer("rows", bf16, {1, 190, 1, 16});
  const Buffer keys = program.buffer("keys", bf16, {1, all_keys, 1, 16});
  const Buffer outputs = program.buffer("outputs", bf16, {1, 190, 1, 16});
  const Buffer sums = program.buffer("sums", f32, {1, 1, 190});
  program.on_each_rank([&](const Rank& rank) {
    rank.stream().launch(kernels::attention_forward_sm90(a), {rows, keys, keys, outputs, sums});
  });
  RanksSubject subject(program, {{"all_keys", 280}}, 2);
  subject.further_sizes = {{"all_keys", 16}};  // one block, behind which the next tile is taken
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    ASSERT_EQ(subject.symptom(subject.machine(), seed, 3), "");
  }
  // The tile's place told before it is there, and that none is left; the wait relaxed, left out.
  EXPECT_EQ(subject.expect_found(23, 2), 4);
  // What is left not counted, the word not set back, and the number of the next tile in two places.
  EXPECT_EQ(subject.expect_found(24, 2), 4);
}

// Of gradients by one kernel of all heads: rows that are read before they have come, and gradients
// that are taken before they have. What happens to rank 0 stands for both.
TEST(RanksFaults, OfGradientsByHeads) {
  kernels::SequenceParallelAttention o;
  o.attention.heads = 4;  // of the first two that share keys the second comes late
  o.attention.kv_heads = 2;
  o.attention.dim = o.attention.dim_v = 64;
  o.attention.causal = true;
  o.attention = kernels::with_sm90_backward_blocks(o.attention);
  const ir::Program program =
      ir::bind_program(kernels::sequence_parallel_attention_backward_heads_sm90(o, false).finish(),
                       DimValues{{"batch", 1}, {"queries", 128}, {"keys", 256}}, 2);
  std::map<int, int> caught = caught_in(program, 2, [](const MutantResult& mutant) {
    const std::string& what = mutant.mutant.operation;
    if (what.find("arrived") == what.npos && what.find("done") == what.npos) return false;
    return mutant.kind->number == 23 || what.find("of rank 0[") != what.npos;
  });
  EXPECT_EQ(caught[23], 6);  // relaxed, of the GPU alone, none
  for (const int kind : {27, 29, 30}) EXPECT_GT(caught[kind], 0) << kind;
  EXPECT_EQ(caught[kUndecided], 0);
}

// Rows that see no keys get zeros at once, from other ranks too: not before their owner's caller has
// done with its gradients.
TEST(RanksFaults, GradientsOfRowsThatSeeNoKeysAreTheCallersUntilItsRunBegins) {
  kernels::SequenceParallelAttention o;
  o.attention.heads = o.attention.kv_heads = 2;
  o.attention.dim = o.attention.dim_v = 80;
  o.attention.causal = true;
  o.attention = kernels::with_sm90_backward_blocks(o.attention);
  RanksSubject subject(kernels::sequence_parallel_attention_backward_heads_sm90(o, false),
                       {{"batch", 1}, {"queries", 512}, {"keys", 256}}, 2);
  subject.has_callers = true;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    EXPECT_EQ(subject.symptom(subject.machine(), seed, 2), "");
  }
}

// Of gradients of packed sequences by heads, whose statistics have blocks of the axis.
TEST(RanksFaults, OfGradientsOfPackedSequencesByHeads) {
  kernels::SequenceParallelAttention o;
  o.attention.heads = o.attention.kv_heads = 2;
  o.attention.dim = o.attention.dim_v = 64;
  o.attention.causal = true;
  o.attention = kernels::with_sm90_backward_blocks(o.attention);
  const ir::Program program = ir::bind_program(
      kernels::sequence_parallel_varlen_attention_backward_heads_sm90(o, false).finish(),
      DimValues{{"batch", 2}, {"total_queries", 128}, {"total_keys", 256}}, 2);
  std::map<int, int> caught =
      caught_in(program, 2,
                [](const MutantResult& mutant) {
                  const std::string& what = mutant.mutant.operation;
                  if (what.find("arrived") == what.npos && what.find("done") == what.npos)
                    return false;
                  return mutant.kind->number == 23 || what.find("of rank 0[") != what.npos;
                },
                {{"cu_seqlens_q", {0, 70, 256}}, {"cu_seqlens_k", {0, 100, 512}}});
  EXPECT_EQ(caught[23], 3);  // relaxed, of the GPU alone, none
  for (const int kind : {27, 29, 30}) EXPECT_GT(caught[kind], 0) << kind;
  EXPECT_EQ(caught[kUndecided], 0);
}

// Of a ring: keys that are read before they have come, or sent on, or overwritten while others read
// them.
TEST(RanksFaults, OfAttentionInARing) {
  kernels::SequenceParallelAttention o;
  o.attention.heads = o.attention.kv_heads = 1;
  o.attention.dim = o.attention.dim_v = 16;
  o.attention.block_q = 64;
  o.attention.block_k = 16;
  o.ranks = 3;
  const ir::Program program =
      ir::bind_program(kernels::ring_attention(o).finish(),
                       DimValues{{"batch", 1}, {"queries", 16}, {"keys", 16}}, 2);
  std::map<int, int> caught = caught_in(program, 2);
  for (const int kind : {27, 29, 30}) EXPECT_GT(caught[kind], 3) << kind;
  EXPECT_EQ(caught[kUndecided], 0);
}

}  // namespace
}  // namespace tilewright::checks
