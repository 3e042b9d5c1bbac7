#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "incore_products.h"
#include "simulator/machine/machine.h"
#include "target/target.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Fused layers on cores with explicit memories: what is computed on the way into a product whose
// sums stay where they are made, and loads that have no events of their own.
namespace tilewright::simulator {
namespace {

// On each core with explicit memories.
template <typename Check>
void run_on_cores(const Kernel& kernel, const Check& check) {
  for (const target::Target* target : target::targets()) {
    if (!target->core) continue;
    SCOPED_TRACE(target->name);
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target->name).kernel;
    check([&](const std::vector<TensorArgument>& tensors) {
      Arguments arguments;
      arguments.tensors = tensors;
      MachineOptions options;
      options.multiprocessors = 2;
      const MachineReport report = run_machine(machine, arguments, options);
      ASSERT_TRUE(report.ok()) << report.faults.front().message << report.faults.front().missing;
    });
  }
}

// Y = (silu(X U^T) * X G^T) D, of which no part of the hidden units is stored.
TEST(IncoreFused, GatedLayersKeepTheirSums) {
  constexpr int kDim = 32;
  Kernel kernel("gated");
  const Dim rows = kernel.dim("rows"), hidden = kernel.dim("hidden");
  const Tensor X = kernel.in("X", bf16, {rows, kDim}), U = kernel.in("U", bf16, {hidden, kDim});
  const Tensor G = kernel.in("G", bf16, {hidden, kDim}), D = kernel.in("D", bf16, {hidden, kDim});
  const Tensor Y = kernel.out("Y", f32, {rows, kDim});
  const auto [i] = kernel.grid(ceil_div(rows, 32));
  const Block own = rows.block(i, 32);
  const Tile x = load(X(own, all));
  Var y{zeros({own, kDim})};
  for (Block units : blocks(hidden, 48)) {
    const Tile up = dot(x, load(U(units, all)).T());
    const Tile gated = up / (1 + exp(-up)) * dot(x, load(G(units, all)).T());
    y = y + dot(gated.cast(bf16), load(D(units, all)));
  }
  store(Y(own, all), y);
  run_on_cores(kernel, [](const auto& run) {
    for (const auto& [n, m] : {std::pair{70, 100}, {1, 1}, {32, 48}, {5, 0}}) {
      HostTensor x = HostTensor::random_normal(bf16, {n, kDim}, 1);
      HostTensor u = HostTensor::random_normal(bf16, {m, kDim}, 2);
      HostTensor g = HostTensor::random_normal(bf16, {m, kDim}, 3);
      HostTensor d = HostTensor::random_normal(bf16, {m, kDim}, 4);
      HostTensor y = HostTensor::poisoned(f32, {n, kDim});
      run({given("X", x), given("U", u), given("G", g), given("D", d), given("Y", y)});
      double squares = 0, wrong = 0;
      for (std::int64_t r = 0; r < n; ++r) {
        std::vector<double> row(kDim);
        for (std::int64_t j = 0; j < m; ++j) {
          double up = 0, gate = 0;
          for (std::int64_t c = 0; c < kDim; ++c) {
            up += x.at({r, c}) * u.at({j, c});
            gate += x.at({r, c}) * g.at({j, c});
          }
          for (std::int64_t c = 0; c < kDim; ++c) {
            row[c] += up / (1 + std::exp(-up)) * gate * d.at({j, c});
          }
        }
        for (std::int64_t c = 0; c < kDim; ++c) {
          squares += row[c] * row[c];
          wrong += (y.at({r, c}) - row[c]) * (y.at({r, c}) - row[c]);
        }
      }
      // The hidden units are rounded to bf16, by 2^-9 at most. NaN is not below it.
      EXPECT_LE(std::sqrt(wrong), 3e-3 * std::sqrt(squares)) << n << " " << m;
    }
  });
}

// Rows are brought to a mean of 0 on their way into a product. Of no columns the mean is no number,
// and the product is 0 all the same.
TEST(IncoreFused, ANormGoesIntoAProduct) {
  Kernel kernel("norm_product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), gain = kernel.in("gain", f32, {k});
  const Tensor W = kernel.in("W", bf16, {n, k}), Y = kernel.out("Y", f32, {m, n});
  const auto [i] = kernel.grid(ceil_div(m, 32));
  const Block rows = m.block(i, 32);
  Var sum{zeros({rows, 1})};
  for (Block depth : blocks(k, 32)) sum = sum + reduce_sum(load(X(rows, depth)).cast(f32), 1);
  const Tile mean = sum / Tile({1, 1}, k).cast(f32);
  for (Block cols : blocks(n, 48)) {
    Var acc{zeros({rows, cols})};
    for (Block depth : blocks(k, 32)) {
      const Tile normal =
          (load(X(rows, depth)).cast(f32) - mean) * load(gain(depth)).reshape({1, 32});
      acc = acc + dot(normal.cast(bf16), load(W(cols, depth)).T());
    }
    store(Y(rows, cols), acc);
  }
  run_on_cores(kernel, [](const auto& run) {
    for (const auto& [m, n, k] : {std::tuple{40, 60, 70}, {1, 1, 1}, {33, 20, 0}}) {
      HostTensor x = HostTensor::random_normal(bf16, {m, k}, 1);
      HostTensor gain = HostTensor::random_normal(f32, {k}, 2);
      HostTensor w = HostTensor::random_normal(bf16, {n, k}, 3);
      HostTensor y = HostTensor::poisoned(f32, {m, n});
      run({given("X", x), given("gain", gain), given("W", w), given("Y", y)});
      double squares = 0, wrong = 0;
      for (std::int64_t r = 0; r < m; ++r) {
        double mean = 0;
        for (std::int64_t d = 0; d < k; ++d) mean += x.at({r, d}) / static_cast<double>(k);
        for (std::int64_t c = 0; c < n; ++c) {
          double wanted = 0;
          for (std::int64_t d = 0; d < k; ++d) {
            wanted += (x.at({r, d}) - mean) * gain.at({d}) * w.at({c, d});
          }
          squares += wanted * wanted;
          wrong += (y.at({r, c}) - wanted) * (y.at({r, c}) - wanted);
        }
      }
      EXPECT_LE(std::sqrt(wrong), 3e-3 * std::sqrt(squares) + 1e-5) << m << " " << n << " " << k;
    }
  });
}

// Causal attention without a softmax: a loaded tile is an operand of two products, of which one
// could run a step ahead and the other one waits for what is carried.
TEST(IncoreFused, ATileOfTwoProductsIsHeldByOneTurn) {
  constexpr int kDim = 32;
  Kernel kernel("linear");
  const Dim length = kernel.dim("length");
  const Tensor Q = kernel.in("Q", bf16, {length, kDim}), K = kernel.in("K", bf16, {length, kDim});
  const Tensor V = kernel.in("V", bf16, {length, kDim}), O = kernel.out("O", f32, {length, kDim});
  kernel.grid(1);
  Var state{zeros({kDim, kDim})};
  for (Block rows : blocks(length, 32)) {
    const Tile q = load(Q(rows, all)), k = load(K(rows, all)), v = load(V(rows, all));
    const Tile before = state;
    const Tile scores = where(rows.as_row() <= rows.as_column(), dot(q, k.T()), 0);
    store(O(rows, all), dot(q, before.cast(bf16)) + dot(scores.cast(bf16), v));
    state = before + dot(k.T(), v);
  }
  run_on_cores(kernel, [](const auto& run) {
    for (const int n : {100, 1}) {
      HostTensor q = HostTensor::random_normal(bf16, {n, kDim}, 1);
      HostTensor k = HostTensor::random_normal(bf16, {n, kDim}, 2);
      HostTensor v = HostTensor::random_normal(bf16, {n, kDim}, 3);
      HostTensor o = HostTensor::poisoned(f32, {n, kDim});
      run({given("Q", q), given("K", k), given("V", v), given("O", o)});
      double squares = 0, wrong = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        std::vector<double> row(kDim);
        for (std::int64_t j = 0; j <= i; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < kDim; ++d) score += q.at({i, d}) * k.at({j, d});
          for (std::int64_t d = 0; d < kDim; ++d) row[d] += score * v.at({j, d});
        }
        for (std::int64_t d = 0; d < kDim; ++d) {
          squares += row[d] * row[d];
          wrong += (o.at({i, d}) - row[d]) * (o.at({i, d}) - row[d]);
        }
      }
      EXPECT_LE(std::sqrt(wrong), 4e-3 * std::sqrt(squares)) << n;
    }
  });
}

