#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "ir/text.h"
#include "language/misuse.h"
#include "tilewright/check.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"

// Maps that authors declare for tiles of kernels of the tile level: what is computed stays the same
// on the interpreter and on the simulated GPU, what lies where is what was declared, moves stand
// only where readers want something else, and a map that the schedule cannot give is an error at
// its line.
namespace tilewright {
namespace {

HostTensor eighths(DType dtype, const std::vector<std::int64_t>& shape) {
  HostTensor tensor = HostTensor::zeros(dtype, shape);
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    values.push_back(static_cast<double>((i * 37) % 51) / 8 - 3);
  }
  return HostTensor::from_values(dtype, shape, values);
}

constexpr const char* kTargets[] = {"interpreter", "sim:sm_90a"};

std::vector<std::string> layouts_of(const Kernel& kernel, ir::Op op) {
  std::vector<std::string> found;
  const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "sm_90a").kernel;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == op) found.push_back(o.attributes.register_layout().to_string());
  });
  return found;
}

// Without products. A lane has four columns of a row side by side, a warp 128 of them; or a row of
// which it has every 32nd column.
const RegisterMap kPanels{{{4, 1, 1}, {4, 0, 1}}, {{32, 1, 4}}, {{4, 0, 4}}};
const RegisterMap kStrided{{{4, 1, 32}, {2, 0, 8}}, {{32, 1, 1}}, {{8, 0, 1}}};

Kernel centred(const RegisterMap& loaded, const RegisterMap& stored) {
  Kernel kernel("centred");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns}), Y = kernel.out("Y", f32, {rows, columns});
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(i, 16), cols = columns.block(0, 128);
  const Tile x = load(X(own, cols), loaded);
  const Tile mean = reduce_sum(x, 1) / 100;
  store(Y(own, cols), in_registers(x - mean, stored) * 2);
  return kernel;
}

void expect_centred(const Kernel& kernel) {
  HostTensor x = eighths(f32, {37, 100});
  for (const char* target : kTargets) {
    HostTensor y = HostTensor::poisoned(f32, {37, 100});
    compile(kernel, target).run({ref(x), ref(y)});
    for (std::int64_t i = 0; i < 37; ++i) {
      double mean = 0;
      for (std::int64_t j = 0; j < 100; ++j) mean += x.at({i, j}) / 100;
      for (std::int64_t j = 0; j < 100; ++j) {
        ASSERT_NEAR(y.at({i, j}), 2 * (x.at({i, j}) - mean), 1e-5)
            << target << " " << i << " " << j;
      }
    }
  }
}

TEST(DeclaredTileMaps, RowsLieAsTheyAreDeclared) {
  Kernel kernel = centred(kPanels, kStrided);
  expect_centred(kernel);
  EXPECT_THAT(layouts_of(kernel, ir::Op::load_registers),
              testing::ElementsAre("[16x128|r:4@1:1,4@0:1|l:32@1:4|w:4@0:4,2*]"));
  EXPECT_THAT(layouts_of(kernel, ir::Op::store_registers),
              testing::ElementsAre("[16x128|r:4@1:32,2@0:8|l:32@1:1|w:8@0:1]"));
}

// One map throughout moves nothing, and the claim holds.
TEST(DeclaredTileMaps, OneMapNeedsNoMove) {
  Kernel kernel = centred(kPanels, kPanels);
  kernel.require({instructions("convert") == 0});
  expect_centred(kernel);
  Kernel moved = centred(kPanels, kStrided);
  moved.require({instructions("convert") == 0});
  test::misuse("convert", {"it is 1"}, [&] { check(moved, "sm_90a"); });
}

// What is stored and loaded again lies in other threads than those that stored it.
TEST(DeclaredTileMaps, WhatIsStoredIsReadByOtherThreads) {
  Kernel kernel("again");
  const Tensor X = kernel.inout("X", f32, {32, 128});
  const auto [i] = kernel.grid(2);
  const Block own(16 * i, 16, Index(32));
  store(X(own, all), load(X(own, all), kPanels) + 1);
  store(X(own, all), load(X(own, all), kStrided) * 2);
  const HostTensor x = eighths(f32, {32, 128});
  for (const char* target : kTargets) {
    HostTensor y = x;
    compile(kernel, target).run({ref(y)});
    for (std::int64_t e = 0; e < x.elements(); ++e) ASSERT_EQ(y.flat(e), 2 * (x.flat(e) + 1));
  }
}

// Y = A B^T + X of 128 rows by two warpgroups; X lies as it is declared, or not declared.
Kernel product_plus(const RegisterMap* operand, const RegisterMap* added, const RegisterMap* stored,
                    const Schedule& schedule = {}, int rows = 128, DType out = f32) {
  Kernel kernel("product");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {64, k});
  const Tensor X = kernel.in("X", f32, {m, 64}), Y = kernel.out("Y", out, {m, 64});
  kernel.schedule(schedule);
  const auto [i] = kernel.grid(ceil_div(m, rows));
  const Block own = m.block(i, rows);
  Var sum{zeros({own, 64})};
  for (Block depth : blocks(k, 64)) {
    const Tile a = operand ? load(A(own, depth), *operand) : load(A(own, depth));
    sum = dot(a, load(B(all, depth)).T(), sum);
  }
  const Tile x = added ? load(X(own, all), *added) : load(X(own, all));
  const Tile result = (sum + x).cast(out);
  store(Y(own, all), stored ? in_registers(result, *stored) : result);
  return kernel;
}

