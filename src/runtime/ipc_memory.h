#pragma once

#include <cstdint>
#include <string>

#include "runtime/device.h"

namespace tilewright::runtime {

// What another process of the machine opens a buffer by: some bytes, of which none need be text.
std::string ipc_handle(const DeviceBuffer& buffer);

// A buffer of another process, in this one. That process must not free it before this is gone.
class IpcMapping {
 public:
  // Error(unavailable) where the device does not reach it. `name` is what errors call it.
  IpcMapping(const Device& device, const std::string& handle, const std::string& name);
  ~IpcMapping();
  IpcMapping(const IpcMapping&) = delete;
  IpcMapping& operator=(const IpcMapping&) = delete;

  void* data() const { return reinterpret_cast<void*>(address_); }

 private:
  const Device& device_;
  std::uint64_t address_ = 0;
};

}  // namespace tilewright::runtime
