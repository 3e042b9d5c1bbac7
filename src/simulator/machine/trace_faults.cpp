#include <algorithm>
#include <tuple>

#include "simulator/machine/trace_recorder.h"
#include "support/diagnostic.h"

// Where the accesses that a fault names lie in the trace.
namespace tilewright::simulator {
namespace {

bool same(SourceLocation a, SourceLocation b) { return a.file == b.file && a.line == b.line; }

}  // namespace

// The access at `where` that the fault's message describes best, by who makes it and by what it
// accesses; of several the latest.
bool TraceRecorder::find_access(const Fault& fault, SourceLocation where, TraceMark& mark) const {
  if (where.file == nullptr) return false;
  const auto named = [&](const std::string& words) {
    return !words.empty() && fault.message.find(words) != std::string::npos;
  };
  using Score = std::tuple<int, int, std::int64_t>;
  Score best{-1, 0, 0};
  for (std::size_t c = 0; c < trace_.ctas.size(); ++c) {
    const TraceCta& cta = trace_.ctas[c];
    const auto by = [&](int warp) {
      std::string words = format_location(where) + "  " + who(cta, warp);
      if (launch_->kernel.ctas > 1) words += " of CTA " + std::to_string(cta.index);
      return named(words);
    };
    const auto consider = [&](const Score& score, const TraceMark& found) {
      if (score <= best) return;
      best = score;
      mark = found;
    };
    for (std::size_t i = 0; i < cta.flights.size(); ++i) {
      const TraceFlight& flight = cta.flights[i];
      if (!same(flight.where, where)) continue;
      // Products are one flight for the four warps of a warpgroup.
      bool issued = by(flight.issuer);
      for (int w = 1; w < 4 && flight.kind == TraceFlight::Kind::products; ++w) {
        issued = issued || by(flight.issuer / 4 * 4 + (flight.issuer + w) % 4);
      }
      const int fits = (issued ? 8 : 0) + (named(trace_.texts[flight.place]) ? 4 : 0) + 2 +
                       (flight.complete ? 0 : 1);
      consider({fits, 1, flight.issue},
               {c, flight.issuer, static_cast<int>(i), flight.issue, where});
    }
    for (const TraceLane& lane : cta.lanes) {
      for (const TraceSlice& slice : lane.slices) {
        if (!same(slice.where, where)) continue;
        consider({by(lane.warp) ? 8 : 0, 0, slice.start}, {c, lane.warp, -1, slice.start, where});
      }
    }
  }
  return best > Score{-1, 0, 0};
}

TraceFault TraceRecorder::locate(const Fault& fault) const {
  TraceFault located{fault, {}};
  const SourceLocation places[] = {fault.first, fault.second};
  // With the last of the accesses that it is at, the run ended.
  int last = -1;
  for (int i = 0; i < 2 && cut_short_; ++i) {
    if (same(places[i], cut_short_->where)) last = i;
  }
  for (int i = 0; i < 2; ++i) {
    TraceMark mark;
    if (i == last) {
      located.marks.push_back(*cut_short_);
    } else if (find_access(fault, places[i], mark)) {
      located.marks.push_back(mark);
    }
  }
  return located;
}

}  // namespace tilewright::simulator