void expect_product(const Kernel& kernel, DType out = f32) {
  HostTensor a = eighths(bf16, {150, 96}), b = eighths(bf16, {64, 96}), x = eighths(f32, {150, 64});
  for (const char* target : kTargets) {
    HostTensor y = HostTensor::poisoned(out, {150, 64});
    compile(kernel, target).run({ref(a), ref(b), ref(x), ref(y)});
    for (std::int64_t i = 0; i < 150; ++i) {
      for (std::int64_t j = 0; j < 64; ++j) {
        double want = x.at({i, j});
        for (std::int64_t k = 0; k < 96; ++k) want += a.at({i, k}) * b.at({j, k});
        const double bound = out == f32 ? 1e-4 : 4e-3 * (1 + std::abs(want));
        ASSERT_NEAR(y.at({i, j}), want, bound) << target << " " << i << " " << j;
      }
    }
  }
}

const RegisterMap kOfProduct = RegisterMap::product(64, 128);
// A warp has 16 rows, as of a product, and a lane four columns side by side.
const RegisterMap kWide{{{4, 1, 1}, {8, 0, 2}}, {{16, 1, 4}, {2, 0, 1}}, {{8, 0, 16}}};
// Warps of a warpgroup have columns.
const RegisterMap kByColumns{{{32, 0, 4}}, {{16, 1, 1}, {2, 0, 1}}, {{4, 1, 16}, {2, 0, 2}}};
const RegisterMap kColumns{
    {{2, 1, 1}, {16, 0, 4}}, {{8, 1, 2}, {4, 0, 1}}, {{4, 1, 16}, {2, 0, 64}}};

TEST(DeclaredTileMaps, TilesBesideProducts) {
  for (const RegisterMap* operand : {static_cast<const RegisterMap*>(nullptr), &kOfProduct}) {
    for (const RegisterMap* added : {static_cast<const RegisterMap*>(nullptr), &kWide, &kColumns}) {
      for (const RegisterMap* stored :
           {static_cast<const RegisterMap*>(nullptr), &kWide, &kColumns}) {
        expect_product(product_plus(operand, added, stored));
      }
    }
  }
}

// The example of docs/language.md.
Kernel product_from_registers() {
  Kernel kernel("product_from_registers");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {64, k});
  const Tensor C = kernel.out("C", f32, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block own = m.block(i, 128);
  const RegisterMap operand = RegisterMap::product(64, 128);
  // A lane has four columns side by side, half a warp a row, a warp 16 rows, a warpgroup 64.
  const RegisterMap wide{{{4, 1, 1}, {8, 0, 2}}, {{16, 1, 4}, {2, 0, 1}}, {{4, 0, 16}, {2, 0, 64}}};
  Var sum{zeros({own, 64})};
  for (Block depth : blocks(k, 64)) {
    const Tile a = load(A(own, depth), operand);
    sum = dot(a * a, load(B(all, depth)).T(), sum);
  }
  const Tile result = sum;
  store(C(own, all), in_registers(result, wide));
  kernel.require({wgmma_rs, instructions("convert") == 1});
  return kernel;
}

TEST(DeclaredTileMaps, TheExampleOfTheDocuments) {
  HostTensor a = eighths(bf16, {150, 96}), b = eighths(bf16, {64, 96});
  for (const char* target : kTargets) {
    HostTensor c = HostTensor::poisoned(f32, {150, 64});
    compile(product_from_registers(), target).run({ref(a), ref(b), ref(c)});
    for (std::int64_t i = 0; i < 150; ++i) {
      for (std::int64_t j = 0; j < 64; ++j) {
        double want = 0, terms = 0;
        for (std::int64_t k = 0; k < 96; ++k) {
          const double term = a.at({i, k}) * a.at({i, k}) * b.at({j, k});
          want += term;
          terms += std::abs(term);
        }
        // a * a is rounded to bf16.
        ASSERT_NEAR(c.at({i, j}), want, 4e-3 * terms) << target << " " << i << " " << j;
      }
    }
  }
  EXPECT_THAT(layouts_of(product_from_registers(), ir::Op::store_registers),
              testing::ElementsAre("[64x64|r:4@1:1,8@0:2|l:16@1:4,2@0:1|w:4@0:16]"));
}

// Rows leave by copies of single warps, which have to have written them themselves.
TEST(DeclaredTileMaps, StoresOfCopies) {
  for (const RegisterMap* added : {&kWide, &kColumns}) {
    expect_product(product_plus(nullptr, added, nullptr, {}, 128, bf16), bf16);
    expect_product(product_plus(nullptr, added, &kColumns, {}, 128, bf16), bf16);
  }
}

