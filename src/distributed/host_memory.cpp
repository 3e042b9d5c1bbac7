#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "distributed/shared_block.h"
#include "distributed/system_file.h"
#include "support/diagnostic.h"

namespace tilewright::distributed {
namespace {

// Of this machine, by the kernel's own estimate: it gives out more, and then ends processes.
std::size_t available_bytes() {
  const std::string text = read_system_file("/proc/meminfo");
  constexpr std::string_view kName = "MemAvailable:";
  const auto at = text.find(kName);
  if (at == std::string::npos) return SIZE_MAX;
  return static_cast<std::size_t>(std::strtoull(&text[at + kName.size()], nullptr, 10)) << 10;
}

[[noreturn]] void raise_unavailable(const std::string& name, std::size_t bytes, int error) {
  Diagnostic(
      {},
      fmt::format("{} needs {} bytes of shared host memory: {}", name, bytes, std::strerror(error)),
      ErrorKind::unavailable)
      .fix("a smaller arena, or more memory")
      .raise();
}

class HostBlock final : public SharedBlock {
 public:
  HostBlock(FileDescriptor file, std::size_t bytes, const std::string& name)
      : file_(std::move(file)), bytes_(bytes) {
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (at == MAP_FAILED) raise_unavailable(name, bytes, errno);
    data_ = static_cast<std::byte*>(at);
  }
  ~HostBlock() override { munmap(data_, bytes_); }
  std::byte* data() const override { return data_; }
  SharedHandle share() override {
    return {FileDescriptor(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0)), ""};
  }

 private:
  const FileDescriptor file_;
  const std::size_t bytes_;
  std::byte* data_ = nullptr;
};

// Files in memory without a name. Their size is sealed: one that shrank would end the processes
// that map it.
class HostMemory final : public SharedMemory {
 public:
  std::unique_ptr<SharedBlock> make(std::size_t bytes, const std::string& name) const override {
    if (bytes > available_bytes()) raise_unavailable(name, bytes, ENOMEM);
    FileDescriptor file(memfd_create("tilewright", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
        fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
      raise_unavailable(name, bytes, errno);
    }
    return std::make_unique<HostBlock>(std::move(file), bytes, name);
  }

  std::unique_ptr<SharedBlock> map(SharedHandle shared, std::size_t bytes,
                                   const std::string& name) const override {
    FileDescriptor file = std::move(shared.descriptor);
    struct stat status {};
    const bool is_sealed = (fcntl(file.get(), F_GET_SEALS) & kSeals) == kSeals;
    if (!is_sealed || fstat(file.get(), &status) != 0 ||
        static_cast<std::size_t>(status.st_size) != bytes) {
      Diagnostic({}, fmt::format("{}: what was handed over is not {} bytes of memory", name, bytes),
                 ErrorKind::internal)
          .raise();
    }
    return std::make_unique<HostBlock>(std::move(file), bytes, name);
  }

 private:
  static constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
};

}  // namespace

std::unique_ptr<SharedMemory> host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace tilewright::distributed
