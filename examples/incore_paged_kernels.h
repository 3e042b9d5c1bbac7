#pragma once

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/incore.h"

// The kernels of incore_paged_attention.cpp, each of one tile of heads: the scores of queries with
// the keys of one page or two, their softmax, its product with the values, what joins two such
// results, and what ends the last one. Each is there twice, with the same tensors: at the tile
// level, for every target, and for the core `incore`.
namespace tilewright::examples::paged {

constexpr int kPage = 32, kDim = 48, kHeads = 16;  // of a tile
constexpr double kScale = 0.14433756729740643;     // 1 / sqrt(48)
constexpr double kNone = -std::numeric_limits<double>::infinity();

// ---- What the kernels take.

enum class Level { tile, core };

struct OfHeads {
  OfHeads(const std::string& name, Level level) : kernel(name), rows(0) {
    if (level == Level::core) kernel.target("incore");
    rows = kernel.dim("rows", at_most(kHeads));
    if (level == Level::core) {
      kernel.ctas(1);
    } else {
      kernel.grid(1);
    }
  }
  Tensor in(const char* name, int columns, DType dtype = f32) {
    return kernel.in(name, dtype, {rows, columns});
  }
  Tensor out(const char* name, int columns, DType dtype = f32) {
    return kernel.out(name, dtype, {rows, columns});
  }
  Tensor inout(const char* name, int columns) { return kernel.inout(name, f32, {rows, columns}); }
  Kernel kernel;
  Dim rows;
};

// Keys or values of a page, of which the last one may not be full.
struct Page {
  Dim keys;
  Tensor tensor;
  bool is_last = false;
  TensorView all_keys() const { return tensor(0, keys.block(0, kPage), all); }
};

struct OfPages : OfHeads {
  OfPages(const std::string& name, int count, Level level)
      : OfHeads(name + "_x" + std::to_string(count), level), pages(count), width(count * kPage) {}
  std::vector<Page> in_pages(const char* name) {
    std::vector<Page> list;
    for (int i = 0; i < pages; ++i) {
      const bool is_last = i + 1 == pages;
      const Dim keys = is_last ? kernel.dim("keys", at_most(kPage)) : Dim(kPage);
      list.push_back({keys, kernel.in(name + std::to_string(i), bf16, {1, keys, kDim}), is_last});
    }
    return list;
  }
  const int pages, width;
};

struct Scores : OfPages {
  Scores(int count, Level level) : OfPages("qk", count, level) {}
  // Of a page's keys, as far as there are any.
  Block columns(int page) const {
    return Block(page * kPage, kPage, page * kPage + Index(K[page].keys));
  }
  const Tensor Q = kernel.in("Q", bf16, {1, rows, kDim});
  const std::vector<Page> K = in_pages("K");
  const Tensor S = out("S", width);
};

struct Softmax : OfPages {
  Softmax(int count, Level level) : OfPages("softmax_prepare", count, level) {}
  const Tensor S = in("S", width), P = out("P", width, bf16), M = out("M", 1), L = out("L", 1);
  const Scalar keys = kernel.scalar("keys", i32);
};

struct Weighted : OfPages {
  Weighted(int count, Level level) : OfPages("pv", count, level) {}
  const Tensor P = in("P", width, bf16);
  const std::vector<Page> V = in_pages("V");
  const Tensor O = out("O", kDim);
};

struct Update : OfHeads {
  explicit Update(Level level) : OfHeads("online_update", level) {}
  const Tensor Oi = in("Oi", kDim), Mi = in("Mi", 1), Li = in("Li", 1);
  const Tensor O = inout("O", kDim), M = inout("M", 1), L = inout("L", 1);
};

struct Finish : OfHeads {
  explicit Finish(Level level) : OfHeads("finish", level) {}
  const Tensor O = in("O", kDim), L = in("L", 1);
  const Tensor Y = kernel.out("Y", bf16, {1, rows, kDim});
};

// ---- At the tile level, in tiles of as many rows as products of GPUs have. Those past the heads
// are neither read nor stored.

constexpr int kRows = 64;

inline Kernel tile_qk(int pages) {
  Scores of(pages, Level::tile);
  const Block heads = of.rows.block(0, kRows);
  const Tile q = load(of.Q(0, heads, all));
  for (int i = 0; i < pages; ++i) {
    store(of.S(heads, of.columns(i)), dot(q, load(of.K[i].all_keys()).T()));
  }
  return std::move(of.kernel);
}

inline Kernel tile_softmax(int pages) {
  Softmax of(pages, Level::tile);
  const Block heads = of.rows.block(0, kRows), columns(0, of.width, of.width);
  // Behind the last key lies anything.
  const Tile s =
      where(columns.as_row() < Index(of.keys), load(of.S(heads, columns)) * kScale, kNone);
  const Tile m = reduce_max(s, 1), p = exp(s - m);
  store(of.P(heads, columns), p.cast(bf16));
  store(of.M(heads, all), m);
  store(of.L(heads, all), reduce_sum(p, 1));
  return std::move(of.kernel);
}

inline Kernel tile_pv(int pages) {
  Weighted of(pages, Level::tile);
  const Block heads = of.rows.block(0, kRows);
  Var sum{zeros({kRows, kDim})};
  for (int i = 0; i < pages; ++i) {
    const Tile p = load(of.P(heads, Block(i * kPage, kPage, of.width)));
    sum = sum + dot(p, load(of.V[i].all_keys()));
  }
  store(of.O(heads, all), sum);
  return std::move(of.kernel);
}

inline Kernel tile_update() {
  Update of(Level::tile);
  const Block heads = of.rows.block(0, kRows);
  const Tile before = load(of.M(heads, all)), own = load(of.Mi(heads, all));
  const Tile m = max(before, own), a = exp(before - m), b = exp(own - m);
  store(of.O(heads, all), load(of.O(heads, all)) * a + load(of.Oi(heads, all)) * b);
  store(of.L(heads, all), load(of.L(heads, all)) * a + load(of.Li(heads, all)) * b);
  store(of.M(heads, all), m);
  return std::move(of.kernel);
}

inline Kernel tile_finish() {
  Finish of(Level::tile);
  const Block heads = of.rows.block(0, kRows);
  store(of.Y(0, heads, all), load(of.O(heads, all)) / load(of.L(heads, all)));
  return std::move(of.kernel);
}

// ---- For the core `incore`: products on its matrix core.

inline Kernel core_qk(int pages) {
  Scores of(pages, Level::core);
  CoreMemory q(of.kernel, "Mat", "q", bf16, kHeads, kDim);
  CoreMemory k(of.kernel, "Mat", "k", bf16, kPage, kDim, stages(2));
  CoreMemory left(of.kernel, "Left", "left", bf16, kHeads, kDim);
  CoreMemory right(of.kernel, "Right", "right", bf16, kDim, kPage, stages(2));
  CoreMemory sums(of.kernel, "Acc", "sums", f32, kHeads, kPage, stages(2));
  CoreEvent query(of.kernel, "MTE2", "MTE1");
  CoreRing loaded(of.kernel, "MTE2", "MTE1", stages(2)), fed(of.kernel, "MTE1", "M", stages(2)),
      summed(of.kernel, "M", "FIX", stages(2));
  of.kernel.roles({sequencer("cube", [&] {
    const Block heads = of.rows.block(0, kHeads);
    move(q, of.Q(0, heads, all));
    query.set();
    query.wait();
    move(left, q);
    for (int i = 0; i < pages; ++i) {
      loaded.produce([&](const Index& stage) { move(k[stage], of.K[i].all_keys()); });
      loaded.consume([&](const Index& stage) {
        // A page lies as {keys, dim}, and is the right operand as {dim, keys}.
        fed.produce([&](const Index& slot) { move(right[slot], k[stage].T()); });
      });
      fed.consume([&](const Index& slot) {
        summed.produce([&](const Index& sum) { matmul(sums[sum], left, right[slot], false); });
      });
      summed.consume([&](const Index& sum) { move(of.S(heads, of.columns(i)), sums[sum]); });
    }
  })});
  return std::move(of.kernel);
}

inline Kernel core_pv(int pages) {
  Weighted of(pages, Level::core);
  CoreMemory p(of.kernel, "Mat", "p", bf16, kHeads, kPage, stages(2));
  CoreMemory v(of.kernel, "Mat", "v", bf16, kPage, kDim, stages(2));
  CoreMemory left(of.kernel, "Left", "left", bf16, kHeads, kPage, stages(2));
  CoreMemory right(of.kernel, "Right", "right", bf16, kPage, kDim, stages(2));
  CoreMemory sums(of.kernel, "Acc", "sums", f32, kHeads, kDim);
  CoreRing loaded(of.kernel, "MTE2", "MTE1", stages(2)), fed(of.kernel, "MTE1", "M", stages(2));
  CoreEvent summed(of.kernel, "M", "FIX");
  of.kernel.roles({sequencer("cube", [&] {
    const Block heads = of.rows.block(0, kHeads);
    for (int i = 0; i < pages; ++i) {
      const Index keys = of.V[i].is_last ? Index(of.V[i].keys) : Index(kPage);
      loaded.produce([&](const Index& stage) {
        // The product sums whole pieces of keys: those that there are not have to be zero.
        if (of.V[i].is_last) {
          when(keys < kPage, [&] {
            fill(v[stage], 0);
            unit_barrier("MTE2");
          });
        }
        move(v[stage], of.V[i].all_keys());
        move(p[stage], of.P(heads, Block(i * kPage, kPage, (i + 1) * kPage)));
      });
      loaded.consume([&](const Index& stage) {
        fed.produce([&](const Index& slot) {
          move(left[slot], p[stage]);
          move(right[slot], v[stage]);
        });
      });
      fed.consume([&](const Index& slot) { matmul(sums, left[slot], right[slot], i > 0, keys); });
    }
    summed.set();
    summed.wait();
    move(of.O(heads, all), sums);
  })});
  return std::move(of.kernel);
}

// ---- And all else on its two vector cores, of which each has half of the heads.

constexpr int kOwn = kHeads / 2;

// What a vector core loads, computes and stores, one after the other.
class VectorWork {
 public:
  using View = std::function<TensorView(const Block& heads)>;
  explicit VectorWork(OfHeads& of)
      : of_(of), loaded_(of.kernel, "VMTE2", "V"), made_(of.kernel, "V", "VMTE3") {}
  CoreMemory matrix(const char* name, int columns, DType dtype = f32, int rows = kOwn) {
    return CoreMemory(of_.kernel, "Vec", name, dtype, rows, columns);
  }
  CoreMemory loaded(const char* name, int columns, const View& from) {
    loads_.emplace_back(matrix(name, columns), from);
    return loads_.back().first;
  }
  CoreMemory loaded(const char* name, int columns, const Tensor& from) {
    return loaded(name, columns, all_columns(from));
  }
  void stored(const CoreMemory& from, const View& to) { stores_.emplace_back(from, to); }
  void stored(const CoreMemory& from, const Tensor& to) { stored(from, all_columns(to)); }

