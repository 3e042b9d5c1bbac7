#include "tilewright/kernels/attention_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/execution.h"
#include "kernels/reference.h"
#include "library/accuracy.h"
#include "tilewright/library_executable.h"
#include "tilewright/shards.h"

// Attention over ranks, on simulated GPUs and on the interpreter.
namespace tilewright::kernels {
namespace {

using testing::HasSubstr;

SequenceParallelAttention small(int ranks, bool causal, Shards shards = Shards::contiguous) {
  SequenceParallelAttention o;
  Attention& a = o.attention;
  a.heads = 4;
  a.kv_heads = 2;
  a.dim = a.dim_v = 32;
  a.block_q = 64;
  a.block_k = 32;
  a.causal = causal;
  o.ranks = ranks;
  o.shards = shards;
  return o;
}

// Rows that a rank has.
struct Sizes {
  std::int64_t queries = 70, keys = 70, batch = 1;
};

struct How {
  std::uint64_t seed = 0;
  int schedules = 1, runs = 2, multiprocessors = 3;
};

// The whole tensors, and what is known of their attention.
class Whole {
 public:
  Whole(const SequenceParallelAttention& o, const Sizes& sizes, std::uint64_t seed = 7)
      : o_(o), sizes_(sizes) {
    const Attention& a = o.attention;
    const std::int64_t queries = o.ranks * sizes.queries, keys = o.ranks * sizes.keys;
    const auto random = [&](std::vector<std::int64_t> shape) {
      return HostTensor::random_normal(a.dtype, std::move(shape), seed++);
    };
    inputs_ = {random({sizes.batch, queries, a.heads, a.dim}),
               random({sizes.batch, keys, a.kv_heads, a.dim}),
               random({sizes.batch, keys, a.kv_heads, a.dim_v})};
    if (a.sinks) inputs_.push_back(HostTensor::random_normal(f32, {a.heads}, seed++));
    wanted_ = attention_reference({sizes.batch, queries, keys, a.heads, a.kv_heads, a.dim, a.dim_v,
                                   a.causal, a.window, 1 / std::sqrt(a.dim), a.softcap},
                                  inputs_);
  }

  // Of each rank, as the program takes them: Q, K, V, O, LSE and the sinks.
  std::vector<std::vector<HostTensor>> shards() const {
    std::vector<std::vector<HostTensor>> ranks(o_.ranks);
    for (int i = 0; i < 3; ++i) {
      const std::vector<HostTensor> parts = shard(inputs_[i], 1, o_.ranks, o_.shards);
      for (int rank = 0; rank < o_.ranks; ++rank) ranks[rank].push_back(parts[rank]);
    }
    const Attention& a = o_.attention;
    for (std::vector<HostTensor>& own : ranks) {
      own.push_back(
          HostTensor::poisoned(a.dtype, {sizes_.batch, sizes_.queries, a.heads, a.dim_v}));
      own.push_back(HostTensor::poisoned(f32, {sizes_.batch, a.heads, sizes_.queries}));
      if (a.sinks) own.push_back(inputs_[3]);
    }
    return ranks;
  }

  // O's relative error, and the greatest of LSE.
  std::pair<double, double> errors(const std::vector<std::vector<HostTensor>>& ranks) const {
    std::vector<HostTensor> outputs, sums;
    for (const std::vector<HostTensor>& own : ranks) {
      outputs.push_back(own[3]);
      sums.push_back(own[4]);
    }
    const HostTensor o = unshard(outputs, 1, o_.shards), lse = unshard(sums, 2, o_.shards);
    double squares = 0, wanted = 1e-30, greatest = 0;
    for (std::int64_t i = 0; i < o.elements(); ++i) {
      const double difference = o.flat(i) - wanted_[0][i];
      squares += std::isfinite(difference) ? difference * difference : INFINITY;
      wanted += wanted_[0][i] * wanted_[0][i];
    }
    for (std::int64_t i = 0; i < lse.elements(); ++i) {
      if (lse.flat(i) == wanted_[1][i]) continue;  // -inf, of what sees nothing
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
  DimValues dims(const Sizes& s) const {
    return {{"batch", s.batch}, {"queries", s.queries}, {"keys", s.keys}};
  }

 private:
  SequenceParallelAttention o_;
  Sizes sizes_;
  std::vector<HostTensor> inputs_;
  std::vector<std::vector<double>> wanted_;
};

// Outputs behind the last of several runs under each of several schedules.
std::vector<std::vector<HostTensor>> simulated(const SequenceParallelAttention& o,
                                               const Whole& whole, const Sizes& sizes,
                                               const How& how = {}) {
  const Program program = sequence_parallel_attention_sm90(o);
  ProgramMemory memory(program, whole.dims(sizes), 7);
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

void check(const SequenceParallelAttention& o, const Sizes& sizes = {}, const How& how = {}) {
  SCOPED_TRACE(testing::Message() << o.ranks << " ranks, " << sizes.batch << " x " << sizes.queries
                                  << " queries, " << sizes.keys << " keys, "
                                  << (o.attention.causal ? "causal" : "full")
                                  << (o.shards == Shards::zig_zag ? ", zig-zag" : ""));
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

// Rows that are divided otherwise than the operation takes them.
TEST(SequenceParallelAttentionTest, ToleranceSeesAWrongZigZag) {
  const Sizes sizes{32, 32};
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
  EXPECT_THAT(refused([](auto& o) { o.attention.kv_heads = 3; }),
              HasSubstr("heads 4 is not a multiple of kv_heads 3"));
}

// The entry's own meaning, reference and tensors, on the interpreter.
TEST(SequenceParallelAttentionTest, AgreesWithFloat64OnTheInterpreter) {
  const std::vector<std::string> common = {"heads=4", "kv_heads=2", "dim=16"};
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"ranks=3", "queries=21", "keys=17"},
        {"ranks=2", "queries=45", "causal=true", "shards=zig_zag", "sinks=true", "batch=2"},
        {"ranks=2", "queries=30", "keys=45", "causal=true", "window=40"}}) {
    SCOPED_TRACE(more[1]);
    std::vector<std::string> settings = common;
    settings.insert(settings.end(), more.begin(), more.end());
    library::Workload work =
        library::make_workload(find_kernel("sequence_parallel_attention"), settings, {}, 1);
    std::vector<TensorRef> tensors;
    for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
    compile(*work.kernel, work.options, "interpreter").run(tensors);
    const library::Comparison comparison = library::compare(work, library::reference_of(work));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

}  // namespace
}  // namespace tilewright::kernels
