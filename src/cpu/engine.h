#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/call.h"
#include "cpu/far_stores.h"
#include "cpu/kernels.h"
#include "cpu/listing.h"
#include "cpu/program.h"
#include "cpu/shared_packs.h"
#include "cpu/turns.h"
#include "support/arguments.h"

namespace tilewright::cpu {

// What all blocks of a launch share.
struct Launch {
  const Program* program = nullptr;
  const Kernels* kernels = nullptr;
  const Arguments* arguments = nullptr;
  std::vector<Scalar> scalars;     // as each block finds them
  std::vector<std::int64_t> grid;  // blocks on each axis, x first
  Turns* turns = nullptr;          // null: blocks come one after the other
  Profile* profile = nullptr;      // null: nothing is timed
  FarStores far_stores;
  bool exceeds_cache = false;  // the tensors are larger than the last-level cache
  std::int64_t while_limit = 0;
  SourceLocation where;  // of the kernel
};

// Bytes that the machine finds by one look-up, mostly.
constexpr std::int64_t kPage = 4096;

// Runs blocks of a program, one after the other.
class Engine {
 public:
  // What it needs lies in memory of its thread: `arena` has the program's arena_bytes, and
  // `scratch` its scratch_bytes, which engines of a thread share.
  Engine(const Launch& launch, std::byte* arena, std::byte* scratch, SharedPacks& packs);
  void run_block(std::int64_t number);
  // The same in parts: what stands before a loop of the program's body and its first round, each
  // round behind, and the rest. `run_round` is false where none was left.
  void begin_rounds(std::int64_t number, const For& loop);
  bool run_round();
  void end_rounds();
  // Whether products of few rows go over tensors in the last round, and those of the other engine
  // find what they read in the same pages or lines of memory.
  bool is_beside(const Engine& other) const;
  // How many operations the loops of a block come to, whose ends depend on these scalars alone.
  double operations(std::int64_t number, const std::vector<const Operation*>& scalars,
                    const std::vector<const For*>& loops);

 private:
  // A tile as it is now. Strides are in bytes.
  struct State {
    std::byte* data = nullptr;
    Index extents = {}, strides = {};
    bool is_of_strip = false;
    bool is_far = false;            // in a tensor that is written past the caches
    bool is_copy = false;           // of a tensor, where it could be read too
    bool is_for_many_rows = false;  // the last product that read it had them
    // Of a load that products read in the tensor: where it was, how far behind the one before, the
    // latest first, and where products have asked for the next one.
    const std::byte* last = nullptr;
    std::array<std::int64_t, 6> steps = {};
    const std::byte* foreseen = nullptr;
  };
  struct Tensor {
    const TensorArgument* argument = nullptr;
    std::byte* data = nullptr;  // of a peer that rank's
  };
  // A box in numbers, by the axes of its tile.
  struct Region {
    std::byte* data = nullptr;                  // of the element that the tile's first one is
    Index strides = {};                         // in bytes
    Index extents = {}, first = {}, last = {};  // what exists, and what of that lies inside
    bool exists = false;                        // what is indexed away lies inside
  };

  // Of a loop that is under way.
  struct Rounds {
    const For* loop = nullptr;
    std::int64_t next = 0, high = 0, step = 1;
    bool is_last_outside = false;
  };

  void begin_block(std::int64_t number);
  Rounds begin(const For& loop);
  bool run_round(Rounds& rounds);
  void end(const Rounds& rounds);
  void run(const Operation& operation);
  void run(const Block& block);
  void run_timed(const Operation& operation);
  void perform_timed(std::size_t call, std::int64_t begin, std::int64_t end);
  void run(const Compute& operation);
  void run(const LoadIndex& operation);
  void run(const Peer& operation);
  void run(const Load& operation);
  void run(const Store& operation);
  void run(const AwaitTurn& operation);
  void run(const Apply& operation);
  void run(const Splat& operation);
  void run(const Count& operation);
  void run(const Fold& operation);
  void run(const Any& operation);
  void run(const Move& operation);
  void run(const MoveScalar& operation);
  void run(const Reshape& operation);
  void run(const Multiply& operation);
  void run(const Strips& strips);
  void run(const For& operation);
  void run(const While& operation);
  void run(const If& operation);

