#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "ir/text.h"
#include "language/misuse.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"

// Layouts that authors declare, of shared tiles, of tiles in registers and of tensors: what is
// computed stays the same, what lies where is what was declared, and what TMA or products do not
// take is an error at its line.
namespace tilewright {
namespace {

using testing::HasSubstr;

HostTensor numbers(DType dtype, const std::vector<std::int64_t>& shape) {
  HostTensor tensor = HostTensor::zeros(dtype, shape);
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    values.push_back(static_cast<double>((i * 37) % 251) - 125);
  }
  return HostTensor::from_values(dtype, shape, values);
}

HostTensor run(const Kernel& kernel, std::vector<HostTensor> inputs, HostTensor output) {
  std::vector<TensorRef> tensors;
  for (HostTensor& input : inputs) tensors.push_back(ref(input));
  tensors.push_back(ref(output));
  compile(kernel, "sim:sm_90a").run(tensors);
  return output;
}

void expect_transposed(const HostTensor& got, const HostTensor& from) {
  for (std::int64_t i = 0; i < from.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < from.shape()[1]; ++j) {
      ASSERT_EQ(got.at({j, i}), from.at({i, j})) << i << ", " << j;
    }
  }
}

// From registers to shared memory, and from there transposed to registers.
Kernel turn_in_shared(DType dtype, const SharedMap& map) {
  Kernel kernel("turn_in_shared");
  const Tensor X = kernel.in("X", dtype, {64, 64}), Y = kernel.out("Y", dtype, {64, 64});
  kernel.ctas(1);
  SharedTile tile(kernel, "tile", dtype, 64, 64, map);
  NamedBarrier all_warps(kernel, 128);
  kernel.roles({role("turn", warpgroups(1), registers(128), [&] {
    store(tile, load(X(all, all)));
    all_warps.sync();
    store(Y(all, all), load(tile.T()));
  })});
  return kernel;
}

TEST(DeclaredLayouts, ThreadsTakeEveryMapOfASharedTile) {
  for (const DType dtype : {bf16, f32}) {
    const HostTensor x = numbers(dtype, {64, 64});
    for (const SharedMap& map :
         {SharedMap{}, SharedMap{.padding = 8}, SharedMap{.panel = 16, .padding = 8},
          SharedMap{.panel = 32}, SharedMap{.swizzle = 32}, SharedMap{.swizzle = 64},
          SharedMap{.swizzle = 128}}) {
      SCOPED_TRACE(testing::Message() << map.panel << " " << map.padding << " " << map.swizzle);
      const Kernel kernel = turn_in_shared(dtype, map);
      expect_transposed(run(kernel, {x}, HostTensor::poisoned(dtype, {64, 64})), x);
    }
  }
}

std::string layout_of(const Kernel& kernel, const std::string& tile) {
  std::string text;
  const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "sm_90a").kernel;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::shared && o.attributes.text(ir::Key::name) == tile) {
      text = o.attributes.shared_layout().to_string();
    }
  });
  return text;
}

TEST(DeclaredLayouts, ASharedTileLiesAsItIsDeclared) {
  EXPECT_EQ(layout_of(turn_in_shared(bf16, {.padding = 8}), "tile"), "[64x64*2|64@0:144,64@1:2]");
  EXPECT_EQ(layout_of(turn_in_shared(bf16, {.panel = 16, .padding = 8}), "tile"),
            "[64x64*2|64@0:48,16@1:2,4@1:3072]");
  EXPECT_EQ(layout_of(turn_in_shared(bf16, {.swizzle = 64}), "tile"),
            ir::SharedLayout::panels(64, 64, 2, 64).to_string());
}

// C = A B^T of 64 rows, loaded by TMA and multiplied as declared, stored through `out`.
Kernel product(const SharedMap& operands, const SharedMap& out) {
  Kernel kernel("product");
  const Tensor A = kernel.in("A", bf16, {64, 128}), B = kernel.in("B", bf16, {64, 128});
  const Tensor C = kernel.out("C", bf16, {64, 64});
  kernel.ctas(1);
  Ring ring(kernel, "ab", stages(2), {{bf16, 64, 64, operands}, {bf16, 64, 64, operands}});
  SharedTile staging(kernel, "staging", bf16, 64, 64, out);
  const auto part = [](int step) { return Block(64 * step, 64, Index(128)); };
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       for (int step = 0; step < 2; ++step) {
                         ring.produce([&](const Slot& slot) {
                           tma_load(A(all, part(step)), slot[0]);
                           tma_load(B(all, part(step)), slot[1]);
                         });
                       }
                     }),
                role("math", warpgroups(1), registers(128), [&] {
                  Tile sum = zeros({64, 64});
                  for (int step = 0; step < 2; ++step) {
                    const Slot slot = ring.consume();
                    sum = wait(wgmma(slot[0], slot[1].T(), sum));
                    ring.release(slot);
                  }
                  store(staging, sum.cast(bf16));
                  fence_proxy_async();
                  warp_sync();
                  const SharedView own = staging.rows(16 * warp_index(), 16);
                  tma_store(C(Block(16 * warp_index(), 16, Index(64)), all), own);
                  bulk_commit();
                  bulk_wait(0);
                })});
  return kernel;
}

