#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "kernels/cpu_tensors.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// What a launch on the target cpu may be given, and what it refuses.
namespace tilewright {
namespace {

using test::counted;
using test::run_on;
using test::untouched;
using testing::AllOf;
using testing::HasSubstr;

Kernel one_more() {
  Kernel kernel("one_more");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n}), Y = kernel.out("Y", f32, {n});
  const auto [block] = kernel.grid(ceil_div(n, 64));
  store(Y(n.block(block, 64)), load(X(n.block(block, 64))) + 1);
  return kernel;
}

// A GPU's address, what was freed, or fewer elements than the shape says.
TEST(LaunchesOnCpu, MemoryThatIsNotThereIsAnErrorByName) {
  const Executable absent = compile(one_more(), "cpu");
  const std::int64_t page = sysconf(_SC_PAGESIZE), elements = page / 4;
  // A page that is there, and one that nobody may touch.
  void* const pages = mmap(nullptr, static_cast<std::size_t>(2 * page), PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE), 0);
  HostTensor other = untouched({elements + 1});
  const auto run = [&](void* in, std::int64_t count) {
    absent.run({{in, f32, {count}, {}}, {other.data(), f32, {count}, {}}});
  };
  run(pages, elements);
  EXPECT_THAT(test::usage_error_of([&] { run(pages, elements + 1); }),
              HasSubstr("tensor X ends where this process has no memory: at 0x"));
  EXPECT_THAT(test::usage_error_of([&] { run(reinterpret_cast<void*>(0x1000), 1); }),
              HasSubstr("tensor X begins where this process has no memory: at 0x1000"));
  run(pages, elements);
  ASSERT_EQ(munmap(pages, static_cast<std::size_t>(2 * page)), 0);
}

