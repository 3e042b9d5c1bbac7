#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tilewright::ir {
struct Kernel;
struct Program;
enum class Memory : std::uint8_t;
using BufferAddress = std::function<std::byte*(int buffer, int rank)>;
}  // namespace tilewright::ir

// What an observer of the virtual GPU is told, of which it hears what it wants. Nothing it does
// changes the execution, and without one nothing is spent on it.
namespace tilewright::simulator {

struct Access;
struct CoreSpan;
struct Cta;
struct Event;
struct Fault;
struct Instruction;
struct StreamOperation;
struct Warp;
class Launch;

class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  // Of a program, whose kernels have these machine forms and which runs so many times: before all
  // else. `address` says where its buffers lie.
  virtual void begin(const ir::Program& /*program*/, const std::vector<ir::Kernel>& /*kernels*/,
                     const ir::BufferAddress& /*address*/, std::int64_t /*runs*/) {}
  // Around each step of a stream's operation; `over` with the last one. A launch is over when its
  // kernel is.
  virtual void starts(const StreamOperation& /*operation*/) {}
  virtual void executed(const StreamOperation& /*operation*/, bool /*over*/) {}
  // The stream's copy within a GPU may begin, for which the launch had left no multiprocessor.
  virtual void found_multiprocessor(int /*stream*/, const Launch& /*launch*/) {}
  // Bytes of global memory have changed, of words among others, by what is being executed.
  virtual void changed(const std::byte* /*first*/, std::int64_t /*bytes*/) {}
  // Before a launch's first instruction; not at all where memory that the kernel wants does not
  // exist.
  virtual void begin(const Launch& /*launch*/) {}
  // Around each instruction of a warp. One that blocks the warp is seen again when it is woken,
  // except at named and cluster barriers, which a warp leaves by being woken.
  virtual void starts(const Warp& /*warp*/, const Instruction& /*instruction*/) {}
  virtual void executed(const Warp& /*warp*/, const Instruction& /*instruction*/) {}
  // An access of an instruction takes its place in the order of accesses to shared memory, or to
  // global memory that the kernel may write.
  virtual void ordered(const Launch& /*launch*/, const Access& /*access*/, ir::Memory /*memory*/) {}
  // A copy to shared memory is issued; its bytes have arrived.
  virtual void load_issued(const Event& /*event*/) {}
  virtual void load_finished(const Event& /*event*/) {}
  // On the mbarrier of that number, before what the arrival completes; its phase has ended.
  virtual void arrived(const Warp& /*warp*/, const Cta& /*cta*/, int /*barrier*/) {}
  virtual void phase_completed(const Cta& /*cta*/, int /*barrier*/) {}
  // Of a core with explicit memories: an instruction is over.
  virtual void executed(const CoreSpan& /*span*/) {}
  // The run is over; the faults are those of the report.
  virtual void end(const std::vector<Fault>& /*faults*/) {}
};

}  // namespace tilewright::simulator
