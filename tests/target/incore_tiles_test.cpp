#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/core_proof.h"
#include "compiler/compile_to_machine.h"
#include "incore_products.h"
#include "simulator/faults/core_faults.h"
#include "simulator/faults/sites.h"
#include "simulator/machine/machine.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/softmax.h"

// Tile-level kernels on cores with explicit memories, by the automatic schedule.
namespace tilewright::simulator {
namespace {

struct Attended {
  std::int64_t queries, keys, heads, kv_heads, dim;
  bool causal;
  HostTensor Q, K, V, O, LSE;
  Attended(std::int64_t queries, std::int64_t keys, std::int64_t heads, std::int64_t kv_heads,
           std::int64_t dim, bool causal)
      : queries(queries),
        keys(keys),
        heads(heads),
        kv_heads(kv_heads),
        dim(dim),
        causal(causal),
        Q(HostTensor::random_normal(bf16, {1, queries, heads, dim}, 1)),
        K(HostTensor::random_normal(bf16, {1, keys, kv_heads, dim}, 2)),
        V(HostTensor::random_normal(bf16, {1, keys, kv_heads, dim}, 3)),
        O(HostTensor::poisoned(bf16, {1, queries, heads, dim})),
        LSE(HostTensor::poisoned(f32, {1, heads, queries})) {}
  Arguments arguments() {
    Arguments arguments;
    arguments.tensors = {given("Q", Q), given("K", K), given("V", V), given("O", O),
                         given("LSE", LSE)};
    return arguments;
  }
  // The relative root mean square of O, and the greatest difference of LSE; NaN where nobody wrote.
  std::pair<double, double> errors() const {
    double squares = 0, wrong = 0, most = 0;
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t seen = causal ? std::max<std::int64_t>(0, i + 1 + keys - queries) : keys;
        std::vector<double> weights(static_cast<std::size_t>(seen)), row(dim);
        double sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < dim; ++d) {
            score += Q.at({0, i, h, d}) * K.at({0, j, h * kv_heads / heads, d});
          }
          sum += weights[j] = std::exp(score / std::sqrt(dim));
        }
        for (std::int64_t d = 0; d < dim; ++d) {
          for (std::int64_t j = 0; j < seen; ++j) {
            row[d] += weights[j] / sum * V.at({0, j, h * kv_heads / heads, d});
          }
          squares += row[d] * row[d];
          wrong += (O.at({0, i, h, d}) - row[d]) * (O.at({0, i, h, d}) - row[d]);
        }
        const double lse = LSE.at({0, h, i});
        const double off = seen == 0 ? (std::isinf(lse) && lse < 0 ? 0 : NAN) : lse - std::log(sum);
        if (!(std::abs(off) <= most)) most = std::abs(off);
      }
    }
    return {squares == 0 ? wrong : std::sqrt(wrong / squares), most};
  }
};

std::vector<std::string> cores() {
  std::vector<std::string> names;
  for (const target::Target* target : target::targets()) {
    if (target->core) names.push_back(target->name);
  }
  return names;
}

// A norm of rows with tails, its epsilon an element of a tensor: a number beside a tile of one
// element is no tile of the rows' extent by itself.
TEST(IncoreTiles, NormsOfRowsAreRightOnEveryCore) {
  constexpr std::int64_t kColumns = 90;
  Kernel kernel("norm");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns}), E = kernel.in("E", f32, {1, 1});
  const Tensor Y = kernel.out("Y", bf16, {rows, columns});
  const auto [i] = kernel.grid(ceil_div(rows, 32));
  const Block own = rows.block(i, 32), all_columns = columns.block(0, 96);
  const Tile count = Tile({1, 1}, columns).cast(f32);
  const Tile x = load(X(own, all_columns));
  // Behind the last column x - mean is no zero, and no part of the sum.
  const Tile off = x - reduce_sum(x, 1) / count;
  const Tile least = zeros({own, 1}) + load(E(Block(0, 1, 1), Block(0, 1, 1)));
  store(Y(own, all_columns), (off / sqrt(reduce_sum(off * off, 1) / count + least)).cast(bf16));
  for (const std::string& target : cores()) {
    SCOPED_TRACE(target);
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target).kernel;
    for (const std::int64_t count_of_rows : {70, 1}) {
      HostTensor in = HostTensor::random_normal(f32, {count_of_rows, kColumns}, 1);
      HostTensor epsilon = HostTensor::from_values(f32, {1, 1}, {0.25});
      HostTensor out = HostTensor::poisoned(bf16, {count_of_rows, kColumns});
      Arguments arguments;
      arguments.tensors = {given("X", in), given("E", epsilon), given("Y", out)};
      MachineOptions options;
      options.multiprocessors = 2;
      const MachineReport report = run_machine(machine, arguments, options);
      ASSERT_TRUE(report.ok()) << report.faults.front().message;
      for (std::int64_t r = 0; r < count_of_rows; ++r) {
        double sum = 0, squares = 0;
        for (std::int64_t c = 0; c < kColumns; ++c) sum += in.at({r, c});
        for (std::int64_t c = 0; c < kColumns; ++c) {
          squares += std::pow(in.at({r, c}) - sum / kColumns, 2);
        }
        for (std::int64_t c = 0; c < kColumns; ++c) {
          const double wanted =
              (in.at({r, c}) - sum / kColumns) / std::sqrt(squares / kColumns + 0.25);
          ASSERT_NEAR(out.at({r, c}), wanted, 0.01) << r << " " << c;  // bf16
        }
      }
    }
  }
}

