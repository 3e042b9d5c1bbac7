#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "simulator/faults/sites.h"

// What barriers, stages and phases mean in a kernel, read off how it uses them.
namespace tilewright::simulator {

// The value of a scalar when its loops are entered and no stage has wrapped around yet.
std::optional<std::int64_t> first_value(const Sites& sites, ir::ValueId value);

// The operands of loops whose constants the value starts from.
std::vector<Use> starts_of(const Sites& sites, ir::ValueId value);

// Everything that the values are computed from, through loops and conditions, themselves included.
std::set<ir::ValueId> computed_from(const Sites& sites, std::vector<ir::ValueId> values);

// Whether a fresh barrier of the array lets its first waits pass: an "empty" barrier, which says
// that a stage may be overwritten. The others are "full" barriers: they say that data is there.
bool is_empty_barrier(const Sites& sites, ir::ValueId barriers);

// Waits of one sort.
std::vector<const Site*> waits(const Sites& sites, bool on_empty);

// select(i + 1 == stages, 0, i + 1), by which a stage becomes the next; kNoValue where it is none,
// else i.
ir::ValueId advanced_from(const Sites& sites, ir::ValueId value);
// 1 - phase, or select(wrapped, 1 - phase, phase): kNoValue where it is neither, else phase.
ir::ValueId flipped_from(const Sites& sites, ir::ValueId value);

}  // namespace tilewright::simulator
