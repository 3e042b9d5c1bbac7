#include "kernels/reference_paged.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference.h"
#include "kernels/reference_offsets.h"
#include "kernels/reference_vectors.h"

namespace tilewright::kernels {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

class PagedReference {
 public:
  PagedReference(const AttentionSizes& sizes, const PagedCache& cache,
                 const std::vector<HostTensor>& inputs)
      : s_(sizes),
        queries_(inputs[0].shape()[0]),
        page_(inputs[4].shape()[1]),
        dim_of_values_(inputs[cache.latent ? 4 : 5].shape().back()),
        Q_(numbers_of(inputs[0])),
        K_(scaled(inputs[4], cache.quantised ? &inputs[6] : nullptr)),
        V_(cache.latent ? K_ : scaled(inputs[5], cache.quantised ? &inputs[7] : nullptr)),
        cu_seqlens_q_(inputs[1]),
        lengths_(inputs[2]),
        block_table_(inputs[3]),
        sinks_(inputs.size() > after(cache) ? &inputs[after(cache)] : nullptr),
        outputs_(static_cast<std::size_t>(queries_ * s_.heads * s_.dim_v), std::nan("")),
        sums_(static_cast<std::size_t>(queries_ * s_.heads), std::nan("")) {}

  std::vector<std::vector<double>> all() {
    for (std::int64_t b = 0; b < lengths_.elements(); ++b) {
      const std::int64_t first = integer(cu_seqlens_q_, b);
      const std::int64_t end =
          first + rows_between("cu_seqlens_q", first, integer(cu_seqlens_q_, b + 1), queries_);
      for (std::int64_t query = first; query < end; ++query) {
        for (std::int64_t h = 0; h < s_.heads; ++h) {
          attend(b, query, integer(lengths_, b) - (end - query), h);
        }
      }
    }
    return {std::move(outputs_), std::move(sums_)};
  }

 private:
  // What stands behind the cache.
  static std::size_t after(const PagedCache& cache) {
    return cache.latent ? 5 : cache.quantised ? 8 : 6;
  }
  static std::int64_t integer(const HostTensor& tensor, std::int64_t at) {
    return static_cast<std::int64_t>(tensor.flat(at));
  }

  // Each row of a head of keys times its scale.
  std::vector<double> scaled(const HostTensor& cache, const HostTensor* scale) const {
    std::vector<double> numbers = numbers_of(cache);
    const std::int64_t dim = cache.shape().back();
    for (std::size_t i = 0; scale && i < numbers.size(); ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) / dim;
      numbers[i] *= scale->flat(row % s_.kv_heads % scale->elements());
    }
    return numbers;
  }

  // A head of one query, which sees the keys up to `diagonal` of a causal mask.
  void attend(std::int64_t b, std::int64_t query, std::int64_t diagonal, std::int64_t h) {
    const std::int64_t end = integer(lengths_, b);
    const std::int64_t last = s_.causal ? std::min(diagonal + 1, end) : end;
    const std::int64_t first =
        s_.window > 0 ? std::max<std::int64_t>(diagonal - s_.window + 1, 0) : 0;
    std::vector<double> scores;
    std::vector<std::int64_t> slots;  // of keys that are there, in all pages
    for (std::int64_t j = first; j < last; ++j) {
      const std::int64_t slot = slot_of(b, j);
      if (slot < 0) continue;
      slots.push_back(slot);
      scores.push_back(score(query, h, slot));
    }
    const double sink = sinks_ ? sinks_->flat(h) : kNothing;
    double maximum = sink, sum = 0;
    for (const double score : scores) maximum = std::max(maximum, score);
    if (sinks_) sum = std::exp(sink - maximum);
    for (double& score : scores) sum += score = std::exp(score - maximum);
    const std::int64_t row = query * s_.heads + h;
    double* const outputs = outputs_.data() + row * s_.dim_v;
    std::fill_n(outputs, s_.dim_v, 0.0);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const double* const value = V_.data() + row_of(slots[i], h) * dim_of_values_;
      add_times(scores[i] / sum, value, outputs, s_.dim_v);
    }
    sums_[static_cast<std::size_t>(row)] = sum > 0 ? maximum + std::log(sum) : kNothing;
  }

  // -1 where the table has no page.
  std::int64_t slot_of(std::int64_t b, std::int64_t key) const {
    const std::int64_t page = integer(block_table_, b * block_table_.shape()[1] + key / page_);
    return page < 0 ? -1 : page * page_ + key % page_;
  }
  std::int64_t row_of(std::int64_t slot, std::int64_t h) const {
    return slot * s_.kv_heads + h / (s_.heads / s_.kv_heads);
  }
  double score(std::int64_t query, std::int64_t h, std::int64_t slot) const {
    double product = product_of_rows(Q_.data() + (query * s_.heads + h) * s_.dim,
                                     K_.data() + row_of(slot, h) * s_.dim, s_.dim);
    product *= s_.scale;
    return s_.softcap > 0 ? s_.softcap * std::tanh(product / s_.softcap) : product;
  }

  const AttentionSizes& s_;
  const std::int64_t queries_, page_, dim_of_values_;
  const std::vector<double> Q_, K_, V_;
  const HostTensor &cu_seqlens_q_, &lengths_, &block_table_;
  const HostTensor* sinks_;
  std::vector<double> outputs_, sums_;
};

}  // namespace

