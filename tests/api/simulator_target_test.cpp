#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"

namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Y = X X^T for one tile of 64 rows; the math role consumes `consumed` stages of the one produced.
Kernel product(int consumed) {
  Kernel kernel("product");
  const Tensor X = kernel.in("X", bf16, {64, 64});
  const Tensor Y = kernel.out("Y", f32, {64, 64});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(2), {{bf16, 64, 64}});
  kernel.roles({role("load", warps(1), registers(24),
                     [&] { ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot); }); }),
                role("math", warpgroups(1), registers(240), [&] {
                  Slot slot = ring.consume();
                  for (int i = 1; i < consumed; ++i) slot = ring.consume();
                  store(Y(all, all), wait(wgmma(slot, slot.T())));
                  ring.release(slot);
                })});
  return kernel;
}

TEST(SimulatorTargetTest, ExecutesWhatWouldShip) {
  HostTensor x = HostTensor::random_normal(bf16, {64, 64}, 1);
  HostTensor y = HostTensor::poisoned(f32, {64, 64});
  const Executable executable = compile(product(1), "sim:sm_90a");
  EXPECT_EQ(executable.target(), "sim:sm_90a");
  executable.run({ref(x), ref(y)});
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t j = 0; j < 64; ++j) {
      double wanted = 0;
      for (std::int64_t k = 0; k < 64; ++k) wanted += x.at({i, k}) * x.at({j, k});
      ASSERT_NEAR(y.at({i, j}), wanted, 1e-4) << i << ", " << j;
    }
  }
}

TEST(SimulatorTargetTest, AFaultIsAnErrorThatNamesTheLine) {
  HostTensor x = HostTensor::random_normal(bf16, {64, 64}, 1);
  HostTensor y = HostTensor::poisoned(f32, {64, 64});
  const Executable executable = compile(product(2), "sim:sm_90a");
  try {
    executable.run({ref(x), ref(y)});
    FAIL() << "a role that waits for a stage that nobody fills is no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::result);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("simulator_target_test.cpp"), HasSubstr("deadlock"),
                                    HasSubstr("x_full"), HasSubstr("ring.consume()")));
  }
}

// Through the automatic schedule, whose refusal names the user's line.
TEST(SimulatorTargetTest, KernelsOfTheTileLevel) {
  Kernel kernel("tiles");
  const Tensor x = kernel.in("X", f32, {16, 32}), y = kernel.out("Y", f32, {32, 16});
  kernel.grid(1);
  store(y(all, all), load(x(all, all)).T());
  HostTensor in = HostTensor::random_normal(f32, {16, 32}, 1);
  HostTensor out = HostTensor::poisoned(f32, {32, 16});
  compile(kernel, "sim:sm_90a").run({ref(in), ref(out)});
  for (std::int64_t row = 0; row < 16; ++row) {
    for (std::int64_t column = 0; column < 32; ++column) {
      EXPECT_EQ(out.at({column, row}), in.at({row, column}));
    }
  }
}

// Also where nothing is stored, and where the compiled kernel has a grid of its own.
TEST(SimulatorTargetTest, AGridThatDividesByZero) {
  for (const bool product : {false, true}) {
    Kernel kernel("divided");
    const Dim n = kernel.dim("n");
    const Tensor x = kernel.in("X", bf16, {n, 64}), y = kernel.out("Y", f32, {n, 64});
    const auto [i] = kernel.grid(100 / n);
    const Block rows = n.block(i, 64);
    const Tile own = load(x(rows, all));
    store(y(rows, all), product ? dot(own, load(x(Block(0, 64, n), all))) : own.cast(f32));
    HostTensor in = HostTensor::zeros(bf16, {0, 64}), out = HostTensor::zeros(f32, {0, 64});
    for (const char* target : {"interpreter", "cpu", "sim:sm_90a", "sim:sm_100a", "sim:incore"}) {
      const Executable executable = compile(kernel, target);
      EXPECT_THAT(test::usage_error_of([&] {
                    executable.run({ref(in), ref(out)});
                  }),
                  HasSubstr("(100 // n) divides by zero: n = 0"))
          << target << ", product " << product;
    }
  }
}

