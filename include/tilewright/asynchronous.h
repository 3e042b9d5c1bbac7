#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright/function_ref.h"
#include "tilewright/kernel.h"

// The explicit level of GPUs with asynchronous copies: shared memory, rings, roles, TMA, barriers.
// The compiler itself lowers to it. Products are each target's own: tilewright/hopper.h. Rows and
// columns count elements. What does not fit raises Error(usage) at the caller's line: sizes that
// the target's record (target.h) does not allow, and operations outside of the role that they
// belong to. What takes too many registers, or too much shared memory, raises it in compile().
// Races and deadlocks raise nothing here: the simulator finds them.
namespace tilewright {

// How many buffers a ring has, 1 or more.
struct Stages {
  int count;
};
inline Stages stages(int count) { return {count}; }

// The size of a role, in warps. A warpgroup is four of them.
struct WarpCount {
  int count;
};
inline WarpCount warps(int count) { return {count}; }
inline WarpCount warpgroups(int count) { return {4 * count}; }

// Warps that run `body` beside those of the other roles. Roles of less than a warpgroup share one
// when they follow each other with the same budget. The body may take the index of its warpgroup
// in the role.
class RoleSpec {
 public:
  RoleSpec(std::string name, WarpCount warps, RegisterBudget registers,
           std::function<void(Index)> body, SourceLocation where = here())
      : name(std::move(name)),
        warps(warps.count),
        registers(registers.count),
        body(std::move(body)),
        where(where) {}
  std::string name;
  int warps;
  int registers;
  std::function<void(Index)> body;
  SourceLocation where;
};
// `budget` is registers(n), n registers of 32 bits a thread (require.h).
template <typename Body>
RoleSpec role(std::string name, WarpCount warps, RegisterBudget budget, Body body,
              SourceLocation where = here()) {
  if constexpr (std::is_invocable_v<Body, Index>) {
    return RoleSpec(std::move(name), warps, budget, std::move(body), where);
  } else {
    return RoleSpec(
        std::move(name), warps, budget, [body = std::move(body)](Index) mutable { body(); }, where);
  }
}

// Where the elements of a tile lie in shared memory, for authors who declare it. Column c of row r
// is element
//
//   c % panel + r * (panel + padding) + c / panel * rows * (panel + padding)
//
// of the tile. With a swizzle of 128, 64 or 32 bytes a panel is as wide, and its 16 bytes number i
// in row r lie where i ^ r % 8, i ^ r / 2 % 4 or i ^ r / 4 % 2 would.
//
// Loads and stores of threads take every map. Copies by TMA take those without padding, products
// those with a swizzle, or with panels of 16 bytes. Others are errors at the line of the copy or
// the product.
struct SharedMap {
  int panel = 0;    // columns side by side; 0: all, or as many as the swizzle spans
  int padding = 0;  // elements behind each row of a panel, a multiple of 16 bytes
  int swizzle = 0;  // bytes; 0: none
};

// A tile in shared memory, or a run of its rows.
class SharedView {
 public:
  SharedView() = default;
  // `count` rows from `start`, a multiple of 8.
  SharedView rows(const IndexOperand& start, int count) const;
  // The first row alone: numbers for the columns of a tile, which no product reads.
  SharedView first_row() const;
  // `count` columns from `start`.
  SharedView columns(int start, int count, SourceLocation where = here()) const;
  // The `index`-th run of `size` columns, for an index that the kernel computes: whole panels,
  // which hold 128 bytes of a row, or all of a shorter one.
  SharedView column_part(const IndexOperand& index, int size) const;
  // The two axes swapped, for products, store and load.
  SharedView T() const;
  int row_count() const { return row_count_; }
  int column_count() const { return column_count_; }

 private:
  friend class ExplicitTracing;
  Handle shared_;
  Handle stage_;
  Handle row_;
  Handle panel_;  // none: 0
  int row_count_ = 0;
  int column_ = 0;
  int column_count_ = 0;
  bool transposed_ = false;
};

// The rows are a multiple of 8, or one, of numbers that no product reads. Without a map a tile of
// several rows is swizzled as widely as these allow.
class SharedTile : public SharedView {
 public:
  SharedTile(Kernel& kernel, std::string name, DType dtype, int rows, int columns,
             SourceLocation where = here());
  SharedTile(Kernel& kernel, std::string name, DType dtype, int rows, int columns,
             const SharedMap& map, SourceLocation where = here());
};

// A tile of each of a ring's stages. rows is a multiple of 8, or 1, as of a SharedTile.
struct TileShape {
  DType dtype;
  int rows;
  int columns;
  std::optional<SharedMap> map = {};
};

// One stage of a ring: one view for each tile of the ring.
class Slot {
 public:
  const SharedView& operator[](int part) const;
  operator const SharedView&() const { return (*this)[0]; }
  SharedView T() const { return (*this)[0].T(); }
  const Index& stage() const { return stage_; }
  // What the producer gave with the stage: the `which`-th of the stage's numbers.
  Index number(int which = 0, SourceLocation where = here()) const;

