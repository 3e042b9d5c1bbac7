#include "ir/modes.h"
#include "language/explicit_tracing.h"
#include "language/view.h"

namespace tilewright {

using ir::Key;
using ir::Op;

namespace {

std::vector<ir::Mode> modes_of(const std::vector<RegisterMap::Digit>& digits) {
  std::vector<ir::Mode> modes;
  for (const RegisterMap::Digit& digit : digits) {
    modes.push_back(digit.axis == RegisterMap::kEvery
                        ? ir::replicate(digit.size)
                        : ir::distribute(digit.size, digit.axis, digit.stride));
  }
  return modes;
}

// Warps that the role does not have would hold part of the tile.
void check_warps(const Tracer::Role& role, std::int64_t warps, const char* what,
                 SourceLocation where) {
  if (role.warps % warps == 0) return;
  const std::string have = std::to_string(role.warps);
  Diagnostic(where, std::string(what) + ": the map is of " + std::to_string(warps) +
                        " warps, and the role \"" + role.name + "\" has " + have)
      .token(what)
      .fix("let the digits of warps make " + have + ", or a divisor of it")
      .raise();
}

ir::RegisterLayout layout_of(const Tracer& tracer, const RegisterMap& map,
                             const std::vector<std::int64_t>& shape, const char* what,
                             SourceLocation where) {
  const ir::RegisterLayout layout{shape, modes_of(map.registers), modes_of(map.lanes),
                                  modes_of(map.warps)};
  const auto problem = layout.problem();
  if (!problem) {
    check_warps(*tracer.role(), layout.warp_count(), what, where);
    return layout.canonical();
  }
  std::string extents;
  for (const std::int64_t size : shape) {
    extents += (extents.empty() ? "" : ", ") + std::to_string(size);
  }
  Diagnostic(where,
             std::string(what) + ": the map is none of a tile {" + extents + "}: " + *problem)
      .token(what)
      .fix("let the digits of registers, lanes and warps reach each element once, with 32 lanes")
      .raise();
}

}  // namespace

// PTX, wgmma: layout of D.
RegisterMap RegisterMap::product(int columns) {
  return {{{2, 1, 1}, {2, 0, 8}, {columns / 8, 1, 8}}, {{4, 1, 2}, {8, 0, 1}}, {{4, 0, 16}}};
}

Tile load(const TensorView& from, const RegisterMap& map, SourceLocation where) {
  Tracer& tracer = in_role("load", where);
  const ir::ValueId loaded = tracer.use(load(from, where).handle(), "load", where);
  tracer.body().back().attributes.set(
      Key::layout, layout_of(tracer, map, tracer.type(loaded).shape, "load", where));
  return Tile(tracer.handle(loaded));
}

Tile in_registers(const Tile& tile, const RegisterMap& map, SourceLocation where) {
  Tracer& tracer = in_role("in_registers", where);
  const ir::ValueId from = tracer.use(tile.handle(), "in_registers", where);
  const ir::Type type = tracer.type(from);
  const ir::RegisterLayout layout = layout_of(tracer, map, type.shape, "in_registers", where);
  return Tile(
      tracer.handle(tracer.emit(Op::convert, {from}, type, {{Key::layout, layout}}, where)));
}

}  // namespace tilewright
