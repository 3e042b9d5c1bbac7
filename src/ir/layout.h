#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/error.h"

// How a tile lies in registers and in shared memory: shape:stride modes, composed with an XOR
// swizzle for shared memory. These are plain values, compared, hashed and written as one token.
namespace tilewright::ir {

enum class ModeKind : std::uint8_t {
  distribute,  // digit d adds d * stride to the coordinate on `axis`
  replicate,   // every digit holds the same elements
  partial,     // every digit holds its own partial sum over `axis`
};

struct Mode {
  std::int64_t size = 1;
  int axis = 0;
  std::int64_t stride = 0;
  ModeKind kind = ModeKind::distribute;

  bool operator==(const Mode&) const = default;
};

// One factor of a closed-form index: (i / divisor) % modulus * stride.
struct IndexTerm {
  std::int64_t divisor = 1;
  std::int64_t modulus = 1;
  std::int64_t stride = 1;

  bool operator==(const IndexTerm&) const = default;
};

std::int64_t evaluate(const std::vector<IndexTerm>& terms, std::int64_t index);

// Whether a reduction over lanes and warps leaves a partial sum in each or the sum in all.
enum class Reduction : std::uint8_t { partial, complete };

// How a tile of `shape` is spread over the registers of the lanes of the warps of a group. Modes
// are listed fastest digit first. Registers count elements: two 16-bit elements (four 8-bit ones)
// of consecutive indices share one 32-bit register. `warps` is empty when one warp owns the tile.
struct RegisterLayout {
  std::vector<std::int64_t> shape;
  std::vector<Mode> registers;
  std::vector<Mode> lanes;
  std::vector<Mode> warps;

  // Elements a lane holds.
  std::int64_t register_count() const;
  std::int64_t warp_count() const;
  std::vector<std::int64_t> coordinates(std::int64_t reg, std::int64_t lane,
                                        std::int64_t warp) const;
  // Whether lanes or warps hold partial sums of the axis (of any axis).
  bool is_partial(int axis) const;
  bool is_partial() const;
  // What is wrong with it, or nothing: it must map registers, lanes and warps one to one onto the
  // shape, apart from replicating and partial digits, and have 32 lanes.
  std::optional<std::string> problem() const;

  // The layout of the sum (maximum, ...) over `axis`, which keeps size 1.
  RegisterLayout reduce(int axis, Reduction reduction) const;
  // Lane distances of the butterfly shuffles (lane ^ distance) that sum over what lanes hold of the
  // axis, distributed or partial.
  std::vector<int> shuffle_distances(int axis) const;
  // How many elements side by side on the last axis a lane has in consecutive registers, from each
  // multiple of that number on.
  std::int64_t adjacent() const;
  // The same registers seen as the transposed tile (rank 2).
  RegisterLayout transposed() const;
  // ... and as a tile of another shape with the elements in the same row-major order; nothing when
  // a digit would fall between the new axes.
  std::optional<RegisterLayout> reshaped(const std::vector<std::int64_t>& to) const;

  // Modes of size 1 dropped and adjacent ones that continue each other merged; two layouts are
  // equal when these are.
  RegisterLayout canonical() const;
  bool operator==(const RegisterLayout& other) const;
  std::size_t hash() const;
  // One token without spaces: size@axis:stride distributes, size* replicates, size+axis is a
  // partial sum: [64x1|r:2@0:8|l:4+1,8@0:1|w:4@0:16].
  std::string to_string() const;
  static RegisterLayout parse(std::string_view text, SourceLocation where = {});
};

// For each register of a result, the register of an operand (whose axes are of equal size or 1)
// that the same lane needs: evaluate(terms, i). When the lane lacks it, `mismatch` says what
// disagrees, and the operand has to be converted to another layout first.
struct RegisterMap {
  std::vector<IndexTerm> terms;
  std::string mismatch;

