#include "schedules/declared_maps.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/definitions.h"
#include "ir/modes.h"
#include "language/register_maps.h"
#include "schedules/chosen.h"
#include "support/same_line.h"
#include "target/target.h"
#include "target/warpgroups.h"

namespace tilewright::schedules {

using ir::Operation;
using ir::RegisterLayout;
using target::kGroupWarps;

namespace {

// As the author wrote it: load(view, map) is a load and a conversion of one line.
const char* called(const ir::Kernel& tile, const Operation& o) {
  const Operation* from = analysis::definitions(tile)[o.operands[0]];
  const bool loads = from && from->op == ir::Op::load && same_line(from->where, o.where);
  return loads ? "load" : "in_registers";
}

const RegisterLayout& declared(const ir::Kernel& tile, const Operation& o) {
  const RegisterLayout& layout = o.attributes.register_layout();
  check_registers(layout, tile.type(o.results[0]).dtype, target::target_of(tile).limits,
                  called(tile, o), o.where);
  return layout;
}

[[noreturn]] void refuse(const ir::Kernel& tile, const Operation& o, const std::string& why,
                         const std::string& fix) {
  const std::string what = called(tile, o);
  Diagnostic(o.where, what + ": the map of " + tile.type(o.results[0]).to_string() + " " + why)
      .token(what)
      .fix(fix)
      .raise();
}

std::string place(const std::vector<std::int64_t>& coordinates) {
  std::string text;
  for (const std::int64_t at : coordinates) text += (text.empty() ? "" : ", ") + std::to_string(at);
  return "{" + text + "}";
}

// What is left of a layout for one of so many warpgroups, each of which has `size` elements of the
// axis: without its slowest digit of warps, if that counts them.
std::optional<RegisterLayout> without_groups(RegisterLayout layout, int groups, int axis,
                                             std::int64_t size) {
  if (layout.warps.empty()) return std::nullopt;
  ir::Mode& last = layout.warps.back();
  if (last.kind != ir::ModeKind::distribute || last.axis != axis || last.size % groups != 0 ||
      last.stride * (last.size / groups) != size) {
    return std::nullopt;
  }
  last.size /= groups;
  layout.shape[axis] = size;
  return layout.canonical();
}

}  // namespace

bool is_declared(const Operation& o) {
  return o.op == ir::Op::convert && o.attributes.has(ir::Key::layout);
}

bool declares_maps(const ir::Kernel& tile) {
  bool any = false;
  ir::for_each(tile.body, [&](const Operation& o) { any |= is_declared(o); });
  return any;
}

std::int64_t declared_warps(const ir::Kernel& tile) {
  std::int64_t most = 0;
  ir::for_each(tile.body, [&](const Operation& o) {
    if (is_declared(o)) most = std::max(most, o.attributes.register_layout().warp_count());
  });
  std::int64_t warps = most == 0 ? 0 : kGroupWarps;
  while (warps < most) warps *= 2;
  return warps;
}

RegisterLayout declared_for_cta(const ir::Kernel& tile, const Operation& o, std::int64_t warps) {
  const RegisterLayout& layout = declared(tile, o);
  const std::int64_t has = layout.warp_count();
  if (warps % has == 0) return for_warps(layout, warps);
  const ScheduleField<int>& stated = tile.schedule.warpgroups;
  if (stated.is_set()) {
    refused("warpgroups", stated,
            "they have " + std::to_string(warps) + " warps, and a tile is declared for " +
                std::to_string(has))
        .note(o.where, "its map is")
        .fix("leave it out, or state what the map has")
        .raise();
  }
  refuse(tile, o,
         "is of " + std::to_string(has) + " warps, and " + std::to_string(warps) +
             " share the kernel's tiles",
         "let the digits of warps make " + std::to_string(warps) + ", or a divisor of it");
}

RegisterLayout declared_for_group(const ir::Kernel& tile, const Operation& o, const ir::Type& local,
                                  int groups) {
  const RegisterLayout& layout = declared(tile, o);
  const auto differ = std::mismatch(layout.shape.begin(), layout.shape.end(), local.shape.begin());
  const bool divided = differ.first != layout.shape.end();
  const int axis = static_cast<int>(differ.first - layout.shape.begin());
  RegisterLayout own = layout;
  if (divided) {
    const std::int64_t size = local.shape[axis];
    const auto part = without_groups(layout, groups, axis, size);
    const std::string digit = "{" + std::to_string(groups) + ", " + std::to_string(axis) + ", " +
                              std::to_string(size) + "}";
    if (!part) {
      const std::int64_t second = std::max<std::int64_t>(1, layout.warp_count() / groups);
      std::vector<std::int64_t> begins(layout.shape.size(), 0);
      begins[axis] = size;
      refuse(tile, o,
             "gives warp " + std::to_string(second) + " element " +
                 place(layout.coordinates(0, 0, second)) + " first, and the second of " +
                 std::to_string(groups) + " warpgroups has those from " + place(begins) + " on",
             "let " + digit + " be the slowest digit of warps");
    }
    own = *part;
  } else if (!own.warps.empty() && own.warps.back().kind == ir::ModeKind::replicate &&
             own.warp_count() > kGroupWarps) {
    // What all warpgroups have each of them has whole.
    own.warps.back().size = std::max<std::int64_t>(1, own.warps.back().size / groups);
    own = own.canonical();
  }
  const std::int64_t has = own.warp_count();
  if (kGroupWarps % has == 0) return for_warps(std::move(own), kGroupWarps);
  refuse(tile, o,
         "is of " + std::to_string(layout.warp_count()) + " warps, and " +
             (divided ? std::to_string(groups * kGroupWarps) + " share the tile"
                      : "each warpgroup of " + std::to_string(kGroupWarps) + " has all of it"),
         "let the digits of warps make " +
             std::to_string(divided ? groups * kGroupWarps : kGroupWarps));
}

}  // namespace tilewright::schedules
