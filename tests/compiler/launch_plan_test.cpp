#include "compiler/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "common/error_text.h"
#include "common/ranks_kernels.h"
#include "compiler/build.h"
#include "tilewright/asynchronous.h"
#include "tilewright/hopper.h"
#include "tilewright/library.h"

namespace tilewright::compiler {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kMultiprocessors = 132;

// Rows of sequences of X go through shared memory to Y.
TEST(RaggedMaps, BeginBeforeTheTensorOrWithItAndHaveAnAxisMore) {
  Kernel kernel("copy");
  const Dim rows = kernel.dim("rows"), batch = kernel.dim("batch"), copied = kernel.dim("copied");
  const Tensor X = kernel.in("X", bf16, {rows, 2, 64});
  const Tensor offsets = kernel.in("offsets", i32, {batch + 1});
  const Tensor Y = kernel.out("Y", bf16, {copied, 2, 64});
  const Ragged ragged(rows, offsets);
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(1), {{bf16, 64, 64}});
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       ring.produce([&](const Slot& slot) {
                         tma_load(X(ragged.of(0).block(0, 64), 1, all), slot);
                       });
                     }),
                role("store", warps(1), registers(24), [&] {
                  const Slot slot = ring.consume();
                  tma_store(Y(copied.block(0, 64), 1, all), slot);
                  bulk_commit();
                  bulk_wait(0);
                  ring.release(slot);
                })});
  const GpuProgram program = translate(kernel.finish(), ir::default_target());
  const auto data = [](std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); };
  Arguments given;
  given.tensors = {{"X", bf16, {100, 2, 64}, {320, 128, 1}, data(0x100000)},
                   {"offsets", i32, {3}, {1}, data(0x300000)},
                   {"Y", bf16, {100, 2, 64}, {128, 64, 1}, data(0x200000)}};
  const LaunchPlan plan =
      plan_launch(program.machine, program.source.parameters, given, kMultiprocessors);
  ASSERT_EQ(plan.maps.size(), 3u);
  const runtime::TensorMapSpec &x = plan.maps[0].spec, &outside = plan.maps[1].spec,
                               &y = plan.maps[2].spec;
  EXPECT_EQ(plan.maps[1].offset, plan.maps[0].offset + sizeof(runtime::TensorMap));
  EXPECT_EQ(x.rank, 4);
  EXPECT_EQ(x.sizes[2], 100u);
  EXPECT_EQ(x.sizes[3], 101u);
  EXPECT_EQ(x.strides[0], 256u);
  EXPECT_EQ(x.strides[1], 640u);
  EXPECT_EQ(x.strides[2], 640u);
  EXPECT_EQ(x.box[3], 1u);
  EXPECT_EQ(x.base, data(0x100000 - 100 * 640));
  // For boxes outside a map that differs in where it begins.
  EXPECT_EQ(outside.base, data(0x100000));
  EXPECT_EQ(outside.rank, 4);
  EXPECT_TRUE(std::equal(std::begin(x.sizes), std::end(x.sizes), outside.sizes));
  EXPECT_TRUE(std::equal(std::begin(x.strides), std::end(x.strides), outside.strides));
  EXPECT_TRUE(std::equal(std::begin(x.box), std::end(x.box), outside.box));
  EXPECT_EQ(y.rank, 3);
  EXPECT_EQ(y.base, data(0x200000));
  // Without elements both begin where another tensor does, and reach its first element.
  Arguments empty = given;
  empty.tensors[0] = {"X", bf16, {0, 2, 64}, {320, 128, 1}, nullptr};
  const LaunchPlan none =
      plan_launch(program.machine, program.source.parameters, empty, kMultiprocessors);
  for (const std::size_t map : {0u, 1u}) {
    const runtime::TensorMapSpec& spec = none.maps[map].spec;
    EXPECT_EQ(spec.base, data(0x300000));
    for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(spec.sizes[axis], 1u);
  }
  given.tensors[0].data = nullptr;
  EXPECT_THAT(usage_error_of([&] {
                plan_launch(program.machine, program.source.parameters, given, kMultiprocessors);
              }),
              AllOf(HasSubstr("X"), HasSubstr("null")));
}

