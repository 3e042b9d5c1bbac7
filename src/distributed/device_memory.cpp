#include <cstdlib>
#include <string>

#include "distributed/shared_block.h"
#include "runtime/device.h"
#include "runtime/shared_memory.h"

namespace tilewright::distributed {
namespace {

class DeviceBlock final : public SharedBlock {
 public:
  template <typename... Arguments>
  explicit DeviceBlock(const Arguments&... arguments) : memory_(arguments...) {}
  std::byte* data() const override { return static_cast<std::byte*>(memory_.data()); }
  SharedHandle share() override { return {memory_.share(), ""}; }

 private:
  const runtime::SharedDeviceMemory memory_;
};

class DeviceMemory final : public SharedMemory {
 public:
  explicit DeviceMemory(const runtime::Device& device) : device_(device) {}
  std::unique_ptr<SharedBlock> make(std::size_t bytes, const std::string& name) const override {
    return std::make_unique<DeviceBlock>(device_, bytes, name);
  }
  std::unique_ptr<SharedBlock> map(SharedHandle shared, std::size_t bytes,
                                   const std::string& name) const override {
    return std::make_unique<DeviceBlock>(device_, shared.descriptor, bytes, name);
  }

 private:
  const runtime::Device& device_;
};

}  // namespace

std::unique_ptr<SharedMemory> device_memory(int device) {
  return std::make_unique<DeviceMemory>(runtime::Device::get(device));
}

bool shares_by_descriptors(int device) {
  const char* const wanted = std::getenv("TILEWRIGHT_GPU_SHARING");
  if (wanted != nullptr && std::string(wanted) == "ipc") return false;
  return runtime::SharedDeviceMemory::is_supported(runtime::Device::get(device));
}

}  // namespace tilewright::distributed
