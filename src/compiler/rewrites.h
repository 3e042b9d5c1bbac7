#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"
#include "tilewright/numerics.h"

// The rewrites that change rounding (docs/numerics.md), by name.
namespace tilewright::compiler {

struct Rewrite {
  const char* name;  // of the pass
  bool Numerics::*allowed;
  const char* effect;
  bool of_cpu = false;  // and of no GPU
};
const std::vector<Rewrite>& all_rewrites();

// "strict", or NAME=on or NAME=off; later settings overrule earlier ones.
Numerics parse_numerics(const std::vector<std::string>& settings);

// Functions of f32 of which the machine has an approximation only, and how many operations of the
// machine form compute each.
struct Approximation {
  std::string function;
  std::string instruction;  // of PTX
  int count = 0;
};
std::vector<Approximation> approximations_in(const ir::Kernel& machine);

}  // namespace tilewright::compiler
