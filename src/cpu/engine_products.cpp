#include <algorithm>
#include <functional>

#include "cpu/engine.h"

// Products, of which those of several iterations may become one.
namespace tilewright::cpu {

void Engine::run(const Multiply& operation) {
  const State &a = tiles_[operation.a], &b = tiles_[operation.b];
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
  }
  c.extents[rows] = m;
  c.extents[1 - rows] = n;
  if (m == 0 || n == 0) return;
  multiply({m,
            n,
            std::min(left, right),
            matrix(a, operation.a_transposed),
            matrix(b, operation.b_transposed),
            operation.element,
            {c.data, c.strides[rows]},
            operation.accumulates,
            operation.rounding,
            scratch_,
            needed(operation, m, n),
            operation.skips_zeros && lies_in_arena(a.data)},
           operation.joins);
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

bool Engine::lies_in_arena(const void* data) const {
  const std::less<const void*> before;
  return !before(data, arena_) && before(data, scratch_);
}

}  // namespace tilewright::cpu