  // Makes the call, or writes it down for strips.
  void call(const Call& call, const Walk& walk, PartOfStrips part = {});
  bool extend_chain(const Call& call, const PartOfStrips& part);
  StepOfChain step_of(const Apply& operation) const;
  static Call::Place place(const State& state, const Walk& walk, const Index& at);
  static void put(Call::Place& place, const State& state, const Walk& walk, const Index& at);
  void perform_strips(const Strips& strips, std::int64_t end);
  Product product_of(const Multiply& operation);
  void bring_into_arena(TileId tile);
  void multiply_in_strips(const Strips& strips);
  // Performs a product, or leaves it waiting for the terms of the next iteration.
  void multiply(const Product& product, bool joins);
  Matrix needed(const Multiply& operation, std::int64_t m, std::int64_t n) const;
  bool continues(const Product& next) const;
  void flush();
  bool lies_in_arena(const void* data) const;
  bool is_computed(const State& tile) const;
  Region region(const Box& box) const;
  void check(const Box& box) const;
  static std::int64_t next_step(const std::array<std::int64_t, 6>& steps);
  bool was_asked_for(const Region& region, std::size_t rows, std::size_t columns, State& state);
  void ask_for(const Region& region, State& state);
  // Where the rows of a tile lie in the tensor itself, if functions of rows may go there.
  bool are_rows(const Region& region, const Index& extents, const Walk& walk, TileId tile) const;
  void view(const Region* region, TileId tile);
  static bool falls_into_few_sets(const Region& region);
  void place_in_tensor(const Apply& operation);
  bool lies_by_lines(const Region& region, const Walk& walk) const;
  // Copies what lies inside between the tensor and the tile.
  void transfer(const Region& region, const Index& extents, const Walk& walk, TileId tile,
                bool stores);
  void clear(const Load& operation);
  void set_extents(const Reshape& operation);
  void write_zeros(TileId tile);
  bool leaves_zeros(const Apply& operation);
  const Tile& tile(TileId id) const { return program_.tiles[id]; }
  std::int64_t whole(ScalarId id) const { return scalars_[id].whole; }

  const Launch& launch_;
  const Program& program_;
  const Kernels& kernels_;
  std::vector<Scalar> scalars_;
  std::vector<State> tiles_;
  std::vector<Tensor> tensors_;
  std::byte* arena_;
  std::byte* scratch_;  // of products
  SharedPacks& packs_;
  TilesAhead ahead_ = {};
  std::int64_t block_ = 0;
  Rounds rounds_ = {};          // of the loop whose rounds others ask for
  bool is_last_round_ = false;  // of the innermost loop that counts
  bool is_left_out_ = false;    // the product at hand: it takes no time, which says nothing of it
  // That of an elementwise function: to make one anew takes as long as a small tile.
  Call call_;
  // Of the strips at hand: their calls, and which operations make these.
  std::vector<CallOfStrips> calls_;
  ChainSteps chains_;
  std::vector<const Operation*> operations_;
  bool records_ = false;  // calls, instead of making them
  const Operation* operation_ = nullptr;
  const Operation* last_recorded_ = nullptr;  // which made the last call, or the last step of it
  std::int64_t next_row_ = 0;                 // of the strips
  Product product_of_strips_ = {};            // its m is 0 where they have none
  double seconds_in_strips_ = 0;              // where they are timed
  const std::byte* zeros_ = nullptr;          // sums that are zeros and not written
  Product waiting_ = {};                      // its k is 0 where none waits
};

}  // namespace tilewright::cpu
