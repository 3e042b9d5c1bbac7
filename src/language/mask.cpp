#include <limits>

#include "language/tracer.h"
#include "support/diagnostic.h"

namespace tilewright {

namespace {

// The coordinates of `rows` as a column, each as often as `height` rows of scores have it.
Tile row_coordinates(const Block& rows, std::int64_t height, SourceLocation where) {
  if (height % rows.size() != 0) {
    Diagnostic(where, "Mask: scores of " + std::to_string(height) + " rows for " +
                          std::to_string(rows.size()) + " queries")
        .token("apply")
        .fix("give as many rows of scores to each query")
        .raise();
  }
  if (height == rows.size()) return rows.as_column(where);
  return iota({height, 1}, 0, where) /
             TileOperand(static_cast<double>(height / rows.size()), where) +
         Tile({height, 1}, IndexOperand(rows.start(), where), where);
}

}  // namespace

Mask everything() { return {}; }

Mask causal(const Dim& queries, const Dim& keys, int window) {
  Mask mask;
  mask.causal_ = true;
  mask.window_ = window;
  mask.queries_ = queries;
  mask.keys_ = keys;
  return mask;
}

// Row i sees columns from i + offset - window + 1 to i + offset, offset = keys - queries.
std::pair<Index, Index> Mask::visible(const Block& rows, const Dim& keys, int size,
                                      SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  const Index count(ceil_div(keys, size), where);
  if (!causal_) return {Index(0, where), count};
  const Index offset(keys_ - queries_, where);
  const Index last_row = min(rows.start() + rows.size(), rows.limit()) - 1;
  const Index end = max(0, min(count, (last_row + offset) / size + 1));
  if (window_ == 0) return {Index(0, where), end};
  const Index begin = max(0, rows.start() + offset - (window_ - 1)) / size;
  return {min(begin, end), end};
}

std::pair<Index, Index> Mask::full(const Block& rows, const Dim& keys, int size,
                                   SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  const auto [first, last] = visible(rows, keys, size, where);
  const Index whole(keys / size, where);
  if (!causal_) return {first, whole};
  const Index offset(keys_ - queries_, where);
  const Index end = max(first, min(whole, (rows.start() + offset + 1) / size));
  if (window_ == 0) return {first, end};
  const Index last_row = rows.start() + (rows.size() - 1);
  const Index begin = ceil_div(max(0, last_row + offset - (window_ - 1)), size);
  return {min(max(first, begin), end), end};
}

BlockRange Mask::blocks(const Block& rows, const Dim& keys, int size, SourceLocation where) const {
  const auto [first, last] = visible(rows, keys, size, where);
  return tilewright::blocks(keys, size, IndexOperand(first, where), IndexOperand(last, where),
                            where);
}

Tile Mask::apply(const Tile& scores, const Block& rows, const Block& cols,
                 SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  const Tile column = cols.as_row(where);
  const Tile limit({1, cols}, IndexOperand(cols.limit(), where), where);
  Tile seen = column < limit;
  if (causal_) {
    const Index offset(keys_ - queries_, where);
    const std::int64_t height = scores.shape()[0];
    const Tile diagonal = row_coordinates(rows, height, where) +
                          Tile({height, 1}, IndexOperand(offset, where), where);
    seen = seen && column <= diagonal;
    if (window_ > 0) seen = seen && column > diagonal - window_;
  }
  return tilewright::where(seen, scores, -std::numeric_limits<double>::infinity());
}

}  // namespace tilewright
