#include "cpu/strips.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/layout.h"
#include "cpu/tile_uses.h"

namespace tilewright::cpu {
namespace {

// So many bytes of a tensor are a strip, beside which the next one comes into the first-level
// cache. Functions of a column take as long to start as to go over many rows: for each few of them,
// or less, a strip has half as much again. Where no tensor is read or written, a strip is as large
// as any: half of the first-level cache.
constexpr std::int64_t kStripBytes = 8 << 10, kLargestStripBytes = 16 << 10;
constexpr std::int64_t kColumnFunctions = 3;
// The rows that functions go over.
struct Rows {
  std::size_t rank, axis;
  std::int64_t count;
  friend bool operator==(const Rows&, const Rows&) = default;
};

// Of a tile of rows and columns alone.
std::optional<Rows> rows_of(const Tile& tile) {
  const Walk walk = walk_of(tile);
  if (walk.rows == Walk::kNoAxis || !walk.outer.empty()) return std::nullopt;
  return Rows{tile.rank, walk.rows, tile.shape[walk.rows]};
}

bool is_column(const Tile& tile, const Rows& rows) {
  const Walk walk = walk_of(tile);
  return tile.rank == rows.rank && tile.shape[rows.axis] == rows.count &&
         walk.rows == Walk::kNoAxis && walk.columns == rows.axis;
}

// Operations one behind the other that go over the same rows, as far as they come.
class Run {
 public:
  Run(const Program& program, Rows rows)
      : program_(program),
        rows_(rows),
        written_(program.tiles.size(), false),
        read_behind_(program.tiles.size(), false),
        written_behind_(program.tiles.size(), false) {}

  // Where an operation comes that goes over the rows, and where one that does not.
  enum class Place { within, before, behind };
  // Takes as many operations as go over the rows by themselves and by what is taken with them, or
  // one that can as well come before or behind the run: 0 ends it.
  std::size_t take(const Block& block, std::size_t at, Place& place) {
    const Operation& operation = block[at];
    place = Place::within;
    if (needs_what_is_behind(operation)) {
      place = Place::behind;
      return can_come_behind(operation) ? add_behind(operation), 1 : 0;
    }
    if (const auto* const apply = std::get_if<Apply>(&operation); apply && apply->stored_to) {
      // Only together: what is computed where it is stored need not be copied.
      const bool both = at + 1 < block.size() && goes(operation) && goes(block[at + 1]) &&
                        !needs_what_is_behind(block[at + 1]);
      return both ? add(operation), add(block[at + 1]), 2 : 0;
    }
    if (goes(operation)) return add(operation), 1;
    if (can_come_before(operation)) return place = Place::before, 1;
    place = Place::behind;
    return can_come_behind(operation) ? add_behind(operation), 1 : 0;
  }

 private:
  const Tile& tile(TileId id) const { return program_.tiles[id]; }
  bool has_rows(TileId id) const { return rows_of(tile(id)) == rows_; }
  bool has_rows_or_column(TileId id) const { return has_rows(id) || is_column(tile(id), rows_); }

  bool goes(const Operation& operation) const {
    return std::visit([this](const auto& each) { return goes_over_rows(each); }, operation);
  }
  // What no store changes, and nobody takes for a product.
  bool goes_over_rows(const Load& load) const {
    return load.in_place_by_rows && has_rows(load.tile);
  }
  // Stores to one tensor stay in their order.
  bool goes_over_rows(const Store& store) const {
    return has_rows(store.tile) &&
           std::find(stored_.begin(), stored_.end(), store.box.tensor) == stored_.end();
  }
  bool goes_over_rows(const Apply& apply) const {
    if (!(apply.stored_to ? has_rows(apply.result) : has_rows_or_column(apply.result))) {
      return false;
    }
    return std::all_of(apply.operands.begin(), apply.operands.end(), [&](const Source& operand) {
      if (!operand.is_tile()) return true;
      const Tile& source = tile(operand.tile);
      return source.shape[rows_.axis] == rows_.count || source.shape[rows_.axis] == 1;
    });
  }
  bool goes_over_rows(const Fold& fold) const {
    return fold.along_row && fold.axis != rows_.axis && has_rows(fold.source) &&
           (fold.factor == kNone || has_rows(fold.factor)) && is_column(tile(fold.result), rows_);
  }
  bool goes_over_rows(const auto&) const { return false; }

