#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {

// How tiles divide dK and dV of a block of keys: so many have the columns of `keys` keys, each of
// them as many, and a warpgroup holds one. It adds at most `columns` at a time: what is loaded
// takes registers beside both.
struct KeyTiles {
  int tiles, of_keys, dim, dim_v, columns;
  int keys = 64;
  // As a product of wgmma has them in registers; else a thread has a row (sum_lines), and the last
  // tile of a row as many columns as there are.
  bool in_fragments = true;
  static KeyTiles of(const Attention& attention);  // of sm_90a
};

// A tile of 128 rows, of which a thread has one, as lines of 128 f32: four columns of 32 rows
// follow each other, so that a warp adds 512 bytes at a time that lie side by side.
inline Tile sum_lines(const Tile& tile) {
  const std::int64_t rows = tile.shape()[0], columns = tile.shape()[1];
  return tile.reshape({rows, columns / 4, 4}).permute({1, 0, 2}).reshape({columns, rows});
}
inline Tile of_sum_lines(const Tile& lines) {
  const std::int64_t rows = lines.shape()[1], columns = lines.shape()[0];
  return lines.reshape({columns / 4, rows, 4}).permute({1, 0, 2}).reshape({rows, columns});
}

// What is summed in memory of dK and dV, where `parts` of the heads that share keys go through the
// same blocks of keys. Nothing, where there is one part, but if kernels add to it one behind the
// other: then `always`.
struct SharedSumsShape {
  static constexpr int kLine = 128;  // f32

  SharedSumsShape(const KeyTiles& tiles, const Dim& key_blocks, const Dim& parts, Order order,
                  KeySums keys, bool always = false)
      : parts(parts),
        blocks(always ? key_blocks : key_blocks * min(parts - 1, 1)),
        tiles(tiles),
        lines_of_keys(lines_of(tiles.dim)),
        lines_of_values(lines_of(tiles.dim_v)),
        order(order),
        apart(keys == KeySums::apart) {}

  // The same of some blocks, each divided in parts of its own, in lines of a tensor that has so
  // many.
  SharedSumsShape(const KeyTiles& tiles, const Dim& blocks, const Dim& lines, Order order)
      : SharedSumsShape(tiles, blocks, 1, order, KeySums::in_turn, /*always=*/true) {
    lines_of_tensor = lines;
  }

  // Lines of f32 in the order of the registers that hold them: of a block of keys those of each
  // tile, dV before dK. Apart, each part has a slice. Else the blocks lie in as many slices as
  // there are parts, so that a kernel knows how many these are.
  std::vector<Dim> sums() const { return {parts, lines(), kLine}; }
  Dim lines() const { return (apart ? blocks : ceil_div(blocks, parts)) * lines_of_block(); }
  // i32, which count who has added: for each warp, of dV and of dK. In no order each has another
  // one behind it, which says who comes next.
  Dim words() const { return apart ? Dim(0) : blocks * (warps() * 2 * words_of_warp()); }
  int words_of_warp() const { return order == Order::any ? 2 : 1; }

  int warps() const { return 4 * tiles.tiles; }
  int lines_of(int dim) const { return tiles.keys * dim / kLine; }
  int lines_of_tile() const { return lines_of_values + lines_of_keys; }
  int lines_of_block() const { return tiles.tiles * lines_of_tile(); }
  int width(bool of_keys) const { return of_keys ? tiles.dim : tiles.dim_v; }
  int piece(bool of_keys) const { return std::min(tiles.columns, width(of_keys)); }
  // Of a block of keys a tile's sums of dV or dK, so many columns from `column` on, in the slice
  // that has them.
  Block place(const Index& block, const Index& tile, bool of_keys, int column, int columns) const {
    const Index first = (block * tiles.tiles + tile) * lines_of_tile();
    return {first + (of_keys ? lines_of_values : 0) + lines_of(column), lines_of(columns),
            Index(lines_of_tensor ? *lines_of_tensor : lines())};
  }
  Tile lines_of(const Tile& tile) const {
    if (!tiles.in_fragments) return sum_lines(tile);
    return fragments(tile).reshape({lines_of(static_cast<int>(tile.shape()[1])), kLine});
  }
  Tile tile_of(const Tile& lines) const {
    if (!tiles.in_fragments) return of_sum_lines(lines);
    const std::int64_t elements = lines.shape()[0] * kLine;
    return from_fragments(lines.reshape({elements}), static_cast<int>(elements / tiles.keys));
  }

