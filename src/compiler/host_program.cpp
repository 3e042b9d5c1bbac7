#include "compiler/host_program.h"

#include <cstdint>
#include <cstring>

namespace tilewright::compiler {
namespace {

void copy_on_host(const TensorArgument& to, const TensorArgument& from) {
  ir::for_each_rows(to, from, [](const ir::CopiedRows& copied) {
    for (std::int64_t row = 0; row < copied.rows; ++row) {
      std::memcpy(copied.to + row * copied.to_pitch, copied.from + row * copied.from_pitch,
                  static_cast<std::size_t>(copied.bytes));
    }
  });
}

void zero_on_host(const TensorArgument& to) {
  ir::for_each_rows(to, to, [](const ir::CopiedRows& set) {
    for (std::int64_t row = 0; row < set.rows; ++row) {
      std::memset(set.to + row * set.to_pitch, 0, static_cast<std::size_t>(set.bytes));
    }
  });
}

}  // namespace

HostMemory::HostMemory(const ir::Program& bound, const Arguments& arguments) {
  constexpr std::size_t kAlignment = 1024;
  std::size_t next = 0;
  for (const ir::ProgramBuffer& buffer : bound.buffers) {
    if (buffer.is_passed()) {
      address_.push_back(arguments.tensors[next++].data);
      continue;
    }
    // Poison, but for what launches leave zero.
    const int fill = buffer.kind == ir::ProgramBuffer::Kind::workspace ? 0 : 0xFF;
    own_.emplace_back(static_cast<std::size_t>(buffer.bytes()) + kAlignment,
                      static_cast<std::byte>(fill));
    std::byte* const first = own_.back().data();
    const auto past = reinterpret_cast<std::uintptr_t>(first) % kAlignment;
    address_.push_back(first + (kAlignment - past) % kAlignment);
  }
}

void for_each_launch(const ir::Program& bound, const Arguments& arguments,
                     const std::function<void(const ir::Kernel&, const Arguments&)>& launch) {
  using Kind = ir::ProgramOperation::Kind;
  const HostMemory memory(bound, arguments);
  const auto address = [&](int buffer, int) { return memory.at(buffer); };
  for (const ir::ProgramOperation& operation : bound.operations) {
    switch (operation.kind) {
      case Kind::launch:
        launch(*bound.kernels[operation.kernel], arguments_of(bound, operation, 1, address));
        break;
      case Kind::copy:
        copy_on_host(argument_of(bound, operation.to, address),
                     argument_of(bound, operation.from, address));
        break;
      case Kind::zero:
        zero_on_host(argument_of(bound, operation.to, address));
        break;
      case Kind::write:
      case Kind::wait:
      case Kind::record:
      case Kind::wait_event:
        break;  // of one stream, whose order is that of the operations
    }
  }
}

}  // namespace tilewright::compiler
