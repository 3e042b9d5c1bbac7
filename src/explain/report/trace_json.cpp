#include "explain/report/trace_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/diagnostic.h"

namespace tilewright::explanations {

const char* const kTraceAxis =
    "modelled cycles of this schedule, not a measurement: each operation costs a fixed number, and "
    "waits end when what they wait for is there; warps slow each other at the unit of products and "
    "the copies' port alone";

namespace {

using Json = nlohmann::ordered_json;
using simulator::Trace;
using simulator::TraceCta;
using simulator::TraceFlight;
using simulator::TraceSlice;

const char* category(TraceSlice::Kind kind) {
  switch (kind) {
    case TraceSlice::Kind::compute:
      return "compute";
    case TraceSlice::Kind::memory:
      return "memory";
    case TraceSlice::Kind::issue:
      return "issue";
    case TraceSlice::Kind::barrier:
      return "barrier";
    case TraceSlice::Kind::wait:
      return "wait";
  }
  return "";
}

std::string category(TraceFlight::Kind kind, const simulator::TraceLaunch& launch) {
  switch (kind) {
    case TraceFlight::Kind::load:
      return launch.copy_unit + " loads";
    case TraceFlight::Kind::store:
      return "bulk stores";
    case TraceFlight::Kind::products:
      return "products in flight";
  }
  return "";
}

class Events {
 public:
  explicit Events(const Trace& trace) : trace_(trace) {}

  Json make() {
    // Viewers give the numbers 0 a meaning of their own.
    streams_ = static_cast<int>(trace_.streams.size());
    for (int i = 0; i < streams_; ++i) stream(i);
    for (std::size_t i = 0; i < trace_.ctas.size(); ++i) cta(streams_ + static_cast<int>(i) + 1);
    for (const simulator::TraceFault& fault : trace_.faults) marks(fault);
    return std::move(events_);
  }

 private:
  // Microseconds, of which a cycle is a thousandth.
  static double time(std::int64_t cycles) { return static_cast<double>(cycles) / 1000; }

  Json& add(const char* phase, int process, int thread, const std::string& name) {
    events_.push_back({{"ph", phase}, {"pid", process}, {"tid", thread}, {"name", name}});
    return events_.back();
  }
  void name(int process, int thread, const char* what, const std::string& name, int order) {
    add("M", process, thread, std::string(what) + "_name")["args"] = {{"name", name}};
    add("M", process, thread, std::string(what) + "_sort_index")["args"] = {{"sort_index", order}};
  }
  const std::string& text(int number) const { return trace_.texts[number]; }
  Json arguments(SourceLocation where, int detail, int iteration) const {
    Json made = Json::object();
    if (where.file != nullptr) made["source"] = format_location(where);
    if (detail != 0) made["detail"] = text(detail);
    if (iteration != 0) made["iteration"] = text(iteration);
    return made;
  }

  // A process of its own, so that streams stand above the CTAs of what they launch.
  void stream(int number) {
    const simulator::TraceStream& stream = trace_.streams[number];
    name(number + 1, 0, "process", stream.name, number + 1);
    name(number + 1, 1, "thread", "queue", 1);
    for (const TraceSlice& slice : stream.slices) this->slice(number + 1, 1, slice);
  }

  void cta(int process) {
    const TraceCta& cta = trace_.ctas[process - 1 - streams_];
    const simulator::TraceLaunch& launch = trace_.launches[cta.launch];
    name(process, 0, "process",
         fmt::format("{}CTA {}", launch.name.empty() ? "" : launch.name + ", ", cta.index),
         process);
    int thread = 1;
    for (const simulator::TraceLane& lane : cta.lanes) {
      name(process, thread, "thread",
           fmt::format("{} warp {}", launch.roles[lane.role], lane.number), thread);
      for (const TraceSlice& slice : lane.slices) this->slice(process, thread, slice);
      ++thread;
    }
    name(process, thread, "thread", launch.product_unit, thread);
    for (const simulator::TraceProduct& product : cta.products) {
      Json& event = add("X", process, thread, text(product.name));
      event["cat"] = "product";
      event["ts"] = time(product.start);
      event["dur"] = time(product.end - product.start);
      event["args"] = arguments(product.where, 0, 0);
    }
    ++thread;
    for (const TraceFlight& flight : cta.flights) this->flight(process, launch, flight);
    for (std::size_t array = 0; array < launch.barrier_arrays.size(); ++array) {
      name(process, thread + static_cast<int>(array), "thread",
           "mbarriers " + launch.barrier_arrays[array], thread + static_cast<int>(array));
    }
    for (const simulator::TraceFlip& flip : cta.flips) {
      const simulator::TraceBarrier& barrier = launch.barriers[flip.barrier];
      Json& event = add("i", process, thread + barrier.array,
                        fmt::format("{} phase {} complete", barrier.name, flip.phase));
      event["cat"] = "mbarrier";
      event["ts"] = time(flip.time);
      event["s"] = "t";
      event["args"] = arguments({}, flip.cause, 0);
    }
  }

  void slice(int process, int thread, const TraceSlice& slice) {
    Json& event = add("X", process, thread, text(slice.name));
    event["cat"] = category(slice.kind);
    event["ts"] = time(slice.start);
    event["dur"] = time(slice.end - slice.start);
    Json more = arguments(slice.where, slice.detail, slice.iteration);
    if (slice.count > 1) more["operations"] = slice.count;
    event["args"] = std::move(more);
  }

  void flight(int process, const simulator::TraceLaunch& launch, const TraceFlight& flight) {
    Json more = arguments(flight.where, flight.detail, flight.iteration);
    more["issuer"] = fmt::format("warp {}", flight.issuer);
    if (!flight.complete) more["state"] = "in flight when the run ended";
    ++flights_;
    for (const char* phase : {"b", "e"}) {
      const bool begins = *phase == 'b';
      Json& event = add(phase, process, flight.issuer + 1, text(flight.name));
      event["cat"] = category(flight.kind, launch);
      event["id"] = flights_;
      event["ts"] = time(begins ? flight.issue : flight.end);
      if (begins) event["args"] = more;
    }
  }

  void marks(const simulator::TraceFault& fault) {
    for (const simulator::TraceMark& mark : fault.marks) {
      Json& event = mark.stream >= 0 ? add("i", mark.stream + 1, 1, "FAULT: " + fault.fault.kind)
                                     : add("i", streams_ + static_cast<int>(mark.cta) + 1,
                                           mark.warp + 1, "FAULT: " + fault.fault.kind);
      event["cat"] = "fault";
      event["ts"] = time(mark.time);
      event["s"] = "p";
      event["args"] = {{"source", format_location(mark.where)},
                       {"message", fault.fault.message},
                       {"missing", fault.fault.missing}};
    }
  }

  const Trace& trace_;
  Json events_ = Json::array();
  int flights_ = 0;
  int streams_ = 0;
};

}  // namespace

std::string trace_events(const Trace& trace, const TraceOrigin& origin) {
  const Json json = {{"traceEvents", Events(trace).make()},
                     {"displayTimeUnit", "ns"},
                     {"otherData",
                      {{"kernel", origin.kernel},
                       {"target", origin.target},
                       {"seed", origin.seed},
                       {"command", origin.command},
                       {"axis", fmt::format("one nanosecond is one cycle: {}", kTraceAxis)}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tilewright::explanations