TEST(LaunchesOnCpu, MemoryThatMayNotBeWrittenIsAnErrorByName) {
  const Executable copies = compile(one_more(), "cpu");
  const std::int64_t page = sysconf(_SC_PAGESIZE), elements = page / 4;
  void* const pages = mmap(nullptr, static_cast<std::size_t>(2 * page), PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  HostTensor other = untouched({elements + 1});
  const auto run = [&](void* in, void* out, std::int64_t count) {
    copies.run({{in, f32, {count}, {}}, {out, f32, {count}, {}}});
  };
  void* const own = mmap(nullptr, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  constexpr int kPopulateWrite = 23;  // of Linux 5.14
  if (madvise(own, static_cast<std::size_t>(page), kPopulateWrite) != 0) {
    GTEST_SKIP() << "this system does not say what may be written";
  }
  run(pages, other.data(), elements);  // it may be read
  EXPECT_THAT(test::usage_error_of([&] { run(other.data(), pages, elements); }),
              HasSubstr("tensor Y begins where this process may not write: at 0x"));
  ASSERT_EQ(mprotect(pages, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE), 0);
  run(other.data(), pages, elements);
  EXPECT_THAT(test::usage_error_of([&] { run(other.data(), pages, elements + 1); }),
              HasSubstr("tensor Y ends where this process may not write: at 0x"));
  ASSERT_EQ(munmap(pages, static_cast<std::size_t>(2 * page)), 0);
}

// What a block loads of an input that is the output too stays what it was, as on the interpreter.
TEST(LaunchesOnCpu, AnInputThatIsTheOutput) {
  const auto expect_alike = [](const std::function<void(const Tensor&, const Tensor&, const Tensor&,
                                                        const Block&)>& body) {
    Kernel kernel("in_place");
    const Dim rows = kernel.dim("rows");
    const Tensor X = kernel.in("X", f32, {rows, 64}), Y = kernel.out("Y", f32, {rows, 64});
    const Tensor Z = kernel.out("Z", f32, {rows, 64});
    const auto [block] = kernel.grid(ceil_div(rows, 16));
    body(X, Y, Z, rows.block(block, 16));
    std::vector<HostTensor> stored;
    for (const char* target : {"interpreter", "cpu"}) {
      HostTensor x = counted({40, 64}), z = untouched({40, 64});
      compile(kernel, target).run({ref(x), ref(x), ref(z)});
      stored.push_back(std::move(x));
      stored.push_back(std::move(z));
    }
    EXPECT_EQ(stored[0], stored[2]);
    EXPECT_EQ(stored[1], stored[3]);
  };
  expect_alike([](const Tensor& X, const Tensor& Y, const Tensor& Z, const Block& rows) {
    const Tile x = load(X(rows, all));
    store(Y(rows, all), x * 2);
    store(Z(rows, all), x + 1);
  });
  expect_alike([](const Tensor& X, const Tensor& Y, const Tensor& Z, const Block& rows) {
    const Tile x = load(X(rows, all));
    store(Z(rows, all), x + 1);
    store(Y(rows, all), x - reduce_max(x, 1));
  });
  expect_alike([](const Tensor& X, const Tensor& Y, const Tensor& Z, const Block& rows) {
    Var sum{zeros({16, 16})};
    for (const Index part : range(4)) {
      const Block columns(part * 16, 16, Index(64));
      const Tile x = load(X(rows, columns));
      store(Y(rows, columns), dot(x, full({16, 16}, 2)));
      sum = sum + x;
    }
    for (const Index part : range(4)) store(Z(rows, Block(part * 16, 16, Index(64))), Tile(sum));
  });
  // A product takes a part of it behind the store.
  expect_alike([](const Tensor& X, const Tensor& Y, const Tensor& Z, const Block& rows) {
    const Tile part = load(X(rows, all)).slice({0, 16}, {16, 16});
    store(Y(rows, all), zeros({16, 64}));
    store(Z(rows, all), dot(part, full({16, 64}, 2)));
  });
  // Columns the other way round: all are loaded before any is stored.
  expect_alike([](const Tensor& X, const Tensor& Y, const Tensor& Z, const Block& rows) {
    const Tile left = load(X(rows, Block(Index(0), 32, Index(32))));
    const Tile right = load(X(rows, Block(Index(32), 32, Index(64))));
    store(Y(rows, Block(Index(0), 32, Index(32))), right + 1);
    store(Y(rows, Block(Index(32), 32, Index(64))), left + 1);
    store(Z(rows, all), zeros({16, 64}));
  });
}

// Where it loads more, or again behind the store, it loads what was there before the launch.
TEST(LaunchesOnCpu, AnInputThatIsTheOutputAndIsReadElsewhere) {
  constexpr std::int64_t kRows = 64;
  struct Parts {
    const Tensor &X, &I, &Y;
    Index row;
  };
  const auto expect_alike = [](const char* what, const std::function<void(const Parts&)>& body) {
    Kernel kernel("in_place");
    const Dim rows = kernel.dim("rows");
    const Tensor X = kernel.in("X", f32, {rows, 64}), I = kernel.in("I", i32, {rows});
    const Tensor Y = kernel.out("Y", f32, {rows, 64});
    const auto [row] = kernel.grid(rows);
    body({X, I, Y, row});
    std::vector<double> rows_of(kRows);
    for (std::int64_t i = 0; i < kRows; ++i) {
      rows_of[static_cast<std::size_t>(i)] = static_cast<double>(i * 7 % kRows);
    }
    HostTensor places = HostTensor::from_values(i32, {kRows}, rows_of);
    std::vector<HostTensor> stored;
    for (const char* target : {"interpreter", "cpu"}) {
      HostTensor x = counted({kRows, 64});
      compile(kernel, target).run({ref(x), ref(places), ref(x)});
      stored.push_back(std::move(x));
    }
    EXPECT_EQ(stored[0], stored[1]) << what;
  };
  const auto columns = [](const Index& part) { return Block(part * 16, 16, Index(64)); };
  expect_alike("rows the other way round", [&](const Parts& p) {
    store(p.Y(p.row, all), load(p.X(kRows - 1 - p.row, all)) * 2);
  });
  expect_alike("the row before", [&](const Parts& p) {
    store(p.Y(p.row, all), load(p.X(p.row, all)) + load(p.X(max(p.row - 1, 0), all)));
  });
  expect_alike("a row that is loaded", [&](const Parts& p) {
    store(p.Y(p.row, all), load(p.X(load_index(p.I(p.row)), all)) + 1);
  });
  expect_alike("others in a condition", [&](const Parts& p) {
    Var sum{load(p.X(p.row, all))};
    when(p.row % 7 == 3, [&] { sum = sum + load(p.X(kRows - 1 - p.row, all)); });
    store(p.Y(p.row, all), Tile(sum));
  });
  expect_alike("columns of the turn before", [&](const Parts& p) {
    for (const Index part : range(4)) {
      store(p.Y(p.row, columns(part)),
            load(p.X(p.row, columns(part))) + load(p.X(p.row, columns(max(part - 1, 0)))));
    }
  });
  expect_alike("again behind the store", [&](const Parts& p) {
    for (const Index part : range(4)) {
      store(p.Y(p.row, columns(part)), load(p.X(p.row, columns(part))) + 1);
    }
    for (const Index part : range(4)) {
      store(p.Y(p.row, columns(part)), load(p.X(p.row, columns(part))) * 3);
    }
  });
  expect_alike("each turn the same columns", [&](const Parts& p) {
    for ([[maybe_unused]] const Index turn : range(3)) {
      for (const Index part : range(4)) {
        store(p.Y(p.row, columns(part)), load(p.X(p.row, columns(part))) + 1);
      }
    }
  });
  expect_alike("each turn the same", [&](const Parts& p) {
    for ([[maybe_unused]] const Index turn : range(3)) {
      store(p.Y(p.row, all), load(p.X(p.row, all)) + 1);
    }
  });
}

// Blocks that read what others store have no order.
TEST(LaunchesOnCpu, AnInputThatOtherBlocksStoreTo) {
  Kernel kernel("product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", f32, {m, k}), B = kernel.in("B", f32, {k, n});
  const Tensor C = kernel.out("C", f32, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(m, 16), ceil_div(n, 16));
  const Block rows = m.block(x, 16), columns = n.block(y, 16);
  Var sum{zeros({rows, columns})};
  for (const Block terms : blocks(k, 16)) {
    sum = dot(load(A(rows, terms)), load(B(terms, columns)), sum);
  }
  store(C(rows, columns), Tile(sum));
  const Executable product = compile(kernel, "cpu");
  HostTensor a = counted({32, 32}), b = counted({32, 32}, 3), c = untouched({32, 32});
  product.run({ref(a), ref(b), ref(c)});
  for (const auto& [of_a, of_b, name] :
       {std::tuple(&c, &b, "tensor A"), std::tuple(&a, &c, "tensor B")}) {
    EXPECT_THAT(test::usage_error_of([&, of_a = of_a, of_b = of_b] {
                  product.run({ref(*of_a), ref(*of_b), ref(c)});
                }),
                AllOf(HasSubstr("tensor C is stored to, and "), HasSubstr(name),
                      HasSubstr("blocks of the grid read of it what others store")));
  }
  // The strides are those of each launch.
  EXPECT_THAT(test::usage_error_of([&] {
                product.run({ref(a), ref(b), TensorRef{c.data(), f32, {32, 32}, {16, 1}}});
              }),
              HasSubstr("C is stored to, and its strides {16, 1} put"));
  // One block reads all before it stores.
  HostTensor small = counted({16, 16}), wanted = untouched({16, 16}), other = small;
  product.run({ref(small), ref(other), ref(wanted)});
  product.run({ref(small), ref(other), ref(small)});
  EXPECT_EQ(small, wanted);
  // The interpreter reads inputs as they were.
  const Executable meaning = compile(kernel, "interpreter");
  HostTensor changed = a;
  meaning.run({ref(a), ref(b), ref(c)});
  meaning.run({ref(changed), ref(b), ref(changed)});
  EXPECT_EQ(changed, c);
}

// A loop over the block's own row is the block's.
TEST(LaunchesOnCpu, AnInputThatTheBlockItselfStoresTo) {
  Kernel own("own");
  const Dim rows = own.dim("rows");
  const Tensor X = own.in("X", f32, {rows, 16}), Y = own.out("Y", f32, {rows, 16});
  const auto [row] = own.grid(rows);
  for (const Index i : range(row, row + 1)) store(Y(row, all), load(X(i, all)) + 1);
  HostTensor x = counted({8, 16});
  const HostTensor y = run_on("cpu", own, {x, untouched({8, 16})})[1];
  compile(own, "cpu").run({ref(x), ref(x)});
  EXPECT_EQ(x, y);
}

TEST(LaunchesOnCpu, WhatItRefuses) {
  const auto refusal = [](const std::function<void(Kernel&, const Tensor&, const Tensor&)>& body,
                          double number = 0) {
    Kernel kernel("refused");
    const Dim n = kernel.dim("n");
    const Tensor T = kernel.in("T", i32, {4}), X = kernel.in("X", f32, {8, n});
    const Tensor Y = kernel.out("Y", f32, {64});
    kernel.grid(1);
    body(kernel, T, X);
    store(Y(all), zeros({64}));
    return test::usage_error_of([&] {
      run_on("cpu", kernel,
             {HostTensor::from_values(i32, {4}, {number, 0, 0, 0}), counted({8, 10}),
              untouched({64})});
    });
  };
  const auto sum_of = [](const Tile& tile) { when(any(tile == 99), [] {}); };
  EXPECT_THAT(refusal([](Kernel&, const Tensor& T,
                         const Tensor&) { (void)load_index(T(load_index(T(0)))); },
                      -1),
              HasSubstr("element {-1} is outside T"));
  EXPECT_THAT(refusal([](Kernel&, const Tensor& T,
                         const Tensor&) { (void)load_index(T(load_index(T(0)))); },
                      4),
              HasSubstr("element {4} is outside T, whose shape is {4}"));
  EXPECT_THAT(refusal(
                  [&](Kernel&, const Tensor& T, const Tensor& X) {
                    sum_of(load(X(load_index(T(0)), Block(Index(0), 8, Index(8)))));
                  },
                  8),
              HasSubstr("index 8 on axis 0 of X, which has 8"));
  EXPECT_THAT(refusal([](Kernel&, const Tensor& T, const Tensor&) {
                for ([[maybe_unused]] Index i : range(0, 4, load_index(T(0)))) {
                }
              }),
              HasSubstr("a loop's step is 0"));
  EXPECT_THAT(refusal([&](Kernel&, const Tensor&, const Tensor& X) {
                sum_of(load(X(all, Block(Index(0), 16, Index(10)))).reshape({128}));
              }),
              AllOf(HasSubstr("reshape: of a tile of shape {8, 16} only {8, 10} exists"),
                    HasSubstr("cpu_launches_test.cpp")));
}

TEST(LaunchesOnCpu, ARankThatThereIsNot) {
  Kernel kernel("asks");
  const Tensor T = kernel.in("T", i32, {1}), X = kernel.symmetric("X", f32, {16});
  const Tensor Y = kernel.out("Y", f32, {16});
  kernel.grid(1);
  store(Y(all), load(X.at(load_index(T(0)))(all)));
  Program program("asks", 2);
  const Buffer t = program.in("t", i32, {1}), x = program.in("x", f32, {16});
  const Buffer y = program.out("y", f32, {16});
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {t, x, y}); });
  for (const double asked : {1.0, 2.0, -1.0}) {
    std::vector<HostTensor> tensors;
    for (int rank = 0; rank < 2; ++rank) {
      tensors.push_back(HostTensor::from_values(i32, {1}, {asked}));
      tensors.push_back(counted({16}, 2 + rank));
      tensors.push_back(untouched({16}));
    }
    std::vector<TensorRef> refs;
    for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
    const auto run = [&] { compile(program, "cpu").run(refs); };
    if (asked == 1) {
      run();
      EXPECT_EQ(tensors[2], tensors[4]);
    } else {
      EXPECT_THAT(test::usage_error_of(run),
                  HasSubstr(fmt::format("peer: rank {} of 2, for x", static_cast<int>(asked))));
    }
  }
}

}  // namespace
}  // namespace tilewright