TEST(DeclaredLayouts, ProductsAndCopiesTakeTheirOwn) {
  const HostTensor a = numbers(bf16, {64, 128}), b = numbers(bf16, {64, 128});
  for (const SharedMap& operands : {SharedMap{.swizzle = 128}, SharedMap{.swizzle = 64},
                                    SharedMap{.swizzle = 32}, SharedMap{.panel = 8}}) {
    for (const SharedMap& out : {SharedMap{.swizzle = 64}, SharedMap{}, SharedMap{.panel = 16}}) {
      SCOPED_TRACE(testing::Message() << operands.panel << " " << operands.swizzle << ", "
                                      << out.panel << " " << out.swizzle);
      const HostTensor c =
          run(product(operands, out), {a, b}, HostTensor::poisoned(bf16, {64, 64}));
      for (std::int64_t i = 0; i < 64; ++i) {
        for (std::int64_t j = 0; j < 64; ++j) {
          double want = 0;
          for (std::int64_t k = 0; k < 128; ++k) want += a.at({i, k}) * b.at({j, k});
          ASSERT_NEAR(c.at({i, j}), want, 4e-3 * (1 + std::abs(want))) << i << ", " << j;
        }
      }
    }
  }
}

TEST(DeclaredLayouts, WhatProductsAndCopiesDoNotTake) {
  test::misuse("tma_load",
               {"tma_load: rows of \"ab0\" lie 144 bytes apart, and have 128", "it is declared at",
                "fix: declare it without padding"},
               [] { product({.padding = 8}, {}); });
  test::misuse("wgmma",
               {"wgmma: \"ab0\" lies in panels of 128 bytes without a swizzle",
                "fix: declare it with a swizzle of 32, 64 or 128 bytes, or in panels of 16 bytes"},
               [] { product({}, {}); });
  test::misuse("tma_store", {"tma_store: rows of \"staging\" lie 144 bytes apart"},
               [] { product({.swizzle = 128}, {.padding = 8}); });
}

TEST(DeclaredLayouts, MapsThatAreNone) {
  const auto declare = [](const SharedMap& map) {
    Kernel kernel("none");
    SharedTile tile(kernel, "tile", bf16, 64, 64, map);
  };
  const char* const caret = "\"tile\"";
  test::misuse(caret, {"a swizzle of 48 bytes", "fix: take 0, 32, 64 or 128"},
               [&] { declare({.swizzle = 48}); });
  test::misuse(caret, {"a swizzle of 128 bytes in panels of 32 bf16", "make it 64"},
               [&] { declare({.panel = 32, .swizzle = 128}); });
  test::misuse(caret, {"with 8 behind each row"}, [&] { declare({.padding = 8, .swizzle = 64}); });
  test::misuse(caret, {"panels of 24 of 64 columns", "that divide the columns"},
               [&] { declare({.panel = 24}); });
  test::misuse(caret, {"panels of 4 of 64 columns", "a multiple of 16 bytes"},
               [&] { declare({.panel = 4}); });
  test::misuse(caret, {"panels of -8 of 64 columns"}, [&] { declare({.panel = -8}); });
  test::misuse(caret, {"a padding of 4 bf16", "a multiple of 16 bytes"},
               [&] { declare({.padding = 4}); });
  test::misuse(caret, {"a padding of -8 bf16"}, [&] { declare({.padding = -8}); });
}

TEST(DeclaredLayouts, TilesInRegistersLieAsTheyAreDeclared) {
  Kernel kernel("registers");
  const Tensor X = kernel.in("X", f32, {32, 64}), Y = kernel.out("Y", f32, {32, 64});
  kernel.ctas(1);
  const RegisterMap columns{{{2, 1, 1}, {8, 0, 4}}, {{8, 1, 2}, {4, 0, 1}}, {{4, 1, 16}}};
  const RegisterMap rows{{{16, 1, 4}}, {{4, 1, 1}, {8, 0, 1}}, {{4, 0, 8}}};
  kernel.roles({role("copy", warpgroups(1), registers(128), [&] {
    const Tile x = load(X(all, all), columns) * 2;
    store(Y(all, all), in_registers(x, rows) + 1);
  })});
  const HostTensor x = numbers(f32, {32, 64});
  const HostTensor y = run(kernel, {x}, HostTensor::poisoned(f32, {32, 64}));
  for (std::int64_t i = 0; i < x.elements(); ++i) ASSERT_EQ(y.flat(i), 2 * x.flat(i) + 1);
  const ir::Kernel machine = compiler::compile_to_machine(kernel.finish(), "sm_90a").kernel;
  std::string loaded, stored;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::load_registers) {
      loaded = o.attributes.register_layout().to_string();
    }
    if (o.op == ir::Op::store_registers) {
      stored = o.attributes.register_layout().to_string();
    }
  });
  EXPECT_EQ(loaded, "[32x64|r:2@1:1,8@0:4|l:8@1:2,4@0:1|w:4@1:16]");
  EXPECT_EQ(stored, "[32x64|r:16@1:4|l:4@1:1,8@0:1|w:4@0:8]");
}

