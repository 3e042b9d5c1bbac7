#include "target/sm_100a.h"

#include <algorithm>

#include "target/families.h"
#include "target/sm_90a.h"

// "PTX": the PTX ISA, 9.0, chapter "TensorCore 5th generation"; "guide": as in sm_90a.cpp, whose
// numbers hold here too where none is named.
namespace tilewright::target {
namespace {

using ir::Family;

void change_limits(TargetLimits& l) {
  l.group_rows = 128;          // PTX, tcgen05.mma: M of a product by one CTA, a lane for each row
  l.product_column_unit = 16;  // PTX, tcgen05.mma: of M = 128 with 8-bit B it is 16, else 8
  l.product_groups = 0;        // a product is waited for by an mbarrier
}

void change_rates(Rates& r) {
  r.fma = 4096;  // data sheet of the B200: 2250 TFLOP/s at 148 multiprocessors x 1.86 GHz
}

// Instructions of a family that it lacks have no unit.
void drop_units(Target& t) {
  std::erase_if(t.units, [&](const Unit& unit) {
    return !unit.families.empty() &&
           std::none_of(unit.families.begin(), unit.families.end(), [&](Family family) {
             return std::find(t.operations.begin(), t.operations.end(), family) !=
                    t.operations.end();
           });
  });
}

}  // namespace

Target sm_100a() {
  Target t = sm_90a();
  t.name = "sm_100a";
  t.chips = "NVIDIA Blackwell: B200, GB200";
  change_limits(t.limits);
  change_rates(t.rates);
  t.operations = families_of(Products::tensor_memory);
  drop_units(t);
  t.accumulator = t.product_operand = nullptr;  // no part of a product is in registers
  t.schedules = {"rows"};
  return t;
}

Target sm_110a() {
  Target t = sm_100a();
  t.name = "sm_110a";
  t.chips = "NVIDIA Blackwell: Jetson Thor";
  return t;
}

}  // namespace tilewright::target
