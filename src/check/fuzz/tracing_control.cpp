#include <memory>
#include <optional>
#include <utility>

#include "check/fuzz/tracing.h"

// Loops and conditions, and the variables that they carry.
namespace tilewright::checks::fuzz {

// What is added may exist no less far than the variable: how much of a variable exists is decided
// once for all turns of its loop, and both branches of a condition. With the cuts of what is added.
TileValue Tracing::carried_on(const TileValue& before, int n, int which) const {
  const Tile& x = before.tile;
  const auto added = pick(which, [&](const TileValue& v) {
    return broadcasts(x, v.tile, false) && within(v.cuts, before.cuts) &&
           v.tile.handle().id() != x.handle().id();
  });
  if (!added) return {x * 0.5 + 1, before.axes, Cuts(before.cuts.size(), 0)};
  const Tile y = as(added->tile, x.dtype());
  const Tile result = n % 4 < 2 ? x + y : n % 4 == 2 ? max(x, y) : x * 0.5 - y;
  return {result, before.axes, added->cuts};
}

std::optional<Tracing::Carried> Tracing::carried(const Step& s, int i) const {
  const auto begins = [](const Tile& tile, std::vector<Axis> axes, Cuts cuts, bool whole) {
    return Carried{std::make_unique<Var>(tile), std::move(axes), std::move(cuts), whole};
  };
  // A loop without turns leaves what is whole whole.
  const int variety = recipe_.sizes.depth == 0 ? 2 : (s.n / 16 + i) % 3;
  const int height = block_size(Axis::rows);
  if (variety == 0) {
    const Axis wide = s.b % 2 == 0 ? Axis::columns : Axis::inner;
    return begins(zeros({height, block_size(wide)}), {Axis::rows, wide},
                  cuts_of({Axis::rows, wide}), true);
  }
  if (variety == 1) {
    return begins(full({height, 1}, s.n / 64 % 2 == 0 ? 0 : -1e30), {Axis::rows, Axis::one},
                  cuts_of({Axis::rows, Axis::one}), true);
  }
  const auto given = pick(s.a + i, [](const TileValue& v) { return v.tile.dtype() == f32; });
  if (!given) return {};
  return begins(given->tile, given->axes, given->cuts, false);
}

void Tracing::loop(const Step& s) {
  std::vector<Carried> cells;
  for (int i = 0; i < 1 + s.n / 4 % 3; ++i) {
    std::optional<Carried> cell = carried(s, i);
    if (cell) cells.push_back(std::move(*cell));
  }
  const std::size_t outside = values_.size();
  const auto inside = [&](const Index& index, const Dim& total, std::int64_t size, Axis axis) {
    numbers_.push_back({index, total, size, axis});
    loop_body(s, cells);
    numbers_.pop_back();
    values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(outside), values_.end());
  };
  const int block = recipe_.block_depth;
  const std::int64_t blocks_of_depth = (recipe_.sizes.depth + block - 1) / block;
  if (!depth_ && s.n % 4 != 3) {
    for (Block part : blocks(depth, block)) {
      depth_.emplace(part);
      inside(part.start() / block, ceil_div(depth, block), blocks_of_depth, Axis::depth);
      depth_.reset();
    }
  } else {
    const int turns = 1 + s.c % 3;
    for (Index i : range(turns)) inside(i, turns, turns, Axis::one);
  }
  for (const Carried& cell : cells) push(*cell.cell, cell.axes, cell.cuts);
}

void Tracing::loop_body(const Step& s, std::vector<Carried>& carried) {
  for (const Carried& cell : carried) {
    if (!cell.whole) push(*cell.cell, cell.axes, cell.cuts);
  }
  steps(s.inner);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    Carried& cell = carried[i];
    const int n = static_cast<int>(i);
    const TileValue after = carried_on({*cell.cell, cell.axes, cell.cuts}, s.n / 256 + n, s.b + n);
    *cell.cell = after.tile;
    if (cell.whole) cell.cuts = after.cuts;
  }
}

