#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "example.h"
#include "tilewright/incore.h"
#include "tilewright/library.h"
#include "tilewright/library_executable.h"
#include "tilewright/program.h"

// Attention of one query a sequence, whose keys and values lie in pages: a Program of four kernels
// over intermediate tensors. It reads a sequence's length and its pages from the buffers, takes the
// pages in pairs (x2), and one that is left over by itself (x1). The kernels are written twice: at
// the tile level, for every target, and for a core with explicit memories.
using namespace tilewright;

namespace {

constexpr int kPage = 32, kDim = 48, kHeads = 16;  // of a tile
constexpr double kScale = 0.14433756729740643;     // 1 / sqrt(48)
const double kNone = -std::numeric_limits<double>::infinity();

// Of one or two pages. A page that is not full has fewer keys.
struct Tier {
  Kernel qk, softmax_prepare, pv;
};
struct Kernels {
  Tier one, two;
  Kernel online_update, finish;
};

// What kernels of a tier declare.
struct Page {
  Dim keys;
  Tensor tensor;
};
std::vector<Page> pages_of(Kernel& kernel, const char* name, int pages) {
  std::vector<Page> all;
  for (int i = 0; i < pages; ++i) {
    const std::string number = std::to_string(i);
    const Dim keys = kernel.dim("keys_" + number, at_most(kPage));
    all.push_back({keys, kernel.in(name + number, bf16, {1, keys, kDim})});
  }
  return all;
}
Block page_columns(int page, const Dim& keys) {
  return Block(page * kPage, kPage, page * kPage + Index(keys));
}

// ---- At the tile level, in tiles of as many rows as products of GPUs have. Those past the heads
// are neither read nor stored.

constexpr int kRows = 64;

Kernel tile_qk(int pages) {
  Kernel kernel("qk_x" + std::to_string(pages));
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor Q = kernel.in("Q", bf16, {1, rows, kDim});
  const std::vector<Page> K = pages_of(kernel, "K", pages);
  const Tensor S = kernel.out("S", f32, {rows, pages * kPage});
  kernel.grid(1);
  const Block heads = rows.block(0, kRows);
  const Tile q = load(Q(0, heads, all));
  for (int i = 0; i < pages; ++i) {
    const Tile k = load(K[i].tensor(0, K[i].keys.block(0, kPage), all));
    store(S(heads, page_columns(i, K[i].keys)), dot(q, k.T()));
  }
  return kernel;
}

Kernel tile_softmax(int pages) {
  const int width = pages * kPage;
  Kernel kernel("softmax_prepare_x" + std::to_string(pages));
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor S = kernel.in("S", f32, {rows, width}), P = kernel.out("P", bf16, {rows, width});
  const Tensor M = kernel.out("M", f32, {rows, 1}), L = kernel.out("L", f32, {rows, 1});
  const Scalar keys = kernel.scalar("keys", i32);
  kernel.grid(1);
  const Block heads = rows.block(0, kRows), columns(0, width, width);
  // Behind the last key lies anything.
  const Tile s = where(columns.as_row() < Index(keys), load(S(heads, columns)) * kScale, kNone);
  const Tile m = reduce_max(s, 1), p = exp(s - m);
  store(P(heads, columns), p.cast(bf16));
  store(M(heads, all), m);
  store(L(heads, all), reduce_sum(p, 1));
  return kernel;
}

Kernel tile_pv(int pages) {
  Kernel kernel("pv_x" + std::to_string(pages));
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor P = kernel.in("P", bf16, {rows, pages * kPage});
  const std::vector<Page> V = pages_of(kernel, "V", pages);
  const Tensor O = kernel.out("O", f32, {rows, kDim});
  kernel.grid(1);
  const Block heads = rows.block(0, kRows);
  Var sum{zeros({kRows, kDim})};
  for (int i = 0; i < pages; ++i) {
    const Tile p = load(P(heads, Block(i * kPage, kPage, pages * kPage)));
    sum = sum + dot(p, load(V[i].tensor(0, V[i].keys.block(0, kPage), all)));
  }
  store(O(heads, all), sum);
  return kernel;
}

Kernel tile_update() {
  Kernel kernel("online_update");
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor Oi = kernel.in("Oi", f32, {rows, kDim});
  const Tensor Mi = kernel.in("Mi", f32, {rows, 1}), Li = kernel.in("Li", f32, {rows, 1});
  const Tensor O = kernel.inout("O", f32, {rows, kDim});
  const Tensor M = kernel.inout("M", f32, {rows, 1}), L = kernel.inout("L", f32, {rows, 1});
  kernel.grid(1);
  const Block heads = rows.block(0, kRows);
  const Tile before = load(M(heads, all)), own = load(Mi(heads, all));
  const Tile m = max(before, own), a = exp(before - m), b = exp(own - m);
  store(O(heads, all), load(O(heads, all)) * a + load(Oi(heads, all)) * b);
  store(L(heads, all), load(L(heads, all)) * a + load(Li(heads, all)) * b);
  store(M(heads, all), m);
  return kernel;
}

Kernel tile_finish() {
  Kernel kernel("finish");
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor O = kernel.in("O", f32, {rows, kDim}), L = kernel.in("L", f32, {rows, 1});
  const Tensor Y = kernel.out("Y", bf16, {1, rows, kDim});
  kernel.grid(1);
  const Block heads = rows.block(0, kRows);
  store(Y(0, heads, all), load(O(heads, all)) / load(L(heads, all)));
  return kernel;
}

// ---- For the core `incore`: its matrix core makes the products, and its two vector cores have
// half of the heads each.

constexpr int kOwn = kHeads / 2;  // of a vector core

// One vector core's: loads, computes, stores.
struct VectorWork {
  explicit VectorWork(Kernel& kernel) : loaded(kernel, "VMTE2", "V"), made(kernel, "V", "VMTE3") {}
  void compute(const std::function<void()>& body) const {
    loaded.set();
    loaded.wait();
    body();
    made.set();
    made.wait();
  }
  CoreEvent loaded, made;
};
// What needs the result of what comes before it in the vector unit.
void then(VectorFunction function, const CoreWindow& to, const std::vector<VectorOperand>& of) {
  unit_barrier("V");
  vector(function, to, of);
}
void then_reduce(Reduction how, const CoreWindow& to, const CoreWindow& from) {
  unit_barrier("V");
  reduce(how, to, from, 1);
}

Kernel core_qk(int pages) {
  Kernel kernel("qk_x" + std::to_string(pages));
  kernel.target("incore");
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor Q = kernel.in("Q", bf16, {1, rows, kDim});
  const std::vector<Page> K = pages_of(kernel, "K", pages);
  const Tensor S = kernel.out("S", f32, {rows, pages * kPage});
  kernel.ctas(1);
  CoreMemory q(kernel, "Mat", "q", bf16, kHeads, kDim);
  CoreMemory k(kernel, "Mat", "k", bf16, kPage, kDim, stages(2));
  CoreMemory left(kernel, "Left", "left", bf16, kHeads, kDim);
  CoreMemory right(kernel, "Right", "right", bf16, kDim, kPage, stages(2));
  CoreMemory sums(kernel, "Acc", "sums", f32, kHeads, kPage, stages(2));
  CoreEvent query(kernel, "MTE2", "MTE1");
  CoreRing loaded(kernel, "MTE2", "MTE1", stages(2)), fed(kernel, "MTE1", "M", stages(2)),
      summed(kernel, "M", "FIX", stages(2));
  kernel.roles({sequencer("cube", [&] {
    const Block heads = rows.block(0, kHeads);
    move(q, Q(0, heads, all));
    query.set();
    query.wait();
    move(left, q);
    for (int i = 0; i < pages; ++i) {
      const Dim keys = K[i].keys;
      loaded.produce(
          [&](const Index& stage) { move(k[stage], K[i].tensor(0, keys.block(0, kPage), all)); });
      loaded.consume([&](const Index& stage) {
        // A page lies as {keys, dim}, and is the right operand as {dim, keys}.
        fed.produce([&](const Index& slot) { move(right[slot], k[stage].T()); });
      });
      fed.consume([&](const Index& slot) {
        summed.produce([&](const Index& sum) { matmul(sums[sum], left, right[slot], false); });
      });
      summed.consume([&](const Index& sum) { move(S(heads, page_columns(i, keys)), sums[sum]); });
    }
  })});
  return kernel;
}

Kernel core_softmax(int pages) {
  const int width = pages * kPage;
  Kernel kernel("softmax_prepare_x" + std::to_string(pages));
  kernel.target("incore");
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor S = kernel.in("S", f32, {rows, width}), P = kernel.out("P", bf16, {rows, width});
  const Tensor M = kernel.out("M", f32, {rows, 1}), L = kernel.out("L", f32, {rows, 1});
  const Scalar keys = kernel.scalar("keys", i32);
  kernel.ctas(1);
  CoreMemory s(kernel, "Vec", "s", f32, kOwn, width), p(kernel, "Vec", "p", bf16, kOwn, width);
  CoreMemory behind(kernel, "Vec", "behind", i32, 1, width);
  CoreMemory is_key(kernel, "Vec", "is_key", DType::boolean, 1, width);
  CoreMemory m(kernel, "Vec", "m", f32, kOwn, 1), l(kernel, "Vec", "l", f32, kOwn, 1);
  const VectorWork work(kernel);
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    const Block heads = rows.block(instance, kOwn);
    move(s, S(heads, Block(0, width, Index(keys))));
    work.compute([&] {
      // Behind the last key lies anything: the load itself fills rows up with zeros.
      iota(behind, 1, 0 - Index(keys));
      vector(VectorFunction::multiply, s, {s, kScale});
      then(VectorFunction::less, is_key, {behind, 0});
      then(VectorFunction::select, s, {is_key, s, kNone});
      then_reduce(Reduction::max, m, s);
      then(VectorFunction::subtract, s, {s, m});
      then(VectorFunction::exp, s, {s});
      then_reduce(Reduction::add, l, s);
      vector(VectorFunction::convert, p, {s});
    });
    move(P(heads, Block(0, width, width)), p);
    move(M(heads, all), m);
    move(L(heads, all), l);
  })});
  return kernel;
}

