#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "cpu/engine.h"
#include "cpu/engine_walk.h"
#include "cpu/layout.h"

// Products, of which those of several iterations may become one.
namespace tilewright::cpu {

namespace {

// Whether all of {rows, columns} elements, which lie in the arena, have no bit set.
bool is_zero(const Matrix& matrix, std::int64_t rows, std::int64_t columns, std::int64_t bytes) {
  const bool by_rows = matrix.column_stride == bytes;
  std::int64_t lines = by_rows ? rows : columns;
  const std::int64_t stride = by_rows ? matrix.row_stride : matrix.column_stride;
  std::int64_t of_line = bytes * (by_rows ? columns : rows);
  if (stride == of_line) of_line *= std::exchange(lines, 1);
  const auto* line = static_cast<const std::byte*>(matrix.data);
  for (std::int64_t i = 0; i < lines; ++i, line += stride) {
    // Each byte is the one before, and the first is 0.
    const bool is_zero =
        of_line == 0 || (*line == std::byte{0} && std::memcmp(line, line + 1, of_line - 1) == 0);
    if (!is_zero) return false;
  }
  return true;
}

}  // namespace

// With the extents of the result, which are set; of no rows or columns there is nothing to do.
Product Engine::product_of(const Multiply& operation) {
  State &a = tiles_[operation.a], &b = tiles_[operation.b];
  State& c = tiles_[operation.result];
  const auto extents = [](const State& tile, bool transposed) {
    return transposed ? std::pair(tile.extents[1], tile.extents[0])
                      : std::pair(tile.extents[0], tile.extents[1]);
  };
  const auto matrix = [](const State& tile, bool transposed) {
    return transposed ? Matrix{tile.data, tile.strides[1], tile.strides[0]}
                      : Matrix{tile.data, tile.strides[0], tile.strides[1]};
  };
  auto [m, left] = extents(a, operation.a_transposed);
  auto [right, n] = extents(b, operation.b_transposed);
  const std::size_t rows = operation.flipped ? 1 : 0;
  if (operation.accumulates) {
    m = std::min(m, c.extents[rows]);
    n = std::min(n, c.extents[1 - rows]);
    if (n % kWholeVectors != 0 && !lies_in_arena(c.data)) bring_into_arena(operation.result);
  }
  c.extents[rows] = m;
  c.extents[1 - rows] = n;
  // Products of fewer rows ask for what is next themselves (kernels/few_rows.h).
  a.is_for_many_rows = b.is_for_many_rows = m > kFewRows;
  const Matrix of_b = matrix(b, operation.b_transposed);
  std::int64_t terms = std::min(left, right);
  if (operation.skips_zeros && is_computed(b) &&
      is_zero(of_b, terms, n, bytes_of(operation.element))) {
    terms = 0;
  }
  return {m,
          n,
          terms,
          matrix(a, operation.a_transposed),
          of_b,
          operation.element,
          {c.data, c.strides[rows]},
          operation.accumulates && c.data != zeros_,
          operation.rounding,
          scratch_,
          needed(operation, m, n),
          operation.skips_zeros && is_computed(a),
          nullptr,
          nullptr,
          &ahead_};
}

// Rows that end within a vector: what lies behind them in the tensor is not the product's.
void Engine::bring_into_arena(TileId id) {
  const State from = tiles_[id];
  view(nullptr, id);
  const State& to = tiles_[id];
  kernels_.copy[width_of(size_of(static_cast<DType>(tile(id).element)))](
      {from.extents[0], from.extents[1]}, {from.data, from.strides[0], from.strides[1]},
      {to.data, to.strides[0], to.strides[1]});
}

void Engine::run(const Multiply& operation) {
  Product product = product_of(operation);
  const bool is_of_no_round = operation.is_for_next_round && is_last_round_;
  is_left_out_ = !records_ && (is_of_no_round || product.k == 0);
  if (is_of_no_round) return;
  if (zeros_ == product.c.data) zeros_ = nullptr;
  const bool is_empty = product.m == 0 || product.n == 0 || product.k == 0;
  if (!is_empty && !lies_in_arena(product.b.data)) {
    product.packs = packs_.of(operation, product, block_);
  }
  if (records_) {
    product_of_strips_ = product;
  } else if (product.m > 0 && product.n > 0) {
    multiply(product, operation.joins);
  }
}

// Strips go over its rows as they become whole.
void Engine::multiply_in_strips(const Strips& strips) {
  struct UnderWay {
    Engine* engine;
    const Strips* strips;
  } under_way{this, &strips};
  const RowsDone done{[](void* context, std::int64_t end) {
                        const auto& of = *static_cast<const UnderWay*>(context);
                        of.engine->perform_strips(*of.strips, end);
                      },
                      &under_way};
  product_of_strips_.done = &done;
  kernels_.product(product_of_strips_);
}

// Where its result {m, n} is needed.
Matrix Engine::needed(const Multiply& operation, std::int64_t m, std::int64_t n) const {
  if (operation.needed == kNone) return {};
  const State& condition = tiles_[operation.needed];
  if (condition.extents[0] < m || condition.extents[1] < n) return {};
  return {condition.data, condition.strides[0], condition.strides[1]};
}

void Engine::multiply(const Product& product, bool joins) {
  if (joins && continues(product)) {
    waiting_.k += product.k;
    return;
  }
  flush();
  // What the next iteration loads into the arena would be written over this one's operands.
  const bool waits = joins && !lies_in_arena(product.a.data) && !lies_in_arena(product.b.data);
  if (waits) {
    waiting_ = product;
  } else {
    kernels_.product(product);
  }
}

// Whether its operands lie behind those of the product that waits, which are of the same tensors.
bool Engine::continues(const Product& next) const {
  const auto behind = [](const Matrix& matrix, std::int64_t step) {
    return static_cast<std::byte*>(matrix.data) + step;
  };
  return waiting_.k > 0 && waiting_.k + next.k <= kJoinedTerms && waiting_.m == next.m &&
         waiting_.n == next.n &&
         next.a.data == behind(waiting_.a, waiting_.k * waiting_.a.column_stride) &&
         next.b.data == behind(waiting_.b, waiting_.k * waiting_.b.row_stride);
}

void Engine::flush() {
  if (waiting_.k > 0) kernels_.product(waiting_);
  waiting_.k = 0;
}

// Copies count as what they are of.
bool Engine::is_computed(const State& tile) const {
  return lies_in_arena(tile.data) && !tile.is_copy;
}

bool Engine::lies_in_arena(const void* data) const {
  const std::less<const void*> before;
  return !before(data, arena_) && before(data, arena_ + program_.arena_bytes);
}

}  // namespace tilewright::cpu
