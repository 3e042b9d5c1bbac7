#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "incore_products.h"
#include "simulator/machine/machine.h"
#include "target/core.h"
#include "target/target.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// The automatic schedule for cores with explicit memories: products of tiles, what it refuses, and
// what a way, a place or a loop decides.
namespace tilewright::simulator {
namespace {

using testing::HasSubstr;

// Of the tile level, as it is for any target: the automatic schedule places and orders.
ir::Kernel tile_product(bool a_along_m, bool b_along_n, DType result) {
  Kernel kernel("tile_product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = a_along_m ? kernel.in("A", bf16, {k, m}) : kernel.in("A", bf16, {m, k});
  const Tensor B = b_along_n ? kernel.in("B", bf16, {k, n}) : kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", result, {m, n});
  const auto [i, j] = kernel.grid(ceil_div(m, 32), ceil_div(n, 48));
  const Block rows = m.block(i, 32), cols = n.block(j, 48);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) {
    const Tile a = a_along_m ? load(A(depth, rows)).T() : load(A(rows, depth));
    const Tile b = b_along_n ? load(B(depth, cols)) : load(B(cols, depth)).T();
    sum = sum + dot(a, b);
  }
  const Tile all = sum;
  store(C(rows, cols), result == f32 ? all : all.cast(result));
  return kernel.finish();
}

HostTensor turned(const HostTensor& tensor) {
  const std::int64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
  HostTensor made = HostTensor::zeros(tensor.dtype(), {columns, rows});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) made.set({j, i}, tensor.at({i, j}));
  }
  return made;
}

TEST(IncoreSchedule, ProductsOfTilesAreRightOnEveryCore) {
  for (const target::Target* target : target::targets()) {
    if (!target->core) continue;
    for (const auto& [a_along_m, b_along_n] :
         {std::pair{false, false}, {false, true}, {true, true}, {true, false}}) {
      SCOPED_TRACE(target->name + (a_along_m ? " t" : " n") + (b_along_n ? "n" : "t"));
      const ir::Kernel machine =
          compiler::compile_to_machine(tile_product(a_along_m, b_along_n, bf16), target->name)
              .kernel;
      EXPECT_EQ(machine.target, target->name);
      for (const auto& [m, n, k] : {std::tuple{70, 50, 150}, {1, 1, 1}, {32, 96, 128}}) {
        for (std::uint64_t seed = 0; seed < 2; ++seed) {
          Product product(m, n, k);
          Arguments arguments = product.arguments();
          HostTensor A = turned(product.A), B = turned(product.B);
          if (a_along_m) {
            arguments.tensors[0].shape = A.shape();
            arguments.tensors[0].data = static_cast<std::byte*>(A.data());
          }
          if (b_along_n) {
            arguments.tensors[1].shape = B.shape();
            arguments.tensors[1].data = static_cast<std::byte*>(B.data());
          }
          MachineOptions options;
          options.seed = seed;
          options.multiprocessors = 2;
          const MachineReport report = run_machine(machine, arguments, options);
          ASSERT_TRUE(report.ok()) << report.faults.front().message;
          EXPECT_TRUE(product.is_right()) << m << " " << n << " " << k << ": " << product.error();
        }
      }
    }
  }
}

