#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/execution.h"
#include "kernels/reference_vectors.h"
#include "tilewright/kernels/attention.h"

// Attention of one length, and its float64 reference.
namespace tilewright::kernels::test_attention {

using test::Padded;

struct Problem {
  Attention options;
  std::int64_t batch = 1, queries = 128, keys = 128;
};

struct Tensors {
  explicit Tensors(const Problem& p)
      : q(Padded::normal(p.options.dtype, {p.batch, p.queries, p.options.heads, p.options.dim}, 1)),
        k(Padded::normal(p.options.dtype, {p.batch, p.keys, p.options.kv_heads, p.options.dim}, 2)),
        v(Padded::normal(p.options.dtype, {p.batch, p.keys, p.options.kv_heads, p.options.dim_v},
                         3)),
        o(p.options.dtype, {p.batch, p.queries, p.options.heads, p.options.dim_v}),
        lse(f32, {p.batch, p.options.heads, p.queries}),
        sinks(Padded::normal(f32, {p.options.heads}, 4)),
        has_sinks(p.options.sinks) {}
  Arguments arguments() {
    Arguments a;
    a.tensors = {q.argument("Q"), k.argument("K"), v.argument("V"), o.argument("O"),
                 lse.argument("LSE")};
    if (has_sinks) a.tensors.push_back(sinks.argument("sinks"));
    return a;
  }
  Padded q, k, v, o, lse, sinks;
  bool has_sinks;
};

struct Reference {
  std::vector<double> o, lse;
};

// The definition, in float64: softmax over the keys that a query sees.
inline Reference reference(const Problem& p, const Tensors& t) {
  const Attention& a = p.options;
  const double scale = a.scale > 0 ? a.scale : 1 / std::sqrt(a.dim);
  const std::int64_t group = a.heads / a.kv_heads;
  const std::vector<double> q = t.q.values(), k = t.k.values(), v = t.v.values();
  Reference r;
  r.lse.resize(p.batch * a.heads * p.queries);
  std::vector<double> weights(p.keys);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t i = 0; i < p.queries; ++i) {
      for (std::int64_t h = 0; h < a.heads; ++h) {
        const double* query = &q[((b * p.queries + i) * a.heads + h) * a.dim];
        const auto at_key = [&](std::int64_t j) {
          return (b * p.keys + j) * a.kv_heads + h / group;
        };
        double sum = a.sinks ? std::exp(t.sinks.at({h})) : 0;
        for (std::int64_t j = 0; j < p.keys; ++j) {
          const std::int64_t last = i + p.keys - p.queries;
          const bool visible = !a.causal || (j <= last && (a.window == 0 || j > last - a.window));
          const double* key = &k[at_key(j) * a.dim];
          double score = product_of_rows(key, query, a.dim) * scale;
          if (a.softcap > 0) score = a.softcap * std::tanh(score / a.softcap);
          weights[j] = visible ? std::exp(score) : 0;
          sum += weights[j];
        }
        std::vector<double> o(a.dim_v, 0.0);
        for (std::int64_t j = 0; j < p.keys; ++j) {
          if (weights[j] == 0) continue;
          add_times(weights[j] / sum, &v[at_key(j) * a.dim_v], o.data(), a.dim_v);
        }
        r.o.insert(r.o.end(), o.begin(), o.end());
        r.lse[(b * a.heads + h) * p.queries + i] = std::log(sum);
      }
    }
  }
  return r;
}

}  // namespace tilewright::kernels::test_attention