 private:
  friend class Ring;
  Slot(Index stage, std::vector<SharedView> parts, Handle numbers, int number_count,
       SourceLocation where)
      : stage_(stage),
        parts_(std::move(parts)),
        numbers_(numbers),
        number_count_(number_count),
        where_(where) {}
  Index stage_;
  std::vector<SharedView> parts_;
  Handle numbers_;
  int number_count_;
  SourceLocation where_;  // of produce or consume
};

// Stages of shared memory with full and empty barriers between one producing role and the consuming
// ones. Positions run on across tiles of a persistent loop. The producer starts at parity 1 on
// fresh barriers; nothing arrives to prime them.
class Ring {
 public:
  // Without tiles it carries numbers alone.
  Ring(Kernel& kernel, std::string name, Stages stages, std::vector<TileShape> tiles,
       SourceLocation where = here());
  // Some of its loads are multicast: its stages are released in every CTA of the cluster.
  Ring& multicast();
  // The same for groups of `group` CTAs that follow each other in the cluster.
  Ring& multicast(int group, SourceLocation where = here());
  // For products of pairs of CTAs (tilewright/blackwell.h). What both CTAs load into a stage is
  // announced to the first one, whose products release it in both. What products write is
  // announced in both, and both release it in the first.
  Ring& pairs();
  // Its stages carry so many numbers each (Slot::number).
  Ring& numbered(int count = 1);
  ~Ring();
  // Waits until the next stage is empty, then runs `fill`, whose tma_loads complete its full
  // barrier; or whose stores the warp does itself, all of them, before it arrives there.
  void produce(FunctionRef<void(const Slot&)> fill, SourceLocation where = here());
  // The same with numbers that travel with the stage, or numbers alone. In a ring with numbers
  // every stage has all of them.
  void produce(const IndexOperand& number, FunctionRef<void(const Slot&)> fill);
  void produce(const IndexOperand& number);
  void produce(const std::vector<IndexOperand>& numbers, FunctionRef<void(const Slot&)> fill,
               SourceLocation where = here());
  void produce(const std::vector<IndexOperand>& numbers, SourceLocation where = here());
  // Waits until the next stage is empty, for products that write it, or read it for its consumers
  // (tilewright/blackwell.h). It is full when those are over that the thread has issued.
  Slot reserve(SourceLocation where = here());
  void commit(const Slot& slot, SourceLocation where = here());
  // Waits until the next stage is full.
  Slot consume(SourceLocation where = here());
  // Waits until the stage of the `position`-th produce, counted from 0, is full. A position below 0
  // is the first one's. For roles that come back to stages that they have not released yet: they
  // count positions themselves, and release each of them once, in the order in which they were
  // produced.
  Slot consume_at(const Index& position, SourceLocation where = here());
  // The stage of the role's latest consume, which it has not released.
  Slot last(SourceLocation where = here());
  // Every warp of the consuming role has finished reading the stage.
  void release(const Slot& slot, SourceLocation where = here()) { release(slot.stage(), where); }
  void release(const Index& stage, SourceLocation where = here());
  // The stage is released when the products are over that the thread has issued, which read it.
  void release_behind_products(const Slot& slot, SourceLocation where = here());
  // The same as release where the condition holds. The lanes of a warp meet first, whether it does
  // or not.
  void release_if(const Condition& condition, const Index& stage, SourceLocation where = here());