// Rings and what orders loads behind stores take their events from the same few: the rings get as
// many stages as are left.
TEST(IncoreSchedule, StagesLeaveEventsToWhatOrdersMemory) {
  for (const target::Target* target : target::targets()) {
    if (!target->core) continue;
    SCOPED_TRACE(target->name);
    Kernel kernel("first_rows");
    const Dim m = kernel.dim("m");
    const Tensor Y = kernel.inout("Y", f32, {m, 48}), B = kernel.in("B", bf16, {48, 48});
    kernel.grid(1);
    for (Block rows : blocks(m, 32)) {
      const Tile y = load(Y(rows, all));
      store(Y(Block(Index(0), 32, Index(32)), all), dot(y.cast(bf16), load(B(all, all))) + y);
    }
    compiler::MachineOptions options;
    options.schedule.stages = 16;
    const ir::Kernel machine =
        compiler::compile_to_machine(kernel.finish(), target->name, options).kernel;
    HostTensor y = HostTensor::random_normal(f32, {96, 48}, 1);
    HostTensor b = HostTensor::random_normal(bf16, {48, 48}, 2);
    const HostTensor before = y;
    Arguments arguments;
    arguments.tensors = {{"Y", f32, {96, 48}, {}, static_cast<std::byte*>(y.data()), {}},
                         {"B", bf16, {48, 48}, {}, static_cast<std::byte*>(b.data()), {}}};
    const MachineReport report = run_machine(machine, arguments, {});
    ASSERT_TRUE(report.ok()) << report.faults.front().message;
    // The last block's are what stays.
    for (std::int64_t i = 0; i < 32; ++i) {
      for (std::int64_t j = 0; j < 48; ++j) {
        double wanted = before.at({64 + i, j});
        for (std::int64_t k = 0; k < 48; ++k) wanted += before.at({64 + i, k}) * b.at({k, j});
        ASSERT_NEAR(y.at({i, j}), wanted, 0.05) << i << " " << j;
      }
    }
  }
}

// A sum of nothing is 0, and written.
TEST(IncoreSchedule, OfNoDepthTheResultIsZero) {
  const ir::Kernel machine =
      compiler::compile_to_machine(tile_product(false, false, f32), "incore").kernel;
  std::vector<float> c(33 * 20, NAN);
  std::byte nothing[16] = {};
  Arguments arguments;
  arguments.tensors = {{"A", bf16, {33, 0}, {}, nothing, {}},
                       {"B", bf16, {20, 0}, {}, nothing, {}},
                       {"C", f32, {33, 20}, {}, reinterpret_cast<std::byte*>(c.data()), {}}};
  const MachineReport report = run_machine(machine, arguments, {});
  ASSERT_TRUE(report.ok()) << report.faults.front().message;
  for (const float element : c) EXPECT_EQ(element, 0);
}

TEST(IncoreSchedule, SaysWhatItDoesNotTake) {
  const auto error_of = [](const std::function<void()>& run) -> std::string {
    try {
      run();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return test::without_source_lines(error.what());
    }
    return "no error";
  };
  compiler::MachineOptions options;
  options.schedule.warpgroups = 2;
  EXPECT_THAT(error_of([&] {
                compiler::compile_to_machine(tile_product(false, false, f32), "incore", options);
              }),
              HasSubstr("schedule: warpgroups = 2: incore has no such thing"));
  // More than a memory holds: one stage less where there is another.
  options.schedule = {};
  options.schedule.stages = 8;
  const compiler::MachineForm form =
      compiler::compile_to_machine(tile_product(false, false, f32), "incore", options);
  EXPECT_EQ(form.schedule.front().name, "stages");
  // A sequencer sees nothing of what units compute.
  Kernel sums("sums");
  const Tensor X = sums.in("X", f32, {64, 64}), Y = sums.out("Y", f32, {64, 64});
  sums.grid(1);
  Var x{load(X(all, all))};
  when(any(x > 1), [&] { x = x * 2; });
  store(Y(all, all), x);
  EXPECT_THAT(error_of([&] { compiler::compile_to_machine(sums.finish(), "incore"); }),
              HasSubstr("a condition on what was computed, which sequencers do not see"));
  Kernel error_function("error_function");
  const Tensor E = error_function.in("E", f32, {64, 64});
  const Tensor F = error_function.out("F", f32, {64, 64});
  error_function.grid(1);
  store(F(all, all), erf(load(E(all, all))));
  EXPECT_THAT(error_of([&] { compiler::compile_to_machine(error_function.finish(), "incore"); }),
              HasSubstr("V has no erf"));
  Kernel reshaped("reshaped");
  const Tensor R = reshaped.in("R", f32, {4, 64}), S = reshaped.out("S", f32, {32, 8});
  reshaped.grid(1);
  store(S(all, all), (load(R(all, all)) * 2).reshape({32, 8}));
  EXPECT_THAT(error_of([&] { compiler::compile_to_machine(reshaped.finish(), "incore"); }),
              HasSubstr("a reshape of a tile of {4, 64}, which is computed, to {32, 8}: neither is "
                        "a row or a column"));
  // More than a memory holds, with one stage each.
  Kernel large("large");
  const Tensor L = large.in("L", f32, {512, 512}), M = large.out("M", f32, {512, 512});
  large.grid(1);
  store(M(all, all), load(L(all, all)) * 2);
  EXPECT_THAT(error_of([&] { compiler::compile_to_machine(large.finish(), "incore"); }),
              HasSubstr("bytes of Vec are taken with it, and incore has 196608"));
}

