#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analysis/access_bounds.h"
#include "cpu/kernels.h"
#include "ir/ir.h"
#include "ir/type_rules.h"

// What a kernel of the tile form becomes for the CPU: a list of operations on whole tiles, each of
// which names the function that executes it and the places of its operands. Tiles and scalars are
// variables here: a loop's result is what its carried variable holds behind it, and values reach
// such variables by copies. Shapes of tiles are constants. Sizes, starts and limits are scalars, so
// that one program serves all lengths.
namespace tilewright::cpu {

using TileId = std::uint32_t;
using ScalarId = std::uint32_t;
using TensorId = std::uint32_t;
inline constexpr std::uint32_t kNone = UINT32_MAX;

constexpr std::size_t kMaximumRank = 6;
using Index = std::array<std::int64_t, kMaximumRank>;

// A tile's place. Axes of size 1, and axes along which all elements are equal, have stride 0. Of
// the others the last is contiguous, and the rows before begin at multiples of 16 elements.
struct Tile {
  Element element = Element::f32;
  std::size_t rank = 0;
  Index shape = {}, strides = {};  // strides in bytes
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // in a thread's arena
  // Of the rows only those of a strip have a place: each strip has them anew.
  bool is_of_strip = false;
};

// An integer or boolean as a number, or a float.
union Scalar {
  std::int64_t whole = 0;
  float real;
};

// A function of scalars. Integers that leave their dtype and divisions by zero are errors.
struct Compute {
  ir::Op function;
  DType dtype;  // of the operands; of a cast that of the result
  DType from;   // of a cast
  std::array<ScalarId, 3> operands;
  ScalarId result;
  SourceLocation where;
};

struct LoadIndex {
  TensorId tensor;
  std::vector<ScalarId> indices;
  ScalarId result;
  SourceLocation where;
  analysis::IndexClaim claim;
  ScalarId at_most;  // of the claim
};

// The tensor as it is in another rank.
struct Peer {
  TensorId tensor;
  ScalarId rank;
  TensorId result;
  SourceLocation where;
};

// A block of a tensor.
struct Box {
  TensorId tensor;
  std::vector<ScalarId> starts, limits;
  std::vector<std::int64_t> sizes;  // 0 for an axis that is indexed away
  std::vector<analysis::AxisCheck> checks;
  std::vector<ScalarId> sources;  // of the checks: the integer that decides
  SourceLocation where;
};

// How a function of rows and columns goes over axes: the others are looped over.
struct Walk {
  static constexpr std::size_t kNoAxis = kMaximumRank;
  std::size_t rows = kNoAxis, columns = kNoAxis;
  std::vector<std::size_t> outer;
};

// What exists of the box; zero where it lies outside of the tensor.
struct Load {
  Box box;
  TileId tile;
  Walk walk;  // of the tile
  // The tile is a view of the tensor, where all that exists lies inside: for products, which read
  // with any strides.
  bool in_place;
  // The same for functions of rows: where these are whole vectors too.
  bool in_place_by_rows = false;
  bool is_constant = false;  // the kernel stores nothing there
  // Of one in place: products of a loop behind it go over its rows again and again.
  bool is_read_often = false;
  // A product adds to the tile, and nobody needs its result but the store to the same box: it adds
  // to the tensor itself, where rows are whole vectors.
  TileId summed = kNone;
};

struct Store {
  Box box;
  TileId tile;
  Walk walk;  // of the tile
};

// Waits until the blocks before have ended: additions to memory come in the order of the blocks.
struct AwaitTurn {};

// An operand of an elementwise function.
struct Source {
  TileId tile = kNone;
  ScalarId scalar = kNone;
  bool is_tile() const { return tile != kNone; }
};

// An elementwise function, a choice or a conversion. All operands that are tiles have the result's
// rank; an axis of size 1 stretches.
struct Apply {
  using Run = std::variant<Elementwise, Select, Convert>;
  Run run;
  const char* name;
  std::vector<Source> operands;
  TileId result;
  Walk walk;  // of the result
  // How long it takes for an element, roughly, if it asks for memory meanwhile (Ahead); else 0.
  std::int64_t weight = 0;
  Function function = Function::count;  // of one that does
  // In strips: the operand that the one before computes, whose value it takes in a register.
  static constexpr std::size_t kNone = 3;
  std::size_t takes = kNone;
  bool is_kept = true;       // the result has a place in memory too
  bool is_repeated = false;  // computed once more where it is needed (recompute.h)
  bool is_of_zeros = false;  // its first operand may be zeros that are not written (zeros.h)
  SourceLocation where = {};
  // Where the store behind puts the result, which nobody else reads: it is computed there, if it
  // can be.
  std::optional<Box> stored_to = {};
};

// A scalar to a tile all of whose elements are equal.
struct Splat {
  ScalarId scalar;
  TileId result;
  SourceLocation where = {};
};

// Each element's coordinate along the one axis that it depends on.
struct Count {
  TileId result;
  std::size_t axis;
  SourceLocation where = {};
};

// The result lies along what is left of the source's axes.
struct Fold {
  Reduce reduce;
  Reduction function;
  TileId source, result;
  std::size_t axis;
  bool along_row;
  Walk walk;              // of the source
  bool in_parts = false;  // a sum by sum_along_row_in_parts
  // The sum is of the source's products with this tile (sum_of_products_in_parts).
  TileId factor = kNone;
  bool takes_from_register = false;  // in strips: what the operation before computes
  SourceLocation where = {};
};

struct Any {
  TileId source;
  ScalarId result;
  Walk walk;
  SourceLocation where = {};
};

// Axis i of the result runs along the source's axes[i], from offsets[i]. With all axes in their
// place and no offset it is a plain copy, which the arena may make unnecessary.
struct Move {
  TileId source, result;
  Index axes, offsets;
  Walk walk;  // of the result
  bool is_copy = false;
  bool is_done = false;  // both lie at one place
  // Of a load that is read in place, by products alone: a view, where that is one.
  bool is_factor = false;
  bool may_wait = false;  // zeros need not be written (zeros.h)
  SourceLocation where = {};
};
struct MoveScalar {
  ScalarId source, result;
};

// The same elements in row-major order.
struct Reshape {
  TileId source, result;
  std::vector<ir::ReshapedAxes> axes;
  std::int64_t run;      // so many elements lie side by side in both
  bool is_copy = false;  // all lie alike in both
  bool is_done = false;  // at one place
  SourceLocation where;
};

// Operands that are transposed are read as they lie. `flipped`: the result's rows are its axis 1.
struct Multiply {
  TileId a, b, result;
  bool a_transposed, b_transposed, flipped;
  bool accumulates;
  Element element;
  Rounding rounding;
  TileId needed = kNone;     // where this condition is false, nobody needs the result
  bool skips_zeros = false;  // of a or b, where that is computed
  // What it gives serves the next round of the loop around alone: the last one needs it not.
  bool is_for_next_round = false;
  // A bit for each axis of the grid along which blocks read the same b, in a tensor.
  std::uint32_t shared_along = 0;
  // The loop around does nothing else: iterations may become one product of all their terms.
  bool joins = false;
  SourceLocation where = {};
};
// So many terms at most.
constexpr std::int64_t kJoinedTerms = 512;

struct Strips;
struct For;
struct While;
struct If;

using Operation =
    std::variant<Compute, LoadIndex, Peer, Load, Store, AwaitTurn, Apply, Splat, Count, Fold, Any,
                 Move, MoveScalar, Reshape, Multiply, Strips, For, While, If>;
using Block = std::vector<Operation>;

// Functions of rows that all go over some rows before they go over the next ones: these stay in the
// first-level cache. All tiles have the rows along one axis, and no others but columns. The first
// operation may be a product that gives the rows: then they go over those that are whole.
struct Strips {
  Block body;
  std::size_t axis;
  std::int64_t all, rows;  // in all, and of a strip
};

struct For {
  ScalarId low, high, step, index;
  DType dtype;  // of the index
  Block body;
  SourceLocation where;
  bool joins = false;    // its product does
  TileId zeros = kNone;  // what it begins with, if that is not written (zeros.h)
};
// The condition is a variable that the body sets anew.
struct While {
  ScalarId condition;
  Block body;
  SourceLocation where;
};
struct If {
  ScalarId condition;
  Block then, otherwise;
  SourceLocation where = {};
};

// A scalar that each launch gives.
struct BoundScalar {
  ScalarId scalar;
  DType dtype;
  Dim dim;  // of a dimension
};

struct Program {
  std::vector<Tile> tiles;
  std::vector<Scalar> scalars;  // as a block finds them: constants, and what the launch binds
  std::size_t tensors = 0;      // those of the launch, then peers
  std::vector<BoundScalar> dims, parameters;
  std::vector<ScalarId> grid;  // the block's index on each axis
  ScalarId rank = kNone, epoch = kNone;
  bool adds = false;  // it takes turns
  Block body;
  std::int64_t arena_bytes = 0, scratch_bytes = 0;
  std::int64_t packs_bytes = 0;  // behind the scratch: packs that blocks share
};

}  // namespace tilewright::cpu