  bool ok() const { return mismatch.empty(); }
};
RegisterMap register_map(const RegisterLayout& result, const RegisterLayout& operand);

// The f32 accumulator of wgmma m64nN; `m` of 64 * i holds the registers of i of them, in order.
RegisterLayout wgmma_accumulator(std::int64_t m, std::int64_t n, SourceLocation where = {});
// Of 128 rows, one in each lane of tensor memory, as tcgen05.ld.32x32b gives them to the four warps
// that read 32 lanes each.
RegisterLayout tensor_memory_rows(std::int64_t columns);
// A of wgmma in registers. With 2-byte elements it equals the accumulator's layout of m x k.
RegisterLayout wgmma_a_fragment(std::int64_t m, std::int64_t k, int element_bytes,
                                SourceLocation where = {});
// For plain coalesced accesses of row-major memory: up to `vector` adjacent elements a lane.
RegisterLayout blocked(const std::vector<std::int64_t>& shape, int threads, int vector,
                       SourceLocation where = {});
// How the lanes of a warp and the warps of a group share the rows and columns of tiles. What is
// left of 32 lanes, or of `warps`, holds the same.
struct RowSplit {
  std::int64_t column_lanes = 1, row_lanes = 1, column_warps = 1, row_warps = 1, warps = 1;
};
// The split that spreads rows over warps before columns, so that sums along a row seldom cross
// them, or columns before rows; and columns over lanes before rows.
RowSplit split_rows(std::int64_t rows, std::int64_t columns, std::int64_t warps, int vector,
                    bool columns_first = false);
// {rows, columns}, up to `vector` adjacent elements a lane; either may be 1. Layouts of one split
// agree: a row's sum lies as a column beside every tile of as many rows.
RegisterLayout row_layout(std::int64_t rows, std::int64_t columns, const RowSplit& split,
                          int vector);
// The same of four warps that have a quarter of the rows each, one below the other, as they have of
// an accumulator's 64. Lanes lie along the 64 columns that a panel of 16-bit elements has, then
// along rows: what they store to such panels meets no other lane's bank. Nothing where lanes do not
// come out even.
std::optional<RegisterLayout> warp_rows(std::int64_t rows, std::int64_t columns, int vector);

// Swizzle<bits, base, shift>: XORs the `bits` bits above bit base + shift of a byte address onto
// the ones above bit `base`.
struct Swizzle {
  int bits = 0;
  int base = 4;
  int shift = 3;

  std::int64_t operator()(std::int64_t address) const;
  bool operator==(const Swizzle&) const = default;
};

// A SharedLayout in the form that TMA and wgmma know: panels of `rows` contiguous rows of
// `span_bytes`, each holding `span` elements of the contiguous axis.
struct Panels {
  int contiguous_axis = 1;
  std::int64_t rows = 0;
  std::int64_t span = 0;
  std::int64_t span_bytes = 0;
  std::int64_t count = 0;
  std::int64_t distance = 0;  // bytes from one panel to the next
  int swizzle_bytes = 0;      // 0, 32, 64 or 128
};

// Where the elements of a tile lie in shared memory, in bytes from its base: digits of the
// coordinates times strides, then the swizzle. The base has to be a multiple of alignment().
struct SharedLayout {
  std::vector<std::int64_t> shape;
  int element_bytes = 0;
  std::vector<Mode> modes;  // of one axis: fastest digit first; strides in bytes
  Swizzle swizzle;

  // Panels as wide as the swizzle: 32, 64 or 128 bytes, or 16 for 0 (core matrices of wgmma).
  static SharedLayout panels(std::int64_t rows, std::int64_t columns, int element_bytes,
                             int swizzle_bytes, SourceLocation where = {});
  static SharedLayout row_major(std::vector<std::int64_t> shape, int element_bytes);

  std::int64_t offset(std::int64_t row, std::int64_t column) const;
  std::int64_t offset(const std::vector<std::int64_t>& coordinates) const;
  // Before the swizzle: what descriptors and TMA take, since hardware swizzles addresses itself.
  std::int64_t linear_offset(const std::vector<std::int64_t>& coordinates) const;
  std::int64_t size_bytes() const;
  std::int64_t alignment() const;
  std::optional<Panels> as_panels() const;
  SharedLayout transposed() const;
  // What is wrong with it, or nothing: digits must cover the shape, no two elements may overlap.
  std::optional<std::string> problem() const;

  SharedLayout canonical() const;
  bool operator==(const SharedLayout& other) const;
  std::size_t hash() const;
  // One token: [128x128*2|128@0:128,64@1:2,2@1:16384|x3.4.3] (shape * element bytes | digits |
  // swizzle, if any).
  std::string to_string() const;
  static SharedLayout parse(std::string_view text, SourceLocation where = {});
};

// The widest swizzle whose panels divide rows of so many bytes; 0 if only 16 bytes do.
int widest_swizzle(std::int64_t row_bytes);

}  // namespace tilewright::ir