std::vector<const target::Target*> core_targets() {
  std::vector<const target::Target*> list;
  for (const target::Target* each : target::targets()) {
    if (each->core) list.push_back(each);
  }
  return list;
}

MachineReport run_tiles(const ir::Kernel& machine, Arguments arguments, std::uint64_t seed = 0) {
  MachineOptions options;
  options.seed = seed;
  options.multiprocessors = 2;
  MachineReport report = run_machine(machine, arguments, options);
  EXPECT_TRUE(report.ok()) << report.faults.front().message << report.faults.front().missing;
  return report;
}

// Rows are those of `heads` heads of four tokens: of a product, and of what is stored by token and
// head.
ir::Kernel rows_of_two_axes(int heads) {
  Kernel kernel("heads");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, heads, 32}), B = kernel.in("B", bf16, {32, 48});
  const Tensor C = kernel.out("C", f32, {n, heads, 48}), S = kernel.out("S", f32, {n, heads});
  const auto [i] = kernel.grid(ceil_div(n, 4));
  const Block rows = n.block(i, 4);
  const Tile c = dot(load(X(rows, all, all)).reshape({4 * heads, 32}), load(B(all, all)));
  store(C(rows, all, all), c.reshape({4, heads, 48}));
  store(S(rows, all), reduce_max(c, 1).reshape({4, heads}));
  return kernel.finish();
}

void expect_rows_of_two_axes(const std::string& target, int heads) {
  SCOPED_TRACE(target + " " + std::to_string(heads));
  const ir::Kernel machine = compiler::compile_to_machine(rows_of_two_axes(heads), target).kernel;
  for (const std::int64_t n : {9, 1}) {
    HostTensor x = HostTensor::random_normal(bf16, {n, heads, 32}, 1);
    HostTensor b = HostTensor::random_normal(bf16, {32, 48}, 2);
    HostTensor c = HostTensor::poisoned(f32, {n, heads, 48});
    HostTensor s = HostTensor::poisoned(f32, {n, heads});
    Arguments arguments;
    arguments.tensors = {given("X", x), given("B", b), given("C", c), given("S", s)};
    run_tiles(machine, arguments);
    for (std::int64_t t = 0; t < n; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        double most = -INFINITY;
        for (std::int64_t j = 0; j < 48; ++j) {
          double wanted = 0;
          for (std::int64_t d = 0; d < 32; ++d) wanted += x.at({t, h, d}) * b.at({d, j});
          most = std::max(most, wanted);
          ASSERT_NEAR(c.at({t, h, j}), wanted, 1e-4) << t << " " << h << " " << j;
        }
        ASSERT_NEAR(s.at({t, h}), most, 1e-4) << t << " " << h;
      }
    }
  }
}

// They begin where no window may: three heads of 4 bytes each, or of 2 bytes in a column.
TEST(IncoreSchedule, RowsOfTwoAxesGoInOneInstruction) {
  for (const target::Target* target : core_targets()) expect_rows_of_two_axes(target->name, 3);
}

