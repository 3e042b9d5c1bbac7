#include "cpu/present.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#endif

#include "support/diagnostic.h"

namespace tilewright::cpu {
namespace {

// The system reads the byte, and does not end the process where it cannot. Where it may not do even
// that, the answer is yes.
bool is_present([[maybe_unused]] const std::byte* address) {
#if defined(__linux__)
  std::byte read;
  iovec to{&read, 1}, from{const_cast<std::byte*>(address), 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
#else
  return true;
#endif
}

#if defined(MADV_POPULATE_WRITE)
// The system brings the page in as a write would, and changes nothing that it holds.
bool brings_in(const std::byte* address) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(address) / page * page;
  return madvise(reinterpret_cast<void*>(first), page, MADV_POPULATE_WRITE) == 0 || errno != EINVAL;
}
#endif

// Whether the process may write there. Systems that cannot say so give the same answer for memory
// that may be written: yes.
bool is_writable([[maybe_unused]] const std::byte* address) {
#if defined(MADV_POPULATE_WRITE)
  static const bool tells = [] {
    std::byte own{};
    return brings_in(&own);
  }();
  return !tells || brings_in(address);
#else
  return true;
#endif
}

std::string text_of(const std::byte* address) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%" PRIxPTR, reinterpret_cast<std::uintptr_t>(address));
  return text;
}

void check_present(const ir::Parameter& parameter, const TensorArgument& tensor) {
  if (std::count(tensor.shape.begin(), tensor.shape.end(), 0) != 0) return;
  const std::byte* last = tensor.data + tensor.element_bytes() - 1;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    last += (tensor.shape[axis] - 1) * tensor.strides[axis] * tensor.element_bytes();
  }
  const auto refuse = [&](bool begins, const char* what, const char* fix) {
    Diagnostic(parameter.where, "tensor " + parameter.name + " " + (begins ? "begins" : "ends") +
                                    " where this process " + what + ": at " +
                                    text_of(begins ? tensor.data : last))
        .token(parameter.name)
        .fix(fix)
        .raise();
  };
  const bool begins = is_present(tensor.data);
  if (!begins || !is_present(last)) {
    refuse(!begins, "has no memory",
           "pass memory of the host that is there and holds all of the tensor; the target cpu "
           "reads none of a GPU's");
  }
  if (parameter.kind != ir::Parameter::Kind::out && parameter.kind != ir::Parameter::Kind::inout) {
    return;
  }
  const bool is_written = is_writable(tensor.data);
  if (!is_written || !is_writable(last)) {
    refuse(!is_written, "may not write",
           "pass memory that may be written: a mapping for reading alone is no output");
  }
}

}  // namespace

void check_present(const ir::Kernel& kernel, const std::vector<TensorArgument>& tensors) {
  std::size_t next = 0;
  for (const ir::Parameter& parameter : kernel.parameters) {
    if (!parameter.is_tensor() || next == tensors.size()) continue;
    check_present(parameter, tensors[next++]);
  }
}

}  // namespace tilewright::cpu
