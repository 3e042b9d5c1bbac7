#include "runtime/ipc_memory.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/cuda_api.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

using cuda::memory::IpcHandle;

// Peers are enabled where they are needed.
constexpr unsigned kEnablePeers = 1;

}  // namespace

std::string ipc_handle(const DeviceBuffer& buffer) {
  const CudaDriver& driver = buffer.device().driver();
  buffer.device().make_current();
  IpcHandle handle = {};
  check_cuda(
      driver,
      driver_function<cuda::Result(IpcHandle*, cuda::DevicePointer)>(driver, "cuIpcGetMemHandle")(
          &handle, reinterpret_cast<cuda::DevicePointer>(buffer.data())),
      "cuIpcGetMemHandle", buffer.name());
  return {handle.bytes, sizeof handle.bytes};
}

IpcMapping::IpcMapping(const Device& device, const std::string& handle, const std::string& name)
    : device_(device) {
  IpcHandle given = {};
  if (handle.size() != sizeof given.bytes) {
    Diagnostic({}, fmt::format("{}: an IPC handle of {} bytes", name, handle.size()),
               ErrorKind::internal)
        .raise();
  }
  std::memcpy(given.bytes, handle.data(), sizeof given.bytes);
  device.make_current();
  check_cuda(device.driver(),
             driver_function<cuda::Result(cuda::DevicePointer*, IpcHandle, unsigned)>(
                 device.driver(), "cuIpcOpenMemHandle_v2")(&address_, given, kEnablePeers),
             "cuIpcOpenMemHandle",
             fmt::format("GPU {} does not reach {}: GPUs joined by NVLink, or by PCIe with peer "
                         "access, do",
                         device.ordinal(), name));
}

// What fails here was reported by an earlier call, or the driver has shut down already.
IpcMapping::~IpcMapping() {
  device_.driver().cuCtxSetCurrent(device_.context());
  driver_function<cuda::Result(cuda::DevicePointer)>(device_.driver(),
                                                     "cuIpcCloseMemHandle")(address_);
}

}  // namespace tilewright::runtime