// What a reduction begins with is no element of it: of numbers above 0 and below.
TEST(IncoreSchedule, TheLeastAndTheMostOfEachRow) {
  Kernel kernel("least_and_most");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, 40});
  const Tensor L = kernel.out("L", f32, {n, 1}), M = kernel.out("M", f32, {n, 1});
  const auto [i] = kernel.grid(ceil_div(n, 8));
  const Block rows = n.block(i, 8);
  const Tile x = load(X(rows, all));
  store(L(rows, all), reduce_min(x, 1));
  store(M(rows, all), reduce_max(x, 1));
  const ir::Kernel tile = kernel.finish();
  for (const target::Target* target : core_targets()) {
    SCOPED_TRACE(target->name);
    HostTensor x = HostTensor::zeros(f32, {11, 40});
    HostTensor l = HostTensor::poisoned(f32, {11, 1}), m = HostTensor::poisoned(f32, {11, 1});
    for (std::int64_t row = 0; row < 11; ++row) {
      for (std::int64_t j = 0; j < 40; ++j) x.set({row, j}, (row - 5) * 100 + (j * 7 + row) % 40);
    }
    Arguments arguments;
    arguments.tensors = {given("X", x), given("L", l), given("M", m)};
    run_tiles(compiler::compile_to_machine(tile, target->name).kernel, arguments);
    for (std::int64_t row = 0; row < 11; ++row) {
      EXPECT_EQ(l.at({row, 0}), (row - 5) * 100);
      EXPECT_EQ(m.at({row, 0}), (row - 5) * 100 + 39);
    }
  }
}

// A core whose ways take one matrix at a time, piece by piece.
TEST(IncoreSchedule, RowsOfTwoAxesGoPieceByPiece) {
  target::Target single = target::find_target("incore");
  single.name = "single";
  target::Core core = *single.core;
  for (target::CoreMove& move : core.moves) move.matrices = 1;
  single.core = std::make_shared<const target::Core>(core);
  const target::AddedTarget added(single);
  expect_rows_of_two_axes("single", 8);
  Kernel kernel("pieces");
  const Tensor X = kernel.in("X", f32, {4, 2, 3}), Y = kernel.out("Y", f32, {4, 2, 3});
  kernel.grid(1);
  const Tile x = load(X(all, all, all));
  const std::string line = ":" + std::to_string(__LINE__ - 1);
  store(Y(all, all, all), x + 1);
  const std::string error =
      test::usage_error_of([&] { compiler::compile_to_machine(kernel.finish(), "single"); });
  EXPECT_THAT(error, HasSubstr("goes piece by piece: row 2, column 0 lies at byte 24"));
  EXPECT_THAT(error, HasSubstr(line));
  EXPECT_THAT(error, HasSubstr("take one at a multiple of 32"));
}

// Weights of 8 parts and 4 rows, computed in that shape, meet outputs of 32 columns as a column;
// what is summed over the parts, and over the rows, has the others' axes.
TEST(IncoreSchedule, ComputedTilesTakeAnotherShape) {
  Kernel kernel("parts");
  const Dim parts = kernel.dim("parts");
  const Tensor P = kernel.in("P", f32, {parts, 4, 32}), L = kernel.in("L", f32, {parts, 4});
  const Tensor O = kernel.out("O", f32, {4, 32}), S = kernel.out("S", f32, {parts, 32});
  kernel.grid(1);
  Var sum{zeros({4, 32})};
  for (Block some : blocks(parts, 8)) {
    const Tile weights = load(L(some, all)) * 2;
    const Tile weighted = load(P(some, all, all)) * weights.reshape({8, 4, 1});
    sum = sum + reduce_sum(weighted, 0).reshape({4, 32});
    store(S(some, all), reduce_max(weighted, 1).reshape({8, 32}));
  }
  // Along the first of two axes: a row, which divides as a column.
  const Tile row = reduce_sum(load(L(Block(0, 8, parts), all)), 0);
  store(O(all, all), Tile(sum) / row.reshape({4, 1}));
  for (const target::Target* target : core_targets()) {
    SCOPED_TRACE(target->name);
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target->name).kernel;
    for (const std::int64_t count : {8, 21, 3}) {
      HostTensor p = HostTensor::random_normal(f32, {count, 4, 32}, 1);
      HostTensor l = HostTensor::zeros(f32, {count, 4});
      for (std::int64_t i = 0; i < count * 4; ++i) {
        l.set({i / 4, i % 4}, 1 + static_cast<double>(i % 7) / 8);
      }
      HostTensor o = HostTensor::poisoned(f32, {4, 32}), s = HostTensor::poisoned(f32, {count, 32});
      Arguments arguments;
      arguments.tensors = {given("P", p), given("L", l), given("O", o), given("S", s)};
      for (std::uint64_t seed = 0; seed < 2; ++seed) run_tiles(machine, arguments, seed);
      for (std::int64_t c = 0; c < 32; ++c) {
        for (std::int64_t r = 0; r < 4; ++r) {
          double wanted = 0, all = 0;
          for (std::int64_t i = 0; i < count; ++i) wanted += p.at({i, r, c}) * l.at({i, r}) * 2;
          for (std::int64_t i = 0; i < std::min<std::int64_t>(8, count); ++i) all += l.at({i, r});
          ASSERT_NEAR(o.at({r, c}), wanted / all, 1e-4) << r << " " << c;
        }
        for (std::int64_t i = 0; i < count; ++i) {
          double most = -INFINITY;
          for (std::int64_t r = 0; r < 4; ++r) {
            most = std::max(most, p.at({i, r, c}) * l.at({i, r}) * 2);
          }
          ASSERT_NEAR(s.at({i, c}), most, 1e-4) << i << " " << c;
        }
      }
    }
  }
}

