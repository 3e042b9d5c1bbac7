#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright/function_ref.h"
#include "tilewright/require.h"
#include "tilewright/schedule.h"
#include "tilewright/tile.h"

// Kernels: parameters, a grid, traced control flow. What does not fit raises Error(usage) at its
// caller's line: names that are taken or no identifiers, shapes and dtypes that an operation does
// not take, values of another kernel, and what is declared behind finish(). Extents, sizes and
// indices count elements.
namespace tilewright {

namespace ir {
struct Kernel;
}

struct All {};
inline constexpr All all{};  // the whole of an axis whose size is a number

// What one axis of a tensor is addressed by.
struct Selector {
  Selector(All) : whole(true) {}
  Selector(const Block& block);
  Selector(const Index& index);
  Selector(const Cell<Index>& index);
  Selector(int index, SourceLocation where = here());
  bool whole = false;
  int size = 0;  // 0: the axis is indexed away
  Handle start, limit;
  std::optional<Dim> packed;
};

// A part of a tensor: Q(b, rows, h, all).
class TensorView {
 public:
  TensorView(Handle tensor, std::vector<Selector> selectors, SourceLocation where)
      : tensor_(tensor), selectors_(std::move(selectors)), where_(where) {}
  const Handle& tensor() const { return tensor_; }
  const std::vector<Selector>& selectors() const { return selectors_; }
  SourceLocation where() const { return where_; }

 private:
  Handle tensor_;
  std::vector<Selector> selectors_;
  SourceLocation where_;
};

class Tensor {
 public:
  explicit Tensor(Handle handle) : handle_(handle) {}
  // One selector an axis. The line noted is that of the operation the view is given to.
  template <typename... S>
  requires(std::is_convertible_v<const S&, Selector>&&...) TensorView operator()(
      const S&... selectors) const {
    return TensorView(handle_, {Selector(selectors)...}, {});
  }
  // A symmetric tensor as it is in another rank.
  Tensor at(const IndexOperand& rank) const;
  const Handle& handle() const { return handle_; }

 private:
  Handle handle_;
};

// Elements that do not exist are read as zero and take no part in reductions and products.
Tile load(const TensorView& view, SourceLocation where = here());
// A hint for the L2 cache: which lines it gives up first, and which last. No result depends on it.
enum class Cache { normal, evict_first, evict_last };
// The same with a hint, for an input. evict_first is for what the whole launch reads once. Raises
// Error(usage) for evict_last, which only tma_load takes, and for a tensor that the kernel may
// write.
Tile load(const TensorView& view, Cache cache, SourceLocation where = here());
// The tile has the view's shape. Floats are rounded to the tensor's dtype, and integers have it.
// Only elements that exist are written.
void store(const TensorView& view, const TileOperand& tile, SourceLocation where = here());
// Which elements of a tile a thread holds, for authors who declare it. Digit d of a register's, a
// lane's or a warp's number, the fastest first, adds d * stride to the coordinate on an axis. On
// axis kEvery it says nothing: those hold the same.
struct RegisterMap {
  static constexpr int kEvery = -1;
  struct Digit {
    int size, axis, stride;
  };
  std::vector<Digit> registers, lanes, warps;
  // As a product's result of so many columns lies, 64 rows for each warpgroup.
  static RegisterMap product(int columns, int rows = 64);
};
// Tiles that lie so, at both levels; the axes are the tile's. What the tile holds stays the same. A
// load from global memory comes to lie so at once. Another tile that lies otherwise passes through
// shared memory, once, with a barrier that all warps which hold it reach. At the explicit level the
// warps are a role's. At the tile level they are all that compute: where there are products, every
// four of them have the part of the tile that the schedule gives their warpgroup, and there a map
// of others raises when the kernel is compiled. Raises Error(usage) for a map that does not have
// each element, or has not 32 lanes, and for more elements than a thread has registers for.
Tile load(const TensorView& from, const RegisterMap& map, SourceLocation where = here());
Tile in_registers(const Tile& tile, const RegisterMap& map, SourceLocation where = here());

// In which order the blocks of the grid add to a tensor.
enum class Order : std::uint8_t {
  blocks,  // that of their numbers, x fastest: the same bits in every launch
  any,     // as they come: the last bits of sums may differ from launch to launch
};
// Adds the tile to a view of an inout tensor of f32, bf16 or f16, at the tile level: of the view's
// shape and dtype, and only elements that exist. Each addition rounds to the dtype. Several blocks
// of the grid may add to one place. The kernel neither loads nor stores it. With Order::blocks a
// block waits, at its first addition, until those before it have done all of theirs. Raises Error.
void add(const TensorView& view, const Tile& tile, Order order = Order::blocks,
         SourceLocation where = here());
// An i32 element in global memory: one index an axis. Outside the tensor there is none: a fault.
Index load_index(const TensorView& element, SourceLocation where = here());
// What such elements are, by what the launch has to give: at least 0, and perhaps no more than a
// dimension, and of a vector none less than the one before. One that is not is an error on the
// interpreter, the simulated machines and `cpu`, and with CompileOptions::checked.
struct Counted {
  std::optional<Dim> at_most = {};
  bool ascending = false;
};
Index load_index(const TensorView& element, const Counted& counted, SourceLocation where = here());
// Adds to an i32 element in global memory; its former value.
Index atomic_add(const TensorView& element, const IndexOperand& value,
                 SourceLocation where = here());

namespace detail {
// Drives C++'s range-for over a traced loop: the body runs once, while it is recorded. Leaving it
// by `break` or `return` would lose part of the kernel and is an error.
class LoopDriver {
 public:
  LoopDriver(const Index& low, const Index& high, const Index& step, SourceLocation where);
  LoopDriver(const LoopDriver&) = delete;
  ~LoopDriver() noexcept(false);
  void begin() const;  // raises when it was looped over before
  Index open();
  void close();
  bool closed() const { return state_ == State::closed; }

