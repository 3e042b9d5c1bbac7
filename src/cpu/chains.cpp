#include "cpu/chains.h"

#include <algorithm>
#include <vector>

#include "cpu/layout.h"
#include "cpu/tile_uses.h"

namespace tilewright::cpu {
namespace {

class Linking {
 public:
  explicit Linking(Program& program) : program_(program), uses_(program.tiles.size(), 0) {
    for_operations(program.body, [this](Operation& operation) {
      const auto count = [this](TileId tile) { ++uses_[tile]; };
      std::visit(TileUses{count, count}, operation);
    });
  }

  void run() {
    for_operations(program_.body, [this](Operation& operation) {
      if (auto* const strips = std::get_if<Strips>(&operation)) link(strips->body);
    });
  }

 private:
  template <typename Visit>
  static void for_operations(Block& block, const Visit& visit) {
    for (Operation& operation : block) {
      visit(operation);
      if (auto* const strips = std::get_if<Strips>(&operation)) for_operations(strips->body, visit);
      if (auto* const loop = std::get_if<For>(&operation)) for_operations(loop->body, visit);
      if (auto* const loop = std::get_if<While>(&operation)) for_operations(loop->body, visit);
      if (auto* const choice = std::get_if<If>(&operation)) {
        for_operations(choice->then, visit);
        for_operations(choice->otherwise, visit);
      }
    }
  }

  void link(Block& body) {
    for (std::size_t i = 1; i < body.size(); ++i) {
      auto* const before = std::get_if<Apply>(&body[i - 1]);
      auto* const behind = std::get_if<Apply>(&body[i]);
      if (before && behind) link(*before, *behind);
    }
  }

  void link(Apply& before, Apply& behind) {
    const TileId value = before.result;
    if (before.stored_to || !begins(before) || !goes_on(behind) ||
        !have_same_rows(value, behind.result)) {
      return;
    }
    const auto is_value = [&](const Source& operand) { return operand.tile == value; };
    const auto taken = std::count_if(behind.operands.begin(), behind.operands.end(), is_value);
    const bool squares =
        taken == 2 && behind.function == Function::mul && behind.operands.size() == 2;
    if (taken != 1 && !squares) return;
    const auto first = std::find_if(behind.operands.begin(), behind.operands.end(), is_value);
    behind.takes = static_cast<std::size_t>(first - behind.operands.begin());
    before.is_kept = uses_[value] > 1 + taken;  // it is written once
  }

  Element element_of(TileId tile) const { return program_.tiles[tile].element; }
  static bool is_function(const Apply& apply) { return apply.function != Function::count; }
  static bool is_in_memory(Element element) {
    return element == Element::f16 || element == Element::bf16;
  }
  // Gives a value of f32.
  bool begins(const Apply& apply) const {
    return is_function(apply) || (std::holds_alternative<Convert>(apply.run) &&
                                  element_of(apply.result) == Element::f32 &&
                                  is_in_memory(element_of(apply.operands[0].tile)));
  }
  // Takes one.
  bool goes_on(const Apply& apply) const {
    return is_function(apply) ||
           (std::holds_alternative<Convert>(apply.run) && is_in_memory(element_of(apply.result)) &&
            element_of(apply.operands[0].tile) == Element::f32);
  }
  bool have_same_rows(TileId a, TileId b) const {
    const auto held = [this](TileId tile) {
      const Walk walk = walk_of(program_.tiles[tile]);
      return walk.rows != Walk::kNoAxis && walk.outer.empty();
    };
    return held(a) && held(b) && program_.tiles[a].shape == program_.tiles[b].shape;
  }

  Program& program_;
  std::vector<std::int64_t> uses_;
};

}  // namespace

void make_chains(Program& program) { Linking(program).run(); }

}  // namespace tilewright::cpu
