#include <limits>

#include "language/tracer.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

// Row i, counted on its axis, sees columns up to i + the offset, counted on theirs.
Index offset_of(const Sequence& queries, const Sequence& keys, SourceLocation where) {
  if (!queries.is_packed() && !keys.is_packed()) return Index(keys.axis() - queries.axis(), where);
  return keys.end(where) - queries.end(where);
}

// Whether its first block may begin before its first row.
bool is_cut_before(const Sequence& rows) {
  return rows.is_packed() && rows.blocks_from() == BlocksFrom::axis;
}

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

Mask causal(const Sequence& queries, const Sequence& keys, int window) {
  Mask mask;
  mask.causal_ = true;
  mask.window_ = window;
  mask.queries_ = queries;
  mask.keys_ = keys;
  return mask;
}

// Row i sees columns from i + offset - window + 1 to i + offset. Blocks count from the first one.
std::pair<Index, Index> Mask::visible(const Block& rows, const Sequence& keys, int size,
                                      SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  Index count = keys.blocks(size, where);
  // A grid over sequences has blocks past a sequence's end, which need no keys.
  if (keys.is_packed()) count = select(rows.start() < rows.limit(), count, 0);
  if (!causal_) return {Index(0, where), count};
  const Index offset = first_offset(keys, size, where);
  const Index last_row = min(rows.start() + rows.size(), rows.limit()) - 1;
  Index end = max(0, min(count, (last_row + offset) / size + 1));
  if (is_cut_before(keys)) {
    // What is seen may end before the first key, in its block.
    const Index first_key = keys.begin(where) - keys.first_block(size, where);
    end = select(last_row + offset < first_key, 0, end);
  }
  if (window_ == 0) return {Index(0, where), end};
  const Index begin = max(0, rows.start() + offset - (window_ - 1)) / size;
  return {min(begin, end), end};
}

std::pair<Index, Index> Mask::full(const Block& rows, const Sequence& keys, int size,
                                   SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  auto [first, last] = visible(rows, keys, size, where);
  Index whole = keys.is_packed() ? (keys.end(where) - keys.first_block(size, where)) / size
                                 : Index(keys.axis() / size, where);
  if (is_cut_before(keys)) {
    const Index cut = ceil_div(keys.begin(where) - keys.first_block(size, where), size);
    first = min(max(first, cut), last);
    whole = max(whole, first);
  }
  if (!causal_) return {first, whole};
  const Index offset = first_offset(keys, size, where);
  const Index end = max(first, min(whole, (rows.start() + offset + 1) / size));
  if (window_ == 0) return {first, end};
  const Index last_row = rows.start() + (rows.size() - 1);
  const Index begin = ceil_div(max(0, last_row + offset - (window_ - 1)), size);
  return {min(max(first, begin), end), end};
}

// The offset with columns counted from the first block's.
Index Mask::first_offset(const Sequence& keys, int size, SourceLocation where) const {
  const Index offset = offset_of(queries_, keys_, where);
  return keys.is_packed() ? offset - keys.first_block(size, where) : offset;
}

BlockRange Mask::blocks(const Block& rows, const Sequence& keys, int size,
                        SourceLocation where) const {
  const auto [first, last] = visible(rows, keys, size, where);
  return tilewright::blocks(keys, size, IndexOperand(first, where), IndexOperand(last, where),
                            where);
}

// Column j is seen by rows from j - offset to j - offset + window - 1. Blocks count from the first
// one.
std::pair<Index, Index> Mask::visible_rows(const Block& cols, const Sequence& queries, int size,
                                           SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  const Index exist = select(cols.start() < cols.limit(), queries.blocks(size, where), 0);
  Index first(0, where), last = exist;
  if (causal_) {
    const Index offset = offset_of(queries_, keys_, where) + queries.first_block(size, where);
    first = max(0, min((cols.start() - offset) / size, exist));
    if (window_ > 0) {
      const Index last_column = min(cols.start() + cols.size(), cols.limit()) - 1;
      const Index last_row = last_column - offset + (window_ - 1);
      last = max(first, min(exist, last_row / size + 1));
      if (is_cut_before(queries)) {
        const Index first_query = queries.begin(where) - queries.first_block(size, where);
        last = select(last_row < first_query, first, last);
      }
    }
  }
  return {first, last};
}

std::pair<Index, Index> Mask::full_rows(const Block& cols, const Sequence& queries, int size,
                                        SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  auto [first, last] = visible_rows(cols, queries, size, where);
  last = select(cols.start() + cols.size() <= cols.limit(), last, first);
  if (!causal_) return {first, last};
  // Of a block the first row sees the fewest columns at their end, and the last row at their start.
  const Index column =
      cols.start() - (offset_of(queries_, keys_, where) + queries.first_block(size, where));
  const Index begin = max(first, ceil_div(max(0, column + (cols.size() - 1)), size));
  if (window_ > 0) last = min(last, max(0, column + window_) / size);
  return {min(begin, last), last};
}

BlockRange Mask::row_blocks(const Block& cols, const Sequence& queries, int size,
                            SourceLocation where) const {
  const auto [first, last] = visible_rows(cols, queries, size, where);
  return tilewright::blocks(queries, size, IndexOperand(first, where), IndexOperand(last, where),
                            where);
}

Tile Mask::apply(const Tile& scores, const Block& rows, const Block& cols,
                 SourceLocation where) const {
  return apply(scores, rows, cols, Hides::anything, where);
}

Tile Mask::apply(const Tile& scores, const Block& rows, const Block& cols, Hides hides,
                 SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  const Tile column = cols.as_row(where);
  const auto below_limit = [&] {
    return column < Tile({1, cols}, IndexOperand(cols.limit(), where), where);
  };
  const auto hide = [&](const Tile& seen) {
    return tilewright::where(seen, scores, -std::numeric_limits<double>::infinity());
  };
  if (!causal_) return hide(below_limit());
  const Index offset = offset_of(queries_, keys_, where);
  const std::int64_t height = scores.shape()[0];
  const auto of_rows = [&](const Index& value) {
    return Tile({height, 1}, IndexOperand(value, where), where);
  };
  const Tile diagonal = row_coordinates(rows, height, where) + of_rows(offset);
  // One comparison an element.
  if (hides == Hides::last_keys) return hide(column <= min(diagonal, of_rows(cols.limit() - 1)));
  if (hides == Hides::first_keys) {
    return window_ > 0 ? hide(column > diagonal - window_) : scores;
  }
  Tile seen = below_limit() && column <= diagonal;
  if (window_ > 0) seen = seen && column > diagonal - window_;
  return hide(seen);
}

Tile Mask::apply_transposed(const Tile& scores, const Block& rows, const Block& cols,
                            SourceLocation where) const {
  const Tracer::At at(Tracer::get("Mask", where), where);
  const Tile column = cols.as_column(where);
  Tile seen = column < Tile({cols, 1}, IndexOperand(cols.limit(), where), where);
  if (causal_) {
    const Index offset = offset_of(queries_, keys_, where);
    const Tile diagonal = rows.as_row(where) + Tile({1, rows}, IndexOperand(offset, where), where);
    seen = seen && column <= diagonal;
    if (window_ > 0) seen = seen && column > diagonal - window_;
  }
  return tilewright::where(seen, scores, -std::numeric_limits<double>::infinity());
}

}  // namespace tilewright
