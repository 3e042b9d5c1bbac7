#include "cpu/ahead.h"

#include <algorithm>
#include <functional>

namespace tilewright::cpu {
namespace {

// Rows one behind the other.
struct Stream {
  const char* data;
  std::int64_t row;  // bytes
};

std::vector<Stream> streams_of(const std::vector<CallOfStrips>& calls, const std::byte* begin,
                               const std::byte* end) {
  const std::less<const std::byte*> before;
  std::vector<Stream> streams;
  for (const CallOfStrips& each : calls) {
    each.for_places([&](const Call::Place& place) {
      const std::int64_t row = each.shape().columns * place.column_stride;
      const bool is_near = !before(place.data, begin) && before(place.data, end);
      const bool is_needed = !each.is_of_column() && !place.is_far && !is_near;
      if (!is_needed || row == 0 || place.row_stride != row) return;
      const auto* const data = reinterpret_cast<const char*>(place.data);
      const bool is_known = std::any_of(streams.begin(), streams.end(),
                                        [&](const Stream& known) { return known.data == data; });
      if (!is_known) streams.push_back({data, row});
    });
  }
  return streams;
}

// How many lines each call asks for while it computes 64 elements: those that take long ask for
// more of them.
std::vector<std::int64_t> deal_lines(const std::vector<CallOfStrips>& calls, std::int64_t lines) {
  std::vector<std::int64_t> dealt(calls.size(), 0);
  for (; lines > 0; --lines) {
    std::size_t most = 0;
    double longest = 0;  // for each line
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const double share =
          static_cast<double>(calls[i].weight()) / static_cast<double>(dealt[i] + 1);
      if (share <= longest) continue;
      most = i;
      longest = share;
    }
    if (longest > 0) ++dealt[most];
  }
  return dealt;
}

}  // namespace

// What goes over the rows once, the machine foresees: it needs no rows of the next strip while the
// same ones are gone over again. The same of more than two streams.
void plan_ahead(std::vector<CallOfStrips>& calls, std::int64_t rows, const std::byte* begin,
                const std::byte* end) {
  const auto passes = std::count_if(calls.begin(), calls.end(),
                                    [](const CallOfStrips& each) { return !each.is_of_column(); });
  std::vector<Stream> streams = streams_of(calls, begin, end);
  if (passes < 2 || streams.empty()) return;
  Stream first = streams[0], second = streams.size() > 1 ? streams[1] : streams[0];
  std::int64_t bytes = rows * std::max(first.row, second.row);
  if (streams.size() == 1) {
    bytes /= 2;
    second.data += bytes;
  }
  std::int64_t columns = 0;
  for (const CallOfStrips& each : calls) {
    if (each.weight() > 0) columns = std::max(columns, each.shape().columns);
  }
  if (columns == 0) return;
  const std::int64_t elements = rows * columns;
  const std::vector<std::int64_t> lines = deal_lines(calls, (bytes + elements - 1) / elements);
  std::int64_t asked = rows * first.row, asked_second = rows * second.row;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].ask_ahead({first.data + asked, second.data + asked_second, lines[i]}, first.row,
                       second.row);
    asked += lines[i] * elements;
    asked_second += lines[i] * elements;
  }
}

}  // namespace tilewright::cpu
