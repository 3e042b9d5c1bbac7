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
#include "ir/program.h"
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

// Rows that a rank has. Packed sequences begin at these rows of all; none: of one length.
struct RankSizes {
  std::int64_t queries = 70, keys = 70, batch = 1;
  std::vector<double> first_query = {}, first_key = {};
  bool is_packed() const { return !first_query.empty(); }
  int axis() const { return is_packed() ? 0 : 1; }
};

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
  const Program program = how.by_heads        ? sequence_parallel_attention_heads_sm90(o)
                          : how.by_copies     ? sequence_parallel_attention_copied_sm90(o)
                          : sizes.is_packed() ? sequence_parallel_varlen_attention_sm90(o)
                                              : sequence_parallel_attention_sm90(o);
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

// Of all ranks' rows, against float64 and one GPU's formula.
void check_gradients(const SequenceParallelAttention& o, const RankSizes& sizes,
                     bool of_lse = false,
                     const decltype(&sequence_parallel_attention_backward_sm90) make =
                         sequence_parallel_attention_backward_sm90,
                     int multiprocessors = 3) {
  const Attention& a = o.attention;
  SCOPED_TRACE(testing::Message() << o.ranks << " ranks, " << sizes.queries << " queries, "
                                  << sizes.keys << " keys");
  const std::int64_t queries = o.ranks * sizes.queries, keys = o.ranks * sizes.keys;
  const AttentionSizes all{sizes.batch, queries, keys,     a.heads,  a.kv_heads,
                           a.dim,       a.dim_v, a.causal, a.window, 1 / std::sqrt(a.dim),
                           a.softcap};
  std::uint64_t seed = 3;
  const auto random = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return HostTensor::random_normal(a.dtype, {sizes.batch, rows, heads, dim}, seed++);
  };
  const HostTensor Q = random(queries, a.heads, a.dim), K = random(keys, a.kv_heads, a.dim);
  const HostTensor V = random(keys, a.kv_heads, a.dim_v), dO = random(queries, a.heads, a.dim_v);
  std::vector<HostTensor> inputs = {Q, K, V};
  if (a.sinks) inputs.push_back(HostTensor::random_normal(f32, {a.heads}, seed++));
  const HostTensor sinks = a.sinks ? inputs.back() : HostTensor();
  const std::vector<std::vector<double>> forward = attention_reference(all, inputs);
  const HostTensor O = HostTensor::from_values(a.dtype, dO.shape(), forward[0]);
  const HostTensor LSE = HostTensor::from_values(f32, {sizes.batch, a.heads, queries}, forward[1]);
  const HostTensor dLSE = of_lse ? HostTensor::random_normal(f32, LSE.shape(), seed) : HostTensor();
  const std::vector<std::vector<double>> wanted =
      attention_backward_reference(all, {Q, K, V, dO, dLSE, sinks, O});

  const Program program = make(o, of_lse, here());
  ProgramMemory memory(
      program, {{"batch", sizes.batch}, {"queries", sizes.queries}, {"keys", sizes.keys}}, 7);
  const ir::Program recorded = program.finish();
  const auto place_of = [&](const std::string& name) {
    const auto& all_of = recorded.buffers;
    return std::find_if(all_of.begin(), all_of.end(),
                        [&](const ir::ProgramBuffer& each) { return each.name == name; }) -
           all_of.begin();
  };
  std::vector<std::pair<const char*, const HostTensor*>> given = {
      {"Q", &Q}, {"K", &K}, {"V", &V}, {"O", &O}, {"LSE", &LSE}, {"dO", &dO}};
  if (of_lse) given.emplace_back("dLSE", &dLSE);
  for (const auto& [name, whole] : given) {
    const int axis = whole->shape().size() == 3 ? 2 : 1;
    const std::vector<HostTensor> parts = shard(*whole, axis, o.ranks, o.shards);
    for (int rank = 0; rank < o.ranks; ++rank) memory.tensors[rank][place_of(name)] = parts[rank];
  }
  if (a.sinks) {
    for (int rank = 0; rank < o.ranks; ++rank) memory.tensors[rank][place_of("sinks")] = sinks;
  }
  SimulationOptions options;
  options.runs = 2;
  options.multiprocessors = multiprocessors;
  const SimulationReport report = simulate(program, memory, options);
  ASSERT_TRUE(report.ok()) << report.faults.front().text;
  const auto expect_close = [](const HostTensor& found, const std::vector<double>& expected) {
    double squares = 0, norm = 1e-30;
    for (std::int64_t n = 0; n < found.elements(); ++n) {
      const double difference = found.flat(n) - expected[n];
      squares += std::isfinite(difference) ? difference * difference : INFINITY;
      norm += expected[n] * expected[n];
    }
    EXPECT_LT(std::sqrt(squares / norm), 2 * test::kTolerance);
  };
  const char* const names[] = {"dQ", "dK", "dV"};
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(names[i]);
    std::vector<HostTensor> parts;
    for (int rank = 0; rank < o.ranks; ++rank) {
      parts.push_back(memory.tensors[rank][place_of(names[i])]);
    }
    expect_close(unshard(parts, 1, o.shards), wanted[i]);
  }
  for (int rank = 0; a.sinks && rank < o.ranks; ++rank) {
    SCOPED_TRACE(testing::Message() << "dsinks of rank " << rank);
    expect_close(memory.tensors[rank][place_of("dsinks")], wanted[3]);
  }
}

