#include "ir/binding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/text.h"

namespace tilewright::ir {
namespace {

const char* const kHeader = R"(kernel "gemm" tile @"gemm.cpp":7
dim m multiple_of(8) at_least(0) at_most(1024)
dim n at_least(16)
dim blocks
in A: bf16[m, (n * 2)] = %0 @"gemm.cpp":8
in B: bf16[n, 64] = %1 @"gemm.cpp":9
out C: f32[m, 64] = %2 @"gemm.cpp":10
scalar alpha: f32 = %3
grid (min(ceil_div(m, 128), multiprocessors))
body (%4: i32) {
}
)";

std::vector<TensorShape> good() {
  return {{"a", DType::bf16, {256, 64}, {}},
          {"b", DType::bf16, {32, 64}, {64, 1}},
          {"c", DType::f32, {256, 64}, {128, 1}}};
}

const std::map<std::string, std::int64_t> kBlocks = {{"blocks", 3}};

TEST(Binding, SolvesSymbols) {
  const Kernel kernel = parse_text(kHeader, "");
  const Binding binding = ir::bind(kernel, good(), 132, kBlocks);
  EXPECT_EQ(binding.value("m"), 256);
  EXPECT_EQ(binding.value("n"), 32);
  EXPECT_EQ(binding.value("blocks"), 3);
  EXPECT_EQ(binding.value(kMultiprocessors), 132);
  EXPECT_EQ(binding.evaluate(kernel.grid[0]), 2);
  EXPECT_EQ(ir::bind(kernel, good(), 1, kBlocks).evaluate(kernel.grid[0]), 1);
  EXPECT_THROW((void)binding.value("k"), Error);
}

TEST(Binding, SolvesASymbolPlusANumber) {
  const Kernel kernel = parse_text(
      "kernel \"offsets\" tile\ndim batch\nin X: i32[(batch + 1)] = %0\nin Y: f32[batch] = %1\n"
      "grid (1)\nbody (%2: i32) {\n}\n",
      "");
  const auto bound = [&](std::int64_t x, std::int64_t y) {
    return ir::bind(kernel, {{"x", i32, {x}, {}}, {"y", f32, {y}, {}}}, 1).value("batch");
  };
  EXPECT_EQ(bound(4, 3), 3);
  EXPECT_EQ(bound(1, 0), 0);
  EXPECT_THROW(bound(4, 4), Error);
  EXPECT_THROW(bound(0, 0), Error);
}

TEST(Binding, AcceptsEmptyAndDegenerateTensors) {
  const Kernel kernel = parse_text(kHeader, "");
  auto shapes = good();
  shapes[0] = {"a", DType::bf16, {0, 64}, {0, 0}};
  shapes[2] = {"c", DType::f32, {0, 64}, {0, 1}};
  EXPECT_EQ(ir::bind(kernel, shapes, 1, kBlocks).evaluate(kernel.grid[0]), 0);
  const Kernel one = parse_text(
      "kernel \"one\" tile\nin X: f32[1, 8, 1] = %0\ngrid (1)\n"
      "body (%1: i32) {\n}\n",
      "");
  EXPECT_NO_THROW(ir::bind(one, {{"x", DType::f32, {1, 8, 1}, {0, 1, 7}}}, 1));
}

TEST(Binding, GivenValuesMustAgree) {
  const Kernel kernel = parse_text(kHeader, "");
  EXPECT_EQ(ir::bind(kernel, good(), 1, {{"blocks", 1}, {"m", 256}}).value("m"), 256);
  try {
    (void)ir::bind(kernel, good(), 1, {{"blocks", 1}, {"m", 8}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "gemm: the dim m is 8 by the value given, but 256 by axis 0 of a");
  }
}

TEST(Binding, ErrorsNameTensorAxisAndValues) {
  using Shapes = std::vector<TensorShape>;
  struct Case {
    void (*spoil)(Shapes&);
    const char* message;
  };
  const Case cases[] = {
      {[](Shapes& s) { s[2].sizes[0] = 128; },
       "gemm: the dim m is 256 by axis 0 of a, but 128 by axis 0 of c"},
      {[](Shapes& s) { s[0].sizes[1] = 62; },
       "gemm: axis 1 of a has size 62, but A is declared with (n * 2) = 64 there, of n = 32"},
      {[](Shapes& s) { s[1].sizes[1] = 63; },
       "gemm: axis 1 of b has size 63, but B is declared with 64 there"},
      {[](Shapes& s) {
         s[1].sizes = {32};
         s[1].strides = {};
       },
       "gemm: b has rank 1, but the kernel declares B with rank 2"},
      {[](Shapes& s) { s[1].dtype = DType::f16; },
       "gemm: b is f16, but the kernel declares B as bf16"},
      {[](Shapes& s) { s[0].sizes[0] = s[2].sizes[0] = 260; },
       "gemm: the dim m is 260 by axis 0 of a, but the kernel declares it a multiple of 8"},
      {[](Shapes& s) { s[0].sizes[0] = s[2].sizes[0] = 2048; },
       "gemm: the dim m is 2048 by axis 0 of a, but the kernel declares it at most 1024"},
      {[](Shapes& s) {
         s[1].sizes[0] = 8;
         s[0].sizes[1] = 16;
       },
       "gemm: the dim n is 8 by axis 0 of b, but the kernel declares it at least 16"},
      {[](Shapes& s) { s[0].sizes[0] = -8; },
       "gemm: axis 0 of a has size -8, expected 0 to 2^31 - 1"},
      {[](Shapes& s) { s[0].sizes[0] = std::int64_t{1} << 31; },
       "gemm: axis 0 of a has size 2147483648, expected 0 to 2^31 - 1"},
      {[](Shapes& s) {
         s[1].strides = {64, 2};
       },
       "gemm: axis 1 of b has stride 2, expected 1 on the innermost axis"},
      {[](Shapes& s) {
         s[1].strides = {0, 1};
       },
       "gemm: axis 0 of b has stride 0, expected a positive one"},
      {[](Shapes& s) {
         s[1].strides = {-64, 1};
       },
       "gemm: axis 0 of b has stride -64, expected a positive one"},
      {[](Shapes& s) { s[1].strides = {1}; }, "gemm: b has 1 stride for 2 axes"},
      {[](Shapes& s) {
         s[1].strides = {INT64_MAX / 4, 1};
       },
       "gemm: b with sizes {32, 64} spans more than 2^63 bytes"},
      {[](Shapes& s) {
         s[2].strides = {1, 1};
       },
       "gemm: c is stored to, and its strides {1, 1} put c[0, 1] and c[1, 0] in one place"},
      {[](Shapes& s) {
         s[2].strides = {63, 1};
       },
       "gemm: c is stored to, and its strides {63, 1} put c[1, 0] and c[0, 63] in one place"},
      {[](Shapes& s) { s.pop_back(); }, "gemm: the launch gives 2 tensors, and C is missing"},
      {[](Shapes& s) { s.push_back(s[0]); }, "gemm: the launch gives 4 tensors, and it takes 3"},
  };
  const Kernel kernel = parse_text(kHeader, "");
  for (const Case& each : cases) {
    auto shapes = good();
    each.spoil(shapes);
    try {
      (void)ir::bind(kernel, shapes, 132, kBlocks);
      ADD_FAILURE() << "accepted: " << each.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_STREQ(error.location().file, "gemm.cpp");
      EXPECT_EQ(error.message(), each.message);
      EXPECT_NE(std::string(error.what()).find("\n  fix: "), std::string::npos) << error.what();
    }
  }
}

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::internal, {}, "", "");
}

