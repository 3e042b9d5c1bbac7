#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "common/error_text.h"
#include "common/ranks_kernels.h"
#include "compiler/build.h"
#include "compiler/launch_plan.h"
#include "tilewright/kernels/gemm.h"

// The value of each parameter that a launch passes.
namespace tilewright::compiler {
namespace {

using Kind = codegen::LaunchParameter::Kind;
using testing::HasSubstr;

constexpr std::int64_t kUnits = 132;

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

class Launched {
 public:
  Launched(const Kernel& kernel, const Arguments& given)
      : program_(translate(kernel.finish(), ir::default_target())),
        plan_(plan_launch(program_.machine, program_.source.parameters, given, kUnits)) {}

  const LaunchPlan& plan() const { return plan_; }
  const ir::Parameter& parameter(const codegen::LaunchParameter& of) const {
    return program_.machine.parameters[static_cast<std::size_t>(of.index)];
  }
  // Calls `check(parameter, value)` for those of a kind; how many there are.
  template <typename T, typename Check>
  int for_each(Kind kind, const Check& check) {
    const std::vector<void*> values = plan_.parameters.pointers();
    EXPECT_EQ(values.size(), program_.source.parameters.size());
    int count = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const codegen::LaunchParameter& each = program_.source.parameters[i];
      if (each.kind != kind) continue;
      T value{};
      std::memcpy(&value, values[i], sizeof(T));
      check(each, value);
      ++count;
    }
    return count;
  }

 private:
  GpuProgram program_;
  LaunchPlan plan_;
};

TEST(LaunchParameters, EachAxisHasItsStride) {
  Kernel kernel("planes");
  const Dim planes = kernel.dim("planes"), rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {planes, rows, 32});
  const Tensor Y = kernel.out("Y", f32, {planes, rows, 32});
  const auto [plane, block] = kernel.grid(planes, ceil_div(rows, 16));
  store(Y(plane, rows.block(block, 16), all), load(X(plane, rows.block(block, 16), all)));
  Arguments given;
  given.tensors = {{"X", f32, {3, 20, 32}, {4000, 48, 1}, at(0x10000), {}},
                   {"Y", f32, {3, 20, 32}, {900, 36, 1}, at(0x20000), {}}};
  Launched launched(kernel, given);
  const int strides = launched.for_each<std::int64_t>(
      Kind::stride, [&](const codegen::LaunchParameter& of, std::int64_t value) {
        const bool first = launched.parameter(of).name == "X";
        ASSERT_LT(of.axis, 2);
        EXPECT_EQ(value, given.tensors[first ? 0 : 1].strides[static_cast<std::size_t>(of.axis)]);
      });
  EXPECT_EQ(strides, 4);
  const int pointers = launched.for_each<std::byte*>(
      Kind::pointer, [&](const codegen::LaunchParameter& of, const std::byte* value) {
        EXPECT_EQ(value, given.tensors[launched.parameter(of).name == "X" ? 0 : 1].data);
      });
  EXPECT_EQ(pointers, 2);
}

TEST(LaunchParameters, ScalarsAreOfTheirTypes) {
  Kernel kernel("scaled");
  const Tensor X = kernel.in("X", f32, {16, 32}), Y = kernel.out("Y", f32, {16, 32});
  const Scalar factor = kernel.scalar("factor", f32), more = kernel.scalar("more", i32);
  kernel.grid(1);
  store(Y(all, all), load(X(Dim(16).block(Index(more), 16), all)) * factor);
  Arguments given;
  given.tensors = {{"X", f32, {16, 32}, {32, 1}, at(0x10000), {}},
                   {"Y", f32, {16, 32}, {32, 1}, at(0x20000), {}}};
  given.scalars = {-1.5, 1234567891};
  Launched launched(kernel, given);
  const int floats =
      launched.for_each<float>(Kind::scalar, [](const codegen::LaunchParameter& of, float value) {
        if (of.dtype == f32) {
          EXPECT_EQ(value, -1.5f);
        }
      });
  launched.for_each<std::int32_t>(Kind::scalar,
                                  [](const codegen::LaunchParameter& of, std::int32_t value) {
                                    if (of.dtype == i32) {
                                      EXPECT_EQ(value, 1234567891);
                                    }
                                  });
  EXPECT_EQ(floats, 2);
}

