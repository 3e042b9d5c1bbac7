#include "tilewright/kernels/attention_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "kernels/attention_ranks_case.h"
#include "kernels/execution.h"
#include "kernels/reference.h"
#include "tilewright/shards.h"

// Attention over ranks, on simulated GPUs and on the interpreter.
namespace tilewright::kernels {
namespace {

using test_ranks::check_entry;
using test_ranks::RankSizes;
using test_ranks::small;
using testing::HasSubstr;

struct RankRun {
  std::uint64_t seed = 0;
  int schedules = 1, runs = 2, multiprocessors = 3;
  bool by_heads = false, by_copies = false;
};

// The whole tensors, and what is known of their attention.
class Whole {
 public:
  Whole(const SequenceParallelAttention& o, const RankSizes& sizes, std::uint64_t seed = 7)
      : o_(o), sizes_(sizes) {
    const Attention& a = o.attention;
    const std::int64_t queries = o.ranks * sizes.queries, keys = o.ranks * sizes.keys;
    const auto add = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
      inputs_.push_back(HostTensor::random_normal(a.dtype, shape(rows, heads, dim), seed++));
    };
    add(queries, a.heads, a.dim);
    add(keys, a.kv_heads, a.dim);
    add(keys, a.kv_heads, a.dim_v);
    std::int64_t batch = sizes.batch;
    if (sizes.is_packed()) {
      for (const std::vector<double>& rows : {sizes.first_query, sizes.first_key}) {
        const auto count = static_cast<std::int64_t>(rows.size());
        inputs_.push_back(HostTensor::from_values(i32, {count}, rows));
        batch = count - 1;
      }
    }
    if (a.sinks) inputs_.push_back(HostTensor::random_normal(f32, {a.heads}, seed++));
    const AttentionSizes all{batch,    queries, keys,     a.heads,  a.kv_heads,
                             a.dim,    a.dim_v, a.causal, a.window, 1 / std::sqrt(a.dim),
                             a.softcap};
    wanted_ = sizes.is_packed() ? attention_varlen_reference(all, inputs_)
                                : attention_reference(all, inputs_);
  }

  // Of each rank, as the program takes them: Q, K, V, where sequences begin, O, LSE and the sinks.
  std::vector<std::vector<HostTensor>> shards() const {
    std::vector<std::vector<HostTensor>> ranks(o_.ranks);
    for (int i = 0; i < 3; ++i) {
      const std::vector<HostTensor> parts = shard(inputs_[i], sizes_.axis(), o_.ranks, o_.shards);
      for (int rank = 0; rank < o_.ranks; ++rank) ranks[rank].push_back(parts[rank]);
    }
    const Attention& a = o_.attention;
    for (std::vector<HostTensor>& own : ranks) {
      if (sizes_.is_packed()) own.insert(own.end(), {inputs_[3], inputs_[4]});
      own.push_back(HostTensor::poisoned(a.dtype, shape(sizes_.queries, a.heads, a.dim_v)));
      std::vector<std::int64_t> sums = {sizes_.batch, a.heads, sizes_.queries};
      if (sizes_.is_packed()) sums.erase(sums.begin());
      own.push_back(HostTensor::poisoned(f32, sums));
      if (a.sinks) own.push_back(inputs_.back());
    }
    return ranks;
  }

  // O's relative error, and the greatest of LSE. Rows of no sequence stay as they were.
  std::pair<double, double> errors(const std::vector<std::vector<HostTensor>>& ranks) const {
    const std::size_t at = sizes_.is_packed() ? 5 : 3;
    std::vector<HostTensor> outputs, sums;
    for (const std::vector<HostTensor>& own : ranks) {
      outputs.push_back(own[at]);
      sums.push_back(own[at + 1]);
    }
    const HostTensor o = unshard(outputs, sizes_.axis(), o_.shards);
    const HostTensor lse = unshard(sums, sizes_.axis() + 1, o_.shards);
    const std::int64_t rows = o_.ranks * sizes_.queries;
    double squares = 0, wanted = 1e-30, greatest = 0;
    for (std::int64_t i = 0; i < o.elements(); ++i) {
      const double right = wanted_[0][i], difference = o.flat(i) - right;
      if (std::isnan(right)) {
        squares += std::isnan(o.flat(i)) ? 0 : INFINITY;
        continue;
      }
      squares += std::isfinite(difference) ? difference * difference : INFINITY;
      wanted += right * right;
    }
    for (std::int64_t i = 0; i < lse.elements(); ++i) {
      if (!of_a_sequence(i % rows) || lse.flat(i) == wanted_[1][i]) continue;  // -inf, of no keys
      const double difference = std::abs(lse.flat(i) - wanted_[1][i]);
      greatest = std::max(greatest, std::isfinite(difference) ? difference : INFINITY);
    }
    return {std::sqrt(squares / wanted), greatest};
  }

