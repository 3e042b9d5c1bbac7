#pragma once

#include <functional>
#include <vector>

#include "cpu/program.h"

namespace tilewright::cpu {

// The tiles that an operation, which has no blocks, reads and writes: calls `read(tile)` and
// `write(tile)`, the first of these before the second.
template <typename Read, typename Write>
struct TileUses {
  Read read;
  Write write;

  void operator()(const Load& o) const { write(o.tile); }
  void operator()(const Store& o) const { read(o.tile); }
  void operator()(const Apply& o) const {
    for (const Source& operand : o.operands) {
      if (operand.is_tile()) read(operand.tile);
    }
    write(o.result);
  }
  void operator()(const Splat& o) const { write(o.result); }
  void operator()(const Count& o) const { write(o.result); }
  void operator()(const Fold& o) const {
    read(o.source);
    if (o.factor != kNone) read(o.factor);
    write(o.result);
  }
  void operator()(const Any& o) const { read(o.source); }
  void operator()(const Move& o) const {
    read(o.source);
    write(o.result);
  }
  void operator()(const Reshape& o) const {
    read(o.source);
    write(o.result);
  }
  void operator()(const Multiply& o) const {
    read(o.a);
    read(o.b);
    if (o.needed != kNone) read(o.needed);
    if (o.accumulates) read(o.result);
    write(o.result);
  }
  // Of scalars alone, and what has blocks.
  void operator()(const auto&) const {}
};
template <typename Read, typename Write>
TileUses(Read, Write) -> TileUses<Read, Write>;

// All of these tiles, those that are read first.
std::vector<TileId> tiles_of(const Operation& operation);
// kNone where it writes none.
TileId written_by(const Operation& operation);

// Calls `visit(operation)` for all operations of a block and of the blocks in it.
void for_operations(Block& block, const std::function<void(Operation&)>& visit);
void for_operations(const Block& block, const std::function<void(const Operation&)>& visit);

}  // namespace tilewright::cpu
