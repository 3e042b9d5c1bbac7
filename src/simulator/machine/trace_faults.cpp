#include <algorithm>
#include <tuple>

#include "simulator/machine/trace_recorder.h"
#include "support/diagnostic.h"
#include "support/same_line.h"

// Finds the accesses that a fault names in the trace.
namespace tilewright::simulator {
namespace {

// Whether one line of the message holds both texts.
bool line_has(const std::string& message, const std::string& a, const std::string& b) {
  for (std::size_t begin = 0; begin < message.size();) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    const std::string line = message.substr(begin, end - begin);
    if (line.find(a) != std::string::npos && line.find(b) != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

// The access at `where` that fits the fault's message best, by its warp and by its object. Of
// several that fit equally the latest.
LaunchTrace::Score LaunchTrace::find_access(const Fault& fault, SourceLocation where,
                                            TraceMark& mark) const {
  Score best{-1, 0, 0};
  if (where.file == nullptr) return best;
  const auto named = [&](const std::string& words) {
    return !words.empty() && fault.message.find(words) != std::string::npos;
  };
  for (const auto& [index, state] : ctas_) {
    const std::size_t c = state->trace;
    const TraceCta& cta = trace_.ctas[c];
    const auto by = [&](int warp) {
      std::string words = format_location(where) + "  " + who(cta, warp);
      if (launch_->kernel.ctas > 1) words += " of CTA " + std::to_string(cta.index);
      return line_has(fault.message, words + launch_->place.label, launch_->place.launched);
    };
    const auto consider = [&](const Score& score, const TraceMark& found) {
      if (score <= best) return;
      best = score;
      mark = found;
    };
    for (std::size_t i = 0; i < cta.flights.size(); ++i) {
      const TraceFlight& flight = cta.flights[i];
      if (!same_line(flight.where, where)) continue;
      // Products are one flight for the four warps of a warpgroup.
      bool issued = by(flight.issuer);
      for (int w = 1; w < 4 && flight.kind == TraceFlight::Kind::products; ++w) {
        issued = issued || by(flight.issuer / 4 * 4 + (flight.issuer + w) % 4);
      }
      const int fits = (issued ? 8 : 0) + (named(trace_.texts[flight.place]) ? 4 : 0) + 2 +
                       (flight.complete ? 0 : 1);
      consider({fits, 1, flight.issue},
               {c, flight.issuer, static_cast<int>(i), -1, flight.issue, where});
    }
    for (const TraceLane& lane : cta.lanes) {
      for (const TraceSlice& slice : lane.slices) {
        if (!same_line(slice.where, where)) continue;
        consider({by(lane.warp) ? 8 : 0, 0, slice.start},
                 {c, lane.warp, -1, -1, slice.start, where});
      }
    }
  }
  return best;
}

// The last access is the one that ended the run. The others are found by the words of the message.
TraceFault TraceRecorder::locate(const Fault& fault) const {
  TraceFault located{fault, {}};
  const SourceLocation places[] = {fault.first, fault.second};
  const std::optional<TraceMark> cut_short = this->cut_short();
  int last = -1;
  for (int i = 0; i < 2 && cut_short; ++i) {
    if (same_line(places[i], cut_short->where)) last = i;
  }
  for (int i = 0; i < 2; ++i) {
    if (i == last) {
      located.marks.push_back(*cut_short);
      continue;
    }
    TraceMark mark;
    LaunchTrace::Score best = find_in_streams(fault, places[i], mark);
    for (const auto& trace : launches_) {
      TraceMark found;
      const LaunchTrace::Score score = trace->find_access(fault, places[i], found);
      if (score <= best) continue;
      best = score;
      mark = found;
    }
    if (std::get<0>(best) >= 0) located.marks.push_back(mark);
  }
  return located;
}

LaunchTrace::Score TraceRecorder::find_in_streams(const Fault& fault, SourceLocation where,
                                                  TraceMark& mark) const {
  LaunchTrace::Score best{-1, 0, 0};
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    for (const TraceSlice& slice : context_.trace.streams[i].slices) {
      // A launch's work is its kernel's.
      if (!same_line(slice.where, where) || slice.kind == TraceSlice::Kind::compute) continue;
      const bool by =
          line_has(fault.message, format_location(where), context_.trace.streams[i].name) &&
          line_has(fault.message, format_location(where), context_.trace.texts[slice.iteration]);
      const LaunchTrace::Score score{by ? 8 : 0, 0, slice.start};
      if (score <= best) continue;
      best = score;
      mark = {0, 0, -1, static_cast<int>(i), slice.start, where};
    }
  }
  return best;
}

}  // namespace tilewright::simulator
