#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::ir {
struct Kernel;
struct Program;
}  // namespace tilewright::ir

// What an observer of the virtual GPU is told. Nothing it does changes the execution, and without
// one nothing is spent on it.
namespace tilewright::simulator {

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
  // else.
  virtual void begin(const ir::Program& program, const std::vector<ir::Kernel>& kernels,
                     std::int64_t runs) = 0;
  // Around each step of a stream's operation; `over` with the last one. A launch is over when its
  // kernel is.
  virtual void starts(const StreamOperation& operation) = 0;
  virtual void executed(const StreamOperation& operation, bool over) = 0;
  // Bytes of global memory have changed, of words among others, by what is being executed.
  virtual void changed(const std::byte* first, std::int64_t bytes) = 0;
  // Before a launch's first instruction; not at all where memory that the kernel wants does not
  // exist.
  virtual void begin(const Launch& launch) = 0;
  // Around each instruction of a warp. One that blocks the warp is seen again when it is woken,
  // except at named and cluster barriers, which a warp leaves by being woken.
  virtual void starts(const Warp& warp, const Instruction& instruction) = 0;
  virtual void executed(const Warp& warp, const Instruction& instruction) = 0;
  // A copy to shared memory is issued; its bytes have arrived.
  virtual void load_issued(const Event& event) = 0;
  virtual void load_finished(const Event& event) = 0;
  // On the mbarrier of that number, before what the arrival completes; its phase has ended.
  virtual void arrived(const Warp& warp, const Cta& cta, int barrier) = 0;
  virtual void phase_completed(const Cta& cta, int barrier) = 0;
  // The run is over; the faults are those of the report.
  virtual void end(const std::vector<Fault>& faults) = 0;
};

}  // namespace tilewright::simulator