void Tracing::when(const Step& s) {
  const auto given = pick(s.a, [](const TileValue& v) { return v.tile.dtype() == f32; });
  if (!given) return;
  const bool asks = recipe_.style == Recipe::Style::products && s.n % 4 == 0;
  const Condition condition = [&]() -> Condition {
    if (asks) return any(given->tile > 1.5);
    const Index number = numbers_[static_cast<std::size_t>(s.b) % numbers_.size()].index;
    if (s.n % 4 == 1) return number < 1;
    return number % 2 == s.n / 4 % 2;
  }();
  Var cell(given->tile);
  const std::size_t outside = values_.size();
  const auto branch = [&](bool first) {
    if (first) steps(s.inner);
    const Tile before = cell;
    cell =
        first ? carried_on({before, given->axes, given->cuts}, s.n / 16, s.c).tile : before * 0.75;
    values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(outside), values_.end());
  };
  if (s.n / 8 % 2 == 0) {
    tilewright::when(condition, [&] { branch(true); });
  } else {
    tilewright::when(
        condition, [&] { branch(true); }, [&] { branch(false); });
  }
  push(cell, given->axes, given->cuts);
}

// What a turn of the inner loop adds: a product over a block of the depth, or a sum along it, which
// stretches.
Tile Tracing::term(const Index& turn, Axis wide) {
  const auto factor = [&](const std::vector<Axis>& axes) {
    std::vector<Selector> selectors{Selector(turn % 2)};
    for (const Axis axis : axes) {
      const std::optional<Block> block = block_of(axis);
      selectors.push_back(block ? Selector(*block) : Selector(all));
    }
    const bool is_product = recipe_.style == Recipe::Style::products;
    const Tensor tensor = input(axes, is_product ? bf16 : f32, /*pair=*/true);
    return tilewright::load(TensorView(tensor.handle(), selectors, here()));
  };
  const Tile a = factor({Axis::rows, Axis::depth});
  if (recipe_.style == Recipe::Style::products) {
    return tilewright::dot(a, factor({Axis::depth, wide}));
  }
  return reduce_sum(a, 1) + zeros({1, block_size(wide)});
}

// Sums of a loop within a loop: they live over the inner one alone, over both, or over both but
// begin anew in each turn of the outer one. What the inner one leaves is added to a sum of the
// outer one, which a factor may lower before.
void Tracing::nest(const Step& s) {
  if (depth_ || recipe_.sizes.depth == 0) return;
  const bool is_product = recipe_.style == Recipe::Style::products;
  const int height = block_size(Axis::rows), turns = 1 + s.c % 3;
  const Axis middle = Axis::inner, wide = is_product && s.b % 2 == 0 ? Axis::columns : middle;
  const auto has = [&](int bit) { return s.n >> bit & 1; };
  const bool begins_anew = has(0), adds_to_both = has(1), lowers = has(2), adds_before = has(3);
  const auto none = [&](Axis axis) { return zeros({height, block_size(axis)}); };
  std::optional<TileValue> factor;
  if (lowers) {
    factor = pick(s.a, [](const TileValue& v) {
      return v.tile.dtype() == f32 && v.axes == std::vector<Axis>{Axis::rows, Axis::one};
    });
  }
  Var sum{none(wide)}, both{none(middle)}, anew{none(middle)};
  for (Block part : blocks(depth, recipe_.block_depth)) {
    depth_.emplace(part);
    if (factor) sum = sum * exp(-abs(factor->tile));
    if (adds_before) sum = sum + term(Index(0), wide);
    Var own{none(middle)};
    if (begins_anew) anew = none(middle);
    for (Index turn : range(turns)) {
      const Tile added = term(turn, middle);
      if (begins_anew) {
        anew = anew + added;
      } else {
        own = own + added;
      }
      if (adds_to_both) both = both + added;
    }
    const Tile left = begins_anew ? Tile(anew) : Tile(own);
    depth_.reset();
    if (is_product) {
      const Tile right = loaded({middle, wide}, bf16, false).tile;
      sum = sum + tilewright::dot(left.cast(bf16), right);
    } else {
      sum = sum + max(left, 0);
    }
  }
  const auto end = [&](const Tile& tile, Axis axis) {
    const Axis stretched = is_product ? axis : Axis::inner;
    push(tile, {Axis::rows, stretched}, cuts_of({Axis::rows, stretched}));
  };
  if (begins_anew) end(anew, middle);
  if (adds_to_both) end(both, middle);
  end(sum, wide);
}

}  // namespace tilewright::checks::fuzz