TEST(SequenceParallelAttentionTest, Gradients) {
  SequenceParallelAttention o = small(2, true, Shards::zig_zag);
  o.attention = with_sm90_backward_blocks(o.attention);
  check_gradients(o, {71, 71, 2});
  o.attention.causal = false;
  o.attention.kv_heads = 4;
  o.attention.sinks = true;
  check_gradients(o, {33, 40}, /*of_lse=*/true);
}

// By one kernel, which waits for heads while it runs and stores where their rows are.
TEST(SequenceParallelAttentionTest, GradientsOfAllHeadsAtOnce) {
  SequenceParallelAttention o = small(2, true, Shards::zig_zag);
  o.attention.dim = 80;
  o.attention = with_sm90_backward_blocks(o.attention);
  const auto make = sequence_parallel_attention_backward_heads_sm90;
  check_gradients(o, {128, 256, 2}, false, make);
  check_gradients(o, {384, 256}, false, make);  // the first rows see no keys
  // A rank has one head alone, and waits for no other.
  o.attention.heads = 2;
  check_gradients(o, {384, 256}, false, make);
  // Two heads of keys, whose queries are worked on in parts: they come in that order.
  o.attention.heads = 8;
  o.attention.kv_heads = 4;
  check_gradients(o, {128, 256}, false, make, 8);
  o.attention.heads = 4;
  o.attention.kv_heads = 2;
  // A block of 128 rows is one piece's.
  o.attention.dim = o.attention.dim_v = 64;
  o.attention = with_sm90_backward_blocks(o.attention);
  check_gradients(o, {256, 256}, false, make);
  EXPECT_THAT(test::usage_error_of([&] {
                check_gradients(o, {384, 256}, false, make);
              }),
              HasSubstr("multiple of 256"));
  o.attention.dim = 80;
  o.attention.dim_v = 32;
  o.attention = with_sm90_backward_blocks(o.attention);
  o.shards = Shards::contiguous;
  o.attention.causal = false;
  o.attention.kv_heads = 4;
  check_gradients(o, {128, 256}, /*of_lse=*/true, make);
  o.attention.dim = 32;
  o.attention = with_sm90_backward_blocks(o.attention);
  check_gradients(o, {128, 256}, false, make);

  o.attention.sinks = true;
  const auto refusal = [&] { return test::usage_error_of([&] { make(o, false, here()); }); };
  EXPECT_THAT(refusal(), HasSubstr("sinks have a gradient"));
  o.attention.sinks = false;
  o.ranks = 3;
  EXPECT_THAT(refusal(), HasSubstr("kv_heads is 4, for 3 ranks"));
  EXPECT_THAT(
      test::usage_error_of([&] { sequence_parallel_varlen_attention_backward_heads_sm90(o); }),
      HasSubstr("or sequence_parallel_varlen_attention_backward_sm90"));
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

// The entry's own meaning, reference and tensors.
void check_entry(const char* name, const std::vector<std::string>& more, const char* target) {
  SCOPED_TRACE(more[1]);
  std::vector<std::string> settings = more;
  for (const std::string standard : {"heads=4", "kv_heads=2", "dim=16"}) {
    const std::string option = standard.substr(0, standard.find('=') + 1);
    const auto sets = [&](const std::string& each) { return each.rfind(option, 0) == 0; };
    if (std::none_of(more.begin(), more.end(), sets)) settings.push_back(standard);
  }
  library::Workload work = library::make_workload(find_kernel(name), settings, {}, 1);
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, target).run(tensors);
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
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

// Of any heads, with tails, masks, halves of an odd number of rows, and nothing at all.
TEST(RingAttention, AgreesWithFloat64OnTheInterpreter) {
  const std::vector<std::string> masked = {"ranks=2",     "queries=21", "keys=17",
                                           "causal=true", "window=20",  "shards=zig_zag",
                                           "softcap=15",  "sinks=true", "batch=2"};
  const std::vector<std::string> of_three = {"ranks=3", "queries=20", "keys=33", "causal=true",
                                             "batch=3"};
  for (const char* name : {"ring_attention", "ring_varlen_attention", "ring_attention_backward",
                           "ring_varlen_attention_backward"}) {
    SCOPED_TRACE(name);
    std::vector<std::string> settings = masked;
    if (std::string(name).find("backward") != std::string::npos) {
      settings.push_back("lse_gradient=true");
    }
    check_entry(name, settings, "interpreter");
    check_entry(name, of_three, "interpreter");
  }
  // The first rows see no key of any rank.
  check_entry("ring_attention", {"ranks=2", "queries=21", "keys=17", "causal=true"}, "interpreter");
  check_entry("ring_attention_backward", {"ranks=2", "queries=0", "keys=5"}, "interpreter");
  check_entry("ring_varlen_attention", {"ranks=4", "queries=5", "keys=1", "batch=1"},
              "interpreter");
  check_entry("sequence_parallel_varlen_attention_backward",
              {"ranks=2", "queries=45", "keys=41", "batch=3", "causal=true"}, "interpreter");
  check_entry("sequence_parallel_varlen_attention_backward",
              {"ranks=3", "queries=20", "keys=33", "batch=2", "sinks=true"}, "interpreter");
}

// Halves of an odd number of rows, a piece that sees nothing of a rank, and several tiles of it.
TEST(RingAttention, ExplicitSteps) {
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {"schedule=sm90", "ranks=2", "queries=149", "keys=149", "causal=true", "shards=zig_zag",
            "sinks=true"},
           {"schedule=sm90", "ranks=3", "queries=21", "keys=70", "batch=2"},
           {"schedule=sm90", "ranks=3", "queries=20", "keys=20", "causal=true", "softcap=15"}}) {
    check_entry("ring_attention", settings, "sim:sm_90a");
  }
  SequenceParallelAttention o = small(2, false);
  o.attention.window = 5;
  o.attention.causal = true;
  EXPECT_THAT(test::usage_error_of([&] { ring_attention_sm90(o); }), HasSubstr("window is 5"));
  EXPECT_THAT(test::usage_error_of([&] { ring_attention_backward_sm90(o); }),
              HasSubstr("window is 5"));
}