Kernel core_pv(int pages) {
  Kernel kernel("pv_x" + std::to_string(pages));
  kernel.target("incore");
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor P = kernel.in("P", bf16, {rows, pages * kPage});
  const std::vector<Page> V = pages_of(kernel, "V", pages);
  const Tensor O = kernel.out("O", f32, {rows, kDim});
  kernel.ctas(1);
  CoreMemory p(kernel, "Mat", "p", bf16, kHeads, kPage, stages(2));
  CoreMemory v(kernel, "Mat", "v", bf16, kPage, kDim, stages(2));
  CoreMemory left(kernel, "Left", "left", bf16, kHeads, kPage, stages(2));
  CoreMemory right(kernel, "Right", "right", bf16, kPage, kDim, stages(2));
  CoreMemory sums(kernel, "Acc", "sums", f32, kHeads, kDim);
  CoreRing loaded(kernel, "MTE2", "MTE1", stages(2)), fed(kernel, "MTE1", "M", stages(2));
  CoreEvent summed(kernel, "M", "FIX");
  kernel.roles({sequencer("cube", [&] {
    const Block heads = rows.block(0, kHeads);
    for (int i = 0; i < pages; ++i) {
      const Dim keys = V[i].keys;
      loaded.produce([&](const Index& stage) {
        // The product sums whole pieces of keys: those that there are not have to be zero.
        when(Index(keys) < kPage, [&] {
          fill(v[stage], 0);
          unit_barrier("MTE2");
        });
        move(v[stage], V[i].tensor(0, keys.block(0, kPage), all));
        move(p[stage], P(heads, Block(i * kPage, kPage, (i + 1) * kPage)));
      });
      loaded.consume([&](const Index& stage) {
        fed.produce([&](const Index& slot) {
          move(left[slot], p[stage]);
          move(right[slot], v[stage]);
        });
      });
      fed.consume(
          [&](const Index& slot) { matmul(sums, left[slot], right[slot], i > 0, Index(keys)); });
    }
    summed.set();
    summed.wait();
    move(O(heads, all), sums);
  })});
  return kernel;
}

