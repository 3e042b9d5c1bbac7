#include "cpu/thread_memory.h"

#include <memory>
#include <new>
#include <string>

#include "support/diagnostic.h"

namespace tilewright::cpu {
namespace {

constexpr std::align_val_t kTileAlignment{64};

struct Release {
  void operator()(std::byte* memory) const { ::operator delete(memory, kTileAlignment); }
};

}  // namespace

std::byte* thread_memory(std::int64_t bytes, SourceLocation where) {
  thread_local std::unique_ptr<std::byte, Release> memory;
  thread_local std::int64_t size = 0;
  if (bytes > size) {
    memory.reset();
    size = 0;
    memory.reset(static_cast<std::byte*>(
        ::operator new(static_cast<std::size_t>(bytes), kTileAlignment, std::nothrow)));
    if (memory == nullptr) {
      Diagnostic(where,
                 "the kernel's tiles take " + std::to_string(bytes) +
                     " bytes on each thread, and there is no such memory",
                 ErrorKind::unavailable)
          .fix("use smaller tiles, or fewer threads by TILEWRIGHT_THREADS")
          .raise();
    }
    size = bytes;
  }
  return memory.get();
}

}  // namespace tilewright::cpu