// Halves that are no whole blocks, keys that a step shows to nobody, who adds last and who does not
// convert what is summed, and nothing at all.
TEST(RingAttention, ExplicitStepsOfGradients) {
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {"ranks=2", "queries=149", "keys=149", "causal=true", "shards=zig_zag"},
           {"ranks=4", "queries=20", "keys=20", "causal=true", "dim=64", "sinks=true",
            "lse_gradient=true"},
           {"ranks=3", "queries=21", "keys=140", "softcap=15", "dim=80"},
           {"ranks=2", "queries=5", "keys=0"}}) {
    std::vector<std::string> all = {"schedule=sm90", "heads=2", "kv_heads=1"};
    all.insert(all.end(), settings.begin(), settings.end());
    check_entry("ring_attention_backward", all, "sim:sm_90a");
  }
}

// By heads, and of sequences some of which a rank has nothing of.
TEST(SequenceParallelAttentionTest, PackedGradientsByHeads) {
  check_entry("sequence_parallel_varlen_attention_backward",
              {"schedule=sm90", "ranks=2", "queries=45", "keys=41", "batch=3", "causal=true",
               "lse_gradient=true", "shards=zig_zag"},
              "sim:sm_90a");
}

// Of sequences that begin at these rows of all ranks', by one kernel of all heads. Rows of no
// sequence hold NaN, and get zeros.
void check_packed_at_once(const std::vector<std::string>& settings,
                          const std::vector<double>& first_queries,
                          const std::vector<double>& first_keys) {
  SCOPED_TRACE(testing::Message() << settings[2] << " " << testing::PrintToString(first_queries));
  LibraryKernel kernel = find_kernel("sequence_parallel_varlen_attention_backward");
  for (LibraryTensor& tensor : kernel.tensors) {
    if (tensor.dtype != i32) continue;
    tensor.values = [rows = tensor.name == "cu_seqlens_q" ? first_queries : first_keys](
                        const OptionValues&, std::uint64_t, const std::vector<HostTensor>&) {
      return HostTensor::from_values(i32, {static_cast<std::int64_t>(rows.size())}, rows);
    };
  }
  std::vector<std::string> all = {"schedule=sm90_heads",
                                  "batch=" + std::to_string(first_queries.size() - 1)};
  all.insert(all.end(), settings.begin(), settings.end());
  library::Workload work = library::make_workload(kernel, all, {}, 1);
  const library::Reference wanted = library::reference_of(work);
  // Calls `body` with each tensor and each element of it that is of a row of no sequence.
  const Shards shards =
      work.options.text("shards") == "zig_zag" ? Shards::zig_zag : Shards::contiguous;
  const auto of_nobody = [&](const auto& body) {
    const std::size_t of_rank = work.tensors.size() / static_cast<std::size_t>(work.ranks);
    for (std::size_t i = 0; i < work.tensors.size(); ++i) {
      const std::string& name = work.parameters[i]->name;
      if (work.parameters[i]->dtype == i32) continue;
      HostTensor& tensor = work.tensors[i];
      const bool has_rows_last = name == "LSE" || name == "dLSE";
      const bool of_keys = name.back() == 'K' || name.back() == 'V';
      const std::int64_t rows = tensor.shape()[has_rows_last ? 1 : 0];
      const auto& first = of_keys ? first_keys : first_queries;
      const std::int64_t rank = static_cast<std::int64_t>(i / of_rank), early = (rows + 1) / 2;
      for (std::int64_t n = 0; n < tensor.elements(); ++n) {
        const std::int64_t row = has_rows_last ? n % rows : n / (tensor.elements() / rows);
        std::int64_t place = rank * rows + row;
        if (shards == Shards::zig_zag) {
          place =
              row < early ? rank * early + row : (2 * work.ranks - 1 - rank) * early + row - early;
        }
        const auto at = static_cast<double>(place);
        if (at < first.front() || at >= first.back()) body(*work.parameters[i], tensor, n);
      }
    }
  };
  of_nobody([](const LibraryTensor& parameter, HostTensor& tensor, std::int64_t n) {
    if (parameter.is_input()) tensor.set_flat(n, std::nan(""));
  });
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  compile(*work.kernel, work.options, "sim:sm_90a").run(tensors);
  std::vector<std::string> no_zeros;
  of_nobody([&](const LibraryTensor& parameter, HostTensor& tensor, std::int64_t n) {
    if (parameter.is_input()) return;
    if (tensor.flat(n) != 0) no_zeros.push_back(parameter.name + " " + std::to_string(n));
    tensor.set_flat(n, std::nan(""));  // the reference says nothing of them
  });
  EXPECT_TRUE(no_zeros.empty()) << no_zeros.size() << " of no sequence, the first " << no_zeros[0];
  const library::Comparison comparison = library::compare(work, wanted);
  EXPECT_TRUE(comparison.ok()) << comparison.text();
}