Kernel core_update() {
  Kernel kernel("online_update");
  kernel.target("incore");
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor Oi = kernel.in("Oi", f32, {rows, kDim});
  const Tensor Mi = kernel.in("Mi", f32, {rows, 1}), Li = kernel.in("Li", f32, {rows, 1});
  const Tensor O = kernel.inout("O", f32, {rows, kDim});
  const Tensor M = kernel.inout("M", f32, {rows, 1}), L = kernel.inout("L", f32, {rows, 1});
  kernel.ctas(1);
  CoreMemory oi(kernel, "Vec", "oi", f32, kOwn, kDim), o(kernel, "Vec", "o", f32, kOwn, kDim);
  CoreMemory mi(kernel, "Vec", "mi", f32, kOwn, 1), m(kernel, "Vec", "m", f32, kOwn, 1);
  CoreMemory li(kernel, "Vec", "li", f32, kOwn, 1), l(kernel, "Vec", "l", f32, kOwn, 1);
  CoreMemory top(kernel, "Vec", "top", f32, kOwn, 1);
  const VectorWork work(kernel);
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    const Block heads = rows.block(instance, kOwn);
    move(oi, Oi(heads, all));
    move(mi, Mi(heads, all));
    move(li, Li(heads, all));
    move(o, O(heads, all));
    move(m, M(heads, all));
    move(l, L(heads, all));
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
    move(O(heads, all), o);
    move(M(heads, all), top);
    move(L(heads, all), l);
  })});
  return kernel;
}