  void add(const Operation& operation) {
    if (const TileId written = written_by(operation); written != kNone) written_[written] = true;
    if (const auto* const store = std::get_if<Store>(&operation)) {
      stored_.push_back(store->box.tensor);
    }
  }

  // It neither needs what the run makes nor changes what the run needs.
  bool can_come_before(const Operation& operation) const {
    if (std::holds_alternative<Compute>(operation)) return true;
    const auto* const load = std::get_if<Load>(&operation);
    const bool is_of_tiles =
        std::holds_alternative<Splat>(operation) || std::holds_alternative<Count>(operation) ||
        std::holds_alternative<Apply>(operation) || std::holds_alternative<Reshape>(operation) ||
        (load && load->is_constant);
    if (!is_of_tiles) return false;
    const std::vector<TileId> tiles = tiles_of(operation);
    return std::none_of(tiles.begin(), tiles.end(), [&](TileId tile) { return written_[tile]; });
  }

  // What the run makes of a column, for a store: nobody in the run needs it.
  bool can_come_behind(const Operation& operation) const {
    if (const auto* const reshape = std::get_if<Reshape>(&operation)) {
      return is_column(tile(reshape->source), rows_);
    }
    const auto* const store = std::get_if<Store>(&operation);
    return store && written_behind_[store->tile] &&
           std::find(stored_.begin(), stored_.end(), store->box.tensor) == stored_.end();
  }
  void add_behind(const Operation& operation) {
    std::visit(TileUses{[&](TileId tile) { read_behind_[tile] = true; },
                        [&](TileId tile) { written_behind_[tile] = true; }},
               operation);
    if (const auto* const store = std::get_if<Store>(&operation)) {
      stored_.push_back(store->box.tensor);
    }
  }
  // Or changes what is needed there.
  bool needs_what_is_behind(const Operation& operation) const {
    bool needs = false;
    std::visit(TileUses{[&](TileId tile) { needs = needs || written_behind_[tile]; },
                        [&](TileId tile) {
                          needs = needs || written_behind_[tile] || read_behind_[tile];
                        }},
               operation);
    return needs;
  }

  const Program& program_;
  const Rows rows_;
  std::vector<bool> written_, read_behind_, written_behind_;
  std::vector<TensorId> stored_;
};

class Making {
 public:
  explicit Making(Program& program) : program_(program), uses_(program.tiles.size(), 0) {
    count_uses(program.body);
  }

  void walk(Block& block) {
    Block made;
    for (std::size_t at = 0; at < block.size();) {
      std::visit([this](auto& each) { visit(each); }, block[at]);
      at = make(block, at, made);
    }
    block = std::move(made);
  }

 private:
  void visit(For& loop) { walk(loop.body); }
  void visit(While& loop) { walk(loop.body); }
  void visit(If& choice) {
    walk(choice.then);
    walk(choice.otherwise);
  }
  void visit(auto&) {}

  void count_uses(const Block& block) {
    for (const Operation& operation : block) {
      for (const TileId tile : tiles_of(operation)) ++uses_[tile];
      if (const auto* const loop = std::get_if<For>(&operation)) count_uses(loop->body);
      if (const auto* const loop = std::get_if<While>(&operation)) count_uses(loop->body);
      if (const auto* const choice = std::get_if<If>(&operation)) {
        count_uses(choice->then);
        count_uses(choice->otherwise);
      }
    }
  }

