#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ir/ir.h"
#include "support/arguments.h"

namespace tilewright::simulator {

class ReadMap;

struct InterpreterOptions {
  // The oracle: every floating value is a double, also where the kernel casts to a narrower dtype;
  // numbers are rounded only when a store writes them. Otherwise floating tiles and scalars are
  // computed in float, each operation's result is rounded to its dtype, and dot and reduce add
  // their terms in ascending order in float.
  bool float64 = false;
  // Of float64: each result is changed by a random part, drawn from this seed, of what rounding to
  // its dtype may change. Several such runs show what the dtypes make of a result.
  std::optional<std::uint64_t> rounding_seed = std::nullopt;
  int threads = 1;  // over the grid's blocks; 0: as many as the machine has
  // Values of the dimensions that no axis of a tensor is alone.
  std::map<std::string, std::int64_t> dims;
  // Two blocks of the grid that store one element of an `out` tensor are an error, and so are
  // elements of one that no block stores. Left alone is what a kernel stores only as loaded numbers
  // or data tell it to.
  bool check_outputs = false;
  // A while_loop that runs longer is an error rather than a hang.
  std::int64_t while_limit = 100'000'000;
  // Learns what is read of its tensors; null: nobody asks.
  ReadMap* reads = nullptr;
};

// Runs a kernel in the tile form on the host, block by block: its plain meaning, which every other
// execution is held against. Float to integer casts round to the nearest, ties to even.
// An index outside of its tensor, blocks that integers of the launch put outside of theirs
// (analysis/access_bounds.h), a division by zero, an integer that leaves its dtype, a
// reshape of a tile that does not wholly exist and arguments that do not fit are usage errors.
void interpret(const ir::Kernel& kernel, const Arguments& arguments,
               const InterpreterOptions& options = {});

// Of a kernel in the tile form whose grid has no block: what `check_outputs` says of its outputs.
void check_empty_grid(const ir::Kernel& kernel, const Arguments& arguments);
// The same of elements that a launch of its machine form has not stored: MachineReport::written.
void check_written(const ir::Kernel& kernel, const Arguments& arguments,
                   const std::vector<std::vector<std::uint16_t>>& written);

}  // namespace tilewright::simulator