TEST(IncoreTiles, AttentionIsRightOnEveryCore) {
  for (const bool causal : {false, true}) {
    kernels::Attention attention;
    attention.dim = attention.dim_v = 32;
    attention.heads = 2;
    attention.kv_heads = 1;
    attention.causal = causal;
    attention.block_q = 32;
    attention.block_k = 48;
    for (const std::string& target : cores()) {
      SCOPED_TRACE(target + (causal ? " causal" : ""));
      const Kernel kernel = kernels::attention_forward(attention);
      const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target).kernel;
      // Of the first more blocks than there are cores.
      for (const auto& [queries, keys] : {std::pair{150, 20}, {40, 100}, {1, 1}, {32, 0}}) {
        for (std::uint64_t seed = 0; seed < 2; ++seed) {
          Attended attended(queries, keys, 2, 1, 32, causal);
          MachineOptions options;
          options.seed = seed;
          options.multiprocessors = 2;
          const MachineReport report = run_machine(machine, attended.arguments(), options);
          ASSERT_TRUE(report.ok())
              << report.faults.front().message << report.faults.front().missing;
          const auto [error, lse] = attended.errors();
          EXPECT_LT(error, 5e-3) << queries << " " << keys;
          EXPECT_LT(lse, 1e-3) << queries << " " << keys;
        }
      }
    }
  }
}