  // Appends what the operation at hand becomes, by itself or with those behind it. Returns the
  // place behind these.
  std::size_t make(Block& block, std::size_t at, Block& made) {
    const std::optional<Rows> rows = rows_begun_by(block[at]);
    if (!rows) return made.push_back(std::move(block[at])), at + 1;
    Run run(program_, *rows);
    Strips strips{{}, rows->axis, rows->count, 0};
    Block before, stores;
    std::size_t end = at;
    while (end < block.size()) {
      Run::Place place;
      const std::size_t count = run.take(block, end, place);
      if (count == 0) break;
      Block& into = place == Run::Place::within   ? strips.body
                    : place == Run::Place::before ? before
                                                  : stores;
      into.insert(into.end(), block.begin() + static_cast<std::ptrdiff_t>(end),
                  block.begin() + static_cast<std::ptrdiff_t>(end + count));
      end += count;
    }
    Block behind = take_columns_behind(strips.body);
    std::move(stores.begin(), stores.end(), std::back_inserter(behind));
    const std::optional<std::size_t> product = product_before(made, before, strips);
    strips.rows = rows_of_strip(strips, product.has_value());
    if (strips.rows == 0) return made.push_back(std::move(block[at])), at + 1;
    shrink_tiles(strips);
    if (product) {
      const auto place = made.begin() + static_cast<std::ptrdiff_t>(*product);
      strips.body.insert(strips.body.begin(), std::move(*place));
      made.erase(place);
    }
    std::move(before.begin(), before.end(), std::back_inserter(made));
    made.push_back(std::move(strips));
    std::move(behind.begin(), behind.end(), std::back_inserter(made));
    return end;
  }

  std::optional<Rows> rows_begun_by(const Operation& operation) const {
    if (const auto* const fold = std::get_if<Fold>(&operation)) {
      return rows_of(program_.tiles[fold->source]);
    }
    const bool begins =
        std::holds_alternative<Apply>(operation) || std::holds_alternative<Load>(operation);
    return begins ? rows_of(program_.tiles[written_by(operation)]) : std::nullopt;
  }

  bool is_column_alone(const Operation& operation) const {
    const std::vector<TileId> tiles = tiles_of(operation);
    return std::none_of(tiles.begin(), tiles.end(),
                        [this](TileId tile) { return rows_of(program_.tiles[tile]).has_value(); });
  }

  // Those at the end that go over a column alone go over it as well at once.
  Block take_columns_behind(Block& body) const {
    std::size_t end = body.size();
    while (end > 0 && is_column_alone(body[end - 1])) --end;
    const auto first = body.begin() + static_cast<std::ptrdiff_t>(end);
    Block behind(first, body.end());
    body.erase(first, body.end());
    return behind;
  }

  // The last product of `made`, if it gives rows that the strips go over, and can as well come
  // right before them, behind `between`.
  std::optional<std::size_t> product_before(const Block& made, const Block& between,
                                            const Strips& strips) const {
    const auto found = std::find_if(made.rbegin(), made.rend(), [](const Operation& operation) {
      return std::holds_alternative<Multiply>(operation);
    });
    if (found == made.rend()) return std::nullopt;
    const auto& product = std::get<Multiply>(*found);
    const auto stays_apart = [&](const Operation& operation) {
      return can_change_places(operation) && !touches(operation, product.result) &&
             !writes_a_factor(operation, product);
    };
    const bool gives_rows = !product.flipped && rows_of(program_.tiles[product.result]) ==
                                                    Rows{2, strips.axis, strips.all};
    const bool is_taken = gives_rows && std::any_of(strips.body.begin(), strips.body.end(),
                                                    [&](const Operation& each) {
                                                      return touches(each, product.result);
                                                    });
    if (!is_taken || !std::all_of(made.rbegin(), found, stays_apart) ||
        !std::all_of(between.begin(), between.end(), stays_apart)) {
      return std::nullopt;
    }
    return static_cast<std::size_t>(made.rend() - found) - 1;
  }
  static bool touches(const Operation& operation, TileId tile) {
    const std::vector<TileId> tiles = tiles_of(operation);
    return std::find(tiles.begin(), tiles.end(), tile) != tiles.end();
  }
  static bool writes_a_factor(const Operation& operation, const Multiply& product) {
    const TileId written = written_by(operation);
    return written != kNone &&
           (written == product.a || written == product.b || written == product.needed);
  }
  // It takes no part in what other memory holds, and in what is executed.
  static bool can_change_places(const Operation& operation) {
    const auto* const load = std::get_if<Load>(&operation);
    const auto* const apply = std::get_if<Apply>(&operation);
    return (load && load->is_constant) || (apply && !apply->stored_to) ||
           std::holds_alternative<Splat>(operation) || std::holds_alternative<Count>(operation) ||
           std::holds_alternative<Move>(operation) || std::holds_alternative<Reshape>(operation) ||
           std::holds_alternative<Compute>(operation) ||
           std::holds_alternative<MoveScalar>(operation);
  }

