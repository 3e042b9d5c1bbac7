#include "compiler/host_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>

#include "ir/memory_order.h"
#include "support/diagnostic.h"

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

// One run of a program, stream by stream.
class HostRun {
 public:
  HostRun(const ir::Program& program, const HostMemory& memory,
          const std::function<void(const ir::Kernel&, const Arguments&)>& launch)
      : program_(program),
        address_([&memory](int buffer, int rank) { return memory.at(buffer, rank); }),
        launch_(launch),
        queues_(program.streams.size()),
        recorded_(static_cast<std::size_t>(program.events), false) {
    for (const ProgramOperation& operation : program.operations) {
      queues_[operation.stream].push_back(&operation);
    }
  }

  void run() {
    std::size_t left = program_.operations.size();
    while (left > 0) {
      const std::size_t before = left;
      for (std::deque<const ProgramOperation*>& queue : queues_) {
        for (; !queue.empty() && execute(*queue.front()); queue.pop_front()) --left;
      }
      if (left == before) refuse_deadlock();
    }
  }

 private:
  using ProgramOperation = ir::ProgramOperation;
  using Kind = ProgramOperation::Kind;

  // Whether it could.
  bool execute(const ProgramOperation& operation) {
    switch (operation.kind) {
      case Kind::launch:
        launch_(*program_.kernels[operation.kernel],
                arguments_of(program_, operation, 1, address_));
        return true;
      case Kind::copy:
        copy_on_host(argument(operation.to), argument(operation.from));
        return true;
      case Kind::zero:
        zero_on_host(argument(operation.to));
        return true;
      case Kind::write:
        word(operation) = value_of(operation);
        return true;
      case Kind::wait:
        return ir::holds(operation.compare, word(operation), value_of(operation));
      case Kind::record:
        return recorded_[operation.event] = true;
      case Kind::wait_event:
        return recorded_[operation.event];
    }
    return true;
  }

  [[noreturn]] void refuse_deadlock() const {
    const auto waiting = std::find_if(queues_.begin(), queues_.end(),
                                      [](const auto& queue) { return !queue.empty(); });
    const ProgramOperation& operation = *waiting->front();
    const ir::ProgramStream& stream = program_.streams[operation.stream];
    Diagnostic(operation.where,
               fmt::format("{} waits for what no other stream does", name_of(program_, stream)))
        .token("wait")
        .fix("simulate() the program: it says who waits for whom")
        .raise();
  }

  TensorArgument argument(const ir::ProgramPart& part) const {
    return argument_of(program_, part, address_);
  }
  std::int32_t& word(const ProgramOperation& operation) const {
    return *reinterpret_cast<std::int32_t*>(argument(operation.to).data);
  }
  static std::int32_t value_of(const ProgramOperation& operation) {
    return ir::word_value(operation.value, 1);
  }

  const ir::Program& program_;
  const ir::BufferAddress address_;
  const std::function<void(const ir::Kernel&, const Arguments&)>& launch_;
  std::vector<std::deque<const ProgramOperation*>> queues_;
  std::vector<bool> recorded_;
};

// Poison, but for what begins as zeros.
std::byte first_byte(ir::ProgramBuffer::Kind kind) {
  const bool is_zero =
      kind == ir::ProgramBuffer::Kind::workspace || kind == ir::ProgramBuffer::Kind::signals;
  return static_cast<std::byte>(is_zero ? 0 : 0xFF);
}

}  // namespace

HostMemory::HostMemory(const ir::Program& bound, const Arguments& arguments) {
  constexpr std::size_t kAlignment = 1024;
  std::size_t next = 0;
  for (int rank = 0; rank < bound.ranks; ++rank) {
    std::vector<std::byte*>& addresses = address_.emplace_back();
    for (const ir::ProgramBuffer& buffer : bound.buffers) {
      if (buffer.is_passed()) {
        addresses.push_back(arguments.tensors[next++].data);
        continue;
      }
      own_.emplace_back(static_cast<std::size_t>(buffer.bytes()) + kAlignment,
                        first_byte(buffer.kind));
      std::byte* const first = own_.back().data();
      const auto past = reinterpret_cast<std::uintptr_t>(first) % kAlignment;
      addresses.push_back(first + (kAlignment - past) % kAlignment);
    }
  }
}

void for_each_launch(const ir::Program& bound, const Arguments& arguments,
                     const std::function<void(const ir::Kernel&, const Arguments&)>& launch) {
  const HostMemory memory(bound, arguments);
  HostRun(bound, memory, launch).run();
}

}  // namespace tilewright::compiler
