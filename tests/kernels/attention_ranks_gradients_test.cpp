#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "ir/program.h"
#include "kernels/attention_ranks_case.h"
#include "kernels/execution.h"
#include "kernels/reference.h"
#include "tilewright/shards.h"

// Gradients of attention over ranks that exchange heads, on simulated GPUs.
namespace tilewright::kernels {
namespace {

using test_ranks::check_entry;
using test_ranks::RankSizes;
using test_ranks::small;
using testing::HasSubstr;

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
  // Two parts of two heads each: a first part's come before the rest of any.
  o.attention.heads = 16;
  check_gradients(o, {128, 256}, false, make, 4);
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
  o.attention.dim = 144;
  EXPECT_THAT(refusal(), HasSubstr("fix: take a multiple of 16 up to 128; or "
                                   "sequence_parallel_attention_backward_sm90, which takes it"));
  o.attention.dim = 24;
  EXPECT_THAT(refusal(), HasSubstr("fix: take a multiple of 16 up to 256, or take the target cpu"));
  o.attention.dim = 32;
  o.ranks = 3;
  EXPECT_THAT(refusal(), HasSubstr("kv_heads is 4, for 3 ranks"));
  EXPECT_THAT(
      test::usage_error_of([&] { sequence_parallel_varlen_attention_backward_heads_sm90(o); }),
      HasSubstr("or sequence_parallel_varlen_attention_backward_sm90"));
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

}  // namespace
}  // namespace tilewright::kernels