  // 0 where strips are of no use: of a single function, unless it goes over what a product gives.
  std::int64_t rows_of_strip(const Strips& strips, bool has_product) const {
    std::int64_t row = 0, row_of_tensor = 0, functions = 0, of_columns = 0;
    for (const Operation& operation : strips.body) {
      of_columns += is_column_alone(operation) ? 1 : 0;
      const bool loads = std::holds_alternative<Load>(operation);
      const bool moves = loads || std::holds_alternative<Store>(operation);
      if (!is_column_alone(operation) && !loads) ++functions;
      for (const TileId tile : tiles_of(operation)) {
        if (!rows_of(program_.tiles[tile])) continue;
        std::int64_t& longest = moves ? row_of_tensor : row;
        longest = std::max(longest, program_.tiles[tile].strides[strips.axis]);
      }
    }
    if (functions < (has_product ? 1 : 2)) return 0;
    const bool has_tensor = row_of_tensor > 0;
    const std::int64_t bytes =
        has_tensor ? std::min(kStripBytes +
                                  kStripBytes / 2 *
                                      (round_up(of_columns, kColumnFunctions) / kColumnFunctions),
                              kLargestStripBytes)
                   : kLargestStripBytes;
    std::int64_t count = std::max<std::int64_t>(bytes / (has_tensor ? row_of_tensor : row), 1);
    if (count >= kGroup) count = round_up(count, kGroup);
    return count < strips.all ? count : 0;
  }

  bool is_own(const Strips& strips, TileId tile) const {
    std::int64_t count = 0;
    for (const Operation& operation : strips.body) {
      for (const TileId each : tiles_of(operation)) count += each == tile ? 1 : 0;
    }
    return count == uses_[tile];
  }

  bool is_shared_column(const Strips& strips, TileId tile) const {
    return walk_of(program_.tiles[tile]).columns == strips.axis && !is_own(strips, tile);
  }

  void shrink_tiles(const Strips& strips) {
    for (const Operation& operation : strips.body) {
      const TileId written = written_by(operation);
      if (written == kNone) continue;
      Tile& tile = program_.tiles[written];
      if (!is_own(strips, written)) {
        const std::int64_t whole = tile.shape[strips.axis] * bytes_of(tile.element);
        if (is_shared_column(strips, written)) {
          tile.bytes = round_up(whole + kGroup * bytes_of(tile.element), kAlignment);
        }
        continue;
      }
      tile.is_of_strip = true;
      const bool is_column = walk_of(tile).columns == strips.axis;
      const std::int64_t count = is_column ? round_up(strips.rows, kGroup) : strips.rows;
      tile.bytes = round_up(tile.strides[strips.axis] * count, kAlignment);
    }
  }

  Program& program_;
  std::vector<std::int64_t> uses_;
};

}  // namespace

void make_strips(Program& program) { Making(program).walk(program.body); }

}  // namespace tilewright::cpu