// Operands that stretch along the first or the second of two axes of rows.
TEST(IncoreSchedule, OperandsStretchInsideOfRows) {
  const auto stretched = [](int columns) {
    Kernel kernel("stretched");
    const Tensor X = kernel.in("X", f32, {2, 4, columns}), Z = kernel.in("Z", f32, {1, 4, columns});
    const Tensor W = kernel.in("W", f32, {2, 1, columns}),
                 Y = kernel.out("Y", f32, {2, 4, columns});
    kernel.grid(1);
    const Tile z = load(Z(all, all, all)), w = load(W(all, all, all));
    store(Y(all, all, all), load(X(all, all, all)) * z + w);
    return kernel.finish();
  };
  HostTensor x = HostTensor::random_normal(f32, {2, 4, 32}, 1);
  HostTensor z = HostTensor::random_normal(f32, {1, 4, 32}, 2);
  HostTensor w = HostTensor::random_normal(f32, {2, 1, 32}, 3);
  for (const target::Target* target : core_targets()) {
    SCOPED_TRACE(target->name);
    HostTensor y = HostTensor::poisoned(f32, {2, 4, 32});
    Arguments arguments;
    arguments.tensors = {given("X", x), given("Z", z), given("W", w), given("Y", y)};
    run_tiles(compiler::compile_to_machine(stretched(32), target->name).kernel, arguments);
    for (std::int64_t i = 0; i < 2 * 4 * 32; ++i) {
      const std::int64_t a = i / 128, b = i / 32 % 4, c = i % 32;
      ASSERT_NEAR(y.at({a, b, c}), x.at({a, b, c}) * z.at({0, b, c}) + w.at({a, 0, c}), 1e-5);
    }
  }
  // Four rows of three elements end where no window may begin.
  const std::string error =
      test::usage_error_of([&] { compiler::compile_to_machine(stretched(3), "incore"); });
  EXPECT_THAT(error, HasSubstr("is taken in parts: row 4, column 0 lies at byte 48"));
  EXPECT_THAT(error, HasSubstr("take one at a multiple of 32"));
}

// A sum over what a table lists begins with no look at the table: it may be empty.
TEST(IncoreSchedule, ASumOverATableMayHaveNothing) {
  Kernel kernel("listed");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {32, 64}), B = kernel.in("B", bf16, {3, 64, 48});
  const Tensor table = kernel.in("table", i32, {n}), C = kernel.out("C", f32, {32, 48});
  kernel.grid(1);
  Var sum{zeros({32, 48})};
  for (Index i : range(n)) {
    sum = sum + dot(load(A(all, all)), load(B(load_index(table(i)), all, all)));
  }
  store(C(all, all), sum);
  HostTensor a = HostTensor::random_normal(bf16, {32, 64}, 1);
  HostTensor b = HostTensor::random_normal(bf16, {3, 64, 48}, 2);
  for (const target::Target* target : core_targets()) {
    SCOPED_TRACE(target->name);
    const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), target->name).kernel;
    for (const std::int64_t count : {0, 2}) {
      HostTensor numbers = HostTensor::zeros(i32, {count}), c = HostTensor::poisoned(f32, {32, 48});
      for (std::int64_t i = 0; i < count; ++i) numbers.set({i}, i == 0 ? 2 : 0);
      Arguments arguments;
      arguments.tensors = {given("A", a), given("B", b), given("table", numbers), given("C", c)};
      run_tiles(machine, arguments);
      for (std::int64_t j = 0; j < 48; ++j) {
        double wanted = 0;
        for (std::int64_t i = 0; i < count; ++i) {
          for (std::int64_t d = 0; d < 64; ++d) {
            wanted += a.at({5, d}) * b.at({i == 0 ? 2 : 0, d, j});
          }
        }
        ASSERT_NEAR(c.at({5, j}), wanted, 1e-3);
      }
    }
  }
}

