#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "cpu/kernels.h"

// What the tests of the whole-tile operations share: the instruction sets that this machine has,
// and tiles as the arena holds them.
namespace tilewright::cpu {

inline std::vector<const Kernels*> sets_here() {
  std::vector<const Kernels*> sets;
  for (const char* name : {"v2", "v3", "v4", "bf16", "amx", "neon", "neon_bf16", "baseline"}) {
    if (const Kernels* const kernels = find_kernels(name)) sets.push_back(kernels);
  }
  return sets;
}

// Those that have a fused multiply-add: all that is computed with it has equal bits.
inline bool has_fma(const Kernels& kernels) {
  return std::strcmp(kernels.name, "v2") != 0 && std::strcmp(kernels.name, "baseline") != 0;
}

constexpr std::int64_t room(std::int64_t columns) { return (columns + 15) / 16 * 16; }

// Rows of the arena, and one more behind them that nobody may touch. Everything is 0xff at first,
// which is a NaN, and what a row has room for past its columns stays so.
template <typename T>
class TestTile {
 public:
  TestTile(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), stride_(room(columns)) {
    elements_.resize(static_cast<std::size_t>((rows + 1) * stride_ + 64));
    std::memset(elements_.data(), 0xff, elements_.size() * sizeof(T));
    const auto address = reinterpret_cast<std::uintptr_t>(elements_.data());
    first_ = static_cast<std::size_t>((64 - address % 64) % 64 / sizeof(T));
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  T* row(std::int64_t i) { return elements_.data() + first_ + i * stride_; }
  const T* row(std::int64_t i) const { return elements_.data() + first_ + i * stride_; }
  T& at(std::int64_t i, std::int64_t j) { return row(i)[j]; }
  const T& at(std::int64_t i, std::int64_t j) const { return row(i)[j]; }
  std::int64_t bytes() const { return stride_ * static_cast<std::int64_t>(sizeof(T)); }

  template <typename Next>
  TestTile& fill(Next next) {
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < columns_; ++j) at(i, j) = next();
    }
    return *this;
  }
  Operand operand() const { return {row(0), bytes(), false}; }
  Operand repeated_row() const { return {row(0), 0, false}; }
  Operand column() const { return {row(0), bytes(), true}; }  // the first column stands for all
  Operand scalar() const { return {row(0), 0, true}; }
  Result result() { return {row(0), bytes()}; }
  Matrix matrix() const {
    return {const_cast<T*>(row(0)), bytes(), static_cast<std::int64_t>(sizeof(T))};
  }
  // Whether the row behind the last one is as it was.
  bool is_closed() const {
    const auto* const p = reinterpret_cast<const unsigned char*>(row(rows_));
    for (std::int64_t i = 0; i < bytes(); ++i) {
      if (p[i] != 0xff) return false;
    }
    return true;
  }

 private:
  std::int64_t rows_, columns_, stride_;
  std::vector<T> elements_;
  std::size_t first_;
};

// The operands that elementwise functions take, and what is at a place of each.
enum class Broadcast { full, row, column, scalar };
constexpr Broadcast kBroadcasts[] = {Broadcast::full, Broadcast::row, Broadcast::column,
                                     Broadcast::scalar};

template <typename T>
Operand broadcast(const TestTile<T>& tile, Broadcast kind) {
  switch (kind) {
    case Broadcast::full:
      return tile.operand();
    case Broadcast::row:
      return tile.repeated_row();
    case Broadcast::column:
      return tile.column();
    case Broadcast::scalar:
      return tile.scalar();
  }
  return {};
}
template <typename T>
T element_of(const Operand& operand, std::int64_t row, std::int64_t column) {
  const auto* const p = static_cast<const char*>(operand.data) + row * operand.row_stride;
  return reinterpret_cast<const T*>(p)[operand.repeats ? 0 : column];
}

}  // namespace tilewright::cpu
