#include <algorithm>
#include <cstring>

#include "cpu/ahead.h"
#include "cpu/engine.h"
#include "cpu/engine_walk.h"
#include "cpu/layout.h"

// Functions of rows: they are called at once, or in strips for some rows at a time.
namespace tilewright::cpu {

void Engine::perform_timed(std::size_t call, std::int64_t begin, std::int64_t end) {
  bool is_made = false;
  const double seconds = timed([&] { is_made = calls_[call].perform(begin, end); });
  seconds_in_strips_ += seconds;
  if (is_made) (*launch_.profile)[operations_[call]].add(seconds);
}

void Engine::transfer(const Region& region, const Index& extents, const Walk& walk, TileId id,
                      bool stores) {
  const Tile& tile = this->tile(id);
  const State& state = tiles_[id];
  Index counts = {};
  std::int64_t inside = 0, corner = 0;  // in bytes
  for (std::size_t axis = 0; axis < tile.rank; ++axis) {
    const std::int64_t last = std::min(region.last[axis], extents[axis]);
    counts[axis] = last - region.first[axis];
    if (counts[axis] <= 0) return;
    inside += region.first[axis] * region.strides[axis];
    corner += region.first[axis] * state.strides[axis];
  }
  const int width = width_of(size_of(static_cast<DType>(tile.element)));
  const Shape shape{extent_of(counts, walk.rows), extent_of(counts, walk.columns)};
  for_outer(walk, counts, [&](const Index& at) {
    const Call::Place memory{region.data + inside + offset(at, region.strides, walk.outer),
                             stride_of(region.strides, walk.rows),
                             stride_of(region.strides, walk.columns)};
    Call::Place own = place(state, walk, at);
    own.data += corner;
    call({kernels_.copy[width], shape, {stores ? own : memory, {}, {}, stores ? memory : own}},
         walk, {.first = walk.rows == Walk::kNoAxis ? 0 : region.first[walk.rows]});
  });
}

// Zeros, for what lies outside of the tensor.
void Engine::clear(const Load& operation) {
  static constexpr std::int64_t kZero = 0;
  const Tile& tile = this->tile(operation.tile);
  const State& state = tiles_[operation.tile];
  if (!records_) {
    std::fill_n(state.data, tile.bytes, std::byte{0});
    return;
  }
  const Walk& walk = operation.walk;
  const Call::Place zero{reinterpret_cast<std::byte*>(const_cast<std::int64_t*>(&kZero))};
  call({kernels_.fill[width_of(size_of(static_cast<DType>(tile.element)))],
        {tile.shape[walk.rows], tile.shape[walk.columns]},
        {zero, {}, {}, place(state, walk, {})}},
       walk);
}

void Engine::put(Call::Place& place, const State& state, const Walk& walk, const Index& at) {
  place.data = state.data + offset(at, state.strides, walk.outer);
  place.row_stride = stride_of(state.strides, walk.rows);
  place.column_stride = stride_of(state.strides, walk.columns);
  place.is_of_strip = state.is_of_strip;
  place.is_far = state.is_far;
}

Call::Place Engine::place(const State& state, const Walk& walk, const Index& at) {
  Call::Place place;
  put(place, state, walk, at);
  return place;
}

void Engine::call(const Call& call, const Walk& walk, PartOfStrips part) {
  if (!records_) return perform(call);
  part.is_of_column = walk.rows == Walk::kNoAxis;
  calls_.emplace_back(call, part, chains_);
  operations_.push_back(operation_);
  last_recorded_ = operation_;
}

// Of a call that takes what the operation before has just computed.
bool Engine::extend_chain(const Call& call, const PartOfStrips& part) {
  if (!records_ || calls_.empty() || last_recorded_ != operation_ - 1 ||
      !calls_.back().extend(call, part, kernels_.chain)) {
    return false;
  }
  last_recorded_ = operation_;
  return true;
}

StepOfChain Engine::step_of(const Apply& operation) const {
  StepOfChain step;
  step.function = operation.function;
  step.is_kept = operation.is_kept;
  if (operation.function == Function::count) {
    step.from =
        operation.operands[0].is_tile() ? tile(operation.operands[0].tile).element : step.from;
    step.to = tile(operation.result).element;
  }
  if (operation.takes == Apply::kNone) return step;
  step.takes = operation.takes;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    step.squares = step.squares || (i != step.takes && operation.operands[i].tile ==
                                                           operation.operands[step.takes].tile);
  }
  return step;
}

