#include "fake_cuda/fake_ipc.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <mutex>

namespace fake_cuda {
namespace {

struct Mapped {
  int file;
  std::size_t bytes;
};

std::mutex mutex;
std::map<std::uint64_t, Mapped>& mapped() {
  static auto& all = *new std::map<std::uint64_t, Mapped>;
  return all;
}

std::uint64_t map_file(int file, std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) {
    close(file);
    return 0;
  }
  const auto pointer = reinterpret_cast<std::uint64_t>(at);
  const std::lock_guard lock(mutex);
  mapped()[pointer] = {file, bytes};
  return pointer;
}

}  // namespace

std::uint64_t new_shared(std::size_t bytes) {
  const int file = memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return 0;
  return map_file(file, bytes);
}

std::uint64_t open_shared(const char* handle) {
  const int file = open(handle, O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return 0;
  return map_file(file, static_cast<std::size_t>(status.st_size));
}

bool name_shared(std::uint64_t pointer, char* handle) {
  const std::lock_guard lock(mutex);
  const auto found = mapped().find(pointer);
  if (found == mapped().end()) return false;
  std::snprintf(handle, 64, "/proc/%d/fd/%d", static_cast<int>(getpid()), found->second.file);
  return true;
}

bool end_shared(std::uint64_t pointer) {
  const std::lock_guard lock(mutex);
  const auto node = mapped().extract(pointer);
  if (node.empty()) return false;
  munmap(reinterpret_cast<void*>(pointer), node.mapped().bytes);
  close(node.mapped().file);
  return true;
}

}  // namespace fake_cuda