// Sequences of nothing, of one row, that begin and end anywhere in blocks and pieces, and rows
// before the first and behind the last.
TEST(SequenceParallelAttentionTest, PackedGradientsOfAllHeadsAtOnce) {
  check_packed_at_once({"ranks=2", "heads=4", "kv_heads=2", "dim=80", "queries=128", "keys=256",
                        "causal=true", "shards=zig_zag"},
                       {0, 0, 1, 1, 70, 200, 256}, {0, 3, 3, 130, 131, 400, 512});
  check_packed_at_once({"ranks=2", "heads=2", "kv_heads=2", "dim=128", "queries=128", "keys=256"},
                       {5, 60, 140}, {17, 100, 300});
  check_packed_at_once({"ranks=2", "heads=4", "kv_heads=2", "dim=48", "queries=256", "keys=256",
                        "causal=true", "shards=zig_zag", "lse_gradient=true"},
                       {100, 127, 129, 300}, {2, 255, 257, 311});
  check_packed_at_once({"ranks=4", "heads=4", "kv_heads=4", "dim=16", "queries=128", "keys=256",
                        "causal=true", "window=70"},
                       {0, 300, 512}, {0, 500, 1024});
  check_packed_at_once({"ranks=2", "heads=2", "kv_heads=2", "dim=16", "queries=128", "keys=256"},
                       {0, 0}, {0, 512});
}

// What a rank has at a step comes while it works at the step before, and ranks are a run ahead of
// each other.
TEST(RingAttention, IsWithoutFaultsOnSimulatedGpus) {
  SequenceParallelAttention o = small(3, true);
  o.attention.heads = o.attention.kv_heads = 1;
  o.attention.dim = o.attention.dim_v = 16;
  o.attention.block_q = o.attention.block_k = 64;
  SequenceParallelAttention explicit_steps = o;
  explicit_steps.attention = with_sm90_backward_blocks(o.attention);
  const DimValues rows = {{"batch", 1}, {"queries", 20}},
                  both = {{"batch", 1}, {"queries", 20}, {"keys", 20}};
  for (const auto& [program, sizes] : std::vector<std::pair<Program, DimValues>>{
           {ring_attention(o), both},
           {ring_attention_backward(o), both},
           {ring_attention_sm90(o), both},
           {ring_attention_backward_sm90(explicit_steps), rows}}) {
    ProgramMemory memory(program, sizes, 7);
    SimulationOptions options;
    options.schedules = 4;
    options.runs = 3;
    const SimulationReport report = simulate(program, memory, options);
    EXPECT_TRUE(report.ok()) << report.faults.front().text;
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
