#include "runtime/device.h"

#include <numeric>
#include <optional>

#include "runtime/fake_driver.h"

namespace tilewright::runtime {
namespace {

class DeviceTest : public FakeDriverTest {};

TEST_F(DeviceTest, ListsWhatTheDriverHas) {
  EXPECT_EQ(Device::count(), 2);
  const Device& device = Device::get(1);
  EXPECT_EQ(&device, &Device::get(1));
  EXPECT_NE(&device, &Device::get(0));
  EXPECT_EQ(device.ordinal(), 1);
  EXPECT_EQ(device.info().name, "Fake H100");
  EXPECT_EQ(device.info().arch(), "sm_90a");
  EXPECT_EQ(device.info().multiprocessors, 132);
  EXPECT_EQ(device.info().max_shared_bytes, 232448U);
  EXPECT_EQ(device.info().memory_bytes, size_t{80} << 30);
}

TEST_F(DeviceTest, ANumberTooLargeNamesTheCount) {
  expect_error(ErrorKind::usage, {"GPU 2", "there are 2", "0 to 1"}, [] { Device::get(2); });
  expect_error(ErrorKind::usage, {"GPU -1"}, [] { Device::get(-1); });
}

TEST_F(DeviceTest, NoGpuIsUnavailable) {
  state_->device_count = 0;
  EXPECT_EQ(Device::count(), 0);
  expect_error(ErrorKind::unavailable, {"found no GPU", "CUDA_VISIBLE_DEVICES"},
               [] { Device::get(0); });
}

TEST_F(DeviceTest, ArchitecturesBeforeHopperHaveNoSuffix) {
  DeviceInfo info;
  info.major = 8;
  EXPECT_EQ(info.arch(), "sm_80");
  info.major = 10;
  EXPECT_EQ(info.arch(), "sm_100a");
}

TEST_F(DeviceTest, CopiesThereAndBack) {
  const Device& device = Device::get();
  const Stream stream(device);
  std::vector<int> source(64);
  std::iota(source.begin(), source.end(), 1);
  std::vector<int> result(64, -1);
  const DeviceBuffer buffer(device, 256, "x");
  buffer.fill(0xFF, stream);
  buffer.upload(source.data(), 128, stream, 64);
  buffer.download(result.data(), 256, stream);
  stream.synchronize();
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(result[i], i >= 16 && i < 48 ? static_cast<int>(i) - 15 : -1) << i;
  }
}

// Also where another GPU is the thread's.
TEST_F(DeviceTest, AsksTheGpuThatItIsOf) {
  const Device &device = Device::get(), &other = Device::get(1);
  const auto asks = [&](const char* what, const auto& ask) {
    other.make_current();
    state_->asked_on = -1;
    ask();
    EXPECT_EQ(state_->asked_on, 0) << what;
  };
  std::optional<Stream> stream;
  std::optional<DeviceBuffer> buffer;
  std::vector<int> numbers(64);
  asks("stream", [&] { stream.emplace(device); });
  asks("buffer", [&] { buffer.emplace(device, 256, "x"); });
  asks("fill", [&] { buffer->fill(0, *stream); });
  asks("upload", [&] { buffer->upload(numbers.data(), 256, *stream); });
  asks("download", [&] { buffer->download(numbers.data(), 256, *stream); });
  asks("synchronize", [&] { stream->synchronize(); });
  asks("free_bytes", [&] { device.free_bytes(); });
}

TEST_F(DeviceTest, RowsAreOneCopy) {
  const Stream stream(Device::get());
  std::vector<char> source(30), result(40, -1);
  std::iota(source.begin(), source.end(), 0);
  copy_rows_async(&result[2], 8, &source[1], 10, 3, 3, stream);
  EXPECT_EQ(state_->copies, 1);
  for (int i = 0; i < 40; ++i) {
    const int row = (i - 2) / 8, column = (i - 2) % 8;
    const bool copied = i >= 2 && row < 3 && column < 3;
    EXPECT_EQ(result[i], copied ? source[1 + 10 * row + column] : -1) << i;
  }
}

TEST_F(DeviceTest, CopiesOutsideTheBufferAreRefused) {
  const Device& device = Device::get();
  const Stream stream(device);
  const DeviceBuffer buffer(device, 256, "the weights");
  char bytes[512] = {};
  expect_error(ErrorKind::usage, {"upload to the weights", "257 bytes at offset 0", "256 bytes"},
               [&] { buffer.upload(bytes, 257, stream); });
  expect_error(ErrorKind::usage, {"download from the weights", "8 bytes at offset 250"},
               [&] { buffer.download(bytes, 8, stream, 250); });
  expect_error(ErrorKind::usage, {"offset"},
               [&] { buffer.download(bytes, 8, stream, static_cast<size_t>(-4)); });
}

TEST_F(DeviceTest, FreesEverythingOnce) {
  {
    const Device& device = Device::get();
    DeviceBuffer first(device, 16, "a");
    DeviceBuffer second = std::move(first);
    EXPECT_EQ(first.data(), nullptr);
    first = DeviceBuffer(device, 32, "b");
    EXPECT_EQ(first.size(), 32U);
    PinnedBuffer pinned(device, 8);
    const PinnedBuffer moved = std::move(pinned);
    Stream stream(device);
    const Stream same = std::move(stream);
    const Stream borrowed = Stream::borrow(device, same.handle());
    Event event(device);
    const Event kept = std::move(event);
    EXPECT_EQ(state_->live_allocations, 3);
    EXPECT_EQ(state_->live_handles, 2);
  }
  EXPECT_EQ(state_->live_allocations, 0);
  EXPECT_EQ(state_->live_handles, 0);
}

TEST_F(DeviceTest, AnEmptyBufferNeedsNoMemory) {
  const Device& device = Device::get();
  const Stream stream(device);
  const DeviceBuffer empty(device, 0, "empty");
  EXPECT_EQ(empty.data(), nullptr);
  empty.fill(1, stream);
  empty.upload(nullptr, 0, stream);
  EXPECT_EQ(state_->live_allocations, 0);
}

TEST_F(DeviceTest, OutOfMemoryNamesTheTensorAndTheSizes) {
  expect_error(ErrorKind::unavailable, {"the cache needs 2.00 GiB", "1.00 GiB free of 80.00 GiB"},
               [] { DeviceBuffer(Device::get(), size_t{2} << 30, "the cache"); });
}

// While it is captured, and where the capture has become invalid.
TEST_F(DeviceTest, AStreamKnowsThatItIsCaptured) {
  const Stream stream(Device::get());
  for (const int status : {0, 1, 2}) {
    state_->capturing = status;
    EXPECT_EQ(stream.is_capturing(), status != 0) << status;
  }
}

TEST_F(DeviceTest, AThreadMayLoadWhileAnotherCaptures) {
  for (const int before : {0, 1}) {
    state_->capture_mode = before;
    {
      const BesideCaptures beside(Device::get());
      EXPECT_EQ(state_->capture_mode, cuda::kCaptureRelaxed);
    }
    EXPECT_EQ(state_->capture_mode, before);
  }
}

TEST_F(DeviceTest, TimesBetweenEvents) {
  const Device& device = Device::get();
  const Stream stream(device);
  const Event start(device);
  const Event end(device);
  start.record(stream);
  end.record(stream);
  end.synchronize();
  stream.wait(end);
  EXPECT_DOUBLE_EQ(Event::elapsed_seconds(start, end), 1.5e-3);
}

TEST_F(DeviceTest, SynchronizingReportsAKernelsFault) {
  const Stream stream(Device::get());
  state_->next_result = 700;
  expect_error(ErrorKind::result, {"cuStreamSynchronize", "CUDA_ERROR_ILLEGAL_ADDRESS"},
               [&] { stream.synchronize(); });
}

}  // namespace
}  // namespace tilewright::runtime
