#include "cpu/arena.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "cpu/layout.h"
#include "cpu/tile_uses.h"

namespace tilewright::cpu {
namespace {

using Tiles = std::vector<bool>;  // by TileId

// Two tiles that would better lie at one place.
struct Wish {
  TileId source, result;
  std::size_t depth;  // of the loops around
};

// Which tiles may not share memory, because one is written while the other is still needed.
class Conflicts {
 public:
  explicit Conflicts(const Program& program)
      : program_(program), count_(program.tiles.size()), table_(count_ * count_, false) {
    Tiles live(count_, false);
    walk(program.body, live);
  }

  bool between(TileId a, TileId b) const { return table_[a * count_ + b]; }
  void add(TileId a, TileId b) {
    if (a == b) return;
    table_[a * count_ + b] = table_[b * count_ + a] = true;
  }
  // Copies, and results that may lie where an operand does.
  std::vector<Wish> take_wishes() { return std::move(wishes_); }

 private:
  void walk(const Block& block, Tiles& live) {
    for (auto at = block.rbegin(); at != block.rend(); ++at) {
      std::visit([&](const auto& operation) { visit(operation, live); }, *at);
    }
  }

  void visit(const If& choice, Tiles& live) {
    Tiles other = live;
    walk(choice.then, live);
    walk(choice.otherwise, other);
    join(live, other);
  }
  void visit(const Strips& strips, Tiles& live) {
    walk(strips.body, live);
    if (const auto* const product = std::get_if<Multiply>(&strips.body.front())) {
      if (records_) keep_factors(*product, strips.body);
    }
    if (records_) keep_rows_apart(strips);
    if (records_) keep_chains_apart(strips.body);
  }
  void visit(const For& loop, Tiles& live) { visit_loop(loop.body, live); }
  void visit(const While& loop, Tiles& live) { visit_loop(loop.body, live); }

  // What the next round needs at its start is needed at the end of this one.
  void visit_loop(const Block& body, Tiles& live) {
    ++depth_;
    const bool records = std::exchange(records_, false);
    Tiles start = live;
    walk(body, start);
    join(live, start);
    records_ = records;
    if (records_) {
      start = live;
      walk(body, start);
      join(live, start);
    }
    --depth_;
  }

  template <typename Simple>
  void visit(const Simple& operation, Tiles& live) {
    std::vector<TileId> reads, writes;
    TileUses{[&](TileId tile) { reads.push_back(tile); },
             [&](TileId tile) { writes.push_back(tile); }}(operation);
    for (const TileId written : writes) {
      live[written] = std::find(reads.begin(), reads.end(), written) != reads.end();
      if (records_) define(operation, written, reads, live);
    }
    for (const TileId read : reads) live[read] = true;
  }