// Rows that begin elsewhere and end with a vector of any instruction set.
bool Engine::are_rows(const Region& region, const Index& extents, const Walk& walk,
                      TileId id) const {
  const Tile& tile = this->tile(id);
  if (walk.columns == Walk::kNoAxis || extents[walk.columns] % kWholeVectors != 0 ||
      region.strides[walk.columns] != size_of(static_cast<DType>(tile.element))) {
    return false;
  }
  for (std::size_t axis = 0; axis < tile.rank; ++axis) {
    if (region.first[axis] != 0 || region.last[axis] < extents[axis]) return false;
  }
  return true;
}

// In a tensor, or else in the arena. Along axes on which a tile has one element it goes nowhere.
void Engine::view(const Region* region, TileId id) {
  const Tile& tile = this->tile(id);
  State& state = tiles_[id];
  state.data = region ? region->data : arena_ + tile.offset;
  state.strides = tile.strides;
  state.is_of_strip = tile.is_of_strip && region == nullptr;
  state.is_far = false;
  state.is_copy = false;
  for (std::size_t axis = 0; region && axis < tile.rank; ++axis) {
    if (tile.strides[axis] != 0) state.strides[axis] = region->strides[axis];
  }
}

void Engine::place_in_tensor(const Apply& operation) {
  const Region region = this->region(*operation.stored_to);
  const bool fits = region.exists && are_rows(region, tiles_[operation.result].extents,
                                              operation.walk, operation.result);
  view(fits ? &region : nullptr, operation.result);
  tiles_[operation.result].is_far =
      fits && launch_.far_stores.of(block_) && lies_by_lines(region, operation.walk);
}

// Whether all rows begin with a line of memory.
bool Engine::lies_by_lines(const Region& region, const Walk& walk) const {
  constexpr std::int64_t kLine = 64;
  bool all = reinterpret_cast<std::uintptr_t>(region.data) % kLine == 0 &&
             stride_of(region.strides, walk.rows) % kLine == 0;
  for (const std::size_t axis : walk.outer) all = all && region.strides[axis] % kLine == 0;
  return all;
}

// Whether 0 times its factors is 0: none is negative, infinite or no number.
bool Engine::leaves_zeros(const Apply& operation) {
  constexpr std::uint32_t kInfinity = 0x7f800000;
  const TileId id = operation.operands[1].tile;
  const std::size_t axis = contiguous_axis(tile(id));
  const std::int64_t count = axis == Walk::kNoAxis ? 1 : tiles_[id].extents[axis];
  bool all = true;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, tiles_[id].data + i * sizeof(bits), sizeof(bits));
    all = all && bits < kInfinity;
  }
  is_left_out_ = all;
  return all;
}

void Engine::run(const Apply& operation) {
  const Tile& result = tile(operation.result);
  State& target = tiles_[operation.result];
  target.extents = result.shape;
  for (const Source& operand : operation.operands) {
    if (!operand.is_tile()) continue;
    const Tile& source = tile(operand.tile);
    for (std::size_t axis = 0; axis < source.rank; ++axis) {
      const std::int64_t extent = tiles_[operand.tile].extents[axis];
      const bool stretches = source.shape[axis] == 1 && extent == 1;
      if (!stretches) target.extents[axis] = std::min(target.extents[axis], extent);
    }
  }
  if (any_empty(target.extents, result.rank)) return;
  if (operation.is_of_zeros && zeros_ == target.data) {
    if (leaves_zeros(operation)) return;
    write_zeros(operation.result);
  }
  if (operation.stored_to) place_in_tensor(operation);

  const Walk& walk = operation.walk;
  const Shape shape{extent_of(target.extents, walk.rows), extent_of(target.extents, walk.columns)};
  const Call::Function function =
      std::visit([](auto run) { return Call::Function(run); }, operation.run);
  PartOfStrips part;
  if (records_) part = {.weight = operation.weight, .step = step_of(operation)};
  Call& made = call_;
  made.function = function;
  made.shape = shape;
  const std::size_t count = operation.operands.size();
  for (std::size_t i = count; i < kResult; ++i) made.places[i] = {};
  for_outer(walk, target.extents, [&](const Index& at) {
    put(made.places[kResult], target, walk, at);
    for (std::size_t i = 0; i < count; ++i) {
      const Source& operand = operation.operands[i];
      if (operand.is_tile()) {
        put(made.places[i], tiles_[operand.tile], walk, at);
      } else {
        made.places[i] = {reinterpret_cast<std::byte*>(&scalars_[operand.scalar])};
      }
    }
    if (!records_) return perform_as_one_row(made);
    if (operation.takes == Apply::kNone || !extend_chain(made, part)) call(made, walk, part);
  });
}

