#include "language/register_maps.h"

#include <algorithm>

#include "ir/modes.h"
#include "language/explicit_tracing.h"
#include "language/view.h"
#include "target/target.h"
#include "target/warpgroups.h"

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

// What passes through shared memory is numbers.
[[noreturn]] void refuse_booleans(const char* what, SourceLocation where) {
  Diagnostic(where, std::string(what) + ": a tile of booleans, and a map is of numbers")
      .token(what)
      .fix("make numbers of it: where(tile, 1, 0)")
      .raise();
}

// The map as a layout of the tile.
ir::RegisterLayout layout_of(const RegisterMap& map, const ir::Type& type, const char* what,
                             SourceLocation where) {
  const ir::RegisterLayout layout{type.shape, modes_of(map.registers), modes_of(map.lanes),
                                  modes_of(map.warps)};
  const auto problem = layout.problem();
  if (!problem) return layout.canonical();
  std::string extents;
  for (const std::int64_t size : type.shape) {
    extents += (extents.empty() ? "" : ", ") + std::to_string(size);
  }
  Diagnostic(where,
             std::string(what) + ": the map is none of a tile {" + extents + "}: " + *problem)
      .token(what)
      .fix("let the digits of registers, lanes and warps reach each element once, with 32 lanes")
      .raise();
}

// The same for the warps of a role: those of each warpgroup, or all of them, share the tile. Warps
// that the role does not have would hold part of it.
ir::RegisterLayout in_role(const Tracer::Role& role, ir::RegisterLayout layout, const char* what,
                           SourceLocation where) {
  const std::int64_t warps = layout.warp_count();
  const std::int64_t group = std::min(role.warps, target::kGroupWarps);
  if (warps == role.warps) return layout;
  if (group % warps == 0) return for_warps(std::move(layout), group);
  const std::string have = std::to_string(role.warps);
  Diagnostic(where, std::string(what) + ": the map is of " + std::to_string(warps) +
                        " warps, and the role \"" + role.name + "\" has " + have)
      .token(what)
      .fix("let the digits of warps make " + have + ", or a divisor of " + std::to_string(group))
      .raise();
}

ir::RegisterLayout declared(Tracer& tracer, const RegisterMap& map, const ir::Type& type,
                            const char* what, SourceLocation where) {
  if (type.dtype == DType::boolean) refuse_booleans(what, where);
  ir::RegisterLayout layout = layout_of(map, type, what, where);
  // At the tile level the target, and how many warps there are, is known when it is compiled.
  if (!tracer.role()) return layout;
  check_registers(layout, type.dtype, target::target_of(tracer.kernel()).limits, what, where);
  return in_role(*tracer.role(), std::move(layout), what, where);
}

// The tracer of a kernel of either level: inside a role, where it is the explicit one.
Tracer& of_either_level(const char* what, SourceLocation where) {
  Tracer& tracer = Tracer::get(what, where);
  return tracer.kernel().form == ir::Form::scheduled ? in_role(what, where) : tracer;
}

Tile converted(Tracer& tracer, const Tile& tile, const RegisterMap& map, const char* what,
               SourceLocation where) {
  const ir::ValueId from = tracer.use(tile.handle(), what, where);
  const ir::Type type = tracer.type(from);
  const ir::RegisterLayout layout = declared(tracer, map, type, what, where);
  return Tile(
      tracer.handle(tracer.emit(Op::convert, {from}, type, {{Key::layout, layout}}, where)));
}

}  // namespace

ir::RegisterLayout for_warps(ir::RegisterLayout layout, std::int64_t warps) {
  layout.warps.push_back(ir::replicate(warps / layout.warp_count()));
  return layout.canonical();
}

void check_registers(const ir::RegisterLayout& layout, DType dtype, const TargetLimits& limits,
                     const std::string& what, SourceLocation where) {
  const std::int64_t registers = (layout.register_count() * size_of(dtype) + 3) / 4;
  if (registers <= limits.thread_registers) return;
  Diagnostic(where, what + ": the map gives each thread " +
                        std::to_string(layout.register_count()) + " elements of " +
                        std::string(name_of(dtype)) + ", " + std::to_string(registers) +
                        " registers, and a thread has " + std::to_string(limits.thread_registers))
      .token(what)
      .fix("spread the tile over more warps, or take a smaller one")
      .raise();
}

// PTX, wgmma: layout of D.
RegisterMap RegisterMap::product(int columns, int rows) {
  return {{{2, 1, 1}, {2, 0, 8}, {columns / 8, 1, 8}},
          {{4, 1, 2}, {8, 0, 1}},
          {{4, 0, 16}, {rows / 64, 0, 64}}};
}

Tile load(const TensorView& from, const RegisterMap& map, SourceLocation where) {
  Tracer& tracer = of_either_level("load", where);
  const Tile loaded = load(from, where);
  // A kernel of the tile level is scheduled first, which decides what comes through shared memory.
  if (!tracer.role()) return converted(tracer, loaded, map, "load", where);
  const ir::ValueId value = tracer.use(loaded.handle(), "load", where);
  tracer.body().back().attributes.set(Key::layout,
                                      declared(tracer, map, tracer.type(value), "load", where));
  return loaded;
}

Tile in_registers(const Tile& tile, const RegisterMap& map, SourceLocation where) {
  return converted(of_either_level("in_registers", where), tile, map, "in_registers", where);
}

}  // namespace tilewright