 private:
  enum class State { fresh, open, closed } state_ = State::fresh;
  Tracer* tracer_;
  Handle low_, high_, step_;
  SourceLocation where_;
  int exceptions_;
};

template <typename Element>
class TracedRange {
 public:
  TracedRange(const Index& low, const Index& high, const Index& step,
              std::function<Element(const Index&)> element, SourceLocation where)
      : driver_(low, high, step, where), element_(std::move(element)) {}

  struct Iterator {
    TracedRange* range;
    Element operator*() const { return range->element_(range->driver_.open()); }
    void operator++() { range->driver_.close(); }
    bool operator!=(const Iterator&) const { return !range->driver_.closed(); }
  };
  Iterator begin() {
    driver_.begin();
    return {this};
  }
  Iterator end() { return {this}; }

 private:
  LoopDriver driver_;
  std::function<Element(const Index&)> element_;
};
}  // namespace detail

using IndexRange = detail::TracedRange<Index>;
using BlockRange = detail::TracedRange<Block>;

// for (Index i : range(n)): a loop of the kernel.
IndexRange range(const IndexOperand& high);
IndexRange range(const IndexOperand& low, const IndexOperand& high);
IndexRange range(const IndexOperand& low, const IndexOperand& high, const IndexOperand& step);
// for (Block cols : blocks(keys, 128)): the dimension (or one sequence of a packed
// axis) in runs of `size`; or runs low..high-1 of it.
BlockRange blocks(const Sequence& rows, int size, SourceLocation where = here());
BlockRange blocks(const Sequence& rows, int size, const IndexOperand& low, const IndexOperand& high,
                  SourceLocation where = here());

// A condition of the kernel. Cells that a branch assigns take its value.
void when(const Condition& condition, FunctionRef<void()> then, FunctionRef<void()> otherwise = {},
          SourceLocation where = here());
// What is known while the kernel is traced is asked by if, and Index(dim) == 0 for a Dim's value.
template <std::same_as<bool> Traced, typename... Branches>
void when(Traced, const Branches&... branches) = delete;
// Repeats `body` while the cell holds true; the body assigns it.
void repeat_while(Cell<Condition>& condition, FunctionRef<void()> body,
                  SourceLocation where = here());

class RoleSpec;
class Signals;

// Blocks of the grid along one axis; notes the line.
struct GridExtent {
  GridExtent(const Dim& dim, SourceLocation where = here()) : dim(dim), where(where) {}
  GridExtent(std::int64_t size, SourceLocation where = here()) : dim(size), where(where) {}
  GridExtent(int size, SourceLocation where = here()) : dim(size), where(where) {}
  Dim dim;
  SourceLocation where;
};

class Kernel {
 public:
  explicit Kernel(std::string name, SourceLocation where = here());
  ~Kernel();
  // What is left behind can only be destroyed or assigned to: all else raises Error(usage).
  Kernel(Kernel&&) noexcept;
  Kernel& operator=(Kernel&&) noexcept;

