#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {

// How warpgroups divide dK and dV of a block of keys: so many have the columns of 64 keys, each of
// them as many. They add at most `columns` at a time: what is loaded takes registers beside both.
struct KeyTiles {
  int warpgroups, of_keys, dim, dim_v, columns;
  static KeyTiles of(const Attention& attention);
};

// What is summed in memory of dK and dV, where `parts` of the heads that share keys go through the
// same blocks of keys. Nothing, where there is one part, but if kernels add to it one behind the
// other: then `always`.
struct SharedSumsShape {
  static constexpr int kKeys = 64, kLine = 128;  // keys of a warpgroup; f32

  SharedSumsShape(const Attention& a, const Dim& key_blocks, const Dim& parts, Order order,
                  KeySums keys, bool always = false)
      : parts(parts),
        blocks(always ? key_blocks : key_blocks * min(parts - 1, 1)),
        tiles(KeyTiles::of(a)),
        lines_of_keys(lines_of(tiles.dim)),
        lines_of_values(lines_of(tiles.dim_v)),
        order(order),
        apart(keys == KeySums::apart) {}

  // Lines of f32 in the order of the registers that hold them: of a block of keys those of each
  // warpgroup, dV before dK. Apart, each part has a slice. Else the blocks lie in as many slices as
  // there are parts, so that a kernel knows how many these are.
  std::vector<Dim> sums() const { return {parts, lines(), kLine}; }
  Dim lines() const { return (apart ? blocks : ceil_div(blocks, parts)) * lines_of_block(); }
  // i32, which count who has added: for each warp, of dV and of dK. In no order each has another
  // one behind it, which says who comes next.
  Dim words() const { return apart ? Dim(0) : blocks * (warps() * 2 * words_of_warp()); }
  int words_of_warp() const { return order == Order::any ? 2 : 1; }

  int warps() const { return 4 * tiles.warpgroups; }
  static int lines_of(int dim) { return kKeys * dim / kLine; }
  int lines_of_warpgroup() const { return lines_of_values + lines_of_keys; }
  int lines_of_block() const { return tiles.warpgroups * lines_of_warpgroup(); }
  int width(bool of_keys) const { return of_keys ? tiles.dim : tiles.dim_v; }
  int piece(bool of_keys) const { return std::min(tiles.columns, width(of_keys)); }
  // Of a block of keys the warpgroup's sums of dV or dK, a piece of the columns from `column` on,
  // in the slice that has them.
  Block place(const Index& block, const Index& warpgroup, bool of_keys, int column) const {
    const Index first = (block * tiles.warpgroups + warpgroup) * lines_of_warpgroup();
    return {first + (of_keys ? lines_of_values : 0) + lines_of(column), lines_of(piece(of_keys)),
            Index(lines())};
  }

  Dim parts, blocks;  // blocks of keys that are divided
  KeyTiles tiles;
  int lines_of_keys, lines_of_values;
  Order order;
  bool apart;
};

// Whether kernels before have added to the sums, and until when the first to add waits then; and
// whether sums are left to kernels behind.
struct SumsOfKernels {
  bool joins = false, leaves = false;
  std::function<void()> await_sums;
};

// By the warpgroups that hold dK and dV. In turn the first part stores, the others add, and the
// last one adds what is there to its registers. A warp waits for the same warp of another CTA
// alone, which was dealt the block before, or in no order is there already.
class SharedSums {
 public:
  // `words`: of them the first is `first_word`.
  SharedSums(const SharedSumsShape& shape, const Tensor& sums, const Tensor& words,
             const Dim& first_word, SumsOfKernels kernels = {})
      : shape_(shape),
        sums_(sums),
        words_(words),
        first_word_(first_word),
        kernels_(std::move(kernels)) {}

