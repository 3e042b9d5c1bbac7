#include "cpu/engine.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "cpu/engine_walk.h"
#include "cpu/scalars.h"
#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::cpu {
namespace {

std::string text_of(const std::vector<std::int64_t>& numbers) { return ir::shape_text(numbers); }

[[noreturn]] void refuse_element(SourceLocation where, const char* operation,
                                 const TensorArgument& tensor,
                                 const std::vector<std::int64_t>& at) {
  Diagnostic(where, std::string(operation) + ": element " + text_of(at) + " is outside " +
                        tensor.name + ", whose shape is " + text_of(tensor.shape))
      .token(tensor.name)
      .fix("ask first whether it lies inside: when(index >= 0 && index < extent)")
      .raise();
}

}  // namespace

Engine::Engine(const Launch& launch, std::byte* arena, std::byte* scratch, SharedPacks& packs)
    : launch_(launch),
      program_(*launch.program),
      kernels_(*launch.kernels),
      scalars_(launch.scalars),
      tiles_(program_.tiles.size()),
      tensors_(program_.tensors),
      arena_(arena),
      scratch_(scratch),
      packs_(packs) {
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    tiles_[i].data = arena_ + program_.tiles[i].offset;
    tiles_[i].strides = program_.tiles[i].strides;
    tiles_[i].is_of_strip = program_.tiles[i].is_of_strip;
  }
  for (std::size_t i = 0; i < launch.arguments->tensors.size(); ++i) {
    tensors_[i] = {&launch.arguments->tensors[i], launch.arguments->tensors[i].data};
  }
}

void Engine::begin_block(std::int64_t number) {
  block_ = number;
  zeros_ = nullptr;
  std::int64_t rest = number;
  for (std::size_t axis = 0; axis < program_.grid.size(); ++axis) {
    scalars_[program_.grid[axis]].whole = rest % launch_.grid[axis];
    rest /= launch_.grid[axis];
  }
}

double Engine::operations(std::int64_t number, const std::vector<const Operation*>& scalars,
                          const std::vector<const For*>& loops) {
  begin_block(number);
  for (const Operation* const operation : scalars) {
    std::visit([this](const auto& each) { run(each); }, *operation);
  }
  double count = 0;
  for (const For* const loop : loops) {
    const double length =
        static_cast<double>(whole(loop->high)) - static_cast<double>(whole(loop->low));
    const auto step = static_cast<double>(std::max<std::int64_t>(whole(loop->step), 1));
    count += std::max(length, 0.0) / step * static_cast<double>(loop->body.size());
  }
  return count;
}

void Engine::run_block(std::int64_t number) {
  begin_block(number);
  if (launch_.turns == nullptr) return run(program_.body);
  // Also where the block fails: others wait for its turn to end.
  struct End {
    Turns* turns;
    std::int64_t block;
    ~End() { turns->end(block); }
  } end{launch_.turns, number};
  run(program_.body);
}

void Engine::begin_rounds(std::int64_t number, const For& loop) {
  begin_block(number);
  for (const Operation& operation : program_.body) {
    if (std::get_if<For>(&operation) == &loop) break;
    run(operation);
  }
  rounds_ = begin(loop);
  run_round();
}

bool Engine::run_round() { return run_round(rounds_); }

void Engine::end_rounds() {
  end(rounds_);
  bool is_behind = false;
  for (const Operation& operation : program_.body) {
    if (is_behind) run(operation);
    is_behind = is_behind || std::get_if<For>(&operation) == rounds_.loop;
  }
}

bool Engine::is_beside(const Engine& other) const {
  const Block& body = rounds_.loop->body;
  return std::any_of(body.begin(), body.end(), [&](const Operation& operation) {
    const Load* const load = std::get_if<Load>(&operation);
    if (load == nullptr || !load->in_place) return false;
    const State &own = tiles_[load->tile], &theirs = other.tiles_[load->tile];
    if (own.is_for_many_rows || lies_in_arena(own.data)) return false;
    const auto at = reinterpret_cast<std::uintptr_t>(own.data),
               there = reinterpret_cast<std::uintptr_t>(theirs.data);
    const std::uintptr_t apart = std::max(at, there) - std::min(at, there);
    return apart == 0 || (apart < kPage && own.strides[0] >= kPage);
  });
}

void Engine::run(const Operation& operation) {
  if (launch_.profile != nullptr) {
    run_timed(operation);
  } else {
    std::visit([this](const auto& each) { run(each); }, operation);
  }
}

void Engine::run(const Block& block) {
  for (const Operation& operation : block) run(operation);
}

