#include "tilewright/kernels/rotary.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/caller.h"
#include "kernels/token_heads.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

void check_rotary(const Rotary& r, const Caller& caller) {
  caller.check_positive("heads", r.heads);
  caller.check_positive("dim", r.dim);
  caller.check_positive("half", r.half);
  if (2 * r.half <= r.dim) return;
  caller.refuse("half is " + std::to_string(r.half) + ", and dim is " + std::to_string(r.dim),
                "turn no more elements than a head has: 2 half is at most dim");
}

using TilePair = std::pair<Tile, Tile>;

TilePair turned(const TilePair& x, const Tile& cosine, const Tile& sine) {
  return {x.first * cosine - x.second * sine, x.second * cosine + x.first * sine};
}

// {heads, half, 1} each, of neighbours {heads, 2 half}: a sum with zero takes one of them.
TilePair neighbours(const Tile& x, const Tile& is_second) {
  return {reduce_sum(where(is_second, 0, x), 2), reduce_sum(where(is_second, x, 0), 2)};
}

}  // namespace

Kernel rotary(const Rotary& r, SourceLocation where) {
  check_rotary(r, {"rotary", where});
  Kernel kernel("rotary");
  const Dim batch = kernel.dim("batch"), length = kernel.dim("length");
  const Dim table = kernel.dim("table");
  const std::vector<Dim> shape = {batch, length, r.heads, r.dim};
  const Tensor X = kernel.in("X", r.dtype, shape);
  const Tensor cos = kernel.in("cos", f32, {table, r.half});
  const Tensor sin = kernel.in("sin", f32, {table, r.half});
  std::optional<Tensor> positions;
  if (plan_case("positions", r.positions)) {
    positions = kernel.in("positions", i32, {batch, length});
  }
  const Tensor Y = kernel.out("Y", r.dtype, shape);

  const int size = heads_of_block(r.heads, r.dim);
  const auto [t, x, b] = kernel.grid(length, ceil_div(Dim(r.heads), Dim(size)), batch);
  const Index token = t, sequence = b;
  const Block heads = Dim(r.heads).block(x, size);
  const Index position = positions ? load_index((*positions)(sequence, token)) : token;
  const auto read = [&](const Block& columns) { return load(X(sequence, token, heads, columns)); };
  const auto write = [&](const Block& columns, const Tile& tile) {
    store(Y(sequence, token, heads, columns), tile.cast(r.dtype));
  };
  const Block angles = columns_of(0, r.half);
  const Tile cosine = load(cos(position, angles)).reshape({1, r.half});
  const Tile of_angle = load(sin(position, angles)).reshape({1, r.half});
  const Tile sine = r.inverse ? -of_angle : of_angle;
  if (plan_case("pairs are neighbours", r.interleaved)) {
    const Block pairs = columns_of(0, 2 * r.half);
    const Tile x = read(pairs).cast(f32).reshape({size, r.half, 2});
    const Tile is_second = iota({1, 1, 2}, 2) == 1;
    const auto [first, second] = turned(neighbours(x, is_second), cosine.reshape({1, r.half, 1}),
                                        sine.reshape({1, r.half, 1}));
    write(pairs, tilewright::where(is_second, second, first).reshape({size, 2 * r.half}));
  } else {
    const Block low = columns_of(0, r.half), high = columns_of(r.half, r.half);
    const auto [left, right] = turned({read(low).cast(f32), read(high).cast(f32)}, cosine, sine);
    write(low, left);
    write(high, right);
  }
  if (2 * r.half < r.dim) {
    const Block rest = columns_of(2 * r.half, r.dim - 2 * r.half);
    write(rest, read(rest));
  }
  return kernel;
}

}  // namespace tilewright::kernels
