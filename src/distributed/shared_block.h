#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "support/file_descriptor.h"

// Memory that processes share by handing over descriptors or handles.
namespace tilewright::distributed {

// What another process maps a block by: a descriptor, and bytes that go with it.
struct SharedHandle {
  FileDescriptor descriptor;
  std::string bytes;
};

// Mapped in this process, as long as it lives.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  virtual std::byte* data() const = 0;
  // Once, for all others.
  virtual SharedHandle share() = 0;
};

// Where blocks lie. `name` is what errors call them.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::unique_ptr<SharedBlock> make(std::size_t bytes, const std::string& name) const = 0;
  // What another process has made with so many bytes.
  virtual std::unique_ptr<SharedBlock> map(SharedHandle shared, std::size_t bytes,
                                           const std::string& name) const = 0;
};

std::unique_ptr<SharedMemory> host_memory();
// Of the GPU of this number, by which it also reaches that of others: by descriptors, or by the
// driver's IPC handles.
std::unique_ptr<SharedMemory> device_memory(int device);
std::unique_ptr<SharedMemory> ipc_memory(int device);
// Whether that GPU's memory can be handed over by descriptors, and nobody wants it otherwise.
bool shares_by_descriptors(int device);

}  // namespace tilewright::distributed