Kernel core_finish() {
  Kernel kernel("finish");
  kernel.target("incore");
  const Dim rows = kernel.dim("rows", at_most(kHeads));
  const Tensor O = kernel.in("O", f32, {rows, kDim}), L = kernel.in("L", f32, {rows, 1});
  const Tensor Y = kernel.out("Y", bf16, {1, rows, kDim});
  kernel.ctas(1);
  CoreMemory o(kernel, "Vec", "o", f32, kOwn, kDim), l(kernel, "Vec", "l", f32, kOwn, 1);
  CoreMemory y(kernel, "Vec", "y", bf16, kOwn, kDim);
  const VectorWork work(kernel);
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    const Block heads = rows.block(instance, kOwn);
    move(o, O(heads, all));
    move(l, L(heads, all));
    work.compute([&] {
      vector(VectorFunction::divide, o, {o, l});
      then(VectorFunction::convert, y, {o});
    });
    move(Y(0, heads, all), y);
  })});
  return kernel;
}

Kernels tile_kernels() {
  return {{tile_qk(1), tile_softmax(1), tile_pv(1)},
          {tile_qk(2), tile_softmax(2), tile_pv(2)},
          tile_update(),
          tile_finish()};
}
Kernels core_kernels() {
  return {{core_qk(1), core_softmax(1), core_pv(1)},
          {core_qk(2), core_softmax(2), core_pv(2)},
          core_update(),
          core_finish()};
}

// ---- The orchestration.