// Each rank passes the memory of all: pointers for threads, tensor maps for copies.
TEST(LaunchPlan, RanksPassTheMemoryOfTheirPeers) {
  const Kernel kernel = test::Copied{}.kernel();
  const GpuProgram program = translate(kernel.finish(), ir::default_target());
  const auto data = [](std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); };
  const std::vector<std::int64_t> shape{64, 64}, strides{64, 1};
  Arguments given;
  given.tensors = {{"X", bf16, shape, strides, data(0x100000), {}},
                   {"Y", bf16, shape, strides, data(0x200000), {}},
                   {"box", bf16, shape, strides, data(0x400000), {data(0x300000), data(0x400000)}},
                   {"ready", i32, {1}, {1}, data(0x600000), {data(0x500000), data(0x600000)}}};
  given.rank = 1;
  given.ranks = 2;
  given.epoch = 7;
  const auto plan = [&] {
    return plan_launch(program.machine, program.source.parameters, given, kMultiprocessors);
  };
  const LaunchPlan planned = plan();
  // Its own box, from which it copies, and that of each rank, into which it might.
  std::vector<void*> bases;
  for (const LaunchPlan::Map& map : planned.maps) bases.push_back(map.spec.base);
  EXPECT_THAT(bases, testing::UnorderedElementsAre(data(0x400000), data(0x300000), data(0x400000)));
  ASSERT_TRUE(planned.epoch.has_value());
  std::int32_t epoch = 0;
  std::memcpy(&epoch, planned.parameters.data() + *planned.epoch, sizeof(epoch));
  EXPECT_EQ(epoch, 7);
  given.tensors[3].peers.pop_back();
  EXPECT_THAT(usage_error_of(plan), HasSubstr("tensor ready has no data in rank 1 of 2"));
  given.rank = 2;
  EXPECT_THAT(usage_error_of(plan), HasSubstr("rank 2 of 2"));
  given.ranks = 9;
  EXPECT_THAT(usage_error_of(plan), HasSubstr("9 ranks"));
}

// A launch on `size` rows of as many CTAs, or of two, in clusters of two.
LaunchPlan planned_clusters(std::int64_t size, bool by_rows) {
  Kernel kernel("copies");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {64}), Y = kernel.out("Y", f32, {n, 64});
  kernel.ctas(by_rows ? n : Dim(2), 2);
  kernel.roles({role("copy", warps(1), registers(40), [&] { store(Y(0, all), load(X(all))); })});
  const GpuProgram program = translate(kernel.finish(), ir::default_target());
  const auto data = [](std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); };
  Arguments given;
  given.tensors = {{"X", f32, {64}, {1}, data(0x100000)},
                   {"Y", f32, {size, 64}, {64, 1}, data(0x200000)}};
  return plan_launch(program.machine, program.source.parameters, given, kMultiprocessors);
}

TEST(LaunchPlan, AGridIsOfWholeClusters) {
  EXPECT_EQ(planned_clusters(4, /*by_rows=*/true).shape.grid.x, 4u);
  EXPECT_THAT(usage_error_of([] { planned_clusters(3, /*by_rows=*/true); }),
              AllOf(HasSubstr("copies has 3 CTAs, no multiple of its cluster of 2"),
                    HasSubstr("fix: round")));
}

// Whatever the grid is, and whatever is read.
TEST(LaunchPlan, EmptyOutputsLaunchNoFixedGrid) {
  EXPECT_TRUE(planned_clusters(0, /*by_rows=*/false).empty);
  EXPECT_FALSE(planned_clusters(1, /*by_rows=*/false).empty);
}

// gemm's own schedule for sm_90a; the addresses of its tensors are never read.
class LaunchPlanTest : public testing::Test {
 protected:
  LaunchPlanTest() {
    const LibraryKernel& entry = find_kernel("gemm");
    const Kernel kernel = entry.schedules[0].build(resolve_options(entry, {}));
    program_ = translate(kernel.finish(), ir::default_target());
  }