// The same of a tile beside a product that follows a declared one.
Kernel doubled_beside_product(const RegisterMap& map) {
  Kernel kernel("doubled_beside_product");
  const Dim m = kernel.dim("m");
  const Tensor A = kernel.in("A", bf16, {m, 64}), X = kernel.in("X", f32, {m, 64});
  const Tensor C = kernel.out("C", f32, {m, 64}), Y = kernel.out("Y", bf16, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block own = m.block(i, 128);
  store(Y(own, all), (load(X(own, all), map) * 2).cast(bf16));
  const Tile a = load(A(own, all));
  store(C(own, all), dot(a, a.slice({0, 0}, {64, 64}).T()));
  return kernel;
}

TEST(DeclaredTileMaps, StoresOfWhatFollows) {
  HostTensor a = eighths(bf16, {128, 64}), x = eighths(f32, {128, 64});
  HostTensor c = HostTensor::poisoned(f32, {128, 64}), y = HostTensor::poisoned(bf16, {128, 64});
  compile(doubled_beside_product(kColumns), "sim:sm_90a").run({ref(a), ref(x), ref(c), ref(y)});
  for (std::int64_t i = 0; i < x.elements(); ++i) ASSERT_EQ(y.flat(i), 2 * x.flat(i));
}

// A tile that is declared as a product's first operand comes from registers.
TEST(DeclaredTileMaps, AProductTakesItsOperandFromRegisters) {
  Kernel kernel = product_plus(&kOfProduct, nullptr, nullptr);
  kernel.require({wgmma_rs, instructions("convert") == 0, instructions("wgmma_ss") == 0});
  EXPECT_NO_THROW(check(kernel, "sm_90a"));
}

TEST(DeclaredTileMaps, WarpgroupsThatShareColumns) {
  const Schedule columns{.warpgroups = 2, .partition = Partition::columns};
  const RegisterMap halves{
      {{2, 1, 1}, {16, 0, 4}}, {{8, 1, 2}, {4, 0, 1}}, {{2, 1, 16}, {2, 1, 32}}};
  expect_product(product_plus(nullptr, nullptr, nullptr, columns, 64));
  const RegisterMap parts{
      {{2, 1, 1}, {8, 0, 4}}, {{8, 1, 2}, {4, 0, 1}}, {{2, 1, 16}, {2, 0, 32}, {2, 1, 32}}};
  expect_product(product_plus(nullptr, &parts, &parts, columns, 64));
}

// The tile form says it in words, which read back.
TEST(DeclaredTileMaps, AreText) {
  const Kernel kernel = product_plus(&kOfProduct, &kWide, nullptr);
  const std::string text = ir::to_text(kernel.finish());
  EXPECT_THAT(text, testing::HasSubstr("[128x64|r:4@1:1,8@0:2|l:16@1:4,2@0:1|w:8@0:16]"));
  EXPECT_TRUE(ir::equal(ir::parse_text(text, "product.tw"), kernel.finish()));
}

TEST(DeclaredTileMaps, MapsThatTheScheduleCannotGive) {
  const RegisterMap gap{{{2, 1, 1}, {4, 0, 8}}, {{32, 1, 4}}, {{4, 0, 2}}};
  test::misuse("load(X(own, cols), ",
               {"the map is none of a tile {16, 128}", "fix: let the digits of registers"},
               [&] { centred(gap, kStrided); });
  test::misuse("load(X(own, all), *added)",
               {"the map of tile<f32, 128x64> gives warp 4 element {2, 0} first",
                "the second of 2 warpgroups has those from {64, 0} on",
                "fix: let {2, 0, 64} be the slowest digit of warps"},
               [] { check(product_plus(nullptr, &kByColumns, nullptr), "sm_90a"); });
  Kernel one_group = centred(kPanels, kStrided);
  one_group.schedule({.warpgroups = 1});
  test::misuse("warpgroups = 1",
               {"schedule: warpgroups = 1: they have 4 warps, and a tile is declared for 8",
                "its map is at", "fix: leave it out, or state what the map has"},
               [&] { check(one_group, "sm_90a"); });
  const RegisterMap one_warp{
      {{16, 1, 4}, {64, 0, 2}}, {{4, 1, 1}, {2, 0, 1}, {4, RegisterMap::kEvery, 0}}, {}};
  test::misuse("load(X(own, all), *added)",
               {"gives each thread 1024 elements of f32, 1024 registers", "a thread has 255",
                "fix: spread the tile"},
               [&] { check(product_plus(nullptr, &one_warp, nullptr), "sm_90a"); });
  test::misuse("in_registers(x > 0", {"a tile of booleans", "fix: make numbers of it"}, [] {
    Kernel kernel("booleans");
    const Tensor X = kernel.in("X", f32, {16, 128});
    const Tile x = load(X(all, all));
    in_registers(x > 0, kPanels);
  });
}

}  // namespace
}  // namespace tilewright
