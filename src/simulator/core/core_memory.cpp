#include "simulator/core/core_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::simulator {

std::string text_of(const ir::Operation& instruction) {
  return fmt::format("{} at {}", ir::info(instruction.op).name, format_location(instruction.where));
}

std::uint8_t Origins::of(const CoreItem& reader, const std::string& what) {
  constexpr std::size_t kMost = 255;
  const auto [found, is_new] = known_.try_emplace(reader.operation, std::uint8_t{0});
  if (is_new) {
    if (list_.size() <= kMost) list_.push_back({reader.operation->where, what});
    found->second = static_cast<std::uint8_t>(list_.size() - 1);
  }
  return found->second;
}

CoreValues::CoreValues(ir::Extent2 extent, DType dtype)
    : extent(extent),
      dtype(dtype),
      origin(static_cast<std::size_t>(extent.rows * extent.columns), 0) {
  if (is_float(dtype)) {
    real.resize(origin.size());
  } else {
    whole.resize(origin.size());
  }
}

CoreOrder::CoreOrder(std::size_t cells, std::size_t queues)
    : queues_(queues), writers_(cells), readers_(cells * queues) {}

namespace {

bool is_known(const CoreAgent& agent, const CoreClock& known) {
  return !agent.is_there() || known[agent.queue] >= agent.number;
}

}  // namespace

CoreAgent CoreOrder::read(std::size_t cell, CoreAgent by, const CoreClock& known) {
  by.writes = false;
  const CoreAgent& writer = writers_[cell];
  // What reads and writes a place does so itself.
  if (!is_known(writer, known) && !writer.is(by)) return writer;
  readers_[cell * queues_ + by.queue] = by;
  return {};
}

CoreAgent CoreOrder::write(std::size_t cell, CoreAgent by, const CoreClock& known) {
  by.writes = true;
  CoreAgent& writer = writers_[cell];
  if (!is_known(writer, known) && !writer.is(by)) return writer;
  for (std::size_t queue = 0; queue < queues_; ++queue) {
    CoreAgent& reader = readers_[cell * queues_ + queue];
    if (!is_known(reader, known) && !reader.is(by)) return reader;
    reader = {};
  }
  writer = by;
  return {};
}

Fault race(const CoreLaunch& launch, CoreAgent second, CoreAgent first, const std::string& place) {
  if (first.issuer == second.issuer && second.issued < first.issued) std::swap(first, second);
  const target::Core& core = launch.core;
  const std::string &from = core.units[first.unit].name, &to = core.units[second.unit].name;
  Fault fault;
  fault.kind = "race";
  fault.first = second.operation->where;
  fault.second = first.operation->where;
  fault.message = fmt::format(
      "{}: {} ({}) {} {} before {} ({}) is over", launch.kernel.name, text_of(*second.operation),
      to, second.writes ? "may write" : "may read", place, text_of(*first.operation), from);
  if (first.queue == second.queue) {
    fault.missing = fmt::format("unit_barrier(\"{}\") between the two", to);
  } else if (core.event(from, to) != nullptr) {
    fault.missing = fmt::format(
        "an event from {}, set behind the first, to {}, which waits for it "
        "before the second",
        from, to);
  } else {
    fault.missing = fmt::format("events that lead from {} to {}", from, to);
  }
  return fault;
}

CoreMemories::CoreMemories(const CoreLaunch& launch, std::size_t queues, Origins& origins,
                           std::string_view sequencer)
    : launch_(launch), origins_(origins), spaces_(launch.core.spaces.size()) {
  std::vector<std::int64_t> partitions(spaces_.size());
  for (const CorePlace& place : launch.places) {
    if (place.space->sequencer != sequencer) continue;
    Space& space = spaces_[place.space_number];
    space.partition_bytes =
        std::max(space.partition_bytes, place.offset + place.stages * place.stage_bytes);
    partitions[place.space_number] =
        std::max(partitions[place.space_number],
                 std::min<std::int64_t>(place.matrix.rows, place.space->partitions));
  }
  for (std::size_t i = 0; i < spaces_.size(); ++i) {
    Space& space = spaces_[i];
    const target::CoreSpace& record = launch.core.spaces[i];
    space.partition_bytes =
        (space.partition_bytes + record.granule - 1) / record.granule * record.granule;
    const auto bytes = static_cast<std::size_t>(space.partition_bytes * partitions[i]);
    space.bytes.resize(bytes, std::byte{0xff});  // a NaN
    space.origin.resize(bytes, Origins::kUnwritten);
    space.place.resize(bytes, -1);
    space.order =
        std::make_unique<CoreOrder>(bytes / static_cast<std::size_t>(record.granule), queues);
  }
}

