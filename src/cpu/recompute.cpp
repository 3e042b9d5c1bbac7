#include "cpu/recompute.h"

#include <algorithm>
#include <vector>

#include "cpu/tile_uses.h"

namespace tilewright::cpu {
namespace {

class Recomputing {
 public:
  explicit Recomputing(Program& program) : program_(program), uses_(program.tiles.size(), 0) {
    for_operations(program.body, [this](Operation& operation) {
      for (const TileId tile : tiles_of(operation)) ++uses_[tile];
    });
  }

  void run() {
    for_operations(program_.body, [this](Operation& operation) {
      if (auto* const strips = std::get_if<Strips>(&operation)) recompute(strips->body);
    });
  }

 private:
  // Of values that are computed in two steps, the first is found first.
  void recompute(Block& body) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      const std::vector<std::size_t> places = later_uses(body, i);
      for (auto at = places.rbegin(); at != places.rend(); ++at) repeat(body, i, *at);
    }
  }

  // Where the result is needed again, if all need it for an operation that can take it from a
  // register.
  std::vector<std::size_t> later_uses(const Block& body, std::size_t at) const {
    const auto* const apply = std::get_if<Apply>(&body[at]);
    if (apply == nullptr || !is_cheap(body, at)) return {};
    std::vector<std::size_t> places;
    std::int64_t found = 1;  // it is written once
    for (std::size_t i = at + 1; i < body.size(); ++i) {
      const std::int64_t count = times_used(body[i], apply->result);
      if (count == 0) continue;
      if (!takes_from_register(body, i, apply->result)) return {};
      found += count;
      if (i == at + 1) continue;
      places.push_back(i);
    }
    return found == uses_[apply->result] ? places : std::vector<std::size_t>{};
  }

  // A conversion of what is loaded, or an element with a number of its row.
  bool is_cheap(const Block& body, std::size_t at) const {
    const auto& apply = std::get<Apply>(body[at]);
    if (apply.stored_to || !apply.operands[0].is_tile()) return false;
    if (is_widening(apply)) return is_loaded(body, at, apply.operands[0].tile);
    const bool is_function = apply.function == Function::sub || apply.function == Function::add ||
                             apply.function == Function::mul;
    if (!is_function || !is_number_of_row(apply, 1) || is_number_of_row(apply, 0)) return false;
    const std::size_t producer = written_at(body, at, apply.operands[0].tile);
    const auto* const before =
        producer < body.size() ? std::get_if<Apply>(&body[producer]) : nullptr;
    return is_loaded(body, at, apply.operands[0].tile) ||
           (before && is_widening(*before) && is_cheap(body, producer));
  }
  bool is_widening(const Apply& apply) const {
    return std::holds_alternative<Convert>(apply.run) &&
           program_.tiles[apply.operands[0].tile].element == Element::bf16 &&
           program_.tiles[apply.result].element == Element::f32;
  }
  // The same for all columns of the result.
  bool is_number_of_row(const Apply& apply, std::size_t operand) const {
    const Source& source = apply.operands[operand];
    if (!source.is_tile()) return true;
    const std::size_t columns = apply.walk.columns;
    return columns != Walk::kNoAxis && program_.tiles[source.tile].strides[columns] == 0;
  }
  static std::size_t written_at(const Block& body, std::size_t before, TileId tile) {
    for (std::size_t i = before; i-- > 0;) {
      if (written_by(body[i]) == tile) return i;
    }
    return body.size();
  }
  static bool is_loaded(const Block& body, std::size_t before, TileId tile) {
    const std::size_t at = written_at(body, before, tile);
    return at < body.size() && std::holds_alternative<Load>(body[at]);
  }

  static std::int64_t times_used(const Operation& operation, TileId tile) {
    const std::vector<TileId> tiles = tiles_of(operation);
    return std::count(tiles.begin(), tiles.end(), tile);
  }
  // And from no other one.
  bool takes_from_register(const Block& body, std::size_t at, TileId value) const {
    if (const auto* const fold = std::get_if<Fold>(&body[at])) {
      return fold->source == value &&
             (fold->factor == value || (fold->factor == kNone && fold->in_parts));
    }
    const auto* const apply = std::get_if<Apply>(&body[at]);
    if (apply == nullptr || apply->function == Function::count || apply->result == value) {
      return false;
    }
    const auto* const before = std::get_if<Apply>(&body[at - 1]);
    const bool continues = before && before->result != value &&
                           program_.tiles[before->result].shape == program_.tiles[value].shape &&
                           times_used(body[at], before->result) > 0;
    return !continues && times_used(body[at], value) == 1;
  }

  // Computes the value of `from` before `to` as well, for that operation alone.
  void repeat(Block& body, std::size_t from, std::size_t to) {
    Apply copy = std::get<Apply>(body[from]);
    const TileId value = copy.result;
    copy.result = copy_of(value);
    copy.is_repeated = true;
    Block copies;
    const std::size_t producer = written_at(body, from, copy.operands[0].tile);
    if (const auto* const before = std::get_if<Apply>(&body[producer])) {
      Apply first = *before;
      first.result = copy.operands[0].tile = copy_of(first.result);
      first.is_repeated = true;
      copies.push_back(first);
    }
    copies.push_back(copy);
    const auto replace = [&](TileId& tile) { tile = tile == value ? copy.result : tile; };
    if (auto* const fold = std::get_if<Fold>(&body[to])) {
      replace(fold->source);
      replace(fold->factor);
    } else {
      for (Source& operand : std::get<Apply>(body[to]).operands) replace(operand.tile);
    }
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(to), copies.begin(), copies.end());
  }
  TileId copy_of(TileId tile) {
    program_.tiles.push_back(Tile(program_.tiles[tile]));
    uses_.push_back(2);
    return static_cast<TileId>(program_.tiles.size() - 1);
  }

  Program& program_;
  std::vector<std::int64_t> uses_;
};

}  // namespace

void recompute_values(Program& program) { Recomputing(program).run(); }

}  // namespace tilewright::cpu