  Dim parts, blocks;  // blocks of keys that are divided
  std::optional<Dim> lines_of_tensor;
  KeyTiles tiles;
  int lines_of_keys, lines_of_values;
  Order order;
  bool apart;
};

// Lines of sums that a block of keys has.
inline int lines_of_block(const Attention& a) {
  return SharedSumsShape(KeyTiles::of(a), 1, 1, Order::any).lines_of_block();
}

// The sums that kernels before have made, perhaps in another rank, and until when who adds last
// waits for them: most of the work is over then, under which they come. And whether sums are left
// to kernels behind, where those of kernels before are, or else in the own place.
struct SumsOfKernels {
  std::optional<Tensor> before;
  bool leaves = false;
  std::function<void()> await;
};

// By the warpgroups that hold dK and dV. In turn the first part stores, the others add, and the
// last one adds what is there to its registers. A warp waits for the same warp of another CTA
// alone, which was dealt the block before, or in no order is there already.
class SharedSums {
 public:
  // `words`: of them the first is `first_word`; none where the parts' sums are apart.
  SharedSums(const SharedSumsShape& shape, const Tensor& sums, const std::optional<Tensor>& words,
             const Dim& first_word, SumsOfKernels kernels = {})
      : shape_(shape),
        sums_(sums),
        words_(words),
        first_word_(first_word),
        kernels_(std::move(kernels)) {}

  // The number of the block of keys; where each has parts of its own, how many. Then the words are
  // 0 again behind the last one.
  struct Place {
    Index block, part;
    std::optional<Index> parts = std::nullopt;
  };
  // The `number`-th tile, of dV or dK. `put` takes what is complete, warp by warp: pieces of the
  // columns, each from a column on.
  using Put = std::function<void(const Tile&, int column)>;
  void add(const Place& at, const Index& number, bool of_keys, const Tile& tile,
           const Put& put) const {
    if (!shape_.apart) return add_in_turn(at, number, of_keys, tile, put);
    when(
        Index(shape_.parts) > 1,
        [&] {
          for_pieces(of_keys, tile, [&](const Tile& piece, int column) {
            const Block own = shape_.place(at.block, number, of_keys, column, columns_of(piece));
            tilewright::store(sums_(at.part, own, all), shape_.lines_of(piece));
          });
        },
        [&] { for_pieces(of_keys, tile, put); });
  }

  // Where a piece has all columns.
  void add(const Place& at, const Index& number, bool of_keys, const Tile& tile,
           FunctionRef<void(const Tile&)> put) const {
    add(at, number, of_keys, tile, Put([&](const Tile& whole, int) { put(whole); }));
  }

 private:
  static int columns_of(const Tile& tile) { return static_cast<int>(tile.shape()[1]); }

  void for_pieces(bool of_keys, const Tile& tile, const Put& each) const {
    const int width = columns_of(tile), columns = std::min(shape_.piece(of_keys), width);
    for (int column = 0; column < width; column += columns) {
      each(columns == width ? tile : tile.slice({0, column}, {shape_.tiles.keys, columns}), column);
    }
  }

