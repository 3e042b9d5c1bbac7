#include "cpu/zeros.h"

#include <algorithm>
#include <vector>

#include "cpu/layout.h"
#include "cpu/tile_uses.h"

namespace tilewright::cpu {
namespace {

// What a round of a loop does with the sums until a product adds to them.
class Round {
 public:
  Round(const Program& program, const Kernels& kernels, TileId sums)
      : program_(program),
        mul_(kernels.elementwise[static_cast<int>(Function::mul)][static_cast<int>(Lane::f32)]),
        sums_(program.tiles[sums]) {}

  // Whether it only multiplies them, and all rounds come to the product.
  bool begins_with_product(Block& body) {
    for (Operation& operation : body) {
      const auto* const product = std::get_if<Multiply>(&operation);
      if (product && product->accumulates && are_sums(product->result)) {
        return product->needed == kNone && !touches(product->a) && !touches(product->b);
      }
      if (!visit(operation)) return false;
    }
    return false;
  }
  const std::vector<Apply*>& factors() const { return factors_; }
  bool touches(TileId tile) const {
    const Tile& other = program_.tiles[tile];
    return other.offset < sums_.offset + sums_.bytes && sums_.offset < other.offset + other.bytes;
  }

 private:
  bool touches_any(const Operation& operation) const {
    const std::vector<TileId> tiles = tiles_of(operation);
    return std::any_of(tiles.begin(), tiles.end(), [this](TileId tile) { return touches(tile); });
  }
  bool are_sums(TileId tile) const {
    return program_.tiles[tile].offset == sums_.offset && lie_alike(program_.tiles[tile], sums_);
  }
  bool visit(Block& block) {
    for (Operation& operation : block) {
      if (!visit(operation)) return false;
    }
    return true;
  }
  bool visit(Operation& operation) {
    if (auto* const choice = std::get_if<If>(&operation)) {
      return visit(choice->then) && visit(choice->otherwise);
    }
    if (auto* const loop = std::get_if<For>(&operation)) return visit(loop->body);
    if (auto* const loop = std::get_if<While>(&operation)) return visit(loop->body);
    if (auto* const strips = std::get_if<Strips>(&operation)) {
      return std::none_of(strips->body.begin(), strips->body.end(),
                          [this](const Operation& each) { return touches_any(each); });
    }
    const auto* const move = std::get_if<Move>(&operation);
    if (!touches_any(operation) || (move && move->is_done)) return true;
    auto* const apply = std::get_if<Apply>(&operation);
    if (apply == nullptr || !multiplies(*apply)) return false;
    factors_.push_back(apply);
    return true;
  }
  // By numbers that lie one behind the other.
  bool multiplies(const Apply& apply) const {
    const auto* const run = std::get_if<Elementwise>(&apply.run);
    if (run == nullptr || *run != mul_ || !are_sums(apply.result) || apply.stored_to ||
        !apply.operands[0].is_tile() || !are_sums(apply.operands[0].tile) ||
        !apply.operands[1].is_tile() || touches(apply.operands[1].tile)) {
      return false;
    }
    return walk_of(program_.tiles[apply.operands[1].tile]).rows == Walk::kNoAxis;
  }

  const Program& program_;
  const Elementwise mul_;
  const Tile sums_;
  std::vector<Apply*> factors_;
};

class Finding {
 public:
  Finding(Program& program, const Kernels& kernels) : program_(program), kernels_(kernels) {}
  void walk(Block& block) {
    for (std::size_t at = 0; at < block.size(); ++at) {
      auto* const loop = std::get_if<For>(&block[at]);
      std::vector<const Move*> between;
      for (std::size_t before = at; loop && before > 0; --before) {
        auto* const move = std::get_if<Move>(&block[before - 1]);
        if (move == nullptr || waits(*move, between, *loop)) break;
        between.push_back(move);
      }
      if (loop) walk(loop->body);
    }
  }

 private:
  // A tile of one element that is copied to all of the sums, before the loop. Moves between the
  // two have nothing to do with these.
  bool waits(Move& move, const std::vector<const Move*>& between, For& loop) {
    const Tile& source = program_.tiles[move.source];
    if (contiguous_axis(source) != Walk::kNoAxis || source.element != Element::f32) return false;
    Round round(program_, kernels_, move.result);
    const bool is_used = std::any_of(between.begin(), between.end(), [&](const Move* each) {
      return round.touches(each->source) || round.touches(each->result);
    });
    if (is_used || !round.begins_with_product(loop.body)) return false;
    for (Apply* const factor : round.factors()) factor->is_of_zeros = true;
    move.may_wait = true;
    loop.zeros = move.result;
    return true;
  }

  Program& program_;
  const Kernels& kernels_;
};

}  // namespace

void find_zeros(Program& program, const Kernels& kernels) {
  Finding(program, kernels).walk(program.body);
}

}  // namespace tilewright::cpu