// Each bound, one off, and an axis of two elements, along which there is one step.
TEST(Binding, BoundsAreExact) {
  const Kernel kernel = parse_text(
      "kernel \"exact\" tile\ndim n at_least(2) at_most(6)\nin X: f32[n, 2] = %0\n"
      "grid ((n - 3))\nbody (%1: i32) {\n}\n",
      "");
  const auto bound = [&](std::int64_t n, std::vector<std::int64_t> strides) {
    return ir::bind(kernel, {{"x", DType::f32, {n, 2}, std::move(strides)}}, 1);
  };
  EXPECT_EQ(bound(3, {}).evaluate(kernel.grid[0]), 0);
  EXPECT_EQ(bound(6, {7, 1}).evaluate(kernel.grid[0]), 3);
  const auto message = [&](std::int64_t n, const std::vector<std::int64_t>& strides) {
    return error_of([&] { (void)bound(n, strides); }).message();
  };
  EXPECT_EQ(message(7, {}),
            "exact: the dim n is 7 by axis 0 of x, but the kernel declares it at most 6");
  EXPECT_EQ(message(1, {}),
            "exact: the dim n is 1 by axis 0 of x, but the kernel declares it at least 2");
  EXPECT_EQ(message(2, {}), "exact: the grid has (n - 3) = -1 blocks, of n = 2");
  EXPECT_EQ(message(4, {2, 2}),
            "exact: axis 1 of x has stride 2, expected 1 on the innermost axis");
}