  void expect(const std::vector<std::vector<HostTensor>>& ranks) const {
    const auto [error, of_lse] = errors(ranks);
    EXPECT_LT(error, test::kTolerance);
    EXPECT_LT(of_lse, test::kLseTolerance);
  }
  DimValues dims() const {
    if (sizes_.is_packed()) {
      return {{"batch", static_cast<std::int64_t>(sizes_.first_query.size()) - 1},
              {"total_queries", sizes_.queries},
              {"total_keys", sizes_.keys}};
    }
    return {{"batch", sizes_.batch}, {"queries", sizes_.queries}, {"keys", sizes_.keys}};
  }

 private:
  std::vector<std::int64_t> shape(std::int64_t rows, std::int64_t heads, std::int64_t dim) const {
    if (sizes_.is_packed()) return {rows, heads, dim};
    return {sizes_.batch, rows, heads, dim};
  }
  bool of_a_sequence(std::int64_t row) const {
    if (!sizes_.is_packed()) return true;
    const auto at = static_cast<double>(row);
    return at >= sizes_.first_query.front() && at < sizes_.first_query.back();
  }

  SequenceParallelAttention o_;
  RankSizes sizes_;
  std::vector<HostTensor> inputs_;
  std::vector<std::vector<double>> wanted_;
};

// Outputs behind the last of several runs under each of several schedules.
std::vector<std::vector<HostTensor>> simulated(const SequenceParallelAttention& o,
                                               const Whole& whole, const RankSizes& sizes,
                                               const RankRun& how = {}) {
  const auto build = how.by_heads ? sequence_parallel_attention_heads_sm90
                     : sizes.is_packed()
                         ? (how.by_copies ? sequence_parallel_varlen_attention_copied_sm90
                                          : sequence_parallel_varlen_attention_sm90)
                     : how.by_copies ? sequence_parallel_attention_copied_sm90
                                     : sequence_parallel_attention_sm90;
  const Program program = build(o, here());
  ProgramMemory memory(program, whole.dims(), 7);
  const auto shards = whole.shards();
  for (int rank = 0; rank < o.ranks; ++rank) {
    std::copy(shards[rank].begin(), shards[rank].end(), memory.tensors[rank].begin());
  }
  SimulationOptions options;
  options.seed = how.seed;
  options.schedules = how.schedules;
  options.runs = how.runs;
  options.multiprocessors = how.multiprocessors;
  const SimulationReport report = simulate(program, memory, options);
  EXPECT_TRUE(report.ok()) << report.faults.front().text;
  return memory.tensors;
}

void check(const SequenceParallelAttention& o, const RankSizes& sizes = {},
           const RankRun& how = {}) {
  SCOPED_TRACE(testing::Message() << o.ranks << " ranks, " << sizes.batch << " x " << sizes.queries
                                  << " queries, " << sizes.keys << " keys, "
                                  << (o.attention.causal ? "causal" : "full")
                                  << (o.shards == Shards::zig_zag ? ", zig-zag" : "")
                                  << (sizes.is_packed() ? ", packed" : ""));
  const Whole whole(o, sizes);
  whole.expect(simulated(o, whole, sizes, how));
}

TEST(SequenceParallelAttentionTest, OfTwoThreeAndFourRanks) {
  check(small(2, false), {70, 70}, {.schedules = 2});
  check(small(4, false), {33, 40}, {.runs = 1});
  check(small(3, true), {45, 45});
}

// Halves of a shard that end inside of a tile, and of a block of keys; an odd number of rows.
TEST(SequenceParallelAttentionTest, ZigZagHalves) {
  check(small(2, true, Shards::zig_zag), {71, 71, 2}, {.schedules = 2});
  check(small(4, true, Shards::zig_zag), {37, 37}, {.runs = 1});
}

// Halves of whole blocks of keys, of which a rank reads its own ones first. With other lengths of
// keys the mask cuts blocks elsewhere.
TEST(SequenceParallelAttentionTest, OwnHalvesFirst) {
  check(small(2, true, Shards::zig_zag), {128, 128}, {.runs = 1});
  check(small(4, true, Shards::zig_zag), {64, 64}, {.runs = 1});
  check(small(2, true, Shards::zig_zag), {64, 128}, {.runs = 1});
  check(small(2, true, Shards::zig_zag), {128, 64}, {.runs = 1});
}

// Tiles of the heads whose keys come first, and those of the others in groups of two.
TEST(SequenceParallelAttentionTest, SeveralGroupsOfHeads) {
  SequenceParallelAttention o = small(2, true, Shards::zig_zag);
  o.attention.heads = o.attention.kv_heads = 5;
  o.attention.l2_bytes = 4 << 10;
  check(o, {37, 37}, {.runs = 1});
  // More than four rounds of tiles in the last group, whose order is another.
  check(o, {270, 270}, {.runs = 1, .multiprocessors = 1});
}

// Tiles that do not fill a round of all CTAs, whose keys are divided: into two parts and more, of
// heads that share keys, and of rows and keys that end within a block. A second run finds their
// words as the first did.
TEST(SequenceParallelAttentionTest, LastTilesInParts) {
  SequenceParallelAttention o = small(2, false);
  o.attention.dim = o.attention.dim_v = o.attention.block_k = 16;
  o.attention.heads = 2;
  check(o, {70, 140, 2}, {.schedules = 2, .multiprocessors = 6});
  o.attention.kv_heads = 1;
  check(o, {70, 250}, {.multiprocessors = 6, .by_copies = true});
  o.ranks = 3;
  check(o, {40, 90}, {.multiprocessors = 7});
}

TEST(SequenceParallelAttentionTest, Tails) {
  check(small(3, true, Shards::zig_zag), {1, 1});
  check(small(2, true, Shards::zig_zag), {0, 5});
  check(small(2, true), {0, 0});
  check(small(2, false), {5, 0});
}

// The last query sees the last key: with fewer queries or fewer keys.
TEST(SequenceParallelAttentionTest, QueriesAndKeysOfDifferentLengths) {
  check(small(2, true, Shards::zig_zag), {40, 75});
  check(small(2, true), {75, 40});
}

TEST(SequenceParallelAttentionTest, WindowsCapsAndSinks) {
  SequenceParallelAttention o = small(2, true, Shards::zig_zag);
  o.attention.window = 50;
  o.attention.softcap = 20;
  o.attention.sinks = true;
  check(o);
  o = small(2, false);
  o.attention.dtype = f16;
  o.attention.dim_v = 48;
  check(o, {37, 45, 2});
}

// Sequences that begin and end in any rank, none, and rows of none before and behind them.
TEST(SequenceParallelAttentionTest, PackedSequences) {
  const std::vector<double> queries = {3, 3, 45, 46, 120, 131}, keys = {0, 8, 60, 61, 125, 125};
  check(small(2, false), {70, 70, 1, queries, keys}, {.schedules = 2});
  check(small(2, true, Shards::zig_zag), {70, 70, 1, queries, keys}, {.schedules = 2});
  check(small(3, true), {47, 47, 1, queries, queries}, {.runs = 1});
  check(small(4, true, Shards::zig_zag), {33, 35, 1, {0, 132}, {0, 140}}, {.runs = 1});
  check(small(2, true), {5, 5, 1, {0}, {0}});
}

// Copy engines bring keys: in shares of heads, of rows that a causal mask shows to a rank alone,
// and behind a run whose keys are still read.
TEST(SequenceParallelAttentionTest, ByCopies) {
  check(small(2, false), {70, 45, 2}, {.schedules = 2, .by_copies = true});
  check(small(3, true), {45, 45}, {.by_copies = true});
  check(small(2, true, Shards::zig_zag), {71, 75, 2}, {.schedules = 2, .by_copies = true});
  SequenceParallelAttention o = small(2, true, Shards::zig_zag);
  o.attention.heads = o.attention.kv_heads = 5;
  o.attention.window = 50;
  check(o, {37, 37}, {.runs = 3, .by_copies = true});
  check(small(2, true), {0, 0}, {.runs = 1, .by_copies = true});
  const std::vector<double> queries = {3, 3, 45, 46, 120, 131}, keys = {0, 8, 60, 61, 125, 125};
  check(small(2, false), {70, 70, 1, queries, keys}, {.schedules = 2, .by_copies = true});
  check(small(2, true, Shards::zig_zag), {70, 70, 1, queries, keys},
        {.runs = 3, .by_copies = true});
  check(small(3, true), {47, 47, 1, queries, queries}, {.runs = 1, .by_copies = true});
  check(small(2, true), {5, 5, 1, {0}, {0}}, {.runs = 1, .by_copies = true});
}

// Each rank has all rows of its heads: of as many heads of keys as ranks, more, and fewer.
TEST(SequenceParallelAttentionTest, ByHeads) {
  check(small(2, false), {70, 45, 2}, {.schedules = 2, .by_heads = true});
  check(small(4, true), {37, 37}, {.runs = 1, .by_heads = true});
  SequenceParallelAttention o = small(2, true, Shards::zig_zag);
  o.attention.heads = o.attention.kv_heads = 4;
  o.attention.sinks = true;
  check(o, {71, 71}, {.schedules = 2, .by_heads = true});
  check(o, {1, 1}, {.by_heads = true});
  check(o, {0, 0}, {.runs = 1, .by_heads = true});
}

// Rows that are divided otherwise than the operation takes them.
TEST(SequenceParallelAttentionTest, ToleranceSeesAWrongZigZag) {
  const RankSizes sizes{32, 32};
  SequenceParallelAttention o = small(2, true, Shards::zig_zag);
  const Whole whole(small(2, true), sizes);
  EXPECT_GT(whole.errors(simulated(o, whole, sizes)).first, 10 * test::kTolerance);
}

TEST(SequenceParallelAttentionTest, WhatItDoesNotTake) {
  const auto refused = [](const std::function<void(SequenceParallelAttention&)>& change) {
    SequenceParallelAttention o = small(2, true);
    change(o);
    return test::usage_error_of([&] { sequence_parallel_attention_sm90(o); });
  };
  EXPECT_THAT(refused([](auto& o) { o.ranks = 1; }), HasSubstr("1 ranks"));
  EXPECT_THAT(refused([](auto& o) { o.attention.in_pairs = true; }), HasSubstr("in_pairs is set"));
  EXPECT_THAT(refused([](auto& o) { o.attention.in_parts = true; }), HasSubstr("in_parts is set"));
  EXPECT_THAT(refused([](auto& o) { o.attention.few_tiles = true; }),
              HasSubstr("few_tiles is set"));
  EXPECT_THAT(refused([](auto& o) { o.attention.kv_heads = 3; }),
              HasSubstr("heads 4 is not a multiple of kv_heads 3"));
  EXPECT_THAT(test::usage_error_of([] { sequence_parallel_attention_heads_sm90(small(3, true)); }),
              HasSubstr("heads is 4, for 3 ranks"));
  EXPECT_THAT(test::usage_error_of([] { ring_attention_backward(small(9, true)); }),
              HasSubstr("9 ranks"));
}

TEST(SequenceParallelAttentionTest, AgreesWithFloat64OnTheInterpreter) {
  const char* fixed = "sequence_parallel_attention";
  const char* packed = "sequence_parallel_varlen_attention";
  const char* gradients = "sequence_parallel_attention_backward";
  for (const auto& [name, settings] : std::vector<std::pair<const char*, std::vector<std::string>>>{
           {fixed, {"ranks=3", "queries=21", "keys=17"}},
           {fixed,
            {"ranks=2", "queries=45", "causal=true", "shards=zig_zag", "sinks=true", "batch=2"}},
           {fixed, {"ranks=2", "queries=30", "keys=45", "causal=true", "window=40"}},
           {packed, {"ranks=2", "queries=45", "keys=41", "batch=3"}},
           {packed, {"ranks=3", "queries=30", "causal=true", "shards=zig_zag", "sinks=true"}},
           {gradients, {"ranks=2", "queries=21", "keys=17", "lse_gradient=true", "sinks=true"}},
           {gradients,
            {"ranks=2", "queries=21", "batch=2", "causal=true", "shards=zig_zag", "window=20"}},
           {gradients, {"ranks=3", "queries=17", "keys=29", "causal=true", "sinks=true"}}}) {
    check_entry(name, settings, "interpreter");
  }
}

// The tile level by the automatic schedule: halves of an odd number of rows are no longer than all.
TEST(SequenceParallelAttentionTest, AutomaticScheduleOfPackedHalves) {
  check_entry("sequence_parallel_varlen_attention",
              {"schedule=tile", "ranks=2", "queries=37", "causal=true", "shards=zig_zag"},
              "sim:sm_90a");
}

}  // namespace
}  // namespace tilewright::kernels
