#include "compiler/host_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

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

// One run of a program, in turn or with a thread for each stream.
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

  void run_in_turn() {
    std::size_t left = program_.operations.size();
    while (left > 0) {
      const std::size_t before = left;
      for (Queue& queue : queues_) {
        for (; !queue.empty() && is_ready(*queue.front()); queue.pop_front(), --left) {
          execute(*queue.front());
        }
      }
      if (left == before) refuse_deadlock();
    }
  }

  void run_on_threads() {
    std::vector<std::thread> threads;
    bool has_threads = true;
    try {
      for (std::size_t i = 1; i < queues_.size(); ++i) {
        threads.emplace_back([this, i] { follow(queues_[i]); });
      }
    } catch (const std::system_error&) {
      has_threads = false;
      stop(nullptr);
    }
    follow(queues_[0]);
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    if (!has_threads) refuse_without_threads();
    const bool all_done = std::all_of(queues_.begin(), queues_.end(),
                                      [](const auto& queue) { return queue.empty(); });
    if (!all_done) refuse_deadlock();
  }

 private:
  using ProgramOperation = ir::ProgramOperation;
  using Kind = ProgramOperation::Kind;
  using Queue = std::deque<const ProgramOperation*>;

  // One stream's operations, on a thread of its own.
  void follow(Queue& queue) {
    std::unique_lock lock(mutex_);
    for (; !queue.empty() && await(*queue.front(), lock); queue.pop_front()) {
      lock.unlock();
      try {
        execute(*queue.front());
      } catch (...) {
        stop(std::current_exception());
      }
      lock.lock();
      changed_.notify_all();
    }
    ++idle_;
    if (nothing_can_run()) changed_.notify_all();
  }

  // Whether it can be executed; else nothing can any more. What waits looks again whenever another
  // stream has done something.
  bool await(const ProgramOperation& operation, std::unique_lock<std::mutex>& lock) {
    ++idle_;
    changed_.wait(lock, [&] { return is_stopped_ || is_ready(operation) || nothing_can_run(); });
    if (is_stopped_ || !is_ready(operation)) return false;
    --idle_;
    return true;
  }

  // All streams wait or have ended, and no wait is over.
  bool nothing_can_run() const {
    return idle_ >= queues_.size() &&
           std::none_of(queues_.begin(), queues_.end(), [this](const Queue& queue) {
             return !queue.empty() && is_ready(*queue.front());
           });
  }

  void stop(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    is_stopped_ = true;
    changed_.notify_all();
  }

  bool is_ready(const ProgramOperation& operation) const {
    if (operation.kind == Kind::wait) {
      return ir::holds(operation.compare, *word(operation), value_of(operation));
    }
    return operation.kind != Kind::wait_event || recorded_[operation.event];
  }

  void execute(const ProgramOperation& operation) {
    switch (operation.kind) {
      case Kind::launch:
        return launch_(*program_.kernels[operation.kernel],
                       arguments_of(program_, operation, 1, address_));
      case Kind::copy:
        return copy_on_host(argument(operation.to), argument(operation.from));
      case Kind::zero:
        return zero_on_host(argument(operation.to));
      case Kind::write: {
        const std::lock_guard lock(mutex_);
        *word(operation) = value_of(operation);
        return;
      }
      case Kind::record: {
        const std::lock_guard lock(mutex_);
        recorded_[operation.event] = true;
        return;
      }
      case Kind::wait:
      case Kind::wait_event:
        return;
    }
  }

  [[noreturn]] void refuse_without_threads() const {
    Diagnostic(program_.where,
               fmt::format("program {} has {} streams, and there are no threads for them",
                           program_.name, queues_.size()),
               ErrorKind::unavailable)
        .fix("raise the limit of threads (ulimit -u)")
        .raise();
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
  std::int32_t* word(const ProgramOperation& operation) const {
    return reinterpret_cast<std::int32_t*>(argument(operation.to).data);
  }
  static std::int32_t value_of(const ProgramOperation& operation) {
    return ir::word_value(operation.value, 1);
  }

  const ir::Program& program_;
  const ir::BufferAddress address_;
  const std::function<void(const ir::Kernel&, const Arguments&)>& launch_;
  std::vector<Queue> queues_;
  std::vector<bool> recorded_;
  // Of streams on threads; the mutex guards words and events too.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t idle_ = 0;  // streams that wait or have ended
  bool is_stopped_ = false;
  std::exception_ptr failure_;
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
                     const std::function<void(const ir::Kernel&, const Arguments&)>& launch,
                     Streams streams) {
  const HostMemory memory(bound, arguments);
  HostRun run(bound, memory, launch);
  if (streams == Streams::on_threads && bound.streams.size() > 1) return run.run_on_threads();
  run.run_in_turn();
}

}  // namespace tilewright::compiler