void Engine::run(const Fold& operation) {
  const State& source = tiles_[operation.source];
  State& target = tiles_[operation.result];
  const bool multiplies = operation.factor != kNone;
  Index extents = source.extents;
  for (std::size_t axis = 0; multiplies && axis < kMaximumRank; ++axis) {
    extents[axis] = std::min(extents[axis], tiles_[operation.factor].extents[axis]);
  }
  target.extents = extents;
  target.extents[operation.axis] = 1;
  if (any_empty(target.extents, tile(operation.result).rank)) return;
  const Walk& walk = operation.walk;
  const Shape shape{extent_of(extents, walk.rows), extent_of(extents, walk.columns)};
  for_outer(walk, extents, [&](const Index& at) {
    if (operation.takes_from_register) {
      const Call made{
          operation.reduce, shape, {place(source, walk, at), {}, {}, place(target, walk, at)}};
      if (extend_chain(made, {.weight = 1, .step = {.squares = multiplies, .sums = true}})) return;
    }
    if (multiplies) {
      return call({kernels_.sum_of_products_in_parts,
                   shape,
                   {place(source, walk, at),
                    place(tiles_[operation.factor], walk, at),
                    {},
                    place(target, walk, at)}},
                  walk, {.weight = 1});
    }
    call({operation.reduce, shape, {place(source, walk, at), {}, {}, place(target, walk, at)}},
         walk, {.weight = operation.in_parts ? 1 : 0});
  });
}

// The calls of all rows are written down, and made strip by strip.
void Engine::run(const Strips& strips) {
  calls_.clear();
  chains_.clear();
  operations_.clear();
  calls_.reserve(strips.body.size());
  operations_.reserve(strips.body.size());
  last_recorded_ = nullptr;
  product_of_strips_ = {};
  records_ = true;
  for (const Operation& operation : strips.body) {
    operation_ = &operation;
    std::visit([this](const auto& each) { run(each); }, operation);
  }
  records_ = false;
  bool stores_far = false;
  for (CallOfStrips& each : calls_) stores_far = each.stores_far(kernels_.chain) || stores_far;
  const bool are_several = std::any_of(calls_.begin(), calls_.end(), [&](const auto& each) {
    return each.shape().rows > strips.rows;
  });
  if (are_several) plan_ahead(calls_, strips.rows, arena_, arena_ + program_.arena_bytes);
  next_row_ = 0;
  if (product_of_strips_.m > 0 && product_of_strips_.n > 0) {
    if (launch_.profile == nullptr) {
      multiply_in_strips(strips);
    } else {
      seconds_in_strips_ = 0;
      const double all = timed([&] { multiply_in_strips(strips); });
      if (product_of_strips_.k > 0) {
        (*launch_.profile)[&strips.body.front()].add(all - seconds_in_strips_);
      }
    }
  }
  perform_strips(strips, strips.all);
  if (stores_far) kernels_.end_far_stores();
}

// Those that have not been performed, as far as all of their rows lie before `end`.
void Engine::perform_strips(const Strips& strips, std::int64_t end) {
  while (next_row_ < strips.all) {
    const std::int64_t begin = next_row_, behind = std::min(begin + strips.rows, strips.all);
    if (behind > end) return;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (launch_.profile == nullptr) {
        calls_[i].perform(begin, behind);
      } else {
        perform_timed(i, begin, behind);
      }
    }
    next_row_ = behind;
  }
}

}  // namespace tilewright::cpu