// One query of 8 heads a sequence, and keys in pages of 16 that a table lists in no order.
TEST(IncoreTiles, PagedAttentionGathersPages) {
  constexpr std::int64_t kHeads = 8, kPage = 16, kDim = 32, kPages = 7;
  Kernel kernel("paged");
  const Dim batch = kernel.dim("batch"), pages = kernel.dim("pages"), most = kernel.dim("most");
  const Tensor Q = kernel.in("Q", bf16, {batch, kHeads, kDim});
  const Tensor K = kernel.in("K", bf16, {pages, kPage, kDim});
  const Tensor V = kernel.in("V", bf16, {pages, kPage, kDim});
  const Tensor table = kernel.in("table", i32, {batch, most});
  const Tensor lengths = kernel.in("lengths", i32, {batch});
  const Tensor O = kernel.out("O", f32, {batch, kHeads, kDim});
  const auto [b] = kernel.grid(batch);
  const Index length = load_index(lengths(b));
  const Tile q = load(Q(b, all, all));
  kernels::OnlineSoftmax softmax(Extent(kHeads), 1 / std::sqrt(kDim));
  Var acc{zeros({kHeads, kDim})};
  for (Index number : range(ceil_div(length, kPage))) {
    const Index page = load_index(table(b, number));
    const Block keys(number * kPage, kPage, length);
    const Block slots(Index(0), kPage, min(length - number * kPage, kPage));
    const Tile s =
        where(keys.as_row() < length, dot(q, load(K(page, slots, all)).T()), kernels::kNone);
    const auto [weights, rescale] = softmax.step(s);
    acc = acc * rescale + dot(weights.cast(bf16), load(V(page, slots, all)));
  }
  store(O(b, all, all), acc * softmax.normaliser());

  const std::vector<std::int64_t> held{40, 0, 17, 16};
  const std::vector<std::vector<double>> listed{{5, 2, 6}, {-1, -1, -1}, {0, 3, -1}, {4, -1, -1}};
  HostTensor q_values = HostTensor::random_normal(bf16, {4, kHeads, kDim}, 1);
  HostTensor k_values = HostTensor::random_normal(bf16, {kPages, kPage, kDim}, 2);
  HostTensor v_values = HostTensor::random_normal(bf16, {kPages, kPage, kDim}, 3);
  HostTensor numbers = HostTensor::zeros(i32, {4, 3}), ends = HostTensor::zeros(i32, {4});
  for (std::int64_t i = 0; i < 4; ++i) {
    ends.set({i}, static_cast<double>(held[i]));
    for (std::int64_t j = 0; j < 3; ++j) numbers.set({i, j}, listed[i][j]);
    // What lies behind the last key is no number.
    if (held[i] % kPage == 0) continue;
    const auto last = static_cast<std::int64_t>(listed[i][held[i] / kPage]);
    for (std::int64_t slot = held[i] % kPage; slot < kPage; ++slot) {
      for (std::int64_t d = 0; d < kDim; ++d) k_values.set({last, slot, d}, NAN);
      for (std::int64_t d = 0; d < kDim; ++d) v_values.set({last, slot, d}, NAN);
    }
  }
  for (const std::string& target : cores()) {
    SCOPED_TRACE(target);
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target).kernel;
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      HostTensor o = HostTensor::poisoned(f32, {4, kHeads, kDim});
      Arguments arguments;
      arguments.tensors = {given("Q", q_values),    given("K", k_values),   given("V", v_values),
                           given("table", numbers), given("lengths", ends), given("O", o)};
      MachineOptions options;
      options.seed = seed;
      options.multiprocessors = 2;
      const MachineReport report = run_machine(machine, arguments, options);
      ASSERT_TRUE(report.ok()) << report.faults.front().message << report.faults.front().missing;
      for (std::int64_t i = 0; i < 4; ++i) {
        for (std::int64_t h = 0; h < kHeads; ++h) {
          std::vector<double> row(kDim);
          double sum = 0;
          for (std::int64_t j = 0; j < held[i]; ++j) {
            const auto page = static_cast<std::int64_t>(listed[i][j / kPage]);
            double score = 0;
            for (std::int64_t d = 0; d < kDim; ++d) {
              score += q_values.at({i, h, d}) * k_values.at({page, j % kPage, d});
            }
            const double weight = std::exp(score / std::sqrt(kDim));
            sum += weight;
            for (std::int64_t d = 0; d < kDim; ++d) {
              row[d] += weight * v_values.at({page, j % kPage, d});
            }
          }
          for (std::int64_t d = 0; d < kDim; ++d) {
            EXPECT_NEAR(o.at({i, h, d}), sum == 0 ? 0 : row[d] / sum, 1.5e-2) << i << " " << h;
          }
        }
      }
    }
  }
}

// A product whose results other functions take before they are stored, and one that is stored
// twice.
TEST(IncoreTiles, ProductsHaveEpilogues) {
  Kernel kernel("epilogue");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {k, n});
  const Tensor bias = kernel.in("bias", f32, {n});
  const Tensor C = kernel.out("C", bf16, {m, n}), S = kernel.out("S", f32, {m});
  const auto [i] = kernel.grid(ceil_div(m, 32));
  const Block rows = m.block(i, 32), cols = n.block(0, 48);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, 32)) {
    sum = sum + dot(load(A(rows, depth)), load(B(depth, cols)));
  }
  const Tile biased = max(sum + load(bias(cols)).reshape({1, 48}), 0);
  store(C(rows, cols), biased.cast(bf16));
  store(S(rows), reduce_max(biased, 1).reshape({rows.size()}));
  for (const std::string& target : cores()) {
    SCOPED_TRACE(target);
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target).kernel;
    for (const auto& [rows_, columns, depth] : {std::tuple{70, 41, 50}, {1, 1, 1}}) {
      HostTensor a = HostTensor::random_normal(bf16, {rows_, depth}, 1);
      HostTensor b = HostTensor::random_normal(bf16, {depth, columns}, 2);
      HostTensor add = HostTensor::random_normal(f32, {columns}, 3);
      HostTensor c = HostTensor::poisoned(bf16, {rows_, columns});
      HostTensor s = HostTensor::poisoned(f32, {rows_});
      Arguments arguments;
      arguments.tensors = {given("A", a), given("B", b), given("bias", add), given("C", c),
                           given("S", s)};
      MachineOptions options;
      options.multiprocessors = 2;
      const MachineReport report = run_machine(machine, arguments, options);
      ASSERT_TRUE(report.ok()) << report.faults.front().message << report.faults.front().missing;
      for (std::int64_t row = 0; row < rows_; ++row) {
        double most = 0;
        for (std::int64_t column = 0; column < columns; ++column) {
          double wanted = add.at({column});
          for (std::int64_t d = 0; d < depth; ++d) wanted += a.at({row, d}) * b.at({d, column});
          wanted = std::max(wanted, 0.0);
          most = std::max(most, wanted);
          EXPECT_NEAR(c.at({row, column}), wanted, 4e-3 * wanted + 1e-4);
        }
        EXPECT_NEAR(s.at({row}), most, 1e-4);
      }
    }
  }
}

