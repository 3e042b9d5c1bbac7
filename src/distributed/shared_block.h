#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "support/file_descriptor.h"

// Memory that processes share by handing over descriptors.
namespace tilewright::distributed {

// Mapped in this process, as long as it lives.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  virtual std::byte* data() const = 0;
  virtual FileDescriptor share() const = 0;
};

// Where blocks lie. `name` is what errors call them.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::unique_ptr<SharedBlock> make(std::size_t bytes, const std::string& name) const = 0;
  // What another process has made with so many bytes.
  virtual std::unique_ptr<SharedBlock> map(const FileDescriptor& shared, std::size_t bytes,
                                           const std::string& name) const = 0;
};

std::unique_ptr<SharedMemory> host_memory();
// Of the GPU of this number, by which it also reaches that of others.
std::unique_ptr<SharedMemory> device_memory(int device);

}  // namespace tilewright::distributed
