#include "target/core.h"

#include <algorithm>

namespace tilewright::target {
namespace {

constexpr std::int64_t kFractalRows = 16, kFractalBytes = 32;
constexpr std::int64_t kFractal = kFractalRows * kFractalBytes;

std::int64_t pieces(std::int64_t extent, std::int64_t piece) {
  return (extent + piece - 1) / piece;
}
// Elements in the 32 bytes of a fractal.
std::int64_t wide(const Matrix& m) { return kFractalBytes / size_of(m.dtype); }

std::int64_t rows_offset(const Matrix& m, std::int64_t row, std::int64_t column) {
  return (row * m.columns + column) * size_of(m.dtype);
}
std::int64_t rows_bytes(const Matrix& m) { return m.rows * m.columns * size_of(m.dtype); }

std::int64_t inside(const Matrix& m, std::int64_t row, std::int64_t column) {
  return row % kFractalRows * kFractalBytes + column % wide(m) * size_of(m.dtype);
}
std::int64_t fractal_rows_offset(const Matrix& m, std::int64_t row, std::int64_t column) {
  const std::int64_t piece = row / kFractalRows * pieces(m.columns, wide(m)) + column / wide(m);
  return piece * kFractal + inside(m, row, column);
}
std::int64_t fractal_columns_offset(const Matrix& m, std::int64_t row, std::int64_t column) {
  const std::int64_t piece = column / wide(m) * pieces(m.rows, kFractalRows) + row / kFractalRows;
  return piece * kFractal + inside(m, row, column);
}
std::int64_t fractal_bytes(const Matrix& m) {
  return pieces(m.rows, kFractalRows) * pieces(m.columns, wide(m)) * kFractal;
}

std::int64_t fractal_turned_offset(const Matrix& m, std::int64_t row, std::int64_t column) {
  const std::int64_t piece =
      row / wide(m) * pieces(m.columns, kFractalRows) + column / kFractalRows;
  return piece * kFractal + column % kFractalRows * kFractalBytes +
         row % wide(m) * size_of(m.dtype);
}
std::int64_t fractal_turned_bytes(const Matrix& m) {
  return pieces(m.rows, wide(m)) * pieces(m.columns, kFractalRows) * kFractal;
}

std::int64_t square_offset(const Matrix& m, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t kSide = kFractalRows;
  const std::int64_t piece = column / kSide * pieces(m.rows, kSide) + row / kSide;
  return ((piece * kSide + row % kSide) * kSide + column % kSide) * size_of(m.dtype);
}
std::int64_t square_bytes(const Matrix& m) {
  constexpr std::int64_t kSide = kFractalRows;
  return pieces(m.rows, kSide) * pieces(m.columns, kSide) * kSide * kSide * size_of(m.dtype);
}

std::int64_t partitions_offset(const Matrix& m, std::int64_t, std::int64_t column) {
  return column * size_of(m.dtype);
}
std::int64_t partitions_bytes(const Matrix& m) { return m.columns * size_of(m.dtype); }

template <typename List>
const typename List::value_type* named(const List& list, std::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.name == name; });
  return found == list.end() ? nullptr : &*found;
}

void append(std::string& list, const std::string& text) {
  list += (list.empty() ? "" : ", ") + text;
}

}  // namespace

const CoreLayout& rows_layout() {
  static const CoreLayout layout{"rows", "row after row", rows_offset, rows_bytes};
  return layout;
}
const CoreLayout& fractal_rows_layout() {
  static const CoreLayout layout{"fractal rows", "rows of 16 rows x 32 bytes, each row-major",
                                 fractal_rows_offset, fractal_bytes};
  return layout;
}
const CoreLayout& fractal_columns_layout() {
  static const CoreLayout layout{"fractal columns", "columns of 16 rows x 32 bytes, each row-major",
                                 fractal_columns_offset, fractal_bytes};
  return layout;
}
const CoreLayout& fractal_turned_layout() {
  static const CoreLayout layout{"turned fractals",
                                 "rows of 32 bytes x 16 columns, each column-major",
                                 fractal_turned_offset, fractal_turned_bytes};
  return layout;
}
const CoreLayout& square_columns_layout() {
  static const CoreLayout layout{"square columns", "columns of 16 x 16 elements, each row-major",
                                 square_offset, square_bytes};
  return layout;
}
const CoreLayout& partitions_layout() {
  static const CoreLayout layout{"partitions", "a row in each partition", partitions_offset,
                                 partitions_bytes};
  return layout;
}

const CoreSequencer* Core::sequencer(std::string_view name) const {
  return named(sequencers, name);
}
const CoreUnit* Core::unit(std::string_view name) const { return named(units, name); }
const CoreSpace* Core::space(std::string_view name) const { return named(spaces, name); }

const CoreEventPair* Core::event(std::string_view from, std::string_view to) const {
  const auto found = std::find_if(events.begin(), events.end(), [&](const CoreEventPair& each) {
    return each.from == from && each.to == to;
  });
  return found == events.end() ? nullptr : &*found;
}

std::string Core::space_name(std::string_view space) const {
  return space.empty() ? global_name : std::string(space);
}

std::string Core::moves_from(std::string_view space) const {
  std::string list;
  for (const CoreMove& each : moves) {
    if (each.from == space) append(list, space_name(each.to) + " by " + each.unit);
  }
  return list;
}

std::string Core::events_text() const {
  std::string list;
  for (const CoreEventPair& each : events) append(list, each.from + " -> " + each.to);
  return list;
}

std::string Core::spaces_text() const {
  std::string list;
  for (const CoreSpace& each : spaces) append(list, each.name);
  return list;
}

std::int64_t matrix_bytes(const CoreSpace& space, const Matrix& matrix) {
  const std::int64_t bytes = space.layout->bytes(matrix);
  return (bytes + space.granule - 1) / space.granule * space.granule;
}

}  // namespace tilewright::target