void Engine::run_timed(const Operation& operation) {
  is_left_out_ = false;
  const double seconds =
      timed([&] { std::visit([this](const auto& each) { run(each); }, operation); });
  if (!is_left_out_) (*launch_.profile)[&operation].add(seconds);
  is_left_out_ = false;
}

void Engine::run(const Compute& operation) {
  scalars_[operation.result] = evaluate(operation, scalars_.data());
}

void Engine::run(const MoveScalar& operation) {
  scalars_[operation.result] = scalars_[operation.source];
}

void Engine::run(const LoadIndex& operation) {
  const Tensor& tensor = tensors_[operation.tensor];
  const TensorArgument& argument = *tensor.argument;
  std::vector<std::int64_t> at;
  std::int64_t element = 0;
  bool exists = true;
  for (std::size_t axis = 0; axis < operation.indices.size(); ++axis) {
    at.push_back(whole(operation.indices[axis]));
    exists = exists && at[axis] >= 0 && at[axis] < argument.shape[axis];
    element += at[axis] * argument.strides[axis];
  }
  if (!exists) refuse_element(operation.where, "load_index", argument, at);
  const std::byte* const place = tensor.data + element * size_of(argument.dtype);
  if (operation.claim.counted) {
    analysis::LoadedIndex index{argument.name, std::move(at), place, argument.strides[0]};
    if (operation.at_most != kNone) index.at_most = whole(operation.at_most);
    if (const std::string fault = analysis::describe_fault(operation.claim, index);
        !fault.empty()) {
      Diagnostic(operation.where, "load_index: " + fault)
          .fix(analysis::fix_of(operation.claim, index))
          .raise();
    }
  }
  scalars_[operation.result].whole = to_integer(argument.dtype, place);
}

void Engine::run(const Peer& operation) {
  Tensor tensor = tensors_[operation.tensor];
  const std::int64_t rank = whole(operation.rank);
  if (rank < 0 || rank >= launch_.arguments->ranks) {
    Diagnostic(operation.where, "peer: rank " + std::to_string(rank) + " of " +
                                    std::to_string(launch_.arguments->ranks) + ", for " +
                                    tensor.argument->name)
        .fix("ranks count from 0 to kernel.ranks() - 1")
        .raise();
  }
  const std::vector<std::byte*>& peers = tensor.argument->peers;
  if (!peers.empty()) tensor.data = peers[static_cast<std::size_t>(rank)];
  tensors_[operation.result] = tensor;
}

void Engine::run(const AwaitTurn&) {
  if (launch_.turns != nullptr) launch_.turns->await(block_);
}

void Engine::check(const Box& box) const {
  const TensorArgument& tensor = *tensors_[box.tensor].argument;
  for (std::size_t i = 0; i < box.checks.size(); ++i) {
    const analysis::AxisCheck& check = box.checks[i];
    const std::string fault = analysis::describe_fault(check, whole(box.starts[check.axis]),
                                                       whole(box.limits[check.axis]),
                                                       tensor.shape[check.axis], tensor.name);
    if (fault.empty()) continue;
    Diagnostic diagnostic(box.where, fault);
    diagnostic.token(tensor.name);
    if (box.sources[i] != kNone) {
      diagnostic.note(launch_.where, "it is computed from " +
                                         std::to_string(whole(box.sources[i])) +
                                         ", which is loaded, or which the launch gives");
    }
    diagnostic
        .fix(check.size == 0
                 ? "ask first whether it lies inside: when(index >= 0 && index < extent)"
                 : "keep blocks inside of the tensor, or ask first with when")
        .raise();
  }
}

Engine::Region Engine::region(const Box& box) const {
  if (!box.checks.empty()) check(box);
  const Tensor& tensor = tensors_[box.tensor];
  const TensorArgument& argument = *tensor.argument;
  const std::int64_t bytes = size_of(argument.dtype);
  Region region;
  region.exists = true;
  std::int64_t origin = 0;
  std::size_t axis = 0;
  for (std::size_t i = 0; i < box.sizes.size(); ++i) {
    const std::int64_t start = whole(box.starts[i]), limit = whole(box.limits[i]);
    const std::int64_t extent = argument.shape[i], stride = argument.strides[i] * bytes;
    origin += start * stride;
    if (box.sizes[i] == 0) {
      region.exists = region.exists && start < std::min(limit, extent);
      continue;
    }
    region.strides[axis] = stride;
    region.extents[axis] = std::clamp<std::int64_t>(limit - start, 0, box.sizes[i]);
    region.first[axis] = std::max<std::int64_t>(0, -start);
    region.last[axis] = std::min(region.extents[axis], extent - start);
    ++axis;
  }
  if (!region.exists) region.extents = {};
  region.data = tensor.data + origin;
  return region;
}