// More loads than two units have events, on both sides of a store: some are waited for together.
TEST(IncoreFused, LoadsShareEvents) {
  constexpr int kMany = 14, kColumns = 32;
  Kernel kernel("many");
  const Dim rows = kernel.dim("rows");
  std::vector<Tensor> X;
  for (int i = 0; i < kMany; ++i) {
    X.push_back(kernel.in("X" + std::to_string(i), f32, {rows, kColumns}));
  }
  const Tensor table = kernel.in("table", i32, {1});
  const Tensor Y = kernel.out("Y", f32, {rows, kColumns});
  const Tensor Z = kernel.out("Z", f32, {rows, kColumns});
  kernel.grid(1);
  for (Block own : blocks(rows, 16)) {
    const auto part = [&](int i) { return load(X[i](own, all)); };
    Tile sum = part(0) - part(1);
    store(Y(own, all), sum);
    std::optional<Tile> again;
    for (int i = 2; i + 3 < kMany; ++i) {
      const Tile x = part(i);
      sum = exp(sum * 0.25) - x;
      if (i + 5 == kMany) again = x;
    }
    // Those that share events with it are over before.
    sum = sum * *again;
    // Which row it is nobody knows before.
    sum = sum * load(X[kMany - 3](load_index(table(0)), all)).reshape({1, kColumns});
    // What is loaded first is taken last.
    const Tile kept = part(kMany - 2);
    sum = sum + kept;
    sum = (sum - part(kMany - 1)) * kept;
    store(Z(own, all), sum);
  }
  run_on_cores(kernel, [](const auto& run) {
    constexpr std::int64_t kRows = 40;
    std::vector<HostTensor> x;
    std::vector<std::string> names;
    for (int i = 0; i < kMany; ++i) {
      x.push_back(HostTensor::random_normal(f32, {kRows, kColumns}, i + 1));
      names.push_back("X" + std::to_string(i));
    }
    HostTensor table = HostTensor::from_values(i32, {1}, {3});
    HostTensor y = HostTensor::poisoned(f32, {kRows, kColumns});
    HostTensor z = HostTensor::poisoned(f32, {kRows, kColumns});
    std::vector<TensorArgument> tensors;
    for (int i = 0; i < kMany; ++i) tensors.push_back(given(names[i].c_str(), x[i]));
    tensors.insert(tensors.end(), {given("table", table), given("Y", y), given("Z", z)});
    run(tensors);
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kColumns; ++c) {
        double wanted = x[0].at({r, c}) - x[1].at({r, c});
        ASSERT_NEAR(y.at({r, c}), wanted, 1e-5) << r << " " << c;
        for (int i = 2; i + 3 < kMany; ++i) wanted = std::exp(wanted * 0.25) - x[i].at({r, c});
        wanted *= x[kMany - 5].at({r, c});
        const double kept = x[kMany - 2].at({r, c});
        wanted = wanted * x[kMany - 3].at({3, c}) + kept;
        wanted = (wanted - x[kMany - 1].at({r, c})) * kept;
        ASSERT_NEAR(z.at({r, c}), wanted, 1e-4 * (1 + std::abs(wanted))) << r << " " << c;
      }
    }
  });
}

