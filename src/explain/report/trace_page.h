#pragma once

#include <string>

#include "explain/report/trace_json.h"

namespace tilewright::explanations {

// One HTML page that draws the trace and needs nothing else.
std::string trace_page(const simulator::Trace& trace, const TraceOrigin& origin);

}  // namespace tilewright::explanations