// How far the next tile lies behind the last one, or 0 where the steps do not tell: loops within
// loops come back to the same few of them.
std::int64_t Engine::next_step(const std::array<std::int64_t, 6>& steps) {
  if (steps[0] == steps[1] && steps[0] != 0) return steps[0];
  for (std::size_t period = 2; period + 1 < steps.size(); ++period) {
    if (steps[0] == steps[period] && steps[1] == steps[period + 1]) return steps[period - 1];
  }
  return 0;
}

// Products ask for the next tile meanwhile, if steps before tell where it lies. Whether they have
// asked for all of this one.
bool Engine::was_asked_for(const Region& region, std::size_t rows, std::size_t columns,
                           State& state) {
  const auto* const data = reinterpret_cast<const char*>(region.data);
  // Those of other instruction sets and elements ask for none.
  const bool is_left =
      std::any_of(ahead_.tiles, ahead_.tiles + ahead_.count, [&](const TilesAhead::Rows& left) {
        return left.data >= data && left.data < data + region.extents[rows] * region.strides[rows];
      });
  const bool was_foreseen = state.foreseen == region.data;
  std::copy_backward(state.steps.begin(), state.steps.end() - 1, state.steps.end());
  state.steps[0] = state.last ? region.data - state.last : 0;
  state.last = region.data;
  const std::int64_t step = next_step(state.steps);
  state.foreseen = step != 0 ? region.data + step : nullptr;
  if (step != 0) {
    if (ahead_.count == TilesAhead::kMost) {
      std::copy(ahead_.tiles + 1, ahead_.tiles + ahead_.count, ahead_.tiles);
      ahead_.at = 0;
      --ahead_.count;
    }
    ahead_.tiles[ahead_.count++] = {data + step, region.strides[rows],
                                    region.extents[columns] * region.strides[columns],
                                    region.extents[rows]};
  }
  return was_foreseen && !is_left;
}

// All lines of memory at once. Products go over short pieces of rows, of which the machine foresees
// little.
void Engine::ask_for(const Region& region, State& state) {
  constexpr std::int64_t kLine = 64;
  const std::size_t columns = region.strides[1] < region.strides[0] ? 1 : 0;
  if (was_asked_for(region, 1 - columns, columns, state)) return;
  const std::int64_t bytes = region.extents[columns] * region.strides[columns];
  for (std::int64_t row = 0; row < region.extents[1 - columns]; ++row) {
    const std::byte* const line = region.data + row * region.strides[1 - columns];
    for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(line + at);
  }
}

// Whether the first-level cache cannot hold the rows that a product goes over at once: of a way of
// 4 KB they take every 1 KB or less.
bool Engine::falls_into_few_sets(const Region& region) {
  constexpr std::int64_t kStep = 1024, kFew = 8;
  return region.strides[0] % kStep == 0 && region.extents[0] > kFew;
}

void Engine::run(const Load& operation) {
  const Region region = this->region(operation.box);
  const Tile& tile = this->tile(operation.tile);
  State& state = tiles_[operation.tile];
  if (tile.rank == 0 && !region.exists) {
    std::vector<std::int64_t> at;
    for (const ScalarId start : operation.box.starts) at.push_back(whole(start));
    refuse_element(operation.box.where, "load", *tensors_[operation.box.tensor].argument, at);
  }
  state.extents = region.extents;
  bool inside = true;
  for (std::size_t axis = 0; axis < tile.rank; ++axis) {
    inside = inside && region.first[axis] == 0 && region.last[axis] == region.extents[axis];
  }
  if (operation.summed != kNone) {
    const bool fits = are_rows(region, region.extents, operation.walk, operation.tile);
    for (const TileId each : {operation.tile, operation.summed}) {
      view(fits ? &region : nullptr, each);
    }
    if (fits) return;
  }
  if (operation.in_place) {
    const bool copies = inside && operation.is_read_often && falls_into_few_sets(region);
    view(inside && !copies ? &region : nullptr, operation.tile);
    state.is_copy = copies;
    if (copies) return transfer(region, region.extents, operation.walk, operation.tile, false);
    if (inside && launch_.exceeds_cache && state.is_for_many_rows && !packs_.have(region.data)) {
      ask_for(region, state);
    }
    if (inside) return;
  }
  if (operation.in_place_by_rows) {
    const bool fits = are_rows(region, region.extents, operation.walk, operation.tile);
    view(fits ? &region : nullptr, operation.tile);
    if (fits) return;
  }
  if (!inside) clear(operation);
  transfer(region, region.extents, operation.walk, operation.tile, /*stores=*/false);
}