  void compute(const std::function<void()>& body) {
    of_.kernel.roles({sequencer("vector", [&](const Index& instance) {
      const Block heads = of_.rows.block(instance, kOwn);
      for (const auto& [to, from] : loads_) move(to, from(heads));
      loaded_.set();
      loaded_.wait();
      body();
      made_.set();
      made_.wait();
      for (const auto& [from, to] : stores_) move(to(heads), from);
    })});
  }

 private:
  static View all_columns(const Tensor& tensor) {
    return [tensor](const Block& heads) { return tensor(heads, all); };
  }
  OfHeads& of_;
  CoreEvent loaded_, made_;
  std::vector<std::pair<CoreMemory, View>> loads_, stores_;
};

// What needs the result of what comes before it in the vector unit.
inline void then(VectorFunction function, const CoreWindow& to,
                 const std::vector<VectorOperand>& of) {
  unit_barrier("V");
  vector(function, to, of);
}
inline void then_reduce(Reduction how, const CoreWindow& to, const CoreWindow& from) {
  unit_barrier("V");
  reduce(how, to, from, 1);
}

inline Kernel core_softmax(int pages) {
  Softmax of(pages, Level::core);
  VectorWork work(of);
  const CoreMemory s = work.loaded("s", of.width, [&](const Block& heads) {
    return of.S(heads, Block(0, of.width, Index(of.keys)));
  });
  const CoreMemory p = work.matrix("p", of.width, bf16);
  const CoreMemory behind = work.matrix("behind", of.width, i32, 1);
  const CoreMemory is_key = work.matrix("is_key", of.width, DType::boolean, 1);
  const CoreMemory m = work.matrix("m", 1), l = work.matrix("l", 1);
  work.stored(p, of.P);
  work.stored(m, of.M);
  work.stored(l, of.L);
  work.compute([&] {
    // Behind the last key lies anything: the load itself fills rows up with zeros.
    iota(behind, 1, 0 - Index(of.keys));
    vector(VectorFunction::multiply, s, {s, kScale});
    then(VectorFunction::less, is_key, {behind, 0});
    then(VectorFunction::select, s, {is_key, s, kNone});
    then_reduce(Reduction::max, m, s);
    then(VectorFunction::subtract, s, {s, m});
    then(VectorFunction::exp, s, {s});
    then_reduce(Reduction::add, l, s);
    vector(VectorFunction::convert, p, {s});
  });
  return std::move(of.kernel);
}

inline Kernel core_update() {
  Update of(Level::core);
  VectorWork work(of);
  const CoreMemory oi = work.loaded("oi", kDim, of.Oi), o = work.loaded("o", kDim, of.O);
  const CoreMemory mi = work.loaded("mi", 1, of.Mi), m = work.loaded("m", 1, of.M);
  const CoreMemory li = work.loaded("li", 1, of.Li), l = work.loaded("l", 1, of.L);
  const CoreMemory top = work.matrix("top", 1);
  work.stored(o, of.O);
  work.stored(top, of.M);
  work.stored(l, of.L);
  work.compute([&] {
    vector(VectorFunction::maximum, top, {m, mi});
    then(VectorFunction::subtract, m, {m, top});
    vector(VectorFunction::subtract, mi, {mi, top});
    then(VectorFunction::exp, m, {m});
    vector(VectorFunction::exp, mi, {mi});
    then(VectorFunction::multiply, o, {o, m});
    vector(VectorFunction::multiply, oi, {oi, mi});
    vector(VectorFunction::multiply, l, {l, m});
    vector(VectorFunction::multiply, li, {li, mi});
    then(VectorFunction::add, o, {o, oi});
    vector(VectorFunction::add, l, {l, li});
  });
  return std::move(of.kernel);
}

inline Kernel core_finish() {
  Finish of(Level::core);
  VectorWork work(of);
  const CoreMemory o = work.loaded("o", kDim, of.O), l = work.loaded("l", 1, of.L);
  const CoreMemory y = work.matrix("y", kDim, bf16);
  work.stored(y, [&](const Block& heads) { return of.Y(0, heads, all); });
  work.compute([&] {
    vector(VectorFunction::divide, o, {o, l});
    then(VectorFunction::convert, y, {o});
  });
  return std::move(of.kernel);
}

// ---- All of them, for one page and for two.

struct Tier {
  Kernel qk, softmax_prepare, pv;
};
struct Kernels {
  std::string program;
  Tier one, two;
  Kernel online_update, finish;
};

inline Kernels tile_kernels() {
  return {"paged_attention",
          {tile_qk(1), tile_softmax(1), tile_pv(1)},
          {tile_qk(2), tile_softmax(2), tile_pv(2)},
          tile_update(),
          tile_finish()};
}
inline Kernels core_kernels() {
  return {"paged_attention_incore",
          {core_qk(1), core_softmax(1), core_pv(1)},
          {core_qk(2), core_softmax(2), core_pv(2)},
          core_update(),
          core_finish()};
}

}  // namespace tilewright::examples::paged