  template <typename Simple>
  void define(const Simple& operation, TileId written, const std::vector<TileId>& reads,
              const Tiles& live) {
    for (TileId other = 0; other < count_; ++other) {
      if (live[other]) add(written, other);
    }
    for (const TileId read : reads) {
      if (may_coincide(operation) && lie_alike(program_.tiles[read], program_.tiles[written])) {
        wishes_.push_back({read, written, depth_});
      } else {
        add(written, read);
      }
    }
  }
  // The product's later rows need them while strips go over the first ones.
  void keep_factors(const Multiply& product, const Block& body) {
    const auto keep = [&](TileId written) {
      for (const TileId factor : {product.a, product.b, product.needed}) {
        if (factor != kNone) add(written, factor);
      }
    };
    for (const Operation& operation : body) {
      std::visit(TileUses{[](TileId) {}, keep}, operation);
    }
  }
  // What a strip writes lies where the next strips' rows do not: apart, or on the same rows.
  void keep_rows_apart(const Strips& strips) {
    std::vector<bool> touched(count_, false), written(count_, false);
    for (const Operation& operation : strips.body) {
      std::visit(TileUses{[&](TileId tile) { touched[tile] = true; },
                          [&](TileId tile) { touched[tile] = written[tile] = true; }},
                 operation);
    }
    for (TileId a = 0; a < count_; ++a) {
      for (TileId b = 0; written[a] && b < count_; ++b) {
        if (touched[b] && b != a) keep_rows_apart(strips, a, b);
      }
    }
  }
  void keep_rows_apart(const Strips& strips, TileId a, TileId b) {
    const Tile &x = program_.tiles[a], &y = program_.tiles[b];
    if ((x.is_of_strip && y.is_of_strip) || between(a, b)) return;
    // A strip's part of a column is written as a whole group, with rows of the next strips.
    const bool of_column = walk_of(x).columns == strips.axis && strips.rows % kGroup != 0;
    if (x.is_of_strip || y.is_of_strip || of_column || !lie_alike(x, y)) return add(a, b);
    wishes_.push_back({a, b, depth_});
  }
  // A chain writes its first columns before it reads the next ones.
  void keep_chains_apart(const Block& body) {
    std::vector<TileId> touched;
    for (const Operation& operation : body) {
      const auto* const apply = std::get_if<Apply>(&operation);
      const auto* const fold = std::get_if<Fold>(&operation);
      if (fold && fold->takes_from_register) {
        for (const TileId tile : touched) keep_columns_apart(fold->result, tile);
      }
      if (apply == nullptr || apply->takes == Apply::kNone) touched.clear();
      if (apply == nullptr) continue;
      for (const Source& operand : apply->operands) {
        if (operand.is_tile()) touched.push_back(operand.tile);
      }
      for (const TileId tile : touched) keep_columns_apart(apply->result, tile);
      touched.push_back(apply->result);
    }
  }
  void keep_columns_apart(TileId a, TileId b) {
    if (a == b || between(a, b)) return;
    if (!lie_alike(program_.tiles[a], program_.tiles[b])) return add(a, b);
    wishes_.push_back({a, b, depth_});
  }
  static bool may_coincide(const Apply&) { return true; }
  static bool may_coincide(const Move& move) { return move.is_copy; }
  static bool may_coincide(const Reshape& reshape) { return reshape.is_copy; }
  static bool may_coincide(const auto&) { return false; }

  static void join(Tiles& into, const Tiles& from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = into[i] || from[i];
  }

  const Program& program_;
  const std::size_t count_;
  std::vector<bool> table_;
  std::vector<Wish> wishes_;
  std::size_t depth_ = 0;
  bool records_ = true;
};

// Tiles that share one place.
class Groups {
 public:
  explicit Groups(std::size_t count) : members_(count), group_(count) {
    std::iota(group_.begin(), group_.end(), TileId{0});
    for (TileId tile = 0; tile < count; ++tile) members_[tile] = {tile};
  }
  TileId of(TileId tile) const { return group_[tile]; }
  const std::vector<TileId>& members(TileId group) const { return members_[group]; }
  std::int64_t bytes(const Program& program, TileId group) const {
    std::int64_t most = 0;
    for (const TileId member : members_[group]) {
      most = std::max(most, program.tiles[member].bytes);
    }
    return most;
  }
  bool conflict(const Conflicts& conflicts, TileId a, TileId b) const {
    for (const TileId x : members_[group_[a]]) {
      for (const TileId y : members_[group_[b]]) {
        if (conflicts.between(x, y)) return true;
      }
    }
    return false;
  }
  void join(TileId a, TileId b) {
    const TileId into = group_[a], from = group_[b];
    for (const TileId tile : members_[from]) group_[tile] = into;
    members_[into].insert(members_[into].end(), members_[from].begin(), members_[from].end());
    members_[from].clear();
  }

