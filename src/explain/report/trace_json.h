#pragma once

#include <cstdint>
#include <string>

#include "simulator/machine/trace.h"

namespace tilewright::explanations {

// What produced a trace.
struct TraceOrigin {
  std::string kernel;
  std::string target;  // "sm_90a"
  std::uint64_t seed = 0;
  std::string command;  // that makes it again
};

// What a cycle of a trace is, for whoever looks at it.
extern const char* const kTraceAxis;

// The trace event format, which Perfetto and chrome://tracing read: a process for each stream
// and each CTA, a thread for each warp and for the unit of products, asynchronous events for
// copies, products and bulk stores, an instant for each end of an mbarrier's phase and for each
// access of a fault. A cycle is a nanosecond.
std::string trace_events(const simulator::Trace& trace, const TraceOrigin& origin);

}  // namespace tilewright::explanations