// Before anything is copied by them, on each target in the same words.
TEST(SimulatorTargetTest, SizesAndStridesThatNoTensorHas) {
  Kernel kernel("twice");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {m, n}), Y = kernel.out("Y", f32, {m, n});
  const auto [i] = kernel.grid(ceil_div(m, 16));
  store(Y(m.block(i, 16), Block(0, 16, n)), load(X(m.block(i, 16), Block(0, 16, n))) * 2);
  std::vector<float> x(64), y(64);
  const auto ref = [](std::vector<float>& memory, std::vector<std::int64_t> sizes,
                      std::vector<std::int64_t> strides) {
    return TensorRef{memory.data() + 8, f32, std::move(sizes), std::move(strides)};
  };
  for (const char* target :
       {"interpreter", "cpu", "sim:sm_90a", "sim:sm_100a", "sim:incore", "passes:sm_90a"}) {
    const Executable executable = compile(kernel, target);
    const auto error = [&](const TensorRef& in, const TensorRef& out) {
      return test::usage_error_of([&] { executable.run({in, out}); });
    };
    EXPECT_THAT(error(ref(x, {2, 4}, {4, 1}), ref(y, {2, 4}, {-4, 1})),
                HasSubstr("axis 0 of Y has stride -4, expected a positive one"))
        << target;
    EXPECT_THAT(error(ref(x, {-1, 1}, {1, 1}), ref(y, {-1, 1}, {1, 1})),
                HasSubstr("axis 0 of X has size -1, expected 0 to 2^31 - 1"))
        << target;
    const std::int64_t many = std::int64_t{1} << 31;
    EXPECT_THAT(error(ref(x, {many, 0}, {0, 1}), ref(y, {many, 0}, {0, 1})),
                HasSubstr("axis 0 of X has size 2147483648, expected 0 to 2^31 - 1"))
        << target;
  }
}

// One CTA then has all tiles, and a second one that is wrong is seen.
TEST(SimulatorTargetTest, HasAsManyMultiprocessorsAsTheOptionsSay) {
  Kernel kernel("persistent");
  const Tensor Y = kernel.out("Y", i32, {4, 32});
  kernel.ctas(multiprocessors());
  kernel.roles({role("own", warps(1), registers(24), [&] {
    for (Index tile : range(cta_index(), 4, cta_count())) {
      store(Y(tile, all), full({32}, 1, i32) * cta_count());
    }
  })});
  CompileOptions options;
  for (const int count : {1, 3}) {
    options.multiprocessors = count;
    for (const char* target : {"sim:sm_90a", "passes:sm_90a"}) {
      HostTensor y = HostTensor::poisoned(i32, {4, 32});
      compile(kernel, target, options).run({ref(y)});
      EXPECT_EQ(y.at({3, 31}), count) << target;
    }
  }
  options.multiprocessors = 0;
  EXPECT_THAT(test::usage_error_of([&] { compile(kernel, "sim:sm_90a", options); }),
              AllOf(HasSubstr("simulator_target_test.cpp"), HasSubstr("0 multiprocessors"),
                    HasSubstr("fix: set CompileOptions::multiprocessors to 1 or more")));
}

TEST(SimulatorTargetTest, WhatNoScheduleTakesIsAnErrorAtItsLine) {
  Kernel kernel("tiles");
  const Tensor a = kernel.in("A", bf16, {64, 24}), b = kernel.in("B", bf16, {24, 64});
  const Tensor c = kernel.out("C", f32, {64, 64});
  kernel.grid(1);
  store(c(all, all), dot(load(a(all, all)), load(b(all, all))));
  EXPECT_THAT(test::usage_error_of([&] { compile(kernel, "sim:sm_90a"); }),
              AllOf(HasSubstr("simulator_target_test.cpp"), HasSubstr("dot: k is 24")));
}