void Engine::run(const Store& operation) {
  const Region region = this->region(operation.box);
  if (!region.exists) return;
  const State& state = tiles_[operation.tile];
  if (state.data == region.data) return;  // it was computed there
  Index extents = region.extents;
  for (std::size_t axis = 0; axis < kMaximumRank; ++axis) {
    extents[axis] = std::min(extents[axis], state.extents[axis]);
  }
  transfer(region, extents, operation.walk, operation.tile, /*stores=*/true);
}

void Engine::run(const Splat& operation) {
  const Tile& result = tile(operation.result);
  State& target = tiles_[operation.result];
  target.extents = result.shape;
  const auto dtype = static_cast<DType>(result.element);
  const Scalar& scalar = scalars_[operation.scalar];
  if (is_float(dtype)) {
    from_float(dtype, &scalar.real, target.data, 1);
  } else if (dtype == DType::boolean) {
    *target.data = static_cast<std::byte>(scalar.whole);
  } else {
    from_integer(dtype, scalar.whole, target.data);
  }
}

void Engine::run(const Count& operation) {
  const Tile& result = tile(operation.result);
  State& target = tiles_[operation.result];
  target.extents = result.shape;
  kernels_.iota_columns({1, result.shape[operation.axis]}, {target.data, 0});
}

void Engine::run(const Any& operation) {
  const State& source = tiles_[operation.source];
  bool found = false;
  if (!any_empty(source.extents, tile(operation.source).rank)) {
    const Walk& walk = operation.walk;
    const Shape shape{extent_of(source.extents, walk.rows),
                      extent_of(source.extents, walk.columns)};
    for_outer(walk, source.extents, [&](const Index& at) {
      const Operand from{source.data + offset(at, source.strides, walk.outer),
                         stride_of(source.strides, walk.rows), false};
      found = found || kernels_.any(shape, from);
    });
  }
  scalars_[operation.result].whole = found ? 1 : 0;
}

void Engine::run(const Move& operation) {
  const State& source = tiles_[operation.source];
  const Tile& result = tile(operation.result);
  State& target = tiles_[operation.result];
  Index strides = {}, extents = {};  // the source's strides, by the result's axes
  std::int64_t origin = 0;
  for (std::size_t axis = 0; axis < result.rank; ++axis) {
    const auto from = static_cast<std::size_t>(operation.axes[axis]);
    strides[axis] = source.strides[from];
    origin += operation.offsets[axis] * source.strides[from];
    extents[axis] = std::clamp<std::int64_t>(source.extents[from] - operation.offsets[axis], 0,
                                             result.shape[axis]);
  }
  target.extents = extents;
  if (operation.is_factor) {
    const bool is_view = !lies_in_arena(source.data);
    target.data = is_view ? source.data + origin : arena_ + result.offset;
    target.strides = is_view ? strides : result.strides;
    target.is_copy = source.is_copy;
    if (is_view) return;
  }
  const bool is_there = operation.is_copy && source.data == target.data;
  if (operation.is_done || is_there || any_empty(extents, result.rank)) return;
  static constexpr float kZero = 0;
  if (operation.may_wait && zeros_ == nullptr &&
      std::memcmp(source.data, &kZero, sizeof(kZero)) == 0) {
    zeros_ = target.data;
    is_left_out_ = true;
    return;
  }
  const Walk& walk = operation.walk;
  const Shape shape{extent_of(extents, walk.rows), extent_of(extents, walk.columns)};
  const int width = width_of(size_of(static_cast<DType>(result.element)));
  for_outer(walk, extents, [&](const Index& at) {
    kernels_.copy[width](
        shape,
        {source.data + origin + offset(at, strides, walk.outer), stride_of(strides, walk.rows),
         stride_of(strides, walk.columns)},
        {target.data + offset(at, target.strides, walk.outer), stride_of(target.strides, walk.rows),
         stride_of(target.strides, walk.columns)});
  });
}

void Engine::run(const For& operation) {
  Rounds rounds = begin(operation);
  while (run_round(rounds)) {
  }
  end(rounds);
}