  // A symbolic size, in elements. Each launch binds it by the axes of its tensors.
  Dim dim(std::string name, DimFacts facts = {}, SourceLocation where = here());
  // A tensor of 1 to 5 axes: only read (in), written without being read before (out), or both
  // (inout). Its shape may be expressions of dims. A launch takes tensors in the order of these
  // calls.
  Tensor in(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where = here());
  Tensor out(std::string name, DType dtype, std::vector<Dim> shape, SourceLocation where = here());
  Tensor inout(std::string name, DType dtype, std::vector<Dim> shape,
               SourceLocation where = here());

  // A number of f32 or i32 that each launch gives, in the order of these calls.
  Scalar scalar(std::string name, DType dtype, SourceLocation where = here());

  // `count` i32 values that no caller passes: zero at the first launch, and every launch leaves
  // them zero for the next (checked by the simulator). Launches of different streams have their
  // own.
  Tensor workspace(std::string name, int count, SourceLocation where = here());
  // {rows, columns} f32 values that no caller passes, through which CTAs hand each other data. They
  // hold anything when a launch begins. Launches of different streams have their own.
  Tensor scratch(std::string name, int rows, int columns, SourceLocation where = here());

  // Ranks: the GPUs of a node that run the kernel together (ranks.h), each once a launch.
  // A tensor that every rank has, of the same shape and strides, and that all read and write.
  Tensor symmetric(std::string name, DType dtype, std::vector<Dim> shape,
                   SourceLocation where = here());
  // `count` i32 words in every rank that no caller passes: zero at the first launch, and then what
  // the launches before have left.
  Signals signals(std::string name, int count, SourceLocation where = here());  // ranks.h
  // This rank's number, from 0.
  Index rank(SourceLocation where = here());
  // How many ranks there are; at most 8.
  Dim ranks(SourceLocation where = here());
  // The number of this launch among those on the kernel's signals, from 1 and the same in every
  // rank: a word that counts up to it, or to a multiple of it, needs no reset.
  Index epoch(SourceLocation where = here());

  // The grid's extents; the indices of one block, x first.
  std::array<Index, 1> grid(const GridExtent& x);
  std::array<Index, 2> grid(const GridExtent& x, const GridExtent& y);
  std::array<Index, 3> grid(const GridExtent& x, const GridExtent& y, const GridExtent& z);

  // Explicit level: the target whose record (target.h) the kernel is written for; sm_90a where none
  // is named. It comes before all else that is explicit, which is checked by this record: an
  // operation that the target lacks is an error at its line. A kernel of the tile level has no
  // target.
  void target(std::string_view name, SourceLocation where = here());
  // The CTAs of a one-dimensional grid, and the roles of their warps (asynchronous.h).
  void ctas(const Dim& count, int cluster = 1, SourceLocation where = here());
  void roles(std::initializer_list<RoleSpec> roles, SourceLocation where = here());
  // As many as C++ decides: such as a std::vector of them.
  void roles(std::span<const RoleSpec> roles, SourceLocation where = here());

  // What the compiled kernel must be (require.h).
  void require(std::initializer_list<Claim> claims);
  // Tile level: how it is compiled where compile() is not told otherwise (schedule.h). The fields
  // of a later call come before those of an earlier one.
  void schedule(const Schedule& stated, SourceLocation where = here());

  const std::string& name() const;
  // Ends the tracing; what is still open raises Error(usage). It can be traced no further.
  const ir::Kernel& finish() const;

 private:
  Tensor parameter(int kind, std::string name, DType dtype, std::vector<Dim> shape,
                   SourceLocation where);
  // Raises where another Kernel has been made of this one.
  Tracer& tracer(SourceLocation where = {}) const;
  friend class ExplicitTracing;

