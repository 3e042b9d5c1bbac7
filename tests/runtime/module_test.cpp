#include "runtime/module.h"

#include <optional>

#include "runtime/device.h"
#include "runtime/fake_driver.h"
#include "runtime/kernels.h"
#include "runtime/nvrtc.h"
#include "runtime/tensor_map.h"

namespace tilewright::runtime {
namespace {

TEST(ParameterBuffer, PointsAtEachValue) {
  ParameterBuffer buffer;
  EXPECT_EQ(buffer.add(int32_t{7}), 0U);
  EXPECT_EQ(buffer.add(int64_t{9}), 8U);
  EXPECT_EQ(buffer.add(char{'c'}), 16U);
  const size_t map = buffer.add(TensorMap{{1, 2, 3}});
  EXPECT_EQ(map, 64U);
  EXPECT_EQ(buffer.add(1.5F), 192U);
  EXPECT_EQ(buffer.size(), 196U);
  buffer.set(8, int64_t{11});
  const std::vector<void*> pointers = buffer.pointers();
  ASSERT_EQ(pointers.size(), 5U);
  EXPECT_EQ(*static_cast<int32_t*>(pointers[0]), 7);
  EXPECT_EQ(*static_cast<int64_t*>(pointers[1]), 11);
  EXPECT_EQ(*static_cast<char*>(pointers[2]), 'c');
  EXPECT_EQ(pointers[3], buffer.data() + map);
  EXPECT_EQ(*static_cast<float*>(pointers[4]), 1.5F);
  EXPECT_EQ(buffer.data()[17], std::byte{0}) << "padding is defined";
}

class ModuleTest : public FakeDriverTest {
 protected:
  void SetUp() override {
    try {
      cubin_ = Nvrtc::get().compile({"scale", kScaleSource, "sm_90a", {}}).cubin;
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    device_ = &Device::get();
    shape_.grid = {6, 2, 1};
    shape_.block = {128, 1, 1};
  }

  void expect_refused(const LoadedKernel& kernel, const std::vector<std::string>& parts) {
    const Stream stream(*device_);
    expect_error(ErrorKind::usage, parts, [&] { kernel.launch(shape_, stream, arguments_); });
    EXPECT_EQ(state_->launches, 0);
  }

  std::string cubin_;
  const Device* device_ = nullptr;
  LaunchShape shape_;
  void* pointer_ = nullptr;
  float factor_ = 2;
  int count_ = 96;
  void* arguments_[3] = {&pointer_, &factor_, &count_};
};

TEST_F(ModuleTest, LaunchesWithWhatWasAskedFor) {
  LoadedKernel kernel(*device_, cubin_, "scale");
  EXPECT_EQ(kernel.attributes().max_threads, 128);
  shape_.cluster = {2, 1, 1};
  shape_.shared_bytes = 100000;
  kernel.reserve_shared(100000);
  const Stream stream(*device_);
  kernel.launch(shape_, stream, arguments_);
  EXPECT_EQ(state_->launches, 1);
  EXPECT_THAT(state_->grid, testing::ElementsAre(6, 2, 1));
  EXPECT_THAT(state_->block, testing::ElementsAre(128, 1, 1));
  EXPECT_THAT(state_->cluster, testing::ElementsAre(2, 1, 1));
  EXPECT_EQ(state_->shared_bytes, 100000U);
  EXPECT_EQ(state_->dynamic_shared_limit, 100000);
  EXPECT_EQ(state_->attribute_count, 1U);
  EXPECT_EQ(state_->cooperative, 0);
  EXPECT_EQ(state_->arguments, arguments_);
}

// A thread may have worked on another GPU before.
TEST_F(ModuleTest, AsksTheGpuOfTheModule) {
  const Device& other = Device::get(1);
  const auto asks = [&](const char* what, const auto& ask) {
    other.make_current();
    state_->asked_on = -1;
    ask();
    EXPECT_EQ(state_->asked_on, 0) << what;
  };
  std::optional<LoadedKernel> kernel;
  asks("load", [&] { kernel.emplace(*device_, cubin_, "scale"); });
  asks("reserve", [&] { kernel->reserve_shared(100000); });
  asks("clusters", [&] { kernel->allow_large_clusters(); });
  const Stream stream(*device_);
  other.make_current();
  kernel->launch(shape_, stream, arguments_);
  EXPECT_EQ(state_->launched_on, 0);
}

// All CTAs run at once, or the launch fails: some wait for others.
TEST_F(ModuleTest, ACooperativeLaunchSaysSo) {
  const LoadedKernel kernel(*device_, cubin_, "scale");
  shape_.cooperative = true;
  shape_.cluster = {2, 1, 1};
  kernel.launch(shape_, Stream(*device_), arguments_);
  EXPECT_EQ(state_->attribute_count, 2U);
  EXPECT_EQ(state_->cooperative, 1);
  EXPECT_THAT(state_->cluster, testing::ElementsAre(2, 1, 1));
}

TEST_F(ModuleTest, APlainLaunchHasNoAttributes) {
  const LoadedKernel kernel(*device_, cubin_, "scale");
  kernel.launch(shape_, Stream(*device_), arguments_);
  EXPECT_EQ(state_->launches, 1);
  EXPECT_EQ(state_->attribute_count, 0U);
}

TEST_F(ModuleTest, RefusesLaunchesThatCannotWork) {
  const LoadedKernel kernel(*device_, cubin_, "scale");
  const LaunchShape good = shape_;
  shape_.grid.y = 0;
  expect_refused(kernel, {"kernel scale", "the grid has no block", "6x0x1"});
  shape_ = good;
  shape_.block.x = 256;
  expect_refused(kernel, {"256 threads", "at most 128"});
  shape_ = good;
  shape_.block.x = 0;
  expect_refused(kernel, {"no thread"});
  shape_ = good;
  shape_.cluster.x = 4;
  expect_refused(kernel, {"cluster does not divide the grid", "cluster 4x1x1"});
  shape_ = good;
  shape_.shared_bytes = 49153;
  expect_refused(kernel, {"49153 bytes", "49152 are reserved"});
  shape_ = good;
  shape_.grid.z = 65536;
  expect_refused(kernel, {"65535"});
  shape_ = good;
  shape_.grid.y = 65536;
  expect_refused(kernel, {"65535"});
  shape_ = good;
  shape_.grid.x = 0x80000000;
  expect_refused(kernel, {"at most 2147483647 x 65535"});
}

TEST_F(ModuleTest, ClustersHaveThreeAxes) {
  const LoadedKernel kernel(*device_, cubin_, "scale");
  shape_.grid = {6, 4, 8};
  shape_.cluster = {1, 2, 4};
  kernel.launch(shape_, Stream(*device_), arguments_);
  EXPECT_THAT(state_->cluster, testing::ElementsAre(1, 2, 4));
}

// A thread that has last spoken to another GPU launches on the kernel's own.
TEST_F(ModuleTest, LaunchesOnTheKernelsDevice) {
  const LoadedKernel kernel(*device_, cubin_, "scale");
  const Stream stream(*device_);
  Device::get(1).make_current();
  kernel.launch(shape_, stream, arguments_);
  EXPECT_EQ(state_->launched_on, 0);
}

TEST_F(ModuleTest, RefusesAStreamOfAnotherDevice) {
  const LoadedKernel kernel(*device_, cubin_, "scale");
  const Stream stream(Device::get(1));
  expect_error(ErrorKind::usage, {"belongs to GPU 1", "loaded on GPU 0"},
               [&] { kernel.launch(shape_, stream, arguments_); });
}

TEST_F(ModuleTest, NamesTheKernelsThatThereAre) {
  expect_error(ErrorKind::internal, {"no kernel skale", "it has scale"},
               [&] { LoadedKernel(*device_, cubin_, "skale"); });
  EXPECT_EQ(state_->live_handles, 0) << "the module was unloaded";
}

TEST_F(ModuleTest, MoreSharedMemoryThanABlockMayHaveIsRefused) {
  LoadedKernel kernel(*device_, cubin_, "scale");
  kernel.reserve_shared(232448);
  expect_error(ErrorKind::usage, {"458752 bytes", "232448", "stages"},
               [&] { kernel.reserve_shared(458752); });
  state_->static_shared = 1024;
  LoadedKernel own(*device_, cubin_, "scale");
  own.reserve_shared(232448 - 1024);
  expect_error(ErrorKind::usage, {"232449 bytes of shared memory (231425 dynamic, 1024 static)"},
               [&] { own.reserve_shared(231425); });
}

TEST_F(ModuleTest, AFailedLaunchNamesKernelAndShape) {
  const LoadedKernel kernel(*device_, cubin_, "scale");
  const Stream stream(*device_);
  state_->next_result = 701;
  expect_error(ErrorKind::usage, {"cuLaunchKernelEx", "(701)", "kernel scale", "grid 6x2x1"},
               [&] { kernel.launch(shape_, stream, arguments_); });
}

TEST_F(ModuleTest, ABinaryThatTheDriverCannotReadNamesBothSides) {
  state_->next_result = 209;
  expect_error(ErrorKind::usage, {"cuModuleLoadData", "scale", "sm_90a", "CUDA 12.4"},
               [&] { LoadedModule(*device_, cubin_, "scale"); });
}

class TensorMapTest : public FakeDriverTest {
 protected:
  TensorMapTest() {
    spec_.name = "K";
    spec_.base = buffer_;
    spec_.rank = 1;
    spec_.sizes[0] = spec_.box[0] = 64;
  }
  alignas(16) char buffer_[256];
  TensorMapSpec spec_;
};

TEST_F(TensorMapTest, ChecksBeforeItEncodes) {
  spec_.box[0] = 300;
  expect_error(ErrorKind::usage, {"300 elements"}, [&] { encode(spec_); });
  EXPECT_EQ(state_->map_base, nullptr);
  spec_.box[0] = 64;
  state_->next_result = 1;
  expect_error(ErrorKind::internal, {"cuTensorMapEncodeTiled", "tensor K"}, [&] { encode(spec_); });
}

TEST_F(TensorMapTest, TellsTheDriverAllOfIt) {
  spec_.type = TensorMapType::bf16;
  spec_.rank = 4;
  const std::uint64_t sizes[] = {128, 8, 1000, 2}, strides[] = {256, 2048, 2097152};
  const std::uint32_t box[] = {32, 1, 128, 2}, steps[] = {1, 2, 3, 4};
  std::copy(std::begin(sizes), std::end(sizes), spec_.sizes);
  std::copy(std::begin(strides), std::end(strides), spec_.strides);
  std::copy(std::begin(box), std::end(box), spec_.box);
  std::copy(std::begin(steps), std::end(steps), spec_.element_strides);
  // The numbers of the driver's enumerations.
  const std::pair<TensorMapSwizzle, int> swizzles[] = {{TensorMapSwizzle::none, 0},
                                                       {TensorMapSwizzle::bytes32, 1},
                                                       {TensorMapSwizzle::bytes64, 2},
                                                       {TensorMapSwizzle::bytes128, 3}};
  for (const auto& [swizzle, number] : swizzles) {
    spec_.swizzle = swizzle;
    spec_.box[0] = swizzle == TensorMapSwizzle::bytes32 ? 16 : 32;
    encode(spec_);
    EXPECT_EQ(state_->map.swizzle, number);
    EXPECT_EQ(state_->map.box[0], spec_.box[0]);
  }
  const FakeTensorMap& map = state_->map;
  EXPECT_EQ(state_->map_base, buffer_);
  EXPECT_EQ(map.type, 9);  // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  EXPECT_EQ(map.rank, 4u);
  EXPECT_TRUE(std::equal(std::begin(sizes), std::end(sizes), map.sizes));
  EXPECT_TRUE(std::equal(std::begin(strides), std::end(strides), map.strides));
  EXPECT_TRUE(std::equal(std::begin(box) + 1, std::end(box), map.box + 1));
  EXPECT_TRUE(std::equal(std::begin(steps), std::end(steps), map.element_strides));
  EXPECT_EQ(map.interleave, 0);
  EXPECT_EQ(map.promotion, 3);  // CU_TENSOR_MAP_L2_PROMOTION_L2_256B
  EXPECT_EQ(map.fill, 0);       // zeros
  spec_.fill = TensorMapFill::nan;
  encode(spec_);
  EXPECT_EQ(map.fill, 1);
}

}  // namespace
}  // namespace tilewright::runtime