// A number of the run says how much of a row exists, as a size does.
TEST(IncoreTiles, ABlockEndsWhereAScalarSays) {
  Kernel kernel("ends");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 64}), Y = kernel.out("Y", f32, {rows, 1});
  const Scalar n = kernel.scalar("n", i32);
  const auto [i] = kernel.grid(ceil_div(rows, 64));
  const Block own = rows.block(i, 64);
  // exp(0) is no zero.
  store(Y(own, all), reduce_sum(exp(load(X(own, Block(0, 64, Index(n))))), 1));
  std::vector<std::string> targets{"sm_90a"};
  for (const std::string& core : cores()) targets.push_back(core);
  for (const std::string& target : targets) {
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target).kernel;
    for (const int count : {0, 1, 33, 64}) {
      HostTensor in = HostTensor::random_normal(f32, {70, 64}, 1);
      HostTensor out = HostTensor::poisoned(f32, {70, 1});
      Arguments arguments;
      arguments.tensors = {given("X", in), given("Y", out)};
      arguments.scalars = {static_cast<double>(count)};
      MachineOptions options;
      options.multiprocessors = 1;
      const MachineReport report = run_machine(machine, arguments, options);
      ASSERT_TRUE(report.ok()) << target << ": " << report.faults.front().message;
      for (std::int64_t r = 0; r < 70; ++r) {
        double wanted = 0;
        for (int c = 0; c < count; ++c) wanted += std::exp(in.at({r, c}));
        ASSERT_NEAR(out.at({r, 0}), wanted, 1e-4 * (1 + wanted)) << target << " " << count;
      }
    }
  }
}

// Where a table leads outside of a tensor: at the line of the load, or of the store.
TEST(IncoreTiles, AnIndexOutsideIsNamed) {
  for (const bool stores : {false, true}) {
    Kernel kernel("gathers");
    const Dim n = kernel.dim("n"), rows = kernel.dim("rows");
    const Tensor table = kernel.in("table", i32, {n});
    const Tensor X = kernel.in("X", f32, {stores ? n : rows, 24});
    const Tensor Y = kernel.out("Y", f32, {stores ? rows : n, 24});
    const auto [i] = kernel.grid(n);
    const Index row = load_index(table(i));
    const Tile x = load(X(stores ? i : row, all));
    const int load_line = __LINE__ - 1;
    store(Y(stores ? row : i, all), exp(x));
    const int line = stores ? __LINE__ - 1 : load_line;
    for (const std::string& target : cores()) {
      const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target).kernel;
      for (const double last : {7.0, 8.0, -1.0}) {
        HostTensor numbers = HostTensor::from_values(i32, {3}, {5, 0, last});
        HostTensor in = HostTensor::random_normal(f32, {stores ? 3 : 8, 24}, 1);
        HostTensor out = HostTensor::poisoned(f32, {stores ? 8 : 3, 24});
        Arguments arguments;
        arguments.tensors = {given("table", numbers), given("X", in), given("Y", out)};
        const MachineReport report = run_machine(machine, arguments, {});
        ASSERT_EQ(report.ok(), last == 7) << target << " " << last;
        if (report.ok()) continue;
        const Fault& fault = report.faults.front();
        EXPECT_EQ(fault.kind, "out_of_bounds");
        EXPECT_EQ(fault.first.line, line);
        EXPECT_THAT(
            fault.message,
            testing::HasSubstr("index " + std::to_string(static_cast<int>(last)) +
                               " on axis 0 of " + (stores ? "Y" : "X") + ", whose size is 8"));
      }
    }
  }
}