  static TensorArgument tensor(const char* name, std::int64_t rows, std::int64_t columns,
                               std::uintptr_t address) {
    return {name, bf16, {rows, columns}, {columns, 1}, reinterpret_cast<std::byte*>(address)};
  }
  static Arguments arguments(std::int64_t m, std::int64_t n, std::int64_t k) {
    return {
        {tensor("A", m, k, 0x1000000), tensor("B", n, k, 0x2000000), tensor("C", m, n, 0x3000000)},
        {}};
  }
  LaunchPlan plan(const Arguments& arguments) const {
    return plan_launch(program_.machine, program_.source.parameters, arguments, kMultiprocessors);
  }
  std::string error_of(const Arguments& arguments) const {
    return usage_error_of([&] { plan(arguments); });
  }

  GpuProgram program_;
};

TEST_F(LaunchPlanTest, TheShapeIsTheKernels) {
  const LaunchPlan launch = plan(arguments(512, 768, 128));
  EXPECT_FALSE(launch.empty);
  EXPECT_EQ(launch.shape.grid.x, 12u);  // tiles
  EXPECT_EQ(launch.shape.cluster.x, static_cast<unsigned>(program_.machine.cluster));
  EXPECT_EQ(launch.shape.block.x, static_cast<unsigned>(program_.machine.threads));
  EXPECT_EQ(launch.shape.shared_bytes, static_cast<unsigned>(program_.machine.shared_bytes));
}

TEST_F(LaunchPlanTest, TensorMapsDescribeTheTensorsInnermostFirst) {
  Arguments given = arguments(512, 768, 128);
  given.tensors[0].strides = {136, 1};
  const LaunchPlan launch = plan(given);
  ASSERT_FALSE(launch.maps.empty());
  const runtime::TensorMapSpec& a = launch.maps[0].spec;
  EXPECT_EQ(a.name, "A");
  EXPECT_EQ(a.rank, 2);
  EXPECT_EQ(a.base, reinterpret_cast<void*>(0x1000000));
  EXPECT_EQ(a.type, runtime::TensorMapType::bf16);
  EXPECT_EQ(a.sizes[0], 128u);
  EXPECT_EQ(a.sizes[1], 512u);
  EXPECT_EQ(a.strides[0], 272u);
  EXPECT_EQ(a.box[0], 64u);
  EXPECT_EQ(a.swizzle, runtime::TensorMapSwizzle::bytes128);
  for (const LaunchPlan::Map& map : launch.maps) {
    EXPECT_EQ(map.offset % 64, 0u);
    EXPECT_LE(map.offset + 128, launch.parameters.size());
  }
}

TEST_F(LaunchPlanTest, DimsAreEvaluated) {
  const LaunchPlan launch = plan(arguments(512, 768, 128));
  // The last parameters are 32-bit dims, in the order of the signature.
  std::vector<std::int32_t> wanted;
  for (const codegen::LaunchParameter& parameter : program_.source.parameters) {
    if (parameter.kind != codegen::LaunchParameter::Kind::dim) continue;
    wanted.push_back(static_cast<std::int32_t>(
        parameter.dim.evaluate([](const std::string& name) -> std::int64_t {
          return name == "m" ? 512 : name == "n" ? 768 : name == "k" ? 128 : kMultiprocessors;
        })));
  }
  ASSERT_FALSE(wanted.empty());
  std::vector<std::int32_t> found(wanted.size());
  std::memcpy(found.data(), launch.parameters.data() + launch.parameters.size() - 4 * wanted.size(),
              4 * wanted.size());
  EXPECT_EQ(found, wanted);
}

TEST_F(LaunchPlanTest, EmptyOutputsLaunchNothing) {
  Arguments given = arguments(0, 768, 128);
  given.tensors[0].data = given.tensors[2].data = nullptr;
  EXPECT_TRUE(plan(given).empty);
}

