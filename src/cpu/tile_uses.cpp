#include "cpu/tile_uses.h"

namespace tilewright::cpu {

std::vector<TileId> tiles_of(const Operation& operation) {
  std::vector<TileId> tiles;
  const auto add = [&](TileId tile) { tiles.push_back(tile); };
  std::visit(TileUses{add, add}, operation);
  return tiles;
}

TileId written_by(const Operation& operation) {
  TileId written = kNone;
  std::visit(TileUses{[](TileId) {}, [&](TileId tile) { written = tile; }}, operation);
  return written;
}

void for_operations(Block& block, const std::function<void(Operation&)>& visit) {
  for (Operation& operation : block) {
    visit(operation);
    if (auto* const strips = std::get_if<Strips>(&operation)) for_operations(strips->body, visit);
    if (auto* const loop = std::get_if<For>(&operation)) for_operations(loop->body, visit);
    if (auto* const loop = std::get_if<While>(&operation)) for_operations(loop->body, visit);
    if (auto* const choice = std::get_if<If>(&operation)) {
      for_operations(choice->then, visit);
      for_operations(choice->otherwise, visit);
    }
  }
}

void for_operations(const Block& block, const std::function<void(const Operation&)>& visit) {
  // Which changes nothing.
  for_operations(const_cast<Block&>(block), std::function<void(Operation&)>(visit));
}

}  // namespace tilewright::cpu