// What is stored is loaded again, by other rows and by a product: a matrix squared where it lies,
// and what its columns sum up to.
TEST(IncoreFused, ALoadComesAfterStores) {
  constexpr int kSize = 32;
  Kernel kernel("power");
  const Tensor A = kernel.in("A", f32, {kSize, kSize}), P = kernel.inout("P", f32, {kSize, kSize});
  const Tensor S = kernel.out("S", f32, {1, kSize});
  kernel.grid(1);
  store(P(all, all), load(A(all, all)) * 0.5);
  for (Index turn : range(3)) {
    const Tile p = load(P(all, all));
    store(P(all, all), dot(p, p));
    static_cast<void>(turn);
  }
  Var sum{zeros({1, kSize})};
  for (Block rows : blocks(Dim(kSize), 8)) sum = sum + reduce_sum(load(P(rows, all)), 0);
  store(S(all, all), sum);
  run_on_cores(kernel, [](const auto& run) {
    HostTensor a = HostTensor::random_normal(f32, {kSize, kSize}, 1);
    for (std::int64_t i = 0; i < a.elements(); ++i) a.set_flat(i, a.flat(i) / 2);
    HostTensor p = HostTensor::poisoned(f32, {kSize, kSize});
    HostTensor s = HostTensor::poisoned(f32, {1, kSize});
    run({given("A", a), given("P", p), given("S", s)});
    std::vector<double> wanted(kSize * kSize);
    for (int i = 0; i < kSize * kSize; ++i) wanted[i] = a.flat(i) / 2;
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<double> squared(kSize * kSize);
      for (int i = 0; i < kSize * kSize; ++i) {
        for (int k = 0; k < kSize; ++k) {
          squared[i] += wanted[i / kSize * kSize + k] * wanted[k * kSize + i % kSize];
        }
      }
      wanted = squared;
    }
    for (std::int64_t c = 0; c < kSize; ++c) {
      double column = 0;
      for (std::int64_t r = 0; r < kSize; ++r) {
        const double each = wanted[r * kSize + c];
        column += each;
        ASSERT_NEAR(p.at({r, c}), each, 1e-4 * (1 + std::abs(each))) << r << " " << c;
      }
      EXPECT_NEAR(s.at({0, c}), column, 1e-3 * (1 + std::abs(column))) << c;
    }
  });
}