std::vector<std::vector<double>> attention_paged_reference(const AttentionSizes& sizes,
                                                           const PagedCache& cache,
                                                           const std::vector<HostTensor>& inputs) {
  return PagedReference(sizes, cache, inputs).all();
}

namespace {

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct PlannedTiles {
  std::int64_t tiles, blocks;  // of a sequence, and of the keys that each of its tiles sees
  std::int64_t parts(std::int64_t share) const {
    return std::max<std::int64_t>(divided_up(blocks, share), 1);
  }
};

// When a GPU is done at the latest by a share of so many blocks, counted in blocks. A part takes as
// long as `joining` of them more.
std::int64_t end_by_share(const std::vector<PlannedTiles>& sequences, std::int64_t share,
                          std::int64_t places, std::int64_t joining) {
  std::int64_t items = 0, parts = 0, longest = 1, all = 0;
  for (const PlannedTiles& each : sequences) {
    const std::int64_t own = each.tiles * each.parts(share);
    items += own;
    if (each.parts(share) > 1) parts += own;
    all += each.tiles * each.blocks;
    if (own > 0) longest = std::max(longest, divided_up(each.blocks, each.parts(share)));
  }
  return std::min(divided_up(items, places) * longest, divided_up(all, places) + longest) +
         divided_up(parts, places) * joining;
}

}  // namespace

// Tiles have 64 rows: the heads of a group, as many as a power of two, beside each of some queries.
// A window's first key lies in any place of a block of 64. Half an item a place is tried, one, one
// and a half, up to four.
std::vector<double> attention_paged_plan_reference(const PlanSizes& s,
                                                   const HostTensor& cu_seqlens_q,
                                                   const HostTensor& lengths) {
  const std::int64_t group = s.heads / s.kv_heads;
  std::int64_t rows = 1;
  while (rows < group && rows < 64) rows *= 2;
  std::vector<PlannedTiles> sequences;
  std::int64_t all = 0;
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    const auto queries = static_cast<std::int64_t>(cu_seqlens_q.flat(b + 1) - cu_seqlens_q.flat(b));
    auto keys = static_cast<std::int64_t>(lengths.flat(b));
    if (s.window > 0) keys = std::min(keys, queries + s.window + 64);
    sequences.push_back({divided_up(queries, 64 / rows), divided_up(keys, 64)});
    all += sequences.back().tiles * sequences.back().blocks;
  }
  const std::int64_t places =
      std::max<std::int64_t>(s.places / (s.kv_heads * divided_up(group, rows)), 1);
  std::int64_t share = s.fixed_split_size / 64, end = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t halves = 1; halves <= 8 && s.fixed_split_size == 0; ++halves) {
    const std::int64_t tried = std::max<std::int64_t>(divided_up(2 * all, halves * places), 1);
    const std::int64_t then = end_by_share(sequences, tried, places, s.latent ? 4 : 1);
    if (then >= end) continue;  // the first of equal ones divides least
    share = tried;
    end = then;
  }
  std::vector<double> plan{0};
  bool divides = false;
  for (const PlannedTiles& each : sequences) {
    plan.push_back(plan.back() + static_cast<double>(each.tiles * each.parts(share)));
    divides |= each.tiles > 0 && each.parts(share) > 1;
  }
  if (!divides) plan[0] = -1;
  return plan;
}

}  // namespace tilewright::kernels