 private:
  void fill(const std::vector<IndexOperand>& numbers, FunctionRef<void(const Slot&)> loads,
            SourceLocation where);
  void check_role(bool producing, const char* what, SourceLocation where);
  void wait(bool producing, const Index& stage, const Index& phase, const char* what,
            SourceLocation where);
  Slot slot(const Index& stage, const char* what, SourceLocation where) const;
  Slot enter(bool producing, const char* what, SourceLocation where);
  void arrive_empty(const Index& stage, SourceLocation where);
  std::size_t expect(const Index& stage, SourceLocation where);
  void commit_to(std::uint32_t barriers, const Index& stage, std::int64_t group, const char* what,
                 SourceLocation where);
  void count_arrivals(std::int64_t arrivals);
  struct State;
  std::shared_ptr<State> state_;
};

struct TmaOptions {
  Cache cache = Cache::normal;
  bool multicast = false;  // to the same place in every CTA of the cluster, or of the ring's group
  // Of the group only so many, each `stride` after the one before, this CTA among them; 0: all.
  // Such as the CTAs of one column where a group's rows are `stride` long.
  int receivers = 0, stride = 1;
};
// Only inside Ring::produce: global to shared. Elements that do not exist, outside the tensor or at
// or past the block's limit, arrive as zero. One axis, not the last, may have blocks that end
// before the tensor does, such as those of a Ragged's sequences.
void tma_load(const TensorView& from, const SharedView& to, TmaOptions options = {},
              SourceLocation where = here());
// Only inside Ring::produce of a multicast ring: shared memory to the shared memory of CTA `cta` of
// the cluster. `to` is a part of the stage, which lies there as it does here; the copy completes
// the full barrier there. Each CTA sends as much as it receives. Both views consist of whole panels
// of the same width. The source may be written again where it is known that the stage was consumed.
void cluster_copy(const SharedView& from, const SharedView& to, const IndexOperand& cta,
                  SourceLocation where = here());
// Shared to global, by one lane; elements that do not exist are not written.
void tma_store(const TensorView& to, const SharedView& from, SourceLocation where = here());
// Shared to global, by one lane: each element that exists becomes the sum (minimum, maximum) of
// what is in memory and what the view has, at once for all CTAs of the GPU, but in no order among
// them: the rounding of sums is that of the order that happens. add takes f32, f16, bf16 and i32;
// min and max f16, bf16 and i32, and pass a NaN over. PTX has no min and max of f32 here. Raises
// for those, for other dtypes, and for an input.
enum class Reduction { add, min, max };
void tma_reduce(const TensorView& to, const SharedView& from, Reduction how = Reduction::add,
                SourceLocation where = here());
// Makes one group of the tma_store and tma_reduce that this thread has issued since its last group.
void bulk_commit(SourceLocation where = here());
// Waits until at most `groups` of this thread's groups are under way. Of the others the sources may
// be written again (bulk_wait_read), or the results are in memory (bulk_wait).
void bulk_wait_read(int groups, SourceLocation where = here());
void bulk_wait(int groups, SourceLocation where = here());

// Adds the tile to a view of f32 in global memory, from registers (red.global.add): each element at
// once for all CTAs of the GPU, but in no order among them, so that the rounding of sums is that of
// the order that happens. A thread adds as many elements at a time, up to four, as it holds side by
// side in a row of the view: fragments() gives a product's result an order in which these are four.
// The tensor is an inout, and the tile of the view's shape. Others may read the sums in the next
// launch, or behind what orders any store. With Order::blocks the author says that waits of the
// kernel's own order the additions to each place (such as wait_flag's). `explain` then says that
// every launch gives the same bits. It orders nothing by itself.
void atomic_add(const TensorView& view, const Tile& tile, Order order = Order::any,
                SourceLocation where = here());

// Between this warpgroup's registers and shared memory. A product's result of 2-byte elements, or
// one that is transposed, goes by matrices (stmatrix, ldmatrix), anything else by elements.
void store(const SharedView& to, const TileOperand& tile, SourceLocation where = here());
Tile load(const SharedView& from, SourceLocation where = here());

// `count` hardware barriers over `threads` threads each: whole warps, at most the CTA's. A CTA has
// 15 of them, of which reductions over several warps take some.
class NamedBarrier {
 public:
  NamedBarrier(Kernel& kernel, int threads, int count = 1, SourceLocation where = here());
  // Waits until `threads` threads have come to the barrier of this number, from 0.
  void sync(const IndexOperand& index = 0);
  // Counts as having come, without waiting.
  void arrive(const IndexOperand& index = 0);

 private:
  int first_, threads_, count_;
};

// Where the warps of a role meet those of the same role in the other CTAs of the cluster: what each
// has stored to shared memory before `arrive` the others may load behind `wait`. In a cluster of
// one they are the role's own warps: other than at a NamedBarrier, all of them arrive and all may
// wait.
class ClusterBarrier {
 public:
  ClusterBarrier(Kernel& kernel, std::string name, SourceLocation where = here());
  void arrive(SourceLocation where = here());
  // For the arrivals of one more phase, the first at the first call.
  void wait(SourceLocation where = here());

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// One lane of the warp alone runs the body, in which nothing stands that the warp does as a whole:
// products, stores and loads of tiles, barriers.
void elect(FunctionRef<void()> body, SourceLocation where = here());
// Orders what the lanes of a warp have done in memory before what one of them does next.
void warp_sync(SourceLocation where = here());
// Between this thread's accesses to shared memory and those of TMA or of products that follow: they
// go through different proxies of PTX, which no barrier orders.
void fence_proxy_async(SourceLocation where = here());
Index cta_index(SourceLocation where = here());     // of the grid's CTAs, from 0
Index cta_count(SourceLocation where = here());     // how many CTAs the grid has
Index cluster_rank(SourceLocation where = here());  // of this CTA in its cluster, from 0
Index warp_index(SourceLocation where = here());    // in its warpgroup, 0 to 3
// All threads of all CTAs of the cluster meet.
void cluster_sync(SourceLocation where = here());

// i32 values in shared memory: written by one lane of a warp, read by all.
class SharedIntegers {
 public:
  SharedIntegers(Kernel& kernel, std::string name, int count, SourceLocation where = here());
  Index load(const IndexOperand& element, SourceLocation where = here()) const;
  void store(const IndexOperand& element, const IndexOperand& value, SourceLocation where = here());

 private:
  Handle shared_;
};

// The number of multiprocessors of the device that runs the kernel, at least 1.
Dim multiprocessors();

}  // namespace tilewright
