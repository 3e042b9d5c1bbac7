#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/machine/machine.h"

// What one execution on the virtual GPU did over modelled time (cycle_costs.h), for drawing. Texts
// are numbers in `Trace::texts`; times are cycles from the start of the launch.
namespace tilewright::simulator {

// What a warp does.
struct TraceSlice {
  enum class Kind : std::uint8_t { compute, memory, issue, barrier, wait };
  Kind kind = Kind::compute;
  std::int64_t start = 0, end = 0;
  int name = 0;
  int detail = 0;
  int iteration = 0;
  int count = 1;  // operations
  SourceLocation where;
};

struct TraceLane {
  int role = 0;
  int warp = 0;                    // of the CTA
  int number = 0;                  // of the role
  std::vector<TraceSlice> slices;  // in order, apart from each other
};

// What an asynchronous unit does, from its issue to its completion.
struct TraceFlight {
  enum class Kind : std::uint8_t { load, store, products };
  Kind kind = Kind::load;
  std::int64_t issue = 0, end = 0;
  bool complete = false;  // else the run ended before
  int name = 0;
  int detail = 0;
  int iteration = 0;
  int issuer = 0;  // the warp
  int place = 0;   // what it reads or writes of shared memory
  SourceLocation where;
};

// A product from the instant that its unit begins it.
struct TraceProduct {
  std::int64_t start = 0, end = 0;
  int name = 0;
  SourceLocation where;
};

// The end of an mbarrier's phase.
struct TraceFlip {
  std::int64_t time = 0;
  int barrier = 0;  // of the CTA
  std::uint64_t phase = 0;
  int cause = 0;  // what completed it
};

struct TraceCta {
  int launch = 0;  // in Trace::launches
  std::int64_t index = 0;
  std::int64_t start = 0, end = 0;
  std::vector<TraceLane> lanes;
  std::vector<TraceFlight> flights;
  std::vector<TraceProduct> products;
  std::vector<TraceFlip> flips;
};

// Where one of a fault's accesses lies.
struct TraceMark {
  std::size_t cta = 0;  // in Trace::ctas
  int warp = 0;
  int flight = -1;  // of the CTA, where the access is asynchronous
  int stream = -1;  // in Trace::streams, where the access is a stream's; there is then no CTA
  std::int64_t time = 0;
  SourceLocation where;
};

struct TraceFault {
  Fault fault;
  std::vector<TraceMark> marks;
};

struct TraceBarrier {
  std::string name;
  int array = 0;  // barriers of one array share a lane
  int stage = 0;
};

struct TraceLaunch {
  std::string name;  // "relu of rank 0, run 1"; empty for a kernel alone
  int rank = 0;
  std::vector<std::string> roles;  // role 0 is the kernel's own body: warps in no role
  std::vector<TraceBarrier> barriers;
  std::vector<std::string> barrier_arrays;
  std::string product_unit, copy_unit;  // of its target
};

// What a program has queued in it: launches for as long as they run, copies, words, events.
struct TraceStream {
  std::string name;  // "stream math of rank 0"
  int rank = 0;
  std::vector<TraceSlice> slices;  // in order, apart from each other
};

struct Trace {
  std::int64_t end = 0;
  std::vector<std::string> texts{""};
  std::vector<TraceStream> streams;   // none for a kernel alone
  std::vector<TraceLaunch> launches;  // in the order in which they began
  std::vector<TraceCta> ctas;         // in the order in which they started
  std::vector<TraceFault> faults;
};

}  // namespace tilewright::simulator
