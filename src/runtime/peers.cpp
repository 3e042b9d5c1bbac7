#include "runtime/peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "runtime/cuda_api.h"
#include "runtime/topology.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

constexpr cuda::Result kAlreadyEnabled = 704;
using WordsFunction = cuda::Result(cuda::Stream, unsigned, cuda::words::Operation*, unsigned);

cuda::words::Operation operation_of(const WordOperation& operation) {
  using Kind = WordOperation::Kind;
  const auto address = reinterpret_cast<std::uintptr_t>(operation.word);
  const auto value = static_cast<std::uint32_t>(operation.value);
  switch (operation.kind) {
    case Kind::write:
      return {cuda::words::kWrite, address, value, cuda::words::kWriteDefault, 0, 0};
    case Kind::wait_at_least:
      return {cuda::words::kWait, address, value, cuda::words::kAtLeast, 0, 0};
    case Kind::wait_equal:
      return {cuda::words::kWait, address, value, cuda::words::kEqual, 0, 0};
  }
  return {};
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

void queue_words(const Stream& stream, std::span<const WordOperation> operations,
                 std::string_view about) {
  constexpr const char* kSymbol = "cuStreamBatchMemOp_v2";
  const CudaDriver& driver = stream.device().driver();
  static auto* const queue = driver_function<WordsFunction>(driver, kSymbol);
  stream.device().make_current();
  std::array<cuda::words::Operation, cuda::words::kMostOfACall> batch;
  while (!operations.empty()) {
    const std::size_t count = std::min<std::size_t>(operations.size(), batch.size());
    std::transform(operations.begin(), operations.begin() + static_cast<std::ptrdiff_t>(count),
                   batch.begin(), operation_of);
    check_cuda(driver, queue(stream.handle(), static_cast<unsigned>(count), batch.data(), 0),
               kSymbol, about);
    operations = operations.subspan(count);
  }
}

}  // namespace tilewright::runtime