// What lies as a product's operand wants it is one without a move.
TEST(DeclaredLayouts, AProductTakesATileThatIsDeclaredForIt) {
  Kernel kernel("operand");
  const Tensor A = kernel.in("A", bf16, {64, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor C = kernel.out("C", f32, {64, 64});
  kernel.ctas(1);
  Ring ring(kernel, "b", stages(1), {{bf16, 64, 64}});
  kernel.roles({role("load", warps(1), registers(24),
                     [&] { ring.produce([&](const Slot& slot) { tma_load(B(all, all), slot); }); }),
                role("math", warpgroups(1), registers(128), [&] {
                  const Tile a = load(A(all, all), RegisterMap::product(64));
                  const Slot slot = ring.consume();
                  store(C(all, all), wait(wgmma(a, slot.T())));
                  ring.release(slot);
                })});
  kernel.require({wgmma_rs, instructions("convert") == 0});
  const HostTensor a = numbers(bf16, {64, 64}), b = numbers(bf16, {64, 64});
  const HostTensor c = run(kernel, {a, b}, HostTensor::poisoned(f32, {64, 64}));
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t j = 0; j < 64; ++j) {
      double want = 0;
      for (std::int64_t k = 0; k < 64; ++k) want += a.at({i, k}) * b.at({j, k});
      ASSERT_NEAR(c.at({i, j}), want, 1e-5 * (1 + std::abs(want)));
    }
  }
}

TEST(DeclaredLayouts, AMapThatLeavesElementsOut) {
  Kernel kernel("left_out");
  const Tensor X = kernel.in("X", f32, {32, 64}), Y = kernel.out("Y", f32, {32, 64});
  kernel.ctas(1);
  const RegisterMap far_rows{{{2, 1, 1}, {8, 0, 8}}, {{8, 1, 2}, {4, 0, 1}}, {{4, 1, 16}}};
  test::misuse("load", {"load: the map is none of a tile {32, 64}", "fix: let the digits"}, [&] {
    kernel.roles({role("copy", warpgroups(1), registers(128),
                       [&] { store(Y(all, all), load(X(all, all), far_rows)); })});
  });
}

// Sums in the order of fragments: added by one kernel, and read by another at either level.
Kernel add_fragments() {
  Kernel kernel("add_fragments");
  const Tensor X = kernel.in("X", f32, {64, 32}), sums = kernel.inout("sums", f32, {3, 64 * 32});
  const FragmentTensor tiles(sums, 32);
  kernel.ctas(1);
  kernel.roles({role("add", warpgroups(1), registers(128), [&] {
    const Tile x = load(X(all, all), RegisterMap::product(32));
    tiles.add(1, x, Order::any);
    tiles.add(2, x * 2, Order::any);
  })});
  return kernel;
}

Kernel read_fragments() {
  Kernel kernel("read_fragments");
  const Tensor sums = kernel.in("sums", f32, {3, 64 * 32}), Y = kernel.out("Y", f32, {3, 64, 32});
  const FragmentTensor tiles(sums, 32);
  const auto [x] = kernel.grid(3);
  store(Y(x, all, all), tiles.load(x));
  return kernel;
}

TEST(DeclaredLayouts, ATensorOfFragmentsIsReadAsItWasWritten) {
  HostTensor x = numbers(f32, {64, 32}), sums = HostTensor::zeros(f32, {3, 64 * 32});
  compile(add_fragments(), "sim:sm_90a").run({ref(x), ref(sums)});
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    HostTensor y = HostTensor::poisoned(f32, {3, 64, 32});
    compile(read_fragments(), target).run({ref(sums), ref(y)});
    for (std::int64_t tile = 0; tile < 3; ++tile) {
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        ASSERT_EQ(y.flat(tile * x.elements() + i), static_cast<double>(tile) * x.flat(i))
            << target << ", tile " << tile << ", element " << i;
      }
    }
  }
}

TEST(DeclaredLayouts, ATensorThatHoldsNoFragments) {
  Kernel kernel("none");
  const Tensor rows = kernel.in("rows", f32, {3, 64}), bytes = kernel.in("bytes", u8, {3, 2048});
  test::misuse("FragmentTensor",
               {"FragmentTensor: rows is f32 {3, 64}, and fragments of 32 columns are f32 {tiles, "
                "2048}"},
               [&] { const FragmentTensor tiles(rows, 32); });
  test::misuse("FragmentTensor", {"bytes is u8 {3, 2048}"},
               [&] { const FragmentTensor tiles(bytes, 32); });
  test::misuse("FragmentTensor", {"24 columns", "a power of two from 8 to 256"},
               [&] { const FragmentTensor tiles(rows, 24); });
}

}  // namespace
}  // namespace tilewright