// What all instances of the vector unit load one of them stores: it waits for the others.
TEST(IncoreFused, ARowIsStoredOnceAllHaveLoadedIt) {
  Kernel kernel("row");
  const Dim rows = kernel.dim("rows", at_most(16));
  const Tensor X = kernel.in("X", f32, {rows, 24}), S = kernel.inout("S", f32, {1, 24});
  kernel.grid(1);
  store(S(all, all), load(S(all, all)) + reduce_sum(load(X(rows.block(0, 16), all)), 0));
  run_on_cores(kernel, [](const auto& run) {
    HostTensor x = HostTensor::random_normal(f32, {13, 24}, 1);
    HostTensor s = HostTensor::random_normal(f32, {1, 24}, 2);
    std::vector<double> wanted;
    for (std::int64_t c = 0; c < 24; ++c) {
      wanted.push_back(s.at({0, c}));
      for (std::int64_t r = 0; r < 13; ++r) wanted.back() += x.at({r, c});
    }
    run({given("X", x), given("S", s)});
    for (std::int64_t c = 0; c < 24; ++c) EXPECT_NEAR(s.at({0, c}), wanted[c], 1e-5) << c;
  });
}

// In front of a tensor there are zeros, as behind it.
TEST(IncoreFused, ABlockBeginsBeforeItsTensor) {
  Kernel kernel("stencil");
  const Dim h = kernel.dim("h"), w = kernel.dim("w");
  const Tensor X = kernel.in("X", f32, {h, w}), Y = kernel.out("Y", f32, {h, w});
  const auto [x, y] = kernel.grid(ceil_div(w, 32), ceil_div(h, 4));
  const Block rows = h.block(y, 4), columns = w.block(x, 32);
  Var sum{zeros({rows, columns})};
  for (int i = -1; i < 2; ++i) {
    for (int j = -1; j < 2; ++j) {
      const Tile part =
          load(X(Block(4 * y + i, 4, Index(h + 1)), Block(32 * x + j, 32, Index(w + 1))));
      sum = sum + part * (1 + i + 3 * j);
    }
  }
  store(Y(rows, columns), sum);
  run_on_cores(kernel, [](const auto& run) {
    for (const auto& [h, w] : {std::pair{13, 37}, {1, 1}}) {
      HostTensor in = HostTensor::random_normal(f32, {h, w}, 1);
      HostTensor out = HostTensor::poisoned(f32, {h, w});
      run({given("X", in), given("Y", out)});
      for (int r = 0; r < h; ++r) {
        for (int c = 0; c < w; ++c) {
          double wanted = 0;
          for (int i = -1; i < 2; ++i) {
            for (int j = -1; j < 2; ++j) {
              const bool exists = r + i >= 0 && r + i < h && c + j >= 0 && c + j < w;
              if (exists) wanted += in.at({r + i, c + j}) * (1 + i + 3 * j);
            }
          }
          ASSERT_NEAR(out.at({r, c}), wanted, 1e-4) << r << " " << c;
        }
      }
    }
  });
}

