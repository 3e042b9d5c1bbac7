#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "example.h"
#include "incore_paged_kernels.h"
#include "tilewright/library.h"
#include "tilewright/library_executable.h"
#include "tilewright/program.h"

// Attention of one query a sequence, whose keys and values lie in pages: a Program of four kernels
// over intermediate tensors (incore_paged_kernels.h). It reads a sequence's length and its pages
// from the buffers, takes the pages in pairs (x2), and one that is left over by itself (x1).
using namespace tilewright;

namespace {

using namespace examples::paged;

// ---- The orchestration.

// A sequence's first pages are row b of `table`. Q and O are {batch, heads, dim}, K and V {pages,
// page, dim}.
Program paged_attention(const Kernels& kernels) {
  Program program(kernels.program);
  const Dim batch = program.dim("batch"), heads = program.dim("heads");
  const Dim pages = program.dim("pages"), most = program.dim("most");
  const Buffer Q = program.in("Q", bf16, {batch, heads, kDim});
  const Buffer K = program.in("K", bf16, {pages, kPage, kDim});
  const Buffer V = program.in("V", bf16, {pages, kPage, kDim});
  const Buffer table = program.in("table", i32, {batch, most});
  const Buffer lengths = program.in("lengths", i32, {batch});
  const Buffer Y = program.out("O", bf16, {batch, heads, kDim});
  const auto scratch = [&](const char* name, int columns, DType dtype = f32) {
    return program.scratch(name, dtype, {kHeads, columns});
  };
  // Of one tier: scores, weights, and what they make. And what all tiers before it have made.
  const Buffer S = scratch("S", 2 * kPage), P = scratch("P", 2 * kPage, bf16);
  const Buffer Oi = scratch("Oi", kDim), Mi = scratch("Mi", 1), Li = scratch("Li", 1);
  const Buffer O = scratch("acc", kDim), M = scratch("M", 1), L = scratch("L", 1);
  const Stream stream = program.rank(0).stream();

  program.repeat("b", batch, [&](const Dim& b) {
    const Dim length = program.read("length", lengths, {b});
    program.repeat("tile", ceil_div(heads, kHeads), [&](const Dim& tile) {
      const Dim rows = min(heads - tile * kHeads, kHeads);
      const auto of_heads = [&](const Buffer& buffer) {
        return Part(buffer).box({b, tile * kHeads, 0}, {1, rows, kDim});
      };
      const auto of_rows = [&](const Buffer& buffer, int columns) {
        return Part(buffer).box({0, 0}, {rows, columns});
      };
      const Part q = of_heads(Q), y = of_heads(Y);
      const Part oi = of_rows(Oi, kDim), mi = of_rows(Mi, 1), li = of_rows(Li, 1);
      const Part o = of_rows(O, kDim), m = of_rows(M, 1), l = of_rows(L, 1);
      // Pages first, first + 1, ... of the sequence.
      const auto tier = [&](const Tier& own, int count, const Dim& first) {
        const Part s = of_rows(S, count * kPage), p = of_rows(P, count * kPage);
        std::vector<Part> qk{q}, pv{p};
        for (int i = 0; i < count; ++i) {
          const Dim page = program.read("page", table, {b, first + i});
          const Dim keys = max(min(length - (first + i) * kPage, kPage), 0);
          qk.push_back(Part(K).box({page, 0, 0}, {1, keys, kDim}));
          pv.push_back(Part(V).box({page, 0, 0}, {1, keys, kDim}));
        }
        qk.push_back(s);
        pv.push_back(oi);
        stream.launch(own.qk, qk);
        stream.launch(own.softmax_prepare, {s, p, mi, li},
                      {min(length - first * kPage, count * kPage)});
        stream.launch(own.pv, pv);
        program.when(
            first, Compare::eq, 0,
            [&] {  // there is nothing to merge with
              stream.copy(o, oi);
              stream.copy(m, mi);
              stream.copy(l, li);
            },
            [&] {
              stream.launch(kernels.online_update, {oi, mi, li, o, m, l});
            });
      };
      const Dim steps = ceil_div(length, kPage);
      program.when(
          length, Compare::gt, 0,
          [&] {
            program.repeat("pair", steps / 2,
                           [&](const Dim& pair) { tier(kernels.two, 2, pair * 2); });
            program.when(steps % 2, Compare::eq, 1, [&] { tier(kernels.one, 1, steps - 1); });
            stream.launch(kernels.finish, {o, l, y});
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