// What no input can show is told by a rule: a choice for rows that see nothing, of which there are
// none; and zeros behind the last key in another stage, where a mask hides what is there instead.
TEST(IncoreTiles, WhatNoInputShowsIsToldByARule) {
  kernels::Attention attention;
  attention.dim = attention.dim_v = 16;
  attention.heads = attention.kv_heads = 1;
  attention.block_q = attention.block_k = 16;
  const ir::Kernel machine =
      compiler::compile_to_machine(kernels::attention_forward(attention).finish(),
                                   "incore_partitions")
          .kernel;
  const auto on = [](std::int64_t queries, std::int64_t keys, double growth) {
    return
        [=](const std::vector<ir::Kernel>& kernels, MachineOptions options, const ProgramMutant*) {
          Attended attended(queries, keys, 1, 1, 16, false);
          for (std::int64_t i = 0; i < attended.K.elements(); ++i) {
            attended.K.set_flat(i, attended.K.flat(i) * (1 + growth * static_cast<double>(i / 16)));
          }
          options.multiprocessors = 1;
          checks::CoreRun made;
          made.report = run_machine(kernels.front(), attended.arguments(), options);
          made.bits = checks::bits_of({attended.O, attended.LSE});
          const auto [error, lse] = attended.errors();
          if (!(error < 5e-3 && lse < 1e-3)) made.mismatch = "O, LSE";
          return made;
        };
  };
  const std::vector<checks::CoreCase> cases{on(5, 37, 0), on(5, 21, 0), on(5, 5, 0), on(5, 0, 0)};
  const std::vector<checks::UnusualCoreCase> unusual{{"K grows", on(5, 37, 0.1)}};
  checks::ProofOptions how;
  how.schedules = 1;
  how.threads = 1;
  how.mutants.emplace();
  const Sites sites(machine);
  const std::vector<checks::MutantResult> listed = checks::list_core_mutants({machine});
  for (std::size_t i = 0; i < listed.size(); ++i) {
    // Choices left out, and fills in another stage.
    const Mutant& mutant = listed[i].mutant;
    const ir::Operation& o = *sites.at(mutant.site).operation;
    const int kind = listed[i].kind->number;
    const bool chooses = kind == kInstructionKind && o.op == ir::Op::core_vector &&
                         o.attributes.function() == ir::Op::select;
    const bool fills =
        kind == kStageKind && sites.at(sites.uses(o.results[0])[0].site).op() == ir::Op::core_fill;
    if (chooses || fills) how.mutants->insert(i);
  }
  std::map<std::string, std::set<int>> reasons;
  for (const checks::MutantResult& result : checks::prove_cores({machine}, cases, unusual, how)) {
    EXPECT_NE(result.verdict, checks::MutantResult::Verdict::undecided)
        << result.kind->number << " " << format_location(result.mutant.where) << " "
        << result.mutant.operation;
    reasons[result.reason].insert(result.kind->number);
  }
  EXPECT_EQ(reasons["nothing that reaches a result is made of what it makes"].count(kStageKind),
            1U);
  EXPECT_EQ(reasons["what it would choose is never chosen, also of inputs far from zero"],
            (std::set<int>{kInstructionKind}));
}

