#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/machine/cta.h"
#include "simulator/machine/fault_log.h"
#include "simulator/machine/global_memory.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/machine.h"
#include "simulator/machine/schedule.h"
#include "simulator/machine/streams.h"
#include "support/random.h"

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
  Streams* streams = nullptr;   // null: the launch alone
  std::vector<Warp*> runnable;  // none where time says who goes next: they are queued
  std::vector<Event> events;    // by time a heap
  Schedule schedule;

  // Starts a launch; its clusters follow as its device has places for them. `kernel` and
  // `arguments` must outlive the world.
  Launch& launch(const PreparedKernel& kernel, const Arguments& arguments, LaunchPlace place = {});
  void run();
  // What was executed, into the report, once the run is over.
  void count() const;

  // Who accesses memory: a cluster of a launch, or an operation of a stream. Either gets a number
  // when it starts.
  struct Actor {
    const Launch* launch = nullptr;  // null: the stream itself
    const StreamOperation* operation = nullptr;
    int stream = 0;
    Epoch position = 0;  // in the stream
    int rank = 0;
  };
  std::uint32_t add_actor(Actor actor);
  const Actor& actor(std::uint32_t number) const { return actors_[number]; }
  // Whether an access of another cluster or of a stream is over for who knows so much; whether the
  // async proxy sees it then.
  bool is_known(const Beyond* beyond, const Access& earlier) const;
  bool is_fenced(const Beyond* beyond, const Access& earlier) const;
  // That an access meets what an earlier one has done, for MachineReport::zeros_read.
  void note_read(const Access& access, const Access& earlier);
  // What would order them, of two launches or streams.
  std::string missing_between(const Access& earlier, const Access& access) const;
  // Why the reader has not acquired what the word handed on.
  std::string why_missed(const Handed& missed, Access reader) const;
  // A line of a fault: what it is, where, and by whom.
  std::string access_line(const Access& access) const;
  // Global memory has changed: those who wait for words of it look again.
  void add_waiter(Warp& warp) { word_waiters_[warp.word.word].push_back(&warp); }
  void changed(const std::byte* first, std::int64_t bytes);
  bool holds(const WordWait& wait) const;
  // "flags of rank 1 +0x4..0x7 >= 2, which is 1".
  std::string wait_text(const WordWait& wait) const;
  // Who wrote last what does not suffice.
  std::string missing_value(const WordWait& wait) const;
  void add_runnable(Warp& warp);
  void remove_runnable(Warp& warp);
  void add_event(Event event);
  // The event that was chosen at `index` has one more instant, and waits for that.
  void put_back(std::size_t index, const Event& event);
  void add_stream_event(int stream);
  // Those that are not over.
  const std::vector<Launch*>& active() const { return active_; }
  // One that has begun, where those of the rank's GPU leave a driver's copy no place on any
  // multiprocessor; else null.
  const Launch* holder(int rank) const;

 private:
  // Whether as many of its CTAs run at once as the GPU has places for.
  bool fills_gpu(const PreparedKernel& kernel) const;
  bool has_place(const Launch& launch) const;
  // Ends what is over and starts clusters where there are places.
  void settle();
  void step();
  // Of those whose time is first, by their order.
  Schedule::Choice first_in_time();
  bool nothing_can_go_on() const { return runnable.empty() && queue_.empty() && events.empty(); }

  const MachineOptions options_;
  std::vector<std::unique_ptr<Launch>> launches_;
  std::vector<Launch*> active_;
  std::vector<Actor> actors_;
  std::map<const std::byte*, std::vector<Warp*>> word_waiters_;
  bool is_due_ = false;  // settle has something to do
  struct Queued {
    std::int64_t time = 0;
    std::uint64_t number = 0;
    Warp* warp = nullptr;
    bool operator<(const Queued& other) const {  // what is last comes first in a heap
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };
  std::priority_queue<Queued> queue_;
  std::uint64_t queued_ = 0;
};

}  // namespace tilewright::simulator