// What is known is held against the declarations before all of it is.
TEST(Binding, ChecksWhatIsKnownOfALaunch) {
  const Kernel kernel = parse_text(kHeader, "");
  const auto shapes = [](std::int64_t m, std::int64_t n, std::int64_t columns) {
    return std::vector<TensorShape>{{"a", DType::bf16, {m, 64}, {}},
                                    {"b", DType::bf16, {n, columns}, {}},
                                    {"c", DType::f32, {m, kUnknownSize}, {}}};
  };
  EXPECT_NO_THROW(check_known(kernel, shapes(kUnknownSize, 32, 64)));
  EXPECT_NO_THROW(check_known(kernel, shapes(256, kUnknownSize, kUnknownSize)));
  const auto message = [&](const std::vector<TensorShape>& given) {
    return error_of([&] { check_known(kernel, given); }).message();
  };
  EXPECT_EQ(message(shapes(260, kUnknownSize, 64)),
            "gemm: the dim m is 260 by axis 0 of a, but the kernel declares it a multiple of 8");
  EXPECT_EQ(message(shapes(kUnknownSize, 16, 64)),
            "gemm: axis 1 of a has size 64, but A is declared with (n * 2) = 32 there, of n = 16");
  EXPECT_EQ(message(shapes(kUnknownSize, 32, 63)),
            "gemm: axis 1 of b has size 63, but B is declared with 64 there");
}

TEST(Binding, ExpressionsThatHaveNoValueNameTheKernel) {
  const Kernel kernel = parse_text(
      "kernel \"cut\" tile @\"cut.cpp\":7\ndim a\ndim b\nin X: f32[a, b] = %0\ngrid (1)\n"
      "body (%1: i32) {\n}\n",
      "");
  const Binding binding = ir::bind(kernel, {{"x", DType::f32, {4, 0}, {}}}, 1);
  const Error error = error_of([&] { (void)binding.evaluate(kernel.dims[0] / kernel.dims[1]); });
  EXPECT_EQ(error.location().line, 7);
  EXPECT_EQ(error.message(), "(a // b) at this launch: (a // b) divides by zero: a = 4, b = 0");
}

TEST(Binding, ScalarsAreWhatTheirDTypeHolds) {
  const Kernel kernel = parse_text(
      "kernel \"scaled\" tile\nscalar n: i32 = %0\nscalar x: f32 = %1\ngrid (1)\n"
      "body (%2: i32) {\n}\n",
      "");
  ir::check_scalars(kernel, {-2147483648.0, 0.5});
  for (const double value : {0.5, 2147483648.0, -2147483649.0, std::nan("")}) {
    EXPECT_NE(error_of([&] {
                ir::check_scalars(kernel, {value, 0});
              })
                  .message()
                  .find("scaled: the scalar n is"),
              std::string::npos);
  }
  ir::check_scalars(kernel, {0, HUGE_VAL});  // which f32 has
  ir::check_scalars(kernel, {0, std::nan("")});
  EXPECT_EQ(error_of([&] {
              ir::check_scalars(kernel, {0, -1e39});
            }).message(),
            "scaled: the scalar x is -1e+39, and f32 ends at 3.4028235e+38");
  EXPECT_EQ(error_of([&] { ir::check_scalars(kernel, {1}); }).message(),
            "scaled takes 2 scalars, and the launch gives 1");
  EXPECT_EQ(error_of([&] {
              ir::check_scalars(kernel, {1, 2, 3});
            }).message(),
            "scaled takes 2 scalars, and the launch gives 3");
}

TEST(Binding, TensorsHaveMemory) {
  const Kernel kernel = parse_text(kHeader, "");
  alignas(float) std::byte memory[32] = {};
  std::vector<TensorArgument> tensors(3);
  for (TensorArgument& tensor : tensors) tensor = {"t", DType::f32, {2}, {1}, memory};
  tensors[2].data = memory + 16;
  ir::check_memory(kernel, tensors);
  tensors[1].data = nullptr;
  EXPECT_EQ(error_of([&] { ir::check_memory(kernel, tensors); }).message(),
            "tensor B has no data: its address is null");
  tensors[1].data = memory + 2;
  EXPECT_NE(error_of([&] { ir::check_memory(kernel, tensors); }).message().find("tensor B of f32"),
            std::string::npos);
  tensors[1].data = memory + 4;
  ir::check_memory(kernel, tensors);
  tensors[1].data = nullptr;
  tensors[1].shape = {0};
  ir::check_memory(kernel, tensors);
}

