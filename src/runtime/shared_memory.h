#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/device.h"
#include "support/file_descriptor.h"

namespace tilewright::runtime {

// Memory of a GPU that several processes map: the one that makes it hands out descriptors, by which
// others map the same memory for a device of theirs. It lives as long as somebody maps it, in
// whatever order they end.
class SharedDeviceMemory {
 public:
  // Whether the driver and the system can hand out descriptors of its memory.
  static bool is_supported(const Device& device);
  // At least `bytes`, which is not 0. Error(unavailable) where the device cannot, or has no room.
  // `name` is what errors call it.
  SharedDeviceMemory(const Device& device, std::size_t bytes, std::string name);
  // What another process has made, with as many bytes. Error(unavailable) where the device does not
  // reach it.
  SharedDeviceMemory(const Device& device, const FileDescriptor& shared, std::size_t bytes,
                     std::string name);
  ~SharedDeviceMemory();
  SharedDeviceMemory(const SharedDeviceMemory&) = delete;
  SharedDeviceMemory& operator=(const SharedDeviceMemory&) = delete;

  void* data() const { return reinterpret_cast<void*>(address_); }
  FileDescriptor share() const;

 private:
  void map();
  void release() noexcept;

  const Device& device_;
  const std::string name_;
  std::size_t bytes_ = 0;
  std::uint64_t handle_ = 0, address_ = 0;
  bool has_handle_ = false, is_mapped_ = false;
};

}  // namespace tilewright::runtime
