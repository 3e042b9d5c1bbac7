#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/machine/cta.h"
#include "simulator/machine/fault_log.h"
#include "simulator/machine/global_memory.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/machine.h"
#include "simulator/machine/random.h"
#include "simulator/machine/schedule.h"

// The virtual GPUs of one execution: launches of kernels on the devices of one or several ranks,
// in one loop of events whose order a seed draws.
namespace tilewright::simulator {

class World {
 public:
  World(const MachineOptions& options, MachineReport& report);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  MachineReport& report;
  FaultLog log;
  Random random;
  Recorder* const recorder;  // null when nobody watches
  GlobalMemory memory;
  std::vector<Warp*> runnable;
  std::vector<Event> events;
  Schedule schedule;

  // Starts a launch; its clusters follow as its device has places for them. `kernel` and
  // `arguments` must outlive the world.
  Launch& launch(const PreparedKernel& kernel, const Arguments& arguments, LaunchPlace place = {});
  void run();
  // What was executed, into the report, once the run is over.
  void count() const;

  // The number of a cluster that starts; which launch it is of.
  std::uint32_t add_cluster(const Launch& launch);
  const Launch& launch_of(std::uint32_t cluster) const { return *launch_of_cluster_[cluster]; }
  // Those that are not over.
  const std::vector<Launch*>& active() const { return active_; }

 private:
  bool has_place(const Launch& launch) const;
  // Ends what is over and starts clusters where there are places.
  void settle();
  void step();

  const MachineOptions options_;
  std::vector<std::unique_ptr<Launch>> launches_;
  std::vector<Launch*> active_;
  std::vector<const Launch*> launch_of_cluster_;
  const Launch* stepped_ = nullptr;  // by the last step
};

}  // namespace tilewright::simulator
