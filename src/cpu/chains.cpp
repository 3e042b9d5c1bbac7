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
      for (const TileId tile : tiles_of(operation)) ++uses_[tile];
    });
  }

  void run() {
    for_operations(program_.body, [this](Operation& operation) {
      if (auto* const strips = std::get_if<Strips>(&operation)) link(strips->body);
    });
  }

 private:
  void link(Block& body) {
    for (std::size_t i = 1; i < body.size(); ++i) {
      auto* const before = std::get_if<Apply>(&body[i - 1]);
      if (before == nullptr) continue;
      if (auto* const behind = std::get_if<Apply>(&body[i])) link(*before, *behind);
      auto* const fold = std::get_if<Fold>(&body[i]);
      if (fold && is_linear(body, i - 1)) link(*before, *fold);
      if (fold && is_exponential(body, i - 1)) link_sum_of_stored(*before, *fold);
    }
  }

  bool is_of_row(const Apply& apply, std::size_t operand) const {
    const Source& source = apply.operands[operand];
    const std::size_t columns = apply.walk.columns;
    return columns != Walk::kNoAxis &&
           (!source.is_tile() || program_.tiles[source.tile].strides[columns] == 0);
  }
  // An exponential whose sum has a loop as well: of an element, or of that less a number of its
  // row, or of a multiple of either.
  bool is_exponential(const Block& body, std::size_t at) const {
    const auto& last = std::get<Apply>(body[at]);
    if (last.function != Function::exp && last.function != Function::exp2) return false;
    const auto before = [&](const Apply& apply) {
      return apply.takes == Apply::kNone ? nullptr : std::get_if<Apply>(&body[--at]);
    };
    const Apply* apply = before(last);
    if (apply && apply->function == Function::mul && apply->takes != Apply::kNone) {
      if (apply->is_kept || !is_of_row(*apply, 1 - apply->takes)) return false;
      apply = before(*apply);
    } else if (apply && apply->function == Function::mul) {
      return !apply->is_kept && is_of_row(*apply, 1);
    }
    if (apply && apply->function == Function::sub) {
      if (apply->is_kept || !is_of_row(*apply, 1)) return false;
      if (apply->takes == Apply::kNone) return true;
      apply = before(*apply);
    }
    return apply == nullptr || (!apply->is_kept && apply->takes == Apply::kNone &&
                                std::holds_alternative<Convert>(apply->run) &&
                                element_of(apply->operands[0].tile) == Element::bf16);
  }

  // A value that a loop of its own adds (kernels/linear.h): an element of bf16 or f32, or that less
  // a number of its row.
  bool is_linear(const Block& body, std::size_t at) const {
    const auto& last = std::get<Apply>(body[at]);
    const Apply* first = &last;
    if (last.function == Function::sub) {
      if (!is_of_row(last, 1) || (last.takes != Apply::kNone && last.takes != 0)) return false;
      if (last.takes == Apply::kNone) return true;
      first = &std::get<Apply>(body[at - 1]);
    }
    return std::holds_alternative<Convert>(first->run) && first->takes == Apply::kNone &&
           element_of(first->operands[0].tile) == Element::bf16 &&
           (first == &last || !first->is_kept);
  }

  void link(Apply& before, Fold& behind) {
    const TileId value = before.result;
    const bool squares = behind.factor == value;
    if (before.stored_to || !begins(before) || behind.source != value ||
        (!squares && (behind.factor != cpu::kNone || !behind.in_parts)) ||
        !have_same_rows(value, value) || uses_[value] != (squares ? 3 : 2)) {
      return;
    }
    behind.takes_from_register = true;
    before.is_kept = false;
  }

  void link_sum_of_stored(const Apply& before, Fold& behind) {
    const TileId value = before.result;
    behind.takes_from_register = !before.stored_to && behind.source == value &&
                                 behind.factor == cpu::kNone && behind.in_parts &&
                                 have_same_rows(value, value);
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