// A sequence's first pages are row b of `table`. Q and O are {batch, heads, dim}, K and V {pages,
// page, dim}.
Program paged_attention(const Kernels& kernels) {
  Program program("paged_attention");
  const Dim batch = program.dim("batch"), heads = program.dim("heads");
  const Dim pages = program.dim("pages"), most = program.dim("most");
  const Buffer Q = program.in("Q", bf16, {batch, heads, kDim});
  const Buffer K = program.in("K", bf16, {pages, kPage, kDim});
  const Buffer V = program.in("V", bf16, {pages, kPage, kDim});
  const Buffer table = program.in("table", i32, {batch, most});
  const Buffer lengths = program.in("lengths", i32, {batch});
  const Buffer Y = program.out("O", bf16, {batch, heads, kDim});
  const auto scratch = [&](const char* name, DType dtype, int columns) {
    return program.scratch(name, dtype, {kHeads, columns});
  };
  const Buffer S = scratch("S", f32, 2 * kPage), P = scratch("P", bf16, 2 * kPage);
  const Buffer Mi = scratch("Mi", f32, 1), Li = scratch("Li", f32, 1),
               Oi = scratch("Oi", f32, kDim);
  const Buffer M = scratch("M", f32, 1), L = scratch("L", f32, 1), O = scratch("acc", f32, kDim);
  const Stream stream = program.rank(0).stream();

  program.repeat("b", batch, [&](const Dim& b) {
    const Dim length = program.read("length", lengths, {b});
    program.repeat("tile", ceil_div(heads, kHeads), [&](const Dim& tile) {
      const Dim rows = min(heads - tile * kHeads, kHeads);
      const Part q = Part(Q).box({b, tile * kHeads, 0}, {1, rows, kDim});
      const Part y = Part(Y).box({b, tile * kHeads, 0}, {1, rows, kDim});
      const auto of_rows = [&](const Buffer& buffer, int columns) {
        return Part(buffer).box({0, 0}, {rows, columns});
      };
      const std::vector<Part> state{of_rows(O, kDim), of_rows(M, 1), of_rows(L, 1)};
      // Pages first, first + 1, ... of the sequence.
      const auto tier = [&](const Tier& own, int count, const Dim& first) {
        std::vector<Part> qk{q}, pv{of_rows(P, count * kPage)};
        for (int i = 0; i < count; ++i) {
          const Dim page = program.read("page", table, {b, first + i});
          const Dim keys = max(min(length - (first + i) * kPage, kPage), 0);
          qk.push_back(Part(K).box({page, 0, 0}, {1, keys, kDim}));
          pv.push_back(Part(V).box({page, 0, 0}, {1, keys, kDim}));
        }
        const Part s = of_rows(S, count * kPage), m = of_rows(Mi, 1), l = of_rows(Li, 1);
        const Part o = of_rows(Oi, kDim);
        qk.push_back(s);
        pv.push_back(o);
        stream.launch(own.qk, qk);
        stream.launch(own.softmax_prepare, {s, pv.front(), m, l},
                      {min(length - first * kPage, count * kPage)});
        stream.launch(own.pv, pv);
        program.when(
            first, Compare::eq, 0,
            [&] {  // there is nothing to merge with
              stream.copy(state[0], o);
              stream.copy(state[1], m);
              stream.copy(state[2], l);
            },
            [&] {
              stream.launch(kernels.online_update, {o, m, l, state[0], state[1], state[2]});
            });
      };
      const Dim steps = ceil_div(length, kPage);
      program.when(
          length, Compare::gt, 0,
          [&] {
            program.repeat("pair", steps / 2,
                           [&](const Dim& pair) { tier(kernels.two, 2, pair * 2); });
            program.when(steps % 2, Compare::eq, 1, [&] { tier(kernels.one, 1, steps - 1); });
            stream.launch(kernels.finish, {state[0], state[2], y});
          },
          [&] { stream.zero(y); });  // of no keys the result is 0
    });
  });
  return program;
}

// ---- Data and what is wanted of it.

struct Data {
  HostTensor Q, K, V, table, lengths;
  std::vector<double> wanted;
};