  std::unique_ptr<Tracer> tracer_;
};

// A packed axis: the rows of several sequences one behind the other, so that no row is spent on
// padding. Sequence b has rows offsets[b] .. offsets[b + 1] - 1; `offsets` is i32 {sequences + 1}
// in global memory and ascends. Rows before the first or behind the last belong to no sequence.
class Ragged {
 public:
  // `axis` is what packed tensors' axes are as long as. `blocks`: those of its sequences.
  Ragged(const Dim& axis, const Tensor& offsets, BlocksFrom blocks = BlocksFrom::sequence,
         SourceLocation where = here());

  Sequence of(const IndexOperand& sequence) const;
  Dim sequences() const { return sequences_; }

  // Its sequences in tiles of `size` rows that do not cross from one into the next: a grid of
  // tiles(size) has them all. There is at most one tile without rows for each sequence, and no
  // tile where there is no sequence, whatever rows there are.
  Dim tiles(int size) const { return axis_ * min(sequences_, 1) / size + sequences_; }
  struct Tile {
    Index sequence;
    Index block;  // in the sequence; past its last where the tile has no rows
  };
  // By a binary search of the offsets.
  Tile tile(const IndexOperand& number, int size) const;

 private:
  Index offset(const Index& number, SourceLocation where) const;
  Dim axis_, sequences_;
  Tensor offsets_;
  BlocksFrom blocks_;
};

// What hides elements of one block of keys, where a kernel knows it: nothing else is then asked of
// each element.
enum class Hides {
  anything,
  last_keys,   // the diagonal, or the end of the keys
  first_keys,  // the window
};

// Which elements of a score matrix (rows of queries, columns of keys) are visible.
class Mask {
 public:
  // The blocks of keys with something visible to `rows`, in ascending order.
  BlockRange blocks(const Block& rows, const Sequence& keys, int size,
                    SourceLocation where = here()) const;
  // The same of the other side: the blocks of queries to which something of `cols` is visible.
  BlockRange row_blocks(const Block& cols, const Sequence& queries, int size,
                        SourceLocation where = here()) const;
  // Of those the number of the first, and one past the last's.
  std::pair<Index, Index> visible_rows(const Block& cols, const Sequence& queries, int size,
                                       SourceLocation where = here()) const;
  // The blocks [first, last) of queries to each of which all of `cols` exist and are visible.
  std::pair<Index, Index> full_rows(const Block& cols, const Sequence& queries, int size,
                                    SourceLocation where = here()) const;
  // The number of the first block with something visible, and one past the last's.
  std::pair<Index, Index> visible(const Block& rows, const Sequence& keys, int size,
                                  SourceLocation where = here()) const;
  // The blocks [first, last) all of whose elements exist and are visible to every one of `rows`.
  std::pair<Index, Index> full(const Block& rows, const Sequence& keys, int size,
                               SourceLocation where = here()) const;
  // `scores` with -inf where an element is not visible or does not exist. Several rows of scores
  // may follow each other for each of `rows`: heads that share keys.
  Tile apply(const Tile& scores, const Block& rows, const Block& cols,
             SourceLocation where = here()) const;
  // The same of a block in which nothing but `hides` can hide an element.
  Tile apply(const Tile& scores, const Block& rows, const Block& cols, Hides hides,
             SourceLocation where = here()) const;
  // The same of scores whose rows are keys, and whose columns queries.
  Tile apply_transposed(const Tile& scores, const Block& rows, const Block& cols,
                        SourceLocation where = here()) const;

 private:
  friend Mask everything();
  friend Mask causal(const Sequence& queries, const Sequence& keys, int window);
  Index first_offset(const Sequence& keys, int size, SourceLocation where) const;
  bool causal_ = false;
  int window_ = 0;
  Sequence queries_, keys_;
};
Mask everything();
// Query i sees key j while j <= i + keys - queries (the last query sees the last key); with a
// window > 0, only the last `window` of those. Of sequences of packed axes, i and j count from each
// one's first row, and the lengths are the sequences' own.
Mask causal(const Sequence& queries, const Sequence& keys, int window = 0);

}  // namespace tilewright