 private:
  std::vector<std::vector<TileId>> members_;
  std::vector<TileId> group_;
};

// Innermost copies first: they run most often.
Groups join_tiles(const Program& program, Conflicts& conflicts) {
  Groups groups(program.tiles.size());
  std::vector<Wish> wishes = conflicts.take_wishes();
  std::stable_sort(wishes.begin(), wishes.end(),
                   [](const Wish& a, const Wish& b) { return a.depth > b.depth; });
  for (const Wish& wish : wishes) {
    const bool together = groups.of(wish.source) == groups.of(wish.result);
    if (!together && !groups.conflict(conflicts, wish.source, wish.result)) {
      groups.join(wish.source, wish.result);
    }
  }
  // What lies apart must not overlap either.
  for (const Wish& wish : wishes) {
    if (groups.of(wish.source) != groups.of(wish.result)) conflicts.add(wish.source, wish.result);
  }
  return groups;
}

// The largest first, each as low as those that it conflicts with allow.
std::int64_t place_groups(Program& program, const Groups& groups, const Conflicts& conflicts) {
  std::vector<TileId> order;
  for (TileId tile = 0; tile < program.tiles.size(); ++tile) {
    if (groups.of(tile) == tile) order.push_back(tile);
  }
  std::stable_sort(order.begin(), order.end(), [&](TileId a, TileId b) {
    return groups.bytes(program, a) > groups.bytes(program, b);
  });
  std::int64_t end = 0;
  std::vector<TileId> placed;
  for (const TileId group : order) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const TileId other : placed) {
      if (!groups.conflict(conflicts, group, other)) continue;
      const std::int64_t first = program.tiles[other].offset;
      taken.emplace_back(first, first + groups.bytes(program, other));
    }
    std::sort(taken.begin(), taken.end());
    std::int64_t offset = 0;
    for (const auto& [first, last] : taken) {
      if (offset + groups.bytes(program, group) <= first) break;
      offset = std::max(offset, last);
    }
    for (const TileId member : groups.members(group)) program.tiles[member].offset = offset;
    end = std::max(end, offset + groups.bytes(program, group));
    placed.push_back(group);
  }
  return end;
}

// Copies between tiles of one place move nothing; and what products need.
class Finish {
 public:
  Finish(Program& program, const Kernels& kernels) : program_(program), kernels_(kernels) {}
  void walk(Block& block) {
    for (Operation& operation : block) {
      std::visit([this](auto& each) { visit(each); }, operation);
    }
  }

 private:
  bool coincide(TileId a, TileId b) const {
    return program_.tiles[a].offset == program_.tiles[b].offset;
  }
  void visit(Move& move) { move.is_done = move.is_copy && coincide(move.source, move.result); }
  void visit(Reshape& reshape) {
    reshape.is_done = reshape.is_copy && coincide(reshape.source, reshape.result);
  }
  void visit(Multiply& product) { make_room(product, 0); }
  void make_room(const Multiply& product, std::int64_t terms) {
    const Tile &a = program_.tiles[product.a], &b = program_.tiles[product.b];
    const std::int64_t bytes = kernels_.product_scratch(
        a.shape[product.a_transposed ? 1 : 0], b.shape[product.b_transposed ? 0 : 1],
        std::max(terms, a.shape[product.a_transposed ? 0 : 1]), product.element);
    program_.scratch_bytes = std::max(program_.scratch_bytes, bytes);
  }
  void visit(For& loop) {
    walk(loop.body);
    Multiply* const product = only_product(loop.body);
    if (product == nullptr || !product->accumulates) return;
    loop.joins = product->joins = true;
    make_room(*product, kJoinedTerms);
  }
  // Where a body only loads what it multiplies, and where it lies.
  static Multiply* only_product(Block& body) {
    Multiply* found = nullptr;
    for (Operation& operation : body) {
      auto* const product = std::get_if<Multiply>(&operation);
      const auto* const load = std::get_if<Load>(&operation);
      const auto* const move = std::get_if<Move>(&operation);
      const bool is_of_scalars = std::holds_alternative<Compute>(operation) ||
                                 std::holds_alternative<MoveScalar>(operation);
      const bool moves_nothing = (load && load->in_place) || (move && move->is_done);
      if (product && found == nullptr) {
        found = product;
      } else if (!is_of_scalars && !moves_nothing) {
        return nullptr;
      }
    }
    return found;
  }
  void visit(Strips& strips) { walk(strips.body); }
  void visit(While& loop) { walk(loop.body); }
  void visit(If& choice) {
    walk(choice.then);
    walk(choice.otherwise);
  }
  void visit(auto&) {}

  Program& program_;
  const Kernels& kernels_;
};

}  // namespace

void place_tiles(Program& program, const Kernels& kernels) {
  Conflicts conflicts(program);
  const Groups groups = join_tiles(program, conflicts);
  // Functions read whole groups, of a strip's column too.
  constexpr std::int64_t kGroupBytes = 8 * kGroup;
  program.arena_bytes = place_groups(program, groups, conflicts) + kGroupBytes;
  Finish(program, kernels).walk(program.body);
}

}  // namespace tilewright::cpu
