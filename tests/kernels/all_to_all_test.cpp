#include "tilewright/kernels/all_to_all.h"

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
#include "kernels/reference_exchanges.h"

// Exchanges of heads against tokens, on simulated GPUs and on the interpreter. Each element of a
// result is one of an input, so that they are compared bit by bit.
namespace tilewright::kernels {
namespace {

using testing::HasSubstr;

using PartLengths = std::vector<std::vector<std::int64_t>>;  // of each rank, of each sequence

struct Exchange {
  AllToAll exchange;
  std::int64_t batch = 2, queries = 19, keys = 11;
  PartLengths of_queries = {}, of_keys = {};  // packed
};

Exchange small_exchange(int ranks, int heads, int kv_heads) {
  Exchange c;
  c.exchange.ranks = ranks;
  c.exchange.heads = heads;
  c.exchange.kv_heads = kv_heads;
  c.exchange.dim = 16;
  c.exchange.dim_v = 24;
  return c;
}

// Parts of sequences that differ from rank to rank; some have none.
Exchange packed_exchange(int ranks, int heads, int kv_heads) {
  Exchange c = small_exchange(ranks, heads, kv_heads);
  c.exchange.packed = true;
  c.batch = 3;
  c.queries = 40;
  c.keys = 30;
  for (int rank = 0; rank < ranks; ++rank) {
    c.of_queries.push_back({9 + rank, rank % 2 == 0 ? 0 : 20, 7});
    c.of_keys.push_back({rank, 12, 10 - rank});
  }
  return c;
}

HostTensor first_rows_of(const PartLengths& lengths) {
  std::vector<double> rows;
  for (const auto& of_rank : lengths) {
    rows.push_back(0);
    for (const std::int64_t length : of_rank) {
      rows.push_back(rows.back() + static_cast<double>(length));
    }
  }
  const auto ranks = static_cast<std::int64_t>(lengths.size());
  return HostTensor::from_values(i32, {ranks, static_cast<std::int64_t>(rows.size()) / ranks},
                                 rows);
}

// A tensor of own tokens beside that of all of them.
struct Exchanged {
  std::size_t own, all;  // in ProgramMemory::tensors
  int heads, own_heads;
  std::int64_t tokens;
  const PartLengths& lengths;
};

// Calls back with the places, in a rank's own tokens and in all, of each row of each rank.
using ExchangeRow = std::vector<std::int64_t>;
void each_row(
    const Exchange& c, const Exchanged& e,
    const std::function<void(int owner, const ExchangeRow& own, const ExchangeRow& all)>& visit) {
  if (!c.exchange.packed) {
    for (int owner = 0; owner < c.exchange.ranks; ++owner) {
      for (std::int64_t b = 0; b < c.batch; ++b) {
        for (std::int64_t i = 0; i < e.tokens; ++i) visit(owner, {b, i}, {b, owner * e.tokens + i});
      }
    }
    return;
  }
  std::vector<std::int64_t> next(e.lengths.size(), 0);
  std::int64_t row = 0;
  for (std::size_t b = 0; b < e.lengths.front().size(); ++b) {
    for (std::size_t owner = 0; owner < e.lengths.size(); ++owner) {
      for (std::int64_t i = 0; i < e.lengths[owner][b]; ++i) {
        visit(static_cast<int>(owner), {next[owner]++}, {row++});
      }
    }
  }
}

ExchangeRow with(ExchangeRow row, std::int64_t head, std::int64_t column) {
  row.push_back(head);
  row.push_back(column);
  return row;
}

// ExchangeRuns many elements are not where they belong. What nothing is written to is not a number.
int misplaced(const Exchange& c, const Exchanged& e, bool back, const ProgramMemory& memory) {
  int wrong = 0;
  std::vector<std::int64_t> written(memory.tensors.size(), 0);
  const AllToAll& o = c.exchange;
  each_row(c, e, [&](int owner, const ExchangeRow& own, const ExchangeRow& all) {
    for (int rank = 0; rank < o.ranks; ++rank) {
      for (int head = 0; head < e.own_heads; ++head) {
        const int of_all = rank * e.heads / o.ranks + head;
        const HostTensor& own_tokens = memory.tensors[owner][e.own];
        const HostTensor& all_tokens = memory.tensors[rank][e.all];
        const std::int64_t columns = own_tokens.shape().back();
        for (std::int64_t column = 0; column < columns; ++column) {
          const double a = own_tokens.at(with(own, of_all, column));
          const double b = all_tokens.at(with(all, head, column));
          wrong += a == b ? 0 : 1;
        }
        written[back ? owner : rank] += columns;
      }
    }
  });
  for (std::size_t rank = 0; rank < written.size(); ++rank) {
    const HostTensor& result = memory.tensors[rank][back ? e.own : e.all];
    for (std::int64_t i = 0; i < result.elements(); ++i) {
      if (result.flat(i) == result.flat(i)) --written[rank];
    }
    EXPECT_EQ(written[rank], 0) << "elements that are no one's, in rank " << rank;
  }
  return wrong;
}

std::vector<Exchanged> forward(const Exchange& c) {
  const AllToAll& o = c.exchange;
  const std::size_t results = o.packed ? 5 : 3;
  return {{0, results, o.heads, o.own_heads(), c.queries, c.of_queries},
          {1, results + 1, o.kv_heads, o.own_kv_heads(), c.keys, c.of_keys},
          {2, results + 2, o.kv_heads, o.own_kv_heads(), c.keys, c.of_keys}};
}
std::vector<Exchanged> back(const Exchange& c) {
  const AllToAll& o = c.exchange;
  return {{o.packed ? 2U : 1U, 0, o.heads, o.own_heads(), c.queries, c.of_queries}};
}

ProgramMemory exchange_memory(const Program& program, const Exchange& c, bool is_back) {
  DimValues sizes{{"batch", c.batch}, {"queries", c.queries}};
  if (!is_back) sizes["keys"] = c.keys;
  ProgramMemory memory(program, sizes, 5);
  if (!c.exchange.packed) return memory;
  for (std::vector<HostTensor>& of_rank : memory.tensors) {
    of_rank[is_back ? 1 : 3] = first_rows_of(c.of_queries);
    if (!is_back) of_rank[4] = first_rows_of(c.of_keys);
  }
  return memory;
}

struct ExchangeRuns {
  std::uint64_t seed = 0;
  int schedules = 1, runs = 3, multiprocessors = 3;
};

void check(const Exchange& c, bool is_back, const Program& program, const ExchangeRuns& how) {
  ProgramMemory memory = exchange_memory(program, c, is_back);
  SimulationOptions options;
  options.seed = how.seed;
  options.schedules = how.schedules;
  options.runs = how.runs;
  options.multiprocessors = how.multiprocessors;
  options.strict = true;
  const SimulationReport report = simulate(program, memory, options);
  ASSERT_TRUE(report.ok()) << report.faults.front().text;
  for (const Exchanged& e : is_back ? back(c) : forward(c)) {
    EXPECT_EQ(misplaced(c, e, is_back, memory), 0) << "tensor " << e.own;
  }
}

// Both ways, pushed, and by copies where there is such a form.
void check(const Exchange& c, const ExchangeRuns& how = {}) {
  const AllToAll& o = c.exchange;
  SCOPED_TRACE(testing::Message() << o.ranks << " ranks, heads " << o.heads << "/" << o.kv_heads
                                  << (o.packed ? ", packed" : ""));
  check(c, false, all_to_all_sm90(o), how);
  check(c, true, all_to_all_back_sm90(o), how);
  if (o.packed) return;
  check(c, false, all_to_all_copied(o), how);
  check(c, true, all_to_all_back_copied(o), how);
}

TEST(AllToAllTest, OfTwoFourAndEightRanks) {
  check(small_exchange(2, 8, 4), {.schedules = 2});
  check(small_exchange(4, 8, 4), {.runs = 2, .multiprocessors = 2});
  check(small_exchange(8, 8, 8), {.runs = 2, .multiprocessors = 1});
}

// Several ranks then have one KV head.
TEST(AllToAllTest, FewerKvHeadsThanRanks) {
  check(small_exchange(4, 4, 2), {.runs = 2, .multiprocessors = 1});
  check(small_exchange(3, 6, 1), {.runs = 2, .multiprocessors = 2});
}

TEST(AllToAllTest, PackedWithLengthsOfTheirOwn) {
  check(packed_exchange(2, 4, 2), {.schedules = 2});
  check(packed_exchange(4, 4, 1), {.runs = 2, .multiprocessors = 1});
}

// More tokens than a tile has, heads that no power of two divides, rows that end inside a panel.
TEST(AllToAllTest, TilesOfSomeTokensAndSomeHeads) {
  Exchange c = small_exchange(2, 22, 2);
  c.exchange.dtype = f32;
  c.exchange.dim = 84;
  c.batch = 1;
  check(c, {.runs = 2});
}

// Of tiles as large as rows of so many elements make them there are one or two stages.
TEST(AllToAllTest, RowsThatLeaveRoomForFewStages) {
  for (const int dim : {2560, 4096}) {
    Exchange c = small_exchange(2, 2, 2);
    c.exchange.dim = c.exchange.dim_v = dim;
    c.batch = 1;
    check(c, {.runs = 2, .multiprocessors = 1});
  }
}

TEST(AllToAllTest, NothingToMove) {
  Exchange c = small_exchange(2, 2, 2);
  c.queries = 0;
  check(c, {.runs = 2, .multiprocessors = 1});
  c.batch = 0;
  check(c, {.runs = 2, .multiprocessors = 1});
}

// A fault of a public system: its results are elsewhere.
TEST(AllToAllTest, QueriesPackedWithTheLengthsOfKeysAreMisplaced) {
  const Exchange c = packed_exchange(2, 4, 2);
  const Program program = all_to_all_sm90(c.exchange);
  ProgramMemory memory = exchange_memory(program, c, false);
  for (std::vector<HostTensor>& of_rank : memory.tensors) of_rank[3] = of_rank[4];
  ASSERT_TRUE(simulate(program, memory).ok());
  int wrong = 0;
  each_row(c, forward(c)[0], [&](int owner, const ExchangeRow& own, const ExchangeRow& all) {
    const HostTensor &from = memory.tensors[owner][0], &to = memory.tensors[0][5];
    wrong += from.at(with(own, 0, 0)) == to.at(with(all, 0, 0)) ? 0 : 1;
  });
  EXPECT_GT(wrong, 10);
}

TEST(AllToAllTest, WhatItDoesNotTake) {
  const auto refused = [](const std::function<void(AllToAll&)>& change,
                          Program (*build)(const AllToAll&, SourceLocation) = all_to_all_sm90) {
    AllToAll o;
    change(o);
    return test::usage_error_of([&] { build(o, {}); });
  };
  EXPECT_THAT(refused([](auto& o) { o.ranks = 9; }), HasSubstr("9 ranks"));
  EXPECT_THAT(refused([](auto& o) { o.ranks = 3; }), HasSubstr("8 heads for 3 ranks"));
  EXPECT_THAT(refused([](auto& o) { o.kv_heads = 3; }), HasSubstr("3 KV heads beside 8 heads"));
  EXPECT_THAT(refused([](auto& o) {
                o.ranks = 4;
                o.heads = o.kv_heads = 12;
                o.kv_heads = 6;
              }),
              HasSubstr("6 KV heads for 4 ranks"));
  EXPECT_THAT(refused([](auto& o) { o.dim = 12; }), HasSubstr("rows of 24 bytes of Q"));
  EXPECT_THAT(refused([](auto& o) { o.packed = true; }, all_to_all_copied),
              HasSubstr("the host does not know their lengths"));
}

struct ProjectionSizes {
  std::int64_t batch = 2, tokens = 19, k = 40;
  PartLengths lengths = {};  // packed
};

// The worst result's difference from float64, relative.
double projection_error(const ProjectionAllToAll& o, const ProgramMemory& memory) {
  const std::size_t results = 2 + (o.bias ? 1 : 0) + (o.heads.packed ? 1 : 0);
  std::vector<HostTensor> inputs;
  for (const std::vector<HostTensor>& of_rank : memory.tensors) {
    inputs.insert(inputs.end(), of_rank.begin(),
                  of_rank.begin() + static_cast<std::ptrdiff_t>(results));
  }
  const std::vector<std::vector<double>> wanted = projection_all_to_all_reference(
      {o.heads.ranks, o.heads.heads, o.heads.kv_heads, o.heads.packed}, o.heads.dim, o.bias,
      inputs);
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const HostTensor& got = memory.tensors[i / 3][results + i % 3];
    double squares = 0, error = 0;
    for (std::size_t at = 0; at < wanted[i].size(); ++at) {
      const double value = got.flat(static_cast<std::int64_t>(at));
      squares += wanted[i][at] * wanted[i][at];
      error += std::isfinite(value) ? std::pow(value - wanted[i][at], 2) : INFINITY;
    }
    worst = std::max(worst, std::sqrt(error / std::max(squares, 1e-30)));
  }
  return worst;
}

ProgramMemory projection_memory(const Program& program, const ProjectionAllToAll& o,
                                const ProjectionSizes& sizes) {
  ProgramMemory memory(program, {{"batch", sizes.batch}, {"tokens", sizes.tokens}, {"k", sizes.k}},
                       5);
  if (!o.heads.packed) return memory;
  for (auto& of_rank : memory.tensors) of_rank[o.bias ? 3 : 2] = first_rows_of(sizes.lengths);
  return memory;
}

// The explicit form behind several runs, and the meaning.
void check(const ProjectionAllToAll& o, const ProjectionSizes& sizes,
           const ExchangeRuns& how = {.runs = 2, .multiprocessors = 2}) {
  SCOPED_TRACE(testing::Message() << o.heads.ranks << " ranks, heads " << o.heads.heads << "/"
                                  << o.heads.kv_heads << ", dim " << o.heads.dim);
  constexpr double kAllowed = 4e-3;
  const Program program = projection_all_to_all_sm90(o);
  ProgramMemory memory = projection_memory(program, o, sizes);
  SimulationOptions options;
  options.schedules = how.schedules;
  options.runs = how.runs;
  options.multiprocessors = how.multiprocessors;
  options.strict = true;
  const SimulationReport report = simulate(program, memory, options);
  ASSERT_TRUE(report.ok()) << report.faults.front().text;
  EXPECT_LT(projection_error(o, memory), kAllowed);

  const Program meaning = projection_all_to_all(o);
  ProgramMemory of_meaning = projection_memory(meaning, o, sizes);
  std::vector<TensorRef> tensors;
  for (auto& of_rank : of_meaning.tensors) {
    for (HostTensor& tensor : of_rank) tensors.push_back(ref(tensor));
  }
  compile(meaning, "interpreter").run(tensors);
  EXPECT_LT(projection_error(o, of_meaning), kAllowed);
}

ProjectionAllToAll small_projection(int ranks, int heads, int kv_heads, int dim) {
  ProjectionAllToAll o;
  o.heads.ranks = ranks;
  o.heads.heads = heads;
  o.heads.kv_heads = kv_heads;
  o.heads.dim = o.heads.dim_v = dim;
  return o;
}

// Tiles of several heads and of one, of which a part is Q's and a part K's, and heads that end
// inside a panel.
TEST(ProjectionAllToAllTest, HeadsGoToTheirRanks) {
  check(small_projection(2, 6, 2, 64), {}, {.schedules = 3, .runs = 3, .multiprocessors = 2});
  ProjectionAllToAll o = small_projection(2, 2, 2, 80);
  o.bias = true;
  check(o, {.batch = 1, .tokens = 140, .k = 72});
  o.heads.dtype = f16;
  check(o, {.tokens = 1, .k = 8});
}

TEST(ProjectionAllToAllTest, FewerKvHeadsThanRanks) {
  check(small_projection(4, 4, 1, 16), {.batch = 1, .tokens = 5, .k = 24});
  check(small_projection(4, 4, 2, 16), {.batch = 1, .tokens = 5, .k = 24});
}

// Sequences that a rank has nothing of, and tokens of no sequence before a tile's end.
TEST(ProjectionAllToAllTest, PackedSequences) {
  ProjectionAllToAll o = small_projection(2, 2, 2, 16);
  o.heads.packed = o.bias = true;
  check(o, {.batch = 3, .tokens = 40, .k = 24, .lengths = {{9, 0, 31}, {20, 13, 7}}});
}

TEST(ProjectionAllToAllTest, NothingToProject) {
  const ProjectionAllToAll o = small_projection(2, 2, 2, 16);
  check(o, {.tokens = 0});
  check(o, {.batch = 0});
}

TEST(ProjectionAllToAllTest, ToleranceSeesAHeadOfAnotherRank) {
  const ProjectionAllToAll o = small_projection(2, 2, 2, 16);
  const Program program = projection_all_to_all_sm90(o);
  ProgramMemory memory = projection_memory(program, o, {});
  ASSERT_TRUE(simulate(program, memory).ok());
  std::swap(memory.tensors[0][2], memory.tensors[1][2]);
  EXPECT_GT(projection_error(o, memory), 0.1);
}

TEST(ProjectionAllToAllTest, WhatItDoesNotTake) {
  const auto refused = [](const std::function<void(ProjectionAllToAll&)>& change) {
    ProjectionAllToAll o = small_projection(2, 2, 2, 64);
    change(o);
    return test::usage_error_of([&] { projection_all_to_all_sm90(o); });
  };
  EXPECT_THAT(refused([](auto& o) { o.heads.dim_v = 32; }),
              HasSubstr("dim_v is 32 beside a dim of 64"));
  EXPECT_THAT(refused([](auto& o) { o.heads.dim = o.heads.dim_v = 264; }), HasSubstr("dim is 264"));
  EXPECT_THAT(refused([](auto& o) { o.heads.dim = o.heads.dim_v = 12; }),
              HasSubstr("rows of 24 bytes"));
  EXPECT_THAT(refused([](auto& o) { o.heads.dtype = f32; }), HasSubstr("no product of f32"));
  EXPECT_THAT(refused([](auto& o) { o.heads.ranks = 3; }), HasSubstr("2 heads for 3 ranks"));
}

}  // namespace
}  // namespace tilewright::kernels
