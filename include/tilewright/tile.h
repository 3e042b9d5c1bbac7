#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright/dim.h"
#include "tilewright/dtype.h"
#include "tilewright/error.h"

// Values of a kernel, which operators record: a `Tile` is an immutable value, a `Cell` (`Var` of
// tiles) a variable. Shapes count elements. What does not fit raises Error(usage) at its line.
namespace tilewright {

class Tracer;

// A value of the kernel that is being traced.
class Handle {
 public:
  Handle() = default;
  Handle(Tracer* tracer, std::uint32_t id, std::uint64_t serial)
      : tracer_(tracer), id_(id), serial_(serial) {}
  Tracer* tracer() const { return tracer_; }
  std::uint32_t id() const { return id_; }
  std::uint64_t serial() const { return serial_; }

 private:
  Tracer* tracer_ = nullptr;
  std::uint32_t id_ = 0;
  std::uint64_t serial_ = 0;  // of the tracer: a handle does not outlive its kernel's tracing
};

template <typename T>
class Cell;
class Tile;

// Converts to an operand and notes the line on which it does.
struct IndexOperand;
struct TileOperand;

// A traced boolean: usable in `when`, not in C++'s own `if`.
class Condition {
 public:
  Condition(bool constant, SourceLocation where = here());
  explicit Condition(Handle handle) : handle_(handle) {}
  explicit operator bool() const = delete;
  const Handle& handle() const { return handle_; }

 private:
  Handle handle_;
};

class Scalar;

// A traced 32-bit integer.
class Index {
 public:
  Index(int constant, SourceLocation where = here());
  Index(std::int64_t constant, SourceLocation where = here());
  Index(const Dim& dim, SourceLocation where = here());
  explicit Index(const Scalar& scalar, SourceLocation where = here());  // one of i32
  explicit Index(Handle handle) : handle_(handle) {}
  explicit operator bool() const = delete;
  const Handle& handle() const { return handle_; }

 private:
  Handle handle_;
};

// A number that each launch gives (Kernel::scalar): f32 beside tiles of f32, i32 also as an index.
// Beside a number it is neither: full({1}, scalar) makes it a tile, Index(scalar) an index.
class Scalar {
 public:
  explicit Scalar(Handle handle) : handle_(handle) {}
  const Handle& handle() const { return handle_; }

 private:
  Handle handle_;
};

struct IndexOperand {
  IndexOperand(const Index& index, SourceLocation where = here()) : index(index), where(where) {}
  IndexOperand(const Dim& dim, SourceLocation where = here()) : index(dim, where), where(where) {}
  IndexOperand(int value, SourceLocation where = here()) : index(value, where), where(where) {}
  IndexOperand(std::int64_t value, SourceLocation where = here())
      : index(value, where), where(where) {}
  IndexOperand(const Cell<Index>& cell, SourceLocation where = here());
  IndexOperand(const Scalar& scalar, SourceLocation where = here());
  Index index;
  SourceLocation where;
};

// `/` rounds toward minus infinity and `%` has the sign of the divisor.
Index operator+(const IndexOperand& a, const IndexOperand& b);
Index operator-(const IndexOperand& a, const IndexOperand& b);
Index operator*(const IndexOperand& a, const IndexOperand& b);
Index operator/(const IndexOperand& a, const IndexOperand& b);
Index operator%(const IndexOperand& a, const IndexOperand& b);
Index ceil_div(const IndexOperand& a, const IndexOperand& b);
// Bits, as of tiles of i32.
Index operator&(const IndexOperand& a, const IndexOperand& b);
Index operator|(const IndexOperand& a, const IndexOperand& b);
Index operator^(const IndexOperand& a, const IndexOperand& b);
Index operator<<(const IndexOperand& a, const IndexOperand& b);
Index operator>>(const IndexOperand& a, const IndexOperand& b);
Index min(const IndexOperand& a, const IndexOperand& b);
Index max(const IndexOperand& a, const IndexOperand& b);
Index select(const Condition& condition, const IndexOperand& a, const IndexOperand& b);
// What is known while the kernel is traced chooses by ?:. Two Dims compared by == are that: whether
// they are one term. Whether their values are the same says Index(dim) == 0.
template <std::same_as<bool> Traced>
Index select(Traced, const IndexOperand& a, const IndexOperand& b) = delete;
Condition operator<(const IndexOperand& a, const IndexOperand& b);
Condition operator<=(const IndexOperand& a, const IndexOperand& b);
Condition operator>(const IndexOperand& a, const IndexOperand& b);
Condition operator>=(const IndexOperand& a, const IndexOperand& b);
Condition operator==(const IndexOperand& a, const IndexOperand& b);
Condition operator!=(const IndexOperand& a, const IndexOperand& b);
Condition operator&&(const Condition& a, const Condition& b);
Condition operator||(const Condition& a, const Condition& b);
Condition operator!(const Condition& a);

// `size` elements of an axis from `start`; those at or above `limit` do not exist.
class Block {
 public:
  // `packed`: the packed axis that its sequence is a part of, if it is of one (Ragged).
  Block(Index start, int size, Index limit, std::optional<Dim> packed = {})
      : start_(start), size_(size), limit_(limit), packed_(std::move(packed)) {}
  const Index& start() const { return start_; }
  int size() const { return size_; }
  const Index& limit() const { return limit_; }
  const std::optional<Dim>& packed() const { return packed_; }
  // The `index`-th run of `size` of its elements.
  Block part(const IndexOperand& index, int size) const;
  // Coordinates of its elements on the axis, as a column {size, 1} or a row {1, size} of i32.
  Tile as_column(SourceLocation where = here()) const;
  Tile as_row(SourceLocation where = here()) const;

