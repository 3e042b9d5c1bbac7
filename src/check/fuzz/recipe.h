#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/fuzz/launch.h"
#include "tilewright/kernel.h"

namespace tilewright::checks::fuzz {

// One step of a random kernel. What its numbers choose among is whatever is there when the step is
// traced, so that a recipe still makes a kernel when steps are left out: this is what shrinks.
struct Step {
  enum class Kind : std::uint8_t {
    load,
    unary,
    binary,
    select,
    mask,
    cast,
    reduce,
    dot,
    dot_of_parts,
    reshape,
    slice,
    transpose,
    scalar,
    coordinates,
    loop,
    when,
    store,
    update,
    nest,  // a loop within a loop, with sums of either
  };
  Kind kind = Kind::load;
  int a = 0, b = 0, c = 0;  // which operands, counted from the last value made
  int n = 0;                // which variety
  std::vector<Step> inner;  // of a loop, or a condition
};

struct Sizes {
  std::int64_t rows = 1, columns = 1, depth = 1;  // of the tensors' axes
};

// How the explicit level computes the product that a kernel begins with.
struct ExplicitPlan {
  int stages = 2, warpgroups = 1, cluster = 1;
  bool multicast = false, persistent = false, a_in_registers = false, b_by_rows = false;
  bool wide_stages = false;  // a stage has columns of two tiles, of which one is multiplied
  bool halves = false;       // a stage is multiplied in two halves of its depth
};

struct Recipe {
  enum class Style : std::uint8_t { rows, products, explicit_level };
  Style style = Style::rows;
  std::uint64_t seed = 0;  // of the tensors' values
  Sizes sizes;
  int block_rows = 1, block_columns = 32, block_depth = 32, inner = 32;
  bool grid_of_columns = false;
  ExplicitPlan plan;
  std::vector<Step> steps;
};

Recipe random_recipe(std::uint64_t seed);
int steps_of(const Recipe& recipe);

struct Traced {
  Kernel kernel;
  Launch launch;
};
// The kernel of the tile level, and what it is launched with.
Traced trace(const Recipe& recipe);
// The same at the explicit level, for that target; of recipes in that style.
Kernel trace_explicit(const Recipe& recipe, std::string_view target);

}  // namespace tilewright::checks::fuzz
