#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "compiler/cpu_kernel.h"
#include "cpu/processors.h"
#include "kernels/execution.h"
#include "library/accuracy.h"
#include "library/differences.h"
#include "runtime/runtime_test.h"
#include "tilewright/library_executable.h"

// Kernels on the target cpu, against their float64 references and within what the interpreter's own
// roundings allow. Outputs are poisoned before.
namespace tilewright {
namespace {

struct Case {
  const char* kernel;
  std::vector<std::string> settings;
};
std::ostream& operator<<(std::ostream& out, const Case& each) {
  out << each.kernel;
  for (const std::string& setting : each.settings) out << " " << setting;
  return out;
}

void run(const LibraryExecutable& executable, library::Workload& work) {
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : work.tensors) tensors.push_back(ref(tensor));
  executable.run(tensors);
}

class LibraryOnCpu : public testing::TestWithParam<Case> {};

// However many threads there are, the bits are the same.
TEST_P(LibraryOnCpu, AgreesWithFloat64) {
  const LibraryKernel& entry = find_kernel(GetParam().kernel);
  library::Workload work = library::make_workload(entry, GetParam().settings, {}, 3);
  library::Workload again = work;
  const LibraryExecutable executable = compile(entry, work.options, "cpu");
  {
    const runtime::ScopedVariable threads("TILEWRIGHT_THREADS", "1");
    run(executable, work);
  }
  const library::Comparison comparison = library::compare(work, library::reference_of(work));
  EXPECT_TRUE(comparison.ok()) << comparison.text();
  for (const char* count : {"2", "7"}) {
    const runtime::ScopedVariable threads("TILEWRIGHT_THREADS", count);
    again.poison_outputs();
    run(executable, again);
    EXPECT_EQ(library::first_difference(again, work, "with one thread"), "") << count;
  }
}

// Sizes that fill no tile, masks of every kind, groups of heads, packed sequences, pages, sums that
// blocks add in their order, and programs.
INSTANTIATE_TEST_SUITE_P(
    Cases, LibraryOnCpu,
    testing::Values(
        Case{"gemm", {"m=200", "n=130", "k=70", "dtype=f32"}},
        Case{"gemm", {"m=5", "n=300", "k=129", "dtype=bf16", "layout=nt"}},
        Case{"gemm", {"m=64", "n=1", "k=33", "dtype=f16"}},
        Case{"gemm_fp8", {"m=70", "n=90", "k=160"}},
        Case{"attention_forward", {"queries=70", "keys=150", "heads=2", "dtype=f32"}},
        Case{"attention_forward",
             {"queries=150", "keys=200", "heads=4", "kv_heads=2", "causal=true", "window=60"}},
        Case{"attention_forward",
             {"queries=1", "keys=300", "heads=2", "dim=128", "scale=0.3", "softcap=2.5",
              "sinks=true"}},
        Case{"attention_varlen_forward", {"heads=2", "lengths_q=70,0,33", "lengths_k=50,20,0"}},
        Case{"attention_decode", {"kv_heads=2", "group=3", "keys=165", "dim=64", "batch=2"}},
        Case{"attention_paged", {"heads=4", "kv_heads=2", "max_pages=5", "pages=20", "dim=64"}},
        Case{"attention_backward",
             {"queries=100", "heads=2", "causal=true", "scale=0.3", "dtype=f32"}},
        // Rows that see one key, whose gradient of Q is 0: sums in two orders do not cancel.
        Case{"attention_backward", {"queries=500", "heads=1", "causal=true", "dtype=f32"}},
        // Three parts of the keys, of which the last one has fewer.
        Case{"attention_backward",
             {"queries=200", "keys=600", "heads=2", "kv_heads=1", "causal=true", "window=300",
              "softcap=5", "sinks=true", "lse_gradient=true"}},
        Case{"attention_varlen_backward", {"heads=2", "lengths_q=70,0,33"}},
        Case{"gemm_reduce_scatter", {"ranks=2", "m=70", "n=64", "k=64"}},
        Case{"all_to_all", {"ranks=2", "heads=4", "keys=50"}},
        Case{"sequence_parallel_attention", {"ranks=2", "heads=2", "queries=90"}}));

// Tiles of three axes, narrow arithmetic, integers, a loop whose variables change places, and a
// condition: without rewrites bit by bit what the interpreter gives.
TEST(KernelsOnCpuTest, StrictIsTheInterpreter) {
  Kernel kernel("mixed");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", bf16, {rows, 5, 24});
  const Tensor C = kernel.in("C", i32, {24});
  const Tensor Y = kernel.out("Y", bf16, {rows, 5, 24});
  const Tensor S = kernel.out("S", f32, {rows, 24});
  const auto [x] = kernel.grid(ceil_div(rows, 8));
  const Block block = rows.block(x, 8);
  const Tile tile = load(X(block, all, all));
  Var a{tile.cast(f32)}, b{tile.cast(f32) * 2.0};
  for ([[maybe_unused]] Index i : range(3)) {
    const Tile old = a;
    a = b + old * 0.25;
    b = old;
  }
  when(x > 0, [&] { a = a * 0.5; });
  const Tile shift = load(C(all)).reshape({1, 1, 24});
  const Tile odd = (shift % 2) == 1;
  const Tile y = where(odd, a, b) + max(tile, tile * tile).cast(f32);
  store(Y(block, all, all), y.cast(bf16));
  store(S(block, all), reduce_sum(y, 1).reshape({8, 24}));
  const ir::Kernel traced = kernel.finish();

  constexpr std::int64_t kRows = 21;
  const auto launch = [&](HostTensor& y, HostTensor& s, bool natively) {
    HostTensor in = HostTensor::random_normal(bf16, {kRows, 5, 24}, 4);
    HostTensor counts = HostTensor::zeros(i32, {24});
    for (std::int64_t i = 0; i < 24; ++i) counts.set({i}, static_cast<double>(i * 7 % 5 - 2));
    Arguments arguments;
    const auto add = [&](const char* name, HostTensor& tensor) {
      arguments.tensors.push_back(
          {name, tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
    };
    add("X", in);
    add("C", counts);
    add("Y", y);
    add("S", s);
    if (natively) {
      compiler::compile_for_cpu(traced, {Numerics::strict()})->run(arguments, {.threads = 2});
    } else {
      simulator::interpret(traced, arguments);
    }
  };
  HostTensor y1 = HostTensor::poisoned(bf16, {kRows, 5, 24}), y2 = y1;
  HostTensor s1 = HostTensor::poisoned(f32, {kRows, 24}), s2 = s1;
  launch(y1, s1, false);
  launch(y2, s2, true);
  for (std::int64_t i = 0; i < y1.elements(); ++i) ASSERT_EQ(y1.flat(i), y2.flat(i)) << i;
  for (std::int64_t i = 0; i < s1.elements(); ++i) ASSERT_EQ(s1.flat(i), s2.flat(i)) << i;
}

// Blocks of 40 rows, which go strip by strip: of these columns three rows at a time where no others
// need them, and 16 where a loop does. The last block has 20 rows.
Kernel kernel_of_rows(std::int64_t columns) {
  Kernel kernel("rows");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor Y = kernel.out("Y", bf16, {rows, columns});
  const Tensor Z = kernel.out("Z", f32, {rows, columns});
  const Tensor S = kernel.out("S", f32, {rows});
  const auto [x] = kernel.grid(ceil_div(rows, 40));
  const Block block = rows.block(x, 40);
  const Tile tile = load(X(block, all));
  const Tile centred = tile - reduce_max(tile, 1);
  store(Y(block, all), (centred * (1 / (reduce_sum(abs(centred), 1) + 1.0))).cast(bf16));
  Var sum{reduce_sum(centred * tile, 1)};
  for ([[maybe_unused]] Index i : range(3)) {
    sum = sum * 0.5 + reduce_sum(centred * sum + tile, 1);
  }
  store(Z(block, all), max(tile * 3.0 - sum, -tile) + 1.0);
  const Tile total = sum;
  store(S(block), total.reshape({40}));
  return kernel;
}

class RowsOnCpu : public testing::TestWithParam<std::int64_t> {};

TEST_P(RowsOnCpu, StrictStripsAreTheInterpreter) {
  const std::int64_t columns = GetParam();
  const ir::Kernel traced = kernel_of_rows(columns).finish();
  const auto compiled = compiler::compile_for_cpu(traced, {Numerics::strict()});
  test::Padded x = test::Padded::normal(f32, {100, columns}, 5);
  const auto launch = [&](bool natively) {
    std::vector<test::Padded> outputs;
    outputs.emplace_back(bf16, std::vector<std::int64_t>{100, columns});
    outputs.emplace_back(f32, std::vector<std::int64_t>{100, columns});
    outputs.emplace_back(f32, std::vector<std::int64_t>{100});
    Arguments arguments;
    arguments.tensors = {x.argument("X"), outputs[0].argument("Y"), outputs[1].argument("Z"),
                         outputs[2].argument("S")};
    natively ? compiled->run(arguments, {.threads = 2}) : simulator::interpret(traced, arguments);
    return outputs;
  };
  const std::vector<test::Padded> ours = launch(true), wanted = launch(false);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(ours[i].values() == wanted[i].values()) << "output " << i;
    EXPECT_EQ(ours[i].written_outside(), 0) << "output " << i;
  }
}
// Whole vectors, which are read and written where they lie, and others.
INSTANTIATE_TEST_SUITE_P(Columns, RowsOnCpu, testing::Values(640, 605));

// A block that is timed computes what it computes elsewhere: each of its operations is performed.
TEST(KernelsOnCpuTest, MeasuredBlocksAreComputed) {
  for (const Case& each :
       {Case{"softmax", {"rows=9", "columns=200"}},
        Case{"attention_forward", {"batch=1", "heads=2", "queries=40", "dtype=f32"}}}) {
    SCOPED_TRACE(each.kernel);
    const LibraryKernel& entry = find_kernel(each.kernel);
    library::Workload work = library::make_workload(entry, each.settings, {}, 3);
    const auto kernel = compiler::compile_for_cpu(entry.build(work.options).finish());
    const cpu::Measurement measured = kernel->measure(work.arguments(), 1);
    ASSERT_EQ(measured.measured, measured.blocks);
    const library::Comparison comparison = library::compare(work, library::reference_of(work));
    EXPECT_TRUE(comparison.ok()) << comparison.text();
  }
}

Kernel kernel_of_large_rows() {
  Kernel kernel("large_rows");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 1024});
  const Tensor Y = kernel.out("Y", f32, {rows, 1024});
  const Tensor Z = kernel.out("Z", bf16, {rows, 1024});
  const auto [number] = kernel.grid(ceil_div(rows, 64));
  const Block block = rows.block(number, 64);
  const Tile x = load(X(block, all));
  store(Y(block, all), (1 / reduce_sum(abs(x), 1)) * x);
  store(Z(block, all), ((x - reduce_max(x, 1)) * 2.0).cast(bf16));
  return kernel;
}