// Pages in no order. What no sequence has is no number, and pages that there are not.
Data make_data(int heads, const std::vector<int>& lengths) {
  const auto batch = static_cast<std::int64_t>(lengths.size());
  std::int64_t most = 1, pages = 0;
  for (const int length : lengths) {
    const std::int64_t own = (length + kPage - 1) / kPage;
    most = std::max(most, own);
    pages += own;
  }
  Data data{HostTensor::random_normal(bf16, {batch, heads, kDim}, 1),
            HostTensor::poisoned(bf16, {pages, kPage, kDim}),
            HostTensor::poisoned(bf16, {pages, kPage, kDim}),
            HostTensor::poisoned(i32, {batch, most}),
            HostTensor::zeros(i32, {batch}),
            {}};
  const HostTensor k = HostTensor::random_normal(bf16, {pages, kPage, kDim}, 2);
  const HostTensor v = HostTensor::random_normal(bf16, {pages, kPage, kDim}, 3);
  std::int64_t next = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    data.lengths.set({b}, lengths[b]);
    for (std::int64_t key = 0; key < lengths[b]; ++key) {
      // 7 shares no factor with the numbers of pages below: each comes once.
      if (key % kPage == 0)
        data.table.set({b, key / kPage}, static_cast<double>(next++ * 7 % pages));
      const auto page = static_cast<std::int64_t>(data.table.at({b, key / kPage}));
      for (std::int64_t d = 0; d < kDim; ++d) {
        data.K.set({page, key % kPage, d}, k.at({page, key % kPage, d}));
        data.V.set({page, key % kPage, d}, v.at({page, key % kPage, d}));
      }
    }
  }
  // One head and one key at a time.
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::vector<double> row(kDim);
      double sum = 0;
      for (std::int64_t key = 0; key < lengths[b]; ++key) {
        const auto page = static_cast<std::int64_t>(data.table.at({b, key / kPage}));
        double score = 0;
        for (std::int64_t d = 0; d < kDim; ++d) {
          score += data.Q.at({b, h, d}) * data.K.at({page, key % kPage, d});
        }
        const double weight = std::exp(score * kScale);
        sum += weight;
        for (std::int64_t d = 0; d < kDim; ++d) {
          row[d] += weight * data.V.at({page, key % kPage, d});
        }
      }
      for (const double element : row) data.wanted.push_back(sum == 0 ? 0 : element / sum);
    }
  }
  return data;
}

double error_of(const Program& program, const std::string& target, Data& data) {
  HostTensor O = HostTensor::poisoned(bf16, data.Q.shape());
  compile(program, target)
      .run({ref(data.Q), ref(data.K), ref(data.V), ref(data.table), ref(data.lengths), ref(O)});
  return examples::relative_error(O, data.wanted);
}

// The library's kernel, which does all of it at once.
double error_of_fused(const std::string& target, Data& data) {
  const std::int64_t batch = data.Q.shape()[0], heads = data.Q.shape()[1];
  const std::int64_t pages = data.K.shape()[0];
  const LibraryKernel& kernel = find_kernel("attention_paged");
  const auto number = [](const char* name, std::int64_t value) {
    return std::string(name) + "=" + std::to_string(value);
  };
  const OptionValues options = resolve_options(
      kernel, {number("heads", heads), "kv_heads=1", number("page", kPage), number("dim", kDim)});
  HostTensor first = HostTensor::zeros(i32, {batch + 1});
  for (std::int64_t b = 0; b <= batch; ++b) first.set({b}, static_cast<double>(b));
  HostTensor O = HostTensor::poisoned(bf16, data.Q.shape());
  HostTensor LSE = HostTensor::poisoned(f32, {batch, heads});
  TensorRef K = ref(data.K), V = ref(data.V);
  K.shape = V.shape = {pages, kPage, 1, kDim};
  K.strides = V.strides = {};
  compile(kernel, options, target)
      .run({ref(data.Q), ref(first), ref(data.lengths), ref(data.table), K, V, ref(O), ref(LSE)});
  return examples::relative_error(O, data.wanted);
}

}  // namespace

int main(int argc, char** argv) {
  // No head tile is full, and lengths are about pages and pairs of them.
  Data data = make_data(20, {0, 1, kPage - 1, kPage, kPage + 1, 5 * kPage - 3, 4 * kPage});
  bool good = true;
  const auto report = [&](const char* what, const std::string& target, double error) {
    std::printf("incore_paged_attention: %s on %s: relative RMS error %.2e\n", what, target.c_str(),
                error);
    // Weights and results are rounded to bf16, each by 2^-9 = 2e-3 at most; NaN is not below it.
    good = good && error < 5e-3;
  };
  try {
    if (argc > 1) {
      const std::string target = examples::target_of(argc, argv);
      report("tile kernels", target, error_of(paged_attention(tile_kernels()), target, data));
      return good ? 0 : 1;
    }
    report("in-core kernels", "sim:incore",
           error_of(paged_attention(core_kernels()), "sim:incore", data));
    for (const char* target : {"sim:incore", "cpu"}) {
      report("tile kernels", target, error_of(paged_attention(tile_kernels()), target, data));
    }
    report("the fused kernel", "sim:incore", error_of_fused("sim:incore", data));
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
  return good ? 0 : 1;
}