Engine::Rounds Engine::begin(const For& loop) {
  const Rounds rounds = {&loop, whole(loop.low), whole(loop.high), whole(loop.step),
                         is_last_round_};
  if (rounds.step <= 0) {
    Diagnostic(loop.where, "a loop's step is " + std::to_string(rounds.step))
        .fix("use a step of at least 1")
        .raise();
  }
  if (loop.zeros != kNone && rounds.next >= rounds.high) write_zeros(loop.zeros);
  return rounds;
}

bool Engine::run_round(Rounds& rounds) {
  if (rounds.next >= rounds.high) return false;
  scalars_[rounds.loop->index].whole = rounds.next;
  is_last_round_ = rounds.step >= rounds.high - rounds.next;
  rounds.next += rounds.step;
  run(rounds.loop->body);
  return true;
}

void Engine::end(const Rounds& rounds) {
  is_last_round_ = rounds.is_last_outside;
  const For& loop = *rounds.loop;
  // Where nobody reads its last product. Those of a loop around it may still wait.
  if (loop.zeros != kNone && zeros_ == tiles_[loop.zeros].data) zeros_ = nullptr;
  if (loop.joins) flush();
}

void Engine::write_zeros(TileId id) {
  if (zeros_ != tiles_[id].data) return;
  std::fill_n(tiles_[id].data, tile(id).bytes, std::byte{0});
  zeros_ = nullptr;
}

void Engine::run(const While& operation) {
  for (std::int64_t rounds = 0; whole(operation.condition) != 0; ++rounds) {
    if (rounds == launch_.while_limit) {
      Diagnostic(operation.where, "the loop has not ended after " + std::to_string(rounds) +
                                      " rounds, the limit of the target cpu")
          .fix("let its condition become false")
          .raise();
    }
    run(operation.body);
  }
}

void Engine::run(const If& operation) {
  run(whole(operation.condition) != 0 ? operation.then : operation.otherwise);
}

// How much exists of the axes that a reshape makes of others: of these the first alone may be cut,
// and where whole rows of the new ones come of it.
void Engine::set_extents(const Reshape& operation) {
  const Tile &source = tile(operation.source), &result = tile(operation.result);
  const Index from = tiles_[operation.source].extents;
  Index& to = tiles_[operation.result].extents;
  to = result.shape;
  const bool is_empty = any_empty(from, source.rank);
  for (const ir::ReshapedAxes& axes : operation.axes) {
    std::int64_t count = from[axes.from[0]], row = 1;
    bool cut = false;
    for (std::size_t i = 1; i < axes.from.size(); ++i) {
      cut = cut || from[axes.from[i]] != source.shape[axes.from[i]];
      count *= source.shape[axes.from[i]];
    }
    for (std::size_t i = 1; i < axes.to.size(); ++i) row *= result.shape[axes.to[i]];
    if (!cut && count % row == 0) {
      to[axes.to[0]] = count / row;
      continue;
    }
    if (is_empty) {
      to[axes.to[0]] = 0;
      continue;
    }
    const auto text = [](const Tile& tile, const Index& sizes) {
      return text_of({sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(tile.rank)});
    };
    Diagnostic(operation.where, "reshape: of a tile of shape " + text(source, source.shape) +
                                    " only " + text(source, from) +
                                    " exists, which is no part of " + text(result, result.shape))
        .token("reshape")
        .fix("split a cut axis so that the parts exist whole, or address the tensor by its axes")
        .raise();
  }
  if (is_empty && !any_empty(to, result.rank)) to = {};
}

void Engine::run(const Reshape& operation) {
  set_extents(operation);
  if (operation.is_done) return;
  const Tile &source = tile(operation.source), &result = tile(operation.result);
  const std::int64_t bytes = operation.run * size_of(static_cast<DType>(source.element));
  // Steps on by a run: it divides the last axis of more than one element.
  const auto step = [&](const Tile& tile, Index& at) {
    std::int64_t more = operation.run;
    for (std::size_t axis = tile.rank; axis-- > 0;) {
      if (tile.shape[axis] == 1) continue;
      at[axis] += more;
      if (at[axis] < tile.shape[axis]) return true;
      at[axis] = 0;
      more = 1;
    }
    return false;
  };
  const auto place = [](const Tile& tile, const Index& at) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < tile.rank; ++axis) place += at[axis] * tile.strides[axis];
    return place;
  };
  Index from = {}, to = {};
  bool more = true;
  while (more) {
    std::copy_n(tiles_[operation.source].data + place(source, from), bytes,
                tiles_[operation.result].data + place(result, to));
    more = step(source, from);
    step(result, to);
  }
}

}  // namespace tilewright::cpu