// Launches of more bytes than the caches hold store past them. Of few rows they do not, and give
// the same bits. Nor do they where rows begin within lines of memory.
TEST(KernelsOnCpuTest, LargeOutputsAreWhatSmallOnesAre) {
  const std::int64_t cache = cpu::last_level_cache();
  if (cache == 0 || cache > std::int64_t{64} << 20) GTEST_SKIP() << "a cache of " << cache;
  constexpr std::int64_t kColumns = 1024, kPart = 64;
  const std::int64_t rows = cache / (kColumns * 10) + 65;
  const auto count = static_cast<std::size_t>(rows * kColumns);
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 2654435761u % 1999) - 900;
  const Executable executable = compile(kernel_of_large_rows(), "cpu");
  struct Outputs {
    explicit Outputs(std::size_t count) : y(count + 64, NAN), z(count + 64, 0x7fff) {}
    std::vector<float> y;
    std::vector<std::uint16_t> z;
  };
  // So many elements past a line.
  const auto past_line = [](auto& data, std::size_t past) {
    const auto at = reinterpret_cast<std::uintptr_t>(data.data());
    return data.data() + (64 - at % 64) % 64 / sizeof(data[0]) + past;
  };
  const auto launch = [&](Outputs& to, std::size_t past, std::int64_t first, std::int64_t part) {
    const std::vector<std::int64_t> shape = {part, kColumns};
    const std::int64_t element = first * kColumns;
    executable.run({TensorRef{x.data() + element, f32, shape, {}},
                    TensorRef{past_line(to.y, past) + element, f32, shape, {}},
                    TensorRef{past_line(to.z, past) + element, bf16, shape, {}}});
  };
  for (const std::size_t past : {0, 1, 4, 8}) {
    Outputs whole(count), parts(count);
    launch(whole, past, 0, rows);
    for (std::int64_t first = 0; first < rows; first += kPart) {
      launch(parts, past, first, std::min(kPart, rows - first));
    }
    const auto same = [&](auto& a, auto& b) {  // and a few elements behind them
      const std::size_t bytes = (count + 16) * sizeof(a[0]);
      return std::memcmp(past_line(a, past), past_line(b, past), bytes) == 0;
    };
    EXPECT_TRUE(same(whole.y, parts.y)) << past;
    EXPECT_TRUE(same(whole.z, parts.z)) << past;
  }
}

}  // namespace
}  // namespace tilewright
