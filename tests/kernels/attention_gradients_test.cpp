#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tilewright/check_gradients.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/attention.h"

// The gradients of attention against its forward pass: by differences, and by what softmax keeps.
namespace tilewright {
namespace {

using kernels::Attention;

struct GradientCase {
  std::string name;
  Attention attention;
  std::int64_t batch = 2, queries = 0, keys = 0;
  std::vector<double> query_starts = {}, key_starts = {};  // packed: batch + 1 each
  bool of_lse = false;
  bool is_packed() const { return !query_starts.empty(); }
};

GradientOptions options_of(const GradientCase& c) {
  GradientOptions options;
  if (!c.is_packed()) {
    options.sizes = {{"batch", c.batch}, {"queries", c.queries}, {"keys", c.keys}};
    return options;
  }
  options.sizes = {{"total_queries", c.queries}, {"total_keys", c.keys}};
  options.inputs = {{"cu_seqlens_q", HostTensor::from_values(i32, {c.batch + 1}, c.query_starts)},
                    {"cu_seqlens_k", HostTensor::from_values(i32, {c.batch + 1}, c.key_starts)}};
  return options;
}

GradientReport report_of(const GradientCase& c, const Attention& backward) {
  return c.is_packed()
             ? check_gradients(kernels::attention_varlen_forward(c.attention),
                               kernels::attention_varlen_backward(backward, c.of_lse),
                               options_of(c))
             : check_gradients(kernels::attention_forward(c.attention),
                               kernels::attention_backward(backward, c.of_lse), options_of(c));
}

class AttentionGradients : public testing::TestWithParam<GradientCase> {};

TEST_P(AttentionGradients, AreTheForwardPasses) {
  const GradientCase& c = GetParam();
  const GradientReport report = report_of(c, c.attention);
  EXPECT_TRUE(report.ok()) << report.text();
  ASSERT_EQ(report.gradients.size(), c.attention.sinks ? 4u : 3u);
  const char* const names[] = {"dQ", "dK", "dV", "dsinks"};
  for (std::size_t i = 0; i < report.gradients.size(); ++i) {
    EXPECT_EQ(report.gradients[i].gradient, names[i]);
  }
}

std::vector<GradientCase> gradient_cases() {
  std::vector<GradientCase> list;
  const auto add = [&](std::string name, std::int64_t queries, std::int64_t keys,
                       const std::function<void(GradientCase&)>& change = {}) {
    GradientCase c;
    c.name = std::move(name);
    c.queries = queries;
    c.keys = keys;
    c.attention.heads = c.attention.kv_heads = 2;
    c.attention.dim = c.attention.dim_v = 16;
    c.attention.block_q = c.attention.block_k = 16;
    if (change) change(c);
    list.push_back(c);
  };
  const auto causal = [](GradientCase& c) { c.attention.causal = true; };
  add("Full", 20, 37);
  add("OneOfEach", 1, 1);
  add("NoKeys", 5, 0);
  add("NoQueries", 0, 20);
  add("Causal", 37, 37, causal);
  add("CausalMoreQueries", 40, 21, causal);  // rows that see nothing
  add("CausalMoreKeys", 21, 40, causal);
  add("Window", 40, 45, [](GradientCase& c) {
    c.attention.causal = true;
    c.attention.window = 18;
  });
  add("Softcap", 20, 37, [](GradientCase& c) { c.attention.softcap = 1.5; });
  add("SoftcapCausal", 37, 20, [](GradientCase& c) {
    c.attention.causal = true;
    c.attention.softcap = 1.5;
  });
  add("Sinks", 37, 20, [](GradientCase& c) { c.attention.causal = c.attention.sinks = true; });
  add("LseGradient", 37, 20, [](GradientCase& c) { c.attention.causal = c.of_lse = true; });
  add("LseGradientSinks", 37, 20,
      [](GradientCase& c) { c.attention.causal = c.attention.sinks = c.of_lse = true; });
  add("SinksWithoutKeys", 5, 0, [](GradientCase& c) { c.attention.sinks = c.of_lse = true; });
  add("GroupedHeads", 20, 37, [](GradientCase& c) { c.attention.heads = 6; });
  add("OneHeadOfKeys", 20, 37, [](GradientCase& c) {
    c.attention.heads = 4;
    c.attention.kv_heads = 1;
  });
  add("WideKeys", 20, 37, [](GradientCase& c) { c.attention.dim = 48; });
  add("WideValues", 20, 37, [](GradientCase& c) { c.attention.dim_v = 32; });
  add("KernelsOfTheirOwn", 20, 20, [](GradientCase& c) { c.attention.dim = 256; });
  add("Scale", 20, 37, [](GradientCase& c) { c.attention.scale = 0.7; });
  add("F16", 20, 37, [](GradientCase& c) { c.attention.dtype = f16; });
  add("F32", 20, 37, [](GradientCase& c) { c.attention.dtype = f32; });
  const auto packed = [](GradientCase& c) {
    c.batch = 4;
    c.query_starts = {0, 20, 20, 21, 60};
    c.key_starts = {0, 40, 45, 45, 70};
  };
  add("Packed", 60, 70, packed);
  add("PackedCausal", 60, 70, [&](GradientCase& c) {
    packed(c);
    c.attention.causal = true;
  });
  add("PackedAll", 60, 70, [&](GradientCase& c) {
    packed(c);
    c.attention.causal = c.attention.sinks = c.of_lse = true;
    c.attention.heads = 4;
    c.attention.window = 10;
    c.attention.softcap = 2;
  });
  return list;
}
INSTANTIATE_TEST_SUITE_P(Cases, AttentionGradients, testing::ValuesIn(gradient_cases()),
                         [](const auto& info) { return info.param.name; });

// A backward pass of other options than the forward pass is wrong in the tensors that these change.
struct WrongCase {
  std::string name;
  std::function<void(Attention&)> forward, backward;
};

class WrongAttentionGradients : public testing::TestWithParam<WrongCase> {};

TEST_P(WrongAttentionGradients, AreFound) {
  GradientCase c;
  c.queries = 37;
  c.keys = 40;
  c.attention.heads = c.attention.kv_heads = 2;
  c.attention.dim = c.attention.dim_v = 16;
  c.attention.block_q = c.attention.block_k = 16;
  Attention backward = c.attention;
  GetParam().forward(c.attention);
  GetParam().backward(backward);
  const GradientReport report = report_of(c, backward);
  for (const GradientCheck& each : report.gradients) {
    EXPECT_FALSE(each.ok()) << each.gradient;
    EXPECT_GT(each.error, 1e-4) << each.gradient;
  }
}

std::vector<WrongCase> wrong_cases() {
  const auto none = [](Attention&) {};
  return {{"NoMask", [](Attention& a) { a.causal = true; }, none},
          {"MaskTooMuch", none, [](Attention& a) { a.causal = true; }},
          {"WindowOffByOne",
           [](Attention& a) {
             a.causal = true;
             a.window = 9;
           },
           [](Attention& a) {
             a.causal = true;
             a.window = 10;
           }},
          {"NoSoftcap", [](Attention& a) { a.softcap = 2; }, none},
          {"OtherScale", none, [](Attention& a) { a.scale = 0.26; }}};
}
INSTANTIATE_TEST_SUITE_P(Cases, WrongAttentionGradients, testing::ValuesIn(wrong_cases()),
                         [](const auto& info) { return info.param.name; });

// dQ of f32 attention, O and LSE from the forward pass.
std::vector<double> query_gradient_of(const Attention& a, HostTensor q, HostTensor k, HostTensor v,
                                      HostTensor dout, HostTensor dlse) {
  HostTensor o = HostTensor::poisoned(f32, dout.shape());
  HostTensor lse = HostTensor::poisoned(f32, dlse.shape());
  HostTensor dq = HostTensor::poisoned(f32, q.shape());
  HostTensor dk = HostTensor::poisoned(f32, k.shape());
  HostTensor dv = HostTensor::poisoned(f32, v.shape());
  compile(kernels::attention_forward(a), "interpreter")
      .run({ref(q), ref(k), ref(v), ref(o), ref(lse)});
  compile(kernels::attention_backward(a, true), "interpreter")
      .run({ref(q), ref(k), ref(v), ref(o), ref(lse), ref(dout), ref(dlse), ref(dq), ref(dk),
            ref(dv)});
  std::vector<double> values;
  for (std::int64_t i = 0; i < dq.elements(); ++i) values.push_back(dq.flat(i));
  return values;
}

// A vector that is added to all keys adds one number to all scores of a row: softmax stays, and so
// does dS. dQ, the scale times dS K, then changes by the scale times the row's sum of dS times the
// vector. That sum is the gradient of the row's LSE: without one dQ stays.
TEST(AttentionGradientProperties, RowsOfScoreGradientsSumToTheLseGradient) {
  constexpr std::int64_t kQueries = 21, kKeys = 40, kHeads = 4, kDim = 16;
  Attention a;
  a.heads = kHeads;
  a.kv_heads = 2;
  a.dim = a.dim_v = kDim;
  a.block_q = a.block_k = 16;
  a.causal = true;
  a.dtype = f32;
  const HostTensor q = HostTensor::random_normal(f32, {1, kQueries, kHeads, kDim}, 1);
  const HostTensor k = HostTensor::random_normal(f32, {1, kKeys, 2, kDim}, 2);
  const HostTensor v = HostTensor::random_normal(f32, {1, kKeys, 2, kDim}, 3);
  const HostTensor dout = HostTensor::random_normal(f32, {1, kQueries, kHeads, kDim}, 4);
  const HostTensor none = HostTensor::zeros(f32, {1, kHeads, kQueries});
  const HostTensor dlse = HostTensor::random_normal(f32, {1, kHeads, kQueries}, 5);
  const HostTensor vector = HostTensor::random_normal(f32, {kDim}, 6);
  HostTensor moved = k;
  for (std::int64_t i = 0; i < moved.elements(); ++i) {
    moved.set_flat(i, k.flat(i) + vector.flat(i % kDim));
  }

  const std::vector<double> before = query_gradient_of(a, q, k, v, dout, none);
  const std::vector<double> after = query_gradient_of(a, q, moved, v, dout, none);
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(before[i], after[i], 1e-5);
    largest = std::max(largest, std::abs(before[i]));
  }
  EXPECT_GT(largest, 0.1);

  const std::vector<double> with = query_gradient_of(a, q, k, v, dout, dlse);
  const std::vector<double> with_after = query_gradient_of(a, q, moved, v, dout, dlse);
  for (std::int64_t i = 0; i < kQueries; ++i) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t x = 0; x < kDim; ++x) {
        const auto at = static_cast<std::size_t>((i * kHeads + h) * kDim + x);
        EXPECT_NEAR(with_after[at] - with[at],
                    dlse.at({0, h, i}) * vector.flat(x) / std::sqrt(double(kDim)), 2e-5);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