 private:
  Index start_;
  int size_;
  Index limit_;
  std::optional<Dim> packed_;
};

// From where blocks of a packed sequence are counted: from its first row, or from the first row of
// the axis. In the latter case a block lies between two multiples of its size, so that it is cut
// where the sequence begins too.
enum class BlocksFrom : std::uint8_t { sequence, axis };

// A run of rows of an axis: all of a dimension's, or one sequence's of a packed axis (Ragged).
class Sequence {
 public:
  Sequence(const Dim& all = 0) : axis_(all) {}
  Sequence(int all) : axis_(all) {}
  Sequence(std::int64_t all) : axis_(all) {}
  // Rows begin .. end - 1 of a packed axis.
  Sequence(const Dim& axis, const Index& begin, const Index& end,
           BlocksFrom blocks = BlocksFrom::sequence)
      : axis_(axis), part_({begin, end}), blocks_(blocks) {}

  // On the axis: its first row, and one past its last.
  Index begin(SourceLocation where = here()) const;
  Index end(SourceLocation where = here()) const;
  // How many blocks of `size` rows it has, the last one cut.
  Index blocks(int size, SourceLocation where = here()) const;
  // Where its first block would begin if it were whole: at most at its first row.
  Index first_block(int size, SourceLocation where = here()) const;
  // The `index`-th of them.
  Block block(const Index& index, int size, SourceLocation where = here()) const;
  // Whether it is one of several on its axis, so that its lengths are known to the kernel alone.
  bool is_packed() const { return part_.has_value(); }
  // What the axis is as long as.
  const Dim& axis() const { return axis_; }
  BlocksFrom blocks_from() const { return blocks_; }

 private:
  Dim axis_;
  std::optional<std::pair<Index, Index>> part_;
  BlocksFrom blocks_ = BlocksFrom::sequence;
};

// An extent of a tile's shape: a number, or as large as a block.
struct Extent {
  Extent(int size) : size(size) {}
  Extent(std::int64_t size) : size(size) {}
  Extent(const Block& block) : size(block.size()) {}
  std::int64_t size;
};

// A tile of elements; an immutable value.
class Tile {
 public:
  explicit Tile(Handle handle) : handle_(handle) {}
  // Every element is the scalar.
  Tile(std::initializer_list<Extent> shape, const IndexOperand& value,
       SourceLocation where = here());

  DType dtype() const;
  std::vector<std::int64_t> shape() const;
  Tile T(SourceLocation where = here()) const;
  // Its axes in another order: axis i of the result is axis axes[i] of this one.
  Tile permute(const std::vector<int>& axes, SourceLocation where = here()) const;
  Tile cast(DType dtype, SourceLocation where = here()) const;
  // The same elements in row-major order.
  Tile reshape(std::vector<std::int64_t> shape, SourceLocation where = here()) const;
  // sizes[i] elements of axis i from offsets[i].
  Tile slice(std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes,
             SourceLocation where = here()) const;
  const Handle& handle() const { return handle_; }

 private:
  Handle handle_;
};

// A product in flight (hopper.h): unreadable until waited for.
class Pending {
 public:
  explicit Pending(Handle handle) : handle_(handle) {}
  const Handle& handle() const { return handle_; }

 private:
  Handle handle_;
};

// What a cell is assigned, and on which line.
template <typename T>
struct Assigned {
  template <typename U>
  requires(std::is_convertible_v<const U&, T>)
      Assigned(const U& value, SourceLocation where = here())
      : value(made(value, where)), where(where) {}
  T value;
  SourceLocation where;

