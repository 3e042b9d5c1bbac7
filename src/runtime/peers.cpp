#include "runtime/peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "runtime/cuda_api.h"
#include "runtime/topology.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

constexpr cuda::Result kAlreadyEnabled = 704;
constexpr unsigned kWaitAtLeast = 0, kWriteDefault = 0;

using WordFunction = cuda::Result(cuda::Stream, cuda::DevicePointer, std::uint32_t, unsigned);

void queue(const char* symbol, const Stream& stream, void* word, std::int32_t value,
           unsigned flags) {
  const CudaDriver& driver = stream.device().driver();
  stream.device().make_current();
  check_cuda(driver,
             driver_function<WordFunction>(driver, symbol)(
                 stream.handle(), reinterpret_cast<std::uintptr_t>(word),
                 static_cast<std::uint32_t>(value), flags),
             symbol);
}

}  // namespace

void reach_peer(const Device& device, const Device& other) {
  if (device.ordinal() == other.ordinal()) return;
  const CudaDriver& driver = device.driver();
  int can = 0;
  check_cuda(driver,
             driver_function<cuda::Result(int*, cuda::Device, cuda::Device)>(
                 driver, "cuDeviceCanAccessPeer")(&can, device.ordinal(), other.ordinal()),
             "cuDeviceCanAccessPeer");
  if (can == 0) {
    Diagnostic({},
               fmt::format("GPU {} does not reach the memory of GPU {}, which is joined to it {}",
                           device.ordinal(), other.ordinal(),
                           path_text(topology().link(device.ordinal(), other.ordinal()))),
               ErrorKind::unavailable)
        .fix("GPUs joined by NVLink, or by PCIe with peer access: `tilewright doctor` draws them")
        .raise();
  }
  device.make_current();
  const cuda::Result result = driver_function<cuda::Result(cuda::Context, unsigned)>(
      driver, "cuCtxEnablePeerAccess")(other.context(), 0);
  if (result != kAlreadyEnabled) check_cuda(driver, result, "cuCtxEnablePeerAccess");
}

std::string unique_name(const Device& device) {
  std::array<unsigned char, 16> bytes = {};
  const CudaDriver& driver = device.driver();
  check_cuda(driver,
             driver_function<cuda::Result(void*, cuda::Device)>(driver, "cuDeviceGetUuid_v2")(
                 bytes.data(), device.ordinal()),
             "cuDeviceGetUuid");
  return fmt::format("GPU-{:02x}", fmt::join(bytes, ""));
}

bool is_idle(const Stream& stream) {
  const CudaDriver& driver = stream.device().driver();
  stream.device().make_current();
  const cuda::Result result =
      driver_function<cuda::Result(cuda::Stream)>(driver, "cuStreamQuery")(stream.handle());
  if (result == cuda::kErrorNotReady) return false;
  check_cuda(driver, result, "cuStreamQuery");
  return true;
}

void write_word(const Stream& stream, void* word, std::int32_t value) {
  queue("cuStreamWriteValue32_v2", stream, word, value, kWriteDefault);
}

void wait_word(const Stream& stream, void* word, std::int32_t value) {
  queue("cuStreamWaitValue32_v2", stream, word, value, kWaitAtLeast);
}

}  // namespace tilewright::runtime