  void add_in_turn(const Place& at, const Index& number, bool of_keys, const Tile& tile,
                   const Put& put) const {
    const Index parts = at.parts ? *at.parts : Index(shape_.parts);
    const int columns = std::min(shape_.piece(of_keys), columns_of(tile));
    const auto view = [&](const Tensor& tensor, int column) {
      const auto lines = [&](const Index& block) {
        return shape_.place(block, number, of_keys, column, columns);
      };
      if (at.parts) return tensor(lines(at.block), all);
      return tensor(at.block % parts, lines(at.block / parts), all);
    };
    const auto loaded = [&](const Tensor& tensor, int column) {
      return shape_.tile_of(load(view(tensor, column)));
    };
    const Index warp =
        (at.block * 2 + (of_keys ? 1 : 0)) * shape_.warps() + number * 4 + warp_index();
    const Index word = first_word_ + warp * shape_.words_of_warp();
    Cell<Index> next(at.part);
    if (shape_.order == Order::any) {
      when(parts > 1, [&] {
        next = atomic_add((*words_)(word + 1), 1, {Semantics::relaxed, Scope::gpu});
      });
    }
    const Index turn = next;
    when(turn > 0, [&] {
      wait_flag((*words_)(word), Compare::ge, turn, {Semantics::acquire, Scope::gpu});
    });
    const auto store_all = [&] {
      for_pieces(of_keys, tile, [&](const Tile& piece, int column) {
        tilewright::store(view(sums_, column), shape_.lines_of(piece));
      });
    };
    const auto add_all = [&] {
      for_pieces(of_keys, tile, [&](const Tile& piece, int column) {
        atomic_add(view(sums_, column), shape_.lines_of(piece), shape_.order);
      });
    };
    const auto leave = [&] {
      when(turn == 0, store_all, add_all);
      atomic_add((*words_)(word), 1, {Semantics::release, Scope::gpu});
    };
    if (kernels_.leaves && !kernels_.before) return leave();
    when(
        turn == parts - 1,
        [&] {
          if (kernels_.before) kernels_.await();
          if (at.parts) set_back(word, turn);
          for_pieces(of_keys, tile, [&](const Tile& piece, int column) {
            Var sum{piece};
            when(turn > 0, [&] { sum = sum + loaded(sums_, column); });
            if (kernels_.before) sum = sum + loaded(*kernels_.before, column);
            if (kernels_.leaves) {
              tilewright::store(view(*kernels_.before, column), shape_.lines_of(sum));
            } else {
              put(sum, column);
            }
          });
        },
        leave);
  }
  // By the last one, behind its wait for the others.
  void set_back(const Index& word, const Index& turn) const {
    warp_sync();  // no lane looks at the word any more
    atomic_add((*words_)(word), 0 - turn, {Semantics::relaxed, Scope::gpu});
    if (shape_.order != Order::any) return;
    atomic_add((*words_)(word + 1), 0 - turn - 1, {Semantics::relaxed, Scope::gpu});
  }

  SharedSumsShape shape_;
  Tensor sums_;
  std::optional<Tensor> words_;
  Dim first_word_;
  SumsOfKernels kernels_;
};

// What a kernel of all gradients sums in memory.
struct SummedShapes {
  int rows;                             // of a block, of which statistics and sums have whole ones
  std::vector<Dim> queries;             // sums of dQ
  std::optional<Dim> turns;             // in order, words of dQ that are 0 before
  std::optional<SharedSumsShape> keys;  // of dK and dV, where heads share keys
  bool puts_queries = false;            // dQ itself, of some rows
};

// Its tensors, in the order in which a program gives them.
struct GradientTensors {
  template <typename Keys>
  GradientTensors(Kernel& kernel, const Attention& a, const Keys& sequences,
                  const SummedShapes& summed)
      : Q(kernel.in("Q", a.dtype, sequences.of_queries(a.dim))),
        K(kernel.in("K", a.dtype, sequences.of_keys(a.dim))),
        V(kernel.in("V", a.dtype, sequences.of_keys(a.dim_v))),
        dO(kernel.in("dO", a.dtype, sequences.of_queries(a.dim_v))),
        L(kernel.in("L", f32, sequences.of_rows(summed.rows))),
        D(kernel.in("D", f32, sequences.of_rows(summed.rows))),
        sums(kernel.inout("sums", f32, summed.queries)),
        dK(kernel.out("dK", a.dtype, sequences.of_keys(a.dim))),
        dV(kernel.out("dV", a.dtype, sequences.of_keys(a.dim_v))) {
    if (summed.puts_queries) dQ = kernel.out("dQ", a.dtype, sequences.of_queries(a.dim));
    if (summed.turns) turns = kernel.inout("turns", i32, {*summed.turns});
    if (!summed.keys) return;
    const Tensor sums_of_keys = kernel.inout("key_sums", f32, summed.keys->sums());
    std::optional<Tensor> key_turns;
    if (!summed.keys->apart) key_turns = kernel.inout("key_turns", i32, {summed.keys->words()});
    key_sums.emplace(*summed.keys, sums_of_keys, key_turns, 0);
  }

  Tensor Q, K, V, dO, L, D, sums, dK, dV;
  std::optional<Tensor> dQ, turns;
  std::optional<SharedSums> key_sums;
};

// The query heads whose rows a block of keys goes through.
struct Members {
  Index first, count;
};
inline Members members_of(const GradientTensors& tensors, const HeadParts& parts,
                          const KeyPlace& at) {
  const Index first = at.kv_head * parts.group;
  if (!tensors.key_sums) return {first, parts.group};
  return {first + parts.number(at.part, 0), parts.members_of(at.part)};
}

// dK and dV of the parts' sums, where these are kept apart. Input, behind the offsets of Packed:
// the sums; outputs dK, dV.
template <typename Sequences>
Kernel key_gradients_of_sums(const Attention& attention, const KeyTiles& tiles,
                             const std::string& name);

}  // namespace tilewright::kernels