 private:
  template <typename U>
  static T made(const U& value, SourceLocation where) {
    if constexpr (std::is_constructible_v<T, const U&, SourceLocation>) {
      return T(value, where);
    } else {
      return value;
    }
  }
};

// A variable: loops and conditions may assign it. It is neither copied nor deduced by `auto`.
template <typename T>
class Cell {
 public:
  explicit Cell(const T& initial, SourceLocation where = here());
  Cell(const Cell&) = delete;
  Cell(Cell&&) = delete;
  ~Cell();
  // Both are spelled out: the implicit copy assignment would win and record nothing.
  Cell& operator=(const Assigned<T>& assigned);
  Cell& operator=(const Cell& other);
  operator T() const;
  int slot() const { return slot_; }  // its number in the tracer

 private:
  int slot_;
  Tracer* tracer_;
};
extern template class Cell<Tile>;
extern template class Cell<Index>;
extern template class Cell<Condition>;
extern template class Cell<Pending>;
using Var = Cell<Tile>;

struct TileOperand {
  TileOperand(const Tile& tile, SourceLocation where = here())
      : handle(tile.handle()), where(where) {}
  TileOperand(const Var& var, SourceLocation where = here());
  TileOperand(const Scalar& scalar, SourceLocation where = here())
      : handle(scalar.handle()), where(where) {}
  // A number takes the dtype of the other operand.
  TileOperand(double value, SourceLocation where = here()) : number(value), where(where) {}
  TileOperand(int value, SourceLocation where = here()) : number(value), where(where) {}
  TileOperand(const Handle& handle, SourceLocation where) : handle(handle), where(where) {}
  Handle handle;
  double number = 0;
  SourceLocation where;
  bool is_number() const { return handle.tracer() == nullptr; }
};

// Elementwise; an axis of size 1 stretches to the other operand's. Integers divide toward minus
// infinity.
Tile operator+(const TileOperand& a, const TileOperand& b);
Tile operator-(const TileOperand& a, const TileOperand& b);
Tile operator*(const TileOperand& a, const TileOperand& b);
Tile operator/(const TileOperand& a, const TileOperand& b);
Tile operator%(const TileOperand& a, const TileOperand& b);
Tile operator-(const TileOperand& a);
Tile operator<(const TileOperand& a, const TileOperand& b);
Tile operator<=(const TileOperand& a, const TileOperand& b);
Tile operator>(const TileOperand& a, const TileOperand& b);
Tile operator>=(const TileOperand& a, const TileOperand& b);
Tile operator==(const TileOperand& a, const TileOperand& b);
Tile operator!=(const TileOperand& a, const TileOperand& b);
Tile operator&&(const TileOperand& a, const TileOperand& b);
Tile operator||(const TileOperand& a, const TileOperand& b);
Tile operator!(const TileOperand& a);
Tile min(const TileOperand& a, const TileOperand& b);
Tile max(const TileOperand& a, const TileOperand& b);
// Bits of integers; & | ^ also of two conditions. `>>` keeps the sign. Shifts by less than 0 or by
// all bits of the dtype leave 0 (`>>` of a negative number: -1).
Tile operator&(const TileOperand& a, const TileOperand& b);
Tile operator|(const TileOperand& a, const TileOperand& b);
Tile operator^(const TileOperand& a, const TileOperand& b);
Tile operator~(const TileOperand& a);
Tile operator<<(const TileOperand& a, const TileOperand& b);
Tile operator>>(const TileOperand& a, const TileOperand& b);

// An index beside a tile of i32 stands for a tile of it, as a number does. Both have types of their
// own here: two indices, or an index and a number, make an index.
struct IndexBesideTile {
  IndexBesideTile(const Index& index, SourceLocation where = here())
      : operand(index.handle(), where) {}
  IndexBesideTile(const Dim& dim, SourceLocation where = here())
      : operand(Index(dim, where).handle(), where) {}
  IndexBesideTile(const Cell<Index>& cell, SourceLocation where = here());
  TileOperand operand;
};
struct TileBesideIndex {
  TileBesideIndex(const Tile& tile, SourceLocation where = here()) : operand(tile, where) {}
  TileBesideIndex(const Var& var, SourceLocation where = here()) : operand(var, where) {}
  TileOperand operand;
};
#define TILEWRIGHT_BESIDE_INDEX(function)                                    \
  inline Tile function(const TileBesideIndex& a, const IndexBesideTile& b) { \
    return function(a.operand, b.operand);                                   \
  }                                                                          \
  inline Tile function(const IndexBesideTile& a, const TileBesideIndex& b) { \
    return function(a.operand, b.operand);                                   \
  }
TILEWRIGHT_BESIDE_INDEX(operator+)
TILEWRIGHT_BESIDE_INDEX(operator-)
TILEWRIGHT_BESIDE_INDEX(operator*)
TILEWRIGHT_BESIDE_INDEX(operator/)
TILEWRIGHT_BESIDE_INDEX(operator%)
TILEWRIGHT_BESIDE_INDEX(operator<)
TILEWRIGHT_BESIDE_INDEX(operator<=)
TILEWRIGHT_BESIDE_INDEX(operator>)
TILEWRIGHT_BESIDE_INDEX(operator>=)
TILEWRIGHT_BESIDE_INDEX(operator==)
TILEWRIGHT_BESIDE_INDEX(operator!=)
TILEWRIGHT_BESIDE_INDEX(operator&)
TILEWRIGHT_BESIDE_INDEX(operator|)
TILEWRIGHT_BESIDE_INDEX(operator^)
TILEWRIGHT_BESIDE_INDEX(operator<<)
TILEWRIGHT_BESIDE_INDEX(operator>>)
TILEWRIGHT_BESIDE_INDEX(min)
TILEWRIGHT_BESIDE_INDEX(max)
#undef TILEWRIGHT_BESIDE_INDEX

// Functions of elements, down to clamp. Axes of size 1 stretch, and the result has the operands'
// dtype. abs, where and clamp take integers too, the others floats alone. docs/numerics.md says in
// which precision each target computes them.
// a * b + c, rounded once.
Tile fma(const TileOperand& a, const TileOperand& b, const TileOperand& c);
// a where the condition is true, else b.
Tile where(const TileOperand& condition, const TileOperand& a, const TileOperand& b);
Tile abs(const TileOperand& a);
Tile exp(const TileOperand& a);
Tile exp2(const TileOperand& a);
// 2^a with a relative error of 3e-6 at most, and 0 below 2^-126. It is computed by products and
// sums, for kernels in which the unit for special functions is the bottleneck.
Tile exp2_polynomial(const TileOperand& a);
Tile log(const TileOperand& a);
Tile log2(const TileOperand& a);
Tile sqrt(const TileOperand& a);
Tile rsqrt(const TileOperand& a);  // 1 / sqrt(a)
Tile rcp(const TileOperand& a);    // 1 / a
Tile tanh(const TileOperand& a);
Tile log1p(const TileOperand& a);  // log(1 + a), accurate near 0
Tile expm1(const TileOperand& a);  // exp(a) - 1, accurate near 0
Tile erf(const TileOperand& a);
Tile sin(const TileOperand& a);  // of radians
Tile cos(const TileOperand& a);
Tile floor(const TileOperand& a);
Tile ceil(const TileOperand& a);
Tile rint(const TileOperand& a);     // to the nearest whole number, ties to even
Tile sigmoid(const TileOperand& a);  // 1 / (1 + exp(-a))
// a, or the bound that it lies beyond; high where the bounds cross.
Tile clamp(const TileOperand& a, const TileOperand& low, const TileOperand& high);

// Along `axis`, which keeps size 1. Elements that do not exist are left out; of none the sum is 0,
// the maximum -inf. Sums of floats are in f32, and then rounded to the dtype of `a`.
Tile reduce_sum(const TileOperand& a, int axis);
Tile reduce_max(const TileOperand& a, int axis);
Tile reduce_min(const TileOperand& a, int axis);

// Whether any element that exists is true; all of a block of the grid decides alike. At the
// explicit level each warp asks about the elements that it holds, so that the warps of a warpgroup
// may differ.
Condition any(const TileOperand& a);
// The same for decisions that are right either way, such as whether to leave out a rescaling that
// no row needs. Warps may decide differently, elements that do not exist may count, and a
// reduce_sum may be asked before it is complete.
Condition any_nearby(const TileOperand& a);

// A tile whose elements are all `value`, rounded to the dtype.
Tile full(std::initializer_list<Extent> shape, double value, DType dtype = f32,
          SourceLocation where = here());
Tile full(std::initializer_list<Extent> shape, const Scalar& value, SourceLocation where = here());
Tile zeros(std::initializer_list<Extent> shape, DType dtype = f32, SourceLocation where = here());
// The coordinate along `axis`, i32.
Tile iota(std::initializer_list<Extent> shape, int axis, SourceLocation where = here());

// a {m, k} times b {k, n}, of one dtype. The sums {m, n} are f32, or i32 of integers. The second
// form adds to `accumulator`.
Tile dot(const TileOperand& a, const TileOperand& b);
Tile dot(const TileOperand& a, const TileOperand& b, const TileOperand& accumulator);

}  // namespace tilewright