const CoreMemories::Lying& CoreMemories::lying(const CoreWindowAt& window) {
  const Key key{window.place,  window.stage,      window.row,
                window.column, window.lying.rows, window.lying.columns};
  const auto [found, is_new] = lying_.try_emplace(key);
  Lying& made = found->second;
  if (!is_new) return made;
  const CorePlace& place = launch_.places[window.place];
  const std::int64_t partition = place.space->partitions > 1 ? space_of(window).partition_bytes : 0;
  const std::int64_t base = place.offset + window.stage * place.stage_bytes;
  made.addresses.reserve(static_cast<std::size_t>(window.lying.rows * window.lying.columns));
  for (std::int64_t row = window.row; row < window.row + window.lying.rows; ++row) {
    for (std::int64_t column = window.column; column < window.column + window.lying.columns;
         ++column) {
      const std::int64_t address =
          base + row * partition + place.space->layout->offset(place.matrix, row, column);
      made.addresses.push_back(address);
      made.cells.push_back(static_cast<std::size_t>(address / place.space->granule));
    }
  }
  std::sort(made.cells.begin(), made.cells.end());
  made.cells.erase(std::unique(made.cells.begin(), made.cells.end()), made.cells.end());
  return made;
}

const std::vector<std::int64_t>& CoreMemories::addresses(const CoreWindowAt& window) {
  return lying(window).addresses;
}

std::string CoreMemories::problem_of(const CoreWindowAt& window, std::string& kind,
                                     std::string& fix) const {
  const CorePlace& place = launch_.places[window.place];
  const std::string& name = place.operation->attributes.text(ir::Key::name);
  kind = "out_of_bounds";
  fix = "keep the window inside";
  if (window.stage < 0 || window.stage >= place.stages) {
    return fmt::format("stage {} of {}, which has {}", window.stage, name, place.stages);
  }
  const bool inside = window.row >= 0 && window.row + window.lying.rows <= place.matrix.rows &&
                      window.column >= 0 &&
                      window.column + window.lying.columns <= place.matrix.columns;
  if (!inside) {
    return fmt::format("rows {} to {} and columns {} to {} of {}, which is {} x {}", window.row,
                       window.row + window.lying.rows - 1, window.column,
                       window.column + window.lying.columns - 1, name, place.matrix.rows,
                       place.matrix.columns);
  }
  const target::CoreProblem start =
      target::check_start(*place.space, place.matrix, window.row, window.column);
  if (start.none()) return {};
  kind = "misaligned";
  fix = start.fix;
  return fmt::format("{} of {}", start.problem, name);
}

bool CoreMemories::overlap(const CoreWindowAt& a, const CoreWindowAt& b) {
  const CorePlace &first = launch_.places[a.place], &second = launch_.places[b.place];
  if (first.space_number != second.space_number) return false;
  const Lying &own = lying(a), &other = lying(b);
  const DType dtype = first.matrix.dtype, other_dtype = second.matrix.dtype;
  if (own.addresses == other.addresses && a.transposed == b.transposed &&
      size_of(dtype) == size_of(other_dtype)) {
    return false;
  }
  std::vector<std::size_t> both;
  std::set_intersection(own.cells.begin(), own.cells.end(), other.cells.begin(), other.cells.end(),
                        std::back_inserter(both));
  if (both.empty()) return false;
  // Pieces of one granule may be theirs in turn.
  std::vector<std::int64_t> sorted = own.addresses;
  std::sort(sorted.begin(), sorted.end());
  return std::any_of(other.addresses.begin(), other.addresses.end(), [&](std::int64_t address) {
    const auto behind = std::upper_bound(sorted.begin(), sorted.end(), address);
    return (behind != sorted.begin() && *(behind - 1) + size_of(dtype) > address) ||
           (behind != sorted.end() && *behind < address + size_of(other_dtype));
  });
}