// A computed tile that a product takes, and vector work behind it.
TEST(IncoreSchedule, AProductTakesWhatIsAlsoKept) {
  Kernel kernel("kept");
  const Tensor X = kernel.in("X", bf16, {32, 64}), B = kernel.in("B", bf16, {64, 48});
  const Tensor C = kernel.out("C", f32, {32, 48}), Y = kernel.out("Y", bf16, {32, 64});
  kernel.grid(1);
  const Tile doubled = load(X(all, all)) * 2;
  store(C(all, all), dot(doubled, load(B(all, all))));
  store(Y(all, all), doubled + 1);
  HostTensor x = HostTensor::random_normal(bf16, {32, 64}, 1);
  HostTensor b = HostTensor::random_normal(bf16, {64, 48}, 2);
  for (const target::Target* target : core_targets()) {
    SCOPED_TRACE(target->name);
    HostTensor c = HostTensor::poisoned(f32, {32, 48}), y = HostTensor::poisoned(bf16, {32, 64});
    Arguments arguments;
    arguments.tensors = {given("X", x), given("B", b), given("C", c), given("Y", y)};
    run_tiles(compiler::compile_to_machine(kernel.finish(), target->name).kernel, arguments);
    for (std::int64_t i = 0; i < 32; ++i) {
      for (std::int64_t j = 0; j < 48; ++j) {
        double wanted = 0;
        for (std::int64_t d = 0; d < 64; ++d) wanted += 2 * x.at({i, d}) * b.at({d, j});
        ASSERT_NEAR(c.at({i, j}), wanted, 1e-3);
      }
      for (std::int64_t d = 0; d < 64; ++d) {
        ASSERT_NEAR(y.at({i, d}), 2 * x.at({i, d}) + 1, 0.04);
      }
    }
  }
}

// What a product hands on through global memory is the product's, also in errors; and it is written
// there before anybody reads it.
TEST(IncoreSchedule, WhatIsHandedOnHasItsLine) {
  Kernel kernel("handed");
  const Dim k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {32, k}), B = kernel.in("B", bf16, {k, 48});
  const Tensor C = kernel.out("C", f32, {32, 48});
  kernel.grid(1);
  Var sum{zeros({32, 48})};
  for (Block depth : blocks(k, 64)) {
    sum = sum + dot(load(A(all, depth)), load(B(depth, all)));
  }
  const int line = __LINE__ - 2;
  store(C(all, all), max(sum, 0));
  ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "incore").kernel;
  const auto is_handed = [&](const ir::Operation& o) {
    return o.op == ir::Op::core_store &&
           machine.parameter_of(o.operands[0])->kind == ir::Parameter::Kind::scratch;
  };
  int handed = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (!is_handed(o)) return;
    ++handed;
    EXPECT_EQ(o.where.line, line);
  });
  EXPECT_EQ(handed, 1);
  ASSERT_TRUE(drop(machine, 0, is_handed));
  HostTensor a = HostTensor::random_normal(bf16, {32, 64}, 1);
  HostTensor b = HostTensor::random_normal(bf16, {64, 48}, 2);
  HostTensor c = HostTensor::poisoned(f32, {32, 48});
  Arguments arguments;
  arguments.tensors = {given("A", a), given("B", b), given("C", c)};
  const MachineReport report = run_machine(machine, arguments, {});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults.front().kind, "uninitialised");
  EXPECT_THAT(report.faults.front().message, HasSubstr("which nobody has written"));
}

}  // namespace
}  // namespace tilewright::simulator
