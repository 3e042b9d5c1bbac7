#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "distributed/shared_block.h"
#include "runtime/device.h"
#include "runtime/ipc_memory.h"
#include "support/diagnostic.h"

namespace tilewright::distributed {
namespace {

// A pipe into which nobody writes: its reader knows when the last of those who hold the other end
// has closed it, or has ended.
struct Lifeline {
  FileDescriptor reader, writer;

  static Lifeline make(const std::string& name) {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
      Diagnostic({}, name + ": no pipe: " + std::strerror(errno), ErrorKind::unavailable)
          .fix("a higher limit of open files (ulimit -n)")
          .raise();
    }
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  }
  bool is_held() const {
    pollfd wanted{reader.get(), POLLIN, 0};
    return poll(&wanted, 1, 0) == 0;
  }
};

struct Shared {
  runtime::DeviceBuffer buffer;
  Lifeline lifeline;
};

// What this process has given up while others still map it: the driver must not free it then.
class Unfreed {
 public:
  void add(Shared shared) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(shared));
  }
  void free_what_nobody_maps() {
    const std::lock_guard lock(mutex_);
    const auto is_free = [](const Shared& shared) { return !shared.lifeline.is_held(); };
    all_.erase(std::remove_if(all_.begin(), all_.end(), is_free), all_.end());
  }
  // Never destroyed: what is left ends with the process.
  static Unfreed& get() {
    static auto& unfreed = *new Unfreed;
    return unfreed;
  }

 private:
  std::mutex mutex_;
  std::vector<Shared> all_;
};

class OwnBlock final : public SharedBlock {
 public:
  explicit OwnBlock(Shared shared) : shared_(std::move(shared)) {}
  ~OwnBlock() override {
    shared_.lifeline.writer = FileDescriptor();
    if (shared_.lifeline.is_held()) Unfreed::get().add(std::move(shared_));
    Unfreed::get().free_what_nobody_maps();
  }
  std::byte* data() const override { return static_cast<std::byte*>(shared_.buffer.data()); }
  SharedHandle share() override {
    return {std::move(shared_.lifeline.writer), runtime::ipc_handle(shared_.buffer)};
  }

 private:
  Shared shared_;
};

// The lifeline is closed behind the mapping.
class OthersBlock final : public SharedBlock {
 public:
  OthersBlock(const runtime::Device& device, SharedHandle shared, const std::string& name)
      : lifeline_(std::move(shared.descriptor)), mapping_(device, shared.bytes, name) {}
  std::byte* data() const override { return static_cast<std::byte*>(mapping_.data()); }
  SharedHandle share() override { return {}; }

 private:
  const FileDescriptor lifeline_;
  const runtime::IpcMapping mapping_;
};

class IpcMemory final : public SharedMemory {
 public:
  explicit IpcMemory(const runtime::Device& device) : device_(device) {}

  std::unique_ptr<SharedBlock> make(std::size_t bytes, const std::string& name) const override {
    Unfreed::get().free_what_nobody_maps();
    // A handle stands for all of the driver's own blocks that hold the buffer: it has them alone.
    constexpr std::size_t kDriversBlock = std::size_t{2} << 20;
    const std::size_t whole = (bytes + kDriversBlock - 1) / kDriversBlock * kDriversBlock;
    return std::make_unique<OwnBlock>(
        Shared{runtime::DeviceBuffer(device_, std::max(whole, bytes), name), Lifeline::make(name)});
  }

  std::unique_ptr<SharedBlock> map(SharedHandle shared, std::size_t,
                                   const std::string& name) const override {
    return std::make_unique<OthersBlock>(device_, std::move(shared), name);
  }

 private:
  const runtime::Device& device_;
};

}  // namespace

std::unique_ptr<SharedMemory> ipc_memory(int device) {
  return std::make_unique<IpcMemory>(runtime::Device::get(device));
}

}  // namespace tilewright::distributed