// An index that has no turn has no element either.
TEST(IncoreFused, ASumOfNoMatricesIsZero) {
  Kernel kernel("batched");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {n, 32, 64}), B = kernel.in("B", bf16, {n + 1, 64, 48});
  const Tensor C = kernel.out("C", f32, {32, 48});
  kernel.grid(1);
  Var sum{zeros({32, 48})};
  for (Index i : range(n)) sum = sum + dot(load(A(i, all, all)), load(B(i + 1, all, all)));
  store(C(all, all), sum);
  run_on_cores(kernel, [](const auto& run) {
    for (const std::int64_t n : {0, 3}) {
      HostTensor a = HostTensor::random_normal(bf16, {n, 32, 64}, 1);
      HostTensor b = HostTensor::random_normal(bf16, {n + 1, 64, 48}, 2);
      HostTensor c = HostTensor::poisoned(f32, {32, 48});
      run({given("A", a), given("B", b), given("C", c)});
      for (std::int64_t r = 0; r < 32; ++r) {
        double wanted = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t d = 0; d < 64; ++d) wanted += a.at({i, r, d}) * b.at({i + 1, d, 7});
        }
        ASSERT_NEAR(c.at({r, 7}), wanted, 1e-3) << n << " " << r;
      }
    }
  });
}

// Without tails nothing but a barrier keeps a turn from writing over what the one before still
// reads.
TEST(IncoreFused, ATurnWaitsForTheOneBefore) {
  constexpr int kDepth = 96;
  Kernel kernel("turns");
  const Tensor A = kernel.in("A", bf16, {32, kDepth}), B = kernel.in("B", bf16, {kDepth, 48});
  const Tensor C = kernel.out("C", f32, {32, 48});
  kernel.grid(1);
  Var sum{zeros({32, 48})};
  for (Block depth : blocks(Dim(kDepth), 32)) {
    const Tile weights = exp(load(A(all, depth)).cast(f32) * 0.5);
    sum = sum + dot(weights.cast(bf16), load(B(depth, all)));
  }
  store(C(all, all), sum);
  run_on_cores(kernel, [](const auto& run) {
    HostTensor a = HostTensor::random_normal(bf16, {32, kDepth}, 1);
    HostTensor b = HostTensor::random_normal(bf16, {kDepth, 48}, 2);
    HostTensor c = HostTensor::poisoned(f32, {32, 48});
    run({given("A", a), given("B", b), given("C", c)});
    for (std::int64_t r = 0; r < 32; ++r) {
      double wanted = 0;
      for (std::int64_t d = 0; d < kDepth; ++d) {
        wanted += std::exp(0.5 * a.at({r, d})) * b.at({d, 7});
      }
      ASSERT_NEAR(c.at({r, 7}), wanted, 0.1) << r;  // weights are rounded to bf16
    }
  });
}