TEST_F(LaunchPlanTest, AnEmptyInputIsEncodedAsOneElementThatExists) {
  Arguments given = arguments(512, 768, 0);
  given.tensors[0].data = given.tensors[1].data = nullptr;
  const LaunchPlan launch = plan(given);
  EXPECT_FALSE(launch.empty);
  EXPECT_EQ(launch.maps[0].spec.sizes[0], 1u);
  EXPECT_NE(launch.maps[0].spec.base, nullptr);
}

TEST_F(LaunchPlanTest, TheStrideOfAnAxisOfOneElementDoesNotMatter) {
  Arguments given = arguments(1, 768, 128);
  given.tensors[0].strides = {3, 1};
  EXPECT_NO_THROW(plan(given));
}

TEST_F(LaunchPlanTest, MisalignedTensorsAreNamed) {
  Arguments given = arguments(512, 768, 128);
  given.tensors[1] = tensor("B", 768, 128, 0x20008);
  EXPECT_THAT(error_of(given),
              AllOf(HasSubstr("gemm_sm90.cpp:"), HasSubstr("B"), HasSubstr("0x20008"),
                    HasSubstr("16 bytes"), HasSubstr("fix:")));
  given.tensors[1] = tensor("B", 768, 128, 0);
  EXPECT_THAT(error_of(given), AllOf(HasSubstr("B"), HasSubstr("null")));
}

TEST_F(LaunchPlanTest, StridesThatTmaCannotTakeAreNamed) {
  Arguments given = arguments(512, 768, 128);
  given.tensors[0].strides = {129, 1};
  EXPECT_THAT(error_of(given),
              AllOf(HasSubstr("tensor A: the stride of axis 0 is 129 elements (258 bytes)"),
                    HasSubstr("multiples of 16 bytes"), HasSubstr("pad axis 1 to 136 elements")));
  given.tensors[0].strides = {132, 1};
  EXPECT_THAT(error_of(given), HasSubstr("the stride of axis 0 is 132 elements (264 bytes)"));
  given = arguments(512, 768, 100);
  EXPECT_THAT(error_of(given), AllOf(HasSubstr("k is 100"), HasSubstr("a multiple of 8")));
  given = arguments(512, 768, 128);
  given.tensors[0].strides = {-128, 1};
  EXPECT_THAT(error_of(given), HasSubstr("A"));
  given.tensors[0].strides = {128, 2};
  EXPECT_THAT(error_of(given), HasSubstr("A"));
}

TEST_F(LaunchPlanTest, ArgumentsThatDoNotFitAreNamed) {
  Arguments given = arguments(512, 768, 128);
  given.tensors[1].shape[1] = 64;
  EXPECT_THAT(error_of(given), AllOf(HasSubstr("k"), HasSubstr("128"), HasSubstr("64")));
  given = arguments(512, 768, 128);
  given.tensors[0].dtype = f16;
  EXPECT_THAT(error_of(given), AllOf(HasSubstr("A"), HasSubstr("bf16"), HasSubstr("f16")));
  given = arguments(512, 768, 128);
  given.tensors[0].shape = {512};
  given.tensors[0].strides = {1};
  EXPECT_THAT(error_of(given), HasSubstr("A"));
  given = arguments(512, 768, 128);
  given.tensors.pop_back();
  EXPECT_THAT(error_of(given),
              HasSubstr("gemm_sm90: the launch gives 2 tensors, and C is missing"));
  given = arguments(512, 768, 128);
  given.tensors.push_back(given.tensors.back());
  EXPECT_THAT(error_of(given), HasSubstr("the launch gives 4 tensors, and it takes 3"));
  given = arguments(512, 768, 128);
  given.scalars = {1};
  EXPECT_THAT(error_of(given), HasSubstr("takes 0 scalars, and the launch gives 1"));
  given = arguments(-1, 768, 128);
  EXPECT_THAT(error_of(given), HasSubstr("-1"));
}

}  // namespace
}  // namespace tilewright::compiler