// What no run can show, each by its rule: once what is there already, zeros in place of zeros, rows
// that pass through scratch memory and that nobody has.
TEST(IncoreTiles, RulesTellWhatKeepsAll) {
  constexpr int kRows = 12, kColumns = 24;
  Kernel kernel("rules");
  const Tensor X = kernel.in("X", f32, {kRows, kColumns}), w = kernel.in("w", f32, {kRows});
  const Tensor h = kernel.in("h", f32, {4});
  const Tensor S = kernel.out("S", f32, {kColumns}), R = kernel.out("R", f32, {kRows});
  kernel.grid(1);
  const Block own(0, 16, kRows);
  const Tile x = load(X(own, all)), weights = load(w(own)).reshape({16, 1});
  store(S(all), (reduce_sum(x * weights, 0) * 1).reshape({kColumns}));
  const Tile spread = (zeros({4, 4}) + load(h(all)).reshape({1, 4})).reshape({16, 1});
  store(R(own), (reduce_sum(exp(x * 0.01), 1) + spread).reshape({16}));
  const auto on = [](double shift) {
    return
        [=](const std::vector<ir::Kernel>& kernels, MachineOptions options, const ProgramMutant*) {
          HostTensor in = HostTensor::random_normal(f32, {kRows, kColumns}, 1);
          HostTensor factors = HostTensor::random_normal(f32, {kRows}, 2);
          HostTensor heads = HostTensor::random_normal(f32, {4}, 3);
          for (std::int64_t i = 0; i < in.elements(); ++i) in.set_flat(i, in.flat(i) + shift);
          HostTensor sums = HostTensor::poisoned(f32, {kColumns});
          HostTensor rows = HostTensor::poisoned(f32, {kRows});
          Arguments arguments;
          arguments.tensors = {given("X", in), given("w", factors), given("h", heads),
                               given("S", sums), given("R", rows)};
          options.multiprocessors = 1;
          checks::CoreRun made;
          made.report = run_machine(kernels.front(), arguments, options);
          made.bits = checks::bits_of({sums, rows});
          for (int c = 0; c < kColumns; ++c) {
            double wanted = 0;
            for (int r = 0; r < kRows; ++r) wanted += in.at({r, c}) * factors.at({r});
            if (!(std::abs(sums.at({c}) - wanted) < 1e-3)) made.mismatch = "S";
          }
          for (int r = 0; r < kRows; ++r) {
            double wanted = heads.at({r % 4});
            for (int c = 0; c < kColumns; ++c) wanted += std::exp(0.01 * in.at({r, c}));
            if (!(std::abs(rows.at({r}) - wanted) < 1e-3)) made.mismatch = "R";
          }
          return made;
        };
  };
  checks::ProofOptions how;
  how.schedules = 1;
  how.threads = 1;
  std::map<std::string, std::set<int>> reasons;
  const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "incore").kernel;
  const std::vector<checks::MutantResult> listed = checks::list_core_mutants({machine});
  how.mutants.emplace();
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const int kind = listed[i].kind->number;
    const bool computes = listed[i].mutant.operation.starts_with("core_vector");
    if ((kind == kInstructionKind && computes) ||
        (kind == kLimitKind && takes_less(listed[i].mutant))) {
      how.mutants->insert(i);
    }
  }
  for (const checks::MutantResult& result :
       checks::prove_cores({machine}, {on(0)}, {{"X lies 64 from zero", on(64)}}, how)) {
    EXPECT_NE(result.verdict, checks::MutantResult::Verdict::undecided)
        << result.kind->number << " " << format_location(result.mutant.where) << " "
        << result.mutant.operation << " " << result.mutant.change;
    reasons[result.reason].insert(result.kind->number);
  }
  for (const auto& [reason, kind] :
       {std::pair{"it computes what lies there already", kInstructionKind},
        {"what it hides is zero already: results are the same bit for bit, also of inputs far from "
         "zero",
         kInstructionKind},
        {"nothing that reaches a result is made of what it leaves", kLimitKind}}) {
    EXPECT_EQ(reasons[reason].count(kind), 1U) << reason;
  }
}

// Each barrier, event and move of attention is needed: without it something is found.
TEST(IncoreTiles, EveryMoveAndWaitOfAttentionIsNeeded) {
  kernels::Attention attention;
  attention.dim = attention.dim_v = 16;
  attention.heads = attention.kv_heads = 1;
  attention.block_q = 16;
  attention.block_k = 16;
  const ir::Kernel machine =
      compiler::compile_to_machine(kernels::attention_forward(attention).finish(), "incore").kernel;
  const auto is_site = [](const ir::Operation& o) {
    return o.op == ir::Op::core_load || o.op == ir::Op::core_store || o.op == ir::Op::core_move ||
           o.op == ir::Op::core_matmul || o.op == ir::Op::event_wait || o.op == ir::Op::event_set;
  };
  int sites = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) { sites += is_site(o); });
  for (int site = 0; site < sites; site += 5) {
    ir::Kernel mutant = machine;
    int left = site;
    const std::function<bool(ir::Block&)> drop = [&](ir::Block& block) {
      for (std::size_t i = 0; i < block.body.size(); ++i) {
        if (is_site(block.body[i]) && left-- == 0) {
          block.body.erase(block.body.begin() + static_cast<std::ptrdiff_t>(i));
          return true;
        }
        for (ir::Block& inner : block.body[i].blocks) {
          if (drop(inner)) return true;
        }
      }
      return false;
    };
    ASSERT_TRUE(drop(mutant.body));
    bool found = false;
    for (std::uint64_t seed = 0; seed < 4 && !found; ++seed) {
      Attended attended(20, 70, 1, 1, 16, false);
      MachineOptions options;
      options.seed = seed;
      options.multiprocessors = 1;
      const MachineReport report = run_machine(mutant, attended.arguments(), options);
      found = !report.ok() || !(attended.errors().first < 5e-3);
    }
    EXPECT_TRUE(found) << "site " << site;
  }
}

}  // namespace
}  // namespace tilewright::simulator