// Rank 1 of 2.
TEST(LaunchParameters, RanksKnowThemselvesAndTheirPeers) {
  const std::vector<std::int64_t> shape{64, 64}, strides{64, 1};
  Arguments given;
  given.tensors = {{"X", bf16, shape, strides, at(0x100000), {}},
                   {"Y", bf16, shape, strides, at(0x200000), {}},
                   {"box", bf16, shape, strides, at(0x400000), {at(0x300000), at(0x400000)}},
                   {"ready", i32, {1}, {1}, at(0x600000), {at(0x500000), at(0x600000)}}};
  given.rank = 1;
  given.ranks = 2;
  given.epoch = 7;
  Launched launched(test::Copied{}.kernel(), given);
  const int ranks = launched.for_each<std::int32_t>(
      Kind::rank, [](const codegen::LaunchParameter&, std::int32_t value) { EXPECT_EQ(value, 1); });
  EXPECT_EQ(ranks, 1);
  using Pointers = std::array<std::byte*, ir::kMaximumRanks>;
  const int peers = launched.for_each<Pointers>(
      Kind::peer_pointers, [&](const codegen::LaunchParameter& of, const Pointers& value) {
        const TensorArgument& tensor = given.tensors[static_cast<std::size_t>(of.index)];
        EXPECT_EQ(value[0], tensor.peers[0]) << tensor.name;
        EXPECT_EQ(value[1], tensor.peers[1]) << tensor.name;
        EXPECT_EQ(value[2], nullptr) << tensor.name;
      });
  EXPECT_GE(peers, 1);
}

// CTAs that wait for each other have to be there together.
TEST(LaunchParameters, CtasThatWaitForEachOtherAreLaunchedTogether) {
  for (const bool divided : {false, true}) {
    kernels::Gemm gemm;
    gemm.grid_split = divided;
    const Kernel kernel = kernels::gemm_sm90(gemm);
    Arguments given;
    std::uintptr_t address = 0;
    for (const ir::Parameter& parameter :
         translate(kernel.finish(), ir::default_target()).machine.parameters) {
      const std::vector<std::int64_t> shape =
          parameter.is_owned() ? parameter.constant_shape() : std::vector<std::int64_t>{256, 256};
      const std::vector<std::int64_t> strides =
          shape.size() == 1 ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{shape[1], 1};
      given.tensors.push_back(
          {parameter.name, parameter.dtype, shape, strides, at(address += 1 << 24), {}});
    }
    EXPECT_EQ(Launched(kernel, given).plan().shape.cooperative, divided);
  }
}

TEST(LaunchParameters, DimsBeyond32BitsAreRefused) {
  Kernel kernel("long");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows});
  kernel.in("W", f32, {columns});
  const Tensor Y = kernel.out("Y", f32, {32});
  kernel.grid(1);
  Var sum{zeros({32})};
  for (Index i : range(rows * columns)) sum = sum + load(X(Block(i % 7, 32, i % 7 + 32)));
  store(Y(all), sum);
  Arguments given;
  given.tensors = {{"X", f32, {1 << 16}, {1}, at(0x10000), {}},
                   {"W", f32, {1 << 14}, {1}, at(0x80000), {}},
                   {"Y", f32, {32}, {1}, at(0x100000), {}}};
  EXPECT_NO_THROW(Launched(kernel, given));
  given.tensors[1].shape = {1 << 15};
  EXPECT_THAT(test::usage_error_of([&] { Launched(kernel, given); }),
              testing::AllOf(HasSubstr("2147483648"), HasSubstr("computes in 32 bits")));
}

}  // namespace
}  // namespace tilewright::compiler
