#include <gtest/gtest.h>

#include <limits>

#include "kernels/execution.h"
#include "kernels/reference_vectors.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {
namespace {

using test::Execution;
using test::kLseTolerance;
using test::kTolerance;
using test::Padded;

constexpr double kNothing = -std::numeric_limits<double>::infinity();

using Lengths = std::vector<std::int64_t>;

struct PackedProblem {
  Attention options;
  Lengths queries, keys;         // of each sequence
  std::int64_t unused_rows = 3;  // before the first sequence and behind the last
};

// The sequences' first rows, and the end of the last.
Lengths offsets_of(const PackedProblem& p, const Lengths& lengths) {
  Lengths offsets{p.unused_rows};
  for (const std::int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

struct PackedTensors {
  explicit PackedTensors(const PackedProblem& p)
      : q_offsets(offsets_of(p, p.queries)),
        k_offsets(offsets_of(p, p.keys)),
        q(packed(p, q_offsets, p.options.heads, p.options.dim, 1)),
        k(packed(p, k_offsets, p.options.kv_heads, p.options.dim, 2)),
        v(packed(p, k_offsets, p.options.kv_heads, p.options.dim_v, 3)),
        cu_seqlens_q(integers(q_offsets)),
        cu_seqlens_k(integers(k_offsets)),
        o(p.options.dtype, {total(p, q_offsets), p.options.heads, p.options.dim_v}),
        lse(f32, {p.options.heads, total(p, q_offsets)}),
        sinks(Padded::normal(f32, {p.options.heads}, 4)),
        has_sinks(p.options.sinks) {}

  static std::int64_t total(const PackedProblem& p, const Lengths& offsets) {
    return offsets.back() + p.unused_rows;
  }
  static HostTensor integers(const Lengths& values) {
    return HostTensor::from_values(i32, {static_cast<std::int64_t>(values.size())},
                                   {values.begin(), values.end()});
  }
  // Rows of no sequence are NaN.
  static Padded packed(const PackedProblem& p, const Lengths& offsets, std::int64_t heads,
                       std::int64_t dim, std::uint64_t seed) {
    Padded tensor = Padded::normal(p.options.dtype, {total(p, offsets), heads, dim}, seed);
    tensor.each([&](const auto& index) {
      if (index[0] < offsets.front() || index[0] >= offsets.back()) {
        tensor.set(index, std::nan(""));
      }
    });
    return tensor;
  }
  // All rows but those of one sequence.
  void poison_others(std::size_t sequence) {
    const auto poison = [sequence](Padded& tensor, const Lengths& offsets) {
      tensor.each([&](const auto& index) {
        if (index[0] >= offsets[sequence] && index[0] < offsets[sequence + 1]) return;
        tensor.set(index, std::nan(""));
      });
    };
    poison(q, q_offsets);
    poison(k, k_offsets);
    poison(v, k_offsets);
  }
  Arguments arguments() {
    const auto of = [](const char* name, HostTensor& t) {
      return TensorArgument{name, t.dtype(), t.shape(), t.strides(), t.data()};
    };
    Arguments a;
    a.tensors = {q.argument("Q"),
                 k.argument("K"),
                 v.argument("V"),
                 of("cu_seqlens_q", cu_seqlens_q),
                 of("cu_seqlens_k", cu_seqlens_k),
                 o.argument("O"),
                 lse.argument("LSE")};
    if (has_sinks) a.tensors.push_back(sinks.argument("sinks"));
    return a;
  }

  Lengths q_offsets, k_offsets;
  Padded q, k, v;
  HostTensor cu_seqlens_q, cu_seqlens_k;
  Padded o, lse, sinks;
  bool has_sinks;
};

// How the kernel is run: interpreted, or on the simulated GPU by the compiler's schedule or its
// own.
enum class Form { interpreted, automatic, sm90 };
void PrintTo(Form form, std::ostream* out) {
  *out << (form == Form::interpreted ? "interpreted"
           : form == Form::automatic ? "automatic"
                                     : "sm90");
}

[[nodiscard]] bool run(const PackedProblem& p, PackedTensors& t, Form form) {
  if (form == Form::sm90) {
    return test::execute(attention_varlen_forward_sm90(p.options), t.arguments(),
                         {.machine = true});
  }
  const Kernel kernel = attention_varlen_forward(p.options);
  if (form == Form::interpreted) return test::execute(kernel, t.arguments(), {});
  std::vector<TensorRef> tensors;
  for (const TensorArgument& a : t.arguments().tensors) {
    tensors.push_back({a.data, a.dtype, a.shape, a.strides});
  }
  compile(kernel, "sim:sm_90a").run(tensors);
  return true;
}

// By the definition, in float64.
class PackedReference {
 public:
  PackedReference(const PackedProblem& p, const PackedTensors& t)
      : p_(p), t_(t), q_(t.q.values()), k_(t.k.values()), v_(t.v.values()) {}

  // Of query i of sequence b: the row of O, and the logarithm of the sum.
  double row(std::size_t b, std::int64_t i, std::int64_t h, std::vector<double>& o) const {
    const Attention& a = p_.options;
    const std::int64_t kv_head = h * a.kv_heads / a.heads;
    const double scale = a.scale > 0 ? a.scale : 1 / std::sqrt(a.dim);
    const double* query = &q_[((t_.q_offsets[b] + i) * a.heads + h) * a.dim];
    double sum = a.sinks ? std::exp(t_.sinks.at({h})) : 0;
    o.assign(a.dim_v, 0);
    for (std::int64_t j = 0; j < p_.keys[b]; ++j) {
      const std::int64_t last = i + p_.keys[b] - p_.queries[b];
      if (a.causal && (j > last || (a.window > 0 && j <= last - a.window))) continue;
      const std::int64_t at = (t_.k_offsets[b] + j) * a.kv_heads + kv_head;
      const double* key = &k_[at * a.dim];
      double score = product_of_rows(key, query, a.dim) * scale;
      if (a.softcap > 0) score = a.softcap * std::tanh(score / a.softcap);
      const double weight = std::exp(score);
      sum += weight;
      add_times(weight, &v_[at * a.dim_v], o.data(), a.dim_v);
    }
    for (double& x : o) x = sum > 0 ? x / sum : 0;
    return std::log(sum);
  }

 private:
  const PackedProblem& p_;
  const PackedTensors& t_;
  std::vector<double> q_, k_, v_;
};

// Errors of the rows of sequences; rows of none must be as they were: NaN.
void check(const PackedProblem& p, Form form) {
  PackedTensors t(p);
  ASSERT_TRUE(run(p, t, form));
  const PackedReference reference(p, t);
  double difference = 0, magnitude = 0, worst_lse = 0;
  std::vector<double> o;
  for (std::size_t b = 0; b < p.queries.size(); ++b) {
    for (std::int64_t i = 0; i < p.queries[b]; ++i) {
      const std::int64_t row = t.q_offsets[b] + i;
      for (std::int64_t h = 0; h < p.options.heads; ++h) {
        const double lse = reference.row(b, i, h, o), got = t.lse.at({h, row});
        const double error = got == lse ? 0 : std::abs(got - lse);
        ASSERT_TRUE(error < 1) << "sequence " << b << ", row " << i << ": " << got << ", " << lse;
        worst_lse = std::max(worst_lse, error);
        for (int d = 0; d < p.options.dim_v; ++d) {
          const double x = t.o.at({row, h, d});
          ASSERT_TRUE(std::isfinite(x)) << "sequence " << b << ", row " << i;
          difference += (x - o[d]) * (x - o[d]);
          magnitude += o[d] * o[d];
        }
      }
    }
  }
  EXPECT_LE(std::sqrt(difference), kTolerance * std::sqrt(magnitude));
  EXPECT_LT(worst_lse, kLseTolerance);
  t.o.each([&](const auto& index) {
    if (index[0] >= t.q_offsets.front() && index[0] < t.q_offsets.back()) return;
    ASSERT_TRUE(std::isnan(t.o.at(index))) << "row " << index[0] << " of no sequence is written";
    ASSERT_TRUE(std::isnan(t.lse.at({index[1], index[0]})));
  });
  EXPECT_EQ(t.o.written_outside(), 0);
  EXPECT_EQ(t.lse.written_outside(), 0);
}

PackedProblem packed_problem(Lengths queries, Lengths keys, bool causal = false, int window = 0) {
  PackedProblem p;
  p.options.heads = p.options.kv_heads = 2;
  p.options.causal = causal;
  p.options.window = window;
  p.queries = std::move(queries);
  p.keys = std::move(keys);
  return p;
}

const Lengths kQueries = {1, 0, 17, 128, 200, 0, 129, 64, 0};
const Lengths kKeys = {1, 40, 0, 129, 70, 0, 300, 64, 0};

class AttentionVarlen : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Forms, AttentionVarlen,
                         testing::Values(Form::interpreted, Form::automatic, Form::sm90),
                         testing::PrintToStringParamName());

TEST_P(AttentionVarlen, Full) { check(packed_problem(kQueries, kKeys), GetParam()); }
// The diagonal ends at each sequence's own last query and key; some rows see nothing.
TEST_P(AttentionVarlen, Causal) { check(packed_problem(kQueries, kKeys, true), GetParam()); }
TEST_P(AttentionVarlen, Window) {
  check(packed_problem(kQueries, kKeys, true, 1), GetParam());
  check(packed_problem(kQueries, kKeys, true, 100), GetParam());
}
TEST_P(AttentionVarlen, SharedHeadsAndDims) {
  PackedProblem p = packed_problem({70, 3}, {5, 130}, true);
  p.options.heads = 4;
  p.options.dim = p.options.dim_v = 128;
  check(p, GetParam());
}
// Several heads in a tile's rows, which end with each sequence; each has its own sink.
TEST_P(AttentionVarlen, PackedHeads) {
  PackedProblem p = packed_problem({1, 0, 37, 64, 5}, {70, 3, 20, 64, 0}, true, 30);
  p.options.heads = 8;
  p.options.sinks = true;
  p.options.dim = 48;
  p.options.dim_v = 80;
  check(p, GetParam());
}
TEST_P(AttentionVarlen, SinksAndASoftCap) {
  PackedProblem p = packed_problem({70, 0, 3}, {5, 4, 130}, true);
  p.options.sinks = true;
  p.options.softcap = 2;
  check(p, GetParam());
}
TEST_P(AttentionVarlen, OneSequenceAndNone) {
  PackedProblem p = packed_problem({150}, {150}, true);
  p.unused_rows = 0;
  check(p, GetParam());
  check(packed_problem({0, 0}, {0, 7}), GetParam());
}
// Of a batch of none, cu_seqlens has one element.
TEST_P(AttentionVarlen, RowsOfNoSequence) {
  PackedProblem p = packed_problem({}, {}, true);
  for (const std::int64_t rows : {0, 3, 100}) {
    p.unused_rows = rows;
    check(p, GetParam());
  }
}

// 0 * NaN is NaN: a neighbour's rows must be left out, not weighted with 0.
TEST_P(AttentionVarlen, NeighboursDoNotReachAResult) {
  for (const std::size_t sequence : {0u, 2u, 3u, 4u, 6u}) {
    const PackedProblem p = packed_problem(kQueries, kKeys);
    PackedTensors clean(p), poisoned(p);
    poisoned.poison_others(sequence);
    ASSERT_TRUE(run(p, clean, GetParam()));
    ASSERT_TRUE(run(p, poisoned, GetParam()));
    clean.o.each([&](const auto& index) {
      if (index[0] < clean.q_offsets[sequence] || index[0] >= clean.q_offsets[sequence + 1]) return;
      ASSERT_TRUE(std::isfinite(clean.o.at(index)));
      ASSERT_EQ(clean.o.at(index), poisoned.o.at(index)) << "sequence " << sequence;
      const std::vector<std::int64_t> row{index[1], index[0]};
      ASSERT_EQ(clean.lse.at(row), poisoned.lse.at(row));
    });
  }
}

TEST(AttentionVarlenTest, NothingVisibleIsZeroAndMinusInfinity) {
  const PackedProblem p = packed_problem({20, 30}, {5, 30}, true);
  PackedTensors t(p);
  ASSERT_TRUE(run(p, t, Form::interpreted));
  for (const std::int64_t row : {0, 14}) {
    EXPECT_EQ(t.lse.at({0, t.q_offsets[0] + row}), kNothing);
    EXPECT_EQ(t.o.at({t.q_offsets[0] + row, 0, 5}), 0);
  }
  EXPECT_TRUE(std::isfinite(t.lse.at({0, t.q_offsets[0] + 15})));
}

// A length that is one too long is seen by these tests' bounds.
TEST(AttentionVarlenTest, ToleranceSeesAWrongLength) {
  PackedProblem p = packed_problem({100}, {60});
  PackedTensors t(p);
  t.cu_seqlens_k.set_flat(1, static_cast<double>(t.k_offsets[1] - 1));
  ASSERT_TRUE(run(p, t, Form::interpreted));
  const PackedReference reference(p, t);
  std::vector<double> o;
  double worst = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    worst =
        std::max(worst, std::abs(t.lse.at({0, t.q_offsets[0] + i}) - reference.row(0, i, 0, o)));
  }
  EXPECT_GT(worst, kLseTolerance);
}

}  // namespace
}  // namespace tilewright::kernels