TEST(Binding, WhatIsStoredSharesNoMemory) {
  const Kernel kernel = parse_text(kHeader, "");
  alignas(float) std::byte memory[256] = {};
  // Parts of 2 x 3 elements of one tensor of rows of 8.
  const auto part = [&](std::size_t first) {
    return TensorArgument{"t", DType::f32, {2, 3}, {8, 1}, memory + first * 4};
  };
  const auto message = [&](std::size_t a, std::size_t b, std::size_t c) -> std::string {
    try {
      ir::check_memory(kernel, {part(a), part(b), part(c)});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(0, 0, 3), "");  // inputs may
  EXPECT_EQ(message(3, 5, 0), "");  // beside each other
  EXPECT_EQ(message(3, 16, 0), "");
  EXPECT_EQ(message(0, 3, 0), "");  // in place
  // The first row alone, and not rows that lie otherwise.
  TensorArgument first = part(0), closer = part(0);
  first.shape = {1, 3};
  closer.strides = {4, 1};
  EXPECT_NO_THROW(ir::check_memory(kernel, {part(0), part(3), first}));
  EXPECT_THROW(ir::check_memory(kernel, {part(0), part(3), closer}), Error);
  const std::string of_a = message(1, 5, 0), of_b = message(3, 2, 0), below = message(3, 10, 0);
  EXPECT_NE(of_a.find("gemm.cpp:10: error: tensor C is stored to, and tensor A lies in the same"),
            std::string::npos)
      << of_a;
  EXPECT_NE(of_a.find("gemm.cpp:8"), std::string::npos) << of_a;
  EXPECT_NE(of_b.find("and tensor B lies in the same memory"), std::string::npos) << of_b;
  EXPECT_NE(below.find("and tensor B lies in the same memory"), std::string::npos) << below;
}

TEST(Binding, CountsElementsOfHugeTensors) {
  const Kernel kernel = parse_text(
      "kernel \"huge\" tile\ndim a\nin X: f32[a, a, a] = %0\ngrid (1)\n"
      "body (%1: i32) {\n}\n",
      "");
  EXPECT_THROW(
      (void)ir::bind(kernel, {{"x", DType::f32, {2000000000, 2000000000, 2000000000}, {}}}, 1),
      Error);
}

TEST(Binding, DimsWithinAnExpressionAloneAreShown) {
  const Kernel kernel = parse_text(
      "kernel \"grouped\" tile\ndim m\ndim g\nin X: f32[(m * g)] = %0 @\"grouped.cpp\":3\n"
      "in Y: f32[(m // 2)] = %1 @\"grouped.cpp\":4\ngrid (1)\nbody (%2: i32) {\n}\n",
      "");
  const std::vector<TensorShape> shapes = {{"X", DType::f32, {12}, {}}, {"Y", DType::f32, {1}, {}}};
  const auto error_with = [&](const std::map<std::string, std::int64_t>& given) {
    try {
      (void)ir::bind(kernel, shapes, 1, given);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string neither = error_with({}), other = error_with({{"m", 3}});
  EXPECT_NE(neither.find("the dim m has no value"), std::string::npos) << neither;
  EXPECT_NE(neither.find("it stands within (m * g) alone, which is axis 0 of X at grouped.cpp:3"),
            std::string::npos)
      << neither;
  EXPECT_NE(neither.find("fix: give X an axis for each of m and g, or make (m * g) one dim"),
            std::string::npos)
      << neither;
  EXPECT_NE(other.find("the dim g has no value"), std::string::npos) << other;
  EXPECT_NE(other.find("it stands within (m * g) alone"), std::string::npos) << other;
}

TEST(Binding, UnboundAndUnknownDimsAreErrors) {
  const Kernel kernel = parse_text(kHeader, "");
  const std::pair<std::map<std::string, std::int64_t>, const char*> cases[] = {
      {{},
       "gemm: the dim blocks has no value: no axis of a tensor is blocks, or "
       "blocks plus a number"},
      {{{"blocks", -1}}, "gemm: the dim blocks is -1 by the value given, expected 0 to 2^31 - 1"},
      {{{"blocks", 1}, {"heads", 2}}, "gemm: there is no dim heads"},
  };
  for (const auto& [given, message] : cases) {
    try {
      (void)ir::bind(kernel, good(), 1, given);
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), message);
      if (given.count("blocks") != 0 && given.at("blocks") < 0) {
        EXPECT_EQ(error.fix(), "give the number of its elements");
      }
    }
  }
  EXPECT_THROW((void)ir::bind(kernel, good(), 0, kBlocks), Error);
}

}  // namespace
}  // namespace tilewright::ir