// The hardware writes 16 bytes whole, and with them what follows the row.
TEST(SimulatorTargetTest, ACopyOfRowsThatEndInsideOf16BytesIsAFault) {
  Kernel kernel("odd_rows");
  const Dim n = kernel.dim("n", at_most(16));
  const Tensor X = kernel.in("X", bf16, {64, 16}), Y = kernel.out("Y", bf16, {64, n});
  kernel.ctas(1);
  SharedTile staging(kernel, "staging", bf16, 64, 16);
  kernel.roles({role("copy", warpgroups(1), registers(240), [&] {
    store(staging, load(X(all, all)));
    fence_proxy_async();
    NamedBarrier(kernel, 128).sync();
    tma_store(Y(Dim(64).block(warp_index(), 16), n.block(0, 16)),
              staging.rows(16 * warp_index(), 16));
    bulk_commit();
    bulk_wait(0);
  })});
  HostTensor x = HostTensor::random_normal(bf16, {64, 16}, 1);
  HostTensor y = HostTensor::poisoned(bf16, {64, 16});
  const Executable executable = compile(kernel, "sim:sm_90a");
  executable.run({ref(x), {y.data(), bf16, {64, 8}, {16, 1}}});
  EXPECT_EQ(y.at({63, 7}), x.at({63, 7}));
  try {
    executable.run({ref(x), {y.data(), bf16, {64, 7}, {16, 1}}});
    FAIL() << "what follows the row is overwritten, and nobody says so";
  } catch (const Error& error) {
    EXPECT_THAT(test::without_source_lines(error.what()),
                AllOf(HasSubstr("simulator_target_test.cpp"), HasSubstr("whole 16 bytes")));
  }
}

// What a launch on a GPU refuses, in the same words.
TEST(SimulatorTargetTest, TensorsThatTmaCannotCopy) {
  std::vector<float> memory(64 * 68);
  HostTensor y = HostTensor::poisoned(f32, {64, 64});
  const Executable executable = compile(product(1), "sim:sm_90a");
  const auto error = [&](std::size_t first, std::int64_t stride) {
    auto* const data = reinterpret_cast<std::byte*>(memory.data()) + first * 2;
    return test::whole_usage_error_of([&] {
      executable.run({{data, bf16, {64, 64}, {stride, 1}}, ref(y)});
    });
  };
  EXPECT_THAT(
      error(0, 68),
      AllOf(HasSubstr("simulator_target_test.cpp"), HasSubstr("tma_load(X(all, all), slot)"),
            HasSubstr("tensor X: the stride of axis 0 is 68 elements (136 bytes), and TMA "
                      "takes multiples of 16 bytes"),
            HasSubstr("fix: pad axis 1 to 72 elements")));
  EXPECT_THAT(error(1, 64),
              AllOf(HasSubstr("simulator_target_test.cpp"), HasSubstr("(it is 2 past one)"),
                    HasSubstr("fix: start the tensor at a multiple of 8 elements")));
  executable.run({{memory.data(), bf16, {64, 64}, {72, 1}}, ref(y)});
}

// A GPU would not come to an end.
TEST(SimulatorTargetTest, AStepThatIsLoadedAndZero) {
  Kernel kernel("steps");
  const Tensor step = kernel.in("step", i32, {1}), Y = kernel.out("Y", f32, {32});
  kernel.grid(1);
  Var sum{zeros({32})};
  const Index by = load_index(step(0));
  for ([[maybe_unused]] Index i : range(0, 4, by)) sum = sum + 1;
  store(Y(all), sum);
  const Executable executable = compile(kernel, "sim:sm_90a");
  HostTensor y = HostTensor::poisoned(f32, {32});
  for (const int value : {0, -1}) {
    HostTensor given = HostTensor::from_values(i32, {1}, {static_cast<double>(value)});
    EXPECT_THAT(test::usage_error_of([&] {
                  executable.run({ref(given), ref(y)});
                }),
                AllOf(HasSubstr("simulator_target_test.cpp"),
                      HasSubstr("a loop's step is " + std::to_string(value)),
                      HasSubstr("fix: use a step of at least 1")));
  }
  HostTensor given = HostTensor::from_values(i32, {1}, {2});
  executable.run({ref(given), ref(y)});
  EXPECT_EQ(y.flat(31), 2);
}

TEST(SimulatorTargetTest, AKernelThatNeverEnds) {
  Kernel kernel("endless");
  const Tensor word = kernel.workspace("word", 1);
  kernel.ctas(1);
  kernel.roles({role("waits", warps(1), registers(24), [&] {
    Cell<Condition> waits{Condition(true)};
    repeat_while(waits, [&] { waits = load_index(word(0)) == 0; });
  })});
  CompileOptions options;
  options.max_operations = 1000;
  const Executable executable = compile(kernel, "sim:sm_90a", options);
  try {
    executable.run({});
    FAIL() << "nobody writes the word";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::result);
    EXPECT_THAT(test::without_source_lines(error.what()),
                AllOf(HasSubstr("warps have executed 1000 operations"),
                      HasSubstr("CompileOptions::max_operations")));
  }
}

}  // namespace
}  // namespace tilewright