// Values of a loop that take each other's places, one after the other.
TEST(IncoreFused, CarriedValuesFollowEachOther) {
  Kernel kernel("powers");
  const Tensor X = kernel.in("X", f32, {16, 24}), Y = kernel.out("Y", f32, {16, 24});
  const Tensor counts = kernel.in("counts", i32, {1});
  kernel.grid(1);
  Var last{load(X(all, all))}, before{zeros({16, 24})};
  for (Index turn : range(load_index(counts(0)))) {
    before = last;
    last = Tile(last) * 2;
    static_cast<void>(turn);
  }
  store(Y(all, all), before);
  run_on_cores(kernel, [](const auto& run) {
    for (const auto& [n, factor] : {std::pair{0, 0}, {1, 1}, {4, 8}}) {
      HostTensor x = HostTensor::random_normal(f32, {16, 24}, 1);
      HostTensor counts = HostTensor::from_values(i32, {1}, {static_cast<double>(n)});
      HostTensor y = HostTensor::poisoned(f32, {16, 24});
      run({given("X", x), given("Y", y), given("counts", counts)});
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        ASSERT_NEAR(y.flat(i), factor * x.flat(i), 1e-4) << n;
      }
    }
  });
}

// Behind the k that exists a unit sums the rest of its piece: zeros, or something that shows.
TEST(IncoreFused, ThePieceBehindKIsSummed) {
  for (const bool fills : {true, false}) {
    Kernel kernel("piece");
    kernel.target("incore");
    const Tensor A = kernel.in("A", bf16, {16, 20}), B = kernel.in("B", bf16, {20, 16});
    const Tensor C = kernel.out("C", f32, {16, 16});
    kernel.ctas(1);
    CoreMemory a(kernel, "Mat", "a", bf16, 16, 32), b(kernel, "Mat", "b", bf16, 32, 16);
    CoreMemory left(kernel, "Left", "left", bf16, 16, 32),
        right(kernel, "Right", "right", bf16, 32, 16);
    CoreMemory sums(kernel, "Acc", "sums", f32, 16, 16);
    CoreEvent loaded(kernel, "MTE2", "MTE1"), fed(kernel, "MTE1", "M"), summed(kernel, "M", "FIX");
    kernel.roles({sequencer("cube", [&] {
      if (fills) {
        fill(b, 0);
        unit_barrier("MTE2");
      }
      move(a, A(all, Block(0, 32, 20)));
      move(b[0].part(0, 0, 20, 16), B(all, all));
      loaded.set();
      loaded.wait();
      move(left, a);
      move(right, b);
      fed.set();
      fed.wait();
      matmul(sums, left, right, false, 20);
      summed.set();
      summed.wait();
      move(C(all, all), sums);
    })});
    HostTensor x = HostTensor::random_normal(bf16, {16, 20}, 1);
    HostTensor y = HostTensor::random_normal(bf16, {20, 16}, 2);
    HostTensor c = HostTensor::poisoned(f32, {16, 16});
    Arguments arguments;
    arguments.tensors = {given("A", x), given("B", y), given("C", c)};
    const MachineReport report = run_machine(machine_form(kernel), arguments, {});
    ASSERT_EQ(report.ok(), fills);
    if (!fills) {
      EXPECT_EQ(report.faults.front().kind, "uninitialised");
    }
  }
}

}  // namespace
}  // namespace tilewright::simulator
