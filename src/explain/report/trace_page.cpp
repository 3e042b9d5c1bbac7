#include "explain/report/trace_page.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "compiler/simulation.h"
#include "explain/report/page_files.h"
#include "explain/report/page_text.h"
#include "explain/report/source_map.h"
#include "support/diagnostic.h"

namespace tilewright::explanations {
namespace {

using Json = nlohmann::ordered_json;
using simulator::Trace;
using simulator::TraceCta;

// Source lines by number, each with its text where the file is here.
class Places {
 public:
  int number(SourceLocation where) {
    if (where.file == nullptr) return -1;
    const auto [entry, is_new] =
        numbers_.emplace(std::pair(std::string(where.file), where.line), json_.size());
    if (is_new) json_.push_back({{"where", format_location(where)}, {"line", line(where)}});
    return static_cast<int>(entry->second);
  }
  Json take() { return std::move(json_); }

 private:
  std::string line(SourceLocation where) {
    const auto [file, is_new] = files_.try_emplace(where.file);
    if (is_new) file->second = source_lines(where.file);
    const auto index = static_cast<std::size_t>(where.line) - 1;
    return index < file->second.size() ? file->second[index] : std::string();
  }

  std::map<std::pair<std::string, int>, std::size_t> numbers_;
  std::map<std::string, std::vector<std::string>> files_;
  Json json_ = Json::array();
};

// Records as one list of numbers: there may be hundreds of thousands. trace_model.js reads them.
void append(Json& list, std::initializer_list<std::int64_t> numbers) {
  for (const std::int64_t number : numbers) list.push_back(number);
}

Json json_of(const std::vector<simulator::TraceSlice>& list, Places& places) {
  Json slices = Json::array();
  for (const simulator::TraceSlice& slice : list) {
    append(slices,
           {slice.start, slice.end - slice.start, static_cast<std::int64_t>(slice.kind), slice.name,
            slice.detail, slice.iteration, slice.count, places.number(slice.where)});
  }
  return slices;
}

Json json_of(const simulator::TraceLaunch& launch) {
  Json barriers = Json::array();
  for (const simulator::TraceBarrier& barrier : launch.barriers) {
    barriers.push_back({{"name", barrier.name}, {"array", barrier.array}});
  }
  return {{"name", launch.name},
          {"rank", launch.rank},
          {"roles", launch.roles},
          {"arrays", launch.barrier_arrays},
          {"product_unit", launch.product_unit},
          {"copy_unit", launch.copy_unit},
          {"barriers", std::move(barriers)}};
}

Json json_of(const TraceCta& cta, Places& places) {
  Json lanes = Json::array();
  for (const simulator::TraceLane& lane : cta.lanes) {
    lanes.push_back({{"role", lane.role},
                     {"warp", lane.warp},
                     {"number", lane.number},
                     {"slices", json_of(lane.slices, places)}});
  }
  Json flights = Json::array(), products = Json::array(), flips = Json::array();
  for (const simulator::TraceFlight& flight : cta.flights) {
    append(flights, {static_cast<std::int64_t>(flight.kind), flight.issue,
                     flight.end - flight.issue, flight.complete ? 1 : 0, flight.name, flight.detail,
                     flight.iteration, flight.issuer, places.number(flight.where)});
  }
  for (const simulator::TraceProduct& product : cta.products) {
    append(products, {product.start, product.end - product.start, product.name,
                      places.number(product.where)});
  }
  for (const simulator::TraceFlip& flip : cta.flips) {
    append(flips, {flip.time, flip.barrier, static_cast<std::int64_t>(flip.phase), flip.cause});
  }
  return {{"launch", cta.launch}, {"index", cta.index}, {"start", cta.start},   {"end", cta.end},
          {"lanes", lanes},       {"flights", flights}, {"products", products}, {"flips", flips}};
}

Json json_of(const simulator::TraceFault& fault, Places& places) {
  Json marks = Json::array();
  for (const simulator::TraceMark& mark : fault.marks) {
    marks.push_back({{"cta", mark.cta},
                     {"warp", mark.warp},
                     {"flight", mark.flight},
                     {"stream", mark.stream},
                     {"time", mark.time},
                     {"where", places.number(mark.where)}});
  }
  return {{"kind", fault.fault.kind},
          {"text", compiler::diagnostic_of(fault.fault).render()},
          {"missing", fault.fault.missing},
          {"marks", marks}};
}

std::string data_of(const Trace& trace, const TraceOrigin& origin) {
  Places places;
  Json ctas = Json::array(), launches = Json::array(), streams = Json::array();
  Json faults = Json::array();
  for (const TraceCta& cta : trace.ctas) ctas.push_back(json_of(cta, places));
  for (const simulator::TraceLaunch& launch : trace.launches) launches.push_back(json_of(launch));
  for (const simulator::TraceStream& stream : trace.streams) {
    streams.push_back(
        {{"name", stream.name}, {"rank", stream.rank}, {"slices", json_of(stream.slices, places)}});
  }
  for (const simulator::TraceFault& fault : trace.faults) {
    faults.push_back(json_of(fault, places));
  }
  const Json json = {{"kernel", origin.kernel},
                     {"target", origin.target},
                     {"seed", origin.seed},
                     {"command", origin.command},
                     {"axis", kTraceAxis},
                     {"end", trace.end},
                     {"texts", trace.texts},
                     {"streams", std::move(streams)},
                     {"launches", std::move(launches)},
                     {"ctas", std::move(ctas)},
                     {"faults", std::move(faults)},
                     {"places", places.take()}};
  // Sources may hold any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string trace_page(const Trace& trace, const TraceOrigin& origin) {
  return html_document({"tilewright trace",
                        kTraceHtml,
                        {kPageCss, kTraceCss},
                        {kTraceModelScript, kTraceScript, kTraceInputScript}},
                       data_of(trace, origin));
}

}  // namespace tilewright::explanations