  struct Place {
    Index block, part;  // the number of the block of keys
  };
  // A warpgroup's tile of dV or dK. `put` takes what is complete, warp by warp: pieces of the
  // columns, each from a column on.
  using Put = std::function<void(const Tile&, int column)>;
  void add(const Place& at, const Index& group, bool of_keys, const Tile& tile,
           const Put& put) const {
    if (!shape_.apart) return add_in_turn(at, group, of_keys, tile, put);
    when(
        Index(shape_.parts) > 1,
        [&] {
          for_pieces(of_keys, tile, [&](const Tile& piece, int column) {
            const Block own = shape_.place(at.block, group, of_keys, column);
            tilewright::store(sums_(at.part, own, all), lines_of(piece));
          });
        },
        [&] { for_pieces(of_keys, tile, put); });
  }

  // Where a piece has all columns.
  void add(const Place& at, const Index& group, bool of_keys, const Tile& tile,
           const std::function<void(const Tile&)>& put) const {
    add(at, group, of_keys, tile, Put([&](const Tile& whole, int) { put(whole); }));
  }

 private:
  void for_pieces(bool of_keys, const Tile& tile, const Put& each) const {
    const int columns = shape_.piece(of_keys);
    for (int column = 0; column < shape_.width(of_keys); column += columns) {
      const bool whole = columns == shape_.width(of_keys);
      each(whole ? tile : tile.slice({0, column}, {SharedSumsShape::kKeys, columns}), column);
    }
  }

  void add_in_turn(const Place& at, const Index& group, bool of_keys, const Tile& tile,
                   const Put& put) const {
    const Index parts(shape_.parts);
    const auto view = [&](int column) {
      return sums_(at.block % parts, shape_.place(at.block / parts, group, of_keys, column), all);
    };
    const Index warp =
        (at.block * 2 + (of_keys ? 1 : 0)) * shape_.warps() + group * 4 + warp_index();
    const Index word = first_word_ + warp * shape_.words_of_warp();
    Cell<Index> next(at.part);
    if (shape_.order == Order::any) {
      when(parts > 1, [&] {
        next = atomic_add(words_(word + 1), 1, {Semantics::relaxed, Scope::gpu});
      });
    }
    const Index turn = next;
    if (kernels_.joins) when(turn == 0, kernels_.await_sums);
    when(turn > 0, [&] {
      wait_flag(words_(word), Compare::ge, turn, {Semantics::acquire, Scope::gpu});
    });
    const auto store_all = [&] {
      for_pieces(of_keys, tile, [&](const Tile& piece, int column) {
        tilewright::store(view(column), lines_of(piece));
      });
    };
    const auto add_all = [&] {
      for_pieces(of_keys, tile, [&](const Tile& piece, int column) {
        atomic_add(view(column), lines_of(piece), shape_.order);
      });
    };
    const auto leave = [&] {
      if (kernels_.joins) {
        add_all();
      } else {
        when(turn == 0, store_all, add_all);
      }
      atomic_add(words_(word), 1, {Semantics::release, Scope::gpu});
    };
    if (kernels_.leaves) return leave();
    when(
        turn == parts - 1,
        [&] {
          for_pieces(of_keys, tile, [&](const Tile& piece, int column) {
            Var sum{piece};
            const auto add = [&] { sum = sum + tile_of(load(view(column))); };
            if (kernels_.joins) {
              add();
            } else {
              when(turn > 0, add);
            }
            put(sum, column);
          });
        },
        leave);
  }
  static Tile lines_of(const Tile& tile) {
    const int lines = SharedSumsShape::lines_of(static_cast<int>(tile.shape()[1]));
    return fragments(tile).reshape({lines, SharedSumsShape::kLine});
  }
  static Tile tile_of(const Tile& lines) {
    const std::int64_t elements = lines.shape()[0] * SharedSumsShape::kLine;
    return from_fragments(lines.reshape({elements}),
                          static_cast<int>(elements / SharedSumsShape::kKeys));
  }

  SharedSumsShape shape_;
  Tensor sums_, words_;
  Dim first_word_;
  SumsOfKernels kernels_;
};

// dK and dV of the parts' sums, where these are kept apart. Input, behind the offsets of Packed:
// the sums; outputs dK, dV.
template <typename Sequences>
Kernel key_gradients_of_sums(const Attention& attention, const std::string& name);

}  // namespace tilewright::kernels