void CoreMemories::order(const CoreWindowAt& window, bool writes, const CoreAgent& by,
                         const CoreClock& known, FaultLog& log) {
  CoreOrder& order = *space_of(window).order;
  for (const std::size_t cell : lying(window).cells) {
    const CoreAgent other = writes ? order.write(cell, by, known) : order.read(cell, by, known);
    if (!other.is_there()) continue;
    const CorePlace& place = launch_.places[window.place];
    const std::string of = fmt::format(
        "{}{} ({})", place.operation->attributes.text(ir::Key::name),
        place.stages > 1 ? fmt::format("[stage {}]", window.stage) : "", place.space->name);
    CoreAgent own = by;
    own.writes = writes;
    log.add(race(launch_, own, other, of));
    return;
  }
}

std::string CoreMemories::element_text(const CoreWindowAt& window, std::int64_t row,
                                       std::int64_t column) const {
  const CorePlace& place = launch_.places[window.place];
  return fmt::format("row {}, column {} of {} ({})", window.row + row, window.column + column,
                     place.operation->attributes.text(ir::Key::name), place.space->name);
}

namespace {

// Of each element that lies there, row-major as it lies: its number as it is seen, and its address.
template <typename Visit>
void for_each_element(const CoreWindowAt& window, const std::vector<std::int64_t>& addresses,
                      const Visit& visit) {
  const std::int64_t rows = window.lying.rows, columns = window.lying.columns;
  std::size_t at = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column, ++at) {
      const auto element = window.transposed ? static_cast<std::size_t>(column * rows + row) : at;
      visit(element, static_cast<std::size_t>(addresses[at]));
    }
  }
}

// Calls `visit` with the bytes of an element as a number known at compile time.
template <typename Visit>
void with_size(std::int64_t size, const Visit& visit) {
  if (size == 1) return visit(std::integral_constant<std::size_t, 1>{});
  if (size == 2) return visit(std::integral_constant<std::size_t, 2>{});
  if (size == 4) return visit(std::integral_constant<std::size_t, 4>{});
  visit(std::integral_constant<std::size_t, 8>{});
}

}  // namespace

CoreValues CoreMemories::read(const CoreWindowAt& window, const CoreItem& reader) {
  const CorePlace& place = launch_.places[window.place];
  const DType dtype = place.matrix.dtype;
  const Space& space = space_of(window);
  const std::vector<std::int64_t>& where = lying(window).addresses;
  CoreValues values(window.seen(), dtype);
  const auto origin_of = [&](std::size_t element, const std::string& what) {
    const auto at = static_cast<std::int64_t>(element), columns = values.extent.columns;
    std::int64_t row = at / columns, column = at % columns;
    if (window.transposed) std::swap(row, column);
    return origins_.of(reader, element_text(window, row, column) + what);
  };
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  with_size(size_of(dtype), [&](auto size) {
    for_each_element(window, where, [&](std::size_t element, std::size_t address) {
      std::memcpy(&bytes[element * size], &space.bytes[address], size);
      std::uint8_t& origin = values.origin[element];
      origin = space.origin[address];
      const std::int16_t owner = space.place[address];
      if (origin == Origins::kUnwritten) {
        origin = origin_of(element, ", which nobody has written");
      } else if (owner != window.place) {
        origin = origin_of(
            element, fmt::format(", over which {} has been written",
                                 launch_.places[owner].operation->attributes.text(ir::Key::name)));
      }
    });
  });
  if (values.is_real()) {
    to_float(dtype, bytes.data(), values.real.data(), values.size());
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values.whole[i] = to_integer(dtype, &bytes[i * static_cast<std::size_t>(size_of(dtype))]);
    }
  }
  return values;
}

void CoreMemories::write(const CoreWindowAt& window, const CoreValues& values,
                         const std::vector<bool>* exists) {
  const DType dtype = launch_.places[window.place].matrix.dtype;
  Space& space = space_of(window);
  const std::vector<std::int64_t>& where = lying(window).addresses;
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  if (values.is_real()) {
    from_float(dtype, values.real.data(), bytes.data(), values.size());
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      from_integer(dtype, values.whole[i], &bytes[i * static_cast<std::size_t>(size_of(dtype))]);
    }
  }
  with_size(size_of(dtype), [&](auto size) {
    for_each_element(window, where, [&](std::size_t element, std::size_t address) {
      if (exists != nullptr && !(*exists)[element]) return;
      std::memcpy(&space.bytes[address], &bytes[element * size], size);
      std::memset(&space.origin[address], values.origin[element], size);
      std::fill_n(&space.place[address], std::size_t{size},
                  static_cast<std::int16_t>(window.place));
    });
  });
}

}  // namespace tilewright::simulator
